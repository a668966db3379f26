//! Kept WALs: WALs that recovery no longer needs, but readers of the WAL may.
//!
//! 1. [`Kept::add`] keeps a WAL when recovery no longer needs it.
//! 2. [`Kept::hold`] and [`Kept::let_go`] count the readers at a WAL.
//! 3. [`Kept::expire`] removes the oldest WALs beyond the limits, up to the first one with a
//!    reader.
//!
//! What must stay true: the kept WALs, oldest first, and those in use behind them follow one
//! another without a gap. A WAL with a reader stays, and so do all behind it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use sateen_control::{Instant, LogNumber, SeqNo};

use super::frame::FILE_HEADER_BYTES;
use crate::base::sync::{Mutex, MutexGuard, lock};

/// A complete WAL that recovery does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLog {
    pub readable: ReadableLog,
    /// How long it had not been needed at `at`.
    pub age: Duration,
    pub at: Instant,
}

/// What a reader must know of a WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadableLog {
    pub number: LogNumber,
    /// Offset up to which it is written.
    pub end: u64,
    /// This WAL and later ones have all writes to the WAL from this sequence number on.
    pub begins: SeqNo,
}

impl ReadableLog {
    /// Returns true if it has no record, not even a link.
    pub fn is_empty(&self) -> bool {
        self.end <= FILE_HEADER_BYTES as u64
    }
}

/// Limits of the kept WALs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepLimits {
    pub age: Option<Duration>,
    pub bytes: Option<u64>,
}

impl KeepLimits {
    /// Returns true if the oldest kept WAL must go.
    fn exceeded(&self, age: Duration, bytes_in_all: u64) -> bool {
        match (self.age, self.bytes) {
            (None, None) => true,
            (most, limit) => {
                most.is_some_and(|most| age > most) || limit.is_some_and(|most| bytes_in_all > most)
            }
        }
    }
}

/// The kept WALs, behind a lock.
#[derive(Debug, Default)]
pub struct KeptLogs(Mutex<Kept>);

/// The kept WALs and their readers ([`KeptLogs`]).
#[derive(Debug, Default)]
pub struct Kept {
    /// Oldest first.
    logs: VecDeque<KeptLog>,
    /// WALs with readers, and the number of readers.
    held: BTreeMap<LogNumber, usize>,
}

impl KeptLogs {
    pub fn new(logs: Vec<KeptLog>) -> KeptLogs {
        KeptLogs(Mutex::new(Kept { logs: logs.into(), held: BTreeMap::new() }))
    }

    pub fn lock(&self) -> MutexGuard<'_, Kept> {
        lock(&self.0)
    }
}

impl Kept {
    /// Returns the kept WALs, oldest first.
    pub fn logs(&self) -> impl Iterator<Item = ReadableLog> {
        self.logs.iter().map(|log| log.readable)
    }

    /// Keeps a WAL that is not needed from `now` on. Returns false if no reader can need it,
    /// because it is empty.
    pub fn add(&mut self, readable: ReadableLog, now: Instant) -> bool {
        if readable.is_empty() {
            return false;
        }
        self.logs.push_back(KeptLog { readable, age: Duration::ZERO, at: now });
        true
    }

    /// Adds a reader at `log`.
    pub fn hold(&mut self, log: LogNumber) {
        *self.held.entry(log).or_default() += 1;
    }

    /// Removes a reader from `log`.
    pub fn let_go(&mut self, log: LogNumber) {
        if let Some(readers) = self.held.get_mut(&log) {
            *readers -= 1;
            if *readers == 0 {
                self.held.remove(&log);
            }
        }
    }

