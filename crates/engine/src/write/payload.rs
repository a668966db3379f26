//! A write as it reaches the commit pipeline.

use sateen_control::{ColumnFamilyId, ValueKind};

use crate::batch::WriteBatch;

/// A write as the pipeline receives it.
pub(crate) enum Payload<'a> {
    /// One entry. It is encoded as a batch only if it goes to the WAL.
    Single { family: ColumnFamilyId, kind: ValueKind, key: &'a [u8], value: &'a [u8] },
    /// A whole batch.
    Batch(&'a WriteBatch),
}

impl Payload<'_> {
    /// Returns the bytes of keys and values that it writes to `id`, plus one for each entry. 0 if
    /// it writes nothing there.
    pub(crate) fn bytes_to(&self, id: ColumnFamilyId) -> u64 {
        let bytes = |key: &[u8], value: &[u8]| 1 + key.len() as u64 + value.len() as u64;
        match self {
            Payload::Single { family, key, value, .. } if *family == id => bytes(key, value),
            Payload::Single { .. } => 0,
            Payload::Batch(batch) => {
                let here = batch.iter().filter(|entry| entry.column_family == id);
                here.map(|entry| bytes(entry.key, entry.value)).sum()
            }
        }
    }

    /// Returns the number of its entries.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Payload::Single { .. } => 1,
            Payload::Batch(batch) => u64::from(batch.count()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Payload::Batch(batch) if batch.len_bytes() == 0)
    }
}
