//! The engine against models: random operations, threads, interference with jobs.

pub(crate) mod backups;
pub(crate) mod batch_index;
pub(crate) mod comparator;
pub(crate) mod concurrency;
pub(crate) mod events;
mod histories;
pub(crate) mod meta;
mod moments;
pub(crate) mod transactions;
