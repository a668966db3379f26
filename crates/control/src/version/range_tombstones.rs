//! Range tombstones. They are part of a version, beside its tables: an entry is deleted if a range
//! tombstone with a newer sequence number covers its key, wherever the entry is. Tables contain no
//! range tombstones, so a range deletion does not change their bounds and reads none of them. A
//! tombstone is removed as soon as nothing is left that it deletes.
//!
//! 1. [`RangeTombstones::new`] sorts the tombstones and divides their keys into fragments
//!    (`fragments`).
//! 2. [`RangeTombstones::over`] finds the fragment of a key by binary search.
//! 3. [`RangeTombstones::hide`] tells whether a whole range of keys is deleted.
//! 4. [`RangeTombstones::superseded`] finds tombstones that newer ones make obsolete.
//!
//! What must stay true: fragments ascend and share no key. Within a fragment the same tombstones
//! cover every key.

use std::collections::BTreeSet;

use super::TableMeta;
use crate::types::{SeqNo, UserKey};

/// A deletion of all entries older than `seqno` with keys from `begin` up to but not including
/// `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// The first key.
    pub begin: UserKey,
    /// The end of the range, exclusive.
    pub end: UserKey,
    /// Its sequence number. No two in a column family have the same.
    pub seqno: SeqNo,
}

/// A range of keys that the same tombstones cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The first key.
    pub begin: UserKey,
    /// The end of the range, exclusive.
    pub end: UserKey,
    /// The numbers of the tombstones, newest first; never empty.
    seqnos: Vec<SeqNo>,
}

impl Fragment {
    /// Returns the newest tombstone that a reader at `as_of` sees.
    #[must_use]
    pub fn newest(&self, as_of: SeqNo) -> Option<SeqNo> {
        self.seqnos.get(self.seqnos.partition_point(|seqno| *seqno > as_of)).copied()
    }

    /// Returns the oldest tombstone that is newer than `seqno`.
    #[must_use]
    pub fn oldest_above(&self, seqno: SeqNo) -> Option<SeqNo> {
        let above = self.seqnos.partition_point(|one| *one > seqno);
        self.seqnos.get(above.checked_sub(1)?).copied()
    }
}

/// Range tombstones, and the fragments that they make. Never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeTombstones {
    /// Ordered by sequence number.
    tombstones: Vec<RangeTombstone>,
    fragments: Vec<Fragment>,
}

impl RangeTombstones {
    /// Returns the set of `tombstones`. Those of an empty range are left out.
    #[must_use]
    pub fn new(mut tombstones: Vec<RangeTombstone>) -> RangeTombstones {
        tombstones.retain(|one| one.begin < one.end);
        tombstones.sort_by_key(|one| one.seqno);
        tombstones.dedup_by_key(|one| one.seqno);
        let fragments = fragments(&tombstones);
        RangeTombstones { tombstones, fragments }
    }

    /// Returns this set with `added`, and without the tombstones of the numbers `retired`.
    #[must_use]
    pub fn changed(&self, added: &[RangeTombstone], retired: &[SeqNo]) -> RangeTombstones {
        let kept = self.iter().filter(|one| !retired.contains(&one.seqno));
        RangeTombstones::new(kept.chain(added).cloned().collect())
    }

