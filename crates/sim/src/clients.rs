//! The clients: a fixed number of threads. In an open loop an operation is due on schedule and
//! begins when its thread is free; its latency counts from the moment at which it was due. In a
//! closed loop it is due when the one before it has ended.

use sateen_control::{IoClass, StallCause};
use sateen_workload::{ArrivalSpec, Mix, Rng, ScanLength, Schedule};

use crate::admission::{Passage, Places};
use crate::config::Load;
use crate::data_plane::{DataPlane, Io, Region, Request};

/// One in this many negative lookups of a filter is a false positive.
const FILTER_MISTAKES_ONE_IN: u64 = 100;

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Scan,
    ReadModifyWrite,
}

/// What a thread does until its moment `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// It is idle. Its next operation begins then.
    Idle,
    /// A read from the device completes then. `more` reads follow, and then a write if
    /// `then_write`.
    Reading { request: Request, more: u32, then_write: bool },
    /// A write waits at the gates since a moment.
    AtGates { since: u64, cause: StallCause, places: Places },
}

#[derive(Debug)]
struct Thread {
    schedule: Schedule,
    rng: Rng,
    /// The region of its operation, and whether it writes.
    region: usize,
    writes: bool,
    /// Thousandths of a run that are left over from its last reads.
    left_over: [u64; 2],
    due: u64,
    at: u64,
    state: Activity,
}

impl Thread {
    /// Returns the runs that its next read looks into, whose means are given in thousandths.
    fn runs(&mut self, means: [u64; 2]) -> [u64; 2] {
        let mut whole = [0; 2];
        for ((left, mean), whole) in self.left_over.iter_mut().zip(means).zip(&mut whole) {
            *whole = (*left + mean) / 1000;
            *left = (*left + mean) % 1000;
        }
        whole
    }
}

/// The client threads.
#[derive(Debug)]
pub(crate) struct Clients {
    threads: Vec<Thread>,
    /// The cumulated shares of reads, writes and scans. The rest are reads followed by a write.
    parts: [u32; 3],
    total: u32,
    scan: ScanLength,
    entry_bytes: u64,
    /// True if an operation is due when the one before it has ended.
    closed: bool,
    /// No operation begins at or after this moment.
    end: u64,
}

impl Clients {
    pub(crate) fn new(load: &Load, entry_bytes: u64, end: u64) -> Clients {
        let closed = load.spec.arrivals == ArrivalSpec::Closed;
        let thread = |nth| {
            let (spec, count) = (load.spec.arrivals, load.threads);
            let mut schedule = Schedule::new(spec, load.process, load.seed, nth, count);
            let due = if closed { 0 } else { schedule.next_due_ns() };
            let rng = Rng::stream(load.seed, 0x636c_6965_6e74 + nth as u64);
            Thread {
                schedule,
                rng,
                region: 0,
                writes: false,
                left_over: [0; 2],
                due,
                at: due,
                state: Activity::Idle,
            }
        };
        let Mix { read, update, insert, scan, read_modify_write, delete } = load.spec.mix;
        let write = update + insert + delete;
        Clients {
            threads: (0..load.threads).map(thread).collect(),
            parts: [read, read + write, read + write + scan],
            total: (read + write + scan + read_modify_write).max(1),
            scan: load.spec.scan.unwrap_or(load.scan),
            entry_bytes,
            closed,
            end,
        }
    }

    /// Runs the clients until `until` (excluded). If a write seals a memtable before, stops there
    /// and returns that moment.
    pub(crate) fn run(&mut self, until: u64, data: &mut DataPlane) -> Option<u64> {
        loop {
            let (nth, at) = self.first()?;
            if at >= until {
                return None;
            }
            if self.step(nth, at, data) {
                return Some(at);
            }
        }
    }

    /// Returns when the next thread acts.
    #[inline]
    pub(crate) fn next_at(&self) -> u64 {
        self.first().map_or(u64::MAX, |(_, at)| at)
    }

    /// The thread that acts next, and when.
    #[inline]
    fn first(&self) -> Option<(usize, u64)> {
        let times = self.threads.iter().map(|thread| thread.at).enumerate();
        times.min_by_key(|(_, at)| *at)
    }

    /// Runs the next step of a thread. Returns true if it sealed a memtable.
    fn step(&mut self, nth: usize, now: u64, data: &mut DataPlane) -> bool {
        match self.threads[nth].state {
            Activity::Idle => {
                if self.threads[nth].due >= self.end {
                    self.threads[nth].at = u64::MAX;
                    return false;
                }
                self.begin(nth, now, data)
            }
            Activity::Reading { request, more, then_write } => {
                data.report(now, &request);
                if more > 0 {
                    self.read(nth, now, more, then_write, data);
                    false
                } else if then_write {
                    self.write(nth, now, data)
                } else {
                    self.done(nth, now, data);
                    false
                }
            }
            Activity::AtGates { since, cause, places } => {
                data.gates.waited(cause, now - since);
                self.knock(nth, now, places, data)
            }
        }
    }

