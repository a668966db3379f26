//! A table of a database as clients are told of it.

use std::path::{Path, PathBuf};

use sateen_control::version::{Placement, TableMeta};
use sateen_store::files::table_file_name;

/// A table of a database, as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveTable {
    /// The column family's name.
    pub column_family: String,
    /// The level that it is in.
    pub level: u8,
    /// The file that it is in, perhaps with others.
    pub file: PathBuf,
    /// Where in the file it begins.
    pub offset: u64,
    /// Its bytes there, and those of its values that are elsewhere.
    pub size_bytes: u64,
    /// The smallest key.
    pub smallest: Vec<u8>,
    /// The largest key.
    pub largest: Vec<u8>,
    /// The oldest sequence number inside.
    pub smallest_seqno: u64,
    /// The newest sequence number inside.
    pub largest_seqno: u64,
    /// Entries, deletions included.
    pub entries: u64,
    /// Deletions.
    pub deletions: u64,
}

impl LiveTable {
    /// Describes `table`, which is in `level` of `column_family`, in the database in `directory`.
    pub(crate) fn of(
        directory: &Path,
        column_family: &str,
        level: u8,
        table: &TableMeta,
    ) -> LiveTable {
        let offset = match table.placement {
            Placement::WholeFile(_) => 0,
            Placement::Slice { offset, .. } | Placement::Log { offset, .. } => offset,
        };
        LiveTable {
            column_family: column_family.to_owned(),
            level,
            file: table_file_name(directory, table.placement.file()),
            offset,
            size_bytes: table.size_bytes,
            smallest: table.smallest.bytes().to_vec(),
            largest: table.largest.bytes().to_vec(),
            smallest_seqno: table.seqno_min.0,
            largest_seqno: table.seqno_max.0,
            entries: table.entries,
            deletions: table.tombstones,
        }
    }
}
