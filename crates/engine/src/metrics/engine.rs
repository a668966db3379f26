//! The counters and histograms that the engine writes, one set for each open database.
//!
//! What must stay true: all methods but `snapshot` and `rotate` take no lock and do not allocate.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sateen_control::StallCause;
use sateen_control::version::LEVELS_MAX;
use sateen_store::base::clock;
use sateen_store::base::histogram::{Histogram, WindowedHistogram};
use sateen_store::base::waited::{self, Part, Wait};

use super::snapshot::{
    CompactionTotals, Counts, FlushTotals, Metrics, Operation, OperationLatency, StallTotals,
};
use super::{ShardedCounters, Ticker};
use crate::timeline::{OperationKind, Recorder};

/// Number of finished one-second windows that are kept of each operation's latency.
const WINDOWS: usize = 16;

/// One in how many operations is timed: a power of two, or 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LatencySampling {
    /// Point reads.
    pub(crate) get_one_in: u32,
    /// Write batches.
    pub(crate) write_one_in: u32,
    /// Multi-gets and seeks.
    pub(crate) other_one_in: u32,
}

impl Default for LatencySampling {
    fn default() -> LatencySampling {
        LatencySampling { get_one_in: 8, write_one_in: 4, other_one_in: 1 }
    }
}

impl LatencySampling {
    /// Times every operation.
    pub(crate) const EXACT: LatencySampling =
        LatencySampling { get_one_in: 1, write_one_in: 1, other_one_in: 1 };
    /// Times no operation. Counts, stalls, flushes and compactions are still measured.
    pub(crate) const OFF: LatencySampling =
        LatencySampling { get_one_in: 0, write_one_in: 0, other_one_in: 0 };

    fn one_in(&self, operation: Operation) -> u32 {
        match operation {
            Operation::Get => self.get_one_in,
            Operation::Write => self.write_one_in,
            Operation::MultiGet | Operation::Seek => self.other_one_in,
        }
    }
}

/// The start of an operation, if it is timed.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct OpTimer(Option<Instant>);

/// The work of an iterator, recorded when it is dropped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IterDone {
    /// Steps in both directions.
    pub(crate) steps: u64,
    /// Entries that were skipped.
    pub(crate) skipped: u64,
    /// Seeks that skipped many versions of one key.
    pub(crate) reseeks: u64,
}

/// The work of a flush.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlushDone {
    /// Entries in the memtables.
    pub(crate) entries_in: u64,
    /// Hot keys that stayed in memory.
    pub(crate) keys_kept: u64,
    /// Bytes of keys and values in the memtables.
    pub(crate) bytes_in: u64,
    /// Bytes of tables written.
    pub(crate) bytes_out: u64,
    /// Tables written.
    pub(crate) tables_out: u64,
    /// Time from the start until the tables are installed.
    pub(crate) duration: Duration,
}

/// The work of a compaction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompactionDone {
    /// The output level.
    pub(crate) output_level: u8,
    /// Bytes of rewritten input tables from other levels.
    pub(crate) bytes_in_above: u64,
    /// Bytes of rewritten input tables from the output level.
    pub(crate) bytes_in_level: u64,
    /// Bytes of tables written.
    pub(crate) bytes_out: u64,
    /// Bytes of tables that moved to another level without being rewritten.
    pub(crate) bytes_moved: u64,
    /// Entries read.
    pub(crate) entries_in: u64,
    /// Entries dropped.
    pub(crate) entries_dropped: u64,
    /// Time from the start until the tables are installed.
    pub(crate) duration: Duration,
}

#[derive(Debug, Default)]
struct StallMeter {
    waiting: AtomicU64,
    waits_ns: Histogram,
}

#[derive(Debug, Default)]
struct FlushMeter {
    entries_in: AtomicU64,
    keys_kept: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    tables_out: AtomicU64,
    durations_ns: Histogram,
}

#[derive(Debug, Default)]
struct CompactionMeter {
    count: AtomicU64,
    bytes_in_above: AtomicU64,
    bytes_in_level: AtomicU64,
    bytes_out: AtomicU64,
    bytes_moved: AtomicU64,
    entries_in: AtomicU64,
    entries_dropped: AtomicU64,
    duration_ns: AtomicU64,
}

thread_local! {
    /// The state of this thread's generator, which draws the operations that are timed; never 0.
    static LOTTERY: Cell<u32> = const { Cell::new(0x9e37_79b9) };
}