    /// Returns the tombstones, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &RangeTombstone> {
        self.tombstones.iter()
    }

    /// Returns the number of tombstones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tombstones.len()
    }

    /// Returns true if there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tombstones.is_empty()
    }

    /// Returns the newest tombstone with a number of at most `as_of`.
    #[must_use]
    pub fn newest(&self, as_of: SeqNo) -> Option<SeqNo> {
        let up_to = self.tombstones.partition_point(|one| one.seqno <= as_of);
        Some(self.tombstones.get(up_to.checked_sub(1)?)?.seqno)
    }

    /// Returns the fragments, ascending.
    #[must_use]
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// Returns the index of the first fragment that ends behind `key`.
    #[must_use]
    pub fn first_behind(&self, key: &[u8]) -> usize {
        self.fragments.partition_point(|fragment| fragment.end <= *key)
    }

    /// Returns the newest tombstone over `key` that a reader at `as_of` sees. Older entries are
    /// deleted.
    #[must_use]
    pub fn over(&self, key: &[u8], as_of: SeqNo) -> Option<SeqNo> {
        let fragment = self.fragments.get(self.first_behind(key))?;
        if fragment.begin <= *key { fragment.newest(as_of) } else { None }
    }

    /// Returns true if a reader at `as_of` sees no entry from `smallest` to `largest` with a number
    /// of at most `seqno`.
    #[must_use]
    pub fn hide(&self, smallest: &[u8], largest: &[u8], seqno: SeqNo, as_of: SeqNo) -> bool {
        let mut reached = smallest;
        for fragment in self.fragments.get(self.first_behind(smallest)..).unwrap_or_default() {
            let hidden = fragment.newest(as_of).is_some_and(|newest| newest > seqno);
            if fragment.begin > *reached || !hidden {
                return false;
            }
            if fragment.end > *largest {
                return true;
            }
            reached = fragment.end.bytes();
        }
        false
    }

    /// Returns true if a reader at `as_of` sees no entry of `table`; see [`RangeTombstones::hide`].
    #[must_use]
    pub fn hide_table(&self, table: &TableMeta, as_of: SeqNo) -> bool {
        self.hide(table.smallest.bytes(), table.largest.bytes(), table.seqno_max, as_of)
    }

    /// Returns the tombstones that newer ones make obsolete. A tombstone is obsolete if newer ones
    /// cover all of its range, and every reader that sees it also sees them. `snapshots` are
    /// ascending; the last one is the visible sequence number.
    #[must_use]
    pub fn superseded(&self, snapshots: &[SeqNo]) -> Vec<SeqNo> {
        let same_readers = |old: SeqNo, new: SeqNo| {
            let stratum = snapshots.partition_point(|snapshot| *snapshot < old);
            snapshots.get(stratum).is_some_and(|snapshot| *snapshot >= new)
        };
        let is_superseded = |one: &&RangeTombstone| {
            let mut reached = &one.begin;
            let from = self.first_behind(one.begin.bytes());
            for fragment in self.fragments.get(from..).unwrap_or_default() {
                let newer = fragment.oldest_above(one.seqno);
                if !newer.is_some_and(|newer| same_readers(one.seqno, newer)) {
                    return false;
                }
                reached = &fragment.end;
                if *reached >= one.end {
                    break;
                }
            }
            *reached >= one.end
        };
        self.iter().filter(is_superseded).map(|one| one.seqno).collect()
    }
}

impl RangeTombstone {
    /// Returns true if it covers any key from `smallest` to `largest`.
    #[must_use]
    pub fn touches(&self, smallest: &[u8], largest: &[u8]) -> bool {
        self.begin <= *largest && *smallest < self.end
    }

    /// Returns true if `table` may have an entry that it deletes.
    #[must_use]
    pub fn is_needed_for(&self, table: &TableMeta) -> bool {
        table.seqno_min < self.seqno
            && table.ranges_applied < self.seqno
            && self.touches(table.smallest.bytes(), table.largest.bytes())
    }
}

