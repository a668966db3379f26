//! One direction of the device, reads or writes: the estimated bandwidth, and how it is cut, probed
//! and raised.
//!
//! 1. [`Direction::add`], [`Direction::note_busy`] and [`Direction::note_harm`] take in samples.
//! 2. [`Direction::cut`] lowers the estimate when clients wait behind background work, and begins a
//!    trial.
//! 3. [`Direction::judge_trial`] ends the trial. The cut stays if the requests of clients take less
//!    time now, or if the device never came near the estimate. Otherwise clients wait for another
//!    reason, and the estimate is restored.
//! 4. [`Direction::learn`] runs at the end of a window. It raises the estimate to what was
//!    delivered without harm, continues a probe (`go_on_probing`), or begins a trial if clients are
//!    strained.
//! 5. [`Direction::begin_probe`] asks for more than the estimate for some windows. If the device
//!    delivers it, the estimate is raised; if not, `fail_probe` ends the probe. If the device was
//!    idle meanwhile, the next probe asks for more.
//! 6. [`Direction::begin_check`] asks for all of an estimate that was never delivered. `end_check`
//!    sets it to what was, unless the device was idle.

use super::requests::{Awaited, Requests};
use super::{WINDOW_NS, is_background, without};
use crate::arithmetic::{follow, per_second, scale};
use crate::types::{Instant, IoClass};

/// The lowest estimate. Background work must come to an end.
const BANDWIDTH_MIN: u64 = 16 << 20;
const BANDWIDTH_MAX: u64 = 64 << 30;

/// Background work rests if it uses less than this part of the estimate, in thousandths. Then
/// clients do not wait behind it.
const USED_MIN: u64 = 150;
/// It must also have a request under way for less than this many thousandths of the time. Otherwise
/// a device that is much slower than the estimate holds it up.
const REST_BUSY_MAX: u64 = 200;
/// The device holds background work up if it has a request under way for this many thousandths of
/// the time in which it is not held, averaged over this many samples.
const BUSY_MIN: u64 = 500;
pub(super) const BUSY_SAMPLES: u64 = 16;
/// Number of samples with harm over which that is averaged. Work that is paced lets the device rest
/// in between, and still fills its queue now and then.
const HARMED_SAMPLES: u64 = 2;
/// The device is near the estimate if it delivers this many thousandths of it.
const NEAR: u64 = 800;
/// The smallest and the largest cut, in thousandths, and the shortest time between two cuts.
const CUT_MIN: u64 = 60;
const CUT_MAX: u64 = 300;
const CUT_PAUSE_NS: u64 = 40_000_000;
/// With each window in which clients are harmed, `proven` is lowered by this many thousandths.
const DOUBT: u64 = 50;
/// The time over which delivered bytes are averaged.
const AVERAGE_NS: u64 = 500_000_000;
/// A probe asks for this part more than the estimate, for this many windows. The first window does
/// not count, because the device or a throttle may have saved up bytes before it.
const PROBE: u64 = 16;
const PROBE_WINDOWS: u32 = 10;
/// A bandwidth is shown if this many thousandths of it were delivered. A probe fails early if after
/// `PROBE_WINDOWS_MIN` windows it was less than `DISPROVEN`: what is asked for and not delivered
/// waits in the device's queue, and clients behind it.
const PROVEN: u64 = 970;
const DISPROVEN: u64 = 955;
const PROBE_WINDOWS_MIN: u32 = 4;
/// The pause after a check that showed nothing, at first and at most.
const CHECK_PAUSE_NS: u64 = 4_000_000_000;
const CHECK_PAUSE_NS_MAX: u64 = 64_000_000_000;
/// After this many probes in a row that have not failed, each one asks for twice as much more as
/// the one before, up to `PROBE_DOUBLED_MAX` doublings. The device has become a much faster one.
const SHORT_PROBES: u32 = 2;
const PROBE_DOUBLED_MAX: u32 = 4;
/// The length of a trial once the device is near the estimate, and its longest length otherwise.
/// After a trial that did not help, the next cut waits, at first and at most, for this time.
const TRIAL_NS: u64 = 500_000_000;
const TRIAL_NS_MAX: u64 = 4_000_000_000;
const TRIAL_PAUSE_NS: u64 = 5_000_000_000;
const TRIAL_PAUSE_NS_MAX: u64 = 160_000_000_000;
/// The pause of probes after a cut or a failed probe.
const HOLD_NS: u64 = 4_000_000_000;
/// The requests of clients are averaged, so the end of a probe shows in them for this time.
const RECOVERY_NS: u64 = 500_000_000;

