//! Optimistic transactions: what they see, what their commit refuses, and what is left of them.

use std::path::PathBuf;

use sateen::vfs::MemVfs;
use sateen::{
    Db, Error, IngestOptions, Options, ReadOptions, Retry, SstFileWriter, Transaction,
    TransactionOptions, WriteBatch, WriteOptions,
};

use crate::support::common::{appending, as_vfs, contents, tiny};

fn open() -> Db {
    let mut options = tiny();
    options.column_family.merge_operator = Some(appending());
    options.column_family.memtable_bytes = 1 << 20;
    Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).unwrap()
}

fn without_snapshot(db: &Db) -> Transaction {
    db.transaction_with(&TransactionOptions { set_snapshot: false, ..Default::default() })
}

fn assert_busy(done: sateen::Result<()>, named: &str) {
    match done {
        Err(ref error @ Error::Busy { ref key, ref column_family }) => {
            assert_eq!((key.as_slice(), column_family.as_str()), (named.as_bytes(), "default"));
            assert_eq!(error.retry(), Retry::NewTransaction);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_sees_its_own_writes_and_its_snapshot() {
    let db = open();
    let other = db.create_column_family("other", tiny().column_family).unwrap();
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    let mut transaction = db.transaction();
    transaction.put("c", "3").unwrap();
    transaction.delete("a").unwrap();
    transaction.merge("b", "+").unwrap();
    transaction.to(&other).put("a", "other").unwrap();
    db.put("d", "later").unwrap();
    let shown: Vec<_> = transaction.iter().unwrap().map(Result::unwrap).collect();
    assert_eq!(shown, [("b".into(), "2+".into()), ("c".into(), "3".into())]);
    assert_eq!(transaction.get("a").unwrap(), None);
    assert_eq!(transaction.get("d").unwrap(), None, "it is newer than the snapshot");
    assert_eq!(transaction.to(&other).get("a").unwrap().unwrap(), b"other");
    let newest = transaction.reading(&db.default_column_family(), ReadOptions::default()).get("d");
    assert_eq!(newest.unwrap().unwrap(), b"later");
    assert_eq!(db.get("c").unwrap(), None);
    transaction.commit().unwrap();
    assert_eq!(db.get("b").unwrap().unwrap(), b"2+");
    assert_eq!((db.iter().unwrap().count(), other.iter().unwrap().count()), (3, 1));
    assert!(matches!(transaction.put("x", ""), Err(Error::TransactionOver("committed"))));
    assert!(matches!(transaction.commit(), Err(Error::TransactionOver("committed"))));
}

#[test]
fn a_key_that_others_wrote_is_named() {
    let db = open();
    // By a plain write, a batch, another transaction, a deletion and a range deletion.
    for how in 0..5 {
        let mut transaction = db.transaction();
        transaction.put("other", "1").unwrap();
        transaction.put("key", "mine").unwrap();
        match how {
            0 => db.put("key", "theirs").unwrap(),
            1 => {
                let mut batch = sateen::WriteBatch::new();
                batch.put("x", "theirs").unwrap();
                batch.merge("key", "theirs").unwrap();
                db.write(&batch, &WriteOptions::default()).unwrap();
            }
            2 => {
                let mut theirs = db.transaction();
                theirs.put("key", "theirs").unwrap();
                theirs.commit().unwrap();
            }
            3 => db.delete("key").unwrap(),
            _ => db.delete_range("k", "l").unwrap(),
        }
        let before = contents(&db);
        assert_busy(transaction.commit(), "key");
        assert_busy(transaction.commit(), "key");
        assert_eq!(contents(&db), before, "nothing of it was written");
        transaction.rollback().unwrap();
        assert!(matches!(transaction.get("key"), Err(Error::TransactionOver("rolled back"))));
    }
}

#[test]
fn other_keys_and_earlier_writes_are_no_conflict() {
    let db = open();
    db.put("key", "0").unwrap();
    let mut transaction = db.transaction();
    transaction.put("key", "1").unwrap();
    for number in 0..2000 {
        db.put(format!("other{number}"), "").unwrap();
    }
    transaction.commit().unwrap();
    // Without a snapshot the tracking begins at the write.
    let mut transaction = without_snapshot(&db);
    db.put("key", "2").unwrap();
    assert_eq!(transaction.get("key").unwrap().unwrap(), b"2");
    transaction.put("key", "3").unwrap();
    transaction.commit().unwrap();
    // A write that is not tracked wins.
    let mut transaction = db.transaction();
    transaction.put_untracked("key", "4").unwrap();
    transaction.merge_untracked("key", "5").unwrap();
    transaction.delete_untracked("gone").unwrap();
    db.put("key", "theirs").unwrap();
    db.put("gone", "theirs").unwrap();
    transaction.commit().unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), b"45");
    assert_eq!(db.get("gone").unwrap(), None);
}

#[test]
fn a_transaction_that_only_reads_is_validated() {
    let db = open();
    let mut transaction = db.transaction();
    assert_eq!(transaction.get_for_update("key").unwrap(), None);
    transaction.commit().unwrap();
    let mut transaction = db.transaction();
    transaction.get_for_update("key").unwrap();
    db.put("key", "").unwrap();
    assert_busy(transaction.commit(), "key");
    // A plain read is not: write skew is allowed.
    let mut transaction = db.transaction();
    transaction.get("key").unwrap();
    db.put("key", "1").unwrap();
    transaction.put("else", "2").unwrap();
    transaction.commit().unwrap();
}

#[test]
fn save_points_bring_back_writes_keys_and_snapshot() {
    let db = open();
    let mut transaction = db.transaction();
    assert!(matches!(transaction.rollback_to_save_point(), Err(Error::NoSavePoint)));
    transaction.put("a", "1").unwrap();
    transaction.set_save_point();
    transaction.put("a", "2").unwrap();
    transaction.put("b", "2").unwrap();
    let snapshot = transaction.snapshot().unwrap().clone();
    db.put("b", "theirs").unwrap();
    transaction.set_snapshot();
    assert_eq!((transaction.tracked_keys(), transaction.count()), (2, 3));
    transaction.rollback_to_save_point().unwrap();
    assert_eq!((transaction.tracked_keys(), transaction.count()), (1, 1));
    assert!(*transaction.snapshot().unwrap() == snapshot);
    assert_eq!(transaction.get("a").unwrap().unwrap(), b"1");
    assert_eq!(transaction.get("b").unwrap(), None);
    transaction.set_save_point();
    transaction.put("c", "3").unwrap();
    transaction.pop_save_point().unwrap();
    assert!(matches!(transaction.rollback_to_save_point(), Err(Error::NoSavePoint)));
    transaction.commit().unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"1");
    assert_eq!(db.get("b").unwrap().unwrap(), b"theirs");
    assert_eq!(db.get("c").unwrap().unwrap(), b"3");
}

