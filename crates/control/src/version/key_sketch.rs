//! A sketch of a table's keys (HyperLogLog, Flajolet et al. 2007). With sketches, TRIAD estimates
//! how much the tables of level 0 overlap: the estimate of the union is compared with the sum of
//! the estimates.

use std::sync::Arc;

/// Number of registers. The standard error of an estimate is 1.04 / √1024, about 3 %.
const REGISTERS: usize = 1 << REGISTER_BITS;
const REGISTER_BITS: u32 = 10;
/// The largest value of a register: the leading zeros of the rest of a hash, plus one.
const REGISTER_MAX: u8 = (u64::BITS - REGISTER_BITS + 1) as u8;

/// A sketch of a set of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySketch(Arc<[u8]>);

impl Default for KeySketch {
    fn default() -> KeySketch {
        KeySketch(vec![0; REGISTERS].into())
    }
}

impl KeySketch {
    /// Adds a key by its hash, whose bits must be as good as random.
    pub fn add(&mut self, hash: u64) {
        let register = usize::try_from(hash >> (u64::BITS - REGISTER_BITS)).unwrap_or(0);
        let rank = (hash << REGISTER_BITS | 1 << (REGISTER_BITS - 1)).leading_zeros() + 1;
        let rank = u8::try_from(rank).unwrap_or(REGISTER_MAX);
        if let Some(register) = Arc::make_mut(&mut self.0).get_mut(register) {
            *register = rank.max(*register);
        }
    }

    /// Adds the keys of another sketch.
    pub fn merge(&mut self, other: &KeySketch) {
        for (own, other) in Arc::make_mut(&mut self.0).iter_mut().zip(other.0.iter()) {
            *own = (*own).max(*other);
        }
    }

    /// Returns an estimate of the number of different keys.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an estimate; the cast saturates"
    )]
    pub fn estimate(&self) -> u64 {
        let registers = REGISTERS as f64;
        let sum: f64 = self.0.iter().map(|rank| (-f64::from(*rank)).exp2()).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let empty = self.0.iter().filter(|rank| **rank == 0).count() as f64;
        // Few keys are counted by the number of empty registers.
        if estimate <= 2.5 * registers && empty > 0.0 {
            return (registers * (registers / empty).ln()) as u64;
        }
        estimate as u64
    }

    /// Returns the registers, as the manifest stores them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the sketch with these registers; `None` if they are invalid.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<KeySketch> {
        let fits = bytes.len() == REGISTERS && bytes.iter().all(|rank| *rank <= REGISTER_MAX);
        fits.then(|| KeySketch(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mixes a number like a good hash.
    fn hash(number: u64) -> u64 {
        let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn of(keys: std::ops::Range<u64>) -> KeySketch {
        let mut sketch = KeySketch::default();
        keys.for_each(|key| sketch.add(hash(key)));
        sketch
    }

    #[test]
    fn keys_are_counted() {
        for keys in [0, 1, 10, 500, 2_000, 3_000, 16_000, 1_000_000] {
            let estimate = of(0..keys).estimate();
            assert!(estimate.abs_diff(keys) <= 1 + keys / 12, "{estimate} of {keys}");
        }
    }

    #[test]
    fn what_is_in_both_counts_once() {
        let mut both = of(0..20_000);
        both.merge(&of(10_000..30_000));
        assert!(both.estimate().abs_diff(30_000) < 2_500, "{}", both.estimate());
        assert_eq!(both, of(0..30_000));
    }

    #[test]
    fn bytes_come_back_and_nothing_else_is_taken() {
        let sketch = of(0..5_000);
        assert_eq!(KeySketch::from_bytes(sketch.as_bytes()), Some(sketch));
        assert_eq!(KeySketch::from_bytes(&[0; REGISTERS - 1]), None);
        assert_eq!(KeySketch::from_bytes(&[REGISTER_MAX + 1; REGISTERS]), None);
        let mut highest = KeySketch::default();
        highest.add(0);
        assert!(KeySketch::from_bytes(highest.as_bytes()).is_some());
    }
}
