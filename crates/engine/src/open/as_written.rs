//! What clients wrote, from a record of the WAL: for readers and filters of the WAL.

use std::collections::BTreeMap;
use std::sync::Arc;

use sateen_control::{ColumnFamilyId, ValueKind};
use sateen_store::batch::{BatchItem, encode_entry, encode_log_data};

use crate::batch::WriteBatch;
use crate::tree::families::{ColumnFamilyData, Families};
use crate::ttl;

/// Returns the batch that a client wrote, from the record that it became: without the times of
/// values, with the column families that clients know, and without that of prepared transactions.
/// The error says why `payload` is no batch.
pub(crate) fn as_written(payload: &[u8], families: &Families) -> Result<WriteBatch, &'static str> {
    let read = |data| WriteBatch::from_data(data).map_err(|_| "a record that is not a batch");
    let batch = read(payload.to_vec())?;
    let as_stored = |family: &Arc<ColumnFamilyData>| {
        family.region().is_none() && family.region_begins().len() == 0 && !family.has_times()
    };
    let prepared = families.prepared().map(|family| family.id());
    if prepared.is_none() && families.values().all(as_stored) {
        return Ok(batch);
    }
    let mut data = Vec::with_capacity(payload.len());
    let mut range: Option<(ColumnFamilyId, &[u8], &[u8], usize)> = None;
    let places = places(families);
    for item in batch.items() {
        let entry = match item {
            BatchItem::Write(entry) => entry,
            BatchItem::LogData(blob) => {
                encode_log_data(&mut data, blob);
                continue;
            }
        };
        if Some(entry.column_family) == prepared {
            continue;
        }
        let &(id, place) = places.get(&entry.column_family).unwrap_or(&(entry.column_family, 0));
        let ranged = entry.kind == ValueKind::RangeDelete;
        let continued = (id, entry.key, entry.value, place.wrapping_sub(1));
        // A range tombstone over several regions was one write.
        if ranged && range.replace((id, entry.key, entry.value, place)) == Some(continued) {
            continue;
        }
        if !ranged {
            range = None;
        }
        let timed = matches!(entry.kind, ValueKind::Put | ValueKind::Merge)
            && families.by_id(entry.column_family).is_some_and(|family| family.has_times());
        let value = if timed { ttl::untimed(entry.value) } else { entry.value };
        encode_entry(&mut data, id, entry.kind, entry.key, value);
    }
    read(data)
}

/// Returns, for each tree, the column family that clients know and the index of the tree in it.
fn places(families: &Families) -> BTreeMap<ColumnFamilyId, (ColumnFamilyId, usize)> {
    let parts = |whole: &Arc<ColumnFamilyData>| {
        let id = whole.id();
        whole.trees().zip(0..).map(|(tree, nth)| (tree.id(), (id, nth))).collect::<Vec<_>>()
    };
    families.named().flat_map(parts).collect()
}
