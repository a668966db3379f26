//! The option values that are one of a few names, and how they look as text.

use std::time::Duration;

pub use sateen_control::options::{
    CompactionPriority, CompactionStyle, Preemption, RateLimitMode, StopStyle, Tuner, TunerBatch,
    WriteController,
};
use sateen_control::{Comparator, named_enum};
use sateen_store::base::prefix::Prefixing;
use sateen_store::table::Compression;

use super::ColumnFamilyOptions;
use super::text::{Named, Span, Unit};

impl Named for Compression {
    const ACCEPTS: &'static str = "none, lz4 or zstd for each level, separated by commas";
    const NAMES: &'static [(&'static str, Self)] =
        &[("none", Compression::None), ("lz4", Compression::Lz4), ("zstd", Compression::Zstd)];
}

/// Makes the names that an enumeration has those of a choice.
macro_rules! choices {
    ($($name:ident)*) => { $(
        impl Named for $name {
            const ACCEPTS: &'static str = $name::NAMES_IN_WORDS;
            const NAMES: &'static [(&'static str, Self)] = $name::NAMES;
        }
    )* };
}

choices! {
    CompactionPriority CompactionStyle LogLevel Preemption RateLimitMode StatisticsLevel StopStyle
    Tuner TunerBatch WalRecovery WriteController
}

named_enum! {
    /// How recovery treats a damaged WAL.
    pub enum WalRecovery, "prefix or absolute" {
        /// It keeps the longest undamaged prefix if only an unfinished write follows.
        #[default]
        Prefix = "prefix",
        /// Any damage is an error.
        Absolute = "absolute",
    }
}

named_enum! {
    /// The lowest level of the lines in the file LOG.
    pub enum LogLevel, "off, debug, info, warn or error" {
        /// Nothing: there is no file.
        #[default]
        Off = "off",
        /// Also pauses of jobs, bandwidths, rates of writers, and beliefs about the device.
        Debug = "debug",
        /// Also jobs, sealed memtables, adjustments and scrubs.
        Info = "info",
        /// Also stalls, and what the file system cannot do.
        Warn = "warn",
        /// Failures.
        Error = "error",
    }
}

named_enum! {
    /// The metrics that a database collects.
    pub enum StatisticsLevel, "counters, latencies or all-latencies" {
        /// Bytes, operations and stalls.
        Counters = "counters",
        /// Also how long operations took: of point reads and of writes a sample.
        #[default]
        Latencies = "latencies",
        /// Also how long each operation took.
        AllLatencies = "all-latencies",
    }
}

impl ColumnFamilyOptions {
    /// How blocks of `level` are compressed.
    #[must_use]
    pub fn compression_at(&self, level: usize) -> Compression {
        let last = self.compression.last();
        self.compression.get(level).or(last).copied().unwrap_or(Compression::None)
    }
}

/// How writes reach the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WalMode {
    /// There is no log: a crash loses what was not flushed.
    Off,
    /// Written to the operating system; survives the death of the process. Of the machine survives
    /// what was synced on request, what a flush on request stored, and of what was flushed without
    /// one all but the last few seconds.
    Buffered,
    /// Each write is durable before it returns.
    SyncEachWrite,
    /// Each write is durable at the latest so long after it returned.
    SyncInterval(Duration),
}

/// [`WalMode`] as text.
pub(super) struct WalUnit;

impl Unit<WalMode> for WalUnit {
    const NAME: &'static str = "off, buffered, sync or interval:<duration>";
    const ACCEPTS: &'static str = "off, buffered, sync or interval:<duration>, as interval:10ms";

    fn read(text: &str) -> Option<WalMode> {
        match text {
            "off" => Some(WalMode::Off),
            "buffered" => Some(WalMode::Buffered),
            "sync" => Some(WalMode::SyncEachWrite),
            other => {
                let interval: Duration = Span::read(other.strip_prefix("interval:")?)?;
                Some(WalMode::SyncInterval(interval))
            }
        }
    }

    fn print(value: &WalMode) -> String {
        match value {
            WalMode::Off => "off".to_owned(),
            WalMode::Buffered => "buffered".to_owned(),
            WalMode::SyncEachWrite => "sync".to_owned(),
            WalMode::SyncInterval(interval) => format!("interval:{}", Span::print(interval)),
        }
    }
}

/// The option `prefix_extractor` as text.
pub(super) struct PrefixText;

impl Unit<Option<Prefixing>> for PrefixText {
    const NAME: &'static str = "none, fixed:<bytes>, capped:<bytes> or noop";
    const ACCEPTS: &'static str = "none, fixed:<bytes>, capped:<bytes> or noop";

    fn read(text: &str) -> Option<Option<Prefixing>> {
        if matches!(text, "none" | "nullptr") {
            Some(None)
        } else {
            Prefixing::parse(text).map(Some)
        }
    }

    fn print(value: &Option<Prefixing>) -> String {
        value.as_ref().map_or("none".to_owned(), Prefixing::to_string)
    }
}

/// The option `comparator` as text.
pub(super) struct ComparatorText;

impl Unit<Comparator> for ComparatorText {
    const NAME: &'static str = "bytewise or reverse-bytewise";
    const ACCEPTS: &'static str = "bytewise or reverse-bytewise; others are set by their functions";

    fn read(text: &str) -> Option<Comparator> {
        match text {
            Comparator::BYTEWISE_NAME | "leveldb.BytewiseComparator" => Some(Comparator::BYTEWISE),
            Comparator::REVERSE_BYTEWISE_NAME | "rocksdb.ReverseBytewiseComparator" => {
                Some(Comparator::reverse_bytewise())
            }
            _ => None,
        }
    }

    fn print(value: &Comparator) -> String {
        value.name().to_owned()
    }
}
