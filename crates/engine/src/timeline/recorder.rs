//! The recorder of an open database: rings of fixed size that the engine writes as it works.
//!
//! What must stay true:
//!
//! - Memory is bounded, and does not grow with time.
//! - Recording an event is a short push under a lock of its own. That lock is taken last, and
//!   nothing waits while it is held.
//! - A client takes such a lock only if it was slow or waited to be admitted.

use std::sync::Mutex;

use sateen_control::{
    Admission, ColumnFamilyId, Instant, IoClass, JobId, JobResult, Note, StallCause,
};
use sateen_store::base::clock;
use sateen_store::base::sync::leaf::lock;
use sateen_store::base::waited::{self, Watch, nanos_between};
use sateen_store::vfs::ClassTotals;

use super::Timeline;
use super::event::{Event, EventKind, JobInfo, OperationKind, RunningJob, Step, StepKind, Worker};
use super::slow::SlowOperations;

/// Number of events that are kept: at least a minute of a scheduler that decides a hundred times a
/// second.
const EVENTS: usize = 16384;
/// Number of steps that are kept: at least half a minute of a busy database.
const STEPS: usize = 16384;
/// A wait that begins within this time after another one of the same cause belongs to the same
/// stall.
const STALL_GAP_NS: u64 = 5_000_000;
/// A stall is recorded in pieces of this length.
const STALL_PIECE_NS: u64 = 1_000_000_000;
/// How often the I/O of all classes is recorded.
const TRAFFIC_PERIOD_NS: u64 = 100_000_000;
/// Shorter rounds of chores are not recorded.
const CHORES_MIN_NS: u64 = 200_000;

/// The last `size` entries that were pushed.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    slots: Vec<T>,
    size: usize,
    pushed: u64,
}

impl<T: Copy> Ring<T> {
    pub(crate) fn new(size: usize) -> Ring<T> {
        Ring { slots: Vec::new(), size, pushed: 0 }
    }

    pub(crate) fn push(&mut self, entry: T) {
        if self.slots.len() < self.size {
            self.slots.push(entry);
        } else if let Some(slot) = self.slots.get_mut((self.pushed % self.size as u64) as usize) {
            *slot = entry;
        }
        self.pushed += 1;
    }

    /// Appends to `to` the entries that were pushed after the first `from`, oldest first. Returns
    /// how many were pushed in all, and how many after the first `from` are lost.
    pub(crate) fn copy_since(&self, from: u64, to: &mut Vec<T>) -> (u64, u64) {
        let kept_from = self.pushed - self.slots.len() as u64;
        let start = from.clamp(kept_from, self.pushed);
        let at = |number: u64| (number % self.size as u64) as usize;
        to.extend((start..self.pushed).filter_map(|number| self.slots.get(at(number))).copied());
        (self.pushed, kept_from.saturating_sub(from))
    }
}

/// The permission for one step of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    /// Since when it waits for a worker.
    pub(crate) at: Instant,
    /// How many bytes the step may move.
    pub(crate) bytes: u64,
}

/// What a step of a job moved, and the CPU time that it took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) cpu_ns: u64,
}

/// Events, and the state that they are made of.
#[derive(Debug)]
struct Events {
    ring: Ring<Event>,
    running: Vec<RunningJob>,
    stalls: [Option<Stall>; StallCause::ALL.len()],
    traffic: (u64, [[u64; 2]; sateen_control::IO_CLASSES]),
}

/// Waits for one cause, in short succession.
#[derive(Clone, Copy, Debug, Default)]
struct Stall {
    began_ns: u64,
    last_ns: u64,
    waiting: u32,
    waits: u32,
    waited_ns: u64,
}

impl Stall {
    fn event(&self, cause: StallCause, at_ns: u64) -> Event {
        let (began_ns, waits, waited_ns) = (self.began_ns, self.waits, self.waited_ns);
        Event { at_ns, kind: EventKind::Stalled { cause, began_ns, waits, waited_ns } }
    }
}

/// The flight recorder of a database.
#[derive(Debug)]
pub(crate) struct Recorder {
    epoch: std::time::Instant,
    events: Mutex<Events>,
    steps: Mutex<Ring<Step>>,
    pub(crate) slow: SlowOperations,
}

impl Recorder {
    /// Creates a recorder. `epoch` is when the database was opened, from which all times count.
    pub(crate) fn new(epoch: std::time::Instant) -> Recorder {
        Recorder {
            epoch,
            events: Mutex::new(Events {
                ring: Ring::new(EVENTS),
                running: Vec::new(),
                stalls: Default::default(),
                traffic: Default::default(),
            }),
            steps: Mutex::new(Ring::new(STEPS)),
            slow: SlowOperations::default(),
        }
    }

    fn now_ns(&self) -> u64 {
        nanos_between(self.epoch, clock::now())
    }

    fn push(&self, at_ns: u64, kind: EventKind) {
        lock(&self.events).ring.push(Event { at_ns, kind });
    }

    // ---- jobs ----------------------------------------------------------------------------------

