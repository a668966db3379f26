//! Exports the timeline: as plain JSON ([`Timeline::to_json`]), and in the Chrome trace event
//! format ([`Timeline::to_chrome_trace`]).

use sateen_control::{
    AdmissionState, ColumnFamilyId, IoClass, JobId, JobResult, JobSlots, Limit, Overflow,
    PauseReason,
};

use super::event::{Event, EventKind, JobInfo, SlowOperation, Step, Worker};
use super::objects::{Fields, Objects, fields};
use super::{JobSpan, Overlap, Overlaps, StepKind, Timeline};

fn result_name(result: Option<JobResult>) -> &'static str {
    match result {
        None => "running",
        Some(JobResult::Done) => "done",
        Some(JobResult::Cancelled) => "cancelled",
        Some(JobResult::Failed) => "failed",
        Some(JobResult::NoSpace) => "no-space",
    }
}

pub(super) fn pause_name(reason: PauseReason) -> &'static str {
    match reason {
        PauseReason::Preempted { .. } => "preempted",
        PauseReason::Peak => "peak",
        PauseReason::Slots => "slots",
    }
}

fn worker_name(worker: Worker) -> String {
    match worker {
        Worker::Pool(number) => format!("worker {number}"),
        Worker::Chores => "chores".to_owned(),
        Worker::Client => "client".to_owned(),
    }
}

impl Timeline {
    fn family_name(&self, family: ColumnFamilyId) -> String {
        self.column_families.get(&family).cloned().unwrap_or_else(|| family.to_string())
    }

    fn job_fields(&self, fields: &mut Fields<'_>, info: &JobInfo) {
        fields
            .number("job", info.job.0)
            .text("what", &info.label())
            .text("column_family", &self.family_name(info.column_family))
            .text("class", &info.class.to_string())
            .number("level", info.level)
            .number("output_level", info.output_level)
            .number("input_bytes", info.input_bytes);
        if let Some(reason) = info.reason {
            fields.text("reason", reason.name());
        }
    }

