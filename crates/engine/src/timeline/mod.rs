//! The flight recorder: what the background did, decided and waited for, and the slowest client
//! operations of each second with the parts of their time. It is always on, in memory of fixed
//! size.
//!
//! 1. `Recorder` takes events and steps from the engine into rings; `slow` keeps the slowest
//!    operations.
//! 2. [`Db::timeline`](crate::Db::timeline) copies them into a [`Timeline`].
//! 3. [`Timeline::jobs`], [`Timeline::stalls`] and [`Timeline::overlaps`] put events together.
//! 4. [`Timeline::to_chrome_trace`] exports them for Perfetto and `chrome://tracing`.
//!
//! docs/timeline.md tells what it costs.

mod event;
mod json;
pub(crate) mod lines;
mod objects;
mod recorder;
mod slow;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use sateen_control::ColumnFamilyId;

pub use event::{
    Event, EventKind, JobInfo, OperationKind, RunningJob, SlowOperation, Step, StepKind, Worker,
};
pub(crate) use recorder::{Grant, Moved, Recorder};
pub use sateen_control::compaction::CompactionReason;
pub use sateen_control::{
    Adjustment, Admission, AdmissionState, DeviceProfile, JobId, JobResult, JobSlots, Limit,
    Overflow, PauseReason, StallCause,
};

/// The position up to which a [`Timeline`] has copied the recorder.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    events: u64,
    steps: u64,
    slow: slow::SlowCursor,
}

/// A copy of the flight recorder. All times are nanoseconds since the database was opened, or the
/// first one of those that share its threads ([`Runtime`](crate::Runtime)).
///
/// The recorder forgets old entries. A timeline that is extended by
/// [`Db::extend_timeline`](crate::Db::extend_timeline) every few seconds misses none.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// db.put("key", "value")?;
/// db.flush()?;
/// let timeline = db.timeline();
/// assert!(timeline.jobs().iter().any(|job| job.info.is_flush()));
/// std::fs::write(directory.path().join("trace.json"), timeline.to_chrome_trace()).unwrap();
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// When it was last extended.
    pub until_ns: u64,
    /// Events, in the order in which they were recorded.
    pub events: Vec<Event>,
    /// Steps of workers, ordered by their end.
    pub steps: Vec<Step>,
    /// The slowest operations of each second, ordered by their start.
    pub slow: Vec<SlowOperation>,
    /// Events that were forgotten before they could be copied.
    pub lost_events: u64,
    /// Steps that were forgotten before they could be copied.
    pub lost_steps: u64,
    /// Slow operations that were forgotten before they could be copied.
    pub lost_slow: u64,
    /// Jobs that ran when it was last extended.
    pub running: Vec<RunningJob>,
    /// Names of column families.
    pub column_families: BTreeMap<ColumnFamilyId, String>,
    open_stalls: Vec<Event>,
    cursor: Cursor,
}

/// A job from its start to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpan {
    /// The job.
    pub info: JobInfo,
    /// When it started.
    pub start_ns: u64,
    /// When it ended; for a running job, when the timeline was last extended.
    pub end_ns: u64,
    /// How it ended; `None` if it runs.
    pub result: Option<JobResult>,
    /// Bytes that it has read.
    pub read_bytes: u64,
    /// Bytes that it has written.
    pub written_bytes: u64,
    /// Its pauses.
    pub pauses: Vec<PauseSpan>,
}

/// A period in which a job got no grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseSpan {
    /// When it was paused.
    pub start_ns: u64,
    /// When it was resumed, or ended.
    pub end_ns: u64,
    /// The reason.
    pub reason: PauseReason,
}

/// A period in which writers waited to be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallSpan {
    /// The cause.
    pub cause: StallCause,
    /// When the first writer began to wait.
    pub start_ns: u64,
    /// When the last writer was admitted.
    pub end_ns: u64,
    /// Waits that ended.
    pub waits: u32,
    /// The sum of their lengths.
    pub waited_ns: u64,
}

/// Background work that ran during a slow operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// A job's label, "chores" or "reclaim".
    pub label: String,
    /// What was done.
    pub kind: StepKind,
    /// The job; number 0 for chores and reclaiming.
    pub job: JobId,
    /// How long both ran at the same time.
    pub overlap_ns: u64,
    /// Bytes that the steps read, wrote and freed, also outside the overlap.
    pub bytes: u64,
    /// Time that the steps spent in syncs, also outside the overlap.
    pub sync_ns: u64,
}

