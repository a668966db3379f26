//! The cause of a slow second.
//!
//! 1. `figures` adds up what the background and the device did in the second and in those before
//!    it, beside what they do in this history otherwise.
//! 2. `waiting` finds the part that took most of the slowest operations' time.
//! 3. [`of`] joins the two: time that went into admission, for instance, is overload, unless the
//!    background lacked a processor, or the device had become slow.
//!
//! A slow device and too many clients look alike to who waits: syncs and reads take longer, and
//! less is believed of the device. What tells them apart is the *pace*, the bytes that background
//! work writes in a second that it spends in the device. A device at its limit writes as fast as
//! ever.

use super::history::{History, SECOND_NS, Second};
use crate::timeline::{SlowOperation, StallCause};

/// Seconds before a slow one, itself included, in which its cause may lie.
const WINDOW_SECONDS: u64 = 8;
/// Time of steps below which nothing is concluded from them.
const STEPS_MIN_NS: u64 = 50_000_000;
/// Part of the steps' time, in thousandths, above which they lacked a processor.
const HELD_UP_MIN: u64 = 400;
/// Time without a processor above which a second alone says so, whatever the ones before it say.
const HELD_UP_ALONE_NS: u64 = 200_000_000;
/// Lateness of the sampling thread, in nanoseconds a second, above which it lacked one.
const LATE_MIN_NS: u64 = 100_000_000;
/// How many times less than usual is believed of a slow device.
const SLOWER_MIN: u64 = 2;
/// How many times slower than usual its pace is.
const PACE_SLOWER_MIN: u64 = 3;
/// A pace above the usual one divided by this is no witness of a slow device.
const AS_EVER: u64 = 2;
/// Time in the device without which a second alone has no pace.
const PACE_ALONE_NS: u64 = 200_000_000;
/// Bytes without which a second has no pace: those of small files only say how long syncs take.
const PACE_BYTES_MIN: u64 = 512 << 10;
/// How many times longer than usual its syncs and reads take.
const LONGER_MIN: u64 = 4;
/// Part of the device's bandwidth, in thousandths, above which it is at its limit.
const BUSY_MIN: u64 = 700;
/// Part of the time, in thousandths, above which background work in the device is held up by it.
const IN_DEVICE_MIN: u64 = 500;

/// Number of values below which nothing is usual.
const FEW: usize = 8;

/// Why a second was slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Other programs, or other threads of this one, had the processors.
    Processor,
    /// The device was far slower than it usually is.
    Device,
    /// Syncs took long, as they usually do on this device.
    Sync,
    /// Clients asked for more than the device can do.
    Overload(Option<StallCause>),
    /// Background work could not keep up although the device was not at its limit.
    Background(StallCause),
    /// Reads went to the device because the block cache did not have the blocks.
    Cache,
    /// Background work had failed.
    Failure,
    /// The memtables of the databases that share a limit were full.
    WriteBuffers,
    /// Transactions waited for the locks of keys.
    KeyLock,
    /// Threads waited for locks, or for each other in the commit queue.
    Contention,
    /// Operations computed, or waited for something that is not recorded.
    Unknown,
}

impl Cause {
    /// Returns true if it is the reason that writers are held back.
    pub(super) fn holds_back(self) -> bool {
        matches!(
            self,
            Cause::Overload(_) | Cause::Background(_) | Cause::Failure | Cause::WriteBuffers
        )
    }

    /// Returns its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cause::Processor => "processor",
            Cause::Device => "device",
            Cause::Sync => "sync",
            Cause::Overload(_) => "overload",
            Cause::Background(_) => "background",
            Cause::Cache => "cache",
            Cause::Failure => "failure",
            Cause::WriteBuffers => "write-buffers",
            Cause::KeyLock => "key-lock",
            Cause::Contention => "contention",
            Cause::Unknown => "unknown",
        }
    }
}

