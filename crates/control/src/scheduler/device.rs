//! What is believed of the device: how fast it reads and writes, and what a barrier costs. Learned
//! from what the driver's samples say it delivered, never by probes of its own (SILK takes the
//! bandwidth as a constant).
//!
//! How: clients' requests that take twice as long as usual, while background work is held up by
//! the device, have queued behind it: the belief is cut to what was delivered, and deep work is
//! held for a moment. Where the debt is urgent and the belief keeps background work from what it
//! wants, more is asked for a moment, and believed once it was delivered: what was not seen is not
//! believed. Where no client waits for the device nobody is harmed, and nothing is concluded.
//! Clients are slow on a busy processor, too: what is usual is learned while background work rests,
//! how often that deceives counts against it, and no cut goes below what was delivered lately
//! without harm.
//!
//! What must stay true: a belief is never below [`BANDWIDTH_MIN`], and follows a device that became
//! faster or slower within ten seconds of demand.

use crate::arithmetic::{follow, per_second, scale};
use crate::event::Sample;
use crate::types::{Instant, IoClass};

/// What is believed of a device. Kept across restarts as a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceProfile {
    /// Bytes a second that it reads.
    pub read_bytes_per_second: u64,
    /// Bytes a second that it writes.
    pub write_bytes_per_second: u64,
    /// What a barrier takes, in nanoseconds.
    pub barrier_ns: u64,
}

impl DeviceProfile {
    /// Bytes a second of the slower direction: what moves data through both goes no faster.
    pub(crate) fn slowest(&self) -> u64 {
        self.read_bytes_per_second.min(self.write_bytes_per_second)
    }
}

impl Default for DeviceProfile {
    fn default() -> DeviceProfile {
        DeviceProfile {
            read_bytes_per_second: BANDWIDTH_START,
            write_bytes_per_second: BANDWIDTH_START,
            barrier_ns: 1_000_000,
        }
    }
}

/// What a device is taken for before it has shown anything, a slow SSD: where it is too much that
/// shows while little more than there is is asked for.
const BANDWIDTH_START: u64 = 192 << 20;
/// Nothing slower is believed: background work must end.
pub(crate) const BANDWIDTH_MIN: u64 = 16 << 20;
const BANDWIDTH_MAX: u64 = 64 << 30;

/// So long is looked at at a time.
const WINDOW_NS: u64 = 50_000_000;
/// Clients are harmed when their requests take so many times as long as they do while background
/// work rests, and longer by so much.
const HARM_TIMES: u64 = 2;
const HARM_NS: u64 = 100_000;
/// They are strained when it is so many thousandths of that over some samples.
const STRAIN: u64 = 1_500;
const RECENT_SAMPLES: u64 = 16;
/// Fewer requests of clients in a sample say nothing.
const REQUESTS_MIN: u64 = 2;
/// So many samples find out what is usual, and deep work rests meanwhile.
const FIRST_SAMPLES: u64 = 10;
/// Over so many samples what is usual is averaged.
const USUAL_SAMPLES: u64 = 256;
const NOISE_SAMPLES: u64 = 64;
/// Background work that uses less than this part of what is believed, in thousandths, is not what
/// clients wait behind.
const USED_MIN: u64 = 150;
/// If it is not held up by a device that does much less than that: it has a request under way for
/// fewer of a thousand nanoseconds than so many.
const REST_BUSY_MAX: u64 = 200;
/// It is held up by the device when it has a request under way for so many of a thousand
/// nanoseconds in which it is not held, over so many samples.
const BUSY_MIN: u64 = 500;
const BUSY_SAMPLES: u64 = 16;
/// A sample that took so long came late.
const LATE_NS: u64 = 20_000_000;
/// The device is near to what is believed of it when it delivers so many thousandths of that.
const NEAR: u64 = 800;
/// The least and the most that a cut takes away, in thousandths, and the time between two.
const CUT_MIN: u64 = 60;
const CUT_MAX: u64 = 300;
const CUT_PAUSE_NS: u64 = 40_000_000;
/// How long deep work is held after a sample in which clients were harmed.
const BRAKE_NS: u64 = 25_000_000;
/// How sure one must be that clients wait behind background work, in thousandths of a sample that
/// says so. A device has hiccups of its own that take two or three; if it is the belief that is too
/// high they go on, or come again as soon as deep work does. Samples that say so while background
/// work rests add to it.
const SURE: u64 = 3_500;
const SURE_MAX: u64 = 6_000;
/// With each window in which clients are harmed, what was delivered before says less: by so many
/// thousandths.
const DOUBT: u64 = 50;
/// A device's queue is empty when background work has rested for so long.
const DRAINED_NS: u64 = 1_000_000_000;
/// Over so long what is delivered is averaged.
const AVERAGE_NS: u64 = 500_000_000;
/// A probe asks this part more than is believed, for so many windows. The first one is its start:
/// what was saved up in the device or in a throttle before it says nothing.
const PROBE: u64 = 16;
const PROBE_WINDOWS: u32 = 10;
/// It has shown that there is more if so many thousandths of what was asked were delivered, and
/// that there is not if after so many windows it were fewer than this: what is asked and not
/// delivered waits in the device's queue, and clients behind it.
const PROVEN: u64 = 970;
const DISPROVEN: u64 = 955;
const PROBE_WINDOWS_MIN: u32 = 4;
/// After so many probes that did no harm each asks twice as much more as the one before, up to so
/// many times as much: the device has become another.
const SHORT_PROBES: u32 = 2;
const PROBE_DOUBLED_MAX: u32 = 4;
/// How long the belief is cut to see whether that helps clients who are strained, and how long
/// after one that did not the next is, at first and at most.
const TRIAL_NS: u64 = 500_000_000;
const TRIAL_PAUSE_NS: u64 = 5_000_000_000;
const TRIAL_PAUSE_NS_MAX: u64 = 160_000_000_000;
/// How long nothing more is asked after a cut, or after a probe that failed.
const HOLD_NS: u64 = 4_000_000_000;

