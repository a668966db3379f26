//! What the recorder keeps, one value of fixed size for each thing that happened. Times are
//! nanoseconds since the database was opened.

use sateen_control::compaction::CompactionReason;
use sateen_control::{
    Adjustment, Admission, ColumnFamilyId, IO_CLASSES, IoClass, JobId, JobResult, PauseReason,
    StallCause,
};

/// What a background job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobInfo {
    /// Its number, unique since open.
    pub job: JobId,
    /// Whose tables it makes.
    pub column_family: ColumnFamilyId,
    /// For whom its I/O is done: tells flushes from compactions.
    pub class: IoClass,
    /// Why it was picked; `None` for a flush.
    pub reason: Option<CompactionReason>,
    /// The highest level that it reads; 0 for a flush.
    pub level: u8,
    /// The level that it writes to.
    pub output_level: u8,
    /// Bytes that it has to read: of memtables, or of tables.
    pub input_bytes: u64,
}

impl JobInfo {
    /// True if memtables are written to level 0.
    #[must_use]
    pub fn is_flush(&self) -> bool {
        self.class == IoClass::Flush
    }

    /// In a few words: "flush", "L0→L1", "L2→L3".
    #[must_use]
    pub fn label(&self) -> String {
        if self.is_flush() {
            return "flush".to_owned();
        }
        format!("L{}→L{}", self.level, self.output_level)
    }
}

/// Something that happened in the background.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at_ns: u64,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// A job exists from now on.
    JobStarted(JobInfo),
    /// A job is over.
    JobFinished {
        /// What it was.
        info: JobInfo,
        /// When it started.
        started_ns: u64,
        /// How it ended.
        result: JobResult,
        /// Bytes that it read.
        read_bytes: u64,
        /// Bytes that it wrote.
        written_bytes: u64,
    },
    /// A job gets no grants for a while.
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
    /// Level 0 waits for what a job holds: it is to install what it has as soon as that can stand
    /// by itself, and gets grants as level 0 does until then.
    FinishEarly {
        /// Which.
        job: JobId,
    },
    /// A job is given up, at the end of its step if it is in one.
    Discarded {
        /// Which.
        job: JobId,
    },
    /// Background work may use another bandwidth from now on, in bytes a second.
    Bandwidth {
        /// What clients use.
        client: u64,
        /// What background work may read.
        read: u64,
        /// What background work may write.
        write: u64,
    },
    /// Job slots, or the size of a column family's memtables from the next one on, are adjusted.
    Adjusted(Adjustment),
    /// What passed the file system in the period that ends here, by
    /// [`IoClass::index`](crate::vfs::IoClass::index).
    Traffic {
        /// The length of the period.
        period_ms: u32,
        /// KiB read.
        read_kib: [u32; IO_CLASSES],
        /// KiB written.
        written_kib: [u32; IO_CLASSES],
    },
    /// Writers are admitted like this from now on.
    Admission {
        /// Those who write to this column family; `None`: all.
        family: Option<ColumnFamilyId>,
        /// How, and why.
        admission: Admission,
    },
    /// Writers waited to be admitted, one or several at a time, with at most a few milliseconds in
    /// between, from `began_ns` to the event's time.
    Stalled {
        /// Why.
        cause: StallCause,
        /// When the first began to wait.
        began_ns: u64,
        /// Waits that ended.
        waits: u32,
        /// Their lengths together.
        waited_ns: u64,
    },
    /// The file system cannot punch holes: from now on files are given back as a whole, and those
    /// with much that is dead are written anew. Told once.
    CannotPunch,
    /// All that is stored is being verified from now on.
    ScrubBegan,
    /// It has been.
    ScrubEnded {
        /// Bytes that were verified.
        bytes: u64,
        /// How much of it was found damaged.
        problems: u64,
    },
    /// There is no log for what would stay in it when memtables are flushed, or none that can have
    /// another name beside the tables: all is flushed. Told once for a column family.
    CannotUseLog,
    /// A memtable takes no more writes.
    Sealed {
        /// Whose.
        column_family: ColumnFamilyId,
        /// Bytes of its entries.
        bytes: u64,
    },
}

