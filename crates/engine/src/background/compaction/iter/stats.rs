//! Counters of the entries that went through a flush or compaction.

/// Entries and bytes (internal keys and values), read, kept and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompactionStats {
    /// Values and operands read.
    pub(crate) puts_in: u64,
    /// Deletions read.
    pub(crate) deletes_in: u64,
    /// Bytes read.
    pub(crate) bytes_in: u64,
    /// Values and operands kept.
    pub(crate) puts_out: u64,
    /// Deletions kept.
    pub(crate) deletes_out: u64,
    /// Bytes kept.
    pub(crate) bytes_out: u64,
    /// Values and operands dropped: hidden from every reader by a newer entry, or merged into one.
    pub(crate) puts_dropped: u64,
    /// Deletions dropped: hidden, or with nothing left to hide.
    pub(crate) deletes_dropped: u64,
    /// Values that got sequence number 0.
    pub(crate) seqnos_zeroed: u64,
}

impl CompactionStats {
    /// Returns the entries read.
    pub(crate) fn entries_in(&self) -> u64 {
        self.puts_in + self.deletes_in
    }

    /// Returns the entries kept.
    #[cfg(test)]
    pub(crate) fn entries_out(&self) -> u64 {
        self.puts_out + self.deletes_out
    }

    /// Returns the entries dropped.
    pub(crate) fn entries_dropped(&self) -> u64 {
        self.puts_dropped + self.deletes_dropped
    }
}
