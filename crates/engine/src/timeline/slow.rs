//! The slowest operations of each second.
//!
//! 1. An operation that took longer than the bar of its kind is offered
//!    ([`SlowOperations::timed`]). The first one of a second is always offered.
//! 2. `Window::offer` keeps it instead of the fastest one that is kept.
//! 3. The bar rises to the fastest of those that are kept, so fewer operations pass it as the
//!    second goes on.
//! 4. The first operation of the next second sets the bars back to 0. No other thread is needed for
//!    that.
//!
//! What must stay true: memory is bounded. An operation below the bar pays two relaxed loads.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use sateen_store::base::clock;
use sateen_store::base::sync::leaf::lock;
use sateen_store::base::waited::{self, Part, nanos_between};

use super::event::{OperationKind, SlowOperation};

/// Number of operations of each kind that are kept of a second.
pub(crate) const KEPT: usize = 8;
/// Number of seconds that are kept.
const SECONDS: usize = 180;
const KINDS: usize = OperationKind::ALL.len();
const SECOND_NS: u64 = 1_000_000_000;

/// The slowest operations of one second, by kind.
#[derive(Debug)]
struct Window {
    second: u64,
    kept: [[Option<SlowOperation>; KEPT]; KINDS],
}

impl Window {
    fn operations(&self) -> impl Iterator<Item = &SlowOperation> {
        self.kept.iter().flatten().flatten()
    }

    /// Keeps `operation` if it is slower than one of those that are kept. Returns the time above
    /// which the next one will be kept.
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

/// The recent seconds.
#[derive(Debug, Default)]
struct Windows {
    /// Ordered by second.
    recent: VecDeque<Window>,
    /// Number of operations that were forgotten with their seconds.
    forgotten: u64,
}

/// The position up to which a reader has copied.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlowCursor {
    /// Operations that ended before this second are copied.
    second: u64,
    /// Operations kept so far, forgotten ones included.
    known: u64,
}

/// The slowest operations of a database.
#[derive(Debug, Default)]
pub(crate) struct SlowOperations {
    /// The bar of each kind: the time above which an operation is kept.
    bars_ns: [AtomicU64; KINDS],
    /// The end of the second to which the bars belong.
    second_ends_ns: AtomicU64,
    windows: Mutex<Windows>,
    threads: AtomicU32,
}

impl SlowOperations {
    /// Offers an operation whose start and length are known. `waited` is true if it has waited.
    #[inline]
    pub(crate) fn timed(
        &self,
        epoch: Instant,
        kind: OperationKind,
        started: Instant,
        total_ns: u64,
        waited: bool,
    ) {
        if self.is_slow(kind, total_ns, nanos_between(epoch, started) + total_ns) {
            self.keep(epoch, kind, started, total_ns, waited);
        }
    }

    /// Returns true if an operation took longer than the bar, or is the first one to end in its
    /// second.
    #[inline]
    fn is_slow(&self, kind: OperationKind, total_ns: u64, end_ns: u64) -> bool {
        total_ns > self.bars_ns[kind as usize].load(Ordering::Relaxed)
            || end_ns >= self.second_ends_ns.load(Ordering::Relaxed)
    }

    /// Offers an operation that was not timed but has waited. It is taken to have begun with its
    /// first wait. The clock is read only if the waits alone come near the bar.
    pub(crate) fn untimed(&self, epoch: Instant, kind: OperationKind) {
        let Some((first, span_ns)) = waited::span() else { return };
        let end_ns = nanos_between(epoch, first) + span_ns;
        if self.is_slow(kind, span_ns.saturating_mul(2), end_ns) {
            let total_ns = nanos_between(first, clock::now());
            self.timed(epoch, kind, first, total_ns, true);
        }
    }

