//! Tables to which reads were charged (LevelDB's seek compaction): reads looked into them in vain
//! so often that compacting them costs less than to go on.
//!
//! 1. The driver counts the charges of each table, and reports a table with
//!    [`CfOptions::charges_max`](crate::CfOptions::charges_max) of them.
//! 2. [`ChargedTables::add`] finds it in the version.
//! 3. [`ChargedTables::pick`] asks the policy for a compaction of it, when no level is due.

use std::collections::VecDeque;

use crate::geometry::Span;
use crate::plan::CompactionPlan;
use crate::policy::PickContext;
use crate::types::{TableId, UserKey};
use crate::version::Version;

/// The most tables that wait. LevelDB remembers one. A table that finds no place is reported again
/// by one of its next reads.
const TABLES_MAX: usize = 8;

/// Tables that reads were charged to, oldest report first: level, smallest key and id of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChargedTables(VecDeque<(u8, UserKey, TableId)>);

impl ChargedTables {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a table of `version`. Returns true if it is new and there is a place for it.
    pub(crate) fn add(&mut self, version: &Version, id: TableId) -> bool {
        self.keep_those_of(version);
        if self.0.len() >= TABLES_MAX || self.0.iter().any(|charged| charged.2 == id) {
            return false;
        }
        let found = version.tables().find(|(.., table)| table.id == id);
        self.0.extend(found.map(|(level, _, table)| (level, table.smallest.clone(), id)));
        found.is_some()
    }

    /// Forgets tables that have left their level.
    fn keep_those_of(&mut self, version: &Version) {
        self.0.retain(|(level, smallest, id)| {
            version.level(*level).locate(smallest.bytes(), *id).is_some()
        });
    }

    /// Returns a plan for the first of them that is free. It and those before it are forgotten: a
    /// table that should still be compacted is reported again by one of its next reads.
    pub(crate) fn pick(&mut self, context: &PickContext<'_>) -> Option<CompactionPlan> {
        let policy = context.options.policy();
        let plan = |(level, smallest, id): (u8, UserKey, TableId)| {
            let (run, rank) = context.version.level(level).locate(smallest.bytes(), id)?;
            policy.pick_charged(context, Span { level, run, ranks: rank..rank + 1 })
        };
        std::iter::from_fn(|| self.0.pop_front()).find_map(plan)
    }
}
