//! A histogram of fixed size whose quantiles are within 1/128 of the truth.
//!
//! Values up to [`Histogram::VALUE_MAX`] fall into log-linear buckets, 128 for each power of two.
//! Recording is a shift and an addition. Merging adds counts and loses nothing.

const SUB_BITS: u32 = 7;
const SUB_BUCKETS: usize = 1 << SUB_BITS;
const TOP_BIT: u32 = 43;
const BUCKETS: usize = (TOP_BIT - SUB_BITS) as usize * SUB_BUCKETS + SUB_BUCKETS;

/// Counts of values (nanoseconds, bytes, …) by size.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum: u128,
    max: u64,
}

/// The counts of a [`Histogram`] that are not zero. A run of hours keeps one for each second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactHistogram {
    /// Of each filled bucket, as varints: the distance from the last one, and the count.
    counts: Box<[u8]>,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max)
            .finish()
    }
}

impl Histogram {
    /// The largest value with a bucket of its own (2.4 hours in nanoseconds). Larger values count
    /// as this one.
    pub const VALUE_MAX: u64 = (1 << TOP_BIT) - 1;

    /// An empty histogram (about 37 KB).
    #[must_use]
    pub fn new() -> Histogram {
        Histogram { counts: Box::new([0; BUCKETS]), count: 0, sum: 0, max: 0 }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        if value > self.max {
            self.max = value;
        }
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The same counts in less memory, to be kept or passed on.
    #[must_use]
    pub fn compact(&self) -> CompactHistogram {
        let mut counts = Vec::new();
        let mut last = 0;
        for (bucket, count) in (0u64..).zip(self.counts.iter()).filter(|(_, count)| **count > 0) {
            put_varint(&mut counts, bucket - last);
            put_varint(&mut counts, *count);
            last = bucket;
        }
        CompactHistogram { counts: counts.into(), sum: self.sum, max: self.max }
    }

    /// Adds the counts of a compact histogram.
    pub fn merge_compact(&mut self, other: &CompactHistogram) {
        let mut rest = &other.counts[..];
        let mut bucket = 0;
        while let (Some(distance), Some(count)) = (take_varint(&mut rest), take_varint(&mut rest)) {
            bucket += distance as usize;
            if let Some(mine) = self.counts.get_mut(bucket) {
                *mine += count;
                self.count += count;
            }
        }
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.counts.fill(0);
        }
        self.count = 0;
        self.sum = 0;
        self.max = 0;
    }

    /// How many values were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest value recorded, exactly; 0 if none.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean of the values recorded, exactly; 0 if none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Returns a value that at least the fraction `q` of the values do not exceed. It is at most
    /// 1/128 above the smallest such value, and 0 if nothing was recorded.
    #[must_use]
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper(index).min(self.max);
            }
        }
        self.max
    }
}

/// Appends a number, seven bits in each byte, the lowest first.
fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number from the front; `None` at the end.
fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let length = rest.iter().position(|byte| *byte < 0x80)? + 1;
    let (bytes, behind) = rest.split_at(length);
    *rest = behind;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f)))
}

/// The bucket of `value`: one bucket each below 256, and 128 buckets for each power of two above.
#[inline]
fn bucket(value: u64) -> usize {
    let value = value.min(Histogram::VALUE_MAX);
    let shift = (63 - (value | (SUB_BUCKETS as u64)).leading_zeros()) - SUB_BITS;
    shift as usize * SUB_BUCKETS + (value >> shift) as usize
}

/// The largest value of a bucket.
fn upper(index: usize) -> u64 {
    let shift = (index / SUB_BUCKETS).saturating_sub(1);
    let base = (index - shift * SUB_BUCKETS) as u64;
    ((base + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn every_value_is_in_a_bucket_that_contains_it() {
        let mut rng = Rng::new(5);
        for _ in 0..200_000 {
            let value = rng.next_u64() >> (21 + rng.below(43));
            let index = bucket(value);
            assert!(index < BUCKETS);
            assert!(upper(index) >= value, "{value}");
            assert!(upper(index) as f64 <= value as f64 * (1.0 + 1.0 / 128.0), "{value}");
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_are_within_a_128th_of_the_sorted_truth() {
        let mut rng = Rng::new(11);
        let mut truth = Vec::new();
        let mut one = Histogram::new();
        let mut two = Histogram::new();
        for i in 0..100_000 {
            let value = (rng.exponential() * 40_000.0) as u64 + rng.below(200);
            truth.push(value);
            if i % 2 == 0 { one.record(value) } else { two.record(value) }
        }
        one.merge(&two);
        truth.sort_unstable();
        for q in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0] {
            let rank = ((q * truth.len() as f64).ceil() as usize).max(1);
            let exact = truth[rank - 1];
            let got = one.quantile(q);
            assert!(got >= exact && got as f64 <= exact as f64 * (1.0 + 1.0 / 128.0) + 1.0, "{q}");
        }
        assert_eq!(one.max(), *truth.last().unwrap());
        assert_eq!(one.count(), truth.len() as u64);
        let mut copy = Histogram::new();
        copy.merge_compact(&one.compact());
        assert_eq!(copy.compact(), one.compact());
        assert_eq!((copy.count(), copy.quantile(0.99)), (one.count(), one.quantile(0.99)));
        one.clear();
        assert_eq!((one.quantile(0.99), one.count(), one.max()), (0, 0, 0));
    }
}