    /// Offers a read that an iterator waited for outside a seek.
    pub(crate) fn alone(&self, epoch: Instant, started: Instant, ns: u64) {
        let kind = OperationKind::Scan;
        if self.is_slow(kind, ns, nanos_between(epoch, started) + ns) {
            let mut operation = self.new_operation(epoch, kind, started, ns);
            operation.device_read_ns = ns;
            operation.device_reads = 1;
            self.offer(operation);
        }
    }

    /// Builds the operation from this thread's waits, and offers it.
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
            let mut waits = waited::waits();
            let before_ns = waits.first.map_or(0, |first| nanos_between(started, first));
            waits.fill_gap(total_ns.saturating_sub(before_ns));
            let part = |part: Part| waits.waited.parts_ns[part as usize];
            operation.queue_ns = part(Part::Queue);
            operation.wal_append_ns = part(Part::WalAppend);
            operation.sync_ns = part(Part::Sync);
            operation.memtable_ns = part(Part::Memtable);
            operation.admission_ns = part(Part::Admission);
            operation.device_read_ns = part(Part::DeviceRead);
            operation.cache_miss_ns = part(Part::CacheMiss);
            operation.lock_ns = part(Part::Lock);
            operation.device_reads = waits.waited.device_reads;
            operation.cache_misses = waits.waited.cache_misses;
        }
        self.offer(operation);
    }

    /// Returns an operation of which only the whole time is known.
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
            thread: waited::thread_number(next),
            start_ns: nanos_between(epoch, started),
            total_ns,
            queue_ns: 0,
            wal_append_ns: 0,
            sync_ns: 0,
            memtable_ns: 0,
            admission_ns: 0,
            device_read_ns: 0,
            cache_miss_ns: 0,
            lock_ns: 0,
            device_reads: 0,
            cache_misses: 0,
        }
    }

    /// Offers an operation to the second in which it ended.
    fn offer(&self, operation: SlowOperation) {
        let second = operation.end_ns() / SECOND_NS;
        let mut windows = lock(&self.windows);
        let Some(at) = windows.place(second) else { return };
        let newest = at + 1 == windows.recent.len();
        let Some(window) = windows.recent.get_mut(at) else { return };
        let bar = window.offer(operation);
        if newest {
            let ends_ns = (second + 1) * SECOND_NS;
            if self.second_ends_ns.swap(ends_ns, Ordering::Relaxed) != ends_ns {
                // The bars of the last second do not apply to this one.
                self.bars_ns.iter().for_each(|bar| bar.store(0, Ordering::Relaxed));
            }
            self.bars_ns[operation.kind as usize].store(bar, Ordering::Relaxed);
        }
    }

    /// Copies new operations to `to`, ordered by their start. Returns the number of operations that
    /// were forgotten before they could be copied.
    pub(crate) fn copy_since(&self, cursor: &mut SlowCursor, to: &mut Vec<SlowOperation>) -> u64 {
        let windows = lock(&self.windows);
        let recent = &windows.recent;
        let (Some(oldest), Some(newest)) = (recent.front(), recent.back()) else { return 0 };
        // Seconds that were not over are copied again. What is forgotten meanwhile stays in the
        // copy.
        let since = cursor.second.max(oldest.second);
        to.retain(|operation| operation.end_ns() / SECOND_NS < since);
        let copied = to.len();
        let anew = recent.iter().filter(|window| window.second >= since);
        to.extend(anew.flat_map(Window::operations));
        let lost = windows.forgotten.saturating_sub(cursor.known);
        let kept = recent.iter().map(|window| window.operations().count() as u64);
        cursor.known = windows.forgotten + kept.sum::<u64>();
        // An operation that ended just before the end of a second may be offered late.
        cursor.second = newest.second.saturating_sub(1);
        drop(windows);
        to[copied..].sort_by_key(|operation| (operation.start_ns, operation.total_ns));
        lost
    }
}

