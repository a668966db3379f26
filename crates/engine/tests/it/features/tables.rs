//! The tables of a database as their owner sees them, and the work on them.

use std::time::Duration;

use sateen::vfs::MemVfs;
use sateen::{CompactRangeOptions, Db, Error, Options, ReadOptions, WaitForCompactOptions};

use crate::support::common::{as_vfs, assert_sound, contents, read_all, tiny};

fn open(vfs: &MemVfs, options: &Options) -> Db {
    Db::open_with(as_vfs(vfs), "/db", options.clone(), &[]).unwrap()
}

fn key(number: u64) -> String {
    format!("key{number:04}")
}

fn filled(vfs: &MemVfs, options: &Options) -> Db {
    let db = open(vfs, options);
    for number in 0..1_000 {
        db.put(key(number), [b'v'; 50]).unwrap();
    }
    let all = CompactRangeOptions::default();
    db.compact_range(None, None, &all).unwrap();
    db.wait_idle().unwrap();
    db
}

#[test]
fn tables_are_told_as_they_are() {
    let vfs = MemVfs::new();
    let db = filled(&vfs, &tiny());
    let other = db.create_column_family("other", db.options().column_family).unwrap();
    other.put("one", "1").unwrap();
    other.delete("two").unwrap();
    db.flush_all().unwrap();
    let tables = db.live_tables();
    let entries: u64 = tables.iter().map(|table| table.entries).sum();
    assert_eq!(entries, 1_002);
    assert!(tables.is_sorted_by_key(|table| table.column_family.clone()));
    let of_other = other.live_tables();
    assert_eq!(of_other.len(), 1);
    let table = &of_other[0];
    assert_eq!((table.column_family.as_str(), table.level), ("other", 0));
    assert_eq!((&*table.smallest, &*table.largest), (&b"one"[..], &b"two"[..]));
    assert_eq!((table.entries, table.deletions), (2, 1));
    assert!(as_vfs(&vfs).exists(&table.file).unwrap());
    let identity = db.identity();
    let parts: Vec<_> = identity.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12], "a UUID: {identity}");
    assert!(identity.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()), "{identity}");
    db.close().unwrap();
    assert_eq!(open(&vfs, &tiny()).identity(), identity);
    assert_ne!(filled(&MemVfs::new(), &tiny()).identity(), identity, "another database");
}

#[test]
fn a_checkpoint_has_its_own_identity_or_keeps_that_of_its_database() {
    let vfs = MemVfs::new();
    let options = tiny();
    let db = filled(&vfs, &options);
    let of = |path: &str| {
        let copy = Db::open_with(as_vfs(&vfs), path, options.clone(), &[]).unwrap();
        let identity = copy.identity();
        copy.close().unwrap();
        identity
    };
    db.checkpoint("/own").unwrap();
    let own = of("/own");
    assert_ne!(own, db.identity());
    assert_eq!(of("/own"), own, "a new manifest keeps it");
    let report = sateen::repair_with(as_vfs(&vfs), "/own", &options).unwrap();
    assert_eq!(of("/own"), own, "and so does a repair: {report:?}");
    db.checkpoint("/another").unwrap();
    assert_ne!(of("/another"), own);
    db.set_options(&[("checkpoint_keeps_identity", "true")]).unwrap();
    db.checkpoint("/same").unwrap();
    assert_eq!(of("/same"), db.identity());
}

#[test]
fn what_is_not_there_is_told_without_reading() {
    let vfs = MemVfs::new();
    let db = filled(&vfs, &tiny());
    let family = db.default_column_family();
    let now = ReadOptions::default();
    let may = |key: &str| family.reading(&now).may_contain(key).unwrap();
    db.put("in memory", "v").unwrap();
    db.delete(key(7)).unwrap();
    let read = db.metrics().counts.data_block_misses;
    assert!((0..1_000).filter(|number| *number != 7).all(|number| may(&key(number))));
    assert!(may("in memory") && !may(&key(7)) && !may("zzz"));
    let absent = (0..1_000).filter(|number| may(&format!("key{number:04}x"))).count();
    assert!(absent < 100, "{absent} of 1,000");
    db.delete_range(key(100), key(200)).unwrap();
    assert!(!may(&key(150)));
    assert_eq!(db.metrics().counts.data_block_misses, read);
}

