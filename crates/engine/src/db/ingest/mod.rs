//! Ingests files of sorted entries that an [`SstFileWriter`] wrote.
//!
//! 1. `open_external` opens each file and reads its ranges to delete.
//! 2. `layers` sorts the files into layers: files of one layer do not overlap, and a later layer is
//!    newer.
//! 3. `write_layers` writes the entries into tables of the database, which verifies every block.
//!    Clients go on meanwhile.
//! 4. `join` flushes memtables that have keys in the range of a file, and syncs the WAL. Between
//!    two commit groups, `install_tables` then gives the tables sequence numbers that are newer
//!    than every write so far, and adds them to level 0 with one edit.
//! 5. Listeners are called, and the files are removed if the options say so.
//!
//! The ranges that a file deletes become range tombstones, with sequence numbers just below that of
//! the file's tables. So they do not delete the entries of the file itself. From level 0 the tables
//! move down by trivial moves where they overlap nothing.
//!
//! What must stay true:
//!
//! - When a file joins, no memtable has an entry in its range: readers would take that entry for
//!   newer.
//! - When a file with ranges joins, no memtable has a range tombstone.

mod place;
mod told;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use sateen_control::version::{AddedTable, RangeTombstone, TableMeta, VersionEdit};
use sateen_control::{Comparator, Event, FileId, IoClass, SeqNo, UserKey, ValueKind};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::batch::KEY_BYTES_MAX;
use sateen_store::files::{CompactionFile, DirectoryEntry};
use sateen_store::memtable::MemTable;
use sateen_store::table::{Table, TableIter, TableIterOptions, TableSource};
use sateen_store::vfs::{OpenOptions, Vfs};
use writer::{ENTRIES, EXTERNAL_FILE, EXTERNAL_UID, RANGES};

use crate::background::output::{Output, OutputContext};
use crate::core::DbCore;
use crate::tree::families::ColumnFamilyData;
pub use writer::{SstFileInfo, SstFileWriter};

/// Number of flushes of keys in a file's range before the ingestion gives up.
const ATTEMPTS: usize = 20;
/// Size of the reads of a file that is ingested.
const CHUNK_BYTES: usize = 1 << 20;

/// Options of an ingestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngestOptions {
    /// Remove the files once they are ingested. Default: false. RocksDB: `move_files`.
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
    /// The ranges that it deletes.
    ranges: Vec<(UserKey, UserKey)>,
    smallest: UserKey,
    largest: UserKey,
}

impl External {
    fn overlaps(&self, other: &External) -> bool {
        self.smallest <= other.largest && other.smallest <= self.largest
    }
}

fn iter(table: &Arc<Table>) -> TableIter {
    table.iter(TableIterOptions::compaction(IoClass::Flush, CHUNK_BYTES))
}

/// The sequence numbers of a layer, relative to the first one of the ingestion.
struct Numbers<'a> {
    ranges: Vec<(&'a (UserKey, UserKey), u64)>,
    tables: u64,
}

/// Returns numbers for the ranges and then the tables of each layer. Later layers are newer.
fn numbers<'a>(layers: &[Vec<&'a External>]) -> Vec<Numbers<'a>> {
    let mut next = 0..;
    let mut take = || next.next().unwrap_or(u64::MAX);
    let of_layer = |files: &Vec<&'a External>| {
        let ranges = files.iter().flat_map(|file| &file.ranges);
        let ranges = ranges.map(|range| (range, take())).collect();
        Numbers { ranges, tables: take() }
    };
    layers.iter().map(of_layer).collect()
}

/// The tables of one layer for one tree.
struct Written {
    tree: Arc<ColumnFamilyData>,
    layer: u64,
    tables: Vec<Arc<TableMeta>>,
}

/// Ingests files into a database.
pub(crate) struct Ingestion<'a> {
    pub(crate) core: &'a Arc<DbCore>,
}

