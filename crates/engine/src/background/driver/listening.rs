//! Tells listeners how jobs begin and end, and keeps the result of a compaction for the client that
//! waits for it.
//!
//! 1. [`Driver::announce`] tells that a job takes its first step.
//! 2. [`Driver::outcome_of`] collects the result before the edit is installed.
//! 3. [`Driver::tell_outcome`] tells it afterwards.
//! 4. [`Driver::queue_given_up`] queues the end of a discarded job; [`Driver::tell_what_waits`]
//!    tells it when no lock is held.

use std::sync::Arc;
use std::time::Duration;

use sateen_control::version::{AddedTable, TableMeta, VersionEdit};
use sateen_control::{FileId, JobId};
use sateen_store::base::error::Error;
use sateen_store::files::table_file_name;
use sateen_store::vfs::Vfs;

use crate::background::compaction::job::CompactionJob;
use crate::background::driver::Driver;
use crate::background::driver::{DriverState, Job};
use crate::background::flush::job::FlushJob;
use crate::background::value_output::ValueCount;
use crate::events::{
    Announcement, CompactionInfo, ErrorReason, FlushInfo, Queued, SealInfo, StallState, Untold,
    ValueFileInfo,
};
use crate::live_table::LiveTable;
use crate::tree::families::ColumnFamilyData;

/// The end of a job, as listeners will hear of it.
pub(crate) struct Outcome {
    told: Told,
    /// Marks the end as not yet told, until it is dropped.
    untold: Option<Untold>,
}

enum Told {
    /// One for each column family of the flush.
    Flush(Vec<FlushInfo>),
    Compaction(Box<CompactionInfo>),
}

impl Driver {
    /// Tells listeners that a job begins. Called before its first step.
    pub(crate) fn announce(self: &Arc<Self>, id: JobId, job: &Job) {
        if !self.env.events.are_heard() {
            return;
        }
        match job {
            Job::Flush(flush) => {
                flush.families().for_each(|family| self.note_sealed(family));
                self.env.events.tell_queued();
                for member in flush.members() {
                    let info = self.flush_info(id, member, &[]);
                    self.env.events.tell(&Announcement::FlushBegins(&info));
                }
            }
            Job::Compaction(compaction) => {
                let info = self.compaction_info(id, compaction, &[], None);
                self.env.events.tell(&Announcement::CompactionBegins(&info));
            }
        }
    }

    /// Returns what listeners, or the client that asked for the job, will hear of its end. `edits`
    /// is empty if the job failed. Returns `None` if nobody will hear of it.
    pub(crate) fn outcome_of(
        &self,
        id: JobId,
        job: &Job,
        edits: &[VersionEdit],
    ) -> Option<Outcome> {
        let heard = self.env.events.are_heard();
        let told = match job {
            Job::Flush(flush) if heard => {
                let ended = flush.members().zip(edits);
                let info = ended.map(|(member, edit)| self.flush_info(id, member, &edit.added));
                Told::Flush(info.collect())
            }
            Job::Compaction(compaction) if heard || compaction.plan.request.is_some() => {
                let added = edits.first().map_or(&[][..], |edit| &edit.added);
                Told::Compaction(Box::new(self.compaction_info(id, compaction, added, None)))
            }
            _ => return None,
        };
        Some(Outcome { told, untold: heard.then(|| self.env.events.untold()) })
    }

    /// Tells listeners that a job has ended, with `error` if it was not installed. Keeps the result
    /// of a compaction for the client that waits for it.
    pub(crate) fn tell_outcome(
        self: &Arc<Self>,
        job: &Job,
        outcome: Option<Outcome>,
        error: Option<&Error>,
    ) {
        let Some(Outcome { told, untold }) = outcome else { return };
        match told {
            Told::Flush(each) if error.is_none() => {
                for info in each {
                    self.tell_value_files(&info.column_family, &info.value_files);
                    self.env.events.tell(&Announcement::FlushEnded(&info));
                }
            }
            Told::Flush(_) => {}
            Told::Compaction(mut info) => {
                info.error = error.cloned();
                if error.is_some() {
                    info.outputs.clear();
                    info.value_files.clear();
                    info.value_garbage.clear();
                }
                self.tell_value_files(&info.column_family, &info.value_files);
                self.env.events.tell(&Announcement::CompactionEnded(&info));
                if let Job::Compaction(compaction) = job
                    && let Some(request) = compaction.plan.request
                    && error.is_none()
                {
                    self.keep_answer(request, *info);
                }
            }
        }
        drop(untold);
    }

    /// Tells listeners of new value files.
    fn tell_value_files(&self, family: &str, files: &[ValueFileInfo]) {
        for file in files {
            self.env.events.tell(&Announcement::ValueFileCreated(family, file));
        }
    }

    /// Queues value files that the reclaimer has removed.
    pub(crate) fn note_removed_value_files(&self) {
        for file in self.tree.reclaimer.take_removed_value_files() {
            let path = self.value_file(file, ValueCount::default()).file;
            self.env.events.push(Queued::ValueFileDeleted(path));
        }
    }

    /// Queues the end of a discarded job. `is_stopped` says whether a client has stopped
    /// compactions. Listeners hear of it later, because the caller holds locks.
    pub(crate) fn queue_given_up(&self, id: JobId, job: &Job, is_stopped: bool) {
        if let Job::Compaction(compaction) = job
            && self.env.events.are_heard()
        {
            let error = if is_stopped {
                Error::BackgroundPaused
            } else {
                given_up(compaction.family.as_ref())
            };
            let info = self.compaction_info(id, compaction, &[], Some(error));
            self.env.events.push(Queued::CompactionEnded(Box::new(info)));
        }
    }

