//! Range tombstones for a sequence of ascending keys.

use std::sync::Arc;

use sateen_control::SeqNo;
use sateen_control::version::RangeTombstones;

/// A cursor over the fragments of range tombstones.
pub(super) struct Covering {
    ranges: Arc<RangeTombstones>,
    /// The first fragment that ends behind the last key that was asked for.
    at: usize,
}

impl Covering {
    /// Returns a cursor; `None` if there are no range tombstones.
    pub(super) fn new(ranges: &Arc<RangeTombstones>) -> Option<Covering> {
        (!ranges.is_empty()).then(|| Covering { ranges: ranges.clone(), at: 0 })
    }

    /// Returns the oldest tombstone over `user_key` that is newer than `seqno`. The keys of
    /// successive calls must not descend.
    pub(super) fn above(&mut self, user_key: &[u8], seqno: SeqNo) -> Option<SeqNo> {
        let fragments = self.ranges.fragments();
        while fragments.get(self.at).is_some_and(|fragment| fragment.end <= *user_key) {
            self.at += 1;
        }
        let fragment = fragments.get(self.at)?;
        if fragment.begin <= *user_key { fragment.oldest_above(seqno) } else { None }
    }

    /// Returns true if any tombstone covers `user_key`.
    pub(super) fn is_over(&self, user_key: &[u8]) -> bool {
        self.ranges.over(user_key, SeqNo::MAX).is_some()
    }
}
