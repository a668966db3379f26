//! Listeners: callbacks that tell a program about flushes, compactions and other events.
//!
//! - Flushes, compactions and ingestions: the thread that did the work calls [`Events::tell`].
//! - Sealed memtables, stalls, errors and removed value files: they happen under locks, so they are
//!   queued ([`push`]). The thread of the chores delivers them in order with
//!   [`Events::tell_queued`].
//! - [`Events::wait_for_listeners`] waits until the end of every installed job has been reported.
//!
//! What must stay true: no lock is held while a listener is called, and a listener that panics
//! changes nothing.

use std::any::Any;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use sateen_control::{ColumnFamilyId, SeqNo};
use sateen_store::base::clock;
use sateen_store::base::error::Error;
use sateen_store::base::sync::atomic::{AtomicUsize, Ordering};
use sateen_store::base::sync::{Mutex, lock};

use crate::live_table::LiveTable;

/// Largest number of queued events. Beyond it the oldest is dropped.
const QUEUED_MAX: usize = 4096;

thread_local! {
    /// True while the thread is in a listener.
    static LISTENS: Cell<bool> = const { Cell::new(false) };
    /// The work of this thread, for errors that do not say what they are about.
    static DOING: Cell<ErrorReason> = const { Cell::new(ErrorReason::Compaction) };
}

/// A value file that a flush or compaction wrote, or the values in it that a compaction dropped.
/// RocksDB: `BlobFileAdditionInfo` and `BlobFileGarbageInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueFileInfo {
    /// The file.
    pub file: PathBuf,
    /// Its number.
    pub number: u64,
    /// Number of values that were written to it, or dropped.
    pub values: u64,
    /// The bytes of these values.
    pub bytes: u64,
}

/// A flush.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlushInfo {
    /// The column family's name.
    pub column_family: String,
    /// The column family's number.
    pub column_family_id: u32,
    /// The number of the flush job.
    pub job: u64,
    /// The tables that it wrote. Empty when it begins, and if nothing was left to store.
    pub tables: Vec<LiveTable>,
    /// The value files that it wrote. Empty when it begins.
    pub value_files: Vec<ValueFileInfo>,
    /// The largest sequence number that it stores.
    pub largest_seqno: u64,
    /// True if writers are slowed down.
    pub slows_writes: bool,
    /// True if writers are stopped.
    pub stops_writes: bool,
}

/// A compaction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactionInfo {
    /// The column family's name.
    pub column_family: String,
    /// The column family's number.
    pub column_family_id: u32,
    /// The number of the job.
    pub job: u64,
    /// Why it was picked, in the words of the metrics.
    pub reason: &'static str,
    /// True if a client asked for it.
    pub is_manual: bool,
    /// True if it takes all tables of the column family.
    pub is_full: bool,
    /// The input tables.
    pub inputs: Vec<LiveTable>,
    /// The tables that it wrote, and those that only moved to another level. Empty when it begins.
    pub outputs: Vec<LiveTable>,
    /// The value files that it wrote. Empty when it begins.
    pub value_files: Vec<ValueFileInfo>,
    /// The values of its inputs, by value file, that its outputs do not refer to in this file. They
    /// are deleted, overwritten, or copied to another file. Empty when it begins.
    pub value_garbage: Vec<ValueFileInfo>,
    /// Number of inputs that move to another level without being rewritten.
    pub moved: usize,
    /// The highest level of its inputs.
    pub start_level: u8,
    /// The level of its outputs.
    pub output_level: u8,
    /// Number of entries that it read.
    pub entries_in: u64,
    /// Number of entries that it dropped.
    pub entries_dropped: u64,
    /// How long it has run.
    pub duration: Duration,
    /// The error, if it failed or was abandoned.
    pub error: Option<Error>,
}

/// A file that was ingested.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IngestInfo {
    /// The column family's name.
    pub column_family: String,
    /// The column family's number.
    pub column_family_id: u32,
    /// The file, as the caller named it.
    pub path: PathBuf,
    /// The table of its entries. `None` if the file only deletes ranges.
    pub table: Option<LiveTable>,
    /// The largest sequence number of its entries.
    pub seqno: u64,
}

