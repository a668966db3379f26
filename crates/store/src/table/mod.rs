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
pub mod format;
pub mod fuzz;
mod index;
mod iter;
mod properties;
mod reader;
mod separated;
pub mod table_cache;
pub mod table_images;
pub mod walk;

#[cfg(test)]
mod bench;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_corruption;
#[cfg(test)]
mod tests_io;

#[cfg(test)]
use builder::{KEY_BYTES_MAX, TableSummary};
pub use builder::{TableBuilder, TableBuilderOptions};
pub use compression::Compression;
pub use filter::hash_key;
pub use iter::{TableIter, TableIterOptions};
pub use reader::{PinnedValue, Table, TableSource};
pub use separated::{Separated, ValuePlace, ValuesFile};
