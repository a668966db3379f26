//! What a client's read does where the bytes that it needs are not in memory.

/// What a read does when a table, block or value is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMiss {
    /// Reads it, and puts a block into the cache.
    ReadAndCache,
    /// Reads it and leaves the cache as it is.
    Read,
    /// Fails with [`NotInMemory`](crate::base::error::Error::NotInMemory).
    Refuse,
}

impl OnMiss {
    /// Returns what a reader wants who sets these two of `ReadOptions`.
    #[must_use]
    pub fn of(fill_cache: bool, memory_only: bool) -> OnMiss {
        match (memory_only, fill_cache) {
            (true, _) => OnMiss::Refuse,
            (false, true) => OnMiss::ReadAndCache,
            (false, false) => OnMiss::Read,
        }
    }
}