/// Divides the keys of `tombstones` into fragments, in one pass over the sorted bounds.
fn fragments(tombstones: &[RangeTombstone]) -> Vec<Fragment> {
    let mut bounds: Vec<&UserKey> = tombstones.iter().flat_map(|t| [&t.begin, &t.end]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let mut by_begin: Vec<&RangeTombstone> = tombstones.iter().collect();
    by_begin.sort_by(|a, b| a.begin.cmp(&b.begin));
    let mut by_end = by_begin.clone();
    by_end.sort_by(|a, b| a.end.cmp(&b.end));
    let (mut begins, mut ends) = (by_begin.into_iter().peekable(), by_end.into_iter().peekable());
    let mut open = BTreeSet::new();
    let mut fragments: Vec<Fragment> = Vec::new();
    for pair in bounds.windows(2) {
        let [begin, end] = *pair else { continue };
        while let Some(ended) = ends.next_if(|one| one.end <= *begin) {
            open.remove(&ended.seqno);
        }
        while let Some(begun) = begins.next_if(|one| one.begin <= *begin) {
            open.insert(begun.seqno);
        }
        if open.is_empty() {
            continue;
        }
        let seqnos: Vec<SeqNo> = open.iter().rev().copied().collect();
        fragments.push(Fragment { begin: begin.clone(), end: end.clone(), seqnos });
    }
    fragments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tombstone(begin: &str, end: &str, seqno: u64) -> RangeTombstone {
        let key = |text: &str| UserKey::bytewise(text.as_bytes());
        RangeTombstone { begin: key(begin), end: key(end), seqno: SeqNo(seqno) }
    }

    fn some() -> RangeTombstones {
        RangeTombstones::new(vec![
            tombstone("m", "q", 7),
            tombstone("c", "h", 5),
            tombstone("e", "m", 9),
            tombstone("x", "x", 11),
            tombstone("z", "a", 12),
        ])
    }

    #[test]
    fn a_key_is_covered_by_the_newest_that_is_seen() {
        let ranges = some();
        let over = |key: &str, as_of| ranges.over(key.as_bytes(), SeqNo(as_of)).map(|s| s.0);
        assert_eq!(ranges.len(), 3, "empty and reversed ranges say nothing");
        assert_eq!(over("b", 100), None);
        assert_eq!(over("c", 100), Some(5));
        assert_eq!(over("c", 4), None);
        assert_eq!(over("e", 100), Some(9));
        assert_eq!(over("g", 8), Some(5));
        assert_eq!(over("h", 8), None);
        assert_eq!(over("l", 9), Some(9));
        assert_eq!(over("m", 100), Some(7));
        assert_eq!(over("q", 100), None);
        assert_eq!(ranges.newest(SeqNo(8)), Some(SeqNo(7)));
        assert_eq!(ranges.newest(SeqNo(4)), None);
    }

    #[test]
    fn what_several_hide_together_is_hidden() {
        let ranges = some();
        let hide = |from: &str, to: &str, seqno, as_of| {
            ranges.hide(from.as_bytes(), to.as_bytes(), SeqNo(seqno), SeqNo(as_of))
        };
        assert!(hide("c", "p", 4, 100));
        assert!(!hide("c", "q", 4, 100), "the end is not covered");
        assert!(!hide("b", "d", 4, 100));
        assert!(!hide("c", "p", 5, 100), "as new as what covers its begin");
        assert!(hide("e", "l", 8, 100));
        assert!(!hide("c", "p", 4, 8), "one of them is not seen");
        assert!(!hide("r", "s", 1, 100));
    }

    #[test]
    fn needless_is_what_newer_ones_cover_for_the_same_readers() {
        let ranges = RangeTombstones::new(vec![
            tombstone("a", "m", 3),
            tombstone("a", "g", 5),
            tombstone("g", "z", 8),
        ]);
        let superseded = |snapshots: &[u64]| {
            let snapshots: Vec<_> = snapshots.iter().copied().map(SeqNo).collect();
            ranges.superseded(&snapshots).iter().map(|seqno| seqno.0).collect::<Vec<_>>()
        };
        assert_eq!(superseded(&[10]), [3]);
        assert_eq!(superseded(&[2, 10]), [3]);
        assert_eq!(superseded(&[3, 10]), [0; 0], "a snapshot sees the old one alone");
        assert_eq!(superseded(&[5, 10]), [0; 0], "a snapshot sees a part of what replaces it");
        assert_eq!(superseded(&[6]), [0; 0], "not all are visible yet");
    }
}
