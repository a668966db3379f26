//! Values that expire. The clock is the test's: nothing waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sateen::vfs::MemVfs;
use sateen::{
    ColumnFamily, ColumnFamilyOptions, CompactRangeOptions, Db, Decision, Filtering, Options,
    Prefixing, ReadOptions, SstFileWriter, WallClock, WriteBatch, WriteOptions,
};

use crate::support::common::{
    Random, appending, appending_late, as_vfs, assert_sound, read_all, small, tiny,
};

const START: u64 = 1_800_000_000;

#[derive(Clone)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn new() -> Clock {
        Clock(Arc::new(AtomicU64::new(START)))
    }
    fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
    /// These options, with values that live for `seconds`.
    fn with(&self, mut options: Options, seconds: u64) -> Options {
        let now = self.0.clone();
        options.wall_clock = WallClock::new(move || now.load(Ordering::Relaxed));
        options.column_family.ttl = Some(Duration::from_secs(seconds));
        options
    }
}

fn open(vfs: &MemVfs, options: Options) -> Db {
    Db::open_with(as_vfs(vfs), "/db", options, &[]).unwrap()
}

fn compact(family: &ColumnFamily) {
    family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
}

fn text(value: Option<Vec<u8>>) -> Option<String> {
    value.map(|value| String::from_utf8(value).unwrap())
}

/// Every way to read `key`; they agree.
fn get(family: &ColumnFamily, key: &str) -> Option<String> {
    let options = ReadOptions::default();
    let found = family.reading(&options).get(key).unwrap();
    let pinned = family.reading(&options).get_pinned(key).unwrap();
    assert_eq!(pinned.as_deref(), found.as_deref());
    let many = family.reading(&options).multi_get(&[key]).remove(0).unwrap();
    assert_eq!(many.as_deref(), found.as_deref());
    let mut iter = family.cursor(&options).unwrap();
    iter.seek(key);
    let shown = (iter.valid() && iter.key() == key.as_bytes()).then(|| iter.value().to_vec());
    assert_eq!(shown, found);
    iter.seek_for_prev(key);
    let shown = (iter.valid() && iter.key() == key.as_bytes()).then(|| iter.value().to_vec());
    assert_eq!(shown, found);
    text(found)
}

#[test]
fn values_go_when_their_time_is_up() {
    for mut options in [tiny(), small("triad-silk", 4 << 10), small("pebblesdb", 4 << 10)] {
        options.column_family.values_stay_in_log = true;
        let (clock, vfs) = (Clock::new(), MemVfs::new());
        let db = open(&vfs, clock.with(options.clone(), 100));
        let family = db.default_column_family();
        for nth in 0..1_000 {
            db.put(format!("old{nth:04}"), format!("a value of some length {nth}")).unwrap();
        }
        clock.pass(60);
        db.put("new", "").unwrap();
        db.put("old0007", "young again").unwrap();
        // In memory, in tables, in the last level: never with its time.
        for _ in 0..2 {
            assert_eq!(get(&family, "old0003").unwrap(), "a value of some length 3");
            assert_eq!(get(&family, "new").unwrap(), "");
            assert_eq!(get(&family, "old0007").unwrap(), "young again");
            db.flush().unwrap();
        }
        clock.pass(40);
        compact(&family);
        assert_eq!(read_all(&family, &ReadOptions::default()).len(), 1_001, "to the second");
        clock.pass(1);
        assert_eq!(get(&family, "old0003"), None, "nothing has compacted it");
        assert_eq!(read_all(&family, &ReadOptions::default()).len(), 2);
        db.set_options(&[("ttl_hide_expired", "false")]).unwrap();
        assert!(get(&family, "old0003").is_some(), "it is there until it is compacted");
        compact(&family);
        let left = read_all(&family, &ReadOptions::default());
        let left: Vec<_> = left.iter().map(|(k, v)| (&k[..], &v[..])).collect();
        assert_eq!(left, [(&b"new"[..], &b""[..]), (b"old0007", b"young again")]);
        assert_sound(&db);
        db.close().unwrap();

        // Another life for what is left.
        let db = open(&vfs, clock.with(options.clone(), 0));
        let family = db.default_column_family();
        clock.pass(1_000_000);
        compact(&family);
        assert_eq!(get(&family, "old0007").unwrap(), "young again");
        db.set_options(&[("ttl", "10s")]).unwrap();
        compact(&family);
        assert!(read_all(&family, &ReadOptions::default()).is_empty());
    }
}

