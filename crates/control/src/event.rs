//! What passes between control and its driver: events in, actions out. Plain values both.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::compaction::ChosenFiles;
use crate::geometry::Stripes;
use crate::options::{BottommostLevelCompaction, ControlOptions};
use crate::plan::CompactionPlan;
use crate::policy::CfOptions;
use crate::tuner::Adjustment;
use crate::types::{ColumnFamilyId, FileId, IO_CLASSES, JobId, RequestId, SeqNo, UserKey};
use crate::version::Version;
use crate::write_controller::Admission;

/// What has happened. The driver reports each event once, in the order in which they happened.
///
/// At the end of a job it reports `VersionInstalled`, then `MemtablesChanged` (after a flush), then
/// `JobFinished`, before it polls again: otherwise control decides on a state that is gone.
#[derive(Clone, Debug)]
pub enum Event {
    /// A column family exists from now on, with this version.
    ColumnFamilyAdded {
        /// Its options.
        options: Arc<CfOptions>,
        /// Its version; it names the column family.
        version: Arc<Version>,
    },
    /// A column family is gone: its jobs are discarded.
    ColumnFamilyDropped {
        /// Which.
        cf: ColumnFamilyId,
    },
    /// The memtables of a column family changed: one was sealed or flushed. Sent at once then, and
    /// as often as the driver likes for `active_bytes` alone.
    MemtablesChanged {
        /// Which column family.
        cf: ColumnFamilyId,
        /// Memtables that are sealed and not yet in a version, those being flushed included.
        sealed: u32,
        /// Their bytes.
        sealed_bytes: u64,
        /// Bytes of the memtable that takes writes.
        active_bytes: u64,
    },
    /// What is sealed now is to be flushed, however little it is.
    FlushRequested {
        /// Which column family.
        cf: ColumnFamilyId,
    },
    /// A version became current. Versions older than the one known are ignored.
    VersionInstalled {
        /// The version; it names the column family.
        version: Arc<Version>,
    },
    /// A job used its grant, or as much of it as it needed, and waits for the next.
    JobStepped {
        /// Which.
        job: JobId,
        /// Bytes it read in this step.
        read_bytes: u64,
        /// Bytes it wrote in this step.
        written_bytes: u64,
        /// Nanoseconds that the step took a processor; 0: not measured.
        cpu_ns: u64,
    },
    /// A job is over. Its last step has been reported with `JobStepped`, unless it did nothing.
    JobFinished {
        /// Which.
        job: JobId,
        /// How it ended.
        result: JobResult,
    },
    /// Options of the whole database changed.
    OptionsChanged {
        /// The new options.
        options: Box<ControlOptions>,
    },
    /// Options of a column family changed.
    CfOptionsChanged {
        /// Which.
        cf: ColumnFamilyId,
        /// The new options.
        options: Arc<CfOptions>,
    },
    /// Compact a range of keys down to the lowest level that has any. The caller flushes first.
    /// Ends with [`Action::ManualDone`].
    CompactRange {
        /// Chosen by the caller, named in the answer.
        request: RequestId,
        /// Which column family.
        cf: ColumnFamilyId,
        /// The first key; `None`: from the start.
        begin: Option<UserKey>,
        /// The last key, inclusive; `None`: to the end.
        end: Option<UserKey>,
        /// What becomes of the lowest level.
        bottommost: BottommostLevelCompaction,
    },
    /// Drop the tables below level 0 that have no keys but these, with all that is in them. Ends
    /// with [`Action::ManualDone`].
    DropTables {
        /// Chosen by the caller, named in the answer.
        request: RequestId,
        /// Which column family.
        cf: ColumnFamilyId,
        /// The first key; `None`: from the start.
        begin: Option<UserKey>,
        /// The last key, inclusive; `None`: to the end.
        end: Option<UserKey>,
    },
    /// Compact the tables in these files, and what lies between them and the output level in their
    /// range of keys, into one level by one compaction. Ends with [`Action::ManualDone`].
    CompactFiles {
        /// Chosen by the caller, named in the answer and in the plan.
        request: RequestId,
        /// Which column family.
        cf: ColumnFamilyId,
        /// What to compact.
        files: ChosenFiles,
    },
    /// Of all compaction files these should go ([`sparse_files`](crate::compaction::sparse_files)):
    /// when nothing else is to be compacted, their tables are written anew. Replaces what was said
    /// before.
    FilesSparse {
        /// Which.
        files: BTreeSet<FileId>,
    },
    /// All readers see the range tombstones up to this number.
    RangesSeen {
        /// Whose.
        cf: ColumnFamilyId,
        /// The newest of them.
        up_to: SeqNo,
    },
    /// Give the request up: nothing more is started for it. Its running job goes on, then it is
    /// done.
    CompactRangeCancelled {
        /// Which.
        request: RequestId,
    },
    /// Background work must not start anything (a background error, a shutdown), or may again.
    /// Running jobs get no further grant while paused.
    Paused(bool),
    /// What the device and the clients did since the last sample.
    Sample(Box<Sample>),
}

