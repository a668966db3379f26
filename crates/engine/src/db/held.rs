//! What a database holds at one moment beyond what is stored: what must be given back once nobody
//! works or reads any more. For tests that it is.

use std::sync::Arc;

use super::Db;
use crate::background::driver::interfere::Interference;
use crate::background::held::Held;

impl Db {
    /// What is held at this moment. Not part of the interface.
    #[doc(hidden)]
    #[must_use]
    pub fn held(&self) -> Held {
        let core = self.core();
        let mut held = core.background.driver.held();
        (held.holds, held.retired_tables) = core.tree.reclaimer.held();
        held.leases = core.tree.reclaimer.leases().0;
        held.spare_files =
            core.background.chores.spare_files.count() + core.writes.spare_logs.count();
        // One reference is the column family's own, the other is the one that is counted with.
        let readers = |pinned: Arc<_>| Arc::strong_count(&pinned).saturating_sub(2);
        let families = core.tree.families();
        held.readers = families.values().map(|tree| readers(tree.pin_super_version())).sum();
        held.open_files = core.tree.tables.open_files().into_iter().map(|file| file.0).collect();
        held.open_tables = core.tree.tables.open_tables();
        held
    }

    /// Interferes with the background as `how` says. Returns false if there was nothing to do it
    /// to. Not part of the interface.
    #[doc(hidden)]
    pub fn interfere(&self, how: Interference) -> bool {
        self.core().background.driver.interfere(how)
    }
}
