//! Locks of pessimistic transactions on keys. A transaction waits here and nowhere else, and holds
//! no place in the commit queue meanwhile.
//!
//! 1. [`KeyLocks::acquire`] takes the lock of a key in its shard: for one transaction alone, or
//!    shared.
//! 2. If others hold it, the transaction notes for whom it waits ([`Waits`]) and searches that
//!    graph for a way back to itself. If there is one, it fails with the cycle.
//! 3. Otherwise it sleeps until a lock of the shard is released, at most for 10 ms, and tries again
//!    until its timeout. So it also finds cycles through holders that came while it slept.
//! 4. [`KeyLocks::release`] takes a transaction out of a lock, and out of what others wait for, and
//!    wakes those who wait in the shard.
//!
//! What must stay true: every way out of a wait removes its note. A note never names a transaction
//! that does not hold the lock, so that no cycle is found that is not there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sateen_control::{ColumnFamilyId, StallCause};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, LockWait, Result};
use sateen_store::base::locks::lock_timed;
use sateen_store::base::sync::atomic::{AtomicU64, Ordering};
use sateen_store::base::sync::{Condvar, Mutex, lock};
use sateen_store::base::xxh3::xxh3_64;

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
    pub(crate) key: &'a LockKey,
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
    key: LockKey,
    family: String,
    holders: Vec<LockOwner>,
}

/// The locks of a database.
pub(crate) struct KeyLocks {
    shards: Vec<Shard>,
    waits: Mutex<Waits>,
    next_owner: AtomicU64,
}

