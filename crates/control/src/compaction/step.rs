//! What the control plane does next for a manual compaction.

use crate::plan::CompactionPlan;

/// What to do next for a request.
#[derive(Clone, Debug, PartialEq)]
pub enum ManualStep {
    /// This plan. Report it with [`ManualCompaction::done`](super::ManualCompaction::done) and ask
    /// again.
    Plan(Box<CompactionPlan>),
    /// Nothing until a running compaction ends.
    Blocked,
    /// Nothing: the range is compacted.
    Done,
}