/// One direction of the device.
#[derive(Clone, Copy, Debug)]
struct Direction {
    bandwidth: u64,
    /// When it was cut last, and until when nothing more is asked of the device.
    cut_at: Option<Instant>,
    hold_until: Instant,
    probe: Option<Probe>,
    /// How many probes in a row have shown that there is more.
    probes: u32,
    /// What was believed before it was cut for clients who are strained, and when that was; when
    /// the next such cut may be, and how long after one that was of no use.
    trial: Option<(u64, Instant)>,
    no_trial_before: Instant,
    trial_pause_ns: u64,
    /// What was delivered in a second, over some windows.
    average: u64,
    /// The most that was delivered in a second lately, while no client was harmed.
    proven: u64,
    /// What of the window is over.
    bytes: u64,
    background_bytes: u64,
    background_ns: u64,
    /// What was delivered in a second in the window before, and by background work alone.
    delivered: u64,
    background: u64,
    /// For how many of a thousand nanoseconds of that window it had a request under way.
    busy: u64,
    /// The same over some samples.
    busy_lately: u64,
    /// Background work wanted more than it was granted, and could not wait for it.
    wanted: bool,
    urgent: bool,
}

/// What was seen in a window.
#[derive(Clone, Copy, Debug)]
struct Window {
    ns: u64,
    /// How many of a thousand samples lately deep work was not held.
    free: u64,
    /// Some sample showed clients harmed.
    harmed: bool,
}

/// More is asked of the device than is believed of it, for a moment.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Bytes a second.
    asked: u64,
    /// Windows that are over, and what was delivered in them but the first.
    windows: u32,
    bytes: u64,
    over_ns: u64,
}

/// The device as the samples show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceModel {
    read: Direction,
    write: Direction,
    barrier_ns: u64,
    client_reads: Requests,
    client_writes: Requests,
    /// Some sample of the window showed clients harmed.
    harmed: bool,
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

/// What clients wait for.
#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    /// Their mean time while background work rests. 0: not known.
    usual_ns: u64,
    /// Their mean time lately.
    recent_ns: u64,
    /// Samples seen, up to those that find out what is usual.
    seen: u64,
}

impl Requests {
    /// Whether they have taken longer than usual for a while: not by much, if few clients wait for
    /// the device each of them a little.
    fn strained(&self) -> bool {
        self.usual_ns > 0 && self.recent_ns >= scale(self.usual_ns, STRAIN, 1000)
    }

