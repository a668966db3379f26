//! What a seek by prefix spares: tables that have no key of the prefix are passed by, as their
//! filters say.
//!
//! What must stay true: a table is passed by only while the iterator shows keys of that prefix and
//! no others; before it goes beyond, it seeks again without.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use sateen_control::Comparator;
use sateen_control::version::TableMeta;
use sateen_store::base::prefix::Prefixing;
use sateen_store::iter::bounds::IterBounds;
use sateen_store::table::{Table, hash_key};

/// The prefix of all keys that are wanted for now.
pub(crate) struct Wanted {
    prefixing: Prefixing,
    prefix: Vec<u8>,
    hash: u64,
}

impl Wanted {
    /// What the table's filter says; `None` if it has none for these prefixes.
    pub(crate) fn ask(&self, table: &Table) -> Option<bool> {
        table.prefix_filter_says(&self.prefixing, self.hash)
    }

    /// Whether a table, and all behind it, comes after the prefix.
    pub(crate) fn is_before(&self, table: &TableMeta) -> bool {
        table.smallest > *self.prefix && !table.smallest.bytes().starts_with(&self.prefix)
    }

    /// Whether a table, and all before it, comes before the prefix.
    pub(crate) fn is_behind(&self, table: &TableMeta) -> bool {
        table.largest < *self.prefix
    }
}

/// What is wanted, as those who open tables see it.
pub(crate) type SharedWanted = Arc<ArcSwapOption<Wanted>>;

/// How an iterator seeks by prefix.
pub(crate) struct PrefixSeek {
    prefixing: Prefixing,
    wanted: SharedWanted,
    bounds: IterBounds,
    /// Iteration ends with the prefix.
    same_as_start: bool,
    /// The prefix that it ends with.
    start: Option<Vec<u8>>,
    /// Whether the bounds keep the iterator at what is wanted, forwards and backwards.
    stays: (bool, bool),
    /// Otherwise keys of a prefix need not stand together, and no table is passed by.
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

    /// Before a seek to `target`.
    pub(crate) fn seek(&mut self, target: &[u8], backwards: bool) {
        self.start = None;
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

    /// Before a seek to the first or the last key.
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

    /// After that seek, which found `key`.
    pub(crate) fn found(&mut self, key: &[u8]) {
        if self.same_as_start {
            self.start = self.prefixing.of(key).map(<[u8]>::to_vec);
        }
    }

    /// Whether iteration ends before `key`.
    pub(crate) fn ends_before(&self, key: &[u8]) -> bool {
        let start = self.start.as_deref();
        start.is_some_and(|start| self.prefixing.of(key) != Some(start))
    }

    /// Before a step. True if the iterator has to seek to where it is: the step may lead to what
    /// was passed by.
    pub(crate) fn leaves(&mut self, backwards: bool) -> bool {
        let stays = if backwards { self.stays.1 } else { self.stays.0 };
        if stays || self.wanted.load().is_none() {
            return false;
        }
        self.want(None);
        true
    }

    fn want(&mut self, prefix: Option<Vec<u8>>) {
        let prefixing = &self.prefixing;
        let wanted = prefix.filter(|_| self.bytewise).map(|prefix| {
            let hash = hash_key(&prefix);
            Arc::new(Wanted { prefixing: prefixing.clone(), prefix, hash })
        });
        self.wanted.store(wanted);
    }
}
