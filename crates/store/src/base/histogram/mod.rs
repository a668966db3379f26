//! Histograms of latencies and sizes in a fixed number of buckets: 16 to every doubling, so that a
//! value is known to 1 part in 16 and reported (as the middle of its bucket) to about 3 %, from 1
//! to 2^40; larger values share the last bucket, and the maximum is kept exactly.
//!
//! What must stay true: `record` is lock-free and allocates nothing; no recorded value is ever lost
//! or counted twice, however rotation and recording interleave.

#[cfg(test)]
mod tests;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::base::sync::leaf::lock;

/// Bits of a value that are kept below its leading one.
const PRECISION_BITS: u32 = 4;
const PER_DOUBLING: usize = 1 << PRECISION_BITS;
/// Values of this many bits and more share the last bucket.
const VALUE_BITS: u32 = 40;
/// One bucket for each value below 16, then 16 for every doubling.
const BUCKETS: usize = PER_DOUBLING * (VALUE_BITS - PRECISION_BITS + 1) as usize;

/// A histogram that many threads record into. About 4.7 KiB.
pub struct Histogram {
    sum: AtomicU64,
    max: AtomicU64,
    buckets: Box<[AtomicU64; BUCKETS]>,
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
        Histogram {
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
            buckets: Box::new([const { AtomicU64::new(0) }; BUCKETS]),
        }
    }

    /// Counts one value.
    // Relaxed throughout: the counts guard no other memory, and a snapshot taken while others
    // record may show a value in the sum before it shows it in its bucket.
    #[inline]
    pub fn record(&self, value: u64) {
        self.buckets[bucket_of(value)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        // Nearly always only a load of a line that the sum has just brought.
        if value > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// Everything recorded so far.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let mut snapshot = HistogramSnapshot::default();
        self.add_to(&mut snapshot);
        snapshot
    }

    /// The sum of the values recorded so far; cheaper than a snapshot.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    fn add_to(&self, snapshot: &mut HistogramSnapshot) {
        for (total, bucket) in snapshot.buckets.iter_mut().zip(self.buckets.iter()) {
            let n = bucket.load(Ordering::Relaxed);
            *total += n;
            snapshot.count += n;
        }
        snapshot.sum = snapshot.sum.wrapping_add(self.sum.load(Ordering::Relaxed));
        snapshot.max = snapshot.max.max(self.max.load(Ordering::Relaxed));
    }

    /// Moves everything recorded so far to `snapshot`. A value recorded meanwhile either moves or
    /// stays, never both.
    fn drain_to(&self, snapshot: &mut HistogramSnapshot) {
        for (total, bucket) in snapshot.buckets.iter_mut().zip(self.buckets.iter()) {
            // The load spares the other cores' caches the many buckets that are empty.
            if bucket.load(Ordering::Relaxed) > 0 {
                let n = bucket.swap(0, Ordering::Relaxed);
                *total += n;
                snapshot.count += n;
            }
        }
        snapshot.sum = snapshot.sum.wrapping_add(self.sum.swap(0, Ordering::Relaxed));
        snapshot.max = snapshot.max.max(self.max.swap(0, Ordering::Relaxed));
    }
}

/// The values of a histogram at one moment, or of the time between two.
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
    /// How many values were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The largest; 0 if there are none. Of a difference: at most 1/16 above the largest.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Their mean; 0 if there are none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The value that a fraction `quantile` (0 to 1) of all values do not exceed, within about 3 %;
    /// the exact maximum for 1; 0 if there are none.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> u64 {
        // At least the first value; float to integer conversion saturates.
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

    /// The values recorded since `earlier`, a snapshot of the same histogram.
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

    /// The buckets that hold anything: (smallest value, largest value, how many).
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

/// A histogram since it was made, together with the last so many one-second windows.
///
/// Values are recorded into the current window only. A window's values move to the total when its
/// slot is needed again, bucket by bucket with an atomic exchange; a thread that was slow to record
/// therefore at worst puts a value into a later second, and no value is lost.
#[derive(Debug)]
pub struct WindowedHistogram {
    /// The slot that is recorded into.
    current: AtomicUsize,
    slots: Box<[Histogram]>,
    retired: Mutex<Retired>,
}

#[derive(Debug)]
struct Retired {
    /// The second that the current slot counts.
    second: u64,
    /// What has left the windows.
    total: HistogramSnapshot,
}

impl WindowedHistogram {
    /// A histogram that remembers `windows` closed seconds one by one; the first is `second`.
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

    /// Closes the windows before `second`, which becomes the current one. Seconds that were
    /// skipped are empty windows; a second that is not after the current one changes nothing.
    pub fn rotate(&self, second: u64) {
        let mut retired = lock(&self.retired);
        if second <= retired.second {
            return;
        }
        // However many were skipped, each slot needs to be emptied once only.
        let oldest = (second - retired.second).min(self.slots.len() as u64);
        for entered in second - oldest + 1..=second {
            self.slots[slot_of(entered, self.slots.len())].drain_to(&mut retired.total);
        }
        retired.second = second;
        self.current.store(slot_of(second, self.slots.len()), Ordering::Relaxed);
    }

    /// Everything since it was made.
    #[must_use]
    pub fn since_open(&self) -> HistogramSnapshot {
        // Held, so that no value is seen in a window and again in the total.
        let retired = lock(&self.retired);
        let mut snapshot = retired.total.clone();
        for slot in &self.slots {
            slot.add_to(&mut snapshot);
        }
        snapshot
    }

    /// The values of one second, the current one included; `None` if it is not remembered.
    #[must_use]
    pub fn window(&self, second: u64) -> Option<HistogramSnapshot> {
        let retired = lock(&self.retired);
        let age = retired.second.checked_sub(second)?;
        (age < self.slots.len() as u64)
            .then(|| self.slots[slot_of(second, self.slots.len())].snapshot())
    }

    /// The values of the last `windows` closed seconds, as far as they are remembered.
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

    /// The current second.
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

/// The smallest and the largest value of a bucket.
fn bounds_of(bucket: usize) -> (u64, u64) {
    if bucket < PER_DOUBLING {
        return (bucket as u64, bucket as u64);
    }
    let shift = bucket / PER_DOUBLING - 1;
    let low = ((bucket % PER_DOUBLING + PER_DOUBLING) as u64) << shift;
    let high = if bucket == BUCKETS - 1 { u64::MAX } else { low + (1 << shift) - 1 };
    (low, high)
}
