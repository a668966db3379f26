//! A table of a database, as the public API describes it.

use std::path::{Path, PathBuf};

use sateen_control::version::{Placement, TableMeta};
use sateen_store::files::table_file_name;
use sateen_store::vfs::Vfs;

/// A table of a database at the moment of the call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveTable {
    /// The column family's name.
    pub column_family: String,
    /// The level that holds it.
    pub level: u8,
    /// The file that holds it, perhaps together with other tables.
    pub file: PathBuf,
    /// The offset of its first byte in the file, in bytes.
    pub offset: u64,
    /// Its size in bytes, including values that are stored in a WAL file.
    pub size_bytes: u64,
    /// The smallest key.
    pub smallest: Vec<u8>,
    /// The largest key.
    pub largest: Vec<u8>,
    /// The smallest sequence number of its entries.
    pub smallest_seqno: u64,
    /// The largest sequence number of its entries.
    pub largest_seqno: u64,
    /// Number of entries, including deletions.
    pub entries: u64,
    /// Number of deletions.
    pub deletions: u64,
}

impl LiveTable {
    /// Describes `table`, which is in `level` of `column_family` of the database in `directory`.
    pub(crate) fn of(
        vfs: &dyn Vfs,
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
            file: vfs.place_of(&table_file_name(directory, table.placement.file())),
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