/// What the device did for one class of I/O in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSample {
    /// Bytes read.
    pub read_bytes: u64,
    /// Reads that ended.
    pub reads: u64,
    /// How long they took, together, in nanoseconds.
    pub read_ns: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Writes that ended.
    pub writes: u64,
    /// How long they took, together, in nanoseconds.
    pub write_ns: u64,
    /// Barriers that ended.
    pub syncs: u64,
    /// How long they took, together, in nanoseconds.
    pub sync_ns: u64,
}

/// What happened since the last sample. Sent every [`SAMPLE_PERIOD`] or a little later: the period
/// is the time between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The device's work by [`IoClass::index`](crate::types::IoClass::index).
    pub classes: [ClassSample; IO_CLASSES],
    /// Bytes of keys and values that clients committed.
    pub user_bytes: u64,
}

/// How often the driver samples (SILK §5.2.1).
pub const SAMPLE_PERIOD: std::time::Duration = std::time::Duration::from_millis(10);

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobResult {
    /// Its edit is part of the current version.
    Done,
    /// It left nothing behind, as asked ([`Action::Discard`], a shutdown).
    Cancelled,
    /// It left nothing behind because of an error. Nothing alike starts for a while.
    Failed,
    /// The same, for want of space: the next compactions of the column family take less.
    NoSpace,
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make a flush of the oldest `memtables` sealed memtables into one run of level 0. It may run
    /// when it has a grant. A column family has at most one flush at a time.
    StartFlush {
        /// Its number.
        job: JobId,
        /// Which column family.
        cf: ColumnFamilyId,
        /// How many memtables, at least 1.
        memtables: u32,
        /// No table of the run goes across these keys: each begins another one at or after it.
        /// Ascending.
        stripes: Stripes,
    },
    /// Make one flush of the sealed memtables of all column families, up to one sequence number:
    /// one run of level 0 in each, all installed by one edit. There is at most one at a time
    /// ([`ControlOptions::atomic_flush`]).
    StartFlushTogether {
        /// Its number.
        job: JobId,
        /// All column families, in the order of their numbers.
        members: Vec<FlushMember>,
    },
    /// Make a compaction. It may run when it has a grant.
    StartCompaction {
        /// Its number.
        job: JobId,
        /// What it does.
        plan: Arc<CompactionPlan>,
    },
    /// The job may take one step: it stops after about `bytes` bytes written, or read where it
    /// writes nothing. Every grant is answered by `JobStepped` or `JobFinished`.
    Grant {
        /// Which job.
        job: JobId,
        /// How much.
        bytes: u64,
    },
    /// Give the job up at once, installing nothing, and report it `Cancelled`.
    Discard {
        /// Which job.
        job: JobId,
    },
    /// From now on all writers are admitted like this. Publish it where they look.
    Admit(Admission),
    /// From now on those who write to this column family are admitted like this, if the
    /// admission of all lets them.
    AdmitFamily {
        /// Which column family.
        cf: ColumnFamilyId,
        /// How.
        admission: Admission,
    },
    /// Bring the job to an early end: at the next key where what it has written can stand by
    /// itself it installs that, and gives up the rest. It goes on getting grants until then.
    FinishEarly {
        /// Which job.
        job: JobId,
    },
    /// Adjust a limit while the database runs. Nobody waits for it.
    SetLimit(Adjustment),
    /// Something that only observers want to know. Nothing is to be done.
    Note(Note),
    /// A manual compaction is over: all done, or given up because of a failure or a drop.
    ManualDone {
        /// Which.
        request: RequestId,
        /// Whether everything in the range was compacted.
        complete: bool,
    },
}

