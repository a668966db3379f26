//! A rate limiter for background I/O with RocksDB's behaviour, and its tuner. It never sleeps: a
//! job that finds it empty asks again at the next refill.
//!
//! What clients leave of the device is granted below its limit, if there is one.
//! [`IoScheduler::grant_limited`] grants where the limiter alone decides.

use super::{IoScheduler, Lane, Place, Source};
use crate::arithmetic::{nanoseconds, to_i64};
use crate::options::RateLimitMode::{AllIo, ReadsOnly, WritesOnly};
use crate::options::RateLimiterOptions;
use crate::types::{Instant, JobId};

/// Number of refill periods between two runs of the tuner.
const REFILLS_PER_TUNE: u64 = 100;
/// If the bucket ran dry in more than this percentage of them, the limit is raised.
const HIGH_WATERMARK_PERCENT: u64 = 90;
/// If it ran dry in less than this percentage, the limit is lowered.
const LOW_WATERMARK_PERCENT: u64 = 50;
/// The change of the limit, in percent.
const ADJUST_PERCENT: u64 = 5;
/// The lowest limit is the highest one divided by this.
const RANGE: u64 = 20;

/// The rate limiter.
#[derive(Clone, Debug)]
pub(crate) struct RateLimiter {
    options: RateLimiterOptions,
    /// The current limit; less than the option's value while it is tuned.
    bytes_per_second: Option<u64>,
    /// Negative if a step moved more than it was granted.
    available_bytes: i64,
    last_refill: Option<Instant>,
    refills: u64,
    /// Whether a job found the bucket empty since the last refill, and before it.
    drained: bool,
    was_drained: bool,
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
            was_drained: false,
            drains: 0,
            last_tune: Instant::default(),
            options: RateLimiterOptions::default(),
        };
        limiter.set_options(options);
        limiter
    }

    pub(crate) fn set_options(&mut self, options: RateLimiterOptions) {
        // The tuner keeps its limit only if its bound is the same. Otherwise it starts in the
        // middle.
        let same = self.options.bytes_per_second == options.bytes_per_second
            && self.options.auto_tune == options.auto_tune;
        if !same {
            // It is counted anew, from a full bucket.
            (self.last_refill, self.drains, self.drained) = (None, 0, false);
            let start = |bytes: u64| if options.auto_tune { bytes / 2 } else { bytes };
            self.bytes_per_second = options.bytes_per_second.map(|bytes| start(bytes).max(1));
        }
        self.options = options;
        if self.bytes_per_second.is_none() {
            self.last_refill = None;
            self.available_bytes = 0;
        }
    }

    /// Returns the current limit; `None` if there is none.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        self.bytes_per_second
    }

    /// Returns the rate at which compactions, which write about what they read, can go on. A tuned
    /// limit rises if they need that.
    pub(crate) fn compacted_per_second(&self) -> u64 {
        let counted = if self.options.mode == AllIo { 2 } else { 1 };
        self.options.bytes_per_second.map_or(u64::MAX, |rate| (rate / counted).max(1))
    }

    /// Returns true if lower priorities go first at this refill. Where nobody waits for the limit,
    /// none is kept waiting by it.
    pub(crate) fn is_reversed(&self) -> bool {
        let fairness = u64::from(self.options.fairness);
        self.was_drained && fairness > 0 && self.refills % fairness == fairness - 1
    }

    /// Refills the bucket for the periods that have passed.
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
        self.was_drained = std::mem::take(&mut self.drained);
        self.drains += u64::from(self.was_drained);
        self.tune(now);
        let bytes = self.refill_bytes(self.bytes_per_second.unwrap_or(rate));
        let gained = bytes.saturating_mul(i64::try_from(periods).unwrap_or(i64::MAX));
        self.available_bytes = self.available_bytes.saturating_add(gained).min(bytes);
    }

    /// Returns true if the bytes of jobs in `lane` count. Flushes read nothing.
    fn counts(&self, lane: Lane) -> bool {
        self.bytes_per_second.is_some() && (lane != Lane::Flush || self.options.mode != ReadsOnly)
    }

    /// Returns true if so few bytes are left that a job in `lane`, which could use `want` bytes,
    /// had better wait.
    pub(crate) fn holds(&self, lane: Lane, want: u64) -> bool {
        let Some(rate) = self.bytes_per_second.filter(|_| self.counts(lane)) else { return false };
        let available = u64::try_from(self.available_bytes).unwrap_or(0);
        let full = u64::try_from(self.refill_bytes(rate)).unwrap_or(1);
        available < (want.min(full) / 4).max(1)
    }

    /// Notes that a job had to wait, of which the tuner learns.
    pub(crate) fn note_drained(&mut self) {
        self.drained = true;
    }

    /// Takes up to `want` bytes for a job in `lane`. Returns `None` if it had better wait.
    pub(crate) fn take(&mut self, lane: Lane, want: u64) -> Option<u64> {
        if self.holds(lane, want) {
            self.note_drained();
            return None;
        }
        if !self.counts(lane) {
            return Some(want);
        }
        let taken = want.min(u64::try_from(self.available_bytes).unwrap_or(0));
        self.available_bytes -= to_i64(taken);
        Some(taken)
    }

    /// Settles a grant of `granted` bytes to a job in `lane` by the bytes that were really moved.
    pub(crate) fn settle(&mut self, lane: Lane, granted: u64, read: u64, written: u64) {
        if self.counts(lane) {
            let used = match self.options.mode {
                ReadsOnly => read,
                WritesOnly => written,
                AllIo => read.saturating_add(written),
            };
            self.available_bytes =
                self.available_bytes.saturating_add(to_i64(granted)).saturating_sub(to_i64(used));
        }
    }

    /// Returns when the bucket is refilled next.
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

    /// Adapts the limit to how often the bucket ran dry.
    fn tune(&mut self, now: Instant) {
        let (Some(rate), Some(rate_max)) = (self.bytes_per_second, self.options.bytes_per_second)
        else {
            return;
        };
        let period = self.period_ns();
        let elapsed = now.0.saturating_sub(self.last_tune.0);
        if !self.options.auto_tune || elapsed < REFILLS_PER_TUNE.saturating_mul(period) {
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

impl IoScheduler {
    /// Returns the next grant below the limit, whatever clients do.
    pub(super) fn grant_limited(&mut self, now: Instant) -> Option<(JobId, u64)> {
        self.queue.first()?;
        self.limiter.refill(now);
        self.members.refill(now, self.slices.bytes_max());
        let most = self.slices.bytes_max();
        let mut limited = false;
        let next = self.in_order().find(|place| {
            let lane = self.jobs.get(&place.job).filter(|_| !self.is_held(place.job));
            let Some(lane) = lane.map(|job| job.lane) else { return false };
            let held = self.limiter.holds(lane, most);
            limited |= held;
            !held
        });
        let next = next.copied();
        if limited {
            self.limiter.note_drained();
        }
        let next = next?;
        if !self.is_served_now(next.job) {
            return None;
        }
        let bytes = self.limiter.take(self.jobs.get(&next.job)?.lane, most)?;
        self.give(next, bytes, Source::Limiter);
        Some((next.job, bytes))
    }

    /// Returns true if the limit leaves too little for a slice of a job in `lane`.
    pub(super) fn is_limited(&self, lane: Lane) -> bool {
        // Without a limit the size of a slice is not computed.
        let has_limit = self.limiter.bytes_per_second().is_some();
        has_limit && self.limiter.holds(lane, self.slice_bytes(lane))
    }

    /// Returns the queue, with the lowest rank first if the limiter says so. Within a rank the
    /// order stays.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Place> {
        let reversed = self.limiter.is_reversed();
        let last = self.queue.last().map_or(0, |place| place.rank);
        let ranks = (0..=last).map(move |rank| if reversed { last - rank } else { rank });
        ranks.flat_map(|rank| self.queue.iter().filter(move |place| place.rank == rank))
    }
}