impl Windows {
    /// Returns the place of the window of `second`, which is created if needed; `None` if that is
    /// too long ago.
    fn place(&mut self, second: u64) -> Option<usize> {
        let at = self.recent.partition_point(|window| window.second < second);
        if self.recent.get(at).is_some_and(|window| window.second == second) {
            return Some(at);
        }
        let full = self.recent.len() == SECONDS;
        let at = at.checked_sub(usize::from(full))?;
        if full && let Some(oldest) = self.recent.pop_front() {
            self.forgotten += oldest.operations().count() as u64;
        }
        self.recent.insert(at, Window { second, kept: Default::default() });
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Offers a read to a database that was opened when time began.
    fn read(slow: &SlowOperations, start_ns: u64, total_ns: u64) {
        let epoch = Instant::now();
        let started = epoch + Duration::from_nanos(start_ns);
        slow.timed(epoch, OperationKind::Read, started, total_ns, false);
    }

    fn all(slow: &SlowOperations) -> Vec<SlowOperation> {
        let mut all = Vec::new();
        slow.copy_since(&mut SlowCursor::default(), &mut all);
        all
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
        assert_eq!(totals(&all(&slow)), (993..=1000).collect::<Vec<_>>());
        assert_eq!(slow.bars_ns[0].load(Ordering::Relaxed), 993);
    }

    #[test]
    fn who_sees_a_new_second_first_begins_it() {
        let slow = SlowOperations::default();
        (0..20).for_each(|n| read(&slow, n, 500_000));
        // No other thread has come since.
        (0..20).for_each(|n| read(&slow, SECOND_NS + n, 10 + n));
        // One that ended in an earlier second, and one in a second of which nothing was kept.
        read(&slow, 5, 500_001);
        read(&slow, 3 * SECOND_NS, 7);
        read(&slow, 2 * SECOND_NS, 8);
        let mut expected: Vec<u64> = vec![7, 8];
        expected.extend((22..30).chain(std::iter::repeat_n(500_000, 7)).chain([500_001]));
        assert_eq!(totals(&all(&slow)), expected);
        // An operation that was not timed is kept, too, although its wait is far below the bar.
        let epoch = Instant::now().checked_sub(Duration::from_secs(9)).unwrap();
        waited::begin(false);
        drop(waited::wait(Part::Queue));
        assert!(waited::end());
        slow.bars_ns[1].store(u64::MAX, Ordering::Relaxed);
        slow.untimed(epoch, OperationKind::Write);
        assert_eq!(all(&slow).last().unwrap().kind, OperationKind::Write);
    }

    #[test]
    fn old_seconds_are_forgotten_and_what_nobody_had_copied_is_counted() {
        let slow = SlowOperations::default();
        let (mut cursor, mut copied) = (SlowCursor::default(), Vec::new());
        for second in 0..SECONDS as u64 {
            read(&slow, second * SECOND_NS, 5);
            read(&slow, second * SECOND_NS, 6);
            if second == 9 {
                assert_eq!(slow.copy_since(&mut cursor, &mut copied), 0);
            }
        }
        let before = all(&slow);
        assert_eq!(before.len(), 2 * SECONDS);
        for second in 0..50 {
            read(&slow, (SECONDS as u64 + second) * SECOND_NS, 5);
        }
        read(&slow, 0, 1 << 20);
        // 50 seconds are forgotten. The first 10 of them were copied before, and stay in the copy.
        assert_eq!(slow.copy_since(&mut cursor, &mut copied), 2 * 40);
        assert_eq!(copied.len(), 2 * 10 + 2 * (SECONDS - 50) + 50);
        assert_eq!(copied[..20], before[..20]);
        assert_eq!(slow.copy_since(&mut cursor, &mut copied), 0);
        assert_eq!(copied.len(), 2 * 10 + 2 * (SECONDS - 50) + 50);
        let mut late = Vec::new();
        assert_eq!(slow.copy_since(&mut SlowCursor::default(), &mut late), 2 * 50);
        assert_eq!(late[..], copied[20..]);
    }
}
