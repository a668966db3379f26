//! The recent past by seconds, folded from timelines. Its memory is bounded: each second has a
//! fixed number of operations and of kinds of work, and old seconds are forgotten.

use std::collections::{BTreeMap, VecDeque};

use sateen_control::{DeviceProfile, IO_CLASSES, JobId};

use super::SLOW_NS;
use crate::timeline::{
    Event, EventKind, SlowOperation, StallCause, StallSpan, Step, StepKind, Timeline,
};

pub(super) const SECOND_NS: u64 = 1_000_000_000;
/// Number of operations that are kept of a second.
const SLOWEST_MAX: usize = 8;
/// Number of kinds of work that are kept of a second.
const WORK_MAX: usize = 8;
/// Number of jobs whose name is remembered.
const JOBS_MAX: usize = 256;

/// One second of a database.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Second {
    /// Its number, counted from open.
    pub second: u64,
    /// The slowest operations that ended in it, slowest first.
    pub slowest: Vec<SlowOperation>,
    /// Waits of writers by [`StallCause::index`], in nanoseconds, summed over all writers.
    pub stalled_ns: [u64; StallCause::ALL.len()],
    /// Time of all steps of the background.
    pub step_ns: u64,
    /// Time of those steps whose CPU time is known.
    pub timed_step_ns: u64,
    /// Part of `timed_step_ns` in which a step neither computed nor was in the device: it waited
    /// for a processor, or for a lock.
    pub held_up_ns: u64,
    /// Time of steps in reads and writes.
    pub device_ns: u64,
    /// Time of steps in syncs.
    pub sync_ns: u64,
    /// Number of these syncs.
    pub syncs: u64,
    /// Bytes that steps read and wrote.
    pub moved_bytes: u64,
    /// Bytes that steps wrote.
    pub step_written_bytes: u64,
    /// How late the sampling thread ran, summed over its samples.
    pub late_ns: u64,
    /// How late it ran at most.
    pub late_ns_max: u64,
    /// Bytes read by class of I/O.
    pub read_bytes: [u64; IO_CLASSES],
    /// Bytes written by class of I/O.
    pub written_bytes: [u64; IO_CLASSES],
    /// What was believed of the device at its end, if anything was recorded.
    pub device: Option<DeviceProfile>,
    /// Background work: its name, and the time of its steps. Longest first.
    pub work: Vec<(String, u64)>,
    /// Number of pauses of compactions that began in it.
    pub pauses: u64,
}

impl Second {
    /// Returns true if an operation that ended in it took long.
    pub(super) fn has_slow_operation(&self) -> bool {
        self.slowest.first().is_some_and(|worst| worst.total_ns >= SLOW_NS)
    }

    /// Returns the time for which writers were held back, summed over all writers. Waits for the
    /// locks of keys are those of transactions for each other.
    pub(super) fn held_back_ns(&self) -> u64 {
        let waits = StallCause::ALL.into_iter().zip(self.stalled_ns);
        waits.filter(|(cause, _)| *cause != StallCause::KeyLock).map(|(_, ns)| ns).sum()
    }
}

/// The recent past of a database, second by second.
#[derive(Clone, Debug)]
pub struct History {
    seconds: VecDeque<Second>,
    seconds_max: usize,
    until_ns: u64,
    /// Stalls that had not ended when the last timeline was taken.
    open_stalls: Vec<StallSpan>,
    labels: BTreeMap<JobId, String>,
    /// Second from which operations are still copied again.
    slow_from: u64,
}

impl History {
    /// Creates an empty history of at most `seconds_max` seconds.
    #[must_use]
    pub fn new(seconds_max: usize) -> History {
        History {
            seconds: VecDeque::new(),
            seconds_max: seconds_max.max(1),
            until_ns: 0,
            open_stalls: Vec::new(),
            labels: BTreeMap::new(),
            slow_from: 0,
        }
    }

    /// Returns the seconds in which anything happened, oldest first.
    pub fn seconds(&self) -> impl DoubleEndedIterator<Item = &Second> {
        self.seconds.iter()
    }

    /// Returns up to when it goes, in nanoseconds since open.
    #[must_use]
    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// Takes the entries out of `timeline` and adds them. The timeline can be extended again.
    pub fn take(&mut self, timeline: &mut Timeline) {
        self.until_ns = self.until_ns.max(timeline.until_ns);
        for running in &timeline.running {
            self.labels.insert(running.info.job, running.info.label());
        }
        for event in &timeline.events {
            self.event(event);
        }
        for step in &timeline.steps {
            self.step(step);
        }
        self.slow(&timeline.slow);
        self.open_stalls = timeline.open_stalls();
        timeline.events.clear();
        timeline.steps.clear();
        while self.labels.len() > JOBS_MAX {
            self.labels.pop_first();
        }
    }

    /// Returns the stall of `cause` that goes on, if writers wait now.
    pub(super) fn open_stall(&self, cause: StallCause) -> Option<&StallSpan> {
        self.open_stalls.iter().find(|stall| stall.cause == cause)
    }

