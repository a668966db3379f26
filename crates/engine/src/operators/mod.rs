//! Code and clocks that users give to a column family: merge operators, compaction filters, a
//! clock.

pub(crate) mod compaction_filter;
pub(crate) mod merge;
pub(crate) mod wall_clock;