    /// Whether those of a sample took long.
    fn harmed(&mut self, count: u64, ns: u64, rests: bool) -> bool {
        if count < REQUESTS_MIN {
            return false;
        }
        let mean = (ns / count).max(1);
        self.recent_ns = (self.recent_ns * (RECENT_SAMPLES - 1) + mean) / RECENT_SAMPLES;
        if self.seen < FIRST_SAMPLES {
            self.seen += 1;
            self.usual_ns = if self.usual_ns == 0 { mean } else { mean.min(self.usual_ns) };
            return false;
        }
        let usual = self.usual_ns;
        // What is less than usual counts more: it shows what the device can do.
        let weight = if mean < usual { USUAL_SAMPLES / 8 } else { USUAL_SAMPLES };
        match usual {
            usual if mean < usual => self.usual_ns = usual - (usual - mean) / weight,
            usual if rests => self.usual_ns = usual + ((mean - usual) / weight).min(usual / 16),
            _ => {}
        }
        usual > 0 && mean >= usual.saturating_mul(HARM_TIMES) && mean >= usual + HARM_NS
    }
}

impl Direction {
    fn new(bandwidth: u64) -> Direction {
        Direction {
            bandwidth: bandwidth.clamp(BANDWIDTH_MIN, BANDWIDTH_MAX),
            cut_at: None,
            hold_until: Instant::default(),
            probe: None,
            probes: 0,
            trial: None,
            no_trial_before: Instant::default(),
            trial_pause_ns: TRIAL_PAUSE_NS,
            average: 0,
            proven: 0,
            bytes: 0,
            background_bytes: 0,
            background_ns: 0,
            busy: 0,
            busy_lately: 0,
            delivered: 0,
            background: 0,
            wanted: false,
            urgent: false,
        }
    }

    fn add(&mut self, class: IoClass, bytes: u64, ns: u64) {
        self.bytes += bytes;
        if is_background(class) {
            self.background_bytes += bytes;
            self.background_ns += ns;
        }
    }

    /// A sample was added; before it background work had waited for the device so long. One wait,
    /// however long, is not what a device does that is asked for too much.
    fn note_busy(&mut self, before_ns: u64, over_ns: u64) {
        let waited_ns = self.background_ns - before_ns;
        let now = scale(waited_ns.min(2 * over_ns), 1000, over_ns);
        self.busy_lately = (self.busy_lately * (BUSY_SAMPLES - 1) + now) / BUSY_SAMPLES;
    }

    /// Whether background work is held up by the device. If it is not, what is delivered says
    /// nothing of what could be.
    fn is_limited(&self, free: u64) -> bool {
        self.busy_lately >= scale(BUSY_MIN, free, 1000)
    }

    /// For how many of a thousand nanoseconds background work has a request under way.
    fn busy_part(&self, window_ns: u64) -> u64 {
        scale(self.background_ns, 1000, window_ns.max(WINDOW_NS / 2)).max(self.busy)
    }

    /// Whether background work does so little that clients do not wait behind it.
    fn rests(&self, window_ns: u64) -> bool {
        self.used(window_ns) < USED_MIN && self.busy_part(window_ns) < REST_BUSY_MAX
    }

    /// What part of the belief background work uses, in thousandths.
    fn used(&self, window_ns: u64) -> u64 {
        let now = per_second(self.background_bytes, window_ns.max(WINDOW_NS / 2));
        scale(now.max(self.background), 1000, self.bandwidth)
    }

    /// Clients wait behind background work: the device does not do what was believed.
    fn cut(&mut self, now: Instant, window_ns: u64, free: u64) {
        let paused = self.cut_at.is_some_and(|at| now.0 - at.0 < CUT_PAUSE_NS);
        // A probe that does harm ends with its window.
        if paused || self.probe.is_some() || !self.is_limited(free) {
            return;
        }
        let most = |thousandths: u64| scale(self.bandwidth, 1000 - thousandths, 1000);
        let lately = per_second(self.bytes, window_ns.max(WINDOW_NS / 2));
        let found = lately.max(self.delivered).max(most(CUT_MAX)).min(most(CUT_MIN));
        self.cut_to(now, found);
    }

