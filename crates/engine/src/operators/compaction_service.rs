//! A compaction service: code of the client that has compactions carried out by other processes.
//!
//! 1. The first step of a job hands a [`RemoteCompaction`] to [`CompactionService::start`].
//! 2. The service sends its bytes to a process that sees the database's files. That process calls
//!    [`Db::open_and_compact`](crate::Db::open_and_compact), and sends back what it returns.
//! 3. The service answers the job: with these bytes, that it declines, or that it failed.
//! 4. [`Sent::take`] gives the answer to the job's next step.
//!
//! What must stay true: each job has one answer. One that is dropped unanswered has failed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_store::base::sync::atomic::{AtomicBool, Ordering};
use sateen_store::base::sync::{Mutex, lock};

/// Has compactions carried out by other processes. The database compacts by itself whatever the
/// service declines, fails to do, or does wrong.
pub trait CompactionService: Send + Sync {
    /// Returns its name, for messages.
    fn name(&self) -> &str;

    /// Takes a job. A background thread waits for the return, so this sends the job away and
    /// returns. The answer may come at any time, from any thread.
    fn start(&self, job: RemoteCompaction);

    /// Is told that the database does not wait for a job any more: it closes, the job was
    /// discarded, or the request of a client that it serves was cancelled. An answer has no effect
    /// from now on, and nobody removes the files of its outputs.
    fn cancel(&self, job: &RemoteCompactionInfo) {
        let _ = job;
    }

    /// Is told that a database closes or ends its background work. It has cancelled all of its
    /// jobs.
    fn closing(&self, database: &Path) {
        let _ = database;
    }

    /// Is told what became of an answered job.
    fn ended(&self, job: &RemoteCompactionInfo, end: &RemoteCompactionEnd) {
        let _ = (job, end);
    }
}

/// What a service is told of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteCompactionInfo {
    /// The job's number, which is random: no other job of any database has it.
    pub job: u64,
    /// The directory of the database.
    pub database: PathBuf,
    /// What tells the database from all others.
    pub uuid: String,
    /// The id of the column family.
    pub column_family_id: u32,
    /// The name of the column family.
    pub column_family: String,
    /// Why it is compacted, as the timeline names it.
    pub reason: &'static str,
    /// Whether a client asked for it.
    pub is_manual: bool,
    /// Whether it takes all tables of the column family.
    pub is_full: bool,
    /// Whether nothing older shares keys with the outputs.
    pub is_bottommost: bool,
    /// The uppermost level of the inputs.
    pub input_level: u8,
    /// The level of the outputs.
    pub output_level: u8,
    /// Bytes of the input tables.
    pub input_bytes: u64,
}

/// What became of a job that the service had answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteCompactionEnd {
    /// The tables of the other process are part of the database.
    Installed,
    /// The database compacts by itself, for this reason.
    RunLocally(String),
    /// The tables were not wanted any more, or could not be installed.
    Discarded,
}

/// The answer to a job.
#[derive(Debug)]
pub(crate) enum Answer {
    Done(Vec<u8>),
    Declined,
    Failed(String),
}

/// A job that was handed to the service, as the database holds it.
pub(crate) struct Sent {
    answer: Mutex<Option<Answer>>,
    is_answered: AtomicBool,
    cancelled: AtomicBool,
    /// Calls a thread that takes the answer.
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Sent {
    pub(crate) fn new(wake: impl Fn() + Send + Sync + 'static) -> Sent {
        Sent {
            answer: Mutex::new(None),
            is_answered: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            wake: Box::new(wake),
        }
    }

    /// Returns true if there is an answer.
    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Acquire)
    }

    /// Takes the answer, once there is one.
    pub(crate) fn take(&self) -> Option<Answer> {
        lock(&self.answer).take()
    }

    /// Notes that nobody waits for an answer.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    fn answer(&self, answer: Answer) {
        *lock(&self.answer) = Some(answer);
        self.is_answered.store(true, Ordering::Release);
        (self.wake)();
    }
}

/// A compaction for another process. It is answered once: by [`RemoteCompaction::finish`],
/// [`RemoteCompaction::decline`] or [`RemoteCompaction::fail`]. One that is dropped has failed.
pub struct RemoteCompaction {
    info: RemoteCompactionInfo,
    input: Vec<u8>,
    /// `None` once it was answered.
    sent: Option<Arc<Sent>>,
}

impl RemoteCompaction {
    pub(crate) fn new(info: RemoteCompactionInfo, input: Vec<u8>, sent: Arc<Sent>) -> Self {
        RemoteCompaction { info, input, sent: Some(sent) }
    }

    /// Returns what is known of the job.
    #[must_use]
    pub fn info(&self) -> &RemoteCompactionInfo {
        &self.info
    }

    /// Returns the bytes for [`Db::open_and_compact`](crate::Db::open_and_compact).
    #[must_use]
    pub fn input(&self) -> &[u8] {
        &self.input
    }

    /// Returns true if the database does not wait for the answer any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.sent.as_ref().is_none_or(|sent| sent.cancelled.load(Ordering::Acquire))
    }

    /// Answers with what [`Db::open_and_compact`](crate::Db::open_and_compact) returned.
    pub fn finish(mut self, result: Vec<u8>) {
        self.answer(Answer::Done(result));
    }

    /// Has the database compact by itself.
    pub fn decline(mut self) {
        self.answer(Answer::Declined);
    }

    /// Has the database compact by itself, because the service failed.
    pub fn fail(mut self, why: impl Into<String>) {
        self.answer(Answer::Failed(why.into()));
    }

    fn answer(&mut self, answer: Answer) {
        if let Some(sent) = self.sent.take() {
            sent.answer(answer);
        }
    }
}

impl Drop for RemoteCompaction {
    fn drop(&mut self) {
        self.answer(Answer::Failed("the service gave the job up".into()));
    }
}

impl std::fmt::Debug for RemoteCompaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RemoteCompaction").field(&self.info).finish()
    }
}

/// A compaction service, as options have it. Two are equal if they are the same object.
#[derive(Clone)]
pub struct RemoteCompactions(Arc<dyn CompactionService>);

impl RemoteCompactions {
    /// Makes `service` the value of an option.
    pub fn new(service: impl CompactionService + 'static) -> RemoteCompactions {
        RemoteCompactions(Arc::new(service))
    }

    pub(crate) fn service(&self) -> &dyn CompactionService {
        &*self.0
    }
}

impl From<Arc<dyn CompactionService>> for RemoteCompactions {
    fn from(service: Arc<dyn CompactionService>) -> RemoteCompactions {
        RemoteCompactions(service)
    }
}

impl PartialEq for RemoteCompactions {
    fn eq(&self, other: &RemoteCompactions) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for RemoteCompactions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RemoteCompactions").field(&self.0.name()).finish()
    }
}