#[test]
fn what_memtables_do_not_tell_is_to_be_tried_again() {
    let db = open();
    // A key that was written and flushed: nobody knows.
    let mut transaction = db.transaction();
    transaction.put("key", "1").unwrap();
    db.put("key", "theirs").unwrap();
    db.flush().unwrap();
    let error = transaction.commit().unwrap_err();
    assert!(matches!(&error, Error::TryAgain { key, .. } if key == b"key"), "{error}");
    assert_eq!(error.retry(), Retry::NewTransaction);
    // A flush alone is no reason: the key's bucket was not written.
    let mut transaction = db.transaction();
    transaction.put("key", "2").unwrap();
    db.put("another key", "").unwrap();
    db.flush().unwrap();
    transaction.commit().unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), b"2");
    // Ingested entries were never in a memtable.
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
    let path = PathBuf::from("/file");
    let mut writer = SstFileWriter::create_with(as_vfs(&vfs), &path, &tiny()).unwrap();
    writer.put("key", "ingested").unwrap();
    writer.finish().unwrap();
    let mut transaction = db.transaction();
    transaction.put("key", "1").unwrap();
    db.ingest(&[path], &IngestOptions::default()).unwrap();
    let error = transaction.commit().unwrap_err();
    assert!(matches!(&error, Error::TryAgain { .. }), "{error}");
    assert_eq!(db.get("key").unwrap().unwrap(), b"ingested");
}

