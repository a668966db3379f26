//! How far a client's scan reads ahead.
//!
//! 1. [`ScanLengths`] learns how many bytes the scans of a column family read in sequence in the
//!    tables of each level. It keeps the mean and the mean deviation, with the weights that TCP
//!    uses for round trips (RFC 6298).
//! 2. [`Readahead`] belongs to one cursor. It follows the blocks that are read one after the other
//!    (a *stretch*), and says how many bytes the next read should take.
//! 3. Where scans have a stable length, the first read takes what nearly all of them need, and the
//!    second the rest of what most need. Without experience, and beyond it, reads double.
//!
//! Only blocks that were not in the cache count: one that is missing among cached ones says nothing
//! about its neighbours.

use std::sync::Arc;

use sateen_control::UserKey;

use super::Table;
use super::format::BlockHandle;
use crate::base::sync::atomic::AtomicU64;
use crate::base::sync::atomic::Ordering::Relaxed;

/// Bytes that a scan reads ahead first if nothing is known of others, and at most.
const BYTES_MIN: u64 = 16 << 10;
const BYTES_MAX: u64 = 256 << 10;
/// The first doubling read of a scan that is longer than expected.
const BYTES_BEYOND_MIN: u64 = 8 << 10;
/// Number of blocks read in sequence that makes a scan, if nothing is known of others.
const SEQUENTIAL_READS_MIN: u32 = 2;

/// Number of levels that are told apart. Deeper ones count as the last.
const LEVELS: usize = 8;

/// The lengths of past scans of a column family.
#[derive(Debug, Default)]
pub struct ScanLengths {
    /// Bytes of blocks.
    blocks: Lengths,
    /// Number of values that are not in their tables.
    values: Lengths,
}

/// Lengths by level, in any unit.
///
/// Threads update it without a lock. An update that another overwrites is lost, which is one sample
/// less.
#[derive(Debug, Default)]
struct Lengths {
    /// For each level the mean in the upper half and the mean deviation in the lower one. 0 without
    /// samples.
    levels: [AtomicU64; LEVELS],
}

/// How far scans of a level go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    mean: u64,
    deviation: u64,
}

impl Expected {
    /// Returns what nearly all scans need.
    pub(super) fn at_least(self) -> u64 {
        self.mean.saturating_sub(2 * self.deviation)
    }

    /// Returns what most scans do not exceed.
    pub(super) fn at_most(self) -> u64 {
        self.mean + self.deviation
    }
}

impl Lengths {
    fn level(&self, level: usize) -> &AtomicU64 {
        &self.levels[level.min(LEVELS - 1)]
    }

    fn expected(&self, level: usize) -> Option<Expected> {
        let packed = self.level(level).load(Relaxed);
        let expected = Expected { mean: packed >> 32, deviation: packed & u64::from(u32::MAX) };
        (packed != 0).then_some(expected)
    }

    /// Adds a scan that needed `length`, in units that fit into 31 bits.
    fn record(&self, level: usize, length: u64) {
        let Expected { mean, deviation } = match self.expected(level) {
            None => Expected { mean: length, deviation: length / 2 },
            Some(old) => Expected {
                mean: (7 * old.mean + length) / 8,
                deviation: (3 * old.deviation + old.mean.abs_diff(length)) / 4,
            },
        };
        self.level(level).store(mean << 32 | deviation, Relaxed);
    }
}

/// Where a cursor learns from, and where it reports what it read.
#[derive(Clone, Debug)]
pub struct LevelScans {
    /// The lengths of all levels.
    pub lengths: Arc<ScanLengths>,
    /// The level of the table.
    pub level: usize,
}

impl LevelScans {
    /// Returns how many values outside the tables scans needed.
    pub(super) fn values(&self) -> Option<Expected> {
        self.lengths.values.expected(self.level)
    }

    /// Adds a scan that needed `values` outside the table.
    pub(super) fn record_values(&self, values: u64) {
        self.lengths.values.record(self.level, values);
    }
}

