//! The options of the FIFO policy, as in RocksDB's `CompactionOptionsFIFO`: the options `fifo_…` of
//! a database without their prefix.

/// How the FIFO policy works.
#[derive(Clone, Debug, PartialEq)]
pub struct FifoOptions {
    /// Bytes of all tables above which the oldest are dropped.
    pub bytes_max: u64,
    /// True if small runs are merged while the tables have fewer bytes than that.
    pub compaction: bool,
}

impl Default for FifoOptions {
    fn default() -> FifoOptions {
        FifoOptions { bytes_max: 1 << 30, compaction: false }
    }
}