#[test]
fn what_cannot_be_done_is_refused_and_changes_nothing() {
    let db = open();
    let (other, gone) = (open(), db.create_column_family("gone", tiny().column_family).unwrap());
    let mut transaction = db.transaction();
    let refused = transaction.to(&other.default_column_family()).put("a", "").unwrap_err();
    assert!(refused.to_string().contains("belongs to another database"), "{refused}");
    assert!(transaction.put(vec![0; 70_000], "").is_err());
    assert!(transaction.get_for_update(vec![0; 70_000]).is_err());
    assert_eq!((transaction.count(), transaction.tracked_keys()), (0, 0));
    transaction.to(&gone).put("a", "").unwrap();
    transaction.put("b", "").unwrap();
    db.drop_column_family(&gone).unwrap();
    assert!(matches!(transaction.commit(), Err(Error::NoSuchColumnFamily(_))));
    assert!(matches!(transaction.to(&gone).get("a"), Err(Error::NoSuchColumnFamily(_))));
    let skips = WriteOptions { ignore_missing_column_families: true, ..WriteOptions::default() };
    transaction.commit_with(&skips).unwrap();
    assert!(db.contains_key("b").unwrap());
    // Neither the database nor its operator would take it.
    let plain = Db::open_with(as_vfs(&MemVfs::new()), "/db", tiny(), &[]).unwrap();
    let mut transaction = plain.transaction();
    transaction.merge("a", "1").unwrap();
    assert!(matches!(transaction.commit(), Err(Error::NoMergeOperator(_))));
    plain.close().unwrap();
    let mut transaction = plain.transaction();
    assert!(matches!(transaction.get("a"), Err(Error::Closed)));
    transaction.put("a", "1").unwrap();
    assert!(matches!(transaction.commit(), Err(Error::Closed)));
}

#[test]
fn a_database_that_is_only_read_has_transactions_that_read() {
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
    db.put("a", "1").unwrap();
    db.close().unwrap();
    drop(db);
    let db = Db::open_read_only_with(as_vfs(&vfs), "/db", Options::default()).unwrap();
    let mut transaction = db.transaction();
    assert_eq!(transaction.get_for_update("a").unwrap().unwrap(), b"1");
    transaction.put("b", "2").unwrap();
    assert_eq!(transaction.iter().unwrap().count(), 2);
    assert!(matches!(transaction.commit(), Err(Error::ReadOnly(_))));
}

/// Without a log, and synced: the same validation.
#[test]
fn every_way_to_write_is_validated() {
    let db = open();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    for write in [unlogged, WriteOptions::sync(), WriteOptions::default()] {
        let mut transaction = db.transaction();
        transaction.put("a", "1").unwrap();
        transaction.commit_with(&write).unwrap();
        let mut transaction = db.transaction();
        transaction.put("a", "2").unwrap();
        db.writing(&write).put("a", "theirs").unwrap();
        assert_busy(transaction.commit_with(&write), "a");
    }
}

#[test]
fn an_undone_transaction_goes_on() {
    let db = open();
    let options = TransactionOptions {
        lock_timeout: Some(std::time::Duration::ZERO),
        ..TransactionOptions::pessimistic()
    };
    let (mut one, mut other) = (db.transaction_with(&options), db.transaction_with(&options));
    one.put("a", "1").unwrap();
    one.set_save_point();
    assert!(other.put("a", "2").is_err());
    one.undo().unwrap();
    other.put("a", "2").unwrap();
    assert!(matches!(one.rollback_to_save_point(), Err(Error::NoSavePoint)));
    one.put("b", "1").unwrap();
    one.commit().unwrap();
    assert!(matches!(one.undo(), Err(Error::TransactionOver("committed"))));
    other.commit().unwrap();
    assert_eq!(contents(&db).len(), 2);
    let mut optimistic = db.transaction();
    optimistic.get_for_update("a").unwrap();
    db.put("a", "3").unwrap();
    assert!(matches!(optimistic.commit(), Err(Error::Busy { .. })));
    optimistic.undo().unwrap();
    optimistic.put("c", "").unwrap();
    optimistic.commit().unwrap();
}