/// The figures on which a cause rests: those of the slow second and of the few seconds before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Time of background steps whose CPU time is known.
    pub step_ns: u64,
    /// Part of it in which they waited for a processor or a lock.
    pub held_up_ns: u64,
    /// Time of background steps in reads, writes and syncs.
    pub device_ns: u64,
    /// The length of the period from which these figures are.
    pub period_ns: u64,
    /// Bytes that background steps write in a second in which they are in the device.
    pub pace_bytes_per_second: u64,
    /// The same, as it usually is.
    pub usual_pace_bytes_per_second: u64,
    /// How late the sampling thread ran at most.
    pub late_ns_max: u64,
    /// Bytes that all I/O moved in the slow second.
    pub io_bytes: u64,
    /// Bytes a second that were believed of the device, the sum of both directions weighted by
    /// what was read and written.
    pub device_bytes_per_second: u64,
    /// The same, as it usually is.
    pub usual_bytes_per_second: u64,
    /// Average time of a sync, as far as it was seen.
    pub sync_ns: u64,
    /// The same, as it usually is.
    pub usual_sync_ns: u64,
    /// Average time of a client's read from the device.
    pub read_ns: u64,
    /// The same, as it usually is.
    pub usual_read_ns: u64,
    /// Reads from the device in the slowest operations.
    pub device_reads: u64,
    /// Blocks that were not in the cache, in the slowest operations.
    pub cache_misses: u64,
}

/// Returns why `second` was slow, and the figures that say so.
pub(super) fn of(history: &History, second: &Second) -> (Cause, Figures) {
    let figures = figures(history, second);
    let starved = is_starved(history, second, &figures);
    let slow_device = is_slow_device(&figures, starved);
    // Where no operation took long, writers were held back.
    let waiting = if second.has_slow_operation() { waiting(second) } else { Waiting::Admission };
    let cause = match waiting {
        Waiting::Admission => match longest_stall(history, second) {
            Some(StallCause::BackgroundError) => Cause::Failure,
            Some(StallCause::WriteBuffers) => Cause::WriteBuffers,
            Some(StallCause::KeyLock) => Cause::KeyLock,
            _ if starved => Cause::Processor,
            _ if slow_device => Cause::Device,
            Some(cause) if !is_busy(history, second, &figures) => Cause::Background(cause),
            cause => Cause::Overload(cause),
        },
        Waiting::Device if starved && !slow_device => Cause::Processor,
        Waiting::Device if slow_device => Cause::Device,
        Waiting::Device if is_busy(history, second, &figures) => Cause::Overload(None),
        Waiting::Device => Cause::Cache,
        Waiting::Sync | Waiting::Append if slow_device => Cause::Device,
        Waiting::Sync | Waiting::Append if starved => Cause::Processor,
        Waiting::Sync => Cause::Sync,
        Waiting::Append if is_busy(history, second, &figures) => Cause::Overload(None),
        Waiting::Append => Cause::Unknown,
        Waiting::Lock | Waiting::Other if starved => Cause::Processor,
        Waiting::Lock => Cause::Contention,
        Waiting::Other => Cause::Unknown,
    };
    (cause, figures)
}

/// What the slowest operations of a second waited for, above all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Admission,
    Device,
    Sync,
    /// Writing the WAL, without its syncs.
    Append,
    Lock,
    Other,
}

fn waiting(second: &Second) -> Waiting {
    let sum = |part: fn(&SlowOperation) -> u64| second.slowest.iter().map(part).sum::<u64>();
    let parts = [
        (Waiting::Admission, sum(|slow| slow.admission_ns)),
        (Waiting::Device, sum(|slow| slow.device_read_ns)),
        (Waiting::Sync, sum(|slow| slow.sync_ns)),
        (Waiting::Append, sum(|slow| slow.wal_append_ns)),
        (Waiting::Lock, sum(|slow| slow.lock_ns)),
        (Waiting::Other, sum(|slow| slow.other_ns() + slow.memtable_ns + slow.cache_miss_ns)),
    ];
    let all: u64 = parts.iter().map(|(_, ns)| ns).sum();
    let queue = sum(|slow| slow.queue_ns);
    let largest = parts.into_iter().max_by_key(|(_, ns)| *ns);
    match largest {
        // A writer in the queue waits for its leader: what that did says more, if it is known.
        Some((waiting, _)) if all * 4 >= queue => waiting,
        _ => Waiting::Lock,
    }
}

/// Returns the cause for which writers waited longest in the second.
fn longest_stall(history: &History, second: &Second) -> Option<StallCause> {
    let waits = StallCause::ALL.into_iter().zip(second.stalled_ns).filter(|(_, ns)| *ns > 0);
    let ended = waits.max_by_key(|(_, ns)| *ns).map(|(cause, _)| cause);
    let goes_on = StallCause::ALL.into_iter().find(|cause| history.open_stall(*cause).is_some());
    ended.or(goes_on)
}

