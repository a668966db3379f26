//! Locks of pessimistic transactions on keys and on ranges of keys. A transaction waits here and
//! nowhere else, and holds no place in the commit queue meanwhile.
//!
//! 1. [`KeyLocks::acquire`] takes the lock of a key in its shard: for one transaction alone, or
//!    shared. It looks at the ranges only if there are any. A range is taken while all shards are
//!    locked, so that nobody takes a key of it meanwhile.
//! 2. If others hold it, the transaction notes for whom it waits ([`Waits`]) and searches that
//!    graph for a way back to itself. If there is one, it fails with the cycle.
//! 3. Otherwise it sleeps until a lock of the shard is released, at most for 10 ms, and tries again
//!    until its timeout. So it also finds cycles through holders that came while it slept.
//! 4. [`KeyLocks::release`] takes a transaction out of a lock, and out of what others wait for, and
//!    wakes those who wait in the shard.
//!
//! What must stay true:
//!
//! - Every way out of a wait removes its note. A note never names a transaction that does not hold
//!   the lock, so that no cycle is found that is not there.
//! - The order is: shards, ascending; ranges; waits.

mod ranges;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sateen_control::{ColumnFamilyId, StallCause};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, LockWait, Result};
use sateen_store::base::locks::lock_timed;
use sateen_store::base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use sateen_store::base::sync::{Condvar, Mutex, MutexGuard, lock};
use sateen_store::base::xxh3::xxh3_64;

use self::ranges::HeldRange;
pub(crate) use self::ranges::{LockRange, LockTarget};
use crate::metrics::EngineMetrics;

const SHARDS: usize = 64;
/// Longest sleep of a waiting transaction before it looks at the lock again. A release wakes it
/// earlier.
const WAIT_MAX: Duration = Duration::from_millis(10);

/// The number of a transaction that takes locks.
pub(crate) type LockOwner = u64;

/// A key, with its column family.
pub(crate) type LockKey = (ColumnFamilyId, Arc<[u8]>);

/// What a transaction wants.
pub(crate) struct Wanted<'a> {
    pub(crate) owner: LockOwner,
    pub(crate) what: &'a LockTarget,
    /// The name of the column family, for errors.
    pub(crate) family: &'a str,
    /// True if no other transaction may hold the lock.
    pub(crate) exclusive: bool,
    /// The longest wait; `None` waits until a deadlock.
    pub(crate) timeout: Option<Duration>,
    pub(crate) metrics: &'a EngineMetrics,
    /// Called before each sleep. An error from it ends the wait.
    pub(crate) give_up: &'a dyn Fn() -> Result<()>,
}

/// What the caller has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    /// A lock that it did not have.
    New,
    /// A lock that it had, perhaps shared before.
    Before,
}

/// A lock that somebody holds.
struct Held {
    owners: Vec<LockOwner>,
    exclusive: bool,
}

#[derive(Default)]
struct Shard {
    held: Mutex<BTreeMap<LockKey, Held>>,
    /// Notified when a lock is released.
    released: Condvar,
}

/// For whom each waiting transaction waits.
type Waits = BTreeMap<LockOwner, Waiting>;

struct Waiting {
    what: LockTarget,
    /// A key that the holders have locked.
    key: Arc<[u8]>,
    family: String,
    holders: Vec<LockOwner>,
}

/// Why a lock is not free. Nobody leaves the lock while this is there.
struct Blocked<'a> {
    holders: Vec<LockOwner>,
    /// A key that they have locked.
    key: Arc<[u8]>,
    /// Where a release is heard of.
    shard: &'a Shard,
    held: HeldGuard<'a>,
    others: Vec<HeldGuard<'a>>,
    ranges: Option<MutexGuard<'a, Vec<HeldRange>>>,
}

type HeldGuard<'a> = MutexGuard<'a, BTreeMap<LockKey, Held>>;

/// The locks of a database.
pub(crate) struct KeyLocks {
    shards: Vec<Shard>,
    ranges: Mutex<Vec<HeldRange>>,
    /// The number of `ranges`. It only grows while all shards are locked.
    ranges_held: AtomicUsize,
    waits: Mutex<Waits>,
    next_owner: AtomicU64,
}

impl Default for KeyLocks {
    fn default() -> KeyLocks {
        KeyLocks {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            ranges: Mutex::default(),
            ranges_held: AtomicUsize::new(0),
            waits: Mutex::default(),
            next_owner: AtomicU64::new(1),
        }
    }
}

impl KeyLocks {
    /// Returns the number of a new transaction.
    pub(crate) fn new_owner(&self) -> LockOwner {
        self.next_owner.fetch_add(1, Ordering::Relaxed)
    }

    fn shard(&self, (family, key): &LockKey) -> Option<&Shard> {
        let hash = xxh3_64(key).wrapping_add(u64::from(family.0));
        self.shards.get((hash % SHARDS as u64) as usize)
    }

