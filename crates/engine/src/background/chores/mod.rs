//! The chores: work beside the jobs and off the client path, which one thread does in rounds.
//!
//! 1. A thread of the device calls [`Chores::round`] when it is due or called for. It calls
//!    [`Chores::do_chores`], and says when the next round is due.
//! 2. WALs: sync by interval, the next WAL, the limit on their size, the removal of old ones
//!    ([`old_logs`], [`rest`]).
//! 3. The manifest: a new one if it is large or dead (`roll_manifest_if_large`).
//! 4. Memory: the pool, the budget, early seals ([`memory`], [`seal`]).
//! 5. The files DEVICE, OPTIONS and LOG ([`device_hint`], [`stored_options`], [`info_log`]).
//! 6. Tables that are to be opened (`open_some_tables`).
//! 7. Recovery from failures (`mend`, below).
//! 8. Space: sparse files, and dead tables that are reclaimed ([`space`]).
//! 9. A slice of the scrub, if control grants one.
//!
//! Recovery of a degraded database:
//!
//! 1. `mend` waits between attempts, and for free space if the disk was full ([`room`]).
//! 2. [`Chores::resume_inner`] begins a new manifest if the old one is dead.
//! 3. If the WAL is dead, `leave_dead_logs` stores all memtables by one edit (`store_everything`)
//!    and replaces the WAL. It repeats this if writes came in between.
//! 4. The health is cleared, and jobs go on.

pub(crate) mod board;
mod device_hint;
mod info_log;
mod memory;
mod old_logs;
mod rest;
mod room;
mod seal;
mod space;
mod stored_options;

use std::sync::Arc;
use std::time::Duration;

use sateen_control::compaction::Stripes;
use sateen_control::version::VersionEdit;
use sateen_control::{DeviceProfile, Event, Instant, IoClass, LogNumber};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::AtomicBool;
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::sync::lock;
use sateen_store::files::reclaim::OpenTables;
use sateen_store::files::spare::SpareFiles;
use sateen_store::files::{manifest_file_name, table_file_name, wal_file_name};
use sateen_store::vfs::Vfs;
use sateen_store::wal::{self, WalWriter};

use crate::background::driver::Driver;
use crate::background::flush::job::FlushJob;
use crate::background::scrub::Scrubber;
use crate::environment::Environment;
use crate::health::Health;
use crate::options::WalMode;
use crate::runtime::Rest;
use crate::tree::Tree;
use crate::tree::families::ColumnFamilyData;
use crate::write::path::WritePath;
use board::ChoreBoard;
use device_hint::DeviceHint;
use info_log::InfoLog;

/// The active WAL is not left because of its size before it has this many bytes.
const LOG_ALONE_BYTES_MIN: u64 = 1 << 20;
/// The usual pause between two rounds.
const ROUND: Duration = Duration::from_millis(100);
/// Rounds are due at multiples of this, so that one wake-up of a thread serves several databases.
const TOGETHER: Duration = Duration::from_millis(10);
/// How long after a failure the first attempt to recover is made. The pause doubles up to the
/// maximum.
const MEND_AFTER: Duration = Duration::from_millis(500);
const MEND_AFTER_MAX: Duration = Duration::from_secs(2);

/// Number of tables that a round opens, and the pause before the next round. Clients that begin
/// right after the open also open tables, and need the device, too.
const OPENED_AT_A_TIME: usize = 16;
const OPEN_PAUSE: Duration = Duration::from_millis(5);

/// Does the chores of an open database.
pub(crate) struct Chores {
    pub(crate) env: Arc<Environment>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) writes: Arc<WritePath>,
    pub(crate) driver: Arc<Driver>,
    pub(crate) scrubber: Arc<Scrubber>,
    pub(crate) board: Arc<ChoreBoard>,
    /// Preallocated table files.
    pub(crate) spare_files: Arc<SpareFiles>,
    pub(crate) hint: DeviceHint,
    /// Whether the file OPTIONS is out of date because a write of it failed.
    pub(crate) options_unstored: AtomicBool,
    info_log: InfoLog,
}

impl Chores {
    #[expect(clippy::too_many_arguments, reason = "the services that chores are done for")]
    pub(crate) fn new(
        env: Arc<Environment>,
        tree: Arc<Tree>,
        writes: Arc<WritePath>,
        driver: Arc<Driver>,
        scrubber: Arc<Scrubber>,
        board: Arc<ChoreBoard>,
        spare_files: Arc<SpareFiles>,
        hint: DeviceProfile,
    ) -> Chores {
        let hint = DeviceHint::new(hint);
        let options_unstored = AtomicBool::new(false);
        let info_log = InfoLog::default();
        Chores {
            env,
            tree,
            writes,
            driver,
            scrubber,
            board,
            spare_files,
            hint,
            options_unstored,
            info_log,
        }
    }

