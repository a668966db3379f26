//! The change from one version to the next. It is all that a job leaves behind, and the unit of the
//! manifest. It is atomic (format rule F9).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{RangeTombstone, TableMeta};
use crate::types::{ColumnFamilyId, Comparator, Epoch, FileId, LogNumber, SeqNo, TableId, UserKey};

/// A table that is added to a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedTable {
    /// The level.
    pub level: u8,
    /// The run. A level with one sorted run uses `Epoch(0)`. In level 0 each flush has its own
    /// epoch.
    pub epoch: Epoch,
    /// The table. A move between levels keeps the same value.
    pub table: Arc<TableMeta>,
}

/// A table that is removed from a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedTable {
    /// The level.
    pub level: u8,
    /// The run.
    pub epoch: Epoch,
    /// Its smallest user key, by which it is found in O(log n).
    pub smallest: UserKey,
    /// The table.
    pub id: TableId,
}

/// A part of a column family by key range, with a tree of its own. It is created with the column
/// family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The column family, which itself has the keys before all regions.
    pub of: ColumnFamilyId,
    /// The first key. The region ends at the next region's first key.
    pub begin: UserKey,
}

/// A place in a WAL up to which it is durable, together with all older WALs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurableLog {
    /// The WAL.
    pub log: LogNumber,
    /// Bytes from its start.
    pub bytes: u64,
}

/// An atomic change of a column family, with the counters that must become durable together with
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionEdit {
    /// The column family.
    pub column_family: ColumnFamilyId,
    /// The name of a new column family. Set on its first edit.
    pub create: Option<String>,
    /// The key range, if the new column family is a region of another one. Set together with
    /// `create`.
    pub region: Option<Region>,
    /// Whether the column family is dropped.
    pub drop: bool,
    /// The comparator of a new column family, if it is not bytewise. Set together with `create`.
    pub comparator: Option<Comparator>,
    /// Whether values are stored with the times of their writes. Set when the column family is
    /// created, and when an empty one changes.
    pub value_times: Option<bool>,
    /// The compaction style's name, set when the column family is created or converted.
    pub style: Option<String>,
    /// Tables that are removed. Applied before `added`.
    pub removed: Vec<RemovedTable>,
    /// Tables that are added.
    pub added: Vec<AddedTable>,
    /// Range tombstones that are added.
    pub range_tombstones: Vec<RangeTombstone>,
    /// Range tombstones that are removed, because they have nothing left to delete or newer ones
    /// delete it. One that no longer exists is no error.
    pub retired_ranges: Vec<SeqNo>,
    /// Round-robin cursors: the level, and the largest user key that was compacted last.
    pub compact_pointers: Vec<(u8, UserKey)>,
    /// All entries of this column family in WALs below this number are in tables.
    pub log_number: Option<LogNumber>,
    /// Entries of this column family up to this number are in tables. A WAL that still has them
    /// must not bring them back: newer entries that hid them may be gone together with their
    /// tombstone.
    pub flushed_seqno: Option<SeqNo>,
    /// How far the WALs were durable before this edit was written. What the edit stores of this
    /// column family must be consistent with what they have of the others.
    pub durable_log: Option<DurableLog>,
    /// The last sequence number that was assigned when the edit was written.
    pub last_seqno: Option<SeqNo>,
    /// The first unused file id. WAL numbers and file ids share one counter.
    pub next_file: Option<FileId>,
    /// The first unused table id.
    pub next_table: Option<TableId>,
    /// The first unused epoch.
    pub next_epoch: Option<Epoch>,
    /// The first unused column family id.
    pub next_column_family: Option<ColumnFamilyId>,
    /// Files whose bytes a checkpoint shares. They are never punched (format rule F7).
    pub shared_files: Vec<FileId>,
}

impl VersionEdit {
    /// Returns true if tables are only moved. If such an edit is lost, the stored data are the
    /// same, in the same files. So it need not be durable before the next edit is.
    pub fn only_moves(&self) -> bool {
        let left: BTreeSet<TableId> = self.removed.iter().map(|removed| removed.id).collect();
        let joined: BTreeSet<TableId> = self.added.iter().map(|added| added.table.id).collect();
        let says_more = self.create.is_some()
            || self.drop
            || self.style.is_some()
            || self.value_times.is_some()
            || self.log_number.is_some()
            || self.flushed_seqno.is_some()
            || !self.range_tombstones.is_empty()
            || !self.shared_files.is_empty();
        !left.is_empty() && left == joined && !says_more
    }

    /// Sets the comparator of all keys in the edit. An edit that was read from a file has only the
    /// comparator's name.
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
