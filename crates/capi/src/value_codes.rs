//! The numbers that RocksDB gives to values with names: compressions, priorities, ways to recover.

use std::ffi::c_int;

use sateen::Compression;

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
