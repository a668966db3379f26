//! What clients wrote, from a record of the WAL: for readers and filters of the WAL.

use std::collections::BTreeMap;
use std::sync::Arc;

use sateen_control::{ColumnFamilyId, ValueKind};
use sateen_store::batch::{BatchEntry, BatchItem, encode_entry, encode_log_data};

use crate::batch::WriteBatch;
use crate::tree::families::{ColumnFamilyData, Families};
use crate::ttl;

/// What clients wrote in one record of the WAL.
pub(crate) struct AsWritten {
    pub(crate) batch: WriteBatch,
    /// Whether the record had something that the engine had added.
    pub(crate) had_more: bool,
}

/// Returns what a client wrote, from the record that it became: without the times of values, with
/// the column families that clients know, and without the entries of prepared transactions. In a
/// database with times or regions the entries of dropped column families are left out as well,
/// because their form is not known any more. The error says why `payload` is no batch.
pub(crate) fn as_written(payload: &[u8], families: &Families) -> Result<AsWritten, &'static str> {
    let read = |data| WriteBatch::from_data(data).map_err(|_| "a record that is not a batch");
    let batch = read(payload.to_vec())?;
    let as_stored = |entry: &BatchEntry<'_>| {
        families.by_id(entry.column_family).map_or(!families.had_own_forms(), |family| {
            family.region().is_none() && family.region_begins().len() == 0 && !family.has_times()
        })
    };
    let prepared = families.prepared().map(|family| family.id());
    let is_ours = |item| match item {
        BatchItem::Write(entry) => Some(entry.column_family) == prepared || !as_stored(&entry),
        BatchItem::LogData(_) => false,
    };
    if !batch.items().any(is_ours) {
        return Ok(AsWritten { batch, had_more: false });
    }
    let mut had_more = false;
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
            had_more = true;
            continue;
        }
        let unknown = (entry.column_family, 0);
        let unknown = (!families.had_own_forms()).then_some(&unknown);
        let Some(&(id, place)) = places.get(&entry.column_family).or(unknown) else { continue };
        let ranged = entry.kind == ValueKind::RangeDelete;
        let continued = (id, entry.key, entry.value, place.wrapping_sub(1));
        had_more |= !as_stored(&entry);
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
    Ok(AsWritten { batch: read(data)?, had_more })
}

/// Returns, for each tree, the column family that clients know and the index of the tree in it.
fn places(families: &Families) -> BTreeMap<ColumnFamilyId, (ColumnFamilyId, usize)> {
    let parts = |whole: &Arc<ColumnFamilyData>| {
        let id = whole.id();
        whole.trees().zip(0..).map(|(tree, nth)| (tree.id(), (id, nth))).collect::<Vec<_>>()
    };
    families.named().flat_map(parts).collect()
}
