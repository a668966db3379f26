//! Listeners: callbacks that tell a program about flushes, compactions and other events.
//!
//! Invariant: no lock is held while a listener is called, and a listener that panics changes
//! nothing. The thread that did a flush, a compaction or an ingestion calls the listener itself.
//! Writers cause events of memtables, stalls and errors under locks; these events wait in a queue,
//! and the thread of the chores delivers them.

use std::any::Any;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use sateen_control::{ColumnFamilyId, SeqNo};
use sateen_store::base::clock;
use sateen_store::base::error::Error;
use sateen_store::base::sync::atomic::{AtomicUsize, Ordering};
use sateen_store::base::sync::{Mutex, lock};

use crate::live_table::LiveTable;

/// Events that wait at most; then the oldest is lost.
const QUEUED_MAX: usize = 4096;

thread_local! {
    /// The thread is in a listener.
    static LISTENS: Cell<bool> = const { Cell::new(false) };
    /// What the thread does.
    static DOING: Cell<ErrorReason> = const { Cell::new(ErrorReason::Compaction) };
}

/// A flush.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlushInfo {
    /// The column family's name.
    pub column_family: String,
    /// Its number.
    pub column_family_id: u32,
    /// The number of the job.
    pub job: u64,
    /// The tables that it made: none when it begins, or if nothing was left to store.
    pub tables: Vec<LiveTable>,
    /// The newest sequence number that it stores.
    pub largest_seqno: u64,
    /// Writers are slowed down.
    pub slows_writes: bool,
    /// Writers wait.
    pub stops_writes: bool,
}

/// A compaction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactionInfo {
    /// The column family's name.
    pub column_family: String,
    /// Its number.
    pub column_family_id: u32,
    /// The number of the job.
    pub job: u64,
    /// Why it was picked, as in metrics.
    pub reason: &'static str,
    /// A client asked for it.
    pub is_manual: bool,
    /// It takes all tables of the column family.
    pub is_full: bool,
    /// The tables that it takes.
    pub inputs: Vec<LiveTable>,
    /// The tables that it made, and those that only changed their level: none when it begins.
    pub outputs: Vec<LiveTable>,
    /// How many of the inputs change their level as they are.
    pub moved: usize,
    /// The highest level of its inputs.
    pub start_level: u8,
    /// The level of its outputs.
    pub output_level: u8,
    /// Entries that it read.
    pub entries_in: u64,
    /// Entries that it dropped.
    pub entries_dropped: u64,
    /// How long it has run.
    pub duration: Duration,
    /// Why it made nothing, if it failed or was given up.
    pub error: Option<Error>,
}

/// A file that was taken in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IngestInfo {
    /// The column family's name.
    pub column_family: String,
    /// Its number.
    pub column_family_id: u32,
    /// The file, as the caller named it.
    pub path: PathBuf,
    /// Its entries; none if it only deletes ranges.
    pub table: Option<LiveTable>,
    /// No entry of the file is newer.
    pub seqno: u64,
}

/// A memtable that takes no more writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SealInfo {
    /// The column family's name.
    pub column_family: String,
    /// No entry of the memtable is older.
    pub first_seqno: u64,
    /// Its entries, deletions included.
    pub entries: u64,
    /// Its deletions.
    pub deletions: u64,
}

/// How the writers of a column family are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallState {
    /// As fast as they can.
    Normal,
    /// At a limited rate.
    Delayed,
    /// Not at all for now.
    Stopped,
}

/// Writers of a column family are admitted in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StallInfo {
    /// The column family's name.
    pub column_family: String,
    /// As before.
    pub from: StallState,
    /// As from now on.
    pub to: StallState,
}

/// What was being done when something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorReason {
    /// A flush.
    Flush,
    /// A compaction.
    Compaction,
    /// A write to the log.
    Write,
    /// An edit of the manifest.
    Manifest,
}

impl ErrorReason {
    /// Runs `act`. What fails in it is told as `reason`, if nothing better is known.
    pub(crate) fn during(reason: ErrorReason, act: impl FnOnce()) {
        let before = DOING.replace(reason);
        act();
        DOING.set(before);
    }

