//! The form of a batch's bytes in RocksDB, which clients exchange and traces have.
//!
//! The bytes begin with the sequence number (8 bytes) and the count (4 bytes), both little-endian.
//! An entry is a byte for its kind; for other column families than the default one, the family's
//! number as a varint; then key and value, each after its length as a varint. Log data, which does
//! not count, is a byte and one such string.
//!
//! Two-phase commits put markers between the entries. A transaction of RocksDB's policy
//! `WRITE_COMMITTED` is applied by its commit, which has the marker of a commit, then the whole
//! batch of the prepare again, with its markers. So [`applied`] leaves entries behind the first
//! marker of a prepare out, unless a commit stands before it. The other policies have markers of
//! their own: they apply the entries of the prepare, and their commit has none.

use sateen_control::{ColumnFamilyId, ValueKind};
use sateen_store::base::coding::{put_slice, put_varint, take_slice, take_varint_u32};
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::{BatchEntry, BatchItem};

use super::WriteBatch;

const HEADER_BYTES: usize = 12;
const LOG_DATA: u8 = 0x3;
const NOTHING: u8 = 0xd;

/// The marker at which entries begin that their commit applies.
const PREPARE_BEGINS: u8 = 0x9;
/// Those at which entries begin that are applied at once (`WRITE_PREPARED` and `WRITE_UNPREPARED`).
const APPLIED_BEGINS: [u8; 2] = [0x12, 0x13];
/// The marker at which either of these end, and those of a commit and of a rollback. The name of
/// the transaction follows each.
const PREPARE_ENDS: u8 = 0xa;
const COMMIT: u8 = 0xb;
const ROLLBACK: u8 = 0xc;

/// The byte of each kind, in the default column family and in others.
const KINDS: [(ValueKind, u8, u8); 5] = [
    (ValueKind::Delete, 0x0, 0x4),
    (ValueKind::Put, 0x1, 0x5),
    (ValueKind::Merge, 0x2, 0x6),
    (ValueKind::SingleDelete, 0x7, 0x8),
    (ValueKind::RangeDelete, 0xf, 0xe),
];

impl WriteBatch {
    /// Returns the batch as RocksDB encodes it. Its first entry has the sequence number `seqno`, or
    /// 0 if it has none yet.
    ///
    /// ```
    /// let mut batch = sateen::WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// assert_eq!(batch.to_rocksdb(7), b"\x07\0\0\0\0\0\0\0\x01\0\0\0\x01\x03fig\x011");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn to_rocksdb(&self, seqno: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.len_bytes());
        begin(&mut bytes, seqno, self.count());
        self.items().for_each(|item| put_item(&mut bytes, &item));
        bytes
    }

    /// Returns the batch that RocksDB has encoded as `bytes`, and the sequence number that they say
    /// its first entry has.
    ///
    /// ```
    /// use sateen::WriteBatch;
    ///
    /// let mut batch = WriteBatch::new();
    /// batch.put("fig", "1")?;
    /// assert_eq!(WriteBatch::from_rocksdb(&batch.to_rocksdb(7))?, (batch, 7));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if they are no batch, or one with entries that no database here
    /// can apply.
    pub fn from_rocksdb(bytes: &[u8]) -> Result<(WriteBatch, u64)> {
        let decoded = decode(bytes, false)?;
        if decoded.count != decoded.batch.count() {
            return Err(invalid(bytes, "their count of entries is wrong"));
        }
        Ok((decoded.batch, decoded.seqno))
    }
}

/// Returns what a write of `bytes` applies: its entries without those that a later commit applies.
pub(crate) fn applied(bytes: &[u8]) -> Result<WriteBatch> {
    // The count is not compared: RocksDB counts what is left out here, but not always.
    Ok(decode(bytes, true)?.batch)
}

/// Appends the header of a batch to `out`.
pub(crate) fn begin(out: &mut Vec<u8>, seqno: u64, count: u32) {
    out.extend_from_slice(&seqno.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
}

/// Sets the count in the header of the batch `out`.
pub(crate) fn set_count(out: &mut [u8], count: u32) {
    if let Some(place) = out.get_mut(HEADER_BYTES - 4..HEADER_BYTES) {
        place.copy_from_slice(&count.to_le_bytes());
    }
}

/// Appends an item of a batch to `out`.
pub(crate) fn put_item(out: &mut Vec<u8>, item: &BatchItem<'_>) {
    let entry = match item {
        BatchItem::Write(entry) => entry,
        BatchItem::LogData(data) => {
            out.push(LOG_DATA);
            return put_slice(out, data);
        }
    };
    let kind = KINDS.iter().find(|(kind, ..)| *kind == entry.kind);
    let Some((_, plain, with_family)) = kind else { return };
    if entry.column_family.0 == 0 {
        out.push(*plain);
    } else {
        out.push(*with_family);
        put_varint(out, entry.column_family.0.into());
    }
    put_slice(out, entry.key);
    if entry.kind.has_value() {
        put_slice(out, entry.value);
    }
}

struct Decoded {
    batch: WriteBatch,
    seqno: u64,
    /// The number of entries that the header names.
    count: u32,
}

/// Decodes a batch. With `transactions`, markers of two-phase commits may stand in it; without,
/// they are refused.
fn decode(bytes: &[u8], transactions: bool) -> Result<Decoded> {
    let invalid = |what: &str| invalid(bytes, what);
    let no_header = || invalid("no header");
    let (seqno, rest) = bytes.split_first_chunk().ok_or_else(no_header)?;
    let (count, mut rest) = rest.split_first_chunk().ok_or_else(no_header)?;
    let early = || invalid("they end early");
    let mut batch = WriteBatch::with_value_bytes_max(usize::MAX);
    let (mut is_commit, mut is_prepared) = (false, false);
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            NOTHING => continue,
            LOG_DATA => {
                let data = take_slice(&mut rest).ok_or_else(early)?;
                batch.put_log_data(data)?;
                continue;
            }
            PREPARE_ENDS | COMMIT | ROLLBACK if transactions => {
                let _name = take_slice(&mut rest).ok_or_else(early)?;
                is_commit |= first == COMMIT;
                is_prepared &= first != PREPARE_ENDS;
                continue;
            }
            PREPARE_BEGINS if transactions => {
                is_prepared = !is_commit;
                continue;
            }
            marker if transactions && APPLIED_BEGINS.contains(&marker) => continue,
            _ => {}
        }
        let kind = KINDS.iter().find(|(_, plain, other)| first == *plain || first == *other);
        let Some((kind, plain, _)) = kind else {
            return Err(invalid(&format!("an entry has the unknown kind {first:#x}")));
        };
        let entry = take_entry(&mut rest, *kind, first != *plain).ok_or_else(early)?;
        if !is_prepared {
            batch.add_entry(&entry)?;
        }
    }
    let (seqno, count) = (u64::from_le_bytes(*seqno), u32::from_le_bytes(*count));
    Ok(Decoded { batch, seqno, count })
}