#[test]
fn tables_of_a_range_are_given_up_unread() {
    let vfs = MemVfs::new();
    let db = filled(&vfs, &tiny());
    let family = db.default_column_family();
    let work = db.metrics().compactions.iter().map(|level| level.bytes_out).sum::<u64>();
    let reversed = family.delete_files_in_range(Some(b"b"), Some(b"a"));
    assert!(matches!(reversed, Err(Error::InvalidArgument(_))));
    let (begin, end) = (key(100), key(899));
    family.delete_files_in_range(Some(begin.as_bytes()), Some(end.as_bytes())).unwrap();
    let left = read_all(&family, &ReadOptions::default());
    assert!((200..400).contains(&left.len()), "{} are left", left.len());
    assert!((0..100).chain(900..1_000).all(|number| left.contains_key(key(number).as_bytes())));
    let now = db.metrics().compactions.iter().map(|level| level.bytes_out).sum::<u64>();
    assert_eq!(now, work);
    family.delete_files_in_range(None, None).unwrap();
    assert_eq!(db.live_tables().len(), 0);
    assert_sound(&db);
}

#[test]
fn files_stay_as_long_as_somebody_wants() {
    let vfs = MemVfs::new();
    let db = filled(&vfs, &tiny());
    let family = db.default_column_family();
    let files: Vec<_> = db.live_tables().into_iter().map(|table| table.file).collect();
    db.disable_file_deletions();
    family.delete_files_in_range(None, None).unwrap();
    while db.step().unwrap() {}
    let there = |file| as_vfs(&vfs).exists(file).unwrap();
    assert!(files.iter().all(|file| there(file)));
    db.enable_file_deletions();
    while db.step().unwrap() {}
    assert!(!files.iter().any(|file| there(file)));
    // One too many is nothing.
    db.enable_file_deletions();
}

#[test]
fn compactions_by_hand_can_be_paused() {
    let vfs = MemVfs::new();
    let db = filled(&vfs, &tiny());
    let family = db.default_column_family();
    let all = CompactRangeOptions { rewrite_last_level: true, ..CompactRangeOptions::default() };
    let compact = || family.compact_range(None, None, &all);
    db.pause_manual_compactions();
    db.pause_manual_compactions();
    assert!(matches!(compact(), Err(Error::ManualCompactionPaused)));
    db.resume_manual_compactions();
    assert!(compact().is_err());
    db.resume_manual_compactions();
    compact().unwrap();
    assert_sound(&db);
}

/// A request under way ends, and says why.
#[test]
fn a_pause_ends_what_is_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = tiny();
    options.background_threads = 2;
    let db = Db::open(directory.path(), options).unwrap();
    let family = db.default_column_family();
    let all = CompactRangeOptions { rewrite_last_level: true, ..CompactRangeOptions::default() };
    std::thread::scope(|scope| {
        let compacts = scope.spawn(|| {
            loop {
                for number in 0..300 {
                    db.put(key(number), [b'v'; 50]).unwrap();
                }
                if let Err(error) = family.compact_range(None, None, &all) {
                    return error;
                }
            }
        });
        db.pause_manual_compactions();
        let error = compacts.join().unwrap();
        assert!(matches!(error, Error::ManualCompactionPaused), "{error}");
    });
    db.resume_manual_compactions();
    family.compact_range(None, None, &all).unwrap();
}

fn compactions(db: &Db) -> u64 {
    db.metrics().compactions.iter().map(|level| level.count).sum()
}

