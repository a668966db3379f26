//! Flushes: sealed memtables become tables of level 0.
//!
//! 1. [`Flusher::make_flush`] takes the oldest sealed memtables of a column family.
//! 2. [`group`] writes the tables of one column family after the other, through [`job`].
//! 3. Before a job begins, [`log_values`] may leave large values in the WAL, and [`hot_keys`] may
//!    leave keys in memory (TRIAD).

pub(crate) mod group;
mod hot_keys;
pub(crate) mod job;
mod log_values;

use std::sync::Arc;

use group::FlushGroup;
use job::FlushJob;
use sateen_control::compaction::Stripes;
use sateen_control::{ColumnFamilyId, FlushMember, IoClass, SeqNo};

use super::output::Outputs;
use crate::environment::Environment;
use crate::tree::Tree;
use crate::tree::families::ColumnFamilyData;
use crate::write::path::WritePath;

/// Makes the jobs of flushes.
pub(crate) struct Flusher {
    pub(crate) env: Arc<Environment>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) writes: Arc<WritePath>,
    pub(crate) outputs: Outputs,
}

impl Flusher {
    /// Makes a flush of at most `memtables` sealed memtables of a column family, oldest first,
    /// which were sealed at `through` or before. Returns `None` if there are none.
    pub(crate) fn make_flush(
        &self,
        id: ColumnFamilyId,
        memtables: usize,
        through: SeqNo,
        stripes: &Stripes,
    ) -> Option<FlushJob> {
        self.flush_of(self.tree.family_by_id(id)?, memtables, through, stripes)
    }

    fn flush_of(
        &self,
        family: Arc<ColumnFamilyData>,
        memtables: usize,
        through: SeqNo,
        stripes: &Stripes,
    ) -> Option<FlushJob> {
        let mut sealed = family.sealed();
        let old = sealed.iter().take_while(|sealed| sealed.last_seqno <= through).count();
        sealed.truncate(memtables.min(old));
        if sealed.is_empty() {
            return None;
        }
        let compression = family.options().compression_of(0);
        let context = self.outputs.context(&family, (0, 0), IoClass::Flush, compression);
        let job = FlushJob::new(family, sealed, stripes, self.writes.snapshot_list(), context);
        Some(job.checking_space())
    }

    /// Makes a flush of all sealed memtables of all column families. It looks at them here, because
    /// control may have heard of one family before another, and `members` lacks a family that was
    /// just created.
    pub(crate) fn make_flush_together(&self, members: &[FlushMember]) -> Option<FlushGroup> {
        let through = self.writes.pipeline.sealed_through();
        let families = self.tree.families.load_full();
        let jobs = families.values().filter_map(|family| {
            let at = members.binary_search_by_key(&family.id(), |member| member.cf).ok();
            let stripes = at.and_then(|at| members.get(at)).map(|member| member.stripes.clone());
            self.flush_of(family.clone(), usize::MAX, through, &stripes.unwrap_or_default())
        });
        let jobs: Vec<_> = jobs.collect();
        (!jobs.is_empty()).then(|| FlushGroup::new(jobs))
    }
}
