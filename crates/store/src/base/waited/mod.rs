//! What this thread's operation, or step of background work, has waited for so far.
//!
//! What must stay true: an operation that waits for nothing pays a few plain instructions, none of
//! them a look at the clock; times come from where they are measured anyway, or from waits that are
//! long against a clock reading; the parts of an operation never overlap, so that they add up to no
//! more than the whole.

use std::cell::Cell;
use std::time::Instant;

use sateen_control::IoClass;

use crate::base::clock;

/// What an operation waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The commit queue: being ordered by another, and becoming visible behind others.
    Queue,
    /// Writing to the log.
    WalAppend,
    /// A sync of the log, one's own or another's that covers it.
    Sync,
    /// Inserting into memtables.
    Memtable,
    /// The admission of writers.
    Admission,
    /// Reads of files.
    DeviceRead,
    /// Loading what was not in a cache, the reads apart.
    CacheMiss,
    /// A lock that another held.
    Lock,
}

/// How many [`Part`]s there are.
pub const PARTS: usize = 8;

/// A call of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoCall {
    Read,
    Write,
    Sync,
}

/// What an operation waited for, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// By [`Part`], nanoseconds.
    pub parts_ns: [u64; PARTS],
    /// Blocks that were not in the cache.
    pub cache_misses: u32,
    /// Reads of files.
    pub device_reads: u32,
}

/// What a step of background work spent in the file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepIo {
    /// Reads and writes, nanoseconds.
    pub device_ns: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Syncs, nanoseconds.
    pub sync_ns: u64,
    /// Syncs.
    pub syncs: u32,
}

/// The waits of an operation, and the time from the first of them to the end of the last.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    pub waited: Waited,
    /// When the first began; None if there was none.
    pub first: Option<Instant>,
    pub span_ns: u64,
    /// What the time after the last wait belongs to.
    gap: Option<Part>,
}

impl Waits {
    /// Gives the time since the last wait to what it was spent on. `until_ns` counts from `first`.
    pub fn fill_gap(&mut self, until_ns: u64) {
        if let Some(gap) = self.gap.take() {
            self.waited.parts_ns[gap as usize] += until_ns.saturating_sub(self.span_ns);
        }
    }
}

/// No operation.
const IDLE: u8 = 0;
/// An operation that has not waited.
const RUNNING: u8 = 1;
/// An operation that has waited: what is counted is its own.
const WAITED: u8 = 2;
/// A step of background work.
const STEP: u8 = 3;

struct Local {
    state: Cell<u8>,
    /// The operation's begin and end are known: then it is worth knowing all of its reads.
    timed: Cell<bool>,
    /// A wait is being measured: calls of the file system within it are a part of it.
    within: Cell<bool>,
    /// Something that was not in a cache is being loaded: what follows a read belongs to that.
    loading: Cell<bool>,
    /// As in [`Waits`], each for itself: a wait touches few of them.
    parts_ns: [Cell<u64>; PARTS],
    cache_misses: Cell<u32>,
    device_reads: Cell<u32>,
    first: Cell<Option<Instant>>,
    span_ns: Cell<u64>,
    gap: Cell<Option<Part>>,
    step: Cell<StepIo>,
    /// The longest read outside of any operation: an iterator that went on to a block that was
    /// not in memory.
    alone: Cell<Option<(Instant, u64)>>,
    worker: Cell<u8>,
    /// This thread's number in slow operations; 0 until it has one.
    thread: Cell<u32>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            state: Cell::new(IDLE),
            timed: Cell::new(false),
            within: Cell::new(false),
            loading: Cell::new(false),
            parts_ns: [const { Cell::new(0) }; PARTS],
            cache_misses: Cell::new(0),
            device_reads: Cell::new(0),
            first: Cell::new(None),
            span_ns: Cell::new(0),
            gap: Cell::new(None),
            step: Cell::new(StepIo { device_ns: 0, read_bytes: 0, sync_ns: 0, syncs: 0 }),
            alone: Cell::new(None),
            worker: Cell::new(CLIENT),
            thread: Cell::new(0),
        }
    };
}

