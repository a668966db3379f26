//! The range tombstones of a memtable, beside its entries.
//!
//! 1. [`Ranges::insert`] copies the recent tombstones, adds one, and publishes the new state. Above
//!    [`RECENT_MAX`] they are merged into the ordered fragments.
//! 2. [`Ranges::over`] looks through the recent ones and searches the fragments.
//! 3. [`Ranges::all`] merges the recent ones and returns the fragments, for iterators and flushes.
//!
//! What must stay true: readers take no lock. A published state never changes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use sateen_control::SeqNo;
use sateen_control::version::{RangeTombstone, RangeTombstones};

/// Number of tombstones that are searched one by one before they are merged with the others.
const RECENT_MAX: usize = 64;

/// The range tombstones of a memtable.
#[derive(Default)]
pub(super) struct Ranges {
    state: ArcSwap<RangesState>,
    /// Held by the thread that makes the next state.
    turn: Mutex<()>,
    bytes: AtomicUsize,
}

/// The tombstones at one moment.
#[derive(Default)]
struct RangesState {
    /// The fragments of all older tombstones, sorted.
    ordered: Arc<RangeTombstones>,
    /// The newest tombstones, unsorted.
    recent: Vec<RangeTombstone>,
}

impl Ranges {
    /// Adds a tombstone.
    pub(super) fn insert(&self, tombstone: RangeTombstone) {
        let bytes = 2 * size_of::<RangeTombstone>()
            + tombstone.begin.bytes().len()
            + tombstone.end.bytes().len();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state.load();
        let mut recent = state.recent.clone();
        recent.push(tombstone);
        let next = if recent.len() > RECENT_MAX {
            let ordered = Arc::new(state.ordered.changed(&recent, &[]));
            RangesState { ordered, recent: Vec::new() }
        } else {
            RangesState { ordered: state.ordered.clone(), recent }
        };
        self.state.store(Arc::new(next));
    }

    /// Returns the sequence number of the newest tombstone over `user_key` that a reader at `as_of`
    /// sees.
    pub(super) fn over(&self, user_key: &[u8], as_of: SeqNo) -> Option<SeqNo> {
        let state = self.state.load();
        let covers = |one: &&RangeTombstone| {
            one.seqno <= as_of && one.begin <= *user_key && *user_key < one.end
        };
        let recent = state.recent.iter().filter(covers).map(|one| one.seqno).max();
        recent.max(state.ordered.over(user_key, as_of))
    }

    /// Returns all tombstones.
    pub(super) fn all(&self) -> Arc<RangeTombstones> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state.load();
        if state.recent.is_empty() {
            return state.ordered.clone();
        }
        let ordered = Arc::new(state.ordered.changed(&state.recent, &[]));
        self.state.store(Arc::new(RangesState { ordered: ordered.clone(), recent: Vec::new() }));
        ordered
    }

    /// Returns about the bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
