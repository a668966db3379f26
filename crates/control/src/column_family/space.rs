//! The space that a column family takes, whether it has a limit (`space_amplification_max`), and
//! what else its writers' rate depends on.

use super::ColumnFamily;
use crate::write_controller::Pressure;

impl ColumnFamily {
    /// Returns the state on which a smooth rate depends, without the progress of running jobs.
    pub(crate) fn pressure(&self) -> Pressure {
        Pressure {
            sealed: self.sealed,
            sealed_bytes: self.sealed_bytes,
            active_bytes: self.active_bytes,
            level0_runs: self.level0_runs,
            debt: self.pending_bytes,
            debt_tolerated: self.debt_tolerated(),
            excess: self.excess(),
            ..Pressure::default()
        }
    }

    /// Returns true if levels beyond their targets and dead tables have a limit. Without targets
    /// there is none.
    pub(crate) fn is_limited_in_space(&self) -> bool {
        self.options.space_amplification_max > 0.0 && self.targets.are_limited()
    }

    /// Returns the bytes of its tables, and of the values in value files to which they refer.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.version.bytes().saturating_add(self.value_bytes)
    }

    /// Returns the bytes of levels beyond their targets, and of the largest level within its
    /// target with the values in value files.
    pub(crate) fn excess(&self) -> (u64, u64) {
        let (beyond, largest) = self.targets.excess(&self.version);
        (beyond, largest.saturating_add(self.value_bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::column_family::Pick;
    use crate::plan::{CompactionReason, InFlight};
    use crate::policy::CfOptions;
    use crate::types::{ColumnFamilyId, Epoch, FileId, Instant, UserKey};
    use crate::version::{AddedTable, TableMeta, ValueRef, ValueRefs, Version, VersionEdit};

    /// A table of a megabyte in the last level, with these keys, that refers to `values` bytes of
    /// the 200 MiB in a value file.
    fn table(id: u64, (smallest, largest): (&str, &str), values: u64) -> AddedTable {
        let refers = ValueRef { file: FileId(100), bytes: values, file_bytes: 200 << 20 };
        let bounds = [smallest, largest].map(|key| UserKey::bytewise(key.as_bytes()));
        let values = ValueRefs { files: vec![refers], encoded: true };
        let table = TableMeta { values, ..TableMeta::of_one(id, bounds, 1 << 20) };
        AddedTable { level: 6, epoch: Epoch(0), table: Arc::new(table) }
    }

    fn family(options: CfOptions, added: Vec<AddedTable>) -> ColumnFamily {
        let empty = Version::new(ColumnFamilyId(0), 7);
        let full = empty.apply(&VersionEdit { added, ..VersionEdit::default() }).unwrap();
        let mut family = ColumnFamily::new(Arc::new(options), Arc::new(empty));
        assert_eq!((family.data_bytes(), family.excess().1), (0, 0));
        family.set_version(Arc::new(full));
        family
    }

    /// Dead values are compared with the values, not with the small tables that refer to them.
    #[test]
    fn values_in_value_files_are_data() {
        let family = family(CfOptions::default(), vec![table(1, ("a", "b"), 60 << 20)]);
        assert_eq!((family.data_bytes(), family.excess().1), (61 << 20, 61 << 20));
    }

    #[test]
    fn a_compaction_that_collects_garbage_is_bounded_by_what_it_copies() {
        let tables = |values| {
            let keys = [("a", "b"), ("c", "d"), ("e", "f")];
            (1..).zip(keys).map(|(id, keys)| table(id, keys, values)).collect::<Vec<_>>()
        };
        let options = || {
            let mut options = CfOptions::default();
            options.values.garbage_collection = true;
            options.values.garbage_age_cutoff = 1.0;
            options.values.garbage_force_threshold = 0.1;
            options
        };
        let taken = |values| {
            let mut family = family(options(), tables(values));
            match family.pick(Instant(0), &InFlight::default(), false, false, u64::MAX) {
                Pick::Plan { plan, .. } => {
                    assert_eq!(plan.reason, CompactionReason::ValueGarbage);
                    plan.rewrite.iter().map(|input| input.tables.len()).sum()
                }
                Pick::Nothing | Pick::ManualDone(_) => 0,
            }
        };
        assert_eq!((taken(1 << 20), taken(14 << 20), taken(50 << 20)), (3, 2, 1));
    }
}
