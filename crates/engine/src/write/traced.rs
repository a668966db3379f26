//! Writes of a trace: a leader adds those of its group in the order of the commits.
//!
//! A trace has what clients wrote. So the entries of regions get the id of their column family,
//! values lose the time of their write, and entries of prepared transactions are left out.

use std::sync::Arc;

use sateen_control::{ColumnFamilyId, ValueKind};
use sateen_store::batch::{BatchEntry, BatchItem, BatchReader};

use super::queue::WriterSlot;
use super::{ActiveSet, CommitPipeline, Stage};
use crate::batch::rocksdb;
use crate::entry::TIME_BYTES;
use crate::trace::Tracing;
use crate::tree::families::PREPARED;

impl CommitPipeline {
    /// Returns the trace of calls, if one is recorded.
    pub(crate) fn tracing(&self) -> &Arc<Tracing> {
        &self.tracing
    }

    /// Adds the write of a slot to the trace. The caller leads.
    #[cold]
    pub(super) fn trace_slot(&self, stage: &Stage, slot: &WriterSlot) {
        let bytes = slot.take_bytes();
        self.trace(stage, &bytes);
        slot.return_bytes(bytes);
    }

    /// Adds a write to the trace. The caller leads. `entries` are as the WAL has them; there are
    /// none of an unlogged write that was encoded before the trace began.
    #[cold]
    pub(super) fn trace(&self, stage: &Stage, entries: &[u8]) {
        self.tracing.write(|| as_written(&stage.active, entries));
    }
}

/// Returns what a client wrote, as RocksDB encodes it; `None` if there is nothing.
fn as_written(active: &ActiveSet, entries: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(entries.len() + 16);
    rocksdb::begin(&mut out, 0, 0);
    let empty = out.len();
    let mut count = 0_u32;
    let mut last_range: Option<(ColumnFamilyId, &[u8], &[u8])> = None;
    let mut items = BatchReader::new(entries);
    // What a writer has encoded can be decoded.
    while let Ok(Some(item)) = items.next_item() {
        let BatchItem::Write(entry) = item else {
            rocksdb::put_item(&mut out, &item);
            continue;
        };
        let Some((family, _)) = active.find(entry.column_family) else { continue };
        if family.name() == PREPARED {
            continue;
        }
        let (column_family, mut value) = (family.whole(), entry.value);
        match entry.kind {
            // Each region has got the whole range.
            ValueKind::RangeDelete => {
                let range = Some((column_family, entry.key, entry.value));
                if std::mem::replace(&mut last_range, range) == range {
                    continue;
                }
            }
            kind => {
                // The same range behind another entry deletes that entry.
                last_range = None;
                if family.has_times() && kind.has_value() {
                    value = value.get(..value.len().saturating_sub(TIME_BYTES)).unwrap_or_default();
                }
            }
        }
        rocksdb::put_item(
            &mut out,
            &BatchItem::Write(BatchEntry { column_family, value, ..entry }),
        );
        count += 1;
    }
    rocksdb::set_count(&mut out, count);
    (out.len() > empty).then_some(out)
}