impl Timeline {
    /// Returns the jobs, running ones included, ordered by their start.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobSpan> {
        let mut jobs: BTreeMap<JobId, JobSpan> = BTreeMap::new();
        let span = |info: JobInfo, start_ns, end_ns| JobSpan {
            info,
            start_ns,
            end_ns,
            result: None,
            read_bytes: 0,
            written_bytes: 0,
            pauses: Vec::new(),
        };
        for running in &self.running {
            let (read_bytes, written_bytes) = (running.read_bytes, running.written_bytes);
            let runs = span(running.info, running.started_ns, self.until_ns);
            jobs.insert(running.info.job, JobSpan { read_bytes, written_bytes, ..runs });
        }
        for event in &self.events {
            if let EventKind::JobFinished { info, started_ns, result, read_bytes, written_bytes } =
                event.kind
            {
                let result = Some(result);
                let ended = span(info, started_ns, event.at_ns);
                jobs.insert(info.job, JobSpan { result, read_bytes, written_bytes, ..ended });
            }
        }
        let mut paused: BTreeMap<JobId, (u64, PauseReason)> = BTreeMap::new();
        let resume = |jobs: &mut BTreeMap<JobId, JobSpan>, job: JobId, end: Option<u64>, pause| {
            if let (Some(span), Some((start_ns, reason))) = (jobs.get_mut(&job), pause) {
                let end_ns = end.unwrap_or(span.end_ns).max(start_ns);
                span.pauses.push(PauseSpan { start_ns, end_ns, reason });
            }
        };
        for event in &self.events {
            match event.kind {
                EventKind::Paused { job, reason } => {
                    paused.entry(job).or_insert((event.at_ns, reason));
                }
                EventKind::Resumed { job } => {
                    resume(&mut jobs, job, Some(event.at_ns), paused.remove(&job));
                }
                _ => {}
            }
        }
        for (job, pause) in paused {
            resume(&mut jobs, job, None, Some(pause));
        }
        let mut jobs: Vec<JobSpan> = jobs.into_values().collect();
        jobs.sort_by_key(|job| (job.start_ns, job.info.job));
        jobs
    }

    /// Returns the stalls, ordered by their end. A long stall comes in pieces.
    #[must_use]
    pub fn stalls(&self) -> Vec<StallSpan> {
        let all = self.events.iter().chain(&self.open_stalls);
        all.filter_map(|event| match event.kind {
            EventKind::Stalled { cause, began_ns, waits, waited_ns } => {
                let (start_ns, end_ns) = (began_ns, event.at_ns);
                Some(StallSpan { cause, start_ns, end_ns, waits, waited_ns })
            }
            _ => None,
        })
        .collect()
    }

    /// Returns the stalls that had not ended when it was last extended.
    pub(crate) fn open_stalls(&self) -> Vec<StallSpan> {
        let open = self.open_stalls.iter().filter_map(|event| match event.kind {
            EventKind::Stalled { cause, began_ns, waits, waited_ns } => {
                let (start_ns, end_ns) = (began_ns, event.at_ns);
                Some(StallSpan { cause, start_ns, end_ns, waits, waited_ns })
            }
            _ => None,
        });
        open.collect()
    }

    /// Returns the background work that ran during `operation`, as far as it is remembered, longest
    /// overlap first.
    #[must_use]
    pub fn overlaps(&self, operation: &SlowOperation) -> Vec<Overlap> {
        Overlaps::of(self).with(operation)
    }

    /// Removes everything that ended before `ns`.
    pub fn forget_before(&mut self, ns: u64) {
        self.events.retain(|event| event.at_ns >= ns);
        self.steps.retain(|step| step.end_ns() >= ns);
        self.slow.retain(|operation| operation.end_ns() >= ns);
    }
}

/// Finds the steps that overlap a period.
struct Overlaps<'a> {
    /// The steps, ordered by their end.
    steps: Vec<&'a Step>,
    /// The longest duration of a step, which limits the search.
    longest_ns: u64,
    labels: BTreeMap<JobId, String>,
}

impl<'a> Overlaps<'a> {
    fn of(timeline: &'a Timeline) -> Overlaps<'a> {
        let mut steps: Vec<&Step> = timeline.steps.iter().collect();
        steps.sort_by_key(|step| step.end_ns());
        let longest_ns = steps.iter().map(|step| step.duration_ns).max().unwrap_or(0);
        let labels = timeline.jobs().into_iter().map(|job| (job.info.job, job.info.label()));
        Overlaps { steps, longest_ns, labels: labels.collect() }
    }

    fn label(&self, step: &Step) -> String {
        match (step.kind, self.labels.get(&step.job)) {
            (StepKind::Chores | StepKind::Reclaim, _) => step.kind.name().to_owned(),
            (_, Some(label)) => label.clone(),
            (_, None) => step.class.to_string(),
        }
    }

    fn with(&self, operation: &SlowOperation) -> Vec<Overlap> {
        let (start, end) = (operation.start_ns, operation.end_ns());
        let first = self.steps.partition_point(|step| step.end_ns() <= start);
        let near = self.steps.iter().skip(first);
        let near = near.take_while(|step| step.end_ns() < end.saturating_add(self.longest_ns));
        let mut found: Vec<Overlap> = Vec::new();
        for step in near.filter(|step| step.start_ns < end) {
            let overlap_ns = step.end_ns().min(end) - step.start_ns.max(start);
            let given_back = step.punched_bytes + step.unlinked_bytes;
            let bytes = step.read_bytes + step.written_bytes + given_back;
            let same =
                |overlap: &&mut Overlap| (overlap.job, overlap.kind) == (step.job, step.kind);
            match found.iter_mut().find(same) {
                Some(overlap) => {
                    overlap.overlap_ns += overlap_ns;
                    overlap.bytes += bytes;
                    overlap.sync_ns += step.sync_ns;
                }
                None => found.push(Overlap {
                    label: self.label(step),
                    kind: step.kind,
                    job: step.job,
                    overlap_ns,
                    bytes,
                    sync_ns: step.sync_ns,
                }),
            }
        }
        found.sort_by_key(|overlap| std::cmp::Reverse(overlap.overlap_ns));
        found
    }
}
