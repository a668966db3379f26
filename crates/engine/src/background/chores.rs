//! What has to be done now and then, off the client path and beside the jobs: the next log, syncs by
//! interval, logs and tables that nobody needs, a new manifest, mending what failed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use sateen_control::version::VersionEdit;
use sateen_control::{ColumnFamilyId, Event, FileId, LogNumber};

use super::state::Health;
use crate::core::DbCore;
use crate::error::{Error, Result};
use crate::files::{manifest_file_name, table_file_name, wal_file_name};
use crate::options::WalMode;
use crate::sync::lock;
use crate::vfs::Vfs;
use crate::wal::WalWriter;

/// How often the chores are looked at when nobody asks.
const ROUND: Duration = Duration::from_millis(100);
/// How long after a failure the first attempt to mend it is made; doubled up to the maximum.
const MEND_AFTER: Duration = Duration::from_millis(500);
const MEND_AFTER_MAX: Duration = Duration::from_secs(5);

#[derive(Default)]
struct State {
    poked: bool,
    stop: bool,
    /// Outputs that a dead manifest may name: removed once a new manifest is current.
    after_roll: Vec<FileId>,
    manifest_dead: bool,
    mend_at_ns: u64,
    mend_wait: Duration,
}

/// Wakes the chores' thread and remembers what is to be done.
#[derive(Default)]
pub(crate) struct Chores {
    state: Mutex<State>,
    wake: Condvar,
    last_sync_ns: AtomicU64,
    storing_all: AtomicBool,
}

impl Chores {
    /// There may be something to do.
    pub(crate) fn poke(&self) {
        lock(&self.state).poked = true;
        self.wake.notify_one();
    }

    pub(crate) fn stop(&self) {
        lock(&self.state).stop = true;
        self.wake.notify_one();
    }

    /// The manifest is dead; `file` may be named in it.
    pub(crate) fn after_roll(&self, file: Option<FileId>) {
        let mut state = lock(&self.state);
        state.manifest_dead = true;
        state.after_roll.extend(file);
    }

    pub(crate) fn manifest_is_dead(&self) -> bool {
        lock(&self.state).manifest_dead
    }

    /// True while everything is being stored in order to do without a dead log.
    pub(crate) fn is_storing_all(&self) -> bool {
        self.storing_all.load(Ordering::Acquire)
    }
}

