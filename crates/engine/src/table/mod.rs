//! Tables: immutable sorted files' contents, made once by a [`TableBuilder`], read by a [`Table`].
//! The bytes are described in `docs/format/table.md`.
//!
//! What stands where: `format` seals and verifies blocks, `block` is the inside of a data block,
//! `index`, `filter` and `properties` are the other blocks, `compression` shrinks any of them,
//! `image` is a copy of a table in memory.

mod block;
mod builder;
mod compression;
mod filter;
pub(crate) mod format;
pub(crate) mod fuzz;
mod image;
mod index;
mod iter;
mod properties;
mod reader;
mod separated;
pub(crate) mod walk;

#[cfg(test)]
mod bench;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_corruption;
#[cfg(test)]
mod tests_io;

#[cfg(test)]
pub(crate) use builder::{KEY_BYTES_MAX, TableSummary};
pub(crate) use builder::{TableBuilder, TableBuilderOptions};
pub(crate) use filter::hash_key;
pub(crate) use image::TableImage;
pub(crate) use iter::{TableIter, TableIterOptions};
pub(crate) use reader::{PinnedValue, Table, TableSource};
pub(crate) use separated::{Separated, ValuePlace, ValuesFile};
