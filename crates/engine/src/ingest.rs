//! Taking in files of sorted entries that were written outside ([`SstFileWriter`]).
//!
//! Their entries are written anew, into files of the database, which checks every block of them;
//! clients go on meanwhile. Then, between two groups of writes, the tables get one sequence number,
//! newer than all that was written and older than what comes, and join level 0 by one edit, all or
//! none. From there they go down as other tables do: without being rewritten where nothing is.
//!
//! What must stay true: no memtable has anything in the range of a file when that joins: readers
//! would take it for newer.

mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::version::{AddedTable, TableMeta, VersionEdit};
use sateen_control::{Comparator, Event, FileId, IoClass, SeqNo, UserKey, ValueKind};

use writer::{EXTERNAL_FILE, EXTERNAL_UID};
pub use writer::{SstFileInfo, SstFileWriter};

use crate::background::output::Output;
use crate::background::state::Health;
use crate::column_family::ColumnFamilyData;
use crate::core::DbCore;
use crate::error::{CorruptionKind, Error, Result};
use crate::files::CompactionFile;
use crate::key;
use crate::memtable::MemTable;
use crate::read::InternalIterator;
use crate::table::{Table, TableIter, TableIterOptions, TableSource};
use crate::vfs::{OpenOptions, Vfs};

/// How often what is written into a file's range is flushed before that is given up.
const ATTEMPTS: usize = 20;
const CHUNK_BYTES: usize = 1 << 20;

/// How files are ingested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngestOptions {
    /// The files are removed once they are taken in. Default: false. RocksDB: `move_files`.
    pub move_files: bool,
    /// Memtables that have keys in the range of a file are flushed; otherwise that is an error.
    /// Default: true. RocksDB: `allow_blocking_flush`.
    pub allow_flush: bool,
}

impl Default for IngestOptions {
    fn default() -> IngestOptions {
        IngestOptions { move_files: false, allow_flush: true }
    }
}

/// A file to be taken in.
struct External {
    path: PathBuf,
    table: Arc<Table>,
    smallest: UserKey,
    largest: UserKey,
}

impl External {
    fn overlaps(&self, other: &External) -> bool {
        self.smallest <= other.largest && other.smallest <= self.largest
    }

    fn iter(&self) -> TableIter {
        self.table.iter(TableIterOptions::compaction(IoClass::Flush, CHUNK_BYTES))
    }
}

/// Tables for one tree, of one of the layers of files that lie on top of each other.
struct Written {
    tree: Arc<ColumnFamilyData>,
    layer: u64,
    tables: Vec<Arc<TableMeta>>,
}

impl DbCore {
    /// Takes in files.
    pub(crate) fn ingest(
        self: &Arc<Self>,
        family: &Arc<ColumnFamilyData>,
        paths: &[PathBuf],
        options: &IngestOptions,
    ) -> Result<()> {
        self.check_writable("ingesting files")?;
        let files = paths.iter().map(|path| self.open_external(path, family.comparator()));
        let files: Vec<External> = files.collect::<Result<_>>()?;
        if files.is_empty() {
            return Ok(());
        }
        let merges = files.iter().any(|file| file.table.properties().merges > 0);
        if merges && family.options().merge_operator.is_none() {
            let text = format!("the column family {} has no merge operator", family.name());
            return Err(Error::InvalidArgument(text));
        }
        let mut outputs = Vec::new();
        let installed = self
            .write_layers(family, &layers(&files), &mut outputs)
            .and_then(|written| self.join(family, &files, &written, options));
        if let Err(error) = installed {
            // A manifest that failed may name them.
            let files: Vec<FileId> = outputs.iter().flat_map(Output::files).copied().collect();
            if self.versions.manifest_is_dead() {
                self.driver.chores.after_roll(&files);
                self.job_failed(&error);
            } else {
                outputs.iter_mut().for_each(Output::abandon);
            }
            return Err(error);
        }
        if options.move_files {
            for file in &files {
                let removed = self.vfs.remove(&file.path);
                removed.map_err(|error| Error::io("remove", &file.path, error))?;
            }
        }
        Ok(())
    }

    fn open_external(&self, path: &Path, comparator: &Comparator) -> Result<External> {
        let file = self.vfs.open(path, OpenOptions::READ);
        let file = file.map_err(|error| Error::io("open", path, error))?;
        let refused = |reason: String| Error::IncompatibleDirectory { path: path.into(), reason };
        let directory = CompactionFile::open(&file, path, EXTERNAL_FILE)?;
        let entry = match directory.tables.as_slice() {
            [entry] if directory.db_uid == EXTERNAL_UID => entry,
            _ => return Err(refused("no file of an SstFileWriter".into())),
        };
        let source = TableSource {
            file,
            path: path.into(),
            table: entry.table,
            file_id: EXTERNAL_FILE,
            db_uid: EXTERNAL_UID,
            offset: entry.offset,
            length: entry.length,
            tail_bytes: 0,
            global_seqno: SeqNo(0),
            comparator: Some(comparator.clone()),
        };
        let table = Arc::new(Table::open(source, IoClass::Flush)?);
        let smallest = comparator.key(&entry.smallest);
        let largest = comparator.key(&entry.largest);
        Ok(External { path: path.into(), table, smallest, largest })
    }

