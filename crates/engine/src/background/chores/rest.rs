//! What is tidied when the database is at rest: preallocated files are removed, and edits that wait
//! for a barrier are made durable, so that the WALs and tables they keep can go.

use std::time::Duration;

use sateen_store::base::error::Result;
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::sync::lock;

use super::Chores;

/// The longest time for which the edit of a flush or compaction waits for another one that makes it
/// durable. Obsolete WALs and input tables are kept until then. It is shorter than the kernel's
/// delay of writeback; otherwise the kernel would write pages of files that are about to be
/// removed.
const EDITS_WAIT_MAX: Duration = Duration::from_secs(3);
/// Pauses of less than this are no rest: while clients fill a memtable there may be no background
/// work.
const REST_AFTER: Duration = Duration::from_secs(1);

impl Chores {
    /// Does [`Chores::tidy_at_rest`] as the only chore. Returns true if it did something.
    pub(crate) fn tidied_at_rest(&self) -> bool {
        self.tidy_at_rest().unwrap_or_else(|error| {
            self.chore_failed(&error);
            false
        })
    }

    /// Removes preallocated files if the database is at rest, and makes edits durable that wait for
    /// a barrier. Returns true if it did something.
    pub(crate) fn tidy_at_rest(&self) -> Result<bool> {
        let rests = self.rests();
        let removed = rests && self.remove_spare_files();
        Ok(self.sync_edits_that_wait(rests)? || removed)
    }

    /// Returns true if there has been nothing to do for a while, or if there is nothing to do and a
    /// client waits for that.
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

    /// Removes the preallocated files. Returns true if there were any.
    pub(crate) fn remove_spare_files(&self) -> bool {
        let tables = self.spare_files.remove_all();
        self.writes.spare_logs.remove_all() || tables
    }

    /// Makes edits durable that wait for a barrier, and removes the WALs that they made obsolete.
    /// It does so if no other edit came for a while, or at once if `now`.
    fn sync_edits_that_wait(&self, now: bool) -> Result<bool> {
        // A dead manifest is replaced by one that has all edits.
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
