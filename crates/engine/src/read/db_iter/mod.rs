//! Turns internal entries into what a reader at a snapshot sees: one value for each live key,
//! within bounds, in both directions.
//!
//! The entries of a user key are neighbours, newest first. The iterator skips entries that are
//! newer than the snapshot. The newest of the others decides: a value is shown, a tombstone hides
//! the key, and an operand is merged with the older entries.
//!
//! 1. Forwards, `find_next` passes over entries of `saved_key`, which is done with, and entries
//!    that the snapshot does not see. It stops at a value, or merges operands (`merge_forward`).
//! 2. Backwards, `find_prev` comes to the oldest entry of a key. `newest_visible` walks to its
//!    newest visible entry, and `skip_back` goes on to the key before.
//! 3. After [`SEQUENTIAL_SKIP_MAX`] entries of one key, a seek goes past the rest.
//!
//! What must stay true:
//!
//! - Forwards, the internal cursor stands on the current entry, and key and value are its slices.
//! - Backwards, it stands before all entries of the current key. Key and value are copies. After a
//!   seek for the visible entry it stands on that entry instead (`on_entry`).
//! - On a merged value, it stands behind the merged entries, at or before the next key. Key and
//!   value are copies.
//! - A value in another file is read (`load_value`) when its entry is shown, and not before.
//! - An error makes the iterator invalid and stays in `status` until the next seek. The end of the
//!   data is never confused with a failure.

use sateen_control::{Comparator, SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::base::key;
use sateen_store::iter::bounds::IterBounds;

use crate::entry::Visible;
use crate::entry::malformed;
use crate::operators::merge::{Merging, Operands};

#[cfg(test)]
mod tests;

/// Number of entries of one key that are stepped over before a seek goes past the rest.
pub(crate) const SEQUENTIAL_SKIP_MAX: u32 = 8;

/// Counts of the internal work of an iterator since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DbIterStats {
    /// Entries that were skipped: newer than the snapshot, hidden by a newer entry, or tombstones.
    pub(crate) skipped: u64,
    /// Skipped entries that are tombstones.
    pub(crate) deletions: u64,
    /// Skipped entries that are newer than the snapshot.
    pub(crate) newer: u64,
    /// Merge operands that were merged.
    pub(crate) operands: u64,
    /// Seeks that went past many entries of one key.
    pub(crate) reseeks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    /// Forward, on a value that was merged from operands.
    Merged,
    Reverse,
}

/// An iterator over the user keys that are visible at a snapshot.
pub(crate) struct DbIter<I> {
    /// The internal cursor, over entries in the order of internal keys.
    iter: I,
    snapshot: SeqNo,
    bounds: IterBounds,
    comparator: Comparator,
    direction: Direction,
    valid: bool,
    /// Reverse only: the internal cursor stands on the current entry, and `saved_value` is not
    /// used.
    on_entry: bool,
    error: Option<Error>,
    /// Forward: the key whose older entries are being skipped. Otherwise: the current key.
    saved_key: Vec<u8>,
    /// Reverse and merged: the current value.
    saved_value: Vec<u8>,
    merging: Option<Merging>,
    operands: Operands,
    /// Buffer for the internal keys of seeks.
    seek_key: Vec<u8>,
    stats: DbIterStats,
    looks: Looks,
}

/// The entries that the present move has looked at, and how many it may skip.
#[derive(Clone, Copy, Debug, Default)]
struct Looks {
    /// Largest number of skipped entries; 0 for no limit.
    skipped_max: u64,
    seen: u64,
}

impl Looks {
    /// Counts an entry that the move looks at. Fails if the move has skipped too many before.
    #[inline]
    fn count(&mut self) -> Result<()> {
        if self.skipped_max > 0 {
            if self.seen > self.skipped_max {
                return Err(Error::TooManySkipped(self.skipped_max));
            }
            self.seen += 1;
        }
        Ok(())
    }
}

impl<I: InternalIterator> DbIter<I> {
    /// Returns an iterator over what is visible in `iter` at `snapshot`, within `bounds`. `merging`
    /// merges operands. It is invalid until the first seek.
    pub(crate) fn new(
        iter: I,
        snapshot: SeqNo,
        bounds: IterBounds,
        merging: Option<Merging>,
    ) -> DbIter<I> {
        DbIter {
            iter,
            snapshot,
            bounds,
            comparator: Comparator::BYTEWISE,
            direction: Direction::Forward,
            valid: false,
            on_entry: false,
            error: None,
            saved_key: Vec::new(),
            saved_value: Vec::new(),
            merging,
            operands: Operands::default(),
            seek_key: Vec::new(),
            stats: DbIterStats::default(),
            looks: Looks::default(),
        }
    }