/// Returns the seconds of the window that ends with `second`.
fn window<'a>(history: &'a History, second: &Second) -> impl Iterator<Item = &'a Second> {
    // A long operation has its cause in the time since it began.
    let began = second.slowest.first().map_or(u64::MAX, |slow| slow.start_ns / SECOND_NS);
    let (last, first) = (second.second, second.second.saturating_sub(WINDOW_SECONDS - 1));
    let first = first.min(began);
    history.seconds().filter(move |known| (first..=last).contains(&known.second))
}

fn is_starved(history: &History, second: &Second, figures: &Figures) -> bool {
    let steps_say = figures.step_ns >= STEPS_MIN_NS && is_held_up(figures);
    // The sampling thread runs even where there is no background work.
    let (late, seconds) = window(history, second)
        .fold((0_u64, 0_u64), |(late, seconds), known| (late + known.late_ns, seconds + 1));
    steps_say || second.late_ns >= LATE_MIN_NS || late >= seconds.max(1) * LATE_MIN_NS
}

fn is_held_up(figures: &Figures) -> bool {
    let Figures { step_ns, held_up_ns, .. } = *figures;
    held_up_ns.saturating_mul(1000) >= step_ns.saturating_mul(HELD_UP_MIN)
}

/// Returns true if the device was far slower than usual. Without a processor all that clients wait
/// for takes longer, so that then only the pace counts.
fn is_slow_device(figures: &Figures, starved: bool) -> bool {
    let (pace, usual) = (figures.pace_bytes_per_second, figures.usual_pace_bytes_per_second);
    if pace > 0 && usual > 0 {
        if pace.saturating_mul(PACE_SLOWER_MIN) <= usual {
            return true;
        }
        if pace.saturating_mul(AS_EVER) > usual {
            return false;
        }
    }
    if starved {
        return false;
    }
    let usual = figures.usual_bytes_per_second;
    let fell = usual > 0
        && figures.device_bytes_per_second > 0
        && figures.device_bytes_per_second.saturating_mul(SLOWER_MIN) <= usual;
    let longer = |now: u64, usual: u64| usual > 0 && now >= usual.saturating_mul(LONGER_MIN);
    fell || longer(figures.sync_ns, figures.usual_sync_ns)
        || longer(figures.read_ns, figures.usual_read_ns)
}

/// Returns true if the device moved about as much as it can.
fn is_busy(history: &History, second: &Second, figures: &Figures) -> bool {
    let rate = figures.device_bytes_per_second;
    let (bytes, seconds) = window(history, second)
        .fold((0_u64, 0_u64), |(bytes, seconds), known| (bytes + io_bytes(known), seconds + 1));
    let most = figures.io_bytes.max(bytes / seconds.max(1));
    let moves_it_all = rate > 0 && most.saturating_mul(1000) >= rate.saturating_mul(BUSY_MIN);
    // What is believed of a device is a guess until clients have waited for it.
    moves_it_all || is_in_device(figures)
}

/// Returns true if background work waited for the device most of the time.
pub(super) fn is_in_device(figures: &Figures) -> bool {
    let Figures { device_ns, period_ns, .. } = *figures;
    period_ns > 0 && device_ns.saturating_mul(1000) >= period_ns.saturating_mul(IN_DEVICE_MIN)
}

/// Returns the bytes a second that background work writes while it is in the device, if it wrote
/// enough to tell. `seconds` is the length of the period: workers that wait together wait once.
fn pace(written: u64, device_ns: u64, seconds: u64) -> Option<u64> {
    let ns = device_ns.min(seconds.saturating_mul(SECOND_NS));
    if written < PACE_BYTES_MIN || ns == 0 {
        return None;
    }
    u64::try_from(u128::from(written) * u128::from(SECOND_NS) / u128::from(ns)).ok()
}

fn io_bytes(second: &Second) -> u64 {
    second.read_bytes.iter().chain(&second.written_bytes).sum()
}

