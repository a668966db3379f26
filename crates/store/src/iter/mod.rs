//! Iterators made of other iterators: a sorted run of tables, a merge, and range tombstones
//! applied.
//!
//! What must stay true: no iterator here takes a child's error for its end.

pub mod as_of;
pub mod bounds;
pub mod covered_iter;
pub mod level_iter;
pub mod merging_iter;
#[cfg(any(test, feature = "test-support"))]
pub mod vec_iter;
