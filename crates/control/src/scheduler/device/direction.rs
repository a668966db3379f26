//! One direction of the device, reads or writes: what is believed of it, and how that is cut, tried
//! and raised.

use super::requests::{Awaited, Requests};
use super::{WINDOW_NS, is_background, without};
use crate::arithmetic::{follow, per_second, scale};
use crate::types::{Instant, IoClass};

/// Nothing slower is believed: background work must end.
const BANDWIDTH_MIN: u64 = 16 << 20;
const BANDWIDTH_MAX: u64 = 64 << 30;

/// Background work that uses less than this part of what is believed, in thousandths, is not what
/// clients wait behind.
const USED_MIN: u64 = 150;
/// If it is not held up by a device that does much less than that: it has a request under way for
/// fewer of a thousand nanoseconds than so many.
const REST_BUSY_MAX: u64 = 200;
/// It is held up by the device when it has a request under way for so many of a thousand
/// nanoseconds in which it is not held, over so many samples.
const BUSY_MIN: u64 = 500;
pub(super) const BUSY_SAMPLES: u64 = 16;
/// That clients are harmed by it must be seen so in some samples in which they are. Work that is
/// paced lets the device rest between, and still fills its queue now and then.
const HARMED_SAMPLES: u64 = 2;
/// The device is near to what is believed of it when it delivers so many thousandths of that.
const NEAR: u64 = 800;
/// The least and the most that a cut takes away, in thousandths, and the time between two.
const CUT_MIN: u64 = 60;
const CUT_MAX: u64 = 300;
const CUT_PAUSE_NS: u64 = 40_000_000;
/// With each window in which clients are harmed, what was delivered before says less: by so many
/// thousandths.
const DOUBT: u64 = 50;
/// Over so long what is delivered is averaged.
const AVERAGE_NS: u64 = 500_000_000;
/// A probe asks this part more than is believed, for so many windows. The first one is its start:
/// what was saved up in the device or in a throttle before it says nothing.
const PROBE: u64 = 16;
const PROBE_WINDOWS: u32 = 10;
/// What was asked, or is believed, was shown if so many thousandths of it were delivered, and
/// that there is no more if after so many windows it were fewer than this: what is asked and not
/// delivered waits in the device's queue, and clients behind it.
const PROVEN: u64 = 970;
const DISPROVEN: u64 = 955;
const PROBE_WINDOWS_MIN: u32 = 4;
/// How long after a check that told nothing the next is, at first and at most.
const CHECK_PAUSE_NS: u64 = 4_000_000_000;
const CHECK_PAUSE_NS_MAX: u64 = 64_000_000_000;
/// After so many probes that did no harm each asks twice as much more as the one before, up to so
/// many times as much: the device has become another.
const SHORT_PROBES: u32 = 2;
const PROBE_DOUBLED_MAX: u32 = 4;
/// How long the belief is cut to see whether that helps clients, and how long after a cut that did
/// not the next is, at first and at most. A trial ends after so long even if the device never came
/// near to what is believed of it.
const TRIAL_NS: u64 = 500_000_000;
const TRIAL_NS_MAX: u64 = 4_000_000_000;
const TRIAL_PAUSE_NS: u64 = 5_000_000_000;
const TRIAL_PAUSE_NS_MAX: u64 = 160_000_000_000;
/// How long nothing more is asked after a cut, or after a probe that failed.
const HOLD_NS: u64 = 4_000_000_000;
/// Clients' requests are averaged: so long the end of a probe is still to be seen in them.
const RECOVERY_NS: u64 = 500_000_000;

/// One direction of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direction {
    pub(super) bandwidth: u64,
    /// The device has delivered it. Otherwise it is where a cut has ended, or a hint.
    is_shown: bool,
    /// When that may be checked, and how long after a check that told nothing the next is.
    no_check_before: Instant,
    check_pause_ns: u64,
    /// When it was cut last, and until when nothing more is asked of the device.
    cut_at: Option<Instant>,
    hold_until: Instant,
    probe: Option<Probe>,
    /// How many probes in a row have shown that there is more.
    pub(super) probes: u32,
    /// It was cut, and it is to be seen whether that helps; when it may be cut again, and how long
    /// after a cut that was of no use.
    trial: Option<Trial>,
    no_trial_before: Instant,
    /// Until when clients take longer for a probe that asked for too much.
    recovers_until: Instant,
    trial_pause_ns: u64,
    /// What was delivered in a second, over some windows.
    average: u64,
    /// The most that was delivered in a second lately, while no client was harmed.
    proven: u64,
    /// What of the window is over.
    bytes: u64,
    background_bytes: u64,
    pub(super) background_ns: u64,
    /// What was delivered in a second in the window before, and by background work alone.
    delivered: u64,
    background: u64,
    /// For how many of a thousand nanoseconds of that window it had a request under way.
    busy: u64,
    /// The same in the last sample, over some samples, and over some in which clients were harmed.
    busy_now: u64,
    busy_lately: u64,
    busy_harmed: u64,
    /// Background work wanted more than it was granted, and could not wait for it.
    pub(super) wanted: bool,
    pub(super) urgent: bool,
}

