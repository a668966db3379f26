//! The parts of the table format that all blocks share: the footer and the block trailer.
//! `docs/format/table.md` describes the bytes.
//!
//! What must stay true is format rule F1: no byte is used before its checksum has verified. A
//! checksum is valid only for one offset in one table in one file of one database.

use sateen_control::TableId;

use crate::base::decoder::Decoder;
use crate::base::error::CorruptionKind;
use crate::files::seal::Seed;

/// Bytes behind each block's payload: one for the compression type, eight for the checksum.
pub const BLOCK_TRAILER_BYTES: usize = 9;
/// Length of a table's footer.
pub const FOOTER_BYTES: usize = 128;
/// The last eight bytes of a table.
pub const TABLE_MAGIC: u64 = u64::from_le_bytes(*b"SATtable");
/// The format version that is written, and the newest that is read.
pub const FORMAT_VERSION: u32 = 1;
/// Feature that a reader must know: values may be in a WAL.
pub const SEPARATED_VALUES: u32 = 1;
/// Feature that a reader must know: the filter contains only prefixes, no whole keys.
pub const PREFIXES_ONLY: u32 = 4;
/// Feature that a reader must know: keys are in the order of a comparator that the properties name.
pub const CUSTOM_ORDER: u32 = 16;
/// Feature that a reader must know: values may be in value files.
pub const VALUES_IN_FILES: u32 = 32;
/// All features that this version knows.
pub const KNOWN_FEATURES: u32 = SEPARATED_VALUES | PREFIXES_ONLY | CUSTOM_ORDER | VALUES_IN_FILES;
/// Longest payload of a block, compressed or not: one value of 1 GiB, one key, and some overhead.
pub const BLOCK_BYTES_MAX: usize = (1 << 30) + (1 << 27);

/// Where a block is in its table: `size` bytes of payload from `offset`, then the trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHandle {
    pub offset: u64,
    pub size: u64,
}

impl BlockHandle {
    /// Returns the offset behind the trailer.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.size).saturating_add(BLOCK_TRAILER_BYTES as u64)
    }

    /// Returns true if there is no such block.
    pub fn is_absent(self) -> bool {
        self == BlockHandle::default()
    }
}

/// The footer: the last bytes of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footer {
    pub table: TableId,
    /// End of the data blocks, where the other blocks begin.
    pub data_end: u64,
    pub index: BlockHandle,
    /// Absent if the table has no filter.
    pub filter: BlockHandle,
    pub properties: BlockHandle,
    /// Features that a reader must know.
    pub features: u32,
}

/// Why a footer was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FooterError {
    Corrupt(CorruptionKind),
    /// The table needs a newer engine. Contains its format version and features.
    Newer {
        version: u32,
        features: u32,
    },
}

impl Footer {
    pub fn encode(&self, seed: Seed, offset: u64) -> [u8; FOOTER_BYTES] {
        let mut bytes = Vec::with_capacity(FOOTER_BYTES);
        let none = BlockHandle::default();
        // The two absent handles are reserved for range deletions and a directory of blocks. A
        // table that uses one sets a feature bit.
        for handle in [self.index, self.filter, self.properties, none, none] {
            bytes.extend_from_slice(&handle.offset.to_le_bytes());
            bytes.extend_from_slice(&handle.size.to_le_bytes());
        }
        bytes.extend_from_slice(&self.table.0.to_le_bytes());
        bytes.extend_from_slice(&self.data_end.to_le_bytes());
        bytes.extend_from_slice(&0u64.to_le_bytes());
        bytes.extend_from_slice(&self.features.to_le_bytes());
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        let checksum = seed.checksum(&bytes, offset);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(&TABLE_MAGIC.to_le_bytes());
        let mut footer = [0; FOOTER_BYTES];
        footer.copy_from_slice(&bytes);
        footer
    }

    /// Decodes the footer at `offset` of its table.
    pub fn decode(bytes: &[u8], seed: Seed, offset: u64) -> Result<Footer, FooterError> {
        Footer::decode_parts(bytes, seed, offset)
            .unwrap_or(Err(FooterError::Corrupt(CorruptionKind::Truncated)))
    }

    fn decode_parts(bytes: &[u8], seed: Seed, offset: u64) -> Option<Result<Footer, FooterError>> {
        let corrupt = |kind| Some(Err(FooterError::Corrupt(kind)));
        let (rest, magic) = bytes.split_last_chunk()?;
        let (body, checksum) = rest.split_last_chunk()?;
        if u64::from_le_bytes(*magic) != TABLE_MAGIC {
            return corrupt(CorruptionKind::Malformed("not the end of a table"));
        }
        if !seed.verify(body, offset, u64::from_le_bytes(*checksum)) {
            return corrupt(CorruptionKind::Checksum);
        }
        let mut decoder = Decoder(body);
        let mut handle = || Some(BlockHandle { offset: decoder.u64()?, size: decoder.u64()? });
        let (index, filter, properties) = (handle()?, handle()?, handle()?);
        let _reserved = (handle()?, handle()?);
        let table = TableId(decoder.u64()?);
        let data_end = decoder.u64()?;
        let _reserved = decoder.u64()?;
        let (features, version) = (decoder.u32()?, decoder.u32()?);
        if version > FORMAT_VERSION || features & !KNOWN_FEATURES != 0 {
            return Some(Err(FooterError::Newer { version, features }));
        }
        let footer = Footer { table, data_end, index, filter, properties, features };
        for block in [index, filter, properties] {
            let elsewhere = block.offset < data_end || block.end() > offset;
            if !block.is_absent() && elsewhere {
                return corrupt(CorruptionKind::Malformed("block lies outside its table"));
            }
        }
        if index.is_absent() || properties.is_absent() {
            return corrupt(CorruptionKind::Malformed("table has no index or no properties"));
        }
        Some(Ok(footer))
    }
}

#[cfg(test)]
mod tests {
    use sateen_control::FileId;

    use super::*;

    const SEED: fn() -> Seed = || Seed::of_table(7, FileId(2), TableId(9));

    #[test]
    fn footer_round_trip_and_refusals() {
        let footer = Footer {
            table: TableId(9),
            data_end: 100,
            index: BlockHandle { offset: 100, size: 50 },
            filter: BlockHandle::default(),
            properties: BlockHandle { offset: 159, size: 10 },
            features: SEPARATED_VALUES,
        };
        let bytes = footer.encode(SEED(), 178);
        assert_eq!(Footer::decode(&bytes, SEED(), 178), Ok(footer));
        assert!(Footer::decode(&bytes, SEED(), 179).is_err());
        for i in 0..bytes.len() {
            let mut bad = bytes;
            bad[i] ^= 1;
            assert!(Footer::decode(&bad, SEED(), 178).is_err(), "byte {i}");
        }
        let outside = Footer { index: BlockHandle { offset: 150, size: 50 }, ..footer };
        assert!(Footer::decode(&outside.encode(SEED(), 178), SEED(), 178).is_err());
    }
}