fn figures(history: &History, second: &Second) -> Figures {
    let mut figures = Figures { io_bytes: io_bytes(second), ..Figures::default() };
    let (mut sync_ns, mut syncs) = (0, 0);
    let (mut reads, mut writes) = (0_u64, 0_u64);
    let (mut written, mut oldest) = (0, second.second);
    for known in window(history, second) {
        figures.step_ns += known.timed_step_ns;
        figures.held_up_ns += known.held_up_ns;
        figures.late_ns_max = figures.late_ns_max.max(known.late_ns_max);
        figures.device_ns += known.device_ns + known.sync_ns;
        written += known.step_written_bytes;
        oldest = oldest.min(known.second);
        sync_ns += known.sync_ns;
        syncs += known.syncs;
        reads += known.read_bytes.iter().sum::<u64>();
        writes += known.written_bytes.iter().sum::<u64>();
    }
    let seconds = second.second - oldest + 1;
    figures.period_ns = seconds.saturating_mul(SECOND_NS);
    figures.pace_bytes_per_second = pace(written, figures.device_ns, seconds).unwrap_or(0);
    take_alone(second, &mut figures);
    let each = history
        .seconds()
        .filter_map(|known| pace(known.step_written_bytes, known.device_ns + known.sync_ns, 1));
    figures.usual_pace_bytes_per_second = usual_pace(each.collect());
    figures.sync_ns = sync_ns.checked_div(syncs).unwrap_or(0);
    let slow = second.slowest.iter();
    figures.device_reads = slow.clone().map(|slow| u64::from(slow.device_reads)).sum();
    figures.cache_misses = slow.map(|slow| u64::from(slow.cache_misses)).sum();
    figures.read_ns = read_ns(second);
    // The mixture of reads and writes decides which direction counts how much.
    let rate = |known: &Second| {
        let device = known.device?;
        let (read, write) = (device.read_bytes_per_second, device.write_bytes_per_second);
        let all = u128::from(reads) + u128::from(writes);
        if all == 0 {
            return Some(write);
        }
        let sum = u128::from(reads) * u128::from(read) + u128::from(writes) * u128::from(write);
        u64::try_from(sum / all).ok()
    };
    let so_far = history.seconds().filter(|known| known.second <= second.second);
    figures.device_bytes_per_second = so_far.rev().find_map(rate).unwrap_or(0);
    // Beliefs are recorded when they change, and hold until then.
    let mut believed = None;
    let each = history.seconds().filter_map(|known| {
        believed = rate(known).or(believed);
        believed
    });
    figures.usual_bytes_per_second = upper(each.collect());
    let sync = |known: &Second| known.sync_ns.checked_div(known.syncs);
    figures.usual_sync_ns = lower(history.seconds().filter_map(sync).collect());
    let read = |known: &Second| Some(read_ns(known)).filter(|ns| *ns > 0);
    figures.usual_read_ns = lower(history.seconds().filter_map(read).collect());
    figures
}

/// Replaces the figures of the whole period by those of its last second where that alone says what
/// the period does not: something that has just begun.
fn take_alone(second: &Second, figures: &mut Figures) {
    let alone = Figures {
        step_ns: second.timed_step_ns,
        held_up_ns: second.held_up_ns,
        device_ns: second.device_ns + second.sync_ns,
        period_ns: SECOND_NS,
        ..Figures::default()
    };
    if !is_held_up(figures) && alone.held_up_ns >= HELD_UP_ALONE_NS && is_held_up(&alone) {
        (figures.step_ns, figures.held_up_ns) = (alone.step_ns, alone.held_up_ns);
    }
    if !is_in_device(figures) && is_in_device(&alone) {
        (figures.device_ns, figures.period_ns) = (alone.device_ns, alone.period_ns);
    }
    if alone.device_ns >= PACE_ALONE_NS
        && let Some(pace) = pace(second.step_written_bytes, alone.device_ns, 1)
    {
        figures.pace_bytes_per_second = match figures.pace_bytes_per_second {
            0 => pace,
            of_period => of_period.min(pace),
        };
    }
}

/// Returns the average time of a read from the device in the slowest operations of a second.
fn read_ns(second: &Second) -> u64 {
    let ns: u64 = second.slowest.iter().map(|slow| slow.device_read_ns).sum();
    let reads: u64 = second.slowest.iter().map(|slow| u64::from(slow.device_reads)).sum();
    ns.checked_div(reads).unwrap_or(0)
}

/// Returns a value that a quarter exceeds: what is usual where more is better.
fn upper(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    let at = values.len().saturating_sub(1) * 3 / 4;
    values.get(at).copied().unwrap_or(0)
}

/// Returns the usual pace; 0 if few are known.
fn usual_pace(values: Vec<u64>) -> u64 {
    if values.len() < FEW { 0 } else { upper(values) }
}

/// Returns a value that a quarter does not reach: what is usual where less is better. With few
/// values nothing is usual.
fn lower(mut values: Vec<u64>) -> u64 {
    if values.len() < FEW {
        return 0;
    }
    values.sort_unstable();
    values.get(values.len() / 4).copied().unwrap_or(0)
}