/// The one that runs is discarded, no other starts, and flushes go on.
#[test]
fn compactions_can_be_stopped() {
    let vfs = MemVfs::new();
    let mut options = tiny();
    (options.column_family.level0_slowdown, options.column_family.level0_stop) = (40, 50);
    let db = filled(&vfs, &options);
    let running = |db: &Db| db.property("sateen.num-running-compactions").unwrap();
    let round = |db: &Db| {
        for number in 0..100 {
            db.put(key(number * 10), [b'w'; 50]).unwrap();
        }
        db.flush().unwrap();
    };
    let mut rounds = 0;
    while running(&db) == "0" {
        round(&db);
        for _ in 0..20 {
            if running(&db) == "0" {
                db.step().unwrap();
            }
        }
        rounds += 1;
        assert!(rounds < 30, "no compaction is under way");
    }
    let before = compactions(&db);
    let expected = contents(&db);
    db.stop_compactions().unwrap();
    db.stop_compactions().unwrap();
    assert_eq!(running(&db), "0");
    let refused = db.compact_range(None, None, &CompactRangeOptions::default());
    assert!(matches!(refused, Err(Error::ManualCompactionPaused)));
    let level0 = |db: &Db| db.live_tables().iter().filter(|table| table.level == 0).count();
    let tables = level0(&db);
    (0..4).for_each(|_| round(&db));
    while db.step().unwrap() {}
    assert_eq!((compactions(&db), running(&db)), (before, "0".to_owned()));
    assert!(level0(&db) >= tables + 4);
    assert_eq!(contents(&db), expected);
    db.resume_compactions().unwrap();
    while db.step().unwrap() {}
    assert_eq!(compactions(&db), before, "another caller has stopped them, too");
    db.resume_compactions().unwrap();
    db.wait_idle().unwrap();
    assert!(compactions(&db) > before && level0(&db) < tables + 4);
    let error = db.resume_compactions().unwrap_err().to_string();
    assert!(error.contains("not stopped"), "{error}");
    db.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    assert_eq!(contents(&db), expected);
    assert_sound(&db);
}

/// A stop beside threads that compact leaves none running, and harms no writer.
#[test]
fn a_stop_waits_for_compactions_that_are_stepped() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = tiny();
    options.background_threads = 2;
    let db = Db::open(directory.path(), options).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..30 {
                (0..300).for_each(|number| db.put(key(number + round), [b'v'; 50]).unwrap());
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            db.stop_compactions().unwrap();
            assert_eq!(db.property("sateen.num-running-compactions").unwrap(), "0");
            db.resume_compactions().unwrap();
            std::thread::yield_now();
        }
    });
    db.stop_compactions().unwrap();
    // A close does not wait for them.
    db.close().unwrap();
    assert!(matches!(db.stop_compactions(), Err(Error::Closed)));
    let db = Db::open(directory.path(), tiny()).unwrap();
    assert_eq!(contents(&db).len(), 329);
    assert_sound(&db);
}

/// Also if it is over before the request is looked at again.
#[test]
fn a_short_pause_is_told_as_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = tiny();
    options.background_threads = 2;
    let db = Db::open(directory.path(), options).unwrap();
    let family = db.default_column_family();
    let all = CompactRangeOptions { rewrite_last_level: true, ..CompactRangeOptions::default() };
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut paused = 0;
            while paused < 20 {
                (0..100).for_each(|number| db.put(key(number), [b'v'; 50]).unwrap());
                match family.compact_range(None, None, &all) {
                    Ok(()) => {}
                    Err(Error::ManualCompactionPaused) => paused += 1,
                    Err(error) => {
                        over.store(true, std::sync::atomic::Ordering::Relaxed);
                        panic!("{error}");
                    }
                }
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            db.pause_manual_compactions();
            db.resume_manual_compactions();
            std::thread::yield_now();
        }
    });
    family.compact_range(None, None, &all).unwrap();
}

#[test]
fn background_work_is_waited_for() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    for number in 0..500 {
        db.put(key(number), [b'v'; 50]).unwrap();
    }
    let none = WaitForCompactOptions { timeout: Some(Duration::ZERO), ..Default::default() };
    assert!(matches!(db.wait_for_compact(&none), Err(Error::TimedOut(_))));
    let all = WaitForCompactOptions { flush: true, ..Default::default() };
    db.wait_for_compact(&all).unwrap();
    for name in ["compaction-pending", "mem-table-flush-pending", "num-entries-active-mem-table"] {
        assert_eq!(db.property(&format!("sateen.{name}")).unwrap(), "0", "{name}");
    }
    db.wait_for_compact(&WaitForCompactOptions { close: true, ..all }).unwrap();
    assert!(matches!(db.put("a", "b"), Err(Error::Closed)));
}
