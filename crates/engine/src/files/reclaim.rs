//! Giving space back. A table that no version names is a *zombie* while anything still pins it;
//! afterwards its bytes are punched out of its file, or the file is unlinked once all its tables
//! are dead. This is the only place that deletes or punches (ARCHITECTURE.md, invariant 5).
//!
//! Beside clients that is done in steps: file systems and devices discard the blocks of a large
//! file at once, and serve nobody meanwhile. A file is emptied step by step, each made durable so
//! that its blocks are discarded with it, until the rest is unlinked. From its begin to its end:
//! ext4 discards what is freed together with all that is free behind it, so that a file that is cut
//! shorter has its end discarded again with each step.
//!
//! What must stay true: a table becomes a zombie only after the edit that removes it is durable; a
//! pinned table is seen by its reference count (every version, job and iterator that can reach it
//! holds its `Arc`, and nobody can get a new one from here); a file that has another name, in a
//! checkpoint or a copy that somebody made, is neither punched nor shrunk; the disk is touched
//! outside the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sateen_control::version::{Placement, TableMeta};
use sateen_control::{FileId, Instant, IoClass};

use super::table_file_name;
use crate::error::{Error, Result};
use crate::read::table_cache::TableCache;
use crate::sync::lock;
use crate::vfs::{OpenOptions, Vfs, VfsFile};

const PAGE_BYTES: u64 = 4096;
/// Beside clients at least so much is given back at a time, and what is due within so long.
const STEP_BYTES_MIN: u64 = 1 << 20;
const STEP_NS: u64 = 30_000_000;
/// Where no client is there so much is given back at a time.
const UNPACED_STEP_BYTES: u64 = 128 << 20;
/// After a step it rests so many times as long as the step took, at least.
const STEP_REST: u32 = 4;

#[derive(Default)]
struct FileState {
    /// Tables in some version, or zombies.
    tables: u64,
    /// Their bytes, when they were new.
    bytes: u64,
    /// Hard-linked by a checkpoint.
    shared: bool,
}

/// A file of which nothing is live.
#[derive(Clone, Copy)]
struct Dead {
    file: FileId,
    /// What it has left, as far as is known.
    bytes: u64,
    /// How much of its begin is given back.
    emptied: u64,
    shared: bool,
}

#[derive(Default)]
struct State {
    files: BTreeMap<FileId, FileState>,
    zombies: Vec<Arc<TableMeta>>,
    /// Files of which nothing is live and that are not unlinked yet.
    unlink: Vec<Dead>,
    /// Holes that could not be punched yet.
    punch: Vec<(FileId, u64, u64)>,
    /// Somebody is at it.
    busy: bool,
    /// When the next step is due.
    next_step: Instant,
    /// While above zero nothing is punched or unlinked: a checkpoint is linking files.
    holds: u32,
}

impl State {
    fn is_due(&self) -> bool {
        !self.unlink.is_empty() || !self.punch.is_empty()
    }

    fn due_bytes(&self) -> u64 {
        let unlink = self.unlink.iter().map(|dead| dead.bytes).sum::<u64>();
        unlink + self.punch.iter().map(|hole| hole.2).sum::<u64>()
    }
}

/// Bytes and counts given back so far, for metrics.
#[derive(Default)]
pub(crate) struct ReclaimCounters {
    pub(crate) files_unlinked: AtomicU64,
    pub(crate) bytes_punched: AtomicU64,
    pub(crate) holes_punched: AtomicU64,
}

/// Which files hold live tables, and which bytes wait to be given back.
pub(crate) struct Reclaimer {
    directory: PathBuf,
    vfs: Arc<dyn Vfs>,
    tables: Arc<TableCache>,
    state: Mutex<State>,
    /// The file system cannot punch: whole files only.
    no_holes: AtomicBool,
    /// The last attempt failed.
    failing: AtomicBool,
    pub(crate) counters: ReclaimCounters,
}

/// Nothing is punched or unlinked while this lives.
pub(crate) struct ReclaimHold<'a>(&'a Reclaimer);

impl Drop for ReclaimHold<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).holds -= 1;
    }
}

impl Reclaimer {
    pub(crate) fn new(directory: PathBuf, vfs: Arc<dyn Vfs>, tables: Arc<TableCache>) -> Reclaimer {
        Reclaimer {
            directory,
            vfs,
            tables,
            state: Mutex::default(),
            no_holes: AtomicBool::new(false),
            failing: AtomicBool::new(false),
            counters: ReclaimCounters::default(),
        }
    }