#[test]
fn a_batch_is_taken_over_whole_or_not_at_all() {
    let db = open();
    let other = db.create_column_family("other", tiny().column_family).unwrap();
    let mut batch = WriteBatch::new();
    batch.put("a", "1").unwrap();
    batch.to(&other).delete("b").unwrap();
    batch.put_log_data("log").unwrap();
    let mut transaction = db.transaction();
    transaction.put("z", "0").unwrap();
    transaction.rebuild_from(&batch).unwrap();
    assert_eq!((transaction.count(), transaction.tracked_keys()), (3, 3));
    batch.delete_range("a", "b").unwrap();
    let refused = transaction.rebuild_from(&batch).unwrap_err();
    assert!(refused.to_string().contains("range deletions"), "{refused}");
    assert_eq!((transaction.count(), transaction.tracked_keys()), (3, 3));
    assert_eq!(transaction.batch().batch().items().count(), 4, "the log data is there once");
    db.drop_column_family(&other).unwrap();
    let mut one = WriteBatch::new();
    one.to(&other).put("b", "1").unwrap();
    assert!(matches!(transaction.rebuild_from(&one), Err(Error::NoSuchColumnFamily(_))));
}

#[test]
fn a_locked_write_waits_for_all_its_keys() {
    let db = open();
    let options = TransactionOptions {
        lock_timeout: Some(std::time::Duration::ZERO),
        ..TransactionOptions::pessimistic()
    };
    let mut batch = WriteBatch::new();
    for key in ["b", "a", "b"] {
        batch.put(key, key).unwrap();
    }
    let mut holder = db.transaction_with(&options);
    holder.put("b", "held").unwrap();
    assert!(matches!(db.write_locked(&batch, &options), Err(Error::LockTimedOut { .. })));
    assert!(contents(&db).is_empty());
    holder.put("a", "no lock is left").unwrap();
    holder.undo().unwrap();
    db.write_locked(&batch, &options).unwrap();
    assert_eq!(contents(&db).len(), 2);
    holder.put("a", "").unwrap();
    assert!(db.write_locked(&batch, &TransactionOptions::default()).is_err());
    batch.delete_range("a", "b").unwrap();
    assert!(db.write_locked(&batch, &options).unwrap_err().to_string().contains("range"));
}

#[test]
fn a_transaction_has_a_largest_size() {
    let db = open();
    let options =
        TransactionOptions { write_bytes_max: Some(100), ..TransactionOptions::default() };
    let mut transaction = db.transaction_with(&options);
    transaction.put("a", [b'x'; 60]).unwrap();
    let refused = transaction.put("b", [b'x'; 60]).unwrap_err();
    assert!(matches!(refused, Error::TransactionSize { max: 100, .. }), "{refused}");
    assert!(transaction.put_log_data([0; 60]).is_err());
    assert_eq!((transaction.count(), transaction.tracked_keys()), (1, 1));
    transaction.commit().unwrap();
    assert_eq!(contents(&db).len(), 1);
}

#[test]
fn a_dropped_family_is_named() {
    let db = open();
    let ends: [(&str, TransactionOptions); 2] = [
        ("optimistic", TransactionOptions::default()),
        ("pessimistic", TransactionOptions::pessimistic()),
    ];
    for (name, options) in ends {
        let family = db.create_column_family(name, tiny().column_family).unwrap();
        let mut transaction = db.transaction_with(&options);
        transaction.to(&family).put("a", "1").unwrap();
        transaction.put("b", "1").unwrap();
        let mut batch = WriteBatch::new();
        batch.to(&family).put("a", "1").unwrap();
        db.drop_column_family(&family).unwrap();
        let named = |done: sateen::Result<()>| {
            let error = done.unwrap_err();
            assert!(matches!(&error, Error::NoSuchColumnFamily(gone) if gone == name), "{error}");
        };
        named(transaction.commit());
        named(db.write(&batch, &WriteOptions::default()));
        named(db.transaction().rebuild_from(&batch));
        named(db.write_locked(&batch, &TransactionOptions::pessimistic()));
    }
    // One that this database never had has no name.
    let other = open();
    let create = |name| other.create_column_family(name, tiny().column_family).unwrap();
    let [_, _, last] = ["one", "two", "three"].map(create);
    let mut batch = WriteBatch::new();
    batch.to(&last).put("a", "1").unwrap();
    let error = db.write(&batch, &WriteOptions::default()).unwrap_err();
    assert!(
        matches!(&error, Error::NoSuchColumnFamily(name) if name == "of the number 3"),
        "{error}"
    );
}
