//! The reclaimer: frees the space of dead tables. Only this module deletes files or punches holes
//! (ARCHITECTURE.md, invariant 5).
//!
//! 1. [`Reclaimer::add`] accounts for tables that enter a version, and [`Reclaimer::found`] for
//!    those that exist at open.
//! 2. [`Reclaimer::retire`] receives tables that no new version names. Each is a *zombie* while a
//!    version, job, iterator or lease pins it.
//! 3. [`Reclaimer::reclaim`] does one step. It looks at the leases (`look_at_leases`) and removes
//!    orphans (`remove_orphans`).
//! 4. `bury` takes the zombies that are no longer pinned. `space.rs` marks their
//!    extents as dead, or returns the file if all its tables are dead.
//!    A compaction says which values its inputs had and its outputs have not
//!    ([`Reclaimer::expect_dead_values`]): they are dead once all inputs are buried.
//! 5. `unlink` removes files that are dead as a whole. Beside clients it empties a large file in
//!    steps first (`shrink`).
//! 6. `punch_due` punches holes into files that also hold live tables, once their extents have been
//!    dead for a while (`punch`, `try_punch`).
//! 7. With a rate, the next step is due after a pause, and its size follows from what steps cost
//!    (`step.rs`). What failed is kept and tried again.
//!
//! Why in steps: file systems and devices discard the blocks of a large file at once, and serve no
//! other request meanwhile. Each step ends with one sync, so that its blocks are discarded with it:
//! the sync of one file commits what the file system freed for all. Steps go
//! from the beginning of the file to its end, because of ext4. It discards freed blocks together
//! with the free blocks behind them, so cutting the file's end in steps would discard it again and
//! again.
//!
//! What must stay true:
//!
//! - A table becomes a zombie only after the edit that removes it is durable.
//! - A pinned table has a reference count above one. Every version, job and iterator that can reach
//!   it holds its `Arc`, and this module hands out none.
//! - A table stays while a lease of a reader in another handle or process needs it
//!   ([`super::leases`]).
//! - A file with another name, in a checkpoint or a copy, is neither punched nor truncated.
//! - The disk is accessed outside the lock.

mod found;
mod leased;
mod reclaimable;
mod step;
mod values;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sateen_control::compaction::FileSpace;
use sateen_control::version::TableMeta;
use sateen_control::{FileId, Instant, IoClass, ReclaimHaste, ReclaimPace, TableId};

use super::leases::{LeaseLimits, Leases, Round};
use super::space::{Accounts, DeadFile, Extents};
use super::table_file_name;
use crate::base::clock;
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Mutex, lock};
use crate::vfs::{OpenOptions, Vfs, VfsFile};
use step::StepSize;
use values::DyingValues;

/// Size of a step when there are no clients.
const UNPACED_STEP_BYTES: u64 = 128 << 20;
/// Bytes that a file may have besides its tables before its directory is read.
const UNEXPLAINED_BYTES: u64 = 64 << 10;
/// How long the reclaimer waits before it examines again a file that it could not read.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// How often leases are looked at while they keep anything.
const LEASES_EVERY: Duration = Duration::from_millis(200);

/// The caches that must release a table before its space is freed.
pub trait OpenTables: Send + Sync {
    /// Frees the images in memory of `tables`, which have left L0.
    fn forget_images(&self, tables: &mut dyn Iterator<Item = TableId>);
    /// Closes a table.
    fn evict(&self, table: TableId);
    /// Closes a file and its tables.
    fn evict_file(&self, file: FileId);
}

/// A file that a step made smaller.
type Shrunk = (PathBuf, Arc<dyn VfsFile>);

/// A table that no version names.
struct Zombie {
    table: Arc<TableMeta>,
    /// The round of leases in which the table was retired.
    retired: Round,
}

impl Zombie {
    /// Returns true if no code of this process can reach the table.
    fn is_unpinned(&self) -> bool {
        Arc::strong_count(&self.table) == 1
    }
}