/// A memtable that was sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SealInfo {
    /// The column family's name.
    pub column_family: String,
    /// A lower bound of its entries' sequence numbers.
    pub first_seqno: u64,
    /// Number of entries, including deletions.
    pub entries: u64,
    /// Number of deletions.
    pub deletions: u64,
}

/// The admission of a column family's writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallState {
    /// Writers are not held back.
    Normal,
    /// Writers are held to a rate.
    Delayed,
    /// Writers wait.
    Stopped,
}

/// A change of the admission of a column family's writers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StallInfo {
    /// The column family's name.
    pub column_family: String,
    /// The state before.
    pub from: StallState,
    /// The state from now on.
    pub to: StallState,
}

/// The work during which an error occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorReason {
    /// A flush.
    Flush,
    /// A compaction.
    Compaction,
    /// A write to the WAL.
    Write,
    /// A write to the manifest.
    Manifest,
}

impl ErrorReason {
    /// Runs `act`. An error in it that names neither a WAL nor a manifest is reported with
    /// `reason`.
    pub(crate) fn during(reason: ErrorReason, act: impl FnOnce()) {
        let before = DOING.replace(reason);
        act();
        DOING.set(before);
    }

    /// Returns the reason of an error: from the name of the file, or from the thread's present
    /// work.
    fn of(error: &Error) -> ErrorReason {
        let name = match error {
            Error::Io { path, .. } => path.file_name().unwrap_or_default().to_string_lossy(),
            _ => return DOING.get(),
        };
        if name.ends_with(".wal") {
            ErrorReason::Write
        } else if name.starts_with("MANIFEST") || name.starts_with("CURRENT") {
            ErrorReason::Manifest
        } else {
            DOING.get()
        }
    }
}

