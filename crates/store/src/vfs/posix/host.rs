//! What other programs use of the machine's processors.
//!
//! What must stay true: where the system does not tell, nothing is assumed to be used.

use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};
use sateen_control::Processors;

use crate::base::clock;

/// The kernel counts in hundredths of a second, so a shorter time says little.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
const TICK_MS: u64 = 10;
/// The first line of `/proc/stat` is shorter.
const TEXT_BYTES: usize = 256;

/// A reading of the counters.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    /// The time of all processors since the machine started, and how much of it they were idle.
    all: Duration,
    idle: Duration,
    /// Processor time of this process.
    own: Duration,
}

/// Measures how the processors are used.
#[derive(Debug, Default)]
pub struct HostMeter {
    last: Option<Reading>,
    found: Processors,
}

impl HostMeter {
    /// Returns how the processors were used lately. It looks twice a second, which takes the kernel
    /// 10 to 70 microseconds on two processors and longer on more, and returns what it found the
    /// last time otherwise.
    pub fn look(&mut self) -> Processors {
        let due = |last: &Reading| clock::since(last.at) >= LOOK_PERIOD;
        if clock::is_virtual() || !self.last.as_ref().is_none_or(due) {
            return self.found;
        }
        let now = Reading::now();
        let since = self.last.zip(now).map(|(last, now)| now.since(&last));
        self.found = since.unwrap_or_default();
        self.last = now;
        self.found
    }
}

impl Reading {
    fn now() -> Option<Reading> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let stat = rustix::fs::open("/proc/stat", flags, Mode::empty()).ok()?;
        let mut text = [0; TEXT_BYTES];
        let length = rustix::io::read(&stat, &mut text).ok()?;
        let (all, idle) = parse(&String::from_utf8_lossy(text.get(..length)?))?;
        let own = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok()?;
        Some(Reading { at: clock::now(), all, idle, own })
    }

    fn since(&self, last: &Reading) -> Processors {
        let all = self.all.saturating_sub(last.all);
        let idle = self.idle.saturating_sub(last.idle);
        let own = self.own.saturating_sub(last.own);
        let part = |of: Duration| {
            let thousandths = (of.as_millis() * 1000).checked_div(all.as_millis()).unwrap_or(0);
            u32::try_from(thousandths).unwrap_or(0).min(1000)
        };
        Processors { others: part(all.saturating_sub(idle).saturating_sub(own)), idle: part(idle) }
    }
}

/// Returns the time of all processors, and the part in which they were idle or waited for I/O. Time
/// that the host gave to other guests is not idle.
fn parse(text: &str) -> Option<(Duration, Duration)> {
    let mut words = text.lines().next()?.split_ascii_whitespace();
    if words.next() != Some("cpu") {
        return None;
    }
    // user, nice, system, idle, iowait, irq, softirq, steal; the guests' are in user and nice.
    let ticks = words.take(8).map(|word| word.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    let time = |ticks: &[u64]| {
        let all = ticks.iter().fold(0_u64, |sum, ticks| sum.saturating_add(*ticks));
        Duration::from_millis(all.saturating_mul(TICK_MS))
    };
    Some((time(&ticks), time(ticks.get(3..5)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_use_is_what_is_neither_idle_nor_our_own() {
        let stat = "cpu  100 20 30 500 50 4 6 90 7 8\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let ms = Duration::from_millis;
        assert_eq!(parse(stat), Some((ms(8000), ms(5500))));
        // After some weeks on a large machine.
        let (all, idle) = parse("cpu  1 0 0 99999999999 0 0 0 0\n").unwrap();
        assert_eq!(all - idle, ms(10));
        for text in ["", "cpu  1 2", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 x 5 6 7 8"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        let reading = |all, idle, own| Reading { at: Instant::now(), all, idle, own };
        let [before, after] = [(1000, 100, 10), (2000, 150, 210)]
            .map(|(all, idle, own)| reading(ms(all), ms(idle), ms(own)));
        assert_eq!(after.since(&before), Processors { others: 750, idle: 50 });
        // A counter that stands still, or was not there, says nothing.
        assert_eq!(before.since(&before), Processors::default());
        assert_eq!(before.since(&after), Processors::default());
    }

    #[test]
    fn the_kernel_tells() {
        let reading = Reading::now().expect("Linux");
        assert!(reading.all >= reading.idle && !reading.all.is_zero());
        let mut meter = HostMeter::default();
        assert_eq!(meter.look(), Processors::default());
        assert_eq!(meter.look(), Processors::default(), "too early");
    }
}
