//! A token bucket for reads and writes. Bytes collect at a rate, and grants take them. A step may
//! move more than it was granted, so the balance may be negative for a while.

use crate::arithmetic::{NS_PER_SECOND, scale, to_i64};

/// The balance of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    bytes: i64,
    /// The fraction of a byte that has collected, in units of 10⁻⁹ bytes.
    rest: u64,
}

impl Tokens {
    fn refill(&mut self, over_ns: u64, (rate, most): (u64, u64)) {
        let collected = u128::from(rate) * u128::from(over_ns) + u128::from(self.rest);
        let bytes = i64::try_from(collected / u128::from(NS_PER_SECOND)).unwrap_or(i64::MAX);
        self.rest = u64::try_from(collected % u128::from(NS_PER_SECOND)).unwrap_or(0);
        let most = to_i64(most);
        // A debt is limited, so that a large step does not block the bucket for long.
        self.bytes = self.bytes.max(most.saturating_mul(-OWED_MAX));
        self.bytes = self.bytes.saturating_add(bytes).min(most);
    }

    /// Returns the time until the balance exceeds `reserve` at `rate`, in nanoseconds.
    fn wait_ns(&self, rate: u64, reserve: u64) -> u64 {
        let needed = to_i64(reserve).saturating_add(1);
        let missing = u64::try_from(needed.saturating_sub(self.bytes)).unwrap_or(0);
        if missing == 0 { 0 } else { scale(missing, NS_PER_SECOND, rate) }
    }
}

/// The largest debt, as a multiple of the largest balance.
const OWED_MAX: i64 = 4;

/// The token bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    read: Tokens,
    write: Tokens,
}

impl Bucket {
    /// Adds what collects in `over_ns`. Each pair is a rate per second and the largest balance.
    pub(crate) fn refill(&mut self, over_ns: u64, read: (u64, u64), write: (u64, u64)) {
        self.read.refill(over_ns, read);
        self.write.refill(over_ns, write);
    }

    /// Takes bytes. Negative numbers give bytes back.
    pub(crate) fn take(&mut self, read: i64, written: i64) {
        self.read.bytes = self.read.bytes.saturating_sub(read);
        self.write.bytes = self.write.bytes.saturating_sub(written);
    }

    /// Returns whether there are too few bytes for a read, and for a write, if `reserve` must stay.
    pub(crate) fn lacks(&self, reads: bool, reserve: u64) -> (bool, bool) {
        let reserve = to_i64(reserve);
        (reads && self.read.bytes <= reserve, self.write.bytes <= reserve)
    }

    /// Returns the time until [`Self::lacks`] is false at these rates, in nanoseconds.
    pub(crate) fn wait_ns(&self, (read, write): (u64, u64), reads: bool, reserve: u64) -> u64 {
        let read = if reads { self.read.wait_ns(read, reserve) } else { 0 };
        read.max(self.write.wait_ns(write, reserve))
    }
}
