//! Smooth admission: one rate for the writers of a column family, without thresholds.
//!
//! 1. [`resources`] computes for each resource how far it is used up, and how fast it drains:
//!    memory, the runs of level 0, the compactions that will free runs, the debt, and space.
//! 2. `Resource::rate` allows writers any rate where a resource begins to matter, its drain
//!    half-way to its limit, and nothing at the limit. So a limit is approached and not hit.
//! 3. [`judge`] takes the lowest of these rates. A rate far above what clients write is no limit.
//!    It also forecasts when writers would stop.
//!
//! What must stay true:
//!
//! - A column family with no resource near its limit is open.
//! - The rate falls when a resource fills and rises when it drains, all else being equal.
//! - Writers stop only if all memtables are full, or if level 0 exceeds its limit by more runs than
//!   memory can hold.

use super::{Admission, AdmissionState, StallCause};
use crate::arithmetic::{NS_PER_SECOND, scale};
use crate::options::CfOptions;
use crate::types::ColumnFamilyId;

/// The state of a column family on which its writers' rate depends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pressure {
    /// Sealed memtables, and their bytes.
    pub(crate) sealed: u32,
    pub(crate) sealed_bytes: u64,
    /// The part of these bytes that the running flush has written.
    pub(crate) flushed_bytes: u64,
    /// Bytes of the active memtable.
    pub(crate) active_bytes: u64,
    /// Runs of level 0, and what part of them running compactions have read, in thousandths of a
    /// run.
    pub(crate) level0_runs: u32,
    pub(crate) level0_done: u64,
    /// Bytes that compactions out of level 0 must still move until one of them ends, if any run;
    /// the same for merges within level 0, and how many thousandths of a run these merges free.
    pub(crate) level0_left: Option<u64>,
    pub(crate) level0_merge_left: Option<u64>,
    pub(crate) level0_merging: u64,
    /// The compaction debt in bytes, and the part of it that may wait.
    pub(crate) debt: u64,
    pub(crate) debt_tolerated: u64,
    /// Bytes of levels beyond their targets, and of the largest level within its target.
    pub(crate) excess: (u64, u64),
    /// Its part of the bytes of dead tables that can be given back.
    pub(crate) dead_bytes: u64,
}

/// The rates at which resources drain, in bytes of clients per second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drains {
    pub(crate) flush: u64,
    pub(crate) level0: u64,
    /// Bytes per second that compactions out of level 0 write for that.
    pub(crate) level0_bandwidth: u64,
    pub(crate) deep: u64,
    /// Bytes per second that deep compactions write for that.
    pub(crate) deep_bandwidth: u64,
    /// What `deep` was lately while its debt was urgent, if that is less.
    pub(crate) deep_shown: u64,
    /// Bytes per second that clients write now.
    pub(crate) fill: u64,
    /// How long a job waits for barriers at its end, in nanoseconds.
    pub(crate) barriers_ns: u64,
}

impl Drains {
    /// Returns the part of these rates that a column family gets with a weight of `share` out of
    /// `of`.
    pub(crate) fn part(self, share: u64, of: u64) -> Drains {
        let part = |rate: u64| scale(rate, share, of).max(1);
        Drains {
            flush: part(self.flush),
            level0: part(self.level0),
            level0_bandwidth: part(self.level0_bandwidth),
            deep: part(self.deep),
            deep_bandwidth: part(self.deep_bandwidth),
            deep_shown: part(self.deep_shown),
            fill: scale(self.fill, share, of),
            barriers_ns: self.barriers_ns,
        }
    }
}

/// A forecast for writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Nanoseconds until writers stop if they go on like this; `None` if they will not.
    pub time_to_stall_ns: Option<u64>,
    /// The rate that background work can keep up with, in bytes of keys and values per second.
    pub sustainable_write_rate: u64,
}

/// The lowest rate to which writers are slowed down, in bytes per second.
const RATE_MIN: u64 = 256 << 10;
/// A rate of at least this many times what clients write is no limit.
const AMPLE: u64 = 4;
/// The debt matters once it would take `DEBT_SECONDS_SOFT` to drain, and must not take longer than
/// `DEBT_SECONDS_HARD`.
const DEBT_SECONDS_SOFT: u64 = 300;
const DEBT_SECONDS_HARD: u64 = 1200;
/// A smaller debt does not matter, however slow the device is. Neither does a debt of less than
/// `DEBT_TOLERATED_TIMES` the debt that may wait.
const DEBT_MIN: u64 = 4 << 30;
const DEBT_TOLERATED_TIMES: u64 = 2;

/// Levels beyond their targets and dead tables may take this much in any case.
const EXCESS_MIN: u64 = 4 << 30;

/// Debt or space alone slows writers down to half of its drain at most. Then it shrinks.
const DEBT_PART_MAX: u64 = 666;

const THOUSAND: u64 = 1000;

/// A resource: how far it is used up, in thousandths of the way from where it matters to its limit;
/// its drain, and the bytes that are left of it.
#[derive(Clone, Copy, Debug)]
struct Resource {
    cause: StallCause,
    used: u64,
    drain: u64,
    room: u64,
}

impl Resource {
    /// Returns the rate that it allows: unlimited where it begins to matter, its drain half-way,
    /// and nothing at its limit.
    fn rate(&self) -> u64 {
        match self.used {
            0 => u64::MAX,
            used => scale(self.drain, THOUSAND.saturating_sub(used), used),
        }
    }
}

