//! The index of a table: for each data block its length and a separator. A separator is a user key
//! at or after the block's last key. If the next block begins with another user key, the separator
//! is before that key. Blocks follow each other without gaps, so the lengths give their offsets.
//!
//! 1. [`IndexBuilder::add`] collects the separators, which [`separator`] shortens.
//!    [`IndexBuilder::encode`] sets the prefix that all of them share apart.
//! 2. [`Index::decode`] checks that the blocks fill the table exactly. It splits each separator
//!    into a *head*, the first eight bytes behind the common prefix as a number, and keeps the
//!    whole rest in `tails`.
//! 3. [`Index::find`] compares the common prefix, then searches the heads. Among equal heads it
//!    searches the tails (`find_among_equals`).
//! 4. With a custom comparator, separators are the last keys of blocks, and `find_by` compares them
//!    whole.
//!
//! What must stay true: decoding hostile bytes returns an error, and never reserves memory out of
//! proportion to the input.

use std::cmp::Ordering;

use sateen_control::Comparator;

use super::format::{BLOCK_BYTES_MAX, BLOCK_TRAILER_BYTES, BlockHandle};
use super::kept::{self, Kept};
use crate::base::decoder::{Decoder, push_varint, shared_prefix, to_usize};
use crate::base::error::CorruptionKind;

const TOO_LARGE: CorruptionKind =
    CorruptionKind::Malformed("index names a block outside its table");

/// Collects separators and lengths of blocks.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    separators: Vec<u8>,
    /// For each block, the end of its separator and the length of its payload.
    blocks: Vec<(usize, u32)>,
}

impl IndexBuilder {
    /// Adds a block.
    pub(super) fn add(&mut self, separator: &[u8], payload_bytes: u32) {
        self.separators.extend_from_slice(separator);
        self.blocks.push((self.separators.len(), payload_bytes));
    }

    /// Removes all blocks.
    pub(super) fn clear(&mut self) {
        self.separators.clear();
        self.blocks.clear();
    }

    /// Returns the number of blocks.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Returns the approximate length of the encoded index.
    pub(super) fn size_bytes(&self) -> usize {
        self.separators.len() + self.blocks.len() * 4 + 16
    }

    /// Appends the encoded index to `out`. `comparator` is that of the table's keys.
    pub(super) fn encode(&self, comparator: &Comparator, out: &mut Vec<u8>) {
        let mut start = 0;
        let mut separators = self.blocks.iter().map(|&(end, payload)| {
            let separator = &self.separators[start..end];
            start = end;
            (separator, payload)
        });
        let first = separators.next();
        let last_start = self.blocks.len().checked_sub(2).map_or(0, |i| self.blocks[i].0);
        let last = &self.separators[last_start..];
        // In byte order, what the first and the last separator share is common to all.
        let ends = first.filter(|_| comparator.is_bytewise());
        let shared = ends.map_or(0, |(separator, _)| shared_prefix(separator, last));
        out.extend_from_slice(&u32::try_from(self.blocks.len()).unwrap_or(0).to_le_bytes());
        push_varint(out, u32::try_from(shared).unwrap_or(0));
        out.extend_from_slice(&last[..shared]);
        for (separator, payload) in first.into_iter().chain(separators) {
            let rest = &separator[shared..];
            push_varint(out, u32::try_from(rest.len()).unwrap_or(0));
            out.extend_from_slice(rest);
            push_varint(out, payload);
        }
    }
}

/// Memory of the indexes of closed tables.
static KEPT_BYTES: Kept<u8> = Kept::new();
static KEPT_NARROW: Kept<u32> = Kept::new();
static KEPT_WIDE: Kept<u64> = Kept::new();

/// Ends of blocks. Small tables, which nearly all are, need four bytes for each.
#[derive(Debug)]
enum Ends {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Default for Ends {
    fn default() -> Ends {
        Ends::Narrow(Vec::new())
    }
}

impl Ends {
    /// Adds the end of the next block, which is not beyond that of the data.
    fn push(&mut self, end: u64) {
        match self {
            Ends::Narrow(ends) => ends.push(u32::try_from(end).unwrap_or(u32::MAX)),
            Ends::Wide(ends) => ends.push(end),
        }
    }
}

/// An index in memory.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The prefix of all separators.
    common: Box<[u8]>,
    /// The first eight bytes of each separator behind `common`, as a number with the same order.
    heads: Vec<u64>,
    /// End of each separator's rest in `tails`.
    tail_ends: Vec<u32>,
    /// The separators without `common`, one after the other.
    tails: Vec<u8>,
    /// End of each block in the table.
    ends: Ends,
}

