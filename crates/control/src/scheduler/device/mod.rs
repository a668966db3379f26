//! The estimate of the device: how fast it reads and writes, and how long a barrier takes. It is
//! learned from the driver's samples of what the device delivered, never by I/O of its own. (SILK
//! takes the bandwidth as a constant.)
//!
//! 1. [`DeviceModel::observe`] adds up samples in windows of [`WINDOW_NS`].
//! 2. `look_for_harm` compares the time of each sample's client requests with the usual time, which
//!    is learned while background work rests. Clients are harmed if their requests take twice as
//!    long while background work waits for the device: they have queued behind it.
//! 3. Each such sample holds deep work for [`BRAKE_NS`]. Once there is enough evidence, and harm is
//!    not rare, the estimate is cut to what was delivered lately without harm. Harm that is seen
//!    while background work rests counts against that evidence, because a busy processor slows
//!    clients down, too.
//! 4. A cut that does not help is taken back at the end of its trial.
//! 5. If the debt is urgent and the estimate limits background work, a probe asks for more for a
//!    moment. The estimate is raised once the device has delivered it.
//! 6. An estimate that comes from a cut or a hint is checked as soon as it limits background work.
//!    For a moment, the check asks for the whole estimate, headroom included. Otherwise an estimate
//!    that is a little too high would stay, and background work would use the headroom.
//! 7. While no client waits for the device nothing is concluded from how long requests take, and
//!    [`DeviceModel::is_awaited`] says so: background work then harms nobody.
//! 8. While other programs have the processors, requests take longer whether background work rests
//!    or not: threads wait for a processor, and so does a device that the kernel or the host
//!    emulates. Then a long request proves nothing, the estimate is not cut, and deep work is held
//!    only if requests take longer on average than while it rests.
//! 9. After a pause of the whole process, clients do at once what they could not do meanwhile. For
//!    as long as the pause took, nothing is concluded from how long their requests take.
//!
//! What must stay true: an estimate is never below `BANDWIDTH_MIN`. It follows a device that became
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

/// The length of a window.
const WINDOW_NS: u64 = 50_000_000;
/// The time over which the longest barrier is forgotten.
const BARRIER_WORST_NS: u64 = 60_000_000_000;
/// The number of samples over which harm while background work rests is averaged.
const NOISE_SAMPLES: u64 = 64;
/// A sample that took this long came late.
const LATE_NS: u64 = 20_000_000;
/// The longest time for which clients are expected to catch up after a late sample.
const CATCH_UP_MAX_NS: u64 = 2 * NS_PER_SECOND;
/// How long deep work is held after a sample in which clients were harmed.
const BRAKE_NS: u64 = 25_000_000;
/// The evidence that a cut needs, in thousandths of a sample that shows harm. A device has hiccups
/// of its own that take two or three samples. If the estimate is too high, harm goes on, or comes
/// again with deep work. Harm while background work rests adds to the evidence that is needed.
const SURE: u64 = 3_500;
const SURE_MAX: u64 = 6_000;
/// The same while a cut is on trial. Less evidence suffices: harm shows that the cut was too small,
/// and a cut that does not help is taken back.
const SURE_ON_TRIAL: u64 = 1_000;
/// A cut also needs so many thousandths of the recent samples with harm, averaged over this many
/// samples in which background work does not rest. A host that stops the machine for some
/// milliseconds a few times a second shows harm in a row now and then, and whatever is done then
/// seems to have helped.
const OFTEN: u64 = 30;
const OFTEN_SAMPLES: u64 = 512;
/// The page cache takes a write in less time. One that takes longer waits for the device.
const CACHED_WRITE_NS: u64 = 50_000;
/// Clients without a request that waits for the device for this time do not wait for it.
const AWAITED_NS: u64 = NS_PER_SECOND;
/// How long background work must rest until the device's queue is empty.
const DRAINED_NS: u64 = 1_000_000_000;

