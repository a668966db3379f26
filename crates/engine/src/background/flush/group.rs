//! A flush of one column family, or of all of them together (`atomic_flush`).
//!
//! 1. [`CommitPipeline::seal`](crate::write::CommitPipeline) seals the memtables of all column
//!    families at one sequence number.
//! 2. Control asks for one flush of all families ([`Flusher::make_flush_together`]). It takes the
//!    memtables that were sealed at the newest such number or before.
//! 3. [`FlushGroup::step`] writes the tables of one column family after the other.
//! 4. One manifest edit installs all of them (`install.rs`).
//!
//! What must stay true:
//!
//! - A group stores every entry up to its sequence number that is not in tables, in every column
//!   family. Otherwise it stores nothing.
//! - One group runs at a time, so groups are installed in the order of their sequence numbers.

use std::sync::Arc;

use sateen_control::{ColumnFamilyId, FileId, SeqNo};
use sateen_store::base::error::Result;

use super::Flusher;
use super::job::FlushJob;
use crate::background::driver::step::{Edits, Step, StepBytes};
use crate::metrics::FlushDone;
use crate::tree::families::ColumnFamilyData;

/// A running flush: one job for each column family.
pub(crate) struct FlushGroup {
    members: Vec<FlushJob>,
    /// The edits of the members that are done, which are the first ones.
    edits: Edits,
}

impl FlushGroup {
    pub(crate) fn new(members: Vec<FlushJob>) -> FlushGroup {
        FlushGroup { members, edits: Vec::new() }
    }

    /// Does at most about `bytes` bytes of work. A member begins with its hot keys and the values
    /// that stay in the WAL.
    pub(crate) fn step(&mut self, bytes: u64, flusher: &Flusher) -> Result<Step<Edits>> {
        let counters = &flusher.tree.versions.counters;
        let (mut left, mut written) = (bytes, 0);
        while let Some(job) = self.members.get_mut(self.edits.len()) {
            if left == 0 {
                return Ok(Step::More(StepBytes::written(written)));
            }
            if !job.has_begun() {
                flusher.leave_values_in_log(job);
                flusher.keep_hot_keys(job);
            }
            match job.step(left, counters)? {
                Step::More(moved) => {
                    return Ok(Step::More(StepBytes::written(written + moved.written)));
                }
                Step::Away => return Ok(Step::Away),
                Step::Done(moved, edit) => {
                    written += moved.written;
                    // A grant limits the work, not only the writes.
                    left = left.saturating_sub(moved.written.max(job.input_bytes()));
                    self.edits.push(*edit);
                }
            }
        }
        Ok(Step::Done(StepBytes::written(written), std::mem::take(&mut self.edits)))
    }

    /// Returns the flush of each column family.
    pub(crate) fn members(&self) -> impl Iterator<Item = &FlushJob> {
        self.members.iter()
    }

    pub(crate) fn families(&self) -> impl Iterator<Item = &Arc<ColumnFamilyData>> {
        self.members.iter().map(|job| &job.family)
    }

    /// Returns the first of the column families.
    pub(crate) fn first(&self) -> ColumnFamilyId {
        self.families().next().map_or(ColumnFamilyId(0), |family| family.id())
    }

    /// Returns the bytes of the memtables' entries.
    pub(crate) fn input_bytes(&self) -> u64 {
        self.members.iter().map(FlushJob::input_bytes).sum()
    }

    /// Returns the number of memtables that each member stores.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = usize> {
        self.members.iter().map(FlushJob::memtables)
    }

    /// Returns the sequence number of the newest entry that this flush stores.
    pub(crate) fn last_seqno(&self) -> SeqNo {
        self.members.iter().map(FlushJob::last_seqno).max().unwrap_or_default()
    }

    /// Returns true if a member leaves out entries or values that only a WAL has.
    pub(crate) fn needs_log(&self) -> bool {
        self.members.iter().any(FlushJob::needs_log)
    }

    /// Returns true if a client waits until the entries are in tables.
    pub(crate) fn must_store(&self) -> bool {
        self.members.iter().any(FlushJob::must_store)
    }

    /// Returns what the members did, for the metrics.
    pub(crate) fn done(&self) -> impl Iterator<Item = FlushDone> {
        self.members.iter().map(FlushJob::done)
    }

    /// Returns all files of the members, finished or not.
    pub(crate) fn files(&self) -> Vec<FileId> {
        self.members.iter().flat_map(FlushJob::files).copied().collect()
    }

    pub(crate) fn abandon(&mut self) {
        self.members.iter_mut().for_each(FlushJob::abandon);
    }
}
