//! Iterators that skip the tables which a program excludes.

use std::collections::BTreeSet;
use std::sync::Arc;

use sateen_control::TableId;

use super::super_version::SuperVersion;
use crate::column_family::ColumnFamilyData;
use crate::core::DbCore;
use crate::db::LiveTable;

type Wants = dyn Fn(&LiveTable) -> bool + Send + Sync;

/// Says which tables an iterator reads. It is asked once about each table when the iterator is
/// made. Older values of a key are shown if the newest one is in a table that is passed by.
#[derive(Clone)]
pub struct TableFilter(Arc<Wants>);

impl TableFilter {
    /// A filter that reads the tables for which `wants` returns true.
    pub fn new(wants: impl Fn(&LiveTable) -> bool + Send + Sync + 'static) -> TableFilter {
        TableFilter(Arc::new(wants))
    }

    /// The tables of `pinned` that are not wanted.
    pub(crate) fn unwanted(
        &self,
        core: &DbCore,
        family: &ColumnFamilyData,
        pinned: &SuperVersion,
    ) -> BTreeSet<TableId> {
        let tables = pinned.version.tables();
        let unwanted =
            tables.filter(|(level, _, table)| !(self.0)(&core.live_table(family, *level, table)));
        unwanted.map(|(_, _, table)| table.id).collect()
    }
}

impl std::fmt::Debug for TableFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TableFilter")
    }
}

/// Clones of one filter are equal.
impl PartialEq for TableFilter {
    fn eq(&self, other: &TableFilter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TableFilter {}
