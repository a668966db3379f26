//! The I/O scheduler: it decides which job may move bytes next, and how many.
//!
//! 1. [`IoScheduler::add`] puts a job into the queue, which is ordered by lane, then by arrival;
//!    deep jobs by their [turn](turns) (`key`).
//! 2. [`IoScheduler::sample`] takes in a sample. It updates the monitor and the device model, and
//!    the allocation if that changes enough (`due`). It pauses or resumes deep jobs at peaks of
//!    clients.
//! 3. [`IoScheduler::grant`] returns the next grant.
//!    - With `bandwidth` on, it gives what clients leave of the device (SILK §5.2.1): from the main
//!      bucket, from the floor of flushes and level 0, or from the credit of deep work
//!      (`grant_leftover`), below the limit of the rate limiter if there is one.
//!    - Otherwise the rate limiter, which has RocksDB's behaviour, decides (`grant_limited`).
//! 4. [`IoScheduler::stepped`] settles the grant by the bytes that were really moved, and queues
//!    the job again.
//! 5. [`IoScheduler::remove`] gives back an unused grant at the end of a job.
//!
//! Without priorities all jobs are equals there ([`IoScheduler::served_in`]): each waits for the
//! main bucket, in the order of arrival. The rate limiter still serves flushes first, as RocksDB's
//! does.
//!
//! Several databases may share it ([`members`]).
//!
//! What must stay true: flushes and compactions out of level 0 are never paused, only paced, and
//! with priorities never below their floor. Every grant is settled or given back.

mod allocator;
mod beside;
mod bucket;
mod device;
mod drains;
mod members;
mod monitor;
mod pace;
mod pauses;
mod phases;
mod rate_limiter;
mod running;
mod scrub;
mod slice;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use crate::arithmetic::{NS_PER_SECOND, scale, to_i64};
use crate::event::{Note, Sample};
use crate::options::{ControlOptions, DeviceProfile, SchedulerOptions};
use crate::types::{DatabaseId, Instant, IoClass, JobId};
use allocator::Allocation;
pub(crate) use allocator::Demand;
pub use beside::{ReclaimHaste, ReclaimPace};
use bucket::Bucket;
pub(crate) use device::is_background;
use device::{DeviceModel, without};
pub(crate) use drains::MeasuredDrains;
pub(crate) use members::Claim;
use members::Members;
use monitor::Monitor;
pub(crate) use monitor::{FILL, LONG, Smoothed};
pub use pace::{Pace, PaceStep};
use phases::Phases;
use rate_limiter::RateLimiter;
pub(crate) use running::Lane;
pub(crate) use running::thousandths;
use running::{Place, Running, RunningState, Source};
pub(crate) use scrub::Scrub;
pub use scrub::ScrubStep;
use slice::Slices;
use turns::{Turns, share, turn};

/// Number of barriers at the end of a job: one for its file and one for the manifest.
pub(crate) const BARRIERS: u64 = 2;
/// The time over which unused bytes collect for the next grants.
const BURST_NS: u64 = 10_000_000;
/// A debt that drains within `DEBT_NS_MIN` earns no credit, so peaks belong to clients alone. From
/// `DEBT_NS_MAX` on deep work earns its whole share in spite of them.
const DEBT_NS_MIN: u64 = 10_000_000_000;
const DEBT_NS_MAX: u64 = 40_000_000_000;
/// Bytes a second of each direction while no client waits for the device.
const UNLIMITED: u64 = 1 << 40;
/// From here on more may be asked of the device than it has shown.
const DEBT_NS_URGENT: u64 = 20_000_000_000;
/// At most this part of the device is granted as credit for debt, and at most `CREDIT_SLICES_MAX`
/// slices collect.
const CREDIT_PART: u64 = 2;
const CREDIT_SLICES_MAX: u64 = 4;
/// The debt that valleys leave: it falls at once, and is forgotten within a minute.
const DEBT_AT_REST: Smoothed = Smoothed::new(60 * NS_PER_SECOND, 100_000_000);
/// The shortest and the longest pause before the next look at the buckets.
const LOOK_NS_MIN: u64 = 200_000;
const LOOK_NS_MAX: u64 = 10_000_000;