impl Ingestion<'_> {
    /// Ingests the files at `paths`, all or none.
    pub(crate) fn ingest(
        &self,
        family: &Arc<ColumnFamilyData>,
        paths: &[PathBuf],
        options: &IngestOptions,
    ) -> Result<()> {
        self.core.env.check_writable("ingesting files")?;
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
        let mut outputs = Vec::new();
        let layers = layers(&files);
        // Checked before anything is written, and again before the tables join.
        self.check_place(family, &layers, options)?;
        let installed = self
            .write_layers(family, &layers, &mut outputs)
            .and_then(|written| self.join(family, &layers, &written, options));
        if let Err(error) = installed {
            // An edit in the failed manifest may name the output files, so they must stay until it
            // is replaced.
            let files: Vec<FileId> = outputs.iter().flat_map(Output::files).copied().collect();
            if self.core.tree.versions.manifest_is_dead() {
                self.core.background.board.after_roll(&files);
                self.core.background.driver.job_failed(&error);
            } else {
                outputs.iter_mut().for_each(Output::abandon);
            }
            return Err(error);
        }
        self.tell_ingested(family, &files);
        if options.move_files {
            for file in &files {
                let removed = self.core.env.vfs.remove(&file.path);
                removed.map_err(|error| Error::io("remove", &file.path, error))?;
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
        Ok(External { path: path.into(), table, ranges, smallest, largest })
    }

    /// Writes the entries of `layers` into tables. The files of a layer do not overlap.
    fn write_layers(
        &self,
        family: &Arc<ColumnFamilyData>,
        layers: &[Vec<&External>],
        outputs: &mut Vec<Output>,
    ) -> Result<Vec<Written>> {
        let mut written = Vec::new();
        for (layer, files) in (0..).zip(layers) {
            let mut open: Option<(Arc<ColumnFamilyData>, usize)> = None;
            let mut end = |open: &mut Option<(Arc<ColumnFamilyData>, usize)>,
                           outputs: &mut Vec<Output>| {
                if let Some((tree, output)) = open.take() {
                    let tables = outputs[output].finish()?;
                    written.push(Written { tree, layer, tables });
                }
                Ok::<(), Error>(())
            };
            for file in files {
                let Some(table) = &file.table else { continue };
                let mut iter = iter(table);
                iter.seek_to_first()?;
                let mut entries = 0;
                while iter.valid() {
                    let user_key = key::user_key(iter.key());
                    let tree = family.tree(user_key);
                    if open.as_ref().is_none_or(|(of, _)| of.id() != tree.id()) {
                        end(&mut open, outputs)?;
                        let compression = tree.options().compression_of(0);
                        let context = OutputContext {
                            // Not background work, after which unused spare files would be removed.
                            spare_files: None,
                            ..self.core.background.driver.flusher.outputs.context(
                                tree,
                                0,
                                IoClass::Flush,
                                compression,
                            )
                        };
                        outputs.push(Output::new(context));
                        open = Some((tree.clone(), outputs.len() - 1));
                    }
                    let Some(output) = outputs.last_mut() else { return Err(Error::Closed) };
                    if output.table_bytes() >= tree.options().table_bytes {
                        output.end_table()?;
                    }
                    check_entry(&file.path, iter.key())?;
                    output.add(&self.core.tree.versions.counters, iter.key(), iter.value())?;
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
            end(&mut open, outputs)?;
        }
        Ok(written)
    }

    /// Installs the tables of `written`, at a moment when no memtable has keys in their range.
    fn join(
        &self,
        family: &Arc<ColumnFamilyData>,
        layers: &[Vec<&External>],
        written: &[Written],
        options: &IngestOptions,
    ) -> Result<()> {
        let trees: Vec<_> = family.trees().cloned().collect();
        let in_memory = |tree| layers.iter().flatten().any(|file| holds(tree, file));
        // Writers may add keys between the flush and the moment of the installation, so it is tried
        // again.
        let is_free = || !trees.iter().any(|tree| in_memory(tree));
        let numbers = numbers(layers);
        let count = numbers.last().map_or(0, |last| last.tables + 1);
        for _ in 0..ATTEMPTS {
            self.check_place(family, layers, options)?;
            if !is_free() {
                if !options.allow_flush {
                    let text = "a memtable has keys in the range of a file, and allow_flush is off";
                    return Err(Error::InvalidArgument(text.into()));
                }
                self.core.background.flush_inner(&trees, true)?;
            }
            // Earlier writes must survive a power loss if these tables do.
            self.core.background.driver.sync_log()?;
            let install = |first| self.install_tables(&trees, written, &numbers, first);
            if let Some(versions) =
                self.core.writes.pipeline.between_groups(count, is_free, install)?
            {
                for version in versions.into_iter().flatten() {
                    self.core
                        .background
                        .driver
                        .report(self.core.env.now(), Event::VersionInstalled { version });
                }
                return Ok(());
            }
        }
        Err(Error::TimedOut("the wait for a moment without writes into the range of a file"))
    }

    /// Installs the tables with one edit, with sequence numbers from `first` on.
    fn install_tables(
        &self,
        trees: &[Arc<ColumnFamilyData>],
        written: &[Written],
        numbers: &[Numbers<'_>],
        first: SeqNo,
    ) -> Result<Vec<Option<Arc<sateen_control::version::Version>>>> {
        // Syncs what was written since the last sync, which is usually nothing.
        let durable_log = self.core.background.driver.sync_log()?;
        let ranges = numbers.iter().flat_map(|layer| &layer.ranges);
        let ranges = ranges.map(|((begin, end), number)| RangeTombstone {
            begin: begin.clone(),
            end: end.clone(),
            seqno: SeqNo(first.0 + number),
        });
        let range_tombstones: Vec<_> = ranges.collect();
        let mut edits: Vec<(VersionEdit, usize)> = Vec::new();
        for tree in trees {
            let mut edit = VersionEdit {
                column_family: tree.id(),
                range_tombstones: range_tombstones.clone(),
                durable_log,
                ..VersionEdit::default()
            };
            // Layer by layer, because later ones are newer.
            for (layer, number) in (0..).zip(numbers) {
                let mut of_it = written.iter().filter(|it| it.layer == layer);
                let Some(it) = of_it.find(|it| it.tree.id() == tree.id()) else { continue };
                let (seqno, epoch) =
                    (SeqNo(first.0 + number.tables), self.core.tree.versions.counters.epoch());
                edit.added.extend(it.tables.iter().map(|table| {
                    let table = TableMeta {
                        seqno_min: seqno,
                        seqno_max: seqno,
                        global_seqno: seqno,
                        ..(**table).clone()
                    };
                    AddedTable { level: 0, epoch, table: Arc::new(table) }
                }));
            }
            if !edit.added.is_empty() || !edit.range_tombstones.is_empty() {
                edits.push((edit, 0));
            }
        }
        let last = numbers.last().map_or(first, |last| SeqNo(first.0 + last.tables));
        self.core.tree.versions.install_together(edits, last, &self.core.tree.reclaimer)
    }
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
        let above = layers.iter().rposition(|layer| layer.iter().any(|below| below.overlaps(file)));
        let at = above.map_or(0, |below| below + 1);
        match layers.get_mut(at) {
            Some(layer) => layer.push(file),
            None => layers.push(vec![file]),
        }
    }
    for layer in &mut layers {
        layer.sort_by(|a, b| a.smallest.cmp(&b.smallest));
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

/// Returns true if a memtable of `tree` has an entry or a range tombstone that conflicts with
/// `file`.
fn holds(tree: &ColumnFamilyData, file: &External) -> bool {
    let view = tree.pin_super_version();
    let has_entry = |memtable: &Arc<MemTable>| {
        let mut iter = memtable.iter();
        let sought = iter.seek(&key::seek_key(file.smallest.bytes(), SeqNo::MAX));
        sought.is_err() || iter.valid() && *key::user_key(iter.key()) <= file.largest
    };
    let has_range = |memtable: &Arc<MemTable>| {
        let ranges = memtable.ranges();
        // Range tombstones must enter the version in the order of their sequence numbers, because a
        // table records one number up to which tombstones were applied to it.
        ranges.is_some_and(|ranges| {
            let (from, to) = (file.smallest.bytes(), file.largest.bytes());
            !file.ranges.is_empty() || ranges.iter().any(|range| range.touches(from, to))
        })
    };
    let mut memtables = std::iter::once(&view.active).chain(&view.sealed);
    memtables.any(|memtable| has_entry(memtable) || has_range(memtable))
}
