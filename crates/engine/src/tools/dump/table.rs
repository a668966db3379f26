//! What a file of tables says.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Weak};

use sateen_control::{ColumnFamilyId, FileId, IoClass, SeqNo, ValueKind};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::files::{CompactionFile, DirectoryEntry};
use sateen_store::table::{Table, TableIterOptions, TableSource};
use sateen_store::vfs::{Vfs, VfsFile};

use super::{open, posix, show};
use crate::db::behind::of_file;

/// How much of a table is read at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Where the header of a file has its number.
const NUMBER_AT: u64 = 24;

/// What header and directory of a file of tables say of all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The number of the file.
    pub file: u64,
    /// What tells its database from all others.
    pub db_uid: u64,
    /// The length of the file.
    pub bytes: u64,
    /// How many tables follow.
    pub tables: usize,
}

/// What the directory of the file and the table itself say of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSummary {
    /// The number of the table.
    pub table: u64,
    /// Where in the file it starts.
    pub offset: u64,
    /// Its length without padding.
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
    /// Entries, deletions included.
    pub entries: u64,
    /// Deletions.
    pub tombstones: u64,
    /// Bytes of keys and values before compression.
    pub raw_bytes: u64,
    /// What the table says of how it was made; none if its bytes were given back to the file
    /// system, no version having needed it: then no entries follow.
    pub layout: Option<TableLayout>,
}

/// How a table was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// Data blocks.
    pub blocks: u64,
    /// About how long each was meant to be.
    pub block_bytes: u32,
    /// The compression that was asked for: 0 none, 1 LZ4, 2 zstd. Each block says for itself.
    pub compression: u8,
    /// Bits of the filter for each key; 0 if there is no filter.
    pub filter_bits_per_key: u32,
}

/// An entry of the table before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEntry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its sequence number.
    pub seqno: u64,
    /// What it says of the key.
    pub kind: ValueKind,
    /// The value; empty for a deletion.
    pub value: &'a [u8],
}

/// A piece of a file of tables.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TableItem<'a> {
    /// First of all.
    File(TableFile),
    /// A table; its entries follow.
    Table(TableSummary),
    /// An entry.
    Entry(TableEntry<'a>),
}

/// Shows what the file of tables at `path` says to `each`, until that breaks.
///
/// # Errors
/// `Corruption` or `IncompatibleDirectory` of the file, after what stands before it was shown;
/// `Io`.
pub fn table(
    path: impl AsRef<Path>,
    each: &mut dyn FnMut(TableItem<'_>) -> ControlFlow<()>,
) -> Result<()> {
    table_with(&posix(), path.as_ref(), each)
}

/// [`table`] in a file system of the caller's.
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
    // A copy may have lost the name that says its number.
    let mut number = [0; 8];
    let got = file.read_at(&mut number, NUMBER_AT, IoClass::Client);
    let got = got.map_err(|error| Error::io("read", path, error))?;
    if got < number.len() {
        return Err(Error::corruption(path, bytes, CorruptionKind::Truncated));
    }
    let directory = CompactionFile::open(&file, path, FileId(u64::from_le_bytes(number)))?;
    let CompactionFile { id, db_uid, tables } = directory;
    show!(each, TableItem::File(TableFile { file: id.0, db_uid, bytes, tables: tables.len() }));
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
        // A writer may give the table back while it is read.
        let explain = |error| of_file(&path, error, is_given_back(&file, &path, &entry));
        let table = Table::open(source, IoClass::Client).map_err(explain)?;
        let directory = path.parent().unwrap_or(Path::new("."));
        let table = Arc::new(table.with_values(vfs, directory).map_err(explain)?);
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
                let kind = CorruptionKind::Malformed("kind of an entry");
                Error::corruption(&path, table.source().offset, kind)
            })?;
            show!(each, TableItem::Entry(TableEntry { key, seqno, kind, value: iter.value() }));
            iter.next().map_err(explain)?;
        }
    }
    Ok(())
}

/// True if the table's bytes are a hole. A table never begins with a page of zeros: nothing that
/// has a checksum does.
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
