//! The gates that writers pass before they join the commit queue: one for all writers and one for
//! each column family. The only place where the client path waits for the background
//! (ARCHITECTURE.md, invariant 8). Every wait has a cause and is counted.
//!
//! A slowed-down gate counts the bytes that its rate has let pass since it was made; a writer takes
//! the next place in that count and goes on when the count has come there. The rate may change
//! meanwhile: a wait is never longer than the rates in force made it. A large write takes its
//! places piece by piece, so that small ones pass between them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sateen_control::{Admission, AdmissionState, StallCause};

use crate::error::{Error, Result};
use crate::metrics::EngineMetrics;
use crate::sync::lock;

/// A slowed-down writer looks again after so long at most.
const SLEEP_MAX: Duration = Duration::from_micros(100);
/// A stopped writer looks again at least so often.
const STOP_WAIT_MAX: Duration = Duration::from_millis(10);
/// A write takes its places in pieces of so many bytes.
const PIECE_BYTES: u64 = 64 << 10;
/// So much may pass at once after a pause.
const BURST: Duration = Duration::from_millis(1);
/// Writes of low priority get this part of the rate.
const LOW_PRIORITY_PART: u64 = 8;

/// What a writer brings to a gate.
pub(crate) struct Writer<'a> {
    pub(crate) bytes: u64,
    /// When it gives up waiting.
    pub(crate) deadline: Option<Instant>,
    pub(crate) low_priority: bool,
    pub(crate) metrics: &'a EngineMetrics,
    /// Asked each time before waiting on: an error from it ends the wait.
    pub(crate) give_up: &'a dyn Fn() -> Result<()>,
}

struct State {
    admission: Admission,
    /// Bytes that the rates in force have let pass up to `since`.
    passed: u64,
    since: Instant,
    /// The next place.
    booked: u64,
}

impl State {
    fn rate(&self) -> Option<u64> {
        match self.admission.state {
            AdmissionState::Open => None,
            AdmissionState::Delayed { bytes_per_second } => Some(bytes_per_second.max(1)),
            AdmissionState::Stopped => Some(0),
        }
    }

    fn passed_at(&self, now: Instant) -> u64 {
        self.passed.saturating_add(bytes_in(self.rate().unwrap_or(0), now - self.since))
    }
}

