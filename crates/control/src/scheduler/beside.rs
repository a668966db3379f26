//! Work beside clients: the rate of reclaiming, the inputs of a compaction, jobs of other
//! processes, and room for the scrub and for copies of backups.

use super::allocator::Allocation;
use super::running::RunningState;
use super::{IoScheduler, Lane, Running};
use crate::arithmetic::{NS_PER_SECOND, per_second, scale, to_i64};
use crate::event::Processors;
use crate::types::{Instant, JobId};

/// Beside clients, dead tables are reclaimed over this time, but at no less than `RECLAIM_MIN`
/// bytes per second. A device that has to discard many blocks at once serves no other request
/// meanwhile.
const RECLAIM_NS: u64 = 5 * NS_PER_SECOND;
/// The same where they take much space.
const RECLAIM_SOON_NS: u64 = NS_PER_SECOND / 2;
const RECLAIM_MIN: u64 = 16 << 20;
/// Beside clients, a compaction may take several tables together if it is done within this time.
const GROUP_NS: u64 = NS_PER_SECOND;

/// Beside clients a backup gets this part of the device's bandwidth, but no less than `COPY_MIN`
/// bytes per second while nothing is urgent.
const COPY_PART: u64 = 8;
const COPY_MIN: u64 = 4 << 20;

/// While clients wait for the device, at most this many steps of compactions run at a time.
const STEPS_BESIDE_CLIENTS_MAX: usize = 2;

/// How fast dead tables are given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReclaimPace {
    /// Bytes per second; `None` without a limit, because no client uses the device.
    pub rate: Option<u64>,
    /// How soon.
    pub haste: ReclaimHaste,
}

/// How soon dead tables are given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReclaimHaste {
    /// They wait until their neighbours are dead, too, and go over five seconds.
    #[default]
    Later,
    /// They wait for nothing and go over half a second, with a pause after each slow step.
    Soon,
    /// As soon, with short pauses.
    Now,
}

/// The present limits on compactions.
pub(super) struct Limits {
    /// Whether no more steps of compactions may run.
    pub(super) no_step: bool,
    /// How long deep work is held because clients wait behind background work; 0 if it is not.
    pub(super) brake_ns: u64,
    /// What deep work must leave in the bucket: the next slice of a job above it.
    pub(super) reserve: u64,
}

impl IoScheduler {
    /// Takes back the grant of a job whose work another process does, or queues a job that is back.
    /// Unknown jobs are ignored.
    pub(crate) fn set_away(&mut self, job: JobId, away: bool) {
        let Some(running) = self.jobs.get(&job).copied() else { return };
        match (running.state, away) {
            (RunningState::Granted(bytes, source), true) => {
                self.settle(&running, bytes, source, 0, 0);
                self.jobs.insert(job, Running { state: RunningState::Away, ..running });
            }
            (RunningState::Waiting(place), true) => {
                self.queue.remove(&self.key(job, &running, place));
                self.jobs.insert(job, Running { state: RunningState::Away, ..running });
            }
            (RunningState::Away, false) => {
                self.begins(running.database);
                self.wait(job, running);
                self.comes_back(job);
            }
            (RunningState::Away, true) | (_, false) => {}
        }
    }

    /// Returns true if another process does the work of a job.
    pub(crate) fn is_away(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(Running::is_away)
    }

    /// Returns true if a job of the database whose own lane is `lane` runs in this process.
    pub(crate) fn works(&self, lane: Lane) -> bool {
        let own = |job: &Running| job.database == self.members.current && job.own_lane == lane;
        self.jobs.values().any(|job| own(job) && job.is_worked_on())
    }

