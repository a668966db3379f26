//! Installs the result of a finished job: the manifest edit, then the new version.

use std::sync::Arc;

use sateen_control::version::{Version, VersionEdit};
use sateen_control::{IoClass, SeqNo};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::plant::planted;
use sateen_store::files::reclaim::OpenTables;

use super::step::Edits;
use crate::background::driver::Driver;
use crate::background::driver::Job;
use crate::options::WalMode;
use crate::tree::version_set::Barrier;

impl Driver {
    /// Makes a finished job's tables part of the tree: those of all its column families at once.
    /// Returns their versions.
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
            // After a power loss the families must agree on one prefix: what this flush makes
            // durable in one of them is durable in the logs of the others first. A dead log cannot
            // be synced; then all families are stored together before writes go on. The same for
            // keys that stay in memory, for the logs that had them go once this flush is installed,
            // for values that stay in the log, and where logs are kept for those who read them.
            match self.writes.pipeline.sync_wal() {
                // Which recovery holds the logs to: damage must not pass for what was not synced.
                // All of them say so, because any of them may be dropped.
                Ok(durable) => {
                    let durable = durable.filter(|_| !planted("durable_log_untold"));
                    edits.iter_mut().for_each(|edit| edit.durable_log = durable);
                }
                Err(error) => {
                    job.abandon();
                    return Err(error);
                }
            }
        }
        // Before anybody relies on them: a table that cannot be opened fails the job, while its
        // inputs are still there, and the first client to read one need not wait for its index.
        if let Err(error) = self.open_results(&edits, job.class()) {
            self.give_up_result(job);
            return Err(error);
        }
        // What a log has is there still if the edit is lost, and so are a compaction's inputs.
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
        let installed =
            self.install_edits(job.with_flushed(edits), last_seqno.unwrap_or_default(), barrier);
        match installed {
            Ok(versions) => {
                self.count_job(job);
                self.job_succeeded();
                Ok(versions)
            }
            Err(error @ Error::NoSuchColumnFamily(_)) => {
                self.give_up_result(job);
                Err(error)
            }
            Err(error) => {
                let files = job.files();
                files.iter().for_each(|file| self.tree.tables.evict_file(*file));
                // The dead manifest may hold the edit: its files go once a new one is current.
                self.board.after_roll(&files);
                Err(error)
            }
        }
    }

    fn install_edits(
        &self,
        edits: Vec<(VersionEdit, usize)>,
        last_seqno: SeqNo,
        barrier: Barrier,
    ) -> Result<Vec<Arc<Version>>> {
        let install = |edits| {
            let versions =
                self.tree.versions.install_all(edits, last_seqno, &self.tree.reclaimer, barrier)?;
            Ok(versions.into_iter().flatten())
        };
        if planted("atomic_flush_in_parts") {
            let parts: Result<Vec<_>> = edits.into_iter().map(|edit| install(vec![edit])).collect();
            return Ok(parts?.into_iter().flatten().collect());
        }
        install(edits).map(Iterator::collect)
    }

    fn open_results(&self, edits: &[VersionEdit], class: IoClass) -> Result<()> {
        let mut added = edits.iter().flat_map(|edit| &edit.added);
        added.try_for_each(|added| self.tree.tables.get(&added.table, class).map(drop))
    }

    /// Removes what a finished job has made, open handles included.
    fn give_up_result(&self, job: &mut Job) {
        job.files().iter().for_each(|file| self.tree.tables.evict_file(*file));
        job.abandon();
    }

    fn count_job(&self, job: &Job) {
        match job {
            Job::Flush(flush) => flush.done().for_each(|done| self.env.metrics.flush_done(&done)),
            Job::Compaction(compaction) => self.env.metrics.compaction_done(&compaction.done()),
        }
    }
}

impl Job {
    /// Each edit with the number of memtables that it stores.
    fn with_flushed(&self, edits: Edits) -> Vec<(VersionEdit, usize)> {
        match self {
            Job::Flush(flush) => edits.into_iter().zip(flush.memtables()).collect(),
            Job::Compaction(_) => edits.into_iter().map(|edit| (edit, 0)).collect(),
        }
    }
}
