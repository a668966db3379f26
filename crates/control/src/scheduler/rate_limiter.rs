//! A token bucket for background bytes with RocksDB's behaviour, and its tuner. Nobody sleeps here:
//! who finds the bucket empty is told when it is filled again.

use crate::arithmetic::{nanoseconds, to_i64};
use crate::options::RateLimiterOptions;
use crate::types::Instant;

/// The tuner looks at so many refills at a time.
const REFILLS_PER_TUNE: u64 = 100;
/// It raises the limit when the bucket ran dry in more than this share of them, in percent.
const HIGH_WATERMARK_PERCENT: u64 = 90;
/// It lowers the limit below this share.
const LOW_WATERMARK_PERCENT: u64 = 50;
/// By so much, in percent.
const ADJUST_PERCENT: u64 = 5;
/// The lowest limit is this part of the highest.
const RANGE: u64 = 20;

/// See the head of this file.
#[derive(Clone, Debug)]
pub(crate) struct RateLimiter {
    options: RateLimiterOptions,
    /// The limit in force: below the option's value when tuned.
    bytes_per_second: Option<u64>,
    /// Negative when a step moved more than it was granted.
    available_bytes: i64,
    last_refill: Option<Instant>,
    refills: u64,
    /// Whether somebody found the bucket empty since the last refill.
    drained: bool,
    drains: u64,
    last_tune: Instant,
}

impl RateLimiter {
    pub(crate) fn new(options: RateLimiterOptions) -> RateLimiter {
        let mut limiter = RateLimiter {
            bytes_per_second: None,
            available_bytes: 0,
            last_refill: None,
            refills: 0,
            drained: false,
            drains: 0,
            last_tune: Instant::default(),
            options: RateLimiterOptions::default(),
        };
        limiter.set_options(options);
        limiter
    }

    pub(crate) fn set_options(&mut self, options: RateLimiterOptions) {
        // The tuner starts in the middle and keeps what it has learned only under the same bound.
        let same = self.options.bytes_per_second == options.bytes_per_second
            && self.options.auto_tuned == options.auto_tuned;
        if !same {
            let start = |bytes: u64| if options.auto_tuned { bytes / 2 } else { bytes };
            self.bytes_per_second = options.bytes_per_second.map(|bytes| start(bytes).max(1));
        }
        self.options = options;
        if self.bytes_per_second.is_none() {
            self.last_refill = None;
            self.available_bytes = 0;
        }
    }

    /// The limit in force.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        self.bytes_per_second
    }

    /// Whether at this refill the low priorities go first.
    pub(crate) fn is_reversed(&self) -> bool {
        let fairness = u64::from(self.options.fairness);
        self.bytes_per_second.is_some() && fairness > 0 && self.refills % fairness == fairness - 1
    }

    /// Fills up for the time that has passed.
    pub(crate) fn refill(&mut self, now: Instant) {
        let Some(rate) = self.bytes_per_second else { return };
        let period = self.period_ns();
        let Some(last) = self.last_refill else {
            self.last_refill = Some(now);
            self.last_tune = now;
            self.available_bytes = self.refill_bytes(rate);
            return;
        };
        let periods = now.0.saturating_sub(last.0) / period;
        if periods == 0 {
            return;
        }
        self.last_refill = Some(Instant(last.0 + periods * period));
        self.refills += 1;
        self.drains += u64::from(std::mem::take(&mut self.drained));
        self.tune(now);
        let bytes = self.refill_bytes(self.bytes_per_second.unwrap_or(rate));
        let gained = bytes.saturating_mul(i64::try_from(periods).unwrap_or(i64::MAX));
        self.available_bytes = self.available_bytes.saturating_add(gained).min(bytes);
    }

    /// Takes up to `want` bytes; `None` if so few are left that it is better to wait.
    pub(crate) fn take(&mut self, want: u64) -> Option<u64> {
        let Some(rate) = self.bytes_per_second else { return Some(want) };
        let available = u64::try_from(self.available_bytes).unwrap_or(0);
        let full = u64::try_from(self.refill_bytes(rate)).unwrap_or(1);
        if available < (want.min(full) / 4).max(1) {
            self.drained = true;
            return None;
        }
        let taken = want.min(available);
        self.available_bytes -= to_i64(taken);
        Some(taken)
    }

    /// A grant of `granted` bytes has been used: `read` and `written` bytes were moved.
    pub(crate) fn settle(&mut self, granted: u64, read: u64, written: u64) {
        if self.bytes_per_second.is_some() {
            use crate::options::RateLimiterMode::{AllIo, ReadsOnly, WritesOnly};
            let used = match self.options.mode {
                ReadsOnly => read,
                WritesOnly => written,
                AllIo => read.saturating_add(written),
            };
            self.available_bytes =
                self.available_bytes.saturating_add(to_i64(granted)).saturating_sub(to_i64(used));
        }
    }

    /// When the bucket is filled next.
    pub(crate) fn next_refill(&self) -> Option<Instant> {
        self.bytes_per_second?;
        self.last_refill.map(|last| Instant(last.0.saturating_add(self.period_ns())))
    }

    fn period_ns(&self) -> u64 {
        nanoseconds(self.options.refill_period).max(1)
    }

    fn refill_bytes(&self, rate: u64) -> i64 {
        let bytes = u128::from(rate) * u128::from(self.period_ns()) / 1_000_000_000;
        i64::try_from(bytes).unwrap_or(i64::MAX).max(1)
    }

    fn tune(&mut self, now: Instant) {
        let (Some(rate), Some(rate_max)) = (self.bytes_per_second, self.options.bytes_per_second)
        else {
            return;
        };
        let period = self.period_ns();
        let elapsed = now.0.saturating_sub(self.last_tune.0);
        if !self.options.auto_tuned || elapsed < REFILLS_PER_TUNE.saturating_mul(period) {
            return;
        }
        let drained_percent = self.drains.saturating_mul(100) / elapsed.div_ceil(period);
        let rate_min = (rate_max / RANGE).max(1);
        let tuned = if drained_percent == 0 {
            rate_min
        } else if drained_percent < LOW_WATERMARK_PERCENT {
            (rate.saturating_mul(100) / (100 + ADJUST_PERCENT)).max(rate_min)
        } else if drained_percent > HIGH_WATERMARK_PERCENT {
            (rate.saturating_mul(100 + ADJUST_PERCENT) / 100).min(rate_max)
        } else {
            rate
        };
        self.bytes_per_second = Some(tuned);
        self.drains = 0;
        self.last_tune = now;
    }
}
