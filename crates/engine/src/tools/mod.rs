//! Tools for databases that are not open: check, repair, dump, destroy.

pub(crate) mod check;
pub(crate) mod destroy;
pub mod dump;
pub(crate) mod found;
pub(crate) mod repair;
