//! A secondary shows what its primary has written, as of one moment, or says that it cannot.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use sateen::vfs::{IoClass, MemVfs, Vfs};
use sateen::{
    CompactRangeOptions, Db, Error, IngestOptions, Options, ReadOptions, Regions, SstFileWriter,
    TransactionOptions, WriteBatch, WriteOptions,
};

use crate::crash::replay::Writer;
use crate::features::updates::{OTHER, keeping, open, settle};
use crate::support::common::{Contents, as_vfs, read_all, small, tiny};

fn follow(vfs: &MemVfs, options: &Options) -> Db {
    Db::open_secondary_with(as_vfs(vfs), "/db", options.clone(), &[]).unwrap()
}

fn contents(db: &Db, family: &str) -> Contents {
    read_all(&db.column_family(family).unwrap(), &ReadOptions::default())
}

fn text(db: &Db, key: &str) -> Option<String> {
    db.get(key).unwrap().map(|value| String::from_utf8(value).unwrap())
}

fn compact(db: &Db) {
    let family = db.default_column_family();
    family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
}

#[test]
fn it_sees_what_the_primary_wrote_when_it_catches_up() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.put("b", "1").unwrap();
    let secondary = follow(&vfs, &tiny());
    assert_eq!(
        (text(&secondary, "a"), text(&secondary, "b")),
        (Some("1".into()), Some("1".into()))
    );
    assert!(!secondary.try_catch_up_with_primary().unwrap(), "there is nothing new");
    let snapshot = secondary.snapshot();
    db.put("a", "2").unwrap();
    db.delete("b").unwrap();
    assert_eq!(text(&secondary, "a").unwrap(), "1", "it moves when it is told to");
    let old = ReadOptions::at(&snapshot);
    let family = secondary.default_column_family();
    assert!(family.reading(&old).get("b").unwrap().is_some());
    let mut before = secondary.cursor(&ReadOptions::default()).unwrap();
    assert!(secondary.try_catch_up_with_primary().unwrap());
    assert_eq!((text(&secondary, "a"), text(&secondary, "b")), (Some("2".into()), None));
    before.seek("b");
    assert!(before.valid(), "an iterator goes on as it was");
    let refused = family.reading(&old).get("b").unwrap_err().to_string();
    assert!(refused.contains("before the secondary caught up"), "{refused}");
    assert!(secondary.cursor(&old).is_err() && family.reading(&old).may_contain("b").is_err());
    assert!(family.reading(&old).multi_get(&["b"])[0].is_err());
    // Logs come and go, the primary is opened again, and none of it is in the way.
    for round in 0..20 {
        db.put(format!("key{round:02}"), "3").unwrap();
        if round % 3 == 0 {
            db.flush().unwrap();
            settle(&db);
        }
        if round % 5 == 0 {
            assert!(secondary.try_catch_up_with_primary().unwrap());
            assert_eq!(contents(&secondary, "default"), contents(&db, "default"));
        }
    }
    db.close().unwrap();
    drop(db);
    let db = open(&vfs, &tiny());
    db.put("last", "4").unwrap();
    secondary.try_catch_up_with_primary().unwrap();
    assert_eq!(contents(&secondary, "default"), contents(&db, "default"));
    assert_eq!(secondary.latest_sequence_number(), db.latest_sequence_number());
    let not = db.try_catch_up_with_primary().unwrap_err();
    assert!(matches!(not, Error::NotSecondary), "{not}");
}

#[test]
fn it_changes_nothing_and_refuses_what_would() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    for round in 0..40 {
        db.put(format!("key{round:02}"), vec![7; 300]).unwrap();
        db.step().unwrap();
    }
    let recording = vfs.record();
    let secondary = follow(&vfs, &tiny());
    let family = secondary.default_column_family();
    let refusals = [
        secondary.put("a", "1").unwrap_err(),
        secondary.delete_range("a", "b").unwrap_err(),
        secondary.flush().unwrap_err(),
        family.compact_range(None, None, &Default::default()).unwrap_err(),
        secondary.create_column_family("new", Default::default()).unwrap_err(),
        secondary.drop_column_family(&family).unwrap_err(),
        secondary.set_options(&[("max_open_files", "100")]).unwrap_err(),
        secondary.sync_wal().unwrap_err(),
        secondary.checkpoint("/copy").unwrap_err(),
        secondary.updates_since(0).unwrap_err(),
        family.ingest(&["/none"], &IngestOptions::default()).unwrap_err(),
        secondary.resume().unwrap_err(),
    ];
    for refusal in refusals {
        assert!(matches!(refusal, Error::ReadOnly(_)), "{refusal}");
    }
    secondary.try_catch_up_with_primary().unwrap();
    assert_eq!(contents(&secondary, "default").len(), 40);
    secondary.close().unwrap();
    drop(secondary);
    assert_eq!(recording.len(), 0, "{:?}", recording.describe(1));
    let missing = Db::open_secondary_with(as_vfs(&MemVfs::new()), "/db", tiny(), &[]).unwrap_err();
    assert!(matches!(missing, Error::IncompatibleDirectory { .. }), "{missing}");
    let named = [("none", tiny().column_family)];
    let missing = Db::open_secondary_with(as_vfs(&vfs), "/db", tiny(), &named).unwrap_err();
    assert!(matches!(missing, Error::NoSuchColumnFamily(_)), "{missing}");
}

