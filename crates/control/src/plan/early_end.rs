//! Early ends: where a compaction may end early, and which of its inputs stay then.
//!
//! 1. [`CompactionPlan::early_end`] returns the rule, or `None` for plans that must run to the end.
//! 2. The job asks [`EarlyEnd::may_end_before`] at each user key once it was told to end.
//! 3. [`CompactionPlan::edit_before`] removes the inputs that lie wholly before that key.

use std::sync::Arc;

use super::{CompactionPlan, CompactionReason};
use crate::types::UserKey;
use crate::version::{TableMeta, VersionEdit};

/// Finds the keys before which a compaction may end early:
///
/// - No table of the output level is read in part. So the rest of that level and the outputs do not
///   overlap.
/// - At least one table of a level above is read wholly. Otherwise all work would have to be
///   repeated.
/// - The key is outside all tables above that have merge operands or values in value files. A copy
///   of the part before the key stays. An operand that exists twice counts twice, and a value that
///   two tables refer to would not be dead when one of them drops it.
#[derive(Clone, Debug)]
pub struct EarlyEnd {
    /// The smallest of the largest keys of the tables above.
    above: Option<UserKey>,
    /// The tables above that have merge operands or values in value files.
    whole: Vec<Arc<TableMeta>>,
    /// The inputs in the output level, ascending.
    below: Vec<Arc<TableMeta>>,
    /// The rank of the first of them that does not end before the last key that was asked for.
    at: usize,
}

impl EarlyEnd {
    /// Returns true if the compaction may end before `user_key`, the first user key that it has not
    /// written. Keys must not descend between calls.
    pub fn may_end_before(&mut self, user_key: &[u8]) -> bool {
        while self.below.get(self.at).is_some_and(|table| table.largest < *user_key) {
            self.at += 1;
        }
        self.above.as_ref().is_some_and(|largest| *largest < *user_key)
            && self.below.get(self.at).is_none_or(|table| table.smallest >= *user_key)
            && !self
                .whole
                .iter()
                .any(|table| table.smallest < *user_key && table.largest >= *user_key)
    }
}

impl CompactionPlan {
    /// Returns where the job may end early; `None` if nowhere. All inputs above the output level
    /// must be of one run. With two runs, an older table could stay above while a newer one went
    /// below it.
    #[must_use]
    pub fn early_end(&self) -> Option<EarlyEnd> {
        let below = self.rewrite.iter().filter(|input| input.level == self.output_level);
        let above = self.rewrite.iter().filter(|input| input.level != self.output_level);
        let one_run_each = above.clone().count() <= 1 && below.clone().count() <= 1;
        let above = above.flat_map(|input| &input.tables);
        let is_whole = |table: &&Arc<TableMeta>| table.merges > 0 || !table.values.is_empty();
        let whole = above.clone().filter(is_whole).cloned().collect();
        let above = above.map(|table| &table.largest).min();
        // The client that chose the files waits for all of them.
        let chosen = self.reason == CompactionReason::ManualFiles;
        (self.start_level() > 0 && one_run_each && !chosen).then(|| EarlyEnd {
            above: above.cloned(),
            whole,
            below: below.flat_map(|input| input.tables.iter().cloned()).collect(),
            at: 0,
        })
    }

    /// Returns the edit of a job that ended before `next`. It removes the inputs that lie wholly
    /// before that key. A table of a level above that reaches beyond it stays. Its part before
    /// `next` then exists twice, with the same content.
    #[must_use]
    pub fn edit_before(&self, next: &[u8]) -> VersionEdit {
        let mut edit = self.edit();
        let stays = |id| {
            let mut rewritten = self.rewrite.iter().flat_map(|input| &input.tables);
            rewritten.any(|table| table.id == id && table.largest >= *next)
        };
        edit.removed.retain(|removed| !stays(removed.id));
        edit.compact_pointers.clear();
        edit
    }
}
