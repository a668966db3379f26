//! What others are told of jobs: scheduling, memory, the timeline.

use sateen_control::{IoClass, JobId};

use super::{Job, Step, output};
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
