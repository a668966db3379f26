//! Who gets a lock, who waits, and what is left afterwards.

use std::ops::{Bound, RangeBounds};

use sateen_control::Comparator;

use super::*;
use crate::metrics::LatencySampling;

fn key(name: &str) -> LockTarget {
    LockTarget::Key((ColumnFamilyId(0), name.as_bytes().into()))
}

fn acquire(
    locks: &KeyLocks,
    owner: LockOwner,
    name: &str,
    exclusive: bool,
    timeout: Option<u64>,
) -> Result<Acquired> {
    acquire_target(locks, owner, &key(name), exclusive, timeout)
}

fn acquire_target(
    locks: &KeyLocks,
    owner: LockOwner,
    what: &LockTarget,
    exclusive: bool,
    timeout: Option<u64>,
) -> Result<Acquired> {
    let metrics = EngineMetrics::new(LatencySampling::default(), 0);
    locks.acquire(&Wanted {
        owner,
        what,
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

fn range_in(comparator: &Comparator, lower: Bound<&str>, upper: Bound<&str>) -> LockTarget {
    let end = |end: Bound<&str>| end.map(|key| key.as_bytes().into());
    LockTarget::Range(Arc::new(LockRange {
        family: ColumnFamilyId(0),
        comparator: comparator.clone(),
        lower: end(lower),
        upper: end(upper),
    }))
}

/// From `begin` up to, not including, `end`.
fn range(begin: &str, end: &str) -> LockTarget {
    range_in(&Comparator::BYTEWISE, Bound::Included(begin), Bound::Excluded(end))
}

#[test]
fn a_range_and_keys_of_it_exclude_each_other() {
    let locks = KeyLocks::default();
    let held = range("b", "d");
    assert_eq!(acquire_target(&locks, 1, &held, true, Some(0)).unwrap(), Acquired::New);
    for (name, is_free) in [("a", true), ("b", false), ("c", false), ("c9", false), ("d", true)] {
        let got = acquire(&locks, 2, name, false, Some(0));
        assert_eq!(got.is_ok(), is_free, "{name}: {got:?}");
        if let Err(error) = got {
            assert!(matches!(error, Error::LockTimedOut { holder: 1, .. }), "{error}");
        }
    }
    assert_eq!(acquire(&locks, 1, "c", true, Some(0)).unwrap(), Acquired::New, "its own range");
    // The other family is another one.
    let other = LockTarget::Key((ColumnFamilyId(1), b"c"[..].into()));
    assert_eq!(acquire_target(&locks, 2, &other, true, Some(0)).unwrap(), Acquired::New);
    // Ranges that overlap keys or ranges of others.
    let refused = |what: &LockTarget| acquire_target(&locks, 3, what, true, Some(0)).unwrap_err();
    let error = refused(&range("c", "x"));
    assert!(matches!(&error, Error::LockTimedOut { key, holder: 1, .. } if key == b"c"), "{error}");
    let error = refused(&range("", "b"));
    assert!(matches!(&error, Error::LockTimedOut { key, holder: 2, .. } if key == b"a"), "{error}");
    assert!(acquire_target(&locks, 3, &range("e", "x"), true, Some(0)).is_ok());
    locks.release(1, &held);
    assert!(acquire(&locks, 2, "b", true, Some(0)).is_ok());
    assert!(acquire(&locks, 2, "c", true, Some(0)).is_err(), "the key is locked by itself");
}

#[test]
fn shared_ranges_exclude_writers() {
    let locks = KeyLocks::default();
    for owner in [1, 2] {
        acquire_target(&locks, owner, &range("a", "c"), false, Some(0)).unwrap();
    }
    acquire(&locks, 3, "b", false, Some(0)).unwrap();
    assert!(acquire(&locks, 3, "b", true, Some(0)).is_err());
    assert!(acquire_target(&locks, 3, &range("b", "x"), true, Some(0)).is_err());
    assert!(acquire(&locks, 1, "a", true, Some(0)).is_err(), "the other one shares it");
}

/// All ends, in two orders of keys: what is locked is what an iterator over the range shows.
#[test]
fn ranges_end_where_they_say() {
    let names = ["a", "b", "c", "d", "e"];
    for comparator in [Comparator::BYTEWISE, Comparator::reverse_bytewise()] {
        let ends = [Bound::Unbounded, Bound::Included("b"), Bound::Excluded("b")];
        let others = [Bound::Unbounded, Bound::Included("d"), Bound::Excluded("d")];
        for (one, other) in ends.iter().flat_map(|one| others.iter().map(move |two| (*one, *two))) {
            let forward = comparator == Comparator::BYTEWISE;
            let (lower, upper) = if forward { (one, other) } else { (other, one) };
            let what = range_in(&comparator, lower, upper);
            let is_in = |name: &str| RangeBounds::<str>::contains(&(one, other), name);
            // The range first, and keys first.
            let locks = KeyLocks::default();
            acquire_target(&locks, 1, &what, true, Some(0)).unwrap();
            for name in names {
                assert_eq!(
                    acquire(&locks, 2, name, true, Some(0)).is_err(),
                    is_in(name),
                    "{what:?}"
                );
            }
            for name in names {
                let locks = KeyLocks::default();
                acquire(&locks, 2, name, true, Some(0)).unwrap();
                let got = acquire_target(&locks, 1, &what, true, Some(0));
                assert_eq!(got.is_err(), is_in(name), "{what:?} {name}");
            }
        }
    }
    // Nothing is between these ends.
    let locks = KeyLocks::default();
    let nothing = range_in(&Comparator::BYTEWISE, Bound::Excluded("b"), Bound::Excluded("b"));
    assert_eq!(acquire_target(&locks, 1, &nothing, true, Some(0)).unwrap(), Acquired::Before);
    assert_eq!(locks.count(), 0);
}

#[test]
fn a_deadlock_of_a_range_and_a_key_is_found() {
    for range_waits_first in [false, true] {
        let locks = KeyLocks::default();
        let (held, wanted) = (range("a", "c"), range("m", "p"));
        acquire_target(&locks, 1, &held, true, None).unwrap();
        acquire(&locks, 2, "n", true, None).unwrap();
        let range_waits = || acquire_target(&locks, 1, &wanted, true, None);
        let key_waits = || acquire(&locks, 2, "b", true, None);
        let wait_for_note = || {
            while lock(&locks.waits).is_empty() {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            let error = if range_waits_first {
                let waiter = scope.spawn(range_waits);
                wait_for_note();
                let error = key_waits().unwrap_err();
                locks.release(2, &key("n"));
                waiter.join().unwrap().unwrap();
                error
            } else {
                let waiter = scope.spawn(key_waits);
                wait_for_note();
                let error = range_waits().unwrap_err();
                locks.release(1, &held);
                waiter.join().unwrap().unwrap();
                error
            };
            let Error::Deadlock { cycle } = &error else { panic!("{error}") };
            let mut cycle: Vec<_> = cycle.iter().map(|w| (w.transaction, &*w.key)).collect();
            cycle.sort_unstable();
            assert_eq!(cycle, [(1, &b"n"[..]), (2, b"b")]);
        });
        assert!(lock(&locks.waits).is_empty());
    }
}

/// Random locks and releases, against a list of what everybody holds.
#[test]
fn random_locks_are_those_of_a_simple_model() {
    type Holding = (LockOwner, u8, u8, bool, LockTarget);
    let mut state = 7_u64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % n
    };
    let name = |number: u8| char::from(b'a' + number).to_string();
    let locks = KeyLocks::default();
    let mut held: Vec<Holding> = Vec::new();
    let (mut given, mut refused) = (0, 0);
    for _ in 0..20_000 {
        if below(3) == 0 && !held.is_empty() {
            let (owner, .., what) = held.swap_remove(below(held.len() as u64) as usize);
            locks.release(owner, &what);
            continue;
        }
        let (owner, exclusive) = (1 + below(4), below(2) == 0);
        let begin = below(20) as u8;
        let (end, what) = match below(3) {
            0 => {
                let end = begin + 1 + below(4) as u8;
                (end, range(&name(begin), &name(end)))
            }
            _ => (begin + 1, key(&name(begin))),
        };
        let blocks = |(other, from, to, alone, _): &&Holding| {
            *other != owner && (exclusive || *alone) && *from < end && begin < *to
        };
        let blocked = held.iter().any(|holding| blocks(&holding));
        match acquire_target(&locks, owner, &what, exclusive, Some(0)) {
            Ok(Acquired::New) => {
                assert!(!blocked, "{what:?} was locked");
                held.push((owner, begin, end, exclusive, what));
                given += 1;
            }
            Ok(Acquired::Before) => {
                assert!(!blocked, "{what:?} was locked");
                // Perhaps it was shared before.
                let same = |h: &&mut Holding| h.0 == owner && h.4.meets(&what) && h.2 - h.1 == 1;
                let is_key = |h: &Holding| matches!(h.4, LockTarget::Key(_));
                let of_key = held.iter_mut().filter(|h| is_key(h)).find(same).unwrap();
                of_key.3 |= exclusive;
            }
            Err(error) => {
                assert!(blocked, "{what:?}: {error}");
                refused += 1;
            }
        }
    }
    assert!(given > 1000 && refused > 1000, "{given} {refused}");
    for (owner, .., what) in held {
        locks.release(owner, &what);
    }
    assert_eq!((locks.count(), lock(&locks.waits).len()), (0, 0));
}
