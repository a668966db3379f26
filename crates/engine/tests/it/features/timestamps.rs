//! Keys with timestamps: reads as of each moment against a model, and what is refused.

use std::collections::BTreeMap;

use sateen::vfs::{CrashChoice, MemVfs};
use sateen::{
    ColumnFamilyOptions, Comparator, Db, Error, Options, ReadOptions, TimestampedCursor,
    TimestampedFamily, Transaction, TransactionOptions, WriteBatch, WriteOptions,
};

use crate::support::common::{Random, as_vfs, tiny};

/// Keys by their bytes, newer versions first.
fn by_key() -> Comparator {
    Comparator::timestamped("by key", 8, |a, b| {
        let ((a, a_time), (b, b_time)) = (a.split_at(a.len() - 8), b.split_at(b.len() - 8));
        a.cmp(b).then_with(|| b_time.cmp(a_time))
    })
}

fn options() -> Options {
    let mut options = tiny();
    options.column_family.comparator = by_key();
    options
}

fn open(vfs: &MemVfs) -> (Db, TimestampedFamily) {
    let db = Db::open_with(as_vfs(vfs), "/db", options(), &[]).unwrap();
    let family = db.default_column_family().timestamped().unwrap();
    (db, family)
}

fn at(time: u64) -> [u8; 8] {
    time.to_be_bytes()
}

/// The versions of each key, by time. `None` is a deletion.
type Model = BTreeMap<Vec<u8>, BTreeMap<u64, Option<Vec<u8>>>>;

/// What a cursor shows: keys, times and values.
type Shown = Vec<(Vec<u8>, u64, Vec<u8>)>;

fn visible(model: &Model, time: u64) -> Shown {
    let newest = |(key, versions): (&Vec<u8>, &BTreeMap<u64, Option<Vec<u8>>>)| {
        let (time, value) = versions.range(..=time).next_back()?;
        Some((key.clone(), *time, value.clone()?))
    };
    model.iter().filter_map(newest).collect()
}

fn stands(cursor: &TimestampedCursor) -> Option<(Vec<u8>, u64, Vec<u8>)> {
    let time = || u64::from_be_bytes(cursor.timestamp().try_into().unwrap());
    cursor.valid().then(|| (cursor.key().to_vec(), time(), cursor.value().to_vec()))
}

fn walk(cursor: &mut TimestampedCursor, backwards: bool) -> Shown {
    let mut shown = Shown::new();
    while let Some(entry) = stands(cursor) {
        shown.push(entry);
        if backwards { cursor.prev() } else { cursor.next() }
    }
    cursor.status().unwrap();
    shown
}

