//! Reads the entries of a damaged table without its index, for `repair`.
//!
//! 1. [`find_tables`] finds the footers in a file whose directory cannot be read, and opens their
//!    tables.
//! 2. [`walk`] starts at the table's first block. `block_length` tries out where the block ends:
//!    the checksum tells.
//! 3. It verifies the block and passes on its entries, until a block does not verify or its entries
//!    are out of order.
//!
//! What must stay true: an entry is passed on only from a block that verifies as one of this table
//! at this place. Memory is bounded by the largest block that is tried.

use std::sync::Arc;

use sateen_control::{FileId, IoClass, SeqNo, ValueKind};

use super::block::{self, Cursor};
use super::compression::Decompressor;
use super::format::{
    BLOCK_TRAILER_BYTES, FOOTER_BYTES, Footer, FooterError, SEPARATED_VALUES, TABLE_MAGIC,
    VALUES_IN_FILES,
};
use super::properties::Properties;
use super::reader::{Table, unpack};
use super::separated::Separated;
use super::source::TableSource;
use super::value_files::{ValueFiles, ValuesFile};
use crate::base::error::Result;
use crate::base::key;
use crate::files::seal::Seed;
use crate::files::{DirectoryEntry, PAGE_BYTES};
use crate::vfs::AlignedBuffer;

/// Largest block that is tried. An index is needed to find larger ones.
const BLOCK_BYTES_MAX: u64 = 16 << 20;
/// Largest compressed block that is tried. Only its checksum shows its length, so each length costs
/// a checksum.
const COMPRESSED_BYTES_MAX: usize = 128 << 10;
/// Part of a file that is searched for footers at once.
const CHUNK_BYTES: usize = 1 << 20;

/// How the values of a table are read.
pub enum Values {
    /// The table contains all values.
    Here,
    /// Values are encoded. They may be in value files, and in this WAL if it could be opened.
    Separated(Arc<ValueFiles>, Option<ValuesFile>),
}

impl Values {
    /// Returns how to read values of a table with separated values that names the WAL `log`.
    pub fn separated(files: &Arc<ValueFiles>, log: Option<FileId>) -> Values {
        let log = log.and_then(|log| files.get_log(log).ok());
        Values::Separated(files.clone(), log)
    }

    /// Returns the value stored as `stored`; `None` if it cannot be read.
    fn get(&self, kind: Option<ValueKind>, stored: &[u8]) -> Option<Vec<u8>> {
        let Values::Separated(files, log) = self else { return Some(stored.to_vec()) };
        if kind != Some(ValueKind::Put) {
            return Some(stored.to_vec());
        }
        let class = IoClass::Client;
        match Separated::decode(stored)? {
            Separated::Here(value) => Some(value.to_vec()),
            Separated::InLog(place) => log.as_ref()?.read(place, class).ok(),
            Separated::InFile(file, place) => files.get(file, class).ok()?.read(place, class).ok(),
        }
    }
}

/// Passes the entries of the table's blocks to `each`, from the first block as far as they can be
/// read. Returns the offset in the table where it ended. A value that cannot be read is `None`.
pub fn walk(
    source: &TableSource,
    values: &Values,
    mut each: impl FnMut(&[u8], Option<&[u8]>) -> Result<()>,
) -> Result<u64> {
    let seed = Seed::of_table(source.db_uid, source.file_id, source.table);
    let mut buffer = AlignedBuffer::default();
    let (mut decompressor, mut decompressed) = (Decompressor::default(), Vec::new());
    let mut last: Vec<u8> = Vec::new();
    let mut at = 0;
    while at < source.length {
        let mut window = 64 << 10;
        let (stored, length) = loop {
            let wanted = window.min(source.length - at);
            let bytes = source.read(at, wanted, &mut buffer, IoClass::Client);
            let Ok(bytes) = bytes else { return Ok(at) };
            if let Some(length) = block_length(seed, bytes, at) {
                break (bytes.get(..length).unwrap_or_default(), length);
            }
            if wanted < window || window >= BLOCK_BYTES_MAX {
                return Ok(at);
            }
            window *= 8;
        };
        let unpacked = unpack(seed, stored, at, &mut decompressor, &mut decompressed);
        let Ok(payload) = unpacked else { return Ok(at) };
        let payload = payload.of(stored, &decompressed);
        // The blocks behind the data blocks are not data blocks.
        if !block::is_whole(payload) {
            return Ok(at);
        }
        let mut cursor = Cursor::numbered(source.global_seqno);
        let mut moved = cursor.seek_to_first(payload);
        while moved.is_ok() && cursor.valid() {
            let internal = cursor.key();
            let ascends = match &source.comparator {
                Some(comparator) => {
                    last.is_empty() || key::compare(comparator, &last, internal).is_lt()
                }
                None => true,
            };
            if !ascends {
                return Ok(at);
            }
            last.clear();
            last.extend_from_slice(internal);
            let stored = payload.get(cursor.value()).unwrap_or_default();
            let value = values.get(key::kind(internal), stored);
            each(internal, value.as_deref())?;
            moved = cursor.next(payload);
        }
        at += length as u64;
    }
    Ok(at)
}

