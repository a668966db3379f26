//! Pessimistic transactions: who waits for whom, how a wait ends, and what is left of it.

use std::time::Duration;

use sateen::vfs::MemVfs;
use sateen::{Db, Error, Options, Retry, Transaction, TransactionOptions};

use crate::support::common::{as_vfs, tiny};

fn open() -> Db {
    let options = Options { background_threads: 1, ..tiny() };
    Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).unwrap()
}

fn begin(db: &Db, timeout: Option<Duration>) -> Transaction {
    let lock_timeout = timeout;
    db.transaction_with(&TransactionOptions { lock_timeout, ..TransactionOptions::pessimistic() })
}

/// One that does not wait.
fn impatient(db: &Db) -> Transaction {
    begin(db, Some(Duration::ZERO))
}

fn assert_locked(done: sateen::Result<()>, named: &str, by: &Transaction) {
    match done {
        Err(ref error @ Error::LockTimedOut { ref key, holder, .. }) => {
            assert_eq!((key.as_slice(), Some(holder)), (named.as_bytes(), by.id()));
            assert_eq!(error.retry(), Retry::Later);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn locks_last_until_the_transaction_ends() {
    let db = open();
    let other_family = db.create_column_family("other", tiny().column_family).unwrap();
    for how in 0..3 {
        let mut holder = impatient(&db);
        holder.put("a", "1").unwrap();
        holder.get_for_update("b").unwrap();
        holder.to(&other_family).delete("c").unwrap();
        let mut other = impatient(&db);
        assert_locked(other.put("a", "2"), "a", &holder);
        assert_locked(other.put_untracked("a", "2"), "a", &holder);
        assert_locked(other.get_for_update("b").map(drop), "b", &holder);
        assert_eq!(other.get("a").unwrap(), db.get("a").unwrap(), "a read takes no lock");
        other.put("c", "another family's").unwrap();
        assert_locked(other.to(&other_family).put("c", "2"), "c", &holder);
        assert_eq!((other.count(), other.tracked_keys()), (1, 1));
        match how {
            0 => holder.commit().unwrap(),
            1 => holder.rollback().unwrap(),
            _ => drop(holder),
        }
        other.put("a", "3").unwrap();
        other.to(&other_family).put("c", "3").unwrap();
        other.commit().unwrap();
        assert_eq!(db.get("a").unwrap().unwrap(), b"3");
    }
}

#[test]
fn a_save_point_gives_locks_back() {
    let db = open();
    let mut holder = impatient(&db);
    holder.put("a", "1").unwrap();
    holder.set_save_point();
    holder.put("a", "2").unwrap();
    holder.put("b", "2").unwrap();
    holder.rollback_to_save_point().unwrap();
    let mut other = impatient(&db);
    other.put("b", "3").unwrap();
    assert_locked(other.put("a", "3"), "a", &holder);
    holder.commit().unwrap();
    other.commit().unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"1");
    assert_eq!(db.get("b").unwrap().unwrap(), b"3");
}

#[test]
fn readers_share_a_lock() {
    let db = open();
    let (mut first, mut second) = (impatient(&db), impatient(&db));
    first.get_for_share("a").unwrap();
    second.get_for_share("a").unwrap();
    assert_locked(second.put("a", ""), "a", &first);
    first.rollback().unwrap();
    second.put("a", "1").unwrap();
    let mut third = impatient(&db);
    assert_locked(third.get_for_share("a").map(drop), "a", &second);
}

#[test]
fn a_key_that_was_written_since_the_snapshot_is_not_locked() {
    let db = open();
    let options = TransactionOptions { set_snapshot: true, ..TransactionOptions::pessimistic() };
    let mut transaction = db.transaction_with(&options);
    db.put("a", "theirs").unwrap();
    let refused = transaction.put("a", "mine").unwrap_err();
    assert!(matches!(&refused, Error::Busy { key, .. } if key == b"a"), "{refused}");
    assert_eq!((transaction.count(), transaction.tracked_keys()), (0, 0));
    impatient(&db).put("a", "free").unwrap();
    transaction.put_untracked("a", "mine").unwrap();
    transaction.put("b", "mine").unwrap();
    transaction.commit().unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"mine");
}

/// An untracked write takes the lock, but it does not compare the key with the snapshot: what
/// guards the key later has to.
#[test]
fn a_key_locked_by_an_untracked_write_is_compared_once_it_is_guarded() {
    type Guard = fn(&mut Transaction, &sateen::ColumnFamily) -> sateen::Result<()>;
    let guards: [Guard; 7] = [
        |transaction, _| transaction.get_for_update("a").map(drop),
        |transaction, _| transaction.get_for_share("a").map(drop),
        |transaction, _| transaction.put("a", "mine"),
        |transaction, _| transaction.delete("a"),
        |transaction, family| transaction.to(family).guard("a"),
        |transaction, family| transaction.to(family).guard_shared("a"),
        |transaction, _| {
            let mut batch = sateen::WriteBatch::new();
            batch.put("a", "mine")?;
            transaction.rebuild_from(&batch)
        },
    ];
    let options = TransactionOptions { set_snapshot: true, ..TransactionOptions::pessimistic() };
    for (at, guard) in guards.iter().enumerate() {
        let db = open();
        let family = db.default_column_family();
        db.put("a", "old").unwrap();
        let mut transaction = db.transaction_with(&options);
        let mut theirs = impatient(&db);
        theirs.put("a", "theirs").unwrap();
        theirs.commit().unwrap();
        transaction.put_untracked("a", "blind").unwrap();
        // Neither a save point nor a refusal makes it known that nobody wrote the key.
        for undone in [true, false, false] {
            transaction.set_save_point();
            let refused = guard(&mut transaction, &family).unwrap_err();
            assert!(matches!(&refused, Error::Busy { key, .. } if key == b"a"), "{at}: {refused}");
            match undone {
                true => transaction.rollback_to_save_point().unwrap(),
                false => transaction.pop_save_point().unwrap(),
            }
        }
        // The write that is not tracked keeps its lock.
        assert_locked(impatient(&db).put("a", "other"), "a", &transaction);
        // A later snapshot shows what they wrote.
        transaction.set_snapshot();
        guard(&mut transaction, &family).unwrap();
        transaction.commit().unwrap();
    }
}

/// A transaction gets an older snapshot back from a save point, and keeps locks from before it.
#[test]
fn a_rollback_to_an_older_snapshot_compares_with_that() {
    let db = open();
    let options = TransactionOptions { set_snapshot: true, ..TransactionOptions::pessimistic() };
    let mut transaction = db.transaction_with(&options);
    db.write_locked(&a_put("a"), &TransactionOptions::pessimistic()).unwrap();
    transaction.put_untracked("a", "blind").unwrap();
    transaction.put_untracked("b", "blind").unwrap();
    transaction.set_save_point();
    transaction.clear_snapshot();
    transaction.get_for_update("a").unwrap();
    transaction.set_snapshot();
    transaction.put("a", "mine").unwrap();
    transaction.rollback_to_save_point().unwrap();
    let refused = transaction.put("a", "mine").unwrap_err();
    assert!(matches!(&refused, Error::Busy { key, .. } if key == b"a"), "{refused}");
    transaction.put("b", "nobody wrote it").unwrap();
    // After an undo nothing is locked, and nothing is left of what was known.
    transaction.undo().unwrap();
    assert!(matches!(transaction.put("a", "mine"), Err(Error::Busy { .. })));
    transaction.put("b", "mine").unwrap();
    transaction.commit().unwrap();
}

/// A shared lock that becomes exclusive was compared before, and a range does not replace that.
#[test]
fn upgrades_and_ranges_do_not_hide_what_others_wrote() {
    let db = open();
    let options = TransactionOptions { set_snapshot: true, ..TransactionOptions::pessimistic() };
    let mut transaction = db.transaction_with(&options);
    transaction.get_for_share("a").unwrap();
    assert!(matches!(impatient(&db).put("a", "theirs"), Err(Error::LockTimedOut { .. })));
    transaction.put("a", "mine").unwrap();
    db.write_locked(&a_put("b"), &TransactionOptions::pessimistic()).unwrap();
    transaction.lock_range("b".."c").unwrap();
    assert!(matches!(transaction.put("b", "mine"), Err(Error::Busy { .. })));
    assert!(matches!(transaction.get_for_update("b"), Err(Error::Busy { .. })));
    transaction.commit().unwrap();
}

fn a_put(key: &str) -> sateen::WriteBatch {
    let mut batch = sateen::WriteBatch::new();
    batch.put(key, "theirs").unwrap();
    batch
}

#[test]
fn no_transaction_has_more_locks_than_it_may() {
    let db = open();
    let options = TransactionOptions { locks_max: 2, ..TransactionOptions::pessimistic() };
    let mut transaction = db.transaction_with(&options);
    transaction.put("a", "").unwrap();
    transaction.put("b", "").unwrap();
    transaction.put("a", "again").unwrap();
    assert!(matches!(transaction.put("c", ""), Err(Error::LockLimit(2))));
    impatient(&db).put("c", "free").unwrap();
    transaction.commit().unwrap();
}

/// After a wait that was given up, nobody waits for the holder any more.
#[test]
fn after_a_timeout_nothing_is_left() {
    let db = open();
    let (mut a, mut b) = (impatient(&db), impatient(&db));
    a.put("a", "").unwrap();
    b.put("b", "").unwrap();
    assert_locked(a.put("b", ""), "b", &b);
    // This closes no cycle.
    assert_locked(b.put("a", ""), "a", &a);
    a.commit().unwrap();
    b.put("a", "").unwrap();
    b.commit().unwrap();
    impatient(&db).put("b", "").unwrap();
}

#[test]
fn a_deadlock_is_found_and_named() {
    let db = open();
    let mut one = begin(&db, None);
    let mut two = begin(&db, None);
    one.put("a", "1").unwrap();
    two.put("b", "2").unwrap();
    let ids = (one.id().unwrap(), two.id().unwrap());
    let refused = std::thread::scope(|scope| {
        let threads = [
            scope.spawn(move || one.put("b", "1").and_then(|()| one.commit())),
            scope.spawn(move || two.put("a", "2").and_then(|()| two.commit())),
        ];
        let done: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1, "{done:?}");
        done.into_iter().find_map(Result::err).unwrap()
    });
    let Error::Deadlock { cycle } = &refused else { panic!("{refused}") };
    let mut named: Vec<_> = cycle.iter().map(|wait| (wait.transaction, &*wait.key)).collect();
    named.sort_unstable();
    assert_eq!(named, [(ids.0, &b"b"[..]), (ids.1, b"a")]);
    assert_eq!(refused.retry(), Retry::NewTransaction);
    let stalls = db.metrics().stalls;
    let waits = stalls.iter().find(|stall| stall.cause.name() == "key-lock").unwrap();
    assert!(waits.waits_ns.count() > 0 && waits.waiting == 0, "the wait is counted");
}

