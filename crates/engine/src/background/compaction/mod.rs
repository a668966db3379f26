//! Compactions: tables are rewritten as a plan of control says.
//!
//! 1. [`Compactor::make_compaction`] pins the version that has the plan's inputs.
//! 2. [`job`] merges the inputs through [`iter`] and writes the outputs, one step at a time.
//! 3. [`chosen`] serves clients that name the files to be compacted.

pub(crate) mod chosen;
pub(crate) mod iter;
pub(crate) mod job;
#[cfg(test)]
mod measure;

use std::sync::Arc;

use job::{CompactionContext, CompactionJob};
use sateen_control::compaction::CompactionPlan;
use sateen_store::table::TableIterOptions;

use super::output::Outputs;
use crate::environment::Environment;
use crate::options::control;
use crate::tree::Tree;
use crate::write::path::WritePath;

/// All compactions together read ahead at most this part of a memory budget, but at least
/// `READ_BYTES_MIN` for each input run.
const READING_PART: u64 = 8;
const READ_BYTES_MIN: u64 = 16 << 10;

/// Makes the jobs of compactions.
pub(crate) struct Compactor {
    pub(crate) env: Arc<Environment>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) writes: Arc<WritePath>,
    pub(crate) outputs: Outputs,
}

impl Compactor {
    /// Makes the job of `plan`; `None` if its column family was dropped. `slots` is the number of
    /// compactions that may run at a time.
    pub(crate) fn make_compaction(
        &self,
        plan: Arc<CompactionPlan>,
        slots: usize,
    ) -> Option<CompactionJob> {
        let family = self.tree.family_by_id(plan.cf)?;
        let version = self.tree.versions.version(plan.cf)?;
        let options = self.env.options.load();
        let compression = control::compression_from_code(plan.compression);
        let chunk_bytes = match options.memory_budget {
            Some(budget) => {
                let inputs = plan.rewrite.len().max(1) as u64;
                let share = budget / READING_PART / slots.max(1) as u64 / inputs;
                options.compaction_readahead_bytes.min(share.max(READ_BYTES_MIN))
            }
            None => options.compaction_readahead_bytes,
        };
        let chunk_bytes = usize::try_from(chunk_bytes).unwrap_or(1 << 20);
        let read = TableIterOptions::compaction(plan.class, chunk_bytes.max(4096));
        let context = CompactionContext {
            output: self.outputs.context(
                &family,
                (plan.output_level, plan.path),
                plan.class,
                compression,
            ),
            tables: self.tree.tables.clone(),
            read,
            snapshots: self.writes.snapshot_list(),
            newest_snapshot: self.writes.snapshots.newest(),
            version,
        };
        Some(CompactionJob::new(family, plan, context))
    }
}
