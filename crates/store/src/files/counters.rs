//! The numbers of files, WALs, tables, runs and column families.
//!
//! What must stay true: no number is given out twice (format rule F2). Every edit of the manifest
//! contains the next numbers ([`Counters::stamp`]), and recovery takes them from there
//! ([`Counters::absorb`]).

use std::ops::Range;

use sateen_control::version::VersionEdit;
use sateen_control::{ColumnFamilyId, Epoch, FileId, LogNumber, TableId};

use crate::base::sync::atomic::{AtomicU64, Ordering};

/// The next number of each kind.
#[derive(Debug)]
pub struct Counters {
    next_file: AtomicU64,
    next_table: AtomicU64,
    next_epoch: AtomicU64,
    next_family: AtomicU64,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            next_file: AtomicU64::new(1),
            next_table: AtomicU64::new(1),
            next_epoch: AtomicU64::new(1),
            next_family: AtomicU64::new(1),
        }
    }
}

impl Counters {
    /// Returns a new file number.
    pub fn file(&self) -> FileId {
        FileId(self.next_file.fetch_add(1, Ordering::Relaxed))
    }
    /// Returns a new WAL number. WALs and files share their numbers.
    pub fn log(&self) -> LogNumber {
        LogNumber(self.file().0)
    }
    /// Returns a new table id.
    pub fn table(&self) -> TableId {
        TableId(self.next_table.fetch_add(1, Ordering::Relaxed))
    }
    /// Returns `files` new file numbers and `tables` new table ids.
    pub fn reserve(&self, files: u64, tables: u64) -> (Range<u64>, Range<u64>) {
        let of = |counter: &AtomicU64, count: u64| {
            let first = counter.fetch_add(count, Ordering::Relaxed);
            first..first + count
        };
        (of(&self.next_file, files), of(&self.next_table, tables))
    }
    /// Returns counters that begin with these file numbers and table ids.
    pub fn starting_at(file: u64, table: u64) -> Counters {
        let [next_file, next_table] = [file, table].map(AtomicU64::new);
        Counters { next_file, next_table, ..Counters::default() }
    }
    /// Returns a new epoch, for a run in L0.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.next_epoch.fetch_add(1, Ordering::Relaxed))
    }
    /// Returns a new column family id.
    pub fn family(&self) -> ColumnFamilyId {
        let id = self.next_family.fetch_add(1, Ordering::Relaxed);
        ColumnFamilyId(u32::try_from(id).unwrap_or(u32::MAX))
    }
    /// Marks file numbers up to and including `seen` as used.
    pub fn file_seen(&self, seen: u64) {
        self.next_file.fetch_max(seen + 1, Ordering::Relaxed);
    }
    /// Raises the counters to the next numbers in `edit`.
    pub fn absorb(&self, edit: &VersionEdit) {
        let raise = |counter: &AtomicU64, to: Option<u64>| {
            counter.fetch_max(to.unwrap_or(0), Ordering::Relaxed);
        };
        raise(&self.next_file, edit.next_file.map(|id| id.0));
        raise(&self.next_table, edit.next_table.map(|id| id.0));
        raise(&self.next_epoch, edit.next_epoch.map(|epoch| epoch.0));
        raise(&self.next_family, edit.next_column_family.map(|id| u64::from(id.0)));
    }
    /// Writes the next numbers into `edit`.
    pub fn stamp(&self, edit: &mut VersionEdit) {
        edit.next_file = Some(FileId(self.next_file.load(Ordering::Relaxed)));
        edit.next_table = Some(TableId(self.next_table.load(Ordering::Relaxed)));
        edit.next_epoch = Some(Epoch(self.next_epoch.load(Ordering::Relaxed)));
        let family = u32::try_from(self.next_family.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        edit.next_column_family = Some(ColumnFamilyId(family));
    }
}