#[test]
fn each_column_family_has_its_own() {
    let (clock, vfs) = (Clock::new(), MemVfs::new());
    let with = |seconds: Option<u64>| {
        let ttl = seconds.map(Duration::from_secs);
        ColumnFamilyOptions { ttl, ..tiny().column_family }
    };
    let mut options = clock.with(tiny(), 0);
    options.column_family.ttl = None;
    let db = open(&vfs, options.clone());
    let short = db.create_column_family("short", with(Some(10))).unwrap();
    let long = db.create_column_family("long", with(Some(1_000))).unwrap();
    let plain = db.default_column_family();
    let mut batch = WriteBatch::new();
    for family in [&plain, &short, &long] {
        batch.to(family).put("key", "value").unwrap();
        batch.to(family).put("gone", "").unwrap();
        batch.to(family).delete("gone").unwrap();
    }
    db.write(&batch, &WriteOptions::default()).unwrap();
    let check = |db: &Db, there: [bool; 3]| {
        for (name, there) in ["default", "short", "long"].into_iter().zip(there) {
            let family = db.column_family(name).unwrap();
            let expected = there.then(|| "value".to_owned());
            assert_eq!(get(&family, "key"), expected, "{name}");
            assert_eq!(get(&family, "gone"), None);
        }
    };
    check(&db, [true; 3]);
    clock.pass(11);
    check(&db, [true, false, true]);
    [&plain, &short, &long].into_iter().for_each(compact);
    check(&db, [true, false, true]);
    db.close().unwrap();
    let own = [("short", with(Some(10))), ("long", with(Some(1_000)))];
    let db = Db::open_with(as_vfs(&vfs), "/db", options, &own).unwrap();
    check(&db, [true, false, true]);
    let refused = db.default_column_family().set_options(&[("ttl", "1h")]).unwrap_err();
    assert!(refused.to_string().contains("decided when"), "{refused}");
    let long = db.column_family("long").unwrap();
    assert!(long.set_options(&[("ttl", "none")]).is_err());
    long.set_options(&[("ttl", "5s")]).unwrap();
    compact(&long);
    check(&db, [true, false, false]);
}

/// Operators see what clients wrote; what they make is as old as the newest of it.
#[test]
fn operands_are_merged_without_their_times() {
    for merging in [appending(), appending_late()] {
        let clock = Clock::new();
        let mut options = clock.with(tiny(), 100);
        options.column_family.merge_operator = Some(merging);
        let db = open(&MemVfs::new(), options);
        let family = db.default_column_family();
        db.put("on a value", "a").unwrap();
        for operand in ["b", "c", "d"] {
            clock.pass(60);
            db.merge("on a value", operand).unwrap();
            db.merge("on nothing", operand).unwrap();
            assert!(get(&family, "on a value").unwrap().ends_with(operand));
            db.flush().unwrap();
        }
        clock.pass(90);
        for _ in 0..2 {
            assert_eq!(get(&family, "on a value").unwrap(), "abcd");
            assert_eq!(get(&family, "on nothing").unwrap(), "bcd");
            compact(&family);
        }
        clock.pass(11);
        for _ in 0..2 {
            assert_eq!(get(&family, "on a value"), None);
            assert_eq!(get(&family, "on nothing"), None);
            compact(&family);
        }
    }
}