    /// Returns the timeline as one JSON object: `jobs` with their pauses, `steps`, `stalls`,
    /// `events` (all others) and `slow_operations`, each with the background work that overlapped
    /// it. Times are in nanoseconds since open, sizes in bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        fields(&mut text, |all| {
            all.number("until_ns", self.until_ns);
            all.number("lost_events", self.lost_events).number("lost_steps", self.lost_steps);
            all.number("lost_slow_operations", self.lost_slow);
            all.list("jobs", self.jobs(), |fields, job| self.job(fields, &job));
            all.list("steps", &self.steps, step_fields);
            all.list("stalls", self.stalls(), |fields, stall| {
                fields.text("cause", stall.cause.name());
                fields.number("start_ns", stall.start_ns).number("end_ns", stall.end_ns);
                fields.number("waits", stall.waits).number("waited_ns", stall.waited_ns);
            });
            let others = self.events.iter().filter(|event| {
                !matches!(
                    event.kind,
                    EventKind::JobStarted(_)
                        | EventKind::JobFinished { .. }
                        | EventKind::Stalled { .. }
                )
            });
            all.list("events", others, |fields, event| self.event(fields, event));
            let overlaps = Overlaps::of(self);
            all.list("slow_operations", &self.slow, |fields, operation| {
                fields.text("kind", operation.kind.name()).number("thread", operation.thread);
                fields.number("start_ns", operation.start_ns);
                fields.number("total_ns", operation.total_ns);
                slow_fields(fields, operation, &overlaps.with(operation));
            });
        });
        text
    }

    fn job(&self, fields: &mut Fields<'_>, job: &JobSpan) {
        self.job_fields(fields, &job.info);
        fields.number("start_ns", job.start_ns).number("end_ns", job.end_ns);
        fields.text("result", result_name(job.result));
        fields.number("read_bytes", job.read_bytes).number("written_bytes", job.written_bytes);
        fields.list("pauses", &job.pauses, |fields, pause| {
            fields.number("start_ns", pause.start_ns).number("end_ns", pause.end_ns);
            fields.text("reason", pause_name(pause.reason));
            if let PauseReason::Preempted { by } = pause.reason {
                fields.number("by", by.0);
            }
        });
    }

    fn event(&self, fields: &mut Fields<'_>, event: &Event) {
        fields.number("at_ns", event.at_ns).text("what", event_name(&event.kind));
        self.event_fields(fields, &event.kind);
    }

    fn event_fields(&self, fields: &mut Fields<'_>, kind: &EventKind) {
        match *kind {
            EventKind::JobStarted(info) | EventKind::JobFinished { info, .. } => {
                self.job_fields(fields, &info);
            }
            EventKind::Paused { job, reason } => {
                fields.number("job", job.0).text("reason", pause_name(reason));
                if let PauseReason::Preempted { by } = reason {
                    fields.number("by", by.0);
                }
            }
            EventKind::Resumed { job }
            | EventKind::FinishEarly { job }
            | EventKind::Discarded { job } => {
                fields.number("job", job.0);
            }
            EventKind::Bandwidth { client, read, write } => {
                fields.number("client", client).number("read", read).number("write", write);
            }
            EventKind::Adjusted(adjustment) => {
                match adjustment.limit {
                    Limit::Slots(JobSlots { flushes, compactions }) => {
                        fields.number("flushes", flushes).number("compactions", compactions);
                    }
                    Limit::Memtable { cf, bytes } => {
                        fields.text("column_family", &self.family_name(cf));
                        fields.number("memtable_bytes", bytes);
                    }
                }
                fields.text("cause", adjustment.overflow.map_or("options", Overflow::name));
            }
            EventKind::Traffic { period_ms, read_kib, written_kib } => {
                fields.number("period_ms", period_ms);
                let names = IoClass::NAMES.iter();
                for ((name, read), written) in names.zip(read_kib).zip(written_kib) {
                    fields.number(&format!("{name}_read_kib"), read);
                    fields.number(&format!("{name}_written_kib"), written);
                }
            }
            EventKind::Admission { family, admission } => {
                if let Some(family) = family.or(admission.column_family) {
                    fields.text("column_family", &self.family_name(family));
                }
                let state = match admission.state {
                    AdmissionState::Open => "open",
                    AdmissionState::Delayed { bytes_per_second } => {
                        fields.number("bytes_per_second", bytes_per_second);
                        "delayed"
                    }
                    AdmissionState::Stopped => "stopped",
                };
                fields.text("state", state);
                if let Some(cause) = admission.cause {
                    fields.text("cause", cause.name());
                }
            }
            EventKind::Stalled { cause, began_ns, waits, waited_ns } => {
                fields.text("cause", cause.name()).number("began_ns", began_ns);
                fields.number("waits", waits).number("waited_ns", waited_ns);
            }
            EventKind::CannotPunch | EventKind::CannotUseLog | EventKind::ScrubBegan => {}
            EventKind::ScrubEnded { bytes, problems } => {
                fields.number("bytes", bytes).number("problems", problems);
            }
            EventKind::Device(device) => {
                fields.number("read", device.read_bytes_per_second);
                fields.number("write", device.write_bytes_per_second);
                fields.number("barrier_ns", device.barrier_ns);
            }
            EventKind::Late { late_ns } => {
                fields.number("late_ns", late_ns);
            }
            EventKind::Processors { others, idle, .. } => {
                fields.thousandths("others", others).thousandths("idle", idle);
            }
            EventKind::Sealed { column_family, bytes } => {
                fields.text("column_family", &self.family_name(column_family));
                fields.number("bytes", bytes);
            }
        }
    }

    /// Returns the timeline in the Chrome trace event format, which Perfetto (ui.perfetto.dev) and
    /// `chrome://tracing` open. It has workers with their steps, jobs with their pauses, stalls by
    /// cause, the slowest operations by thread, decisions as marks, and bandwidths as counters.
    #[must_use]
    pub fn to_chrome_trace(&self) -> String {
        let mut trace =
            Trace { out: Objects::new("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[") };
        for (pid, name) in [(WORKERS, "workers"), (JOBS, "jobs"), (CLIENTS, "clients")] {
            trace.metadata(pid, None, name);
        }
        trace.metadata(WORKERS, Some(SCHEDULER), "scheduler");
        let mut workers: Vec<Worker> = Vec::new();
        for step in &self.steps {
            if !workers.contains(&step.worker) {
                workers.push(step.worker);
                let tid = worker_tid(step.worker);
                trace.metadata(WORKERS, Some(tid), &worker_name(step.worker));
            }
        }
        let jobs = self.jobs();
        self.trace_jobs(&mut trace, &jobs);
        let label = |id: JobId| jobs.iter().find(|job| job.info.job == id).map(|j| j.info.label());
        for step in &self.steps {
            let name = match step.kind {
                StepKind::Step => label(step.job).unwrap_or_else(|| step.class.to_string()),
                kind => kind.name().to_owned(),
            };
            let place = (WORKERS, worker_tid(step.worker));
            trace.complete(place, &name, step.start_ns, step.duration_ns, |fields| {
                step_fields(fields, step);
            });
        }
        for event in &self.events {
            self.trace_event(&mut trace, event);
        }
        self.trace_clients(&mut trace);
        trace.out.end("\n]}\n")
    }

    /// Writes the jobs. Slices of a track may not overlap, so each job takes the first track that
    /// is free.
    fn trace_jobs(&self, trace: &mut Trace, jobs: &[JobSpan]) {
        let mut tracks: Vec<(bool, u64)> = Vec::new();
        for job in jobs {
            let is_flush = job.info.is_flush();
            let free = |track: &(bool, u64)| track.0 == is_flush && track.1 <= job.start_ns;
            let number = tracks.iter().position(free).unwrap_or_else(|| {
                tracks.push((is_flush, 0));
                let same = tracks.iter().filter(|track| track.0 == is_flush).count();
                let name = if is_flush { "flush" } else { "compaction" };
                trace.metadata(JOBS, Some(tracks.len() as u64), &format!("{name} {same}"));
                tracks.len() - 1
            });
            tracks[number].1 = job.end_ns;
            let place = (JOBS, number as u64 + 1);
            let length = job.end_ns.saturating_sub(job.start_ns);
            trace.complete(place, &job.info.label(), job.start_ns, length, |fields| {
                self.job_fields(fields, &job.info);
                fields.text("result", result_name(job.result));
                fields.number("read_bytes", job.read_bytes);
                fields.number("written_bytes", job.written_bytes);
            });
            for pause in &job.pauses {
                let start = pause.start_ns.max(job.start_ns);
                let length = pause.end_ns.min(job.end_ns).saturating_sub(start);
                trace.complete(place, "paused", start, length, |fields| {
                    fields.text("reason", pause_name(pause.reason));
                    if let PauseReason::Preempted { by } = pause.reason {
                        fields.number("by", by.0);
                    }
                });
            }
        }
    }

    /// Writes an event as a mark or a counter.
    fn trace_event(&self, trace: &mut Trace, event: &Event) {
        match event.kind {
            // These are slices, which are written elsewhere.
            EventKind::JobStarted(_)
            | EventKind::JobFinished { .. }
            | EventKind::Stalled { .. } => {}
            EventKind::Bandwidth { client, read, write } => {
                trace.counter("bandwidth allowed", event.at_ns, |fields| {
                    fields.number("client use", client).number("read", read).number("write", write);
                });
            }
            EventKind::Traffic { period_ms, read_kib, written_kib } => {
                // A counter holds from its time on, and the traffic's period began earlier.
                let began = event.at_ns.saturating_sub(u64::from(period_ms) * 1_000_000);
                let rate = |kib: u32| u64::from(kib) * 1024 * 1000 / u64::from(period_ms.max(1));
                for (name, kib) in [("read by class", read_kib), ("written by class", written_kib)]
                {
                    trace.counter(name, began, |fields| {
                        for (class, kib) in IoClass::NAMES.iter().zip(kib) {
                            fields.number(class, rate(kib));
                        }
                    });
                }
            }
            EventKind::Adjusted(adjustment) => {
                self.trace_mark(trace, event);
                match adjustment.limit {
                    Limit::Slots(JobSlots { flushes, compactions }) => {
                        trace.counter("job slots", event.at_ns, |fields| {
                            fields.number("flush", flushes).number("compaction", compactions);
                        });
                    }
                    Limit::Memtable { cf, bytes } => {
                        trace.counter("memtable bytes", event.at_ns, |fields| {
                            fields.number(&self.family_name(cf), bytes);
                        });
                    }
                }
            }
            EventKind::Admission { admission, .. } => {
                self.trace_mark(trace, event);
                if let AdmissionState::Delayed { bytes_per_second } = admission.state {
                    trace.counter("admission rate", event.at_ns, |fields| {
                        fields.number("bytes a second", bytes_per_second);
                    });
                }
            }
            _ => self.trace_mark(trace, event),
        }
    }

    /// Writes an event as a mark.
    fn trace_mark(&self, trace: &mut Trace, event: &Event) {
        trace.instant(event_name(&event.kind), event.at_ns, |fields| {
            self.event_fields(fields, &event.kind);
        });
    }

    /// Writes stalls and slow operations.
    fn trace_clients(&self, trace: &mut Trace) {
        let mut causes = Vec::new();
        for stall in self.stalls() {
            let tid = stall.cause.index() as u64 + 1;
            if !causes.contains(&tid) {
                causes.push(tid);
                trace.metadata(CLIENTS, Some(tid), &format!("stalled: {}", stall.cause.name()));
            }
            let length = stall.end_ns.saturating_sub(stall.start_ns);
            trace.complete((CLIENTS, tid), "stall", stall.start_ns, length, |fields| {
                fields.text("cause", stall.cause.name());
                fields.number("waits", stall.waits).number("waited_ns", stall.waited_ns);
            });
            trace.instant("stall", stall.start_ns, |fields| {
                fields.text("cause", stall.cause.name());
            });
        }
        let overlaps = Overlaps::of(self);
        let mut threads = Vec::new();
        for operation in &self.slow {
            let tid = THREADS + u64::from(operation.thread);
            if !threads.contains(&tid) {
                threads.push(tid);
                trace.metadata(CLIENTS, Some(tid), &format!("client {}", operation.thread));
            }
            let name = format!("slow {}", operation.kind.name());
            let found = overlaps.with(operation);
            let (start, length) = (operation.start_ns, operation.total_ns);
            trace.complete((CLIENTS, tid), &name, start, length, |fields| {
                slow_fields(fields, operation, &found);
            });
        }
    }
}