    /// Returns the second with that number, which is created if needed; `None` if it is too old.
    fn at(&mut self, second: u64) -> Option<&mut Second> {
        let at = self.seconds.partition_point(|known| known.second < second);
        if self.seconds.get(at).is_none_or(|known| known.second != second) {
            let full = self.seconds.len() >= self.seconds_max;
            let at = at.checked_sub(usize::from(full))?;
            if full {
                self.seconds.pop_front();
            }
            self.seconds.insert(at, Second { second, ..Second::default() });
            return self.seconds.get_mut(at);
        }
        self.seconds.get_mut(at)
    }

    fn event(&mut self, event: &Event) {
        let number = event.at_ns / SECOND_NS;
        match event.kind {
            EventKind::JobStarted(info) | EventKind::JobFinished { info, .. } => {
                self.labels.insert(info.job, info.label());
            }
            EventKind::Stalled { cause, began_ns, waited_ns, .. } => {
                self.stalled(cause, began_ns, event.at_ns, waited_ns);
            }
            EventKind::Late { late_ns } => {
                let Some(second) = self.at(number) else { return };
                second.late_ns += late_ns;
                second.late_ns_max = second.late_ns_max.max(late_ns);
            }
            EventKind::Device(device) => {
                if let Some(second) = self.at(number) {
                    second.device = Some(device);
                }
            }
            EventKind::Paused { .. } => {
                if let Some(second) = self.at(number) {
                    second.pauses += 1;
                }
            }
            EventKind::Traffic { read_kib, written_kib, .. } => {
                if read_kib.iter().chain(&written_kib).all(|kib| *kib == 0) {
                    return;
                }
                let Some(second) = self.at(number) else { return };
                let add = |sums: &mut [u64; IO_CLASSES], kib: [u32; IO_CLASSES]| {
                    sums.iter_mut().zip(kib).for_each(|(sum, kib)| *sum += u64::from(kib) << 10);
                };
                add(&mut second.read_bytes, read_kib);
                add(&mut second.written_bytes, written_kib);
            }
            _ => {}
        }
    }

    /// Divides a stall among the seconds that it touches.
    fn stalled(&mut self, cause: StallCause, began_ns: u64, ended_ns: u64, waited_ns: u64) {
        let length_ns = ended_ns.saturating_sub(began_ns).max(1);
        // A stall that began before the oldest second that could be kept is cut.
        let (last, most) = (ended_ns / SECOND_NS, self.seconds_max as u64);
        let first = (began_ns / SECOND_NS).max(last.saturating_sub(most));
        for number in first..=last {
            let start = began_ns.max(number.saturating_mul(SECOND_NS));
            let end = ended_ns.min(number.saturating_add(1).saturating_mul(SECOND_NS));
            let part = u128::from(end.saturating_sub(start)) * u128::from(waited_ns);
            let part = u64::try_from(part / u128::from(length_ns)).unwrap_or(u64::MAX);
            if let Some(second) = self.at(number)
                && let Some(sum) = second.stalled_ns.get_mut(cause.index())
            {
                *sum = sum.saturating_add(part);
            }
        }
    }

    fn step(&mut self, step: &Step) {
        let label = match (step.kind, self.labels.get(&step.job)) {
            (StepKind::Chores | StepKind::Reclaim, _) => step.kind.name().to_owned(),
            (_, Some(label)) => label.clone(),
            (_, None) => step.class.to_string(),
        };
        let Some(second) = self.at(step.end_ns() / SECOND_NS) else { return };
        second.step_ns += step.duration_ns;
        if step.cpu_ns > 0 {
            second.timed_step_ns += step.duration_ns;
            second.held_up_ns += step.held_up_ns();
        }
        second.device_ns += step.device_ns;
        second.sync_ns += step.sync_ns;
        second.syncs += u64::from(step.syncs);
        second.moved_bytes += step.read_bytes + step.written_bytes;
        second.step_written_bytes += step.written_bytes;
        super::add(&mut second.work, label, step.duration_ns);
        second.work.truncate(WORK_MAX);
    }

    /// Replaces the slow operations of the seconds that the timeline has copied anew.
    fn slow(&mut self, slow: &[SlowOperation]) {
        let from = self.slow_from;
        let number = |operation: &SlowOperation| operation.end_ns() / SECOND_NS;
        let mut anew = BTreeMap::<u64, Vec<SlowOperation>>::new();
        for operation in slow.iter().filter(|operation| number(operation) >= from) {
            anew.entry(number(operation)).or_default().push(*operation);
        }
        // The recorder copies the last two seconds again: late operations may have been added.
        if let Some((newest, _)) = anew.last_key_value() {
            self.slow_from = from.max(newest.saturating_sub(1));
        }
        for (number, mut operations) in anew {
            operations.sort_by_key(|operation| std::cmp::Reverse(operation.total_ns));
            operations.truncate(SLOWEST_MAX);
            if let Some(second) = self.at(number) {
                second.slowest = operations;
            }
        }
    }
}
