//! Compactions: tables are rewritten as a plan of control says.
//!
//! 1. [`Compactor::make_compaction`] makes the job of a plan, which pins its inputs.
//! 2. [`job`] merges the inputs through [`iter`] and writes the outputs, one step at a time.
//! 3. [`remote`] has another process do that, if the options have a compaction service.
//! 4. [`chosen`] serves clients that name the files to be compacted.

pub(crate) mod chosen;
pub(crate) mod iter;
pub(crate) mod job;
#[cfg(test)]
mod measure;
pub(crate) mod remote;

use std::sync::Arc;

use job::{CompactionContext, CompactionJob};
use remote::{Remote, ToSend};
use sateen_control::compaction::CompactionPlan;
use sateen_store::base::random::random_uid;
use sateen_store::table::TableIterOptions;

use super::output::Outputs;
use crate::environment::Environment;
use crate::operators::compaction_service::RemoteCompactionInfo;
use crate::options::control;
use crate::runtime::Place;
use crate::tree::Tree;
use crate::tree::families::ColumnFamilyData;
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
    /// Where a thread is called when another process has answered.
    pub(crate) place: Place,
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
        let read = TableIterOptions {
            observed: Some(self.tree.blocks.observed().clone()),
            ..TableIterOptions::compaction(plan.class, chunk_bytes.max(4096))
        };
        let snapshots = self.writes.snapshot_list();
        let newest_snapshot = self.writes.snapshots.newest();
        let tables: usize = version.levels().iter().map(|level| level.tables()).sum();
        let taken: usize = plan.inputs().map(|input| input.tables.len()).sum();
        let is_full = taken == tables;
        let ranges = version.range_tombstones().clone();
        let remote = options.compaction_service.clone().filter(|_| {
            // Another process cannot take part in what keeps values apart.
            plan.can_be_sent() && family.options().value_separation_bytes == 0
        });
        let remote = remote.map(|service| {
            let place = self.place.clone();
            let to_send = ToSend {
                db_uid: self.tree.versions.db_uid(),
                snapshots: snapshots.clone(),
                newest_snapshot,
                ranges: ranges.clone(),
                wake: Box::new(move || place.call()),
            };
            let info = self.remote_info(&family, &plan, is_full);
            Remote::new(service, info, self.tree.tables.clone(), read.clone(), to_send)
        });
        let context = CompactionContext {
            output: self.outputs.context(
                &family,
                (plan.output_level, plan.path),
                plan.class,
                compression,
            ),
            tables: self.tree.tables.clone(),
            read,
            snapshots,
            newest_snapshot,
            below: None,
            value_files: version.value_files().clone(),
            ranges,
            is_full,
        };
        Some(CompactionJob::new(family, plan, context).sent_by(remote))
    }

    /// Returns what a compaction service is told of `plan`.
    fn remote_info(
        &self,
        family: &ColumnFamilyData,
        plan: &CompactionPlan,
        is_full: bool,
    ) -> RemoteCompactionInfo {
        RemoteCompactionInfo {
            job: random_uid(),
            database: self.env.directory.clone(),
            uuid: self.tree.versions.identity().uuid(),
            column_family_id: family.whole().0,
            column_family: family.name().to_owned(),
            reason: plan.reason.name(),
            is_manual: plan.reason.is_manual(),
            is_full,
            is_bottommost: plan.is_bottommost,
            input_level: plan.start_level(),
            output_level: plan.output_level,
            input_bytes: plan.rewrite_bytes(),
        }
    }
}
