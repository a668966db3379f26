//! The framing of records in WALs and manifests: a header block, then records. The two kinds of
//! file differ in magic, number and kinds of record. `docs/format/wal.md` has a drawing.
//!
//! 1. [`FileHeader::encode`] makes the header block, and [`FileHeader::seed`] the number that is
//!    mixed into all checks of the file.
//! 2. [`RecordHeader::seal`] fills in a record's header: length, synced offset, sequence number,
//!    kind and count, then the header check, then the checksum of the whole record.
//! 3. [`RecordHeader::open`] verifies a header alone, so that its length can be trusted.
//! 4. [`RecordHeader::verify`] verifies the whole record, and returns its checksum, which the next
//!    record's includes (the chain).
//! 5. [`RecordHeader::proves_synced`] tells whether some bytes are a header that proves that the
//!    file was once durable beyond an offset.
//!
//! What must stay true:
//!
//! - Nothing verifies that was not written at this offset of this file. Both checks of a record
//!   include magic, database uid and file number. The header check also includes the offset, and
//!   the checksum also the checksum of the record before. Kind 0 does not exist, so zeros never
//!   verify.
//! - The length of a record is trusted only after its header check.
//! - `synced_offset` of a record never exceeds its own offset: everything below it was durable when
//!   the record was written. It is the only proof that a bad record was once good.

use sateen_control::SeqNo;

use crate::base::coding;
use crate::base::xxh3::xxh3_64;

/// Bytes of the header block.
pub const FILE_HEADER_BYTES: usize = 64;
/// Bytes of a record's header.
pub const RECORD_HEADER_BYTES: usize = 36;
/// The format version that is written, and the newest that is read.
pub const FORMAT_VERSION: u32 = 1;

const MAGIC_BYTES: usize = 8;
const CHECKED_HEADER_BYTES: usize = FILE_HEADER_BYTES - 8;
/// Start of the fields that the header check covers.
const FIELDS_AT: usize = 12;
const FIELDS_BYTES: usize = RECORD_HEADER_BYTES - FIELDS_AT;

/// The kind of a file with records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A WAL.
    Wal,
    /// A manifest.
    Manifest,
}

impl FileKind {
    /// Returns the first bytes of such a file.
    pub fn magic(self) -> [u8; MAGIC_BYTES] {
        match self {
            FileKind::Wal => *b"SATEENwl",
            FileKind::Manifest => *b"SATEENmf",
        }
    }
}

/// The kind of a record. The discriminants are on-disk format, and 0 is unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// The entries of one commit group, or the edits of one atomic change.
    Data = 1,
    /// The first record of a WAL: where the WAL before it ended.
    Link = 2,
    /// A record that only tells how much is synced.
    Mark = 3,
    /// The beginning of the snapshot in a manifest.
    SnapshotBegin = 4,
    /// The end of the snapshot in a manifest.
    SnapshotEnd = 5,
}

impl RecordKind {
    fn from_byte(byte: u8) -> Option<RecordKind> {
        match byte {
            1 => Some(RecordKind::Data),
            2 => Some(RecordKind::Link),
            3 => Some(RecordKind::Mark),
            4 => Some(RecordKind::SnapshotBegin),
            5 => Some(RecordKind::SnapshotEnd),
            _ => None,
        }
    }
}

/// The header block of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    pub version: u32,
    /// Uid of the database. Files of other databases never verify.
    pub db_uid: u64,
    /// Number of the file. Files of other numbers never verify.
    pub number: u64,
}

impl FileHeader {
    /// Encodes the header block.
    pub fn encode(&self, kind: FileKind) -> [u8; FILE_HEADER_BYTES] {
        let mut fields = Vec::with_capacity(FILE_HEADER_BYTES);
        fields.extend_from_slice(&kind.magic());
        fields.extend_from_slice(&self.version.to_le_bytes());
        fields.extend_from_slice(&0u32.to_le_bytes());
        fields.extend_from_slice(&self.db_uid.to_le_bytes());
        fields.extend_from_slice(&self.number.to_le_bytes());
        fields.resize(CHECKED_HEADER_BYTES, 0);
        let checksum = xxh3_64(&fields);
        fields.extend_from_slice(&checksum.to_le_bytes());
        let mut block = [0; FILE_HEADER_BYTES];
        block.copy_from_slice(&fields);
        block
    }

