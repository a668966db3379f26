//! A client's request to compact files that it names into a level, by one compaction.
//!
//! 1. [`ChosenFiles::step`] finds the tables in the files, their key range and their uppermost
//!    level.
//! 2. It takes all tables in that range from that level down to the output level, because nothing
//!    older than an output may stay above it.
//! 3. The request is done when the plan is installed, or when the files are gone or have moved
//!    below the output level.

use std::collections::BTreeSet;

use super::step::ManualStep;
use crate::geometry::{Bounds, OutputSplit, closure, union};
use crate::plan::CompactionReason;
use crate::policy::PickContext;
use crate::types::{Epoch, FileId, RequestId};

/// The files, and the level for their tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenFiles {
    /// The files.
    pub files: BTreeSet<FileId>,
    /// The level of the outputs: below level 0, and not above the level of any table.
    pub output_level: u8,
    /// The size of the output tables in bytes; `None` for that of the level.
    pub table_bytes: Option<u64>,
    /// Whether the compaction was installed.
    pub(super) is_done: bool,
}

impl ChosenFiles {
    /// Returns a request to compact `files`.
    #[must_use]
    pub fn new(files: BTreeSet<FileId>, output_level: u8, table_bytes: Option<u64>) -> ChosenFiles {
        ChosenFiles { files, output_level, table_bytes, is_done: false }
    }

    /// Returns the next step of the request.
    pub(super) fn step(&self, request: RequestId, context: &PickContext<'_>) -> ManualStep {
        let version = context.version;
        let chosen = || {
            let tables = version.tables();
            tables.filter(|(_, _, table)| self.files.contains(&table.placement.file()))
        };
        let bounds = chosen().fold(None, |hull: Option<Bounds<'_>>, (_, _, table)| {
            Some(union((&table.smallest, &table.largest), hull))
        });
        let top = chosen().map(|(level, ..)| level).min();
        let (Some(bounds), Some(top), false) = (bounds, top, self.is_done) else {
            return ManualStep::Done;
        };
        // Another compaction has moved them below the level.
        if chosen().any(|(level, ..)| level > self.output_level) {
            return ManualStep::Done;
        }
        let runs = || {
            let levels = top..=self.output_level;
            levels.flat_map(|level| version.level(level).runs().iter().map(move |run| (level, run)))
        };
        let inputs = closure(runs, bounds);
        if !context.may_take(&inputs, self.output_level) {
            return ManualStep::Blocked;
        }
        let output = (self.output_level, Epoch(0));
        let plan = context.plan(CompactionReason::ManualFiles, &inputs, &[], output);
        plan.map_or(ManualStep::Done, |mut plan| {
            plan.request = Some(request);
            if let Some(target_bytes) = self.table_bytes {
                plan.split = OutputSplit::BySize {
                    target_bytes,
                    grandparent_overlap_bytes_max: u64::MAX,
                    at_grandparent_boundaries: false,
                    at_gaps: false,
                };
            }
            ManualStep::Plan(Box::new(plan))
        })
    }
}