/// One direction of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direction {
    pub(super) bandwidth: u64,
    /// Whether the device has delivered the estimate. Otherwise it comes from a cut or a hint.
    is_shown: bool,
    /// When the next check may begin, and the pause after a check that showed nothing.
    no_check_before: Instant,
    check_pause_ns: u64,
    /// The last cut, and the end of the pause of probes.
    cut_at: Option<Instant>,
    hold_until: Instant,
    probe: Option<Probe>,
    /// Number of probes in a row that have not failed.
    pub(super) probes: u32,
    /// The trial of a cut; when the next cut may begin, and the pause after a trial that did not
    /// help (`trial_pause_ns`).
    trial: Option<Trial>,
    no_trial_before: Instant,
    /// Until when the requests of clients are slower because of a failed probe.
    recovers_until: Instant,
    trial_pause_ns: u64,
    /// Delivered bytes per second, averaged over some windows.
    average: u64,
    /// The most bytes per second that were lately delivered without harm to clients.
    proven: u64,
    /// The present window so far.
    bytes: u64,
    background_bytes: u64,
    pub(super) background_ns: u64,
    /// Bytes per second in the last window: in all, and for background work.
    delivered: u64,
    background: u64,
    /// How many thousandths of the last window background work had a request under way.
    busy: u64,
    /// The same in the last sample, averaged over samples, and averaged over samples with harm.
    busy_now: u64,
    busy_lately: u64,
    busy_harmed: u64,
    /// Bytes per second that clients moved, averaged over some windows, and in the last window;
    /// and how many more than that are left to them.
    client: u64,
    client_lately: u64,
    spare: u64,
    /// Bytes of clients in the present window.
    client_bytes: u64,
    /// Whether a probe has failed in this window.
    pub(super) failed: bool,
    /// Whether background work wanted more than it was granted, and whether that was urgent.
    pub(super) wanted: bool,
    pub(super) urgent: bool,
}

/// The observations of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) ns: u64,
    /// The part of the recent samples in which deep work was not held, in thousandths.
    pub(super) free: u64,
    /// Whether a sample showed harm to clients.
    pub(super) harmed: bool,
    /// Whether a sample came late, so that delivered bytes say little.
    pub(super) late: bool,
}

/// A cut whose effect is being observed.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The estimate before the cut, and whether it was shown.
    before: u64,
    was_shown: bool,
    began: Instant,
    /// Since when the device has been near the estimate. Before that the cut has no effect.
    since: Instant,
    /// The kind of request that took clients too long.
    awaited: Awaited,
    /// The longest time that these requests took since.
    worst_ns: u64,
}

/// A moment in which more than the estimate is asked for, or all of it as a check.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// The bandwidth that is asked for, in bytes per second.
    asked: u64,
    /// How often the extra part was doubled; `None` for a check.
    doubled: Option<u32>,
    /// Number of windows that have ended, and what was delivered in all but the first one.
    windows: u32,
    bytes: u64,
    over_ns: u64,
    /// The time of the requests of background work, and of all windows.
    busy_ns: u64,
    all_ns: u64,
}

