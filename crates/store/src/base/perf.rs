//! Counters and times of the operations of one thread, which explain why a read or a write was
//! slow. RocksDB calls this the perf context.
//!
//! What must stay true: while no thread counts, each counting place costs one load of a variable
//! that is rarely written, and a branch. Counting never fails and never waits.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::base::clock;
use crate::base::waited::nanos_between;

/// What a thread counts. Each level includes the levels before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PerfLevel {
    /// Nothing.
    #[default]
    Off,
    /// Events and bytes.
    Counts,
    /// Also the time for which writes were delayed or waited for other writes.
    Waits,
    /// Also the time of the parts of operations: two clock readings each.
    Times,
    /// Also the time for which locks were waited for.
    TimesAndLocks,
}

impl PerfLevel {
    /// Sets the level of this thread. Its counts stay as they are.
    pub fn set(self) {
        CONTEXT.with(|context| context.level.set(self));
        // A thread that is ending needs no entry in [`COUNTING`] any more.
        let _ended = COUNTED.try_with(|counted| counted.set(self != PerfLevel::Off));
    }

    /// Returns the level of this thread.
    #[must_use]
    pub fn of_thread() -> PerfLevel {
        CONTEXT.with(|context| context.level.get())
    }
}

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $metric:ident $name:literal $from:ident;)*) => {
        /// A counter. Times are in nanoseconds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum PerfMetric {
            $($(#[doc = $doc])+ $metric,)*
        }

        impl PerfMetric {
            /// All metrics.
            pub const ALL: &'static [PerfMetric] = &[$(PerfMetric::$metric),*];

            /// Returns the metric's name, which is RocksDB's.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(PerfMetric::$metric => $name,)*
                }
            }

            /// Returns the lowest level that counts the metric.
            #[must_use]
            pub fn level(self) -> PerfLevel {
                match self {
                    $(PerfMetric::$metric => PerfLevel::$from,)*
                }
            }
        }
    };
}

metrics! {
    /// Blocks found in the block cache.
    BlockCacheHitCount "block_cache_hit_count" Counts;
    /// Reads of tables: one block, several blocks at once, or the footer of a table being opened.
    BlockReadCount "block_read_count" Counts;
    /// Bytes read from tables.
    BlockReadByte "block_read_byte" Counts;
    /// Time of reads from tables.
    BlockReadTime "block_read_time" Times;
    /// Bytes of the values that point reads returned.
    GetReadBytes "get_read_bytes" Counts;
    /// Bytes of the values that multi-key reads returned.
    MultigetReadBytes "multiget_read_bytes" Counts;
    /// Bytes of the keys and values that iterators stood on.
    IterReadBytes "iter_read_bytes" Counts;
    /// Entries that iterators passed: the one that they stood on, and hidden versions.
    InternalKeySkippedCount "internal_key_skipped_count" Counts;
    /// Tombstones that iterators passed.
    InternalDeleteSkippedCount "internal_delete_skipped_count" Counts;
    /// Entries that iterators passed because they are newer than the snapshot.
    InternalRecentSkippedCount "internal_recent_skipped_count" Counts;
    /// Merge operands that iterators merged.
    InternalMergeCount "internal_merge_count" Counts;
    /// Merge operands that point reads merged.
    InternalMergePointLookupCount "internal_merge_point_lookup_count" Counts;
    /// Time of point reads in memtables.
    GetFromMemtableTime "get_from_memtable_time" Times;
    /// Memtables that point reads searched.
    GetFromMemtableCount "get_from_memtable_count" Counts;
    /// Time of point reads in tables.
    GetFromOutputFilesTime "get_from_output_files_time" Times;
    /// Seeks in memtables.
    SeekOnMemtableCount "seek_on_memtable_count" Counts;
    /// Steps forward in memtables.
    NextOnMemtableCount "next_on_memtable_count" Counts;
    /// Steps back in memtables.
    PrevOnMemtableCount "prev_on_memtable_count" Counts;
    /// Time of all seeks of iterators.
    SeekInternalSeekTime "seek_internal_seek_time" Times;
    /// Time to append to the WAL and sync it, for the whole commit group.
    WriteWalTime "write_wal_time" Times;
    /// Time of inserts into memtables.
    WriteMemtableTime "write_memtable_time" Times;
    /// Time for which writes were delayed because background work is behind.
    WriteDelayTime "write_delay_time" Waits;
    /// Time for which writes waited for other writes.
    WriteThreadWaitNanos "write_thread_wait_nanos" Waits;
    /// Time for which locks were waited for.
    DbMutexLockNanos "db_mutex_lock_nanos" TimesAndLocks;
    /// Time in merge operators, for readers.
    MergeOperatorTimeNanos "merge_operator_time_nanos" Times;
    /// Time to open tables that were not open.
    FindTableNanos "find_table_nanos" Times;
    /// Times that a table's filter said that a key may be there.
    BloomSstHitCount "bloom_sst_hit_count" Counts;
    /// Times that a table's filter saved a read.
    BloomSstMissCount "bloom_sst_miss_count" Counts;
    /// Steps forward of iterators.
    IterNextCount "iter_next_count" Counts;
    /// Steps back of iterators.
    IterPrevCount "iter_prev_count" Counts;
    /// Seeks of iterators, including those to the first or last entry.
    IterSeekCount "iter_seek_count" Counts;
}