/// The I/O scheduler.
#[derive(Clone, Debug)]
pub(crate) struct IoScheduler {
    options: SchedulerOptions,
    slices: Slices,
    limiter: RateLimiter,
    device: DeviceModel,
    monitor: Monitor,
    phases: Phases,
    /// The debt that valleys leave.
    debt_at_rest: Smoothed,
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
    /// Number of arrivals so far.
    place: u64,
    turns: Turns,
    members: Members,
    last_job: JobId,
}

impl IoScheduler {
    pub(crate) fn new(options: &ControlOptions) -> IoScheduler {
        let mut scheduler = IoScheduler {
            options: options.scheduler.clone(),
            slices: Slices::new(options.slice_bytes_max),
            limiter: RateLimiter::new(options.rate_limiter.clone()),
            device: DeviceModel::new(options.scheduler.hint),
            monitor: Monitor::default(),
            phases: Phases::default(),
            debt_at_rest: DEBT_AT_REST,
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
            turns: Turns::default(),
            members: Members::default(),
            last_job: JobId(0),
        };
        scheduler.allocation = scheduler.due();
        scheduler
    }

    pub(crate) fn set_options(&mut self, options: &ControlOptions) {
        self.limiter.set_options(options.rate_limiter.clone());
        self.slices.set_bytes_max(options.slice_bytes_max);
        // What was measured outlives a change of the hint.
        self.options = options.scheduler.clone();
        self.allocation = self.due();
        if !self.options.bandwidth {
            // Without samples no peak would end.
            self.credit = 0;
            self.pause_for_peak(false);
        } else {
            self.note_allocation();
        }
        self.queue_again();
    }

    /// Queues a new job for its first grant. `score` is the size of its level relative to the
    /// target.
    pub(crate) fn add(&mut self, job: JobId, class: IoClass, score: f64) {
        let database = self.members.current;
        self.begins(database);
        let running = Running {
            database,
            lane: Lane::of(class),
            own_lane: Lane::of(class),
            urgency: thousandths(score).max(1),
            state: RunningState::Waiting(0),
            paused: None,
            read: 0,
            written: 0,
            share: self.turns.first_share(database, self.jobs.values().copied()),
        };
        self.wait(job, running);
    }

    /// Settles the grant of a job, and queues it for the next one. `cpu_ns` is the CPU time of its
    /// step. Unknown jobs are ignored.
    pub(crate) fn stepped(&mut self, job: JobId, read: u64, written: u64, cpu_ns: u64) {
        let Some(mut running) = self.jobs.get(&job).copied() else { return };
        let before = running.moved();
        running.read = running.read.saturating_add(read);
        running.written = running.written.saturating_add(written);
        let moved = running.moved() - before;
        running.share = running.share.saturating_add(share(&running, moved));
        self.turns.moved(&running);
        match running.state {
            RunningState::Granted(bytes, source) => {
                self.slices.observe(running.lane, bytes, cpu_ns);
                self.settle(&running, bytes, source, read, written);
                self.wait(job, running);
                self.has_moved(running.database, moved);
            }
            RunningState::Waiting(_) | RunningState::Away => {
                // The last step is reported together with the end, after its grant was settled.
                self.settle(&running, 0, self.source(), read, written);
                self.has_moved(running.database, moved);
            }
        }
    }

    /// Removes a job at its end, and gives back its unused grant.
    pub(crate) fn remove(&mut self, job: JobId) {
        let Some(running) = self.jobs.remove(&job) else { return };
        match running.state {
            RunningState::Waiting(place) => {
                self.queue.remove(&self.key(job, &running, place));
            }
            RunningState::Granted(bytes, source) => self.settle(&running, bytes, source, 0, 0),
            RunningState::Away => {}
        }
        self.turns.ended(running.database, &self.jobs);
        self.call_next();
    }