/// The reads of one cursor.
#[derive(Debug)]
pub(super) struct Readahead {
    scans: Option<LevelScans>,
    /// The block that was read last.
    last_block: usize,
    /// Number and bytes of the blocks of the stretch.
    blocks: u32,
    bytes: u64,
    /// True if the stretch did not begin at an end of the table, where it may go on from another.
    is_whole: bool,
    /// Bytes of the next doubling read; 0 before the first.
    doubling: u64,
}

impl Readahead {
    /// Returns the state before the first read. `given` bytes are read ahead from the start on;
    /// with 0, experience decides.
    pub(super) fn new(scans: Option<LevelScans>, given: u64) -> Readahead {
        Readahead {
            scans: scans.filter(|_| given == 0),
            last_block: usize::MAX,
            blocks: 0,
            bytes: 0,
            is_whole: false,
            doubling: given.min(BYTES_MAX),
        }
    }

    /// Returns the bytes of the next doubling read.
    #[cfg(test)]
    pub(super) fn doubling(&self) -> u64 {
        self.doubling
    }

    /// Returns true if `block` comes before the one that was read last.
    pub(super) fn is_backward(&self, block: usize) -> bool {
        block.wrapping_add(1) == self.last_block
    }

    /// Notes that `block` of `bytes` is needed and not in the cache. `is_at_end` says whether it is
    /// the first or last of its table, `is_read` whether it was read ahead.
    pub(super) fn note(&mut self, block: usize, bytes: u64, is_at_end: bool, is_read: bool) {
        let is_first = self.last_block == usize::MAX;
        let goes_on = block == self.last_block.wrapping_add(1) || self.is_backward(block);
        if is_first {
            self.is_whole = !is_at_end;
        } else if !goes_on && !is_read {
            // A jump ends the stretch: the next reads are single blocks again.
            self.finish();
            self.is_whole = !is_at_end;
        }
        self.last_block = block;
        self.blocks = self.blocks.saturating_add(1);
        self.bytes += bytes;
    }

    /// Returns how many bytes to read for the block that was noted last, which has `bytes`; 0 for
    /// the block alone.
    pub(super) fn next_read(&mut self, bytes: u64) -> u64 {
        let expected =
            self.scans.as_ref().and_then(|scans| scans.lengths.blocks.expected(scans.level));
        let before = self.bytes - bytes;
        if let Some(expected) = expected {
            let wanted = if self.blocks == 1 { expected.at_least() } else { expected.at_most() };
            if wanted + bytes / 2 >= before + 2 * bytes {
                return (wanted - before).min(BYTES_MAX);
            }
        }
        let wanted = match (self.doubling, expected) {
            (0, _) if self.blocks <= SEQUENTIAL_READS_MIN => return 0,
            (0, None) => BYTES_MIN,
            (0, Some(expected)) => expected.deviation.clamp(BYTES_BEYOND_MIN, BYTES_MAX),
            (doubling, _) => doubling,
        };
        self.doubling = (wanted * 2).min(BYTES_MAX);
        wanted
    }

    /// Ends the stretch, and reports it if it was one from a seek to where the client stopped.
    fn finish(&mut self) {
        if let Some(scans) = self.scans.as_ref().filter(|_| self.is_whole && self.bytes > 0) {
            scans.lengths.blocks.record(scans.level, self.bytes.min(BYTES_MAX));
        }
        (self.blocks, self.bytes, self.doubling) = (0, 0, 0);
    }
}

impl Drop for Readahead {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Table {
    /// Returns the part of the table in which keys between the bounds are.
    pub(super) fn part_within(&self, bounds: &(Option<UserKey>, Option<UserKey>)) -> (u64, u64) {
        let last = self.index.blocks().wrapping_sub(1);
        let block_of = |key: &UserKey| {
            self.index.handle(self.index.find(self.comparator(), key.bytes()).min(last))
        };
        let (lower, upper) = bounds;
        let end = self.index.handle(last).map_or(0, BlockHandle::end);
        (
            lower.as_ref().and_then(block_of).map_or(0, |handle| handle.offset),
            upper.as_ref().and_then(block_of).map_or(end, BlockHandle::end),
        )
    }