/// Stands for a worker's number where a client's thread does background work.
pub const CLIENT: u8 = u8::MAX;
/// Stands for a worker's number where the chores' thread does it.
pub const CHORES: u8 = u8::MAX - 1;

/// This thread is a worker's from now on, or the chores'.
pub fn set_worker(number: u8) {
    LOCAL.with(|local| local.worker.set(number));
}

pub fn worker() -> u8 {
    LOCAL.with(|local| local.worker.get())
}

/// This thread's number; `next` gives one if it has none.
pub fn thread_number(next: impl FnOnce() -> u32) -> u32 {
    LOCAL.with(|local| {
        if local.thread.get() == 0 {
            local.thread.set(next());
        }
        local.thread.get()
    })
}

/// An operation begins on this thread; `timed` if its begin and end are known.
#[inline]
pub fn begin(timed: bool) {
    LOCAL.with(|local| {
        local.state.set(RUNNING);
        local.timed.set(timed);
    });
}

/// The operation is over. True if it has waited: then [`waits`] tells.
#[inline]
#[must_use]
pub fn end() -> bool {
    LOCAL.with(|local| local.state.replace(IDLE) == WAITED)
}

/// What the operation that has just ended waited for.
pub fn waits() -> Waits {
    LOCAL.with(|local| Waits {
        waited: Waited {
            parts_ns: std::array::from_fn(|part| local.parts_ns[part].get()),
            cache_misses: local.cache_misses.get(),
            device_reads: local.device_reads.get(),
        },
        first: local.first.get(),
        span_ns: local.span_ns.get(),
        gap: local.gap.get(),
    })
}

/// When the operation that has just ended first waited, and the time until it had last.
#[inline]
pub fn span() -> Option<(Instant, u64)> {
    LOCAL.with(|local| Some((local.first.get()?, local.span_ns.get())))
}

/// From now on until its next wait this operation inserts into memtables.
#[inline]
pub fn inserting() {
    LOCAL.with(|local| local.gap.set(Some(Part::Memtable)));
}

impl Local {
    /// The operation waits: what is left of an earlier one goes.
    #[inline]
    fn enter(&self) {
        if self.state.replace(WAITED) != WAITED {
            self.parts_ns.iter().for_each(|part| part.set(0));
            self.cache_misses.set(0);
            self.device_reads.set(0);
            self.first.set(None);
            self.span_ns.set(0);
            // What is said before the first wait says nothing of what follows it.
            self.gap.set(None);
        }
    }

    fn add(&self, part: Part, started: Instant, ns: u64) {
        self.enter();
        let at_ns = match self.first.get() {
            Some(first) => nanos_between(first, started),
            None => {
                self.first.set(Some(started));
                0
            }
        };
        self.fill_gap(at_ns);
        // Whoever waited for a lock goes on with what it was at.
        if part != Part::Lock {
            self.gap.set(self.loading.get().then_some(Part::CacheMiss));
        }
        self.span_ns.set(at_ns + ns);
        let part = &self.parts_ns[part as usize];
        part.set(part.get() + ns);
    }

    /// Between two waits the operation did what it said it would do next. `at_ns` counts from the
    /// begin of the first.
    fn fill_gap(&self, at_ns: u64) {
        if let Some(gap) = self.gap.get() {
            let part = &self.parts_ns[gap as usize];
            part.set(part.get() + at_ns.saturating_sub(self.span_ns.get()));
        }
    }
}

/// The operation that runs on this thread, if one does, has waited.
fn waited(part: Part, started: Instant, ns: u64) {
    LOCAL.with(|local| {
        if matches!(local.state.get(), RUNNING | WAITED) {
            local.add(part, started, ns);
        }
    });
}

/// A block was not in the cache.
#[cold]
#[inline(never)]
pub fn cache_missed() {
    LOCAL.with(|local| {
        if matches!(local.state.get(), RUNNING | WAITED) {
            local.enter();
            local.cache_misses.set(local.cache_misses.get() + 1);
        }
    });
}

/// Something is being loaded that was not in a cache, until this is dropped. The clock is read
/// once, and only if a file was: the read tells when it began.
#[derive(Debug)]
pub struct Load {
    outer: bool,
}

/// Begins to load something.
#[cold]
pub fn load() -> Load {
    Load { outer: LOCAL.with(|local| local.loading.replace(true)) }
}