    /// Records that a job was started.
    pub(crate) fn job_started(&self, now: Instant, info: JobInfo) {
        let mut events = lock(&self.events);
        events.running.push(RunningJob::new(info, now.0));
        events.ring.push(Event { at_ns: now.0, kind: EventKind::JobStarted(info) });
    }

    /// Records that a job has ended. Unknown jobs are ignored.
    pub(crate) fn job_finished(&self, now: Instant, job: JobId, result: JobResult) {
        let mut events = lock(&self.events);
        let Some(at) = events.running.iter().position(|running| running.info.job == job) else {
            return;
        };
        let RunningJob { info, started_ns, read_bytes, written_bytes, .. } =
            events.running.swap_remove(at);
        let kind = EventKind::JobFinished { info, started_ns, result, read_bytes, written_bytes };
        events.ring.push(Event { at_ns: now.0, kind });
    }

    /// Begins to watch this thread's background work. Call one of the `end_` methods afterwards.
    pub(crate) fn watch(&self) -> Watch {
        Watch::begin()
    }

    /// Records a step of a job.
    pub(crate) fn end_step(
        &self,
        watch: Watch,
        (job, class): (JobId, IoClass),
        grant: Grant,
        moved: Moved,
    ) {
        let mut step = self.step(watch, StepKind::Step, job, class);
        step.granted_bytes = grant.bytes;
        step.waited_ns = step.start_ns.saturating_sub(grant.at.0);
        (step.read_bytes, step.written_bytes) = (moved.read_bytes, moved.written_bytes);
        step.cpu_ns = moved.cpu_ns;
        let mut events = lock(&self.events);
        if let Some(running) = events.running.iter_mut().find(|running| running.info.job == job) {
            running.read_bytes += moved.read_bytes;
            running.written_bytes += moved.written_bytes;
        }
        drop(events);
        lock(&self.steps).push(step);
    }

    /// Records the installation of a job's result, successful or not.
    pub(crate) fn end_install(&self, watch: Watch, job: JobId, class: IoClass) {
        let step = self.step(watch, StepKind::Install, job, class);
        lock(&self.steps).push(step);
    }

    /// Records a round of chores, if it took long enough.
    pub(crate) fn end_chores(&self, watch: Watch) {
        let step = self.step(watch, StepKind::Chores, JobId(0), IoClass::Manifest);
        if step.duration_ns >= CHORES_MIN_NS {
            lock(&self.steps).push(step);
        }
    }

    /// Records a step of reclaiming, with the bytes of punched holes and of unlinked files.
    pub(crate) fn end_reclaim(&self, watch: Watch, (punched, unlinked): (u64, u64)) {
        let mut step = self.step(watch, StepKind::Reclaim, JobId(0), IoClass::Reclaim);
        (step.punched_bytes, step.unlinked_bytes) = (punched, unlinked);
        if punched + unlinked > 0 || step.duration_ns >= CHORES_MIN_NS {
            lock(&self.steps).push(step);
        }
    }

    /// Returns a step of `kind` that ends now.
    fn step(&self, watch: Watch, kind: StepKind, job: JobId, class: IoClass) -> Step {
        let start_ns = nanos_between(self.epoch, watch.started);
        let (duration_ns, io) = watch.end();
        let worker = match waited::worker() {
            waited::CLIENT => Worker::Client,
            waited::CHORES => Worker::Chores,
            number => Worker::Pool(number),
        };
        Step {
            start_ns,
            duration_ns,
            kind,
            worker,
            job,
            class,
            granted_bytes: 0,
            waited_ns: 0,
            read_bytes: 0,
            written_bytes: 0,
            punched_bytes: 0,
            unlinked_bytes: 0,
            device_ns: io.device_ns,
            sync_ns: io.sync_ns,
            cpu_ns: 0,
            syncs: io.syncs,
        }
    }

    // ---- decisions and marks -------------------------------------------------------------------

    /// Records a note of control.
    pub(crate) fn note(&self, now: Instant, note: &Note) {
        let kind = match *note {
            Note::Paused { job, reason } => EventKind::Paused { job, reason },
            Note::Resumed { job } => EventKind::Resumed { job },
            Note::Bandwidth { client, read, write } => EventKind::Bandwidth { client, read, write },
        };
        let mut events = lock(&self.events);
        if let Note::Paused { job, .. } | Note::Resumed { job } = *note {
            let mut running = events.running.iter_mut();
            if let Some(running) = running.find(|running| running.info.job == job) {
                running.paused = match *note {
                    Note::Paused { reason, .. } => Some(reason),
                    _ => None,
                };
            }
        }
        events.ring.push(Event { at_ns: now.0, kind });
    }

    /// Records what control told a job, or another single event.
    pub(crate) fn told(&self, now: Instant, kind: EventKind) {
        self.push(now.0, kind);
    }

    /// Records a new admission of writers (of one column family, or of all).
    pub(crate) fn admission(
        &self,
        now: Instant,
        family: Option<ColumnFamilyId>,
        admission: Admission,
    ) {
        self.push(now.0, EventKind::Admission { family, admission });
    }

    /// Records that a memtable was sealed.
    pub(crate) fn sealed(&self, column_family: ColumnFamilyId, bytes: u64) {
        self.push(self.now_ns(), EventKind::Sealed { column_family, bytes });
    }