    /// Returns the number of keys and ranges that are locked.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        let keys: usize = self.shards.iter().map(|shard| lock(&shard.held).len()).sum();
        keys + lock(&self.ranges).len()
    }

    /// Takes the lock of a key or range. Fails with `Deadlock` if that would never end, with
    /// `LockTimedOut` if it takes too long.
    pub(crate) fn acquire(&self, wanted: &Wanted<'_>) -> Result<Acquired> {
        let mut waiting = None;
        let begun = clock::now();
        loop {
            let tried = match wanted.what {
                LockTarget::Key(key) => self.try_key(wanted, key),
                LockTarget::Range(range) => self.try_range(wanted, range),
            };
            let blocked = match tried {
                Err(Some(blocked)) => blocked,
                done => {
                    if waiting.is_some() {
                        lock(&self.waits).remove(&wanted.owner);
                    }
                    return done.map_err(|_| Error::Closed);
                }
            };
            // Before any lock is released, so that no holder leaves before its note is there.
            let end = self.note(wanted, &blocked).map(|cycle| Error::Deadlock { cycle });
            let end = end.or_else(|| timed_out(wanted, &blocked, begun));
            let end = end.or_else(|| (wanted.give_up)().err());
            if let Some(error) = end {
                lock(&self.waits).remove(&wanted.owner);
                return Err(error);
            }
            let Blocked { shard, held, others, ranges, .. } = blocked;
            drop((others, ranges));
            waiting.get_or_insert_with(|| wanted.metrics.stall_begin(StallCause::KeyLock));
            let left = wanted.timeout.map_or(WAIT_MAX, |most| most.saturating_sub(since(begun)));
            clock::wait(&shard.released, &shard.held, held, left.min(WAIT_MAX));
        }
    }

    /// Takes the lock of a key if it is free for the owner.
    fn try_key(&self, wanted: &Wanted<'_>, key: &LockKey) -> Result<Acquired, Option<Blocked<'_>>> {
        let Wanted { owner, exclusive, .. } = *wanted;
        let shard = self.shard(key).ok_or(None)?;
        let mut held = lock_timed(&shard.held);
        let has_ranges = self.ranges_held.load(Ordering::Acquire) > 0;
        let ranges = has_ranges.then(|| lock_timed(&self.ranges));
        let blocks = |held: &&HeldRange| held.blocks(owner, exclusive) && held.range.contains(key);
        let mut holders: Vec<LockOwner> = Vec::new();
        holders.extend(ranges.iter().flat_map(|all| all.iter()).filter(blocks).map(|r| r.owner));
        match held.get_mut(key) {
            None if holders.is_empty() => {
                held.insert(key.clone(), Held { owners: vec![owner], exclusive });
                return Ok(Acquired::New);
            }
            None => {}
            Some(lock) => {
                holders.extend(lock.blocking(owner, exclusive));
                if holders.is_empty() {
                    return Ok(lock.take(owner, exclusive));
                }
            }
        }
        let (key, others) = (key.1.clone(), Vec::new());
        Err(Some(Blocked { holders, key, shard, held, others, ranges }))
    }

    /// Takes the lock of a range if it is free for the owner.
    fn try_range(
        &self,
        wanted: &Wanted<'_>,
        range: &Arc<LockRange>,
    ) -> Result<Acquired, Option<Blocked<'_>>> {
        let Wanted { owner, exclusive, .. } = *wanted;
        if range.is_empty() {
            return Ok(Acquired::Before);
        }
        let mut others: Vec<_> = self.shards.iter().map(|shard| lock_timed(&shard.held)).collect();
        let mut ranges = lock_timed(&self.ranges);
        // The lock that is met first in the order of keys is the one that an error names.
        let mut first: Option<(Arc<[u8]>, LockOwner)> = None;
        let mut meet = |key: Arc<[u8]>, holder| {
            let before =
                |(other, _): &(Arc<[u8]>, _)| range.comparator.compare(&key, other).is_lt();
            if first.as_ref().is_none_or(before) {
                first = Some((key, holder));
            }
        };
        let (mut holders, mut at) = (BTreeSet::new(), 0);
        for (number, held) in others.iter().enumerate() {
            for (locked, lock) in range.locked(held) {
                for holder in lock.blocking(owner, exclusive) {
                    holders.insert(holder);
                    meet(locked.1.clone(), holder);
                    at = number;
                }
            }
        }
        for held in ranges.iter().filter(|held| held.blocks(owner, exclusive)) {
            if held.range.overlaps(range) {
                holders.insert(held.owner);
                meet(held.range.first_of_both(range), held.owner);
            }
        }
        let Some((key, holder)) = first else {
            ranges.push(HeldRange { owner, range: range.clone(), exclusive });
            self.ranges_held.store(ranges.len(), Ordering::Release);
            return Ok(Acquired::New);
        };
        let (shard, ranges) = (self.shards.get(at).ok_or(None)?, Some(ranges));
        let held = others.swap_remove(at);
        holders.remove(&holder);
        let holders = std::iter::once(holder).chain(holders).collect();
        Err(Some(Blocked { holders, key, shard, held, others, ranges }))
    }

    /// Notes for whom the owner waits. Returns the cycle that this closes, if it does: each waits
    /// for the next one, and the last one for the first.
    fn note(&self, wanted: &Wanted<'_>, blocked: &Blocked<'_>) -> Option<Vec<LockWait>> {
        let mut waits = lock_timed(&self.waits);
        let (what, family) = (wanted.what.clone(), wanted.family.to_owned());
        let (key, holders) = (blocked.key.clone(), blocked.holders.clone());
        waits.insert(wanted.owner, Waiting { what, key, family, holders });
        cycle(&waits, wanted.owner)
    }

    /// Releases a lock of `owner`.
    pub(crate) fn release(&self, owner: LockOwner, what: &LockTarget) {
        match what {
            LockTarget::Key(key) => {
                let Some(shard) = self.shard(key) else { return };
                let mut held = lock_timed(&shard.held);
                let Some(lock_of_key) = held.get_mut(key) else { return };
                lock_of_key.owners.retain(|other| *other != owner);
                if lock_of_key.owners.is_empty() {
                    held.remove(key);
                }
                self.forget_holder(owner, what);
                drop(held);
                shard.released.notify_all();
            }
            LockTarget::Range(range) => {
                let mut ranges = lock_timed(&self.ranges);
                let is_it =
                    |held: &HeldRange| held.owner == owner && Arc::ptr_eq(&held.range, range);
                let Some(at) = ranges.iter().position(is_it) else { return };
                ranges.swap_remove(at);
                self.ranges_held.store(ranges.len(), Ordering::Release);
                self.forget_holder(owner, what);
                drop(ranges);
                for shard in &self.shards {
                    // Whoever saw the range before sleeps once the shard is free.
                    drop(lock_timed(&shard.held));
                    shard.released.notify_all();
                }
            }
        }
    }

    /// Takes `owner` out of what others wait for.
    fn forget_holder(&self, owner: LockOwner, what: &LockTarget) {
        let mut waits = lock_timed(&self.waits);
        for waiting in waits.values_mut().filter(|waiting| waiting.what.meets(what)) {
            waiting.holders.retain(|holder| *holder != owner);
        }
    }
}

