//! The read path: what a reader pins, the caches it goes through, and the iterators.

pub(crate) mod db_iter;
pub(crate) mod lookup;
pub(crate) mod prefix_seek;
pub(crate) mod regions_iter;