const METRICS: usize = PerfMetric::ALL.len();

/// A copy of what a thread has counted. `Display` shows the metrics that are not 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfContext([u64; METRICS]);

impl PerfContext {
    /// Returns what this thread has counted since it began, or since [`PerfContext::reset`].
    #[must_use]
    pub fn of_thread() -> PerfContext {
        CONTEXT.with(|context| PerfContext(std::array::from_fn(|at| context.values[at].get())))
    }

    /// Sets all counters of this thread to 0.
    pub fn reset() {
        CONTEXT.with(|context| context.values.iter().for_each(|value| value.set(0)));
    }

    /// Returns the count of `metric`.
    #[must_use]
    pub fn get(&self, metric: PerfMetric) -> u64 {
        self.0[metric as usize]
    }
}

impl std::fmt::Display for PerfContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = PerfMetric::ALL.iter().filter(|metric| self.get(**metric) > 0);
        for (at, metric) in counted.enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{} = {}", metric.name(), self.get(*metric))?;
        }
        Ok(())
    }
}

/// Number of threads whose level is not [`PerfLevel::Off`].
static COUNTING: AtomicU32 = AtomicU32::new(0);

struct Context {
    level: Cell<PerfLevel>,
    values: [Cell<u64>; METRICS],
}

thread_local! {
    /// It has no destructor, so that a thread is counted until its very end.
    static CONTEXT: Context = const {
        Context { level: Cell::new(PerfLevel::Off), values: [const { Cell::new(0) }; METRICS] }
    };
    static COUNTED: Counted = const { Counted(Cell::new(false)) };
}

/// Whether this thread is counted in [`COUNTING`]. Its destructor takes the thread out.
struct Counted(Cell<bool>);

impl Counted {
    fn set(&self, counts: bool) {
        // Relaxed: a thread sees its own stores, and no other thread depends on them.
        match (self.0.replace(counts), counts) {
            (false, true) => drop(COUNTING.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(COUNTING.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// Returns true if any thread counts, which is rare.
#[inline(always)]
pub fn is_on() -> bool {
    COUNTING.load(Ordering::Relaxed) != 0
}

/// Adds `by` to `metric`, if this thread counts it.
#[inline(always)]
pub fn add(metric: PerfMetric, by: u64) {
    if is_on() {
        counted(metric, by);
    }
}

#[cold]
#[inline(never)]
fn counted(metric: PerfMetric, by: u64) {
    CONTEXT.with(|context| {
        if context.level.get() >= metric.level() {
            let value = &context.values[metric as usize];
            value.set(value.get().wrapping_add(by));
        }
    });
}

/// Counts `checks` filters that were asked, of which `negatives` said no.
#[inline(always)]
pub fn filters_asked(checks: u64, negatives: u64) {
    if is_on() {
        counted(PerfMetric::BloomSstHitCount, checks.saturating_sub(negatives));
        counted(PerfMetric::BloomSstMissCount, negatives);
    }
}

/// Adds the time until it is dropped to a metric.
#[derive(Debug)]
#[must_use]
pub struct Timed(Option<(PerfMetric, Instant)>);

/// Begins to measure the time of `metric`, if this thread counts it.
#[inline(always)]
pub fn time(metric: PerfMetric) -> Timed {
    if is_on() { timed(metric) } else { Timed(None) }
}

#[cold]
#[inline(never)]
fn timed(metric: PerfMetric) -> Timed {
    let wanted = CONTEXT.with(|context| context.level.get() >= metric.level());
    Timed(wanted.then(|| (metric, clock::now())))
}

impl Drop for Timed {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some((metric, started)) = self.0 {
            counted(metric, nanos_between(started, clock::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_counts_what_it_says_and_no_more() {
        let levels = [
            PerfLevel::Off,
            PerfLevel::Counts,
            PerfLevel::Waits,
            PerfLevel::Times,
            PerfLevel::TimesAndLocks,
        ];
        for level in levels {
            level.set();
            assert_eq!(PerfLevel::of_thread(), level);
            PerfContext::reset();
            for metric in PerfMetric::ALL {
                add(*metric, 2);
                add(*metric, 3);
            }
            let context = PerfContext::of_thread();
            for metric in PerfMetric::ALL {
                let wanted = level != PerfLevel::Off && level >= metric.level();
                assert_eq!(context.get(*metric), if wanted { 5 } else { 0 }, "{metric:?}");
            }
        }
        PerfLevel::Off.set();
    }

    #[test]
    fn a_thread_counts_for_itself_and_until_it_ends() {
        let (begun, end) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                PerfLevel::Counts.set();
                begun.wait();
                end.wait();
                assert_eq!(PerfContext::of_thread().to_string(), "");
                add(PerfMetric::BlockReadCount, 1);
                add(PerfMetric::BloomSstHitCount, 7);
                let text = PerfContext::of_thread().to_string();
                assert_eq!(text, "block_read_count = 1, bloom_sst_hit_count = 7");
            });
            begun.wait();
            assert!(is_on());
            add(PerfMetric::BlockReadCount, 9);
            end.wait();
        });
        assert_eq!(PerfContext::of_thread(), PerfContext([0; METRICS]));
    }

    #[test]
    fn names_are_each_only_once() {
        let mut names: Vec<_> = PerfMetric::ALL.iter().map(|metric| metric.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS);
    }
}
