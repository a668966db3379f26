//! Where output tables end. The job asks before each new user key; versions of one user key are
//! never parted, because the tables of a run share no key.

use std::ops::Range;
use std::sync::Arc;

use super::plan::{CompactionPlan, OutputSplit};
use crate::version::{Run, TableMeta};

/// Decides for ascending user keys whether the current output table ends before one.
#[derive(Clone, Debug)]
pub struct OutputCutter {
    split: OutputSplit,
    grandparents: Run,
    ranks: Range<usize>,
    /// The first grandparent that does not end below the last key seen.
    current: Option<Arc<TableMeta>>,
    /// Whether the last key seen was inside `current`.
    inside: bool,
    started: bool,
    /// Bytes of the grandparents that the current output touches.
    overlap_bytes: u64,
    /// Grandparent boundaries crossed since the current output began.
    crossed: u64,
}

impl OutputCutter {
    pub(super) fn new(plan: &CompactionPlan) -> OutputCutter {
        let below =
            plan.below.iter().find(|b| b.level > plan.output_level && plan.output_level > 0);
        OutputCutter {
            split: plan.split.clone(),
            grandparents: below.map(|b| b.run.clone()).unwrap_or_default(),
            ranks: below.map(|b| b.overlap.clone()).unwrap_or_default(),
            current: None,
            inside: false,
            started: false,
            overlap_bytes: 0,
            crossed: 0,
        }
    }

    /// Whether the current output table, of `table_bytes` so far, ends before `user_key`. Ask once
    /// for each new user key, also for the first of a table (the answer for an empty one is no).
    pub fn cut_before(&mut self, _user_key: &[u8], table_bytes: u64) -> bool {
        match self.split {
            OutputSplit::BySize { target_bytes, .. } => table_bytes >= target_bytes,
            _ => false,
        }
    }
}
