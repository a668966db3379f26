//! Values: their sizes, and their bytes, which have a chosen compressibility and cost almost
//! nothing to make.

use crate::Rng;

/// How large values are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueSize {
    /// Always the same.
    Fixed(u32),
    /// Uniform between the two, both included.
    Uniform(u32, u32),
    /// Generalized Pareto with location 0, as published for the mixgraph workload
    /// (k = 0.2615, sigma = 25.45), at least 1 and at most `max`.
    Pareto {
        /// The shape k.
        shape: f64,
        /// The scale sigma.
        scale: f64,
        /// The largest size made.
        max: u32,
    },
    /// 250 B to 1 KB with median 400 B (SILK §6.2): half uniform in 250..400, half above, thinning
    /// out towards 1000.
    Nutanix,
}

impl ValueSize {
    /// Mixgraph's published sizes.
    pub const MIXGRAPH: ValueSize = ValueSize::Pareto { shape: 0.2615, scale: 25.45, max: 1 << 20 };

    /// Draws one size.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        match *self {
            ValueSize::Fixed(bytes) => bytes,
            ValueSize::Uniform(low, high) => {
                low + rng.below(u64::from(high.saturating_sub(low)) + 1) as u32
            }
            ValueSize::Pareto { shape, scale, max } => {
                (pareto(rng.unit_open(), shape, scale) as u32).clamp(1, max)
            }
            ValueSize::Nutanix => {
                let u = rng.unit();
                if u < 0.5 {
                    250 + (u * 300.0) as u32
                } else {
                    let v = (u - 0.5) * 2.0;
                    400 + (v * v * 601.0) as u32
                }
            }
        }
    }

    /// The largest size that can be drawn.
    #[must_use]
    pub fn max(&self) -> u32 {
        match *self {
            ValueSize::Fixed(bytes) => bytes,
            ValueSize::Uniform(low, high) => low.max(high),
            ValueSize::Pareto { max, .. } => max,
            ValueSize::Nutanix => 1000,
        }
    }
}

/// The inverse of the generalized Pareto distribution's tail, at `u` in (0, 1].
#[inline]
pub(crate) fn pareto(u: f64, shape: f64, scale: f64) -> f64 {
    if shape == 0.0 { -scale * u.ln() } else { scale * (u.powf(-shape) - 1.0) / shape }
}

/// Bytes for values: slices of one buffer that is filled once, taken at moving offsets.
#[derive(Clone, Debug)]
pub struct ValueSource {
    buffer: std::sync::Arc<[u8]>,
    position: usize,
}

impl ValueSource {
    /// Makes bytes that a general compressor shrinks to about `ratio` of their size (1.0: not at
    /// all), for values of up to `size_max` bytes.
    #[must_use]
    pub fn new(seed: u64, ratio: f64, size_max: u32) -> ValueSource {
        // Each piece of 100 bytes begins with random bytes and repeats them, as in db_bench.
        const PIECE_BYTES: usize = 100;
        let random_bytes =
            ((PIECE_BYTES as f64 * ratio.clamp(0.0, 1.0)).round() as usize).clamp(1, PIECE_BYTES);
        let bytes = (1usize << 20).max(size_max as usize * 2) + PIECE_BYTES;
        let mut rng = Rng::stream(seed, 0x7661_6c75_6573);
        let mut buffer = Vec::with_capacity(bytes + PIECE_BYTES);
        let mut piece = vec![0u8; random_bytes];
        while buffer.len() < bytes {
            piece.fill_with(|| rng.next_u64() as u8);
            buffer.extend(piece.iter().cycle().take(PIECE_BYTES));
        }
        ValueSource { buffer: buffer.into(), position: 0 }
    }

    /// The same bytes with another first offset, for another thread.
    #[must_use]
    pub fn split(&self, thread: u64) -> ValueSource {
        let position = (mix_position(thread) % self.buffer.len() as u64) as usize;
        ValueSource { buffer: self.buffer.clone(), position }
    }

    /// The next value. `bytes` must not exceed the `size_max` given to [`ValueSource::new`].
    #[inline]
    pub fn next(&mut self, bytes: u32) -> &[u8] {
        let bytes = bytes as usize;
        if self.position + bytes > self.buffer.len() {
            // Each round starts at another offset, so that values differ.
            self.position = (self.position * 31 + 17) % 97;
        }
        let start = self.position;
        self.position += bytes;
        &self.buffer[start..start + bytes]
    }
}

fn mix_position(thread: u64) -> u64 {
    crate::mix64(thread.wrapping_add(0x1234_5678))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(size: ValueSize, count: usize) -> Vec<u32> {
        let mut rng = Rng::new(3);
        let mut sizes: Vec<u32> = (0..count).map(|_| size.draw(&mut rng)).collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn nutanix_sizes_have_the_published_range_and_median() {
        let sizes = sorted(ValueSize::Nutanix, 100_001);
        assert!(sizes[0] >= 250 && sizes[100_000] <= 1000);
        assert!((392..=408).contains(&sizes[50_000]), "median {}", sizes[50_000]);
        assert!(sizes[100_000] > 950, "the range is used");
        // Large ones thin out: three quarters are below 550 B, not below 700 B.
        assert!((535..=565).contains(&sizes[75_000]), "third quartile {}", sizes[75_000]);
    }

    #[test]
    fn pareto_sizes_follow_the_published_distribution() {
        let sizes = sorted(ValueSize::MIXGRAPH, 200_001);
        // Quantile q of the distribution: sigma/k * ((1-q)^-k - 1).
        for (q, index) in [(0.5, 100_000), (0.9, 180_000), (0.99, 198_000)] {
            let theory = 25.45 / 0.2615 * ((1.0f64 - q).powf(-0.2615) - 1.0);
            let got = f64::from(sizes[index]);
            assert!((got - theory).abs() < theory * 0.05 + 1.0, "q {q}: {got} for {theory}");
        }
        assert!(sizes[0] >= 1);
    }

    #[test]
    fn sizes_stay_in_their_bounds() {
        assert!(sorted(ValueSize::Uniform(10, 20), 1000).iter().all(|s| (10..=20).contains(s)));
        let max = ValueSize::Pareto { shape: 2.0, scale: 100.0, max: 500 };
        assert_eq!(*sorted(max, 10_000).last().unwrap(), 500);
    }

    #[test]
    fn values_have_the_size_asked_for_and_differ() {
        let source = ValueSource::new(1, 0.5, 4096);
        let (mut one, mut two) = (source.split(0), source.split(1));
        let mut seen = std::collections::HashSet::new();
        for i in 0..5_000u32 {
            let bytes = i % 4097;
            assert_eq!(one.next(bytes).len(), bytes as usize);
            if bytes > 16 {
                seen.insert(one.next(bytes).to_vec());
            }
        }
        assert!(seen.len() > 4_800, "{}", seen.len());
        assert_ne!(one.next(64).to_vec(), two.next(64).to_vec());
    }

    #[test]
    fn compressible_values_repeat_and_incompressible_ones_do_not() {
        let repeats = |ratio: f64| {
            let mut source = ValueSource::new(9, ratio, 100_000);
            let bytes = source.next(100_000);
            bytes.chunks_exact(100).filter(|piece| piece[..50] == piece[50..]).count()
        };
        assert_eq!(repeats(0.5), 1000);
        assert_eq!(repeats(1.0), 0);
    }
}
