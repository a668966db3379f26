//! The chores about files of tables: finding what is dead in them, or can be, and giving it back.

use std::collections::BTreeSet;
use std::time::Duration;

use sateen_control::compaction::sparse_files;
use sateen_control::{Event, FileId, Instant};
use sateen_store::base::sync::lock;
use sateen_store::files::leases::LeaseLimits;
use sateen_store::vfs::Vfs;

use super::{Chores, OPEN_PAUSE, OPENED_AT_A_TIME};
use crate::health::Health;
use crate::timeline::EventKind;

/// How often it is looked which compaction files hold too little.
const SPARSE_ROUND: Duration = Duration::from_secs(1);

/// They are told again after so long: a table that has left level 0 meanwhile is another matter.
const SPARSE_TOLD_AGAIN: Duration = Duration::from_secs(60);

/// Which files are sparse, as control was told.
#[derive(Clone, Default)]
pub(crate) struct Sparse {
    files: BTreeSet<FileId>,
    told_at: Instant,
    /// When it was last looked, and what the reclaimer had seen by then.
    looked_at: Instant,
    changes: u64,
}

impl Chores {
    /// Looks what some of the files that were there at open hold besides tables.
    pub(crate) fn look_at_some_files(&self) -> bool {
        let now = self.env.now();
        let more = self.tree.reclaimer.look_at_found_files(OPENED_AT_A_TIME, now);
        let next = more.then(|| now + OPEN_PAUSE);
        self.board.again_at(next.or_else(|| self.tree.reclaimer.looks_again_at()));
        more
    }

    /// Gives back some of what no version needs and nobody pins any more.
    pub(crate) fn give_back_dead_tables(&self) {
        let watch = self.env.metrics.timeline.watch();
        let before = self.tree.reclaimer.counters.given_back();
        let could_punch = self.tree.reclaimer.can_punch();
        // A full disk waits for nobody.
        let paced = self.driver.reclaim_rate(self.tree.reclaimer.due_bytes());
        let rate = paced.filter(|_| self.env.health.health() == Health::Ok);
        self.tree.reclaimer.limit_leases(self.lease_limits());
        // A table that cannot be removed now is tried again; it is no reason to refuse writes.
        let next = self.tree.reclaimer.reclaim(self.env.now(), rate).unwrap_or(None);
        self.board.again_at(next);
        let after = self.tree.reclaimer.counters.given_back();
        self.env.metrics.timeline.end_reclaim(watch, (after.0 - before.0, after.1 - before.1));
        if could_punch && !self.tree.reclaimer.can_punch() {
            self.env.metrics.timeline.told(self.env.now(), EventKind::CannotPunch);
        }
    }

    /// What readers elsewhere may keep. On a full disk that is nothing.
    fn lease_limits(&self) -> LeaseLimits {
        let limits = self.env.options.load().lease_limits();
        if self.env.health.health() != Health::Ok {
            return LeaseLimits::NONE;
        }
        if self.tree.reclaimer.leases().0 == 0 {
            return limits;
        }
        let free = self.env.vfs.free_space(&self.env.directory).unwrap_or(u64::MAX);
        LeaseLimits { bytes: limits.bytes.min(free), ..limits }
    }

    /// Tells control which files should go, if that has changed.
    pub(crate) fn report_sparse_files(&self) {
        let now = self.env.now();
        let changes = self.tree.reclaimer.changes();
        let before = lock(&self.board.state).sparse.clone();
        let again = now.since(before.told_at) >= SPARSE_TOLD_AGAIN && !before.files.is_empty();
        if now.since(before.looked_at) < SPARSE_ROUND || (changes == before.changes && !again) {
            return;
        }
        let files = sparse_files(&self.tree.reclaimer.spaces());
        let news = files != before.files || again;
        let told_at = if news { now } else { before.told_at };
        let after = Sparse { changes, looked_at: now, files: files.clone(), told_at };
        lock(&self.board.state).sparse = after;
        if news {
            self.driver.report(now, Event::FilesSparse { files });
        }
    }

    /// Tells control which deletions of ranges all readers see, where that has changed.
    pub(crate) fn report_ranges_seen(&self) {
        let families = self.tree.families();
        let with_ranges = families.values().filter_map(|family| {
            let version = family.super_version().version.clone();
            (!version.range_tombstones().is_empty()).then(|| (family.id(), version))
        });
        let with_ranges: Vec<_> = with_ranges.collect();
        if with_ranges.is_empty() {
            return;
        }
        let oldest_reader = self.writes.snapshot_list().first().copied().unwrap_or_default();
        for (cf, version) in with_ranges {
            let seen = version.range_tombstones().newest(oldest_reader);
            let told = &mut lock(&self.board.state).ranges_seen;
            if let Some(up_to) = seen
                && told.insert(cf, up_to) != Some(up_to)
            {
                self.driver.report(self.env.now(), Event::RangesSeen { cf, up_to });
            }
        }
    }
}
