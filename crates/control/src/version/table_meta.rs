//! What is known of a table without opening it. It is only data; the table cache of the engine has
//! the open handle (ARCHITECTURE.md, invariant 9).

use super::KeySketch;
use crate::types::{FileId, SeqNo, TableId, UserKey};

/// Where a table's bytes are. Only the code that opens and frees files depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// The table has a file of its own.
    WholeFile(FileId),
    /// A table in a compaction file (BoLT §3.1).
    Slice {
        /// The compaction file.
        file: FileId,
        /// Offset of the table, a multiple of 4096.
        offset: u64,
        /// Its length in bytes, without the padding behind it.
        length: u64,
    },
    /// Like a slice, but its larger values are in the WAL to which they were first written (TRIAD).
    Log {
        /// The compaction file.
        file: FileId,
        /// Offset of the table, a multiple of 4096.
        offset: u64,
        /// Its length in bytes, without the padding behind it.
        length: u64,
        /// The file with the values, which is another name of the WAL.
        values: FileId,
    },
}

#[cfg(test)]
impl TableMeta {
    /// Returns a table of one entry with these bounds, in a file of its own.
    pub(crate) fn of_one(id: u64, bounds: [UserKey; 2], size_bytes: u64) -> TableMeta {
        let [smallest, largest] = bounds;
        TableMeta {
            id: TableId(id),
            placement: Placement::WholeFile(FileId(id)),
            size_bytes,
            smallest,
            largest,
            seqno_min: SeqNo(0),
            seqno_max: SeqNo(0),
            entries: 1,
            tombstones: 0,
            merges: 0,
            ranges_applied: SeqNo(0),
            global_seqno: SeqNo(0),
            raw_bytes: size_bytes,
            tail_bytes: 0,
            sketch: None,
            values: ValueRefs::default(),
        }
    }
}

impl TableMeta {
    /// Returns the bytes of the table in its file, without padding.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        match self.placement {
            Placement::WholeFile(_) | Placement::Slice { .. } => self.size_bytes,
            Placement::Log { length, .. } => length,
        }
    }

    /// Returns all files that are needed to read the table: its own, the WAL with its values, and
    /// its value files.
    pub fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        let own = std::iter::once(self.placement.file()).chain(self.placement.values());
        own.chain(self.values.files.iter().map(|one| one.file))
    }
}

impl Placement {
    /// Returns the file that holds the table.
    #[must_use]
    pub fn file(&self) -> FileId {
        match *self {
            Placement::WholeFile(file)
            | Placement::Slice { file, .. }
            | Placement::Log { file, .. } => file,
        }
    }

    /// Returns the WAL that holds its separated values, if it has any.
    #[must_use]
    pub fn values(&self) -> Option<FileId> {
        match *self {
            Placement::Log { values, .. } => Some(values),
            Placement::WholeFile(_) | Placement::Slice { .. } => None,
        }
    }
}

/// A value file that has values of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueRef {
    /// The file.
    pub file: FileId,
    /// Bytes of the values in it that belong to the table.
    pub bytes: u64,
    /// Bytes of all values that were written to it.
    pub file_bytes: u64,
}

/// The value files of a table. No other table of its version refers to the same values, so a value
/// is dead when its table drops it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueRefs {
    /// Each file once, ascending.
    pub files: Vec<ValueRef>,
    /// Whether the values of the table are encoded, so that they may be in value files.
    pub encoded: bool,
}

impl ValueRefs {
    /// Returns true if the table has no values in value files.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the bytes of the table's values in value files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|one| one.bytes).sum()
    }
}

/// An immutable sorted table. No two tables of a run share a user key, so its bounds are user keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMeta {
    /// Its id, which is never reused.
    pub id: TableId,
    /// Where its bytes are.
    pub placement: Placement,
    /// Bytes of the table in its file, without padding, and of its values in a WAL: what a
    /// compaction of it writes. Values in value files do not count.
    pub size_bytes: u64,
    /// The smallest user key.
    pub smallest: UserKey,
    /// The largest user key, inclusive.
    pub largest: UserKey,
    /// The oldest sequence number in it.
    pub seqno_min: SeqNo,
    /// The newest sequence number in it.
    pub seqno_max: SeqNo,
    /// Number of entries, tombstones included.
    pub entries: u64,
    /// Number of tombstones.
    pub tombstones: u64,
    /// Number of merge operands. A tree must not have two visible copies of one.
    pub merges: u64,
    /// No range tombstone up to this sequence number deletes anything in it: they were applied when
    /// it was written.
    pub ranges_applied: SeqNo,
    /// The sequence number of all its entries, which are stored with 0. If it is 0, entries have
    /// their own.
    pub global_seqno: SeqNo,
    /// Bytes of user keys and values before compression.
    pub raw_bytes: u64,
    /// Bytes behind the data blocks (filter, index, properties, footer), which opening the table
    /// reads; 0 if unknown.
    pub tail_bytes: u64,
    /// A sketch of its user keys. Only tables of level 0 have one, and only if the policy looks at
    /// their overlap.
    pub sketch: Option<KeySketch>,
    /// The value files that have values of it.
    pub values: ValueRefs,
}
