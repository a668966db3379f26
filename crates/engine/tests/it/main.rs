//! Tests of the whole engine, in one binary.

mod basics;
mod common;
mod corrupt;
mod crash;
mod full_disk;
mod kill;
