//! Internal keys: a user key, then eight bytes that say when and what. Their order is the order of
//! every memtable and table: user keys as the column family's comparator says, then newest first.

use std::cmp::Ordering;

use sateen_control::{Comparator, SeqNo, ValueKind};

/// Bytes of the trailer behind the user key.
pub const TRAILER_BYTES: usize = 8;

/// The trailer: sequence number in the high 56 bits, kind in the low 8; stored little-endian.
#[inline]
pub fn pack(seqno: SeqNo, kind: ValueKind) -> u64 {
    (seqno.0 << 8) | kind as u64
}

/// The trailer of an internal key as a number; 0 if `internal` is too short to have one.
#[inline]
pub fn trailer(internal: &[u8]) -> u64 {
    internal.last_chunk::<TRAILER_BYTES>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The user key of an internal key.
#[inline]
pub fn user_key(internal: &[u8]) -> &[u8] {
    &internal[..internal.len().saturating_sub(TRAILER_BYTES)]
}

/// The sequence number of an internal key.
#[inline]
pub fn seqno(internal: &[u8]) -> SeqNo {
    SeqNo(trailer(internal) >> 8)
}

/// The kind of an internal key, `None` if no kind has that number.
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

/// The internal key at which a search for `user_key` as of `seqno` starts.
pub fn seek_key(user_key: &[u8], seqno: SeqNo) -> Vec<u8> {
    let mut key = Vec::with_capacity(user_key.len() + TRAILER_BYTES);
    append(&mut key, user_key, seqno, ValueKind::MAX);
    key
}

/// The order of internal keys.
#[inline]
pub fn compare(comparator: &Comparator, a: &[u8], b: &[u8]) -> Ordering {
    match comparator.compare(user_key(a), user_key(b)) {
        Ordering::Equal => trailer(b).cmp(&trailer(a)),
        unequal => unequal,
    }
}

/// The first eight bytes of a user key as a number, zeros behind a shorter one.
///
/// Unequal prefixes are ordered as their keys are; equal prefixes say nothing.
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

/// [`key_prefix`] where keys are compared as bytes; where they are not, that of all keys is the
/// same.
#[inline]
pub fn ordered_prefix(comparator: &Comparator, user_key: &[u8]) -> u64 {
    if comparator.is_bytewise() { key_prefix(user_key) } else { 0 }
}