/// The primary is within the write of a record.
#[test]
fn a_log_that_ends_within_a_record_goes_on_later() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    db.put("a", "1").unwrap();
    let logs = vfs.list(Path::new("/db")).unwrap();
    let log = logs.iter().find(|name| name.extension().is_some_and(|ending| ending == "wal"));
    let log = Path::new("/db").join(log.unwrap());
    let begin = vfs.contents(&log).unwrap().len();
    db.put("b", "2").unwrap();
    db.put("c", "3").unwrap();
    let whole = vfs.contents(&log).unwrap();
    let write = sateen::vfs::OpenOptions { write: true, ..sateen::vfs::OpenOptions::READ };
    let file = vfs.open(&log, write).unwrap();
    for end in begin..whole.len() {
        file.truncate(begin as u64).unwrap();
        let secondary = follow(&vfs, &tiny());
        file.write_at(&whole[begin..end], begin as u64, IoClass::Wal).unwrap();
        secondary.try_catch_up_with_primary().unwrap();
        assert!(text(&secondary, "a").is_some() && text(&secondary, "c").is_none(), "{end}");
        file.write_at(&whole[end..], end as u64, IoClass::Wal).unwrap();
        assert!(secondary.try_catch_up_with_primary().unwrap(), "{end}");
        assert_eq!(contents(&secondary, "default").len(), 3, "{end}");
    }
}

#[test]
fn families_that_come_and_go() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    let other = db.create_column_family(OTHER, tiny().column_family).unwrap();
    let write = WriteOptions::default();
    other.writing(&write).put("a", "1").unwrap();
    let secondary = follow(&vfs, &tiny());
    let followed = secondary.column_family(OTHER).unwrap();
    let latest = ReadOptions::default();
    assert!(followed.reading(&latest).get("a").unwrap().is_some());
    let late = db.create_column_family("late", tiny().column_family).unwrap();
    let mut batch = WriteBatch::new();
    batch.to(&late).put("a", "1").unwrap();
    batch.to(&other).put("b", "1").unwrap();
    db.write(&batch, &write).unwrap();
    secondary.try_catch_up_with_primary().unwrap();
    assert!(secondary.column_family("late").is_none(), "it was not there at open");
    assert!(followed.reading(&latest).get("b").unwrap().is_some());
    let mut iter = followed.cursor(&latest).unwrap();
    db.drop_column_family(&other).unwrap();
    db.put("c", "1").unwrap();
    secondary.try_catch_up_with_primary().unwrap();
    let gone = followed.reading(&latest).get("a").unwrap_err();
    assert!(matches!(gone, Error::NoSuchColumnFamily(_)), "{gone}");
    assert_eq!(secondary.column_families(), ["default"]);
    iter.seek_to_first();
    assert!(iter.valid(), "an iterator goes on");
    assert!(text(&secondary, "c").is_some());
    assert!(follow(&vfs, &tiny()).column_family("late").is_some());
}

