//! Dead values in value files, which are punched while other values of the file are live.
//!
//! 1. A compaction says which values its inputs had and its outputs have not
//!    ([`Reclaimer::expect_dead_values`]).
//! 2. When all inputs are buried, and no zombie refers to the file, `bury_values` marks the values
//!    as dead. `space.rs` frees the pages that have no other ones.
//!
//! What must stay true: a compaction passes places on to its outputs. So a dead value stays while
//! any pinned table refers to its file: that table may be older than the one that had it last.

use std::collections::{BTreeMap, BTreeSet};

use sateen_control::{FileId, Instant, TableId};

use super::{ReclaimState, Reclaimer};
use crate::base::sync::lock;
use crate::files::space::{DEAD_WAIT, Extents};

/// Largest number of removed value files that are kept for the one who asks.
const REMOVED_MAX: usize = 4096;

/// Values of value files that are dead once no table has them any more.
pub(super) struct DyingValues {
    /// The tables that are not buried yet.
    pub(super) tables: BTreeSet<TableId>,
    values: BTreeMap<FileId, Extents>,
}

impl Reclaimer {
    /// Declares that no live table but `tables` has `values`. These tables leave the tree with the
    /// edit that is installed next. Call it before, because they may be buried at once.
    pub fn expect_dead_values(&self, tables: BTreeSet<TableId>, values: BTreeMap<FileId, Extents>) {
        if !tables.is_empty() && !values.is_empty() {
            lock(&self.state).dying_values.push(DyingValues { tables, values });
        }
    }

    /// Takes back what was declared about `tables`: they stay in the tree.
    pub fn forget_dead_values(&self, tables: &BTreeSet<TableId>) {
        lock(&self.state).dying_values.retain(|dying| dying.tables.is_disjoint(tables));
    }

    /// Returns the value files that were removed since the last call, oldest first. If nobody asks,
    /// the first 4096 are kept.
    pub fn take_removed_value_files(&self) -> Vec<FileId> {
        std::mem::take(&mut lock(&self.state).removed_value_files)
    }

    /// Accounts for the values of tables that are buried, in files to which no zombie refers.
    pub(super) fn bury_values(&self, state: &mut ReclaimState, now: Instant) {
        if state.dying_values.iter().all(|dying| !dying.tables.is_empty()) {
            return;
        }
        let refs = state.zombies.iter().flat_map(|zombie| &zombie.table.values.files);
        let referred: BTreeSet<FileId> = refs.map(|one| one.file).collect();
        for dying in state.dying_values.iter_mut().filter(|dying| dying.tables.is_empty()) {
            let values = std::mem::take(&mut dying.values);
            let (kept, dead) = values.into_iter().partition(|(file, _)| referred.contains(file));
            dying.values = kept;
            let dead: BTreeMap<FileId, Extents> = dead;
            for (file, ranges) in dead {
                state.accounts.add_dead_values(file, &ranges, now + DEAD_WAIT, self.can_punch());
            }
        }
        state.dying_values.retain(|dying| !dying.values.is_empty());
    }
}

impl ReclaimState {
    /// Keeps the names of removed value files for the one who asks.
    pub(super) fn note_removed(&mut self, files: Vec<FileId>) {
        let room = REMOVED_MAX.saturating_sub(self.removed_value_files.len());
        self.removed_value_files.extend(files.into_iter().take(room));
    }
}