#[test]
fn reads_as_of_a_time_are_those_of_a_model() {
    for seed in 0..6 {
        let vfs = MemVfs::new();
        let (mut db, mut family) = open(&vfs);
        let mut random = Random::new(seed);
        let mut model = Model::new();
        let write = WriteOptions::default();
        for step in 0..1500_u64 {
            // Not always in the order of time, and a key again at the same time.
            let time = 1 + random.below(40);
            let key = format!("key{}", "x".repeat(random.below(12) as usize)).into_bytes();
            let versions = model.entry(key.clone()).or_default();
            if random.below(4) == 0 {
                family.delete(&key, at(time), &write).unwrap();
                versions.insert(time, None);
            } else {
                let value = format!("value {step}").into_bytes();
                family.put(&key, at(time), &value, &write).unwrap();
                versions.insert(time, Some(value));
            }
            if random.below(300) == 0 {
                let latest = random.below(45);
                let before = model.values().map(BTreeMap::len).sum::<usize>();
                model.values_mut().for_each(|versions| drop(versions.split_off(&(latest + 1))));
                let left = model.values().map(BTreeMap::len).sum::<usize>();
                let deleted = family.trim_history(at(latest)).unwrap();
                assert_eq!(deleted, (before - left) as u64, "{seed} {step}");
            }
            match random.below(200) {
                0 => db.flush().unwrap(),
                1 => {
                    db.close().unwrap();
                    (db, family) = open(&vfs);
                }
                _ => {}
            }
        }
        let read = ReadOptions::default();
        for time in [0, 1, 7, 20, 39, 40, u64::MAX] {
            let expected = visible(&model, time);
            let mut cursor = family.cursor(at(time), None::<&[u8]>, &read).unwrap();
            cursor.seek_to_first();
            assert_eq!(walk(&mut cursor, false), expected, "{seed} {time}");
            cursor.seek_to_last();
            let reversed: Shown = expected.iter().rev().cloned().collect();
            assert_eq!(walk(&mut cursor, true), reversed, "{seed} {time} backwards");
            for key in model.keys().cloned().chain([b"".to_vec(), b"keyxx!".to_vec()]) {
                let found = family.get(&key, at(time), &read).unwrap();
                let wanted = expected.iter().find(|(other, ..)| *other == key);
                assert_eq!(found.map(|it| it.value), wanted.map(|it| it.2.clone()), "{key:?}");
                cursor.seek(&key);
                let next = expected.iter().position(|(other, ..)| *other >= key);
                let rest = next.map_or(&[][..], |next| &expected[next..]);
                assert_eq!(stands(&cursor).as_ref(), rest.first(), "{seed} {time} {key:?}");
                // One on and back again.
                if rest.len() > 1 {
                    cursor.next();
                    cursor.prev();
                    assert_eq!(stands(&cursor).as_ref(), rest.first(), "{seed} {time} {key:?}");
                }
                cursor.seek_for_prev(&key);
                let before = expected.iter().rev().find(|(other, ..)| *other <= key);
                assert_eq!(stands(&cursor).as_ref(), before, "{seed} {time} {key:?}");
                let bounded = ReadOptions { lower_bound: Some(key.clone()), ..read.clone() };
                let mut above = family.cursor(at(time), None::<&[u8]>, &bounded).unwrap();
                above.seek_to_first();
                assert_eq!(walk(&mut above, false), rest, "{seed} {time} from {key:?}");
                let bounded = ReadOptions { upper_bound: Some(key.clone()), ..read.clone() };
                let mut below = family.cursor(at(time), None::<&[u8]>, &bounded).unwrap();
                below.seek_to_first();
                let end = next.unwrap_or(expected.len());
                assert_eq!(walk(&mut below, false), expected[..end], "{seed} {time} to {key:?}");
            }
        }
        // All versions of a span of time, newer ones of a key first.
        let mut cursor = family.cursor(at(30), Some(at(10)), &read).unwrap();
        let of_key = |(key, versions): (&Vec<u8>, &BTreeMap<u64, Option<Vec<u8>>>)| {
            let between = versions.range(10..=30).rev();
            let entry = |(time, value): (&u64, &Option<Vec<u8>>)| {
                (key.clone(), *time, value.clone().unwrap_or_default())
            };
            between.map(entry).collect::<Vec<_>>()
        };
        let expected: Shown = model.iter().flat_map(of_key).collect();
        cursor.seek_to_first();
        assert_eq!(walk(&mut cursor, false), expected, "{seed}");
        cursor.seek_to_last();
        let reversed: Shown = expected.into_iter().rev().collect();
        assert_eq!(walk(&mut cursor, true), reversed, "{seed}");
    }
}

#[test]
fn history_is_cut_off_once_and_for_all() {
    let vfs = MemVfs::new();
    let (db, family) = open(&vfs);
    let (write, read) = (WriteOptions::default(), ReadOptions::default());
    for time in 1..6 {
        family.put("fig", at(time), format!("{time}"), &write).unwrap();
    }
    assert_eq!(family.history_low(&read).unwrap(), None);
    family.raise_history_low(at(3)).unwrap();
    let refused = family.raise_history_low(at(2)).unwrap_err();
    assert!(refused.to_string().contains("does not become smaller"), "{refused}");
    family.raise_history_low(at(3)).unwrap();
    let refused = family.get("fig", at(2), &read).unwrap_err();
    assert!(refused.to_string().contains("before the oldest one"), "{refused}");
    assert_eq!(family.get("fig", at(3), &read).unwrap().unwrap().value, b"3");
    db.flush().unwrap();
    db.close().unwrap();
    let (_db, family) = open(&vfs);
    assert_eq!(family.history_low(&read).unwrap().unwrap(), at(3));
    let mut cursor = family.cursor(at(9), Some(at(0)), &read).unwrap();
    cursor.seek_to_first();
    assert_eq!(walk(&mut cursor, false).len(), 5, "the limit is no version of a key");
}

