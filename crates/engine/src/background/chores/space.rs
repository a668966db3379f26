//! The chores about the space of table files: finding dead and sparse parts, and reclaiming them.
//!
//! 1. [`Chores::look_at_some_files`] finds what files from before the open hold besides live
//!    tables.
//! 2. [`Chores::report_sparse_files`] tells control which files have few live bytes, so that it
//!    compacts them.
//! 3. [`Chores::report_ranges_seen`] tells control which range tombstones all readers see.
//! 4. [`Chores::give_back_dead_tables`] punches holes and unlinks files, at the rate that control
//!    sets.

use std::collections::BTreeSet;
use std::time::Duration;

use sateen_control::compaction::sparse_files;
use sateen_control::{Event, FileId, Instant, SeqNo};
use sateen_store::base::sync::lock;
use sateen_store::files::leases::LeaseLimits;
use sateen_store::vfs::Vfs;

use super::{Chores, OPEN_PAUSE, OPENED_AT_A_TIME};
use crate::admission::space::SpaceManager;
use crate::health::Health;
use crate::timeline::EventKind;

/// How often sparse files are looked for.
const SPARSE_ROUND: Duration = Duration::from_secs(1);

/// After this time control is told again. A table of a sparse file may have left level 0, and can
/// be compacted then.
const SPARSE_TOLD_AGAIN: Duration = Duration::from_secs(60);

/// The sparse files, as control was told.
#[derive(Clone, Default)]
pub(crate) struct Sparse {
    files: BTreeSet<FileId>,
    told_at: Instant,
    /// When they were last looked for, and the reclaimer's count of changes at that time.
    looked_at: Instant,
    changes: u64,
}

impl Chores {
    /// Looks which parts of some of the files found at open are dead. Returns true if more are
    /// left.
    pub(crate) fn look_at_some_files(&self) -> bool {
        let now = self.env.now();
        let more = self.tree.reclaimer.look_at_found_files(OPENED_AT_A_TIME, now);
        let next = more.then(|| now + OPEN_PAUSE);
        self.board.again_at(next.or_else(|| self.tree.reclaimer.looks_again_at()));
        more
    }

    /// Reclaims some of the dead tables that no reader pins.
    pub(crate) fn give_back_dead_tables(&self) {
        let watch = self.env.metrics.timeline.watch();
        let before = self.tree.reclaimer.counters.given_back();
        let could_punch = self.tree.reclaimer.can_punch();
        // A degraded database reclaims without a limit, because the disk may be full.
        let mut pace = self.driver.reclaim_pace(self.tree.reclaimer.due_cost());
        let options = self.env.options.load();
        let limit = options.space_manager.as_ref().map_or(0, SpaceManager::delete_rate);
        if limit > 0 {
            pace.rate = Some(pace.rate.map_or(limit, |rate| rate.min(limit)));
        }
        pace.rate = pace.rate.filter(|_| self.env.health.health() == Health::Ok);
        self.tree.reclaimer.limit_leases(self.lease_limits());
        // A failed removal is tried again, and is no reason to refuse writes.
        let next = self.tree.reclaimer.reclaim(self.env.now(), pace).unwrap_or(None);
        self.board.again_at(next);
        self.driver.note_removed_value_files();
        let after = self.tree.reclaimer.counters.given_back();
        self.env.metrics.timeline.end_reclaim(watch, (after.0 - before.0, after.1 - before.1));
        if could_punch && !self.tree.reclaimer.can_punch() {
            self.env.metrics.timeline.told(self.env.now(), EventKind::CannotPunch);
        }
    }

    /// Returns the limits on what readers in other processes may keep: nothing if the disk is full.
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

    /// Tells control which files are sparse, if that has changed.
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

    /// Tells control the newest range tombstone of each column family that all readers see, if it
    /// has changed.
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
            let Some(up_to) = version.range_tombstones().newest(oldest_reader) else { continue };
            // Control is told without the lock.
            let before = lock(&self.board.state).ranges_seen.insert(cf, up_to);
            if before != Some(up_to) {
                self.driver.report(self.env.now(), Event::RangesSeen { cf, up_to });
            }
        }
    }

    /// Returns true if a range tombstone is still to be reported, because a snapshot is older.
    pub(crate) fn has_unseen_ranges(&self) -> bool {
        let families = self.tree.families();
        let newest = families.values().filter_map(|family| {
            let version = family.super_version().version.clone();
            Some((family.id(), version.range_tombstones().newest(SeqNo::MAX)?))
        });
        let newest: Vec<_> = newest.collect();
        let seen = &lock(&self.board.state).ranges_seen;
        newest.iter().any(|(cf, newest)| seen.get(cf) != Some(newest))
    }
}