#[cold]
fn invalid(bytes: &[u8], what: &str) -> Error {
    Error::InvalidArgument(format!("{} bytes are not a batch: {what}", bytes.len()))
}

fn take_entry<'a>(rest: &mut &'a [u8], kind: ValueKind, family: bool) -> Option<BatchEntry<'a>> {
    let family = if family { take_varint_u32(rest)? } else { 0 };
    let key = take_slice(rest)?;
    let value = if kind.has_value() { take_slice(rest)? } else { &[] };
    Some(BatchEntry { column_family: ColumnFamilyId(family), kind, key, value })
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
        let header = b"\x07\0\0\0\0\0\0\0\x02\0\0\0";
        let entries = b"\x01\x04key1\x04val1\x03\x04blob\x00\x04key2";
        assert_eq!(batch.to_rocksdb(7), [&header[..], entries].concat());
    }

    #[test]
    fn what_was_written_is_read() {
        let batch = batch();
        for seqno in [0, 1 << 40] {
            let bytes = batch.to_rocksdb(seqno);
            assert_eq!(WriteBatch::from_rocksdb(&bytes).unwrap(), (batch.clone(), seqno));
            assert_eq!(applied(&bytes).unwrap(), batch);
        }
    }

    #[test]
    fn log_data_does_not_count() {
        let mut bytes = WriteBatch::new().to_rocksdb(0);
        bytes.extend_from_slice(b"\x03\x04data\x0d");
        let (batch, _) = WriteBatch::from_rocksdb(&bytes).unwrap();
        assert!(batch.is_empty());
        assert!(batch.items().eq([BatchItem::LogData(b"data")]));
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        let bytes = batch().to_rocksdb(0);
        for length in 0..bytes.len() {
            let cut = WriteBatch::from_rocksdb(&bytes[..length]);
            assert!(cut.is_err(), "{length} of {}", bytes.len());
        }
        let header = &WriteBatch::new().to_rocksdb(0)[..];
        for rest in
            [&b"\x16\x01x"[..], b"\x01\xff\xff\xff\xff\xff\x01x", b"\x01\xff\xff\xff\xff\x0fx"]
        {
            let bytes = [header, rest].concat();
            assert!(WriteBatch::from_rocksdb(&bytes).is_err(), "{rest:?}");
            assert!(applied(&bytes).is_err(), "{rest:?}");
        }
        let mut miscounted = bytes;
        miscounted[8] += 1;
        assert!(WriteBatch::from_rocksdb(&miscounted).is_err());
    }

    #[test]
    fn entries_of_a_prepared_transaction_are_applied_once() {
        let header = b"\0\0\0\0\0\0\0\0\x01\0\0\0";
        let mut expected = WriteBatch::new();
        expected.put("k", "v").unwrap();
        for (begin, at_once) in [(b"\x09", false), (b"\x12", true), (b"\x13", true)] {
            let prepare = [&header[..], begin, b"\x01\x01k\x01v\x0a\x04name"].concat();
            let now = applied(&prepare).unwrap();
            assert_eq!(now, if at_once { expected.clone() } else { WriteBatch::new() });
            assert!(WriteBatch::from_rocksdb(&prepare).is_err(), "a client has none of these");
        }
        let commit = [&header[..], b"\x0b\x04name\x09\x01\x01k\x01v\x0a\x04name"].concat();
        assert_eq!(applied(&commit).unwrap(), expected);
        // What a client adds to the commit stands before.
        let commit =
            [&header[..], b"\x0d\x01\x01k\x01v\x0b\x04name\x09\x00\x01k\x0a\x04name"].concat();
        assert_eq!(applied(&commit).unwrap().count(), 2);
        let rollback = [&header[..], b"\x0c\x04name"].concat();
        assert!(applied(&rollback).unwrap().is_empty());
    }
}
