//! The index of a batch: its entries by column family and key.
//!
//! An entry gets the sequence number [`overlay::FIRST`] plus its place in the batch. So the rules
//! for versions of a key, merge operands and range tombstones are those of the database.
//!
//! What must stay true: the index has exactly the entries of its batch. Nothing is removed from a
//! memtable, so a rollback builds the index again. Cursors keep the memtable that they began with.

use std::collections::BTreeMap;
use std::sync::Arc;

use sateen_control::{ColumnFamilyId, Comparator, SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::batch::BatchEntry;
use sateen_store::memtable::MemTable;

use crate::batch::WriteBatch;
use crate::db::check_range;
use crate::db::overlay::{self, Overlay};
use crate::entry::Visible;
use crate::operators::merge::Operands;
use crate::tree::families::ColumnFamilyData;

/// Size that a memtable is laid out for: one small chunk.
const MEMTABLE_BYTES: usize = 16 << 10;

/// What a batch says about a key.
pub(super) struct OwnRead {
    /// Operands above the base.
    pub(super) operands: Operands,
    pub(super) base: Base,
}

/// What the operands of a batch are merged into.
pub(super) enum Base {
    /// A value of the batch.
    Value(Vec<u8>),
    /// The batch deletes the key.
    Deleted,
    /// The batch does not say.
    Below,
}

impl OwnRead {
    const NOTHING: OwnRead = OwnRead { operands: Operands::NONE, base: Base::Below };
}

/// The entries of a column family.
struct FamilyIndex {
    comparator: Comparator,
    entries: Arc<MemTable>,
}

impl FamilyIndex {
    fn new(comparator: &Comparator) -> FamilyIndex {
        let entries = Arc::new(MemTable::new(MEMTABLE_BYTES, None, comparator));
        FamilyIndex { comparator: comparator.clone(), entries }
    }

    /// Returns the entries among the first `count` of the batch. `None` without any.
    fn first(&self, count: u32) -> Option<Overlay> {
        let through = SeqNo(overlay::FIRST.0 + u64::from(count).checked_sub(1)?);
        (!self.entries.is_empty()).then(|| Overlay { entries: self.entries.clone(), through })
    }
}

/// The entries of a batch, by column family and key.
#[derive(Default)]
pub(super) struct BatchIndex {
    families: BTreeMap<ColumnFamilyId, FamilyIndex>,
}

impl BatchIndex {
    /// Adds the entry at `place` of the batch. `comparator` orders the keys of its column family.
    pub(super) fn add(&mut self, comparator: &Comparator, place: u32, entry: &BatchEntry<'_>) {
        let BatchEntry { column_family, kind, key, value } = *entry;
        let index =
            self.families.entry(column_family).or_insert_with(|| FamilyIndex::new(comparator));
        // An empty range deletes nothing.
        if kind != ValueKind::RangeDelete || key != value {
            index.entries.insert(key, SeqNo(overlay::FIRST.0 + u64::from(place)), kind, value);
        }
    }

    /// Makes this the index of `batch`, which has lost its last entries.
    pub(super) fn rebuild(&mut self, batch: &WriteBatch) {
        for index in self.families.values_mut() {
            *index = FamilyIndex::new(&index.comparator);
        }
        for (place, entry) in (0..).zip(batch) {
            // It was added before.
            if let Some(index) = self.families.get(&entry.column_family) {
                let comparator = index.comparator.clone();
                self.add(&comparator, place, &entry);
            }
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.families.clear();
    }

    /// Returns the entries of `family` in `batch`, of which this is the index. `None` without any.
    /// A batch that was made for no certain database compares keys bytewise. If the family does
    /// not, its entries are indexed anew for this call. Fails if keys were compared by a comparator
    /// that is another one than that of the family.
    pub(super) fn overlay(
        &self,
        family: &ColumnFamilyData,
        batch: &WriteBatch,
    ) -> Result<Option<Overlay>> {
        let Some(index) = self.families.get(&family.id()) else { return Ok(None) };
        let (indexed, wanted) = (&index.comparator, family.comparator());
        if indexed == wanted {
            return Ok(index.first(batch.count()));
        }
        if !indexed.is_bytewise() {
            return Err(Error::InvalidArgument(format!(
                "the batch compares the keys of the column family {} by {}, the database by {}",
                family.name(),
                indexed.name(),
                wanted.name()
            )));
        }
        let mut anew = BatchIndex::default();
        for (place, entry) in (0..).zip(batch) {
            if entry.column_family == family.id() {
                if entry.kind == ValueKind::RangeDelete {
                    check_range(wanted, entry.key, entry.value)?;
                }
                anew.add(wanted, place, &entry);
            }
        }
        Ok(anew.families.get(&family.id()).and_then(|index| index.first(batch.count())))
    }

    /// Returns the entries of the default column family, of the first `count` of the batch.
    pub(super) fn overlay_of_default(&self, count: u32) -> Option<Overlay> {
        self.families.get(&ColumnFamilyId(0))?.first(count)
    }
}

/// Returns what `overlay` says about `key`.
pub(super) fn read(overlay: Option<&Overlay>, key: &[u8]) -> Result<OwnRead> {
    let Some(Overlay { entries, through }) = overlay else { return Ok(OwnRead::NOTHING) };
    let mut operands = Operands::default();
    let floor = entries.range_over(key, *through);
    let mut seqno = *through;
    while let Some((found, kind, value)) = entries.get(key, seqno) {
        if floor.is_some_and(|floor| found < floor) {
            break;
        }
        match Visible::of(Some(kind))? {
            Visible::Value => return Ok(OwnRead { operands, base: Base::Value(value.to_vec()) }),
            Visible::Deleted => return Ok(OwnRead { operands, base: Base::Deleted }),
            Visible::Operand => operands.push_older(value),
        }
        seqno = SeqNo(found.0 - 1);
    }
    let base = if floor.is_some() { Base::Deleted } else { Base::Below };
    Ok(OwnRead { operands, base })
}
