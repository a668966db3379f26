//! Histograms of latencies and sizes, with a fixed number of buckets.
//!
//! 1. [`Histogram::record`] finds the bucket of a value (`bucket_of`): 16 buckets for every
//!    doubling, up to 2^40. Larger values share the last bucket. The maximum is kept exactly.
//! 2. [`Histogram::snapshot`] copies the buckets.
//! 3. [`HistogramSnapshot::quantile`] reports the middle of a bucket (`bounds_of`). Its error is
//!    about 3 %.
//! 4. [`WindowedHistogram`] keeps one histogram for each of the last seconds.
//!    [`WindowedHistogram::rotate`] adds the window that it reuses to the total
//!    (`drain_to`).
//!
//! What must stay true: `record` takes no lock and allocates nothing, except for the first value:
//! what is never measured takes no memory. No recorded value is lost or counted twice, however
//! rotation and recording interleave.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::base::sync::leaf::lock;

/// Bits of a value that are kept below its leading one.
const PRECISION_BITS: u32 = 4;
const PER_DOUBLING: usize = 1 << PRECISION_BITS;
/// Values with this number of bits or more share the last bucket.
const VALUE_BITS: u32 = 40;
/// One bucket for each value below 16, then 16 for every doubling.
const BUCKETS: usize = PER_DOUBLING * (VALUE_BITS - PRECISION_BITS + 1) as usize;

type Buckets = Box<[AtomicU64; BUCKETS]>;

/// A histogram that many threads record into at once. It takes about 4.7 KiB once it has a value.
pub struct Histogram {
    sum: AtomicU64,
    max: AtomicU64,
    buckets: OnceLock<Buckets>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.snapshot().fmt(f)
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Histogram {
        Histogram { sum: AtomicU64::new(0), max: AtomicU64::new(0), buckets: OnceLock::new() }
    }

    fn buckets(&self) -> &[AtomicU64; BUCKETS] {
        self.buckets.get_or_init(|| Box::new([const { AtomicU64::new(0) }; BUCKETS]))
    }

    /// Returns each bucket with its total in `snapshot`. There are none before the first value.
    fn with<'a>(
        &'a self,
        snapshot: &'a mut HistogramSnapshot,
    ) -> impl Iterator<Item = (&'a mut u64, &'a AtomicU64)> {
        let made = self.buckets.get().map_or(&[][..], |buckets| &buckets[..]);
        snapshot.buckets.iter_mut().zip(made)
    }

    /// Counts one value.
    // Relaxed throughout: the counts guard no other memory. A snapshot taken while others record
    // may show a value in the sum before its bucket.
    #[inline]
    pub fn record(&self, value: u64) {
        self.buckets()[bucket_of(value)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        // Usually only a load of a cache line that the sum has just brought.
        if value > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// Returns everything recorded so far.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let mut snapshot = HistogramSnapshot::default();
        self.add_to(&mut snapshot);
        snapshot
    }

    /// Returns the sum of the values recorded so far. Cheaper than a snapshot.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    fn add_to(&self, snapshot: &mut HistogramSnapshot) {
        let mut count = 0;
        for (total, bucket) in self.with(snapshot) {
            let n = bucket.load(Ordering::Relaxed);
            *total += n;
            count += n;
        }
        snapshot.count += count;
        snapshot.sum = snapshot.sum.wrapping_add(self.sum.load(Ordering::Relaxed));
        snapshot.max = snapshot.max.max(self.max.load(Ordering::Relaxed));
    }

    /// Moves everything recorded so far to `snapshot`. A value recorded meanwhile either moves or
    /// stays, never both.
    fn drain_to(&self, snapshot: &mut HistogramSnapshot) {
        let mut count = 0;
        for (total, bucket) in self.with(snapshot) {
            // The load keeps the many empty buckets shared in the other cores' caches.
            if bucket.load(Ordering::Relaxed) > 0 {
                let n = bucket.swap(0, Ordering::Relaxed);
                *total += n;
                count += n;
            }
        }
        snapshot.count += count;
        snapshot.sum = snapshot.sum.wrapping_add(self.sum.swap(0, Ordering::Relaxed));
        snapshot.max = snapshot.max.max(self.max.swap(0, Ordering::Relaxed));
    }
}

/// The values of a histogram at one moment, or between two moments.
#[derive(Clone, PartialEq, Eq)]
pub struct HistogramSnapshot {
    count: u64,
    sum: u64,
    max: u64,
    buckets: Box<[u64; BUCKETS]>,
}

impl Default for HistogramSnapshot {
    fn default() -> HistogramSnapshot {
        HistogramSnapshot { count: 0, sum: 0, max: 0, buckets: Box::new([0; BUCKETS]) }
    }
}