impl DbCore {
    pub(crate) fn chores_loop(self: &Arc<Self>) {
        loop {
            let round = match self.options.load().wal {
                WalMode::SyncInterval(every) => every.min(ROUND).max(Duration::from_micros(100)),
                _ => ROUND,
            };
            {
                let mut state = lock(&self.driver.chores.state);
                if !state.poked && !state.stop {
                    let waited = self.driver.chores.wake.wait_timeout(state, round);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                if state.stop {
                    return;
                }
                state.poked = false;
            }
            self.do_chores();
        }
    }

    /// Does what is due. Returns whether anything was.
    pub(crate) fn do_chores(self: &Arc<Self>) -> bool {
        if self.read_only {
            return false;
        }
        let mut worked = false;
        let mut chore = |outcome: Result<bool>| match outcome {
            Ok(did) => worked |= did,
            Err(error) => self.chore_failed(&error),
        };
        self.metrics.rotate(self.now().0 / 1_000_000_000);
        chore(self.sync_by_interval());
        chore(self.provide_next_wal());
        chore(self.bound_wal_bytes());
        chore(self.remove_old_logs());
        chore(self.roll_manifest_if_large());
        self.keep_memory_budget();
        chore(self.mend());
        if self.reclaimer.has_work() {
            // A table that cannot be removed now is tried again; it is no reason to refuse writes.
            let _kept_for_later = self.reclaimer.reclaim();
        }
        worked
    }

    fn chore_failed(&self, error: &Error) {
        let health = if error.is_no_space() { Health::Degraded } else { Health::ReadOnly };
        // A log that could not be prepared is made another time; writers go on with the old one.
        if self.pipeline.wal_is_dead() || self.driver.chores.manifest_is_dead() {
            self.health.raise(health, error);
        }
    }

    fn sync_by_interval(&self) -> Result<bool> {
        let WalMode::SyncInterval(every) = self.options.load().wal else { return Ok(false) };
        let chores = &self.driver.chores;
        let now = self.now().0;
        let due = chores.last_sync_ns.load(Ordering::Relaxed)
            + u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        if now < due || !self.pipeline.has_unsynced() {
            return Ok(false);
        }
        chores.last_sync_ns.store(now, Ordering::Relaxed);
        let synced = self.pipeline.sync_wal();
        if let Err(error) = &synced {
            self.health.raise(Health::ReadOnly, error);
        }
        synced.map(|()| true)
    }

    pub(crate) fn create_wal(&self) -> Result<WalWriter> {
        let options = self.options.load();
        let number = self.versions.counters.log();
        let directory = self.wal_directory();
        let path = wal_file_name(&directory, number);
        let preallocate = options.column_family.memtable_bytes;
        let created = WalWriter::create(
            self.vfs.as_ref(),
            &path,
            number,
            self.versions.db_uid(),
            preallocate,
        );
        let mut writer = match created.and_then(|writer| {
            self.sync_directory(&directory)?;
            Ok(writer)
        }) {
            Ok(writer) => writer,
            Err(error) => {
                let _orphan = self.vfs.remove(&path);
                return Err(error);
            }
        };
        writer.set_bytes_per_sync(options.wal_bytes_per_sync);
        Ok(writer)
    }

    pub(crate) fn wal_directory(&self) -> std::path::PathBuf {
        self.options.load().wal_dir.clone().unwrap_or_else(|| self.directory.clone())
    }

    fn provide_next_wal(&self) -> Result<bool> {
        if self.options.load().wal == WalMode::Off
            || !self.pipeline.wants_wal()
            || self.health.health() != Health::Ok
        {
            return Ok(false);
        }
        self.pipeline.provide_wal(self.create_wal()?);
        Ok(true)
    }

    /// Removes the log that was made in advance and never used.
    pub(crate) fn remove_unused_wal(&self) {
        if let Some(number) = self.pipeline.take_next_wal() {
            let _orphan = self.vfs.remove(&wal_file_name(&self.wal_directory(), number));
        }
    }

    /// When the logs grow past their limit, the families that keep the oldest alive are flushed.
    fn bound_wal_bytes(self: &Arc<Self>) -> Result<bool> {
        let options = self.options.load();
        let families = self.families();
        let limit = match options.max_total_wal_bytes {
            0 => {
                let memory = families.values().map(|family| {
                    let options = family.options();
                    options.memtable_bytes * u64::from(options.memtables_max)
                });
                4 * memory.sum::<u64>()
            }
            bytes => bytes,
        };
        let logs = self.pipeline.live_logs();
        let total: u64 = logs.iter().map(|(_, bytes)| bytes).sum();
        let Some((oldest, _)) = logs.first() else { return Ok(false) };
        if total <= limit || logs.len() < 2 {
            return Ok(false);
        }
        let holders: Vec<_> = families
            .values()
            .filter(|family| family.active_log() <= *oldest && !family.active_memtable().is_empty())
            .cloned()
            .collect();
        if holders.is_empty() {
            return Ok(false);
        }
        self.flush_inner(&holders, false)?;
        Ok(true)
    }

    fn remove_old_logs(&self) -> Result<bool> {
        if self.reclaimer.is_held() {
            return Ok(false);
        }
        self.pass_idle_families()?;
        let retired = self.pipeline.retire_logs_below(self.versions.oldest_log());
        let directory = self.wal_directory();
        let any = !retired.is_empty();
        for number in retired {
            let path = wal_file_name(&directory, number);
            // A log that stays is removed as an orphan at the next open.
            let _orphan = self.vfs.remove(&path);
        }
        Ok(any)
    }

    /// A family that nobody writes to is never flushed, and would keep every log: it is recorded that
    /// it needs none of the old ones.
    fn pass_idle_families(&self) -> Result<()> {
        let logs = self.pipeline.live_logs();
        let [(oldest, _), _, ..] = logs.as_slice() else { return Ok(()) };
        if self.health.health() != Health::Ok {
            return Ok(());
        }
        for (id, state) in self.versions.families() {
            let Some(data) = state.data else { continue };
            // Only grows: what is written from now on goes to the log in use.
            let needed = data.oldest_log_after(0);
            if data.is_dropped() || state.version.log_number() > *oldest || needed <= *oldest {
                continue;
            }
            self.raise_log_number(id, needed)?;
        }
        Ok(())
    }

    /// Records that a family needs no log before `number`.
    fn raise_log_number(&self, family: ColumnFamilyId, number: LogNumber) -> Result<()> {
        let edit = VersionEdit {
            column_family: family,
            log_number: Some(number),
            ..VersionEdit::default()
        };
        let seqno = self.pipeline.visible_seqno();
        let installed = self.versions.install(edit, 0, seqno, &self.reclaimer);
        match installed {
            // One that was dropped meanwhile needs none at all.
            Ok(_) | Err(Error::NoSuchColumnFamily(_)) => Ok(()),
            Err(error) => {
                self.driver.chores.after_roll(None);
                self.job_failed(&error);
                Err(error)
            }
        }
    }

    fn roll_manifest_if_large(&self) -> Result<bool> {
        let large = self.versions.appended_bytes() >= self.options.load().manifest_bytes_max;
        if !large || self.driver.chores.manifest_is_dead() {
            return Ok(false);
        }
        self.roll_manifest()?;
        Ok(true)
    }

    fn roll_manifest(&self) -> Result<()> {
        let old = match self.versions.roll() {
            Ok(old) => old,
            Err(error) => {
                if self.versions.is_dead() {
                    self.driver.chores.after_roll(None);
                }
                return Err(error);
            }
        };
        for old in old {
            let _orphan = self.vfs.remove(&manifest_file_name(&self.directory, old));
        }
        let orphans = {
            let mut state = lock(&self.driver.chores.state);
            state.manifest_dead = false;
            std::mem::take(&mut state.after_roll)
        };
        for file in orphans {
            let _orphan = self.vfs.remove(&table_file_name(&self.directory, file));
        }
        Ok(())
    }

    /// Tries to get a degraded database to work again.
    fn mend(self: &Arc<Self>) -> Result<bool> {
        if self.health.health() != Health::Degraded {
            lock(&self.driver.chores.state).mend_wait = Duration::ZERO;
            return Ok(false);
        }
        {
            let now = self.now();
            let mut state = lock(&self.driver.chores.state);
            if state.mend_wait.is_zero() {
                state.mend_wait = MEND_AFTER;
                state.mend_at_ns = (now + MEND_AFTER).0;
            }
            if now.0 < state.mend_at_ns {
                return Ok(false);
            }
            state.mend_wait = (state.mend_wait * 2).min(MEND_AFTER_MAX);
            state.mend_at_ns = (now + state.mend_wait).0;
        }
        if self.health.cause().is_some_and(|cause| cause.is_no_space()) {
            let needed = 2 * self.options.load().column_family.memtable_bytes;
            let free = self
                .vfs
                .free_space(&self.directory)
                .map_err(|error| Error::io("statfs", &self.directory, error))?;
            if free < needed.min(64 << 20) {
                return Ok(false);
            }
        }
        self.resume_inner()?;
        Ok(true)
    }

    /// Makes a database work again after a failure: a new manifest and a new log where the old ones
    /// are dead, and what only memory has is stored first.
    pub(crate) fn resume_inner(self: &Arc<Self>) -> Result<()> {
        self.driver.report(self.now(), Event::Paused(false));
        if self.driver.chores.manifest_is_dead() || self.versions.is_dead() {
            self.roll_manifest()?;
        }
        if self.pipeline.wal_is_dead() {
            self.driver.chores.storing_all.store(true, Ordering::Release);
            let stored = self.store_everything();
            self.driver.chores.storing_all.store(false, Ordering::Release);
            stored?;
            let writer = self.create_wal()?;
            let families: Vec<_> = self.families().values().cloned().collect();
            // A log that follows nothing must be the first that recovery looks at.
            for family in &families {
                self.raise_log_number(family.id(), writer.number())?;
            }
            self.pipeline.exclusive(|stage| {
                // Nothing was written since: the health refuses writers.
                debug_assert!(families.iter().all(|family| !family.has_unflushed()));
                self.pipeline.replace_wal(stage, writer)
            })?;
        }
        self.health.clear();
        Ok(())
    }

    /// Flushes every family on this thread: the pool may be waiting out a failure.
    fn store_everything(self: &Arc<Self>) -> Result<()> {
        let families: Vec<_> = self.families().values().cloned().collect();
        let ids: Vec<_> = families.iter().map(|family| family.id()).collect();
        self.pipeline.exclusive(|stage| self.pipeline.seal(stage, &ids));
        let now = self.now();
        for family in &families {
            self.driver.report(now, super::memtables_event(family));
            self.driver.report(now, Event::FlushRequested { cf: family.id() });
        }
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while families.iter().any(|family| family.sealed_usage().0 > 0) {
            self.check_open()?;
            if self.driver.is_stopping() || std::time::Instant::now() > deadline {
                return Err(Error::Closed);
            }
            if self.driver.chores.manifest_is_dead() || self.versions.is_dead() {
                self.roll_manifest()?;
            }
            if self.has_threads() {
                std::thread::sleep(Duration::from_millis(1));
            } else {
                self.background_once();
            }
        }
        Ok(())
    }

    /// Gives the block cache what the budget leaves it.
    fn keep_memory_budget(&self) {
        let options = self.options.load();
        let Some(budget) = options.memory_budget else { return };
        let others = self.memory_without_cache();
        let floor = (budget / 16).min(8 << 20);
        let cache = budget.saturating_sub(others).max(floor).min(budget);
        self.blocks.set_capacity(cache.min(options.block_cache_bytes.max(floor)));
    }
}
