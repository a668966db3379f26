//! The chores about files of tables: finding what is dead in them, and giving it back.

use sateen_control::Instant;

use super::{Chores, OPEN_PAUSE, OPENED_AT_A_TIME};
use crate::background::state::Health;
use crate::core::DbCore;
use crate::sync::lock;
use crate::timeline::EventKind;

impl Chores {
    fn again_at(&self, at: Option<Instant>) {
        let mut state = lock(&self.state);
        state.next_at = state.next_at.into_iter().chain(at).min();
    }
}

impl DbCore {
    /// Looks what some of the files that were there at open hold besides tables.
    pub(super) fn look_at_some_files(&self) -> bool {
        let more = self.reclaimer.look_at_found_files(OPENED_AT_A_TIME);
        self.driver.chores.again_at(more.then(|| self.now() + OPEN_PAUSE));
        more
    }

    /// Gives back some of what no version needs and nobody pins any more.
    pub(super) fn give_back_dead_tables(&self) {
        let watch = self.metrics.timeline.watch();
        let before = self.reclaimer.counters.given_back();
        let could_punch = self.reclaimer.can_punch();
        // A full disk waits for nobody.
        let paced = self.driver.reclaim_rate(self.reclaimer.due_bytes());
        let rate = paced.filter(|_| self.health.health() == Health::Ok);
        // A table that cannot be removed now is tried again; it is no reason to refuse writes.
        let next = self.reclaimer.reclaim(self.now(), rate).unwrap_or(None);
        self.driver.chores.again_at(next);
        let after = self.reclaimer.counters.given_back();
        self.metrics.timeline.end_reclaim(watch, (after.0 - before.0, after.1 - before.1));
        if could_punch && !self.reclaimer.can_punch() {
            self.metrics.timeline.told(self.now(), EventKind::CannotPunch);
        }
    }
}
