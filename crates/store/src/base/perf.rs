//! What the operations of one thread did: counters and times of its own, for who wants to know
//! why a read or a write took what it took. RocksDB calls it the perf context.
//!
//! What must stay true: while no thread of the process wants to know, each place that counts pays
//! for a load of a variable that nobody writes, and a branch. Counting never fails and never waits.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::base::clock;
use crate::base::waited::nanos_between;

/// How much a thread counts of what it does; each level includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PerfLevel {
    /// Nothing.
    #[default]
    Off,
    /// How often, and how many bytes.
    Counts,
    /// Also for how long writes were held back or waited for other writes.
    Waits,
    /// Also how long the parts of operations took: two readings of the clock each.
    Times,
    /// Also for how long locks were waited for.
    TimesAndLocks,
}

impl PerfLevel {
    /// This thread counts so much from now on. What it has counted stays.
    pub fn set(self) {
        CONTEXT.with(|context| context.level.set(self));
        // Of a thread that is ending nobody will ask what it did.
        let _ended = COUNTED.try_with(|counted| counted.set(self != PerfLevel::Off));
    }

    /// How much this thread counts.
    #[must_use]
    pub fn of_thread() -> PerfLevel {
        CONTEXT.with(|context| context.level.get())
    }
}

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $metric:ident $name:literal $from:ident;)*) => {
        /// Something that is counted. Times are in nanoseconds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum PerfMetric {
            $($(#[doc = $doc])+ $metric,)*
        }

        impl PerfMetric {
            /// All of them.
            pub const ALL: &'static [PerfMetric] = &[$(PerfMetric::$metric),*];

            /// Its name, which is RocksDB's.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(PerfMetric::$metric => $name,)*
                }
            }

            /// The least level at which it is counted.
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
    /// Blocks that were in the block cache.
    BlockCacheHitCount "block_cache_hit_count" Counts;
    /// Reads of tables: of a block, of several at once, of the end of a table that is opened.
    BlockReadCount "block_read_count" Counts;
    /// The bytes of these.
    BlockReadByte "block_read_byte" Counts;
    /// How long these took.
    BlockReadTime "block_read_time" Times;
    /// Bytes of the values that point reads returned.
    GetReadBytes "get_read_bytes" Counts;
    /// Bytes of the values that reads of many keys returned.
    MultigetReadBytes "multiget_read_bytes" Counts;
    /// Bytes of the keys and values that iterators stood on.
    IterReadBytes "iter_read_bytes" Counts;
    /// Entries that iterators went past: the one that they stood on, and hidden versions.
    InternalKeySkippedCount "internal_key_skipped_count" Counts;
    /// Deletions that iterators went past.
    InternalDeleteSkippedCount "internal_delete_skipped_count" Counts;
    /// Entries that iterators went past since they are newer than what is read.
    InternalRecentSkippedCount "internal_recent_skipped_count" Counts;
    /// Operands that iterators merged.
    InternalMergeCount "internal_merge_count" Counts;
    /// Operands that point reads merged.
    InternalMergePointLookupCount "internal_merge_point_lookup_count" Counts;
    /// Searching memtables for points.
    GetFromMemtableTime "get_from_memtable_time" Times;
    /// Memtables that point reads searched.
    GetFromMemtableCount "get_from_memtable_count" Counts;
    /// Searching tables for points.
    GetFromOutputFilesTime "get_from_output_files_time" Times;
    /// Seeks in memtables.
    SeekOnMemtableCount "seek_on_memtable_count" Counts;
    /// Steps forward in memtables.
    NextOnMemtableCount "next_on_memtable_count" Counts;
    /// Steps back in memtables.
    PrevOnMemtableCount "prev_on_memtable_count" Counts;
    /// Seeks of iterators, all of them.
    SeekInternalSeekTime "seek_internal_seek_time" Times;
    /// Writing to the log and syncing it, for oneself and those who were written with.
    WriteWalTime "write_wal_time" Times;
    /// Inserting into memtables.
    WriteMemtableTime "write_memtable_time" Times;
    /// Being held back since background work is behind.
    WriteDelayTime "write_delay_time" Waits;
    /// Waiting for other writes.
    WriteThreadWaitNanos "write_thread_wait_nanos" Waits;
    /// Waiting for locks.
    DbMutexLockNanos "db_mutex_lock_nanos" TimesAndLocks;
    /// Merge operators, for readers.
    MergeOperatorTimeNanos "merge_operator_time_nanos" Times;
    /// Opening tables that were not open.
    FindTableNanos "find_table_nanos" Times;
    /// Filters of tables that said a key may be there.
    BloomSstHitCount "bloom_sst_hit_count" Counts;
    /// Filters of tables that spared a read.
    BloomSstMissCount "bloom_sst_miss_count" Counts;
    /// Steps forward of iterators.
    IterNextCount "iter_next_count" Counts;
    /// Steps back of iterators.
    IterPrevCount "iter_prev_count" Counts;
    /// Seeks of iterators, those to an end included.
    IterSeekCount "iter_seek_count" Counts;
}

const METRICS: usize = PerfMetric::ALL.len();

/// What a thread has counted, as it was when it was asked. Printed, it shows what is not 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfContext([u64; METRICS]);

impl PerfContext {
    /// What this thread has counted since it began, or since [`PerfContext::reset`].
    #[must_use]
    pub fn of_thread() -> PerfContext {
        CONTEXT.with(|context| PerfContext(std::array::from_fn(|at| context.values[at].get())))
    }

    /// This thread begins anew, with everything at 0.
    pub fn reset() {
        CONTEXT.with(|context| context.values.iter().for_each(|value| value.set(0)));
    }

    /// What was counted of `metric`.
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

/// How many threads count anything.
static COUNTING: AtomicU32 = AtomicU32::new(0);

struct Context {
    level: Cell<PerfLevel>,
    values: [Cell<u64>; METRICS],
}

thread_local! {
    /// Without a destructor: what a thread does while it ends is counted like all else.
    static CONTEXT: Context = const {
        Context { level: Cell::new(PerfLevel::Off), values: [const { Cell::new(0) }; METRICS] }
    };
    static COUNTED: Counted = const { Counted(Cell::new(false)) };
}

/// Whether this thread is among those in [`COUNTING`]; when it ends it is not.
struct Counted(Cell<bool>);

impl Counted {
    fn set(&self, counts: bool) {
        // Relaxed: a thread sees what it stored itself, and no other need know.
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

/// Whether any thread counts; false almost always.
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

/// So many filters of tables were asked, and so many of them said no.
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

/// Begins to take the time of `metric`, if this thread does.
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