/// Returns true once in `one_in` draws (a power of two; 0 for never), at random.
#[inline]
fn drawn(one_in: u32) -> bool {
    let mut state = LOTTERY.get();
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    LOTTERY.set(state);
    // For `one_in` 0 this is the state itself, which is never 0.
    state & one_in.wrapping_sub(1) == 0
}

/// Everything that one open database counts. About 20 KiB at first, and up to 430 KiB once every
/// latency window was used.
#[derive(Debug)]
pub(crate) struct EngineMetrics {
    pub(super) counters: ShardedCounters,
    /// The sampling rate of each operation; see [`LatencySampling`].
    one_in: [AtomicU32; Operation::ALL.len()],
    latencies: [WindowedHistogram; Operation::ALL.len()],
    stalls: [StallMeter; StallCause::ALL.len()],
    steps_cpu_ns: Histogram,
    compactions_ns: Histogram,
    flushes: FlushMeter,
    compactions: [CompactionMeter; LEVELS_MAX],
    background_errors: AtomicU64,
    /// The flight recorder.
    pub(crate) timeline: Arc<Recorder>,
}

impl EngineMetrics {
    /// Creates metrics that are all 0. `second` is the current one; see [`Self::rotate`].
    pub(crate) fn new(sampling: LatencySampling, second: u64) -> EngineMetrics {
        let metrics = EngineMetrics {
            counters: ShardedCounters::new(),
            one_in: Default::default(),
            latencies: std::array::from_fn(|_| WindowedHistogram::new(WINDOWS, second)),
            stalls: Default::default(),
            steps_cpu_ns: Histogram::default(),
            compactions_ns: Histogram::default(),
            flushes: FlushMeter::default(),
            compactions: Default::default(),
            background_errors: AtomicU64::new(0),
            timeline: Arc::new(Recorder::new(clock::now())),
        };
        metrics.set_sampling(sampling);
        metrics
    }

    /// Replaces the recorder by that of the database, which others share.
    pub(crate) fn with_timeline(self, timeline: Arc<Recorder>) -> EngineMetrics {
        EngineMetrics { timeline, ..self }
    }

    /// Sets the sampling rates from now on.
    pub(crate) fn set_sampling(&self, sampling: LatencySampling) {
        for (operation, one_in) in Operation::ALL.into_iter().zip(&self.one_in) {
            let rate = sampling.one_in(operation);
            assert!(rate == 0 || rate.is_power_of_two(), "a sampling rate is a power of two or 0");
            one_in.store(rate, Ordering::Relaxed);
        }
    }

    /// Begins an operation. Pass the timer to the `record_` method at its end.
    #[inline]
    pub(crate) fn start(&self, operation: Operation) -> OpTimer {
        let timed = drawn(self.one_in[operation as usize].load(Ordering::Relaxed));
        waited::begin(timed);
        OpTimer(timed.then(clock::now))
    }

    /// Ends an operation that was not done.
    pub(crate) fn forget(&self, timer: OpTimer) {
        let (OpTimer(_), _waited) = (timer, waited::end());
    }

    #[inline]
    fn finish(&self, operation: Operation, timer: OpTimer) {
        let waited = waited::end();
        if let Some(started) = timer.0 {
            let ns = nanos(clock::since(started));
            self.latencies[operation as usize].record(ns);
            self.timeline.operation(kind_of(operation), started, ns, waited);
        } else if waited {
            self.timeline.waited(kind_of(operation));
        }
    }

    /// Records a point read. `value_bytes` is the size of the value, `None` if there is none.
    #[inline]
    pub(crate) fn record_get(&self, timer: OpTimer, value_bytes: Option<usize>) {
        self.counters.add(Ticker::Gets, 1);
        if let Some(bytes) = value_bytes {
            self.counters.add(Ticker::GetHits, 1);
            self.counters.add(Ticker::GetBytes, bytes as u64);
        }
        self.finish(Operation::Get, timer);
    }

    /// Records a multi-get of `keys` keys that found `hits` values of `value_bytes` bytes together.
    pub(crate) fn record_multi_get(&self, timer: OpTimer, keys: u64, hits: u64, value_bytes: u64) {
        self.counters.add(Ticker::MultiGets, 1);
        self.counters.add(Ticker::Gets, keys);
        self.counters.add(Ticker::GetHits, hits);
        self.counters.add(Ticker::GetBytes, value_bytes);
        self.finish(Operation::MultiGet, timer);
    }

