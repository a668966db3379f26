//! The directory of a compaction file: which tables are where. `docs/format/compaction-file.md`
//! describes the bytes.
//!
//! What must stay true: an entry suffices to add its table to a manifest. Its length comes first,
//! so that later versions can add fields.

use sateen_control::{ColumnFamilyId, SeqNo, TableId};

use super::HEADER_BYTES;
use crate::base::decoder::{Decoder, to_usize};

/// The entry of a table in the file's directory: enough to add the table to a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryEntry {
    pub table: TableId,
    /// Start of the table in the file; a multiple of the page size.
    pub offset: u64,
    /// Length without the padding behind it.
    pub length: u64,
    pub column_family: ColumnFamilyId,
    /// Level for which the table was written.
    pub level: u8,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
    pub seqno_min: SeqNo,
    pub seqno_max: SeqNo,
    pub entries: u64,
    /// Tombstones of all kinds.
    pub tombstones: u64,
    /// Bytes of user keys and values before compression.
    pub raw_bytes: u64,
}

/// Appends an entry to a directory. Its length comes first, so that a later version can add fields.
pub(super) fn push_entry(out: &mut Vec<u8>, entry: &DirectoryEntry) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for number in [
        entry.table.0,
        entry.offset,
        entry.length,
        entry.entries,
        entry.tombstones,
        entry.raw_bytes,
        entry.seqno_min.0,
        entry.seqno_max.0,
    ] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&entry.column_family.0.to_le_bytes());
    out.push(entry.level);
    for bound in [&entry.smallest, &entry.largest] {
        out.extend_from_slice(&u32::try_from(bound.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(bound);
    }
    let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(start..start + 4) {
        field.copy_from_slice(&length.to_le_bytes());
    }
}

/// Decodes the directory of a file with `count` tables before `end`. Returns `None` if an entry is
/// invalid, lies outside the file or off a page boundary, or if the number of tables is wrong.
pub(super) fn decode_directory(bytes: &[u8], count: u32, end: u64) -> Option<Vec<DirectoryEntry>> {
    let mut decoder = Decoder(bytes);
    let mut tables = Vec::new();
    while !decoder.is_empty() {
        let length = to_usize(decoder.u32()?);
        let entry = decode_entry(Decoder(decoder.take(length)?))?;
        let in_file = entry.offset.checked_add(entry.length)? <= end;
        if !in_file || entry.offset < HEADER_BYTES || !entry.offset.is_multiple_of(HEADER_BYTES) {
            return None;
        }
        tables.push(entry);
    }
    (tables.len() == to_usize(count)).then_some(tables)
}

/// Decodes the fields of one entry. Bytes behind the known fields are ignored.
fn decode_entry(mut decoder: Decoder<'_>) -> Option<DirectoryEntry> {
    let mut entry = DirectoryEntry {
        table: TableId(decoder.u64()?),
        offset: decoder.u64()?,
        length: decoder.u64()?,
        entries: decoder.u64()?,
        tombstones: decoder.u64()?,
        raw_bytes: decoder.u64()?,
        seqno_min: SeqNo(decoder.u64()?),
        seqno_max: SeqNo(decoder.u64()?),
        column_family: ColumnFamilyId(decoder.u32()?),
        level: decoder.u8()?,
        ..DirectoryEntry::default()
    };
    for bound in [&mut entry.smallest, &mut entry.largest] {
        let length = to_usize(decoder.u32()?);
        *bound = decoder.take(length)?.to_vec();
    }
    Some(entry)
}
