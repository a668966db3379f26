//! The differences from RocksDB, and their reasons.

use super::cases::{Case, Kind};

/// The kind, the name, a part of the value, and the reason.
const EXPECTED: &[(Kind, &str, &str, &str)] = &[
    (
        Kind::Set,
        "rocksdb_readoptions_set_read_tier",
        "3",
        "iterators show what is there; RocksDB's show nothing with the tier of memtables",
    ),
    (
        Kind::Set,
        "rocksdb_options_set_wal_compression",
        "42",
        "there is no such compression: RocksDB then compresses no WAL",
    ),
    (
        Kind::Text,
        "bgerror_resume_retry_interval",
        "",
        "an interval must be able to pass; RocksDB takes a negative number for a huge one",
    ),
    (
        Kind::Text,
        "read_amp_bytes_per_bit",
        "",
        "the number has 32 bits, as that of the setter; RocksDB's text has 64",
    ),
    (
        Kind::RunTime,
        "max_background_jobs",
        "",
        "threads are made when a database is opened; a change is refused by name",
    ),
];

/// Returns why the answers to a case may differ; `None` if they may not.
pub(super) fn reason(case: &Case) -> Option<&'static str> {
    if matches!(case.kind, Kind::Text | Kind::RunTime) && case.value.contains("0.5") {
        return Some("a whole number has no fraction: RocksDB cuts it off without a word");
    }
    let found = EXPECTED.iter().find(|(kind, name, value, _)| {
        *kind == case.kind && *name == case.name && case.value.contains(value)
    });
    found.map(|(.., reason)| *reason)
}
