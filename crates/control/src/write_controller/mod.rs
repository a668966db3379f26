//! Admission: whether and how fast clients may write, and for which cause not faster.
//!
//! - `WriteTriggers` has RocksDB's triggers and its adaptation of the delayed write rate. One
//!   admission counts for all column families.
//! - `smooth` computes a rate for each column family from the state of its resources.
//! - [`Gate`] applies an admission to writers.
//!
//! `WriteTriggers`:
//!
//! 1. `WriteTriggers::update` judges a column family after each change of it (`judge`).
//! 2. While it is delayed, `adapt` lowers the rate if the debt does not shrink, and raises it
//!    otherwise.
//! 3. `WriteTriggers::admission` returns the worst judgement of all column families.

mod gate;
mod smooth;

use std::collections::BTreeMap;
use std::fmt;

use crate::options::CfOptions;
use crate::types::ColumnFamilyId;

pub use gate::Gate;
pub use smooth::Outlook;
pub(crate) use smooth::{
    Drains, Pressure, excess_of, is_at_ease, is_spacious, judge as judge_smoothly,
};

/// The reason for which writers wait. Every wait has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StallCause {
    /// The largest allowed number of memtables is sealed and not flushed.
    MemtableLimit,
    /// Level 0 has too many runs.
    Level0Runs,
    /// The compaction debt is too large.
    PendingCompactionBytes,
    /// Background work has stopped because of an error. The engine decides this, not control.
    BackgroundError,
    /// The memtables of all databases that share a limit exceed it. The engine decides this, not
    /// control.
    WriteBuffers,
    /// Another transaction holds the lock of a key. The engine decides this, not control.
    KeyLock,
}

impl StallCause {
    /// All causes, in the order of [`StallCause::index`].
    pub const ALL: [StallCause; 6] = [
        StallCause::MemtableLimit,
        StallCause::Level0Runs,
        StallCause::PendingCompactionBytes,
        StallCause::BackgroundError,
        StallCause::WriteBuffers,
        StallCause::KeyLock,
    ];

    /// Returns a dense index below `ALL.len()`, for arrays of counters.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the name in metrics and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            StallCause::MemtableLimit => "memtable-limit",
            StallCause::Level0Runs => "level0-runs",
            StallCause::PendingCompactionBytes => "pending-compaction-bytes",
            StallCause::BackgroundError => "background-error",
            StallCause::WriteBuffers => "write-buffers",
            StallCause::KeyLock => "key-lock",
        }
    }
}

impl fmt::Display for StallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether and how fast writers are admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdmissionState {
    /// Without a limit.
    #[default]
    Open,
    /// At this rate for all writers together, counted in bytes of their batches.
    Delayed {
        /// The rate in bytes per second.
        bytes_per_second: u64,
    },
    /// Not at all until the next [`Admission`].
    Stopped,
}

/// An admission of writers, and its cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Whether and how fast writers are admitted.
    pub state: AdmissionState,
    /// The cause; `None` exactly if the state is open.
    pub cause: Option<StallCause>,
    /// The column family that is the cause.
    pub column_family: Option<ColumnFamilyId>,
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state {
            AdmissionState::Open => write!(f, "open")?,
            AdmissionState::Delayed { bytes_per_second } => {
                write!(f, "delayed {bytes_per_second}/s")?
            }
            AdmissionState::Stopped => write!(f, "stopped")?,
        }
        if let Some(cf) = self.column_family {
            write!(f, " {cf}")?;
        }
        if let Some(cause) = self.cause {
            write!(f, " {cause}")?;
        }
        Ok(())
    }
}

/// The lowest rate to which writers are slowed down, in bytes per second.
const DELAYED_RATE_MIN: u64 = 16 << 10;
/// The factor of the rate while delayed, if the debt has not shrunk; in thousandths, like the other
/// factors.
const SLOWER: u64 = 800;
/// The factor while delayed, if the debt has shrunk.
const FASTER: u64 = 1250;
/// The factor close to a stop, or just after one.
const NEAR_STOP: u64 = 600;
/// The factor at the end of a delay, so that the next one starts higher.
const RECOVERED: u64 = 1400;

