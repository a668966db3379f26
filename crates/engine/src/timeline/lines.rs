//! Events as lines for people: the text of the file LOG.

use std::borrow::Cow;

use sateen_control::{ColumnFamilyId, JobResult, Limit, PauseReason};

use super::json::pause_name;
use super::{AdmissionState, Event, EventKind, JobInfo};

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    Debug,
    Info,
    Warn,
    Error,
}

impl Weight {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Weight::Debug => "DEBUG",
            Weight::Info => "INFO ",
            Weight::Warn => "WARN ",
            Weight::Error => "ERROR",
        }
    }
}

/// A sample that is this late is worth a warning.
const LATE_NS: u64 = 100_000_000;

/// Returns how much `event` matters, and says it in a line. `name` returns the name of a column
/// family. Returns `None` for what happens too often to be read.
pub(crate) fn line(
    event: &Event,
    name: &dyn Fn(ColumnFamilyId) -> String,
) -> Option<(Weight, Cow<'static, str>)> {
    if let Some((weight, text)) = of_job(event, name) {
        return Some((weight, text.into()));
    }
    let (weight, text) = match event.kind {
        EventKind::Bandwidth { client, read, write } => {
            let limit = |bytes| match bytes {
                u64::MAX => "any".to_owned(),
                bytes => format!("{}/s", size(bytes)),
            };
            let text = format!(
                "background work may read {} and write {}; clients use {}/s",
                limit(read),
                limit(write),
                size(client)
            );
            (Weight::Debug, text)
        }
        EventKind::Adjusted(adjustment) => {
            let what = match adjustment.limit {
                Limit::Slots(slots) => {
                    format!("slots: {} flushes, {} compactions", slots.flushes, slots.compactions)
                }
                Limit::Memtable { cf, bytes } => {
                    format!("memtable of {}: {}", name(cf), size(bytes))
                }
            };
            let cause = adjustment.overflow.map_or("options", sateen_control::Overflow::name);
            (Weight::Info, format!("adjusted {what} ({cause})"))
        }
        EventKind::Admission { family, admission } => {
            let of = family.or(admission.column_family).map(name);
            let of = of.map_or_else(|| "writers".to_owned(), |name| format!("writers of {name}"));
            let why =
                admission.cause.map(|cause| format!(": {}", cause.name())).unwrap_or_default();
            match admission.state {
                AdmissionState::Open => (Weight::Debug, format!("{of} are not held back")),
                AdmissionState::Delayed { bytes_per_second } => {
                    (Weight::Debug, format!("{of} may write {}/s{why}", size(bytes_per_second)))
                }
                AdmissionState::Stopped => (Weight::Warn, format!("{of} are stopped{why}")),
            }
        }
        EventKind::Stalled { cause, began_ns, waits, waited_ns } => {
            let (length, waited) = (event.at_ns.saturating_sub(began_ns), time(waited_ns));
            let text = format!(
                "writers stalled for {} ({}): {waits} waits of {waited} in all",
                time(length),
                cause.name()
            );
            (Weight::Warn, text)
        }
        EventKind::CannotPunch => {
            let text = "the file system cannot punch holes: dead tables are freed with their file";
            return Some((Weight::Warn, text.into()));
        }
        EventKind::CannotUseLog => {
            let text = "values cannot stay in the WAL here: flushes store everything";
            return Some((Weight::Warn, text.into()));
        }
        EventKind::ScrubBegan => return Some((Weight::Info, "a scrub begins".into())),
        EventKind::ScrubEnded { bytes, problems } => {
            let weight = if problems > 0 { Weight::Error } else { Weight::Info };
            (weight, format!("a scrub is done: {} verified, {problems} findings", size(bytes)))
        }
        EventKind::Device(device) => {
            let text = format!(
                "the device is believed to read {}/s and write {}/s; a sync takes {}",
                size(device.read_bytes_per_second),
                size(device.write_bytes_per_second),
                time(device.barrier_ns)
            );
            (Weight::Debug, text)
        }
        EventKind::Late { late_ns } if late_ns < LATE_NS => return None,
        EventKind::Late { late_ns } => {
            let text = format!("the sampling thread ran {} late: no processor", time(late_ns));
            (Weight::Warn, text)
        }
        EventKind::Processors { short, others, idle } => {
            let (weight, what) = match short {
                true => (Weight::Warn, "short of processor"),
                false => (Weight::Info, "no longer short of processor"),
            };
            let [others, idle] = [others, idle].map(|thousandths| thousandths / 10);
            let text =
                format!("{what}: others take {others} % of the processors, {idle} % is idle");
            (weight, text)
        }
        EventKind::Sealed { column_family, bytes } => (
            Weight::Info,
            format!("a memtable of {} is full: {}", name(column_family), size(bytes)),
        ),
        _ => return None,
    };
    Some((weight, text.into()))
}

/// Says what happened to a job; `None` for another event.
fn of_job(event: &Event, name: &dyn Fn(ColumnFamilyId) -> String) -> Option<(Weight, String)> {
    let job = |info: &JobInfo| {
        let reason = info.reason.map(|reason| format!(" ({})", reason.name())).unwrap_or_default();
        format!("job {} {}{reason} of {}", info.job.0, info.label(), name(info.column_family))
    };
    Some(match event.kind {
        EventKind::JobStarted(info) => {
            (Weight::Info, format!("{} begins: reads {}", job(&info), size(info.input_bytes)))
        }
        EventKind::JobFinished { info, started_ns, result, read_bytes, written_bytes } => {
            let (weight, how) = match result {
                JobResult::Done => (Weight::Info, "is done"),
                JobResult::Cancelled => (Weight::Info, "was given up"),
                JobResult::Failed => (Weight::Error, "has failed"),
                JobResult::NoSpace => (Weight::Error, "found no space"),
            };
            let (read, written) = (size(read_bytes), size(written_bytes));
            let took = time(event.at_ns.saturating_sub(started_ns));
            (weight, format!("{} {how}: read {read}, wrote {written}, in {took}", job(&info)))
        }
        EventKind::Paused { job, reason } => {
            let by = match reason {
                PauseReason::Preempted { by } => format!(" by job {}", by.0),
                _ => String::new(),
            };
            (Weight::Debug, format!("job {} is paused: {}{by}", job.0, pause_name(reason)))
        }
        EventKind::Resumed { job } => (Weight::Debug, format!("job {} goes on", job.0)),
        EventKind::FinishEarly { job } => {
            (Weight::Info, format!("job {} ends early: level 0 waits for its tables", job.0))
        }
        EventKind::Discarded { job } => (Weight::Info, format!("job {} is discarded", job.0)),
        _ => return None,
    })
}

/// Returns a time with three digits or so.
pub(crate) fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1000),
        1_000_000..100_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        100_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// Returns a number of bytes with three digits or so.
pub(crate) fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes {
        0..MIB => format!("{} KiB", bytes >> 10),
        _ if bytes < 10 * MIB => format!("{:.1} MiB", bytes as f64 / MIB as f64),
        _ => format!("{} MiB", bytes / MIB),
    }
}
