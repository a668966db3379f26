//! Keys: which key an operation touches, and how its number becomes bytes.
//!
//! A key is a number in `0..n`. Choosing a number and writing it are separate, so that every
//! distribution works with every format.

use crate::{Rng, mix64};

/// How a key's number becomes bytes. Both styles keep the order of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStyle {
    /// Eight bytes big-endian, then ASCII zeros up to the size.
    BigEndian,
    /// ASCII decimal digits with leading zeros.
    Decimal,
}

/// The format of keys, which all have `size` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFormat {
    /// Bytes of every key.
    pub size: usize,
    /// Binary or decimal.
    pub style: KeyStyle,
}

impl KeyFormat {
    /// Replaces the contents of `out` with the key of number `index`.
    #[inline]
    pub fn write(&self, index: u64, out: &mut Vec<u8>) {
        out.clear();
        match self.style {
            KeyStyle::BigEndian => {
                let bytes = index.to_be_bytes();
                out.extend_from_slice(&bytes[8usize.saturating_sub(self.size)..]);
                out.resize(self.size, b'0');
            }
            KeyStyle::Decimal => {
                out.resize(self.size, b'0');
                let mut rest = index;
                for digit in out.iter_mut().rev() {
                    if rest == 0 {
                        break;
                    }
                    *digit = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
            }
        }
    }

    /// The number of different keys of this format, at most `u64::MAX`.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let size = u32::try_from(self.size).unwrap_or(u32::MAX);
        match self.style {
            KeyStyle::BigEndian if size >= 8 => u64::MAX,
            KeyStyle::BigEndian => 1 << (size * 8),
            KeyStyle::Decimal => 10u64.checked_pow(size).unwrap_or(u64::MAX),
        }
    }
}

/// Which keys are touched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyChoice {
    /// In order. Each thread has its own part of the keys.
    Sequential,
    /// Every key once, in random order. Each thread has its own part of the keys.
    Shuffled,
    /// Every key equally often, at random.
    Uniform,
    /// YCSB's scrambled zipfian: few hot keys, spread over the whole range.
    Zipfian {
        /// The skew; YCSB's is 0.99.
        theta: f64,
    },
    /// YCSB's latest: zipfian counted back from the newest key.
    Latest {
        /// The skew; YCSB's is 0.99.
        theta: f64,
    },
    /// Mixgraph's two levels. The hotness of key ranges is a sum of two exponentials; the hotness
    /// of keys within a range is a power law. The parameters are the published ones.
    Mixgraph,
}

/// Draws zipfian ranks in constant time (the method of Gray et al. that YCSB uses).
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    theta: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
    half_pow: f64,
}

impl Zipfian {
    /// Draws ranks `0..items`. Rank `r` has a probability proportional to `1 / (r + 1)^theta`, with
    /// `theta` in (0, 1).
    #[must_use]
    pub fn new(items: u64, theta: f64) -> Zipfian {
        let items = items.max(2);
        let zeta = zeta(items, theta);
        let zeta_two = 1.0 + 0.5f64.powf(theta);
        let alpha = 1.0 / (1.0 - theta);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - theta)) / (1.0 - zeta_two / zeta);
        Zipfian { items, theta, zeta, alpha, eta, half_pow: 0.5f64.powf(theta) }
    }

    /// The next rank; 0 is the most frequent.
    #[inline]
    pub fn rank(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit();
        let scaled = u * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + self.half_pow {
            return 1;
        }
        let rank = self.items as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }

    /// The probability of a rank.
    #[must_use]
    pub fn probability(&self, rank: u64) -> f64 {
        1.0 / ((rank + 1) as f64).powf(self.theta) / self.zeta
    }
}

/// The sum of `1/i^theta` for i in `1..=n`. The first terms are exact and the rest is by
/// Euler–Maclaurin, because fifty million powers would take seconds.
fn zeta(n: u64, theta: f64) -> f64 {
    const EXACT: u64 = 10_000;
    let exact = (1..=n.min(EXACT)).map(|i| (i as f64).powf(-theta)).sum::<f64>();
    if n <= EXACT {
        return exact;
    }
    let (a, b) = (EXACT as f64, n as f64);
    let integral = (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta);
    exact + integral + (b.powf(-theta) - a.powf(-theta)) / 2.0
}

/// A random order of `0..n`, computed instead of stored: a Feistel network that is applied until
/// its result is in range.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    items: u64,
    half_bits: u32,
    seed: u64,
}

impl Permutation {
    /// The order of `0..items` that `seed` determines.
    #[must_use]
    pub fn new(items: u64, seed: u64) -> Permutation {
        let bits = 64 - items.max(2).saturating_sub(1).leading_zeros();
        Permutation { items, half_bits: bits.div_ceil(2), seed }
    }