/// What the reclaimer knows, behind one lock.
#[derive(Default)]
struct ReclaimState {
    /// The space of every file.
    accounts: Accounts,
    /// Tables that no version names and that something may still pin.
    zombies: Vec<Zombie>,
    dying_values: Vec<DyingValues>,
    /// Value files that were removed since they were last asked for.
    removed_value_files: Vec<FileId>,
    leases: Leases,
    /// Files that no version named at open, and that an earlier reader may still read.
    orphans: Vec<PathBuf>,
    /// Files without live tables that are not unlinked yet, and the bytes of those that a step has
    /// taken.
    unlink: Vec<DeadFile>,
    unlinking: u64,
    /// Files that existed at open with the extents of their live tables. Their other content is
    /// unknown.
    unseen: Vec<(FileId, Extents)>,
    /// Files of `unseen` that could not be read, and when they are tried again.
    unread: Vec<(FileId, Extents)>,
    look_again: Instant,
    /// Whether a thread is inside a step.
    busy: bool,
    /// When the next step is due, and its size.
    next_step: Instant,
    step: StepSize,
    /// The end of the last step with a rate, what it freed, and how long it took.
    last_step: (Instant, u64, Duration),
    /// While above zero, nothing is punched or unlinked: a checkpoint is linking files.
    holds: u32,
    /// The part of `holds` that [`Reclaimer::keep`] made.
    keeps: u32,
}

impl ReclaimState {
    /// Returns when the next step is due, if there is work. `early` dead bytes do not wait.
    fn next(&self, early: bool) -> Option<Instant> {
        let now = !self.unlink.is_empty() || early && self.accounts.has_own();
        let unlink = now.then_some(self.next_step);
        let punch = self.accounts.next_due().map(|due| due.max(self.next_step));
        unlink.into_iter().chain(punch).min()
    }

    /// Returns true if space can be freed, as far as is known.
    fn has_more(&self) -> bool {
        !self.unlink.is_empty() || self.accounts.has_own()
    }

    /// Returns when the next step is due, or when leases must be looked at again.
    fn next_round(&self, now: Instant, early: bool) -> Option<Instant> {
        let look_again = self.is_leased().then(|| now + LEASES_EVERY);
        self.next(early).into_iter().chain(look_again).min()
    }

    /// Returns true if leases keep anything that could be freed otherwise.
    fn is_leased(&self) -> bool {
        !self.orphans.is_empty()
            || (!self.unseen.is_empty() && self.leases.needs(Round::default()))
            || self.zombies.iter().any(|zombie| self.leases.needs(zombie.retired))
    }
}

/// Bytes and events since open, for metrics.
#[derive(Default)]
pub struct ReclaimCounters {
    pub files_unlinked: AtomicU64,
    pub bytes_punched: AtomicU64,
    pub holes_punched: AtomicU64,
    /// Bytes freed in files without live tables.
    bytes_unlinked: AtomicU64,
}

impl ReclaimCounters {
    /// Returns the bytes punched out of files with live tables, and the bytes freed in files
    /// without any.
    pub fn given_back(&self) -> (u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.bytes_punched), load(&self.bytes_unlinked))
    }
}

/// Knows which files hold live tables, and which bytes wait to be freed.
pub struct Reclaimer {
    directory: PathBuf,
    vfs: Arc<dyn Vfs>,
    /// The table cache.
    tables: Arc<dyn OpenTables>,
    state: Mutex<ReclaimState>,
    /// Whether the file system cannot punch holes. Then only whole files are freed.
    no_holes: AtomicBool,
    /// Whether the last attempt failed.
    failing: AtomicBool,
    /// Bytes that can be freed now or soon, as the last step left them.
    reclaimable: AtomicU64,
    lease_limits: Mutex<LeaseLimits>,
    pub counters: ReclaimCounters,
}

/// While this lives, nothing is punched or unlinked.
pub struct ReclaimHold<'a>(&'a Reclaimer);

impl Drop for ReclaimHold<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).holds -= 1;
    }
}

impl Reclaimer {
    /// Returns a reclaimer for the files in `directory`, which knows no table yet.
    pub fn new(directory: PathBuf, vfs: Arc<dyn Vfs>, tables: Arc<dyn OpenTables>) -> Reclaimer {
        Reclaimer {
            directory,
            vfs,
            tables,
            state: Mutex::default(),
            no_holes: AtomicBool::new(false),
            failing: AtomicBool::new(false),
            reclaimable: AtomicU64::new(0),
            lease_limits: Mutex::new(LeaseLimits::NONE),
            counters: ReclaimCounters::default(),
        }
    }