impl Probe {
    fn of(asked: u64, doubled: Option<u32>) -> Probe {
        Probe { asked, doubled, windows: 0, bytes: 0, over_ns: 0, busy_ns: 0, all_ns: 0 }
    }

    /// Returns true if background work hardly waited for the device. If less was delivered than
    /// asked for, the work had pauses of its own.
    fn was_idle(&self) -> bool {
        scale(self.busy_ns, 1000, self.all_ns.max(1)) < REST_BUSY_MAX
    }
}

impl Direction {
    pub(super) fn new(bandwidth: u64) -> Direction {
        Direction {
            bandwidth: bandwidth.clamp(BANDWIDTH_MIN, BANDWIDTH_MAX),
            is_shown: false,
            no_check_before: Instant(CHECK_PAUSE_NS),
            check_pause_ns: CHECK_PAUSE_NS,
            cut_at: None,
            hold_until: Instant::default(),
            probe: None,
            probes: 0,
            trial: None,
            no_trial_before: Instant::default(),
            recovers_until: Instant::default(),
            trial_pause_ns: TRIAL_PAUSE_NS,
            average: 0,
            proven: 0,
            bytes: 0,
            background_bytes: 0,
            background_ns: 0,
            busy: 0,
            busy_now: 0,
            busy_lately: 0,
            busy_harmed: 0,
            client: 0,
            client_lately: 0,
            spare: 0,
            client_bytes: 0,
            failed: false,
            delivered: 0,
            background: 0,
            wanted: false,
            urgent: false,
        }
    }

    /// Takes in the bytes of one class, and the time of its requests.
    pub(super) fn add(&mut self, class: IoClass, bytes: u64, ns: u64) {
        self.bytes += bytes;
        if is_background(class) {
            self.background_bytes += bytes;
            self.background_ns += ns;
        }
    }

    /// Notes how much of a sample background work waited for the device. One long wait counts as
    /// little: it does not mean that too much was asked for.
    pub(super) fn note_busy(&mut self, before_ns: u64, over_ns: u64) {
        let waited_ns = self.background_ns - before_ns;
        self.busy_now = scale(waited_ns.min(2 * over_ns), 1000, over_ns);
        self.busy_lately = (self.busy_lately * (BUSY_SAMPLES - 1) + self.busy_now) / BUSY_SAMPLES;
    }

    /// Takes in a sample in which clients moved `bytes`, and `left` bytes per second were left to
    /// them.
    pub(super) fn note_left(&mut self, left: u64, bytes: u64, over_ns: u64) {
        self.client_bytes += bytes;
        self.client = follow(self.client, per_second(bytes, over_ns), over_ns, AVERAGE_NS);
        self.spare = left.saturating_sub(self.client.max(self.client_lately));
    }

    /// Notes that clients were harmed in the last sample. `held` is true if deep work was held.
    /// Then a lack of requests says nothing.
    pub(super) fn note_harm(&mut self, held: bool) {
        if !held || self.busy_now >= BUSY_MIN {
            self.busy_harmed =
                (self.busy_harmed * (HARMED_SAMPLES - 1) + self.busy_now) / HARMED_SAMPLES;
        }
    }

    /// Returns true if the device holds background work up. Otherwise the delivered bytes do not
    /// show what the device could do.
    fn is_limited(&self, free: u64) -> bool {
        self.busy_lately >= scale(BUSY_MIN, free, 1000)
    }

    /// Returns true if background work hardly waits for the device.
    pub(super) fn is_idle(&self) -> bool {
        self.busy.max(self.busy_lately) < REST_BUSY_MAX
    }

    /// Returns true during a probe or check.
    pub(super) fn probes(&self) -> bool {
        self.probe.is_some()
    }

    /// Returns how many thousandths of the time background work has a request under way.
    fn busy_part(&self, window_ns: u64) -> u64 {
        scale(self.background_ns, 1000, window_ns.max(WINDOW_NS / 2)).max(self.busy)
    }