impl Index {
    /// Decodes an index block. Its blocks must fill the table up to `data_end`. The order of the
    /// separators is checked only if keys are `bytewise`.
    pub(super) fn decode(
        payload: &[u8],
        data_end: u64,
        bytewise: bool,
    ) -> Result<Index, CorruptionKind> {
        let mut decoder = Decoder(payload);
        let blocks = decoder.u32().ok_or(CorruptionKind::Truncated)?;
        let common = decoder.slice().ok_or(CorruptionKind::Truncated)?;
        // Each block takes at least two bytes here, so a greater number is wrong.
        let blocks = to_usize(blocks);
        if blocks > decoder.0.len() / 2 {
            return Err(TOO_LARGE);
        }
        let is_narrow = u32::try_from(data_end).is_ok();
        let mut index = Index {
            common: common.into(),
            heads: KEPT_WIDE.take(blocks),
            tail_ends: KEPT_NARROW.take(blocks),
            tails: KEPT_BYTES.take(decoder.0.len() - 2 * blocks),
            ends: if is_narrow {
                Ends::Narrow(KEPT_NARROW.take(blocks))
            } else {
                Ends::Wide(KEPT_WIDE.take(blocks))
            },
        };
        let mut end = 0u64;
        let mut last: &[u8] = &[];
        for i in 0..blocks {
            let tail = decoder.slice().ok_or(CorruptionKind::Truncated)?;
            let bytes = decoder.varint().ok_or(CorruptionKind::Truncated)?;
            if i > 0 && bytewise && tail < last {
                return Err(CorruptionKind::Order);
            }
            last = tail;
            index.heads.push(head(tail));
            index.tails.extend_from_slice(tail);
            index.tail_ends.push(u32::try_from(index.tails.len()).map_err(|_| TOO_LARGE)?);
            end += u64::from(bytes) + BLOCK_TRAILER_BYTES as u64;
            if end > data_end || to_usize(bytes) > BLOCK_BYTES_MAX {
                return Err(TOO_LARGE);
            }
            index.ends.push(end);
        }
        if end != data_end || !decoder.is_empty() {
            return Err(CorruptionKind::Malformed(
                "index does not cover the data blocks of its table",
            ));
        }
        Ok(index)
    }

    /// Returns the number of data blocks.
    #[inline]
    pub(super) fn blocks(&self) -> usize {
        self.heads.len()
    }

    /// Returns where block `i` is; `None` behind the last.
    #[inline]
    pub(super) fn handle(&self, i: usize) -> Option<BlockHandle> {
        let offset = i.checked_sub(1).map_or(Some(0), |before| self.end(before))?;
        let size = self.end(i)?.checked_sub(offset)?.checked_sub(BLOCK_TRAILER_BYTES as u64)?;
        Some(BlockHandle { offset, size })
    }

    /// Returns the first block whose separator is at or after `user_key`. Entries of the key can
    /// begin only there. Returns the number of blocks if the key is behind all of them.
    #[inline]
    pub(super) fn find(&self, comparator: &Comparator, user_key: &[u8]) -> usize {
        if !comparator.is_bytewise() {
            return self.find_by(comparator, user_key);
        }
        // A key without the common prefix is before all separators or behind them.
        let Some(rest) = user_key.strip_prefix(&*self.common) else {
            return if user_key < &*self.common { 0 } else { self.blocks() };
        };
        let wanted = head(rest);
        let first = self.heads.partition_point(|&head| head < wanted);
        match self.heads.get(first) {
            Some(&head) if head == wanted => self.find_among_equals(first, wanted, rest),
            _ => first,
        }
    }

    /// Returns true if `user_key` is the separator of block `i`: the next block may have more
    /// versions of it.
    #[inline]
    pub(super) fn is_separator(&self, i: usize, user_key: &[u8]) -> bool {
        user_key.strip_prefix(&*self.common).is_some_and(|rest| self.tail(i) == Some(rest))
    }

