//! What the operation or background step on this thread has waited for so far.
//!
//! 1. [`begin`] marks the thread as running an operation.
//! 2. The first wait or cache miss clears the thread's sums (`Local::enter`).
//! 3. Waits are added to their [`Part`] (`Local::add`): file system calls by [`io_done`], locks and
//!    queues by a [`Wait`] that is dropped.
//! 4. Between two waits, [`inserting`] and [`load`] say what the thread does. `Local::fill_gap`
//!    adds that time to the part that was announced.
//! 5. [`end`] returns true if there was a wait. [`waits`] then returns the sums.
//! 6. A background step runs the same way between [`Watch::begin`] and [`Watch::end`], which counts
//!    its file system calls apart.
//!
//! What must stay true: an operation without a wait pays a few plain instructions and no clock
//! reading. Times are those measured anyway, or of waits that are long compared with a clock
//! reading. The parts of an operation never overlap, so their sum is at most the whole.

use std::cell::Cell;
use std::time::Instant;

use sateen_control::IoClass;

use crate::base::clock;

/// What an operation waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The commit queue: waiting for the leader that orders the write, and for earlier writes to
    /// become visible.
    Queue,
    /// Appending to the WAL.
    WalAppend,
    /// An fsync of the WAL, by this operation or by another that covers it.
    Sync,
    /// Inserting into memtables.
    Memtable,
    /// The admission of writers.
    Admission,
    /// Reads of files.
    DeviceRead,
    /// Loading data that was not in a cache, without the reads.
    CacheMiss,
    /// A lock that another thread held.
    Lock,
}

/// Number of [`Part`]s.
pub const PARTS: usize = 8;

/// A call of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoCall {
    Read,
    Write,
    Sync,
}

/// The sums of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Nanoseconds by [`Part`].
    pub parts_ns: [u64; PARTS],
    /// Blocks that were not in the cache.
    pub cache_misses: u32,
    /// Reads of files.
    pub device_reads: u32,
}

/// What a background step spent in the file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepIo {
    /// Nanoseconds of reads and writes.
    pub device_ns: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Nanoseconds of syncs.
    pub sync_ns: u64,
    /// Number of syncs.
    pub syncs: u32,
}

/// The waits of an operation, and the time from the start of the first to the end of the last.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    pub waited: Waited,
    /// Start of the first wait; `None` if there was none.
    pub first: Option<Instant>,
    pub span_ns: u64,
    /// The part to which the time after the last wait belongs.
    gap: Option<Part>,
}

impl Waits {
    /// Adds the time since the last wait to the part that was announced. `until_ns` counts from
    /// `first`.
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
/// An operation that has waited: the sums are its own.
const WAITED: u8 = 2;
/// A step of background work.
const STEP: u8 = 3;

/// The state of one thread. All fields are cells, because only this thread uses them.
struct Local {
    /// [`IDLE`], [`RUNNING`], [`WAITED`] or [`STEP`].
    state: Cell<u8>,
    /// Whether the operation's begin and end are measured. If so, all of its reads count.
    timed: Cell<bool>,
    /// Whether a [`Wait`] is being measured. File system calls within it are part of it.
    within: Cell<bool>,
    /// Whether a [`Load`] is alive. The time after a read then belongs to it.
    loading: Cell<bool>,
    /// The fields of [`Waits`], each a cell of its own because a wait touches few of them.
    parts_ns: [Cell<u64>; PARTS],
    cache_misses: Cell<u32>,
    device_reads: Cell<u32>,
    first: Cell<Option<Instant>>,
    span_ns: Cell<u64>,
    gap: Cell<Option<Part>>,
    step: Cell<StepIo>,
    /// The longest read outside any operation: an iterator moved to a block that was not in memory.
    alone: Cell<Option<(Instant, u64)>>,
    /// This thread's worker number.
    worker: Cell<u8>,
    /// This thread's number in reports of slow operations; 0 until it has one.
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

/// The worker number of a client's thread that does background work.
pub const CLIENT: u8 = u8::MAX;
/// The worker number of the chores thread.
pub const CHORES: u8 = u8::MAX - 1;

/// Sets this thread's worker number, or [`CHORES`].
pub fn set_worker(number: u8) {
    LOCAL.with(|local| local.worker.set(number));
}

/// Returns this thread's worker number, [`CHORES`] or [`CLIENT`].
pub fn worker() -> u8 {
    LOCAL.with(|local| local.worker.get())
}

/// Returns this thread's number, which `next` assigns at the first call.
pub fn thread_number(next: impl FnOnce() -> u32) -> u32 {
    LOCAL.with(|local| {
        if local.thread.get() == 0 {
            local.thread.set(next());
        }
        local.thread.get()
    })
}

/// Begins an operation on this thread. `timed` says whether its begin and end are measured.
#[inline]
pub fn begin(timed: bool) {
    LOCAL.with(|local| {
        local.state.set(RUNNING);
        local.timed.set(timed);
    });
}

/// Ends the operation. Returns true if it has waited; [`waits`] then returns its sums.
#[inline]
#[must_use]
pub fn end() -> bool {
    LOCAL.with(|local| local.state.replace(IDLE) == WAITED)
}

/// Returns the waits of the operation that has just ended.
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

/// Returns the start of the first wait of the operation that has just ended, and the time until the
/// end of the last.
#[inline]
pub fn span() -> Option<(Instant, u64)> {
    LOCAL.with(|local| Some((local.first.get()?, local.span_ns.get())))
}

/// Announces that the operation inserts into memtables until its next wait.
#[inline]
pub fn inserting() {
    LOCAL.with(|local| local.gap.set(Some(Part::Memtable)));
}

impl Local {
    /// Marks the operation as waiting. The first time, it clears the sums of the operation before.
    #[inline]
    fn enter(&self) {
        if self.state.replace(WAITED) != WAITED {
            self.parts_ns.iter().for_each(|part| part.set(0));
            self.cache_misses.set(0);
            self.device_reads.set(0);
            self.first.set(None);
            self.span_ns.set(0);
            // An announcement before the first wait says nothing about the time after it.
            self.gap.set(None);
        }
    }

