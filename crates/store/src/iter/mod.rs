//! Iterators that are made of others: a sorted level of tables, a merge, range tombstones applied.

pub mod bounds;
pub mod covered_iter;
pub mod level_iter;
pub mod merging_iter;
#[cfg(any(test, feature = "test-support"))]
pub mod vec_iter;
