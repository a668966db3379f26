//! What is believed of the device: how fast it reads and writes, and what a barrier costs. Learned
//! from what the driver's samples say it delivered, never by probes of its own (SILK takes the
//! bandwidth as a constant).
//!
//! How: clients' requests that take twice as long as usual, while background work is held up by
//! the device, have queued behind it: the belief is cut to what was delivered, and deep work is
//! held for a moment. Where the debt is urgent and the belief keeps background work from what it
//! wants, more is asked for a moment, and believed once it was delivered. What a cut left, or a
//! hint, is asked for in full for a moment as soon as that is wanted, for else a belief a little
//! too high would stay, and take up what is kept free: what was not seen is not believed. Where no
//! client waits for the device nobody is harmed, and nothing is concluded. Clients are slow on a
//! busy processor, too: what is usual is learned while background work rests, how often that
//! deceives counts against it, no cut goes below what was delivered lately without harm, and one
//! that does not help is taken back.
//!
//! What must stay true: a belief is never below `BANDWIDTH_MIN`, and follows a device that became
//! faster or slower within ten seconds of demand.

mod direction;
mod requests;
#[cfg(test)]
mod tests;

use crate::arithmetic::{NS_PER_SECOND, follow, scale};
use crate::event::Sample;
use crate::options::DeviceProfile;
use crate::types::{Instant, IoClass};

use direction::{BUSY_SAMPLES, Direction, Window};
use requests::{Awaited, Requests};

/// So long is looked at at a time.
const WINDOW_NS: u64 = 50_000_000;
/// The longest barrier is forgotten over so long.
const BARRIER_WORST_NS: u64 = 60_000_000_000;
/// Over so many samples it is averaged how often clients are harmed while background work rests.
const NOISE_SAMPLES: u64 = 64;
/// A sample that took so long came late.
const LATE_NS: u64 = 20_000_000;
/// How long deep work is held after a sample in which clients were harmed.
const BRAKE_NS: u64 = 25_000_000;
/// How sure one must be that clients wait behind background work, in thousandths of a sample that
/// says so. A device has hiccups of its own that take two or three; if it is the belief that is too
/// high they go on, or come again as soon as deep work does. Samples that say so while background
/// work rests add to it.
const SURE: u64 = 3_500;
const SURE_MAX: u64 = 6_000;
/// The same while it is on trial what a cut does: it was not enough, and the trial ends if it is no
/// use.
const SURE_ON_TRIAL: u64 = 1_000;
/// A device's queue is empty when background work has rested for so long.
const DRAINED_NS: u64 = 1_000_000_000;

/// The device as the samples show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceModel {
    read: Direction,
    write: Direction,
    barrier_ns: u64,
    /// The longest barrier lately.
    barrier_worst_ns: u64,
    /// What clients wait for, by [`Awaited`].
    clients: [Requests; Awaited::COUNT],
    /// Some sample of the window showed clients harmed.
    harmed: bool,
    /// Some sample of the window came late.
    late: bool,
    /// How sure it is that they wait behind background work, in thousandths of a sample.
    sure: u64,
    /// How many of a thousand samples say so while background work rests.
    noise: u64,
    /// Since when background work rests.
    rests_since: Option<Instant>,
    /// Until when deep work is held.
    brake_until: Instant,
    /// How many of a thousand samples lately deep work was not held.
    free: u64,
    window_start: Option<Instant>,
}

impl DeviceModel {
    pub(crate) fn new(hint: DeviceProfile) -> DeviceModel {
        DeviceModel {
            read: Direction::new(hint.read_bytes_per_second),
            write: Direction::new(hint.write_bytes_per_second),
            barrier_ns: hint.barrier_ns.max(1),
            barrier_worst_ns: 0,
            clients: [Requests::default(); Awaited::COUNT],
            harmed: false,
            late: false,
            sure: 0,
            noise: 0,
            rests_since: None,
            brake_until: Instant::default(),
            free: 1000,
            window_start: None,
        }
    }

    pub(crate) fn profile(&self) -> DeviceProfile {
        DeviceProfile {
            read_bytes_per_second: self.read.bandwidth,
            write_bytes_per_second: self.write.bandwidth,
            barrier_ns: self.barrier_ns,
        }
    }

    /// What the longest barrier took lately.
    pub(crate) fn barrier_worst_ns(&self) -> u64 {
        self.barrier_worst_ns.max(self.barrier_ns)
    }

    /// What may be asked of the device, reads and writes, in bytes a second.
    pub(crate) fn usable(&self, headroom: u64) -> (u64, u64) {
        (self.read.usable(headroom), self.write.usable(headroom))
    }

    /// Background work found nothing left to be granted for reads, or for writes. `urgent`: it
    /// falls behind.
    pub(crate) fn wanted(&mut self, reads: bool, writes: bool, urgent: bool) {
        for (direction, wanted) in [(&mut self.read, reads), (&mut self.write, writes)] {
            direction.wanted |= wanted;
            direction.urgent |= wanted && urgent;
        }
    }

    /// For how long deep work is held because clients wait behind background work just now.
    pub(crate) fn braked_for_ns(&self, now: Instant) -> u64 {
        self.brake_until.0.saturating_sub(now.0)
    }