    /// Does a round of chores on a thread of the device. The longest pause before the next one is
    /// `slower` times as long as usual.
    pub(crate) fn round(self: &Arc<Self>, slower: u32) -> Rest {
        lock(&self.board.state).next_at = None;
        let worked = self.do_chores();
        let next_at = lock(&self.board.state).next_at;
        let rests = !worked && self.may_rest();
        let round = (!rests).then(|| match self.env.options.load().wal {
            WalMode::SyncInterval(every) => {
                self.env.now() + every.min(ROUND).max(Duration::from_micros(100))
            }
            _ => (self.env.now() + ROUND * slower).round_up(TOGETHER),
        });
        Rest { again: round.into_iter().chain(next_at).min(), rests }
    }

    /// Returns true if there is nothing to do before a client or a job does something.
    fn may_rest(&self) -> bool {
        self.driver.is_quiet()
            && self.env.health.health() == Health::Ok
            && !self.board.manifest_is_dead()
            && !self.driver.has_jobs()
            && !self.driver.has_due_work()
            && !self.tree.reclaimer.has_work()
            && !self.tree.versions.holds_until_barrier()
            && self.spare_files.count() + self.writes.spare_logs.count() == 0
            && !self.options_unstored.load(Ordering::Relaxed)
            // Nothing calls for the chores at a write, and its sync may not be late.
            && !matches!(self.env.options.load().wal, WalMode::SyncInterval(_))
            && self.writes.memtable_pool.bytes() == 0
            && lock(&self.board.state).to_open.is_empty()
            // The release of a snapshot calls for nothing.
            && !self.has_unseen_ranges()
    }

    /// Does the chores that are due. Returns true if one of them did something.
    pub(crate) fn do_chores(self: &Arc<Self>) -> bool {
        if self.env.read_only {
            return false;
        }
        self.driver.tell_what_waits();
        let mut worked = false;
        let mut chore = |outcome: Result<bool>| match outcome {
            Ok(did) => worked |= did,
            Err(error) => self.chore_failed(&error),
        };
        let watch = self.env.metrics.timeline.watch();
        self.env.metrics.rotate(self.env.now().0 / 1_000_000_000);
        self.env.metrics.timeline.traffic(self.env.now(), || self.env.vfs.totals());
        chore(self.sync_by_interval());
        chore(self.provide_next_wal());
        self.reserve_for_next_wal();
        chore(self.bound_wal_bytes());
        chore(self.release_logs());
        chore(self.remove_old_logs());
        chore(self.tidy_at_rest());
        chore(self.roll_manifest_if_large());
        self.keep_memory_for_memtables();
        self.keep_memory_budget();
        self.look_at_table_images();
        chore(Ok(self.seal_early_if_asked()));
        self.keep_device_hint(false);
        self.store_options_again();
        self.write_info_log();
        chore(Ok(self.open_some_tables()));
        chore(self.mend());
        chore(Ok(self.look_at_some_files()));
        self.report_sparse_files();
        self.report_ranges_seen();
        self.env.metrics.timeline.end_chores(watch);
        if self.tree.reclaimer.has_work() {
            self.give_back_dead_tables();
            // The thread may rest after this round.
            self.env.events.tell_queued();
        }
        self.board.again_at(self.scrubber.scrub_some());
        worked
    }

    /// Raises the health if the failure of a chore means that the WAL or the manifest is dead.
    fn chore_failed(&self, error: &Error) {
        // If only the preparation of a WAL failed, writers go on with the old one, and the next
        // round tries again.
        if self.writes.pipeline.wal_is_dead() || self.board.manifest_is_dead() {
            self.env.health.raise(Health::after(error), error);
        }
    }

    /// Opens tables on the calling thread, beside the chores, for at most `most`.
    pub(crate) fn open_tables_for(&self, most: Duration) {
        let end = self.env.now() + most;
        while self.env.now() < end && self.open_some_tables() {}
    }

