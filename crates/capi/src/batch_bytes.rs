//! The form of a batch's bytes in RocksDB. Some clients read them, or send them to another
//! database.
//!
//! They begin with the sequence number (8 bytes) and the count (4 bytes), both little-endian. An
//! entry is a byte for its kind; for other column families than the default one, the family's
//! number as a varint; then key and value, each after its length as a varint. Log data, which does
//! not count, is a byte and one such string.

use sateen::{BatchEntry, BatchItem, ColumnFamilyId, Error, ValueKind, WriteBatch};

const HEADER_BYTES: usize = 12;
const LOG_DATA: u8 = 0x3;
const NOTHING: u8 = 0xd;

/// The byte of each kind, in the default column family and in others.
const KINDS: [(ValueKind, u8, u8); 5] = [
    (ValueKind::Delete, 0x0, 0x4),
    (ValueKind::Put, 0x1, 0x5),
    (ValueKind::Merge, 0x2, 0x6),
    (ValueKind::SingleDelete, 0x7, 0x8),
    (ValueKind::RangeDelete, 0xf, 0xe),
];

/// Returns the bytes of `batch`. Its first entry has the sequence number `seqno`, or 0 if it has
/// none yet.
pub(crate) fn encode(batch: &WriteBatch, seqno: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + batch.len_bytes());
    bytes.extend_from_slice(&seqno.to_le_bytes());
    bytes.extend_from_slice(&batch.count().to_le_bytes());
    for item in batch.items() {
        let entry = match item {
            BatchItem::Write(entry) => entry,
            BatchItem::LogData(data) => {
                bytes.push(LOG_DATA);
                put_slice(&mut bytes, data);
                continue;
            }
        };
        let kind = KINDS.iter().find(|(kind, ..)| *kind == entry.kind);
        let Some((_, plain, with_family)) = kind else { continue };
        if entry.column_family.0 == 0 {
            bytes.push(*plain);
        } else {
            bytes.push(*with_family);
            put_varint(&mut bytes, entry.column_family.0.into());
        }
        put_slice(&mut bytes, entry.key);
        if has_value(entry.kind) {
            put_slice(&mut bytes, entry.value);
        }
    }
    bytes
}

/// The batch that `bytes` are, and the sequence number that they say its first entry has.
///
/// # Errors
/// `InvalidArgument` if they are none, or one with what no database here can apply.
pub(crate) fn decode(bytes: &[u8]) -> sateen::Result<(WriteBatch, u64)> {
    let invalid = |what: &str| {
        Error::InvalidArgument(format!("{} bytes are not a batch: {what}", bytes.len()))
    };
    let no_header = || invalid("no header");
    let (seqno, rest) = bytes.split_first_chunk().ok_or_else(no_header)?;
    let (count, mut rest) = rest.split_first_chunk::<4>().ok_or_else(no_header)?;
    let mut batch = WriteBatch::with_value_bytes_max(usize::MAX);
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == NOTHING {
            continue;
        }
        if *first == LOG_DATA {
            batch.put_log_data(take_slice(&mut rest).ok_or_else(|| invalid("they end early"))?)?;
            continue;
        }
        let kind = KINDS.iter().find(|(_, plain, other)| first == plain || first == other);
        let (kind, plain, _) = kind.ok_or_else(|| invalid("an entry has an unknown kind"))?;
        let entry = take_entry(&mut rest, *kind, first != plain);
        batch.add_entry(&entry.ok_or_else(|| invalid("they end early"))?)?;
    }
    if *count != batch.count().to_le_bytes() {
        return Err(invalid("their count of entries is wrong"));
    }
    Ok((batch, u64::from_le_bytes(*seqno)))
}

fn has_value(kind: ValueKind) -> bool {
    matches!(kind, ValueKind::Put | ValueKind::Merge | ValueKind::RangeDelete)
}

fn take_entry<'a>(rest: &mut &'a [u8], kind: ValueKind, family: bool) -> Option<BatchEntry<'a>> {
    let family = if family { u32::try_from(take_varint(rest)?).ok()? } else { 0 };
    let key = take_slice(rest)?;
    let value = if has_value(kind) { take_slice(rest)? } else { &[] };
    Some(BatchEntry { column_family: ColumnFamilyId(family), kind, key, value })
}

fn put_slice(bytes: &mut Vec<u8>, slice: &[u8]) {
    put_varint(bytes, slice.len() as u64);
    bytes.extend_from_slice(slice);
}

fn take_slice<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_varint(rest)?).ok()?;
    let (slice, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(slice)
}

fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        let [low, ..] = number.to_le_bytes();
        bytes.push(low | 0x80);
        number >>= 7;
    }
    let [low, ..] = number.to_le_bytes();
    bytes.push(low);
}

/// A number below 2^32: nothing in a batch is larger.
fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let (first, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> WriteBatch {
        let mut batch = WriteBatch::new();
        batch.put("k", "v").unwrap();
        batch.delete("gone").unwrap();
        let large = vec![b'x'; 300];
        for (kind, family) in [(ValueKind::Merge, 0), (ValueKind::Put, 200)] {
            let column_family = ColumnFamilyId(family);
            let entry = BatchEntry { column_family, kind, key: b"m", value: &large };
            batch.add_entry(&entry).unwrap();
        }
        batch.delete_range("a", "b").unwrap();
        batch.put_log_data(&large).unwrap();
        batch.put_log_data("").unwrap();
        batch.single_delete("once").unwrap();
        batch
    }

    #[test]
    fn a_batch_has_the_bytes_that_clients_expect() {
        let mut batch = WriteBatch::new();
        batch.put("key1", "val1").unwrap();
        batch.put_log_data("blob").unwrap();
        batch.delete("key2").unwrap();
        let bytes = encode(&batch, 7);
        let header = b"\x07\0\0\0\0\0\0\0\x02\0\0\0";
        let entries = b"\x01\x04key1\x04val1\x03\x04blob\x00\x04key2";
        assert_eq!(bytes, [&header[..], entries].concat());
    }

    #[test]
    fn what_was_written_is_read() {
        let batch = batch();
        assert_eq!(decode(&encode(&batch, 0)).unwrap(), (batch.clone(), 0));
        assert_eq!(decode(&encode(&batch, 1 << 40)).unwrap(), (batch, 1 << 40));
    }

    #[test]
    fn log_data_does_not_count() {
        let mut bytes = encode(&WriteBatch::new(), 0);
        bytes.extend_from_slice(b"\x03\x04data\x0d");
        let (batch, _) = decode(&bytes).unwrap();
        assert!(batch.is_empty());
        assert!(batch.items().eq([BatchItem::LogData(b"data")]));
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        let bytes = encode(&batch(), 0);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
        }
        let header = &encode(&WriteBatch::new(), 0)[..];
        for rest in
            [&b"\x09\x01x"[..], b"\x01\xff\xff\xff\xff\xff\x01x", b"\x01\xff\xff\xff\xff\x0fx"]
        {
            assert!(decode(&[header, rest].concat()).is_err(), "{rest:?}");
        }
        let mut miscounted = bytes;
        miscounted[8] += 1;
        assert!(decode(&miscounted).is_err());
    }
}
