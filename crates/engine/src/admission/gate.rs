//! The gates that writers pass before they join the commit queue: one for all writers, and one for
//! each column family. [`Gate`], in control, does the arithmetic of places and rates; this file
//! does the waiting. Every wait has a cause and is counted.
//!
//! 1. [`AdmissionGate::publish`] sets the admission that control decided, and wakes those who wait.
//! 2. A writer asks [`AdmissionGate::is_open`], which reads one atomic, and passes if it is true.
//! 3. Otherwise [`AdmissionGate::wait`] cuts the write into pieces, so that small writes pass
//!    between the pieces of a large one.
//! 4. `wait_piece` books a place for the piece and sleeps until the rate has let that place pass.
//!    While the gate is stopped, it waits until the admission changes.
//! 5. With a deadline that the wait would exceed, nothing is booked and the write fails with
//!    [`Error::WouldStall`].

use std::time::{Duration, Instant};

use sateen_control as control;
use sateen_control::{Admission, AdmissionState, Gate, StallCause};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::locks::lock_timed;
use sateen_store::base::sync::atomic::{AtomicBool, Ordering};
use sateen_store::base::sync::{Condvar, Mutex, MutexGuard, lock};

use crate::metrics::EngineMetrics;

/// Longest sleep of a writer before it looks at the gate again. A change of the admission wakes it
/// earlier.
const WAIT_MAX: Duration = Duration::from_millis(10);
/// Size of the pieces in which a write books its places.
const PIECE_BYTES: u64 = 64 << 10;
/// All writes of low priority together get the rate divided by this.
const LOW_PRIORITY_PART: u64 = 8;

/// A write at a gate.
pub(crate) struct Writer<'a> {
    pub(crate) bytes: u64,
    /// The latest moment up to which it may wait.
    pub(crate) deadline: Option<Instant>,
    pub(crate) low_priority: bool,
    pub(crate) metrics: &'a EngineMetrics,
    /// Called before each sleep and each `WouldStall`, with the gate locked. Its error is returned
    /// instead.
    pub(crate) give_up: &'a dyn Fn() -> Result<()>,
}

/// A gate for the writers of a database or of a column family.
pub(crate) struct AdmissionGate {
    /// True if writers pass without looking at `gate`.
    open: AtomicBool,
    gate: Mutex<Gate>,
    /// Notified when the admission changes.
    changed: Condvar,
    /// The zero of the gate's clock.
    start: Instant,
}

impl Default for AdmissionGate {
    fn default() -> AdmissionGate {
        AdmissionGate {
            open: AtomicBool::new(true),
            gate: Mutex::default(),
            changed: Condvar::new(),
            start: clock::now(),
        }
    }
}

impl AdmissionGate {
    /// Sets the admission that control decided, and wakes the writers that wait.
    pub(crate) fn publish(&self, admission: Admission) {
        let mut gate = lock(&self.gate);
        gate.publish(self.clock(clock::now()), admission);
        self.open.store(admission.state == AdmissionState::Open, Ordering::Release);
        drop(gate);
        self.changed.notify_all();
    }