    fn cut_to(&mut self, now: Instant, found: u64) {
        // What was delivered without harm is possible.
        let found = found.max(scale(self.proven, 1000 - CUT_MIN, 1000)).min(self.bandwidth);
        self.bandwidth = found.clamp(BANDWIDTH_MIN, BANDWIDTH_MAX);
        self.cut_at = Some(now);
        self.end_probe(now);
    }

    fn end_probe(&mut self, now: Instant) {
        self.probe = None;
        self.probes = 0;
        self.hold_until = Instant(now.0 + HOLD_NS);
    }

    /// A window of a probe is over. `elsewhere`: the other direction is what there is too little
    /// of.
    fn go_on_probing(&mut self, now: Instant, window: &Window, elsewhere: bool, probe: Probe) {
        let windows = probe.windows + 1;
        let first = windows == 1;
        // Who does not use up what is granted is held up by the device, or has nothing to do.
        if window.harmed || !first && !self.wanted && !elsewhere {
            return self.end_probe(now);
        }
        let bytes = probe.bytes + if first { 0 } else { self.bytes };
        let over_ns = probe.over_ns + if first { 0 } else { window.ns };
        let shown = per_second(bytes, over_ns).min(probe.asked);
        let over = windows >= PROBE_WINDOWS;
        let least = if over { PROVEN } else { DISPROVEN };
        let proven = shown >= scale(probe.asked, least, 1000);
        if !proven && !elsewhere && windows >= PROBE_WINDOWS_MIN {
            return self.end_probe(now);
        }
        if !over {
            self.probe = Some(Probe { windows, bytes, over_ns, ..probe });
            return;
        }
        self.probe = None;
        self.bandwidth = self.bandwidth.max(shown);
        self.probes += u32::from(proven);
    }

    /// What may be asked of it: a little less than it can, but in a probe.
    fn usable(&self, headroom: u64) -> u64 {
        self.probe.map_or(without(headroom, self.bandwidth), |probe| probe.asked)
    }

    /// Whether the device delivers about what is believed of it.
    fn is_near(&self) -> bool {
        self.delivered >= scale(self.bandwidth, NEAR, 1000)
    }

    /// Whether less background work has made it better for clients who are strained. If it has not
    /// they are for another reason: they share the processor with it, or the device with others.
    fn judge_trial(&mut self, now: Instant, strained: bool) {
        let Some((before, since)) = self.trial else { return };
        if now.0 - since.0 < TRIAL_NS {
            return;
        }
        self.trial = None;
        if strained {
            self.bandwidth = self.bandwidth.max(before);
            self.no_trial_before = Instant(now.0 + self.trial_pause_ns);
            self.trial_pause_ns = (2 * self.trial_pause_ns).min(TRIAL_PAUSE_NS_MAX);
        } else {
            self.trial_pause_ns = TRIAL_PAUSE_NS;
        }
    }

    /// Whether more is needed of it than is believed, and may be asked.
    fn wants_more(&self, now: Instant, window: &Window) -> bool {
        self.urgent && !window.harmed && self.may_probe(now)
    }

    fn may_probe(&self, now: Instant) -> bool {
        self.probe.is_none() && self.trial.is_none() && now >= self.hold_until
    }

    fn begin_probe(&mut self) {
        let doubled = self.probes.saturating_sub(SHORT_PROBES).min(PROBE_DOUBLED_MAX);
        let more = (self.bandwidth / PROBE) << doubled;
        let asked = (self.bandwidth + more).min(BANDWIDTH_MAX);
        self.probe = Some(Probe { asked, windows: 0, bytes: 0, over_ns: 0 });
    }

    /// The window is over. `strained`: clients wait for the device, a little each.
    fn learn(&mut self, now: Instant, window: &Window, strained: bool, elsewhere: bool) {
        self.delivered = per_second(self.bytes, window.ns);
        self.background = per_second(self.background_bytes, window.ns);
        self.busy = scale(self.background_ns, 1000, window.ns);
        let less = scale(self.proven, 1000 - if window.harmed { DOUBT } else { 1 }, 1000);
        // Over a while: a device that was idle may do more than it can go on with.
        self.average = follow(self.average, self.delivered, window.ns, AVERAGE_NS);
        if window.harmed {
            self.proven = less;
        } else {
            // More than is believed goes through for the floor and for debt, too.
            self.proven = less.max(self.average);
            self.bandwidth = self.bandwidth.max(self.average);
        }
        self.judge_trial(now, strained);
        let may_try = self.trial.is_none() && now >= self.no_trial_before;
        if strained && may_try && self.is_near() && self.is_limited(window.free) {
            let before = self.bandwidth;
            let less = before.min(self.average.max(scale(before, 1000 - CUT_MAX, 1000)));
            self.cut_to(now, scale(less, 1000 - CUT_MIN, 1000));
            self.trial = Some((before, now));
        } else if let Some(probe) = self.probe {
            self.go_on_probing(now, window, elsewhere, probe);
        }
    }