    /// What an error that names a file is about.
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

/// What listeners are told.
pub(crate) enum Announcement<'a> {
    FlushBegins(&'a FlushInfo),
    FlushEnded(&'a FlushInfo),
    CompactionBegins(&'a CompactionInfo),
    CompactionEnded(&'a CompactionInfo),
    FileIngested(&'a IngestInfo),
    MemtableSealed(&'a SealInfo),
    StallChanged(&'a StallInfo),
    BackgroundError(ErrorReason, &'a Error),
    Recovered,
}

/// A listener as the engine calls it. The type of the handle that a listener is given belongs to a
/// higher layer, which makes one of these of each listener of the program.
pub(crate) trait Hears: Send + Sync {
    fn hear(&self, handle: &dyn Any, told: &Announcement<'_>);
}

/// Makes the handle that listeners are given.
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

/// What waits to be told.
pub(crate) enum Queued {
    Sealed(SealInfo),
    Stall(StallInfo),
    Error(ErrorReason, Error),
    Recovered,
    CompactionEnded(Box<CompactionInfo>),
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Queued>,
    /// A thread tells what waits: no other does, so that the order stays.
    is_told: bool,
    /// The newest entry of the memtables that were told, by column family.
    sealed: BTreeMap<ColumnFamilyId, SeqNo>,
    /// How the writers of each column family were admitted last.
    stalls: BTreeMap<ColumnFamilyId, StallState>,
}

/// The listeners of an open database, and what they are still to be told.
#[derive(Default)]
pub(crate) struct Events {
    listeners: Listeners,
    /// Set once the database is open; before that nobody is told anything.
    database: OnceLock<Weak<dyn MakesHandle>>,
    queue: Mutex<Queue>,
    /// Jobs that are or will be installed and whose end is not told yet.
    untold: AtomicUsize,
}

/// Counts a job as one whose end is not told yet.
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

    /// The database is open: listeners are told from now on.
    pub(crate) fn begin(&self, database: Weak<dyn MakesHandle>) {
        let _first = self.database.set(database);
    }

    /// Whether there are listeners.
    pub(crate) fn are_heard(&self) -> bool {
        !self.listeners.0.is_empty()
    }

    /// A job whose end is to be told is about to be installed.
    pub(crate) fn untold(self: &Arc<Self>) -> Untold {
        self.untold.fetch_add(1, Ordering::AcqRel);
        Untold(self.clone())
    }

    pub(crate) fn push(&self, event: Queued) {
        if self.are_heard() {
            push(&mut lock(&self.queue), event);
        }
    }

    /// Something failed, or damage was found.
    pub(crate) fn failed(&self, cause: &Error) {
        self.push(Queued::Error(ErrorReason::of(cause), cause.clone()));
    }

    /// All is well again.
    pub(crate) fn recovered(&self) {
        self.push(Queued::Recovered);
    }

    /// The writers of a column family are admitted like this.
    pub(crate) fn stall(&self, family: ColumnFamilyId, name: &str, to: StallState) {
        let mut queue = lock(&self.queue);
        let from = queue.stalls.insert(family, to).unwrap_or(StallState::Normal);
        if from != to {
            let info = StallInfo { column_family: name.to_owned(), from, to };
            push(&mut queue, Queued::Stall(info));
        }
    }

    /// A column family has sealed a memtable whose newest entry is `last`.
    pub(crate) fn sealed(&self, family: ColumnFamilyId, last: SeqNo, mut info: SealInfo) {
        let mut queue = lock(&self.queue);
        let told = queue.sealed.entry(family).or_insert(SeqNo(0));
        if *told < last {
            info.first_seqno = told.0 + 1;
            *told = last;
            push(&mut queue, Queued::Sealed(info));
        }
    }

    /// Tells each listener. No lock may be held.
    pub(crate) fn tell(&self, told: &Announcement<'_>) {
        let Some(database) = self.database.get().and_then(Weak::upgrade) else { return };
        if !self.are_heard() {
            return;
        }
        let handle = database.handle();
        for listener in &self.listeners.0 {
            let before = LISTENS.replace(true);
            // A listener is the program's: what it does wrong must not end a thread of ours.
            let hear = AssertUnwindSafe(|| listener.hear(handle.as_ref(), told));
            let _panicked = catch_unwind(hear);
            LISTENS.set(before);
        }
    }

    /// Tells what waits, unless another thread does.
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
            });
            lock(&self.queue).is_told = false;
        }
    }

    /// Returns when the end of all jobs that are installed is told.
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

/// True if the calling thread is in a listener: then it must not wait for the background.
pub(crate) fn is_listening() -> bool {
    LISTENS.get()
}
