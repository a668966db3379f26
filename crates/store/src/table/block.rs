//! Data blocks: entries of one block, its builder, its search and its cursor.
//!
//! A block keeps its values together and its keys together, with the keys behind the values. A
//! search therefore touches a few adjacent cache lines, however large the values are.
//!
//! ```text
//! values ‖ keys ‖ restarts ‖ u32 length of the values ‖ u32 number of restarts
//! key:     varint shared, varint unshared, varint value length, unshared bytes, 8 bytes trailer
//! restart: u32 offset in the keys, u32 offset in the values
//! ```
//!
//! `shared` is the length of the longest common prefix with the user key before; at a restart it is
//! 0. The first key is a restart without an entry in the list.
//!
//! 1. [`BlockBuilder::add`] appends entries, and lists a restart after each interval.
//!    [`BlockBuilder::finish`] joins the parts.
//! 2. [`get`] searches one user key: binary search over the restarts (`search_restart`), then a
//!    scan from there that compares only the bytes it must (`get_in`). With a custom comparator it
//!    uses the cursor (`get_by`).
//! 3. [`Cursor`] walks the entries: `seek` goes to a restart and steps forward; `prev` goes back to
//!    the last restart before the entry and steps forward again (`last_before`).
//!
//! What must stay true: entries stand in the order of [`crate::base::key::compare`]. Decoding
//! hostile bytes returns an error and never panics.

use std::cmp::Ordering;
use std::ops::Range;

use sateen_control::{Comparator, SeqNo};

use crate::base::decoder::{Decoder, push_varint, shared_prefix, to_usize};
use crate::base::error::CorruptionKind;
use crate::base::key::{self, TRAILER_BYTES};

const TAIL_BYTES: usize = 8;
const RESTART_BYTES: usize = 8;

const BAD_TAIL: CorruptionKind = CorruptionKind::Malformed("block ends before its tail");
const BAD_ENTRY: CorruptionKind =
    CorruptionKind::Malformed("entry extends past the end of its block");

/// Builds blocks, one after the other, from sorted entries.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    /// The values; after `finish` the whole block.
    values: Vec<u8>,
    keys: Vec<u8>,
    restarts: Vec<u8>,
    /// Number of entries between restarts.
    interval: u32,
    /// Number of entries that still fit before the next restart.
    until_restart: u32,
    entries: u32,
}

impl BlockBuilder {
    /// Returns a builder that restarts prefix compression every `interval` entries.
    pub(super) fn new(interval: u32, block_bytes: usize) -> BlockBuilder {
        let interval = interval.max(1);
        BlockBuilder {
            values: Vec::with_capacity(block_bytes + block_bytes / 4 + 256),
            keys: Vec::with_capacity(1024),
            restarts: Vec::new(),
            interval,
            until_restart: interval,
            entries: 0,
        }
    }

    /// Adds an entry whose user key has `shared` bytes in common with the one before, and not more.
    #[inline]
    pub(super) fn add(&mut self, shared: usize, internal_key: &[u8], value: &[u8]) {
        // The first entry of a block and every restart store the whole key.
        let mut shared = shared;
        if self.entries == 0 {
            shared = 0;
        } else if self.until_restart == 0 {
            shared = 0;
            self.until_restart = self.interval;
            self.restarts.extend_from_slice(&length(&self.keys).to_le_bytes());
            self.restarts.extend_from_slice(&length(&self.values).to_le_bytes());
        }
        self.until_restart -= 1;
        self.entries += 1;
        let suffix = &internal_key[shared..];
        let unshared = suffix.len() - TRAILER_BYTES;
        if (shared | unshared | value.len()) < 0x80 {
            let lengths = [shared, unshared, value.len()].map(|n| n.to_le_bytes()[0]);
            self.keys.extend_from_slice(&lengths);
        } else {
            for n in [shared, unshared, value.len()] {
                push_varint(&mut self.keys, u32::try_from(n).unwrap_or(u32::MAX));
            }
        }
        self.keys.extend_from_slice(suffix);
        self.values.extend_from_slice(value);
    }

    /// Returns the length of the block so far.
    #[inline]
    pub(super) fn size_bytes(&self) -> usize {
        self.values.len() + self.keys.len() + self.restarts.len() + TAIL_BYTES
    }

    /// Returns true if nothing was added since the last block.
    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Completes the block. It stays until `clear`, and may be sealed in place.
    pub(super) fn finish(&mut self) -> &mut Vec<u8> {
        let values = length(&self.values);
        let restarts = u32::try_from(self.restarts.len() / RESTART_BYTES).unwrap_or(u32::MAX);
        self.values.extend_from_slice(&self.keys);
        self.values.extend_from_slice(&self.restarts);
        self.values.extend_from_slice(&values.to_le_bytes());
        self.values.extend_from_slice(&restarts.to_le_bytes());
        &mut self.values
    }