    /// Writes the entries of `layers`, each of files that do not overlap, into tables.
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
                let mut iter = file.iter();
                iter.seek_to_first()?;
                let mut entries = 0;
                while iter.valid() {
                    let user_key = key::user_key(iter.key());
                    let tree = family.tree(user_key);
                    if open.as_ref().is_none_or(|(of, _)| of.id() != tree.id()) {
                        end(&mut open, outputs)?;
                        let compression = tree.options().compression_of(0);
                        let context = self.output_context(tree, 0, IoClass::Flush, compression);
                        outputs.push(Output::new(context));
                        open = Some((tree.clone(), outputs.len() - 1));
                    }
                    let Some(output) = outputs.last_mut() else { return Err(Error::Closed) };
                    if output.table_bytes() >= tree.options().table_bytes {
                        output.end_table()?;
                    }
                    check_entry(&file.path, iter.key())?;
                    output.add(&self.versions.counters, iter.key(), iter.value())?;
                    entries += 1;
                    iter.next()?;
                }
                if entries != file.table.properties().entries {
                    let kind = CorruptionKind::Inconsistent("entries and their number");
                    return Err(Error::corruption(&file.path, 0, kind));
                }
            }
            end(&mut open, outputs)?;
        }
        Ok(written)
    }

    /// Makes `written` a part of the database.
    fn join(
        self: &Arc<Self>,
        family: &Arc<ColumnFamilyData>,
        files: &[External],
        written: &[Written],
        options: &IngestOptions,
    ) -> Result<()> {
        let trees: Vec<_> = family.trees().cloned().collect();
        let is_free = || !trees.iter().any(|tree| files.iter().any(|file| holds(tree, file)));
        let count = written.iter().map(|written| written.layer + 1).max().unwrap_or(0);
        for _ in 0..ATTEMPTS {
            if !is_free() {
                if !options.allow_flush {
                    let text = "keys in the range of a file are in memory, and allow_flush is off";
                    return Err(Error::InvalidArgument(text.into()));
                }
                self.flush_inner(&trees, true)?;
            }
            // What was written before is not lost if these are not.
            self.sync_log()?;
            let install = |first: SeqNo| self.install_tables(written, first, count);
            if let Some(versions) = self.pipeline.between_groups(count, is_free, install)? {
                for version in versions.into_iter().flatten() {
                    self.driver.report(self.now(), Event::VersionInstalled { version });
                }
                return Ok(());
            }
        }
        Err(Error::TimedOut("a moment in which nobody writes into the range of a file"))
    }

    fn sync_log(&self) -> Result<()> {
        let synced = self.pipeline.sync_wal();
        synced.inspect_err(|error| self.health.raise(Health::ReadOnly, error))
    }

    fn install_tables(
        &self,
        written: &[Written],
        first: SeqNo,
        count: u64,
    ) -> Result<Vec<Option<Arc<sateen_control::version::Version>>>> {
        if self.pipeline.has_unsynced() {
            self.sync_log()?;
        }
        let mut edits: Vec<(VersionEdit, usize)> = Vec::new();
        // Layer by layer: later ones are newer.
        for Written { tree, layer, tables } in written {
            let (seqno, epoch) = (SeqNo(first.0 + layer), self.versions.counters.epoch());
            let numbered = tables.iter().map(|table| {
                let table = TableMeta {
                    seqno_min: seqno,
                    seqno_max: seqno,
                    global_seqno: seqno,
                    ..(**table).clone()
                };
                AddedTable { level: 0, epoch, table: Arc::new(table) }
            });
            match edits.iter_mut().find(|(edit, _)| edit.column_family == tree.id()) {
                Some((edit, _)) => edit.added.extend(numbered),
                None => {
                    let edit = VersionEdit {
                        column_family: tree.id(),
                        added: numbered.collect(),
                        ..VersionEdit::default()
                    };
                    edits.push((edit, 0));
                }
            }
        }
        let last = SeqNo(first.0 + count - 1);
        self.versions.install_together(edits, last, &self.reclaimer)
    }
}

/// The files in layers: each lies above those before it that it overlaps.
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

fn check_entry(path: &Path, internal: &[u8]) -> Result<()> {
    let fine = key::seqno(internal) == SeqNo(0)
        && key::kind(internal).is_some_and(|kind| kind != ValueKind::RangeDelete);
    if fine {
        return Ok(());
    }
    let kind = CorruptionKind::Malformed("an entry that no SstFileWriter writes");
    Err(Error::corruption(path, 0, kind))
}

/// Whether a memtable of `tree` has anything in the range of `file`.
fn holds(tree: &ColumnFamilyData, file: &External) -> bool {
    let view = tree.pin_super_version();
    let has_entry = |memtable: &Arc<MemTable>| {
        let mut iter = memtable.iter();
        let sought = iter.seek(&key::seek_key(file.smallest.bytes(), SeqNo::MAX));
        sought.is_err() || iter.valid() && *key::user_key(iter.key()) <= file.largest
    };
    let has_range = |memtable: &Arc<MemTable>| {
        let ranges = memtable.ranges();
        ranges.is_some_and(|ranges| {
            ranges.iter().any(|range| range.touches(file.smallest.bytes(), file.largest.bytes()))
        })
    };
    let mut memtables = std::iter::once(&view.active).chain(&view.sealed);
    memtables.any(|memtable| has_entry(memtable) || has_range(memtable))
}
