//! Tables that are dropped unread, because range tombstones hide all of them, or because a client
//! drops a range.
//!
//! 1. [`CoveredTables::of`] finds the tables of a version that range tombstones hide from all
//!    readers. [`CoveredTables::within`] finds those in a client's range.
//! 2. [`CoveredTables::pick`] makes a plan for those of one run that no other job has claimed. It
//!    forgets the others, because the job that has claimed them drops their entries.

use crate::geometry::Span;
use crate::plan::{CompactionPlan, CompactionReason};
use crate::policy::PickContext;
use crate::types::{Epoch, SeqNo, TableId, UserKey};
use crate::version::{Run, Version};

/// The largest number of tables that one plan drops, because its edit is one record of the
/// manifest.
const PLAN_TABLES_MAX: usize = 1000;

/// Tables to drop: level, run, smallest key and id of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoveredTables(Vec<(u8, Epoch, UserKey, TableId)>);

impl CoveredTables {
    /// Returns the tables of `version` that are hidden by range tombstones up to `seen`, which all
    /// readers see.
    pub(crate) fn of(version: &Version, seen: SeqNo) -> CoveredTables {
        let ranges = version.range_tombstones();
        let mut covered = Vec::new();
        let runs = (0u8..).zip(version.levels());
        for (level, run) in runs.flat_map(|(n, level)| level.runs().iter().map(move |r| (n, r))) {
            let mut next = 0;
            for fragment in ranges.fragments() {
                let mut ranks = run.overlap(fragment.begin.bytes(), fragment.end.bytes());
                ranks.start = ranks.start.max(next);
                next = next.max(ranks.end);
                for table in run.range(ranks.start..ranks.end.max(ranks.start)) {
                    if ranges.hide_table(table, seen) {
                        covered.push((level, run.epoch(), table.smallest.clone(), table.id));
                    }
                }
            }
        }
        CoveredTables(covered)
    }

    /// Returns the tables below level 0 whose keys all lie from `begin` to `end`, both inclusive.
    pub(crate) fn within(
        version: &Version,
        begin: Option<&UserKey>,
        end: Option<&UserKey>,
    ) -> CoveredTables {
        let tables = version.tables().filter(|(level, _, table)| {
            *level > 0
                && begin.is_none_or(|begin| *begin <= table.smallest)
                && end.is_none_or(|end| table.largest <= *end)
        });
        let named =
            tables.map(|(level, epoch, table)| (level, epoch, table.smallest.clone(), table.id));
        CoveredTables(named.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a plan for the next of them that no other job has claimed, all of one run. Forgets
    /// those that are claimed.
    pub(crate) fn pick(&mut self, context: &PickContext<'_>) -> Option<CompactionPlan> {
        while let Some((level, epoch, ..)) = self.0.first() {
            let (level, epoch) = (*level, *epoch);
            let of_run = self.0.iter().take_while(|one| (one.0, one.1) == (level, epoch)).count();
            let tables: Vec<_> = self.0.drain(..of_run.min(PLAN_TABLES_MAX)).collect();
            let run = context.version.level(level).run(epoch);
            let plan = run.and_then(|run| Self::plan(context, level, run, &tables));
            if plan.is_some() {
                return plan;
            }
        }
        None
    }

    fn plan(
        context: &PickContext<'_>,
        level: u8,
        run: &Run,
        tables: &[(u8, Epoch, UserKey, TableId)],
    ) -> Option<CompactionPlan> {
        let mut spans: Vec<Span<'_>> = Vec::new();
        for (.., smallest, id) in tables {
            let Some((rank, _)) = run.locate(smallest.bytes(), *id) else { continue };
            let span = Span { level, run, ranks: rank..rank + 1 };
            if !context.may_take([&span], level) {
                continue;
            }
            match spans.last_mut().filter(|last| last.ranks.end == rank) {
                // The table joins its neighbour only if no other job writes into the gap between
                // them.
                Some(last) => {
                    let wider = Span { ranks: last.ranks.start..rank + 1, ..last.clone() };
                    if context.may_take([&wider], level) {
                        *last = wider;
                    } else {
                        spans.push(span);
                    }
                }
                None => spans.push(span),
            }
        }
        let mut plan =
            context.plan(CompactionReason::RangeDeleted, &[], &spans, (level, run.epoch()))?;
        std::mem::swap(&mut plan.settle, &mut plan.drop);
        let starts = spans.iter().skip(1).filter_map(Span::bounds);
        plan.breaks = starts.map(|bounds| bounds.0.clone()).collect();
        plan.score = 0.0;
        Some(plan)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::types::ColumnFamilyId;
    use crate::version::{AddedTable, RangeTombstone, TableMeta, VersionEdit};

    fn table(id: u64, smallest: &str, largest: &str, seqno_max: u64) -> AddedTable {
        let bounds = [smallest, largest].map(|key| UserKey::bytewise(key.as_bytes()));
        let table =
            Arc::new(TableMeta { seqno_max: SeqNo(seqno_max), ..TableMeta::of_one(id, bounds, 1) });
        AddedTable { level: 1, epoch: Epoch(0), table }
    }

    #[test]
    fn only_what_is_covered_for_all_readers_goes() {
        let range = |begin: &str, end: &str, seqno| RangeTombstone {
            begin: UserKey::bytewise(begin.as_bytes()),
            end: UserKey::bytewise(end.as_bytes()),
            seqno: SeqNo(seqno),
        };
        let edit = VersionEdit {
            added: vec![
                table(1, "a", "c", 3),
                table(2, "d", "f", 3),
                table(3, "g", "i", 9),
                table(4, "j", "m", 3),
            ],
            range_tombstones: vec![range("b", "k", 8), range("k", "z", 7)],
            ..VersionEdit::default()
        };
        let version = Version::new(ColumnFamilyId(0), 3).apply(&edit).unwrap();
        let covered = |seen| {
            let CoveredTables(tables) = CoveredTables::of(&version, SeqNo(seen));
            tables.iter().map(|table| table.3.0).collect::<Vec<_>>()
        };
        assert_eq!(covered(8), [2, 4], "4 by both together, 3 is newer");
        assert_eq!(covered(7), [0; 0]);
    }
}