    /// Empties the builder for the next block. Memory that one huge value took is freed.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.values.shrink_to(1 << 20);
        self.keys.clear();
        self.restarts.clear();
        self.until_restart = self.interval;
        self.entries = 0;
    }
}

/// Converts a length. Blocks are far below 4 GiB, because the table builder checks every length.
#[inline]
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// The parts of a block's payload.
#[derive(Clone, Copy)]
struct Parts<'a> {
    values: &'a [u8],
    keys: &'a [u8],
    restarts: &'a [u8],
}

/// An entry as it stands in the block.
struct RawEntry<'a> {
    /// Length of the common prefix with the user key before.
    shared: usize,
    /// The rest of the user key.
    suffix: &'a [u8],
    trailer: u64,
    /// Suffix and trailer, which are adjacent.
    suffix_and_trailer: &'a [u8],
    value_length: usize,
    /// The keys behind the entry.
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Splits a block's payload into its parts; `None` if the tail is invalid.
    #[inline]
    fn of(block: &'a [u8]) -> Option<Parts<'a>> {
        let (body, tail) = block.split_last_chunk::<TAIL_BYTES>()?;
        let mut tail = Decoder(tail);
        let (values, restarts) = (to_usize(tail.u32()?), to_usize(tail.u32()?));
        let restarts_at = body.len().checked_sub(restarts.checked_mul(RESTART_BYTES)?)?;
        let (rest, restarts) = body.split_at_checked(restarts_at)?;
        let (values, keys) = rest.split_at_checked(values)?;
        Some(Parts { values, keys, restarts })
    }

    /// Returns the number of listed restarts.
    #[inline]
    fn listed(&self) -> usize {
        self.restarts.len() / RESTART_BYTES
    }

    /// Returns where restart `i` stands in keys and values. Restart 0 is the start; the listed ones
    /// follow.
    #[inline]
    fn restart(&self, i: usize) -> Option<(usize, usize)> {
        let Some(listed) = i.checked_sub(1) else { return Some((0, 0)) };
        let mut entry = Decoder(self.restarts.get(listed * RESTART_BYTES..)?);
        Some((to_usize(entry.u32()?), to_usize(entry.u32()?)))
    }

    /// Returns the entry at `at` in the keys.
    #[inline]
    fn entry(&self, at: usize) -> Option<RawEntry<'a>> {
        RawEntry::decode(self.keys.get(at..)?)
    }

    /// Returns the last restart whose key is before (`user_key`, `trailer`); 0 if there is none.
    #[inline]
    fn search_restart(
        &self,
        comparator: &Comparator,
        user_key: &[u8],
        trailer: u64,
    ) -> Option<usize> {
        let (mut low, mut high) = (0, self.listed());
        while low < high {
            let middle = (low + high).div_ceil(2);
            let (at, _) = self.restart(middle)?;
            let entry = self.entry(at)?;
            let before = match comparator.compare(entry.suffix, user_key) {
                Ordering::Less => true,
                Ordering::Equal => entry.trailer > trailer,
                Ordering::Greater => false,
            };
            if before {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Some(low)
    }
}

impl<'a> RawEntry<'a> {
    /// Decodes the entry at the front of `keys`. Three lengths below 128, the usual case, need no
    /// varint loop.
    #[inline(always)]
    fn decode(keys: &'a [u8]) -> Option<RawEntry<'a>> {
        let (shared, unshared, value_length, rest) = match keys.split_first_chunk::<3>() {
            Some((&[shared, unshared, value], rest)) if (shared | unshared | value) < 0x80 => {
                (usize::from(shared), usize::from(unshared), usize::from(value), rest)
            }
            _ => {
                let mut decoder = Decoder(keys);
                let shared = to_usize(decoder.varint()?);
                let unshared = to_usize(decoder.varint()?);
                let value = to_usize(decoder.varint()?);
                (shared, unshared, value, decoder.0)
            }
        };
        let (suffix_and_trailer, rest) = rest.split_at_checked(unshared + TRAILER_BYTES)?;
        let (suffix, trailer) = suffix_and_trailer.split_last_chunk()?;
        let trailer = u64::from_le_bytes(*trailer);
        Some(RawEntry { shared, suffix, trailer, suffix_and_trailer, value_length, rest })
    }
}

/// Returns true if `block` is a data block from its first to its last byte: its entries use up its
/// keys and values. Other bytes pass only by an unlikely coincidence.
pub(super) fn is_whole(block: &[u8]) -> bool {
    let Some(Parts { values, keys, .. }) = Parts::of(block) else { return false };
    let (mut keys, mut bytes, mut before) = (keys, 0_usize, 0);
    if keys.is_empty() {
        return false;
    }
    while !keys.is_empty() {
        let Some(entry) = RawEntry::decode(keys) else { return false };
        let Some(sum) = bytes.checked_add(entry.value_length) else { return false };
        if entry.shared > before || sum > values.len() {
            return false;
        }
        before = entry.shared + entry.suffix.len();
        bytes = sum;
        keys = entry.rest;
    }
    bytes == values.len()
}

/// The result of a search for one user key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The newest visible entry: its trailer, and the range of its value in the block.
    Entry(u64, Range<usize>),
    /// A greater user key follows, so there is no entry.
    Absent,
    /// The block ended first. The next block may begin with the key.
    End,
}

/// Searches `block` for the first entry of `user_key` whose trailer is at most `trailer`.
#[inline]
pub(super) fn get(
    comparator: &Comparator,
    block: &[u8],
    user_key: &[u8],
    trailer: u64,
) -> Result<Found, CorruptionKind> {
    if !comparator.is_bytewise() {
        return get_by(comparator, block, user_key, trailer);
    }
    let parts = Parts::of(block).ok_or(BAD_TAIL)?;
    get_in(parts, user_key, trailer).ok_or(BAD_ENTRY)
}

/// The search of [`get`] in byte order. It compares each byte of the target at most once, because
/// `shared` tells what the entry has in common with the one before.
#[inline]
fn get_in(parts: Parts<'_>, user_key: &[u8], trailer: u64) -> Option<Found> {
    let restart = parts.search_restart(&Comparator::BYTEWISE, user_key, trailer)?;
    let (start, mut value_at) = parts.restart(restart)?;
    // At the next restart `shared` is 0 and says nothing. Entries from there on are at or behind
    // the target.
    let to_next = match restart < parts.listed() {
        true => parts.restart(restart + 1)?.0,
        false => parts.keys.len(),
    };
    let mut keys = parts.keys.get(start..)?;
    let after_restart = parts.keys.len().checked_sub(to_next)?;
    // Length of the common prefix of the target and the key before, which is before the target.
    let mut common = 0;
    while !keys.is_empty() {
        if keys.len() == after_restart {
            common = 0;
        }
        let entry = RawEntry::decode(keys)?;
        // The entry differs from the one before earlier than the target does, so it is greater than
        // the target.
        if entry.shared < common {
            return Some(Found::Absent);
        }
        // It differs where the target differs, too: compare from there. An entry that shares more
        // differs later, and is still before the target.
        if entry.shared == common {
            let wanted = user_key.get(common..)?;
            let same = shared_prefix(entry.suffix, wanted);
            match (entry.suffix.get(same), wanted.get(same)) {
                (None, None) if entry.trailer <= trailer => {
                    let value = value_at..value_at.checked_add(entry.value_length)?;
                    parts.values.get(value.clone())?;
                    return Some(Found::Entry(entry.trailer, value));
                }
                (Some(_), None) => return Some(Found::Absent),
                (Some(have), Some(want)) if have > want => return Some(Found::Absent),
                _ => common += same,
            }
        }
        value_at = value_at.checked_add(entry.value_length)?;
        keys = entry.rest;
    }
    Some(Found::End)
}

/// [`get`] for a custom comparator, where common prefixes say nothing about the order.
#[cold]
fn get_by(
    comparator: &Comparator,
    block: &[u8],
    user_key: &[u8],
    trailer: u64,
) -> Result<Found, CorruptionKind> {
    let mut target = user_key.to_vec();
    target.extend_from_slice(&trailer.to_le_bytes());
    let mut cursor = Cursor::default();
    cursor.seek(comparator, block, &target)?;
    if !cursor.valid() {
        return Ok(Found::End);
    }
    if key::user_key(cursor.key()) != user_key {
        return Ok(Found::Absent);
    }
    Ok(Found::Entry(key::trailer(cursor.key()), cursor.value()))
}

/// A position in a block that the caller holds and passes to each call: the same block until
/// `reset`. It is invalid after an error.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    /// Positions of the current and the next entry in the keys.
    entry: usize,
    next: usize,
    /// The current internal key, put together from the entries since the restart.
    key: Vec<u8>,
    /// Range of the current value in the block.
    value: Range<usize>,
    valid: bool,
    /// Added to all trailers.
    number: u64,
}

