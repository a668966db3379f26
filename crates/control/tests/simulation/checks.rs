//! What must be true of every plan, and of what is read.

use std::collections::BTreeMap;

use sateen_control::options::TunerBatch;
use sateen_control::{CfOptions, ColumnFamilyId, CompactionPlan, Version};

use super::{KEYS, Work, World, key, number};

impl World {
    /// A new plan takes what is there and nothing that another has.
    pub(super) fn check_plan(&self, plan: &CompactionPlan) {
        let version = &self.families[&plan.cf].version;
        for input in plan.inputs() {
            assert!(!input.tables.is_empty());
            let run = version.level(input.level).run(input.epoch).expect("a run of the version");
            for table in &input.tables {
                assert!(run.locate(table.smallest.bytes(), table.id).is_some(), "{plan}");
            }
        }
        let ranges = plan.ranges();
        let others = self.jobs.values().filter_map(|job| match &job.work {
            Work::Compaction(other) if other.cf == plan.cf => Some(other),
            _ => None,
        });
        for other in others {
            let apart = other.ranges().iter().all(|(other_lo, other_hi)| {
                ranges.iter().all(|(lo, hi)| other_hi < lo || hi < other_lo)
            });
            assert!(
                apart || other.output_level != plan.output_level || plan.output_level == 0,
                "{plan} and {other} write the same range"
            );
            for table in other.inputs().flat_map(|input| &input.tables) {
                let taken = plan.inputs().flat_map(|input| &input.tables).any(|t| t.id == table.id);
                assert!(!taken, "{plan} and {other} share {}", table.id);
            }
        }
        self.check_order(plan, version);
    }

    /// The sizes of a batch move together, within their bounds; nothing else of the options moves.
    pub(super) fn check_batch(&self, cf: ColumnFamilyId) {
        let configured = &self.families[&cf].options;
        let found = self.plane.family_options(cf).expect("a family");
        let (size, least) = (found.memtable_bytes, configured.memtable_bytes);
        assert!((least..=8 * least).contains(&size), "{size}");
        let alone = CfOptions { memtable_bytes: size, ..configured.clone() };
        // A memtable of before the tuner's options changed may still be active.
        if *found == alone {
            return;
        }
        assert_eq!(self.plane.options().tuner.batch, TunerBatch::Paper);
        let grown = |bytes| (u128::from(bytes) * u128::from(size) / u128::from(least)) as u64;
        let (table_bytes, level_base_bytes) =
            (grown(alone.table_bytes), grown(alone.level_base_bytes));
        assert_eq!(*found, CfOptions { table_bytes, level_base_bytes, ..alone });
    }

    /// No key is carried past an older value of it that stays behind, nor held back from a newer.
    fn check_order(&self, plan: &CompactionPlan, version: &Version) {
        let moved: Vec<_> = plan.inputs().flat_map(|input| &input.tables).map(|t| t.id).collect();
        for input in plan.inputs() {
            for table in &input.tables {
                for (level, epoch, other) in version.tables() {
                    let older = level > input.level || level == input.level && epoch < input.epoch;
                    let (to, to_epoch) = (plan.output_level, plan.output_epoch);
                    let passed = level < to || level == to && epoch >= to_epoch;
                    let newer = level == input.level && epoch > input.epoch;
                    let overtaken = newer && level == to && epoch < to_epoch;
                    let overlaps =
                        other.smallest <= table.largest && table.smallest <= other.largest;
                    assert!(
                        !(older && passed || overtaken) || !overlaps || moved.contains(&other.id),
                        "{plan} passes {} in level {level}",
                        other.id
                    );
                }
            }
        }
    }

    pub(super) fn check_reads(&self) {
        for (cf, family) in &self.families {
            let mut found = BTreeMap::new();
            for n in 0..2 * KEYS + 200 {
                let key = key(n);
                let runs = family.version.levels().iter().flat_map(|level| level.runs());
                let mut tables = runs.filter_map(|run| run.find(key.bytes()));
                let entry = tables.find_map(|t| self.tables[&t.id].get(&n));
                if let Some((seqno, true)) = entry {
                    found.insert(n, *seqno);
                }
            }
            assert_eq!(found, family.truth, "in {cf}:\n{}", family.version);
            for (_, _, table) in family.version.tables() {
                let entries = &self.tables[&table.id];
                assert_eq!(number(table.smallest.bytes()), *entries.keys().next().unwrap());
            }
        }
    }
}
