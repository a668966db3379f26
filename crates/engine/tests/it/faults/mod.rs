//! What goes wrong: refused calls, full disks, damage, hostile bytes; how it is told and repaired.

mod backups;
mod bad_input;
mod bad_paths;
mod check;
mod corrupt;
mod descriptors;
mod errors;
mod full_disk;
mod fuzz_corpus;
mod golden;
mod refused;
pub(crate) mod repair;
mod replaced;
mod scrub;
mod traces;
