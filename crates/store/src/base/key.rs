//! Internal keys: a user key followed by an 8-byte trailer with sequence number and kind.
//!
//! What must stay true: [`compare`] is the order of every memtable and table. User keys ascend by
//! the column family's comparator, and versions of one key stand newest first.

use std::cmp::Ordering;

use sateen_control::{Comparator, SeqNo, ValueKind};

/// Bytes of the trailer behind the user key.
pub const TRAILER_BYTES: usize = 8;

/// Packs a trailer: sequence number in the high 56 bits, kind in the low 8. It is stored
/// little-endian.
#[inline]
pub fn pack(seqno: SeqNo, kind: ValueKind) -> u64 {
    (seqno.0 << 8) | kind as u64
}

/// Returns the trailer of an internal key as a number; 0 if `internal` is too short.
#[inline]
pub fn trailer(internal: &[u8]) -> u64 {
    internal.last_chunk::<TRAILER_BYTES>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Returns the user key of an internal key.
#[inline]
pub fn user_key(internal: &[u8]) -> &[u8] {
    &internal[..internal.len().saturating_sub(TRAILER_BYTES)]
}

/// Returns the sequence number of an internal key.
#[inline]
pub fn seqno(internal: &[u8]) -> SeqNo {
    SeqNo(trailer(internal) >> 8)
}

/// Returns the kind of an internal key; `None` if the number is not a kind.
#[inline]
pub fn kind(internal: &[u8]) -> Option<ValueKind> {
    ValueKind::from_byte(trailer(internal).to_le_bytes()[0])
}

/// Appends the internal key of (`user_key`, `seqno`, `kind`) to `out`.
#[inline]
pub fn append(out: &mut Vec<u8>, user_key: &[u8], seqno: SeqNo, kind: ValueKind) {
    out.extend_from_slice(user_key);
    out.extend_from_slice(&pack(seqno, kind).to_le_bytes());
}

/// Returns the internal key at which a search for `user_key` as of `seqno` starts.
pub fn seek_key(user_key: &[u8], seqno: SeqNo) -> Vec<u8> {
    let mut key = Vec::with_capacity(user_key.len() + TRAILER_BYTES);
    append(&mut key, user_key, seqno, ValueKind::MAX);
    key
}

/// Compares two internal keys.
#[inline]
pub fn compare(comparator: &Comparator, a: &[u8], b: &[u8]) -> Ordering {
    match comparator.compare(user_key(a), user_key(b)) {
        Ordering::Equal => trailer(b).cmp(&trailer(a)),
        unequal => unequal,
    }
}

/// Returns the first eight bytes of a user key as a big-endian number, padded with zeros.
///
/// If two prefixes differ, their keys are in the same order. Equal prefixes decide nothing.
#[inline]
pub fn key_prefix(user_key: &[u8]) -> u64 {
    if let Some(bytes) = user_key.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let mut padded = [0; 8];
    for (to, &from) in padded.iter_mut().zip(user_key) {
        *to = from;
    }
    u64::from_be_bytes(padded)
}

/// Returns [`key_prefix`] for the bytewise comparator. Otherwise it returns 0 for all keys, so that
/// prefixes never decide.
#[inline]
pub fn ordered_prefix(comparator: &Comparator, user_key: &[u8]) -> u64 {
    if comparator.is_bytewise() { key_prefix(user_key) } else { 0 }
}
