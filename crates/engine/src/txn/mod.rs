//! Batches whose entries can be read before they are written.
//!
//! 1. [`index`] keeps the entries of a batch in a private memtable for each column family.
//! 2. [`batch_with_index`] is such a batch as clients use it.

pub(crate) mod batch_with_index;
mod index;
