//! The options of the FIFO policy, as RocksDB's `CompactionOptionsFIFO` has them.

/// How the FIFO policy works.
#[derive(Clone, Debug, PartialEq)]
pub struct FifoOptions {
    /// Bytes of all tables above which the oldest are dropped.
    pub max_table_files_size: u64,
    /// True if small runs are merged while the tables have fewer bytes than that.
    pub allow_compaction: bool,
}

impl Default for FifoOptions {
    fn default() -> FifoOptions {
        FifoOptions { max_table_files_size: 1 << 30, allow_compaction: false }
    }
}
