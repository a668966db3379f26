//! Iterators that skip the tables which a program excludes.

use std::sync::Arc;

use crate::live_table::LiveTable;

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

    /// True if the iterator reads `table`.
    pub(crate) fn wants(&self, table: &LiveTable) -> bool {
        (self.0)(table)
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