    /// Records a written batch of `entries` entries with `bytes` bytes of keys and values.
    #[inline]
    pub(crate) fn record_write(&self, timer: OpTimer, bytes: u64, entries: u64) {
        self.counters.add(Ticker::Writes, 1);
        self.counters.add(Ticker::WriteBytes, bytes);
        self.counters.add(Ticker::WrittenEntries, entries);
        self.finish(Operation::Write, timer);
    }

    /// Returns the bytes of keys and values written since open.
    pub(crate) fn write_bytes(&self) -> u64 {
        self.counters.get(Ticker::WriteBytes)
    }

    /// Records a seek of an iterator.
    #[inline]
    pub(crate) fn record_seek(&self, timer: OpTimer) {
        self.counters.add(Ticker::Seeks, 1);
        self.finish(Operation::Seek, timer);
    }

    /// Records the work of an iterator that is dropped.
    pub(crate) fn record_iter(&self, done: IterDone) {
        self.timeline.iterated();
        self.counters.add(Ticker::Steps, done.steps);
        self.counters.add(Ticker::IterSkipped, done.skipped);
        self.counters.add(Ticker::IterReseeks, done.reseeks);
    }

    /// Records that a memtable answered a point read.
    #[inline]
    pub(crate) fn record_memtable_hit(&self) {
        self.counters.add(Ticker::MemTableHits, 1);
    }

    /// Counts a writer as waiting until the guard is dropped.
    pub(crate) fn stall_begin(&self, cause: StallCause) -> StallGuard<'_> {
        let meter = &self.stalls[cause.index()];
        meter.waiting.fetch_add(1, Ordering::Relaxed);
        self.timeline.stall_began(cause);
        let (started, _waits) = (clock::now(), waited::wait(Part::Admission));
        StallGuard { meter, timeline: &self.timeline, cause, started, _waits }
    }

    /// Returns true if writers wait for this cause.
    pub(crate) fn are_waiting(&self, cause: StallCause) -> bool {
        self.stalls[cause.index()].waiting.load(Ordering::Relaxed) > 0
    }

    /// Records the CPU time of a step of a flush or compaction, in nanoseconds.
    pub(crate) fn stepped(&self, cpu_ns: u64) {
        self.steps_cpu_ns.record(cpu_ns);
    }

    /// Records an installed flush.
    pub(crate) fn flush_done(&self, done: &FlushDone) {
        let meter = &self.flushes;
        add(&meter.entries_in, done.entries_in);
        add(&meter.keys_kept, done.keys_kept);
        add(&meter.bytes_in, done.bytes_in);
        add(&meter.bytes_out, done.bytes_out);
        add(&meter.tables_out, done.tables_out);
        meter.durations_ns.record(nanos(done.duration));
    }

    /// Records an installed compaction, or part of one.
    pub(crate) fn compaction_done(&self, done: &CompactionDone) {
        let level = usize::from(done.output_level).min(LEVELS_MAX - 1);
        let meter = &self.compactions[level];
        add(&meter.count, 1);
        add(&meter.bytes_in_above, done.bytes_in_above);
        add(&meter.bytes_in_level, done.bytes_in_level);
        add(&meter.bytes_out, done.bytes_out);
        add(&meter.bytes_moved, done.bytes_moved);
        add(&meter.entries_in, done.entries_in);
        add(&meter.entries_dropped, done.entries_dropped);
        add(&meter.duration_ns, nanos(done.duration));
        self.compactions_ns.record(nanos(done.duration));
    }

    /// Counts a failure of background work.
    pub(crate) fn background_error(&self) {
        add(&self.background_errors, 1);
    }

    /// Opens the latency window of `second`. Call it at least once a second.
    pub(crate) fn rotate(&self, second: u64) {
        for latency in &self.latencies {
            latency.rotate(second);
        }
    }

    /// Returns the counts so far. The caller fills in the fields that describe the present state,
    /// including `io`.
    pub(crate) fn snapshot(&self) -> Metrics {
        let latency = |operation: Operation| {
            let histogram = &self.latencies[operation as usize];
            let (since_open, last_second) = (histogram.since_open(), histogram.last(1));
            OperationLatency { operation, since_open, last_second }
        };
        let stall = |cause: StallCause| {
            let meter = &self.stalls[cause.index()];
            let (waiting, waits_ns) = (get(&meter.waiting), meter.waits_ns.snapshot());
            StallTotals { cause, waiting, waits_ns }
        };
        Metrics {
            counts: self.counts(),
            latencies: Operation::ALL.into_iter().map(latency).collect(),
            stalls: StallCause::ALL.into_iter().map(stall).collect(),
            steps_cpu_ns: self.steps_cpu_ns.snapshot(),
            compactions_ns: self.compactions_ns.snapshot(),
            flushes: self.flushes.totals(),
            compactions: self.compaction_totals(),
            background_errors: get(&self.background_errors),
            health: "ok",
            ..Metrics::default()
        }
    }

    /// Returns the totals of the levels from 0 to the deepest output level so far.
    fn compaction_totals(&self) -> Vec<CompactionTotals> {
        let mut levels: Vec<_> = self.compactions.iter().map(CompactionMeter::totals).collect();
        let used = levels.iter().rposition(|level| level.count > 0).map_or(0, |last| last + 1);
        levels.truncate(used);
        levels
    }

    fn counts(&self) -> Counts {
        let count = |ticker| self.counters.get(ticker);
        Counts {
            gets: count(Ticker::Gets),
            get_hits: count(Ticker::GetHits),
            memtable_hits: count(Ticker::MemTableHits),
            get_bytes: count(Ticker::GetBytes),
            multi_gets: count(Ticker::MultiGets),
            writes: count(Ticker::Writes),
            written_entries: count(Ticker::WrittenEntries),
            write_bytes: count(Ticker::WriteBytes),
            seeks: count(Ticker::Seeks),
            steps: count(Ticker::Steps),
            iter_skipped: count(Ticker::IterSkipped),
            iter_reseeks: count(Ticker::IterReseeks),
            filter_checks: count(Ticker::FilterChecks),
            filter_negatives: count(Ticker::FilterNegatives),
            filter_false_positives: count(Ticker::FilterFalsePositives),
            // The commit pipeline, the table cache and the block cache have the others.
            ..Counts::default()
        }
    }
}

