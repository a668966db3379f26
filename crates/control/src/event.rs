//! The interface between control and its driver: events go in, actions come out. Both are plain
//! values.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::compaction::ChosenFiles;
use crate::geometry::Stripes;
use crate::options::{BottommostLevelCompaction, ControlOptions};
use crate::plan::CompactionPlan;
use crate::policy::CfOptions;
use crate::tuner::Adjustment;
use crate::types::{ColumnFamilyId, FileId, IO_CLASSES, JobId, RequestId, SeqNo, TableId, UserKey};
use crate::version::Version;
use crate::write_controller::Admission;

/// Something that has happened. The driver reports each event once, in order.
///
/// At the end of a job it reports `VersionInstalled`, then `MemtablesChanged` (after a flush), then
/// `JobFinished`, before it polls again. Otherwise control would decide on an old state.
#[derive(Clone, Debug)]
pub enum Event {
    /// A column family exists from now on, with this version.
    ColumnFamilyAdded {
        /// Its options.
        options: Arc<CfOptions>,
        /// Its version, which names the column family.
        version: Arc<Version>,
    },
    /// A column family was dropped. Its jobs are discarded.
    ColumnFamilyDropped {
        /// The column family.
        cf: ColumnFamilyId,
    },
    /// The memtables of a column family changed. The driver sends it at once when one was sealed or
    /// flushed, and at any time for a change of `active_bytes` alone.
    MemtablesChanged {
        /// The column family.
        cf: ColumnFamilyId,
        /// Number of sealed memtables that are not in a version, those being flushed included.
        sealed: u32,
        /// Their bytes.
        sealed_bytes: u64,
        /// Bytes of the active memtable.
        active_bytes: u64,
        /// Bytes at which the active memtable is sealed. Less than was configured or adjusted if
        /// memory is short.
        size_bytes: u64,
    },
    /// The memtables that are sealed now must be flushed, however few they are.
    FlushRequested {
        /// The column family.
        cf: ColumnFamilyId,
    },
    /// A version became current. A version that is older than the known one is ignored.
    VersionInstalled {
        /// The version, which names the column family.
        version: Arc<Version>,
    },
    /// A job has ended a step, and waits for its next grant.
    JobStepped {
        /// The job.
        job: JobId,
        /// Bytes that it read in this step.
        read_bytes: u64,
        /// Bytes that it wrote in this step.
        written_bytes: u64,
        /// CPU time of the step in nanoseconds; 0 if not measured.
        cpu_ns: u64,
    },
    /// A job has ended a step and waits for another process, or has heard from it. While it is away
    /// it keeps its claim and its slot, and gets no grant.
    JobAway {
        /// The job.
        job: JobId,
        /// Whether it waits.
        away: bool,
    },
    /// A job has ended. Its last step was reported with `JobStepped`, unless it did nothing.
    JobFinished {
        /// The job.
        job: JobId,
        /// How it ended.
        result: JobResult,
    },
    /// The options of the database changed.
    OptionsChanged {
        /// The new options.
        options: Box<ControlOptions>,
    },
    /// The options of a column family changed.
    CfOptionsChanged {
        /// The column family.
        cf: ColumnFamilyId,
        /// The new options.
        options: Arc<CfOptions>,
    },
    /// A client wants a key range compacted down to the lowest level that has any of it. The caller
    /// flushes first. It ends with [`Action::ManualDone`].
    CompactRange {
        /// The caller's number, which the answer repeats.
        request: RequestId,
        /// The column family.
        cf: ColumnFamilyId,
        /// The first key; `None` for the start.
        begin: Option<UserKey>,
        /// The last key, inclusive; `None` for the end.
        end: Option<UserKey>,
        /// Whether the lowest level is rewritten.
        bottommost: BottommostLevelCompaction,
    },
    /// A client wants the tables below level 0 dropped whose keys all lie in a range. It ends with
    /// [`Action::ManualDone`].
    DropTables {
        /// The caller's number, which the answer repeats.
        request: RequestId,
        /// The column family.
        cf: ColumnFamilyId,
        /// The first key; `None` for the start.
        begin: Option<UserKey>,
        /// The last key, inclusive; `None` for the end.
        end: Option<UserKey>,
    },
    /// A client wants the tables in these files compacted into one level by one compaction, with
    /// all tables in their key range down to that level. It ends with [`Action::ManualDone`].
    CompactFiles {
        /// The caller's number, which the answer and the plan repeat.
        request: RequestId,
        /// The column family.
        cf: ColumnFamilyId,
        /// The files.
        files: ChosenFiles,
    },
    /// The compaction files that are sparse ([`sparse_files`](crate::compaction::sparse_files)).
    /// Their tables are rewritten when there is nothing else to compact. It replaces the last such
    /// event.
    FilesSparse {
        /// The files.
        files: BTreeSet<FileId>,
    },
    /// A table has [`CfOptions::charges_max`] charges: so many reads looked into it in vain and
    /// then into another one. It is compacted when no level is due.
    TableCharged {
        /// The column family.
        cf: ColumnFamilyId,
        /// The table.
        table: TableId,
    },
    /// All readers see the range tombstones up to this number.
    RangesSeen {
        /// The column family.
        cf: ColumnFamilyId,
        /// The newest of these tombstones.
        up_to: SeqNo,
    },
    /// A client cancels a request. Nothing more is started for it. Its running job goes on, and the
    /// request ends with that.
    CompactRangeCancelled {
        /// The request.
        request: RequestId,
    },
    /// Background work is paused (after a background error, for a shutdown), or continues. While it
    /// is paused no job is started and none gets a grant.
    Paused(bool),
    /// A client has stopped compactions, or lets them start again. Flushes go on.
    CompactionsStopped(bool),
    /// The I/O of the device and the writes of clients since the last sample.
    Sample(Box<Sample>),
}

