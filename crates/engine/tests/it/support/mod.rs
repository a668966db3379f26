//! What several tests share: option sets, child processes, real file systems, accounts of what is
//! held.

pub(crate) mod child;
pub(crate) mod common;
pub(crate) mod device;
pub(crate) mod extents;
pub(crate) mod leaks;
pub(crate) mod process;
pub(crate) mod rel;