impl Drop for Load {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            local.loading.set(self.outer);
            if !self.outer
                && local.gap.get() == Some(Part::CacheMiss)
                && let Some(first) = local.first.get()
            {
                let at_ns = nanos_between(first, clock::now());
                local.fill_gap(at_ns);
                local.span_ns.set(at_ns);
                local.gap.set(None);
            }
        });
    }
}

/// What a call of the file system takes at least that a device had to answer, not the page cache:
/// no other is what made an operation slow. Of an operation that is timed every read counts: what
/// follows it, a checksum or a decompression, may be what was slow.
pub const NOTED_NS: u64 = 4_000;

/// A call of the file system is over that moved so many bytes.
#[inline]
pub fn io_done(class: IoClass, call: IoCall, started: Instant, ns: u64, bytes: u64) {
    if ns >= NOTED_NS || call == IoCall::Read || !matches!(class, IoClass::Client | IoClass::Wal) {
        note_io(class, call, started, ns, bytes);
    }
}

#[cold]
#[inline(never)]
fn note_io(class: IoClass, call: IoCall, started: Instant, ns: u64, bytes: u64) {
    LOCAL.with(|local| match local.state.get() {
        _ if local.within.get() => {}
        STEP => {
            let mut step = local.step.get();
            match call {
                IoCall::Read => {
                    step.device_ns += ns;
                    step.read_bytes += bytes;
                }
                IoCall::Write => step.device_ns += ns,
                IoCall::Sync => {
                    step.sync_ns += ns;
                    step.syncs += 1;
                }
            }
            local.step.set(step);
        }
        IDLE => {
            let longest = local.alone.get().map_or(NOTED_NS - 1, |(_, ns)| ns);
            if class == IoClass::Client && call == IoCall::Read && ns > longest {
                local.alone.set(Some((started, ns)));
            }
        }
        _ if ns < NOTED_NS && !local.timed.get() => {}
        _ => {
            let part = match (class, call) {
                (IoClass::Client, IoCall::Read) => Part::DeviceRead,
                (IoClass::Wal, IoCall::Write) => Part::WalAppend,
                (IoClass::Wal, IoCall::Sync) => Part::Sync,
                _ => return,
            };
            local.add(part, started, ns);
            let read = u32::from(part == Part::DeviceRead);
            local.device_reads.set(local.device_reads.get() + read);
        }
    });
}

/// Bytes that the step which runs on this thread has read so far.
pub fn step_read_bytes() -> u64 {
    LOCAL.with(|local| local.step.get().read_bytes)
}

/// The longest read outside of any operation since this was last asked.
#[inline]
pub fn take_alone() -> Option<(Instant, u64)> {
    LOCAL.with(|local| local.alone.take())
}

/// A wait that is long against a reading of the clock: it is over when this is dropped.
#[derive(Debug)]
pub struct Wait {
    part: Part,
    started: Instant,
    outer: bool,
}

/// Begins a wait.
#[cold]
pub fn wait(part: Part) -> Wait {
    let outer = LOCAL.with(|local| local.within.replace(true));
    Wait { part, started: clock::now(), outer }
}

impl Drop for Wait {
    fn drop(&mut self) {
        LOCAL.with(|local| local.within.set(self.outer));
        if !self.outer {
            waited(self.part, self.started, nanos_between(self.started, clock::now()));
        }
    }
}

/// A step of background work on this thread; [`Watch::end`] tells what it did.
#[derive(Debug)]
#[must_use]
pub struct Watch {
    pub started: Instant,
    /// What the thread was doing: a client may do background work within an operation.
    outer: (u8, StepIo),
}

impl Watch {
    pub fn begin() -> Watch {
        let outer = LOCAL.with(|local| (local.state.replace(STEP), local.step.take()));
        Watch { started: clock::now(), outer }
    }

    /// The length of the step in nanoseconds, and what it spent in the file system.
    pub fn end(self) -> (u64, StepIo) {
        let ns = nanos_between(self.started, clock::now());
        LOCAL.with(|local| {
            local.state.set(self.outer.0);
            (ns, local.step.replace(self.outer.1))
        })
    }
}

pub fn nanos_between(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