/// A merge does not bring back what had expired when it was written, whatever compactions have
/// dropped by then, and a transaction sees the same before its commit as all do afterwards.
#[test]
fn a_merge_begins_anew_over_what_has_expired() {
    for merging in [appending(), appending_late()] {
        for (compacted, hidden) in [(false, true), (true, true), (false, false)] {
            let clock = Clock::new();
            let mut options = clock.with(tiny(), 100);
            options.column_family.merge_operator = Some(merging.clone());
            options.column_family.ttl_hide_expired = hidden;
            let db = open(&MemVfs::new(), options);
            let family = db.default_column_family();
            for key in ["plain", "transaction"] {
                db.put(key, "v").unwrap();
            }
            for key in ["operands", "twice"] {
                db.merge(key, "v").unwrap();
            }
            db.flush().unwrap();
            clock.pass(60);
            // It is there, so its life goes on.
            db.merge("twice", "w").unwrap();
            clock.pass(60);
            let expired = |value: &str| (!hidden).then(|| value.to_owned());
            if compacted {
                compact(&family);
            }
            for key in ["plain", "transaction", "operands"] {
                assert_eq!(get(&family, key), expired("v"));
            }
            let mut transaction = db.transaction();
            transaction.merge("transaction", "z").unwrap();
            let own = text(transaction.get("transaction").unwrap());
            let shown = transaction.prefix("transaction").unwrap().next().unwrap().unwrap();
            assert_eq!(own.as_deref(), Some(if hidden { "z" } else { "vz" }));
            assert_eq!(shown.1, own.clone().unwrap().as_bytes());
            transaction.commit().unwrap();
            db.merge("plain", "z").unwrap();
            db.merge("operands", "z").unwrap();
            db.merge("twice", "z").unwrap();
            for step in 0..3 {
                for key in ["plain", "transaction", "operands"] {
                    assert_eq!(get(&family, key), own, "{key}, {compacted} {hidden} {step}");
                }
                assert_eq!(get(&family, "twice").unwrap(), "vwz", "{compacted} {hidden} {step}");
                match step {
                    0 => db.flush().unwrap(),
                    _ => compact(&family),
                }
            }
        }
    }
}

/// Compactions above the value merge operands; what is left out stays the same.
#[test]
fn operands_of_several_times_stay_apart_until_they_meet_their_value() {
    for compacting in [false, true] {
        let clock = Clock::new();
        let mut options = clock.with(tiny(), 100);
        options.column_family.merge_operator = Some(appending());
        let db = open(&MemVfs::new(), options);
        let family = db.default_column_family();
        db.put("key", "a").unwrap();
        db.put("other", "a").unwrap();
        db.flush().unwrap();
        compact(&family);
        // Snapshots keep the operands from their value, so that compactions merge only these.
        let before = db.snapshot();
        for (operand, wait) in [("b", 90), ("c", 90), ("d", 0), ("e", 90)] {
            clock.pass(wait);
            db.merge("key", operand).unwrap();
            db.flush().unwrap();
            if compacting {
                compact(&family);
            }
        }
        assert_eq!(get(&family, "key").unwrap(), "abcde");
        drop(before);
        clock.pass(101);
        db.merge("key", "f").unwrap();
        for _ in 0..2 {
            assert_eq!(get(&family, "key").unwrap(), "f");
            assert_eq!(get(&family, "other"), None);
            compact(&family);
        }
    }
}