    /// The element at `position`, which must be below the number of items.
    #[inline]
    #[must_use]
    pub fn at(&self, position: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let mut x = position;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for round in 0..3u64 {
                let mixed = mix64(right ^ self.seed.rotate_left(round as u32 * 13) ^ (round << 56));
                (left, right) = (right, left ^ (mixed & mask));
            }
            x = (left << self.half_bits) | right;
            if x < self.items {
                return x;
            }
        }
    }
}

/// The published parameters of mixgraph's key hotness.
const KEYRANGE: [f64; 4] = [14.18, -2.917, 0.0164, -0.08082];
const KEYRANGES: u64 = 30;
const KEY_POWER: [f64; 2] = [0.002_312, 0.3467];

/// Two-level hotness: a range is drawn by a two-term exponential, and a key within it by a power
/// law.
#[derive(Clone, Debug)]
struct MixgraphKeys {
    /// The cumulated probability and the position of each range, in order of hotness.
    ranges: Vec<(f64, u64)>,
    range_keys: u64,
}

impl MixgraphKeys {
    fn new(items: u64, seed: u64) -> MixgraphKeys {
        let [a, b, c, d] = KEYRANGE;
        let count = KEYRANGES.min(items.max(1));
        let weights: Vec<f64> =
            (1..=count).map(|i| a * (b * i as f64).exp() + c * (d * i as f64).exp()).collect();
        let total: f64 = weights.iter().sum();
        let places = Permutation::new(count, mix64(seed));
        let mut sum = 0.0;
        let ranges = (0..count)
            .zip(&weights)
            .map(|(i, weight)| {
                sum += weight / total;
                (sum, places.at(i))
            })
            .collect();
        MixgraphKeys { ranges, range_keys: (items / count).max(1) }
    }

    #[inline]
    fn choose(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit();
        let found = self.ranges.partition_point(|(cumulated, _)| *cumulated <= u);
        let place = self.ranges.get(found).or(self.ranges.last()).map_or(0, |(_, place)| *place);
        let [a, b] = KEY_POWER;
        let hotness = (rng.unit_open() / a).powf(1.0 / b).ceil() as u64;
        place * self.range_keys + mix64(hotness) % self.range_keys
    }
}

/// Chooses key numbers for one thread.
#[derive(Clone, Debug)]
pub struct KeyChooser {
    inner: Inner,
    items: u64,
}

#[derive(Clone, Debug)]
enum Inner {
    Sequential { next: u64 },
    Shuffled { order: Permutation, next: u64 },
    Uniform,
    Zipfian(Zipfian),
    Latest(Zipfian),
    Mixgraph(MixgraphKeys),
}

impl KeyChooser {
    /// A chooser of keys `0..items`. Its sequential and shuffled orders begin at position `first`.
    #[must_use]
    pub fn new(choice: KeyChoice, items: u64, first: u64, seed: u64) -> KeyChooser {
        let items = items.max(1);
        let inner = match choice {
            KeyChoice::Sequential => Inner::Sequential { next: first },
            KeyChoice::Shuffled => {
                Inner::Shuffled { order: Permutation::new(items, seed), next: first }
            }
            KeyChoice::Uniform => Inner::Uniform,
            KeyChoice::Zipfian { theta } => Inner::Zipfian(Zipfian::new(items, theta)),
            KeyChoice::Latest { theta } => Inner::Latest(Zipfian::new(items, theta)),
            KeyChoice::Mixgraph => Inner::Mixgraph(MixgraphKeys::new(items, seed)),
        };
        KeyChooser { inner, items }
    }

    /// Returns the next key number. `newest` is the newest existing key, which
    /// [`KeyChoice::Latest`] needs.
    #[inline]
    pub fn next(&mut self, rng: &mut Rng, newest: u64) -> u64 {
        match &mut self.inner {
            Inner::Sequential { next } => {
                let key = *next % self.items;
                *next += 1;
                key
            }
            Inner::Shuffled { order, next } => {
                let key = order.at(*next % self.items);
                *next += 1;
                key
            }
            Inner::Uniform => rng.below(self.items),
            Inner::Zipfian(zipfian) => spread(mix64(zipfian.rank(rng)), self.items),
            Inner::Latest(zipfian) => newest.saturating_sub(zipfian.rank(rng)),
            Inner::Mixgraph(keys) => keys.choose(rng).min(self.items - 1),
        }
    }
}