impl Default for KeyLocks {
    fn default() -> KeyLocks {
        KeyLocks {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
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

    /// Returns the number of keys that are locked.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.shards.iter().map(|shard| lock(&shard.held).len()).sum()
    }

    /// Takes the lock of a key. Fails with `Deadlock` if that would never end, with `LockTimedOut`
    /// if it takes too long.
    pub(crate) fn acquire(&self, wanted: &Wanted<'_>) -> Result<Acquired> {
        let Some(shard) = self.shard(wanted.key) else { return Err(Error::Closed) };
        let mut waiting = None;
        let begun = clock::now();
        loop {
            let mut held = lock_timed(&shard.held);
            let holders = match try_lock(&mut held, wanted) {
                Ok(acquired) => {
                    if waiting.is_some() {
                        lock(&self.waits).remove(&wanted.owner);
                    }
                    return Ok(acquired);
                }
                Err(holders) => holders,
            };
            // Under the lock of the shard, so that no holder leaves before its note is there.
            let cycle = self.note(wanted, &holders);
            let end = cycle.map(|cycle| Error::Deadlock { cycle });
            let end = end.or_else(|| timed_out(wanted, &holders, begun));
            let end = end.or_else(|| (wanted.give_up)().err());
            if let Some(error) = end {
                lock(&self.waits).remove(&wanted.owner);
                return Err(error);
            }
            waiting.get_or_insert_with(|| wanted.metrics.stall_begin(StallCause::KeyLock));
            let left = wanted.timeout.map_or(WAIT_MAX, |most| most.saturating_sub(since(begun)));
            clock::wait(&shard.released, &shard.held, held, left.min(WAIT_MAX));
        }
    }

    /// Notes that the owner waits for `holders`. Returns the cycle that this closes, if it does:
    /// each waits for the next one, and the last one for the first.
    fn note(&self, wanted: &Wanted<'_>, holders: &[LockOwner]) -> Option<Vec<LockWait>> {
        let mut waits = lock_timed(&self.waits);
        let family = wanted.family.to_owned();
        let waiting = Waiting { key: wanted.key.clone(), family, holders: holders.to_vec() };
        waits.insert(wanted.owner, waiting);
        cycle(&waits, wanted.owner)
    }

    /// Releases a lock of `owner`.
    pub(crate) fn release(&self, owner: LockOwner, key: &LockKey) {
        let Some(shard) = self.shard(key) else { return };
        let mut held = lock_timed(&shard.held);
        let Some(lock_of_key) = held.get_mut(key) else { return };
        lock_of_key.owners.retain(|other| *other != owner);
        if lock_of_key.owners.is_empty() {
            held.remove(key);
        }
        for waiting in lock_timed(&self.waits).values_mut().filter(|waiting| waiting.key == *key) {
            waiting.holders.retain(|holder| *holder != owner);
        }
        drop(held);
        shard.released.notify_all();
    }
}

/// Takes the lock if it is free for the owner. Otherwise returns those who hold it.
fn try_lock(
    held: &mut BTreeMap<LockKey, Held>,
    wanted: &Wanted<'_>,
) -> Result<Acquired, Vec<LockOwner>> {
    let Wanted { owner, key, exclusive, .. } = *wanted;
    let Some(lock) = held.get_mut(key) else {
        held.insert(key.clone(), Held { owners: vec![owner], exclusive });
        return Ok(Acquired::New);
    };
    let has_it = lock.owners.contains(&owner);
    let alone = has_it && lock.owners.len() == 1;
    if has_it && (!exclusive || lock.exclusive || alone) {
        lock.exclusive |= exclusive;
        return Ok(Acquired::Before);
    }
    if !has_it && !exclusive && !lock.exclusive {
        lock.owners.push(owner);
        return Ok(Acquired::New);
    }
    Err(lock.owners.iter().copied().filter(|holder| *holder != owner).collect())
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
                    key: waiting.key.1.to_vec(),
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

fn timed_out(wanted: &Wanted<'_>, holders: &[LockOwner], begun: Instant) -> Option<Error> {
    let timeout = wanted.timeout.filter(|timeout| since(begun) >= *timeout)?;
    Some(Error::LockTimedOut {
        column_family: wanted.family.to_owned(),
        key: wanted.key.1.to_vec(),
        timeout,
        holder: holders.first().copied().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::LatencySampling;

    fn key(name: &str) -> LockKey {
        (ColumnFamilyId(0), name.as_bytes().into())
    }

    fn acquire(
        locks: &KeyLocks,
        owner: LockOwner,
        name: &str,
        exclusive: bool,
        timeout: Option<u64>,
    ) -> Result<Acquired> {
        let metrics = EngineMetrics::new(LatencySampling::default(), 0);
        locks.acquire(&Wanted {
            owner,
            key: &key(name),
            family: "default",
            exclusive,
            timeout: timeout.map(Duration::from_millis),
            metrics: &metrics,
            give_up: &|| Ok(()),
        })
    }

    #[test]
    fn a_lock_is_held_alone_or_shared() {
        let locks = KeyLocks::default();
        assert_eq!(acquire(&locks, 1, "a", false, Some(0)).unwrap(), Acquired::New);
        assert_eq!(acquire(&locks, 2, "a", false, Some(0)).unwrap(), Acquired::New);
        assert_eq!(acquire(&locks, 2, "a", false, Some(0)).unwrap(), Acquired::Before);
        let refused = acquire(&locks, 1, "a", true, Some(0)).unwrap_err();
        assert!(matches!(refused, Error::LockTimedOut { holder: 2, .. }), "{refused}");
        locks.release(2, &key("a"));
        assert_eq!(acquire(&locks, 1, "a", true, Some(0)).unwrap(), Acquired::Before);
        assert!(acquire(&locks, 2, "a", false, Some(0)).is_err());
        assert_eq!(acquire(&locks, 2, "b", true, Some(0)).unwrap(), Acquired::New);
        locks.release(1, &key("a"));
        locks.release(2, &key("b"));
        assert_eq!((locks.count(), lock(&locks.waits).len()), (0, 0));
    }

    #[test]
    fn a_wait_ends_with_the_release() {
        let locks = KeyLocks::default();
        acquire(&locks, 1, "a", true, None).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| acquire(&locks, 2, "a", true, None));
            while lock(&locks.waits).is_empty() {
                std::thread::yield_now();
            }
            locks.release(1, &key("a"));
            assert_eq!(waiter.join().unwrap().unwrap(), Acquired::New);
        });
        assert!(lock(&locks.waits).is_empty());
    }

    #[test]
    fn the_last_of_a_cycle_is_refused_with_the_cycle() {
        let locks = KeyLocks::default();
        for (owner, name) in [(1, "a"), (2, "b"), (3, "c")] {
            acquire(&locks, owner, name, true, None).unwrap();
        }
        std::thread::scope(|scope| {
            let locks = &locks;
            let waiters = [(1, "b"), (2, "c")].map(|(owner, name)| {
                scope.spawn(move || {
                    acquire(locks, owner, name, true, None).unwrap();
                    // As a transaction that ends does.
                    locks.release(owner, &key(name));
                    locks.release(owner, &key(if owner == 1 { "a" } else { "b" }));
                })
            });
            while lock(&locks.waits).len() < 2 {
                std::thread::yield_now();
            }
            let error = acquire(locks, 3, "a", true, None).unwrap_err();
            let Error::Deadlock { cycle } = &error else { panic!("{error}") };
            let cycle: Vec<_> = cycle.iter().map(|wait| (wait.transaction, &*wait.key)).collect();
            assert_eq!(cycle, [(3, &b"a"[..]), (1, b"b"), (2, b"c")]);
            let text = error.to_string();
            assert!(text.contains("3 waits for \"a\"") && text.contains("held by 1"), "{text}");
            locks.release(3, &key("c"));
            waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        });
        assert_eq!((locks.count(), lock(&locks.waits).len()), (0, 0));
    }

    /// Two that share a lock and both want it alone.
    #[test]
    fn two_upgrades_are_a_deadlock() {
        let locks = KeyLocks::default();
        acquire(&locks, 1, "a", false, None).unwrap();
        acquire(&locks, 2, "a", false, None).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| acquire(&locks, 1, "a", true, None));
            while lock(&locks.waits).is_empty() {
                std::thread::yield_now();
            }
            let error = acquire(&locks, 2, "a", true, None).unwrap_err();
            assert!(matches!(&error, Error::Deadlock { cycle } if cycle.len() == 2), "{error}");
            locks.release(2, &key("a"));
            assert_eq!(waiter.join().unwrap().unwrap(), Acquired::Before);
        });
    }

    /// The more a lock is fought for, the same: nobody waits for ever, and nothing stays locked.
    #[test]
    fn threads_that_lock_in_any_order_all_end() {
        let locks = KeyLocks::default();
        let deadlocks = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (locks, deadlocks) = (&locks, &deadlocks);
                scope.spawn(move || {
                    for round in 0..300_u64 {
                        let owner = locks.new_owner();
                        let mut got = Vec::new();
                        for step in 0..3 {
                            let name = format!("{}", (round * 7 + thread * 5 + step * 11) % 5);
                            match acquire(locks, owner, &name, (round + step) % 3 > 0, None) {
                                Ok(Acquired::New) => got.push(name),
                                Ok(Acquired::Before) => {}
                                Err(Error::Deadlock { .. }) => {
                                    deadlocks.fetch_add(1, Ordering::Relaxed);
                                    break;
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                        got.iter().for_each(|name| locks.release(owner, &key(name)));
                    }
                });
            }
        });
        println!("{} deadlocks", deadlocks.load(Ordering::Relaxed));
        assert_eq!((locks.count(), lock(&locks.waits).len()), (0, 0));
    }
}
