//! The key range that an iterator may show.
//!
//! What must stay true: `lower` is inclusive, `upper` exclusive, and both are user keys. Reversed
//! or empty bounds are no error here: no key lies between them.

use sateen_control::UserKey;

use crate::base::key::ordered_prefix;
use crate::base::prefix::prefix_successor;

/// A bound with its [`ordered_prefix`].
#[derive(Clone, Debug)]
struct Bound {
    prefix: u64,
    key: UserKey,
}

impl Bound {
    fn new(key: UserKey) -> Bound {
        Bound { prefix: ordered_prefix(key.comparator(), key.bytes()), key }
    }

    /// Returns true if `user_key` lies before the bound.
    #[inline]
    fn is_after(&self, user_key: &[u8]) -> bool {
        let prefix = ordered_prefix(self.key.comparator(), user_key);
        if prefix == self.prefix { *user_key < self.key } else { prefix < self.prefix }
    }
}

/// The user keys that an iterator may show: from `lower` (inclusive) to `upper` (exclusive).
#[derive(Clone, Debug, Default)]
pub struct IterBounds {
    lower: Option<Bound>,
    upper: Option<Bound>,
}

impl IterBounds {
    /// Returns bounds that contain every key.
    pub fn all() -> IterBounds {
        IterBounds::default()
    }

    /// Returns bounds from `lower` (inclusive) to `upper` (exclusive). `None` is unbounded.
    pub fn new(lower: Option<UserKey>, upper: Option<UserKey>) -> IterBounds {
        IterBounds { lower: lower.map(Bound::new), upper: upper.map(Bound::new) }
    }

    /// Returns the part of these bounds in which all keys begin with `prefix`. Keys must be in byte
    /// order.
    pub fn with_prefix(self, prefix: &[u8]) -> IterBounds {
        let lower = match self.lower {
            Some(lower) if lower.key >= *prefix => lower,
            _ => Bound::new(UserKey::bytewise(prefix)),
        };
        let upper = match (self.upper, prefix_successor(prefix).map(UserKey::bytewise)) {
            (Some(upper), Some(end)) if upper.key <= end => Some(upper),
            (upper, None) => upper,
            (_, Some(end)) => Some(Bound::new(end)),
        };
        IterBounds { lower: Some(lower), upper }
    }

    /// Returns the inclusive lower bound.
    #[inline]
    pub fn lower(&self) -> Option<&[u8]> {
        self.lower.as_ref().map(|bound| bound.key.bytes())
    }

    /// Returns the exclusive upper bound.
    #[inline]
    pub fn upper(&self) -> Option<&[u8]> {
        self.upper.as_ref().map(|bound| bound.key.bytes())
    }

    /// Returns both bounds, the lower one first.
    pub fn keys(&self) -> (Option<UserKey>, Option<UserKey>) {
        let key = |bound: &Option<Bound>| bound.as_ref().map(|bound| bound.key.clone());
        (key(&self.lower), key(&self.upper))
    }

    /// Returns true if `user_key` lies before the lower bound.
    #[inline]
    pub fn is_below(&self, user_key: &[u8]) -> bool {
        self.lower.as_ref().is_some_and(|lower| lower.is_after(user_key))
    }

    /// Returns true if `user_key` lies at or behind the upper bound.
    #[inline]
    pub fn is_above(&self, user_key: &[u8]) -> bool {
        self.upper.as_ref().is_some_and(|upper| !upper.is_after(user_key))
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::base::key::key_prefix;

    #[test]
    fn unequal_prefixes_are_ordered_as_their_keys() {
        let alphabet = [0_u8, 1, 0x7f, 0x80, 0xff];
        let mut keys: Vec<Vec<u8>> = vec![vec![]];
        for length in 1..=10 {
            for &byte in &alphabet {
                keys.push(vec![byte; length]);
                let mut tail = vec![0; length - 1];
                tail.push(byte);
                keys.push(tail);
            }
        }
        for a in &keys {
            for b in &keys {
                if key_prefix(a) != key_prefix(b) {
                    assert_eq!(key_prefix(a).cmp(&key_prefix(b)), a.cmp(b), "{a:?} {b:?}");
                }
            }
            let mut padded = a.clone();
            padded.resize(8.max(a.len()), 0);
            assert_eq!(key_prefix(a).to_be_bytes(), padded[..8], "{a:?}");
        }
    }

    #[test]
    fn the_successor_of_a_prefix_ends_exactly_its_keys() {
        assert_eq!(prefix_successor(b"ab").as_deref(), Some(&b"ac"[..]));
        assert_eq!(prefix_successor(&[1, 0xff, 0xff]).as_deref(), Some(&[2][..]));
        assert_eq!(prefix_successor(&[0xff, 0xff]), None);
        assert_eq!(prefix_successor(b""), None);
    }

    #[test]
    fn a_prefix_narrows_bounds_and_never_widens_them() {
        let bounds =
            IterBounds::new(Some(UserKey::bytewise(*b"abc")), Some(UserKey::bytewise(*b"abx")));
        let narrow = bounds.clone().with_prefix(b"ab");
        assert_eq!((narrow.lower(), narrow.upper()), (Some(&b"abc"[..]), Some(&b"abx"[..])));
        let narrow = bounds.with_prefix(b"abd");
        assert_eq!((narrow.lower(), narrow.upper()), (Some(&b"abd"[..]), Some(&b"abe"[..])));
        let open = IterBounds::all().with_prefix(&[0xff]);
        assert_eq!((open.lower(), open.upper()), (Some(&[0xff][..]), None));
    }

    #[test]
    fn lower_is_inclusive_and_upper_exclusive() {
        let bounds =
            IterBounds::new(Some(UserKey::bytewise(*b"b")), Some(UserKey::bytewise(*b"d")));
        assert!(bounds.is_below(b"a") && !bounds.is_below(b"b") && !bounds.is_below(b"b\0"));
        assert!(!bounds.is_above(b"c\xff") && bounds.is_above(b"d") && bounds.is_above(b"d\0"));
    }
}
