//! Prepared transactions: they survive, alone or with their locks, until they are committed or
//! rolled back.

use std::sync::Arc;

use sateen::vfs::{CrashChoice, Fault, FaultRule, FaultVfs, MemVfs, VfsOperation};
use sateen::{Db, Error, Options, Transaction, TransactionOptions, WalMode, WriteOptions};

use crate::support::common::{as_vfs, assert_sound, contents, tiny};

fn open(vfs: &MemVfs) -> Db {
    Db::open_with(as_vfs(vfs), "/db", tiny(), &[]).unwrap()
}

fn begin(db: &Db) -> Transaction {
    let lock_timeout = Some(std::time::Duration::ZERO);
    let write = WriteOptions::sync();
    let options = TransactionOptions { lock_timeout, write, ..TransactionOptions::pessimistic() };
    db.transaction_with(&options)
}

#[test]
fn a_prepared_transaction_survives_with_its_locks() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    let other = db.create_column_family("other", tiny().column_family).unwrap();
    db.put("a", "0").unwrap();
    for name in ["to commit", "to roll back"] {
        let mut transaction = begin(&db);
        transaction.put(name, "1").unwrap();
        transaction.to(&other).put(name, vec![b'x'; 3 << 20]).unwrap();
        transaction.delete(format!("{name} deleted")).unwrap();
        transaction.prepare(name).unwrap();
        assert_eq!(transaction.name(), Some(name.as_bytes()));
        assert!(transaction.put("b", "").is_err() && transaction.get_for_update("b").is_err());
        assert_eq!(transaction.get(name).unwrap().unwrap(), b"1");
    }
    assert_eq!(db.get("to commit").unwrap(), None);
    let image = vfs.crash_image(CrashChoice::SyncedOnly);
    drop((db, other));
    // After a crash, and a second time after a flush and a close.
    for round in 0..2 {
        let db = open(&image);
        let refused = begin(&db).put("to commit", "").unwrap_err();
        assert!(matches!(refused, Error::LockTimedOut { .. }), "{refused}");
        assert_eq!(db.list_prepared().unwrap(), [b"to commit".to_vec(), b"to roll back".to_vec()]);
        assert_eq!(db.column_families(), ["default", "other"]);
        begin(&db).put("a", "free").unwrap();
        if round == 0 {
            db.flush().unwrap();
            db.close().unwrap();
        }
    }
    let listed = Db::list_column_families_with(&image, "/db").unwrap();
    assert_eq!(listed, ["default", "other"]);
    let db = open(&image);
    let other = db.column_family("other").unwrap();
    let mut transaction = db.prepared_transaction("to commit").unwrap().unwrap();
    assert_eq!(transaction.to(&other).get("to commit").unwrap().unwrap().len(), 3 << 20);
    assert!(db.prepared_transaction("to commit").is_err(), "it is taken");
    transaction.commit().unwrap();
    assert!(matches!(transaction.commit(), Err(Error::TransactionOver("committed"))));
    db.prepared_transaction("to roll back").unwrap().unwrap().rollback().unwrap();
    assert!(db.prepared_transaction("to roll back").unwrap().is_none());
    begin(&db).put("to commit", "").unwrap();
    begin(&db).put("to roll back", "").unwrap();
    db.close().unwrap();
    let db = open(&image);
    assert!(db.list_prepared().unwrap().is_empty());
    assert_eq!(db.get("to commit").unwrap().unwrap(), b"1");
    assert_eq!(db.get("to roll back").unwrap(), None);
    let other = db.column_family("other").unwrap();
    assert!(
        other.contains_key("to commit").unwrap() && !other.contains_key("to roll back").unwrap()
    );
    assert_sound(&db);
}

#[test]
fn a_dropped_handle_leaves_it_prepared() {
    let db = open(&MemVfs::new());
    let mut transaction = begin(&db);
    transaction.put("a", "1").unwrap();
    transaction.prepare("one").unwrap();
    let refused = begin(&db).prepare("one").unwrap_err();
    assert!(refused.to_string().contains("has the name one"), "{refused}");
    drop(transaction);
    assert!(begin(&db).put("a", "").is_err(), "it is locked");
    let mut again = db.prepared_transaction("one").unwrap().unwrap();
    assert_eq!(again.get("a").unwrap().unwrap(), b"1");
    again.commit().unwrap();
    begin(&db).put("a", "").unwrap();
    let mut reused = begin(&db);
    reused.put("a", "2").unwrap();
    reused.prepare("one").unwrap();
    reused.rollback().unwrap();
    assert_eq!(contents(&db).len(), 1);
    assert!(db.list_prepared().unwrap().is_empty());
}