#[test]
fn what_has_no_timestamp_is_refused() {
    let vfs = MemVfs::new();
    let (db, family) = open(&vfs);
    let (write, read) = (WriteOptions::default(), ReadOptions::default());
    let plain = db.create_column_family("plain", ColumnFamilyOptions::default()).unwrap();
    assert!(plain.timestamped().is_none());
    let wrong = family.put("fig", [1; 4], "1", &write).unwrap_err();
    assert!(wrong.to_string().contains("a timestamp of 4 bytes"), "{wrong}");
    assert!(family.get("fig", [1; 9], &read).is_err());
    assert!(family.raise_history_low("").is_err());
    let mut batch = WriteBatch::new();
    batch.put("fig\0\0\0\0\0\0\0\x05", "5").unwrap();
    batch.delete("plum\0\0\0\0\0\0\0\x05").unwrap();
    batch.to(&plain).put("fig", "plain").unwrap();
    family.put("plum", at(1), "1", &write).unwrap();
    db.write_timestamped(&batch, &write).unwrap();
    assert_eq!(family.get("fig", at(5), &read).unwrap().unwrap().value, b"5");
    assert_eq!(family.get("plum", at(5), &read).unwrap(), None);
    assert_eq!(plain.get("fig").unwrap().unwrap(), b"plain");
    for kind in 0..3 {
        let mut batch = WriteBatch::new();
        match kind {
            0 => batch.put("short", "").unwrap(),
            1 => batch.delete_range("fig\0\0\0\0\0\0\0\x05", "plum\0\0\0\0\0\0\0\x05").unwrap(),
            _ => batch.merge("fig\0\0\0\0\0\0\0\x05", "").unwrap(),
        }
        let refused = db.write_timestamped(&batch, &write);
        assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{kind}: {refused:?}");
    }
    let mut batch = WriteBatch::new();
    batch.put("fig\0\0\0\0\0\0\0\x06", "6").unwrap();
    assert!(db.write_locked(&batch, &sateen::TransactionOptions::pessimistic()).is_err());
    db.close().unwrap();
    let other = Options { column_family: ColumnFamilyOptions::default(), ..options() };
    let families = [("plain", ColumnFamilyOptions::default())];
    let refused = Db::open_with(as_vfs(&vfs), "/db", other, &families).unwrap_err();
    assert!(refused.to_string().contains("timestamps of 8 bytes"), "{refused}");
}

/// Pessimistic transactions that wait for no lock.
fn begin(db: &Db, set_snapshot: bool) -> Transaction {
    let lock_timeout = Some(std::time::Duration::ZERO);
    db.transaction_with(&TransactionOptions {
        lock_timeout,
        set_snapshot,
        ..TransactionOptions::pessimistic()
    })
}

#[test]
fn a_transaction_gets_its_timestamp_at_the_commit() {
    let vfs = MemVfs::new();
    let (db, family) = open(&vfs);
    let plain = db.create_column_family("plain", ColumnFamilyOptions::default()).unwrap();
    let (write, read) = (WriteOptions::default(), ReadOptions::default());
    family.put("fig", at(3), "3", &write).unwrap();
    family.put("plum", at(3), "3", &write).unwrap();
    let mut transaction = begin(&db, false);
    family.within(&mut transaction).unwrap().put("fig", "new").unwrap();
    family.within(&mut transaction).unwrap().delete("plum").unwrap();
    transaction.to(&plain).put("fig", "plain").unwrap();
    let within = family.within(&mut transaction).unwrap();
    let own = within.get("fig", at(4), &read).unwrap().unwrap();
    assert_eq!((&*own.value, &*own.timestamp), (&b"new"[..], &b""[..]));
    assert_eq!(within.get("plum", at(4), &read).unwrap(), None);
    assert!(within.get("date", at(4), &read).unwrap().is_none());
    let text = transaction.commit().unwrap_err().to_string();
    assert!(text.contains("its commit needs one"), "{text}");
    let text = transaction.commit_at([1; 4]).unwrap_err().to_string();
    assert!(text.contains("a timestamp of 4 bytes"), "{text}");
    // The lock is of the key, whatever its timestamp.
    let refused = family.within(&mut begin(&db, false)).unwrap().put("fig", "").unwrap_err();
    assert!(matches!(refused, Error::LockTimedOut { .. }), "{refused}");
    transaction.commit_at(at(7)).unwrap();
    for (time, fig, plum) in [(6, "3", Some("3")), (7, "new", None), (u64::MAX, "new", None)] {
        assert_eq!(family.get("fig", at(time), &read).unwrap().unwrap().value, fig.as_bytes());
        let found = family.get("plum", at(time), &read).unwrap().map(|found| found.value);
        assert_eq!(found.as_deref(), plum.map(str::as_bytes), "{time}");
    }
    assert_eq!(family.get("fig", at(8), &read).unwrap().unwrap().timestamp, at(7));
    assert_eq!(plain.get("fig").unwrap().unwrap(), b"plain");
    // Optimistic ones cannot tell, and batches have their timestamps before the locks.
    let text = family.within(&mut db.transaction()).unwrap_err().to_string();
    assert!(text.contains("only pessimistic"), "{text}");
    let mut batch = WriteBatch::new();
    batch.put("fig\0\0\0\0\0\0\0\x09", "9").unwrap();
    let text = begin(&db, false).rebuild_from(&batch).unwrap_err().to_string();
    assert!(text.contains("have timestamps"), "{text}");
}

