//! When operations are due, in nanoseconds from the start of the run.
//!
//! The rate is a piecewise constant function of time that all threads share, so that a burst
//! reaches all of them. Each thread draws its own arrivals at its share of that rate.

use crate::Rng;

const SECOND_NS: f64 = 1e9;

/// How the offered rate (operations a second, all threads together) moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArrivalSpec {
    /// A closed loop: the next operation begins when the last one ends.
    Closed,
    /// A constant rate.
    Steady {
        /// Operations a second.
        rate: f64,
    },
    /// Peaks and valleys of fixed lengths, a peak first (SILK §6.4).
    Bursts {
        /// Operations a second in a peak.
        peak_rate: f64,
        /// Operations a second in a valley.
        valley_rate: f64,
        /// Length of a peak.
        peak_seconds: f64,
        /// Length of a valley.
        valley_seconds: f64,
    },
    /// The shape of a metadata store's production load (SILK §6.2): nine in ten peaks last 10–20 s,
    /// the others 100–400 s; valleys 5–20 s, 15 s on average.
    Nutanix {
        /// Operations a second in a peak (published: about 20 000).
        peak_rate: f64,
        /// Operations a second in a valley (published: hundreds or fewer).
        valley_rate: f64,
    },
    /// `mean + amplitude · sin(angular · seconds)`, mixgraph's daily wave, in steps of a second.
    Sine {
        /// Operations a second, on average.
        mean: f64,
        /// How far the rate swings to each side.
        amplitude: f64,
        /// Radians a second (published: 0.000073, one day).
        angular: f64,
    },
}

impl ArrivalSpec {
    /// The same shape, scaled so that its peak (or its constant rate, or its mean) is `rate`.
    #[must_use]
    pub fn scaled_to(self, rate: f64) -> ArrivalSpec {
        match self {
            ArrivalSpec::Closed | ArrivalSpec::Steady { .. } => ArrivalSpec::Steady { rate },
            ArrivalSpec::Bursts { peak_rate, valley_rate, peak_seconds, valley_seconds } => {
                let valley_rate = valley_rate * rate / peak_rate;
                ArrivalSpec::Bursts { peak_rate: rate, valley_rate, peak_seconds, valley_seconds }
            }
            ArrivalSpec::Nutanix { peak_rate, valley_rate } => ArrivalSpec::Nutanix {
                peak_rate: rate,
                valley_rate: valley_rate * rate / peak_rate,
            },
            ArrivalSpec::Sine { mean, amplitude, angular } => {
                ArrivalSpec::Sine { mean: rate, amplitude: amplitude * rate / mean, angular }
            }
        }
    }
}

/// How arrivals spread within the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// At equal intervals.
    Even,
    /// Independently of each other.
    Poisson,
}

/// The arrivals of one thread.
#[derive(Clone, Debug)]
pub struct Schedule {
    spec: ArrivalSpec,
    process: Process,
    share: f64,
    rng: Rng,
    /// Draws the lengths of peaks and valleys. It yields the same numbers in every thread.
    shape: Rng,
    now_ns: f64,
    rate: f64,
    segment_end_ns: f64,
    segment: u64,
    /// The part of the first gap that is over at the start, so that evenly spaced threads take
    /// turns.
    credit: f64,
}

impl Schedule {
    /// The schedule of thread `thread` of `threads`.
    #[must_use]
    pub fn new(
        spec: ArrivalSpec,
        process: Process,
        seed: u64,
        thread: usize,
        threads: usize,
    ) -> Schedule {
        let threads = threads.max(1);
        let mut schedule = Schedule {
            spec,
            process,
            share: 1.0 / threads as f64,
            rng: Rng::stream(seed, 0x6172_7269_0000 + thread as u64),
            shape: Rng::stream(seed, 0x7368_6170_6500),
            now_ns: 0.0,
            rate: 0.0,
            segment_end_ns: 0.0,
            segment: 0,
            credit: 1.0 - (thread % threads) as f64 / threads as f64,
        };
        schedule.next_segment();
        schedule
    }

    /// When the next operation is due; `u64::MAX` if never.
    #[inline]
    pub fn next_due_ns(&mut self) -> u64 {
        if self.spec == ArrivalSpec::Closed {
            return u64::MAX;
        }
        // The expected number of arrivals that must pass before the next one.
        let mut left = match self.process {
            Process::Even => 1.0 - std::mem::take(&mut self.credit),
            Process::Poisson => self.rng.exponential(),
        };
        loop {
            let rate_ns = self.rate * self.share / SECOND_NS;
            let room = (self.segment_end_ns - self.now_ns) * rate_ns;
            if room > left {
                self.now_ns += left / rate_ns;
                return self.now_ns as u64;
            }
            if self.segment_end_ns >= u64::MAX as f64 {
                return u64::MAX;
            }
            left -= room;
            self.now_ns = self.segment_end_ns;
            self.next_segment();
        }
    }

    fn next_segment(&mut self) {
        let number = self.segment;
        self.segment += 1;
        let seconds = match self.spec {
            ArrivalSpec::Closed => f64::INFINITY,
            ArrivalSpec::Steady { rate } => {
                self.rate = rate;
                f64::INFINITY
            }
            ArrivalSpec::Bursts { peak_rate, valley_rate, peak_seconds, valley_seconds } => {
                let peak = number.is_multiple_of(2);
                self.rate = if peak { peak_rate } else { valley_rate };
                if peak { peak_seconds } else { valley_seconds }.max(0.001)
            }
            ArrivalSpec::Nutanix { peak_rate, valley_rate } => {
                let peak = !number.is_multiple_of(2);
                self.rate = if peak { peak_rate } else { valley_rate };
                if peak { nutanix_peak(&mut self.shape) } else { nutanix_valley(&mut self.shape) }
            }
            ArrivalSpec::Sine { mean, amplitude, angular } => {
                self.rate = (mean + amplitude * (angular * number as f64).sin()).max(0.0);
                1.0
            }
        };
        self.segment_end_ns += seconds * SECOND_NS;
    }
}

