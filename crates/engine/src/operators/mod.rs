//! Code and clocks that users give to a database or a column family: merge operators, compaction
//! filters, filters of the WAL, a clock.

pub(crate) mod compaction_filter;
pub(crate) mod merge;
pub(crate) mod wal_filter;
pub(crate) mod wall_clock;