/// What was seen in a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) ns: u64,
    /// How many of a thousand samples lately deep work was not held.
    pub(super) free: u64,
    /// Some sample showed clients harmed.
    pub(super) harmed: bool,
    /// The processor was away: what was delivered says little.
    pub(super) late: bool,
}

/// The belief was cut, to see whether that helps.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// What was believed before, and whether it was shown.
    before: u64,
    was_shown: bool,
    began: Instant,
    /// Since when the device delivers about what is believed: before, a cut cannot show.
    since: Instant,
    /// What took clients long.
    awaited: Awaited,
    /// The longest that their requests took since.
    worst_ns: u64,
}

/// More is asked of the device than is believed of it, for a moment; or all of that, to check it.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Bytes a second.
    asked: u64,
    /// How often the part that it asks more was doubled. None: a check.
    doubled: Option<u32>,
    /// Windows that are over, and what was delivered in them but the first.
    windows: u32,
    bytes: u64,
    over_ns: u64,
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
            delivered: 0,
            background: 0,
            wanted: false,
            urgent: false,
        }
    }

    pub(super) fn add(&mut self, class: IoClass, bytes: u64, ns: u64) {
        self.bytes += bytes;
        if is_background(class) {
            self.background_bytes += bytes;
            self.background_ns += ns;
        }
    }

    /// A sample was added; before it background work had waited for the device so long. One wait,
    /// however long, is not what a device does that is asked for too much.
    pub(super) fn note_busy(&mut self, before_ns: u64, over_ns: u64) {
        let waited_ns = self.background_ns - before_ns;
        self.busy_now = scale(waited_ns.min(2 * over_ns), 1000, over_ns);
        self.busy_lately = (self.busy_lately * (BUSY_SAMPLES - 1) + self.busy_now) / BUSY_SAMPLES;
    }

    /// Clients were harmed in the last sample. `held`: deep work was kept from the device, so that
    /// it had no requests says nothing.
    pub(super) fn note_harm(&mut self, held: bool) {
        if !held || self.busy_now >= BUSY_MIN {
            self.busy_harmed =
                (self.busy_harmed * (HARMED_SAMPLES - 1) + self.busy_now) / HARMED_SAMPLES;
        }
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
    pub(super) fn rests(&self, window_ns: u64) -> bool {
        self.used(window_ns) < USED_MIN && self.busy_part(window_ns) < REST_BUSY_MAX
    }

    /// What part of the belief background work uses, in thousandths.
    fn used(&self, window_ns: u64) -> u64 {
        let now = per_second(self.background_bytes, window_ns.max(WINDOW_NS / 2));
        scale(now.max(self.background), 1000, self.bandwidth)
    }

    /// Clients wait behind background work: the device does not do what was believed.
    pub(super) fn cut(&mut self, now: Instant, window_ns: u64, awaited: Awaited) {
        let paused = self.cut_at.is_some_and(|at| now.0 - at.0 < CUT_PAUSE_NS);
        // A probe that does harm ends with its window.
        let held_up = self.busy_harmed >= BUSY_MIN;
        if paused || self.probe.is_some() || !held_up || now < self.no_trial_before {
            return;
        }
        // What it delivers it can. It may be asked for more than is believed, for the floor and for
        // debt, and if clients are harmed by that a lower belief is no help.
        if self.average > self.bandwidth + self.bandwidth / PROBE {
            return;
        }
        self.begin_trial(now, awaited);
        let most = |thousandths: u64| scale(self.bandwidth, 1000 - thousandths, 1000);
        let lately = per_second(self.bytes, window_ns.max(WINDOW_NS / 2));
        let found = lately.max(self.delivered).max(most(CUT_MAX)).min(most(CUT_MIN));
        self.cut_to(now, found);
    }

    fn cut_to(&mut self, now: Instant, found: u64) {
        // What was delivered without harm is possible.
        let found = found.max(scale(self.proven, 1000 - CUT_MIN, 1000)).min(self.bandwidth);
        self.bandwidth = found.clamp(BANDWIDTH_MIN, BANDWIDTH_MAX);
        self.is_shown = false;
        self.cut_at = Some(now);
        self.end_probe(now);
    }

    /// A probe asked for too much. There is less than what was delivered meanwhile, and may be far
    /// more than is believed: the more it had asked, the sooner the next one asks a quarter of
    /// that.
    fn fail_probe(&mut self, now: Instant, window: &Window, probe: &Probe, shown: u64) {
        self.bandwidth = self.bandwidth.max(scale(shown, 1000 - CUT_MIN, 1000));
        self.end_probe(now);
        self.recovers_until = Instant(now.0 + RECOVERY_NS);
        let Some(doubled) = probe.doubled else {
            self.no_check_before = Instant(now.0 + self.check_pause_ns);
            self.check_pause_ns = (2 * self.check_pause_ns).min(CHECK_PAUSE_NS_MAX);
            return;
        };
        if doubled >= 2 && !window.harmed {
            self.probes = SHORT_PROBES + doubled - 2;
            self.hold_until = Instant(now.0 + (HOLD_NS >> doubled));
        }
    }

    /// All that is believed was asked for, and wanted; this is what there was.
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

    /// A window of a probe is over. `elsewhere`: the other direction is what there is too little
    /// of.
    fn go_on_probing(&mut self, now: Instant, window: &Window, elsewhere: bool, probe: Probe) {
        if window.late {
            return;
        }
        let windows = probe.windows + 1;
        let first = windows == 1;
        let bytes = probe.bytes + if first { 0 } else { self.bytes };
        let over_ns = probe.over_ns + if first { 0 } else { window.ns };
        let shown = per_second(bytes, over_ns).min(probe.asked);
        // Who does not use up what is granted is held up by the device, or has nothing to do.
        if window.harmed || !first && !self.wanted && !elsewhere {
            return self.fail_probe(now, window, &probe, shown);
        }
        let over = windows >= PROBE_WINDOWS;
        let least = if over { PROVEN } else { DISPROVEN };
        let proven = shown >= scale(probe.asked, least, 1000);
        if over && probe.doubled.is_none() {
            if elsewhere && !proven {
                return self.fail_probe(now, window, &probe, shown);
            }
            return self.end_check(now, shown);
        }
        let early = windows >= PROBE_WINDOWS_MIN && probe.doubled.is_some();
        if !proven && !elsewhere && early {
            return self.fail_probe(now, window, &probe, shown);
        }
        if !over {
            self.probe = Some(Probe { windows, bytes, over_ns, ..probe });
            return;
        }
        self.probe = None;
        self.bandwidth = self.bandwidth.max(shown);
        self.proven = self.proven.max(shown);
        self.is_shown |= proven;
        self.probes += u32::from(proven);
    }

    /// What may be asked of it: a little less than it can, but in a probe.
    pub(super) fn usable(&self, headroom: u64) -> u64 {
        self.probe.map_or(without(headroom, self.bandwidth), |probe| probe.asked)
    }

    /// Whether the device delivers about what is believed of it.
    fn is_near(&self) -> bool {
        self.delivered >= scale(self.bandwidth, NEAR, 1000)
    }

    /// Whether it is to be seen if a cut has helped.
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

    /// Whether less background work has made it better for clients. If it has not they wait for
    /// another reason, as they share the processor with it, or the device with others: what their
    /// requests take is then what is usual.
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

    /// Whether more is needed of it than is believed, and may be asked.
    pub(super) fn wants_more(&self, now: Instant, window: &Window) -> bool {
        self.urgent && !window.harmed && self.may_probe(now)
    }

    /// Whether what is believed was never seen, is in the way, and may be checked.
    pub(super) fn wants_check(&self, now: Instant, window: &Window) -> bool {
        let due = !self.is_shown && now >= self.no_check_before;
        due && self.wanted && !window.harmed && !window.late && self.may_probe(now)
    }

    pub(super) fn may_probe(&self, now: Instant) -> bool {
        self.probe.is_none() && self.trial.is_none() && now >= self.hold_until
    }

    /// `probes`: how many in a row have shown that there is more, in either direction.
    pub(super) fn begin_probe(&mut self, probes: u32) {
        let doubled = probes.saturating_sub(SHORT_PROBES).min(PROBE_DOUBLED_MAX);
        let more = (self.bandwidth / PROBE) << doubled;
        let asked = (self.bandwidth + more).min(BANDWIDTH_MAX);
        let doubled = Some(doubled);
        self.probe = Some(Probe { asked, doubled, windows: 0, bytes: 0, over_ns: 0 });
    }

    /// Asks all that is believed.
    pub(super) fn begin_check(&mut self) {
        let asked = self.bandwidth;
        self.probe = Some(Probe { asked, doubled: None, windows: 0, bytes: 0, over_ns: 0 });
    }

    /// The window is over. `strained`: what clients wait for, a little each time.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        window: &Window,
        strained: Option<Awaited>,
        elsewhere: bool,
    ) {
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
        (self.wanted, self.urgent) = (false, false);
    }
}