impl Cursor {
    /// Returns a cursor for entries that are stored with sequence number 0 and have `seqno`
    /// instead.
    pub(super) fn numbered(seqno: SeqNo) -> Cursor {
        Cursor { number: seqno.0 << 8, ..Cursor::default() }
    }

    /// Makes the cursor invalid, before another block.
    pub(super) fn reset(&mut self) {
        self.valid = false;
    }

    /// Returns true if the cursor stands on an entry.
    #[inline]
    pub(super) fn valid(&self) -> bool {
        self.valid
    }

    /// Returns the internal key.
    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the range of the value in the block.
    #[inline]
    pub(super) fn value(&self) -> Range<usize> {
        self.value.clone()
    }

    /// Moves to the first entry.
    pub(super) fn seek_to_first(&mut self, block: &[u8]) -> Result<(), CorruptionKind> {
        self.at_restart(block, 0)
    }

    /// Moves to the last entry.
    pub(super) fn seek_to_last(&mut self, block: &[u8]) -> Result<(), CorruptionKind> {
        let keys = Parts::of(block).ok_or(BAD_TAIL)?.keys.len();
        self.last_before(block, keys)
    }

    /// Moves to the first entry at or after `target`, an internal key.
    pub(super) fn seek(
        &mut self,
        comparator: &Comparator,
        block: &[u8],
        target: &[u8],
    ) -> Result<(), CorruptionKind> {
        let parts = Parts::of(block).ok_or(BAD_TAIL)?;
        let (user_key, trailer) = (key::user_key(target), key::trailer(target));
        let restart = parts.search_restart(comparator, user_key, trailer).ok_or(BAD_ENTRY)?;
        self.at_restart(block, restart)?;
        while self.valid && key::compare(comparator, &self.key, target) == Ordering::Less {
            self.next(block)?;
        }
        Ok(())
    }

