//! The shape of a tree: which tables are where. A version never changes; an edit makes the next
//! one, which shares with its predecessor all that the edit did not touch.

mod apply;
mod edit;
mod key_sketch;
mod range_tombstones;
mod resize;
mod run;
mod table_meta;
mod tree;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

pub use apply::EditError;
pub use edit::{AddedTable, DurableLog, Region, RemovedTable, VersionEdit};
pub use key_sketch::KeySketch;
pub use range_tombstones::{Fragment, RangeTombstone, RangeTombstones};
pub use run::Run;
pub use table_meta::{Placement, TableMeta};
pub use tree::Tables;

use crate::types::{ColumnFamilyId, Comparator, Epoch, FileId, LogNumber, SeqNo, TableId, UserKey};

/// Most levels a version can have.
pub const LEVELS_MAX: usize = 16;

/// The runs of one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Newest epoch first: the order in which readers look.
    runs: Vec<Run>,
    bytes: u64,
    tables: usize,
}

impl Level {
    /// The runs, newest first.
    #[must_use]
    #[inline]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The run of `epoch`.
    #[must_use]
    pub fn run(&self, epoch: Epoch) -> Option<&Run> {
        self.position(epoch).ok().and_then(|at| self.runs.get(at))
    }

    /// The newest run: the only one of a level that has at most one.
    #[must_use]
    #[inline]
    pub fn sorted(&self) -> Option<&Run> {
        self.runs.first()
    }

    /// The sum of the tables' `size_bytes`.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many tables.
    #[must_use]
    #[inline]
    pub fn tables(&self) -> usize {
        self.tables
    }

    /// Whether there is no table.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tables == 0
    }

    /// Where the run of `epoch` is, or where it would have to be inserted.
    fn position(&self, epoch: Epoch) -> Result<usize, usize> {
        self.runs.binary_search_by(|run| epoch.cmp(&run.epoch()))
    }
}

/// Everything that is in tables of one column family, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    column_family: ColumnFamilyId,
    number: u64,
    levels: Vec<Arc<Level>>,
    compact_pointers: Vec<Option<UserKey>>,
    log_number: LogNumber,
    style: Option<String>,
    comparator: Comparator,
    shared_files: Arc<BTreeSet<FileId>>,
    table_id_max: TableId,
    range_tombstones: Arc<RangeTombstones>,
}

impl Version {
    /// The first version of a column family: `levels` empty levels (at most [`LEVELS_MAX`]).
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
            shared_files: Arc::default(),
            table_id_max: TableId(0),
            range_tombstones: Arc::default(),
        }
    }

    /// The same with its compaction style recorded.
    #[must_use]
    pub fn with_style(self, style: String) -> Version {
        Version { style: Some(style), ..self }
    }

    /// The same, which is empty, with what its keys will be compared by.
    #[must_use]
    pub fn with_comparator(self, comparator: Comparator) -> Version {
        Version { comparator, ..self }
    }

    /// What its keys are compared by.
    #[must_use]
    #[inline]
    pub fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// Whose tables these are.
    #[must_use]
    pub fn column_family(&self) -> ColumnFamilyId {
        self.column_family
    }

    /// How many edits led here: of two versions of one column family the larger is the later.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The levels, level 0 first.
    #[must_use]
    #[inline]
    pub fn levels(&self) -> &[Arc<Level>] {
        &self.levels
    }

    /// A level; an empty one beyond the last.
    #[must_use]
    #[inline]
    pub fn level(&self, level: u8) -> &Level {
        static NONE: std::sync::OnceLock<Level> = std::sync::OnceLock::new();
        match self.levels.get(usize::from(level)) {
            Some(level) => level,
            None => NONE.get_or_init(Level::default),
        }
    }

    /// The round-robin cursor of a level: the largest user key compacted last.
    #[must_use]
    pub fn compact_pointer(&self, level: u8) -> Option<&UserKey> {
        self.compact_pointers.get(usize::from(level))?.as_ref()
    }

    /// Logs below this number hold nothing of this column family that is not in tables.
    #[must_use]
    pub fn log_number(&self) -> LogNumber {
        self.log_number
    }

    /// The compaction style recorded for the column family.
    #[must_use]
    pub fn style(&self) -> Option<&str> {
        self.style.as_deref()
    }

    /// Files whose bytes a checkpoint shares: never punched (format rule F7).
    #[must_use]
    pub fn shared_files(&self) -> &BTreeSet<FileId> {
        &self.shared_files
    }

    /// The largest table id that was ever in this version or one before it.
    #[must_use]
    pub fn table_id_max(&self) -> TableId {
        self.table_id_max
    }

    /// The deletions of ranges that some table may still need.
    #[must_use]
    #[inline]
    pub fn range_tombstones(&self) -> &Arc<RangeTombstones> {
        &self.range_tombstones
    }

    /// Deletions of ranges of which no table has anything left.
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

    /// All tables with where they are: level 0 first, its newest run first.
    pub fn tables(&self) -> impl Iterator<Item = (u8, Epoch, &Arc<TableMeta>)> {
        (0u8..).zip(&self.levels).flat_map(|(number, level)| {
            level
                .runs
                .iter()
                .flat_map(move |run| run.iter().map(move |table| (number, run.epoch(), table)))
        })
    }

    /// The sum of all tables' `size_bytes`.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.bytes).sum()
    }

    /// How many tables there are.
    #[must_use]
    pub fn table_count(&self) -> usize {
        self.levels.iter().map(|level| level.tables).sum()
    }

    /// The edit that makes this version from an empty one: what a new manifest opens with. The
    /// counters that belong to the whole database are left unset.
    #[must_use]
    pub fn snapshot_edit(&self) -> VersionEdit {
        VersionEdit {
            column_family: self.column_family,
            style: self.style.clone(),
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

/// One line a level: tables and bytes; in level 0 one more for each run.
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
