//! Ingests files of sorted entries that an [`SstFileWriter`] wrote. A [`BulkLoad`] writes sorted
//! entries of its caller instead, and joins the database in the same way.
//!
//! 1. `open_external` opens each file and reads its ranges to delete.
//! 2. `layers` sorts the files into layers: files of one layer do not overlap, and a later layer is
//!    newer.
//! 3. `write_layers` writes the entries into tables of the database ([`trees`]), which verifies
//!    every block. Clients go on meanwhile.
//! 4. `join` adds the tables to level 0, newer than every write so far ([`join`]).
//! 5. Listeners are called, and the files are removed if the options say so.
//!
//! What must stay true: the directory stays locked until the last file is written or removed, even
//! if the database is closed meanwhile.

mod join;
mod load;
mod place;
mod told;
mod trees;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use sateen_control::{Comparator, IoClass, SeqNo, UserKey, ValueKind};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::base::names::shown_path;
use sateen_store::base::sync::lock;
use sateen_store::batch::KEY_BYTES_MAX;
use sateen_store::files::{CompactionFile, DirectoryEntry};
use sateen_store::table::{Table, TableIter, TableIterOptions, TableSource};
use sateen_store::vfs::{OpenOptions, Vfs, VfsLock};
use trees::{TreeTables, TreesWriter};
use writer::{ENTRIES, EXTERNAL_FILE, EXTERNAL_UID, RANGES};

use crate::core::DbCore;
use crate::tree::families::ColumnFamilyData;
use join::{Extent, Joining};
pub use load::{BulkLoad, BulkPart};
pub use writer::{SstFileInfo, SstFileWriter};

/// Size of the reads of a file that is ingested.
const CHUNK_BYTES: usize = 1 << 20;

/// Options of an ingestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngestOptions {
    /// Remove the files once they are ingested. One that cannot be removed stays, and is no error.
    /// Default: false. RocksDB: `move_files`.
    pub move_files: bool,
    /// Flush memtables that have keys in the range of a file. If false, such keys are an error.
    /// Default: true. RocksDB: `allow_blocking_flush`.
    pub allow_flush: bool,
    /// Give the entries a sequence number that is newer than existing entries. If false, it is an
    /// error if they would need one: if an entry or a range tombstone lies in the range of a file,
    /// if files overlap each other, or if a snapshot is held. Default: true. RocksDB:
    /// `allow_global_seqno`.
    pub allow_global_seqno: bool,
    /// Fail with [`Error::NotBottommost`] if a file cannot go to the last level: if it overlaps
    /// entries, another file, or the range of a table in the last level. The files still join level
    /// 0, and move down from there without being rewritten. Default: false. RocksDB:
    /// `fail_if_not_bottommost_level`.
    pub fail_if_not_bottommost_level: bool,
}

impl Default for IngestOptions {
    fn default() -> IngestOptions {
        IngestOptions {
            move_files: false,
            allow_flush: true,
            allow_global_seqno: true,
            fail_if_not_bottommost_level: false,
        }
    }
}

/// A file that is ingested.
struct External {
    path: PathBuf,
    /// The table of its entries, if it has any.
    table: Option<Arc<Table>>,
    extent: Extent,
}

fn iter(table: &Arc<Table>) -> TableIter {
    table.iter(TableIterOptions::compaction(IoClass::Flush, CHUNK_BYTES))
}

/// Takes tables into a database.
pub(crate) struct Ingestion<'a> {
    core: &'a Arc<DbCore>,
    /// The locks of its directories.
    _locks: Vec<Arc<dyn VfsLock>>,
}