#[test]
fn a_newer_version_is_a_conflict_of_a_read_for_update() {
    let vfs = MemVfs::new();
    let (db, family) = open(&vfs);
    let (write, read) = (WriteOptions::default(), ReadOptions::default());
    for (key, time) in [("fig", 3), ("fig", 5), ("gone", 4), ("figs", 9)] {
        family.put(key, at(time), time.to_string(), &write).unwrap();
    }
    family.delete("gone", at(6), &write).unwrap();
    db.flush().unwrap();
    let mut transaction = begin(&db, false);
    let busy = |found: Result<_, Error>| matches!(found, Err(Error::Busy { .. }));
    assert!(busy(family.within(&mut transaction).unwrap().get_for_update("fig", at(4), &read)));
    assert!(busy(family.within(&mut transaction).unwrap().get_for_update("gone", at(5), &read)));
    assert_eq!(transaction.tracked_keys(), 0, "a lock that was of no use is free");
    let mut within = family.within(&mut transaction).unwrap();
    assert_eq!(within.get_for_update("fig", at(5), &read).unwrap().unwrap().value, b"5");
    assert_eq!(within.get_for_update("gone", at(6), &read).unwrap(), None);
    assert!(within.get_for_update("none", at(1), &read).unwrap().is_none());
    within.put("fig", "6").unwrap();
    transaction.commit_at(at(6)).unwrap();
    // With a snapshot a write at any timestamp since is a conflict.
    let mut with_snapshot = begin(&db, true);
    family.put("fig", at(1), "old", &write).unwrap();
    let refused = family.within(&mut with_snapshot).unwrap().put("fig", "7");
    assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    family.within(&mut with_snapshot).unwrap().put("figs", "7").unwrap();
    with_snapshot.commit_at(at(10)).unwrap();
}

#[test]
fn a_prepared_transaction_gets_its_timestamp_after_a_crash() {
    let vfs = MemVfs::new();
    let (db, family) = open(&vfs);
    let read = ReadOptions::default();
    let mut transaction = begin(&db, false);
    family.within(&mut transaction).unwrap().put("fig", "1").unwrap();
    transaction.prepare("order").unwrap();
    db.sync_wal().unwrap();
    let image = vfs.crash_image(CrashChoice::SyncedOnly);
    drop((transaction, family, db));
    let (db, family) = open(&image);
    assert_eq!(family.get("fig", at(u64::MAX), &read).unwrap(), None);
    let refused = family.within(&mut begin(&db, false)).unwrap().put("fig", "").unwrap_err();
    assert!(matches!(refused, Error::LockTimedOut { .. }), "{refused}");
    let mut again = db.prepared_transaction("order").unwrap().unwrap();
    assert!(again.commit().is_err());
    again.commit_at(at(4)).unwrap();
    assert_eq!(family.get("fig", at(3), &read).unwrap(), None);
    assert_eq!(family.get("fig", at(4), &read).unwrap().unwrap().value, b"1");
    assert!(db.list_prepared().unwrap().is_empty());
}