    /// Returns the next grant, if a job waits and there are bytes to give.
    pub(crate) fn grant(&mut self, now: Instant) -> Option<(JobId, u64)> {
        if self.options.bandwidth { self.grant_leftover(now) } else { self.grant_limited(now) }
    }

    /// Returns when to ask for a grant again if nothing else happens.
    pub(crate) fn next_grant_at(&self) -> Option<Instant> {
        if !self.options.bandwidth {
            self.queue.first()?;
            let ceiling = self.queue.iter().filter_map(|place| self.jobs.get(&place.job));
            let ceiling = ceiling.filter_map(|job| self.members.free_at(job.database)).min();
            return self.limiter.next_refill().into_iter().chain(ceiling).min();
        }
        let now = self.last_refill;
        let Allocation { read, write, floor_read, floor_write, .. } = self.allocation;
        let limits = self.limits(now);
        let refill_ns = self.limiter.next_refill().map_or(0, |at| at.0.saturating_sub(now.0));
        let wait = |place: &Place| {
            let job = self.jobs.get(&place.job).filter(|job| job.paused.is_none())?;
            let lane = job.lane;
            // Those of other databases look for themselves.
            let held_ns = self.members.wait_ns(job.database)?;
            let held_ns = if self.is_limited(lane) { held_ns.max(refill_ns) } else { held_ns };
            let served_in = self.served_in(lane);
            // The end of a step is an event of its own.
            if served_in != Lane::Flush && limits.no_step {
                return None;
            }
            let reads = lane != Lane::Flush;
            let reserve = if served_in == Lane::Deep { limits.reserve } else { 0 };
            let main = self.main.wait_ns((read, write), reads, reserve);
            let braked = served_in != Lane::Flush;
            let main = if braked { main.max(limits.brake_ns) } else { main };
            let floor = self.floor.wait_ns((floor_read, floor_write), reads, 0);
            Some(held_ns.max(if served_in == Lane::Deep { main } else { main.min(floor) }))
        };
        let wait_ns = self.queue.iter().filter_map(wait).min()?;
        Some(Instant(now.0 + wait_ns.clamp(LOOK_NS_MIN, LOOK_NS_MAX)))
    }

    /// Returns the number of running jobs of the database whose own lane is `lane`. Paused jobs do
    /// not count.
    pub(crate) fn running(&self, lane: Lane) -> usize {
        let own = |job: &&Running| job.database == self.members.current;
        let runs = |job: &&Running| job.own_lane == lane && !job.is_preempted();
        self.jobs.values().filter(own).filter(runs).count()
    }

    /// Returns the number of a new job.
    pub(crate) fn next_job(&mut self) -> JobId {
        self.last_job.0 += 1;
        self.last_job
    }