/// Maps a hash onto `0..items` without a division.
#[inline]
fn spread(hash: u64, items: u64) -> u64 {
    ((u128::from(hash) * u128::from(items)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn formats_keep_the_order_and_the_size() {
        for style in [KeyStyle::BigEndian, KeyStyle::Decimal] {
            for size in [4, 8, 16, 48] {
                let format = KeyFormat { size, style };
                let (mut low, mut high) = (Vec::new(), Vec::new());
                for index in [0u64, 1, 9, 10, 255, 256, 998, 7_998] {
                    format.write(index, &mut low);
                    format.write(index + 1, &mut high);
                    assert_eq!((low.len(), high.len()), (size, size));
                    assert!(low < high, "{style:?} {size} {index}");
                }
            }
        }
        let decimal = KeyFormat { size: 6, style: KeyStyle::Decimal };
        let mut key = Vec::new();
        decimal.write(1203, &mut key);
        assert_eq!(key, b"001203");
        assert_eq!(decimal.capacity(), 1_000_000);
        assert_eq!(KeyFormat { size: 2, style: KeyStyle::BigEndian }.capacity(), 65_536);
    }

    #[test]
    fn zipfian_frequencies_follow_the_law() {
        let zipfian = Zipfian::new(1_000, 0.99);
        let total: f64 = (0..1_000).map(|rank| zipfian.probability(rank)).sum();
        assert!((total - 1.0).abs() < 1e-9);
        let mut rng = Rng::new(2);
        let mut counts = vec![0u32; 1_000];
        const DRAWS: u32 = 1_000_000;
        for _ in 0..DRAWS {
            counts[zipfian.rank(&mut rng) as usize] += 1;
        }
        for rank in [0u64, 1] {
            let expected = zipfian.probability(rank) * f64::from(DRAWS);
            let got = f64::from(counts[rank as usize]);
            assert!((got - expected).abs() < expected * 0.03, "rank {rank}: {got} for {expected}");
        }
        // Beyond the first two ranks the method is a continuous approximation, so that only sums of
        // the first ranks are compared.
        for head in [10usize, 100, 500] {
            let expected: f64 = (0..head as u64).map(|rank| zipfian.probability(rank)).sum();
            let got = f64::from(counts[..head].iter().sum::<u32>()) / f64::from(DRAWS);
            assert!((got - expected).abs() < 0.02, "head {head}: {got} for {expected}");
        }
    }

    #[test]
    fn the_fast_zeta_agrees_with_the_sum() {
        for theta in [0.5, 0.8, 0.99] {
            let exact: f64 = (1..=1_000_000u64).map(|i| (i as f64).powf(-theta)).sum();
            let fast = zeta(1_000_000, theta);
            assert!((fast - exact).abs() < exact * 1e-6, "{theta}: {fast} for {exact}");
        }
    }

    #[test]
    fn a_permutation_meets_every_item_once() {
        for (items, seed) in [(1u64, 4u64), (2, 4), (1_000, 1), (4_097, 2), (65_536, 3)] {
            let order = Permutation::new(items, seed);
            let mut all: Vec<u64> = (0..items).map(|i| order.at(i)).collect();
            if items >= 1_000 {
                assert!(
                    all.windows(2).filter(|pair| pair[0] < pair[1]).count()
                        < items as usize * 6 / 10
                );
            }
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..items), "{items}");
        }
    }

    #[test]
    fn choosers_stay_in_range_and_have_their_shape() {
        const ITEMS: u64 = 30_000;
        let mut rng = Rng::new(8);
        let mut top = HashMap::new();
        for choice in [
            KeyChoice::Uniform,
            KeyChoice::Zipfian { theta: 0.99 },
            KeyChoice::Latest { theta: 0.99 },
            KeyChoice::Mixgraph,
        ] {
            let mut chooser = KeyChooser::new(choice, ITEMS, 0, 1);
            let mut counts = vec![0u32; ITEMS as usize];
            for _ in 0..300_000 {
                counts[chooser.next(&mut rng, ITEMS - 1) as usize] += 1;
            }
            let newest = counts[ITEMS as usize - 1];
            counts.sort_unstable_by(|a, b| b.cmp(a));
            // The share of all draws that hit the hottest hundredth of the keys.
            let hot = f64::from(counts[..ITEMS as usize / 100].iter().sum::<u32>()) / 300_000.0;
            top.insert(format!("{choice:?}").split(' ').next().unwrap().to_owned(), hot);
            if matches!(choice, KeyChoice::Latest { .. }) {
                assert_eq!(newest, counts[0], "the newest key is the hottest");
            }
        }
        assert!(top["Uniform"] < 0.03, "{top:?}");
        assert!(top["Zipfian"] > 0.45 && top["Latest"] > 0.45, "{top:?}");
        assert!(top["Mixgraph"] > 0.05, "{top:?}");
    }

    #[test]
    fn mixgraph_ranges_have_the_published_hotness() {
        let keys = MixgraphKeys::new(30_000, 3);
        let mut rng = Rng::new(1);
        let mut counts = [0u32; 30];
        for _ in 0..200_000 {
            counts[(keys.choose(&mut rng) / 1_000) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let weight = |i: f64| 14.18 * (-2.917 * i).exp() + 0.0164 * (-0.08082 * i).exp();
        let total: f64 = (1..=30).map(|i| weight(f64::from(i))).sum();
        let expected = weight(1.0) / total;
        let got = f64::from(counts[0]) / 200_000.0;
        assert!((got - expected).abs() < 0.02, "{got} for {expected}");
    }
}
