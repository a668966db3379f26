//! Statistics under RocksDB's names and numbers, as far as the engine has them. They belong to
//! options. A database counts in those of the options that it was opened with, and its counts stay
//! after it is closed.

use std::ffi::c_char;

use sateen::metrics::{HistogramSnapshot, Metrics, Operation};

use crate::abi::{free, give, malloc_copy, quiet};
use crate::options::rocksdb_options_t;

type Count = fn(&Metrics) -> u64;

/// The number and name of each ticker in RocksDB, and its source here.
const TICKERS: &[(u32, &str, Count)] = &[
    (0, "block.cache.miss", |of| of.counts.data_block_misses),
    (1, "block.cache.hit", |of| of.counts.data_block_hits),
    (12, "block.cache.data.miss", |of| of.counts.data_block_misses),
    (13, "block.cache.data.hit", |of| of.counts.data_block_hits),
    (35, "bloom.filter.useful", |of| of.counts.filter_negatives),
    (36, "bloom.filter.full.positive", |of| {
        of.counts.filter_checks.saturating_sub(of.counts.filter_negatives)
    }),
    (37, "bloom.filter.full.true.positive", |of| {
        let negatives = of.counts.filter_negatives + of.counts.filter_false_positives;
        of.counts.filter_checks.saturating_sub(negatives)
    }),
    (45, "memtable.hit", |of| of.counts.memtable_hits),
    (46, "memtable.miss", |of| of.counts.gets.saturating_sub(of.counts.memtable_hits)),
    (51, "compaction.key.drop.obsolete", |of| {
        of.compactions.iter().map(|level| level.entries_dropped).sum()
    }),
    (58, "number.keys.written", |of| of.counts.written_entries),
    (59, "number.keys.read", |of| of.counts.gets),
    (61, "bytes.written", |of| of.counts.write_bytes),
    (62, "bytes.read", |of| of.counts.get_bytes),
    (63, "number.db.seek", |of| of.counts.seeks),
    (64, "number.db.next", |of| of.counts.steps),
    (70, "number.iter.skip", |of| of.counts.iter_skipped),
    (71, "number.reseeks.iteration", |of| of.counts.iter_reseeks),
    (74, "no.file.opens", |of| of.counts.table_opens),
    (75, "no.file.errors", |of| of.io.iter().map(|class| class.totals.errors).sum()),
    (76, "stall.micros", |of| of.stalls.iter().map(|stall| stall.waits_ns.sum() / 1000).sum()),
    (78, "number.multiget.get", |of| of.counts.multi_gets),
    (84, "wal.synced", |of| of.counts.wal_syncs),
    (85, "wal.bytes", |of| of.counts.wal_bytes),
    (91, "write.self", |of| of.counts.write_groups),
    (94, "compact.read.bytes", |of| {
        of.compactions.iter().map(|level| level.bytes_in_above + level.bytes_in_level).sum()
    }),
    (95, "compact.write.bytes", |of| of.compactions.iter().map(|level| level.bytes_out).sum()),
    (96, "flush.write.bytes", |of| of.flushes.bytes_out),
];

/// The source of a histogram, in nanoseconds.
#[derive(Clone, Copy)]
enum Source {
    Latency(Operation),
    Stalls,
    Flushes,
    Compactions,
}

/// The number and name of each histogram in RocksDB, and its source here.
const HISTOGRAMS: &[(u32, &str, Source)] = &[
    (0, "db.get.micros", Source::Latency(Operation::Get)),
    (1, "db.write.micros", Source::Latency(Operation::Write)),
    (2, "compaction.times.micros", Source::Compactions),
    (10, "db.multiget.micros", Source::Latency(Operation::MultiGet)),
    (15, "db.seek.micros", Source::Latency(Operation::Seek)),
    (16, "db.write.stall", Source::Stalls),
    (50, "db.flush.micros", Source::Flushes),
];

fn histogram(all: &[Metrics], source: Source) -> HistogramSnapshot {
    let mut sum = HistogramSnapshot::default();
    for of in all {
        match source {
            Source::Latency(operation) => of
                .latencies
                .iter()
                .filter(|latency| latency.operation == operation)
                .for_each(|latency| sum.merge(&latency.since_open)),
            Source::Stalls => of.stalls.iter().for_each(|stall| sum.merge(&stall.waits_ns)),
            Source::Flushes => sum.merge(&of.flushes.durations_ns),
            Source::Compactions => sum.merge(&of.compactions_ns),
        }
    }
    sum
}

/// Returns the metrics of all databases that were opened with the options.
unsafe fn metrics(options: *mut rocksdb_options_t) -> Option<Vec<Metrics>> {
    // SAFETY: the contract of the module.
    quiet(None, || Some(unsafe { options.as_ref() }?.counters()?.all()))
}