    /// Like [`Driver::job_failed`]; listeners also hear which kind of job failed.
    pub(crate) fn this_job_failed(&self, job: &Job, error: &Error) {
        let reason = match job {
            Job::Flush(_) => ErrorReason::Flush,
            Job::Compaction(_) => ErrorReason::Compaction,
        };
        ErrorReason::during(reason, || self.job_failed(error));
    }

    /// Tells listeners of queued events and of memtables that were sealed.
    pub(crate) fn tell_what_waits(self: &Arc<Self>) {
        if self.env.events.are_heard() {
            self.tree.families().values().for_each(|family| self.note_sealed(family));
            self.env.events.tell_queued();
        }
    }

    /// Notes every sealed memtable of `family` that listeners have not heard of.
    fn note_sealed(&self, family: &ColumnFamilyData) {
        for sealed in family.sealed() {
            let info = SealInfo {
                column_family: self.tree.name_of(family),
                first_seqno: 0,
                entries: sealed.memtable.entries() as u64,
                deletions: sealed.memtable.tombstones() as u64,
            };
            self.env.events.sealed(family.id(), sealed.last_seqno, info);
        }
    }

    /// Tells listeners the state of the gates, after one was opened or closed.
    pub(crate) fn note_stalls(&self) {
        if !self.env.events.are_heard() {
            return;
        }
        let of_all = &self.gate;
        for family in self.tree.families().named() {
            let gates = [of_all, &family.gate];
            let state = if gates.iter().any(|gate| gate.is_stopped()) {
                StallState::Stopped
            } else if gates.iter().all(|gate| gate.is_open()) {
                StallState::Normal
            } else {
                StallState::Delayed
            };
            self.env.events.stall(family.id(), family.name(), state);
        }
    }

    fn live_table(&self, part: &ColumnFamilyData, level: u8, table: &TableMeta) -> LiveTable {
        LiveTable::of(
            self.env.vfs.as_ref(),
            &self.env.directory,
            &self.tree.name_of(part),
            level,
            table,
        )
    }

    fn added(&self, family: &ColumnFamilyData, added: &[AddedTable]) -> Vec<LiveTable> {
        added.iter().map(|added| self.live_table(family, added.level, &added.table)).collect()
    }

    fn value_file(&self, file: FileId, count: ValueCount) -> ValueFileInfo {
        let path = table_file_name(&self.env.directory, file);
        let ValueCount { values, bytes } = count;
        ValueFileInfo { file: self.env.vfs.place_of(&path), number: file.0, values, bytes }
    }

    fn value_files(&self, files: impl Iterator<Item = (FileId, ValueCount)>) -> Vec<ValueFileInfo> {
        files.map(|(file, count)| self.value_file(file, count)).collect()
    }

    /// Returns what listeners hear of a flush that adds `added`.
    fn flush_info(&self, id: JobId, flush: &FlushJob, added: &[AddedTable]) -> FlushInfo {
        let gates = [&self.gate, &flush.family.gate];
        FlushInfo {
            column_family: self.tree.name_of(&flush.family),
            column_family_id: flush.family.whole().0,
            job: id.0,
            tables: self.added(&flush.family, added),
            value_files: self.value_files(flush.value_files()),
            largest_seqno: flush.last_seqno().0,
            slows_writes: gates.iter().any(|gate| !gate.is_open()),
            stops_writes: gates.iter().any(|gate| gate.is_stopped()),
        }
    }

    /// Returns what listeners hear of a compaction that adds `added`, or that ended with `error`.
    fn compaction_info(
        &self,
        id: JobId,
        job: &CompactionJob,
        added: &[AddedTable],
        error: Option<Error>,
    ) -> CompactionInfo {
        let (family, plan, done) = (&job.family, &job.plan, job.done());
        let inputs = plan.inputs().flat_map(|input| {
            input.tables.iter().map(|table| self.live_table(family, input.level, table))
        });
        let inputs: Vec<_> = inputs.collect();
        let (written, dropped) = match error {
            None => (self.value_files(job.value_files()), self.value_files(job.garbage())),
            Some(_) => (Vec::new(), Vec::new()),
        };
        let whole: usize = family.super_version().version.tables().count();
        CompactionInfo {
            column_family: self.tree.name_of(family),
            column_family_id: family.whole().0,
            job: id.0,
            reason: plan.reason.name(),
            is_manual: plan.reason.is_manual(),
            is_full: inputs.len() == whole,
            inputs,
            outputs: self.added(family, added),
            value_files: written,
            value_garbage: dropped,
            moved: plan.settle.iter().map(|input| input.tables.len()).sum(),
            start_level: plan.start_level(),
            output_level: plan.output_level,
            entries_in: done.entries_in,
            entries_dropped: done.entries_dropped,
            duration: done.duration.max(Duration::from_nanos(1)),
            error,
        }
    }
}

/// Returns the error of a job that was discarded.
pub(crate) fn given_up(family: &ColumnFamilyData) -> Error {
    if family.is_dropped() {
        Error::NoSuchColumnFamily(family.name().to_owned())
    } else {
        Error::Closed
    }
}

impl DriverState {
    /// Returns true if a client waits for the result of a request.
    pub(crate) fn waits_for(&self, request: sateen_control::RequestId) -> bool {
        self.requests.contains_key(&request)
    }
}
