//! A flush of one column family, or of all together (`atomic_flush`).
//!
//! 1. [`CommitPipeline::seal`](crate::write::CommitPipeline) seals the memtables of all column
//!    families at one sequence number.
//! 2. Control asks for one flush of all ([`Background::make_flush_together`]). It takes the
//! memtables
//!    that were sealed at the newest such number or before.
//! 3. [`FlushGroup::step`] writes the tables of one column family after the other.
//! 4. One edit of the manifest installs them all (`install.rs`).
//!
//! What must stay true: a group stores every entry up to its sequence number that tables do not
//! have, in every column family, or it stores nothing. One group runs at a time, so that groups are
//! installed in the order of their sequence numbers.

use std::sync::Arc;

use sateen_control::compaction::Stripes;
use sateen_control::{ColumnFamilyId, FileId, FlushMember, IoClass, SeqNo};
use sateen_store::base::error::Result;

use super::flush_job::FlushJob;
use super::step::Edits;
use super::{Step, StepBytes};
use crate::background::Background;
use crate::metrics::FlushDone;
use crate::tree::families::ColumnFamilyData;

/// A flush under way: one job for each column family.
pub(crate) struct FlushGroup {
    members: Vec<FlushJob>,
    /// The edits of the members that are written: the first ones.
    edits: Edits,
}

impl FlushGroup {
    pub(super) fn new(members: Vec<FlushJob>) -> FlushGroup {
        FlushGroup { members, edits: Vec::new() }
    }

    /// Writes about `bytes`.
    pub(super) fn step(&mut self, bytes: u64, core: &Background) -> Result<Step<Edits>> {
        let counters = &core.tree.versions.counters;
        let (mut left, mut written) = (bytes, 0);
        while let Some(job) = self.members.get_mut(self.edits.len()) {
            if left == 0 {
                return Ok(Step::More(StepBytes::written(written)));
            }
            if !job.has_begun() {
                core.leave_values_in_log(job);
                core.keep_hot_keys(job);
            }
            match job.step(left, counters)? {
                Step::More(moved) => {
                    return Ok(Step::More(StepBytes::written(written + moved.written)));
                }
                Step::Done(moved, edit) => {
                    written += moved.written;
                    // A grant bounds the work, not only the writes.
                    left = left.saturating_sub(moved.written.max(job.input_bytes()));
                    self.edits.push(*edit);
                }
            }
        }
        let mut edits = std::mem::take(&mut self.edits);
        if edits.len() > 1 {
            // Level 0 is in the order of installation, and some were written a while ago.
            for edit in &mut edits {
                let epoch = counters.epoch();
                edit.added.iter_mut().for_each(|added| added.epoch = epoch);
            }
        }
        Ok(Step::Done(StepBytes::written(written), edits))
    }

    /// The flush of each column family.
    pub(super) fn members(&self) -> impl Iterator<Item = &FlushJob> {
        self.members.iter()
    }

    pub(super) fn families(&self) -> impl Iterator<Item = &Arc<ColumnFamilyData>> {
        self.members.iter().map(|job| &job.family)
    }

    /// The first of its column families.
    pub(super) fn first(&self) -> ColumnFamilyId {
        self.families().next().map_or(ColumnFamilyId(0), |family| family.id())
    }

    /// Bytes of the memtables' entries.
    pub(super) fn input_bytes(&self) -> u64 {
        self.members.iter().map(FlushJob::input_bytes).sum()
    }

    /// How many memtables each member stores.
    pub(super) fn memtables(&self) -> impl Iterator<Item = usize> {
        self.members.iter().map(FlushJob::memtables)
    }

    /// No entry that this flush stores is newer.
    pub(super) fn last_seqno(&self) -> SeqNo {
        self.members.iter().map(FlushJob::last_seqno).max().unwrap_or_default()
    }

    /// Whether some of what it does not store is only in a log.
    pub(super) fn needs_log(&self) -> bool {
        self.members.iter().any(FlushJob::needs_log)
    }

    /// Whether somebody waits until it is in tables.
    pub(super) fn must_store(&self) -> bool {
        self.members.iter().any(FlushJob::must_store)
    }

    /// What the members did, for the metrics.
    pub(super) fn done(&self) -> impl Iterator<Item = FlushDone> {
        self.members.iter().map(FlushJob::done)
    }

    /// The files that are being written, and those that are.
    pub(super) fn files(&self) -> Vec<FileId> {
        self.members.iter().flat_map(FlushJob::files).copied().collect()
    }

    pub(super) fn abandon(&mut self) {
        self.members.iter_mut().for_each(FlushJob::abandon);
    }
}

impl Background {
    /// A flush of the oldest `memtables` sealed memtables of a column family that were sealed at
    /// `through` or before. None if there are none.
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
        let context = self.output_context(&family, 0, IoClass::Flush, compression);
        Some(FlushJob::new(family, sealed, stripes, self.writes.snapshot_list(), context))
    }

    /// A flush of all that is sealed, of all column families. Which memtables those are is looked
    /// at here: control may have heard of one family's since it heard of another's, and a family
    /// that was just made is not among `members` yet.
    pub(super) fn make_flush_together(&self, members: &[FlushMember]) -> Option<FlushGroup> {
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
