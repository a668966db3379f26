//! Changes contradictory limits and values out of range as RocksDB does when it opens a database.
//! The schema has the limits of each option. Values that [`Options::validate`] refuses and that
//! have no nearest possible value stay unchanged.

use super::{ColumnFamilyOptions, GIB, Options};

/// The largest memtable. RocksDB cuts `write_buffer_size` at the same size.
const MEMTABLE_BYTES_MAX: u64 = 64 * GIB;
/// The smallest memtable, as in RocksDB.
const MEMTABLE_BYTES_MIN: u64 = 64 << 10;

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
        self.clamp_to_limits();
        self.column_family = self.column_family.sanitized();
        self
    }
}

impl ColumnFamilyOptions {
    /// As [`Options::sanitized`].
    #[must_use]
    pub fn sanitized(mut self) -> ColumnFamilyOptions {
        self.clamp_to_limits();
        self.memtable_bytes = self.memtable_bytes.clamp(MEMTABLE_BYTES_MIN, MEMTABLE_BYTES_MAX);
        self.memtables_to_flush_min = self.memtables_to_flush_min.min(self.memtables_max - 1);
        self.tiered_merge_width_max = self.tiered_merge_width_max.max(self.tiered_merge_width_min);
        let felt = self.level0_trigger.max(self.runs_at_rest().saturating_add(1));
        self.level0_slowdown = self.level0_slowdown.max(felt);
        self.level0_stop = self.level0_stop.max(self.level0_slowdown);
        self.level0_overlap_runs_max = self.level0_overlap_runs_max.clamp(1, self.level0_slowdown);
        if self.base_level_multiplier != 0.0 {
            self.base_level_multiplier = self.base_level_multiplier.max(self.level_multiplier);
        }
        if self.hard_pending_compaction_bytes > 0 {
            let soft = self.soft_pending_compaction_bytes;
            self.soft_pending_compaction_bytes = soft.min(self.hard_pending_compaction_bytes);
        }
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
