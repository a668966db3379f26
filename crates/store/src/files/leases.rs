//! Leases: which retired tables readers in other handles and processes may still need.
//!
//! A reader marks a byte of the lock file before it reads the manifest, and keeps the mark while it
//! reads ([`crate::vfs::Vfs::mark`]). The owner looks at the marks in rounds:
//!
//! 1. [`Leases::begin`] starts a round. Tables that are retired from then on belong to it.
//! 2. The owner reads the marks, outside its lock.
//! 3. [`Leases::seen`] records them. A new mark was not there in the round before, so its reader
//!    has read a manifest without the tables that were retired before that round.
//! 4. [`Leases::needs`] says whether a table of a round has to stay, and [`Leases::frees`] whether
//!    it can go.
//!
//! What must stay true: a table is freed only if a round has begun after it was retired, and no
//! valid lease is as old as that. A lease becomes invalid once it is older, or keeps more bytes,
//! than the limits allow. It never becomes valid again.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use sateen_control::Instant;

use crate::vfs::VfsLock;

/// How much readers may keep from being freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseLimits {
    /// How long a lease is valid.
    pub time: Duration,
    /// Bytes of retired tables that all leases together may keep.
    pub bytes: u64,
}

impl LeaseLimits {
    /// The limits before any are set.
    pub const NONE: LeaseLimits = LeaseLimits { time: Duration::ZERO, bytes: 0 };
}

/// Number of a look at the marks. It grows with each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Round(u64);

#[derive(Clone, Copy, Debug)]
struct Lease {
    /// Tables that were retired before this round are not needed.
    since: Round,
    first_seen: Instant,
    /// Whether the lease is valid.
    counts: bool,
}

/// The leases that were seen.
#[derive(Default)]
pub struct Leases {
    /// The lock file with the marks. The owner drops it when the database is closed.
    lock: Option<Weak<dyn VfsLock>>,
    /// The round that began last.
    begun: Round,
    /// The newest round whose marks were recorded.
    done: Round,
    /// The leases, by the byte that each has marked.
    known: BTreeMap<u64, Lease>,
    /// Number of leases that exceeded a limit.
    given_up: u64,
}

impl Leases {
    /// Sets the lock file with the marks.
    pub fn watch(&mut self, lock: Weak<dyn VfsLock>) {
        self.lock = Some(lock);
    }

    /// Returns true if there may be marks.
    pub fn is_watched(&self) -> bool {
        self.lock.is_some()
    }

    /// Returns the round of a table that is retired now.
    pub fn round(&self) -> Round {
        self.begun
    }

    /// Starts a round. Returns it and the lock file with the marks.
    pub fn begin(&mut self) -> (Round, Option<Weak<dyn VfsLock>>) {
        self.begun.0 += 1;
        (self.begun, self.lock.clone())
    }

    /// Ends a round with the marks that were found in it. `kept(since)` returns the bytes of the
    /// tables that were retired in that round or later.
    pub fn seen(
        &mut self,
        round: Round,
        marks: &[u64],
        (now, limits): (Instant, LeaseLimits),
        kept: impl Fn(Round) -> u64,
    ) {
        // A later round has ended already, and its marks are newer.
        if round <= self.done {
            return;
        }
        let before = self.done;
        self.done = round;
        self.known.retain(|at, _| marks.contains(at));
        for at in marks {
            let lease = Lease { since: before, first_seen: now, counts: true };
            self.known.entry(*at).or_insert(lease);
        }
        let limit = u64::try_from(limits.time.as_nanos()).unwrap_or(u64::MAX);
        for lease in self.known.values_mut().filter(|lease| lease.counts) {
            let age = u64::try_from(now.since(lease.first_seen).as_nanos()).unwrap_or(u64::MAX);
            if age >= limit {
                lease.counts = false;
                self.given_up += 1;
            }
        }
        // The oldest lease keeps the most.
        while let Some(lease) = self.known.values_mut().filter(|l| l.counts).min_by_key(|l| l.since)
            && kept(lease.since) > limits.bytes
        {
            lease.counts = false;
            self.given_up += 1;
        }
    }

    /// Returns true if a known lease needs a table that was retired in `round`.
    pub fn needs(&self, round: Round) -> bool {
        self.known.values().any(|lease| lease.counts && lease.since <= round)
    }

    /// Returns true if it is certain that no reader needs a table that was retired in `round`.
    pub fn frees(&self, round: Round) -> bool {
        round < self.done && !self.needs(round)
    }

    /// Returns the number of valid leases, and of leases that exceeded a limit.
    pub fn counts(&self) -> (usize, u64) {
        (self.known.values().filter(|lease| lease.counts).count(), self.given_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: LeaseLimits = LeaseLimits { time: Duration::MAX, bytes: u64::MAX };

    fn look(leases: &mut Leases, marks: &[u64]) {
        let (round, _) = leases.begin();
        leases.seen(round, marks, (Instant(0), FREE), |_| 0);
    }

    #[test]
    fn a_mark_keeps_what_was_retired_since_it_was_not_there() {
        let mut leases = Leases::default();
        let before = leases.round();
        assert!(!leases.frees(before), "no round has ended");
        look(&mut leases, &[]);
        assert!(leases.frees(before));
        let between = leases.round();
        assert!(!leases.frees(between) && !leases.needs(between), "no later round has ended");
        look(&mut leases, &[7]);
        let later = leases.round();
        assert!(leases.frees(before), "the reader came after it was retired");
        assert!(leases.needs(between) && leases.needs(later));
        look(&mut leases, &[7, 9]);
        assert!(leases.needs(between));
        look(&mut leases, &[9]);
        assert!(leases.frees(between), "the first reader has gone");
        assert!(leases.needs(later));
        look(&mut leases, &[]);
        assert!(leases.frees(later));
    }

    #[test]
    fn a_mark_that_was_there_first_keeps_everything() {
        let mut leases = Leases::default();
        let round = leases.round();
        look(&mut leases, &[1]);
        assert!(leases.needs(round));
    }

    #[test]
    fn limits_end_the_oldest_first_and_for_good() {
        let mut leases = Leases::default();
        let first = leases.round();
        look(&mut leases, &[1]);
        let second = leases.round();
        look(&mut leases, &[1, 2]);
        let third = leases.round();
        // Ten bytes a round.
        let kept = |since: Round| (3 - since.0) * 10;
        let limits = LeaseLimits { bytes: 25, ..FREE };
        let (round, _) = leases.begin();
        leases.seen(round, &[1, 2], (Instant(5), limits), kept);
        assert!(!leases.needs(first) && leases.needs(second) && leases.needs(third));
        assert_eq!(leases.counts(), (1, 1));
        look(&mut leases, &[1, 2]);
        assert!(!leases.needs(first), "it does not count again");
        let limits = LeaseLimits { time: Duration::from_nanos(10), ..FREE };
        let (round, _) = leases.begin();
        leases.seen(round, &[1, 2], (Instant(10), limits), |_| 0);
        assert!(leases.frees(third));
        assert_eq!(leases.counts(), (0, 2));
    }

    #[test]
    fn a_round_that_comes_late_changes_nothing() {
        let mut leases = Leases::default();
        let (slow, _) = leases.begin();
        let retired = leases.round();
        look(&mut leases, &[3]);
        leases.seen(slow, &[], (Instant(0), FREE), |_| 0);
        assert!(leases.needs(retired));
    }
}
