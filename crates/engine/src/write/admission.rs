//! The gate that writers pass before they join the commit queue: one atomic says open, how fast, or
//! not at all. The only place where the client path waits for the background (ARCHITECTURE.md,
//! invariant 8). Every wait has a cause and is counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sateen_control::{Admission, AdmissionState, StallCause};

use crate::error::{Error, Result};
use crate::metrics::EngineMetrics;
use crate::sync::lock;

const OPEN: u64 = u64::MAX;
const STOPPED: u64 = 0;

/// A slowed-down writer sleeps at most this long at a time, then looks again.
const SLEEP_MAX: Duration = Duration::from_millis(1);
/// A stopped writer looks again at least so often.
const STOP_WAIT_MAX: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct AdmissionGate {
    /// Bytes a second; `OPEN` or `STOPPED`.
    rate: AtomicU64,
    current: Mutex<Admission>,
    changed: Condvar,
    /// Nanoseconds since `start` up to which admitted bytes have used up the delayed rate.
    booked_until: AtomicU64,
    start: Instant,
}

impl Default for AdmissionGate {
    fn default() -> AdmissionGate {
        AdmissionGate {
            rate: AtomicU64::new(OPEN),
            current: Mutex::default(),
            changed: Condvar::new(),
            booked_until: AtomicU64::new(0),
            start: Instant::now(),
        }
    }
}

impl AdmissionGate {
    /// Control has decided anew.
    pub(crate) fn publish(&self, admission: Admission) {
        let rate = match admission.state {
            AdmissionState::Open => OPEN,
            AdmissionState::Delayed { bytes_per_second } => bytes_per_second.clamp(1, OPEN - 1),
            AdmissionState::Stopped => STOPPED,
        };
        *lock(&self.current) = admission;
        self.rate.store(rate, Ordering::Release);
        self.changed.notify_all();
    }

    /// How writers are admitted now.
    pub(crate) fn current(&self) -> Admission {
        *lock(&self.current)
    }

    /// True if a writer passes at once.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.rate.load(Ordering::Acquire) == OPEN
    }

    /// True if no writer passes.
    pub(crate) fn is_stopped(&self) -> bool {
        self.rate.load(Ordering::Acquire) == STOPPED
    }

    /// How long a small write would wait now.
    pub(crate) fn expected_wait(&self) -> Duration {
        match self.rate.load(Ordering::Acquire) {
            OPEN => Duration::ZERO,
            STOPPED => STOP_WAIT_MAX,
            _ => {
                let booked = self.booked_until.load(Ordering::Relaxed);
                Duration::from_nanos(booked.saturating_sub(self.elapsed()))
            }
        }
    }

    fn cause(&self) -> StallCause {
        self.current().cause.unwrap_or(StallCause::BackgroundError)
    }

    /// Returns when a write of `bytes` may go on. `give_up` is asked each time before waiting on:
    /// an error from it ends the wait.
    #[cold]
    pub(crate) fn wait(
        &self,
        bytes: u64,
        deadline: Option<Duration>,
        metrics: &EngineMetrics,
        give_up: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let entered = Instant::now();
        let cause = self.cause();
        let deadline = deadline.map(|within| entered + within);
        let _counted = metrics.stall_begin(cause);
        self.wait_inner(bytes, deadline, give_up)
    }

    fn wait_inner(
        &self,
        bytes: u64,
        deadline: Option<Instant>,
        give_up: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let would_stall =
            |retry_after| Err(Error::WouldStall { retry_after, cause: self.cause().name() });
        loop {
            give_up()?;
            match self.rate.load(Ordering::Acquire) {
                OPEN => return Ok(()),
                STOPPED => {
                    let now = Instant::now();
                    if deadline.is_some_and(|deadline| now >= deadline) {
                        return would_stall(STOP_WAIT_MAX);
                    }
                    let left = deadline.map_or(STOP_WAIT_MAX, |deadline| deadline - now);
                    let current = lock(&self.current);
                    if current.state == AdmissionState::Stopped {
                        let wait = left.min(STOP_WAIT_MAX);
                        let waited = self.changed.wait_timeout(current, wait);
                        drop(waited.unwrap_or_else(PoisonError::into_inner));
                    }
                }
                rate => match self.book(bytes, rate, deadline) {
                    Ok(until) => return self.sleep_until(until, give_up),
                    Err(retry_after) => return would_stall(retry_after),
                },
            }
        }
    }

    /// Reserves `bytes` of the delayed rate: the moment from which on they may be written.
    fn book(&self, bytes: u64, rate: u64, deadline: Option<Instant>) -> Result<u64, Duration> {
        let now = self.elapsed();
        let cost = u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(rate));
        let cost = cost.unwrap_or(u64::MAX);
        let limit = deadline.map(|deadline| nanos(deadline.saturating_duration_since(self.start)));
        let mut booked = self.booked_until.load(Ordering::Relaxed);
        loop {
            let from = booked.max(now);
            if limit.is_some_and(|limit| from > limit) {
                return Err(Duration::from_nanos(from - now));
            }
            let until = from.saturating_add(cost);
            match self.booked_until.compare_exchange_weak(
                booked,
                until,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(from),
                Err(other) => booked = other,
            }
        }
    }

    fn sleep_until(&self, until: u64, give_up: &dyn Fn() -> Result<()>) -> Result<()> {
        loop {
            let now = self.elapsed();
            if now >= until || self.is_open() {
                return Ok(());
            }
            give_up()?;
            std::thread::sleep(Duration::from_nanos(until - now).min(SLEEP_MAX));
        }
    }

    fn elapsed(&self) -> u64 {
        nanos(self.start.elapsed())
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