    /// Returns true if background work does so little that clients do not wait behind it.
    pub(super) fn rests(&self, window_ns: u64) -> bool {
        self.used(window_ns) < USED_MIN && self.busy_part(window_ns) < REST_BUSY_MAX
    }

    /// Returns the part of the estimate that background work uses, in thousandths.
    fn used(&self, window_ns: u64) -> u64 {
        let now = per_second(self.background_bytes, window_ns.max(WINDOW_NS / 2));
        scale(now.max(self.background), 1000, self.bandwidth)
    }

    /// Lowers the estimate, because clients wait behind background work, and begins a trial.
    pub(super) fn cut(&mut self, now: Instant, window_ns: u64, awaited: Awaited) {
        let paused = self.cut_at.is_some_and(|at| now.0 - at.0 < CUT_PAUSE_NS);
        // A probe that does harm ends with its window.
        let held_up = self.busy_harmed >= BUSY_MIN;
        if paused || self.probe.is_some() || !held_up || now < self.no_trial_before {
            return;
        }
        // The device can do what it delivers. More than the estimate may be asked of it, for the
        // floor and for debt. If that harms clients, a lower estimate does not help.
        if self.average > self.bandwidth + self.bandwidth / PROBE {
            return;
        }
        self.begin_trial(now, awaited);
        let most = |thousandths: u64| scale(self.bandwidth, 1000 - thousandths, 1000);
        let lately = per_second(self.bytes, window_ns.max(WINDOW_NS / 2));
        let found = lately.max(self.delivered).max(most(CUT_MAX)).min(most(CUT_MIN));
        self.cut_to(now, found);
    }

    /// Sets the estimate to `found`, but not below what was proven.
    fn cut_to(&mut self, now: Instant, found: u64) {
        // What was delivered without harm is possible.
        let found = found.max(scale(self.proven, 1000 - CUT_MIN, 1000)).min(self.bandwidth);
        self.bandwidth = found.clamp(BANDWIDTH_MIN, BANDWIDTH_MAX);
        self.is_shown = false;
        self.cut_at = Some(now);
        self.end_probe(now);
    }

    /// Ends a probe in which less was delivered than asked for. If the device was idle, that proves
    /// nothing, and if there was enough to do, the next probe asks for more.
    fn end_unproven(&mut self, now: Instant, window: &Window, probe: &Probe, shown: u64) {
        if window.harmed || probe.doubled.is_none() || !probe.was_idle() {
            return self.fail_probe(now, window, probe, shown);
        }
        self.probe = None;
        self.probes += u32::from(self.wanted);
    }

    /// Ends a probe that asked for too much. The device can do less than was asked, but may still
    /// do far more than the estimate. So after a probe with several doublings the next one comes
    /// sooner, with a quarter of the extra part.
    fn fail_probe(&mut self, now: Instant, window: &Window, probe: &Probe, shown: u64) {
        self.bandwidth = self.bandwidth.max(scale(shown, 1000 - CUT_MIN, 1000));
        self.end_probe(now);
        self.recovers_until = Instant(now.0 + RECOVERY_NS);
        let Some(doubled) = probe.doubled else {
            self.no_check_before = Instant(now.0 + self.check_pause_ns);
            self.check_pause_ns = (2 * self.check_pause_ns).min(CHECK_PAUSE_NS_MAX);
            return;
        };
        self.failed = true;
        if doubled >= 2 && !window.harmed {
            self.probes = SHORT_PROBES + doubled - 2;
            self.hold_until = Instant(now.0 + (HOLD_NS >> doubled));
        }
    }

    /// Ends a check, in which all of the estimate was asked for and wanted: sets it to what was
    /// delivered.
    fn end_check(&mut self, now: Instant, shown: u64) {
        let least = scale(self.bandwidth, 1000 - CUT_MAX, 1000);
        self.bandwidth = shown.max(least).clamp(BANDWIDTH_MIN, self.bandwidth);
        self.proven = self.proven.min(self.bandwidth);
        self.is_shown = shown >= least;
        self.check_pause_ns = CHECK_PAUSE_NS;
        self.no_check_before = Instant(now.0 + self.check_pause_ns);
        self.probe = None;
    }

