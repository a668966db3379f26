//! The read path: what a reader pins, the caches it goes through, and the iterators.

pub(crate) mod db_iter;
#[cfg(test)]
mod measure;
pub(crate) mod prefix_seek;
pub(crate) mod regions_iter;
pub(crate) mod super_version;
pub(crate) mod table_filter;

pub(crate) use super_version::SuperVersion;