/// The device as the samples show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceModel {
    read: Direction,
    write: Direction,
    barrier_ns: u64,
    /// The longest barrier lately, in nanoseconds.
    barrier_worst_ns: u64,
    /// The requests that clients wait for, by [`Awaited`].
    clients: [Requests; Awaited::COUNT],
    /// Whether other programs have the processors.
    host_is_busy: bool,
    /// When clients last waited for the device.
    awaited_at: Option<Instant>,
    /// Whether a sample of the window showed harm.
    harmed: bool,
    /// Whether a sample of the window came late, or clients caught up after one.
    late: bool,
    /// The end of the time in which clients catch up after a late sample.
    catch_up_until: Instant,
    /// The evidence that clients wait behind background work, in thousandths of a sample.
    sure: u64,
    /// How many thousandths of the samples show harm while background work rests.
    noise: u64,
    /// The same while it does not rest, in millionths.
    often: u64,
    /// When background work began to rest.
    rests_since: Option<Instant>,
    /// The end of the time for which deep work is held.
    brake_until: Instant,
    /// The part of the recent samples in which deep work was not held, in thousandths.
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
            host_is_busy: false,
            awaited_at: None,
            harmed: false,
            late: false,
            catch_up_until: Instant::default(),
            sure: 0,
            noise: 0,
            often: 0,
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

    /// Returns the time of the longest barrier lately, in nanoseconds.
    pub(crate) fn barrier_worst_ns(&self) -> u64 {
        self.barrier_worst_ns.max(self.barrier_ns)
    }

    /// Returns the bandwidth that may be asked of the device, for reads and for writes, in bytes
    /// per second.
    pub(crate) fn usable(&self, headroom: u64) -> (u64, u64) {
        (self.read.usable(headroom), self.write.usable(headroom))
    }

    /// Returns true while more than usual is asked of the device.
    pub(crate) fn probes(&self) -> bool {
        self.read.probes() || self.write.probes()
    }

    /// Returns true if background work hardly waits for the device.
    pub(crate) fn is_idle(&self) -> bool {
        self.read.is_idle() && self.write.is_idle()
    }

    /// Notes that background work wanted more reads, or more writes, than could be granted.
    /// `urgent` is true if it falls behind.
    pub(crate) fn wanted(&mut self, reads: bool, writes: bool, urgent: bool) {
        for (direction, wanted) in [(&mut self.read, reads), (&mut self.write, writes)] {
            direction.wanted |= wanted;
            direction.urgent |= wanted && urgent;
        }
    }

    /// Returns for how long deep work is held because clients wait behind background work.
    pub(crate) fn braked_for_ns(&self, now: Instant) -> u64 {
        self.brake_until.0.saturating_sub(now.0)
    }

    /// Returns true if clients waited for the device lately: for reads, for barriers of the WAL, or
    /// for writes of the WAL that the page cache did not take at once.
    pub(crate) fn is_awaited(&self, now: Instant) -> bool {
        self.awaited_at.is_some_and(|at| now.0.saturating_sub(at.0) < AWAITED_NS)
    }

    /// Takes in a sample that covers `over_ns`, in which `left` bytes per second, read and written,
    /// were left to clients. If the sample ends the window, learns from the window.
    pub(crate) fn observe(
        &mut self,
        now: Instant,
        over_ns: u64,
        sample: &Sample,
        left: (u64, u64),
    ) {
        let (client, wal) =
            (sample.classes[IoClass::Client.index()], sample.classes[IoClass::Wal.index()]);
        let slow_writes = wal.write_ns >= wal.writes.max(1).saturating_mul(CACHED_WRITE_NS);
        if client.reads + wal.syncs > 0 || slow_writes {
            self.awaited_at = Some(now);
        }
        let busy = sample.processors.are_short(self.host_is_busy);
        if self.host_is_busy != busy {
            (self.host_is_busy, self.sure) = (busy, 0);
            self.clients.iter_mut().for_each(Requests::forget_rest);
        }
        let before = (self.read.background_ns, self.write.background_ns);
        for (class, counts) in IoClass::ALL.into_iter().zip(&sample.classes) {
            self.read.add(class, counts.read_bytes, counts.read_ns);
            self.write.add(class, counts.write_bytes, counts.write_ns);
            // A barrier of reclaim also waits for the discards of blocks, so it is not counted.
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
        self.read.note_left(left.0, client.read_bytes + wal.read_bytes, over_ns);
        self.write.note_left(left.1, client.write_bytes + wal.write_bytes, over_ns);
        let free = if self.braked_for_ns(now) > 0 { 0 } else { 1000 };
        self.free = (self.free * (BUSY_SAMPLES - 1) + free) / BUSY_SAMPLES;
        // A late sample means that its thread had no processor. Clients waited for one, too. What
        // they could not do meanwhile they do at once: for about as long, they wait for each other.
        if over_ns >= LATE_NS {
            self.catch_up_until = Instant(now.0 + over_ns.min(CATCH_UP_MAX_NS));
        }
        if now < self.catch_up_until {
            self.late = true;
        } else {
            self.look_for_harm(now, window_ns, sample);
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
        let host_is_busy = self.host_is_busy;
        let strained = |awaited: &[Awaited]| {
            let strained = |awaited: &Awaited| self.clients[*awaited as usize].strained();
            awaited.iter().copied().find(|awaited| !host_is_busy && strained(awaited))
        };
        read.learn(now, &window, strained(&[Awaited::Reads]), write.wanted);
        let of_writes = strained(&[Awaited::LogWrites, Awaited::LogSyncs]);
        write.learn(now, &window, of_writes, read.wanted);
        // Otherwise the direction that has not failed would make the other ask for more and more.
        if read.failed || write.failed {
            let probes = read.probes.min(write.probes);
            (read.probes, write.probes) = (probes, probes);
        }
        // Compactions write about as much as they read. Both are probed, or the other direction
        // would limit them.
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

    /// Looks in a sample for clients that waited behind background work, and holds or cuts that.
    fn look_for_harm(&mut self, now: Instant, window_ns: u64, sample: &Sample) {
        let client = sample.classes[IoClass::Client.index()];
        let wal = sample.classes[IoClass::Wal.index()];
        let (no_reads, no_writes) = (self.read.rests(window_ns), self.write.rests(window_ns));
        let rests = no_reads && no_writes;
        // Requests that are left in the device's queue must end first.
        let since = self.rests_since.filter(|_| rests).unwrap_or(now);
        self.rests_since = rests.then_some(since);
        let rests = rests && now.0 - since.0 >= DRAINED_NS;
        let [of_reads, of_writes, of_syncs] = &mut self.clients;
        let reads = of_reads.harmed(client.reads, client.read_ns, rests);
        let writes = of_writes.harmed(wal.writes, wal.write_ns, rests);
        // The time of a barrier varies with the work of the file system. One sample proves nothing,
        // and only a longer time over a while counts. The time of transferring the WAL's bytes is
        // subtracted.
        let transfer_ns = scale(wal.write_bytes, NS_PER_SECOND, self.write.bandwidth);
        let sync_ns = wal.sync_ns.saturating_sub(transfer_ns);
        let _one_sample = of_syncs.harmed(wal.syncs, sync_ns, rests);
        let slower = client.reads > 0 && of_reads.slower_than_at_rest()
            || wal.writes > 0 && of_writes.slower_than_at_rest();
        let harmed = if self.host_is_busy { slower } else { reads || writes };
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
        let often = if harmed { 1_000_000 } else { 0 };
        self.often = (self.often * (OFTEN_SAMPLES - 1) + often) / OFTEN_SAMPLES;
        let held = now.0 < self.brake_until.0 + WINDOW_NS;
        if !harmed {
            // No harm while deep work is held does not prove that the estimate is right.
            self.sure = if held { self.sure } else { self.sure / 16 * 15 };
            return;
        }
        if self.host_is_busy {
            self.harmed = true;
            self.brake_until = Instant(now.0 + BRAKE_NS);
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
        let is_rare = self.often < 1000 * OFTEN;
        if is_rare || self.sure < (least + 8 * self.noise).min(SURE_MAX) {
            return;
        }
        self.sure = 0;
        // Reads wait behind reads, or behind writes if there are hardly any reads.
        if reads && !no_reads {
            self.read.cut(now, window_ns, Awaited::Reads);
        }
        if !no_writes && (writes || no_reads) {
            let awaited = if reads { Awaited::Reads } else { Awaited::LogWrites };
            self.write.cut(now, window_ns, awaited);
        }
    }
}

/// Returns the bandwidth without the `headroom` thousandths that are kept free.
pub(crate) fn without(headroom: u64, bandwidth: u64) -> u64 {
    scale(bandwidth, 1000 - headroom.min(999), 1000)
}

/// Returns true for the classes of background work.
pub(crate) fn is_background(class: IoClass) -> bool {
    !matches!(class, IoClass::Client | IoClass::Wal | IoClass::Manifest)
}
