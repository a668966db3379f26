//! What the timeline is told of jobs.

use sateen_control::{IoClass, JobId};

use super::{Job, Step};
use crate::error::Result;
use crate::timeline::JobInfo;

impl Job {
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
