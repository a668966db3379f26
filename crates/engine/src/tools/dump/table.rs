//! Shows the tables and entries of a table file.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Weak};

use sateen_control::{ColumnFamilyId, FileId, IoClass, SeqNo, ValueKind};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::files::{CompactionFile, DirectoryEntry};
use sateen_store::table::{Table, TableIterOptions, TableSource, ValueFiles};
use sateen_store::vfs::{Vfs, VfsFile};

use super::{open, posix, show};
use crate::db::behind::of_file;

/// Bytes of one read of a table.
const CHUNK_BYTES: usize = 256 << 10;
/// The offset of the file's number in its header.
const NUMBER_AT: u64 = 24;

/// The header and directory of a table file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The number of the file.
    pub file: u64,
    /// The unique id of its database.
    pub db_uid: u64,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The number of tables in it.
    pub tables: usize,
    /// True if it has values of tables in other files, and no tables.
    pub values: bool,
}

/// A table, as its file's directory and its own properties describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSummary {
    /// The number of the table.
    pub table: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Its length in bytes, without padding.
    pub length: u64,
    /// The column family that it was written for.
    pub column_family: ColumnFamilyId,
    /// The level that it was written for.
    pub level: u8,
    /// The smallest key.
    pub smallest: Vec<u8>,
    /// The largest key.
    pub largest: Vec<u8>,
    /// The oldest sequence number.
    pub seqno_min: u64,
    /// The newest sequence number.
    pub seqno_max: u64,
    /// Number of entries, deletions included.
    pub entries: u64,
    /// Number of deletions.
    pub tombstones: u64,
    /// Bytes of keys and values before compression.
    pub raw_bytes: u64,
    /// How the table was built; `None` if its bytes were reclaimed because no version needed it.
    /// Then no entries follow.
    pub layout: Option<TableLayout>,
}

/// How a table was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// Number of data blocks.
    pub blocks: u64,
    /// Target size of a block in bytes.
    pub block_bytes: u32,
    /// The compression of the options: 0 none, 1 LZ4, 2 zstd. Each block says which one it has.
    pub compression: u8,
    /// Filter bits for each key; 0 if there is no filter.
    pub filter_bits_per_key: u32,
}

/// An entry of the table that was shown last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEntry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its sequence number.
    pub seqno: u64,
    /// Its kind: what it does to the key.
    pub kind: ValueKind,
    /// The value; empty for a deletion.
    pub value: &'a [u8],
}

/// A piece of a table file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TableItem<'a> {
    /// The file, which comes first.
    File(TableFile),
    /// A table. Its entries follow.
    Table(TableSummary),
    /// An entry.
    Entry(TableEntry<'a>),
}

/// Calls `each` with every piece of the table file at `path`, until it breaks.
///
/// # Errors
/// `Corruption` or `IncompatibleDirectory` of the file, after all pieces before it were shown;
/// `Io`.
pub fn table(
    path: impl AsRef<Path>,
    each: &mut dyn FnMut(TableItem<'_>) -> ControlFlow<()>,
) -> Result<()> {
    table_with(&posix(), path.as_ref(), each)
}

/// [`table`] in the caller's file system.
///
/// # Errors
/// As [`table`].
pub fn table_with(
    vfs: &dyn Vfs,
    path: &Path,
    each: &mut dyn FnMut(TableItem<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let file = open(vfs, path)?;
    let bytes = file.len().map_err(|error| Error::io("read the length of", path, error))?;
    // The number comes from the header, because a copy may have lost its name.
    let mut number = [0; 8];
    let got = file.read_at(&mut number, NUMBER_AT, IoClass::Client);
    let got = got.map_err(|error| Error::io("read", path, error))?;
    if got < number.len() {
        return Err(Error::corruption(path, bytes, CorruptionKind::Truncated));
    }
    let directory = CompactionFile::open(&file, path, FileId(u64::from_le_bytes(number)))?;
    let CompactionFile { id, db_uid, tables, values_end } = directory;
    let (file_id, values) = (id.0, values_end.is_some());
    let count = tables.len();
    show!(each, TableItem::File(TableFile { file: file_id, db_uid, bytes, tables: count, values }));
    let path: Arc<Path> = path.into();
    for entry in tables {
        if is_given_back(&file, &path, &entry)? {
            show!(each, TableItem::Table(summary(entry, None)));
            continue;
        }
        let source = TableSource {
            file: file.clone(),
            path: path.clone(),
            table: entry.table,
            file_id: id,
            db_uid,
            offset: entry.offset,
            length: entry.length,
            tail_bytes: 0,
            global_seqno: SeqNo(0),
            comparator: None,
            image: Weak::new(),
        };
        // A writer may reclaim the table while it is read.
        let explain = |error| of_file(&path, error, is_given_back(&file, &path, &entry));
        let table = Table::open(source, IoClass::Client).map_err(explain)?;
        let directory = path.parent().unwrap_or(Path::new("."));
        let values = Arc::new(ValueFiles::of_table(vfs, directory, &table));
        let table = Arc::new(table.with_values(&values).map_err(explain)?);
        let properties = table.properties();
        let layout = TableLayout {
            blocks: table.blocks() as u64,
            block_bytes: properties.block_bytes,
            compression: properties.compression,
            filter_bits_per_key: properties.filter_bits_per_key,
        };
        show!(each, TableItem::Table(summary(entry.clone(), Some(layout))));
        let mut iter = table.iter(TableIterOptions::compaction(IoClass::Client, CHUNK_BYTES));
        iter.seek_to_first().map_err(explain)?;
        while iter.valid() {
            let internal = iter.key();
            let (key, seqno) = (key::user_key(internal), key::seqno(internal).0);
            let kind = key::kind(internal).ok_or_else(|| {
                let kind = CorruptionKind::Malformed("unknown kind of an entry");
                Error::corruption(&path, table.source().offset, kind)
            })?;
            show!(each, TableItem::Entry(TableEntry { key, seqno, kind, value: iter.value() }));
            iter.next().map_err(explain)?;
        }
    }
    Ok(())
}

/// Returns true if the table's bytes are a hole. A table never begins with a page of zeros, because
/// its first block has a checksum.
fn is_given_back(file: &Arc<dyn VfsFile>, path: &Path, entry: &DirectoryEntry) -> Result<bool> {
    let mut page = [0; 4096];
    let length = usize::try_from(entry.length).map_or(page.len(), |bytes| bytes.min(page.len()));
    let start = page.get_mut(..length).unwrap_or_default();
    let got = file.read_at(start, entry.offset, IoClass::Client);
    let got = got.map_err(|error| Error::io("read", path, error))?;
    Ok(got == length && start.iter().all(|byte| *byte == 0))
}

fn summary(entry: DirectoryEntry, layout: Option<TableLayout>) -> TableSummary {
    TableSummary {
        table: entry.table.0,
        offset: entry.offset,
        length: entry.length,
        column_family: entry.column_family,
        level: entry.level,
        smallest: entry.smallest,
        largest: entry.largest,
        seqno_min: entry.seqno_min.0,
        seqno_max: entry.seqno_max.0,
        entries: entry.entries,
        tombstones: entry.tombstones,
        raw_bytes: entry.raw_bytes,
        layout,
    }
}
