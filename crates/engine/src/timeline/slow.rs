//! The slowest operations of each second.
//!
//! What must stay true: memory is bounded; an operation below the bar of its kind pays one relaxed
//! load; the bar is what the least slow of those kept took, so that fewer and fewer pass it in the
//! course of a second.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use super::event::{OperationKind, SlowOperation};
use super::local::{self, Part, nanos_between};
use crate::sync::lock;

/// How many operations of each kind are kept of a second.
pub(crate) const KEPT: usize = 8;
/// Of how many seconds they are kept.
const SECONDS: usize = 180;
const KINDS: usize = OperationKind::ALL.len();
const SECOND_NS: u64 = 1_000_000_000;

/// The slowest operations of one second, of each kind.
#[derive(Debug)]
struct Window {
    second: u64,
    kept: [[Option<SlowOperation>; KEPT]; KINDS],
}

impl Window {
    /// Keeps `operation` if it is slower than one of those that are kept. Returns what an operation
    /// must take to be kept from now on.
    fn offer(&mut self, operation: SlowOperation) -> u64 {
        let kept = &mut self.kept[operation.kind as usize];
        let total_ns = |place: &Option<SlowOperation>| place.map_or(0, |kept| kept.total_ns);
        if let Some(least) = kept.iter_mut().min_by_key(|place| total_ns(place))
            && operation.total_ns > total_ns(least)
        {
            *least = Some(operation);
        }
        kept.iter().map(total_ns).min().unwrap_or(0)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SlowOperations {
    /// By kind: what an operation must take to be kept.
    bars_ns: [AtomicU64; KINDS],
    windows: Mutex<VecDeque<Window>>,
    threads: AtomicU32,
}

impl SlowOperations {
    /// An operation is over, whose begin and length are known; `waited` if it has waited.
    #[inline]
    pub(crate) fn timed(
        &self,
        epoch: Instant,
        kind: OperationKind,
        started: Instant,
        total_ns: u64,
        waited: bool,
    ) {
        if total_ns > self.bars_ns[kind as usize].load(Ordering::Relaxed) {
            self.keep(epoch, kind, started, total_ns, waited);
        }
    }

    /// An operation is over that nobody has timed but that has waited: it is taken to have begun
    /// with its first wait. The clock is read only if the waits alone come near the bar.
    pub(crate) fn untimed(&self, epoch: Instant, kind: OperationKind) {
        let bar = self.bars_ns[kind as usize].load(Ordering::Relaxed);
        if local::span_ns().saturating_mul(2) > bar
            && let Some(first) = local::waits().first
        {
            let total_ns = nanos_between(first, Instant::now());
            self.timed(epoch, kind, first, total_ns, true);
        }
    }

    /// An iterator waited for a read outside of a seek.
    pub(crate) fn alone(&self, epoch: Instant, started: Instant, ns: u64) {
        let kind = OperationKind::Scan;
        if ns > self.bars_ns[kind as usize].load(Ordering::Relaxed) {
            let mut operation = self.new_operation(epoch, kind, started, ns);
            operation.device_read_ns = ns;
            operation.device_reads = 1;
            self.offer(operation);
        }
    }

    #[cold]
    #[inline(never)]
    fn keep(
        &self,
        epoch: Instant,
        kind: OperationKind,
        started: Instant,
        total_ns: u64,
        waited: bool,
    ) {
        let mut operation = self.new_operation(epoch, kind, started, total_ns);
        if waited {
            let mut waits = local::waits();
            let before_ns = waits.first.map_or(0, |first| nanos_between(started, first));
            waits.fill_gap(total_ns.saturating_sub(before_ns));
            let part = |part: Part| waits.waited.parts_ns[part as usize];
            operation.queue_ns = part(Part::Queue);
            operation.wal_append_ns = part(Part::WalAppend);
            operation.sync_ns = part(Part::Sync);
            operation.memtable_ns = part(Part::Memtable);
            operation.admission_ns = part(Part::Admission);
            operation.device_read_ns = part(Part::DeviceRead);
            operation.device_reads = waits.waited.device_reads;
            operation.cache_misses = waits.waited.cache_misses;
        }
        self.offer(operation);
    }

    fn new_operation(
        &self,
        epoch: Instant,
        kind: OperationKind,
        started: Instant,
        total_ns: u64,
    ) -> SlowOperation {
        let next = || self.threads.fetch_add(1, Ordering::Relaxed) + 1;
        SlowOperation {
            kind,
            thread: local::thread_number(next),
            start_ns: nanos_between(epoch, started),
            total_ns,
            queue_ns: 0,
            wal_append_ns: 0,
            sync_ns: 0,
            memtable_ns: 0,
            admission_ns: 0,
            device_read_ns: 0,
            device_reads: 0,
            cache_misses: 0,
        }
    }

    /// It counts in the second in which it ended.
    pub(crate) fn offer(&self, operation: SlowOperation) {
        let second = operation.end_ns() / SECOND_NS;
        let mut windows = lock(&self.windows);
        self.open(&mut windows, second);
        let newest = windows.back().map_or(0, |window| window.second);
        let Some(window) = windows.iter_mut().rev().find(|window| window.second == second) else {
            // Too long ago: that second is forgotten, or nothing was kept of it.
            return;
        };
        let bar = window.offer(operation);
        if second == newest {
            self.bars_ns[operation.kind as usize].store(bar, Ordering::Relaxed);
        }
    }

    /// A second begins: what was slow before need not be slow now.
    pub(crate) fn rotate(&self, second: u64) {
        self.open(&mut lock(&self.windows), second);
    }

    fn open(&self, windows: &mut VecDeque<Window>, second: u64) {
        if windows.back().is_some_and(|newest| newest.second >= second) {
            return;
        }
        if windows.len() == SECONDS {
            windows.pop_front();
        }
        windows.push_back(Window { second, kept: Default::default() });
        self.bars_ns.iter().for_each(|bar| bar.store(0, Ordering::Relaxed));
    }

    /// What is kept of the operations that ended in `second` or later, in the order of their begin.
    pub(crate) fn since(&self, second: u64) -> Vec<SlowOperation> {
        let windows = lock(&self.windows);
        let recent = windows.iter().filter(|window| window.second >= second);
        let mut kept: Vec<_> =
            recent.flat_map(|w| w.kept.iter().flatten().flatten()).copied().collect();
        drop(windows);
        kept.sort_by_key(|operation| (operation.start_ns, operation.total_ns));
        kept
    }

    /// The newest second of which anything may be kept.
    pub(crate) fn newest_second(&self) -> u64 {
        lock(&self.windows).back().map_or(0, |window| window.second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(slow: &SlowOperations, start_ns: u64, total_ns: u64) {
        let epoch = Instant::now();
        let kind = OperationKind::Read;
        let operation =
            SlowOperation { start_ns, ..slow.new_operation(epoch, kind, epoch, total_ns) };
        if total_ns > slow.bars_ns[kind as usize].load(Ordering::Relaxed) {
            slow.offer(operation);
        }
    }

    fn totals(operations: &[SlowOperation]) -> Vec<u64> {
        let mut totals: Vec<_> = operations.iter().map(|operation| operation.total_ns).collect();
        totals.sort_unstable();
        totals
    }

    #[test]
    fn the_slowest_of_a_second_are_kept_whatever_the_order() {
        let slow = SlowOperations::default();
        for n in 0..1000_u64 {
            // Every number below 1000 once, scrambled.
            read(&slow, n, (n * 387) % 1000 + 1);
        }
        assert_eq!(totals(&slow.since(0)), (993..=1000).collect::<Vec<_>>());
        assert_eq!(slow.bars_ns[0].load(Ordering::Relaxed), 993);
    }

    #[test]
    fn each_second_begins_anew_and_old_ones_are_forgotten() {
        let slow = SlowOperations::default();
        read(&slow, 0, 500_000);
        slow.rotate(1);
        read(&slow, SECOND_NS, 10);
        // One that ended in a second that is over.
        read(&slow, 5, 20);
        assert_eq!(totals(&slow.since(0)), [10, 20, 500_000]);
        assert_eq!(totals(&slow.since(1)), [10]);
        for second in 2..2 + SECONDS as u64 {
            slow.rotate(second);
        }
        assert!(slow.since(0).is_empty());
        read(&slow, 0, 1 << 20);
        assert!(slow.since(0).is_empty(), "what ended in a forgotten second is not kept");
        assert_eq!(slow.newest_second(), 1 + SECONDS as u64);
    }
}
