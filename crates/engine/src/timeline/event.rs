//! The values in the recorder, each of fixed size. Times are nanoseconds since the database was
//! opened.

use sateen_control::compaction::CompactionReason;
use sateen_control::{
    Adjustment, Admission, ColumnFamilyId, DeviceProfile, IO_CLASSES, IoClass, JobId, JobResult,
    PauseReason, StallCause,
};

/// A background job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobInfo {
    /// Its number, unique since open.
    pub job: JobId,
    /// The column family of its tables.
    pub column_family: ColumnFamilyId,
    /// The class of its I/O, which tells flushes from compactions.
    pub class: IoClass,
    /// The reason for a compaction; `None` for a flush.
    pub reason: Option<CompactionReason>,
    /// The uppermost level that it reads; 0 for a flush.
    pub level: u8,
    /// The output level.
    pub output_level: u8,
    /// Bytes of the memtables or tables that it has to read.
    pub input_bytes: u64,
}

impl JobInfo {
    /// Returns true if the job is a flush.
    #[must_use]
    pub fn is_flush(&self) -> bool {
        self.class == IoClass::Flush
    }

    /// Returns a short description: "flush", "L0→L1", "L2→L3".
    #[must_use]
    pub fn label(&self) -> String {
        if self.is_flush() {
            return "flush".to_owned();
        }
        format!("L{}→L{}", self.level, self.output_level)
    }
}

/// A job that runs, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningJob {
    /// The job.
    pub info: JobInfo,
    /// When it started.
    pub started_ns: u64,
    /// Bytes that it has read.
    pub read_bytes: u64,
    /// Bytes that it has written.
    pub written_bytes: u64,
    /// The reason of its pause; `None` if it is not paused.
    pub paused: Option<PauseReason>,
}

impl RunningJob {
    /// Returns a job that has just started.
    pub(crate) fn new(info: JobInfo, started_ns: u64) -> RunningJob {
        RunningJob { info, started_ns, read_bytes: 0, written_bytes: 0, paused: None }
    }
}

/// Something that happened in the background.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When it happened.
    pub at_ns: u64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// A job was started.
    JobStarted(JobInfo),
    /// A job has ended.
    JobFinished {
        /// The job.
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
    /// A job was paused: it gets no grants.
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
    /// A compaction has tables that level 0 waits for, and was told to end as soon as its result
    /// can be installed. Until then it gets grants like a compaction out of level 0.
    FinishEarly {
        /// The job.
        job: JobId,
    },
    /// A job was discarded. If it was in a step, it ends with that.
    Discarded {
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
    /// The tuner, or a change of options, has changed the job slots, or a column family's memtable
    /// size from the next memtable on.
    Adjusted(Adjustment),
    /// The I/O of the period that ends here, by [`IoClass::index`](crate::vfs::IoClass::index).
    Traffic {
        /// The length of the period in milliseconds.
        period_ms: u32,
        /// KiB read.
        read_kib: [u32; IO_CLASSES],
        /// KiB written.
        written_kib: [u32; IO_CLASSES],
    },
    /// The admission of writers has changed.
    Admission {
        /// The column family whose writers are affected; `None` for all writers.
        family: Option<ColumnFamilyId>,
        /// The new admission, with its cause.
        admission: Admission,
    },
    /// Writers waited to be admitted from `began_ns` to the event's time. Waits with pauses of at
    /// most a few milliseconds between them count as one stall.
    Stalled {
        /// The cause.
        cause: StallCause,
        /// When the first writer began to wait.
        began_ns: u64,
        /// Waits that ended.
        waits: u32,
        /// The sum of their lengths.
        waited_ns: u64,
    },
    /// The file system cannot punch holes. From now on the space of dead tables is freed only with
    /// their file, and files with many dead bytes are rewritten. Recorded once.
    CannotPunch,
    /// A scrub has begun.
    ScrubBegan,
    /// A scrub has ended.
    ScrubEnded {
        /// Bytes that were verified.
        bytes: u64,
        /// Number of findings of damage.
        problems: u64,
    },
    /// There is no WAL in which values or hot keys could stay at a flush, or the file system cannot
    /// give it a second name beside the tables. Flushes store everything. Recorded once for each
    /// column family.
    CannotUseLog,
    /// What is believed of the device has changed by more than a tenth.
    Device(DeviceProfile),
    /// The thread that takes samples ran this much later than it had asked for. It waits for
    /// nothing but a processor.
    Late {
        /// The delay.
        late_ns: u64,
    },
    /// The machine is short of processors from now on, because other programs have most of them, or
    /// is not any more.
    Processors {
        /// Whether it is.
        short: bool,
        /// Thousandths of the time of all processors that other programs used lately.
        others: u32,
        /// Thousandths that nobody used.
        idle: u32,
    },
    /// A memtable was sealed.
    Sealed {
        /// Its column family.
        column_family: ColumnFamilyId,
        /// Bytes of its entries.
        bytes: u64,
    },
}

/// What a worker did in a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A part of a job, within its grant.
    Step,
    /// The installation of a job's result: opening its tables, the record in the manifest, and its
    /// sync.
    Install,
    /// A round of the chores: the next WAL, syncs by interval, removal of WALs, a new manifest.
    Chores,
    /// Freeing the space of dead tables.
    Reclaim,
}