    fn begin_window(&mut self) {
        (self.bytes, self.background_bytes, self.background_ns) = (0, 0, 0);
        (self.wanted, self.urgent) = (false, false);
    }
}

impl DeviceModel {
    pub(crate) fn new(hint: DeviceProfile) -> DeviceModel {
        DeviceModel {
            read: Direction::new(hint.read_bytes_per_second),
            write: Direction::new(hint.write_bytes_per_second),
            barrier_ns: hint.barrier_ns.max(1),
            client_reads: Requests::default(),
            client_writes: Requests::default(),
            harmed: false,
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

    /// Whether clients wait behind background work just now.
    pub(crate) fn is_braked(&self, now: Instant) -> bool {
        now < self.brake_until
    }

    /// Takes note of a sample of so long; learns when a window is over.
    pub(crate) fn observe(&mut self, now: Instant, over_ns: u64, sample: &Sample) {
        let before = (self.read.background_ns, self.write.background_ns);
        for (class, counts) in IoClass::ALL.into_iter().zip(&sample.classes) {
            self.read.add(class, counts.read_bytes, counts.read_ns);
            self.write.add(class, counts.write_bytes, counts.write_ns);
            if let Some(mean) = counts.sync_ns.checked_div(counts.syncs) {
                self.barrier_ns = (self.barrier_ns / 8 * 7 + mean / 8).max(1);
            }
        }
        let start = *self.window_start.get_or_insert(now);
        let window_ns = now.0.saturating_sub(start.0);
        self.read.note_busy(before.0, over_ns);
        self.write.note_busy(before.1, over_ns);
        let free = if self.is_braked(now) { 0 } else { 1000 };
        self.free = (self.free * (BUSY_SAMPLES - 1) + free) / BUSY_SAMPLES;
        // Who samples is never slow by itself: the processor was away, and clients waited for that.
        if over_ns < LATE_NS {
            self.look_for_harm(now, window_ns, sample);
        }
        if window_ns < WINDOW_NS {
            return;
        }
        self.window_start = Some(now);
        let harmed = std::mem::take(&mut self.harmed);
        let window = Window { ns: window_ns, free: self.free, harmed };
        let (read, write) = (&mut self.read, &mut self.write);
        read.learn(now, &window, self.client_reads.strained(), write.wanted);
        write.learn(now, &window, self.client_writes.strained(), read.wanted);
        // Compactions write about what they read: both at once, or the other is in the way.
        if read.wants_more(now, &window) || write.wants_more(now, &window) {
            for direction in [&mut *read, &mut *write] {
                if direction.may_probe(now) {
                    direction.begin_probe();
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
        let reads = self.client_reads.harmed(client.reads, client.read_ns, rests);
        let writes = self.client_writes.harmed(wal.writes, wal.write_ns, rests);
        let harmed = reads || writes;
        let finding_out = |requests: &Requests| (1..FIRST_SAMPLES).contains(&requests.seen);
        if finding_out(&self.client_reads) || finding_out(&self.client_writes) {
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
            self.sure = if held { self.sure } else { self.sure / 8 * 7 };
            return;
        }
        self.sure = (self.sure + 1000).min(SURE_MAX);
        self.harmed = true;
        self.brake_until = Instant(now.0 + BRAKE_NS);
        if self.sure < SURE + 8 * self.noise {
            return;
        }
        self.sure = 0;
        // Reads wait behind reads first of all; behind writes if there are hardly any reads.
        if reads && !no_reads {
            self.read.cut(now, window_ns, self.free);
        }
        if !no_writes && (writes || no_reads) {
            self.write.cut(now, window_ns, self.free);
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