/// The user's filter goes on beside it, and sees what clients wrote.
#[test]
fn filters_see_no_times() {
    let clock = Clock::new();
    let mut options = clock.with(tiny(), 100);
    options.column_family.compaction_filter =
        Some(Filtering::by("short", |_, _, value| match value {
            b"-" => Decision::Remove,
            b"?" => Decision::Change(b"!".to_vec()),
            b"=" | b"!" => Decision::Keep,
            other => panic!("{}", other.escape_ascii()),
        }));
    let db = open(&MemVfs::new(), options);
    let family = db.default_column_family();
    for (key, value) in [("a", "-"), ("b", "?"), ("c", "=")] {
        db.put(key, value).unwrap();
    }
    clock.pass(60);
    compact(&family);
    assert_eq!(get(&family, "a"), None);
    assert_eq!(get(&family, "b").unwrap(), "!");
    assert_eq!(get(&family, "c").unwrap(), "=");
    clock.pass(60);
    compact(&family);
    assert_eq!(get(&family, "b"), None, "a change does not make it younger");
}

/// Values as large as they may be have room for their time.
#[test]
fn sizes_are_counted_without_the_time() {
    let clock = Clock::new();
    let mut options = clock.with(tiny(), 100);
    options.value_bytes_max = 1_000;
    let db = open(&MemVfs::new(), options);
    db.put("key", [7; 1_000]).unwrap();
    assert!(db.put("key", [7; 1_001]).is_err());
    assert_eq!(db.get("key").unwrap().unwrap(), [7; 1_000]);
}

#[test]
fn regions_have_times_too() {
    let clock = Clock::new();
    let options = clock.with(tiny(), 100).regions(4).unwrap();
    let db = open(&MemVfs::new(), options);
    let family = db.default_column_family();
    let mut batch = WriteBatch::new();
    for nth in 0..=255_u8 {
        batch.put([nth, 1], [nth]).unwrap();
        db.put([nth, 2], [nth]).unwrap();
    }
    db.write(&batch, &WriteOptions::default()).unwrap();
    let all = read_all(&family, &ReadOptions::default());
    assert_eq!(all.len(), 512);
    assert!(all.iter().all(|(key, value)| key[..1] == **value));
    clock.pass(101);
    compact(&family);
    assert!(read_all(&family, &ReadOptions::default()).is_empty());
}

/// What is written outside for a column family with times has them, and expires.
#[test]
fn what_is_taken_in_has_times_too() {
    let (vfs, clock) = (MemVfs::new(), Clock::new());
    let mut options = clock.with(tiny(), 100);
    options.column_family.merge_operator = Some(appending());
    let db = open(&vfs, options.clone());
    let family = db.default_column_family();
    db.put("merged", "be").unwrap();
    let mut writer = SstFileWriter::create_with(as_vfs(&vfs), "/outside", &options).unwrap();
    writer.put("k1", "value").unwrap();
    writer.put("k2", "").unwrap();
    writer.delete("k3").unwrap();
    writer.merge("merged", "fore").unwrap();
    writer.finish().unwrap();
    family.ingest(&["/outside"], &Default::default()).unwrap();
    for (key, value) in [("k1", Some("value")), ("k2", Some("")), ("k3", None)] {
        assert_eq!(get(&family, key).as_deref(), value, "{key}");
    }
    assert_eq!(get(&family, "merged").as_deref(), Some("before"));
    clock.pass(101);
    compact(&family);
    let all = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
    family.compact_range(None, None, &all).unwrap();
    assert_eq!(read_all(&family, &ReadOptions::default()).len(), 0);
    assert_sound(&db);
}

