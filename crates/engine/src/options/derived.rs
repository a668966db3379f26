//! What services derive from options: limits, places and sizes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sateen_store::block_cache::SharedBlockCache;
use sateen_store::files::leases::LeaseLimits;

use super::{Options, StatisticsLevel, WalMode};
use crate::admission::write_buffers::WriteBufferManager;
use crate::metrics::LatencySampling;
use crate::runtime::Runtime;
use crate::runtime::device::Scheduling;

/// The options of the scheduler and of the threads.
const SCHEDULING: &[&str] = &[
    "background_thread_nice",
    "slice_bytes_max",
    "rate_limit_bytes_per_second",
    "rate_limit_auto_tune",
    "rate_limit_mode",
    "rate_limit_refill_period",
    "rate_limit_fairness",
    "scheduler_bandwidth",
    "scheduler_priority",
    "preemption",
    "preempt_discard",
    "device_bandwidth",
    "scheduler_floor",
    "scheduler_change_threshold",
    "scheduler_drain_time",
    "scheduler_peak_forecast",
    "scheduler_headroom",
    "debt_floor",
];

impl Options {
    /// Where the logs of a database in `directory` are.
    pub(crate) fn wal_directory(&self, directory: &Path) -> PathBuf {
        self.wal_dir.clone().unwrap_or_else(|| directory.to_owned())
    }

    /// The most that is reserved for a log: what a memtable holds, or none if no log is written.
    pub(crate) fn wal_preallocation(&self) -> u64 {
        if self.wal == WalMode::Off { 0 } else { self.column_family.memtable_bytes }
    }

    /// Whether flushes and compactions bypass the page cache. If all readers do, what is in it
    /// would never be read.
    pub(crate) fn writes_directly(&self) -> bool {
        self.direct_io_for_flush_and_compaction || self.direct_reads
    }

    pub(crate) fn keeps_logs(&self) -> bool {
        self.wal_ttl_seconds > 0 || self.wal_size_limit_bytes > 0
    }

    /// How many files may be open, and how much memory their indexes and filters may take.
    pub(crate) fn open_tables_max(&self) -> (usize, u64) {
        let of_budget = self.memory_budget.map_or(u64::MAX, |budget| budget / 2);
        let memory = self.table_cache_bytes.unwrap_or(u64::MAX).min(of_budget);
        (self.max_open_files.max(1) as usize, memory)
    }

    /// Which operations are timed.
    pub(crate) fn sampling(&self) -> LatencySampling {
        match self.statistics {
            StatisticsLevel::Counters => LatencySampling::OFF,
            StatisticsLevel::Latencies => LatencySampling::default(),
            StatisticsLevel::AllLatencies => LatencySampling::EXACT,
        }
    }

    /// The limit that a database opened with these has for its memtables.
    pub(crate) fn write_buffers(&self) -> Option<WriteBufferManager> {
        let own = self.all_memtables_bytes;
        let own = || (own > 0).then(|| WriteBufferManager::new(own));
        let of_runtime = || self.runtime.as_ref().and_then(Runtime::write_buffer_manager).cloned();
        self.write_buffer_manager.clone().or_else(of_runtime).or_else(own)
    }

    /// The block cache that a database opened with these shares with others.
    pub(crate) fn block_cache(&self) -> Option<&SharedBlockCache> {
        let of_runtime = || self.runtime.as_ref().and_then(Runtime::block_cache);
        self.shared_block_cache.as_ref().or_else(of_runtime)
    }

    /// The options that all databases on a device have in common, with their values: they are those
    /// of its scheduler and of its threads.
    pub(crate) fn scheduling(&self) -> Scheduling {
        let shared = Options::INFO.iter().filter(|info| SCHEDULING.contains(&info.name));
        shared.map(|info| (info.name, self.get_field(info))).collect()
    }

    /// How much readers in other handles and processes may keep from being given back.
    pub(crate) fn lease_limits(&self) -> LeaseLimits {
        LeaseLimits {
            time: Duration::from_secs(self.reader_lease_seconds),
            bytes: self.reader_lease_bytes,
        }
    }
}
