//! What the chores are to do next, as the rest of the database tells them, and what wakes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sateen_control::version::{TableMeta, Version};
use sateen_control::{ColumnFamilyId, Epoch, FileId, Instant, LogNumber, SeqNo};
use sateen_store::base::locks::lock_timed;
use sateen_store::base::sync::atomic::AtomicU64;
use sateen_store::base::sync::{Condvar, Mutex, lock};

use super::space::Sparse;

/// A table, and where it was.
pub(crate) struct ToOpen {
    pub(crate) family: ColumnFamilyId,
    pub(crate) level: u8,
    pub(crate) epoch: Epoch,
    pub(crate) table: Arc<TableMeta>,
}

#[derive(Default)]
pub(crate) struct BoardState {
    pub(crate) poked: bool,
    pub(crate) stop: bool,
    /// Outputs that a dead manifest may name: removed once a new manifest is current.
    pub(crate) after_roll: Vec<FileId>,
    /// Logs that nobody writes or reads, but that a manifest may name: removed once none does that
    /// counts.
    pub(crate) logs_left: Vec<LogNumber>,
    pub(crate) manifest_dead: bool,
    /// Seals counted and memory kept for memtables when that was last looked at, and when one of
    /// the two changed.
    pub(crate) kept_seen: ((u64, usize), u64),
    /// Tables that were there at open and are opened one after the other, the last one first.
    pub(crate) to_open: Vec<ToOpen>,
    pub(crate) sparse: Sparse,
    /// Range tombstones that all readers see, as control was told.
    pub(crate) ranges_seen: BTreeMap<ColumnFamilyId, SeqNo>,
    /// When there is something to do although nobody says so.
    pub(crate) next_at: Option<Instant>,
    /// Bytes that jobs, open tables and the like took lately.
    pub(crate) other_memory: u64,
    /// Bytes that the cache gave up since free memory was given back to the system last, and when
    /// that was.
    pub(crate) given_up: (u64, u64),
    /// Since when the edit of a flush was seen to wait for a barrier.
    pub(crate) edits_wait_since: Option<Instant>,
    /// Since when there was nothing to do.
    pub(crate) rest_since: Option<Instant>,
    pub(crate) mend_at_ns: u64,
    pub(crate) mend_wait: Duration,
}

/// Wakes the chores' thread and remembers what is to be done.
#[derive(Default)]
pub(crate) struct ChoreBoard {
    pub(crate) state: Mutex<BoardState>,
    pub(crate) wake: Condvar,
    pub(crate) last_sync_ns: AtomicU64,
    /// So many wait until nothing is left to do.
    pub(crate) waiting_for_rest: AtomicU64,
    /// Held by who tries to make the database work again.
    pub(crate) mending: Mutex<()>,
}

impl ChoreBoard {
    /// There may be something to do.
    pub(crate) fn poke(&self) {
        lock_timed(&self.state).poked = true;
        self.wake.notify_one();
    }

    pub(crate) fn stop(&self) {
        lock(&self.state).stop = true;
        self.wake.notify_one();
    }

    /// Has the tables of `version` opened, so that no client waits for their indexes; those of
    /// upper levels, which most reads look at, first.
    pub(crate) fn open_tables(&self, version: &Version) {
        let family = version.column_family();
        let tables = version.tables().map(|(level, epoch, table)| {
            let table = table.clone();
            ToOpen { family, level, epoch, table }
        });
        let to_open = &mut lock(&self.state).to_open;
        to_open.extend(tables);
        to_open.sort_by_key(|open| std::cmp::Reverse(open.level));
    }

    /// The manifest is dead; `file` may be named in it.
    pub(crate) fn after_roll(&self, files: &[FileId]) {
        let mut state = lock(&self.state);
        state.manifest_dead = true;
        state.after_roll.extend(files);
    }

    pub(crate) fn manifest_is_dead(&self) -> bool {
        lock(&self.state).manifest_dead
    }

    /// There is something to do at this moment, whether somebody says so or not.
    pub(crate) fn again_at(&self, at: Option<Instant>) {
        let mut state = lock(&self.state);
        state.next_at = state.next_at.into_iter().chain(at).min();
    }
}
