//! What became of the entries that went through a flush or compaction.

/// Entries and bytes (internal keys and values) by what became of them.
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
    /// Values and operands dropped: a newer version hides them from everybody, or has them in it.
    pub(crate) puts_dropped: u64,
    /// Deletions dropped: hidden, or with nothing left to hide.
    pub(crate) deletes_dropped: u64,
    /// Values whose seqno became 0.
    pub(crate) seqnos_zeroed: u64,
}

impl CompactionStats {
    /// Entries read.
    pub(crate) fn entries_in(&self) -> u64 {
        self.puts_in + self.deletes_in
    }

    /// Entries kept.
    #[cfg(test)]
    pub(crate) fn entries_out(&self) -> u64 {
        self.puts_out + self.deletes_out
    }

    /// Entries dropped.
    pub(crate) fn entries_dropped(&self) -> u64 {
        self.puts_dropped + self.deletes_dropped
    }
}