fn nutanix_peak(rng: &mut Rng) -> f64 {
    if rng.unit() < 0.9 { 10.0 + 10.0 * rng.unit() } else { 100.0 * 4f64.powf(rng.unit()) }
}

/// The larger of two uniform numbers: 5 to 20 with a mean of 15.
fn nutanix_valley(rng: &mut Rng) -> f64 {
    5.0 + 15.0 * rng.unit().max(rng.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_times(spec: ArrivalSpec, process: Process, seconds: u64, threads: usize) -> Vec<u64> {
        let mut all = Vec::new();
        for thread in 0..threads {
            let mut schedule = Schedule::new(spec, process, 42, thread, threads);
            let mut last = 0;
            loop {
                let due = schedule.next_due_ns();
                assert!(due >= last, "time goes forward");
                last = due;
                if due >= seconds * 1_000_000_000 {
                    break;
                }
                all.push(due);
            }
        }
        all.sort_unstable();
        all
    }

    fn between(due: &[u64], from: u64, to: u64) -> usize {
        due.iter().filter(|&&d| d >= from * 1_000_000_000 && d < to * 1_000_000_000).count()
    }

    #[test]
    fn steady_arrivals_are_as_many_as_the_rate_says() {
        let spec = ArrivalSpec::Steady { rate: 1_000.0 };
        for threads in [1, 2, 3, 8] {
            let even = due_times(spec, Process::Even, 10, threads);
            assert!((9_990..=10_008).contains(&even.len()), "{threads}: {}", even.len());
            // Arrivals of all threads together are evenly spaced.
            assert!(even.windows(2).all(|pair| pair[1] - pair[0] < 1_100_000), "{threads}");
            let poisson = due_times(spec, Process::Poisson, 10, threads);
            assert!((9_600..=10_400).contains(&poisson.len()), "{threads}: {}", poisson.len());
        }
    }

    #[test]
    fn poisson_gaps_have_the_variance_of_independence() {
        let due = due_times(ArrivalSpec::Steady { rate: 2_000.0 }, Process::Poisson, 30, 2);
        let counts: Vec<f64> = (0..3_000)
            .map(|slot| {
                let range = slot * 10_000_000..(slot + 1) * 10_000_000u64;
                let (from, to) = (
                    due.partition_point(|d| *d < range.start),
                    due.partition_point(|d| *d < range.end),
                );
                (to - from) as f64
            })
            .collect();
        let mean = counts.iter().sum::<f64>() / 3_000.0;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / 3_000.0;
        assert!((variance / mean - 1.0).abs() < 0.12, "variance {variance} mean {mean}");
    }

    #[test]
    fn bursts_alternate_for_all_threads_together() {
        let spec = ArrivalSpec::Bursts {
            peak_rate: 4_000.0,
            valley_rate: 1_000.0,
            peak_seconds: 3.0,
            valley_seconds: 2.0,
        };
        for process in [Process::Even, Process::Poisson] {
            let due = due_times(spec, process, 10, 4);
            for (from, to, rate) in [(0, 3, 4_000), (3, 5, 1_000), (5, 8, 4_000), (8, 10, 1_000)] {
                let expected = rate * (to - from) as usize;
                let got = between(&due, from, to);
                assert!(got.abs_diff(expected) < expected / 12, "{from}..{to}: {got}");
            }
        }
        assert_eq!(
            spec.scaled_to(400.0),
            ArrivalSpec::Bursts {
                peak_rate: 400.0,
                valley_rate: 100.0,
                peak_seconds: 3.0,
                valley_seconds: 2.0
            }
        );
    }

    #[test]
    fn nutanix_has_the_published_lengths() {
        let mut rng = Rng::new(6);
        let peaks: Vec<f64> = (0..20_000).map(|_| nutanix_peak(&mut rng)).collect();
        let short = peaks.iter().filter(|p| (10.0..=20.0).contains(*p)).count();
        assert!((17_600..18_400).contains(&short), "{short}");
        assert!(peaks.iter().all(|p| (10.0..=20.0).contains(p) || (100.0..=400.0).contains(p)));
        let valleys: Vec<f64> = (0..20_000).map(|_| nutanix_valley(&mut rng)).collect();
        let mean = valleys.iter().sum::<f64>() / 20_000.0;
        assert!((mean - 15.0).abs() < 0.1, "{mean}");
        assert!(valleys.iter().all(|v| (5.0..=20.0).contains(v)));
    }

    #[test]
    fn a_sine_swings_around_its_mean() {
        let spec = ArrivalSpec::Sine {
            mean: 1_000.0,
            amplitude: 500.0,
            angular: std::f64::consts::TAU / 20.0,
        };
        let due = due_times(spec, Process::Even, 20, 2);
        assert!(due.len().abs_diff(20_000) < 30, "{}", due.len());
        assert!(between(&due, 5, 6) > 1_450 && between(&due, 15, 16) < 550);
    }

    #[test]
    fn no_rate_means_no_arrival() {
        let never = |spec| Schedule::new(spec, Process::Even, 1, 0, 1).next_due_ns();
        assert_eq!(never(ArrivalSpec::Closed), u64::MAX);
        assert_eq!(never(ArrivalSpec::Steady { rate: 0.0 }), u64::MAX);
    }
}
