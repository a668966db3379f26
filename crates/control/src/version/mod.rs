//! Versions: which tables a column family has, and where.
//!
//! 1. [`Version::new`] has no tables. [`VersionEdit`] describes a change, and `Version::apply`
//!    returns the next version (`apply`).
//! 2. A version has levels, a level has [`Run`]s, and a run has its tables in a tree by key
//!    (`tree`).
//! 3. Range tombstones stand beside the tables (`range_tombstones`), and so do the value files that
//!    tables refer to (`value_files`).
//!
//! What must stay true: a version never changes. It shares everything with its predecessor that the
//! edit did not touch.

mod apply;
mod edit;
mod heads;
mod key_sketch;
mod range_tombstones;
mod resize;
mod run;
mod table_meta;
mod tree;
mod value_files;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

pub use apply::EditError;
pub use edit::{AddedTable, DurableLog, Region, RemovedTable, VersionEdit};
pub use key_sketch::KeySketch;
pub use range_tombstones::{Fragment, RangeTombstone, RangeTombstones};
pub use run::Run;
pub use table_meta::{Placement, TableMeta, ValueRef, ValueRefs};
pub use tree::Tables;
pub use value_files::{ValueFile, ValueFiles};

use crate::types::{ColumnFamilyId, Comparator, Epoch, FileId, LogNumber, SeqNo, TableId, UserKey};

/// The largest number of levels.
pub const LEVELS_MAX: usize = 16;

/// The runs of one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Newest epoch first, which is the order in which readers look.
    runs: Vec<Run>,
    bytes: u64,
    tables: usize,
}

impl Level {
    /// Returns the runs, newest first.
    #[must_use]
    #[inline]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Returns the run that has the table `id`, which begins at `smallest`, and the table's rank.
    pub(crate) fn locate(&self, smallest: &[u8], id: TableId) -> Option<(&Run, usize)> {
        self.runs.iter().find_map(|run| Some((run, run.locate(smallest, id)?.0)))
    }

    /// Returns the run of `epoch`.
    #[must_use]
    pub fn run(&self, epoch: Epoch) -> Option<&Run> {
        self.position(epoch).ok().and_then(|at| self.runs.get(at))
    }

    /// Returns the newest run, which is the only one in a level with at most one.
    #[must_use]
    #[inline]
    pub fn sorted(&self) -> Option<&Run> {
        self.runs.first()
    }

    /// Returns the sum of the tables' `size_bytes`.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of tables.
    #[must_use]
    #[inline]
    pub fn tables(&self) -> usize {
        self.tables
    }

    /// Returns true if there is no table.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tables == 0
    }

    /// Returns the position of the run of `epoch`, or where it would be inserted.
    fn position(&self, epoch: Epoch) -> Result<usize, usize> {
        self.runs.binary_search_by(|run| epoch.cmp(&run.epoch()))
    }
}

/// The tables and range tombstones of a column family at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    column_family: ColumnFamilyId,
    number: u64,
    levels: Vec<Arc<Level>>,
    compact_pointers: Vec<Option<UserKey>>,
    log_number: LogNumber,
    style: Option<String>,
    comparator: Comparator,
    value_times: Option<bool>,
    shared_files: Arc<BTreeSet<FileId>>,
    table_id_max: TableId,
    range_tombstones: Arc<RangeTombstones>,
    value_files: Arc<ValueFiles>,
}

impl Version {
    /// Returns the first version of a column family, with `levels` empty levels (at most
    /// [`LEVELS_MAX`]).
    #[must_use]
    pub fn new(column_family: ColumnFamilyId, levels: usize) -> Version {
        let levels = levels.clamp(1, LEVELS_MAX);
        Version {
            column_family,
            number: 0,
            levels: vec![Arc::default(); levels],
            compact_pointers: vec![None; levels],
            log_number: LogNumber(0),
            style: None,
            comparator: Comparator::BYTEWISE,
            value_times: None,
            shared_files: Arc::default(),
            table_id_max: TableId(0),
            range_tombstones: Arc::default(),
            value_files: Arc::default(),
        }
    }

    /// Returns this version with its compaction style set.
    #[must_use]
    pub fn with_style(self, style: String) -> Version {
        Version { style: Some(style), ..self }
    }

    /// Returns this version, which must be empty, with its comparator set.
    #[must_use]
    pub fn with_comparator(self, comparator: Comparator) -> Version {
        Version { comparator, ..self }
    }

    /// Returns this version with the record whether its values are stored with the times of their
    /// writes.
    #[must_use]
    pub fn with_value_times(self, value_times: bool) -> Version {
        Version { value_times: Some(value_times), ..self }
    }

    /// Returns true if its values are stored with the times of their writes, and `None` if nothing
    /// has recorded whether they are.
    #[must_use]
    pub fn value_times(&self) -> Option<bool> {
        self.value_times
    }