#[test]
fn no_update_is_lost_however_many_want_a_key() {
    let db = open();
    let count = |value: Option<Vec<u8>>| {
        value.map_or(0, |value| String::from_utf8(value).unwrap().parse::<u64>().unwrap())
    };
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let db = &db;
            scope.spawn(move || {
                for round in 0..100_u64 {
                    loop {
                        // In both orders, so that there are deadlocks.
                        let keys = if (thread + round) % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
                        let mut transaction = begin(db, None);
                        let done = keys.iter().try_for_each(|key| {
                            let next = count(transaction.get_for_update(key)?) + 1;
                            transaction.put(key, next.to_string())
                        });
                        match done.and_then(|()| transaction.commit()) {
                            Ok(()) => break,
                            Err(Error::Deadlock { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(count(db.get("a").unwrap()), 400);
    assert_eq!(count(db.get("b").unwrap()), 400);
}

/// What an iterator over a locked range shows stays so until the commit.
#[test]
fn a_locked_range_has_no_phantoms() {
    let db = open();
    let other_family = db.create_column_family("other", tiny().column_family).unwrap();
    db.put("b", "1").unwrap();
    let mut holder = impatient(&db);
    holder.lock_range("a".."d").unwrap();
    assert_eq!(holder.range("a".."d").unwrap().count(), 1);
    let mut other = impatient(&db);
    assert_locked(other.put("b", "theirs"), "b", &holder);
    assert_locked(other.put("c", "is new"), "c", &holder);
    assert_locked(other.lock_range("c"..), "c", &holder);
    assert_locked(other.get_for_share("c").map(drop), "c", &holder);
    other.put("d", "is not in it").unwrap();
    other.to(&other_family).put("b", "another family's").unwrap();
    assert_locked(holder.lock_range(..), "d", &other);
    holder.put("c", "mine").unwrap();
    assert_eq!(holder.range("a".."d").unwrap().count(), 2);
    holder.commit().unwrap();
    other.put("c", "theirs").unwrap();
    other.rollback().unwrap();
    assert_eq!(db.get("c").unwrap().unwrap(), b"mine");
}

#[test]
fn a_range_goes_with_its_save_point_or_transaction() {
    let db = open();
    let mut holder = impatient(&db);
    holder.set_save_point();
    holder.lock_range_shared("a".."c").unwrap();
    let mut other = impatient(&db);
    other.lock_range_shared("b".."d").unwrap();
    assert_locked(other.put("a", ""), "a", &holder);
    holder.rollback_to_save_point().unwrap();
    other.put("a", "").unwrap();
    drop(other);
    holder.lock_range(..).unwrap();
    // A prepared one keeps it, too, as long as the database is open.
    holder.put("a", "1").unwrap();
    holder.prepare("holds all").unwrap();
    assert!(holder.lock_range("x"..).is_err());
    drop(holder);
    assert!(impatient(&db).put("z", "").is_err());
    db.prepared_transaction("holds all").unwrap().unwrap().commit().unwrap();
    impatient(&db).lock_range(..).unwrap();
    let refused = db.transaction().lock_range(..).unwrap_err();
    assert!(refused.to_string().contains("only a pessimistic transaction"), "{refused}");
    let refused = impatient(&db).lock_range("b".."a").unwrap_err();
    assert!(refused.to_string().contains("ends before it begins"), "{refused}");
}

/// Each counts the entries of a range and adds one: without the lock, two would count the same.
#[test]
fn counting_a_locked_range_loses_nothing() {
    let db = open();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let db = &db;
            scope.spawn(move || {
                for round in 0..25_u64 {
                    loop {
                        let mut transaction = begin(db, None);
                        let done = (|| {
                            if (thread + round) % 3 == 0 {
                                // So that there are deadlocks.
                                transaction.get_for_share("row 0")?;
                            }
                            transaction.lock_range("row ".."row~")?;
                            let count = transaction.range("row ".."row~")?.count();
                            transaction.put(format!("row {count}"), "")?;
                            transaction.commit()
                        })();
                        match done {
                            Ok(()) => break,
                            Err(Error::Deadlock { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(db.range("row ".."row~").unwrap().count(), 100);
}

#[test]
fn a_close_ends_the_wait() {
    let db = open();
    let mut holder = impatient(&db);
    holder.put("a", "").unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| begin(&db, None).put("a", ""));
        let waiting = || db.metrics().stalls.iter().map(|stall| stall.waiting).sum::<u64>();
        while waiting() == 0 {
            std::thread::yield_now();
        }
        db.close().unwrap();
        assert!(matches!(waiter.join().unwrap(), Err(Error::Closed)));
    });
}