/// The I/O of one class in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSample {
    /// Bytes read.
    pub read_bytes: u64,
    /// Number of finished reads.
    pub reads: u64,
    /// The sum of their times in nanoseconds.
    pub read_ns: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Number of finished writes.
    pub writes: u64,
    /// The sum of their times in nanoseconds.
    pub write_ns: u64,
    /// Number of finished barriers.
    pub syncs: u64,
    /// The sum of their times in nanoseconds.
    pub sync_ns: u64,
}

/// What happened since the last sample. The driver sends one every [`SAMPLE_PERIOD`] or a little
/// later; of many databases with a small part in the load, each every tenth of a second. The period
/// is the time between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The I/O of the device by [`IoClass::index`](crate::types::IoClass::index).
    pub classes: [ClassSample; IO_CLASSES],
    /// Bytes of keys and values that clients committed.
    pub user_bytes: u64,
    /// What clients read.
    pub reads: ReadSample,
    /// How the machine's processors were used.
    pub processors: Processors,
    /// Bytes of dead tables that can be given back now or soon. Those that a snapshot, an iterator,
    /// a lease or a checkpoint keeps are not among them.
    pub dead_bytes: u64,
    /// Whether writers of the database wait for memory that column families or databases share.
    pub memory_is_awaited: bool,
}

/// How the processors of the machine were used lately, in thousandths of the time of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processors {
    /// What other programs, the kernel's threads and other guests of the host used.
    pub others: u32,
    /// What nobody used.
    pub idle: u32,
}

impl Processors {
    /// Returns true if others have most of the processors, and nothing is left.
    #[must_use]
    pub fn are_taken(&self) -> bool {
        self.others >= TAKEN_BY_OTHERS && self.idle < IDLE_MIN
    }

    /// Returns true if there are enough of them. Between the two nothing has changed.
    #[must_use]
    pub fn are_free(&self) -> bool {
        self.others < LEFT_BY_OTHERS || self.idle >= IDLE_ENOUGH
    }

    /// Returns true if the machine is short of processors now, and was or was not `before`.
    #[must_use]
    pub fn are_short(&self, before: bool) -> bool {
        if before { !self.are_free() } else { self.are_taken() }
    }
}

/// From which part on others have the processors, and below which part nothing is left.
const TAKEN_BY_OTHERS: u32 = 500;
const IDLE_MIN: u32 = 100;
/// Below and above these parts there are enough processors again.
const LEFT_BY_OTHERS: u32 = 400;
const IDLE_ENOUGH: u32 = 200;

/// The reads of clients in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadSample {
    /// Point reads.
    pub gets: u64,
    /// Runs that they looked into: those with a table whose key range has the key.
    pub runs: u64,
    /// Scans: seeks of iterators.
    pub scans: u64,
    /// Data blocks found in the block cache.
    pub block_hits: u64,
    /// Data blocks that had to be read.
    pub block_misses: u64,
}