    /// Decodes a header block. Returns `None` if it is too short, belongs to another kind of file,
    /// or does not verify.
    pub fn decode(kind: FileKind, block: &[u8]) -> Option<FileHeader> {
        let (mut fields, mut checksum) =
            block.get(..FILE_HEADER_BYTES)?.split_at_checked(CHECKED_HEADER_BYTES)?;
        let stored = coding::take_u64(&mut checksum)?;
        if !same(stored, xxh3_64(fields)) || coding::take(&mut fields, MAGIC_BYTES)? != kind.magic()
        {
            return None;
        }
        let version = coding::take_u32(&mut fields)?;
        let _reserved = coding::take_u32(&mut fields)?;
        let db_uid = coding::take_u64(&mut fields)?;
        let number = coding::take_u64(&mut fields)?;
        Some(FileHeader { version, db_uid, number })
    }

    /// Returns the number that is mixed into both checks of every record. The chain starts with it.
    pub fn seed(&self, kind: FileKind) -> u64 {
        let mut identity = [0; MAGIC_BYTES + 16];
        identity[..8].copy_from_slice(&kind.magic());
        identity[8..16].copy_from_slice(&self.db_uid.to_le_bytes());
        identity[16..].copy_from_slice(&self.number.to_le_bytes());
        xxh3_64(&identity)
    }
}

/// The header of a record, without its checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    pub kind: RecordKind,
    /// Length of the payload.
    pub length: u32,
    /// Offset below which everything in the file was durable when the record was written.
    pub synced_offset: u64,
    /// Sequence number of the first entry.
    pub first_seqno: SeqNo,
    /// Number of entries in the payload.
    pub count: u32,
}

/// Why bytes are not a record header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHeader {
    /// They do not verify.
    Checksum,
    /// They verify, but the kind is unknown: a newer version wrote them.
    UnknownKind(u8),
    /// They verify, but claim that more was synced than written.
    SyncedAhead,
}

impl RecordHeader {
    /// Seals a record in place. `record` is space for the header followed by the payload, `offset`
    /// its place in the file, and `chain` the checksum of the record before. Returns the record's
    /// checksum.
    #[inline]
    pub fn seal(&self, record: &mut [u8], seed: u64, offset: u64, chain: u64) -> u64 {
        let mut fields = [0; FIELDS_BYTES];
        fields[0..4].copy_from_slice(&self.length.to_le_bytes());
        fields[4..12].copy_from_slice(&self.synced_offset.to_le_bytes());
        let seqno_and_kind = self.first_seqno.0 | (self.kind as u64) << 56;
        fields[12..20].copy_from_slice(&seqno_and_kind.to_le_bytes());
        fields[20..24].copy_from_slice(&self.count.to_le_bytes());
        record[FIELDS_AT..RECORD_HEADER_BYTES].copy_from_slice(&fields);
        let check = header_check(&fields, seed, offset);
        record[8..FIELDS_AT].copy_from_slice(&check.to_le_bytes());
        let checksum = mix(xxh3_64(&record[8..]), chain);
        record[..8].copy_from_slice(&checksum.to_le_bytes());
        checksum
    }

    /// Decodes the header at `offset` from `bytes`, which may be longer.
    #[inline]
    pub fn open(bytes: &[u8], seed: u64, offset: u64) -> Result<RecordHeader, BadHeader> {
        let parse = || {
            let (_, mut rest) = bytes.get(..RECORD_HEADER_BYTES)?.split_at_checked(8)?;
            let check = coding::take_u32(&mut rest)?;
            let fields = rest;
            let length = coding::take_u32(&mut rest)?;
            let synced_offset = coding::take_u64(&mut rest)?;
            let seqno_and_kind = coding::take_u64(&mut rest)?;
            let count = coding::take_u32(&mut rest)?;
            let verifies = same(check.into(), header_check(fields, seed, offset).into());
            verifies.then_some((length, synced_offset, seqno_and_kind, count))
        };
        let (length, synced_offset, seqno_and_kind, count) = parse().ok_or(BadHeader::Checksum)?;
        let [.., kind] = seqno_and_kind.to_le_bytes();
        let kind = match RecordKind::from_byte(kind) {
            Some(kind) => kind,
            None if kind == 0 => return Err(BadHeader::Checksum),
            None => return Err(BadHeader::UnknownKind(kind)),
        };
        // Only what was written before the record can have been durable.
        if synced_offset > offset {
            return Err(BadHeader::SyncedAhead);
        }
        let first_seqno = SeqNo(seqno_and_kind & SeqNo::MAX.0);
        Ok(RecordHeader { kind, length, synced_offset, first_seqno, count })
    }