/// The state of a column family on which admission depends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Sealed memtables that are not flushed.
    pub(crate) sealed: u32,
    /// Runs in level 0.
    pub(crate) level0_runs: u32,
    /// Estimated bytes of pending compactions.
    pub(crate) pending_bytes: u64,
    /// Bytes of the deepest level that is not empty.
    pub(crate) bottommost_bytes: u64,
}

/// The judgement of a column family, the worst last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Condition {
    #[default]
    Normal,
    Delayed,
    Stopped,
}

/// The last judgement of a column family.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    condition: Condition,
    cause: Option<StallCause>,
    pending_bytes: u64,
    /// Whether there is enough work for more than one compaction at a time.
    pressure: bool,
}

/// Combines the column families into one admission. The worst of them counts.
#[derive(Clone, Debug)]
pub(crate) struct WriteTriggers {
    /// The rate at which a delay begins, in bytes per second.
    rate_max: u64,
    /// The present rate of delayed writers, in bytes per second.
    rate: u64,
    families: BTreeMap<ColumnFamilyId, Found>,
}

impl WriteTriggers {
    /// Returns triggers without column families, whose delays begin at this rate.
    pub(crate) fn new(delayed_write_bytes_per_second: u64) -> WriteTriggers {
        let rate_max = delayed_write_bytes_per_second.max(1);
        WriteTriggers { rate_max, rate: rate_max, families: BTreeMap::new() }
    }

    /// Sets the rate at which a delay begins. If it changes, the present rate starts from it.
    pub(crate) fn set_delayed_write_rate(&mut self, rate: u64) {
        if rate.max(1) != self.rate_max {
            self.rate_max = rate.max(1);
            self.rate = self.rate_max;
        }
    }

    /// Forgets a column family that was dropped.
    pub(crate) fn remove(&mut self, cf: ColumnFamilyId) {
        self.families.remove(&cf);
    }

    /// Judges a column family again. Call it once for each change of its memtables or its version.
    pub(crate) fn update(&mut self, cf: ColumnFamilyId, load: Load, options: &CfOptions) {
        let was_stopped = self.is(Condition::Stopped);
        let was_delayed = self.is(Condition::Delayed);
        let before = self.families.get(&cf).copied().unwrap_or_default();
        let (condition, cause) = judge(load, options);
        if condition == Condition::Delayed {
            if options.disable_auto_compactions {
                self.rate = self.rate_max;
            } else if was_delayed && self.rate_max > DELAYED_RATE_MIN {
                let near_stop = was_stopped || is_near_stop(cause, load, options);
                self.adapt(near_stop, before.pending_bytes, load.pending_bytes);
            }
        } else if condition == Condition::Normal && before.condition == Condition::Delayed {
            self.rate = scale(self.rate, RECOVERED).min(self.rate_max);
        }
        let pressure = condition != Condition::Normal || is_under_pressure(load, options);
        let found = Found { condition, cause, pending_bytes: load.pending_bytes, pressure };
        self.families.insert(cf, found);
    }

    /// Adapts the rate by RocksDB's rule: down while the debt does not shrink, up while it does.
    fn adapt(&mut self, near_stop: bool, before: u64, now: u64) {
        if near_stop {
            self.rate = scale(self.rate, NEAR_STOP).max(DELAYED_RATE_MIN);
        } else if before > 0 && before <= now {
            self.rate = scale(self.rate, SLOWER).max(DELAYED_RATE_MIN);
        } else if before > now {
            self.rate = scale(self.rate, FASTER).min(self.rate_max);
        }
    }

    /// Returns true if the condition is that of any column family.
    fn is(&self, condition: Condition) -> bool {
        self.families.values().any(|found| found.condition == condition)
    }