/// Returns the length of the block at the start of `bytes`, which are at `at` of a table.
fn block_length(seed: Seed, bytes: &[u8], at: u64) -> Option<usize> {
    (BLOCK_TRAILER_BYTES + 8..=bytes.len()).find(|&end| {
        let payload = bytes.get(..end - BLOCK_TRAILER_BYTES).unwrap_or_default();
        // A cheap test first, because nearly every length is wrong.
        let possible = match bytes.get(payload.len()) {
            Some(0) => block::is_whole(payload),
            Some(1 | 2) => end <= COMPRESSED_BYTES_MAX,
            _ => false,
        };
        possible && seed.open(bytes.get(..end).unwrap_or_default(), at).is_ok()
    })
}

/// Returns whether the table has separated values, if its footer can be read.
pub fn separates(source: &TableSource) -> Option<bool> {
    let seed = Seed::of_table(source.db_uid, source.file_id, source.table);
    let at = source.length.checked_sub(FOOTER_BYTES as u64)?;
    let mut buffer = AlignedBuffer::default();
    let bytes = source.read(at, FOOTER_BYTES as u64, &mut buffer, IoClass::Client).ok()?;
    match Footer::decode(bytes, seed, at) {
        Ok(footer) => Some(footer.features & (SEPARATED_VALUES | VALUES_IN_FILES) != 0),
        Err(FooterError::Corrupt(_) | FooterError::Newer { .. }) => None,
    }
}

/// Finds tables in a file whose directory cannot be read. Each ends with a footer, from which its
/// start follows. `source` covers the whole file.
pub fn find_tables(source: &TableSource) -> Vec<DirectoryEntry> {
    let magic = TABLE_MAGIC.to_le_bytes();
    let mut buffer = AlignedBuffer::default();
    let mut found = Vec::new();
    let mut at = 0;
    while at < source.length {
        let wanted = (CHUNK_BYTES as u64).min(source.length - at);
        let Ok(bytes) = source.read(at, wanted, &mut buffer, IoClass::Client) else { break };
        let hits = bytes.windows(magic.len()).enumerate();
        let ends: Vec<u64> = hits
            .filter(|(_, window)| *window == magic)
            .map(|(hit, _)| at + (hit + magic.len()) as u64)
            .collect();
        found.extend(ends.into_iter().filter_map(|end| table_that_ends(source, end)));
        // A footer may cross the end of this part.
        if wanted <= magic.len() as u64 || at + wanted == source.length {
            break;
        }
        at += wanted - (magic.len() as u64 - 1);
    }
    found.dedup_by_key(|entry| entry.offset);
    found
}

/// Returns the table that ends at `end`, if it can be opened.
fn table_that_ends(source: &TableSource, end: u64) -> Option<DirectoryEntry> {
    let mut buffer = AlignedBuffer::default();
    let footer_at = end.checked_sub(FOOTER_BYTES as u64)?;
    let bytes = source.read(footer_at, FOOTER_BYTES as u64, &mut buffer, IoClass::Client).ok()?;
    let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    // The properties stand directly before the footer. Their place, taken from the footer, gives
    // the start of the table, and only with that start can the checksum be verified.
    let (properties, size, table) = (number(32)?, number(40)?, number(80)?);
    let length = properties.checked_add(size)?.checked_add(BLOCK_TRAILER_BYTES as u64)?;
    let length = length.checked_add(FOOTER_BYTES as u64)?;
    let offset = end.checked_sub(length)?;
    if !offset.is_multiple_of(PAGE_BYTES as u64) {
        return None;
    }
    let table = sateen_control::TableId(table);
    let source = TableSource { table, offset, length, ..source.clone() };
    let table = Arc::new(Table::open(source, IoClass::Client).ok()?);
    let properties: &Properties = table.properties();
    Some(DirectoryEntry {
        table: table.id(),
        offset,
        length,
        column_family: properties.column_family,
        level: properties.level,
        smallest: properties.smallest.clone(),
        largest: properties.largest.clone(),
        seqno_min: properties.seqno_min,
        seqno_max: properties.seqno_max.max(SeqNo(0)),
        entries: properties.entries,
        tombstones: properties.tombstones,
        raw_bytes: properties.raw_bytes,
    })
}
