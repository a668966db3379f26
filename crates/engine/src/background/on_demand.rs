//! Flushes, manual compactions and drops of tables at the request of a client, and waiting for
//! them.

use std::sync::Arc;
use std::time::Duration;

use sateen_control::{Event, Instant, SeqNo};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::Ordering;

use super::Background;
use crate::options::{CompactRangeOptions, control};
use crate::tree::families::ColumnFamilyData;

impl Background {
    /// Seals the memtables of `families`, or of all column families with `atomic_flush`. With
    /// `wait`, it returns when they are stored.
    pub(crate) fn flush(
        self: &Arc<Self>,
        families: &[Arc<ColumnFamilyData>],
        wait: bool,
    ) -> Result<()> {
        self.env.check_writable("a flush")?;
        self.flush_inner(families, wait)
    }

    /// Does the work of [`Background::flush`], without the check that the database is writable.
    pub(crate) fn flush_inner(
        self: &Arc<Self>,
        families: &[Arc<ColumnFamilyData>],
        wait: bool,
    ) -> Result<()> {
        let (families, through) = self.driver.request_flush(families);
        if wait { self.wait_flushed(&families, through) } else { Ok(()) }
    }

    /// Waits until no memtable with entries up to `through` is left in `families`.
    fn wait_flushed(
        self: &Arc<Self>,
        families: &[Arc<ColumnFamilyData>],
        through: SeqNo,
    ) -> Result<()> {
        let waiting = |family: &Arc<ColumnFamilyData>| {
            !family.is_dropped()
                && family.sealed().first().is_some_and(|sealed| sealed.last_seqno <= through)
        };
        while families.iter().any(waiting) {
            self.env.check_working()?;
            self.env.health.check()?;
            if self.env.has_threads() {
                self.wait_a_little();
            } else {
                self.step_or_wait()?;
            }
        }
        // Edits of earlier flushes may still wait for a barrier, which makes them durable.
        if self.tree.versions.holds_logs_until_barrier() {
            self.chores.sync_edits()
        } else {
            Ok(())
        }
    }

    /// Sleeps between two looks at the memtables.
    fn wait_a_little(&self) {
        // A short poll keeps the driver simple. No client's hot path waits for a flush.
        clock::sleep(Duration::from_micros(200));
    }

    /// Compacts all keys from `begin` to `end` of a column family; `None` means no bound. Returns
    /// when that is done if `options.wait` is set. Fails if the bounds are reversed, the database
    /// is read-only or manual compactions are paused.
    pub(crate) fn compact_range(
        self: &Arc<Self>,
        family: &Arc<ColumnFamilyData>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        if let (Some(begin), Some(end)) = (begin, end)
            && family.comparator().compare(begin, end).is_gt()
        {
            return Err(Error::reversed_bounds(begin, end));
        }
        self.env.check_writable("a compaction")?;
        // The count is read before the check, so that a pause that begins after the check is
        // noticed below.
        let pauses = self.manual_pauses_begun.load(Ordering::Acquire);
        self.check_manual()?;
        if options.flush {
            let all: Vec<_> = family.trees().cloned().collect();
            self.flush_inner(&all, true)?;
        }
        // A compaction filter must see every entry, so the last level is rewritten, too.
        let filters = family.options().filters();
        let bottommost = control::bottommost(options.rewrite_last_level || filters);
        let comparator = family.comparator();
        let request = |tree: &Arc<ColumnFamilyData>| {
            let key = |key: Option<&[u8]>| key.map(|key| comparator.key(key));
            let (cf, begin, end) = (tree.id(), key(begin), key(end));
            self.driver.request(tree, options.wait, |request| Event::CompactRange {
                request,
                cf,
                begin,
                end,
                bottommost,
            })
        };
        let requests: Vec<_> = family.trees_between(begin, end).map(request).collect();
        if !options.wait {
            return Ok(());
        }
        // Every request is waited for, because only that removes its result.
        let mut result = Ok(());
        for request in requests {
            let done = self.wait_request(request).and_then(|complete| {
                if complete {
                    return Ok(());
                }
                self.env.check_working()?;
                self.env.health.check()?;
                // The pause may have ended by now, but the requests that it cancelled stay
                // cancelled.
                if self.manual_pauses_begun.load(Ordering::Acquire) != pauses {
                    return Err(Error::ManualCompactionPaused);
                }
                Err(Error::NoSuchColumnFamily(family.name().to_owned()))
            });
            result = result.and(done);
        }
        result
    }