/// What a worker did in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Part of a job, as much as it was granted.
    Step,
    /// Making a job's result part of the tree: opening its tables, the manifest's record and sync.
    Install,
    /// The next log, syncs by interval, removing logs, a new manifest.
    Chores,
    /// Giving the bytes of dead tables back.
    Reclaim,
}

impl StepKind {
    /// The name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            StepKind::Step => "step",
            StepKind::Install => "install",
            StepKind::Chores => "chores",
            StepKind::Reclaim => "reclaim",
        }
    }
}

/// Who did a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// A thread of the pool.
    Pool(u8),
    /// The thread of the chores.
    Chores,
    /// A client's thread: the database has no threads of its own.
    Client,
}

/// Some time in which a worker did background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When it began.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// What was done.
    pub kind: StepKind,
    /// Who did it.
    pub worker: Worker,
    /// For which job; number 0 for chores and reclaiming.
    pub job: JobId,
    /// For whom the I/O was done.
    pub class: IoClass,
    /// Bytes granted; 0 if it needs no grant.
    pub granted_bytes: u64,
    /// How long the grant waited for a worker.
    pub waited_ns: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes of dead tables punched out of files that hold others.
    pub punched_bytes: u64,
    /// Bytes given back of files that hold nothing else, whole or piece by piece.
    pub unlinked_bytes: u64,
    /// Time in reads and writes.
    pub device_ns: u64,
    /// Time in syncs.
    pub sync_ns: u64,
    /// Syncs.
    pub syncs: u32,
}

impl Step {
    /// When it ended.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }
}

/// The kinds of client operation of which the slowest are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationKind {
    /// A get or multi_get.
    Read,
    /// A batch.
    Write,
    /// An iterator's seek, or its going on to a block that was not in memory.
    Scan,
}

impl OperationKind {
    /// All of them.
    pub const ALL: [OperationKind; 3] =
        [OperationKind::Read, OperationKind::Write, OperationKind::Scan];

    /// The name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Read => "read",
            OperationKind::Write => "write",
            OperationKind::Scan => "scan",
        }
    }
}

/// One of the slowest operations of its second, and where its time went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowOperation {
    /// Which kind.
    pub kind: OperationKind,
    /// A number for the thread that it ran on.
    pub thread: u32,
    /// When it began. Of an operation that was not drawn for timing: when it first waited.
    pub start_ns: u64,
    /// How long it took.
    pub total_ns: u64,
    /// Waiting in the commit queue, and to become visible behind others.
    pub queue_ns: u64,
    /// Writing to the log.
    pub wal_append_ns: u64,
    /// Syncing the log, or waiting for another's sync.
    pub sync_ns: u64,
    /// Inserting into memtables.
    pub memtable_ns: u64,
    /// Waiting to be admitted.
    pub admission_ns: u64,
    /// Reading from files.
    pub device_read_ns: u64,
    /// Loading blocks that were not in the cache, and opening tables, the reads apart: checksum,
    /// decompression, insertion.
    pub cache_miss_ns: u64,
    /// Waiting for locks that others held.
    pub lock_ns: u64,
    /// Reads from files.
    pub device_reads: u32,
    /// Blocks that were not in the cache.
    pub cache_misses: u32,
}

impl SlowOperation {
    /// When it ended.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.total_ns)
    }

    /// The named parts of its time.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, u64); 9] {
        [
            ("queue", self.queue_ns),
            ("wal_append", self.wal_append_ns),
            ("sync", self.sync_ns),
            ("memtable", self.memtable_ns),
            ("admission", self.admission_ns),
            ("device_read", self.device_read_ns),
            ("cache_miss", self.cache_miss_ns),
            ("lock", self.lock_ns),
            ("other", self.other_ns()),
        ]
    }

    /// What is in no other part: computing, and waiting for a processor.
    #[must_use]
    pub fn other_ns(&self) -> u64 {
        let named = [
            self.queue_ns,
            self.wal_append_ns,
            self.sync_ns,
            self.memtable_ns,
            self.admission_ns,
            self.device_read_ns,
            self.cache_miss_ns,
            self.lock_ns,
        ];
        self.total_ns.saturating_sub(named.into_iter().fold(0, u64::saturating_add))
    }
}
