//! Who may move bytes next. Every running job waits here for its grants, in the lane of its class.
//! With `bandwidth` on, what there is to give is what clients leave of the device (SILK §5.2.1);
//! otherwise a limiter with RocksDB's behaviour says how much that is.
//!
//! What must stay true: flushes and compactions out of level 0 are never paused, only paced, and
//! never below their floor; every grant is settled by what was really moved, or given back.

mod allocator;
mod beside;
mod bucket;
mod device;
mod drains;
mod monitor;
mod pauses;
mod rate_limiter;
mod running;
mod scrub;
mod slice;

use std::collections::{BTreeMap, BTreeSet};

use crate::arithmetic::{NS_PER_SECOND, scale, to_i64};
use crate::event::{Note, Sample};
use crate::options::{ControlOptions, DeviceProfile, SchedulerOptions};
use crate::types::{Instant, IoClass, JobId};
use allocator::Allocation;
pub(crate) use allocator::Demand;
use bucket::Bucket;
use device::{DeviceModel, without};
pub(crate) use drains::MeasuredDrains;
use monitor::Monitor;
pub(crate) use monitor::{FILL, Smoothed};
use rate_limiter::RateLimiter;
pub(crate) use running::Lane;
use running::{Running, RunningState, Source, thousandths};
pub(crate) use scrub::Scrub;
pub use scrub::ScrubStep;
use slice::Slices;

/// A place in the queue: rank, the share that was had, first come, first served.
type Place = (u8, u64, u64, JobId);

/// What a job ends with: a barrier for its file and one for the manifest.
pub(crate) const BARRIERS: u64 = 2;
/// So much may collect for the next grants.
const BURST_NS: u64 = 10_000_000;
/// While clients use the device, so many steps of compactions are under way at a time.
const STEPS_BESIDE_CLIENTS_MAX: usize = 2;
/// Debt that drains within this time leaves peaks to clients alone; at the second one, deep work
/// gets its whole share in spite of them.
const DEBT_NS_MIN: u64 = 10_000_000_000;
const DEBT_NS_MAX: u64 = 40_000_000_000;
/// From here on more is asked of the device than it has shown.
const DEBT_NS_URGENT: u64 = 20_000_000_000;
/// No more than this part of the device is granted for debt in spite of clients; it collects up to
/// so many slices.
const CREDIT_PART: u64 = 2;
const CREDIT_SLICES_MAX: u64 = 4;
/// How long to wait for the next look at the buckets, at least and at most.
const LOOK_NS_MIN: u64 = 200_000;
const LOOK_NS_MAX: u64 = 10_000_000;

/// See the head of this file.
#[derive(Clone, Debug)]
pub(crate) struct IoScheduler {
    options: SchedulerOptions,
    slices: Slices,
    limiter: RateLimiter,
    device: DeviceModel,
    monitor: Monitor,
    allocation: Allocation,
    main: Bucket,
    floor: Bucket,
    /// Bytes that deep work may move in spite of clients.
    credit: i64,
    demand: Demand,
    last_refill: Instant,
    last_sample: Instant,
    jobs: BTreeMap<JobId, Running>,
    queue: BTreeSet<Place>,
    /// The next place in the queue.
    place: u64,
    notes: Vec<Note>,
}

/// What bounds compactions just now.
struct Limits {
    /// As many steps are under way as may be.
    no_step: bool,
    /// While clients wait behind background work, only what must goes on: for so long.
    brake_ns: u64,
    /// What deep work leaves to what is above it: its next slice.
    reserve: u64,
}

impl IoScheduler {
    pub(crate) fn new(options: &ControlOptions) -> IoScheduler {
        let mut scheduler = IoScheduler {
            options: options.scheduler.clone(),
            slices: Slices::new(options.slice_bytes_max),
            limiter: RateLimiter::new(options.rate_limiter.clone()),
            device: DeviceModel::new(options.scheduler.hint),
            monitor: Monitor::default(),
            allocation: Allocation::default(),
            main: Bucket::default(),
            floor: Bucket::default(),
            credit: 0,
            demand: Demand::default(),
            last_refill: Instant::default(),
            last_sample: Instant::default(),
            jobs: BTreeMap::new(),
            queue: BTreeSet::new(),
            place: 0,
            notes: Vec::new(),
        };
        scheduler.allocation = scheduler.due();
        scheduler
    }

