//! The requests that clients wait for: how long they take, and how long they usually take.
//!
//! 1. [`Requests::harmed`] takes in the requests of a sample, and compares their mean time with the
//!    usual one.
//! 2. The usual time is learned from the first samples, while deep work is held, and later while
//!    background work rests.
//! 3. [`Requests::strained`] compares an average over some samples with the usual time.

use crate::arithmetic::scale;

/// Clients are harmed if their requests take at least this many times the usual time, and at least
/// `HARM_NS` longer.
const HARM_TIMES: u64 = 2;
const HARM_NS: u64 = 100_000;
/// Clients are strained if the recent average is this many thousandths of the usual time.
const STRAIN: u64 = 1_500;
const RECENT_SAMPLES: u64 = 16;
/// Number of samples over which the time is averaged while background work rests, and how many
/// times that time the recent average must be to say more than single samples do.
const REST_SAMPLES: u64 = 64;
const SLOWER_TIMES: u64 = 3;
/// Fewer requests than this say nothing, and are added to those of the next samples. The longer
/// requests take, the fewer end within a sample.
const REQUESTS_MIN: u64 = 2;
/// Number of samples from which the usual time is first learned, while deep work is held.
const FIRST_SAMPLES: u64 = 10;
/// Number of samples over which the usual time is averaged.
const USUAL_SAMPLES: u64 = 256;
/// Requests have become faster if they take less than this many thousandths of their worst time.
const HELPED: u64 = 667;

/// A kind of request that clients wait for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Awaited {
    /// Reads of clients.
    Reads,
    /// Writes to the WAL.
    LogWrites,
    /// Barriers of the WAL.
    LogSyncs,
}

impl Awaited {
    /// Number of kinds.
    pub(super) const COUNT: usize = 3;
}

/// The requests of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requests {
    /// Their mean time while background work rests; 0 if unknown.
    usual_ns: u64,
    /// Their mean time lately.
    pub(super) recent_ns: u64,
    /// Their mean time while background work rests, since the host became busy or was no longer; 0
    /// if unknown.
    rest_ns: u64,
    /// Number of samples seen, at most `FIRST_SAMPLES`.
    seen: u64,
    /// Whether the last sample was one of the first.
    is_new: bool,
    /// Number and total time of requests that were too few to count yet.
    pending: (u64, u64),
}

impl Requests {
    /// Returns true if they have taken longer than usual for a while. With few clients, each of
    /// which waits a little, the difference is small.
    pub(super) fn strained(&self) -> bool {
        self.usual_ns > 0 && self.recent_ns >= scale(self.usual_ns, STRAIN, 1000)
    }

    /// Forgets how long they take while background work rests.
    pub(super) fn forget_rest(&mut self) {
        self.rest_ns = 0;
    }

    /// Returns true if they take longer on average than while background work rests.
    pub(super) fn slower_than_at_rest(&self) -> bool {
        let least = self.rest_ns.saturating_mul(SLOWER_TIMES).max(self.rest_ns + HARM_NS);
        self.rest_ns > 0 && self.recent_ns >= least
    }

    /// Makes the present time the usual one.
    pub(super) fn get_used(&mut self) {
        self.usual_ns = self.recent_ns;
    }

    /// Returns true if the last sample was one of the first, from which the usual time is learned.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns true if they have become faster since they took `worst_ns`.
    pub(super) fn better_than(&self, worst_ns: u64) -> bool {
        !self.strained() || self.recent_ns < scale(worst_ns, HELPED, 1000)
    }

    /// Takes in a sample of `count` requests that took `ns` nanoseconds together. Returns true if
    /// they took too long. `rests` is true while background work rests.
    pub(super) fn harmed(&mut self, count: u64, ns: u64, rests: bool) -> bool {
        self.is_new = false;
        let (count, ns) = (self.pending.0 + count, self.pending.1.saturating_add(ns));
        if count < REQUESTS_MIN {
            self.pending = (count, ns);
            return false;
        }
        self.pending = (0, 0);
        let mean = (ns / count).max(1);
        self.recent_ns = (self.recent_ns * (RECENT_SAMPLES - 1) + mean) / RECENT_SAMPLES;
        if rests {
            let known = if self.rest_ns == 0 { mean } else { self.rest_ns };
            self.rest_ns = (known * (REST_SAMPLES - 1) + mean) / REST_SAMPLES;
        }
        if self.seen < FIRST_SAMPLES {
            self.seen += 1;
            self.is_new = true;
            self.usual_ns = if self.usual_ns == 0 { mean } else { mean.min(self.usual_ns) };
            return false;
        }
        let usual = self.usual_ns;
        // A shorter time counts more, because it shows what the device can do.
        let weight = if mean < usual { USUAL_SAMPLES / 8 } else { USUAL_SAMPLES };
        match usual {
            usual if mean < usual => self.usual_ns = usual - (usual - mean) / weight,
            usual if rests => self.usual_ns = usual + ((mean - usual) / weight).min(usual / 16),
            _ => {}
        }
        usual > 0 && mean >= usual.saturating_mul(HARM_TIMES) && mean >= usual + HARM_NS
    }
}
