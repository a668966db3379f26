//! Records latencies in histograms of one thread, which it passes on once a second.
//!
//! The hot path touches the thread's own memory only. A thread passes a second on when it records
//! the first operation that ends after it. An operation therefore counts in the second in which it
//! ends. Once all threads are beyond a second, only its quantiles are kept: the process is
//! measured, too, and a run may take hours.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sateen_workload::{CompactHistogram, Histogram};

use crate::result::Latencies;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// The latencies of one thread in one second.
#[derive(Debug)]
struct Window {
    second: usize,
    latency: [CompactHistogram; 3],
}

/// One second of all threads.
#[derive(Debug)]
enum Second {
    /// Threads may still pass on windows.
    Open([CompactHistogram; 3]),
    Over(Latencies),
}

impl Default for Second {
    fn default() -> Second {
        Second::Open(Default::default())
    }
}

impl Second {
    fn latencies(&self) -> Latencies {
        match self {
            Second::Open(latency) => {
                let mut sums: [Histogram; 3] = Default::default();
                for (sum, part) in sums.iter_mut().zip(latency) {
                    sum.merge_compact(part);
                }
                Latencies::of(&sums)
            }
            Second::Over(latencies) => *latencies,
        }
    }
}

/// The latencies of all threads by second. Threads pass windows on; readers merge the windows of a
/// second into one.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    handed_on: Mutex<Vec<Window>>,
    seconds: Mutex<Vec<Second>>,
    /// The second in which each thread is; no earlier one gets a window from it.
    threads: Mutex<Vec<Arc<AtomicU64>>>,
}

impl Windows {
    fn push(&self, window: Window) {
        lock(&self.handed_on).push(window);
    }

    /// Merges the windows that were passed on. A thread that does not measure calls this at
    /// intervals.
    pub(crate) fn gather(&self) {
        let mut seconds = lock(&self.seconds);
        // Before the windows are taken: a thread passes one on, and then says that it is beyond.
        let threads = lock(&self.threads);
        let over = threads.iter().map(|second| second.load(Ordering::Acquire)).min().unwrap_or(0);
        drop(threads);
        let handed_on = std::mem::take(&mut *lock(&self.handed_on));
        let mut sum = Histogram::new();
        for Window { second, latency } in handed_on {
            if seconds.len() <= second {
                seconds.resize_with(second + 1, Second::default);
            }
            let Second::Open(all) = &mut seconds[second] else {
                debug_assert!(false, "second {second} was over");
                continue;
            };
            for (all, part) in all.iter_mut().zip(latency) {
                sum.clear();
                sum.merge_compact(all);
                sum.merge_compact(&part);
                *all = sum.compact();
            }
        }
        let over = usize::try_from(over).unwrap_or(usize::MAX).min(seconds.len());
        let open = |second: &&mut Second| matches!(second, Second::Open(_));
        for second in seconds[..over].iter_mut().rev().take_while(open) {
            *second = Second::Over(second.latencies());
        }
    }

    /// Returns the latencies of one second up to now, of all threads together.
    pub(crate) fn latencies(&self, second: u64) -> Latencies {
        self.gather();
        lock(&self.seconds).get(second as usize).map(Second::latencies).unwrap_or_default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The recorder of one thread.
pub(crate) struct Recorder<'a> {
    windows: &'a Windows,
    /// `second`, for readers.
    is_in: Arc<AtomicU64>,
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
    /// Returns the recorder of a thread. All are made before the first operation.
    pub(crate) fn new(windows: &'a Windows) -> Recorder<'a> {
        let is_in = Arc::<AtomicU64>::default();
        lock(&windows.threads).push(is_in.clone());
        Recorder {
            windows,
            is_in,
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
            self.is_in.store(self.second, Ordering::Release);
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
        self.is_in.store(u64::MAX, Ordering::Release);
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
        let of = |second| windows.latencies(second);
        assert_eq!(of(0).done, [3, 0, 0]);
        let reads = of(0).latency[0].unwrap();
        assert_eq!((reads.p50, reads.max, of(0).all.unwrap().count), (5, 7, 3));
        assert_eq!((of(1).done, of(3).done), ([0, 0, 0], [0, 1, 0]));
        assert_eq!(one.total[0].count() + two.total[0].count(), 3);
        assert_eq!(of(3).latency[1].unwrap().max, 2 * SECOND_NS);
    }

    #[test]
    fn a_second_is_over_when_all_threads_are_beyond_it() {
        let windows = Windows::default();
        let (mut one, mut two) = (Recorder::new(&windows), Recorder::new(&windows));
        one.record(0, 10, 5);
        one.record(0, 2 * SECOND_NS, 5);
        two.record(0, 20, 7);
        let is_open = |second: usize| {
            windows.gather();
            matches!(lock(&windows.seconds).get(second), Some(Second::Open(_)))
        };
        assert!(is_open(0));
        two.record(0, SECOND_NS, 8);
        assert!(!is_open(0));
        two.finish();
        assert_eq!(windows.latencies(0).done, [2, 0, 0]);
        assert_eq!((is_open(1), windows.latencies(1).done), (false, [1, 0, 0]));
        one.finish();
        assert_eq!((is_open(2), windows.latencies(2).done), (false, [1, 0, 0]));
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
