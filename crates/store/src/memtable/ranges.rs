//! The deletions of ranges in a memtable, beside its entries. Readers take no lock; each new one
//! makes a new state, of which only the newest few are copied.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use sateen_control::SeqNo;
use sateen_control::version::{RangeTombstone, RangeTombstones};

/// So many are looked through one by one before they are put in order with the others.
const RECENT_MAX: usize = 64;

/// Deletions of ranges that grow.
#[derive(Default)]
pub(super) struct Ranges {
    state: ArcSwap<State>,
    /// Held by who makes the next state.
    turn: Mutex<()>,
    bytes: AtomicUsize,
}

#[derive(Default)]
struct State {
    ordered: Arc<RangeTombstones>,
    recent: Vec<RangeTombstone>,
}

impl Ranges {
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
            State { ordered, recent: Vec::new() }
        } else {
            State { ordered: state.ordered.clone(), recent }
        };
        self.state.store(Arc::new(next));
    }

    /// The newest one over `user_key` that a reader at `as_of` sees.
    pub(super) fn over(&self, user_key: &[u8], as_of: SeqNo) -> Option<SeqNo> {
        let state = self.state.load();
        let covers = |one: &&RangeTombstone| {
            one.seqno <= as_of && one.begin <= *user_key && *user_key < one.end
        };
        let recent = state.recent.iter().filter(covers).map(|one| one.seqno).max();
        recent.max(state.ordered.over(user_key, as_of))
    }

    /// All of them.
    pub(super) fn all(&self) -> Arc<RangeTombstones> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state.load();
        if state.recent.is_empty() {
            return state.ordered.clone();
        }
        let ordered = Arc::new(state.ordered.changed(&state.recent, &[]));
        self.state.store(Arc::new(State { ordered: ordered.clone(), recent: Vec::new() }));
        ordered
    }

    /// Bytes of memory, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