/// A call of a listener.
pub(crate) enum Announcement<'a> {
    FlushBegins(&'a FlushInfo),
    FlushEnded(&'a FlushInfo),
    CompactionBegins(&'a CompactionInfo),
    CompactionEnded(&'a CompactionInfo),
    FileIngested(&'a IngestInfo),
    ValueFileCreated(&'a str, &'a ValueFileInfo),
    ValueFileDeleted(&'a Path),
    MemtableSealed(&'a SealInfo),
    StallChanged(&'a StallInfo),
    BackgroundError(ErrorReason, &'a Error),
    Recovered,
}

/// A listener as the engine calls it. A listener receives a handle whose type belongs to a higher
/// layer. That layer wraps each of the program's listeners in this trait.
pub(crate) trait Hears: Send + Sync {
    fn hear(&self, handle: &dyn Any, told: &Announcement<'_>);
}

/// The source of the handles that listeners receive.
pub(crate) trait MakesHandle: Send + Sync {
    /// Returns a handle that does not keep the database open.
    fn handle(self: Arc<Self>) -> Box<dyn Any>;
}

/// The listeners of a database.
#[derive(Clone, Default)]
pub struct Listeners(pub(crate) Vec<Arc<dyn Hears>>);

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} listeners", self.0.len())
    }
}

/// Clones of one list are equal.
impl PartialEq for Listeners {
    fn eq(&self, other: &Listeners) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs.all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

/// An event that waits in the queue.
pub(crate) enum Queued {
    Sealed(SealInfo),
    Stall(StallInfo),
    Error(ErrorReason, Error),
    Recovered,
    CompactionEnded(Box<CompactionInfo>),
    ValueFileDeleted(PathBuf),
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Queued>,
    /// True while a thread delivers an event. No other thread delivers then, which keeps the order.
    is_told: bool,
    /// The last sequence number of the newest sealed memtable that was queued, by column family.
    sealed: BTreeMap<ColumnFamilyId, SeqNo>,
    /// The last known admission of each column family's writers.
    stalls: BTreeMap<ColumnFamilyId, StallState>,
}

/// The listeners of an open database, and the events that are queued for them.
#[derive(Default)]
pub(crate) struct Events {
    listeners: Listeners,
    /// Set when the database is open. Before that, listeners are not called.
    database: OnceLock<Weak<dyn MakesHandle>>,
    queue: Mutex<Queue>,
    /// Number of jobs that are installed, or about to be, and whose end no listener has heard of
    /// yet.
    untold: AtomicUsize,
}

/// A job whose end listeners have not heard of yet. Dropping it takes it off the count.
pub(crate) struct Untold(Arc<Events>);

impl Drop for Untold {
    fn drop(&mut self) {
        self.0.untold.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Events {
    pub(crate) fn new(listeners: Listeners) -> Events {
        Events { listeners, ..Events::default() }
    }

    /// Lets listeners be called from now on: the database is open.
    pub(crate) fn begin(&self, database: Weak<dyn MakesHandle>) {
        let _first = self.database.set(database);
    }

    /// Returns true if there are listeners.
    pub(crate) fn are_heard(&self) -> bool {
        !self.listeners.0.is_empty()
    }

    /// Counts a job that is about to be installed, until the result is dropped.
    pub(crate) fn untold(self: &Arc<Self>) -> Untold {
        self.untold.fetch_add(1, Ordering::AcqRel);
        Untold(self.clone())
    }

    /// Queues an event, if there are listeners.
    pub(crate) fn push(&self, event: Queued) {
        if self.are_heard() {
            push(&mut lock(&self.queue), event);
        }
    }

    /// Queues an error.
    pub(crate) fn failed(&self, cause: &Error) {
        self.push(Queued::Error(ErrorReason::of(cause), cause.clone()));
    }

    /// Queues the recovery from an error.
    pub(crate) fn recovered(&self) {
        self.push(Queued::Recovered);
    }

    /// Queues a change of the admission of a column family's writers, if it is one.
    pub(crate) fn stall(&self, family: ColumnFamilyId, name: &str, to: StallState) {
        let mut queue = lock(&self.queue);
        let from = queue.stalls.insert(family, to).unwrap_or(StallState::Normal);
        if from != to {
            let info = StallInfo { column_family: name.to_owned(), from, to };
            push(&mut queue, Queued::Stall(info));
        }
    }

    /// Queues the sealing of a memtable whose newest entry is `last`, unless that was queued
    /// before.
    pub(crate) fn sealed(&self, family: ColumnFamilyId, last: SeqNo, mut info: SealInfo) {
        let mut queue = lock(&self.queue);
        let told = queue.sealed.entry(family).or_insert(SeqNo(0));
        if *told < last {
            info.first_seqno = told.0 + 1;
            *told = last;
            push(&mut queue, Queued::Sealed(info));
        }
    }

    /// Calls each listener. The caller holds no lock.
    pub(crate) fn tell(&self, told: &Announcement<'_>) {
        let Some(database) = self.database.get().and_then(Weak::upgrade) else { return };
        if !self.are_heard() {
            return;
        }
        let handle = database.handle();
        for listener in &self.listeners.0 {
            let before = LISTENS.replace(true);
            // A listener is the program's code: its panic must not end a thread of the engine.
            let hear = AssertUnwindSafe(|| listener.hear(handle.as_ref(), told));
            let _panicked = catch_unwind(hear);
            LISTENS.set(before);
        }
    }

    /// Delivers the queued events, unless another thread does so already.
    pub(crate) fn tell_queued(&self) {
        loop {
            let event = {
                let mut queue = lock(&self.queue);
                if queue.is_told {
                    return;
                }
                let Some(event) = queue.waiting.pop_front() else { return };
                queue.is_told = true;
                event
            };
            self.tell(&match &event {
                Queued::Sealed(info) => Announcement::MemtableSealed(info),
                Queued::Stall(info) => Announcement::StallChanged(info),
                Queued::Error(reason, error) => Announcement::BackgroundError(*reason, error),
                Queued::Recovered => Announcement::Recovered,
                Queued::CompactionEnded(info) => Announcement::CompactionEnded(info),
                Queued::ValueFileDeleted(file) => Announcement::ValueFileDeleted(file),
            });
            lock(&self.queue).is_told = false;
        }
    }

    /// Waits until the listeners have heard of the end of every installed job. Returns at once in a
    /// listener, which would wait for itself.
    pub(crate) fn wait_for_listeners(&self) {
        while !LISTENS.get() && self.untold.load(Ordering::Acquire) > 0 {
            clock::sleep(Duration::from_micros(200));
        }
    }
}

fn push(queue: &mut Queue, event: Queued) {
    queue.waiting.push_back(event);
    if queue.waiting.len() > QUEUED_MAX {
        queue.waiting.pop_front();
    }
}

/// Returns true if the calling thread is in a listener, where it must not wait for the background.
pub(crate) fn is_listening() -> bool {
    LISTENS.get()
}