    /// Returns the current limit in bytes per second; `None` if there is none.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        let left = Some(self.allocation.write).filter(|rate| *rate < UNLIMITED / 2);
        let left = left.filter(|_| self.options.bandwidth);
        left.into_iter().chain(self.limiter.bytes_per_second()).min()
    }

    /// Returns the estimate of the device, or the bandwidth that the options set.
    pub(crate) fn device(&self) -> DeviceProfile {
        match self.options.device_bandwidth {
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

    /// Returns the longest time that a job waits for its barriers: one as long as the longest one
    /// lately, the others as long as usual.
    pub(crate) fn barriers_ns(&self) -> u64 {
        let others = self.device().barrier_ns.saturating_mul(BARRIERS - 1);
        self.device.barrier_worst_ns().saturating_add(others)
    }

    /// Returns the rate at which clients write into memtables, in bytes per second.
    pub(crate) fn fill(&self) -> u64 {
        self.monitor.fill()
    }

    /// Returns how long deep work would take to work off its debt at its current bandwidth, in
    /// nanoseconds.
    pub(crate) fn debt_ns(&self) -> u64 {
        self.drain_ns(self.demand.debt)
    }

    /// Like [`Self::debt_ns`], for the debt beyond what is tolerated.
    pub(crate) fn overdue_ns(&self) -> u64 {
        self.drain_ns(self.demand.debt.saturating_sub(self.demand.debt_tolerated))
    }

    /// Returns true if deep work has so much to do that it should take all that it can get.
    pub(crate) fn debt_is_urgent(&self) -> bool {
        self.overdue_ns() >= DEBT_NS_URGENT
    }

    fn drain_ns(&self, debt: u64) -> u64 {
        let device = self.device().slowest();
        let rate = if self.options.bandwidth {
            self.allocation.read.min(self.allocation.write).min(device).max(device / 3)
        } else {
            device
        };
        scale(debt, NS_PER_SECOND, rate.min(self.limiter.compacted_per_second()))
    }

    /// Takes in a sample, and changes the allocation if that is worth it. Returns the time since
    /// the last sample in nanoseconds, at least 1.
    pub(crate) fn sample(&mut self, now: Instant, sample: &Sample) -> u64 {
        let over_ns = now.0.saturating_sub(self.last_sample.0).max(1);
        self.last_sample = now;
        self.monitor.observe(now, sample);
        if !self.options.bandwidth {
            return over_ns;
        }
        let left = (self.monitor.client_read(), self.monitor.client_write());
        self.device.observe(now, over_ns, sample, left);
        let read = sample.classes[IoClass::Client.index()].read_bytes;
        self.debt_at_rest.follow(self.demand.debt, over_ns);
        self.phases.observe(now, sample.user_bytes.saturating_add(read), over_ns);
        self.refill(now);
        self.members.look_for_greedy(now);
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

    /// Returns the bytes that a job has moved: read or written, whichever is more.
    pub(crate) fn moved(&self, job: JobId) -> u64 {
        self.jobs.get(&job).map_or(0, Running::moved)
    }

    /// Sets the work that background jobs have to do.
    pub(crate) fn set_demand(&mut self, demand: Demand) {
        self.demand = self.members.demand_of_all(demand);
    }

    // ---- what clients leave ---------------------------------------------------------------------

    /// Grants from what clients leave: to the first job in the queue that some source can serve.
    fn grant_leftover(&mut self, now: Instant) -> Option<(JobId, u64)> {
        self.queue.first()?;
        self.refill(now);
        self.limiter.refill(now);
        let limits = self.limits(now);
        let braked = limits.brake_ns > 0;
        let mut found = None;
        let (mut lacking, mut limited) = ((false, false), false);
        for place in self.in_order() {
            let Some(job) = self.jobs.get(&place.job) else { continue };
            let lane = self.served_in(job.lane);
            if self.is_held(place.job) || lane != Lane::Flush && limits.no_step {
                continue;
            }
            if self.is_limited(job.lane) {
                limited = true;
                continue;
            }
            // Flushes read nothing.
            let reads = job.lane != Lane::Flush;
            let reserve = if lane == Lane::Deep { limits.reserve } else { 0 };
            let short = self.main.lacks(reads, reserve);
            let source = match (short, lane) {
                (_, Lane::Deep) if braked => None,
                ((false, false), lane) if !braked || lane == Lane::Flush => Some(Source::Main),
                _ if lane != Lane::Deep && self.floor.lacks(reads, 0) == (false, false) => {
                    Some(Source::Floor)
                }
                // Level 0 may use credit, too. Otherwise deep work would use it up and leave level
                // 0 only its floor.
                _ => self.may_use_credit(job.database).then_some(Source::Credit),
            };
            if let Some(source) = source {
                found = Some((*place, source));
                break;
            }
            lacking = (lacking.0 || short.0, lacking.1 || short.1);
        }
        // Work that its own pace holds back asks no more of the device.
        let paced = self.paced();
        let late = self.demand.level0_is_late() || self.debt_is_urgent();
        let urgent = late || !self.monitor.clients_active();
        self.device.wanted(lacking.0 && !paced.0, lacking.1 && !paced.1, urgent);
        if limited {
            self.limiter.note_drained();
        }
        let (place, source) = found?;
        if !self.is_served_now(place.job) {
            return None;
        }
        let lane = self.jobs.get(&place.job)?.lane;
        let bytes = self.limiter.take(lane, self.slice_bytes(lane))?;
        self.give(place, bytes, source);
        Some((place.job, bytes))
    }

    /// Returns the bytes of the next slice in `lane`.
    fn slice_bytes(&self, lane: Lane) -> u64 {
        let (read, write) = match self.options.device_bandwidth {
            Some(bytes) => (bytes, bytes),
            None if !self.may_harm(self.last_sample) => (UNLIMITED, UNLIMITED),
            None => self.device.usable(0),
        };
        self.slices.bytes(lane, read.min(write), self.monitor.clients_active())
    }

    /// Adds what has collected since the last call to the buckets.
    fn refill(&mut self, now: Instant) {
        let over_ns = now.0.saturating_sub(self.last_refill.0);
        self.last_refill = now;
        let slice = self.slice_bytes(Lane::Flush).max(self.slice_bytes(Lane::Level0));
        let burst = |rate: u64| scale(rate, BURST_NS, NS_PER_SECOND).max(2 * slice);
        let Allocation { read, write, floor_read, floor_write, .. } = self.allocation;
        self.main.refill(over_ns, (read, burst(read)), (write, burst(write)));
        self.floor.refill(over_ns, (floor_read, 2 * slice), (floor_write, 2 * slice));
        self.members.refill(now, slice);
    }

    /// Computes the allocation for the present demand.
    fn due(&self) -> Allocation {
        let headroom = self.options.headroom;
        let usable = match self.options.device_bandwidth {
            Some(_) => {
                let device = self.device();
                let usable = |bandwidth| without(headroom, bandwidth);
                (usable(device.read_bytes_per_second), usable(device.write_bytes_per_second))
            }
            None if !self.may_harm(self.last_sample) => (UNLIMITED, UNLIMITED),
            None => self.device.usable(headroom),
        };
        let barrier_ns = self.device().barrier_ns;
        let phase = self.phases.forecast(self.last_sample).filter(|_| self.options.peak_forecast);
        let debt_passing = self.demand.debt.saturating_sub(self.debt_at_rest.per_second());
        let paced = self.may_harm(self.last_sample);
        let demand = Demand { debt_passing, phase, paced, ..self.without_greedy() };
        Allocation::due(&self.options, usable, barrier_ns, &self.monitor, demand)
    }

    /// Returns true if background work could keep a client waiting for the device. If not, it gets
    /// all of a device whose bandwidth is learned. One that is set by an option is a limit always.
    fn may_harm(&self, now: Instant) -> bool {
        self.options.device_bandwidth.is_some() || self.device.is_awaited(now)
    }

    /// Adds credit for deep work. Each byte that clients write earns a share of the deep work that
    /// it causes. The longer the overdue debt would take to drain, the larger that share is. So a
    /// long peak delays deep work but never stops it. Returns true if credit was added.
    fn earn_credit(&mut self, user_bytes: u64, over_ns: u64) -> bool {
        if !self.options.debt_floor {
            self.credit = 0;
            return false;
        }
        // A greedy database earns nothing.
        let others = self.members.written_beside_greedy(self.last_sample);
        let user_bytes = others.map_or(user_bytes, |rate| scale(rate, over_ns, NS_PER_SECOND));
        let overdue_ns = self.without_greedy().overdue_ns;
        let late = overdue_ns.saturating_sub(DEBT_NS_MIN).min(DEBT_NS_MAX - DEBT_NS_MIN);
        let share = scale(user_bytes, late, DEBT_NS_MAX - DEBT_NS_MIN);
        let most = scale(self.device().slowest() / CREDIT_PART, over_ns, NS_PER_SECOND);
        let due = share.saturating_mul(self.monitor.deep_amplification());
        let earned = due.min(most);
        let most = to_i64(self.slices.bytes_max().saturating_mul(CREDIT_SLICES_MAX));
        self.credit = self.credit.saturating_add(to_i64(earned)).min(most);
        earned > 0
    }

    /// Returns true if the jobs of a database may use credit.
    fn may_use_credit(&self, database: DatabaseId) -> bool {
        self.credit > 0 && !self.members.is_greedy(database)
    }

    fn note_allocation(&mut self) {
        let Allocation { client, read, write, .. } = self.allocation;
        self.members.note_bandwidth(Note::Bandwidth { client, read, write });
    }

    // ---- both -----------------------------------------------------------------------------------

    fn source(&self) -> Source {
        if self.options.bandwidth { Source::Main } else { Source::Limiter }
    }

    /// Grants `bytes` bytes to the job at `place`, and charges the source.
    fn give(&mut self, place: Place, bytes: u64, source: Source) {
        self.queue.remove(&place);
        let Some(running) = self.jobs.get_mut(&place.job) else { return };
        running.state = RunningState::Granted(bytes, source);
        let reads = running.lane != Lane::Flush;
        let bytes = to_i64(bytes);
        if source != Source::Limiter {
            self.charge(source, if reads { bytes } else { 0 }, bytes);
        }
    }

    /// Charges moved bytes. Every byte counts against the main bucket, whatever its source, because
    /// it uses bandwidth that clients leave.
    fn charge(&mut self, source: Source, read: i64, written: i64) {
        match source {
            Source::Floor => self.floor.take(read, written),
            Source::Credit => self.credit -= read.max(written),
            Source::Main | Source::Limiter => {}
        }
        self.main.take(read, written);
    }

    /// Settles a grant of `granted` bytes by the bytes that were really moved.
    fn settle(&mut self, job: &Running, granted: u64, source: Source, read: u64, written: u64) {
        self.limiter.settle(job.lane, granted, read, written);
        if source == Source::Limiter {
            return;
        }
        let granted_read = if job.lane == Lane::Flush { 0 } else { granted };
        let more_read = to_i64(read) - to_i64(granted_read);
        self.charge(source, more_read, to_i64(written) - to_i64(granted));
    }

    /// Puts a job into the queue.
    fn wait(&mut self, job: JobId, running: Running) {
        self.place += 1;
        let running = Running { state: RunningState::Waiting(self.place), ..running };
        self.queue.insert(self.key(job, &running, self.place));
        self.jobs.insert(job, running);
    }

    /// Returns the lane in which jobs of `lane` are served. Without priorities none goes before
    /// another and none has a floor (row 1 of SILK's figure 8C). RocksDB's rate limiter has a
    /// priority for flushes, whatever SILK's are.
    fn served_in(&self, lane: Lane) -> Lane {
        let equals = self.options.bandwidth && !self.options.priority;
        if equals { Lane::Deep } else { lane }
    }

    /// Returns the position of a waiting job in the queue.
    fn key(&self, job: JobId, running: &Running, arrival: u64) -> Place {
        let rank = match self.served_in(running.lane) {
            Lane::Flush => 0,
            Lane::Level0 => 1,
            Lane::Deep => 1 + u8::from(self.options.priority),
        };
        let deep = self.options.priority && running.lane == Lane::Deep;
        let of_database = self.members.moved(running.database);
        let (turn, arrival) = if deep { (turn(running), 0) } else { (0, arrival) };
        Place { rank, of_database, turn, arrival, job }
    }
}