    /// Adds tables that a version names for the first time.
    pub fn add<'a>(&self, tables: impl Iterator<Item = &'a Arc<TableMeta>>) {
        let mut state = lock(&self.state);
        tables.for_each(|table| state.accounts.add(table));
    }

    /// Adds all tables that exist when the database is opened. Dead tables that the process before
    /// did not free are looked for later.
    pub fn found<'a>(&self, tables: impl Iterator<Item = &'a Arc<TableMeta>>) {
        let mut files: BTreeMap<FileId, Extents> = BTreeMap::new();
        let mut state = lock(&self.state);
        for table in tables {
            state.accounts.add(table);
            if let Some(range) = Extents::of(table) {
                files.entry(table.placement.file()).or_default().insert(range);
            }
        }
        state.unseen = files.into_iter().collect();
    }

    /// Frees the images of tables that have left L0.
    pub fn left_level0(&self, mut tables: impl Iterator<Item = TableId>) {
        self.tables.forget_images(&mut tables);
    }

    /// Retires tables that no new version names. The edit that removes them must be durable.
    pub fn retire(&self, tables: impl Iterator<Item = Arc<TableMeta>>) {
        let mut state = lock(&self.state);
        let retired = state.leases.round();
        state.zombies.extend(tables.map(|table| Zombie { table, retired }));
    }

    /// Marks files that share their bytes with a checkpoint. Files without tables are ignored,
    /// because the manifest remembers shared files longer than they exist.
    pub fn mark_shared(&self, files: impl Iterator<Item = FileId>, now: Instant) {
        let mut state = lock(&self.state);
        files.for_each(|file| state.accounts.mark_shared(file, now));
    }

    /// Returns the files that hold a reachable table.
    pub fn live_files(&self) -> Vec<FileId> {
        lock(&self.state).accounts.files().collect()
    }

    /// Returns the space of each file that holds a table.
    pub fn spaces(&self) -> Vec<FileSpace> {
        lock(&self.state).accounts.spaces(self.can_punch())
    }

    /// Returns a number that changes whenever dead or freed bytes of a file do.
    pub fn changes(&self) -> u64 {
        lock(&self.state).accounts.changes()
    }

    /// Returns false if the file system is known not to punch holes.
    pub fn can_punch(&self) -> bool {
        !self.no_holes.load(Ordering::Relaxed)
    }

    /// Returns the number of holds, and of tables that wait for their last reader.
    pub fn held(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.holds as usize, state.zombies.len())
    }

    /// Returns true while files must stay.
    pub fn is_held(&self) -> bool {
        lock(&self.state).holds > 0
    }

    /// Returns true if there may be work.
    pub fn has_work(&self) -> bool {
        let state = lock(&self.state);
        !state.zombies.is_empty()
            || !state.orphans.is_empty()
            || state.next(false).is_some()
            || !state.unseen.is_empty()
    }

    /// Returns true if space can be freed now or soon: it is not pinned, and the last attempt did
    /// not fail.
    pub fn has_due_work(&self) -> bool {
        let state = lock(&self.state);
        let unpinned =
            |zombie: &Zombie| zombie.is_unpinned() && !state.leases.needs(zombie.retired);
        let looks = !state.unseen.is_empty() && !state.leases.needs(Round::default());
        state.holds == 0
            && !self.failing.load(Ordering::Relaxed)
            && (state.busy || state.has_more() || looks || state.zombies.iter().any(unpinned))
    }

    /// Frees everything that is not pinned. What fails stays.
    pub fn reclaim_all(&self, now: Instant) {
        let pace = ReclaimPace::default();
        while self.reclaim(now, pace).is_ok() && !self.is_held() && lock(&self.state).has_more() {}
    }

    /// Stops reclaiming until the hold is dropped.
    pub fn hold(&self) -> ReclaimHold<'_> {
        lock(&self.state).holds += 1;
        ReclaimHold(self)
    }

    /// Stops reclaiming until [`Reclaimer::release`] was called as often as this.
    pub fn keep(&self) {
        let mut state = lock(&self.state);
        state.holds += 1;
        state.keeps += 1;
    }

    /// Ends one [`Reclaimer::keep`].
    pub fn release(&self) {
        let mut state = lock(&self.state);
        // A surplus call must not end the hold of a checkpoint.
        let ended = state.keeps.min(1);
        state.keeps -= ended;
        state.holds -= ended;
    }

    /// Ends every [`Reclaimer::keep`].
    pub fn release_all(&self) {
        let mut state = lock(&self.state);
        state.holds -= std::mem::take(&mut state.keeps);
    }

    /// Frees what is no longer pinned, in one step. With a rate the step is small. Without clients
    /// there is no rate, and the step is as large as a client that arrives meanwhile can bear.
    /// Returns when the next step is due. What fails is kept for another call.
    pub fn reclaim(&self, now: Instant, pace: ReclaimPace) -> Result<Option<Instant>> {
        let rate = pace.rate;
        // What failed waits as if it had died then.
        let early = pace.haste > ReclaimHaste::Later && !self.failing.load(Ordering::Relaxed);
        self.look_at_leases(now);
        self.remove_orphans();
        let (mut unlink, step) = {
            let mut state = lock(&self.state);
            if state.holds > 0 {
                self.note_reclaimable(&state);
                return Ok(None);
            }
            self.bury(&mut state, now);
            if let Some(rate) = rate {
                // The pace may have risen since then.
                let (ended, freed, took) = state.last_step;
                let next = ended + step::pause(freed, rate, took, pace.haste);
                state.next_step = state.next_step.min(next);
                if now < state.next_step {
                    self.note_reclaimable(&state);
                    return Ok(state.next_round(now, early));
                }
            }
            state.busy = true;
            state.unlinking = state.unlink_bytes();
            let step = rate.map_or(UNPACED_STEP_BYTES, |rate| state.step.bytes(rate));
            (std::mem::take(&mut state.unlink), step)
        };
        let started = clock::now();
        let mut left = step;
        let mut shrunk = None;
        let mut kept = Vec::new();
        let (mut failed, mut removed) = (None, Vec::new());
        while left > 0
            && let Some(dead) = unlink.pop()
        {
            match self.unlink(&dead, rate.map_or(u64::MAX, |_| left), &mut shrunk) {
                Ok((cost, rest)) => {
                    left = left.saturating_sub(cost);
                    removed.extend((dead.has_values && rest.is_none()).then_some(dead.file));
                    unlink.extend(rest);
                }
                Err(error) => {
                    kept.push(dead);
                    failed = failed.or(Some(error));
                }
            }
        }
        let punched = self.punch_due(now, &mut left, rate.is_none() || early, &mut shrunk);
        let is_synced = shrunk.is_some();
        let synced = match shrunk {
            Some((path, file)) if rate.is_some() => {
                file.sync_data(IoClass::Reclaim).map_err(|source| Error::io("sync", &path, source))
            }
            _ => Ok(()),
        };
        let result = failed.map_or(punched.and(synced), Err);
        let state = &mut *lock(&self.state);
        (state.busy, state.unlinking) = (false, 0);
        state.unlink.extend(unlink.into_iter().chain(kept));
        state.note_removed(removed);
        if let Some(rate) = rate {
            let took = clock::since(started);
            if is_synced {
                state.step.learn(step - left, took);
            }
            let (ended, freed) = (now + took, step - left);
            state.last_step = (ended, freed, took);
            state.next_step = ended + step::pause(freed, rate, took, pace.haste);
        }
        self.failing.store(result.is_err(), Ordering::Relaxed);
        self.note_reclaimable(state);
        result.map(|()| state.next_round(now, early))
    }

    /// Frees dead bytes of files that also have live tables, `early` before they are due. What
    /// fails is tried again after all others.
    fn punch_due(
        &self,
        now: Instant,
        left: &mut u64,
        early: bool,
        shrunk: &mut Option<Shrunk>,
    ) -> Result<()> {
        let mut failed = BTreeMap::new();
        while *left > 0 {
            let Some((file, dead)) = lock(&self.state).accounts.take_dead(now, early, *left) else {
                break;
            };
            *left = left.saturating_sub(dead.cost());
            let punched = self.punch(file, &dead, shrunk);
            let mut state = lock(&self.state);
            match punched {
                Ok(true) => {
                    state.accounts.mark_own(file);
                    state.accounts.add_holes(file, &dead);
                }
                Ok(false) => {
                    // The file has another name and must stay as it is, or the file system cannot
                    // punch holes.
                    if self.can_punch() {
                        state.accounts.mark_shared(file, now);
                    } else {
                        state.accounts.nothing_is_due();
                    }
                    state.accounts.add_dead(file, dead.iter(), now, self.can_punch());
                }
                Err(error) => {
                    state.accounts.postpone(file, &dead, now);
                    let again = failed.insert(file, error).is_some();
                    if again {
                        break;
                    }
                }
            }
        }
        failed.into_values().next().map_or(Ok(()), Err)
    }

    /// Frees the part of a dead file that costs at most `most`, and unlinks the file if that is
    /// all. Returns the cost and the rest of the file.
    fn unlink(
        &self,
        dead: &DeadFile,
        most: u64,
        shrunk: &mut Option<Shrunk>,
    ) -> Result<(u64, Option<DeadFile>)> {
        self.tables.evict_file(dead.file);
        let path = table_file_name(&self.directory, dead.file);
        let cost = dead.rest.cost();
        // If the steps are impossible, the file is unlinked at once.
        if cost > most
            && let Ok(Some((rest, handle))) = self.shrink(&path, dead, most)
        {
            *shrunk = Some((path, handle));
            return Ok((most, Some(rest)));
        }
        match self.vfs.remove(&path) {
            Ok(()) => {
                self.counters.files_unlinked.fetch_add(1, Ordering::Relaxed);
                let bytes = if dead.shared { 0 } else { dead.rest.bytes() };
                self.counters.bytes_unlinked.fetch_add(bytes, Ordering::Relaxed);
                Ok((cost, None))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((0, None)),
            Err(error) => Err(Error::io("remove", &path, error)),
        }
    }

    /// Frees `by` bytes of a dead file. Returns the rest and the file, or `None` if it has another
    /// name.
    fn shrink(
        &self,
        path: &Path,
        dead: &DeadFile,
        by: u64,
    ) -> std::io::Result<Option<(DeadFile, Arc<dyn VfsFile>)>> {
        let handle = self.vfs.open(path, OpenOptions::WRITE)?;
        if handle.links()? > 1 {
            return Ok(None);
        }
        let mut left = dead.clone();
        let first = left.rest.take(by, false);
        if !self.try_punch(handle.as_ref(), first.iter())? {
            left = dead.clone();
            let last = left.rest.take(by, true);
            if let Some(first) = last.iter().next() {
                handle.truncate(first.start)?;
            }
        }
        let bytes = dead.rest.bytes() - left.rest.bytes();
        self.counters.bytes_unlinked.fetch_add(bytes, Ordering::Relaxed);
        Ok(Some((left, handle)))
    }

    /// Punches `ranges`. Returns false if the file system cannot punch holes.
    fn try_punch(
        &self,
        file: &dyn VfsFile,
        mut ranges: impl Iterator<Item = Range<u64>>,
    ) -> std::io::Result<bool> {
        if !self.can_punch() {
            return Ok(false);
        }
        let punched = ranges.try_for_each(|range| {
            file.punch_hole(range.start, range.end - range.start, IoClass::Reclaim)
        });
        match punched {
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                self.no_holes.store(true, Ordering::Relaxed);
                Ok(false)
            }
            punched => punched.map(|()| true),
        }
    }

    /// Accounts for the zombies that are no longer pinned.
    fn bury(&self, state: &mut ReclaimState, now: Instant) {
        let zombies = std::mem::take(&mut state.zombies);
        let (dead, kept): (Vec<_>, Vec<_>) = zombies
            .into_iter()
            .partition(|zombie| zombie.is_unpinned() && state.leases.frees(zombie.retired));
        state.zombies = kept;
        if dead.is_empty() {
            return;
        }
        for Zombie { table, .. } in dead {
            self.tables.evict(table.id);
            state.unlink.extend(state.accounts.bury(&table, now, self.can_punch()));
            for dying in &mut state.dying_values {
                dying.tables.remove(&table.id);
            }
        }
        self.bury_values(state, now);
    }

    /// Punches `ranges` of a file. Returns false if the file system cannot, or the file has another
    /// name.
    fn punch(&self, file: FileId, ranges: &Extents, shrunk: &mut Option<Shrunk>) -> Result<bool> {
        let path = table_file_name(&self.directory, file);
        let options = OpenOptions::WRITE;
        let punched = self.vfs.open(&path, options).and_then(|handle| {
            if handle.links()? > 1 || !self.try_punch(handle.as_ref(), ranges.iter())? {
                return Ok(false);
            }
            *shrunk = Some((path.clone(), handle));
            Ok(true)
        });
        if let Ok(true) = punched {
            self.counters.bytes_punched.fetch_add(ranges.bytes(), Ordering::Relaxed);
            self.counters.holes_punched.fetch_add(ranges.len() as u64, Ordering::Relaxed);
        }
        match punched {
            // The last table of the file died meanwhile, and the file was unlinked.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
            punched => punched.map_err(|error| Error::io("punch", &path, error)),
        }
    }
}

#[cfg(test)]
mod tests;
