//! Makes written tables part of a database, newer than every write so far.
//!
//! 1. `join` flushes memtables that have keys in the extent of a table, and syncs the WAL.
//! 2. Between two commit groups, `install_tables` gives the tables the next sequence numbers, and
//!    adds them to level 0 with one edit.
//! 3. If that fails, `give_up` removes the files.
//!
//! The ranges that a file deletes become range tombstones, with sequence numbers just below that of
//! the file's tables. So they do not delete the entries of the file itself. From level 0 the tables
//! move down by trivial moves where they overlap nothing.
//!
//! What must stay true:
//!
//! - When tables join, no memtable has an entry in their extent: readers would take that entry for
//!   newer.
//! - When ranges to delete join, no memtable has a range tombstone.

use std::sync::Arc;

use sateen_control::version::{AddedTable, RangeTombstone, TableMeta, Version, VersionEdit};
use sateen_control::{Epoch, Event, FileId, SeqNo, UserKey};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::memtable::MemTable;

use super::Ingestion;
use super::trees::{TreeTables, TreesWriter};
use crate::tree::families::ColumnFamilyData;

/// Number of flushes of keys in the extent of tables before they are given up.
const ATTEMPTS: usize = 20;

/// The keys that a file or a load touches.
pub(super) struct Extent {
    pub(super) smallest: UserKey,
    pub(super) largest: UserKey,
    /// The ranges that it deletes.
    pub(super) ranges: Vec<(UserKey, UserKey)>,
}

impl Extent {
    pub(super) fn overlaps(&self, other: &Extent) -> bool {
        self.smallest <= other.largest && other.smallest <= self.largest
    }
}

/// Tables that join a database together.
pub(super) struct Joining<'a> {
    pub(super) family: &'a Arc<ColumnFamilyData>,
    /// The extents of each layer. Later layers are newer.
    pub(super) layers: Vec<Vec<&'a Extent>>,
    /// The tables of each layer.
    pub(super) tables: &'a [Vec<TreeTables>],
    /// Flush memtables that have keys in an extent. If false, such keys are an error.
    pub(super) allow_flush: bool,
}

/// The sequence numbers of a layer, relative to the first one.
struct Numbers<'a> {
    ranges: Vec<(&'a (UserKey, UserKey), u64)>,
    tables: u64,
}

/// Returns numbers for the ranges and then the tables of each layer. Later layers are newer.
fn numbers<'a>(layers: &[Vec<&'a Extent>]) -> Vec<Numbers<'a>> {
    let mut next = 0..;
    let mut take = || next.next().unwrap_or(u64::MAX);
    let of_layer = |extents: &Vec<&'a Extent>| {
        let ranges = extents.iter().flat_map(|extent| &extent.ranges);
        let ranges = ranges.map(|range| (range, take())).collect();
        Numbers { ranges, tables: take() }
    };
    layers.iter().map(of_layer).collect()
}

impl Ingestion<'_> {
    /// Installs the tables at a moment when no memtable has keys in their extents, and `check`
    /// allows it.
    pub(super) fn join(&self, joining: &Joining<'_>, check: impl Fn() -> Result<()>) -> Result<()> {
        let trees: Vec<_> = joining.family.trees().cloned().collect();
        let in_memory = |tree| joining.layers.iter().flatten().any(|extent| holds(tree, extent));
        // Writers may add keys between the flush and the moment of the installation, so it is tried
        // again.
        let is_free = || !trees.iter().any(|tree| in_memory(tree));
        let numbers = numbers(&joining.layers);
        let count = numbers.last().map_or(0, |last| last.tables + 1);
        for _ in 0..ATTEMPTS {
            check()?;
            if !is_free() {
                if !joining.allow_flush {
                    let text = "a memtable has keys in the range of a file, and allow_flush is off";
                    return Err(Error::InvalidArgument(text.into()));
                }
                self.core.background.flush_inner(&trees, true)?;
            }
            // Earlier writes must survive a power loss if these tables do.
            self.core.background.driver.sync_log()?;
            let install = |first| self.install_tables(&trees, joining.tables, &numbers, first);
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
        Err(Error::TimedOut("the wait for a moment without writes into the range of the tables"))
    }

    /// Installs the tables with one edit, with sequence numbers from `first` on.
    fn install_tables(
        &self,
        trees: &[Arc<ColumnFamilyData>],
        tables: &[Vec<TreeTables>],
        numbers: &[Numbers<'_>],
        first: SeqNo,
    ) -> Result<Vec<Option<Arc<Version>>>> {
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
            for (nth, (layer, number)) in (0..).zip(tables.iter().zip(numbers)) {
                let Some(it) = layer.iter().find(|it| it.tree.id() == tree.id()) else { continue };
                let (seqno, epoch) = (SeqNo(first.0 + number.tables), Epoch::at_install(nth));
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

    /// Removes the files of tables that did not join because of `error`.
    pub(super) fn give_up(&self, writers: &mut [TreesWriter], error: &Error) {
        // The files may have joined in the parent since.
        if self.core.env.is_of_parent() {
            return;
        }
        // An edit in the failed manifest may name the files, so they must stay until it is
        // replaced.
        if self.core.tree.versions.manifest_is_dead() {
            let files: Vec<FileId> = writers.iter().flat_map(TreesWriter::files).collect();
            self.core.background.board.after_roll(&files);
            // Other errors are the caller's own, or told by what made the manifest fail.
            if matches!(error, Error::Io { .. }) {
                self.core.background.driver.job_failed(error);
            }
        } else {
            writers.iter_mut().for_each(TreesWriter::abandon);
        }
    }
}

/// Returns true if a memtable of `tree` has an entry or a range tombstone that conflicts with
/// `extent`.
fn holds(tree: &ColumnFamilyData, extent: &Extent) -> bool {
    let view = tree.pin_super_version();
    let has_entry = |memtable: &Arc<MemTable>| {
        let mut iter = memtable.iter();
        let sought = iter.seek(&key::seek_key(extent.smallest.bytes(), SeqNo::MAX));
        sought.is_err() || iter.valid() && *key::user_key(iter.key()) <= extent.largest
    };
    let has_range = |memtable: &Arc<MemTable>| {
        let ranges = memtable.ranges();
        // Range tombstones must enter the version in the order of their sequence numbers, because a
        // table records one number up to which tombstones were applied to it.
        ranges.is_some_and(|ranges| {
            let (from, to) = (extent.smallest.bytes(), extent.largest.bytes());
            !extent.ranges.is_empty() || ranges.iter().any(|range| range.touches(from, to))
        })
    };
    let mut memtables = std::iter::once(&view.active).chain(&view.sealed);
    memtables.any(|memtable| has_entry(memtable) || has_range(memtable))
}
