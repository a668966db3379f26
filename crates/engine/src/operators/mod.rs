//! Code and clocks that users give to a database or a column family: merge operators, compaction
//! filters, filters of the WAL, compaction services, a clock.

pub(crate) mod compaction_filter;
pub(crate) mod compaction_service;
pub(crate) mod merge;
pub(crate) mod wal_filter;
pub(crate) mod wall_clock;
