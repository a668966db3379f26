//! What is known of a table without opening it. Data only: the open handle lives in the engine's
//! table cache (ARCHITECTURE.md, invariant 9).

use super::KeySketch;
use crate::types::{FileId, SeqNo, TableId, UserKey};

/// Where a table's bytes are. Readers and pickers do not care; `engine/files` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// The table is the only one in its file.
    WholeFile(FileId),
    /// A logical table inside a compaction file (BoLT §3.1).
    Slice {
        /// The compaction file.
        file: FileId,
        /// Where the table starts: a multiple of 4096.
        offset: u64,
        /// Its length in bytes, without the padding behind it.
        length: u64,
    },
    /// As a slice, but its larger values are elsewhere: in the log that they were written to when
    /// they were new (TRIAD).
    Log {
        /// The compaction file.
        file: FileId,
        /// Where the table starts: a multiple of 4096.
        offset: u64,
        /// Its length in bytes, without the padding behind it.
        length: u64,
        /// The file that has the values: another name of the log.
        values: FileId,
    },
}

impl TableMeta {
    /// Bytes of the table in its file, without padding.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        match self.placement {
            Placement::WholeFile(_) | Placement::Slice { .. } => self.size_bytes,
            Placement::Log { length, .. } => length,
        }
    }
}

impl Placement {
    /// The file that holds the bytes.
    #[must_use]
    pub fn file(&self) -> FileId {
        match *self {
            Placement::WholeFile(file)
            | Placement::Slice { file, .. }
            | Placement::Log { file, .. } => file,
        }
    }

    /// The file that has values of the table which it has not itself.
    #[must_use]
    pub fn values(&self) -> Option<FileId> {
        match *self {
            Placement::Log { values, .. } => Some(values),
            Placement::WholeFile(_) | Placement::Slice { .. } => None,
        }
    }

    /// All files without which the table cannot be read.
    pub fn files(&self) -> impl Iterator<Item = FileId> + use<> {
        std::iter::once(self.file()).chain(self.values())
    }
}

/// One immutable sorted table. Within a run no two tables share a user key, so bounds are user
/// keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMeta {
    /// Never reused.
    pub id: TableId,
    /// Where the bytes are.
    pub placement: Placement,
    /// Bytes of the table in its file, without padding, and of its values that are elsewhere.
    pub size_bytes: u64,
    /// The smallest user key.
    pub smallest: UserKey,
    /// The largest user key, inclusive.
    pub largest: UserKey,
    /// The oldest sequence number inside.
    pub seqno_min: SeqNo,
    /// The newest sequence number inside.
    pub seqno_max: SeqNo,
    /// Entries, tombstones included.
    pub entries: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Merge operands. Of them a tree must not have two copies that readers can see.
    pub merges: u64,
    /// Nothing in it is deleted by a range tombstone of up to this sequence number: when it was
    /// written, those were applied.
    pub ranges_applied: SeqNo,
    /// The sequence number of all its entries, which are stored with 0; 0: their own.
    pub global_seqno: SeqNo,
    /// Bytes of user keys and values before compression.
    pub raw_bytes: u64,
    /// Bytes behind the data blocks (filter, index, properties, footer): what opening it reads. 0
    /// where nobody has said.
    pub tail_bytes: u64,
    /// A sketch of its user keys. Only tables of level 0 have one, and only where overlap counts.
    pub sketch: Option<KeySketch>,
}