/// A column family in a flush of all.
#[derive(Clone, Debug, PartialEq)]
pub struct FlushMember {
    /// Which.
    pub cf: ColumnFamilyId,
    /// How many memtables it has sealed, as far as control knows; it may be none.
    pub memtables: u32,
    /// No table of its run goes across these keys, as in [`Action::StartFlush`].
    pub stripes: Stripes,
}

/// Why a job gets no grants for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// A job out of level 0 needed its slot (SILK §5.2.2).
    Preempted {
        /// The job that runs instead.
        by: JobId,
    },
    /// Clients need the bandwidth: all deep jobs are paused.
    Peak,
    /// There are fewer slots than there were.
    Slots,
}

/// What control tells those who watch.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A job is paused where it is.
    Paused {
        /// Which.
        job: JobId,
        /// Why.
        reason: PauseReason,
    },
    /// A paused job goes on.
    Resumed {
        /// Which.
        job: JobId,
    },
    /// Background work has another bandwidth from now on, in bytes a second.
    Bandwidth {
        /// What clients use.
        client: u64,
        /// What background work may read.
        read: u64,
        /// What background work may write.
        write: u64,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Paused { job, reason: PauseReason::Preempted { by } } => {
                write!(f, "paused {job} by={by}")
            }
            Note::Paused { job, reason: PauseReason::Peak } => write!(f, "paused {job} peak"),
            Note::Paused { job, reason: PauseReason::Slots } => write!(f, "paused {job} slots"),
            Note::Resumed { job } => write!(f, "resumed {job}"),
            Note::Bandwidth { client, read, write } => {
                write!(f, "bandwidth client={client} read={read} write={write}")
            }
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::StartFlush { job, cf, memtables, stripes } => {
                write!(f, "flush {job} {cf} memtables={memtables}")?;
                if stripes.is_empty() {
                    Ok(())
                } else {
                    write!(f, " stripes={}", stripes.len() + 1)
                }
            }
            Action::StartFlushTogether { job, members } => {
                write!(f, "flush-together {job}")?;
                let mut filled = members.iter().filter(|member| member.memtables > 0);
                filled.try_for_each(|member| {
                    write!(f, " {} memtables={}", member.cf, member.memtables)
                })
            }
            Action::StartCompaction { job, plan } => write!(f, "compact {job} {plan}"),
            Action::Grant { job, bytes } => write!(f, "grant {job} {bytes}"),
            Action::Discard { job } => write!(f, "discard {job}"),
            Action::Admit(admission) => write!(f, "admit {admission}"),
            Action::AdmitFamily { cf, admission } => write!(f, "admit-family {cf} {admission}"),
            Action::FinishEarly { job } => write!(f, "finish-early {job}"),
            Action::SetLimit(adjustment) => write!(f, "limit {adjustment}"),
            Action::Note(note) => write!(f, "note {note}"),
            Action::ManualDone { request, complete } => {
                write!(f, "manual-done {request} complete={complete}")
            }
        }
    }
}
