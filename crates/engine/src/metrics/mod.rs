//! Metrics: what the engine counts and measures while it works.
//!
//! - [`Metrics`] is the value that [`Db::metrics`](crate::Db::metrics) returns.
//! - `EngineMetrics` has the counters and histograms that the engine writes. `ShardedCounters`
//!   are those of client operations.
//! - The list in `table` names each metric once, for the Prometheus text and for docs/metrics.md.
//!
//! What must stay true: recording takes no lock and allocates nothing, so that it can stay on in
//! every build and for every operation.
//!
//! Timing an operation takes two readings of the clock, 28 ns each as measured, and additions to a
//! histogram that all threads share: 66 ns together, and more if threads collide. That is too much
//! for a cached read of some hundred nanoseconds. So only one read in eight (11 ns on average) and
//! one write in four (18 ns) is timed. They are drawn at random, so that no regular pattern of the
//! caller can avoid it. Seeks, syncs, stalls, jobs and all I/O take longer and are always timed.
//! Counts are always exact (under 1 ns each).

mod engine;
mod reads;
mod sharded;
mod snapshot;
mod table;

pub(crate) use engine::{
    CompactionDone, EngineMetrics, FlushDone, IterDone, LatencySampling, OpTimer,
};
pub(crate) use reads::FiltersAsked;
pub use sateen_control::{Overflow, StallCause};
pub use sateen_store::base::histogram::{Histogram, HistogramSnapshot, WindowedHistogram};
pub(crate) use sharded::{ShardedCounters, Ticker};
pub use snapshot::{
    ColumnFamilyMetrics, CompactionTotals, Counts, FlushTotals, LevelShape, MemoryUse, Metrics,
    Operation, OperationLatency, SchedulerMetrics, ScrubMetrics, StallTotals, TableFile,
    TableFileTotals,
};