    pub(crate) fn set_options(&mut self, options: &ControlOptions) {
        self.limiter.set_options(options.rate_limiter.clone());
        self.slices.set_bytes_max(options.slice_bytes_max);
        // What was learned outlives a change of what was hinted.
        self.options = options.scheduler.clone();
        self.allocation = self.due();
        if !self.options.bandwidth {
            // Nobody looks for the end of a peak any more.
            self.credit = 0;
            self.pause_for_peak(false);
        } else {
            self.note_allocation();
        }
        self.queue = self
            .jobs
            .iter()
            .filter_map(|(job, running)| match running.state {
                RunningState::Waiting(place) => Some(self.key(*job, running, place)),
                RunningState::Granted(..) => None,
            })
            .collect();
    }

    /// A job begins to wait for its first grant. `score`: how far its level is over its target.
    pub(crate) fn add(&mut self, job: JobId, class: IoClass, score: f64) {
        // A newcomer has no claim on what others had before.
        let deep = self.jobs.values().filter(|job| job.lane == Lane::Deep);
        let running = Running {
            lane: Lane::of(class),
            own_lane: Lane::of(class),
            urgency: thousandths(score).max(1),
            state: RunningState::Waiting(0),
            paused: None,
            read: 0,
            written: 0,
            share: deep.map(|job| job.share).min().unwrap_or(0),
        };
        self.wait(job, running);
    }

    /// A job has used its grant and waits for the next; its step took a processor so long. Unknown
    /// jobs are ignored.
    pub(crate) fn stepped(&mut self, job: JobId, read: u64, written: u64, cpu_ns: u64) {
        let Some(mut running) = self.jobs.get(&job).copied() else { return };
        let before = running.moved();
        running.read = running.read.saturating_add(read);
        running.written = running.written.saturating_add(written);
        let moved = running.moved() - before;
        running.share = running.share.saturating_add(scale(moved, 1000, running.urgency));
        match running.state {
            RunningState::Granted(bytes, source) => {
                self.slices.observe(running.lane, bytes, cpu_ns);
                self.settle(&running, bytes, source, read, written);
                self.wait(job, running);
            }
            RunningState::Waiting(_) => {
                // Its last step, reported with its end, after the grant was settled already.
                self.settle(&running, 0, self.source(), read, written);
            }
        }
    }

    /// A job is over: what it was granted and did not use is given back.
    pub(crate) fn remove(&mut self, job: JobId) {
        let Some(running) = self.jobs.remove(&job) else { return };
        match running.state {
            RunningState::Waiting(place) => {
                self.queue.remove(&self.key(job, &running, place));
            }
            RunningState::Granted(bytes, source) => self.settle(&running, bytes, source, 0, 0),
        }
    }

    /// The next grant, if somebody waits and there is something to give.
    pub(crate) fn grant(&mut self, now: Instant) -> Option<(JobId, u64)> {
        if self.options.bandwidth { self.grant_leftover(now) } else { self.grant_limited(now) }
    }

