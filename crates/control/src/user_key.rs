//! User keys and their comparators. A key carries the comparator of its column family, so that code
//! that compares keys need not know it.
//!
//! What must stay true: keys that are compared with each other have the same comparator, and two
//! keys are equal only if their bytes are.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

type Compare = dyn Fn(&[u8], &[u8]) -> Ordering + Send + Sync;

/// A comparator that the user wrote.
struct Custom {
    name: String,
    compare: Box<Compare>,
    /// The number of bytes at the end of each key that are its timestamp.
    timestamp_bytes: usize,
}

/// The order of a column family's keys: that of their bytes, or one that the user defines. A
/// comparator has a name, which the database stores. RocksDB: `Comparator`.
///
/// Two comparators of the same name must order all keys in the same way, also whenever the database
/// is opened again.
#[derive(Clone, Default)]
pub struct Comparator(Option<Arc<Custom>>);

impl Comparator {
    /// The order of bytes as unsigned numbers. A key comes before the longer keys that begin with
    /// it.
    pub const BYTEWISE: Comparator = Comparator(None);

    /// The name of [`Comparator::BYTEWISE`].
    pub const BYTEWISE_NAME: &str = "bytewise";

    /// The name of [`Comparator::reverse_bytewise`].
    pub const REVERSE_BYTEWISE_NAME: &str = "reverse-bytewise";

    /// Returns a comparator that orders keys as `compare` does, which must be a total order and
    /// must not panic. Keys that `compare` takes for equal although their bytes differ are
    /// different keys, in the order of their bytes.
    #[must_use]
    pub fn custom(
        name: impl Into<String>,
        compare: impl Fn(&[u8], &[u8]) -> Ordering + Send + Sync + 'static,
    ) -> Comparator {
        let (name, compare) = (name.into(), Box::new(compare));
        Comparator(Some(Arc::new(Custom { name, compare, timestamp_bytes: 0 })))
    }

    /// Returns a comparator of keys that end with a timestamp of `timestamp_bytes` bytes, at least
    /// one. `compare` gets whole keys. It must have newer timestamps first where the rest is equal.
    /// It is not called for keys that are shorter than a timestamp, which come before all others.
    /// The length of the timestamp is part of the name that the database stores. RocksDB:
    /// comparators with a `timestamp_size`.
    #[must_use]
    pub fn timestamped(
        name: impl Into<String>,
        timestamp_bytes: usize,
        compare: impl Fn(&[u8], &[u8]) -> Ordering + Send + Sync + 'static,
    ) -> Comparator {
        let timestamp_bytes = timestamp_bytes.max(1);
        let name = format!("{}, timestamps of {timestamp_bytes} bytes", name.into());
        let is_whole = move |key: &[u8]| key.len() >= timestamp_bytes;
        let compare = Box::new(move |a: &[u8], b: &[u8]| match (is_whole(a), is_whole(b)) {
            (true, true) => compare(a, b),
            (false, false) => a.cmp(b),
            (a_whole, b_whole) => a_whole.cmp(&b_whole),
        });
        Comparator(Some(Arc::new(Custom { name, compare, timestamp_bytes })))
    }

    /// Returns the number of bytes at the end of each key that are its timestamp; 0 if keys have
    /// none.
    #[must_use]
    pub fn timestamp_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |custom| custom.timestamp_bytes)
    }

    /// Returns the reverse of the order of bytes. RocksDB: `ReverseBytewiseComparator`.
    #[must_use]
    pub fn reverse_bytewise() -> Comparator {
        Comparator::custom(Comparator::REVERSE_BYTEWISE_NAME, |a, b| b.cmp(a))
    }

    /// Returns true if keys are ordered by their bytes.
    #[must_use]
    #[inline]
    pub fn is_bytewise(&self) -> bool {
        self.0.is_none()
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.as_ref().map_or(Comparator::BYTEWISE_NAME, |custom| &custom.name)
    }

    /// Compares two user keys.
    #[must_use]
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match &self.0 {
            None => a.cmp(b),
            Some(custom) => custom.compare(a, b),
        }
    }

    /// Returns the key of these bytes.
    #[must_use]
    pub fn key(&self, bytes: &[u8]) -> UserKey {
        UserKey::new(bytes, self)
    }
}