/// Whoever reads, and from wherever: a value is there to its last second and not a second longer.
#[test]
fn no_reader_is_shown_what_has_expired() {
    let (vfs, clock) = (MemVfs::new(), Clock::new());
    let options = clock.with(tiny(), 100);
    let db = open(&vfs, options.clone());
    let family = db.default_column_family();
    db.put("stored", "1").unwrap();
    db.flush().unwrap();
    db.put("in memory", "2").unwrap();
    let snapshot = db.snapshot();
    let at_snapshot = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    clock.pass(100);
    for (key, value) in [("stored", "1"), ("in memory", "2")] {
        assert_eq!(get(&family, key).unwrap(), value);
    }
    let mut early = db.cursor(&ReadOptions::default()).unwrap();
    clock.pass(1);
    db.put("young", "3").unwrap();
    for key in ["stored", "in memory"] {
        assert_eq!(get(&family, key), None);
        assert_eq!(family.reading(&at_snapshot).get(key).unwrap(), None);
        assert!(!family.has_in_memory(key).unwrap());
    }
    assert!(family.has_in_memory("young").unwrap());
    assert_eq!(read_all(&family, &at_snapshot).len(), 0);
    assert_eq!(read_all(&family, &ReadOptions::default()).len(), 1);
    // An iterator shows what was there when it was made, as long as it lives.
    early.seek_to_first();
    assert_eq!(early.key(), b"in memory");
    early.next();
    assert_eq!(early.key(), b"stored");
    early.seek_to_last();
    assert_eq!(early.key(), b"stored");
    drop(early);
    db.sync_wal().unwrap();
    let read_only = Db::open_read_only_with(as_vfs(&vfs), "/db", options.clone()).unwrap();
    assert_eq!(get(&read_only.default_column_family(), "stored"), None);
    let young = get(&read_only.default_column_family(), "young");
    assert_eq!(young.as_deref(), Some("3"));
}

/// The same as a model, whatever was flushed and compacted, forwards and backwards, with prefixes.
#[test]
fn what_is_read_is_what_has_not_expired() {
    for seed in 0..8 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let (vfs, clock) = (MemVfs::new(), Clock::new());
        let mut options = clock.with(tiny(), 20);
        options.column_family.prefix_extractor = random.one_in(2).then(|| Prefixing::fixed(1));
        let db = open(&vfs, options);
        let family = db.default_column_family();
        let mut model: BTreeMap<Vec<u8>, (Vec<u8>, u64)> = BTreeMap::new();
        let mut now = 0;
        for step in 0..2_000_u64 {
            let key = format!("{}{:02}", random.below(4), random.below(40)).into_bytes();
            match random.below(20) {
                0 => {
                    clock.pass(7);
                    now += 7;
                }
                1 => db.flush().unwrap(),
                2 if random.one_in(8) => compact(&family),
                3 => {
                    db.delete(&key).unwrap();
                    model.remove(&key);
                }
                _ => {
                    let value = step.to_string().into_bytes();
                    db.put(&key, &value).unwrap();
                    model.insert(key.clone(), (value, now));
                }
            }
            if step % 16 > 0 {
                continue;
            }
            let left: BTreeMap<_, _> = model
                .iter()
                .filter(|(_, (_, written))| now - written <= 20)
                .map(|(key, (value, _))| (key.clone(), value.clone()))
                .collect();
            assert_eq!(read_all(&family, &ReadOptions::default()), left, "step {step}");
            assert_eq!(db.get(&key).unwrap(), left.get(&key).cloned(), "step {step}");
            let same_as_start = random.one_in(2);
            let read = ReadOptions { prefix_same_as_start: same_as_start, ..Default::default() };
            let is_shown = |other: &&Vec<u8>| {
                !same_as_start
                    || db.options().column_family.prefix_extractor.is_none()
                    || other[0] == key[0]
            };
            let mut iter = db.cursor(&read).unwrap();
            iter.seek(&key);
            let mut behind = left.range(key.clone()..).map(|(key, _)| key).take_while(is_shown);
            for _ in 0..3 {
                let expected = behind.next();
                assert_eq!(iter.valid().then(|| iter.key()), expected.map(|k| &k[..]), "{step}");
                iter.next();
            }
            iter.seek_for_prev(&key);
            let before = left.range(..=key.clone()).rev().map(|(key, _)| key);
            let mut before = before.take_while(is_shown);
            for _ in 0..3 {
                let expected = before.next();
                assert_eq!(iter.valid().then(|| iter.key()), expected.map(|k| &k[..]), "{step}");
                iter.prev();
            }
            iter.status().unwrap();
        }
        assert_sound(&db);
    }
}