    /// Records the I/O since the last record, if a period has passed.
    pub(crate) fn traffic(&self, now: Instant, totals: impl FnOnce() -> [ClassTotals; 7]) {
        let mut events = lock(&self.events);
        let period_ns = now.0.saturating_sub(events.traffic.0);
        if period_ns < TRAFFIC_PERIOD_NS {
            return;
        }
        let bytes = totals().map(|class| [class.read_bytes, class.write_bytes]);
        let before = std::mem::replace(&mut events.traffic, (now.0, bytes)).1;
        let kib = |call: usize| {
            std::array::from_fn(|class: usize| {
                let kib = bytes[class][call].saturating_sub(before[class][call]) >> 10;
                u32::try_from(kib).unwrap_or(u32::MAX)
            })
        };
        let period_ms = u32::try_from(period_ns / 1_000_000).unwrap_or(u32::MAX);
        let kind = EventKind::Traffic { period_ms, read_kib: kib(0), written_kib: kib(1) };
        events.ring.push(Event { at_ns: now.0, kind });
    }

    // ---- clients -------------------------------------------------------------------------------

    /// Records that a writer begins to wait to be admitted.
    pub(crate) fn stall_began(&self, cause: StallCause) {
        let now_ns = self.now_ns();
        let mut events = lock(&self.events);
        let Some(place) = events.stalls.get_mut(cause.index()) else { return };
        let over = place.filter(|stall| {
            stall.waiting == 0 && now_ns.saturating_sub(stall.last_ns) > STALL_GAP_NS
        });
        if over.is_some() {
            *place = None;
        }
        let began = Stall { began_ns: now_ns, last_ns: now_ns, ..Stall::default() };
        place.get_or_insert(began).waiting += 1;
        if let Some(stall) = over {
            events.ring.push(stall.event(cause, stall.last_ns));
        }
    }

    /// Records that a writer was admitted, or has given up, after `waited_ns`.
    pub(crate) fn stall_ended(&self, cause: StallCause, waited_ns: u64) {
        let now_ns = self.now_ns();
        let mut events = lock(&self.events);
        let Some(Some(stall)) = events.stalls.get_mut(cause.index()) else { return };
        stall.waiting = stall.waiting.saturating_sub(1);
        stall.waits = stall.waits.saturating_add(1);
        stall.waited_ns = stall.waited_ns.saturating_add(waited_ns);
        stall.last_ns = now_ns;
        if now_ns.saturating_sub(stall.began_ns) >= STALL_PIECE_NS {
            let piece = stall.event(cause, now_ns);
            let waiting = stall.waiting;
            *stall = Stall { began_ns: now_ns, last_ns: now_ns, waiting, ..Stall::default() };
            events.ring.push(piece);
        }
    }

    /// Offers a timed operation to the slowest ones.
    #[inline]
    pub(crate) fn operation(
        &self,
        kind: OperationKind,
        started: std::time::Instant,
        total_ns: u64,
        waited: bool,
    ) {
        self.slow.timed(self.epoch, kind, started, total_ns, waited);
    }

    /// Offers an operation that was not timed but has waited.
    pub(crate) fn waited(&self, kind: OperationKind) {
        self.slow.untimed(self.epoch, kind);
    }

    /// Offers a read that an iterator waited for since its last seek, if there was one.
    #[inline]
    pub(crate) fn iterated(&self) {
        if let Some((started, ns)) = waited::take_alone() {
            self.slow.alone(self.epoch, started, ns);
        }
    }

    // ---- looking at it -------------------------------------------------------------------------

    /// Appends to `to` the events after the first `position`, and moves that on. Returns the number
    /// of those that are lost.
    pub(crate) fn events_since(&self, position: &mut u64, to: &mut Vec<Event>) -> u64 {
        let (now, lost) = lock(&self.events).ring.copy_since(*position, to);
        *position = now;
        lost
    }

    /// Appends to `timeline` everything since it was last extended.
    pub(crate) fn extend(&self, timeline: &mut Timeline) {
        timeline.until_ns = self.now_ns();
        let events = lock(&self.events);
        let (position, lost) = events.ring.copy_since(timeline.cursor.events, &mut timeline.events);
        timeline.cursor.events = position;
        timeline.lost_events += lost;
        timeline.running.clone_from(&events.running);
        let open = StallCause::ALL.into_iter().zip(&events.stalls).filter_map(|(cause, stall)| {
            let stall = stall.filter(|stall| stall.waiting > 0 || stall.waits > 0)?;
            let until = if stall.waiting > 0 { timeline.until_ns } else { stall.last_ns };
            Some(stall.event(cause, until))
        });
        timeline.open_stalls = open.collect();
        drop(events);
        let (position, lost) =
            lock(&self.steps).copy_since(timeline.cursor.steps, &mut timeline.steps);
        timeline.cursor.steps = position;
        timeline.lost_steps += lost;
        timeline.lost_slow += self.slow.copy_since(&mut timeline.cursor.slow, &mut timeline.slow);
    }
}
