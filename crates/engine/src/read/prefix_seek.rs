//! Prefix seeks: an iterator that stays within one prefix skips tables whose filters say that they
//! have no key with it.
//!
//! 1. [`PrefixSeek::seek`] takes the prefix of the target. If the bounds, or
//!    `prefix_same_as_start`, keep the iterator within that prefix, it is the wanted prefix
//!    ([`Wanted`]). Otherwise there is none.
//! 2. The iterators that open tables ask the filter ([`Wanted::ask`]) and skip tables without the
//!    prefix.
//! 3. Before a step that may leave the prefix, [`PrefixSeek::leaves`] ends the skipping, and the
//!    caller seeks again.
//!
//! What must stay true: a table is skipped only while the iterator shows keys of the prefix and no
//! others.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use sateen_control::Comparator;
use sateen_control::version::TableMeta;
use sateen_store::base::prefix::Prefixing;
use sateen_store::iter::bounds::IterBounds;
use sateen_store::table::{Table, hash_key};

/// The wanted prefix: the iterator shows only keys with this prefix at present.
pub(crate) struct Wanted {
    prefixing: Prefixing,
    prefix: Vec<u8>,
    hash: u64,
}

impl Wanted {
    /// Returns whether the table may have the prefix, by its filter; `None` if the table has no
    /// filter for prefixes of this kind.
    pub(crate) fn ask(&self, table: &Table) -> Option<bool> {
        table.prefix_filter_says(&self.prefixing, self.hash)
    }

    /// Returns true if the table, and every later one, comes after the prefix.
    pub(crate) fn is_before(&self, table: &TableMeta) -> bool {
        table.smallest > *self.prefix && !table.smallest.bytes().starts_with(&self.prefix)
    }

    /// Returns true if the table, and every earlier one, comes before the prefix.
    pub(crate) fn is_behind(&self, table: &TableMeta) -> bool {
        table.largest < *self.prefix
    }
}

/// The wanted prefix, shared with the iterators that open tables.
pub(crate) type SharedWanted = Arc<ArcSwapOption<Wanted>>;

/// The state of an iterator that seeks by prefix.
pub(crate) struct PrefixSeek {
    prefixing: Prefixing,
    wanted: SharedWanted,
    bounds: IterBounds,
    /// The option `prefix_same_as_start`: iteration ends at the first key with another prefix.
    same_as_start: bool,
    /// The prefix that all keys of the iteration have, with `same_as_start`.
    start: Option<Vec<u8>>,
    /// Whether the iterator stays within the wanted prefix, moving forwards and backwards.
    stays: (bool, bool),
    /// True if keys are compared bytewise. Otherwise the keys of a prefix need not be neighbours,
    /// and no table is skipped.
    bytewise: bool,
}

impl PrefixSeek {
    pub(crate) fn new(
        prefixing: Prefixing,
        bounds: IterBounds,
        same_as_start: bool,
        comparator: &Comparator,
    ) -> (PrefixSeek, SharedWanted) {
        let wanted = SharedWanted::default();
        let seek = PrefixSeek {
            prefixing,
            wanted: wanted.clone(),
            bounds,
            same_as_start,
            start: None,
            stays: (false, false),
            bytewise: comparator.is_bytewise(),
        };
        (seek, wanted)
    }

    /// Prepares for a seek to `target`.
    pub(crate) fn seek(&mut self, target: &[u8], backwards: bool) {
        self.start = None;
        // A seek below the lower bound begins at the bound.
        let target = match self.bounds.lower() {
            Some(lower) if !self.same_as_start && self.bounds.is_below(target) => lower,
            _ => target,
        };
        let prefix = self.prefixing.of(target).map(<[u8]>::to_vec);
        let Some(prefix) = prefix else { return self.want(None) };
        let lower = self.bounds.lower().is_some_and(|l| self.prefixing.holds_from(&prefix, l));
        let upper = self.bounds.upper().is_some_and(|u| self.prefixing.holds_up_to(&prefix, u));
        self.stays = (upper || self.same_as_start, lower || self.same_as_start);
        if self.same_as_start {
            self.start = Some(prefix.clone());
        }
        let stays = if backwards { self.stays.1 } else { self.stays.0 };
        self.want(stays.then_some(prefix));
    }

    /// Prepares for a seek to the first or the last key.
    pub(crate) fn seek_to_end(&mut self) {
        match self.bounds.lower().map(<[u8]>::to_vec) {
            Some(lower) if !self.same_as_start => {
                self.seek(&lower, false);
                if self.stays != (true, true) {
                    self.want(None);
                }
            }
            _ => {
                self.start = None;
                self.want(None);
            }
        }
    }

    /// Notes that a seek to the first or the last key has found `key`.
    pub(crate) fn found(&mut self, key: &[u8]) {
        if self.same_as_start {
            self.start = self.prefixing.of(key).map(<[u8]>::to_vec);
        }
    }

    /// Returns true if iteration ends before `key`.
    pub(crate) fn ends_before(&self, key: &[u8]) -> bool {
        let start = self.start.as_deref();
        start.is_some_and(|start| self.prefixing.of(key) != Some(start))
    }

    /// Prepares for a step. Returns true if the caller must seek to the current key first, because
    /// the step may lead to tables that were skipped.
    pub(crate) fn leaves(&mut self, backwards: bool) -> bool {
        let stays = if backwards { self.stays.1 } else { self.stays.0 };
        if stays || self.wanted.load().is_none() {
            return false;
        }
        self.want(None);
        true
    }

    /// Sets the wanted prefix. With `None` no table is skipped.
    fn want(&mut self, prefix: Option<Vec<u8>>) {
        let prefixing = &self.prefixing;
        let wanted = prefix.filter(|_| self.bytewise).map(|prefix| {
            let hash = hash_key(&prefix);
            Arc::new(Wanted { prefixing: prefixing.clone(), prefix, hash })
        });
        self.wanted.store(wanted);
    }
}
