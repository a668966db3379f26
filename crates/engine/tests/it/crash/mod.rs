//! What survives: power failures, killed processes, cuts of a file system, and what is written
//! after.

mod atomic_flush;
mod backups;
mod cut;
mod image;
pub(crate) mod kill;
mod planted;
mod power;
mod prepared;
pub(crate) mod replay;
mod resume;
mod trim;
