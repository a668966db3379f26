//! How much a step beside clients frees. A step costs one barrier, so steps are as large as clients
//! can bear: they double while a step takes hardly longer than one of the smallest size, and halve
//! where the device needs time for each byte, as those do that discard freed blocks at once.

use std::time::Duration;

use sateen_control::ReclaimHaste;

use super::super::PAGE_BYTES;

/// Smallest step.
pub(super) const BYTES_MIN: u64 = 1 << 20;
/// Largest step.
const BYTES_MAX: u64 = 64 << 20;
/// Time at the given rate that bounds a step, so that space is given back steadily.
const RATE_TIME: Duration = Duration::from_secs(1);
/// Time that clients may wait for the device because of the size of a step. Steps grow below half
/// of it.
const WAIT_MAX: Duration = Duration::from_millis(2);
/// A step is followed by a pause of at least this multiple of its duration.
const REST: u32 = 4;
/// The same where dead tables take much space.
const REST_IN_A_HURRY: u32 = 1;
/// A longer duration is that of a process or a device that was stopped, and says nothing.
const TOOK_MAX: Duration = Duration::from_secs(1);
/// The duration of a barrier that is believed at once. The belief at most doubles at a step.
const FIXED_MIN: Duration = Duration::from_millis(2);

/// The size of the next step.
pub(super) struct StepSize {
    bytes: u64,
    /// The usual time of a step of the smallest size, which is that of its barrier.
    fixed: Option<Duration>,
}

impl Default for StepSize {
    fn default() -> StepSize {
        StepSize { bytes: BYTES_MIN, fixed: None }
    }
}

impl StepSize {
    /// Returns the size of the next step, given the rate in bytes a second.
    pub(super) fn bytes(&self, rate: u64) -> u64 {
        let most = rate.saturating_mul(RATE_TIME.as_secs()).max(BYTES_MIN);
        self.bytes.min(most).next_multiple_of(PAGE_BYTES as u64)
    }

    /// Learns from a step with a barrier that freed `freed` bytes and took `took`.
    pub(super) fn learn(&mut self, freed: u64, took: Duration) {
        if freed <= BYTES_MIN {
            let fixed = self.fixed.unwrap_or(took.min(TOOK_MAX));
            self.fixed = Some((fixed * 7 + took.min(fixed * 8 + FIXED_MIN)) / 8);
        }
        let wait = took.saturating_sub(self.fixed.unwrap_or_default());
        if wait > WAIT_MAX {
            self.bytes = (self.bytes / 2).max(BYTES_MIN);
        } else if wait < WAIT_MAX / 2 && freed >= self.bytes {
            self.bytes = (self.bytes * 2).min(BYTES_MAX);
        }
    }
}

/// Returns the pause after a step that freed `freed` bytes and took `took`, at `rate` bytes a
/// second.
pub(super) fn pause(freed: u64, rate: u64, took: Duration, haste: ReclaimHaste) -> Duration {
    let ns = u128::from(freed) * 1_000_000_000 / u128::from(rate.max(1));
    let rest = if haste == ReclaimHaste::Now { REST_IN_A_HURRY } else { REST };
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)).max(took.min(TOOK_MAX) * rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1 << 30;

    /// Returns the sizes of steps on a device with this barrier and this time a MiB.
    fn sizes(barrier: Duration, mib: Duration) -> Vec<u64> {
        let mut size = StepSize::default();
        let mut sizes = Vec::new();
        for _ in 0..20 {
            let bytes = size.bytes(RATE);
            sizes.push(bytes >> 20);
            size.learn(bytes, barrier + mib * u32::try_from(bytes >> 20).unwrap());
        }
        sizes
    }

    #[test]
    fn steps_grow_where_a_byte_costs_nothing() {
        for barrier in [Duration::ZERO, Duration::from_millis(20)] {
            assert_eq!(sizes(barrier, Duration::from_micros(1))[..8], [1, 2, 4, 8, 16, 32, 64, 64]);
        }
    }

    #[test]
    fn steps_stay_small_where_a_byte_costs_time() {
        // 128 MiB in 15 ms.
        let sizes_seen = sizes(Duration::from_millis(5), Duration::from_micros(117));
        assert_eq!(sizes_seen[..6], [1, 2, 4, 8, 16, 16]);
        assert!(sizes(Duration::ZERO, Duration::from_millis(3)).iter().all(|mib| *mib <= 2));
    }

    #[test]
    fn a_slow_rate_bounds_a_step_and_a_small_one_teaches_nothing() {
        let mut size = StepSize::default();
        for _ in 0..10 {
            size.learn(64 << 20, Duration::ZERO);
        }
        assert_eq!(size.bytes(16 << 20), 16 << 20);
        assert_eq!(size.bytes(100), BYTES_MIN);
        let mut size = StepSize::default();
        size.learn(4096, Duration::ZERO);
        assert_eq!(size.bytes(RATE), BYTES_MIN);
    }

    #[test]
    fn a_stop_of_the_machine_says_little() {
        let mut size = StepSize::default();
        let ms = Duration::from_millis;
        (0..10).for_each(|_| size.learn(BYTES_MIN, ms(2)));
        size.learn(BYTES_MIN, Duration::from_secs(600));
        assert!(size.fixed.is_some_and(|fixed| fixed <= ms(5)), "{:?}", size.fixed);
        assert_eq!(pause(0, 1, Duration::from_secs(600), ReclaimHaste::Later), 4 * TOOK_MAX);
        // A slow barrier is believed within a few steps.
        (0..20).for_each(|_| size.learn(BYTES_MIN, ms(300)));
        assert!(size.fixed.is_some_and(|fixed| fixed >= ms(200)), "{:?}", size.fixed);
    }

    #[test]
    fn a_pause_keeps_the_rate_and_rests_after_a_slow_step() {
        let ms = Duration::from_millis;
        assert_eq!(pause(1 << 20, 10 << 20, ms(1), ReclaimHaste::Later), ms(100));
        assert_eq!(pause(1 << 20, 10 << 20, ms(100), ReclaimHaste::Soon), ms(400));
        assert_eq!(pause(1 << 20, 10 << 20, ms(200), ReclaimHaste::Now), ms(200));
        assert_eq!(pause(1 << 20, 10 << 20, ms(1), ReclaimHaste::Now), ms(100));
        assert_eq!(pause(u64::MAX, 0, ms(0), ReclaimHaste::Later), Duration::from_nanos(u64::MAX));
    }
}