impl FlushMeter {
    fn totals(&self) -> FlushTotals {
        let durations_ns = self.durations_ns.snapshot();
        FlushTotals {
            count: durations_ns.count(),
            entries_in: get(&self.entries_in),
            keys_kept: get(&self.keys_kept),
            bytes_in: get(&self.bytes_in),
            bytes_out: get(&self.bytes_out),
            tables_out: get(&self.tables_out),
            durations_ns,
        }
    }
}

impl CompactionMeter {
    fn totals(&self) -> CompactionTotals {
        CompactionTotals {
            count: get(&self.count),
            bytes_in_above: get(&self.bytes_in_above),
            bytes_in_level: get(&self.bytes_in_level),
            bytes_out: get(&self.bytes_out),
            bytes_moved: get(&self.bytes_moved),
            entries_in: get(&self.entries_in),
            entries_dropped: get(&self.entries_dropped),
            duration_ns: get(&self.duration_ns),
        }
    }
}

/// A guard that counts a writer as waiting until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct StallGuard<'a> {
    meter: &'a StallMeter,
    timeline: &'a Recorder,
    cause: StallCause,
    started: Instant,
    _waits: Wait,
}

impl Drop for StallGuard<'_> {
    fn drop(&mut self) {
        self.meter.waiting.fetch_sub(1, Ordering::Relaxed);
        let ns = nanos(clock::since(self.started));
        self.meter.waits_ns.record(ns);
        self.timeline.stall_ended(self.cause, ns);
    }
}

