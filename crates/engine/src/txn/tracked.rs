//! The keys of a transaction that nobody else may write before its commit.
//!
//! [`Tracked::validate`] decides for each key whether it was written after it was tracked:
//!
//! 1. If its bucket was not, it was not (`write/conflicts.rs`).
//! 2. Otherwise the newest entry in the memtables decides: if it is newer, the key was written
//!    ([`Error::Busy`]).
//! 3. If a file was ingested since, or a memtable flushed that may have had a newer entry, nobody
//!    can tell ([`Error::TryAgain`]). Tables do not help, because compactions set old sequence
//!    numbers to 0.
//!
//! If the end of the key stands for a timestamp that is not known yet, step 1 is left out, and the
//! entries of step 2 are those of all versions of the key.

use std::collections::BTreeMap;
use std::sync::Arc;

use sateen_control::{ColumnFamilyId, SeqNo};
use sateen_store::base::error::{Error, Result};

use super::transaction::without_placeholder;
use crate::tree::families::ColumnFamilyData;
use crate::write::conflicts::{Bucket, Conflicts, bucket_of};

/// A key, and since when it is tracked.
struct TrackedKey {
    family: Arc<ColumnFamilyData>,
    key: Arc<[u8]>,
    bucket: Bucket,
    /// No entry after this one may exist at the commit.
    since: SeqNo,
}

/// The tracked keys, in the order of their tracking.
#[derive(Default)]
pub(super) struct Tracked {
    keys: Vec<TrackedKey>,
    /// The place of each key in `keys`.
    places: BTreeMap<ColumnFamilyId, BTreeMap<Arc<[u8]>, usize>>,
}

impl Tracked {
    /// Tracks `key` as of `since`. A key that is tracked stays as it is, because its tracking is
    /// older.
    pub(super) fn track(&mut self, family: &Arc<ColumnFamilyData>, key: &[u8], since: SeqNo) {
        let places = self.places.entry(family.id()).or_default();
        if places.contains_key(key) {
            return;
        }
        let key: Arc<[u8]> = key.into();
        places.insert(key.clone(), self.keys.len());
        let bucket = bucket_of(&key);
        self.keys.push(TrackedKey { family: family.clone(), key, bucket, since });
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Fails if `key` was written after `since`, or if nobody can tell.
    pub(super) fn check(
        family: &Arc<ColumnFamilyData>,
        key: &[u8],
        since: SeqNo,
        conflicts: &Conflicts,
    ) -> Result<()> {
        let tracked =
            TrackedKey { family: family.clone(), key: key.into(), bucket: bucket_of(key), since };
        tracked.validate(conflicts)
    }

    /// Forgets all but the first `len` keys.
    pub(super) fn truncate(&mut self, len: usize) {
        for tracked in self.keys.drain(len.min(self.keys.len())..) {
            if let Some(places) = self.places.get_mut(&tracked.family.id()) {
                places.remove(&tracked.key);
            }
        }
    }

    /// Returns the buckets of the keys.
    pub(super) fn buckets(&self) -> Vec<Bucket> {
        self.keys.iter().map(|tracked| tracked.bucket).collect()
    }

    /// Fails if a key was written since it was tracked, or if nobody can tell. The caller has read
    /// the sequence number as of which this must hold before.
    pub(super) fn validate(&self, conflicts: &Conflicts) -> Result<()> {
        self.keys.iter().try_for_each(|tracked| tracked.validate(conflicts))
    }
}

impl std::fmt::Debug for Tracked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracked").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

impl TrackedKey {
    fn validate(&self, conflicts: &Conflicts) -> Result<()> {
        let TrackedKey { family, key, bucket, since } = self;
        let bytes = family.comparator().timestamp_bytes();
        let bare = without_placeholder(family.comparator(), key);
        if bare.is_none() && !conflicts.may_differ(*bucket, *since) {
            return Ok(());
        }
        let (column_family, named) = (|| family.name().to_owned(), || bare.unwrap_or(key).to_vec());
        let memory = family.tree(key).super_version();
        let newest = match bare {
            Some(_) => memory.newest_version(key, bytes)?,
            None => memory.newest_written(key),
        };
        if newest.is_some_and(|newest| newest > *since) {
            return Err(Error::Busy { column_family: column_family(), key: named() });
        }
        let reason = if conflicts.ingested() > *since {
            "files were ingested meanwhile"
        } else if memory.stored_through > *since {
            "its memtable was flushed meanwhile"
        } else {
            return Ok(());
        };
        Err(Error::TryAgain { column_family: column_family(), key: named(), reason })
    }
}
