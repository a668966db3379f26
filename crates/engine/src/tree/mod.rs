//! The column families of a database: their versions, their memtables, and the views that readers
//! pin.
//!
//! 1. [`version_set`] appends an edit to the manifest and makes the version that results current.
//! 2. [`families`] replaces the [`super_version`] of the column family, which readers pin.
//! 3. The reclaimer frees the tables that no version needs any more.

pub(crate) mod families;
pub(crate) mod family_state;
pub(crate) mod manifest_follower;
pub(crate) mod super_version;
pub(crate) mod version_set;

use std::sync::Arc;

use arc_swap::ArcSwap;
use families::{ColumnFamilyData, Families};
use sateen_control::ColumnFamilyId;
use sateen_store::base::sync::Mutex;
use sateen_store::block_cache::BlockCache;
use sateen_store::files::reclaim::Reclaimer;
use sateen_store::table::table_cache::TableCache;
use version_set::VersionSet;

use crate::admission::space::UsesSpace;

/// The column families of an open database, their tables, and the caches of these tables.
pub(crate) struct Tree {
    pub(crate) versions: VersionSet,
    pub(crate) families: ArcSwap<Families>,
    /// Held while a column family is created or dropped, and while options change. Never taken by
    /// reads or writes.
    pub(crate) changes: Mutex<()>,
    pub(crate) default_family: Arc<ColumnFamilyData>,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) reclaimer: Reclaimer,
}

impl UsesSpace for Tree {
    fn used(&self) -> (u64, u64) {
        self.reclaimer.used_bytes()
    }
}

impl Tree {
    /// Returns the column families at this moment.
    pub(crate) fn families(&self) -> arc_swap::Guard<Arc<Families>> {
        self.families.load()
    }

    pub(crate) fn family_by_id(&self, id: ColumnFamilyId) -> Option<Arc<ColumnFamilyData>> {
        self.families().by_id(id).cloned()
    }

    /// Returns the name by which clients know the column family of `part`, which may be a region of
    /// it.
    pub(crate) fn name_of(&self, part: &ColumnFamilyData) -> String {
        let whole = self.family_by_id(part.whole());
        whole.as_deref().unwrap_or(part).name().to_owned()
    }
}
