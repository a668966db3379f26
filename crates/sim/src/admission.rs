//! The gates that delay or stop writers, and the stalls that they caused.

use std::collections::BTreeMap;

use sateen_control::{Admission, AdmissionState, Gate, Instant, StallCause};
use serde::Serialize;

/// The answer to a writer at the gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The writer may proceed.
    Now,
    /// The writer asks again at this moment, or when the admission changes.
    At(u64),
    /// The writer asks again when the admission changes.
    Never,
}

/// The writer's places in the queues of the gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    all: Option<u64>,
    region: Option<u64>,
}

fn pass(gate: &mut Gate, now: u64, bytes: u64, place: &mut Option<u64>) -> Passage {
    let clock = Instant(now);
    match gate.rate() {
        None => return Passage::Now,
        Some(0) => return Passage::Never,
        Some(_) => {}
    }
    let place = *place.get_or_insert_with(|| gate.book(clock, bytes, 1));
    let wait = gate.wait(clock, place);
    if wait.is_zero() {
        return Passage::Now;
    }
    Passage::At(now.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
}

/// The stalls of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stalls {
    /// How often a period of delayed writes began.
    pub delays: u64,
    /// The length of these periods, in nanoseconds.
    pub delayed_ns: u64,
    /// How often a period of stopped writes began.
    pub stops: u64,
    /// The length of these periods, in nanoseconds.
    pub stopped_ns: u64,
    /// Periods in which some writer waited. Delays and stops that follow each other at once count
    /// as one.
    pub felt: u64,
    /// The time that writers waited, in nanoseconds, for all threads together.
    pub waited_ns: u64,
}

impl Stalls {
    /// Adds those of another database.
    pub(crate) fn add(&mut self, other: &Stalls) {
        self.delays += other.delays;
        self.delayed_ns += other.delayed_ns;
        self.stops += other.stops;
        self.stopped_ns += other.stopped_ns;
        self.felt += other.felt;
        self.waited_ns += other.waited_ns;
    }
}

/// The gates of the database and of its regions, and their history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gates {
    all: Gate,
    regions: Vec<Gate>,
    /// The moment since which the current state is effective.
    since: u64,
    /// True if a writer has waited since the gates were last open.
    felt: bool,
    stalls: BTreeMap<StallCause, Stalls>,
}

/// Returns the strictest admission of `gates`; of equals the first.
fn strictest<'a>(gates: impl Iterator<Item = &'a Gate>) -> Admission {
    let strictness = |admission: &Admission| match admission.state {
        AdmissionState::Open => (0, 0),
        AdmissionState::Delayed { bytes_per_second } => (1, u64::MAX - bytes_per_second),
        AdmissionState::Stopped => (2, 0),
    };
    gates.map(Gate::admission).fold(Admission::default(), |strictest, other| {
        if strictness(&other) > strictness(&strictest) { other } else { strictest }
    })
}

impl Gates {
    /// Returns open gates for as many regions.
    pub(crate) fn new(regions: usize) -> Gates {
        Gates { regions: vec![Gate::default(); regions], ..Gates::default() }
    }

    /// Returns the strictest admission of all gates.
    pub(crate) fn effective(&self) -> Admission {
        strictest(std::iter::once(&self.all).chain(&self.regions))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.effective().state == AdmissionState::Open
    }

    /// Puts a new admission in force: that of a region, or of the database.
    pub(crate) fn publish(&mut self, now: u64, region: Option<usize>, admission: Admission) {
        self.count_time(now);
        let before = self.effective();
        let gate = match region {
            Some(region) => &mut self.regions[region],
            None => &mut self.all,
        };
        gate.publish(Instant(now), admission);
        let after = self.effective();
        // A writer that waited under the last admission may report its wait after the end of it.
        self.felt &= before.state != AdmissionState::Open;
        let cause = cause(after);
        let stalls = self.stalls.entry(cause).or_default();
        match (before.state, after.state) {
            (AdmissionState::Stopped, AdmissionState::Stopped) => {}
            (_, AdmissionState::Stopped) => stalls.stops += 1,
            (AdmissionState::Open, AdmissionState::Delayed { .. }) => stalls.delays += 1,
            _ => {}
        }
    }

