//! The filter of a table: a blocked Bloom filter with lines of 64 bytes, so that a query costs one
//! cache miss.
//!
//! 1. [`build`] sets the bits of all hashes: the high half of a hash chooses the line
//!    ([`line_of`]), the low half the bits in it ([`bits_of`], [`next_bit`]).
//! 2. [`Filter::decode`] reads the filter when a table is opened.
//! 3. [`Filter::may_contain`] tests the same bits.
//!
//! What must stay true: a filter never says no for a key that was added, on any machine. The choice
//! of bits is part of the on-disk format.

use super::kept::{self, Kept};
use crate::base::decoder::{Decoder, to_usize};
use crate::base::error::CorruptionKind;
use crate::base::xxh3::xxh3_64;

const LINE_BYTES: usize = 64;
const KIND_BLOCKED_BLOOM: u8 = 1;
const HEADER_BYTES: usize = 8;
const PROBES_MAX: u8 = 16;

/// Returns the hash of a user key for filters.
#[inline]
pub fn hash_key(user_key: &[u8]) -> u64 {
    xxh3_64(user_key)
}

/// A line aligned to its own size, so that it never spans two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; LINE_BYTES / 8]);

/// Memory of the filters of closed tables.
static KEPT: Kept<Line> = Kept::new();

/// A filter in memory.
#[derive(Debug)]
pub(super) struct Filter {
    lines: Vec<Line>,
    probes: u8,
}

impl Filter {
    /// Returns false if no key with this hash was added.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let Some(Line(words)) = self.lines.get(line_of(hash, self.lines.len())) else {
            return true;
        };
        let mut bits = bits_of(hash);
        for _ in 0..self.probes {
            let (word, mask) = next_bit(&mut bits);
            if words[word] & mask == 0 {
                return false;
            }
        }
        true
    }

    /// Decodes a filter's block.
    pub(super) fn decode(payload: &[u8]) -> Result<Filter, CorruptionKind> {
        let mut decoder = Decoder(payload);
        let header = |d: &mut Decoder<'_>| Some((d.u8()?, d.u8()?, d.u16()?, d.u32()?));
        let (kind, probes, _, lines) = header(&mut decoder).ok_or(CorruptionKind::Truncated)?;
        if kind != KIND_BLOCKED_BLOOM || !(1..=PROBES_MAX).contains(&probes) {
            return Err(CorruptionKind::Malformed("unknown kind of filter"));
        }
        if lines == 0 || to_usize(lines).checked_mul(LINE_BYTES) != Some(decoder.0.len()) {
            return Err(CorruptionKind::Malformed("length of a filter differs from its header"));
        }
        let (chunks, _) = decoder.0.as_chunks::<8>();
        let (lines, _) = chunks.as_chunks::<{ LINE_BYTES / 8 }>();
        let mut filter = Filter { lines: KEPT.take(lines.len()), probes };
        filter.lines.extend(lines.iter().map(|line| Line(line.map(u64::from_le_bytes))));
        Ok(filter)
    }

    /// Returns the bytes of memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        kept::bytes_of(&self.lines)
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        KEPT.give_back(std::mem::take(&mut self.lines));
    }
}

/// Appends the filter of keys with these hashes to `out`. `bits_per_key` must be at least 1.
pub(super) fn build(hashes: &[u64], bits_per_key: u32, out: &mut Vec<u8>) {
    let bits = (hashes.len() as u64).saturating_mul(u64::from(bits_per_key));
    let lines = u32::try_from(bits.div_ceil(8 * LINE_BYTES as u64)).unwrap_or(u32::MAX).max(1);
    // 0.6 probes for each bit per key. A plain Bloom filter is best with 0.69. A blocked one is
    // best with fewer, because its lines fill unevenly.
    let probes = u8::try_from((bits_per_key * 6).div_ceil(10)).unwrap_or(PROBES_MAX);
    let probes = probes.clamp(1, PROBES_MAX);
    let mut words = vec![[0u64; LINE_BYTES / 8]; to_usize(lines)];
    for &hash in hashes {
        let line = line_of(hash, words.len());
        let mut bits = bits_of(hash);
        for _ in 0..probes {
            let (word, mask) = next_bit(&mut bits);
            words[line][word] |= mask;
        }
    }
    out.reserve(size_bytes(hashes.len(), bits_per_key));
    out.extend_from_slice(&[KIND_BLOCKED_BLOOM, probes, 0, 0]);
    out.extend_from_slice(&lines.to_le_bytes());
    for word in words.as_flattened() {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

/// Returns the length of the filter's block for `keys` keys.
pub(super) fn size_bytes(keys: usize, bits_per_key: u32) -> usize {
    if bits_per_key == 0 {
        return 0;
    }
    let bits = keys.saturating_mul(to_usize(bits_per_key));
    HEADER_BYTES + bits.div_ceil(8 * LINE_BYTES).max(1) * LINE_BYTES
}

#[inline]
fn line_of(hash: u64, lines: usize) -> usize {
    let line = ((hash >> 32) * lines as u64) >> 32;
    usize::try_from(line).unwrap_or(0)
}

/// Returns the generator of a key's bits: the low half of the hash, spread over 64 bits.
#[inline]
fn bits_of(hash: u64) -> u64 {
    (hash & 0xFFFF_FFFF).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns the next word and bit mask within the line.
#[inline]
fn next_bit(bits: &mut u64) -> (usize, u64) {
    let top = bits.to_be_bytes();
    let word = usize::from(top[0] >> 5);
    let mask = 1 << ((*bits >> 55) & 63);
    *bits = bits.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(9);
    (word, mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(keys: u64, bits: u32) -> Filter {
        let hashes: Vec<u64> = (0..keys).map(|i| hash_key(&i.to_be_bytes())).collect();
        let mut block = Vec::new();
        build(&hashes, bits, &mut block);
        assert_eq!(block.len(), size_bytes(hashes.len(), bits));
        Filter::decode(&block).unwrap()
    }

    #[test]
    fn every_added_key_is_found() {
        for (keys, bits) in [(1, 1), (1, 10), (1000, 1), (10_000, 10), (5_000, 30)] {
            let filter = filter(keys, bits);
            assert!((0..keys).all(|i| filter.may_contain(hash_key(&i.to_be_bytes()))));
        }
    }

    #[test]
    fn false_positives_stay_below_their_bound() {
        for (bits, per_mille) in [(5, 120), (8, 27), (10, 12), (12, 7), (16, 2), (20, 1)] {
            for keys in [1_000, 50_000] {
                let filter = filter(keys, bits);
                let asked = 200_000u64;
                let wrong = (keys..keys + asked)
                    .filter(|i| filter.may_contain(hash_key(&i.to_be_bytes())))
                    .count() as u64;
                println!(
                    "{bits} bits, {keys} keys: {} per mille",
                    wrong as f64 * 1e3 / asked as f64
                );
                assert!(wrong * 1000 <= asked * per_mille, "{bits} bits: {wrong} of {asked}");
            }
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut block = Vec::new();
        build(&[1, 2, 3], 10, &mut block);
        for length in 0..block.len() {
            assert!(Filter::decode(&block[..length]).is_err());
        }
        for (i, byte) in [(0, 9), (1, 0), (1, 17), (4, 0), (5, 1)] {
            let mut bad = block.clone();
            bad[i] = byte;
            assert!(Filter::decode(&bad).is_err(), "byte {i}");
        }
    }
}
