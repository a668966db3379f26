//! The gate that writers pass, and what it cost them.

use std::collections::BTreeMap;

use sateen_control::{Admission, AdmissionState, StallCause};
use serde::Serialize;

/// What a writer is told at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// Go on.
    Now,
    /// Go on then.
    At(u64),
    /// Ask again when the admission changes.
    Never,
}

/// One admission in force: that of all writers, or that of the column family.
#[derive(Clone, Debug, Default)]
struct Gate {
    admission: Admission,
    /// Admitted bytes have used up the delayed rate until then.
    booked_until: u64,
}

impl Gate {
    fn pass(&mut self, now: u64, bytes: u64) -> Passage {
        match self.admission.state {
            AdmissionState::Open => Passage::Now,
            AdmissionState::Stopped => Passage::Never,
            AdmissionState::Delayed { bytes_per_second } => {
                let from = self.booked_until.max(now);
                let cost = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
                self.booked_until = from.saturating_add(u64::try_from(cost).unwrap_or(u64::MAX));
                if from > now { Passage::At(from) } else { Passage::Now }
            }
        }
    }
}

/// What stalls for one cause came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stalls {
    /// How often writers began to be slowed down.
    pub delays: u64,
    /// For how long they were, in nanoseconds.
    pub delayed_ns: u64,
    /// How often they were stopped.
    pub stops: u64,
    /// For how long they were, in nanoseconds.
    pub stopped_ns: u64,
    /// How long writers waited, all threads together, in nanoseconds.
    pub waited_ns: u64,
}

/// Both gates, and their history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gates {
    all: Gate,
    family: Gate,
    /// Since when the effective state is what it is.
    since: u64,
    stalls: BTreeMap<StallCause, Stalls>,
}

impl Gates {
    /// The stricter of the two.
    pub(crate) fn effective(&self) -> Admission {
        let strictness = |admission: &Admission| match admission.state {
            AdmissionState::Open => (0, 0),
            AdmissionState::Delayed { bytes_per_second } => (1, u64::MAX - bytes_per_second),
            AdmissionState::Stopped => (2, 0),
        };
        let (all, family) = (self.all.admission, self.family.admission);
        if strictness(&family) > strictness(&all) { family } else { all }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.effective().state == AdmissionState::Open
    }

    /// A new admission is in force.
    pub(crate) fn publish(&mut self, now: u64, of_family: bool, admission: Admission) {
        self.count_time(now);
        let before = self.effective();
        let gate = if of_family { &mut self.family } else { &mut self.all };
        gate.admission = admission;
        let after = self.effective();
        let cause = cause(after);
        let stalls = self.stalls.entry(cause).or_default();
        match (before.state, after.state) {
            (AdmissionState::Stopped, AdmissionState::Stopped) => {}
            (_, AdmissionState::Stopped) => stalls.stops += 1,
            (AdmissionState::Open, AdmissionState::Delayed { .. }) => stalls.delays += 1,
            _ => {}
        }
    }

    /// Counts the time since the last call for the state in force.
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

    /// A write of `bytes` is at the gate.
    pub(crate) fn pass(&mut self, now: u64, bytes: u64) -> Passage {
        if self.all.admission.state == AdmissionState::Stopped
            || self.family.admission.state == AdmissionState::Stopped
        {
            return Passage::Never;
        }
        match (self.all.pass(now, bytes), self.family.pass(now, bytes)) {
            (Passage::At(one), Passage::At(other)) => Passage::At(one.max(other)),
            (Passage::Now, other) => other,
            (one, _) => one,
        }
    }

    /// A writer has waited.
    pub(crate) fn waited(&mut self, cause: StallCause, ns: u64) {
        self.stalls.entry(cause).or_default().waited_ns += ns;
    }

    /// Why writers wait now.
    pub(crate) fn cause(&self) -> StallCause {
        cause(self.effective())
    }

    /// By cause; what never happened is left out.
    pub(crate) fn stalls(&self) -> BTreeMap<&'static str, Stalls> {
        let happened = self.stalls.iter().filter(|(_, stalls)| **stalls != Stalls::default());
        happened.map(|(cause, stalls)| (cause.name(), *stalls)).collect()
    }
}

fn cause(admission: Admission) -> StallCause {
    admission.cause.unwrap_or(StallCause::BackgroundError)
}