    /// Adds the time since the last call to the current state.
    pub(crate) fn count_time(&mut self, now: u64) {
        let passed = now.saturating_sub(self.since);
        self.since = now;
        let effective = self.effective();
        let stalls = self.stalls.entry(cause(effective)).or_default();
        match effective.state {
            AdmissionState::Open => {}
            AdmissionState::Delayed { .. } => stalls.delayed_ns += passed,
            AdmissionState::Stopped => stalls.stopped_ns += passed,
        }
    }

    /// Answers a write of `bytes` to `region` at the gates.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        now: u64,
        region: usize,
        bytes: u64,
        places: &mut Places,
    ) -> Passage {
        let all = pass(&mut self.all, now, bytes, &mut places.all);
        let region = pass(&mut self.regions[region], now, bytes, &mut places.region);
        match (all, region) {
            (Passage::Now, other) | (other, Passage::Now) => other,
            (Passage::Never, _) | (_, Passage::Never) => Passage::Never,
            (Passage::At(one), Passage::At(other)) => Passage::At(one.max(other)),
        }
    }

    /// Records that a writer has waited.
    pub(crate) fn waited(&mut self, cause: StallCause, ns: u64) {
        let first = !std::mem::replace(&mut self.felt, true);
        let stalls = self.stalls.entry(cause).or_default();
        stalls.waited_ns += ns;
        stalls.felt += u64::from(first);
    }

    /// Returns the cause for which writers of `region` wait now.
    pub(crate) fn cause(&self, region: usize) -> StallCause {
        cause(strictest([&self.all, &self.regions[region]].into_iter()))
    }

    /// Returns the stalls by cause, without causes that never occurred.
    pub(crate) fn stalls(&self) -> BTreeMap<&'static str, Stalls> {
        let happened = self.stalls.iter().filter(|(_, stalls)| **stalls != Stalls::default());
        happened.map(|(cause, stalls)| (cause.name(), *stalls)).collect()
    }
}

fn cause(admission: Admission) -> StallCause {
    admission.cause.unwrap_or(StallCause::BackgroundError)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delayed(bytes_per_second: u64) -> Admission {
        let state = AdmissionState::Delayed { bytes_per_second };
        Admission { state, cause: Some(StallCause::Level0Runs), column_family: None }
    }

    #[test]
    fn a_rate_is_kept_and_a_wait_follows_its_changes() {
        let mut gates = Gates::new(1);
        assert_eq!(gates.pass(0, 0, 1_000_000, &mut Places::default()), Passage::Now);
        gates.publish(0, Some(0), delayed(1_000_000));
        assert_eq!(gates.pass(0, 0, 1_000, &mut Places::default()), Passage::Now);
        let mut places = Places::default();
        assert_eq!(gates.pass(0, 0, 1_000, &mut places), Passage::At(1_000_000));
        // Half of it passed. The writer waits for 50 bytes less than the rest: the old rate could
        // have lent it these, and the new rate cannot.
        gates.publish(500_000, Some(0), delayed(500_000));
        assert_eq!(gates.pass(500_000, 0, 1_000, &mut places), Passage::At(1_400_000));
        assert_eq!(gates.pass(1_500_000, 0, 1_000, &mut places), Passage::Now);
        let stopped = Admission { state: AdmissionState::Stopped, ..delayed(1) };
        gates.publish(1_500_000, None, stopped);
        assert_eq!(gates.pass(1_500_000, 0, 1, &mut Places::default()), Passage::Never);
    }

    #[test]
    fn time_is_counted_for_what_was_in_force() {
        let mut gates = Gates::new(1);
        gates.publish(10, Some(0), delayed(1));
        gates.publish(30, Some(0), delayed(2));
        gates.publish(40, None, Admission { state: AdmissionState::Stopped, ..delayed(1) });
        gates.publish(45, None, Admission::default());
        gates.count_time(50);
        let expected =
            Stalls { delays: 1, delayed_ns: 35, stops: 1, stopped_ns: 5, ..Stalls::default() };
        assert_eq!(gates.stalls(), BTreeMap::from([("level0-runs", expected)]));
    }
}
