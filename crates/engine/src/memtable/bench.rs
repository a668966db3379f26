//! Measurements of the memtable.
