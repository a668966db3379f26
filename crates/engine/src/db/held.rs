//! Lists what a database holds at one moment and must release once nobody works or reads: pins,
//! leases, spare files, open tables. For tests.

use std::sync::Arc;

use super::Db;
use crate::background::driver::interfere::Interference;
use crate::background::held::Held;

impl Db {
    /// Returns what is held at this moment. Not part of the public API.
    #[doc(hidden)]
    #[must_use]
    pub fn held(&self) -> Held {
        let core = self.core();
        let mut held = core.background.driver.held();
        (held.holds, held.retired_tables) = core.tree.reclaimer.held();
        held.leases = core.tree.reclaimer.leases().0;
        held.spare_files =
            core.background.chores.spare_files.count() + core.writes.spare_logs.count();
        // One reference is the column family's own, and this count takes another.
        let readers = |pinned: Arc<_>| Arc::strong_count(&pinned).saturating_sub(2);
        let families = core.tree.families();
        held.readers = families.values().map(|tree| readers(tree.pin_super_version())).sum();
        held.open_files = core.tree.tables.open_files().into_iter().map(|file| file.0).collect();
        held.open_tables = core.tree.tables.open_tables();
        held
    }

    /// Interferes with the background as `how` says. Returns false if there was nothing to
    /// interfere with. Not part of the public API.
    #[doc(hidden)]
    pub fn interfere(&self, how: Interference) -> bool {
        self.core().background.driver.interfere(how)
    }
}
