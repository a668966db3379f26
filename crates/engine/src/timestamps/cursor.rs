//! The cursor over keys with timestamps.
//!
//! The stored keys are in the order of the keys, and newer versions of a key come first. Forwards:
//!
//! 1. [`TimestampedCursor::seek`] goes to the first version of a key that is not after `at`.
//! 2. `settle_forwards` passes versions that are after `at`, and keys that are deleted as of it.
//! 3. [`TimestampedCursor::next`] passes the older versions of the present key, then does step 2.
//!
//! Backwards, the oldest version of a key comes first. If it is not after `at`, a seek finds the
//! one that is visible.

use sateen_control::Comparator;
use sateen_store::base::error::Result;

use super::entry::{Version, is_before, split, version_of};
use crate::db::cursor::Cursor;
use crate::db::family::ColumnFamily;
use crate::options::ReadOptions;

/// A cursor over the keys of a column family with timestamps. Made by
/// [`TimestampedFamily::cursor`](super::TimestampedFamily::cursor).
pub struct TimestampedCursor {
    /// It stands on the version that is shown.
    stored: Cursor,
    comparator: Comparator,
    at: Vec<u8>,
    /// The oldest timestamp, if all versions are shown.
    from: Option<Vec<u8>>,
    valid: bool,
}

impl TimestampedCursor {
    pub(super) fn new(
        family: &ColumnFamily,
        at: &[u8],
        from: Option<&[u8]>,
        options: &ReadOptions,
    ) -> Result<TimestampedCursor> {
        let comparator = family.comparator().clone();
        // The newest timestamp that there can be, as in RocksDB: all versions of a key are after
        // it.
        let newest = vec![0xff; comparator.timestamp_bytes()];
        let bound = |key: &Option<Vec<u8>>| key.as_ref().map(|key| [&**key, &newest].concat());
        let options = ReadOptions {
            lower_bound: bound(&options.lower_bound),
            upper_bound: bound(&options.upper_bound),
            ..options.clone()
        };
        let (at, from) = (at.to_vec(), from.map(<[u8]>::to_vec));
        let stored = family.cursor(&options)?;
        Ok(TimestampedCursor { stored, comparator, at, from, valid: false })
    }

    /// Returns true if the cursor stands on a key.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// Returns the error that made the cursor invalid, if one did.
    ///
    /// # Errors
    /// That error.
    pub fn status(&self) -> Result<()> {
        self.stored.status()
    }

    /// Returns the key, without its timestamp; an empty one unless `valid`.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.parts().0
    }

    /// Returns the timestamp of what is shown; an empty one unless `valid`.
    #[must_use]
    pub fn timestamp(&self) -> &[u8] {
        self.parts().1
    }

    /// Returns the key with its timestamp; an empty one unless `valid`.
    #[must_use]
    pub fn key_with_timestamp(&self) -> &[u8] {
        if self.valid { self.stored.key() } else { &[] }
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        if !self.valid {
            return (&[], &[]);
        }
        split(self.stored.key(), self.comparator.timestamp_bytes()).unwrap_or_default()
    }

    /// Returns the value; an empty one for a deletion and unless `valid`.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        if !self.valid {
            return &[];
        }
        match version_of(self.stored.value()) {
            Version::Value(value) => value,
            Version::Deleted => &[],
        }
    }

    /// Returns true if it stands on a deletion, which it shows only with all versions.
    #[must_use]
    pub fn is_deletion(&self) -> bool {
        self.valid && version_of(self.stored.value()) == Version::Deleted
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        self.stored.seek_to_first();
        self.settle_forwards();
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        self.stored.seek_to_last();
        self.settle_backwards();
    }

    /// Moves to the first key at or after `key`.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        self.stored.seek([key.as_ref(), &self.at].concat());
        self.settle_forwards();
    }

    /// Moves to the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) {
        let oldest = vec![0; self.comparator.timestamp_bytes()];
        self.stored.seek_for_prev([key.as_ref(), &oldest].concat());
        self.settle_backwards();
    }

    /// Moves to the next key. Does nothing unless `valid`.
    pub fn next(&mut self) {
        if !self.valid {
            return;
        }
        if self.from.is_some() {
            self.stored.next();
        } else {
            self.leave_key(false);
        }
        self.settle_forwards();
    }

    /// Moves to the previous key. Does nothing unless `valid`.
    pub fn prev(&mut self) {
        if !self.valid {
            return;
        }
        if self.from.is_some() {
            self.stored.prev();
        } else {
            self.leave_key(true);
        }
        self.settle_backwards();
    }

    /// Returns the key and the timestamp of the stored cursor; `None` unless it is at a version.
    fn stands(&self) -> Option<(&[u8], &[u8])> {
        self.stored.valid().then(|| split(self.stored.key(), self.comparator.timestamp_bytes()))?
    }

    /// Moves the stored cursor to a version of another key.
    fn leave_key(&mut self, backwards: bool) {
        let Some((key, _)) = self.stands() else { return };
        let key = key.to_vec();
        while self.stands().is_some_and(|(other, _)| other == key) {
            if backwards { self.stored.prev() } else { self.stored.next() }
        }
    }

    /// Returns true if the version at the stored cursor is one of all versions that are shown.
    fn is_between(&self, timestamp: &[u8]) -> bool {
        let from = self.from.as_deref();
        !is_before(&self.comparator, &self.at, timestamp)
            && from.is_none_or(|from| !is_before(&self.comparator, timestamp, from))
    }

    /// Moves on to what is shown, unless the stored cursor stands on it.
    fn settle_forwards(&mut self) {
        self.valid = false;
        while self.stored.valid() {
            let Some((key, timestamp)) = self.stands() else {
                // The entry before all versions.
                self.stored.next();
                continue;
            };
            let is_after = is_before(&self.comparator, &self.at, timestamp);
            if is_after {
                // It lies ahead, so this ends.
                let visible = [key, &self.at].concat();
                self.stored.seek(visible);
            } else if self.from.is_some() {
                if self.is_between(timestamp) {
                    self.valid = true;
                    return;
                }
                self.stored.next();
            } else if version_of(self.stored.value()) == Version::Deleted {
                self.leave_key(false);
            } else {
                self.valid = true;
                return;
            }
        }
    }

    /// Moves back to what is shown, from the oldest version of a key.
    fn settle_backwards(&mut self) {
        self.valid = false;
        while let Some((key, timestamp)) = self.stands() {
            if self.from.is_some() {
                if self.is_between(timestamp) {
                    self.valid = true;
                    return;
                }
                self.stored.prev();
                continue;
            }
            if is_before(&self.comparator, &self.at, timestamp) {
                self.leave_key(true);
                continue;
            }
            let visible = [key, &self.at].concat();
            self.stored.seek(visible);
            if self.stands().is_some() && version_of(self.stored.value()) != Version::Deleted {
                self.valid = true;
                return;
            }
            self.leave_key(true);
        }
    }
}

impl std::fmt::Debug for TimestampedCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimestampedCursor").field("valid", &self.valid).finish_non_exhaustive()
    }
}