    /// Returns a moment on the gate's clock.
    fn clock(&self, at: Instant) -> control::Instant {
        control::Instant(u64::try_from((at - self.start).as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns how writers are admitted now.
    pub(crate) fn current(&self) -> Admission {
        lock(&self.gate).admission()
    }

    /// Returns true if a writer passes at once.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Returns true if no writer passes.
    pub(crate) fn is_stopped(&self) -> bool {
        self.current().state == AdmissionState::Stopped
    }

    /// Returns how long a small write would wait now.
    pub(crate) fn expected_wait(&self) -> Duration {
        let gate = *lock(&self.gate);
        match gate.rate() {
            Some(0) => WAIT_MAX,
            _ => gate.expected_wait(self.clock(clock::now())),
        }
    }

    /// Waits until the write may go on. Fails if `give_up` does, or if the wait would exceed the
    /// deadline.
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

    /// Waits for `piece` bytes of the `left` bytes that the write has yet to pass.
    fn wait_piece(&self, writer: &Writer<'_>, piece: u64, left: u64) -> Result<()> {
        let mut place = None;
        let mut waiting = None;
        loop {
            let now = clock::now();
            let clock = self.clock(now);
            let mut gate = lock_timed(&self.gate);
            let Some(rate) = gate.rate() else { return Ok(()) };
            let cause = gate.admission().cause.unwrap_or(StallCause::BackgroundError);
            if rate == 0 {
                (writer.give_up)()?;
                if writer.deadline.is_some_and(|deadline| now >= deadline) {
                    return Err(would_stall(WAIT_MAX, cause));
                }
                waiting.get_or_insert_with(|| writer.metrics.stall_begin(cause));
                let most = writer.deadline.map_or(WAIT_MAX, |d| (d - now).min(WAIT_MAX));
                self.wait_for_change(gate, most);
                continue;
            }
            let place = match place {
                Some(place) => place,
                None => {
                    let slower = if writer.low_priority { LOW_PRIORITY_PART } else { 1 };
                    // The place is booked on a copy. It counts only if the deadline leaves time for
                    // the whole rest of the write.
                    let mut booked = *gate;
                    let next = booked.book(clock, piece, slower);
                    let rest = (left - piece).saturating_mul(slower);
                    let wait = booked.wait(clock, next.saturating_add(rest));
                    if !wait.is_zero() && writer.deadline.is_some_and(|until| now + wait > until) {
                        (writer.give_up)()?;
                        return Err(would_stall(wait, cause));
                    }
                    *gate = booked;
                    *place.insert(next)
                }
            };
            let wait = gate.wait(clock, place);
            if wait.is_zero() {
                return Ok(());
            }
            (writer.give_up)()?;
            // The rate may have fallen since the place was booked.
            if writer.deadline.is_some_and(|deadline| now >= deadline) {
                return Err(would_stall(wait, cause));
            }
            waiting.get_or_insert_with(|| writer.metrics.stall_begin(cause));
            let left = writer.deadline.map_or(WAIT_MAX, |deadline| deadline - now);
            self.wait_for_change(gate, wait.min(WAIT_MAX).min(left));
        }
    }

    /// Returns the error for a write that must not wait while this gate is closed.
    pub(crate) fn would_stall(&self) -> Error {
        let cause = lock(&self.gate).admission().cause;
        would_stall(WAIT_MAX, cause.unwrap_or(StallCause::BackgroundError))
    }

    /// Waits until the admission changes, for `most` at most.
    fn wait_for_change(&self, gate: MutexGuard<'_, Gate>, most: Duration) {
        clock::wait(&self.changed, &self.gate, gate, most);
    }
}

fn would_stall(retry_after: Duration, cause: StallCause) -> Error {
    Error::WouldStall { retry_after, cause: cause.name() }
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
        pass_with(gate, bytes, deadline, false)
    }

    fn pass_with(
        gate: &AdmissionGate,
        bytes: u64,
        deadline: Option<Duration>,
        low_priority: bool,
    ) -> Result<Duration> {
        let metrics = EngineMetrics::new(LatencySampling::default(), 0);
        let start = Instant::now();
        let deadline = deadline.map(|within| start + within);
        let give_up = || Ok(());
        let (metrics, give_up) = (&metrics, &give_up);
        gate.wait(&Writer { bytes, deadline, low_priority, metrics, give_up })?;
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
    fn a_deadline_is_kept_although_the_rate_falls() {
        let gate = AdmissionGate::default();
        gate.publish(delayed(1_000_000));
        pass(&gate, 64_000, None).unwrap();
        std::thread::scope(|scope| {
            // 64 ms at this rate, hours at the next.
            let waiter = scope.spawn(|| pass(&gate, 10, Some(Duration::from_millis(400))));
            std::thread::sleep(Duration::from_millis(5));
            gate.publish(delayed(1));
            let passed = waiter.join().unwrap();
            assert!(matches!(passed, Err(Error::WouldStall { .. })), "{passed:?}");
        });
    }

    #[test]
    fn who_need_not_wait_keeps_any_deadline() {
        let gate = AdmissionGate::default();
        gate.publish(delayed(1_000_000));
        pass(&gate, 1, Some(Duration::ZERO)).unwrap();
        gate.publish(stopped());
        gate.publish(Admission::default());
        pass(&gate, 1, Some(Duration::MAX / 4)).unwrap();
    }

    #[test]
    fn the_error_that_ends_waits_meets_only_those_who_would_wait() {
        let gate = AdmissionGate::default();
        gate.publish(delayed(1_000));
        let metrics = &EngineMetrics::new(LatencySampling::default(), 0);
        let give_up = &|| Err(Error::Closed);
        let pass = |deadline| {
            gate.wait(&Writer { bytes: 1_000, deadline, low_priority: false, metrics, give_up })
        };
        pass(None).unwrap();
        for deadline in [None, Some(Instant::now())] {
            let refused = pass(deadline);
            assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
        }
    }

    #[test]
    fn writes_of_low_priority_share_their_part_of_the_rate() {
        let gate = AdmissionGate::default();
        gate.publish(delayed(8_000_000));
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| pass_with(&gate, 10_000, None, true).unwrap());
            }
        });
        assert!(start.elapsed() >= Duration::from_millis(39));
        let late = pass_with(&gate, 10_000, Some(Duration::ZERO), true);
        assert!(matches!(late, Err(Error::WouldStall { .. })), "{late:?}");
        // It does not keep others from theirs.
        pass(&gate, 1, Some(Duration::from_secs(1))).unwrap();
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
