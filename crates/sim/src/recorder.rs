//! Records latencies by the second in which operations ended, and for the whole run.

use sateen_control::IO_CLASSES;
use sateen_workload::Histogram;
use serde::Serialize;

use crate::classes::Classes;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// One second of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Second {
    /// Operations that were due.
    pub offered: u64,
    /// Operations that ended.
    pub done: u64,
    /// Their median latency in nanoseconds.
    pub p50_ns: u64,
    /// The latency that 99 of 100 of them did not exceed. If operations were due and none ended,
    /// the time for which the oldest of them has waited.
    pub p99_ns: u64,
    /// The longest latency.
    pub max_ns: u64,
    /// Bytes read from the device, by class.
    pub read_bytes: [u64; IO_CLASSES],
    /// Bytes written to the device, by class.
    pub write_bytes: [u64; IO_CLASSES],
    /// Bytes that wait for compaction, at the end of the second.
    pub debt_bytes: u64,
    /// Runs in level 0, at the end of the second.
    pub level0_runs: u64,
    /// The bytes a second that the device reads in the scheduler's estimate, at the end of this
    /// second.
    pub believed_read: u64,
    /// The same for writes.
    pub believed_write: u64,
    /// Sealed memtables that wait for their flush, at the end of the second.
    pub sealed: u64,
    /// Job slots: flushes and compactions that may run at a time, at the end of the second.
    pub slots: u64,
    /// The size at which the next memtable is sealed, in bytes, at the end of the second.
    pub memtable_bytes: u64,
    /// Nanoseconds of the second in which writers were slowed down or stopped.
    pub stalled_ns: u64,
}

/// The recorder of a simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    current: Histogram,
    pub(crate) total: Histogram,
    /// Reads and scans, and writes with reads that are followed by one.
    pub(crate) reads: Histogram,
    pub(crate) writes: Histogram,
    offered: Vec<u32>,
    pub(crate) seconds: Vec<Second>,
}

impl Recorder {
    /// Records an operation that was due at `due` and ended at `at`.
    #[inline]
    pub(crate) fn record(&mut self, writes: bool, due: u64, at: u64) {
        self.offer(due);
        self.current.record(at - due);
        let kind = if writes { &mut self.writes } else { &mut self.reads };
        kind.record(at - due);
    }

    #[inline]
    fn offer(&mut self, due: u64) {
        let second = (due / SECOND_NS) as usize;
        if self.offered.len() <= second {
            self.offered.resize(second + 1, 0);
        }
        self.offered[second] += 1;
    }

    /// Adds the current second of another database.
    pub(crate) fn add_second(&mut self, other: &Recorder) {
        self.current.merge(&other.current);
    }

    /// Adds what another database records only for the whole run.
    pub(crate) fn add_rest(&mut self, other: &Recorder) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        if self.offered.len() < other.offered.len() {
            self.offered.resize(other.offered.len(), 0);
        }
        self.offered.iter_mut().zip(&other.offered).for_each(|(sum, count)| *sum += count);
    }

    /// Closes the current second. `oldest_due` is the moment at which the oldest waiting operation
    /// was due.
    pub(crate) fn end_second(&mut self, classes: &Classes, oldest_due: u64) -> &mut Second {
        let nth = self.seconds.len();
        let waited = (nth as u64 + 1) * SECOND_NS;
        let current = &self.current;
        let p99_ns = match current.count() {
            0 => waited.saturating_sub(oldest_due),
            _ => current.quantile(0.99),
        };
        self.seconds.push(Second {
            done: current.count(),
            p50_ns: current.quantile(0.5),
            p99_ns,
            max_ns: current.max(),
            read_bytes: std::array::from_fn(|at| classes[at].read_bytes),
            write_bytes: std::array::from_fn(|at| classes[at].write_bytes),
            ..Second::default()
        });
        self.total.merge(&self.current);
        self.current.clear();
        &mut self.seconds[nth]
    }

    /// Returns how many of the operations that have ended were due in this second.
    pub(crate) fn offered(&self, second: usize) -> u64 {
        u64::from(self.offered.get(second).copied().unwrap_or(0))
    }
}
