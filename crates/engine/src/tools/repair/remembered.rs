//! What the readable parts of unbelievable manifests still tell.
//!
//! Everything before the damage was true once, and much of it still is: names, comparators and
//! regions of column families, replaced tables, deleted ranges. Tables do not have this
//! information.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sateen_control::version::{RangeTombstone, Region, VersionEdit};
use sateen_control::{ColumnFamilyId, FileId, SeqNo, TableId};
use sateen_store::manifest::{Identity, ManifestReader};
use sateen_store::vfs::Vfs;

/// What is known of a column family, or a region of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) region: Option<Region>,
    pub(super) style: Option<String>,
    pub(super) comparator: String,
    /// Whether its values are stored with the times of their writes.
    pub(super) value_times: Option<bool>,
    pub(super) ranges: Vec<RangeTombstone>,
}

/// What is known of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) global_seqno: SeqNo,
    /// The WAL with its separated values.
    pub(super) values: Option<FileId>,
    /// Whether its values are encoded, so that they may be in value files.
    pub(super) encoded: bool,
}

/// Everything that is known from manifests.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    pub(super) identity: Option<Identity>,
    pub(super) families: BTreeMap<ColumnFamilyId, Family>,
    dropped: BTreeSet<ColumnFamilyId>,
    tables: BTreeMap<TableId, Known>,
    removed: BTreeSet<TableId>,
}

impl Remembered {
    /// Reads a manifest as far as possible. Call it for the newest manifest last.
    pub(super) fn read(&mut self, vfs: &dyn Vfs, path: &Path, number: FileId) {
        let Ok(mut reader) = ManifestReader::open(vfs, path, number.0, None, 0) else { return };
        self.identity = self.identity.or(reader.db_uid().map(Identity::of_uid));
        while let Ok(Some(edits)) = reader.next() {
            edits.into_iter().for_each(|edit| self.take(edit));
        }
    }

    /// Takes in one edit.
    fn take(&mut self, edit: VersionEdit) {
        let id = edit.column_family;
        if edit.drop {
            self.families.remove(&id);
            self.dropped.insert(id);
            return;
        }
        let family = self.families.entry(id).or_default();
        if let Some(name) = edit.create {
            family.name = name;
            family.region = edit.region;
            family.comparator =
                edit.comparator.map(|one| one.name().to_owned()).unwrap_or_default();
        }
        family.style = edit.style.or(family.style.take());
        family.value_times = edit.value_times.or(family.value_times);
        family.ranges.extend(edit.range_tombstones);
        for removed in edit.removed {
            self.removed.insert(removed.id);
        }
        // A moved table is removed and added by the same edit.
        for added in edit.added {
            let known = Known {
                global_seqno: added.table.global_seqno,
                values: added.table.placement.values(),
                encoded: added.table.values.encoded,
            };
            self.tables.insert(added.table.id, known);
            self.removed.remove(&added.table.id);
        }
    }

    /// Returns what is known of a table.
    pub(super) fn table(&self, id: TableId) -> Option<Known> {
        self.tables.get(&id).copied()
    }

    /// Returns true if a table was replaced by others.
    pub(super) fn is_replaced(&self, id: TableId) -> bool {
        self.removed.contains(&id)
    }

    /// Returns true if a column family was dropped.
    pub(super) fn is_dropped(&self, id: ColumnFamilyId) -> bool {
        self.dropped.contains(&id)
    }
}