impl HistogramSnapshot {
    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of the values.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the largest value; 0 if there are none. For a difference of two snapshots the result
    /// may be up to 1/16 too large.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the mean; 0 if there are no values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Returns the value that a fraction `quantile` (0 to 1) of all values do not exceed, within
    /// about 3 %. Returns the exact maximum for 1, and 0 if there are no values.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> u64 {
        // The rank is at least 1. The conversion from float to integer saturates.
        let rank = ((quantile * self.count as f64).ceil() as u64).max(1);
        if rank >= self.count {
            return self.max;
        }
        let mut seen = 0;
        for (bucket, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank {
                let (low, high) = bounds_of(bucket);
                return (low + (high - low) / 2).min(self.max);
            }
        }
        self.max
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &HistogramSnapshot) {
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Returns the values recorded since `earlier`, a snapshot of the same histogram.
    #[must_use]
    pub fn since(&self, earlier: &HistogramSnapshot) -> HistogramSnapshot {
        let mut difference = HistogramSnapshot::default();
        let mut top = None;
        for (bucket, n) in difference.buckets.iter_mut().enumerate() {
            *n = self.buckets[bucket].saturating_sub(earlier.buckets[bucket]);
            difference.count += *n;
            if *n > 0 {
                top = Some(bucket);
            }
        }
        difference.sum = self.sum.wrapping_sub(earlier.sum);
        difference.max = top.map_or(0, |bucket| match bounds_of(bucket) {
            // A new maximum is known exactly.
            _ if self.max > earlier.max => self.max,
            (_, high) => high.min(self.max),
        });
        difference
    }

    /// Iterates over the non-empty buckets as (smallest value, largest value, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.buckets.iter().enumerate().filter(|(_, n)| **n > 0).map(|(bucket, &n)| {
            let (low, high) = bounds_of(bucket);
            (low, high, n)
        })
    }
}

impl std::fmt::Debug for HistogramSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("mean", &self.mean())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("p999", &self.quantile(0.999))
            .field("max", &self.max)
            .finish()
    }
}

/// A histogram of all values since it was made, and of each of the last one-second windows.
///
/// Values are recorded into the current window only. When a window is reused, its values move to
/// the total, bucket by bucket with an atomic exchange. A thread that is slow to record may
/// therefore count a value in a later second, but no value is lost.
#[derive(Debug)]
pub struct WindowedHistogram {
    /// Index of the window that is recorded into.
    current: AtomicUsize,
    slots: Box<[Histogram]>,
    retired: Mutex<Retired>,
}

#[derive(Debug)]
struct Retired {
    /// The second that the current window counts.
    second: u64,
    /// The values of all windows that were reused.
    total: HistogramSnapshot,
}

impl WindowedHistogram {
    /// Returns a histogram that remembers the last `windows` closed seconds. The current second is
    /// `second`.
    #[must_use]
    pub fn new(windows: usize, second: u64) -> WindowedHistogram {
        let slots: Box<[Histogram]> = (0..=windows).map(|_| Histogram::new()).collect();
        WindowedHistogram {
            current: AtomicUsize::new(slot_of(second, slots.len())),
            slots,
            retired: Mutex::new(Retired { second, total: HistogramSnapshot::default() }),
        }
    }

    /// Counts one value in the current second.
    #[inline]
    pub fn record(&self, value: u64) {
        self.slots[self.current.load(Ordering::Relaxed)].record(value);
    }

    /// Closes the windows before `second`, which becomes the current one. Skipped seconds become
    /// empty windows. A `second` that is not after the current one changes nothing.
    pub fn rotate(&self, second: u64) {
        let mut retired = lock(&self.retired);
        if second <= retired.second {
            return;
        }
        // However many seconds were skipped, each window needs to be emptied only once.
        let oldest = (second - retired.second).min(self.slots.len() as u64);
        for entered in second - oldest + 1..=second {
            self.slots[slot_of(entered, self.slots.len())].drain_to(&mut retired.total);
        }
        retired.second = second;
        self.current.store(slot_of(second, self.slots.len()), Ordering::Relaxed);
    }

    /// Returns all values since it was made.
    #[must_use]
    pub fn since_open(&self) -> HistogramSnapshot {
        // Held, so that no value is seen both in a window and in the total.
        let retired = lock(&self.retired);
        let mut snapshot = retired.total.clone();
        for slot in &self.slots {
            slot.add_to(&mut snapshot);
        }
        snapshot
    }

    /// Returns the values of one second, the current one included; `None` if it is not remembered.
    #[must_use]
    pub fn window(&self, second: u64) -> Option<HistogramSnapshot> {
        let retired = lock(&self.retired);
        let age = retired.second.checked_sub(second)?;
        (age < self.slots.len() as u64)
            .then(|| self.slots[slot_of(second, self.slots.len())].snapshot())
    }

    /// Returns the values of the last `windows` closed seconds, or of those that are remembered.
    #[must_use]
    pub fn last(&self, windows: usize) -> HistogramSnapshot {
        let retired = lock(&self.retired);
        let mut snapshot = HistogramSnapshot::default();
        for age in 1..=windows.min(self.slots.len() - 1) {
            if let Some(second) = retired.second.checked_sub(age as u64) {
                self.slots[slot_of(second, self.slots.len())].add_to(&mut snapshot);
            }
        }
        snapshot
    }

    /// Returns the current second.
    #[must_use]
    pub fn second(&self) -> u64 {
        lock(&self.retired).second
    }
}

fn slot_of(second: u64, slots: usize) -> usize {
    (second % slots as u64) as usize
}

#[inline]
fn bucket_of(value: u64) -> usize {
    let bits = 63 - (value | 1).leading_zeros();
    if bits < PRECISION_BITS {
        return value as usize;
    }
    let shift = bits - PRECISION_BITS;
    let bucket = ((shift as usize) << PRECISION_BITS) + (value >> shift) as usize;
    bucket.min(BUCKETS - 1)
}

/// Returns the smallest and the largest value of a bucket.
fn bounds_of(bucket: usize) -> (u64, u64) {
    if bucket < PER_DOUBLING {
        return (bucket as u64, bucket as u64);
    }
    let shift = bucket / PER_DOUBLING - 1;
    let low = ((bucket % PER_DOUBLING + PER_DOUBLING) as u64) << shift;
    let high = if bucket == BUCKETS - 1 { u64::MAX } else { low + (1 << shift) - 1 };
    (low, high)
}
