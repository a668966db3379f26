//! What point reads look into: runs and filters.

use sateen_control::ReadSample;

use super::engine::EngineMetrics;
use super::sharded::Ticker;

/// The answers of filters to one point read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FiltersAsked {
    /// Runs with a table whose key range has the key.
    pub(crate) runs: u64,
    /// Filters that were asked.
    pub(crate) checks: u64,
    /// Filters that excluded their table.
    pub(crate) negatives: u64,
    /// Filters that allowed a table without the key.
    pub(crate) false_positives: u64,
}

impl EngineMetrics {
    /// Records the answers of filters to a point read.
    #[inline]
    pub(crate) fn record_filters(&self, asked: &FiltersAsked) {
        if asked.runs > 0 {
            self.counters.add(Ticker::RunsSearched, asked.runs);
        }
        if asked.checks > 0 {
            self.counters.add(Ticker::FilterChecks, asked.checks);
            self.counters.add(Ticker::FilterNegatives, asked.negatives);
            if asked.false_positives > 0 {
                self.counters.add(Ticker::FilterFalsePositives, asked.false_positives);
            }
        }
    }

    /// Returns the reads of clients since open, without the blocks that they read.
    pub(crate) fn client_reads(&self) -> ReadSample {
        ReadSample {
            gets: self.counters.get(Ticker::Gets),
            runs: self.counters.get(Ticker::RunsSearched),
            scans: self.counters.get(Ticker::Seeks),
            ..ReadSample::default()
        }
    }
}
