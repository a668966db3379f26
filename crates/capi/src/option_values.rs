//! The values of RocksDB's options by their types, for option strings and for setters that take a
//! number with a name.
//!
//! What must stay true: a value that RocksDB refuses is refused, even if the option has no effect.

use std::ffi::c_int;

use sateen::{Error, Options};

use crate::settings::{Setting, Settings, number};

/// The names of a value, each at the index of its number.
type Names = &'static [&'static str];

const COMPRESSIONS: Names = &[
    "kNoCompression",
    "kSnappyCompression",
    "kZlibCompression",
    "kBZip2Compression",
    "kLZ4Compression",
    "kLZ4HCCompression",
    "kXpressCompression",
    "kZSTD",
];
const TEMPERATURES: Names = &["kUnknown", "kHot", "kWarm", "kCool", "kCold", "kIce"];

/// Returns the names of the values of an option, if they have names.
fn names_of(option: &str) -> Option<Names> {
    Some(match option {
        "compression"
        | "compression_per_level"
        | "bottommost_compression"
        | "blob_compression_type"
        | "wal_compression" => COMPRESSIONS,
        "compaction_style" => &[
            "kCompactionStyleLevel",
            "kCompactionStyleUniversal",
            "kCompactionStyleFIFO",
            "kCompactionStyleNone",
        ],
        "compaction_pri" => &[
            "kByCompensatedSize",
            "kOldestLargestSeqFirst",
            "kOldestSmallestSeqFirst",
            "kMinOverlappingRatio",
            "kRoundRobin",
        ],
        "wal_recovery_mode" => &[
            "kTolerateCorruptedTailRecords",
            "kAbsoluteConsistency",
            "kPointInTimeRecovery",
            "kSkipAnyCorruptedRecords",
        ],
        "info_log_level" => &[
            "DEBUG_LEVEL",
            "INFO_LEVEL",
            "WARN_LEVEL",
            "ERROR_LEVEL",
            "FATAL_LEVEL",
            "HEADER_LEVEL",
        ],
        "access_hint_on_compaction_start" => &["NONE", "NORMAL", "SEQUENTIAL", "WILLNEED"],
        "prepopulate_blob_cache" | "prepopulate_block_cache" => &["kDisable", "kFlushOnly"],
        "default_temperature"
        | "default_write_temperature"
        | "last_level_temperature"
        | "metadata_write_temperature"
        | "wal_write_temperature" => TEMPERATURES,
        "lowest_used_cache_tier" => {
            &["kVolatileTier", "kVolatileCompressedTier", "kNonVolatileBlockTier"]
        }
        "index_type" => {
            &["kBinarySearch", "kHashSearch", "kTwoLevelIndexSearch", "kBinarySearchWithFirstKey"]
        }
        "data_block_index_type" => &["kDataBlockBinarySearch", "kDataBlockBinaryAndHash"],
        "index_shortening" => {
            &["kNoShortening", "kShortenSeparators", "kShortenSeparatorsAndSuccessor"]
        }
        "checksum" => &["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"],
        _ => return None,
    })
}

/// Returns true if `code` is a number of the option, whose values have names.
pub(crate) fn is_code(option: &str, code: i64) -> bool {
    let Some(names) = names_of(option) else { return true };
    // A compression has two more: zstd's old number, and that for the compression of the others.
    let also = names == COMPRESSIONS && matches!(code, 0x40 | 255);
    also || usize::try_from(code).is_ok_and(|code| code < names.len())
}

/// Returns true if `value` is a name of one, or one of its numbers.
fn is_name(option: &str, names: Names, value: &str) -> bool {
    let old = ["kZSTDNotFinalCompression", "kDisableCompressionOption"];
    names.contains(&value)
        || names == COMPRESSIONS && old.contains(&value)
        || value.parse().is_ok_and(|code| is_code(option, code))
}

/// Options of numbers with names that this library does not know.
const OTHER_NAMES: &[&str] = &["index_block_search_type", "statistics_level"];