    /// When to ask for a grant again although nothing happens.
    pub(crate) fn next_grant_at(&self) -> Option<Instant> {
        if !self.options.bandwidth {
            self.queue.first()?;
            return self.limiter.next_refill();
        }
        let now = self.last_refill;
        let Allocation { read, write, floor_read, floor_write, .. } = self.allocation;
        let limits = self.limits(now);
        let wait = |place: &Place| {
            let lane = self.jobs.get(&place.3).filter(|job| job.paused.is_none())?.lane;
            // A step that ends is an event of its own.
            if lane != Lane::Flush && limits.no_step {
                return None;
            }
            let reads = lane != Lane::Flush;
            let reserve = if lane == Lane::Deep { limits.reserve } else { 0 };
            let main = self.main.wait_ns((read, write), reads, reserve);
            let main = if reads { main.max(limits.brake_ns) } else { main };
            let floor = self.floor.wait_ns((floor_read, floor_write), reads, 0);
            Some(if lane == Lane::Deep { main } else { main.min(floor) })
        };
        let wait_ns = self.queue.iter().filter_map(wait).min()?;
        Some(Instant(now.0 + wait_ns.clamp(LOOK_NS_MIN, LOOK_NS_MAX)))
    }

    /// How many jobs of `lane` run, wherever they are served; paused ones do not.
    pub(crate) fn running(&self, lane: Lane) -> usize {
        let runs = |job: &&Running| job.own_lane == lane && !job.is_preempted();
        self.jobs.values().filter(runs).count()
    }