    /// Moves to the next entry. Invalid behind the last.
    #[inline]
    pub(super) fn next(&mut self, block: &[u8]) -> Result<(), CorruptionKind> {
        self.valid = false;
        let parts = Parts::of(block).ok_or(BAD_TAIL)?;
        if self.next < parts.keys.len() {
            self.step(parts).ok_or(BAD_ENTRY)?;
        }
        Ok(())
    }

    /// Moves to the previous entry. Invalid before the first.
    pub(super) fn prev(&mut self, block: &[u8]) -> Result<(), CorruptionKind> {
        self.last_before(block, self.entry)
    }

    /// Moves to restart `i`.
    fn at_restart(&mut self, block: &[u8], i: usize) -> Result<(), CorruptionKind> {
        self.valid = false;
        let parts = Parts::of(block).ok_or(BAD_TAIL)?;
        let (keys, values) = parts.restart(i).ok_or(BAD_ENTRY)?;
        self.key.clear();
        self.key.extend_from_slice(&[0; TRAILER_BYTES]);
        self.next = keys;
        self.value = values..values;
        if keys < parts.keys.len() {
            self.step(parts).ok_or(BAD_ENTRY)?;
        }
        Ok(())
    }

    /// Moves to the last entry before `end` in the keys.
    fn last_before(&mut self, block: &[u8], end: usize) -> Result<(), CorruptionKind> {
        self.valid = false;
        let parts = Parts::of(block).ok_or(BAD_TAIL)?;
        let (mut low, mut high) = (0, parts.listed());
        while low < high {
            let middle = (low + high).div_ceil(2);
            match parts.restart(middle).ok_or(BAD_ENTRY)?.0 < end {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        if end == 0 {
            return Ok(());
        }
        self.at_restart(block, low)?;
        while self.valid && self.next < end {
            self.next(block)?;
        }
        Ok(())
    }

    /// Decodes the entry at `next`, whose value follows the last one.
    #[inline]
    fn step(&mut self, parts: Parts<'_>) -> Option<()> {
        let entry = parts.entry(self.next)?;
        let before = self.key.len().checked_sub(TRAILER_BYTES)?;
        if entry.shared > before {
            return None;
        }
        self.key.truncate(entry.shared);
        self.key.extend_from_slice(entry.suffix_and_trailer);
        // Entries of an ingested table are stored with sequence number 0.
        if self.number != 0
            && let Some(trailer) = self.key.last_chunk_mut::<TRAILER_BYTES>()
        {
            *trailer = (entry.trailer | self.number).to_le_bytes();
        }
        let end = self.value.end.checked_add(entry.value_length)?;
        if end > parts.values.len() {
            return None;
        }
        self.value = self.value.end..end;
        self.entry = self.next;
        self.next = parts.keys.len().checked_sub(entry.rest.len())?;
        self.valid = true;
        Some(())
    }
}
