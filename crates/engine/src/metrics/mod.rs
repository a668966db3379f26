//! What is counted while the engine works. What must stay true: recording takes no lock and
//! allocates nothing, so that it can stay on in every build and on every operation.
//!
//! Three parts: `engine` is written by the engine as it works, [`Metrics`] is what a caller gets,
//! and the table in `table` names each metric once, for the Prometheus text and for
//! docs/metrics.md alike.
//!
//! Latency costs two readings of the clock, 28 ns each where this was measured, and additions to a
//! histogram that all threads share: 66 ns an operation, more when threads collide. Against a
//! cached read of some hundred nanoseconds that is too much, so the shortest operations are
//! sampled: one read in eight (11 ns on average) and one write in four (18 ns), drawn at random, so
//! that no rhythm of the caller's can hide from it. What takes long is never sampled: seeks, syncs,
//! stalls, jobs and all I/O are timed always. Counts are exact always (under 1 ns each).

mod engine;
mod sharded;
mod snapshot;
mod table;

pub(crate) use engine::{
    CompactionDone, EngineMetrics, FiltersAsked, FlushDone, IterDone, LatencySampling, OpTimer,
};
pub use sateen_control::{Overflow, StallCause};
pub use sateen_store::base::histogram::{Histogram, HistogramSnapshot, WindowedHistogram};
pub(crate) use sharded::{ShardedCounters, Ticker};
pub use snapshot::{
    ColumnFamilyMetrics, CompactionTotals, Counts, FlushTotals, LevelShape, MemoryUse, Metrics,
    Operation, OperationLatency, SchedulerMetrics, ScrubMetrics, StallTotals, TableFile,
    TableFileTotals,
};
