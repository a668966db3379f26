//! Gaps between keys. Several streams of ascending keys that are written side by side leave runs
//! whose keys lie in clusters. A table that ends where a cluster ends overlaps nothing that is
//! later written between the clusters.
//!
//! 1. [`GapFinder::begin`] and [`GapFinder::add`] remember a table's first and last key.
//! 2. [`GapFinder::is_before`] skips the bytes that the first key shares with the next one, and
//!    reads the next eight bytes of all three keys as numbers.
//! 3. A gap lies before the next key if its distance from the last key is more than [`GAP_TO_SPAN`]
//!    times the distance from the first to the last key.

/// How many times wider than the table's key range a gap is. Keys spread at random leave no such
/// gap in a table of more than a few hundred keys.
const GAP_TO_SPAN: u64 = 64;

/// Finds gaps between ascending user keys.
#[derive(Clone, Debug, Default)]
pub(super) struct GapFinder {
    first: Vec<u8>,
    last: Vec<u8>,
}

impl GapFinder {
    /// Begins a table with `key`.
    pub(super) fn begin(&mut self, key: &[u8]) {
        set(&mut self.first, key);
        set(&mut self.last, key);
    }

    /// Adds `key` to the table.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8]) {
        set(&mut self.last, key);
    }

    /// Returns true if a gap lies between the table and `next`.
    #[inline]
    pub(super) fn is_before(&self, next: &[u8]) -> bool {
        let shared = self.first.iter().zip(next).take_while(|(a, b)| a == b).count();
        let [first, last, next] = [&self.first, &self.last, next].map(|key| window(key, shared));
        (next - last) / GAP_TO_SPAN > last - first
    }
}

fn set(to: &mut Vec<u8>, key: &[u8]) {
    to.clear();
    to.extend_from_slice(key);
}

/// Returns eight bytes from `at` on as a number, which orders as the keys do.
#[inline]
fn window(key: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    let rest = key.get(at..).unwrap_or_default();
    let len = rest.len().min(bytes.len());
    bytes[..len].copy_from_slice(&rest[..len]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finder(keys: &[&[u8]]) -> GapFinder {
        let mut gaps = GapFinder::default();
        gaps.begin(keys[0]);
        keys.iter().for_each(|key| gaps.add(key));
        gaps
    }

    #[test]
    fn a_gap_is_wide_for_what_the_table_spans() {
        let gaps = finder(&[b"stream-1/0000100", b"stream-1/0000228"]);
        assert!(!gaps.is_before(b"stream-1/0000229"));
        assert!(gaps.is_before(b"stream-2/0000100"));
        let numbers = |to: u64| finder(&[&1000u64.to_be_bytes(), &to.to_be_bytes()]);
        assert!(numbers(1100).is_before(&7501u64.to_be_bytes()));
        assert!(!numbers(1100).is_before(&7500u64.to_be_bytes()));
    }

    #[test]
    fn keys_of_any_length_are_looked_at() {
        let gaps = finder(&[b"", b"a"]);
        assert!(!gaps.is_before(b"b"));
        let gaps = finder(&[b"a", b"a\0"]);
        assert!(gaps.is_before(b"aa"));
        // A key and its shortest extension are as close as two keys can be.
        let gaps = finder(&[b"a"]);
        assert!(!gaps.is_before(b"a\0"));
    }
}
