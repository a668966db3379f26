//! Changes contradictory limits and values out of range as RocksDB does when it opens a database.
//! Other values that [`Options::validate`] refuses stay unchanged.

use super::{ColumnFamilyOptions, GIB, MIB, Options};

/// The largest memtable. RocksDB cuts `write_buffer_size` at the same size.
const MEMTABLE_BYTES_MAX: u64 = 64 * GIB;
/// The smallest memtable, as in RocksDB.
const MEMTABLE_BYTES_MIN: u64 = 64 << 10;
/// What an impossible `level_multiplier` becomes: levels must grow.
const LEVEL_MULTIPLIER_MIN: f64 = 2.0;

impl Options {
    /// Returns these options with each limit in its range and no limit against another one, for
    /// callers whose options come from RocksDB, which orders them without a word. The nearest
    /// possible value counts: `level0_slowdown` is raised to `level0_trigger`, and so on.
    ///
    /// ```
    /// use sateen::Options;
    ///
    /// let mut options = Options::default();
    /// options.column_family.level0_slowdown = 0;
    /// assert!(options.validate().is_err());
    /// let options = options.sanitized();
    /// assert_eq!(options.column_family.level0_slowdown, options.column_family.level0_trigger);
    /// assert!(options.validate().is_ok());
    /// ```
    #[must_use]
    pub fn sanitized(mut self) -> Options {
        self.background_threads = self.background_threads.min(1024);
        self.max_background_flushes = self.max_background_flushes.max(1);
        self.max_background_compactions = self.max_background_compactions.max(1);
        self.max_open_files = self.max_open_files.max(16);
        self.commit_group_bytes_max = self.commit_group_bytes_max.max(1);
        self.compaction_readahead_bytes = self.compaction_readahead_bytes.min(64 * MIB);
        self.manifest_bytes_max = self.manifest_bytes_max.max(1);
        self.delayed_write_bytes_per_second = self.delayed_write_bytes_per_second.max(1);
        self.column_family = self.column_family.sanitized();
        self
    }
}

impl ColumnFamilyOptions {
    /// As [`Options::sanitized`].
    #[must_use]
    pub fn sanitized(mut self) -> ColumnFamilyOptions {
        self.levels = self.levels.clamp(2, 16);
        self.memtable_bytes = self.memtable_bytes.clamp(MEMTABLE_BYTES_MIN, MEMTABLE_BYTES_MAX);
        self.memtables_max = self.memtables_max.max(2);
        self.memtables_to_flush_min = self.memtables_to_flush_min.clamp(1, self.memtables_max - 1);
        self.level0_trigger = self.level0_trigger.max(1);
        let width_min = self.tiered_merge_width_min.max(2);
        self.tiered_merge_width_max = self.tiered_merge_width_max.max(width_min);
        let felt = self.level0_trigger.max(self.runs_at_rest().saturating_add(1));
        self.level0_slowdown = self.level0_slowdown.max(felt);
        self.level0_stop = self.level0_stop.max(self.level0_slowdown);
        self.level0_overlap_runs_max = self.level0_overlap_runs_max.clamp(1, self.level0_slowdown);
        self.level_multiplier = match self.level_multiplier {
            growing if growing > 1.0 => growing.min(1000.0),
            _ => LEVEL_MULTIPLIER_MIN,
        };
        if self.base_level_multiplier != 0.0 {
            let multiplier = self.base_level_multiplier.max(self.level_multiplier);
            self.base_level_multiplier = multiplier.min(1000.0);
        }
        self.table_bytes = self.table_bytes.max(1);
        self.table_multiplier = self.table_multiplier.max(1);
        if self.hard_pending_compaction_bytes > 0 {
            let soft = self.soft_pending_compaction_bytes;
            self.soft_pending_compaction_bytes = soft.min(self.hard_pending_compaction_bytes);
        }
        self.block_bytes = self.block_bytes.clamp(1, 16 * MIB);
        self.restart_interval = self.restart_interval.clamp(1, 65_535);
        self.bloom_bits_per_key = self.bloom_bits_per_key.min(64);
        self.zstd_level = self.zstd_level.clamp(1, 22);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::OptionInfo;
    use super::*;

    #[test]
    fn each_option_at_its_ends_can_be_brought_into_order() {
        let ends = ["0", "1", "4294967295", "18446744073709551615", "0.0", "1e300", "-1"];
        let mut tried = 0;
        let of_rocksdb =
            |info: &&OptionInfo| info.rocksdb.is_some() || info.name.starts_with("tiered_");
        for info in Options::all().filter(of_rocksdb) {
            for (end, style) in ends.iter().flat_map(|end| [(end, "leveled"), (end, "tiered")]) {
                let mut options = Options::default();
                options.set("compaction_style", style).unwrap();
                if options.set(info.name, end).is_ok() {
                    let ordered = options.sanitized();
                    let fine = ordered.validate();
                    // Which name there is, and which contradicts the system, is not a limit.
                    assert!(fine.is_ok(), "{} = {end}: {fine:?}", info.name);
                    assert_eq!(ordered.clone().sanitized(), ordered, "{} = {end}", info.name);
                    tried += 1;
                }
            }
        }
        assert!(tried > 100, "{tried}");
    }

    #[test]
    fn what_is_possible_stays() {
        for profile in Options::profiles() {
            let options = Options::profile(profile).unwrap();
            assert_eq!(options.clone().sanitized(), options, "{profile}");
        }
        let family = ColumnFamilyOptions {
            level_multiplier: f64::NAN,
            soft_pending_compaction_bytes: 512 << 30,
            ..ColumnFamilyOptions::default()
        };
        let ordered = family.sanitized();
        assert_eq!(ordered.level_multiplier, 2.0);
        assert_eq!(ordered.soft_pending_compaction_bytes, ordered.hard_pending_compaction_bytes);
    }
}