    /// Returns the bytes of memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        let ends = match &self.ends {
            Ends::Narrow(ends) => kept::bytes_of(ends),
            Ends::Wide(ends) => kept::bytes_of(ends),
        };
        self.common.len()
            + kept::bytes_of(&self.heads)
            + kept::bytes_of(&self.tail_ends)
            + kept::bytes_of(&self.tails)
            + ends
    }

    /// The search of [`Index::find`] with a custom comparator.
    #[cold]
    fn find_by(&self, comparator: &Comparator, user_key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.blocks());
        while low < high {
            let middle = low.midpoint(high);
            let separator = [&*self.common, self.tail(middle).unwrap_or_default()].concat();
            match comparator.compare(&separator, user_key) {
                Ordering::Less => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    /// Searches the tails of the separators whose head is `wanted`.
    fn find_among_equals(&self, first: usize, wanted: u64, rest: &[u8]) -> usize {
        let heads = self.heads.get(first..).unwrap_or_default();
        let (mut low, mut high) = (first, first + heads.partition_point(|&head| head <= wanted));
        while low < high {
            let middle = low.midpoint(high);
            match self.tail(middle).unwrap_or_default().cmp(rest) {
                Ordering::Less => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    /// Returns the rest of separator `i` behind the common prefix.
    #[inline]
    fn tail(&self, i: usize) -> Option<&[u8]> {
        let start = i.checked_sub(1).map_or(Some(&0), |before| self.tail_ends.get(before))?;
        self.tails.get(to_usize(*start)..to_usize(*self.tail_ends.get(i)?))
    }

    /// Returns the end of block `i`.
    #[inline]
    fn end(&self, i: usize) -> Option<u64> {
        match &self.ends {
            Ends::Narrow(ends) => ends.get(i).copied().map(u64::from),
            Ends::Wide(ends) => ends.get(i).copied(),
        }
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        KEPT_WIDE.give_back(std::mem::take(&mut self.heads));
        KEPT_NARROW.give_back(std::mem::take(&mut self.tail_ends));
        KEPT_BYTES.give_back(std::mem::take(&mut self.tails));
        match std::mem::take(&mut self.ends) {
            Ends::Narrow(ends) => KEPT_NARROW.give_back(ends),
            Ends::Wide(ends) => KEPT_WIDE.give_back(ends),
        }
    }
}

/// Returns the first eight bytes as a number with the same order. Missing bytes count as zeros.
#[inline]
fn head(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    bytes.iter().zip([56, 48, 40, 32, 24, 16, 8]).fold(0, |n, (&b, at)| n | u64::from(b) << at)
}

/// Puts a short user key at or after `last` and before `next` into `out`. `next` is greater than
/// `last`. If both are the same key, the result is that key.
pub(super) fn separator(last: &[u8], next: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let shared = shared_prefix(last, next);
    // `next` cut behind its first greater byte is greater than `last`. It must not be all of
    // `next`.
    match next.get(..=shared) {
        Some(short) if short.len() < next.len() && short.len() <= last.len() => {
            out.extend_from_slice(short);
        }
        _ => out.extend_from_slice(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(separators: &[&[u8]]) -> Index {
        let mut builder = IndexBuilder::default();
        for (i, separator) in separators.iter().enumerate() {
            builder.add(separator, u32::try_from(i).unwrap() + 1);
        }
        let mut payload = Vec::new();
        builder.encode(&Comparator::BYTEWISE, &mut payload);
        assert!(payload.len() <= builder.size_bytes() + separators.len() * 8);
        let n = separators.len() as u64;
        Index::decode(&payload, n * (n + 1) / 2 + n * 9, true).unwrap()
    }

    #[test]
    fn finds_what_a_linear_search_finds() {
        let sets: &[&[&[u8]]] = &[
            &[b""],
            &[b"a"],
            &[b"", b"\0", b"\0\0", b"a"],
            &[b"a", b"a", b"a"],
            &[b"prefix/aaaaaaaaaa", b"prefix/aaaaaaaaab", b"prefix/aaaaaaaab", b"prefix/b"],
            &[b"aaaaaaaa", b"aaaaaaaa\0", b"aaaaaaaa\0\0", b"aaaaaaaab"],
        ];
        for separators in sets {
            let index = index(separators);
            let mut asked: Vec<Vec<u8>> = vec![vec![], b"z".to_vec(), b"prefix".to_vec()];
            for separator in *separators {
                asked.push(separator.to_vec());
                asked.push([separator, b"\0".as_slice()].concat());
                asked.push(separator[..separator.len().saturating_sub(1)].to_vec());
            }
            for key in asked {
                let expected = separators.partition_point(|s| **s < *key);
                assert_eq!(
                    index.find(&Comparator::BYTEWISE, &key),
                    expected,
                    "{key:?} in {separators:?}"
                );
                for (i, separator) in separators.iter().enumerate() {
                    assert_eq!(index.is_separator(i, &key), **separator == *key);
                }
            }
            assert_eq!(index.handle(0), Some(BlockHandle { offset: 0, size: 1 }));
            assert_eq!(index.handle(separators.len()), None);
        }
    }

    #[test]
    fn an_index_of_another_length_is_refused() {
        let mut builder = IndexBuilder::default();
        builder.add(b"abc", 10);
        builder.add(b"abd", 20);
        let mut payload = Vec::new();
        builder.encode(&Comparator::BYTEWISE, &mut payload);
        assert!(Index::decode(&payload, 48, true).is_ok());
        assert!(Index::decode(&payload, 47, true).is_err());
        assert!(Index::decode(&payload, 49, true).is_err());
        for length in 0..payload.len() {
            assert!(Index::decode(&payload[..length], 48, true).is_err());
        }
        let lie = [u32::MAX.to_le_bytes().as_slice(), &payload[4..]].concat();
        assert!(Index::decode(&lie, 48, true).is_err());
    }

    #[test]
    fn separators_separate() {
        let keys: &[&[u8]] = &[
            b"",
            b"\0",
            b"a",
            b"a\0",
            b"a\0b",
            b"ab",
            b"abc",
            b"abzzz",
            b"b",
            b"\xff",
            b"\xff\xff",
        ];
        let mut out = Vec::new();
        for pair in keys.windows(2) {
            separator(pair[0], pair[1], &mut out);
            assert!(pair[0] <= &*out && &*out < pair[1], "{pair:?} {out:?}");
        }
        separator(b"same", b"same", &mut out);
        assert_eq!(out, b"same");
        separator(b"user0001-long-tail", b"user0002-long-tail", &mut out);
        assert_eq!(out, b"user0002");
    }
}