    /// Returns an error if manual compactions are paused.
    pub(crate) fn check_manual(&self) -> Result<()> {
        let paused = self.manual_pauses.load(Ordering::Acquire) > 0;
        if paused { Err(Error::ManualCompactionPaused) } else { Ok(()) }
    }

    /// Refuses manual compactions, and cancels those that run.
    pub(crate) fn pause_manual(&self) {
        self.manual_pauses.fetch_add(1, Ordering::AcqRel);
        self.manual_pauses_begun.fetch_add(1, Ordering::AcqRel);
        self.driver.cancel_requests(self.env.now());
    }

    /// Ends one [`Background::pause_manual`].
    pub(crate) fn resume_manual(&self) {
        self.manual_pauses.fetch_sub(1, Ordering::AcqRel);
    }

    /// Refuses manual compactions, discards all compactions that run, and lets no other start.
    /// Returns when none is left.
    pub(crate) fn stop_compactions(&self) -> Result<()> {
        self.env.check_open()?;
        if self.env.read_only {
            return Ok(());
        }
        self.pause_manual();
        let stopped = self.driver.stop_compactions();
        if stopped.is_err() {
            let _closed = self.resume_compactions();
        }
        stopped
    }

    /// Ends one [`Background::stop_compactions`].
    pub(crate) fn resume_compactions(&self) -> Result<()> {
        if self.env.read_only {
            return self.env.check_open();
        }
        self.driver.resume_compactions()?;
        self.resume_manual();
        Ok(())
    }

    /// Drops the tables below level 0 whose keys all lie between `begin` and `end`.
    pub(crate) fn drop_tables(
        self: &Arc<Self>,
        family: &Arc<ColumnFamilyData>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        if let (Some(begin), Some(end)) = (begin, end)
            && family.comparator().compare(begin, end).is_gt()
        {
            return Err(Error::reversed_bounds(begin, end));
        }
        self.env.check_writable("dropping tables")?;
        let request = |tree: &Arc<ColumnFamilyData>| {
            let key = |key: Option<&[u8]>| key.map(|key| tree.comparator().key(key));
            let (cf, begin, end) = (tree.id(), key(begin), key(end));
            self.driver.request(tree, true, |request| Event::DropTables { request, cf, begin, end })
        };
        let requests: Vec<_> = family.trees_between(begin, end).map(request).collect();
        let mut result = Ok(());
        for request in requests {
            result = result.and(self.wait_request(request).map(drop));
        }
        result
    }

    /// Waits until no background work is left. Returns `TimedOut` at `until`. With
    /// `abort_on_pause`, returns `BackgroundPaused` while a client pauses background work.
    pub(crate) fn wait_idle_until(
        self: &Arc<Self>,
        until: Option<Instant>,
        abort_on_pause: bool,
    ) -> Result<()> {
        let waiting = &self.board.waiting_for_rest;
        waiting.fetch_add(1, Ordering::Relaxed);
        let waits = || -> Result<()> {
            while !self.is_idle()? {
                if until.is_some_and(|until| self.env.now() >= until) {
                    return Err(Error::TimedOut("background work"));
                }
                if abort_on_pause && self.driver.is_paused() {
                    return Err(Error::BackgroundPaused);
                }
                self.step_or_sleep()?;
            }
            Ok(())
        };
        let waited = waits();
        waiting.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    /// Waits until no background work is left.
    pub(crate) fn wait_idle(self: &Arc<Self>) -> Result<()> {
        self.wait_idle_until(None, false)
    }

    /// Returns true if there is no job, due work, spare file or edit that waits for a barrier.
    fn is_idle(&self) -> Result<bool> {
        self.env.check_working()?;
        self.env.health.check()?;
        let unflushed = self.tree.families().values().any(|family| family.wants_flush());
        Ok(!unflushed
            && !self.driver.has_jobs()
            && !self.driver.has_due_work()
            && self.chores.spare_files.count() + self.writes.spare_logs.count() == 0
            && !self.tree.versions.holds_until_barrier()
            && (self.env.read_only || !self.tree.reclaimer.has_due_work()))
    }

    /// Wakes the chores and sleeps, or runs a step if the database has no threads.
    fn step_or_sleep(self: &Arc<Self>) -> Result<()> {
        if self.env.has_threads() {
            self.board.poke();
            clock::sleep(Duration::from_millis(2));
        } else {
            self.step_or_wait()?;
        }
        Ok(())
    }
}
