//! Sorted entries of the caller, loaded straight into tables.

use std::sync::Arc;
use std::time::Duration;

use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, MemVfs, VfsOperation};
use sateen::{BulkLoad, Db, Error, Health, Options, ReadOptions, Regions, WallClock, WriteOptions};

use crate::support::common::{
    Contents, Random, appending, as_vfs, assert_sound, read_all, small, tiny,
};

fn open(vfs: &MemVfs, options: &Options) -> Db {
    Db::open_with(as_vfs(vfs), "/db", options.clone(), &[]).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

fn write_part(load: &BulkLoad<'_>, entries: &[(Vec<u8>, Vec<u8>)]) -> sateen::Result<()> {
    let mut part = load.part();
    entries.iter().try_for_each(|(key, value)| part.put(key, value))?;
    part.finish()
}

/// Loads `entries` in parts of up to `rows`, each written by a thread of its own.
fn load(db: &Db, entries: &Contents, rows: usize) -> sateen::Result<()> {
    let load = db.bulk_load()?;
    let entries: Vec<_> = entries.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    std::thread::scope(|scope| {
        let parts = entries.chunks(rows).map(|part| scope.spawn(|| write_part(&load, part)));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().try_for_each(|part| part.join().unwrap())
    })?;
    load.finish()
}

fn contents(db: &Db) -> Contents {
    read_all(&db.default_column_family(), &ReadOptions::default())
}

fn files(vfs: &MemVfs) -> usize {
    as_vfs(vfs).list("/db".as_ref()).unwrap().len()
}

#[test]
fn a_load_is_newer_than_all_before_and_older_than_all_after() {
    for profile in ["sateen", "rocksdb", "triad", "pebblesdb", "vlsm"] {
        let vfs = MemVfs::new();
        let mut options = small(profile, 4 << 10);
        options.background_threads = 0;
        options.column_family.merge_operator = Some(appending());
        options.column_family.regions = Regions::at([key(70), key(140)]).unwrap();
        let mut db = open(&vfs, &options);
        let mut random = Random::new(12);
        let mut model = Contents::new();
        let mut snapshots = Vec::new();
        for round in 0..40_u64 {
            for _ in 0..30 {
                let (at, value) = (key(random.below(200)), random.next().to_string().into_bytes());
                match random.below(5) {
                    0 => {
                        db.merge(&at, &value).unwrap();
                        model.entry(at).or_default().extend(value);
                    }
                    1 => {
                        db.delete(&at).unwrap();
                        model.remove(&at);
                    }
                    _ => {
                        db.put(&at, &value).unwrap();
                        model.insert(at, value);
                    }
                }
            }
            if random.one_in(4) {
                let begin = random.below(200);
                let (begin, end) = (key(begin), key(begin + random.below(40)));
                db.delete_range(&begin, &end).unwrap();
                model.retain(|key, _| *key < begin || *key >= end);
            }
            if random.one_in(3) {
                snapshots.push((db.snapshot(), model.clone()));
            }
            let begin = random.below(150);
            let count = 1 + random.below(80);
            let new: Contents = (begin..begin + count)
                .filter(|_| !random.one_in(3))
                .map(|number| (key(number), format!("loaded {round}").into_bytes()))
                .collect();
            load(&db, &new, 1 + usize::try_from(random.below(30)).unwrap()).unwrap();
            model.extend(new);
            if random.one_in(2) {
                while db.step().unwrap() {}
            }
            if random.one_in(8) {
                snapshots.clear();
                drop(db);
                db = open(&vfs, &options);
            }
            assert_eq!(contents(&db), model, "{profile}: {round}");
            for (snapshot, state) in &snapshots {
                let options =
                    ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
                let found = read_all(&db.default_column_family(), &options);
                assert_eq!(found, *state, "{profile}: {round}, a snapshot");
            }
        }
        drop(snapshots);
        assert_sound(&db);
    }
}

#[test]
fn what_cannot_be_loaded_leaves_no_trace() {
    let vfs = MemVfs::new();
    let mut options = tiny();
    options.value_bytes_max = 1000;
    let db = open(&vfs, &options);
    db.put("key0001", "before").unwrap();
    let (before, seqno) = (files(&vfs), db.latest_sequence_number());
    let load = db.bulk_load().unwrap();
    let mut part = load.part();
    part.put("b", "1").unwrap();
    for (key, value, text) in [
        (&b"a"[..], 1, "must ascend: a was added after b"),
        (b"b", 1, "must ascend: b was added after b"),
        (&[b'x'; 1 << 16], 1, "a key of 65536 bytes exceeds the limit of 65535"),
        (b"c", 1001, "a value of 1001 bytes exceeds the limit of 1000"),
    ] {
        let error = part.put(key, vec![b'v'; value]).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    // The part goes on after a refusal.
    part.put("c", [b'v'; 1000]).unwrap();
    part.finish().unwrap();
    write_part(&load, &[(b"c".to_vec(), Vec::new())]).unwrap();
    load.part().finish().unwrap();
    let mut dropped = load.part();
    dropped.put("z", "1").unwrap();
    drop(dropped);
    let error = load.finish().unwrap_err().to_string();
    assert!(error.contains("overlap: one ends with c, and another begins with c"), "{error}");
    let load = db.bulk_load().unwrap();
    write_part(&load, &[(b"b".to_vec(), b"1".to_vec())]).unwrap();
    drop(load);
    assert_eq!((files(&vfs), db.latest_sequence_number()), (before, seqno));
    assert_eq!(contents(&db).len(), 1);
    db.bulk_load().unwrap().finish().unwrap();
    let family = db.create_column_family("dropped", Default::default()).unwrap();
    let load = family.bulk_load().unwrap();
    write_part(&load, &[(b"b".to_vec(), b"1".to_vec())]).unwrap();
    db.drop_column_family(&family).unwrap();
    assert!(matches!(load.finish(), Err(Error::NoSuchColumnFamily(_))));
    assert!(matches!(family.bulk_load(), Err(Error::NoSuchColumnFamily(_))));
    assert_sound(&db);
    drop(family);
    drop(db);
    let reader = Db::open_read_only_with(as_vfs(&vfs), "/db", options).unwrap();
    assert!(matches!(reader.bulk_load(), Err(Error::ReadOnly(_))));
}

/// The directory stays locked until the load is over: its files may have the numbers of files of
/// the next open.
#[test]
fn a_load_that_outlives_its_database_keeps_the_directory_locked() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    let load = db.bulk_load().unwrap();
    let mut part = load.part();
    part.put("a", "1").unwrap();
    db.close().unwrap();
    assert!(matches!(db.bulk_load(), Err(Error::Closed)));
    let reopen = || Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]);
    assert!(matches!(reopen(), Err(Error::Locked { .. })));
    part.finish().unwrap();
    assert!(matches!(load.finish(), Err(Error::Closed)));
    let again = reopen().unwrap();
    assert_eq!(contents(&again).len(), 0);
    assert_sound(&again);
}