impl<'a> Ingestion<'a> {
    /// Begins `operation`. Fails if the database cannot be written to.
    pub(crate) fn begin(core: &'a Arc<DbCore>, operation: &'static str) -> Result<Ingestion<'a>> {
        // The locks first: a close that is over has released them.
        let locks = lock(&core.locks).clone();
        core.env.check_writable(operation)?;
        Ok(Ingestion { core, _locks: locks })
    }

    /// Ingests the files at `paths`, all or none.
    pub(crate) fn ingest(
        &self,
        family: &Arc<ColumnFamilyData>,
        paths: &[PathBuf],
        options: &IngestOptions,
    ) -> Result<()> {
        let files = paths.iter().map(|path| self.open_external(path, family.comparator()));
        let files: Vec<External> = files.collect::<Result<_>>()?;
        if files.is_empty() {
            return Ok(());
        }
        let mut tables = files.iter().filter_map(|file| file.table.as_ref());
        let merges = tables.any(|table| table.properties().merges > 0);
        if merges && family.options().merge_operator.is_none() {
            let text = format!("the column family {} has no merge operator", family.name());
            return Err(Error::InvalidArgument(text));
        }
        check_times(family, &files)?;
        let layers = layers(&files);
        let check = || self.check_place(family, &layers, options);
        // Checked before anything is written, and again before the tables join.
        check()?;
        let mut writers = Vec::new();
        let installed = self.write_layers(family, &layers, &mut writers).and_then(|tables| {
            let extents =
                layers.iter().map(|layer| layer.iter().map(|file| &file.extent).collect());
            let joining = Joining {
                family,
                layers: extents.collect(),
                tables: &tables,
                allow_flush: options.allow_flush,
            };
            self.join(&joining, check)
        });
        if let Err(error) = installed {
            self.give_up(&mut writers, &error);
            return Err(error);
        }
        self.tell_ingested(family, &files);
        if options.move_files {
            for file in &files {
                // Its entries are in the database, whether or not it goes.
                let _stays = self.core.env.vfs.remove(&file.path);
            }
        }
        Ok(())
    }

    /// Opens a file, and checks that an [`SstFileWriter`] wrote it.
    fn open_external(&self, path: &Path, comparator: &Comparator) -> Result<External> {
        let file = self.core.env.vfs.open(path, OpenOptions::READ);
        let file = file.map_err(|error| Error::io("open", path, error))?;
        let refused = |reason: String| Error::IncompatibleDirectory { path: path.into(), reason };
        let directory = CompactionFile::open(&file, path, EXTERNAL_FILE)?;
        let listed = |table| directory.tables.iter().find(|entry| entry.table == table);
        let (entries, ranges) = (listed(ENTRIES), listed(RANGES));
        let known = entries.iter().chain(&ranges).count();
        if directory.db_uid != EXTERNAL_UID || known == 0 || known != directory.tables.len() {
            return Err(refused("not a file of an SstFileWriter".into()));
        }
        let open = |entry: &DirectoryEntry| {
            let source = TableSource {
                file: file.clone(),
                path: path.into(),
                table: entry.table,
                file_id: EXTERNAL_FILE,
                db_uid: EXTERNAL_UID,
                offset: entry.offset,
                length: entry.length,
                tail_bytes: 0,
                global_seqno: SeqNo(0),
                comparator: Some(comparator.clone()),
                image: Weak::new(),
            };
            Ok::<_, Error>(Arc::new(Table::open(source, IoClass::Flush)?))
        };
        let table = entries.map(open).transpose()?;
        let stored = ranges.map(open).transpose()?;
        let read = |table: &_| read_ranges(path, table, comparator);
        let ranges = stored.as_ref().map_or_else(|| Ok(Vec::new()), read)?;
        let keys = entries.iter().flat_map(|entry| [&entry.smallest, &entry.largest]);
        let keys = keys.map(|key| comparator.key(key));
        let bounds = ranges.iter().flat_map(|(begin, end)| [begin.clone(), end.clone()]);
        let mut all: Vec<UserKey> = keys.chain(bounds).collect();
        all.sort();
        let (Some(smallest), Some(largest)) = (all.first().cloned(), all.pop()) else {
            return Err(refused("it has neither entries nor ranges to delete".into()));
        };
        Ok(External { path: path.into(), table, extent: Extent { smallest, largest, ranges } })
    }

    /// Writes the entries of `layers` into tables, and returns those of each layer. The files of a
    /// layer do not overlap.
    fn write_layers(
        &self,
        family: &Arc<ColumnFamilyData>,
        layers: &[Vec<&External>],
        writers: &mut Vec<TreesWriter>,
    ) -> Result<Vec<Vec<TreeTables>>> {
        let write = |files: &Vec<&External>| {
            writers.push(TreesWriter::new(self.core, family));
            let Some(writer) = writers.last_mut() else { return Err(Error::Closed) };
            for file in files {
                let Some(table) = &file.table else { continue };
                let mut iter = iter(table);
                iter.seek_to_first()?;
                let mut entries = 0;
                while iter.valid() {
                    check_entry(&file.path, iter.key())?;
                    writer.add(iter.key(), iter.value())?;
                    entries += 1;
                    iter.next()?;
                }
                if entries != table.properties().entries {
                    let kind = CorruptionKind::Inconsistent(
                        "the count of entries in a table differs from its properties",
                    );
                    return Err(Error::corruption(&file.path, 0, kind));
                }
            }
            writer.finish()
        };
        layers.iter().map(write).collect()
    }
}