    /// Opens the next tables of the list. Returns false if there were none.
    fn open_some_tables(&self) -> bool {
        let batch = {
            let mut state = lock(&self.board.state);
            if !self.tree.tables.has_room() {
                state.to_open = Vec::new();
            }
            let left = state.to_open.len().saturating_sub(OPENED_AT_A_TIME);
            let next = (left > 0).then(|| self.env.now() + OPEN_PAUSE);
            state.again_at(next);
            state.to_open.split_off(left)
        };
        for open in &batch {
            let Some(family) = self.tree.family_by_id(open.family) else { continue };
            // The version is held while the table is opened, because a reclaimed table must not be
            // opened.
            let version = family.super_version().version.clone();
            let run = version.level(open.level).run(open.epoch);
            if run
                .is_some_and(|run| run.locate(open.table.smallest.bytes(), open.table.id).is_some())
            {
                // An error is left to the first reader of the table, who gets it again.
                let _opened = self.tree.tables.get(&open.table, IoClass::Deep(open.level));
            }
        }
        !batch.is_empty()
    }

    /// Syncs the WAL if the interval of [`WalMode::SyncInterval`] has passed.
    fn sync_by_interval(&self) -> Result<bool> {
        let WalMode::SyncInterval(every) = self.env.options.load().wal else { return Ok(false) };
        let chores = &self.board;
        let now = self.env.now().0;
        let due = chores.last_sync_ns.load(Ordering::Relaxed)
            + u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        if now < due || !self.writes.pipeline.has_unsynced() {
            return Ok(false);
        }
        chores.last_sync_ns.store(now, Ordering::Relaxed);
        self.driver.sync_log().map(|_| true)
    }

    /// Creates a WAL from a preallocated file. The caller links it to its predecessor.
    pub(crate) fn create_wal(&self) -> Result<WalWriter> {
        let options = self.env.options.load();
        let number = LogNumber(self.writes.spare_logs.take(&self.tree.versions.counters)?.0);
        let path = wal_file_name(&self.env.wal_directory(), number);
        let uid = self.tree.versions.db_uid();
        let reserved = options.wal_preallocation().min(wal::space::FIRST_BYTES);
        let begun = WalWriter::begin(self.env.vfs.as_ref(), &path, number, uid, reserved);
        let mut writer = begun.inspect_err(|_| {
            let _orphan = self.env.vfs.remove(&path);
        })?;
        writer.set_bytes_per_sync(options.wal_bytes_per_sync);
        Ok(writer)
    }

    /// Gives the pipeline its next WAL, if it has none.
    fn provide_next_wal(&self) -> Result<bool> {
        if self.env.options.load().wal == WalMode::Off
            || !self.writes.pipeline.wants_wal()
            || self.env.health.health() != Health::Ok
        {
            return Ok(false);
        }
        self.writes.pipeline.provide_wal(self.create_wal()?);
        Ok(true)
    }

    /// Removes the next WAL if it was never used.
    pub(crate) fn remove_unused_wal(&self) {
        if let Some(number) = self.writes.pipeline.take_next_wal() {
            let _orphan = self.env.vfs.remove(&wal_file_name(&self.env.wal_directory(), number));
        }
    }

    /// Flushes the column families that need the oldest WAL, if all WALs together exceed their
    /// limit.
    fn bound_wal_bytes(self: &Arc<Self>) -> Result<bool> {
        let options = self.env.options.load();
        let families = self.tree.families();
        let memory = families.values().map(|family| {
            let options = family.options();
            let memtable = options.memtable_bytes.max(family.memtable_bytes_ahead());
            memtable.saturating_mul(u64::from(options.memtables_max))
        });
        let by_memory = memory.sum::<u64>().saturating_mul(4);
        let limit = match options.max_total_wal_bytes {
            0 => by_memory,
            bytes => bytes,
        };
        let logs = self.writes.pipeline.live_logs();
        let total: u64 = logs.iter().map(|(_, bytes)| bytes).sum();
        let Some((oldest, _)) = logs.first() else { return Ok(false) };
        // A single WAL may grow to what the memtables can hold, which limits all of it except log
        // data. A new WAL would start below the limit.
        let alone = logs.len() < 2;
        if total <= if alone { limit.max(by_memory).max(LOG_ALONE_BYTES_MIN) } else { limit } {
            return Ok(false);
        }
        let holders: Vec<_> = families
            .values()
            .filter(|family| family.active_log() <= *oldest && !family.active_memtable().is_empty())
            .cloned()
            .collect();
        if holders.is_empty() {
            let waits = self.tree.versions.holds_logs_until_barrier() && !self.manifest_is_dead();
            return if waits {
                self.sync_edits().map(|()| true)
            } else {
                Ok(alone && self.writes.pipeline.leave_idle_wal())
            };
        }
        self.driver.request_flush(&holders);
        Ok(true)
    }