    fn begin(&mut self, nth: usize, now: u64, data: &mut DataPlane) -> bool {
        let kind = self.draw(nth);
        let thread = &mut self.threads[nth];
        if data.regions.len() > 1 {
            thread.region = thread.rng.below(data.regions.len() as u64) as usize;
        }
        thread.writes = matches!(kind, Kind::Write | Kind::ReadModifyWrite);
        let Region { level0_searched, level0_on_device, levels, .. } = data.regions[thread.region];
        match kind {
            Kind::Write => self.write(nth, now, data),
            kind @ (Kind::Read | Kind::ReadModifyWrite) => {
                let costs = data.costs;
                let [searched, on_device] = thread.runs([level0_searched, level0_on_device]);
                let reads = self.misses(nth, data, 1, on_device + levels);
                data.reads.gets += 1;
                data.reads.runs += searched + levels;
                let cpu_ns = costs.read_ns + searched * costs.read_run_ns;
                data.client_cpu_ns += cpu_ns;
                let ready = now + cpu_ns;
                self.look(nth, ready, reads, kind == Kind::ReadModifyWrite, data)
            }
            Kind::Scan => {
                let thread = &mut self.threads[nth];
                let entries = u64::from(self.scan.draw(&mut thread.rng));
                // The seek reads a block of each run; the following entries are in the last level.
                let [searched, on_device] = thread.runs([level0_searched, level0_on_device]);
                let blocks = on_device + levels;
                let further = (entries * self.entry_bytes).div_ceil(data.block_bytes);
                let reads = self.misses(nth, data, blocks + further, 0);
                let costs = data.costs;
                data.reads.scans += 1;
                let cpu_ns =
                    costs.read_ns + searched * costs.read_run_ns + entries * costs.scan_entry_ns;
                data.client_cpu_ns += cpu_ns;
                let ready = now + cpu_ns;
                self.look(nth, ready, reads, false, data)
            }
        }
    }

    fn draw(&mut self, nth: usize) -> Kind {
        let drawn = self.threads[nth].rng.below(u64::from(self.total)) as u32;
        match self.parts.iter().position(|part| drawn < *part) {
            Some(0) => Kind::Read,
            Some(1) => Kind::Write,
            Some(_) => Kind::Scan,
            None => Kind::ReadModifyWrite,
        }
    }

    /// Returns how many reads of the device it takes to read `blocks` blocks and to look into
    /// `filters` filters.
    fn misses(&mut self, nth: usize, data: &mut DataPlane, blocks: u64, filters: u64) -> u32 {
        let rng = &mut self.threads[nth].rng;
        let mistaken = u64::from(rng.below(FILTER_MISTAKES_ONE_IN) < filters);
        let asked = blocks + mistaken;
        let misses = (0..asked).map(|_| u32::from(rng.unit() < data.miss)).sum();
        data.reads.block_misses += u64::from(misses);
        data.reads.block_hits += asked - u64::from(misses);
        misses
    }

    /// Ends the processor work of a thread at `ready`; `reads` reads from the device follow.
    fn look(
        &mut self,
        nth: usize,
        ready: u64,
        reads: u32,
        then_write: bool,
        data: &mut DataPlane,
    ) -> bool {
        if reads > 0 {
            self.read(nth, ready, reads, then_write, data);
            false
        } else if then_write {
            self.write(nth, ready, data)
        } else {
            self.done(nth, ready, data);
            false
        }
    }

    fn read(&mut self, nth: usize, now: u64, reads: u32, then_write: bool, data: &mut DataPlane) {
        let (at, request) = data.submit(now, IoClass::Client, Io::Read(data.read_bytes));
        let thread = &mut self.threads[nth];
        thread.at = at;
        thread.state = Activity::Reading { request, more: reads - 1, then_write };
    }

    fn write(&mut self, nth: usize, now: u64, data: &mut DataPlane) -> bool {
        self.knock(nth, now, Places::default(), data)
    }

    /// Lets a write ask at the gates.
    fn knock(&mut self, nth: usize, now: u64, mut places: Places, data: &mut DataPlane) -> bool {
        let region = self.threads[nth].region;
        let at = match data.gates.pass(now, region, data.write_bytes, &mut places) {
            Passage::Now => {
                let sealed = data.write(now, region);
                let done = now + data.write_ns();
                data.client_cpu_ns += data.write_ns();
                self.done(nth, done, data);
                return sealed;
            }
            Passage::At(at) => at,
            Passage::Never => u64::MAX,
        };
        let thread = &mut self.threads[nth];
        thread.at = at;
        thread.state = Activity::AtGates { since: now, cause: data.gates.cause(region), places };
        false
    }

    fn done(&mut self, nth: usize, at: u64, data: &mut DataPlane) {
        let thread = &mut self.threads[nth];
        data.recorder.record(thread.writes, thread.due, at);
        thread.due = if self.closed { at } else { thread.schedule.next_due_ns() };
        thread.at = thread.due.max(at);
        thread.state = Activity::Idle;
    }

    /// Lets all waiting writes ask again after a change of the admission.
    pub(crate) fn admission_changed(&mut self, now: u64) {
        for thread in &mut self.threads {
            if let Activity::AtGates { since, .. } = thread.state {
                // A client may be a few microseconds ahead of the simulation's time.
                thread.at = now.max(since);
            }
        }
    }

    /// The moment at which the operation that has waited longest was due.
    pub(crate) fn oldest_due(&self) -> u64 {
        self.threads.iter().map(|thread| thread.due).min().unwrap_or(u64::MAX)
    }

    /// The number of operations that are due before `end` and have not ended.
    pub(crate) fn undone(&self, end: u64) -> u64 {
        let left = |thread: &Thread| {
            let mut schedule = thread.schedule.clone();
            let further = std::iter::from_fn(|| Some(schedule.next_due_ns()));
            let further = further.take_while(|due| *due < end).count() as u64;
            if thread.due < end { 1 + further } else { 0 }
        };
        self.threads.iter().map(left).sum()
    }

    /// True if no operation is running or due.
    pub(crate) fn at_rest(&self) -> bool {
        self.threads.iter().all(|t| t.state == Activity::Idle && t.due >= self.end)
    }

    /// Stops the clients from beginning operations.
    pub(crate) fn stop(&mut self) {
        self.end = 0;
    }
}