/// Fails if the values of a file have the times of their writes and those of the column family do
/// not, or the other way round. Files of older versions do not record it.
fn check_times(family: &ColumnFamilyData, files: &[External]) -> Result<()> {
    for file in files {
        let recorded = file.table.as_ref().and_then(|table| table.properties().value_times);
        let Some(other) = recorded.filter(|recorded| *recorded != family.has_times()) else {
            continue;
        };
        let with = |times| if times { "with" } else { "without" };
        return Err(Error::InvalidArgument(format!(
            "{} was written {} the option ttl, and the values of the column family {} are stored \
             {} times: write the file with the options of the column family",
            shown_path(&file.path),
            with(other),
            family.name(),
            with(family.has_times())
        )));
    }
    Ok(())
}

/// Returns the ranges in `table` of the file at `path`.
fn read_ranges(
    path: &Path,
    table: &Arc<Table>,
    comparator: &Comparator,
) -> Result<Vec<(UserKey, UserKey)>> {
    let malformed = || {
        let kind = CorruptionKind::Malformed("a range that no SstFileWriter writes");
        Error::corruption(path, 0, kind)
    };
    let mut ranges: Vec<(UserKey, UserKey)> = Vec::new();
    let mut iter = iter(table);
    iter.seek_to_first()?;
    while iter.valid() {
        let (begin, end) = (key::user_key(iter.key()), iter.value());
        let is_range = key::kind(iter.key()) == Some(ValueKind::RangeDelete);
        if !is_range || end.len() > KEY_BYTES_MAX {
            return Err(malformed());
        }
        let (begin, end) = (comparator.key(begin), comparator.key(end));
        if begin >= end || ranges.last().is_some_and(|(_, last)| *last >= begin) {
            return Err(malformed());
        }
        ranges.push((begin, end));
        iter.next()?;
    }
    let all = ranges.len() as u64 == table.properties().entries;
    if all { Ok(ranges) } else { Err(malformed()) }
}

/// Returns the files in layers. Each file is in a layer above every earlier file that it overlaps.
fn layers(files: &[External]) -> Vec<Vec<&External>> {
    let mut layers: Vec<Vec<&External>> = Vec::new();
    for file in files {
        let above = layers
            .iter()
            .rposition(|layer| layer.iter().any(|below| below.extent.overlaps(&file.extent)));
        let at = above.map_or(0, |below| below + 1);
        match layers.get_mut(at) {
            Some(layer) => layer.push(file),
            None => layers.push(vec![file]),
        }
    }
    for layer in &mut layers {
        layer.sort_by(|a, b| a.extent.smallest.cmp(&b.extent.smallest));
    }
    layers
}

/// Fails if an [`SstFileWriter`] would not write such an entry.
fn check_entry(path: &Path, internal: &[u8]) -> Result<()> {
    let fine = key::seqno(internal) == SeqNo(0)
        && key::kind(internal).is_some_and(|kind| kind != ValueKind::RangeDelete);
    if fine {
        return Ok(());
    }
    let kind = CorruptionKind::Malformed("an entry that no SstFileWriter writes");
    Err(Error::corruption(path, 0, kind))
}