    /// Records that column families without entries in old WALs do not need them. A family that is
    /// never written to is never flushed, so its edit would keep the WALs of all others.
    fn release_logs(&self) -> Result<bool> {
        if self.writes.pipeline.live_logs().len() < 2 || self.env.health.health() != Health::Ok {
            return Ok(false);
        }
        let _none_is_dropped_meanwhile = lock(&self.tree.changes);
        let families = self.tree.families();
        let needed = families.values().map(|family| family.oldest_log_after(0)).min();
        let needed = needed.unwrap_or_default();
        if needed <= self.tree.versions.oldest_log() {
            return Ok(false);
        }
        let behind =
            families.values().filter(|family| family.super_version().version.log_number() < needed);
        let edit = |family: &Arc<ColumnFamilyData>| {
            let column_family = family.id();
            let log_number = Some(needed);
            (VersionEdit { column_family, log_number, ..VersionEdit::default() }, 0)
        };
        self.sync_kept_logs()?;
        let seqno = self.writes.pipeline.visible_seqno();
        let edits = behind.map(edit).collect();
        if let Err(error) = self.tree.versions.install_together(edits, seqno, &self.tree.reclaimer)
        {
            self.driver.edit_failed(&error);
            return Err(error);
        }
        Ok(true)
    }

    /// Removes WALs that nothing needs, or keeps them for readers of the WAL.
    pub(crate) fn remove_old_logs(&self) -> Result<bool> {
        // `oldest` is read before the look at the holds. A checkpoint that begins after that look
        // needs no WAL below it.
        let oldest = self.tree.versions.oldest_log_after_power_loss();
        // The dead manifest may contain a failed edit, and may name older WALs.
        if self.tree.reclaimer.is_held() || self.board.manifest_is_dead() {
            return Ok(false);
        }
        let mut gone = self.retire_logs(oldest);
        let chores = &self.board;
        gone.extend(lock(&chores.state).logs_left.extract_if(.., |log| *log < oldest));
        self.remove_logs(&gone);
        Ok(!gone.is_empty())
    }

    /// Begins a new manifest if the current one is too large, or dead.
    fn roll_manifest_if_large(&self) -> Result<bool> {
        let wanted = if self.manifest_is_dead() {
            // A manifest may die after a successful sync, or in a failed attempt to replace it,
            // without a failure of the database. Otherwise `mend` replaces it together with the
            // rest.
            self.env.health.health() == Health::Ok
        } else {
            self.tree.versions.appended_bytes() >= self.env.options.load().manifest_bytes_max
        };
        if !wanted {
            return Ok(false);
        }
        self.roll_manifest()?;
        Ok(true)
    }

    /// Returns true if no edit can be installed before there is a new manifest.
    fn manifest_is_dead(&self) -> bool {
        self.board.manifest_is_dead() || self.tree.versions.manifest_is_dead()
    }

    /// Begins a new manifest, and removes the old one and the outputs that it may have named.
    fn roll_manifest(&self) -> Result<()> {
        let old = match self.tree.versions.roll() {
            Ok(old) => old,
            Err(error) => {
                if self.tree.versions.manifest_is_dead() {
                    self.board.after_roll(&[]);
                }
                return Err(error);
            }
        };
        for old in old {
            let _orphan = self.env.vfs.remove(&manifest_file_name(&self.env.directory, old));
        }
        let orphans = {
            let mut state = lock(&self.board.state);
            state.manifest_dead = false;
            std::mem::take(&mut state.after_roll)
        };
        for file in orphans {
            self.tree.tables.evict_file(file);
            let _orphan = self.env.vfs.remove(&table_file_name(&self.env.directory, file));
        }
        Ok(())
    }

    /// Tries to recover a degraded database, if an attempt is due.
    fn mend(self: &Arc<Self>) -> Result<bool> {
        if self.env.health.health() != Health::Degraded {
            lock(&self.board.state).mend_wait = Duration::ZERO;
            return Ok(false);
        }
        {
            let now = self.env.now();
            let mut state = lock(&self.board.state);
            if state.mend_wait.is_zero() {
                state.mend_wait = MEND_AFTER;
                state.mend_at_ns = (now + MEND_AFTER).0;
            }
            if now.0 < state.mend_at_ns {
                let due = Instant(state.mend_at_ns);
                state.again_at(Some(due));
                return Ok(false);
            }
            state.mend_wait = (state.mend_wait * 2).min(MEND_AFTER_MAX);
            state.mend_at_ns = (now + state.mend_wait).0;
        }
        let is_full = self.env.health.cause().is_some_and(|cause| cause.is_no_space());
        if is_full && !self.has_room_again()? {
            return Ok(false);
        }
        self.resume_inner()?;
        Ok(true)
    }

