//! The change from one version to the next: the only thing that a job leaves behind, and the unit
//! of the manifest. Atomic: all of it or nothing (format rule F9).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{RangeTombstone, TableMeta};
use crate::types::{ColumnFamilyId, Comparator, Epoch, FileId, LogNumber, SeqNo, TableId, UserKey};

/// A table that joins a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedTable {
    /// The level it joins.
    pub level: u8,
    /// The run it joins. Levels of one sorted run use `Epoch(0)`; in level 0 each flush has its
    /// own.
    pub epoch: Epoch,
    /// The table. Moving a table between levels keeps this very value.
    pub table: Arc<TableMeta>,
}

/// A table that leaves a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedTable {
    /// The level it leaves.
    pub level: u8,
    /// The run it leaves.
    pub epoch: Epoch,
    /// Its smallest user key: with it the table is found in O(log n).
    pub smallest: UserKey,
    /// The table.
    pub id: TableId,
}

/// A part of a column family's keys with a tree of its own, made with the column family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The column family, which itself holds the keys before all regions.
    pub of: ColumnFamilyId,
    /// The first key: it reaches up to the next region's.
    pub begin: UserKey,
}

/// A place in a log up to which it is durable, with all logs before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurableLog {
    /// The log.
    pub log: LogNumber,
    /// Bytes from its start.
    pub bytes: u64,
}

/// One atomic change of one column family, with the counters that must be durable together with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionEdit {
    /// The column family that this edit changes.
    pub column_family: ColumnFamilyId,
    /// Set on the first edit of a column family: its name.
    pub create: Option<String>,
    /// Set together with `create` if this is a region of another column family, not one that
    /// clients know.
    pub region: Option<Region>,
    /// The column family is dropped.
    pub drop: bool,
    /// What its keys are compared by, if not as bytes. Set together with `create`.
    pub comparator: Option<Comparator>,
    /// The compaction style's name, recorded when the column family is made or converted.
    pub style: Option<String>,
    /// Tables that leave; applied before `added`.
    pub removed: Vec<RemovedTable>,
    /// Tables that join.
    pub added: Vec<AddedTable>,
    /// Deletions of ranges that join.
    pub range_tombstones: Vec<RangeTombstone>,
    /// Deletions of ranges of which nothing is left to delete, or of which newer ones delete all;
    /// one that is not there any more is no contradiction.
    pub retired_ranges: Vec<SeqNo>,
    /// Round-robin cursors: (level, largest user key compacted last).
    pub compact_pointers: Vec<(u8, UserKey)>,
    /// Logs below this number hold nothing of this column family that is not in tables.
    pub log_number: Option<LogNumber>,
    /// Entries of this column family up to here are in tables: a log that has them still must not
    /// bring them back, when newer ones that were never in it are gone with their deletion.
    pub flushed_seqno: Option<SeqNo>,
    /// The logs were durable up to here before this edit was written: what it stores of this column
    /// family stands beside what they hold of the others.
    pub durable_log: Option<DurableLog>,
    /// No sequence number above this one has been given out when the edit was written.
    pub last_seqno: Option<SeqNo>,
    /// File ids from here on are unused. Log numbers and file ids share one counter.
    pub next_file: Option<FileId>,
    /// Table ids from here on are unused.
    pub next_table: Option<TableId>,
    /// Epochs from here on are unused.
    pub next_epoch: Option<Epoch>,
    /// Column family ids from here on are unused.
    pub next_column_family: Option<ColumnFamilyId>,
    /// Files whose bytes are shared with a checkpoint: never punched (format rule F7).
    pub shared_files: Vec<FileId>,
}

impl VersionEdit {
    /// True if tables change their places and nothing else: what is stored is the same without it,
    /// in the same files, so it need not be durable before the next edit is.
    pub fn only_moves(&self) -> bool {
        let left: BTreeSet<TableId> = self.removed.iter().map(|removed| removed.id).collect();
        let joined: BTreeSet<TableId> = self.added.iter().map(|added| added.table.id).collect();
        let says_more = self.create.is_some()
            || self.drop
            || self.style.is_some()
            || self.log_number.is_some()
            || self.flushed_seqno.is_some()
            || !self.range_tombstones.is_empty()
            || !self.shared_files.is_empty();
        !left.is_empty() && left == joined && !says_more
    }

    /// Makes `comparator` what its keys are compared by: whoever reads an edit from a file knows
    /// the name alone.
    pub fn compare_by(&mut self, comparator: &Comparator) {
        let change = |key: &mut UserKey| *key = comparator.key(key.bytes());
        self.removed.iter_mut().for_each(|removed| change(&mut removed.smallest));
        for added in &mut self.added {
            let table = Arc::make_mut(&mut added.table);
            change(&mut table.smallest);
            change(&mut table.largest);
        }
        for range in &mut self.range_tombstones {
            change(&mut range.begin);
            change(&mut range.end);
        }
        self.compact_pointers.iter_mut().for_each(|(_, key)| change(key));
    }
}