    /// Has a move fail once it has skipped more than `max` entries; 0 for no limit.
    pub(crate) fn skipping_at_most(mut self, max: u64) -> DbIter<I> {
        self.looks.skipped_max = max;
        self
    }

    /// Has keys compared by `comparator`.
    pub(crate) fn compared_by(mut self, comparator: &Comparator) -> DbIter<I> {
        self.comparator = comparator.clone();
        self
    }

    /// Returns the lower and the upper bound.
    pub(crate) fn bounds(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        (self.bounds.lower(), self.bounds.upper())
    }

    /// Returns true if keys are compared as bytes.
    pub(crate) fn is_bytewise(&self) -> bool {
        self.comparator.is_bytewise()
    }

    /// Returns true if the cursor stands at `saved_key` or behind it.
    #[inline]
    fn is_at_or_behind_saved(&self) -> bool {
        self.comparator.compare(key::user_key(self.iter.key()), &self.saved_key).is_ge()
    }

    /// Returns true if the iterator stands on a key.
    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.valid
    }

    /// Makes the iterator invalid: iteration ends here.
    pub(crate) fn end(&mut self) {
        self.valid = false;
    }

    /// Makes the iterator invalid: what it stands on is `error`.
    pub(crate) fn fail(&mut self, error: Error) {
        self.finish(Err(error));
    }

    /// Fails with the error that made the iterator invalid, if one did.
    pub(crate) fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Returns the user key, which lives until the next move. Empty unless `valid`.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self.direction {
            _ if !self.valid => &[],
            Direction::Forward => key::user_key(self.iter.key()),
            Direction::Merged | Direction::Reverse => &self.saved_key,
        }
    }

    /// Returns the value, which lives until the next move. Empty unless `valid`.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self.direction {
            _ if !self.valid => &[],
            Direction::Merged => &self.saved_value,
            Direction::Reverse if !self.on_entry => &self.saved_value,
            _ => self.iter.value(),
        }
    }

    /// Returns the counts of internal work since the iterator was created.
    pub(crate) fn stats(&self) -> DbIterStats {
        self.stats
    }

    /// Moves to the first key.
    pub(crate) fn seek_to_first(&mut self) {
        let done = match self.bounds.lower() {
            Some(lower) => {
                set_key(&mut self.seek_key, lower, self.snapshot, ValueKind::MAX);
                self.seek_forward()
            }
            None => {
                self.reset(Direction::Forward);
                self.iter.seek_to_first().and_then(|()| self.find_next(false))
            }
        };
        self.finish(done);
    }

    /// Moves to the last key.
    pub(crate) fn seek_to_last(&mut self) {
        let done = match self.bounds.upper() {
            Some(upper) => {
                set_key(&mut self.seek_key, upper, SeqNo::MAX, ValueKind::MAX);
                self.seek_reverse()
            }
            None => {
                self.reset(Direction::Reverse);
                self.iter.seek_to_last().and_then(|()| self.find_prev())
            }
        };
        self.finish(done);
    }

    /// Moves to the first key at or behind `target`.
    pub(crate) fn seek(&mut self, target: &[u8]) {
        let start = match self.bounds.lower() {
            Some(lower) if self.bounds.is_below(target) => lower,
            _ => target,
        };
        set_key(&mut self.seek_key, start, self.snapshot, ValueKind::MAX);
        let done = self.seek_forward();
        self.finish(done);
    }

    /// Moves to the last key at or before `target`.
    pub(crate) fn seek_for_prev(&mut self, target: &[u8]) {
        match self.bounds.upper() {
            Some(upper) if self.bounds.is_above(target) => {
                set_key(&mut self.seek_key, upper, SeqNo::MAX, ValueKind::MAX);
            }
            _ => set_key(&mut self.seek_key, target, SeqNo(0), ValueKind::Delete),
        }
        let done = self.seek_reverse();
        self.finish(done);
    }

    /// Moves to the next key. Does nothing unless `valid`.
    #[inline]
    pub(crate) fn next(&mut self) {
        if self.valid {
            self.looks.seen = 0;
            let done = self.advance();
            self.finish(done);
        }
    }

    /// Moves to the previous key. Does nothing unless `valid`.
    #[inline]
    pub(crate) fn prev(&mut self) {
        if self.valid {
            self.looks.seen = 0;
            let done = self.retreat();
            self.finish(done);
        }
    }

    /// Moves to the next visible key.
    fn advance(&mut self) -> Result<()> {
        match self.direction {
            Direction::Reverse => {
                // The cursor may be anywhere. Seek behind the oldest entry of the current key.
                self.direction = Direction::Forward;
                self.on_entry = false;
                set_key(&mut self.seek_key, &self.saved_key, SeqNo(0), ValueKind::Delete);
                self.iter.seek(&self.seek_key)?;
                return self.find_next(true);
            }
            Direction::Merged => {
                self.direction = Direction::Forward;
                return self.find_next(true);
            }
            Direction::Forward => {}
        }
        // Even an entry with sequence number 0 may have a twin: a compaction that ended early
        // leaves a copy in the level above. So the key is always skipped.
        self.saved_key.clear();
        self.saved_key.extend_from_slice(key::user_key(self.iter.key()));
        self.iter.next()?;
        self.find_next(true)
    }

    /// Moves to the previous visible key.
    fn retreat(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.direction, Direction::Reverse) {
            Direction::Forward => {
                self.saved_key.clear();
                self.saved_key.extend_from_slice(key::user_key(self.iter.key()));
                self.skip_back()?;
            }
            // The cursor may be behind the last entry.
            Direction::Merged => self.seek_back()?,
            Direction::Reverse if self.on_entry => self.skip_back()?,
            Direction::Reverse => {}
        }
        self.find_prev()
    }

    /// Clears position and error before a seek.
    fn reset(&mut self, direction: Direction) {
        self.direction = direction;
        self.valid = false;
        self.on_entry = false;
        self.error = None;
        self.looks.seen = 0;
    }

    /// Records the error of a move.
    fn finish(&mut self, done: Result<()>) {
        if let Err(error) = done {
            self.valid = false;
            self.error = Some(error);
        }
    }

    fn seek_forward(&mut self) -> Result<()> {
        self.reset(Direction::Forward);
        if self.bounds.is_above(key::user_key(&self.seek_key)) {
            return Ok(());
        }
        self.iter.seek(&self.seek_key)?;
        self.find_next(false)
    }

    fn seek_reverse(&mut self) -> Result<()> {
        self.reset(Direction::Reverse);
        if self.bounds.is_below(key::user_key(&self.seek_key)) {
            return Ok(());
        }
        self.iter.seek_for_prev(&self.seek_key)?;
        self.find_prev()
    }

    /// Finds the first visible key at or behind the cursor. With `skip_saved`, entries of
    /// `saved_key` are hidden.
    fn find_next(&mut self, mut skip_saved: bool) -> Result<()> {
        self.valid = false;
        let mut skipped_in_a_row = 0;
        while self.iter.valid() {
            let entry = self.iter.key();
            let user_key = key::user_key(entry);
            if self.bounds.is_above(user_key) {
                return Ok(());
            }
            self.looks.count()?;
            // An older entry of a key that was shown or is deleted.
            if skip_saved && *user_key == *self.saved_key {
                skipped_in_a_row += 1;
            } else if key::seqno(entry) > self.snapshot {
                self.stats.newer += 1;
                if skipped_in_a_row > 0 && !skip_saved && *user_key == *self.saved_key {
                    skipped_in_a_row += 1;
                } else {
                    self.saved_key.clear();
                    self.saved_key.extend_from_slice(user_key);
                    skip_saved = false;
                    skipped_in_a_row = 1;
                }
            } else {
                match Visible::of(key::kind(entry))? {
                    Visible::Value => {
                        self.iter.load_value()?;
                        self.valid = true;
                        return Ok(());
                    }
                    Visible::Operand => {
                        self.merge_forward()?;
                        self.direction = Direction::Merged;
                        self.valid = true;
                        return Ok(());
                    }
                    Visible::Deleted => {
                        self.stats.deletions += 1;
                        self.saved_key.clear();
                        self.saved_key.extend_from_slice(user_key);
                        skip_saved = true;
                        skipped_in_a_row = 0;
                    }
                }
            }
            self.stats.skipped += 1;
            if skipped_in_a_row <= SEQUENTIAL_SKIP_MAX {
                self.iter.next()?;
                continue;
            }
            skipped_in_a_row = 0;
            self.stats.reseeks += 1;
            // Seek behind all entries of the key, or to the first one that the snapshot sees.
            let (seqno, kind) = if skip_saved {
                (SeqNo(0), ValueKind::Delete)
            } else {
                (self.snapshot, ValueKind::MAX)
            };
            set_key(&mut self.seek_key, &self.saved_key, seqno, kind);
            self.iter.seek(&self.seek_key)?;
        }
        Ok(())
    }

    /// Finds the last visible key at or before the cursor, which stands on the oldest entry of a
    /// key or on none.
    fn find_prev(&mut self) -> Result<()> {
        self.valid = false;
        while self.iter.valid() {
            let user_key = key::user_key(self.iter.key());
            if self.bounds.is_below(user_key) {
                return Ok(());
            }
            if self.bounds.is_above(user_key) {
                // Happens only after a seek to the upper bound, if there is a key that equals it,
                // with the largest sequence number.
                self.saved_key.clear();
                self.saved_key.extend_from_slice(user_key);
                self.skip_back()?;
                continue;
            }
            self.saved_key.clear();
            self.saved_key.extend_from_slice(user_key);
            if self.newest_visible()? {
                self.valid = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Merges the operand under the cursor with the older entries of its key into `saved_key` and
    /// `saved_value`. The cursor ends at the first entry that was not merged, or at the value that
    /// was the base.
    #[cold]
    fn merge_forward(&mut self) -> Result<()> {
        self.saved_key.clear();
        self.saved_key.extend_from_slice(key::user_key(self.iter.key()));
        self.operands.clear();
        while self.iter.valid() && *key::user_key(self.iter.key()) == *self.saved_key {
            let existing = match Visible::of(key::kind(self.iter.key()))? {
                Visible::Operand => {
                    self.operands.push_older(self.iter.value());
                    self.stats.skipped += 1;
                    self.stats.operands += 1;
                    self.iter.next()?;
                    continue;
                }
                Visible::Value => {
                    self.iter.load_value()?;
                    Some(self.iter.value())
                }
                Visible::Deleted => None,
            };
            self.saved_value =
                self.operands.merge(self.merging.as_ref(), &self.saved_key, existing)?;
            return Ok(());
        }
        self.saved_value = self.operands.merge(self.merging.as_ref(), &self.saved_key, None)?;
        Ok(())
    }

    /// Walks from the oldest entry of `saved_key` to its newest visible one, and on to before them
    /// all. Returns true if that entry is a value. The value is then in `saved_value`, or under the
    /// cursor if `on_entry`.
    fn newest_visible(&mut self) -> Result<bool> {
        self.on_entry = false;
        self.operands.clear();
        let mut found = false;
        let mut versions = 0;
        while self.iter.valid() {
            let entry = self.iter.key();
            if *key::user_key(entry) != *self.saved_key {
                break;
            }
            if key::seqno(entry) > self.snapshot {
                self.skip_back()?;
                break;
            }
            if versions == SEQUENTIAL_SKIP_MAX {
                return self.seek_newest_visible();
            }
            self.looks.count()?;
            self.stats.skipped += u64::from(versions > 0);
            versions += 1;
            match Visible::of(key::kind(entry))? {
                Visible::Value => {
                    found = true;
                    self.iter.load_value()?;
                    self.saved_value.clear();
                    self.saved_value.extend_from_slice(self.iter.value());
                }
                Visible::Deleted => {
                    self.stats.deletions += 1;
                    found = false;
                }
                // Operands are collected from the newest one on.
                Visible::Operand => return self.seek_newest_visible(),
            }
            self.iter.prev()?;
        }
        self.stats.skipped += u64::from(versions > 0 && !found);
        Ok(found)
    }

    /// Does what [`Self::newest_visible`] does for a key with many entries, or with operands: one
    /// seek instead of many steps.
    #[cold]
    fn seek_newest_visible(&mut self) -> Result<bool> {
        self.stats.reseeks += 1;
        set_key(&mut self.seek_key, &self.saved_key, self.snapshot, ValueKind::MAX);
        self.iter.seek(&self.seek_key)?;
        if !self.iter.valid() || *key::user_key(self.iter.key()) != *self.saved_key {
            // The entry was just seen, and the sources of an iterator do not change.
            return Err(malformed("a version of a key vanished between two reads"));
        }
        match Visible::of(key::kind(self.iter.key()))? {
            Visible::Value => {
                self.iter.load_value()?;
                self.on_entry = true;
                Ok(true)
            }
            Visible::Deleted => {
                self.skip_back()?;
                Ok(false)
            }
            Visible::Operand => {
                self.merge_forward()?;
                self.seek_back()?;
                Ok(true)
            }
        }
    }

    /// Moves the cursor from anywhere to before all entries of `saved_key`.
    fn seek_back(&mut self) -> Result<()> {
        set_key(&mut self.seek_key, &self.saved_key, SeqNo::MAX, ValueKind::MAX);
        self.iter.seek_for_prev(&self.seek_key)?;
        // There may be an entry with exactly that sequence number.
        self.skip_back()
    }

    /// Moves the cursor back past all entries of `saved_key`.
    fn skip_back(&mut self) -> Result<()> {
        self.on_entry = false;
        let mut skipped = 0;
        while self.iter.valid() && self.is_at_or_behind_saved() {
            self.looks.count()?;
            if skipped == SEQUENTIAL_SKIP_MAX {
                self.stats.reseeks += 1;
                set_key(&mut self.seek_key, &self.saved_key, SeqNo::MAX, ValueKind::MAX);
                self.iter.seek_for_prev(&self.seek_key)?;
            } else {
                self.iter.prev()?;
            }
            skipped += 1;
            self.stats.skipped += 1;
        }
        Ok(())
    }
}

#[inline]
fn set_key(out: &mut Vec<u8>, user_key: &[u8], seqno: SeqNo, kind: ValueKind) {
    out.clear();
    key::append(out, user_key, seqno, kind);
}