    /// The limit in force; `None`: unlimited.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        if self.options.bandwidth {
            return Some(self.allocation.write);
        }
        self.limiter.bytes_per_second()
    }

    /// What is believed of the device.
    pub(crate) fn device(&self) -> DeviceProfile {
        match self.options.device_bytes_per_second {
            Some(bytes) => {
                let bytes = bytes.max(1);
                let learned = self.device.profile();
                DeviceProfile {
                    read_bytes_per_second: bytes,
                    write_bytes_per_second: bytes,
                    ..learned
                }
            }
            None => self.device.profile(),
        }
    }

    /// What a job waits for its barriers at worst: one of them as long as the longest lately.
    pub(crate) fn barriers_ns(&self) -> u64 {
        let others = self.device().barrier_ns.saturating_mul(BARRIERS - 1);
        self.device.barrier_worst_ns().saturating_add(others)
    }

    /// Bytes a second that clients write into memtables.
    pub(crate) fn fill(&self) -> u64 {
        self.monitor.fill()
    }

    /// How long deep work would take to get rid of its debt with what it got lately.
    pub(crate) fn debt_ns(&self) -> u64 {
        self.drain_ns(self.demand.debt)
    }

    /// The same for what is more than may wait.
    pub(crate) fn overdue_ns(&self) -> u64 {
        self.drain_ns(self.demand.debt.saturating_sub(self.demand.debt_tolerated))
    }

    fn drain_ns(&self, debt: u64) -> u64 {
        let device = self.device().slowest();
        let rate = if self.options.bandwidth {
            self.allocation.read.min(self.allocation.write).max(device / 3)
        } else {
            self.limiter.bytes_per_second().unwrap_or(u64::MAX).min(device)
        };
        scale(debt, NS_PER_SECOND, rate)
    }

    /// What has happened: learns, and allocates anew if it matters. Returns the time since the last
    /// sample in nanoseconds, at least 1.
    pub(crate) fn sample(&mut self, now: Instant, sample: &Sample) -> u64 {
        let over_ns = now.0.saturating_sub(self.last_sample.0).max(1);
        self.last_sample = now;
        self.monitor.observe(now, sample);
        if !self.options.bandwidth {
            return over_ns;
        }
        self.device.observe(now, over_ns, sample);
        self.refill(now);
        let due = self.due();
        if due.is_news(&self.allocation, self.device(), &self.options) {
            self.allocation = due;
            self.note_allocation();
        } else {
            let Allocation { client, read, write, .. } = self.allocation;
            self.allocation = Allocation { client, read, write, ..due };
        }
        let earns = self.earn_credit(sample.user_bytes, over_ns);
        self.note_peaks(earns);
        over_ns
    }

    /// Bytes that a job has moved: read or written, whichever is more.
    pub(crate) fn moved(&self, job: JobId) -> u64 {
        self.jobs.get(&job).map_or(0, Running::moved)
    }

    /// Background work has this to do now.
    pub(crate) fn set_demand(&mut self, demand: Demand) {
        self.demand = demand;
    }

    /// What observers have not heard yet.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    // ---- the limiter ----------------------------------------------------------------------------

    fn grant_limited(&mut self, now: Instant) -> Option<(JobId, u64)> {
        self.queue.first()?;
        self.limiter.refill(now);
        let waiting = || self.queue.iter().filter(|place| !self.is_paused(place.3));
        let next = if self.limiter.is_reversed() {
            // The lowest rank first, but still first come, first served within it.
            let rank = waiting().next_back()?.0;
            *waiting().find(|place| place.0 == rank)?
        } else {
            *waiting().next()?
        };
        let bytes = self.limiter.take(self.slices.bytes_max())?;
        self.give(next, bytes, Source::Limiter);
        Some((next.3, bytes))
    }

    // ---- what clients leave ---------------------------------------------------------------------

    fn grant_leftover(&mut self, now: Instant) -> Option<(JobId, u64)> {
        self.queue.first()?;
        self.refill(now);
        let limits = self.limits(now);
        let braked = limits.brake_ns > 0;
        let mut found = None;
        let mut lacking = (false, false);
        for place in &self.queue {
            let Some(job) = self.jobs.get(&place.3) else { continue };
            if job.paused.is_some() || job.lane != Lane::Flush && limits.no_step {
                continue;
            }
            // Flushes read nothing.
            let reads = job.lane != Lane::Flush;
            let reserve = if job.lane == Lane::Deep { limits.reserve } else { 0 };
            let short = self.main.lacks(reads, reserve);
            let source = match (short, job.lane) {
                (_, Lane::Deep) if braked => None,
                ((false, false), lane) if !braked || lane == Lane::Flush => Some(Source::Main),
                _ if job.lane != Lane::Deep && self.floor.lacks(reads, 0) == (false, false) => {
                    Some(Source::Floor)
                }
                // Not to deep work alone, which would leave level 0 its floor.
                _ => (self.credit > 0).then_some(Source::Credit),
            };
            if let Some(source) = source {
                found = Some((*place, source));
                break;
            }
            lacking = (lacking.0 || short.0, lacking.1 || short.1);
        }
        // Where it is held back for its own pace nobody asks more of the device.
        let paced = self.allocation.paced;
        let late = self.demand.level0_late || self.overdue_ns() >= DEBT_NS_URGENT;
        let urgent = late || !self.monitor.clients_active();
        self.device.wanted(lacking.0 && !paced.0, lacking.1 && !paced.1, urgent);
        let (place, source) = found?;
        let lane = self.jobs.get(&place.3)?.lane;
        let slice = self.slice_bytes(lane);
        self.give(place, slice, source);
        Some((place.3, slice))
    }

    fn limits(&self, now: Instant) -> Limits {
        let beside = self.monitor.clients_active();
        let steps = self.jobs.values().filter(|j| j.lane != Lane::Flush && j.is_granted()).count();
        let high = self.jobs.values().any(|job| job.lane != Lane::Deep);
        Limits {
            no_step: beside && steps >= STEPS_BESIDE_CLIENTS_MAX,
            brake_ns: if beside { self.device.braked_for_ns(now) } else { 0 },
            reserve: if high { self.slice_bytes(Lane::Level0) } else { 0 },
        }
    }

    fn slice_bytes(&self, lane: Lane) -> u64 {
        let (read, write) = match self.options.device_bytes_per_second {
            Some(bytes) => (bytes, bytes),
            None => self.device.usable(0),
        };
        self.slices.bytes(lane, read.min(write), self.monitor.clients_active())
    }

    fn refill(&mut self, now: Instant) {
        let over_ns = now.0.saturating_sub(self.last_refill.0);
        self.last_refill = now;
        let slice = self.slice_bytes(Lane::Flush).max(self.slice_bytes(Lane::Level0));
        let burst = |rate: u64| scale(rate, BURST_NS, NS_PER_SECOND).max(2 * slice);
        let Allocation { read, write, floor_read, floor_write, .. } = self.allocation;
        self.main.refill(over_ns, (read, burst(read)), (write, burst(write)));
        self.floor.refill(over_ns, (floor_read, 2 * slice), (floor_write, 2 * slice));
    }

    fn due(&self) -> Allocation {
        let headroom = self.options.headroom;
        let usable = match self.options.device_bytes_per_second {
            Some(_) => {
                let device = self.device();
                let usable = |bandwidth| without(headroom, bandwidth);
                (usable(device.read_bytes_per_second), usable(device.write_bytes_per_second))
            }
            None => self.device.usable(headroom),
        };
        let barrier_ns = self.device().barrier_ns;
        Allocation::due(&self.options, usable, barrier_ns, &self.monitor, self.demand)
    }

    /// Each byte that clients write funds its share of deep work, the more of it the longer that
    /// would take otherwise, so that a long peak shifts deep work but never calls it off.
    /// Says whether it did.
    fn earn_credit(&mut self, user_bytes: u64, over_ns: u64) -> bool {
        if !self.options.debt_floor {
            self.credit = 0;
            return false;
        }
        let late = self.overdue_ns().saturating_sub(DEBT_NS_MIN).min(DEBT_NS_MAX - DEBT_NS_MIN);
        let share = scale(user_bytes, late, DEBT_NS_MAX - DEBT_NS_MIN);
        let most = scale(self.device().slowest() / CREDIT_PART, over_ns, NS_PER_SECOND);
        let due = share.saturating_mul(self.monitor.deep_amplification());
        let earned = due.min(most);
        let most = to_i64(self.slices.bytes_max().saturating_mul(CREDIT_SLICES_MAX));
        self.credit = self.credit.saturating_add(to_i64(earned)).min(most);
        earned > 0
    }

    fn note_allocation(&mut self) {
        let Allocation { client, read, write, .. } = self.allocation;
        self.notes.push(Note::Bandwidth { client, read, write });
    }

    // ---- both -----------------------------------------------------------------------------------

    fn source(&self) -> Source {
        if self.options.bandwidth { Source::Main } else { Source::Limiter }
    }

    fn give(&mut self, place: Place, bytes: u64, source: Source) {
        self.queue.remove(&place);
        let Some(running) = self.jobs.get_mut(&place.3) else { return };
        running.state = RunningState::Granted(bytes, source);
        let reads = running.lane != Lane::Flush;
        let bytes = to_i64(bytes);
        if source != Source::Limiter {
            self.charge(source, if reads { bytes } else { 0 }, bytes);
        }
    }

    /// What is moved is gone from what clients leave, whoever was to have it in spite of them.
    fn charge(&mut self, source: Source, read: i64, written: i64) {
        match source {
            Source::Floor => self.floor.take(read, written),
            Source::Credit => self.credit -= read.max(written),
            Source::Main | Source::Limiter => {}
        }
        self.main.take(read, written);
    }

    /// A grant of `granted` bytes has been used: `read` and `written` bytes were moved.
    fn settle(&mut self, job: &Running, granted: u64, source: Source, read: u64, written: u64) {
        if source == Source::Limiter {
            return self.limiter.settle(granted, read, written);
        }
        let granted_read = if job.lane == Lane::Flush { 0 } else { granted };
        let more_read = to_i64(read) - to_i64(granted_read);
        self.charge(source, more_read, to_i64(written) - to_i64(granted));
    }

    fn wait(&mut self, job: JobId, running: Running) {
        self.place += 1;
        let running = Running { state: RunningState::Waiting(self.place), ..running };
        self.queue.insert(self.key(job, &running, self.place));
        self.jobs.insert(job, running);
    }

    fn key(&self, job: JobId, running: &Running, place: u64) -> Place {
        let rank = match running.lane {
            Lane::Flush => 0,
            Lane::Level0 => 1,
            Lane::Deep => 1 + u8::from(self.options.priority),
        };
        let deep = self.options.priority && running.lane == Lane::Deep;
        (rank, if deep { running.share } else { 0 }, place, job)
    }
}