#[inline]
fn kind_of(operation: Operation) -> OperationKind {
    match operation {
        Operation::Get | Operation::MultiGet => OperationKind::Read,
        Operation::Write => OperationKind::Write,
        Operation::Seek => OperationKind::Scan,
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn sampling_has_the_rate_it_says_and_no_rhythm() {
        let metrics = EngineMetrics::new(LatencySampling::default(), 0);
        for (operation, one_in) in [(Operation::Get, 8_u32), (Operation::Write, 4)] {
            // With any short period of a caller, each of its phases must be timed at this rate.
            for period in [1, 2, 4, 7, 8, 16] {
                let mut timed = vec![0_u32; period];
                let rounds = 20_000;
                for _ in 0..rounds {
                    for phase in &mut timed {
                        *phase += u32::from(metrics.start(operation).0.is_some());
                    }
                }
                let expected = rounds / one_in;
                for phase in timed {
                    assert!(phase.abs_diff(expected) < expected / 5, "{phase} of {expected}");
                }
            }
        }
        for _ in 0..1000 {
            assert!(metrics.start(Operation::Seek).0.is_some());
        }
        metrics.set_sampling(LatencySampling::OFF);
        for operation in Operation::ALL {
            assert!((0..1000).all(|_| metrics.start(operation).0.is_none()));
        }
        metrics.set_sampling(LatencySampling::EXACT);
        assert!((0..1000).all(|_| metrics.start(Operation::Get).0.is_some()));
    }

    #[test]
    fn a_waiting_writer_is_seen_while_it_waits_and_counted_afterwards() {
        let metrics = EngineMetrics::new(LatencySampling::default(), 0);
        let seen = |cause: StallCause| {
            let stalls = metrics.snapshot().stalls;
            let stall = stalls.iter().find(|stall| stall.cause == cause).unwrap();
            (stall.waiting, stall.waits_ns.count())
        };
        let first = metrics.stall_begin(StallCause::BackgroundError);
        let second = metrics.stall_begin(StallCause::BackgroundError);
        assert_eq!(seen(StallCause::BackgroundError), (2, 0));
        drop(first);
        assert_eq!(seen(StallCause::BackgroundError), (1, 1));
        drop(second);
        assert_eq!(seen(StallCause::BackgroundError), (0, 2));
        assert_eq!(seen(StallCause::Level0Runs), (0, 0));
    }

    #[test]
    fn levels_beyond_the_last_are_counted_with_it() {
        let metrics = EngineMetrics::new(LatencySampling::default(), 0);
        assert!(metrics.snapshot().compactions.is_empty());
        for output_level in [1, u8::MAX] {
            let done = CompactionDone { output_level, bytes_out: 5, ..Default::default() };
            metrics.compaction_done(&done);
        }
        let compactions = metrics.snapshot().compactions;
        assert_eq!(compactions.len(), LEVELS_MAX);
        assert_eq!(compactions.iter().map(|level| level.bytes_out).sum::<u64>(), 10);
    }

    #[test]
    fn the_last_second_is_the_last_full_one() {
        let metrics = EngineMetrics::new(LatencySampling::EXACT, 7);
        let counts = || {
            let metrics = metrics.snapshot();
            let latency = metrics.latency(Operation::Get).unwrap();
            (latency.last_second.count(), latency.since_open.count())
        };
        metrics.record_get(metrics.start(Operation::Get), None);
        assert_eq!(counts(), (0, 1));
        metrics.rotate(8);
        assert_eq!(counts(), (1, 1));
        metrics.rotate(9);
        assert_eq!(counts(), (0, 1));
    }

    /// Prints nanoseconds per operation. Run with `--release -- --ignored --nocapture measure`.
    #[test]
    #[ignore = "a measurement"]
    fn measure_recording() {
        const OPERATIONS: u64 = 100_000;
        const ROUNDS: u64 = 100;
        let levels = [
            ("off", LatencySampling::OFF),
            ("default", LatencySampling::default()),
            ("exact", LatencySampling::EXACT),
        ];
        for (name, sampling) in levels {
            let metrics = black_box(EngineMetrics::new(sampling, 0));
            let (mut get, mut write) = (f64::INFINITY, f64::INFINITY);
            // The fastest round counts, because the others were disturbed.
            for _ in 0..ROUNDS {
                let start = Instant::now();
                for _ in 0..OPERATIONS {
                    let timer = metrics.start(Operation::Get);
                    metrics.record_get(timer, Some(100));
                }
                get = get.min(start.elapsed().as_nanos() as f64 / OPERATIONS as f64);
                let start = Instant::now();
                for _ in 0..OPERATIONS {
                    let timer = metrics.start(Operation::Write);
                    metrics.record_write(timer, 100, 1);
                }
                write = write.min(start.elapsed().as_nanos() as f64 / OPERATIONS as f64);
            }
            println!("latency {name}: {get:.1} ns/get, {write:.1} ns/write");
            assert_eq!(metrics.snapshot().counts.get_hits, ROUNDS * OPERATIONS);
        }
    }
}
