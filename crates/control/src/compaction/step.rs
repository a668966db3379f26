//! The next step of a manual compaction.

use crate::plan::CompactionPlan;

/// The next step of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum ManualStep {
    /// Carry out this plan. Report its end with
    /// [`ManualCompaction::done`](super::ManualCompaction::done), and ask again.
    Plan(Box<CompactionPlan>),
    /// Wait until a running compaction ends.
    Blocked,
    /// Nothing, because the range is compacted.
    Done,
}