    /// Removes and returns the WALs that exceed `limits` and have no reader.
    pub fn expire(&mut self, limits: KeepLimits, now: Instant) -> Vec<LogNumber> {
        let mut bytes: u64 = self.logs().map(|log| log.end).sum();
        let mut gone = Vec::new();
        while let Some(oldest) = self.logs.front() {
            let KeptLog { readable, age, at } = *oldest;
            if self.is_held(readable.number)
                || !limits.exceeded(age.saturating_add(now.since(at)), bytes)
            {
                break;
            }
            bytes -= readable.end;
            gone.push(readable.number);
            self.logs.pop_front();
        }
        gone
    }

    /// Returns after which time the oldest WAL is too old; `None` if it has a reader.
    #[must_use]
    pub fn expires_in(&self, limits: KeepLimits, now: Instant) -> Option<Duration> {
        let KeptLog { readable, age, at } = *self.logs.front()?;
        let left = limits.age?.saturating_sub(age.saturating_add(now.since(at)));
        (!self.is_held(readable.number)).then_some(left)
    }

    /// Returns true if a reader is to come to `log`.
    fn is_held(&self, log: LogNumber) -> bool {
        self.held.keys().next().is_some_and(|held| log >= *held)
    }

    /// Removes and returns all kept WALs, because later writes do not follow them.
    pub fn clear(&mut self) -> Vec<LogNumber> {
        self.logs.drain(..).map(|log| log.readable.number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn kept(numbers: std::ops::RangeInclusive<u64>) -> Kept {
        let mut kept = Kept::default();
        for number in numbers {
            let readable =
                ReadableLog { number: LogNumber(number), end: 100, begins: SeqNo(number * 10) };
            assert!(kept.add(readable, Instant(number * SECOND)));
        }
        kept
    }

    fn limits(age: Option<u64>, bytes: Option<u64>) -> KeepLimits {
        KeepLimits { age: age.map(Duration::from_secs), bytes }
    }

    fn numbers(gone: &[LogNumber]) -> Vec<u64> {
        gone.iter().map(|log| log.0).collect()
    }

    #[test]
    fn without_limits_nothing_is_kept_that_no_reader_holds() {
        let mut logs = kept(1..=4);
        logs.hold(LogNumber(3));
        logs.hold(LogNumber(3));
        let now = Instant(4 * SECOND);
        assert_eq!(numbers(&logs.expire(limits(None, None), now)), [1, 2]);
        logs.let_go(LogNumber(3));
        assert!(logs.expire(limits(None, None), now).is_empty(), "another reader is there");
        logs.let_go(LogNumber(3));
        assert_eq!(numbers(&logs.expire(limits(None, None), now)), [3, 4]);
    }

    #[test]
    fn old_wals_expire_and_those_found_at_open_keep_their_age() {
        let mut logs = kept(1..=3);
        logs.logs.push_front(KeptLog {
            readable: ReadableLog { number: LogNumber(0), end: 100, begins: SeqNo(0) },
            age: Duration::from_secs(50),
            at: Instant(0),
        });
        let limits = limits(Some(10), None);
        assert_eq!(numbers(&logs.expire(limits, Instant(3 * SECOND))), [0]);
        assert!(logs.expire(limits, Instant(11 * SECOND)).is_empty(), "ten seconds are allowed");
        assert_eq!(numbers(&logs.expire(limits, Instant(12 * SECOND + 1))), [1, 2]);
    }

    #[test]
    fn the_oldest_go_when_all_take_too_much() {
        let mut logs = kept(1..=5);
        assert_eq!(numbers(&logs.expire(limits(None, Some(250)), Instant(0))), [1, 2, 3]);
        assert_eq!(numbers(&logs.expire(limits(Some(1), Some(200)), Instant(0))), [0; 0]);
        assert_eq!(numbers(&logs.clear()), [4, 5]);
    }

    #[test]
    fn a_log_without_a_record_is_not_kept() {
        let end = FILE_HEADER_BYTES as u64;
        let empty = ReadableLog { number: LogNumber(1), end, begins: SeqNo(1) };
        assert!(!Kept::default().add(empty, Instant(0)));
    }
}