/// What the primary has given back is never read as if it were there.
#[test]
fn tables_that_are_given_up() {
    let vfs = MemVfs::new();
    let mut options = tiny();
    options.block_cache_bytes = 1;
    options.max_open_files = 16;
    let db = open(&vfs, &options);
    let fill = |round: usize| {
        for key in 0..60 {
            db.put(format!("key{key:02}"), format!("{round}").repeat(50)).unwrap();
        }
        db.flush().unwrap();
    };
    fill(0);
    settle(&db);
    let secondary = follow(&vfs, &options);
    let (mut behind, mut right) = (0, 0);
    for round in 1..12 {
        fill(round);
        compact(&db);
        settle(&db);
        for key in 0..60 {
            let expected = format!("{}", round - 1).repeat(50).into_bytes();
            match secondary.get(format!("key{key:02}")) {
                Ok(found) => {
                    assert_eq!(found, Some(expected), "as of the last catching up");
                    right += 1;
                }
                Err(Error::Behind { cause }) => {
                    assert!(!cause.contains("corruption") && cause.contains("replaced"), "{cause}");
                    behind += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        let mut iter = secondary.cursor(&ReadOptions::default()).unwrap();
        iter.seek_to_first();
        let mut seen = 0;
        while iter.valid() {
            seen += 1;
            iter.next();
        }
        match iter.status() {
            Ok(()) => assert_eq!(seen, 60),
            Err(error) => assert!(matches!(error, Error::Behind { .. }), "{error}"),
        }
        assert!(secondary.try_catch_up_with_primary().unwrap());
        assert_eq!(contents(&secondary, "default"), contents(&db, "default"));
    }
    assert!(behind > 0, "{behind} behind, {right} right");
}

/// Whatever the primary does, after each catching up the secondary is what it is.
fn differential(seed: u64, options: Options, rounds: usize) {
    println!("seed {seed}");
    let mut writer = Writer::new(seed, options.clone());
    let mut secondary = follow(&writer.vfs, &options);
    for _ in 0..rounds {
        for _ in 0..writer.random.below(12) {
            writer.write();
            writer.upkeep();
        }
        if writer.random.one_in(12) {
            writer.reopen();
        }
        if writer.random.one_in(20) {
            secondary = follow(&writer.vfs, &options);
        }
        secondary.try_catch_up_with_primary().unwrap();
        let newest = writer.db().latest_sequence_number();
        assert!(secondary.latest_sequence_number() <= newest);
        let expected = &writer.states[&newest];
        assert_eq!(&contents(&secondary, "default"), &expected[0], "after {newest}");
        assert_eq!(&contents(&secondary, OTHER), &expected[1], "after {newest}");
    }
}

#[test]
fn it_is_the_primary_after_each_catching_up() {
    for seed in 0..4 {
        differential(seed, keeping(tiny()), 80);
    }
    let mut options = keeping(tiny());
    options.wal_ttl_seconds = 0;
    options.manifest_bytes_max = 512;
    differential(10, options.clone(), 80);
    options.column_family.memtable_bytes = 1 << 10;
    differential(11, options.clone(), 80);
    options.column_family.regions = Regions::at(["key010", "key030"]).unwrap();
    differential(12, options, 80);
    for (seed, profile) in (13..).zip(["triad", "vlsm", "pebblesdb"]) {
        let mut options = keeping(small(profile, 4 << 10));
        options.wal_ttl_seconds = 0;
        differential(seed, options, 60);
    }
}

/// Files that were ingested come with what was written before and after them.
#[test]
fn files_that_are_ingested() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    let secondary = follow(&vfs, &tiny());
    for round in 0..6 {
        db.put("a", format!("{round}")).unwrap();
        let family = db.default_column_family();
        let path = format!("/file{round}");
        let mut file = SstFileWriter::create_with(as_vfs(&vfs), &path, &tiny()).unwrap();
        file.put("a", format!("file {round}")).unwrap();
        file.put("b", format!("file {round}")).unwrap();
        file.finish().unwrap();
        family.ingest(&[&path], &IngestOptions::default()).unwrap();
        db.put("b", format!("{round}")).unwrap();
        settle(&db);
        secondary.try_catch_up_with_primary().unwrap();
        assert_eq!(text(&secondary, "a").unwrap(), format!("file {round}"));
        assert_eq!(text(&secondary, "b").unwrap(), format!("{round}"));
    }
}

/// A primary with threads of its own beside readers and whoever catches up: each batch is seen
/// whole, and nothing ever goes back.
#[test]
fn beside_a_busy_primary() {
    let options = Options { background_threads: 2, ..tiny() };
    let vfs = MemVfs::new();
    let db = open(&vfs, &options);
    let other = db.create_column_family(OTHER, options.column_family.clone()).unwrap();
    let done = AtomicBool::new(false);
    let secondary = follow(&vfs, &options);
    let numbers = |secondary: &Db| -> Result<Vec<u64>, Error> {
        let mut all = Vec::new();
        for name in ["default", OTHER] {
            let family = secondary.column_family(name).unwrap();
            for key in ["first", "last"] {
                let found = family.get(key)?;
                let text = found.map_or("0".into(), |text| String::from_utf8(text).unwrap());
                all.push(text.parse().unwrap());
            }
        }
        Ok(all)
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1..3000_u64 {
                let mut batch = WriteBatch::new();
                let value = number.to_string();
                batch.put("first", &value).unwrap();
                batch.put(format!("key{:03}", number % 200), vec![7; 60]).unwrap();
                batch.to(&other).put("first", &value).unwrap();
                batch.to(&other).put(format!("key{:03}", number % 50), vec![7; 20]).unwrap();
                batch.put("last", &value).unwrap();
                batch.to(&other).put("last", &value).unwrap();
                db.write(&batch, &WriteOptions::default()).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        let reader = scope.spawn(|| {
            let mut before = 0;
            while !done.load(Ordering::Acquire) {
                // Two reads may be of two moments: what is seen of one after the other grows.
                match numbers(&secondary) {
                    Ok(seen) => {
                        assert!(seen.is_sorted() && seen[0] >= before, "{seen:?} after {before}");
                        before = seen[3];
                    }
                    Err(error) => assert!(matches!(error, Error::Behind { .. }), "{error}"),
                }
            }
        });
        let (mut rounds, mut behind) = (0, 0);
        while !done.load(Ordering::Acquire) {
            match secondary.try_catch_up_with_primary() {
                Ok(_) => rounds += 1,
                Err(Error::Behind { .. }) => behind += 1,
                Err(error) => panic!("{error}"),
            }
            match numbers(&secondary) {
                Ok(seen) => assert!(seen.windows(2).all(|two| two[0] == two[1]), "{seen:?}"),
                Err(error) => assert!(matches!(error, Error::Behind { .. }), "{error}"),
            }
        }
        println!("{rounds} times caught up, {behind} times behind");
        assert!(rounds > 0);
        writer.join().unwrap();
        reader.join().unwrap();
    });
    db.wait_idle().unwrap();
    secondary.try_catch_up_with_primary().unwrap();
    assert_eq!(contents(&secondary, "default"), contents(&db, "default"));
    assert_eq!(contents(&secondary, OTHER), contents(&db, OTHER));
}

/// A secondary lists what its primary has prepared, as of its last catch-up, and can end nothing.
#[test]
fn prepared_transactions_are_followed() {
    let pessimistic = TransactionOptions::pessimistic();
    for from_begin in [true, false] {
        let vfs = MemVfs::new();
        let db = open(&vfs, &tiny());
        let prepare = |name: &str| {
            let mut transaction = db.transaction_with(&pessimistic);
            transaction.put(name, "prepared").unwrap();
            transaction.prepare(name).unwrap();
            transaction
        };
        if from_begin {
            prepare("before").commit().unwrap();
        }
        let secondary = follow(&vfs, &tiny());
        let listed = |names: &[&str]| {
            let listed = secondary.list_prepared().unwrap();
            assert_eq!(listed, names.iter().map(|name| name.as_bytes()).collect::<Vec<_>>());
        };
        listed(&[]);
        db.put("a", "1").unwrap();
        let mut first = prepare("first");
        // Its entries are in the WAL alone when the secondary first hears of their column family.
        listed(&[]);
        secondary.try_catch_up_with_primary().unwrap();
        listed(&["first"]);
        assert_eq!(text(&secondary, "a").unwrap(), "1");
        let mut second = prepare("second");
        db.flush_all().unwrap();
        settle(&db);
        secondary.try_catch_up_with_primary().unwrap();
        listed(&["first", "second"]);
        let refused = secondary.prepared_transaction("first").unwrap_err();
        assert!(matches!(refused, Error::ReadOnly(_)), "{refused}");
        first.commit().unwrap();
        secondary.try_catch_up_with_primary().unwrap();
        listed(&["second"]);
        assert_eq!(text(&secondary, "first").unwrap(), "prepared");
        // Nothing of it is locked here, where nothing can be written.
        secondary.transaction_with(&pessimistic).get_for_update("second").unwrap();
        second.rollback().unwrap();
        db.flush_all().unwrap();
        secondary.try_catch_up_with_primary().unwrap();
        listed(&[]);
        assert_eq!(contents(&secondary, "default"), contents(&db, "default"));
        assert_eq!(secondary.column_families(), ["default"]);
    }
}
