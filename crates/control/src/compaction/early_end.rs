//! Where a compaction may end before its time, and what becomes of its inputs then.

use std::sync::Arc;

use super::{CompactionPlan, CompactionReason};
use crate::types::UserKey;
use crate::version::{TableMeta, VersionEdit};

/// Finds the keys before which a compaction may end early: where no table of the output level is
/// read in part, so that what stays of that level and what was written for it do not overlap; not
/// before a table of a level above is read wholly, or all would have to be done again; and not
/// within a table above that has merge operands, since of what is before that place a copy stays,
/// and an operand that is there twice counts twice.
#[derive(Clone, Debug)]
pub struct EarlyEnd {
    /// The least of the largest keys above.
    above: Option<UserKey>,
    /// Those above that have merge operands.
    merging: Vec<Arc<TableMeta>>,
    /// The inputs in the output level, ascending.
    below: Vec<Arc<TableMeta>>,
    /// The first of them that reaches to the last key asked for.
    at: usize,
}

impl EarlyEnd {
    /// Whether the compaction may end before `user_key`, if that is the first user key that it has
    /// not written. Keys must not descend from call to call.
    pub fn may_end_before(&mut self, user_key: &[u8]) -> bool {
        while self.below.get(self.at).is_some_and(|table| table.largest < *user_key) {
            self.at += 1;
        }
        self.above.as_ref().is_some_and(|largest| *largest < *user_key)
            && self.below.get(self.at).is_none_or(|table| table.smallest >= *user_key)
            && !self
                .merging
                .iter()
                .any(|table| table.smallest < *user_key && table.largest >= *user_key)
    }
}

impl CompactionPlan {
    /// Where the job may end early; `None`: nowhere. Out of a level with several runs it may not:
    /// of two of them the older must not stay while the newer goes below it.
    #[must_use]
    pub fn early_end(&self) -> Option<EarlyEnd> {
        let below = self.rewrite.iter().filter(|input| input.level == self.output_level);
        let above = self.rewrite.iter().filter(|input| input.level != self.output_level);
        let above = above.flat_map(|input| &input.tables);
        let merging = above.clone().filter(|table| table.merges > 0).cloned().collect();
        let above = above.map(|table| &table.largest).min();
        let mut levels: Vec<_> = self.rewrite.iter().map(|input| input.level).collect();
        levels.sort_unstable();
        let one_run_each = levels.windows(2).all(|pair| pair[0] < pair[1]);
        // A client who chose the files waits for all of them.
        let chosen = self.reason == CompactionReason::ManualFiles;
        (self.start_level() > 0 && one_run_each && !chosen).then(|| EarlyEnd {
            above: above.cloned(),
            merging,
            below: below.flat_map(|input| input.tables.iter().cloned()).collect(),
            at: 0,
        })
    }

    /// As [`CompactionPlan::edit`], of a job that ended before `next`, where it might. Of the
    /// inputs goes what lies wholly before it; a table of a level above that reaches beyond stays,
    /// and with it a second copy of what it holds before: it says the same as what is now below it.
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