#[test]
fn what_cannot_be_prepared_is_refused() {
    let db = open(&MemVfs::new());
    assert!(db.transaction().prepare("a").unwrap_err().to_string().contains("only a pessimistic"));
    let mut transaction = begin(&db);
    assert!(transaction.prepare("").is_err() && transaction.prepare(vec![b'x'; 256]).is_err());
    transaction.prepare(vec![0xff; 255]).unwrap();
    assert!(transaction.prepare("twice").is_err());
    assert!(transaction.rollback_to_save_point().is_err());
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    assert!(transaction.commit_with(&unlogged).unwrap_err().to_string().contains("WAL"));
    transaction.commit().unwrap();
    assert!(db.create_column_family("\0prepared", tiny().column_family).is_err());
    let families = [("\0prepared", tiny().column_family)];
    assert!(Db::open_with(as_vfs(&MemVfs::new()), "/db", tiny(), &families).is_err());
    let unlogged = Options { wal: WalMode::Off, ..tiny() };
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", unlogged, &[]).unwrap();
    let mut transaction = db.transaction_with(&TransactionOptions::pessimistic());
    transaction.put("a", "").unwrap();
    assert!(transaction.prepare("a").unwrap_err().to_string().contains("WAL"));
    assert!(db.list_prepared().unwrap().is_empty());
    transaction.commit().unwrap();
}

/// What was accepted at the prepare is accepted at the commit.
#[test]
fn a_lower_limit_for_values_does_not_hold_up_a_commit() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    for name in ["now", "after an open", "dropped family"] {
        let family = db.create_column_family(name, tiny().column_family).unwrap();
        let mut transaction = begin(&db);
        transaction.put(name, vec![b'x'; 5000]).unwrap();
        transaction.to(&family).put("a", vec![b'x'; 6000]).unwrap();
        transaction.prepare(name).unwrap();
    }
    db.set_options(&[("value_bytes_max", "1000")]).unwrap();
    assert!(begin(&db).put("a", vec![b'x'; 5000]).is_err());
    db.prepared_transaction("now").unwrap().unwrap().commit().unwrap();
    assert_eq!(db.get("now").unwrap().unwrap().len(), 5000);
    db.close().unwrap();
    drop(db);
    let options = Options { value_bytes_max: 1000, ..tiny() };
    let db = Db::open_with(as_vfs(&vfs), "/db", options, &[]).unwrap();
    db.prepared_transaction("after an open").unwrap().unwrap().commit().unwrap();
    assert_eq!(db.column_family("after an open").unwrap().get("a").unwrap().unwrap().len(), 6000);
    db.drop_column_family(&db.column_family("dropped family").unwrap()).unwrap();
    let mut transaction = db.prepared_transaction("dropped family").unwrap().unwrap();
    let refused = transaction.commit().unwrap_err();
    assert!(matches!(&refused, Error::NoSuchColumnFamily(name) if name == "dropped family"));
    let write = WriteOptions { ignore_missing_column_families: true, ..WriteOptions::sync() };
    transaction.commit_with(&write).unwrap();
    assert_eq!(db.get("dropped family").unwrap().unwrap().len(), 5000);
    assert!(db.list_prepared().unwrap().is_empty());
}

/// The locks of what it only read, and of ranges, end with the close, as the page says.
#[test]
fn locks_of_what_is_written_outlast_a_close() {
    let vfs = MemVfs::new();
    let is_locked = |db: &Db, key: &str| match begin(db).put(key, "") {
        Ok(()) => false,
        Err(Error::LockTimedOut { .. }) => true,
        Err(error) => panic!("{error}"),
    };
    let db = open(&vfs);
    let mut transaction = begin(&db);
    transaction.put("written", "").unwrap();
    transaction.get_for_update("read").unwrap();
    transaction.lock_range("s".."t").unwrap();
    transaction.prepare("one").unwrap();
    drop(transaction);
    assert!(["written", "read", "s1"].iter().all(|key| is_locked(&db, key)));
    db.close().unwrap();
    drop(db);
    let db = open(&vfs);
    assert!(is_locked(&db, "written") && !is_locked(&db, "read") && !is_locked(&db, "s1"));
}

/// Returns a database that has a family for prepared transactions, on a disk with faults.
fn prepared_once() -> (MemVfs, FaultVfs, Db) {
    let vfs = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&vfs));
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]).unwrap();
    begin(&db).prepare("first").unwrap();
    db.prepared_transaction("first").unwrap().unwrap().rollback().unwrap();
    (vfs, faulty, db)
}

/// Has a prepare fail whose record is written: its sync fails.
fn fail_prepare(faulty: &FaultVfs, transaction: &mut Transaction, name: &str) {
    let rule = FaultRule::new(Fault::Io).on(VfsOperation::Sync).path_contains(".wal");
    let rule = faulty.add(rule.nth(1));
    transaction.prepare(name).unwrap_err();
    faulty.remove_rule(rule);
}

