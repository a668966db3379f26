//! Seek compaction, the readers' part: a read that looks into several tables is charged to the
//! first of them, in which it looked in vain (LevelDB).
//!
//! 1. A point read keeps the first table ([`Charging::missed`]) until it looks into another one
//!    ([`Charging::looks_further`]).
//! 2. An iterator charges a read for each [`BYTES_PER_CHARGE`] that it passes ([`ScanCharging`]),
//!    to the first table whose key range has the current key, if a second one has.
//! 3. `charge` counts, and notes a table that has enough charges in the super version. The driver
//!    reports it to control.
//!
//! What must stay true: a charge takes no lock and waits for nothing. If the option is off, a point
//! read costs one relaxed load more.

use std::sync::Arc;

use sateen_control::TableMeta;
use sateen_control::compaction::charges_max;
use sateen_store::table::Table;
use sateen_store::table::table_cache::TableCache;

use crate::tree::families::ColumnFamilyData;
use crate::tree::super_version::SuperVersion;

/// An iterator that passes this many bytes costs about as much as a point read that looks in vain.
const BYTES_PER_CHARGE: u64 = 1 << 20;

/// The charge of a point read.
pub(super) struct Charging {
    /// The option `seek_compaction_bytes`; 0 if nothing is charged.
    bytes_each: u64,
    /// The first table that the read looked into, and its bytes.
    first: Option<(Arc<Table>, u64)>,
}

impl Charging {
    /// Returns the charge of a read of `family`.
    #[inline]
    pub(super) fn new(family: &ColumnFamilyData) -> Charging {
        Charging { bytes_each: family.seek_compaction_bytes(), first: None }
    }

    /// Returns the charge of a look that is no read.
    pub(super) fn none() -> Charging {
        Charging { bytes_each: 0, first: None }
    }

    /// Notes that the read looked into `table` in vain.
    #[inline]
    pub(super) fn missed(&mut self, table: Arc<Table>, meta: &TableMeta) {
        if self.bytes_each > 0 {
            self.first = Some((table, meta.size_bytes));
        }
    }

    /// Charges the first table, because the read looks into another one. Each read is charged once.
    #[inline]
    pub(super) fn looks_further(&mut self, pinned: &SuperVersion) {
        if let Some((table, bytes)) = self.first.take() {
            charge(pinned, &table, bytes, self.bytes_each);
            self.bytes_each = 0;
        }
    }
}

/// The charges of an iterator.
pub(crate) struct ScanCharging {
    family: Arc<ColumnFamilyData>,
    /// Bytes to pass until the next charge.
    left: u64,
}

impl ScanCharging {
    /// Returns the charges of an iterator over `family`; `None` if nothing is charged.
    pub(crate) fn new(family: &Arc<ColumnFamilyData>) -> Option<Box<ScanCharging>> {
        (family.seek_compaction_bytes() > 0)
            .then(|| Box::new(ScanCharging { family: family.clone(), left: BYTES_PER_CHARGE }))
    }

    /// Notes that the iterator stands on an entry of `key` with `bytes` bytes.
    #[inline]
    pub(crate) fn passes(&mut self, key: &[u8], bytes: u64, tables: &TableCache) {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => self.charge(key, tables),
        }
    }

    #[cold]
    fn charge(&mut self, key: &[u8], tables: &TableCache) {
        self.left = BYTES_PER_CHARGE;
        let pinned = self.family.tree(key).super_version();
        let runs = pinned.version.levels().iter().flat_map(|level| level.runs());
        let mut having = runs.filter_map(|run| run.find(key));
        if let (Some(first), Some(_)) = (having.next(), having.next())
            && let Some(table) = tables.get_open(first.id)
        {
            charge(&pinned, &table, first.size_bytes, self.family.seek_compaction_bytes());
        }
    }
}

/// Charges a read to `table`, and notes the table if it has enough charges to be compacted.
fn charge(pinned: &SuperVersion, table: &Table, table_bytes: u64, bytes_each: u64) {
    if table.charge() >= charges_max(table_bytes, bytes_each) {
        pinned.note_charged(table.id());
    }
}