#[test]
fn values_of_a_load_expire() {
    let vfs = MemVfs::new();
    let seconds = Arc::new(std::sync::atomic::AtomicU64::new(1_800_000_000));
    let mut options = tiny();
    let clock = seconds.clone();
    options.wall_clock = WallClock::new(move || clock.load(std::sync::atomic::Ordering::Relaxed));
    options.column_family.ttl = Some(Duration::from_secs(10));
    let db = open(&vfs, &options);
    let entries: Contents = (0..20).map(|number| (key(number), b"v".to_vec())).collect();
    load(&db, &entries, 7).unwrap();
    assert_eq!(contents(&db), entries);
    seconds.fetch_add(11, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(contents(&db), Contents::new());
}

/// A crash at any operation of the file system: all parts are in, or none.
#[test]
fn all_or_none_after_a_crash() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    (0..50).for_each(|number| db.put(key(number), "old").unwrap());
    let new: Contents = (20..90).map(|number| (key(number), vec![b'n'; 200])).collect();
    let old = contents(&db);
    let recording = vfs.record();
    // One thread, so that the operations are the same in each run.
    let bulk = db.bulk_load().unwrap();
    let new: Vec<_> = new.into_iter().collect();
    new.chunks(30).for_each(|part| write_part(&bulk, part).unwrap());
    bulk.finish().unwrap();
    let after = contents(&db);
    assert_eq!(after.len(), 90);
    let loaded = recording.len();
    let family = db.default_column_family();
    family.writing(&WriteOptions { sync: true, ..Default::default() }).put("later", "1").unwrap();
    drop((family, db));
    let mut seen = [0, 0];
    for at in 0..=recording.len() {
        for choice in recording.choices_at(at, 2) {
            let image = recording.image_at(at, choice);
            let db = open(&image, &tiny());
            let mut found = contents(&db);
            let later = found.remove(&b"later"[..]).is_some();
            let is_new = found == after;
            // What was not synced before may be gone where nothing was loaded.
            let subset = found.iter().all(|(key, value)| old.get(key) == Some(value));
            assert!(is_new || subset && !later, "{at} {choice:?}: {} keys", found.len());
            assert!(is_new || at < loaded, "{at} {choice:?}: it was promised");
            seen[usize::from(is_new)] += 1;
            assert_sound(&db);
        }
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
}

/// A load that fails at any operation leaves the database as it was, with no file more, and it can
/// be done again.
#[test]
fn all_or_none_where_the_disk_fails() {
    let mut failed = 0;
    for fault in [Fault::Io, Fault::NoSpace] {
        for nth in 1..40 {
            let vfs = MemVfs::new();
            let faults = Arc::new(FaultVfs::new(as_vfs(&vfs)));
            let db = Db::open_with(faults.clone(), "/db", tiny(), &[]).unwrap();
            db.put(key(0), "old").unwrap();
            db.flush().unwrap();
            let new: Contents = (20..60).map(|number| (key(number), vec![b'n'; 200])).collect();
            let before = files(&vfs);
            faults.add(FaultRule::new(fault).nth(nth).once());
            let result = load(&db, &new, 15);
            faults.clear();
            if let Err(error) = result {
                failed += 1;
                assert_eq!(contents(&db).len(), 1, "{nth}: {error}");
                if db.health().0 == Health::Ok {
                    assert_eq!(files(&vfs), before, "{nth}: {error}");
                } else {
                    db.resume().unwrap();
                }
                load(&db, &new, 15).unwrap();
            }
            assert_eq!(contents(&db).len(), 41, "{nth}");
            assert_sound(&db);
        }
    }
    assert!(failed > 20, "{failed}");
}

/// After an error of the disk a part refuses everything: it lacks an entry.
#[test]
fn a_part_that_failed_is_lost() {
    let vfs = MemVfs::new();
    let faults = Arc::new(FaultVfs::new(as_vfs(&vfs)));
    let db = Db::open_with(faults.clone(), "/db", tiny(), &[]).unwrap();
    let before = files(&vfs);
    let load = db.bulk_load().unwrap();
    let mut part = load.part();
    faults.add(FaultRule::new(Fault::NoSpace).once());
    assert!(matches!(part.put("a", "1"), Err(Error::Io { .. })));
    faults.clear();
    for result in [part.put("b", "1"), part.finish()] {
        assert!(matches!(result, Err(Error::InvalidArgument(_))), "{result:?}");
    }
    assert_eq!(files(&vfs), before);
    load.finish().unwrap();
    assert_eq!(contents(&db), Contents::new());
}

/// A load that is given up while the health is bad for another reason does not make it worse: what
/// heals by itself still does.
#[test]
fn a_load_given_up_leaves_the_health_as_it_is() {
    let faults = FaultVfs::new(as_vfs(&MemVfs::new()));
    let options = Options { background_threads: 1, ..tiny() };
    let db = Db::open_with(Arc::new(faults.clone()), "/db", options, &[]).unwrap();
    let refused = db.bulk_load().unwrap();
    write_part(&refused, &[(key(1), b"1".to_vec())]).unwrap();
    let overlapping = db.bulk_load().unwrap();
    for _ in 0..2 {
        write_part(&overlapping, &[(key(1), b"1".to_vec())]).unwrap();
    }
    faults.add(FaultRule::new(Fault::NoSpace).class(IoClass::Manifest).on(VfsOperation::Write));
    db.put(key(0), "0").unwrap();
    db.flush().unwrap_err();
    assert_eq!(db.health().0, Health::Degraded);
    let error = refused.finish().unwrap_err();
    assert!(matches!(error, Error::Background { .. }), "{error}");
    let error = overlapping.finish().unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    assert_eq!(db.health().0, Health::Degraded);
    faults.clear();
    for _ in 0..3000 {
        if db.health().0 == Health::Ok {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(db.health().0, Health::Ok);
    assert_eq!(contents(&db).len(), 1);
    assert_sound(&db);
}
