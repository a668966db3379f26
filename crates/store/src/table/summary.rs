//! What the builder tells of a finished table, and the version's record that is made of it.

use sateen_control::version::{KeySketch, Placement, TableMeta, ValueRef, ValueRefs};
use sateen_control::{FileId, SeqNo, TableId, UserKey};

use super::builder::ValuesApart;

/// What is known of a finished table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSummary {
    pub id: TableId,
    /// Start of the table in its file.
    pub offset: u64,
    /// Length without padding.
    pub size_bytes: u64,
    /// Bytes of values that are in the WAL.
    pub separated_bytes: u64,
    pub smallest: UserKey,
    pub largest: UserKey,
    pub seqno_min: SeqNo,
    pub seqno_max: SeqNo,
    pub entries: u64,
    /// Tombstones of all kinds.
    pub tombstones: u64,
    /// Merge operands.
    pub merges: u64,
    /// Bytes of user keys and values before compression, separated values included.
    pub raw_bytes: u64,
    /// Bytes behind the data blocks.
    pub tail_bytes: u64,
    pub sketch: Option<KeySketch>,
    /// Where values are.
    pub values: ValuesApart,
    /// The value files that the table refers to, ascending, and the bytes in each.
    pub value_files: Vec<(FileId, u64)>,
}

impl TableSummary {
    /// Returns the version's record of the table in `file`. The caller adds the sizes of the value
    /// files.
    pub fn into_meta(self, file: FileId) -> TableMeta {
        TableMeta {
            id: self.id,
            placement: match self.values {
                ValuesApart::No | ValuesApart::InFiles => {
                    Placement::Slice { file, offset: self.offset, length: self.size_bytes }
                }
                ValuesApart::InLog(values) => {
                    let (offset, length) = (self.offset, self.size_bytes);
                    Placement::Log { file, offset, length, values }
                }
            },
            // A compaction moves values out of a WAL, so they count.
            size_bytes: self.size_bytes + self.separated_bytes,
            smallest: self.smallest,
            largest: self.largest,
            seqno_min: self.seqno_min,
            seqno_max: self.seqno_max,
            entries: self.entries,
            tombstones: self.tombstones,
            merges: self.merges,
            ranges_applied: SeqNo(0),
            global_seqno: SeqNo(0),
            raw_bytes: self.raw_bytes,
            tail_bytes: self.tail_bytes,
            sketch: self.sketch,
            values: ValueRefs {
                files: self
                    .value_files
                    .into_iter()
                    .map(|(file, bytes)| ValueRef { file, bytes, file_bytes: bytes })
                    .collect(),
                encoded: self.values == ValuesApart::InFiles,
            },
        }
    }
}