    /// Tables that a version names from now on, for the first time.
    pub(crate) fn add<'a>(&self, tables: impl Iterator<Item = &'a Arc<TableMeta>>) {
        let mut state = lock(&self.state);
        for table in tables {
            let file = state.files.entry(table.placement.file()).or_default();
            file.tables += 1;
            file.bytes += table.size_bytes;
        }
    }

    /// Tables that no new version names; the edit that says so is durable.
    pub(crate) fn retire(&self, tables: impl Iterator<Item = Arc<TableMeta>>) {
        lock(&self.state).zombies.extend(tables);
    }

    /// Files that share their bytes with a checkpoint. Those of which nothing is left are no
    /// concern any more: the catalogue remembers a file as shared for longer than there is one.
    pub(crate) fn mark_shared(&self, files: impl Iterator<Item = FileId>) {
        let mut state = lock(&self.state);
        for file in files {
            if let Some(info) = state.files.get_mut(&file) {
                info.shared = true;
            }
        }
    }

    /// The files that hold anything reachable.
    pub(crate) fn live_files(&self) -> Vec<FileId> {
        lock(&self.state).files.keys().copied().collect()
    }

    /// The files that hold anything reachable, or wait to be removed.
    pub(crate) fn known_files(&self) -> BTreeSet<FileId> {
        let state = lock(&self.state);
        state.files.keys().chain(state.unlink.iter().map(|dead| &dead.file)).copied().collect()
    }

    /// Bytes of tables that no version needs and that are not given back yet.
    pub(crate) fn obsolete_bytes(&self) -> u64 {
        let state = lock(&self.state);
        let zombies = state.zombies.iter().map(|table| table.size_bytes).sum::<u64>();
        zombies + state.due_bytes()
    }

    /// Bytes that can be given back now.
    pub(crate) fn due_bytes(&self) -> u64 {
        lock(&self.state).due_bytes()
    }

    /// True while files must stay.
    pub(crate) fn is_held(&self) -> bool {
        lock(&self.state).holds > 0
    }

    /// True if there may be something to do.
    pub(crate) fn has_work(&self) -> bool {
        let state = lock(&self.state);
        !state.zombies.is_empty() || !state.unlink.is_empty() || !state.punch.is_empty()
    }

    /// True if something can be given back now: it is not pinned, and the last attempt did not
    /// fail.
    pub(crate) fn has_due_work(&self) -> bool {
        let state = lock(&self.state);
        let unpinned = |table: &Arc<TableMeta>| Arc::strong_count(table) == 1;
        state.holds == 0
            && !self.failing.load(Ordering::Relaxed)
            && (state.busy
                || !state.unlink.is_empty()
                || !state.punch.is_empty()
                || state.zombies.iter().any(unpinned))
    }

    /// Stops reclaiming until the hold is dropped.
    pub(crate) fn hold(&self) -> ReclaimHold<'_> {
        lock(&self.state).holds += 1;
        ReclaimHold(self)
    }

    /// Gives back what nobody pins any more, in steps: small ones and at `rate`, in bytes a second,
    /// if there is one, else one that is as large as a client who comes meanwhile may find under
    /// way. Returns when the next step is due. What fails is kept for another call.
    pub(crate) fn reclaim(&self, now: Instant, rate: Option<u64>) -> Result<Option<Instant>> {
        let (mut unlink, mut punch) = {
            let mut state = lock(&self.state);
            if state.holds > 0 {
                return Ok(None);
            }
            self.bury(&mut state);
            if rate.is_some() && now < state.next_step {
                return Ok(state.is_due().then_some(state.next_step));
            }
            state.busy = true;
            (std::mem::take(&mut state.unlink), coalesce(std::mem::take(&mut state.punch)))
        };
        let started = std::time::Instant::now();
        let step = rate.map_or(UNPACED_STEP_BYTES, |rate| {
            let bytes = (rate / (1_000_000_000 / STEP_NS)).max(STEP_BYTES_MIN);
            bytes.next_multiple_of(PAGE_BYTES)
        });
        let mut left = step;
        let mut kept = (Vec::new(), Vec::new());
        let mut result = Ok(());
        while left > 0
            && let Some(dead) = unlink.pop()
        {
            match self.unlink(dead, rate.map_or(u64::MAX, |_| left)) {
                Ok((done, rest)) => {
                    left = left.saturating_sub(done);
                    unlink.extend(rest);
                }
                Err(error) => {
                    kept.0.push(dead);
                    result = Err(error);
                }
            }
        }
        while left > 0
            && let Some((file, offset, length)) = punch.pop()
        {
            let piece = length.min(left);
            match self.punch(file, offset, piece, rate.is_some()) {
                Ok(()) => {
                    left -= piece;
                    punch.extend((piece < length).then_some((
                        file,
                        offset + piece,
                        length - piece,
                    )));
                }
                Err(error) => {
                    kept.1.push((file, offset, length));
                    result = Err(error);
                }
            }
        }
        let mut state = lock(&self.state);
        state.busy = false;
        state.unlink.extend(unlink.into_iter().chain(kept.0));
        state.punch.extend(punch.into_iter().chain(kept.1));
        // Somebody else may have buried the file meanwhile.
        let State { files, punch, .. } = &mut *state;
        punch.retain(|hole| files.contains_key(&hole.0));
        if let Some(rate) = rate {
            let ns = u128::from(step - left) * 1_000_000_000 / u128::from(rate.max(1));
            let pause = Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
            let took = started.elapsed();
            state.next_step = now + took + pause.max(took * STEP_REST);
        }
        self.failing.store(result.is_err(), Ordering::Relaxed);
        result.map(|()| state.is_due().then_some(state.next_step))
    }

    /// Gives `most` bytes of a dead file back, and the file if those are all. Returns how many
    /// they were, and what is left of the file.
    fn unlink(&self, dead: Dead, most: u64) -> Result<(u64, Option<Dead>)> {
        self.tables.evict_file(dead.file);
        let path = table_file_name(&self.directory, dead.file);
        let mut bytes = if dead.shared { 0 } else { dead.bytes };
        if most < u64::MAX && !dead.shared {
            match self.shrink(&path, dead, most) {
                Ok((by, Some(rest))) => return Ok((by, Some(rest))),
                Ok((all, None)) => bytes = all,
                // Then at once.
                Err(_) => {}
            }
        }
        match self.vfs.remove(&path) {
            Ok(()) => {
                self.counters.files_unlinked.fetch_add(1, Ordering::Relaxed);
                Ok((bytes, None))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((0, None)),
            Err(error) => Err(Error::io("remove", &path, error)),
        }
    }

    /// Gives `by` bytes of a dead file back, unless it may be unlinked with all that it has.
    /// Returns how many bytes it is about, and what is left of the file.
    fn shrink(&self, path: &Path, dead: Dead, by: u64) -> std::io::Result<(u64, Option<Dead>)> {
        let handle = self.vfs.open(path, OpenOptions { write: true, ..OpenOptions::READ })?;
        let length = handle.len()?;
        let left = length.saturating_sub(dead.emptied);
        if left <= by || handle.links()? > 1 {
            return Ok((left, None));
        }
        let mut rest = Dead { bytes: dead.bytes.saturating_sub(by), ..dead };
        if self.try_punch(handle.as_ref(), dead.emptied, by)? {
            rest.emptied += by;
        } else {
            handle.truncate(length - by)?;
        }
        handle.sync_data(IoClass::Reclaim)?;
        Ok((by, Some(rest)))
    }

    /// False if the file system cannot punch.
    fn try_punch(&self, file: &dyn VfsFile, offset: u64, length: u64) -> std::io::Result<bool> {
        if self.no_holes.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match file.punch_hole(offset, length, IoClass::Reclaim) {
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                self.no_holes.store(true, Ordering::Relaxed);
                Ok(false)
            }
            punched => punched.map(|()| true),
        }
    }

    /// Moves zombies that nobody pins to the lists of what to unlink and punch.
    fn bury(&self, state: &mut State) {
        let zombies = std::mem::take(&mut state.zombies);
        let (dead, pinned): (Vec<_>, Vec<_>) =
            zombies.into_iter().partition(|table| Arc::strong_count(table) == 1);
        state.zombies = pinned;
        for table in dead {
            self.tables.evict(table.id);
            let file = table.placement.file();
            let Some(info) = state.files.get_mut(&file) else { continue };
            info.tables = info.tables.saturating_sub(1);
            if info.tables == 0 {
                state.unlink.push(Dead {
                    file,
                    bytes: info.bytes,
                    emptied: 0,
                    shared: info.shared,
                });
                state.files.remove(&file);
                state.punch.retain(|hole| hole.0 != file);
            } else if let Placement::Slice { offset, length, .. } = table.placement
                && !info.shared
                && !self.no_holes.load(Ordering::Relaxed)
            {
                state.punch.push((file, offset, length.next_multiple_of(PAGE_BYTES)));
            }
        }
    }

    fn punch(&self, file: FileId, offset: u64, length: u64, sync: bool) -> Result<()> {
        let path = table_file_name(&self.directory, file);
        let options = OpenOptions { write: true, ..OpenOptions::READ };
        let punched = self.vfs.open(&path, options).and_then(|handle| {
            if handle.links()? > 1 || !self.try_punch(handle.as_ref(), offset, length)? {
                return Ok(false);
            }
            if sync {
                handle.sync_data(IoClass::Reclaim)?;
            }
            Ok(true)
        });
        match punched {
            Ok(false) => Ok(()),
            Ok(true) => {
                self.counters.bytes_punched.fetch_add(length, Ordering::Relaxed);
                self.counters.holes_punched.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => Err(Error::io("punch", &path, error)),
        }
    }
}

/// Joins neighbouring holes: fewer, larger extents for the file system to track.
fn coalesce(mut holes: Vec<(FileId, u64, u64)>) -> Vec<(FileId, u64, u64)> {
    holes.sort_unstable();
    let mut joined: Vec<(FileId, u64, u64)> = Vec::with_capacity(holes.len());
    for (file, offset, length) in holes {
        match joined.last_mut() {
            Some(last) if last.0 == file && last.1 + last.2 == offset => last.2 += length,
            _ => joined.push((file, offset, length)),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
