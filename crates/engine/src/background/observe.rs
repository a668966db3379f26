//! What others are told of jobs: scheduling, memory, the timeline.

use sateen_control::{Event, IoClass, JobId, JobResult};

use super::{Job, Step, StepBytes, output};
use crate::column_family::ColumnFamilyData;
use crate::error::Result;
use crate::timeline::JobInfo;

impl Job {
    /// What it reads and writes through, about.
    pub(super) fn buffer_bytes(&self) -> u64 {
        match self {
            Job::Flush(_) => output::BUFFER_BYTES,
            Job::Compaction(job) => job.buffer_bytes(),
        }
    }

    pub(super) fn class(&self) -> IoClass {
        match self {
            Job::Flush(_) => IoClass::Flush,
            Job::Compaction(job) => job.plan.class,
        }
    }

    /// What it is.
    pub(super) fn info(&self, job: JobId) -> JobInfo {
        match self {
            Job::Flush(flush) => JobInfo {
                job,
                column_family: flush.family.id(),
                class: IoClass::Flush,
                reason: None,
                level: 0,
                output_level: 0,
                input_bytes: flush.input_bytes(),
            },
            Job::Compaction(compaction) => {
                let plan = &compaction.plan;
                JobInfo {
                    job,
                    column_family: plan.cf,
                    class: plan.class,
                    reason: Some(plan.reason),
                    level: plan.inputs().map(|input| input.level).min().unwrap_or(0),
                    output_level: plan.output_level,
                    input_bytes: plan.rewrite_bytes(),
                }
            }
        }
    }
}

/// The bytes that a step read and wrote.
pub(super) fn moved(stepped: &Result<Step>) -> (u64, u64) {
    match stepped {
        Ok(Step::More(moved) | Step::Done(moved, _)) => (moved.read, moved.written),
        Err(_) => (0, 0),
    }
}

/// Nanoseconds that the calling thread has been on a processor.
pub(super) fn cpu_time() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

pub(super) fn stepped_event(job: JobId, moved: StepBytes) -> Event {
    Event::JobStepped {
        job,
        read_bytes: moved.read,
        written_bytes: moved.written,
        cpu_ns: moved.cpu_ns,
    }
}

pub(super) fn finished(job: JobId, result: JobResult) -> Event {
    Event::JobFinished { job, result }
}

pub(crate) fn memtables_event(family: &ColumnFamilyData) -> Event {
    let (sealed, sealed_bytes) = family.sealed_usage();
    Event::MemtablesChanged {
        cf: family.id(),
        sealed: u32::try_from(sealed).unwrap_or(u32::MAX),
        sealed_bytes,
        active_bytes: family.active_memtable().memory_bytes() as u64,
    }
}
