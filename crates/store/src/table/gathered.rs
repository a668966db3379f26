//! Values of the next entries of a scan, read at the same time.
//!
//! 1. A cursor notes each value that it needs. [`GatheredValues::wanted`] says how many to read
//!    with it: what earlier scans of the level needed, or, beyond that, twice as many each time.
//! 2. [`GatheredValues::gather`] reads them. Values that follow each other in a file are left to
//!    `ValueScan`, which reads them as chunks.
//! 3. [`GatheredValues::take`] gives out one of them.
//!
//! What must stay true: a value is given out only if its checksum is right. One that cannot be read
//! is left out, and the cursor that needs it meets the error itself: values of entries that are
//! hidden may be gone.

use std::ops::Range;

use sateen_control::IoClass;

use super::readahead::LevelScans;
use super::separated::ValuePlace;
use super::spare::Buffers;
use super::value_files::{GAP_BYTES_MAX, ValuesFile};
use crate::base::perf::{self, PerfMetric};
use crate::vfs::{PlacedRead, read_many};

/// Most values, and bytes of buffers, that are read at the same time.
const VALUES_MAX: u64 = 64;
const BYTES_MAX: usize = 1 << 20;
/// Values read together first if nothing is known of other scans.
const VALUES_MIN: u64 = 4;
/// Number of values in a row that makes a scan, if nothing is known of others.
const SEQUENTIAL_VALUES_MIN: u64 = 2;

/// A value that was read.
struct Gathered {
    file: ValuesFile,
    place: ValuePlace,
    /// Where its bytes are in the buffer.
    bytes: Range<usize>,
}

/// The values that one cursor reads ahead.
#[derive(Default)]
pub(super) struct GatheredValues {
    scans: Option<LevelScans>,
    /// Number of values needed one after the other since the last seek.
    needed: u64,
    /// How many the next read takes beyond what is expected; 0 before the first.
    doubling: u64,
    /// The number of needed values up to which each is read by itself.
    alone_until: u64,
    buffers: Buffers,
    values: Vec<Gathered>,
}

impl GatheredValues {
    pub(super) fn new(scans: Option<LevelScans>) -> GatheredValues {
        let mut new = GatheredValues::default();
        new.scans = scans;
        new
    }

    /// Notes that one more value is needed.
    pub(super) fn note(&mut self) {
        self.needed += 1;
    }

    /// Returns how many values to read now, the needed one included.
    pub(super) fn wanted(&mut self) -> usize {
        if self.needed <= self.alone_until {
            return 1;
        }
        let expected = self.scans.as_ref().and_then(LevelScans::values);
        let before = self.needed.saturating_sub(1);
        let length = match expected {
            Some(expected) if before == 0 => expected.at_least(),
            Some(expected) => expected.at_most(),
            None => 0,
        };
        let left = length.saturating_sub(before);
        if left > 1 {
            return usize::try_from(left.min(VALUES_MAX)).unwrap_or(1);
        }
        if self.needed <= SEQUENTIAL_VALUES_MIN {
            return 1;
        }
        self.doubling = (2 * self.doubling).clamp(VALUES_MIN, VALUES_MAX);
        usize::try_from(self.doubling).unwrap_or(1)
    }

    /// Reads the values at `places` at the same time, unless most of them follow each other.
    pub(super) fn gather(&mut self, places: Vec<(ValuesFile, ValuePlace)>, class: IoClass) {
        self.values.clear();
        let follows = |pair: &[(ValuesFile, ValuePlace)]| match pair {
            [(file, place), (next_file, next)] => {
                let gap = next.offset.checked_sub(place.end());
                file.is(next_file) && gap.is_some_and(|gap| gap <= GAP_BYTES_MAX)
            }
            _ => false,
        };
        let pairs = places.len().saturating_sub(1);
        if pairs == 0 || 2 * places.windows(2).filter(|pair| follows(pair)).count() >= pairs {
            self.alone_until = self.needed + pairs as u64;
            return;
        }
        if self.buffers.chunk.capacity() == 0 {
            self.buffers = Buffers::take();
        }
        let mut end = 0;
        for (file, place) in places {
            let Some((from, length)) = file.part_with(place) else { continue };
            if end + length > BYTES_MAX {
                break;
            }
            let start = end + usize::try_from(place.offset - from).unwrap_or(0);
            self.values.push(Gathered { file, place, bytes: start..start + place.length as usize });
            end += length;
        }
        self.buffers.chunk.reserve(end);
        let mut target = self.buffers.chunk.whole_mut();
        let mut reads = Vec::with_capacity(self.values.len());
        for value in &self.values {
            let Some((from, length)) = value.file.part_with(value.place) else { break };
            let Some((buffer, behind)) = target.split_at_mut_checked(length) else { break };
            target = behind;
            reads.push(PlacedRead { file: value.file.opened(), buffer, offset: from });
        }
        let results = {
            let _timed = perf::time(PerfMetric::BlockReadTime);
            read_many(&mut reads, class)
        };
        drop(reads);
        let mut results = results.into_iter();
        self.values.retain(|value| {
            let Some(Ok(got)) = results.next() else { return false };
            perf::add(PerfMetric::BlockReadCount, 1);
            perf::add(PerfMetric::BlockReadByte, got as u64);
            let whole = value.file.part_with(value.place);
            whole.is_some_and(|(from, _)| value.place.end() <= from + got as u64)
        });
    }

    /// Copies the value at `place` of `file` to `out`. Returns false if it was not gathered.
    pub(super) fn take(&mut self, file: &ValuesFile, place: ValuePlace, out: &mut Vec<u8>) -> bool {
        let is_it = |value: &Gathered| value.place == place && value.file.is(file);
        let Some(at) = self.values.iter().position(is_it) else { return false };
        // Those before it were not shown.
        let taken = self.values.drain(..=at).next_back();
        let bytes = taken.and_then(|value| self.buffers.chunk.whole().get(value.bytes));
        let Some(bytes) = bytes.filter(|bytes| file.verify(bytes, place).is_ok()) else {
            return false;
        };
        out.clear();
        out.extend_from_slice(bytes);
        true
    }

    /// Ends the row of values, as a seek and a step backwards do.
    pub(super) fn end_stretch(&mut self) {
        if self.needed == 0 {
            return;
        }
        if let Some(scans) = &self.scans {
            scans.record_values(self.needed);
        }
        (self.needed, self.doubling, self.alone_until) = (0, 0, 0);
        self.values.clear();
    }
}

impl Drop for GatheredValues {
    fn drop(&mut self) {
        self.end_stretch();
        std::mem::take(&mut self.buffers).give_back();
    }
}