    fn end_probe(&mut self, now: Instant) {
        self.probe = None;
        self.probes = 0;
        self.hold_until = Instant(now.0 + HOLD_NS);
    }

    /// Takes in a window of a probe. `elsewhere` is true if the other direction limits background
    /// work.
    fn go_on_probing(&mut self, now: Instant, window: &Window, elsewhere: bool, probe: Probe) {
        if window.late {
            return;
        }
        let windows = probe.windows + 1;
        let first = windows == 1;
        let bytes = probe.bytes + if first { 0 } else { self.bytes };
        let over_ns = probe.over_ns + if first { 0 } else { window.ns };
        let busy_ns = probe.busy_ns + self.background_ns;
        let all_ns = probe.all_ns + window.ns;
        let probe = Probe { windows, bytes, over_ns, busy_ns, all_ns, ..probe };
        let shown = per_second(bytes, over_ns).min(probe.asked);
        // Work that does not use up its grants is held up by the device, or has nothing to do.
        if window.harmed || !first && !self.wanted && !elsewhere {
            return self.end_unproven(now, window, &probe, shown);
        }
        let over = windows >= PROBE_WINDOWS;
        let least = if over { PROVEN } else { DISPROVEN };
        let proven = shown >= scale(probe.asked, least, 1000);
        if over && probe.doubled.is_none() {
            if !proven && (elsewhere || probe.was_idle()) {
                return self.fail_probe(now, window, &probe, shown);
            }
            return self.end_check(now, shown);
        }
        let early = windows >= PROBE_WINDOWS_MIN && probe.doubled.is_some();
        if !proven && !elsewhere && early {
            return self.end_unproven(now, window, &probe, shown);
        }
        if !over {
            self.probe = Some(probe);
            return;
        }
        self.probe = None;
        self.bandwidth = self.bandwidth.max(shown);
        self.proven = self.proven.max(shown);
        self.is_shown |= proven;
        self.probes += u32::from(proven);
    }

    /// Returns the bandwidth that may be asked of the device: a little less than the estimate, or
    /// more in a probe. In a probe background work also gets what clients leave of their peak.
    /// Otherwise less than `asked` would be delivered, and no probe of a low estimate would
    /// succeed.
    pub(super) fn usable(&self, headroom: u64) -> u64 {
        let asked = |probe: Probe| probe.asked.saturating_add(self.spare);
        self.probe.map_or(without(headroom, self.bandwidth), asked)
    }

    /// Returns true if the device delivers about as much as the estimate.
    fn is_near(&self) -> bool {
        self.delivered >= scale(self.bandwidth, NEAR, 1000)
    }

    /// Returns true while the effect of a cut is being observed.
    pub(super) fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    fn begin_trial(&mut self, now: Instant, awaited: Awaited) {
        self.trial.get_or_insert(Trial {
            before: self.bandwidth,
            was_shown: self.is_shown,
            began: now,
            since: now,
            awaited,
            worst_ns: 0,
        });
    }

    /// Ends a trial if it has lasted long enough. If less background work has not helped clients,
    /// they wait for another reason, such as the processor or other users of the device. Then the
    /// present time of their requests becomes the usual one, and the cut is taken back.
    pub(super) fn judge_trial(&mut self, now: Instant, clients: &mut [Requests; Awaited::COUNT]) {
        let near = self.is_near();
        let Some(trial) = &mut self.trial else { return };
        let requests = &mut clients[trial.awaited as usize];
        trial.worst_ns = trial.worst_ns.max(requests.recent_ns);
        if !near {
            trial.since = now;
        }
        let over = now.0 - trial.began.0 >= TRIAL_NS_MAX;
        if now.0 - trial.since.0 < TRIAL_NS && !over {
            return;
        }
        let Trial { before, was_shown, worst_ns, .. } = *trial;
        self.trial = None;
        if over || requests.better_than(worst_ns) {
            self.trial_pause_ns = TRIAL_PAUSE_NS;
        } else {
            requests.get_used();
            self.bandwidth = self.bandwidth.max(before);
            self.is_shown = was_shown;
            self.no_trial_before = Instant(now.0 + self.trial_pause_ns);
            self.trial_pause_ns = (2 * self.trial_pause_ns).min(TRIAL_PAUSE_NS_MAX);
        }
    }