fn event_name(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::JobStarted(_) => "job started",
        EventKind::JobFinished { .. } => "job finished",
        EventKind::Paused { reason: PauseReason::Preempted { .. }, .. } => "preempted",
        EventKind::Paused { .. } => "paused",
        EventKind::Resumed { .. } => "resumed",
        EventKind::FinishEarly { .. } => "finish early",
        EventKind::Discarded { .. } => "discarded",
        EventKind::Bandwidth { .. } => "bandwidth",
        EventKind::Adjusted(_) => "adjusted",
        EventKind::Traffic { .. } => "traffic",
        EventKind::Admission { .. } => "admission",
        EventKind::Stalled { .. } => "stalled",
        EventKind::CannotPunch => "cannot punch",
        EventKind::ScrubBegan => "scrub began",
        EventKind::ScrubEnded { .. } => "scrub ended",
        EventKind::CannotUseLog => "cannot use log",
        EventKind::Device(_) => "device",
        EventKind::Late { .. } => "late",
        EventKind::Processors { short: true, .. } => "short of processor",
        EventKind::Processors { short: false, .. } => "no longer short of processor",
        EventKind::Sealed { .. } => "memtable sealed",
    }
}

fn step_fields(fields: &mut Fields<'_>, step: &Step) {
    fields.text("kind", step.kind.name()).text("worker", &worker_name(step.worker));
    fields.number("start_ns", step.start_ns).number("duration_ns", step.duration_ns);
    if step.job != JobId(0) {
        fields.number("job", step.job.0).text("class", &step.class.to_string());
        fields.number("granted_bytes", step.granted_bytes).number("waited_ns", step.waited_ns);
        fields.number("read_bytes", step.read_bytes).number("written_bytes", step.written_bytes);
    }
    if step.kind == StepKind::Reclaim {
        fields.text("class", &step.class.to_string());
        fields.number("punched_bytes", step.punched_bytes);
        fields.number("unlinked_bytes", step.unlinked_bytes);
    }
    fields.number("device_ns", step.device_ns);
    if step.cpu_ns > 0 {
        fields.number("cpu_ns", step.cpu_ns);
    }
    fields.number("syncs", step.syncs).number("sync_ns", step.sync_ns);
}

