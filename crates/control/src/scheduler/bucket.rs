//! Bytes to read and bytes to write that collect at a rate and are taken by grants. A step may move
//! more than it was granted: then there are fewer than none for a while.

use crate::arithmetic::{NS_PER_SECOND, scale, to_i64};

/// What there is of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    bytes: i64,
    /// What of a byte has collected, in parts of a thousand million.
    rest: u64,
}

impl Tokens {
    fn refill(&mut self, over_ns: u64, (rate, most): (u64, u64)) {
        let collected = u128::from(rate) * u128::from(over_ns) + u128::from(self.rest);
        let bytes = i64::try_from(collected / u128::from(NS_PER_SECOND)).unwrap_or(i64::MAX);
        self.rest = u64::try_from(collected % u128::from(NS_PER_SECOND)).unwrap_or(0);
        let most = to_i64(most);
        // What was taken in advance is owed for a while, no longer.
        self.bytes = self.bytes.max(most.saturating_mul(-OWED_MAX));
        self.bytes = self.bytes.saturating_add(bytes).min(most);
    }

    /// How long until there is a byte more than `reserve`, at `rate`.
    fn wait_ns(&self, rate: u64, reserve: u64) -> u64 {
        let needed = to_i64(reserve).saturating_add(1);
        let missing = u64::try_from(needed.saturating_sub(self.bytes)).unwrap_or(0);
        if missing == 0 { 0 } else { scale(missing, NS_PER_SECOND, rate) }
    }
}

/// So many times what may collect may be owed.
const OWED_MAX: i64 = 4;

/// See the head of this file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    read: Tokens,
    write: Tokens,
}

impl Bucket {
    /// Collects for `over_ns`, at a rate a second up to a most, for reads and for writes.
    pub(crate) fn refill(&mut self, over_ns: u64, read: (u64, u64), write: (u64, u64)) {
        self.read.refill(over_ns, read);
        self.write.refill(over_ns, write);
    }

    /// Takes bytes, or gives them back where they are negative.
    pub(crate) fn take(&mut self, read: i64, written: i64) {
        self.read.bytes = self.read.bytes.saturating_sub(read);
        self.write.bytes = self.write.bytes.saturating_sub(written);
    }

    /// Whether it has too few bytes for a read, and for a write, while `reserve` must stay.
    pub(crate) fn lacks(&self, reads: bool, reserve: u64) -> (bool, bool) {
        let reserve = to_i64(reserve);
        (reads && self.read.bytes <= reserve, self.write.bytes <= reserve)
    }

    /// How long until it has, at these rates, what [`Self::lacks`] asks for.
    pub(crate) fn wait_ns(&self, (read, write): (u64, u64), reads: bool, reserve: u64) -> u64 {
        let read = if reads { self.read.wait_ns(read, reserve) } else { 0 };
        read.max(self.write.wait_ns(write, reserve))
    }
}
