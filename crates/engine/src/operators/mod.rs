//! What a program gives a column family to run: merge operators, compaction filters, a clock.

pub(crate) mod compaction_filter;
pub(crate) mod merge;
pub(crate) mod wall_clock;