impl Held {
    /// Returns those who keep `owner` from the lock.
    fn blocking(&self, owner: LockOwner, exclusive: bool) -> impl Iterator<Item = LockOwner> {
        let blocks = exclusive || self.exclusive;
        self.owners.iter().copied().filter(move |holder| blocks && *holder != owner)
    }

    /// Gives the lock, which nobody keeps from `owner`.
    fn take(&mut self, owner: LockOwner, exclusive: bool) -> Acquired {
        self.exclusive |= exclusive;
        if self.owners.contains(&owner) {
            return Acquired::Before;
        }
        self.owners.push(owner);
        Acquired::New
    }
}

/// Returns the way from `start` back to itself, if there is one.
fn cycle(waits: &Waits, start: LockOwner) -> Option<Vec<LockWait>> {
    // Who came to each transaction first.
    let mut from = BTreeMap::new();
    let mut to_visit = vec![start];
    while let Some(at) = to_visit.pop() {
        let Some(waiting) = waits.get(&at) else { continue };
        for holder in &waiting.holders {
            if *holder == start {
                let mut way = vec![at];
                while let Some(before) = way.last().and_then(|last| from.get(last)) {
                    way.push(*before);
                }
                way.reverse();
                let waits = way.into_iter().filter_map(|owner| Some((owner, waits.get(&owner)?)));
                let waits = waits.map(|(transaction, waiting)| LockWait {
                    transaction,
                    column_family: waiting.family.clone(),
                    key: waiting.key.to_vec(),
                });
                return Some(waits.collect());
            }
            if *holder != start && !from.contains_key(holder) {
                from.insert(*holder, at);
                to_visit.push(*holder);
            }
        }
    }
    None
}

fn since(begun: Instant) -> Duration {
    clock::now().saturating_duration_since(begun)
}

fn timed_out(wanted: &Wanted<'_>, blocked: &Blocked<'_>, begun: Instant) -> Option<Error> {
    let timeout = wanted.timeout.filter(|timeout| since(begun) >= *timeout)?;
    Some(Error::LockTimedOut {
        column_family: wanted.family.to_owned(),
        key: blocked.key.to_vec(),
        timeout,
        holder: blocked.holders.first().copied().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests;
