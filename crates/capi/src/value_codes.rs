//! The numbers that RocksDB gives to values with names: compressions, priorities, ways to recover.

use std::ffi::c_int;

use sateen::{CompactionPriority, Compression};

use crate::settings::{Setting, Settings};

/// Returns our compression for a RocksDB compression type: LZ4 for its fast ones, zstd for its
/// strong ones.
pub(crate) fn compression(code: c_int) -> Compression {
    match code {
        1 | 4 | 6 => Compression::Lz4,
        2 | 3 | 5 | 7 | 0x40 => Compression::Zstd,
        _ => Compression::None,
    }
}

/// Returns our priority for RocksDB's code of one: its default for a code that it does not have.
pub(crate) fn compaction_priority(code: c_int) -> CompactionPriority {
    match code {
        0 => CompactionPriority::ByCompensatedSize,
        1 => CompactionPriority::OldestLargestSeqFirst,
        2 => CompactionPriority::OldestSmallestSeqFirst,
        4 => CompactionPriority::RoundRobin,
        _ => CompactionPriority::MinOverlappingRatio,
    }
}

/// Returns the name of our priority for the name of RocksDB's.
pub(crate) fn compaction_priority_of_name(name: &str) -> String {
    compaction_priority(code(name).unwrap_or(-1)).to_string()
}

/// Keeps the value of an option for its getter: a value with a name as its code, other text as it
/// is.
pub(crate) fn keep_text(kept: &mut Settings, name: &'static str, value: &str) {
    match (code(value), value.starts_with('k') || value.starts_with('{')) {
        (Some(code), _) => code.put(kept, name),
        // Its getter has another form.
        (None, true) => {}
        (None, false) => kept.put_text(name, value),
    }
}

/// Returns RocksDB's code of a value that has a name.
fn code(name: &str) -> Option<c_int> {
    Some(match name {
        "kByCompensatedSize" | "kTolerateCorruptedTailRecords" | "kCompactionStyleLevel" => 0,
        "kOldestLargestSeqFirst" | "kAbsoluteConsistency" | "kCompactionStyleUniversal" => 1,
        "kOldestSmallestSeqFirst" | "kPointInTimeRecovery" | "kCompactionStyleFIFO" => 2,
        "kMinOverlappingRatio" | "kSkipAnyCorruptedRecords" | "kCompactionStyleNone" => 3,
        "kRoundRobin" => 4,
        "kDisableCompressionOption" => 255,
        _ => return compression_code(name),
    })
}

/// Returns RocksDB's code of a compression.
pub(crate) fn compression_code(name: &str) -> Option<c_int> {
    Some(match name {
        "kNoCompression" => 0,
        "kSnappyCompression" => 1,
        "kZlibCompression" => 2,
        "kBZip2Compression" => 3,
        "kLZ4Compression" => 4,
        "kLZ4HCCompression" => 5,
        "kXpressCompression" => 6,
        "kZSTD" | "kZSTDNotFinalCompression" => 7,
        _ => return None,
    })
}

/// Returns RocksDB's number of the reason for a compaction; 0 for none.
pub(crate) fn reason_code(reason: &str, is_manual: bool) -> u32 {
    match reason {
        "level0-runs" | "intra-level0" => 1,
        "level-size" | "unneeded-level" => 2,
        "value-garbage" => 17,
        _ if is_manual => 9,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_priority_of_rocksdb_is_the_one_of_its_code_and_name() {
        let names = [
            ("kByCompensatedSize", "by-compensated-size"),
            ("kOldestLargestSeqFirst", "oldest-largest-seq-first"),
            ("kOldestSmallestSeqFirst", "oldest-smallest-seq-first"),
            ("kMinOverlappingRatio", "min-overlapping-ratio"),
            ("kRoundRobin", "round-robin"),
        ];
        for (code, (rocksdb, ours)) in (0..).zip(names) {
            assert_eq!(compaction_priority(code).name(), ours);
            assert_eq!(compaction_priority_of_name(rocksdb), ours);
        }
        assert_eq!(compaction_priority(7).name(), "min-overlapping-ratio");
    }
}