    /// Returns true if more than the estimate is needed urgently, and a probe may begin.
    pub(super) fn wants_more(&self, now: Instant, window: &Window) -> bool {
        self.urgent && !window.harmed && self.may_probe(now)
    }

    /// Returns true if the estimate was never shown, limits background work, and may be checked.
    pub(super) fn wants_check(&self, now: Instant, window: &Window) -> bool {
        let due = !self.is_shown && now >= self.no_check_before;
        due && self.wanted && !window.harmed && !window.late && self.may_probe(now)
    }

    pub(super) fn may_probe(&self, now: Instant) -> bool {
        self.probe.is_none() && self.trial.is_none() && now >= self.hold_until
    }

    /// Begins a probe. `probes` is the number of those in a row that have not failed, in either
    /// direction.
    pub(super) fn begin_probe(&mut self, probes: u32) {
        let doubled = probes.saturating_sub(SHORT_PROBES).min(PROBE_DOUBLED_MAX);
        let more = (self.bandwidth / PROBE) << doubled;
        let asked = (self.bandwidth + more).min(BANDWIDTH_MAX);
        let doubled = Some(doubled);
        self.probe = Some(Probe::of(asked, doubled));
    }

    /// Begins a check, which asks for all of the estimate.
    pub(super) fn begin_check(&mut self) {
        self.probe = Some(Probe::of(self.bandwidth, None));
    }

    /// Learns from the window that has ended. `strained` is the kind of request that takes clients
    /// a little longer each time.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        window: &Window,
        strained: Option<Awaited>,
        elsewhere: bool,
    ) {
        self.delivered = per_second(self.bytes, window.ns);
        self.background = per_second(self.background_bytes, window.ns);
        self.client_lately = per_second(self.client_bytes, window.ns);
        self.busy = scale(self.background_ns, 1000, window.ns);
        let less = scale(self.proven, 1000 - if window.harmed { DOUBT } else { 1 }, 1000);
        // The average over a while counts, because an idle device may do more than it can sustain.
        self.average = follow(self.average, self.delivered, window.ns, AVERAGE_NS);
        if window.harmed {
            self.proven = less;
        } else {
            // More than the estimate may be asked for, for the floor and for debt.
            self.proven = less.max(self.average);
            self.bandwidth = self.bandwidth.max(self.average);
            self.is_shown |= self.average >= scale(self.bandwidth, PROVEN, 1000);
        }
        let may_try = self.trial.is_none() && now >= self.no_trial_before.max(self.recovers_until);
        if let Some(probe) = self.probe {
            self.go_on_probing(now, window, elsewhere, probe);
        } else if let Some(awaited) = strained
            && may_try
            && self.is_near()
            && self.is_limited(window.free)
        {
            self.begin_trial(now, awaited);
            let before = self.bandwidth;
            let less = before.min(self.average.max(scale(before, 1000 - CUT_MAX, 1000)));
            self.cut_to(now, scale(less, 1000 - CUT_MIN, 1000));
        }
    }

    pub(super) fn begin_window(&mut self) {
        (self.bytes, self.background_bytes, self.background_ns) = (0, 0, 0);
        self.client_bytes = 0;
        (self.wanted, self.urgent, self.failed) = (false, false, false);
    }
}
