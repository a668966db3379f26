//! The handle of a column family.

use std::sync::Arc;

use super::families::ColumnFamilyData;

/// A handle of a column family. Cheap to clone; valid until the family is dropped, after which
/// operations with it fail and iterators made before go on.
#[derive(Clone)]
pub struct ColumnFamily {
    pub(crate) data: Arc<ColumnFamilyData>,
}

impl ColumnFamily {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.data.name()
    }

    /// The order of its keys.
    #[must_use]
    pub fn comparator(&self) -> &sateen_control::Comparator {
        self.data.comparator()
    }

    /// Its number; never used again for another.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.data.id().0
    }
}

impl std::fmt::Debug for ColumnFamily {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ColumnFamily").field("name", &self.name()).field("id", &self.id()).finish()
    }
}