    /// Recovers the database after a failure. A dead manifest or WAL is replaced; before the WAL
    /// is, everything that only memory has is stored.
    pub(crate) fn resume_inner(self: &Arc<Self>) -> Result<()> {
        // The lock of the catalogue: a column family that was being created when the WAL failed is
        // stored with the others.
        let _catalogue = lock(&self.tree.changes);
        let _one_at_a_time = lock(&self.board.mending);
        // A dead manifest is replaced even if it has not failed the database.
        if self.manifest_is_dead() {
            self.roll_manifest()?;
        }
        if self.writes.pipeline.wal_is_dead() {
            let left = self.driver.stop_flushes().and_then(|()| self.leave_dead_logs());
            if let Err(error) = left {
                let paused = self.env.health.health() == Health::ReadOnly;
                self.driver.pause_for_health(self.env.now(), paused);
                return Err(error);
            }
        }
        self.env.health.clear();
        self.driver.pause_for_health(self.env.now(), false);
        Ok(())
    }

    /// Replaces the dead WAL, once nothing needs the old ones. No flush may run.
    fn leave_dead_logs(self: &Arc<Self>) -> Result<()> {
        let writer = self.create_wal()?;
        let number = writer.number();
        let left = |logs: &[LogNumber]| lock(&self.board.state).logs_left.extend_from_slice(logs);
        let mut fresh = Some(writer);
        let mut tries = 0;
        let dead = loop {
            tries += 1;
            if let Err(error) = self.store_everything(number) {
                drop(fresh);
                if tries == 1 && !self.board.manifest_is_dead() {
                    let _orphan =
                        self.env.vfs.remove(&wal_file_name(&self.env.wal_directory(), number));
                } else {
                    left(&[number]);
                }
                return Err(error);
            }
            let replace = |stage: &mut _| {
                let dead = self.writes.pipeline.replace_wal(stage, &mut fresh)?;
                // The end of a dead WAL is unknown, so the new WAL does not follow it.
                Ok(dead.map(|dead| [self.writes.kept_logs.lock().clear(), dead].concat()))
            };
            // Writers are refused by now, so soon no write is left that came before.
            let replaced = self.writes.pipeline.exclusive(replace).and_then(|dead| {
                if dead.is_none() && tries == STORE_TRIES {
                    self.env.health.check()?
                }
                Ok(dead)
            });
            match replaced {
                Ok(Some(dead)) => break dead,
                Ok(None) => {}
                Err(error) => {
                    left(&[number]);
                    return Err(error);
                }
            }
        };
        left(&dead);
        self.remove_old_logs().map(drop)
    }

    /// Stores the memtables of all column families by one edit, after which no WAL before `number`
    /// is needed. It is unknown how far the dead WAL is durable, so after a power loss between two
    /// edits the column families would be at different commits.
    fn store_everything(self: &Arc<Self>, number: LogNumber) -> Result<()> {
        let families: Vec<_> = self.tree.families().values().cloned().collect();
        let ids: Vec<_> = families.iter().map(|family| family.id()).collect();
        let last_seqno = self.writes.pipeline.exclusive(|stage| {
            self.writes.pipeline.seal(stage, &ids);
            stage.last_seqno()
        });
        let (mut jobs, mut edits) = (Vec::new(), Vec::new());
        for id in ids {
            let mut edit = VersionEdit { column_family: id, ..VersionEdit::default() };
            let mut flushed = 0;
            if let Some(mut job) =
                self.driver.flusher.make_flush(id, usize::MAX, last_seqno, &Stripes::default())
            {
                let stepped = job.run(&self.tree.versions.counters);
                flushed = job.memtables();
                jobs.push(job);
                match stepped {
                    Ok(made) => edit = made,
                    Err(error) => {
                        jobs.iter_mut().for_each(FlushJob::abandon);
                        return Err(error);
                    }
                }
            }
            edit.log_number = Some(number);
            edits.push((edit, flushed));
        }
        match self.tree.versions.install_together(edits, last_seqno, &self.tree.reclaimer) {
            Ok(versions) => {
                jobs.iter().for_each(|job| self.env.metrics.flush_done(&job.done()));
                for version in versions.into_iter().flatten() {
                    self.driver.report(self.env.now(), Event::VersionInstalled { version });
                }
                for family in &families {
                    self.driver.report_memtables(self.env.now(), family);
                }
                Ok(())
            }
            Err(error) => {
                // As after any failed edit, the dead manifest may name the files.
                self.board.after_roll(&[]);
                jobs.iter().for_each(|job| self.board.after_roll(job.files()));
                Err(error)
            }
        }
    }
}

/// Number of attempts to store everything before a dead WAL is given up for this time.
const STORE_TRIES: u32 = 100;
