//! Repair: what can be read is there again, and nothing is destroyed.

pub(crate) mod salvage;
pub(crate) mod whole;