/// Returns a ticker; 0 if statistics are off or the engine does not count it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_statistics_get_ticker_count(
    options: *mut rocksdb_options_t,
    ticker: u32,
) -> u64 {
    let ticker = crate::older::ticker(ticker);
    let found = TICKERS.iter().find(|(number, ..)| Some(*number) == ticker);
    // SAFETY: the contract of the module.
    match (found, unsafe { metrics(options) }) {
        (Some((_, _, count)), Some(all)) => all.iter().map(count).sum(),
        _ => 0,
    }
}

/// Returns all counts as text, one on each line, to be freed; null if statistics are off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_statistics_get_string(
    options: *mut rocksdb_options_t,
) -> *mut c_char {
    // SAFETY: the contract of the module.
    let Some(all) = (unsafe { metrics(options) }) else { return std::ptr::null_mut() };
    let mut text = String::new();
    for (_, name, count) in TICKERS {
        let sum: u64 = all.iter().map(count).sum();
        text.push_str(&format!("rocksdb.{name} COUNT : {sum}\n"));
    }
    for (_, name, source) in HISTOGRAMS {
        let of = Data::of(&histogram(&all, *source));
        text.push_str(&format!(
            "rocksdb.{name} P50 : {:.6} P95 : {:.6} P99 : {:.6} P100 : {:.6} COUNT : {} SUM : {}\n",
            of.median, of.p95, of.p99, of.max, of.count, of.sum
        ));
    }
    malloc_copy(text.as_bytes())
}

/// The numbers of a histogram. Times are in microseconds.
#[derive(Clone, Copy, Default)]
struct Data {
    median: f64,
    p95: f64,
    p99: f64,
    average: f64,
    deviation: f64,
    min: f64,
    max: f64,
    count: u64,
    sum: u64,
}

#[expect(clippy::cast_precision_loss, reason = "of nanoseconds that are shown as microseconds")]
fn micros(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

impl Data {
    fn of(histogram: &HistogramSnapshot) -> Data {
        let average = histogram.mean() / 1000.0;
        let (mut squares, mut count, mut min) = (0.0, 0.0, None);
        for (low, high, entries) in histogram.buckets() {
            let off = micros(low.midpoint(high)) - average;
            #[expect(clippy::cast_precision_loss, reason = "a weight")]
            let entries = entries as f64;
            squares += off * off * entries;
            count += entries;
            if entries > 0.0 {
                min.get_or_insert(micros(low));
            }
        }
        Data {
            median: micros(histogram.quantile(0.5)),
            p95: micros(histogram.quantile(0.95)),
            p99: micros(histogram.quantile(0.99)),
            average,
            deviation: if count > 0.0 { f64::sqrt(squares / count) } else { 0.0 },
            min: min.unwrap_or(0.0),
            max: micros(histogram.max()),
            count: histogram.count(),
            sum: histogram.sum() / 1000,
        }
    }
}

/// The numbers of a histogram.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_statistics_histogram_data_t(Data);

/// Makes an empty histogram.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_statistics_histogram_data_create()
-> *mut rocksdb_statistics_histogram_data_t {
    give(rocksdb_statistics_histogram_data_t::default())
}

/// Frees a histogram.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_statistics_histogram_data_destroy(
    data: *mut rocksdb_statistics_histogram_data_t,
) {
    // SAFETY: the contract of the module.
    unsafe { free(data) };
}

/// Stores a histogram in `data`, an empty one if statistics are off or the engine has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_statistics_get_histogram_data(
    options: *mut rocksdb_options_t,
    kind: u32,
    data: *mut rocksdb_statistics_histogram_data_t,
) {
    let kind = crate::older::histogram(kind);
    let found = HISTOGRAMS.iter().find(|(number, ..)| Some(*number) == kind);
    // SAFETY: the contract of the module.
    let all = unsafe { metrics(options) };
    // SAFETY: the contract of the module.
    if let Some(data) = unsafe { data.as_mut() } {
        data.0 = match (found, all) {
            (Some((_, _, source)), Some(all)) => Data::of(&histogram(&all, *source)),
            _ => Data::default(),
        };
    }
}

macro_rules! getters {
    ($($function:ident $field:ident: $type:ty;)*) => { $(
        #[doc = concat!("Returns the `", stringify!($field), "` of a histogram.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            data: *mut rocksdb_statistics_histogram_data_t,
        ) -> $type {
            // SAFETY: the contract of the module.
            unsafe { data.as_ref() }.map_or(Default::default(), |data| data.0.$field)
        }
    )* };
}

getters! {
    rocksdb_statistics_histogram_data_get_median median: f64;
    rocksdb_statistics_histogram_data_get_p95 p95: f64;
    rocksdb_statistics_histogram_data_get_p99 p99: f64;
    rocksdb_statistics_histogram_data_get_average average: f64;
    rocksdb_statistics_histogram_data_get_std_dev deviation: f64;
    rocksdb_statistics_histogram_data_get_min min: f64;
    rocksdb_statistics_histogram_data_get_max max: f64;
    rocksdb_statistics_histogram_data_get_count count: u64;
    rocksdb_statistics_histogram_data_get_sum sum: u64;
}
