//! Giving space back. A table that no version names is a *zombie* while anything still pins it;
//! afterwards its bytes are punched out of its file, or the file is unlinked once all its tables
//! are dead. This is the only place that deletes or punches (ARCHITECTURE.md, invariant 5).
//!
//! What must stay true: a table becomes a zombie only after the edit that removes it is durable; a
//! pinned table is seen by its reference count (every version, job and iterator that can reach it
//! holds its `Arc`, and nobody can get a new one from here); a file that a checkpoint shares is
//! never punched; the disk is touched outside the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sateen_control::version::{Placement, TableMeta};
use sateen_control::{FileId, IoClass};

use super::table_file_name;
use crate::error::{Error, Result};
use crate::read::table_cache::TableCache;
use crate::sync::lock;
use crate::vfs::Vfs;

const PAGE_BYTES: u64 = 4096;

#[derive(Default)]
struct FileState {
    /// Tables in some version, or zombies.
    tables: u64,
    /// Hard-linked by a checkpoint.
    shared: bool,
}

#[derive(Default)]
struct State {
    files: BTreeMap<FileId, FileState>,
    zombies: Vec<Arc<TableMeta>>,
    /// Files of which nothing is live; the unlink has not succeeded yet.
    unlink: Vec<FileId>,
    /// Holes that could not be punched yet.
    punch: Vec<(FileId, u64, u64)>,
    /// Somebody is at it.
    busy: bool,
    /// While above zero nothing is punched or unlinked: a checkpoint is linking files.
    holds: u32,
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
            state.files.entry(table.placement.file()).or_default().tables += 1;
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
        state.files.keys().chain(&state.unlink).copied().collect()
    }

    /// Bytes of tables that no version needs and that are not given back yet.
    pub(crate) fn obsolete_bytes(&self) -> u64 {
        let state = lock(&self.state);
        let zombies = state.zombies.iter().map(|table| table.size_bytes).sum::<u64>();
        zombies + state.punch.iter().map(|hole| hole.2).sum::<u64>()
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

    /// Gives back what nobody pins any more. What fails is kept for the next call.
    pub(crate) fn reclaim(&self) -> Result<()> {
        let (unlink, punch) = {
            let mut state = lock(&self.state);
            if state.holds > 0 {
                return Ok(());
            }
            self.bury(&mut state);
            state.busy = true;
            (std::mem::take(&mut state.unlink), std::mem::take(&mut state.punch))
        };
        let mut result = Ok(());
        let mut keep_unlink = Vec::new();
        for file in unlink {
            self.tables.evict_file(file);
            let path = table_file_name(&self.directory, file);
            match self.vfs.remove(&path) {
                Ok(()) => {
                    self.counters.files_unlinked.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    keep_unlink.push(file);
                    result = Err(Error::io("remove", &path, error));
                }
            }
        }
        let mut keep_punch = Vec::new();
        for (file, offset, length) in coalesce(punch) {
            if let Err(error) = self.punch(file, offset, length) {
                keep_punch.push((file, offset, length));
                result = Err(error);
            }
        }
        let mut state = lock(&self.state);
        state.busy = false;
        state.unlink.extend(keep_unlink);
        state.punch.extend(keep_punch);
        self.failing.store(result.is_err(), Ordering::Relaxed);
        result
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
                state.files.remove(&file);
                state.punch.retain(|hole| hole.0 != file);
                state.unlink.push(file);
            } else if let Placement::Slice { offset, length, .. } = table.placement
                && !info.shared
                && !self.no_holes.load(Ordering::Relaxed)
            {
                state.punch.push((file, offset, length.next_multiple_of(PAGE_BYTES)));
            }
        }
    }

    fn punch(&self, file: FileId, offset: u64, length: u64) -> Result<()> {
        let path = table_file_name(&self.directory, file);
        let options = crate::vfs::OpenOptions { write: true, ..crate::vfs::OpenOptions::READ };
        let punched = self
            .vfs
            .open(&path, options)
            .and_then(|handle| handle.punch_hole(offset, length, IoClass::Reclaim));
        match punched {
            Ok(()) => {
                self.counters.bytes_punched.fetch_add(length, Ordering::Relaxed);
                self.counters.holes_punched.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                self.no_holes.store(true, Ordering::Relaxed);
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
mod tests {
    use super::*;

    #[test]
    fn neighbouring_holes_become_one() {
        let file = FileId(7);
        let holes = vec![(file, 8192, 4096), (FileId(8), 12288, 4096), (file, 4096, 4096)];
        let joined = coalesce(holes);
        assert_eq!(joined, vec![(file, 4096, 8192), (FileId(8), 12288, 4096)]);
    }
}
