//! The bytes of a key or value that an iterator returns.

use std::borrow::Borrow;
use std::ops::Deref;
use std::sync::Arc;

/// Length up to which bytes are stored without an allocation.
const INLINE_BYTES: usize = 22;

/// The owned bytes of a key or value. Up to 22 bytes are stored inline, without an allocation.
/// Longer ones are copied once, into memory that all clones share. A clone never copies more than
/// 24 bytes.
///
/// ```
/// use sateen::Bytes;
///
/// let key = Bytes::from(b"apple");
/// assert_eq!(key, b"apple");
/// assert_eq!(&key[1..], b"pple");
/// assert!(key.starts_with(b"a") && key < Bytes::from("pear"));
/// let owned: Vec<u8> = key.into();
/// assert_eq!(owned, b"apple");
/// ```
#[derive(Clone)]
pub struct Bytes(Repr);

#[derive(Clone)]
enum Repr {
    Inline { length: u8, bytes: [u8; INLINE_BYTES] },
    Shared(Arc<[u8]>),
}

impl From<&[u8]> for Bytes {
    #[inline]
    fn from(from: &[u8]) -> Bytes {
        let mut bytes = [0; INLINE_BYTES];
        match (bytes.get_mut(..from.len()), u8::try_from(from.len())) {
            (Some(start), Ok(length)) => {
                start.copy_from_slice(from);
                Bytes(Repr::Inline { length, bytes })
            }
            _ => Bytes(Repr::Shared(from.into())),
        }
    }
}

impl<const N: usize> From<&[u8; N]> for Bytes {
    fn from(from: &[u8; N]) -> Bytes {
        Bytes::from(&from[..])
    }
}

impl From<&str> for Bytes {
    fn from(from: &str) -> Bytes {
        Bytes::from(from.as_bytes())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(from: Vec<u8>) -> Bytes {
        Bytes::from(&from[..])
    }
}

impl From<Bytes> for Vec<u8> {
    fn from(from: Bytes) -> Vec<u8> {
        from.to_vec()
    }
}

impl Deref for Bytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Repr::Shared(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Bytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::from(&[][..])
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Bytes {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Bytes {}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Bytes) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bytes {
    fn cmp(&self, other: &Bytes) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl std::hash::Hash for Bytes {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

/// Prints a byte string, such as `b"apple"`.
impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_back_and_takes_three_words() {
        assert_eq!(size_of::<Bytes>(), 24);
        for length in 0..64 {
            let bytes: Vec<u8> = (0..length).collect();
            let made = Bytes::from(&bytes[..]);
            assert_eq!(made, bytes);
            assert_eq!(made.clone(), made);
            assert_eq!(Vec::from(made), bytes);
        }
    }
}
