//! The bytes that all parts of a table share: how a block is sealed and verified, the footer, and
//! the little decoder that every reader of untrusted bytes goes through. Described in
//! `docs/format/table.md`; what must stay true is format rule F1: nothing is believed before the
//! checksum, which belongs to one place in one table in one file of one database.

use sateen_control::{FileId, TableId};

use crate::error::CorruptionKind;
use crate::plant::planted;
use crate::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Behind each block's payload: one byte of compression type, eight of checksum.
pub(crate) const BLOCK_TRAILER_BYTES: usize = 9;
/// The length of a table's footer.
pub(crate) const FOOTER_BYTES: usize = 128;
/// The last eight bytes of a table.
pub(crate) const TABLE_MAGIC: u64 = u64::from_le_bytes(*b"SATtable");
/// The version of the table format that is written, and the newest that is read.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// A feature without whose understanding a table cannot be read: values may be in another file.
pub(crate) const SEPARATED_VALUES: u32 = 1;
/// Another: the filter has no whole keys, but only prefixes.
pub(crate) const PREFIXES_ONLY: u32 = 4;
/// Another: keys are in the order of a comparator that the properties name, not in that of bytes.
pub(crate) const CUSTOM_ORDER: u32 = 16;
/// All of these.
pub(crate) const KNOWN_FEATURES: u32 = SEPARATED_VALUES | PREFIXES_ONLY | CUSTOM_ORDER;
/// No block's payload is longer, compressed or not: one value of 1 GiB, one key, and change.
pub(crate) const BLOCK_BYTES_MAX: usize = (1 << 30) + (1 << 27);

/// Where a table is, as a number into which every checksum of it is mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed(u64);

impl Seed {
    /// The seed of a table's blocks.
    pub(crate) fn of_table(db_uid: u64, file: FileId, table: TableId) -> Seed {
        Seed::of(db_uid, file, table.0)
    }

    /// The seed of what belongs to a compaction file as a whole. Table ids start at 1.
    pub(crate) fn of_file(db_uid: u64, file: FileId) -> Seed {
        Seed::of(db_uid, file, 0)
    }

    fn of(db_uid: u64, file: FileId, table: u64) -> Seed {
        let mut bytes = [0; 24];
        for (to, from) in bytes.chunks_exact_mut(8).zip([db_uid, file.0, table]) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        Seed(xxh3_64(&bytes))
    }

    /// The seed for bytes at `offset`. Different offsets have different seeds.
    #[inline]
    fn at(self, offset: u64) -> u64 {
        if planted("place_not_checked") {
            return self.0;
        }
        self.0 ^ offset.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// The checksum of `bytes` at `offset`. Never zero, so that zeros never verify.
    #[inline]
    pub(crate) fn checksum(self, bytes: &[u8], offset: u64) -> u64 {
        xxh3_64_with_seed(bytes, self.at(offset)).max(1)
    }

    /// True if `stored` is the checksum of `bytes` at `offset`. A fuzzer cannot guess checksums, so
    /// builds for it let every one pass.
    #[inline]
    pub(crate) fn verify(self, bytes: &[u8], offset: u64, stored: u64) -> bool {
        if planted("zeros_verify") && stored == 0 && bytes.iter().all(|byte| *byte == 0) {
            return true;
        }
        cfg!(fuzzing) || (stored != 0 && stored == self.checksum(bytes, offset))
    }

    /// Appends type and checksum to `block`, which holds a payload that will stand at `offset`.
    #[inline]
    pub(crate) fn seal(self, block: &mut Vec<u8>, compression: u8, offset: u64) {
        block.push(compression);
        let checksum = self.checksum(block, offset);
        block.extend_from_slice(&checksum.to_le_bytes());
    }

    /// The payload and the compression type of the sealed block `stored`, read from `offset`.
    #[inline]
    pub(crate) fn open(self, stored: &[u8], offset: u64) -> Result<(&[u8], u8), CorruptionKind> {
        let (block, checksum) = stored.split_last_chunk().ok_or(CorruptionKind::Truncated)?;
        if !self.verify(block, offset, u64::from_le_bytes(*checksum)) {
            return Err(CorruptionKind::Checksum);
        }
        let (&compression, payload) = block.split_last().ok_or(CorruptionKind::Truncated)?;
        Ok((payload, compression))
    }
}

/// Where a block is in its table: `size` bytes of payload from `offset`, then the trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockHandle {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl BlockHandle {
    /// The offset behind the trailer.
    pub(crate) fn end(self) -> u64 {
        self.offset.saturating_add(self.size).saturating_add(BLOCK_TRAILER_BYTES as u64)
    }

    /// True if there is no such block.
    pub(crate) fn is_absent(self) -> bool {
        self == BlockHandle::default()
    }
}

/// The last bytes of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) table: TableId,
    /// Where the data blocks end and the other blocks begin.
    pub(crate) data_end: u64,
    pub(crate) index: BlockHandle,
    /// Absent if the table has no filter.
    pub(crate) filter: BlockHandle,
    pub(crate) properties: BlockHandle,
    /// What a reader must know of.
    pub(crate) features: u32,
}

/// Why a footer was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FooterError {
    Corrupt(CorruptionKind),
    /// The table needs a newer engine: its format version and its features.
    Newer {
        version: u32,
        features: u32,
    },
}

