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
    use crate::policy::CfOptions;
    use crate::types::{ColumnFamilyId, Epoch, FileId, SeqNo, TableId, UserKey};
    use crate::version::{
        AddedTable, Placement, TableMeta, ValueRef, ValueRefs, Version, VersionEdit,
    };

    /// Dead values are compared with the values, not with the small tables that refer to them.
    #[test]
    fn values_in_value_files_are_data() {
        let refers = ValueRef { file: FileId(2), bytes: 60 << 20, file_bytes: 64 << 20 };
        let table = TableMeta {
            id: TableId(1),
            placement: Placement::WholeFile(FileId(1)),
            size_bytes: 1 << 20,
            smallest: UserKey::bytewise(b"a".as_slice()),
            largest: UserKey::bytewise(b"b".as_slice()),
            seqno_min: SeqNo(1),
            seqno_max: SeqNo(1),
            entries: 1,
            tombstones: 0,
            merges: 0,
            ranges_applied: SeqNo(0),
            global_seqno: SeqNo(0),
            raw_bytes: 1 << 20,
            tail_bytes: 0,
            sketch: None,
            values: ValueRefs { files: vec![refers], encoded: true },
        };
        let added = AddedTable { level: 6, epoch: Epoch(0), table: Arc::new(table) };
        let edit = VersionEdit { added: vec![added], ..VersionEdit::default() };
        let empty = Version::new(ColumnFamilyId(0), 7);
        let full = empty.apply(&edit).unwrap();
        let mut family = ColumnFamily::new(Arc::new(CfOptions::default()), Arc::new(empty));
        assert_eq!((family.data_bytes(), family.excess().1), (0, 0));
        family.set_version(Arc::new(full));
        assert_eq!((family.data_bytes(), family.excess().1), (61 << 20, 61 << 20));
    }
}
