//! Applies an edit to a version, and checks whole versions. An edit that contradicts its version is
//! an error that names both. No edit is applied in part.
//!
//! 1. [`Version::apply_where`] clones the version, removes tables, then adds tables run by run.
//! 2. It asks its caller whether a level may have a run, because that depends on the compaction
//!    policy.
//! 3. [`Version::validate_where`] checks everything that `apply_where` ensures.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::{Level, Run, TableMeta, ValueFiles, Version, VersionEdit};
use crate::types::{ColumnFamilyId, Epoch, TableId};

/// The reason for which an edit cannot be applied, or a version is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The edit is for another column family.
    ColumnFamily {
        /// The column family of the version.
        version: ColumnFamilyId,
        /// The column family of the edit.
        edit: ColumnFamilyId,
    },
    /// The version has no such level.
    Level {
        /// The level named by the edit.
        level: u8,
        /// Number of levels.
        levels: usize,
    },
    /// The level may not have a run of this epoch. Level 0 has none of epoch 0; for other levels it
    /// depends on the compaction policy.
    Epoch {
        /// The level.
        level: u8,
        /// The epoch that is not allowed.
        epoch: Epoch,
    },
    /// A table to be removed does not exist.
    Missing {
        /// The level in which it should be.
        level: u8,
        /// The run in which it should be.
        epoch: Epoch,
        /// The table.
        table: TableId,
    },
    /// A table and its column family have different comparators.
    Comparator {
        /// The table.
        table: TableId,
    },
    /// A table's smallest key is above its largest.
    Bounds {
        /// The table.
        table: TableId,
    },
    /// Two tables of one run share a key.
    Overlap {
        /// The level.
        level: u8,
        /// The run.
        epoch: Epoch,
        /// The table that is already there.
        table: TableId,
        /// The table that is added, or comes after it.
        other: TableId,
    },
    /// A table is in the version twice.
    Duplicate {
        /// The table.
        table: TableId,
    },
    /// The runs of level 0 are not in descending order of epoch, or a run is empty.
    Runs {
        /// The level.
        level: u8,
    },
    /// A sum that is kept for a level is not the sum of its tables.
    Sums {
        /// The level.
        level: u8,
    },
    /// What is kept of the value files is not the sum over the tables.
    ValueFiles,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::ColumnFamily { version, edit } => {
                write!(f, "an edit of column family {edit} applied to a version of {version}")
            }
            EditError::Level { level, levels } => {
                write!(f, "level {level} named, but there are only {levels} levels")
            }
            EditError::Epoch { level, epoch } => {
                write!(f, "level {level} cannot have a run of epoch {epoch}")
            }
            EditError::Missing { level, epoch, table } => {
                write!(f, "table {table} is not in level {level}, run {epoch}")
            }
            EditError::Comparator { table } => {
                write!(f, "table {table}: its comparator is not that of the column family")
            }
            EditError::Bounds { table } => {
                write!(f, "table {table}: smallest key above largest key")
            }
            EditError::Overlap { level, epoch, table, other } => {
                write!(f, "tables {table} and {other} overlap in level {level}, run {epoch}")
            }
            EditError::Duplicate { table } => write!(f, "table {table} is there twice"),
            EditError::Runs { level } => {
                write!(f, "level {level}: empty runs, or runs out of order")
            }
            EditError::Sums { level } => write!(f, "level {level}: sums do not match the tables"),
            EditError::ValueFiles => write!(f, "sums of value files do not match the tables"),
        }
    }
}

impl std::error::Error for EditError {}

impl Version {
    /// Returns the version after `edit`. `admits` tells whether a version with this style may have
    /// a run of this epoch in this level.
    pub(crate) fn apply_where(
        &self,
        edit: &VersionEdit,
        admits: impl Fn(Option<&str>, u8, Epoch) -> bool,
    ) -> Result<Version, EditError> {
        if edit.column_family != self.column_family {
            return Err(EditError::ColumnFamily {
                version: self.column_family,
                edit: edit.column_family,
            });
        }
        let mut next = self.clone();
        next.number += 1;
        if let Some(style) = &edit.style {
            next.style = Some(style.clone());
        }
        if let Some(comparator) = &edit.comparator {
            next.comparator = comparator.clone();
        }
        next.value_times = edit.value_times.or(next.value_times);
        next.remove_tables(edit)?;
        next.add_tables(edit, admits)?;
        for (level, key) in &edit.compact_pointers {
            next.check_level(*level)?;
            next.compact_pointers[usize::from(*level)] = Some(key.clone());
        }
        if !edit.range_tombstones.is_empty() || !edit.retired_ranges.is_empty() {
            let changed =
                self.range_tombstones.changed(&edit.range_tombstones, &edit.retired_ranges);
            next.range_tombstones = Arc::new(changed);
        }
        if let Some(log) = edit.log_number {
            next.log_number = next.log_number.max(log);
        }
        if !edit.shared_files.is_empty() {
            Arc::make_mut(&mut next.shared_files).extend(&edit.shared_files);
        }
        Ok(next)
    }

    /// Returns true if `level` may have a run of `epoch`.
    fn may_have(
        &self,
        level: u8,
        epoch: Epoch,
        admits: impl Fn(Option<&str>, u8, Epoch) -> bool,
    ) -> bool {
        (level > 0 || epoch != Epoch(0)) && admits(self.style.as_deref(), level, epoch)
    }

    fn check_level(&self, level: u8) -> Result<(), EditError> {
        if usize::from(level) < self.levels.len() {
            Ok(())
        } else {
            Err(EditError::Level { level, levels: self.levels.len() })
        }
    }