impl ReadSample {
    /// Returns what has happened since `before`, if both count from the same moment.
    #[must_use]
    pub fn since(&self, before: &ReadSample) -> ReadSample {
        ReadSample {
            gets: self.gets.saturating_sub(before.gets),
            runs: self.runs.saturating_sub(before.runs),
            scans: self.scans.saturating_sub(before.scans),
            block_hits: self.block_hits.saturating_sub(before.block_hits),
            block_misses: self.block_misses.saturating_sub(before.block_misses),
        }
    }
}

/// How often the driver samples (SILK §5.2.1).
pub const SAMPLE_PERIOD: std::time::Duration = std::time::Duration::from_millis(10);

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobResult {
    /// Its edit is part of the current version.
    Done,
    /// It was discarded ([`Action::Discard`], a shutdown), and left nothing behind.
    Cancelled,
    /// It failed, and left nothing behind. No similar job starts for a while.
    Failed,
    /// It failed because the disk was full. The next compactions of the column family take less
    /// input.
    NoSpace,
}

/// Something that the driver must do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make a flush of the oldest `memtables` sealed memtables into one run of level 0. It may step
    /// when it has a grant. A column family has at most one flush at a time.
    StartFlush {
        /// The number of the job.
        job: JobId,
        /// The column family.
        cf: ColumnFamilyId,
        /// Number of memtables, at least 1.
        memtables: u32,
        /// Ascending keys at which the tables of the run are cut: no table crosses one of them.
        stripes: Stripes,
    },
    /// Make one flush of the sealed memtables of all column families, up to one sequence number. It
    /// makes one run of level 0 in each, and all are installed by one edit. There is at most one at
    /// a time ([`ControlOptions::atomic_flush`]).
    StartFlushTogether {
        /// The number of the job.
        job: JobId,
        /// All column families, ordered by number.
        members: Vec<FlushMember>,
    },
    /// Make a compaction. It may step when it has a grant.
    StartCompaction {
        /// The number of the job.
        job: JobId,
        /// The plan.
        plan: Arc<CompactionPlan>,
    },
    /// The job may take one step, which ends after about `bytes` bytes written, or read if it
    /// writes nothing. Every grant is answered by `JobStepped` or `JobFinished`.
    Grant {
        /// The job.
        job: JobId,
        /// The bytes of the grant.
        bytes: u64,
    },
    /// Abandon the job at once, install nothing, and report it as `Cancelled`.
    Discard {
        /// The job.
        job: JobId,
    },
    /// All writers are admitted like this from now on. Publish it where they look.
    Admit(Admission),
    /// The writers of this column family are admitted like this from now on, in addition to the
    /// admission of all writers.
    AdmitFamily {
        /// The column family.
        cf: ColumnFamilyId,
        /// The admission.
        admission: Admission,
    },
    /// End the job early: at the next key at which its result can be installed, install that and
    /// abandon the rest. It gets grants until then.
    FinishEarly {
        /// The job.
        job: JobId,
    },
    /// Apply a new limit. No answer is needed.
    SetLimit(Adjustment),
    /// Something for observers. Nothing is to be done.
    Note(Note),
    /// A manual compaction has ended: completed, or given up because of a failure, a cancellation
    /// or a drop.
    ManualDone {
        /// The request.
        request: RequestId,
        /// Whether everything in the range was compacted.
        complete: bool,
    },
}

/// A column family in a flush of all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct FlushMember {
    /// The column family.
    pub cf: ColumnFamilyId,
    /// Number of its sealed memtables as far as control knows; it may be 0.
    pub memtables: u32,
    /// The keys at which its tables are cut, as in [`Action::StartFlush`].
    pub stripes: Stripes,
}

/// The reason for which a job gets no grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// A compaction out of level 0 needed its slot (SILK §5.2.2).
    Preempted {
        /// The job that runs instead.
        by: JobId,
    },
    /// Clients need the bandwidth. All deep jobs are paused.
    Peak,
    /// There are fewer slots than before.
    Slots,
}

/// What control tells observers.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A job was paused.
    Paused {
        /// The job.
        job: JobId,
        /// The reason.
        reason: PauseReason,
    },
    /// A paused job goes on.
    Resumed {
        /// The job.
        job: JobId,
    },
    /// The bandwidth of background work has changed. All values are in bytes per second.
    Bandwidth {
        /// Bandwidth that clients use.
        client: u64,
        /// Limit on the reads of background work.
        read: u64,
        /// Limit on the writes of background work.
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