/// See the module.
pub(crate) struct AdmissionGate {
    open: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

impl Default for AdmissionGate {
    fn default() -> AdmissionGate {
        AdmissionGate {
            open: AtomicBool::new(true),
            state: Mutex::new(State {
                admission: Admission::default(),
                passed: 0,
                since: Instant::now(),
                booked: 0,
            }),
            changed: Condvar::new(),
        }
    }
}

impl AdmissionGate {
    /// Control has decided anew.
    pub(crate) fn publish(&self, admission: Admission) {
        let mut state = lock(&self.state);
        let now = Instant::now();
        state.passed = state.passed_at(now);
        state.since = now;
        let was_open = state.rate().is_none();
        state.admission = admission;
        let open = admission.state == AdmissionState::Open;
        self.open.store(open, Ordering::Release);
        if was_open {
            // Who passed while it was open had nothing to book.
            state.booked = state.passed;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// How writers are admitted now.
    pub(crate) fn current(&self) -> Admission {
        lock(&self.state).admission
    }

    /// True if a writer passes at once.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// True if no writer passes.
    pub(crate) fn is_stopped(&self) -> bool {
        self.current().state == AdmissionState::Stopped
    }

    /// How long a small write would wait now.
    pub(crate) fn expected_wait(&self) -> Duration {
        let state = lock(&self.state);
        match state.rate() {
            None => Duration::ZERO,
            Some(0) => STOP_WAIT_MAX,
            Some(rate) => {
                time_for(state.booked.saturating_sub(state.passed_at(Instant::now())), rate)
            }
        }
    }

    /// Returns when the write may go on.
    #[cold]
    pub(crate) fn wait(&self, writer: &Writer<'_>) -> Result<()> {
        let mut left = writer.bytes;
        loop {
            let piece = left.min(PIECE_BYTES);
            self.wait_piece(writer, piece, left)?;
            left -= piece;
            if left == 0 || self.is_open() {
                return Ok(());
            }
        }
    }

    fn wait_piece(&self, writer: &Writer<'_>, piece: u64, left: u64) -> Result<()> {
        let mut place = None;
        let mut waiting = None;
        loop {
            (writer.give_up)()?;
            let now = Instant::now();
            let mut state = lock(&self.state);
            let Some(rate) = state.rate() else { return Ok(()) };
            let cause = state.admission.cause.unwrap_or(StallCause::BackgroundError);
            let late = writer.deadline.is_some_and(|deadline| now >= deadline);
            if rate == 0 {
                if late {
                    return Err(would_stall(STOP_WAIT_MAX, cause));
                }
                waiting.get_or_insert_with(|| writer.metrics.stall_begin(cause));
                let most = writer.deadline.map_or(STOP_WAIT_MAX, |d| (d - now).min(STOP_WAIT_MAX));
                let waited = self.changed.wait_timeout(state, most);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            let passed = state.passed_at(now);
            let place = match place {
                Some(place) => place,
                None => {
                    let first = state.booked.max(passed.saturating_sub(bytes_in(rate, BURST)));
                    let slower = if writer.low_priority { LOW_PRIORITY_PART } else { 1 };
                    let ahead = first.saturating_sub(passed).saturating_mul(slower);
                    let in_all = ahead.saturating_add((left - piece).saturating_mul(slower));
                    let wait = time_for(in_all, rate);
                    if writer.deadline.is_some_and(|deadline| now + wait > deadline) {
                        return Err(would_stall(wait, cause));
                    }
                    state.booked = first.saturating_add(piece);
                    let own = if slower > 1 { piece.saturating_mul(slower) } else { 0 };
                    *place.insert(passed.max(first).saturating_add(own).max(first))
                }
            };
            if passed >= place {
                return Ok(());
            }
            drop(state);
            waiting.get_or_insert_with(|| writer.metrics.stall_begin(cause));
            std::thread::sleep(time_for(place - passed, rate).min(SLEEP_MAX));
        }
    }
}

fn would_stall(retry_after: Duration, cause: StallCause) -> Error {
    Error::WouldStall { retry_after, cause: cause.name() }
}

fn bytes_in(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_nanos() / 1_000_000_000).unwrap_or(u64::MAX)
}

fn time_for(bytes: u64, rate: u64) -> Duration {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::LatencySampling;

    fn delayed(bytes_per_second: u64) -> Admission {
        let state = AdmissionState::Delayed { bytes_per_second };
        Admission { state, cause: Some(StallCause::Level0Runs), column_family: None }
    }

    fn stopped() -> Admission {
        let cause = Some(StallCause::MemtableLimit);
        Admission { state: AdmissionState::Stopped, cause, column_family: None }
    }

    fn pass(gate: &AdmissionGate, bytes: u64, deadline: Option<Duration>) -> Result<Duration> {
        let metrics = EngineMetrics::new(LatencySampling::default(), 0);
        let start = Instant::now();
        let deadline = deadline.map(|within| start + within);
        let give_up = || Ok(());
        let (metrics, give_up) = (&metrics, &give_up);
        gate.wait(&Writer { bytes, deadline, low_priority: false, metrics, give_up })?;
        Ok(start.elapsed())
    }

    #[test]
    fn a_rate_is_kept_in_the_long_run() {
        let gate = AdmissionGate::default();
        gate.publish(delayed(10_000_000));
        let start = Instant::now();
        for _ in 0..100 {
            pass(&gate, 10_000, None).unwrap();
        }
        // 990 000 bytes have passed before the last: no sooner than in 98 ms and a burst.
        assert!(start.elapsed() >= Duration::from_millis(95));
    }

    #[test]
    fn a_wait_ends_when_the_rate_rises_or_the_gate_opens() {
        for change in [delayed(u64::MAX), Admission::default()] {
            let gate = AdmissionGate::default();
            gate.publish(delayed(1));
            pass(&gate, 1_000, None).unwrap();
            std::thread::scope(|scope| {
                // At the old rate this would take a quarter of an hour.
                let waiter = scope.spawn(|| pass(&gate, 10, None));
                std::thread::sleep(Duration::from_millis(5));
                gate.publish(change);
                waiter.join().unwrap().unwrap();
            });
        }
    }

    #[test]
    fn a_deadline_is_told_beforehand_and_nothing_is_booked() {
        let gate = AdmissionGate::default();
        gate.publish(delayed(1_000));
        pass(&gate, 1_000, None).unwrap();
        let Err(Error::WouldStall { retry_after, cause }) = pass(&gate, 1, Some(Duration::ZERO))
        else {
            panic!("it would have to wait")
        };
        assert_eq!(cause, StallCause::Level0Runs.name());
        assert!(retry_after > Duration::from_millis(500) && retry_after <= Duration::from_secs(1));
        assert!(gate.expected_wait() <= Duration::from_secs(1));
        gate.publish(stopped());
        let stalled = pass(&gate, 1, Some(Duration::from_millis(1)));
        assert!(matches!(stalled, Err(Error::WouldStall { .. })));
    }

    #[test]
    fn small_writes_pass_between_the_pieces_of_a_large_one() {
        let gate = AdmissionGate::default();
        gate.publish(delayed(4 << 20));
        std::thread::scope(|scope| {
            let large = scope.spawn(|| pass(&gate, 4 << 20, None));
            std::thread::sleep(Duration::from_millis(20));
            let small = pass(&gate, 10, None).unwrap();
            let large = large.join().unwrap().unwrap();
            assert!(small < large, "{small:?} and {large:?}");
            assert!(large >= Duration::from_millis(900));
        });
    }
}