    /// Returns the admission of clients. A stop or a delay of one column family counts for all.
    pub(crate) fn admission(&self) -> Admission {
        // Among equals the first one counts; `max_by_key` would return the last.
        let worst = self.families.iter().rev().max_by_key(|(_, found)| found.condition);
        let Some((cf, found)) = worst else { return Admission::default() };
        let state = match found.condition {
            Condition::Normal => return Admission::default(),
            Condition::Delayed => AdmissionState::Delayed { bytes_per_second: self.rate },
            Condition::Stopped => AdmissionState::Stopped,
        };
        Admission { state, cause: found.cause, column_family: Some(*cf) }
    }

    /// Returns true if several compactions should run at a time.
    pub(crate) fn pressure(&self) -> bool {
        self.families.values().any(|found| found.pressure)
    }
}

/// Judges a column family by RocksDB's triggers, in its order.
fn judge(load: Load, options: &CfOptions) -> (Condition, Option<StallCause>) {
    let compacts = !options.disable_auto_compactions;
    let memtables_max = options.memtables_max.max(1);
    let over = |limit: u64| compacts && limit > 0 && load.pending_bytes >= limit;
    if load.sealed >= memtables_max {
        (Condition::Stopped, Some(StallCause::MemtableLimit))
    } else if compacts && load.level0_runs >= options.level0_stop.max(1) {
        (Condition::Stopped, Some(StallCause::Level0Runs))
    } else if over(options.hard_pending_compaction_bytes) {
        (Condition::Stopped, Some(StallCause::PendingCompactionBytes))
    } else if memtables_max > 3
        && load.sealed >= memtables_max - 1
        && load.sealed > options.memtables_to_flush_min
    {
        (Condition::Delayed, Some(StallCause::MemtableLimit))
    } else if compacts && load.level0_runs >= options.level0_slowdown.max(1) {
        (Condition::Delayed, Some(StallCause::Level0Runs))
    } else if over(options.soft_pending_compaction_bytes) {
        (Condition::Delayed, Some(StallCause::PendingCompactionBytes))
    } else {
        (Condition::Normal, None)
    }
}

/// Returns true if level 0 is two runs from its stop, or if the debt is in the last quarter before
/// its own.
fn is_near_stop(cause: Option<StallCause>, load: Load, options: &CfOptions) -> bool {
    let (soft, hard) =
        (options.soft_pending_compaction_bytes, options.hard_pending_compaction_bytes);
    match cause {
        Some(StallCause::Level0Runs) => load.level0_runs >= options.level0_stop.saturating_sub(2),
        Some(StallCause::PendingCompactionBytes) => {
            hard > 0 && load.pending_bytes.saturating_sub(soft) > hard.saturating_sub(soft) / 4 * 3
        }
        _ => false,
    }
}

/// Returns true if level 0 has twice the runs of its trigger, or a quarter of the way from there to
/// the slowdown; or if the debt is a quarter of its soft limit, or large against the data.
fn is_under_pressure(load: Load, options: &CfOptions) -> bool {
    let trigger = options.level0_trigger;
    let quarter = options.level0_slowdown.saturating_sub(trigger) / 4;
    if load.level0_runs >= trigger.saturating_mul(2).min(trigger.saturating_add(quarter)).max(1) {
        return true;
    }
    let by_limit = match options.soft_pending_compaction_bytes {
        0 => u64::MAX,
        soft => soft / 4,
    };
    let by_size = match load.bottommost_bytes {
        0 => u64::MAX,
        bytes => (bytes / 8).max(options.level_base_bytes.saturating_mul(2)),
    };
    load.pending_bytes >= by_limit.min(by_size)
}

/// Returns `rate` times `thousandths` / 1000.
fn scale(rate: u64, thousandths: u64) -> u64 {
    rate.saturating_mul(thousandths) / 1000
}