    fn remove_tables(&mut self, edit: &VersionEdit) -> Result<(), EditError> {
        for removed in &edit.removed {
            self.check_level(removed.level)?;
            let level = Arc::make_mut(&mut self.levels[usize::from(removed.level)]);
            let missing = EditError::Missing {
                level: removed.level,
                epoch: removed.epoch,
                table: removed.id,
            };
            let Ok(at) = level.position(removed.epoch) else { return Err(missing) };
            let Some(table) = level.runs[at].remove(removed.smallest.bytes(), removed.id) else {
                return Err(missing);
            };
            level.bytes -= table.size_bytes;
            level.tables -= 1;
            if !table.values.is_empty() {
                Arc::make_mut(&mut self.value_files).remove(&table);
            }
            if level.runs[at].is_empty() {
                level.runs.remove(at);
            }
        }
        Ok(())
    }

    fn add_tables(
        &mut self,
        edit: &VersionEdit,
        admits: impl Fn(Option<&str>, u8, Epoch) -> bool,
    ) -> Result<(), EditError> {
        let mut added = edit.added.as_slice();
        while let Some(first) = added.first() {
            let (number, epoch) = (first.level, first.epoch);
            let same = added.iter().take_while(|a| (a.level, a.epoch) == (number, epoch)).count();
            let (group, rest) = added.split_at(same);
            added = rest;
            self.check_level(number)?;
            if !self.may_have(number, epoch, &admits) {
                return Err(EditError::Epoch { level: number, epoch });
            }
            for a in group {
                if *a.table.smallest.comparator() != self.comparator {
                    return Err(EditError::Comparator { table: a.table.id });
                }
                if a.table.smallest > a.table.largest {
                    return Err(EditError::Bounds { table: a.table.id });
                }
                self.table_id_max = self.table_id_max.max(a.table.id);
                if !a.table.values.is_empty() {
                    Arc::make_mut(&mut self.value_files).add(&a.table);
                }
            }
            let level = Arc::make_mut(&mut self.levels[usize::from(number)]);
            level.tables += group.len();
            level.bytes += group.iter().map(|a| a.table.size_bytes).sum::<u64>();
            match level.position(epoch) {
                Ok(at) => {
                    for a in group {
                        add_one(&mut level.runs[at], number, &a.table)?;
                    }
                }
                Err(at) => {
                    let tables = group.iter().map(|a| a.table.clone()).collect();
                    level.runs.insert(at, new_run(number, epoch, tables)?);
                }
            }
        }
        Ok(())
    }

    /// Checks everything that must hold of a version. `admits` is that of [`Version::apply_where`].
    pub(crate) fn validate_where(
        &self,
        admits: impl Fn(Option<&str>, u8, Epoch) -> bool,
    ) -> Result<(), EditError> {
        let mut seen = BTreeSet::new();
        let mut value_files = ValueFiles::default();
        for (number, level) in (0u8..).zip(&self.levels) {
            validate_level(number, level)?;
            let mut epochs = level.runs.iter().map(Run::epoch);
            if let Some(epoch) = epochs.find(|epoch| !self.may_have(number, *epoch, &admits)) {
                return Err(EditError::Epoch { level: number, epoch });
            }
            for table in level.runs.iter().flat_map(Run::iter) {
                if !seen.insert(table.id) {
                    return Err(EditError::Duplicate { table: table.id });
                }
                value_files.add(table);
            }
        }
        if value_files != *self.value_files {
            return Err(EditError::ValueFiles);
        }
        Ok(())
    }
}

/// Adds one table to a run. Fails if it overlaps another one.
fn add_one(run: &mut Run, level: u8, table: &Arc<TableMeta>) -> Result<(), EditError> {
    let epoch = run.epoch();
    run.insert(table).map_err(|other| {
        if other.id == table.id {
            EditError::Duplicate { table: table.id }
        } else {
            EditError::Overlap { level, epoch, table: other.id, other: table.id }
        }
    })
}

/// Returns a run of `tables`. To build it at once is much cheaper than to add one table after the
/// other, and recovery builds whole levels.
fn new_run(level: u8, epoch: Epoch, tables: Vec<Arc<TableMeta>>) -> Result<Run, EditError> {
    if let Some(run) = Run::from_tables(epoch, tables.clone()) {
        return Ok(run);
    }
    // Two tables overlap. Adding them one by one shows which.
    let mut run = Run::new(epoch);
    for table in &tables {
        add_one(&mut run, level, table)?;
    }
    Ok(run)
}

/// Checks the order of a level's runs and tables, and its sums.
fn validate_level(number: u8, level: &Level) -> Result<(), EditError> {
    let descending = level.runs.windows(2).all(|pair| pair[0].epoch() > pair[1].epoch());
    if !descending || level.runs.iter().any(Run::is_empty) {
        return Err(EditError::Runs { level: number });
    }
    let (mut bytes, mut tables) = (0, 0);
    for run in &level.runs {
        let mut previous: Option<&Arc<TableMeta>> = None;
        for table in run {
            if table.smallest > table.largest {
                return Err(EditError::Bounds { table: table.id });
            }
            if let Some(previous) = previous.filter(|p| p.largest >= table.smallest) {
                return Err(EditError::Overlap {
                    level: number,
                    epoch: run.epoch(),
                    table: previous.id,
                    other: table.id,
                });
            }
            previous = Some(table);
            bytes += table.size_bytes;
            tables += 1;
        }
    }
    if (bytes, tables) != (level.bytes, level.tables) {
        return Err(EditError::Sums { level: number });
    }
    Ok(())
}
