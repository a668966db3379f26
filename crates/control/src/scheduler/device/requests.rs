//! What clients wait for: how long their requests take, and how long they usually do.

use crate::arithmetic::scale;

/// Clients are harmed when their requests take so many times as long as they do while background
/// work rests, and longer by so much.
const HARM_TIMES: u64 = 2;
const HARM_NS: u64 = 100_000;
/// They are strained when it is so many thousandths of that over some samples.
const STRAIN: u64 = 1_500;
const RECENT_SAMPLES: u64 = 16;
/// Fewer requests of clients say nothing: they are put together with those of the next samples, for
/// the longer they take the fewer of them end in one.
const REQUESTS_MIN: u64 = 2;
/// So many samples find out what is usual, and deep work rests meanwhile.
const FIRST_SAMPLES: u64 = 10;
/// Over so many samples what is usual is averaged.
const USUAL_SAMPLES: u64 = 256;
/// Something has helped them if they take less than so many thousandths of what they took at worst.
const HELPED: u64 = 667;

/// A kind of request that clients wait for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Awaited {
    /// Their reads.
    Reads,
    /// What is written to the log.
    LogWrites,
    /// Barriers of the log.
    LogSyncs,
}

impl Awaited {
    /// How many kinds there are.
    pub(super) const COUNT: usize = 3;
}

/// Requests of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requests {
    /// Their mean time while background work rests. 0: not known.
    usual_ns: u64,
    /// Their mean time lately.
    pub(super) recent_ns: u64,
    /// Samples seen, up to those that find out what is usual.
    seen: u64,
    /// Whether the last sample was one of these.
    is_new: bool,
    /// Requests that were too few to say anything yet, and what they took together.
    pending: (u64, u64),
}

impl Requests {
    /// Whether they have taken longer than usual for a while: not by much, if few clients wait for
    /// the device each of them a little.
    pub(super) fn strained(&self) -> bool {
        self.usual_ns > 0 && self.recent_ns >= scale(self.usual_ns, STRAIN, 1000)
    }

    /// What they take now is what they take.
    pub(super) fn get_used(&mut self) {
        self.usual_ns = self.recent_ns;
    }

    /// The last sample was looked at to find out what is usual.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether what was done since they took `worst_ns` has helped.
    pub(super) fn better_than(&self, worst_ns: u64) -> bool {
        !self.strained() || self.recent_ns < scale(worst_ns, HELPED, 1000)
    }

    /// Whether those of a sample took long.
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
        if self.seen < FIRST_SAMPLES {
            self.seen += 1;
            self.is_new = true;
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
