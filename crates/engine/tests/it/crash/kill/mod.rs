//! Killed processes: at any moment, and at the n-th call of the file system.

mod children;
pub(crate) mod point;