fn slow_fields(fields: &mut Fields<'_>, operation: &SlowOperation, overlaps: &[Overlap]) {
    for (name, ns) in operation.parts() {
        fields.number(&format!("{name}_ns"), ns);
    }
    fields.number("device_reads", operation.device_reads);
    fields.number("cache_misses", operation.cache_misses);
    fields.list("overlapped_by", overlaps, |fields, overlap| {
        fields.text("what", &overlap.label).text("kind", overlap.kind.name());
        if overlap.job != JobId(0) {
            fields.number("job", overlap.job.0);
        }
        fields.number("overlap_ns", overlap.overlap_ns).number("bytes", overlap.bytes);
        fields.number("sync_ns", overlap.sync_ns);
    });
}

/// The processes of the trace.
const WORKERS: u64 = 1;
const JOBS: u64 = 2;
const CLIENTS: u64 = 3;
/// The thread of marks and counters.
const SCHEDULER: u64 = 1;
/// Added to the numbers of client threads, above those of the causes of stalls.
const THREADS: u64 = 100;

fn worker_tid(worker: Worker) -> u64 {
    match worker {
        Worker::Chores => 2,
        Worker::Client => 3,
        Worker::Pool(number) => 10 + u64::from(number),
    }
}

/// A trace that is being written.
struct Trace {
    out: Objects,
}

