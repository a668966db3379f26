//! Installs the result of a finished job ([`Driver::install_result`]):
//!
//! 1. The WAL is synced if other column families or entries that the flush leaves out need it.
//! 2. Every output table is opened, so that a table that cannot be read fails the job.
//! 3. `can_wait` decides whether the edit needs its own barrier. It does not if no data is lost
//!    with it.
//! 4. `install_edits` appends the edits of all column families as one record, and makes their
//!    versions current.
//! 5. After a failure the outputs are removed at once, or, if the manifest may name them, after the
//!    next manifest is current.

use std::collections::BTreeSet;
use std::sync::Arc;

use sateen_control::version::{Version, VersionEdit};
use sateen_control::{IoClass, SeqNo, TableId};
use sateen_store::base::error::{Error, Result};
use sateen_store::files::reclaim::OpenTables;

use super::step::Edits;
use crate::background::driver::Driver;
use crate::background::driver::Job;
use crate::options::WalMode;
use crate::tree::version_set::Barrier;

impl Driver {
    /// Installs the tables of a finished job, for all of its column families at once. Returns their
    /// new versions. If it fails, the job's files are removed now or by the chores.
    pub(crate) fn install_result(
        &self,
        job: &mut Job,
        mut edits: Edits,
    ) -> Result<Vec<Arc<Version>>> {
        let (last_seqno, needs_log, must_store) = match job {
            Job::Flush(flush) => (Some(flush.last_seqno()), flush.needs_log(), flush.must_store()),
            Job::Compaction(_) => (None, false, true),
        };
        let others = self.tree.families().len() > 1 || self.env.options.load().keeps_logs();
        if needs_log || last_seqno.is_some() && others {
            // After a power loss all column families must agree on one prefix of the writes. So
            // what this flush makes durable in one of them must first be durable in the WAL of the
            // others. The WAL is also synced if hot keys stay in memory (the WALs that had them
            // become obsolete with this flush), if values stay in the WAL, and if WALs are kept for
            // readers. A dead WAL cannot be synced: the job fails, and all families are stored
            // together before writes go on.
            match self.writes.pipeline.sync_wal() {
                // The edit says how far the WAL is durable. Recovery then tells damage below that
                // point from an unsynced tail. Every edit says so, because any of the families may
                // be dropped.
                Ok(durable) => edits.iter_mut().for_each(|edit| edit.durable_log = durable),
                Err(error) => {
                    job.abandon();
                    return Err(error);
                }
            }
        }
        // The tables are opened while the inputs still exist, so that a table that cannot be opened
        // fails the job. It also spares the first client the read of the index.
        if let Err(error) = self.open_results(&edits, job.class()) {
            self.give_up_result(job);
            return Err(error);
        }
        // If the edit is lost, the WAL still has the flushed entries, and a compaction's inputs are
        // kept.
        let in_log = || {
            !must_store
                && !needs_log
                && self.env.options.load().wal != WalMode::Off
                && !self.writes.has_unlogged_writes()
                && !self.writes.pipeline.wal_is_dead()
        };
        let can_wait = job.families().iter().all(|family| family.options().compaction_files)
            && (matches!(job, Job::Compaction(_)) || in_log());
        let barrier = if can_wait { Barrier::WithNext } else { Barrier::Now };
        let inputs = self.expect_dead_values(job, &edits);
        let installed =
            self.install_edits(job.with_flushed(edits), last_seqno.unwrap_or_default(), barrier);
        match installed {
            Ok(versions) => {
                self.count_job(job);
                self.job_succeeded();
                Ok(versions)
            }
            Err(error) => {
                self.tree.reclaimer.forget_dead_values(&inputs);
                self.failed_to_install(job, &error);
                Err(error)
            }
        }
    }

    /// Tells the reclaimer which values of value files are dead once the inputs of a compaction
    /// are. Returns these inputs.
    fn expect_dead_values(&self, job: &mut Job, edits: &Edits) -> BTreeSet<TableId> {
        let Job::Compaction(compaction) = job else { return BTreeSet::new() };
        let removed = edits.iter().flat_map(|edit| &edit.removed);
        let removed: BTreeSet<_> = removed.map(|table| table.id).collect();
        let added = edits.iter().flat_map(|edit| &edit.added).map(|added| added.table.id);
        let added: BTreeSet<_> = added.collect();
        // A table that only moves stays.
        let inputs: BTreeSet<_> = removed.difference(&added).copied().collect();
        self.tree.reclaimer.expect_dead_values(inputs.clone(), compaction.dropped_values());
        inputs
    }

    /// Gives up the files of a job whose edit could not be installed.
    fn failed_to_install(&self, job: &mut Job, error: &Error) {
        match error {
            Error::NoSuchColumnFamily(_) => self.give_up_result(job),
            // The dead manifest may contain the edit, so the files stay until a new one is current.
            _ => {
                let files = job.files();
                files.iter().for_each(|file| self.tree.tables.evict_file(*file));
                self.board.after_roll(&files);
            }
        }
    }

    /// Installs `edits` as one record of the manifest. Each has the number of memtables that it
    /// stores.
    fn install_edits(
        &self,
        edits: Vec<(VersionEdit, usize)>,
        last_seqno: SeqNo,
        barrier: Barrier,
    ) -> Result<Vec<Arc<Version>>> {
        let versions =
            self.tree.versions.install_all(edits, last_seqno, &self.tree.reclaimer, barrier)?;
        Ok(versions.into_iter().flatten().collect())
    }

    /// Opens the table handles of all outputs.
    fn open_results(&self, edits: &[VersionEdit], class: IoClass) -> Result<()> {
        let mut added = edits.iter().flat_map(|edit| &edit.added);
        added.try_for_each(|added| self.tree.tables.get(&added.table, class).map(drop))
    }

    /// Removes the files of a finished job, and the open handles on them.
    fn give_up_result(&self, job: &mut Job) {
        job.files().iter().for_each(|file| self.tree.tables.evict_file(*file));
        job.abandon();
    }

    /// Adds the finished job to the metrics.
    fn count_job(&self, job: &Job) {
        match job {
            Job::Flush(flush) => flush.done().for_each(|done| self.env.metrics.flush_done(&done)),
            Job::Compaction(compaction) => self.env.metrics.compaction_done(&compaction.done()),
        }
    }
}

impl Job {
    /// Returns each edit with the number of memtables that it stores.
    fn with_flushed(&self, edits: Edits) -> Vec<(VersionEdit, usize)> {
        match self {
            Job::Flush(flush) => edits.into_iter().zip(flush.memtables()).collect(),
            Job::Compaction(_) => edits.into_iter().map(|edit| (edit, 0)).collect(),
        }
    }
}