    /// Adds a wait of `ns` that started at `started`, and first closes the gap before it.
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
        // After a wait for a lock, the operation continues with what it had announced.
        if part != Part::Lock {
            self.gap.set(self.loading.get().then_some(Part::CacheMiss));
        }
        self.span_ns.set(at_ns + ns);
        let part = &self.parts_ns[part as usize];
        part.set(part.get() + ns);
    }

    /// Adds the time between two waits to the part that was announced. `at_ns` counts from the
    /// start of the first wait.
    fn fill_gap(&self, at_ns: u64) {
        if let Some(gap) = self.gap.get() {
            let part = &self.parts_ns[gap as usize];
            part.set(part.get() + at_ns.saturating_sub(self.span_ns.get()));
        }
    }
}

/// Counts a wait of this thread's operation, if one runs.
fn waited(part: Part, started: Instant, ns: u64) {
    LOCAL.with(|local| {
        if matches!(local.state.get(), RUNNING | WAITED) {
            local.add(part, started, ns);
        }
    });
}

/// Counts a block that was not in the cache.
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

/// Marks, until it is dropped, that something is loaded that was not in a cache. It reads the clock
/// once, and only if a file was read: the read supplies the start.
#[derive(Debug)]
pub struct Load {
    outer: bool,
}

/// Begins a [`Load`].
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

/// Shortest file system call that counts as one that a device answered. Shorter ones come from the
/// page cache and cannot make an operation slow. In a timed operation every read counts, because
/// the checksum or decompression behind it may have been slow.
pub const NOTED_NS: u64 = 4_000;

/// Counts a file system call that has ended and moved `bytes` bytes.
#[inline]
pub fn io_done(class: IoClass, call: IoCall, started: Instant, ns: u64, bytes: u64) {
    if ns >= NOTED_NS || call == IoCall::Read || !matches!(class, IoClass::Client | IoClass::Wal) {
        note_io(class, call, started, ns, bytes);
    }
}

/// The rare part of [`io_done`]. A background step counts all of its calls. Outside operations only
/// the longest read is kept. An operation counts its reads of tables, and its appends and syncs of
/// the WAL.
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

/// Takes back the part of a background step's call, which has just been counted, in which the
/// device had answered and the thread waited for a processor.
pub fn without_processor(call: IoCall, ns: u64) {
    if ns == 0 {
        return;
    }
    LOCAL.with(|local| {
        if local.state.get() == STEP && !local.within.get() {
            let mut step = local.step.get();
            let part = match call {
                IoCall::Sync => &mut step.sync_ns,
                IoCall::Read | IoCall::Write => &mut step.device_ns,
            };
            *part = part.saturating_sub(ns);
            local.step.set(step);
        }
    });
}

/// Returns the bytes that this thread's background step has read so far.
pub fn step_read_bytes() -> u64 {
    LOCAL.with(|local| local.step.get().read_bytes)
}

/// Returns the longest read outside any operation since the last call.
#[inline]
pub fn take_alone() -> Option<(Instant, u64)> {
    LOCAL.with(|local| local.alone.take())
}

/// A wait that is long compared with a clock reading. It ends when this is dropped.
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

/// A background step on this thread, which [`Watch::end`] ends.
#[derive(Debug)]
#[must_use]
pub struct Watch {
    pub started: Instant,
    /// The thread's state before: a client may do background work within an operation, and within
    /// a wait of it.
    outer: (u8, StepIo, bool),
}

impl Watch {
    /// Begins a step.
    pub fn begin() -> Watch {
        let outer = LOCAL.with(|local| {
            (local.state.replace(STEP), local.step.take(), local.within.replace(false))
        });
        Watch { started: clock::now(), outer }
    }

    /// Returns the length of the step in nanoseconds, and what it spent in the file system.
    pub fn end(self) -> (u64, StepIo) {
        let ns = nanos_between(self.started, clock::now());
        LOCAL.with(|local| {
            local.state.set(self.outer.0);
            local.within.set(self.outer.2);
            (ns, local.step.replace(self.outer.1))
        })
    }
}

/// Returns the nanoseconds from `from` to `to`; 0 if `to` is earlier.
pub fn nanos_between(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