    /// Returns the limits on compactions at `now`.
    pub(super) fn limits(&self, now: Instant) -> Limits {
        let beside = self.monitor.clients_active() && self.may_harm(now);
        // A job of a paused database may keep its grant as long as the pause lasts.
        let jobs = || self.unpaused_jobs().map(|job| (job, self.served_in(job.lane)));
        let steps = jobs().filter(|(job, lane)| *lane != Lane::Flush && job.is_granted()).count();
        let high = jobs().any(|(job, lane)| lane != Lane::Deep && !job.is_away());
        Limits {
            no_step: beside && steps >= STEPS_BESIDE_CLIENTS_MAX,
            brake_ns: if beside { self.device.braked_for_ns(now) } else { 0 },
            reserve: if high { self.slice_bytes(Lane::Level0) } else { 0 },
        }
    }

    /// Returns the pace at which `backlog` bytes of dead tables are reclaimed.
    pub(crate) fn reclaim_pace(&self, backlog: u64, haste: ReclaimHaste) -> ReclaimPace {
        let paced = self.options.bandwidth && self.monitor.clients_active();
        let over_ns = match haste {
            ReclaimHaste::Later => RECLAIM_NS,
            ReclaimHaste::Soon | ReclaimHaste::Now => RECLAIM_SOON_NS,
        };
        ReclaimPace { rate: paced.then(|| per_second(backlog, over_ns).max(RECLAIM_MIN)), haste }
    }

    /// Returns true if a backup may copy now: no client waits behind background work, and no work
    /// is urgent. What it copies is taken from what jobs get.
    pub(crate) fn may_copy(&mut self, now: Instant) -> bool {
        if !self.options.bandwidth {
            return self.has_room(now);
        }
        let late = self.demand.level0_is_late() || self.demand.writers_wait;
        !late && !self.debt_is_urgent() && self.limits(now).brake_ns == 0
    }

    /// Returns true if the scrub may read now: no flush or compaction out of level 0 runs, no job
    /// waits for a grant, and clients leave some bandwidth. Jobs of a paused database do not count.
    pub(crate) fn has_room(&mut self, now: Instant) -> bool {
        let is_urgent = |job: &Running| job.own_lane != Lane::Deep && job.is_worked_on();
        let urgent = self.unpaused_jobs().any(is_urgent);
        let of = |job: &JobId| self.jobs.get(job).map(|job| job.database);
        let mut waiting = self.queue.iter().filter_map(|place| of(&place.job));
        if urgent || waiting.any(|database| self.members.may_move(database)) {
            return false;
        }
        if !self.options.bandwidth {
            return true;
        }
        self.refill(now);
        let limits = self.limits(now);
        let (lacks_read, _) = self.main.lacks(true, limits.reserve);
        limits.brake_ns == 0 && !limits.no_step && !lacks_read
    }

    /// Returns the bytes a second that a backup copies that has no rate of its own: a part of the
    /// slower direction while clients are active, so that few of their reads meet one of its own,
    /// but no more than half of what background work gets; and otherwise all (0).
    pub(crate) fn copy_rate(&self) -> u64 {
        if !self.options.bandwidth || !self.monitor.clients_active() {
            return 0;
        }
        let device = self.device();
        let background = self.allocation.read.min(self.allocation.write);
        (device.slowest() / COPY_PART).min(background / 2).max(COPY_MIN)
    }

    /// Returns how the machine's processors were used lately, and whether others have most of them.
    pub(crate) fn processors(&self) -> (Processors, bool) {
        (self.monitor.processors(), self.monitor.is_short_of_processor())
    }

    /// Charges bytes that the scrub or a backup has moved, so that jobs get less.
    pub(crate) fn moved_beside(&mut self, read: u64, written: u64) {
        if self.options.bandwidth {
            self.main.take(to_i64(read), to_i64(written));
        }
    }

    /// Returns the most bytes that a compaction of several tables may take in, so that it is soon
    /// done beside clients. The bandwidth left for deep work decides that.
    pub(crate) fn group_bytes_max(&self) -> u64 {
        if !self.options.bandwidth || !self.monitor.clients_active() {
            return u64::MAX;
        }
        let Allocation { read, write, floor_read, floor_write, .. } = self.allocation;
        let left = read.saturating_sub(floor_read).min(write.saturating_sub(floor_write));
        scale(left, GROUP_NS, NS_PER_SECOND)
    }
}