impl Trace {
    /// Names a process, or one of its threads.
    fn metadata(&mut self, pid: u64, tid: Option<u64>, name: &str) {
        self.out.object(|fields| {
            let what = if tid.is_some() { "thread_name" } else { "process_name" };
            fields.text("ph", "M").text("name", what).number("pid", pid);
            fields.number("tid", tid.unwrap_or(0));
            fields.object("args", |args| {
                args.text("name", name);
            });
        });
    }

    /// Writes a slice.
    fn complete(
        &mut self,
        (pid, tid): (u64, u64),
        name: &str,
        start_ns: u64,
        length_ns: u64,
        args: impl FnOnce(&mut Fields<'_>),
    ) {
        self.out.object(|fields| {
            fields.text("ph", "X").text("name", name).number("pid", pid).number("tid", tid);
            fields.micros("ts", start_ns).micros("dur", length_ns).object("args", args);
        });
    }

    /// Writes a mark.
    fn instant(&mut self, name: &str, at_ns: u64, args: impl FnOnce(&mut Fields<'_>)) {
        self.out.object(|fields| {
            fields.text("ph", "i").text("s", "p").text("name", name);
            fields.number("pid", WORKERS).number("tid", SCHEDULER);
            fields.micros("ts", at_ns).object("args", args);
        });
    }

    /// Writes a counter.
    fn counter(&mut self, name: &str, at_ns: u64, values: impl FnOnce(&mut Fields<'_>)) {
        self.out.object(|fields| {
            fields.text("ph", "C").text("name", name).number("pid", WORKERS);
            fields.number("tid", SCHEDULER).micros("ts", at_ns).object("args", values);
        });
    }
}