    /// Returns the size of those blocks, from `block` on in the direction of the scan, that come
    /// nearest to `bytes`.
    pub(super) fn blocks_of(&self, bytes: u64, block: usize, forward: bool) -> u64 {
        let size = |handle: BlockHandle| handle.end() - handle.offset;
        let mut sum = 0;
        let mut at = Some(block);
        while let Some(next) = at.and_then(|at| self.index.handle(at)).map(size)
            && sum + next / 2 <= bytes
        {
            sum += next;
            at = at.and_then(|at| if forward { Some(at + 1) } else { at.checked_sub(1) });
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;

    /// Scans `blocks` of 4 KiB, beginning at block 100. Returns the bytes of each read.
    fn scan(lengths: &Arc<ScanLengths>, blocks: usize) -> Vec<u64> {
        let scans = LevelScans { lengths: lengths.clone(), level: 2 };
        let mut readahead = Readahead::new(Some(scans), 0);
        let mut reads = Vec::new();
        let mut read_to = 0;
        for block in 100..100 + blocks {
            let at = block as u64 * BLOCK;
            let is_read = at + BLOCK <= read_to;
            readahead.note(block, BLOCK, false, is_read);
            if !is_read {
                // A cursor reads whole blocks.
                let bytes = (readahead.next_read(BLOCK) + BLOCK / 2) / BLOCK * BLOCK;
                let bytes = bytes.max(BLOCK);
                read_to = at + bytes;
                reads.push(bytes);
            }
        }
        reads
    }

    #[test]
    fn without_experience_reads_double_from_the_third_on() {
        let reads = scan(&Arc::default(), 200);
        assert_eq!(reads[..6], [4096, 4096, 16 << 10, 32 << 10, 64 << 10, 128 << 10]);
        assert_eq!(reads[6], 256 << 10);
    }

    #[test]
    fn scans_of_one_length_are_read_at_once_and_hardly_further() {
        let lengths = Arc::default();
        for _ in 0..30 {
            scan(&lengths, 15);
        }
        let reads = scan(&lengths, 15);
        assert_eq!(reads.len(), 1, "{reads:?}");
        let total: u64 = reads.iter().sum();
        assert!((15 * BLOCK..17 * BLOCK).contains(&total), "{reads:?}");
    }

    #[test]
    fn lone_blocks_among_long_scans_are_read_alone() {
        let lengths = Arc::default();
        for round in 0..40 {
            scan(&lengths, if round % 2 == 0 { 1 } else { 40 });
        }
        assert_eq!(scan(&lengths, 1), [BLOCK]);
        // The second block shows that it is a scan.
        let reads = scan(&lengths, 40);
        assert!(reads.len() <= 5, "{reads:?}");
    }

    #[test]
    fn seeks_that_read_one_block_stay_single() {
        let lengths = Arc::default();
        for _ in 0..10 {
            assert_eq!(scan(&lengths, 1), [BLOCK]);
        }
        assert_eq!(scan(&lengths, 2), [BLOCK, BLOCK]);
    }

    #[test]
    fn a_stretch_from_an_end_of_a_table_is_not_counted() {
        let lengths: Arc<ScanLengths> = Arc::default();
        let scans = LevelScans { lengths: lengths.clone(), level: 60 };
        let mut readahead = Readahead::new(Some(scans.clone()), 0);
        readahead.note(0, BLOCK, true, false);
        drop(readahead);
        assert_eq!(lengths.blocks.expected(60), None);
        let mut readahead = Readahead::new(Some(scans), 0);
        readahead.note(7, BLOCK, false, false);
        drop(readahead);
        assert_eq!(lengths.blocks.expected(60).map(|expected| expected.mean), Some(BLOCK));
    }
}
