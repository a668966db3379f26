//! Full disks: every call of the file system that finds no space, and real file systems filled up.

mod every_call;
mod real;