/// Fails unless `value` is one of the RocksDB option `option`. Its setter takes the type `kind`,
/// which is empty for another one than a number. A value of Sateen's option with this name passes.
pub(crate) fn check_value(option: &str, kind: &str, value: &str) -> sateen::Result<()> {
    let is_ours = || Options::default().set(option, value).is_ok();
    let refuse = |accepts: &str| {
        let text = format!("option {option} does not take {value:?}: it takes {accepts}");
        Err(Error::InvalidArgument(text))
    };
    if let Some(names) = names_of(option) {
        let all = value.split([':', ',']).all(|part| is_name(option, names, part.trim()));
        return if all || is_ours() { Ok(()) } else { refuse(&names.join(", ")) };
    }
    if kind.is_empty() || OTHER_NAMES.contains(&option) {
        return Ok(());
    }
    let (accepts, is_valid) = match (kind, number(value)) {
        ("f64", _) => ("a number", value.parse::<f64>().is_ok()),
        ("u8" | "bool" | "c_char", number) => {
            ("true or false", number.is_some_and(|number| (0..=255).contains(&number)))
        }
        ("i32", number) => (
            "a whole number from -2147483648 to 2147483647",
            number.is_some_and(|number| i32::try_from(number).is_ok()),
        ),
        ("u32", number) => (
            "a whole number from 0 to 4294967295",
            number.is_some_and(|number| u32::try_from(number).is_ok()),
        ),
        // RocksDB takes negative numbers, too: -1 is the largest one.
        (_, number) => (
            "a whole number of at most 64 bits",
            number.is_some_and(|number| {
                (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number)
            }),
        ),
    };
    // A number out of range is no value of RocksDB's type, even if it is one of ours.
    if is_valid || number(value).is_none() && Options::info(option).is_ok() {
        return Ok(());
    }
    refuse(accepts)
}

/// Fails if a setter was given a number without a name.
pub(crate) fn check_codes(settings: &Settings) -> sateen::Result<()> {
    let checked = [
        "compression",
        "compression_per_level",
        "bottommost_compression",
        "blob_compression_type",
        "wal_compression",
        "compaction_style",
        "compaction_pri",
        "wal_recovery_mode",
    ];
    for option in checked {
        let given = c_int::get(settings, option);
        // RocksDB keeps one byte of the number.
        let given = given.filter(|code| !is_code(option, (code & 0xff).into()));
        if let (Some(code), Some(names)) = (given, names_of(option)) {
            let all = names.iter().enumerate().map(|(code, name)| format!("{code} ({name})"));
            let all = all.collect::<Vec<_>>().join(", ");
            let text = format!("option {option} does not take {code}: it takes {all}");
            return Err(Error::InvalidArgument(text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(option: &str, kind: &str, value: &str) -> bool {
        check_value(option, kind, value).is_ok()
    }

    #[test]
    fn a_value_has_the_type_of_its_option() {
        for (kind, good, bad) in [
            ("u8", "true", "maybe"),
            ("u8", "1", "256"),
            ("i32", "-1", "99999999999999"),
            ("u32", "4G", "abc"),
            ("u64", "64M", "64Q"),
            ("usize", "-1", ""),
            ("f64", "2.5", "two"),
            ("", "anything", ""),
        ] {
            let good = if good == "4G" { "3G" } else { good };
            assert!(takes("an_option", kind, good), "{kind} {good}");
            assert!(kind.is_empty() || !takes("an_option", kind, bad), "{kind} {bad}");
        }
    }

    #[test]
    fn a_value_with_a_name_is_one_of_the_names_a_number_or_ours() {
        for (option, good) in [
            ("compaction_style", "kCompactionStyleNone"),
            ("compaction_style", "tiered"),
            ("compression_per_level", "kNoCompression:kZSTD"),
            ("compression", "lz4"),
            ("bottommost_compression", "kDisableCompressionOption"),
            ("wal_recovery_mode", "2"),
            ("info_log_level", "HEADER_LEVEL"),
        ] {
            assert!(takes(option, "i32", good), "{option}={good}");
            assert!(!takes(option, "i32", "kNope"), "{option}");
            assert!(!takes(option, "i32", "99"), "{option}");
        }
        assert!(is_code("compression", 255) && !is_code("compaction_pri", 5));
    }
}
