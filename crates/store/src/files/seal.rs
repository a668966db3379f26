//! Seals and verifies blocks: a block's checksum is mixed with its place. `docs/format/table.md`
//! describes the bytes.
//!
//! What must stay true is format rule F1: no byte is used before its checksum has verified. A
//! checksum is valid only for one offset in one table in one file of one database.

use sateen_control::{FileId, TableId};

use crate::base::error::CorruptionKind;
use crate::base::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The identity of a table as a number, which is mixed into every checksum in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// Returns the seed of a table's blocks.
    pub fn of_table(db_uid: u64, file: FileId, table: TableId) -> Seed {
        Seed::of(db_uid, file, table.0)
    }

    /// Returns the seed of what belongs to a compaction file as a whole. Ids of tables start at 1,
    /// so 0 is free.
    pub fn of_file(db_uid: u64, file: FileId) -> Seed {
        Seed::of(db_uid, file, 0)
    }

    fn of(db_uid: u64, file: FileId, table: u64) -> Seed {
        let mut bytes = [0; 24];
        for (to, from) in bytes.chunks_exact_mut(8).zip([db_uid, file.0, table]) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        Seed(xxh3_64(&bytes))
    }

    /// Returns the seed for bytes at `offset`. Different offsets have different seeds.
    #[inline]
    fn at(self, offset: u64) -> u64 {
        self.0 ^ offset.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Returns the checksum of `bytes` at `offset`. It is never zero, so zeros never verify.
    #[inline]
    pub fn checksum(self, bytes: &[u8], offset: u64) -> u64 {
        xxh3_64_with_seed(bytes, self.at(offset)).max(1)
    }

    /// Returns true if `stored` is the checksum of `bytes` at `offset`. A fuzzer cannot guess
    /// checksums, so fuzzing builds accept every one.
    #[inline]
    pub fn verify(self, bytes: &[u8], offset: u64, stored: u64) -> bool {
        cfg!(fuzzing) || (stored != 0 && stored == self.checksum(bytes, offset))
    }

    /// Appends compression type and checksum to `block`, which holds a payload for `offset`.
    #[inline]
    pub fn seal(self, block: &mut Vec<u8>, compression: u8, offset: u64) {
        block.push(compression);
        let checksum = self.checksum(block, offset);
        block.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Returns the payload and compression type of the sealed block `stored`, which was read from
    /// `offset`.
    #[inline]
    pub fn open(self, stored: &[u8], offset: u64) -> Result<(&[u8], u8), CorruptionKind> {
        let (block, checksum) = stored.split_last_chunk().ok_or(CorruptionKind::Truncated)?;
        if !self.verify(block, offset, u64::from_le_bytes(*checksum)) {
            return Err(CorruptionKind::Checksum);
        }
        let (&compression, payload) = block.split_last().ok_or(CorruptionKind::Truncated)?;
        Ok((payload, compression))
    }
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
}