    /// Returns true if `bytes` at `offset` are a record header of this file which proves that the
    /// file was once durable beyond `floor`. It nearly always answers after one comparison.
    #[inline]
    pub fn proves_synced(bytes: &[u8], seed: u64, offset: u64, floor: u64) -> bool {
        let claim = bytes.get(FIELDS_AT + 4..).and_then(<[u8]>::first_chunk::<8>);
        let claim = claim.map_or(0, |claim| u64::from_le_bytes(*claim));
        claim > floor
            && claim <= offset
            && RecordHeader::open(bytes, seed, offset).is_ok_and(|h| h.synced_offset > floor)
    }

    /// Returns the checksum that a whole record should have behind the checksum `chain`.
    pub fn chain_behind(record: &[u8], chain: u64) -> u64 {
        mix(xxh3_64(record.get(8..).unwrap_or_default()), chain)
    }

    /// Verifies a whole record, header and payload, behind the checksum `chain`. Returns the
    /// record's checksum.
    #[inline]
    pub fn verify(record: &[u8], chain: u64) -> Option<u64> {
        let (stored, covered) = record.split_first_chunk::<8>()?;
        let stored = u64::from_le_bytes(*stored);
        same(stored, mix(xxh3_64(covered), chain)).then_some(stored)
    }
}

/// Compares checksums. Fuzzing builds accept every checksum, because a fuzzer cannot guess them.
#[inline]
fn same(stored: u64, computed: u64) -> bool {
    cfg!(fuzzing) || stored == computed
}

/// Returns the header check: a hash of the fields, mixed with the file's identity and the offset.
#[inline]
fn header_check(fields: &[u8], seed: u64, offset: u64) -> u32 {
    let mixed = mix(xxh3_64(fields), seed.wrapping_add(offset.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let [_, _, _, _, high @ ..] = mixed.to_le_bytes();
    u32::from_le_bytes(high)
}

/// Mixes two hashes. If either argument is fixed, it is a bijection of the other.
#[inline]
fn mix(hash: u64, with: u64) -> u64 {
    let mut x = hash ^ with.rotate_left(29);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 29)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^ (x >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: FileHeader = FileHeader { version: FORMAT_VERSION, db_uid: 7, number: 3 };

    fn record() -> RecordHeader {
        RecordHeader {
            kind: RecordKind::Data,
            length: 5,
            synced_offset: 64,
            first_seqno: SeqNo::MAX,
            count: 2,
        }
    }

    #[test]
    fn a_sealed_record_verifies_only_where_it_was_sealed() {
        let seed = HEADER.seed(FileKind::Wal);
        let mut bytes = vec![0; RECORD_HEADER_BYTES];
        bytes.extend_from_slice(b"hello");
        let next = record().seal(&mut bytes, seed, 100, 9);
        assert_eq!(RecordHeader::open(&bytes, seed, 100), Ok(record()));
        assert_eq!(RecordHeader::verify(&bytes, 9), Some(next));
        assert_eq!(RecordHeader::verify(&bytes, 8), None, "another chain");
        assert_eq!(RecordHeader::open(&bytes, seed, 101), Err(BadHeader::Checksum), "elsewhere");
        for other in [
            FileHeader { number: 4, ..HEADER }.seed(FileKind::Wal),
            FileHeader { db_uid: 8, ..HEADER }.seed(FileKind::Wal),
            HEADER.seed(FileKind::Manifest),
        ] {
            assert_eq!(RecordHeader::open(&bytes, other, 100), Err(BadHeader::Checksum));
        }
        assert!(RecordHeader::proves_synced(&bytes, seed, 100, 63));
        assert!(!RecordHeader::proves_synced(&bytes, seed, 100, 64));
    }

    #[test]
    fn every_flipped_bit_of_a_file_header_is_seen() {
        let block = HEADER.encode(FileKind::Wal);
        assert_eq!(FileHeader::decode(FileKind::Wal, &block), Some(HEADER));
        assert_eq!(FileHeader::decode(FileKind::Manifest, &block), None);
        for bit in 0..block.len() * 8 {
            let mut damaged = block;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode(FileKind::Wal, &damaged), None, "bit {bit}");
        }
    }

    #[test]
    fn zeros_are_never_a_record() {
        for seed in 0..1000 {
            let zeros = [0; RECORD_HEADER_BYTES];
            assert_eq!(RecordHeader::open(&zeros, seed, 64), Err(BadHeader::Checksum));
        }
        assert_eq!(FileHeader::decode(FileKind::Wal, &[0; FILE_HEADER_BYTES]), None);
    }
}