    /// Takes note of a sample of so long; learns when a window is over.
    pub(crate) fn observe(&mut self, now: Instant, over_ns: u64, sample: &Sample) {
        let before = (self.read.background_ns, self.write.background_ns);
        for (class, counts) in IoClass::ALL.into_iter().zip(&sample.classes) {
            self.read.add(class, counts.read_bytes, counts.read_ns);
            self.write.add(class, counts.write_bytes, counts.write_ns);
            // What a barrier takes after blocks were given back is what that takes.
            let of_reclaim = class == IoClass::Reclaim;
            if let Some(mean) = counts.sync_ns.checked_div(counts.syncs).filter(|_| !of_reclaim) {
                self.barrier_ns = (self.barrier_ns / 8 * 7 + mean / 8).max(1);
                self.barrier_worst_ns = self.barrier_worst_ns.max(mean);
            }
        }
        self.barrier_worst_ns = follow(self.barrier_worst_ns, 0, over_ns, BARRIER_WORST_NS);
        let start = *self.window_start.get_or_insert(now);
        let window_ns = now.0.saturating_sub(start.0);
        self.read.note_busy(before.0, over_ns);
        self.write.note_busy(before.1, over_ns);
        let free = if self.braked_for_ns(now) > 0 { 0 } else { 1000 };
        self.free = (self.free * (BUSY_SAMPLES - 1) + free) / BUSY_SAMPLES;
        // Who samples is never slow by itself: the processor was away, and clients waited for that.
        if over_ns < LATE_NS {
            self.look_for_harm(now, window_ns, sample);
        } else {
            self.late = true;
        }
        if window_ns < WINDOW_NS {
            return;
        }
        self.window_start = Some(now);
        let harmed = std::mem::take(&mut self.harmed);
        let late = std::mem::take(&mut self.late);
        let window = Window { ns: window_ns, free: self.free, harmed, late };
        let (read, write) = (&mut self.read, &mut self.write);
        for direction in [&mut *read, &mut *write] {
            direction.judge_trial(now, &mut self.clients);
        }
        let strained = |awaited: &[Awaited]| {
            awaited.iter().copied().find(|awaited| self.clients[*awaited as usize].strained())
        };
        read.learn(now, &window, strained(&[Awaited::Reads]), write.wanted);
        let of_writes = strained(&[Awaited::LogWrites, Awaited::LogSyncs]);
        write.learn(now, &window, of_writes, read.wanted);
        // Compactions write about what they read: both at once, or the other is in the way.
        if read.wants_more(now, &window) || write.wants_more(now, &window) {
            let probes = read.probes.max(write.probes);
            for direction in [&mut *read, &mut *write] {
                if direction.may_probe(now) {
                    direction.begin_probe(probes);
                }
            }
        } else {
            for direction in [&mut *read, &mut *write] {
                if direction.wants_check(now, &window) {
                    direction.begin_check();
                }
            }
        }
        read.begin_window();
        write.begin_window();
    }

    fn look_for_harm(&mut self, now: Instant, window_ns: u64, sample: &Sample) {
        let client = sample.classes[IoClass::Client.index()];
        let wal = sample.classes[IoClass::Wal.index()];
        let (no_reads, no_writes) = (self.read.rests(window_ns), self.write.rests(window_ns));
        let rests = no_reads && no_writes;
        // What it left behind in the device's queue has to drain first.
        let since = self.rests_since.filter(|_| rests).unwrap_or(now);
        self.rests_since = rests.then_some(since);
        let rests = rests && now.0 - since.0 >= DRAINED_NS;
        let [of_reads, of_writes, of_syncs] = &mut self.clients;
        let reads = of_reads.harmed(client.reads, client.read_ns, rests);
        let writes = of_writes.harmed(wal.writes, wal.write_ns, rests);
        // A barrier takes what the file system has to do for it, now more, now less: what counts is
        // only whether they take longer for a while.
        // Nor does it count how much was written to the log before it.
        let transfer_ns = scale(wal.write_bytes, NS_PER_SECOND, self.write.bandwidth);
        let sync_ns = wal.sync_ns.saturating_sub(transfer_ns);
        let _one_sample = of_syncs.harmed(wal.syncs, sync_ns, rests);
        let harmed = reads || writes;
        if of_reads.is_new() || of_writes.is_new() {
            self.brake_until = Instant(now.0 + BRAKE_NS);
        }
        if self.rests_since.is_some() && !rests {
            return;
        }
        if rests {
            let now = if harmed { 1000 } else { 0 };
            self.noise = (self.noise * (NOISE_SAMPLES - 1) + now) / NOISE_SAMPLES;
            return;
        }
        let held = now.0 < self.brake_until.0 + WINDOW_NS;
        if !harmed {
            // That all is well while deep work is held is no proof of the contrary.
            self.sure = if held { self.sure } else { self.sure / 16 * 15 };
            return;
        }
        let braked = self.braked_for_ns(now) > 0;
        self.read.note_harm(braked);
        self.write.note_harm(braked);
        self.sure = (self.sure + 1000).min(SURE_MAX);
        self.harmed = true;
        self.brake_until = Instant(now.0 + BRAKE_NS);
        let on_trial = self.read.is_on_trial() || self.write.is_on_trial();
        let least = if on_trial { SURE_ON_TRIAL } else { SURE };
        if self.sure < (least + 8 * self.noise).min(SURE_MAX) {
            return;
        }
        self.sure = 0;
        // Reads wait behind reads first of all; behind writes if there are hardly any reads.
        if reads && !no_reads {
            self.read.cut(now, window_ns, Awaited::Reads);
        }
        if !no_writes && (writes || no_reads) {
            let awaited = if reads { Awaited::Reads } else { Awaited::LogWrites };
            self.write.cut(now, window_ns, awaited);
        }
    }
}

/// What is left of a bandwidth when `headroom` thousandths of it are kept free.
pub(crate) fn without(headroom: u64, bandwidth: u64) -> u64 {
    scale(bandwidth, 1000 - headroom.min(999), 1000)
}

pub(crate) fn is_background(class: IoClass) -> bool {
    !matches!(class, IoClass::Client | IoClass::Wal | IoClass::Manifest)
}