    /// Returns the comparator of its keys.
    #[must_use]
    #[inline]
    pub fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// Returns the column family.
    #[must_use]
    pub fn column_family(&self) -> ColumnFamilyId {
        self.column_family
    }

    /// Returns the number of edits that led here. Of two versions of a column family the larger one
    /// is later.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the levels, level 0 first.
    #[must_use]
    #[inline]
    pub fn levels(&self) -> &[Arc<Level>] {
        &self.levels
    }

    /// Returns the bytes of the deepest level below level 0 that has any; 0 if none has.
    pub(crate) fn bottommost_bytes(&self) -> u64 {
        let deepest = self.levels.iter().skip(1).rev().find(|level| !level.is_empty());
        deepest.map_or(0, |level| level.bytes())
    }

    /// Returns a level; an empty one beyond the last.
    #[must_use]
    #[inline]
    pub fn level(&self, level: u8) -> &Level {
        static NONE: std::sync::OnceLock<Level> = std::sync::OnceLock::new();
        match self.levels.get(usize::from(level)) {
            Some(level) => level,
            None => NONE.get_or_init(Level::default),
        }
    }

    /// Returns the round-robin cursor of a level: the largest user key that was compacted last.
    #[must_use]
    pub fn compact_pointer(&self, level: u8) -> Option<&UserKey> {
        self.compact_pointers.get(usize::from(level))?.as_ref()
    }

    /// Returns the number of the oldest WAL that may have entries of this column family that are
    /// not in tables.
    #[must_use]
    pub fn log_number(&self) -> LogNumber {
        self.log_number
    }

    /// Returns the recorded compaction style.
    #[must_use]
    pub fn style(&self) -> Option<&str> {
        self.style.as_deref()
    }

    /// Returns the files whose bytes a checkpoint shares. They are never punched (format rule F7).
    #[must_use]
    pub fn shared_files(&self) -> &BTreeSet<FileId> {
        &self.shared_files
    }

    /// Returns the largest table id that was ever in this version or an earlier one.
    #[must_use]
    pub fn table_id_max(&self) -> TableId {
        self.table_id_max
    }

    /// Returns the range tombstones that some table may still need.
    #[must_use]
    #[inline]
    pub fn range_tombstones(&self) -> &Arc<RangeTombstones> {
        &self.range_tombstones
    }

    /// Returns the value files that some table refers to.
    #[must_use]
    #[inline]
    pub fn value_files(&self) -> &Arc<ValueFiles> {
        &self.value_files
    }

    /// Returns the range tombstones that have nothing left to delete in any table.
    #[must_use]
    pub fn done_ranges(&self) -> Vec<SeqNo> {
        let is_done = |one: &&RangeTombstone| {
            let mut runs = self.levels.iter().flat_map(|level| level.runs());
            !runs.any(|run| {
                let tables = run.range(run.overlap(one.begin.bytes(), one.end.bytes()));
                tables.into_iter().any(|table| one.is_needed_for(table))
            })
        };
        self.range_tombstones.iter().filter(is_done).map(|one| one.seqno).collect()
    }

    /// Returns all tables and where they are: level 0 first, its newest run first.
    pub fn tables(&self) -> impl Iterator<Item = (u8, Epoch, &Arc<TableMeta>)> {
        (0u8..).zip(&self.levels).flat_map(|(number, level)| {
            level
                .runs
                .iter()
                .flat_map(move |run| run.iter().map(move |table| (number, run.epoch(), table)))
        })
    }

    /// Returns the sum of all tables' `size_bytes`.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.bytes).sum()
    }

    /// Returns the number of tables.
    #[must_use]
    pub fn table_count(&self) -> usize {
        self.levels.iter().map(|level| level.tables).sum()
    }

    /// Returns the edit that makes this version from an empty one, with which a new manifest
    /// begins. The counters of the whole database are not set.
    #[must_use]
    pub fn snapshot_edit(&self) -> VersionEdit {
        VersionEdit {
            column_family: self.column_family,
            style: self.style.clone(),
            value_times: self.value_times,
            added: self
                .tables()
                .map(|(level, epoch, table)| AddedTable { level, epoch, table: table.clone() })
                .collect(),
            compact_pointers: (0u8..)
                .zip(&self.compact_pointers)
                .filter_map(|(level, key)| Some((level, key.clone()?)))
                .collect(),
            log_number: Some(self.log_number),
            shared_files: self.shared_files.iter().copied().collect(),
            range_tombstones: self.range_tombstones.iter().cloned().collect(),
            ..VersionEdit::default()
        }
    }
}

/// Prints one line for each level, and in level 0 one more for each run.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, level) in self.levels.iter().enumerate() {
            if level.is_empty() {
                continue;
            }
            writeln!(f, "L{number}: {} tables, {} bytes", level.tables, level.bytes)?;
            for run in level.runs.iter().filter(|_| number == 0) {
                writeln!(f, "  {}: {} tables, {} bytes", run.epoch(), run.len(), run.bytes())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
