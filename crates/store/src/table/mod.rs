//! Tables: sorted, immutable sets of entries. A [`TableBuilder`] writes one, and a [`Table`] reads
//! it. `docs/format/table.md` describes the bytes.
//!
//! 1. `builder` collects entries into data blocks (`block`) and compresses them (`compression`).
//! 2. It ends the table with the filter (`filter`), the index (`index`), the properties
//!    (`properties`) and the footer (`format`).
//! 3. `reader` opens a table and serves point reads; `iter` scans it.
//!    `readahead` decides how much a scan reads at once, and `many` reads blocks of several tables
//!    at the same time.
//! 4. `table_cache` keeps tables and files open, and `table_images` keeps whole L0 tables in
//!    memory.
//! 5. `separated` encodes where values are that are not in the table, `value_files` reads them, and
//!    `gathered` reads several at the same time.
//! 6. `kept` keeps memory of indexes and filters for the next tables.
//! 7. `observed` tells an observer of the data blocks that readers need.
//! 8. `walk` reads a damaged table without its index.
//!
//! What must stay true: a table never changes once it is written (format rule F2).

mod block;
mod builder;
mod compression;
mod filter;
pub mod format;
pub mod fuzz;
mod gathered;
mod index;
mod iter;
mod kept;
mod many;
mod observed;
mod on_miss;
mod properties;
mod readahead;
mod reader;
mod separated;
mod source;
mod spare;
mod summary;
pub mod table_cache;
pub mod table_images;
mod value_files;
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
use builder::KEY_BYTES_MAX;
pub use builder::{TableBuilder, TableBuilderOptions, ValuesApart};
pub use compression::Compression;
pub use filter::hash_key;
pub use iter::{TableIter, TableIterOptions, ValueMode};
pub use many::{NeededBlock, load_blocks};
pub use on_miss::OnMiss;
pub use readahead::{LevelScans, ScanLengths};
pub use reader::{PinnedValue, Table};
pub use separated::{Separated, ValuePlace};
pub use source::TableSource;
#[cfg(test)]
use summary::TableSummary;
pub use value_files::{ValueFiles, ValueScan, ValuesFile};