/// Comparators of the same name are equal.
impl PartialEq for Comparator {
    fn eq(&self, other: &Comparator) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a.name == b.name,
            _ => false,
        }
    }
}

impl Eq for Comparator {}

impl Custom {
    #[cold]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // The user's function is never called with equal keys: some clients forbid that, and it is
        // slower.
        if a == b {
            return Ordering::Equal;
        }
        (self.compare)(a, b).then_with(|| a.cmp(b))
    }
}

impl fmt::Debug for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Comparator({})", self.name())
    }
}

/// A user key, shared and immutable. It is compared with other keys and with bytes by the
/// comparator of its column family. It has no `Deref`, because plain bytes are ordered bytewise.
#[derive(Clone)]
pub struct UserKey {
    bytes: Arc<[u8]>,
    comparator: Comparator,
}

impl UserKey {
    /// Returns the key of these bytes, compared by `comparator`.
    #[must_use]
    pub fn new(bytes: impl Into<Arc<[u8]>>, comparator: &Comparator) -> UserKey {
        UserKey { bytes: bytes.into(), comparator: comparator.clone() }
    }

    /// Returns the key of these bytes, compared bytewise.
    #[must_use]
    pub fn bytewise(bytes: impl Into<Arc<[u8]>>) -> UserKey {
        UserKey { bytes: bytes.into(), comparator: Comparator::BYTEWISE }
    }

    /// Returns the key's bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns its comparator.
    #[must_use]
    #[inline]
    pub fn comparator(&self) -> &Comparator {
        &self.comparator
    }
}

impl fmt::Debug for UserKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt(f)
    }
}

impl Hash for UserKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl PartialEq for UserKey {
    #[inline]
    fn eq(&self, other: &UserKey) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for UserKey {}

impl PartialOrd for UserKey {
    #[inline]
    fn partial_cmp(&self, other: &UserKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for UserKey {
    #[inline]
    fn cmp(&self, other: &UserKey) -> Ordering {
        debug_assert_eq!(self.comparator, other.comparator);
        self.comparator.compare(&self.bytes, &other.bytes)
    }
}

impl PartialEq<[u8]> for UserKey {
    #[inline]
    fn eq(&self, other: &[u8]) -> bool {
        *self.bytes == *other
    }
}

impl PartialOrd<[u8]> for UserKey {
    #[inline]
    fn partial_cmp(&self, other: &[u8]) -> Option<Ordering> {
        Some(self.comparator.compare(&self.bytes, other))
    }
}

impl PartialEq<UserKey> for [u8] {
    #[inline]
    fn eq(&self, other: &UserKey) -> bool {
        *self == *other.bytes
    }
}

impl PartialOrd<UserKey> for [u8] {
    #[inline]
    fn partial_cmp(&self, other: &UserKey) -> Option<Ordering> {
        Some(other.comparator.compare(self, &other.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_compared_by_its_order_with_keys_and_with_bytes() {
        let reverse = Comparator::custom("reverse", |a, b| b.cmp(a));
        let (a, b) = (reverse.key(b"a"), reverse.key(b"b"));
        assert!(b < a && b < *b"a".as_slice() && *b"b".as_slice() < a);
        assert!(UserKey::bytewise(*b"a") < UserKey::bytewise(*b"b"));
        assert!(UserKey::bytewise(*b"a") < *b"b".as_slice());
    }

    #[test]
    fn a_comparator_is_not_asked_about_one_key() {
        let never = Comparator::custom("never", |_, _| panic!("asked"));
        assert_eq!(never.compare(b"a", b"a"), Ordering::Equal);
        assert!(never.key(b"a") <= never.key(b"a"));
    }

    #[test]
    fn keys_of_different_bytes_are_never_equal() {
        let lengths = Comparator::custom("lengths", |a, b| a.len().cmp(&b.len()));
        let (a, b) = (lengths.key(b"a"), lengths.key(b"b"));
        assert!(a < b && a != b && a == lengths.key(b"a"));
        assert_eq!(lengths.compare(b"b", b"a"), Ordering::Greater);
    }
}
