//! Prefixes of keys, which filters know as well as whole keys. A seek for keys with one prefix
//! skips tables that have no such key.
//!
//! What must stay true: the order of keys and the order of their prefixes agree. Otherwise seeks by
//! prefix miss keys.

use std::sync::Arc;

/// Defines how many of a key's first bytes are its prefix. Sorted keys must have sorted prefixes,
/// and the prefix of a prefix must be itself; otherwise seeks by prefix miss keys. RocksDB:
/// `SliceTransform`.
pub trait PrefixExtractor: Send + Sync {
    /// Returns the extractor's name. A table remembers it, and its filter is not asked if another
    /// extractor made it.
    fn name(&self) -> &str;

    /// Returns the length of the prefix of `key`; `None` if it has none.
    fn prefix_len(&self, key: &[u8]) -> Option<usize>;
}

/// A prefix extractor, for `ColumnFamilyOptions::prefix_extractor`.
#[derive(Clone)]
pub struct Prefixing(Kind);

#[derive(Clone)]
enum Kind {
    Fixed(usize),
    Capped(usize),
    Noop,
    Custom(Arc<dyn PrefixExtractor>),
}

/// Two extractors are equal if they have the same name.
impl PartialEq for Prefixing {
    fn eq(&self, other: &Prefixing) -> bool {
        self.to_string() == other.to_string()
    }
}

impl std::fmt::Debug for Prefixing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prefixing({self})")
    }
}

/// Writes the option's value, which is also what tables remember.
impl std::fmt::Display for Prefixing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Fixed(bytes) => write!(f, "fixed:{bytes}"),
            Kind::Capped(bytes) => write!(f, "capped:{bytes}"),
            Kind::Noop => f.write_str("noop"),
            Kind::Custom(extractor) => write!(f, "custom:{}", extractor.name()),
        }
    }
}

impl Prefixing {
    /// Takes the first `bytes` bytes. Shorter keys have no prefix.
    #[must_use]
    pub fn fixed(bytes: usize) -> Prefixing {
        Prefixing(Kind::Fixed(bytes))
    }

    /// Takes the first `bytes` bytes. A shorter key is its own prefix.
    #[must_use]
    pub fn capped(bytes: usize) -> Prefixing {
        Prefixing(Kind::Capped(bytes))
    }

    /// Takes the whole key.
    #[must_use]
    pub fn noop() -> Prefixing {
        Prefixing(Kind::Noop)
    }

    /// Uses `extractor`.
    pub fn new(extractor: impl PrefixExtractor + 'static) -> Prefixing {
        Prefixing(Kind::Custom(Arc::new(extractor)))
    }

    /// Parses what [`Display`](std::fmt::Display) writes, or RocksDB's name of the same extractor.
    /// Custom extractors cannot be parsed.
    pub fn parse(text: &str) -> Option<Prefixing> {
        if matches!(text, "noop" | "rocksdb.Noop") {
            return Some(Prefixing::noop());
        }
        let bytes = |prefixes: [&str; 2]| {
            let number = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))?;
            number.parse::<u16>().ok().map(usize::from)
        };
        bytes(["fixed:", "rocksdb.FixedPrefix."])
            .map(Prefixing::fixed)
            .or_else(|| bytes(["capped:", "rocksdb.CappedPrefix."]).map(Prefixing::capped))
    }

    /// Returns the prefix of `key`, if it has one.
    #[inline]
    pub fn of<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match &self.0 {
            Kind::Fixed(bytes) => key.get(..*bytes),
            Kind::Capped(bytes) => key.get(..(*bytes).min(key.len())),
            Kind::Noop => Some(key),
            Kind::Custom(extractor) => {
                let bytes = extractor.prefix_len(key)?;
                key.get(..bytes.min(key.len()))
            }
        }
    }

    /// Returns true if all keys from one with `prefix` up to `upper` (exclusive) have the prefix.
    pub fn holds_up_to(&self, prefix: &[u8], upper: &[u8]) -> bool {
        let (Kind::Fixed(bytes) | Kind::Capped(bytes)) = self.0 else { return false };
        let is_whole = prefix.len() == bytes;
        is_whole
            && (upper.starts_with(prefix) || prefix_successor(prefix).as_deref() == Some(upper))
    }

    /// Returns true if all keys from `lower` up to one with `prefix` have the prefix.
    pub fn holds_from(&self, prefix: &[u8], lower: &[u8]) -> bool {
        let (Kind::Fixed(bytes) | Kind::Capped(bytes)) = self.0 else { return false };
        prefix.len() == bytes && lower.starts_with(prefix)
    }
}

/// Returns the smallest key that is greater, as bytes, than every key with this prefix. Returns
/// `None` if there is none: the prefix is empty or all 0xff.
pub fn prefix_successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut successor = prefix.get(..=last)?.to_vec();
    if let Some(byte) = successor.last_mut() {
        *byte += 1;
    }
    Some(successor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_follow_their_extractor() {
        let of = |by: &str, key: &'static str| {
            Prefixing::parse(by)
                .unwrap()
                .of(key.as_bytes())
                .map(|p| std::str::from_utf8(p).unwrap())
        };
        assert_eq!(of("fixed:3", "abcd"), Some("abc"));
        assert_eq!(of("rocksdb.FixedPrefix.3", "ab"), None);
        assert_eq!(of("fixed:0", ""), Some(""));
        assert_eq!(of("capped:3", "abcd"), Some("abc"));
        assert_eq!(of("rocksdb.CappedPrefix.3", "ab"), Some("ab"));
        assert_eq!(of("noop", "abcd"), Some("abcd"));
        for text in ["fixed", "fixed:", "fixed:-1", "fixed:70000", "custom:mine", ""] {
            assert!(Prefixing::parse(text).is_none(), "{text}");
        }
        for text in ["fixed:8", "capped:65535", "noop"] {
            assert_eq!(Prefixing::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn ranges_of_one_prefix() {
        let fixed = Prefixing::fixed(2);
        assert!(fixed.holds_up_to(b"ab", b"abz") && fixed.holds_up_to(b"ab", b"ac"));
        assert!(!fixed.holds_up_to(b"ab", b"ac\0") && !fixed.holds_up_to(b"ab", b"b"));
        assert!(fixed.holds_from(b"ab", b"ab") && !fixed.holds_from(b"ab", b"aa\xff"));
        // A key with another prefix, "abz", lies between them.
        assert!(!Prefixing::capped(3).holds_up_to(b"ab", b"ac"));
        assert!(!Prefixing::noop().holds_up_to(b"ab", b"ab\0"));
    }
}
