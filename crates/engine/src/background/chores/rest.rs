//! What is left to be tidied when there is nothing to do: files that were made in advance, and logs
//! and tables that are kept for want of a barrier.

use std::time::Duration;

use sateen_store::base::error::Result;
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::sync::lock;

use super::Chores;

/// How long the edit of a flush or compaction waits for another to be made durable with, at most.
/// Logs, and tables that were compacted, are there for so much longer: less than kernels wait
/// before they write back what is dirty, or what would have gone with the log in memory would be
/// written to the device.
const EDITS_WAIT_MAX: Duration = Duration::from_secs(3);
/// With less than this between two jobs there is work: while clients fill a memtable there may be
/// nothing to do.
const REST_AFTER: Duration = Duration::from_secs(1);

impl Chores {
    /// [`Background::tidy_at_rest`] as the only chore.
    pub(crate) fn tidied_at_rest(&self) -> bool {
        self.tidy_at_rest().unwrap_or_else(|error| {
            self.chore_failed(&error);
            false
        })
    }

    /// Where nothing is left to do no file made in advance lies about, and no log is kept for want
    /// of a barrier.
    pub(crate) fn tidy_at_rest(&self) -> Result<bool> {
        let rests = self.rests();
        let removed = rests && self.remove_spare_files();
        Ok(self.sync_edits_that_wait(rests)? || removed)
    }

    /// Whether there has been nothing to do for a while, or somebody waits for that.
    fn rests(&self) -> bool {
        let rests = !self.driver.has_jobs() && !self.driver.has_due_work();
        let (chores, now) = (&self.board, self.env.now());
        let mut state = lock(&chores.state);
        let since = rests.then(|| state.rest_since.unwrap_or(now));
        state.rest_since = since;
        let at_once =
            !self.env.has_threads() || chores.waiting_for_rest.load(Ordering::Relaxed) > 0;
        since.is_some_and(|since| at_once || now.since(since) >= REST_AFTER)
    }

    /// Removes the files that were made in advance. Returns whether there were any.
    pub(crate) fn remove_spare_files(&self) -> bool {
        let tables = self.spare_files.remove_all();
        self.writes.spare_logs.remove_all() || tables
    }

    /// Makes the edits durable that wait for a barrier, so that what they did away with can go:
    /// with no other edit that takes them along, after a while, or at once if `now`.
    fn sync_edits_that_wait(&self, now: bool) -> Result<bool> {
        // A dead manifest is replaced, with all edits.
        let waits = self.tree.versions.holds_until_barrier() && !self.manifest_is_dead();
        {
            let mut state = lock(&self.board.state);
            let since = waits.then(|| state.edits_wait_since.unwrap_or_else(|| self.env.now()));
            state.edits_wait_since = since;
            if !since.is_some_and(|since| now || self.env.now().since(since) >= EDITS_WAIT_MAX) {
                return Ok(false);
            }
        }
        self.sync_edits()?;
        self.remove_old_logs().map(|_| true)
    }

    /// Makes the edits durable that wait for a barrier.
    pub(crate) fn sync_edits(&self) -> Result<()> {
        self.tree
            .versions
            .sync_edits(&self.tree.reclaimer)
            .inspect_err(|error| self.driver.edit_failed(error))
    }
}
