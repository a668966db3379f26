//! What can be locked: a key, or a range of keys.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use sateen_control::{ColumnFamilyId, Comparator};

use super::{Held, LockKey, LockOwner};

/// What a transaction locks.
#[derive(Clone, Debug)]
pub(crate) enum LockTarget {
    Key(LockKey),
    Range(Arc<LockRange>),
}

impl LockTarget {
    /// Returns true if both have a key.
    pub(super) fn meets(&self, other: &LockTarget) -> bool {
        match (self, other) {
            (LockTarget::Key(one), LockTarget::Key(other)) => one == other,
            (LockTarget::Key(key), LockTarget::Range(range))
            | (LockTarget::Range(range), LockTarget::Key(key)) => range.contains(key),
            (LockTarget::Range(one), LockTarget::Range(other)) => one.overlaps(other),
        }
    }
}

/// A range of keys of a column family, in the order of its comparator.
#[derive(Debug)]
pub(crate) struct LockRange {
    pub(crate) family: ColumnFamilyId,
    pub(crate) comparator: Comparator,
    pub(crate) lower: Bound<Arc<[u8]>>,
    pub(crate) upper: Bound<Arc<[u8]>>,
}

impl LockRange {
    /// Returns true if there is no key between the ends.
    pub(super) fn is_empty(&self) -> bool {
        self.ends_before(&self.upper, &self.lower)
    }

    /// Returns true if the range ends before it begins.
    pub(crate) fn is_reversed(&self) -> bool {
        match (bytes(&self.lower), bytes(&self.upper)) {
            (Some(begin), Some(end)) => self.comparator.compare(end, begin) == Ordering::Less,
            _ => false,
        }
    }

    /// Returns true if no key is both before the end `upper` and after the begin `lower`.
    fn ends_before(&self, upper: &Bound<Arc<[u8]>>, lower: &Bound<Arc<[u8]>>) -> bool {
        let (Some(end), Some(begin)) = (bytes(upper), bytes(lower)) else { return false };
        let both = matches!((upper, lower), (Bound::Included(_), Bound::Included(_)));
        match self.comparator.compare(end, begin) {
            Ordering::Less => true,
            Ordering::Equal => !both,
            Ordering::Greater => false,
        }
    }

    pub(super) fn contains(&self, (family, key): &LockKey) -> bool {
        let compare = |end: &[u8]| self.comparator.compare(key, end);
        *family == self.family
            && match &self.lower {
                Bound::Unbounded => true,
                Bound::Included(begin) => compare(begin).is_ge(),
                Bound::Excluded(begin) => compare(begin).is_gt(),
            }
            && match &self.upper {
                Bound::Unbounded => true,
                Bound::Included(end) => compare(end).is_le(),
                Bound::Excluded(end) => compare(end).is_lt(),
            }
    }

    pub(super) fn overlaps(&self, other: &LockRange) -> bool {
        self.family == other.family
            && !self.ends_before(&self.upper, &other.lower)
            && !self.ends_before(&other.upper, &self.lower)
    }

    /// Returns the end at which both ranges begin to overlap, for errors.
    pub(super) fn first_of_both(&self, other: &LockRange) -> Arc<[u8]> {
        let (one, other) = (bytes(&self.lower), bytes(&other.lower));
        let later = match (one, other) {
            (Some(one), Some(other)) if self.comparator.compare(one, other).is_lt() => other,
            (Some(one), _) => one,
            (None, Some(other)) => other,
            (None, None) => &[],
        };
        later.into()
    }

    /// Returns the locked keys of a shard that are in the range, which is not empty.
    pub(super) fn locked<'a>(
        &'a self,
        held: &'a BTreeMap<LockKey, Held>,
    ) -> impl Iterator<Item = (&'a LockKey, &'a Held)> {
        let first = |family| Bound::Included((family, Arc::from(&[][..])));
        let end = |end: &Bound<Arc<[u8]>>, open: Bound<LockKey>| match end {
            Bound::Included(key) => Bound::Included((self.family, key.clone())),
            Bound::Excluded(key) => Bound::Excluded((self.family, key.clone())),
            Bound::Unbounded => open,
        };
        let last = self.family.0.checked_add(1).map(ColumnFamilyId);
        let last =
            last.map_or(Bound::Unbounded, |next| Bound::Excluded((next, Arc::from(&[][..]))));
        // Shards are in the order of bytes.
        let (lower, upper) = match self.comparator.is_bytewise() {
            true => (end(&self.lower, first(self.family)), end(&self.upper, last)),
            false => (first(self.family), last),
        };
        held.range((lower, upper)).filter(|(key, _)| self.contains(key))
    }
}

fn bytes(end: &Bound<Arc<[u8]>>) -> Option<&[u8]> {
    match end {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// A range that somebody holds.
pub(super) struct HeldRange {
    pub(super) owner: LockOwner,
    pub(super) range: Arc<LockRange>,
    pub(super) exclusive: bool,
}

impl HeldRange {
    /// Returns true if the lock keeps `owner` from another one that it meets.
    pub(super) fn blocks(&self, owner: LockOwner, exclusive: bool) -> bool {
        self.owner != owner && (exclusive || self.exclusive)
    }
}
