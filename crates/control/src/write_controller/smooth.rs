//! Admission without thresholds: one rate for the writers of a column family, from how far each
//! resource is used up and how fast it drains. Far from every limit writers are not slowed down at
//! all; towards a limit the rate goes through what drains to nothing, so that a limit is approached
//! and not hit.
//!
//! What must stay true: a column family with no resource near its limit is open; the rate falls
//! when a resource fills and rises when it drains, all else being equal; writers stop only where
//! memory leaves no choice, or level 0 is fuller than it may be by what memory held.

use super::{Admission, AdmissionState, StallCause};
use crate::arithmetic::{NS_PER_SECOND, scale};
use crate::options::CfOptions;
use crate::types::ColumnFamilyId;

/// What of one column family decides about its writers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pressure {
    /// Memtables that wait for their flush, and their bytes.
    pub(crate) sealed: u32,
    pub(crate) sealed_bytes: u64,
    /// What of those the running flush has written.
    pub(crate) flushed_bytes: u64,
    /// Bytes of the memtable that takes writes.
    pub(crate) active_bytes: u64,
    /// Runs of level 0, and what part of them, in thousandths of a run, running compactions have
    /// read.
    pub(crate) level0_runs: u32,
    pub(crate) level0_done: u64,
    /// Bytes that compactions out of level 0 have yet to move until one of them has ended, if there
    /// are any; the same for merges within it, and how many thousandths of a run these free.
    pub(crate) level0_left: Option<u64>,
    pub(crate) level0_merge_left: Option<u64>,
    pub(crate) level0_merging: u64,
    /// Bytes that deep compactions are behind, and how many of them may wait.
    pub(crate) debt: u64,
    pub(crate) debt_tolerated: u64,
}

/// What drains the resources, in bytes of clients a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drains {
    pub(crate) flush: u64,
    pub(crate) level0: u64,
    /// Bytes that level 0's compactions write for that.
    pub(crate) level0_bandwidth: u64,
    pub(crate) deep: u64,
    /// Bytes that deep compactions write for that.
    pub(crate) deep_bandwidth: u64,
    /// What clients write now.
    pub(crate) fill: u64,
    /// What a job waits for barriers at its end, in nanoseconds.
    pub(crate) barriers_ns: u64,
}

impl Drains {
    /// What a column family has of it that gets so much of so much.
    pub(crate) fn part(self, share: u64, of: u64) -> Drains {
        let part = |rate: u64| scale(rate, share, of).max(1);
        Drains {
            flush: part(self.flush),
            level0: part(self.level0),
            level0_bandwidth: part(self.level0_bandwidth),
            deep: part(self.deep),
            deep_bandwidth: part(self.deep_bandwidth),
            fill: scale(self.fill, share, of),
            barriers_ns: self.barriers_ns,
        }
    }
}

/// How things will go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Nanoseconds until writers stop if they go on as now; `None`: they will not.
    pub time_to_stall_ns: Option<u64>,
    /// Bytes of keys and values a second that background work can keep up with.
    pub sustainable_write_rate: u64,
}

/// The slowest that writers are slowed down to, in bytes a second.
const RATE_MIN: u64 = 256 << 10;
/// A rate that is so many times what clients write is no limit.
const AMPLE: u64 = 4;
/// Debt is looked at once it would take so long to drain, and must not take longer than that.
const DEBT_SECONDS_SOFT: u64 = 300;
const DEBT_SECONDS_HARD: u64 = 1200;
/// Less debt than this is none, however slow the device is believed to be; nor less than so many
/// times what may wait.
const DEBT_MIN: u64 = 4 << 30;
const DEBT_TOLERATED_TIMES: u64 = 2;

/// Debt alone slows writers down to half of what drains, no further: then it shrinks.
const DEBT_PART_MAX: u64 = 666;

const THOUSAND: u64 = 1000;

/// A resource: how many thousandths of the way from where it matters to its limit it is used up,
/// what drains it, what is left of it.
#[derive(Clone, Copy, Debug)]
struct Resource {
    cause: StallCause,
    used: u64,
    drain: u64,
    room: u64,
}

impl Resource {
    /// What writers may write: without bound where it begins to matter, what drains half-way,
    /// nothing at its limit.
    fn rate(&self) -> u64 {
        match self.used {
            0 => u64::MAX,
            used => scale(self.drain, THOUSAND.saturating_sub(used), used),
        }
    }
}

fn part(used: u64, from: u64, to: u64) -> u64 {
    if used <= from || to <= from {
        return 0;
    }
    scale(used - from, THOUSAND, to - from).clamp(1, THOUSAND)
}

/// Whether nothing is near a limit, whatever drains it: [`judge`] would find the same.
pub(crate) fn is_at_ease(options: &CfOptions, now: &Pressure) -> bool {
    let soft = options.soft_pending_compaction_bytes_limit;
    let debt_max = if soft == 0 { DEBT_MIN } else { soft.min(DEBT_MIN) };
    let compacts = !options.disable_auto_compactions;
    let level0 = u64::from(now.level0_runs) + 1;
    now.sealed == 0 && !(compacts && (level0 > options.level0_runs_unfelt() || now.debt > debt_max))
}