impl StepKind {
    /// Returns the name in exported files.
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

/// The thread that did a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// A worker of the pool.
    Pool(u8),
    /// The thread of the chores.
    Chores,
    /// A client's thread, in a database without threads.
    Client,
}

/// A period in which a worker did background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When it began.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// What was done.
    pub kind: StepKind,
    /// The thread.
    pub worker: Worker,
    /// The job; number 0 for chores and reclaiming.
    pub job: JobId,
    /// The class of the I/O.
    pub class: IoClass,
    /// Bytes granted; 0 for work that needs no grant.
    pub granted_bytes: u64,
    /// How long the grant waited for a worker.
    pub waited_ns: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes of dead tables that were freed by punching holes in files with live tables.
    pub punched_bytes: u64,
    /// Bytes of files without live tables that were freed, whole or piece by piece.
    pub unlinked_bytes: u64,
    /// Time in reads and writes.
    pub device_ns: u64,
    /// Time in syncs.
    pub sync_ns: u64,
    /// CPU time of a step of a job; 0 if it is not known.
    pub cpu_ns: u64,
    /// Number of syncs.
    pub syncs: u32,
}

impl Step {
    /// Returns when it ended.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }

    /// Returns the time in which it neither computed nor was in the device: it waited for a
    /// processor, or for a lock. 0 if its CPU time is not known.
    #[must_use]
    pub fn held_up_ns(&self) -> u64 {
        if self.cpu_ns == 0 {
            return 0;
        }
        let known = self.device_ns.saturating_add(self.sync_ns).saturating_add(self.cpu_ns);
        self.duration_ns.saturating_sub(known)
    }
}

/// A kind of client operation, of which the slowest are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationKind {
    /// A get or multi_get.
    Read,
    /// A write batch.
    Write,
    /// A seek of an iterator, or a step to a block that was not in memory.
    Scan,
}

impl OperationKind {
    /// All kinds.
    pub const ALL: [OperationKind; 3] =
        [OperationKind::Read, OperationKind::Write, OperationKind::Scan];

    /// Returns the name in exported files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Read => "read",
            OperationKind::Write => "write",
            OperationKind::Scan => "scan",
        }
    }
}

/// One of the slowest operations of its second, and the parts of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowOperation {
    /// The kind.
    pub kind: OperationKind,
    /// The number of the thread on which it ran.
    pub thread: u32,
    /// When it began. For an operation that was not drawn for timing: when it first waited.
    pub start_ns: u64,
    /// How long it took.
    pub total_ns: u64,
    /// Time in the commit queue, and behind other groups until it was visible.
    pub queue_ns: u64,
    /// Time of writing to the WAL.
    pub wal_append_ns: u64,
    /// Time of syncing the WAL, or of waiting for another thread's sync.
    pub sync_ns: u64,
    /// Time of inserting into memtables.
    pub memtable_ns: u64,
    /// Time of waiting for admission.
    pub admission_ns: u64,
    /// Time of reading from files.
    pub device_read_ns: u64,
    /// Time of loading blocks that were not in the cache, and of opening tables, without the reads:
    /// checksum, decompression, insertion.
    pub cache_miss_ns: u64,
    /// Time of waiting for locks.
    pub lock_ns: u64,
    /// Number of reads from files.
    pub device_reads: u32,
    /// Number of blocks that were not in the cache.
    pub cache_misses: u32,
}

impl SlowOperation {
    /// Returns when it ended.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.total_ns)
    }

    /// Returns the parts of its time, by name.
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

    /// Returns the time in no other part: computing, and waiting for a processor.
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
