//! The board of the chores: what the rest of the database has noted for them to do, and what wakes
//! their thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sateen_control::version::{TableMeta, Version};
use sateen_control::{ColumnFamilyId, Epoch, FileId, Instant, LogNumber, SeqNo};
use sateen_store::base::sync::atomic::AtomicU64;
use sateen_store::base::sync::{Mutex, lock};

use super::space::Sparse;
use crate::runtime::Place;

/// A table that is to be opened, and its place in the tree.
pub(crate) struct ToOpen {
    pub(crate) family: ColumnFamilyId,
    pub(crate) level: u8,
    pub(crate) epoch: Epoch,
    pub(crate) table: Arc<TableMeta>,
}

/// The notes on the board, under its lock.
#[derive(Default)]
pub(crate) struct BoardState {
    /// Outputs that a dead manifest may name. They are removed once a new manifest is current.
    pub(crate) after_roll: Vec<FileId>,
    /// WALs that are not in use any more, but that a manifest may name. They are removed once no
    /// manifest needs them.
    pub(crate) logs_left: Vec<LogNumber>,
    /// True if the manifest takes no more edits.
    pub(crate) manifest_dead: bool,
    /// The numbers of seals and of chunks that memtables have needed as last seen, and the time in
    /// nanoseconds at which one of them last changed.
    pub(crate) kept_seen: ((u64, u64), u64),
    /// Tables that were there at open and are still to be opened. The last one is next.
    pub(crate) to_open: Vec<ToOpen>,
    /// Files with few live bytes, as last reported to control.
    pub(crate) sparse: Sparse,
    /// The newest range tombstone of each column family that all readers see, as last reported to
    /// control.
    pub(crate) ranges_seen: BTreeMap<ColumnFamilyId, SeqNo>,
    /// The time of the next round, unless something wakes the thread before.
    pub(crate) next_at: Option<Instant>,
    /// Recent peak of the bytes that jobs, open tables and the like take. It fades over time.
    pub(crate) other_memory: u64,
    /// Bytes that the cache has given up since free memory was last returned to the system, and the
    /// time of that return in nanoseconds.
    pub(crate) given_up: (u64, u64),
    /// When an edit was first seen to wait for a barrier.
    pub(crate) edits_wait_since: Option<Instant>,
    /// When the database was first seen to have nothing to do.
    pub(crate) rest_since: Option<Instant>,
    /// When the next attempt to recover a degraded database is due.
    pub(crate) mend_at_ns: u64,
    /// The last pause between two attempts; zero if the database is not degraded.
    pub(crate) mend_wait: Duration,
}

/// The board: it calls a thread for the chores and keeps what is to be done.
pub(crate) struct ChoreBoard {
    pub(crate) state: Mutex<BoardState>,
    place: Place,
    /// When the WAL was last synced by interval.
    pub(crate) last_sync_ns: AtomicU64,
    /// Number of clients that wait until no background work is left.
    pub(crate) waiting_for_rest: AtomicU64,
    /// Held by the thread that tries to recover the database.
    pub(crate) mending: Mutex<()>,
}

impl ChoreBoard {
    pub(crate) fn new(place: Place) -> ChoreBoard {
        ChoreBoard {
            state: Mutex::default(),
            place,
            last_sync_ns: AtomicU64::new(0),
            waiting_for_rest: AtomicU64::new(0),
            mending: Mutex::new(()),
        }
    }

    /// Calls for the chores, as there may be something to do.
    pub(crate) fn poke(&self) {
        self.place.call_for_chores();
    }

    /// Puts the tables of `version` on the list of those to be opened, so that no client waits for
    /// their indexes. Tables of upper levels, into which most reads look, come first.
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

    /// Marks the manifest as dead. It may name `files`, so they are removed after the next roll.
    pub(crate) fn after_roll(&self, files: &[FileId]) {
        let mut state = lock(&self.state);
        state.manifest_dead = true;
        state.after_roll.extend(files);
    }

    /// Returns true if a failed edit has marked the manifest as dead.
    pub(crate) fn manifest_is_dead(&self) -> bool {
        lock(&self.state).manifest_dead
    }

    /// Sets the time of the next round to `at`, if that is earlier.
    pub(crate) fn again_at(&self, at: Option<Instant>) {
        lock(&self.state).again_at(at);
    }
}

impl BoardState {
    /// Does [`ChoreBoard::again_at`].
    pub(crate) fn again_at(&mut self, at: Option<Instant>) {
        self.next_at = self.next_at.into_iter().chain(at).min();
    }
}