fn resources(options: &CfOptions, now: &Pressure, drains: &Drains) -> [Resource; 5] {
    let memtable = options.write_buffer_size.max(1);
    let memtables_max = u64::from(options.max_write_buffer_number.max(1));
    let sealed = u64::from(now.sealed).saturating_mul(memtable);
    let in_memory = sealed.saturating_add(now.active_bytes.min(memtable));
    // What could be written while a job waits for its barriers is part of what is left of it, up to
    // a memtable: one that took seconds does not stop writers for long.
    let with_barriers = |left: u64, rate: u64| {
        left.saturating_add(scale(rate, drains.barriers_ns, NS_PER_SECOND).min(memtable))
    };
    let left = now.sealed_bytes.saturating_sub(now.flushed_bytes);
    let left = with_barriers(left, drains.flush);
    let memory_room = memtables_max.saturating_mul(memtable).saturating_sub(in_memory);
    // The flush is done in time if what is left of it takes no longer than filling what is left of
    // memory: then the one drains as fast as the other fills.
    let memory_used =
        if now.sealed == 0 { 0 } else { part(left, 0, left.saturating_add(memory_room)) };

    let stop = u64::from(options.level0_stop_writes_trigger.max(1));
    let from = options.level0_runs_unfelt();
    let filling = scale(now.active_bytes.min(memtable), THOUSAND, memtable);
    // What waits for its flush is a run soon.
    let runs_now = (u64::from(now.level0_runs) + u64::from(now.sealed)) * THOUSAND + filling;
    let runs = runs_now.saturating_sub(now.level0_done);
    let level0_room = scale(memtable, (stop * THOUSAND).saturating_sub(runs), THOUSAND);

    // Runs stay until their compaction has ended: by then no more may have come than there is
    // room for, as with memtables and their flush. Far from the limit the forecast counts less:
    // merges within level 0 make more room, before a compaction out of it has ended. From half-way
    // on it counts in full.
    let until = |left: Option<u64>, runs: u64| {
        let coming = scale(memtable, (stop * THOUSAND).saturating_sub(runs), THOUSAND);
        let near = part(runs, from * THOUSAND, (from + stop) * THOUSAND / 2);
        let left = left.map_or(0, |left| with_barriers(left, drains.level0_bandwidth));
        Resource {
            cause: StallCause::Level0Runs,
            used: scale(part(left, 0, left.saturating_add(coming)), near, THOUSAND),
            drain: drains.level0_bandwidth,
            room: coming,
        }
    };

    let seconds = |seconds: u64| drains.deep_bandwidth.saturating_mul(seconds);
    let limit = |limit: u64, by_time: u64| if limit == 0 { by_time } else { limit.min(by_time) };
    let (soft, hard) = (seconds(DEBT_SECONDS_SOFT), seconds(DEBT_SECONDS_HARD));
    let least = DEBT_MIN.max(DEBT_TOLERATED_TIMES.saturating_mul(now.debt_tolerated));
    let soft = limit(options.soft_pending_compaction_bytes_limit, soft.max(least));
    let hard =
        limit(options.hard_pending_compaction_bytes_limit, hard.max(least.saturating_mul(2)));
    let unlimited = options.soft_pending_compaction_bytes_limit == 0
        && options.hard_pending_compaction_bytes_limit == 0;
    [
        Resource {
            cause: StallCause::MemtableLimit,
            used: memory_used,
            drain: drains.flush,
            room: memory_room,
        },
        Resource {
            cause: StallCause::Level0Runs,
            used: part(runs, from * THOUSAND, stop.saturating_mul(THOUSAND)),
            drain: drains.level0,
            room: level0_room,
        },
        until(now.level0_left, runs_now.saturating_sub(now.level0_merging)),
        until(now.level0_merge_left, runs_now),
        Resource {
            cause: StallCause::PendingCompactionBytes,
            used: if unlimited { 0 } else { part(now.debt, soft, hard).min(DEBT_PART_MAX) },
            drain: drains.deep,
            room: hard.saturating_sub(now.debt),
        },
    ]
}

/// How the writers of `cf` are admitted, and what lies ahead of them.
pub(crate) fn judge(
    cf: ColumnFamilyId,
    options: &CfOptions,
    now: &Pressure,
    drains: &Drains,
) -> (Admission, Outlook) {
    let all = resources(options, now, drains);
    let relevant = if options.disable_auto_compactions { 1 } else { all.len() };
    let all = &all[..relevant];
    let sustainable = all.iter().map(|resource| resource.drain).min().unwrap_or(0);
    let stall = all
        .iter()
        .filter(|resource| drains.fill > resource.drain)
        .map(|resource| scale(resource.room, NS_PER_SECOND, drains.fill - resource.drain))
        .min();
    let outlook = Outlook { time_to_stall_ns: stall, sustainable_write_rate: sustainable };

    let full = now.sealed >= options.max_write_buffer_number.max(1);
    // At the limit the rate is next to nothing. What is in memory then becomes runs all the same,
    // and the compaction that makes room may have but its barriers to wait for: that is no reason
    // to stop.
    let runs_max = options.level0_stop_writes_trigger.max(1);
    let runs_max = runs_max.saturating_add(options.max_write_buffer_number);
    let runs_full = relevant > 1 && now.level0_runs >= runs_max;
    let stopped = match (full, runs_full) {
        (true, _) => Some(StallCause::MemtableLimit),
        (_, true) => Some(StallCause::Level0Runs),
        _ => None,
    };
    if let Some(cause) = stopped {
        let admission = Admission {
            state: AdmissionState::Stopped,
            cause: Some(cause),
            column_family: Some(cf),
        };
        return (admission, Outlook { time_to_stall_ns: Some(0), ..outlook });
    }
    let Some(worst) = all.iter().min_by_key(|resource| resource.rate()) else {
        return (Admission::default(), outlook);
    };
    let rate = worst.rate();
    if rate >= drains.fill.saturating_mul(AMPLE).max(AMPLE_MIN) {
        return (Admission::default(), outlook);
    }
    let state = AdmissionState::Delayed { bytes_per_second: rate.max(RATE_MIN) };
    (Admission { state, cause: Some(worst.cause), column_family: Some(cf) }, outlook)
}

/// No rate as high as this is a limit: nobody writes faster.
const AMPLE_MIN: u64 = 1 << 30;
