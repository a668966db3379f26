//! Records latencies in histograms of one thread, which it passes on once a second.
//!
//! The hot path touches the thread's own memory only. A thread passes a second on when it records
//! the first operation that ends after it. An operation therefore counts in the second in which it
//! ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sateen_workload::{CompactHistogram, Histogram};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// The latencies of one thread in one second.
#[derive(Debug)]
struct Window {
    second: usize,
    latency: [CompactHistogram; 3],
}

/// The latencies of all threads by second. Threads pass windows on; readers merge the windows of a
/// second into one, so that the memory of a long run does not grow with the number of threads.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    handed_on: Mutex<Vec<Window>>,
    seconds: Mutex<Vec<[CompactHistogram; 3]>>,
}

impl Windows {
    fn push(&self, window: Window) {
        lock(&self.handed_on).push(window);
    }

    /// Merges the windows that were passed on. A thread that does not measure calls this at
    /// intervals.
    pub(crate) fn gather(&self) {
        drop(self.gathered());
    }

    fn gathered(&self) -> MutexGuard<'_, Vec<[CompactHistogram; 3]>> {
        let mut seconds = lock(&self.seconds);
        let handed_on = std::mem::take(&mut *lock(&self.handed_on));
        let mut sum = Histogram::new();
        for Window { second, latency } in handed_on {
            if seconds.len() <= second {
                seconds.resize_with(second + 1, Default::default);
            }
            for (all, part) in seconds[second].iter_mut().zip(latency) {
                sum.clear();
                sum.merge_compact(all);
                sum.merge_compact(&part);
                *all = sum.compact();
            }
        }
        seconds
    }

    /// Returns the histograms of one second up to now, for all threads together.
    pub(crate) fn merged(&self, second: u64) -> [Histogram; 3] {
        let mut merged: [Histogram; 3] = Default::default();
        if let Some(latency) = self.gathered().get(second as usize) {
            for (sum, part) in merged.iter_mut().zip(latency) {
                sum.merge_compact(part);
            }
        }
        merged
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The recorder of one thread.
pub(crate) struct Recorder<'a> {
    windows: &'a Windows,
    current: [Histogram; 3],
    second: u64,
    second_end_ns: u64,
    /// Histograms of the whole run, by kind.
    pub(crate) total: [Histogram; 3],
    /// The same, counted from the beginning of each operation. Open loop only.
    pub(crate) service: [Histogram; 3],
    /// Histograms of the whole run by database, if there are several.
    pub(crate) databases: Vec<Histogram>,
    /// The delays of the thread's wake-ups.
    pub(crate) wake_up: Histogram,
    /// The number of operations due, by second.
    pub(crate) offered: Vec<u64>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(windows: &'a Windows) -> Recorder<'a> {
        Recorder {
            windows,
            current: Default::default(),
            second: 0,
            second_end_ns: SECOND_NS,
            total: Default::default(),
            service: Default::default(),
            databases: Vec::new(),
            wake_up: Histogram::new(),
            offered: Vec::new(),
        }
    }

    /// Also records by database, of which there are so many.
    pub(crate) fn by_database(mut self, count: usize) -> Recorder<'a> {
        self.databases.resize_with(count, Histogram::new);
        self
    }

    /// Counts an operation that ended at `now_ns` of the phase.
    #[inline]
    pub(crate) fn record(&mut self, kind: usize, now_ns: u64, latency_ns: u64) {
        if now_ns >= self.second_end_ns {
            self.hand_on();
            self.second = now_ns / SECOND_NS;
            self.second_end_ns = (self.second + 1) * SECOND_NS;
        }
        self.current[kind].record(latency_ns);
    }

    /// Counts an operation as due.
    #[inline]
    pub(crate) fn offer(&mut self, due_ns: u64) {
        let second = (due_ns / SECOND_NS) as usize;
        if self.offered.len() <= second {
            self.offered.resize(second + 1, 0);
        }
        self.offered[second] += 1;
    }

    /// Passes the rest on. A thread calls this at its end.
    pub(crate) fn finish(&mut self) {
        self.hand_on();
    }

    #[cold]
    fn hand_on(&mut self) {
        if self.current.iter().all(|histogram| histogram.count() == 0) {
            return;
        }
        let latency = std::array::from_fn(|kind| self.current[kind].compact());
        for (total, current) in self.total.iter_mut().zip(&mut self.current) {
            total.merge(current);
            current.clear();
        }
        self.windows.push(Window { second: self.second as usize, latency });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_count_in_the_second_in_which_they_end() {
        let windows = Windows::default();
        let mut one = Recorder::new(&windows);
        let mut two = Recorder::new(&windows);
        one.record(0, 10, 5);
        one.record(0, SECOND_NS - 1, 5);
        one.record(1, 3 * SECOND_NS, 2 * SECOND_NS);
        two.record(0, 20, 7);
        one.finish();
        two.finish();
        let counts = |second| windows.merged(second).map(|histogram| histogram.count());
        assert_eq!(counts(0), [3, 0, 0]);
        assert_eq!((windows.merged(0)[0].quantile(0.5), windows.merged(0)[0].max()), (5, 7));
        assert_eq!(counts(1), [0, 0, 0]);
        assert_eq!(counts(3), [0, 1, 0]);
        assert_eq!(one.total[0].count() + two.total[0].count(), 3);
        assert_eq!(windows.merged(3)[1].max(), 2 * SECOND_NS);
    }

    #[test]
    fn offers_count_in_the_second_in_which_they_are_due() {
        let windows = Windows::default();
        let mut recorder = Recorder::new(&windows);
        for due in [0, SECOND_NS - 1, SECOND_NS, 4 * SECOND_NS] {
            recorder.offer(due);
        }
        assert_eq!(recorder.offered, [2, 1, 0, 0, 1]);
    }
}