/// Returns how far `used` is on the way from `from` to `to`, in thousandths; at least 1 beyond
/// `from`.
fn part(used: u64, from: u64, to: u64) -> u64 {
    if used <= from || to <= from {
        return 0;
    }
    scale(used - from, THOUSAND, to - from).clamp(1, THOUSAND)
}

/// Returns true if no resource is near its limit, whatever its drain is. Then [`judge`] returns an
/// open admission.
pub(crate) fn is_at_ease(options: &CfOptions, now: &Pressure) -> bool {
    let soft = options.soft_pending_compaction_bytes;
    let debt_max = if soft == 0 { DEBT_MIN } else { soft.min(DEBT_MIN) };
    let compacts = !options.disable_auto_compactions;
    let level0 = u64::from(now.level0_runs) + 1;
    let taken = now.excess.0.saturating_add(now.dead_bytes);
    now.sealed == 0
        && (options.space_amplification_max == 0.0 || is_spacious(taken, EXCESS_MIN))
        && !(compacts && (level0 > options.level0_runs_unfelt() || now.debt > debt_max))
}

/// Returns the resources: memory, runs of level 0, the end of compactions out of it and of merges
/// within it, the debt, and space. All but the first depend on compactions.
fn resources(options: &CfOptions, now: &Pressure, drains: &Drains) -> [Resource; 6] {
    let memtable = options.memtable_bytes.max(1);
    let memtables_max = u64::from(options.memtables_max.max(1));
    let sealed = u64::from(now.sealed).saturating_mul(memtable);
    let in_memory = sealed.saturating_add(now.active_bytes.min(memtable));
    // What clients could write while a job waits for its barriers counts as work that is left of
    // the job, up to a memtable. So a barrier that takes seconds does not stop writers for long.
    let with_barriers = |left: u64, rate: u64| {
        left.saturating_add(scale(rate, drains.barriers_ns, NS_PER_SECOND).min(memtable))
    };
    let left = now.sealed_bytes.saturating_sub(now.flushed_bytes);
    let left = with_barriers(left, drains.flush);
    let memory_room = memtables_max.saturating_mul(memtable).saturating_sub(in_memory);
    // The flush is in time if the rest of it takes no longer than clients need to fill the rest of
    // memory. At that point the resource is used up by half.
    let memory_used =
        if now.sealed == 0 { 0 } else { part(left, 0, left.saturating_add(memory_room)) };

    let stop = u64::from(options.level0_stop.max(1));
    let from = options.level0_runs_unfelt();
    let filling = scale(now.active_bytes.min(memtable), THOUSAND, memtable);
    // A sealed memtable will soon be a run.
    let runs_now = (u64::from(now.level0_runs) + u64::from(now.sealed)) * THOUSAND + filling;
    let runs = runs_now.saturating_sub(now.level0_done);
    let level0_room = scale(memtable, (stop * THOUSAND).saturating_sub(runs), THOUSAND);

    // Runs stay until their compaction has ended. Until then no more runs may come than there is
    // room for, as with memtables and their flush. Far from the limit the forecast counts less,
    // because merges within level 0 may make room earlier. It counts in full from half-way on.
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
    let soft = limit(options.soft_pending_compaction_bytes, soft.max(least));
    let hard = limit(options.hard_pending_compaction_bytes, hard.max(least.saturating_mul(2)));
    let unlimited =
        options.soft_pending_compaction_bytes == 0 && options.hard_pending_compaction_bytes == 0;
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
        space(options, now, drains),
    ]
}

/// Returns the bytes that a column family may have in levels beyond their targets, if its largest
/// level has `largest` bytes within its target.
pub(crate) fn excess_of(options: &CfOptions, largest: u64) -> u64 {
    (largest as f64 * (options.space_amplification_max - 1.0).max(0.0)) as u64
}

/// Returns true if `taken` bytes beyond the targets are so few that they do not matter, with a
/// limit of `most`.
pub(crate) fn is_spacious(taken: u64, most: u64) -> bool {
    taken <= most.max(EXCESS_MIN) / 2
}

/// Returns the space that levels beyond their targets and dead tables may take. It matters from
/// half of it on.
fn space(options: &CfOptions, now: &Pressure, drains: &Drains) -> Resource {
    let (excess, largest) = now.excess;
    let excess = excess.saturating_add(now.dead_bytes);
    let most = excess_of(options, largest).max(EXCESS_MIN);
    let used = match options.space_amplification_max {
        0.0 => 0,
        _ => part(excess, most / 2, most).min(DEBT_PART_MAX),
    };
    // Far from its limit it says nothing about when writers stop.
    let room = if used == 0 { u64::MAX } else { most.saturating_sub(excess) };
    Resource { cause: StallCause::PendingCompactionBytes, used, drain: drains.deep_shown, room }
}

/// Returns the admission of the writers of `cf`, and a forecast.
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

    let full = now.sealed >= options.memtables_max.max(1);
    // At the limit of level 0 the rate is next to nothing. The memtables still become runs, and the
    // compaction that makes room may only wait for its barriers. So writers stop only at that many
    // more runs.
    let runs_max = options.level0_stop.max(1);
    let runs_max = runs_max.saturating_add(options.memtables_max);
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

/// A rate of at least this is no limit, because no client writes faster.
const AMPLE_MIN: u64 = 1 << 30;