/// A prepare that failed may be there after all. It is gone once the transaction has ended, and the
/// next transaction of its name is not mixed up with it.
#[test]
fn what_a_failed_prepare_left_goes_with_the_transaction() {
    for how in ["committed", "rolled back", "another", "dropped"] {
        let (vfs, faulty, db) = prepared_once();
        let mut transaction = begin(&db);
        // In several parts.
        for part in 0..3 {
            transaction.put(format!("large{part}"), vec![b'x'; 1 << 20]).unwrap();
        }
        fail_prepare(&faulty, &mut transaction, "name");
        db.resume().unwrap();
        assert!(db.list_prepared().unwrap().is_empty(), "{how}: nobody was told so");
        assert_eq!((transaction.name(), transaction.is_prepared()), (Some(&b"name"[..]), false));
        match how {
            "committed" => transaction.commit().unwrap(),
            "rolled back" => transaction.rollback().unwrap(),
            _ => drop(transaction),
        }
        if how == "another" {
            let mut another = begin(&db);
            another.put("small", "1").unwrap();
            another.prepare("name").unwrap();
        }
        db.close().unwrap();
        let db = open(&vfs);
        let there = db.list_prepared().unwrap();
        if ["committed", "rolled back"].contains(&how) {
            assert!(there.is_empty(), "{how}");
            assert_eq!(db.contains_key("large2").unwrap(), how == "committed");
            continue;
        }
        assert_eq!(there, [b"name"], "{how}");
        let mut left = db.prepared_transaction("name").unwrap().unwrap();
        assert_eq!(left.contains_key("small").unwrap(), how == "another");
        assert_eq!(left.contains_key("large2").unwrap(), how == "dropped");
        left.commit().unwrap();
    }
}

/// What a failed prepare left may have the keys of a later transaction, because its locks went with
/// it. An open gives both to whoever ends them, and nobody waits.
#[test]
fn prepared_transactions_may_share_keys_after_a_failed_prepare() {
    let (vfs, faulty, db) = prepared_once();
    let mut left = begin(&db);
    left.put("key", "left").unwrap();
    fail_prepare(&faulty, &mut left, "left");
    drop(left);
    db.resume().unwrap();
    let mut later = begin(&db);
    later.put("key", "later").unwrap();
    later.prepare("later").unwrap();
    drop(later);
    db.close().unwrap();
    let db = open(&vfs);
    assert_eq!(db.list_prepared().unwrap().len(), 2);
    assert!(matches!(begin(&db).put("key", ""), Err(Error::LockTimedOut { .. })));
    db.prepared_transaction("left").unwrap().unwrap().rollback().unwrap();
    db.prepared_transaction("later").unwrap().unwrap().commit().unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), b"later");
    begin(&db).put("key", "").unwrap();
}

/// At every operation of the file system, in several ways that what was not synced may have
/// survived: the prepared transactions and the contents are those of one moment, and no step that
/// returned is undone. For some of them, the same after a second crash during the recovery.
#[test]
fn every_crash_leaves_whole_steps() {
    let vfs = MemVfs::new();
    let recording = vfs.record();
    let db = open(&vfs);
    let state = |db: &Db| (db.list_prepared().unwrap(), contents(db));
    let mut states = vec![state(&db)];
    let mut promised = vec![(recording.len(), 0)];
    let mut begun = vec![(0, 0)];
    let mut step = |act: &mut dyn FnMut()| {
        begun.push((recording.len(), states.len()));
        act();
        states.push(state(&db));
        promised.push((recording.len(), states.len() - 1));
    };
    let mut open_ones = Vec::new();
    for number in 0..12_u32 {
        let mut transaction = begin(&db);
        for part in 0..3 {
            transaction.put(format!("{number}.{part}"), vec![b'v'; 300]).unwrap();
        }
        step(&mut || transaction.prepare(format!("t{number}")).unwrap());
        open_ones.push(transaction);
        if number % 4 == 1 {
            step(&mut || db.flush().unwrap());
        }
        if number % 2 == 1 {
            let mut first = open_ones.remove(0);
            step(&mut || match number % 3 {
                0 => first.rollback().unwrap(),
                _ => first.commit().unwrap(),
            });
        }
    }
    drop(open_ones);
    let (mut images, mut doubles) = (0, 0);
    for at in (promised[0].0..recording.len()).step_by(3) {
        let least = promised.iter().filter(|(n, _)| *n <= at).map(|(_, s)| *s).max().unwrap();
        let most = begun.iter().filter(|(n, _)| *n <= at).map(|(_, s)| *s).max().unwrap();
        let examine = |image: &MemVfs, what: &str| {
            let left = state(&open(image));
            let found = (least..=most).any(|number| states[number] == left);
            assert!(found, "{at} {what}: none of the states {least} to {most}: {:?}", left.0);
        };
        for (nth, choice) in recording.choices_at(at, 2).into_iter().enumerate() {
            let image = recording.image_at(at, choice);
            images += 1;
            if (images + nth) % 11 > 0 {
                examine(&image, &format!("{choice:?}"));
                continue;
            }
            let recovery = image.record();
            examine(&image, &format!("{choice:?}"));
            for again in (0..=recovery.len()).step_by(2) {
                for twice in [CrashChoice::SyncedOnly, CrashChoice::Everything] {
                    let what = format!("{choice:?}, then operation {again} of recovery, {twice:?}");
                    examine(&recovery.image_at(again, twice), &what);
                    doubles += 1;
                }
            }
        }
    }
    println!("{images} images, {doubles} of two crashes");
    assert!(images > 100 && doubles > 100);
}