impl Footer {
    pub(crate) fn encode(&self, seed: Seed, offset: u64) -> [u8; FOOTER_BYTES] {
        let mut bytes = Vec::with_capacity(FOOTER_BYTES);
        let none = BlockHandle::default();
        // The two absent handles are room for range deletions and for a directory of blocks that
        // are not thought of yet; a table that needs either sets a feature bit.
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

    /// Reads the footer that stands at `offset` of its table.
    pub(crate) fn decode(bytes: &[u8], seed: Seed, offset: u64) -> Result<Footer, FooterError> {
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
                return corrupt(CorruptionKind::Malformed("block outside of its table"));
            }
        }
        if index.is_absent() || properties.is_absent() {
            return corrupt(CorruptionKind::Malformed("table without index or properties"));
        }
        Some(Ok(footer))
    }
}

/// Takes little-endian numbers and slices from the front of untrusted bytes; `None` at their end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder<'a>(pub(crate) &'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.chunk().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    /// A `u32` in 7-bit groups, low first. Longer than five bytes or above 32 bits is `None`.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u32> {
        let (&first, rest) = self.0.split_first()?;
        if first < 0x80 {
            self.0 = rest;
            return Some(u32::from(first));
        }
        self.varint_long()
    }

    fn varint_long(&mut self) -> Option<u32> {
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).ok();
            }
        }
        None
    }

    /// A slice behind its length.
    pub(crate) fn slice(&mut self) -> Option<&'a [u8]> {
        let n = self.varint()?;
        self.take(to_usize(n))
    }
}

/// Writes `value` in 7-bit groups to the front of `out`; returns how many bytes it took.
#[inline]
pub(crate) fn put_varint(out: &mut [u8; 5], mut value: u32) -> usize {
    let mut n = 0;
    while value >= 0x80 {
        out[n] = value.to_le_bytes()[0] | 0x80;
        value >>= 7;
        n += 1;
    }
    out[n] = value.to_le_bytes()[0];
    n + 1
}

/// Appends `value` in 7-bit groups.
#[inline]
pub(crate) fn push_varint(out: &mut Vec<u8>, value: u32) {
    if let Ok(byte @ 0..0x80) = u8::try_from(value) {
        out.push(byte);
        return;
    }
    let mut bytes = [0; 5];
    let n = put_varint(&mut bytes, value);
    out.extend_from_slice(&bytes[..n]);
}

/// A `u32` as an index; every supported target has at least 32-bit indices.
#[inline]
pub(crate) fn to_usize(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// How many leading bytes `a` and `b` share.
#[inline]
pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut n = 0;
    let (mut words_a, mut words_b) = (a.chunks_exact(8), b.chunks_exact(8));
    for (x, y) in words_a.by_ref().zip(words_b.by_ref()) {
        if let (Some(x), Some(y)) = (x.first_chunk(), y.first_chunk()) {
            let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
            if differ != 0 {
                return n + to_usize(differ.trailing_zeros() / 8);
            }
        }
        n += 8;
    }
    let (rest_a, rest_b) = (a.get(n..).unwrap_or_default(), b.get(n..).unwrap_or_default());
    n + rest_a.iter().zip(rest_b).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: fn() -> Seed = || Seed::of_table(7, FileId(2), TableId(9));

    #[test]
    fn a_sealed_block_opens_only_where_it_was_sealed() {
        let mut block = b"payload".to_vec();
        SEED().seal(&mut block, 1, 4096);
        assert_eq!(SEED().open(&block, 4096), Ok((b"payload".as_slice(), 1)));
        for seed in [
            Seed::of_table(8, FileId(2), TableId(9)),
            Seed::of_table(7, FileId(3), TableId(9)),
            Seed::of_table(7, FileId(2), TableId(8)),
        ] {
            assert_eq!(seed.open(&block, 4096), Err(CorruptionKind::Checksum));
        }
        assert_eq!(SEED().open(&block, 0), Err(CorruptionKind::Checksum));
    }

    #[test]
    fn zeros_and_short_blocks_do_not_open() {
        for n in 0..64 {
            assert!(SEED().open(&vec![0; n], 0).is_err());
        }
    }

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

    #[test]
    fn varints_round_trip_and_overlong_ones_are_refused() {
        for value in [0, 1, 127, 128, 16383, 16384, 1 << 21, 1 << 28, u32::MAX] {
            let mut bytes = Vec::new();
            push_varint(&mut bytes, value);
            let mut decoder = Decoder(&bytes);
            assert_eq!(decoder.varint(), Some(value));
            assert!(decoder.is_empty());
        }
        assert_eq!(Decoder(&[0x80, 0x80, 0x80, 0x80, 0x10]).varint(), None);
        assert_eq!(Decoder(&[0x80; 9]).varint(), None);
        assert_eq!(Decoder(&[0x80]).varint(), None);
    }

    #[test]
    fn shared_prefix_agrees_with_a_byte_by_byte_count() {
        let a: Vec<u8> = (0..40).collect();
        for differ in 0..40 {
            for len in 0..40 {
                let mut b = a[..len].to_vec();
                if differ < len {
                    b[differ] ^= 0x80;
                }
                assert_eq!(shared_prefix(&a, &b), differ.min(len));
                assert_eq!(shared_prefix(&b, &a), differ.min(len));
            }
        }
    }
}
