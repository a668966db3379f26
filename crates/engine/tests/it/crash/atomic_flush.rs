//! `atomic_flush`: a flush stores all column families, or none of them, at one commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sateen::vfs::{CrashChoice, Fault, FaultRule, FaultVfs, IoClass, MemVfs, VfsOperation};
use sateen::{
    ColumnFamily, ColumnFamilyOptions, Db, FlushOptions, Health, Options, ReadOptions, WalMode,
    WriteBatch, WriteOptions,
};

use crate::support::common::{as_vfs, assert_sound, tiny};

const NAMES: [&str; 3] = ["default", "large", "small"];

fn options() -> Options {
    let options = Options { create_missing_column_families: true, ..tiny() };
    Options { wal: WalMode::Off, atomic_flush: true, ..options }
}

fn open(vfs: Arc<dyn sateen::vfs::Vfs>, options: &Options) -> Db {
    let of = |name: &'static str| (name, options.column_family.clone());
    let families: Vec<(&str, ColumnFamilyOptions)> = NAMES[1..].iter().copied().map(of).collect();
    Db::open_with(vfs, "/db", options.clone(), &families).unwrap()
}

fn families(db: &Db) -> Vec<ColumnFamily> {
    NAMES.iter().map(|name| db.column_family(name).unwrap()).collect()
}

/// The same key into all column families, with values of very different lengths.
fn write(db: &Db, key: &str, options: &WriteOptions) {
    let mut batch = WriteBatch::new();
    for (family, length) in families(db).iter().zip([10, 1000, 1]) {
        batch.to(family).put(key, vec![b'v'; length]).unwrap();
    }
    db.write(&batch, options).unwrap();
}

fn keys(db: &Db) -> Vec<Vec<Vec<u8>>> {
    let keys = |family: &ColumnFamily| {
        let mut iter = family.cursor(&ReadOptions::default()).unwrap();
        iter.seek_to_first();
        let mut keys = Vec::new();
        while iter.valid() {
            keys.push(iter.key().to_vec());
            iter.next();
        }
        keys
    };
    families(db).iter().map(keys).collect()
}

/// How many keys all column families have after a power failure: the same in each.
fn survivors(vfs: &MemVfs, options: &Options) -> usize {
    let db = open(as_vfs(&vfs.crash_image(CrashChoice::SyncedOnly)), options);
    let keys = keys(&db);
    assert!(keys.iter().all(|of_one| *of_one == keys[0]), "families differ: {keys:?}");
    keys[0].len()
}

#[test]
fn a_flush_of_one_family_stores_all() {
    let (vfs, options) = (MemVfs::new(), options());
    let db = open(as_vfs(&vfs), &options);
    write(&db, "a", &WriteOptions::default());
    assert_eq!(survivors(&vfs, &options), 0);
    db.column_family("small").unwrap().flush().unwrap();
    assert_eq!(survivors(&vfs, &options), 1);
    // Of one that has nothing to flush, too.
    db.put("only", "here").unwrap();
    db.column_family("small").unwrap().flush().unwrap();
    let image = vfs.crash_image(CrashChoice::SyncedOnly);
    assert!(open(as_vfs(&image), &options).get("only").unwrap().is_some());

    let apart = Options { atomic_flush: false, ..options };
    let vfs = MemVfs::new();
    let db = open(as_vfs(&vfs), &apart);
    write(&db, "a", &WriteOptions::default());
    db.column_family("small").unwrap().flush().unwrap();
    let left = keys(&open(as_vfs(&vfs.crash_image(CrashChoice::SyncedOnly)), &apart));
    assert_eq!(left.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 1], "without the option");
}

/// A memtable that is full, the limit of all memtables, the limit of the logs, and a close.
#[test]
fn whatever_begins_a_flush_stores_all() {
    let mut limited = options();
    limited.column_family.memtable_bytes = 1 << 20;
    limited.all_memtables_bytes = 256 << 10;
    let mut logged = options();
    (logged.wal, logged.max_total_wal_bytes) = (WalMode::Buffered, 16 << 10);
    logged.column_family.memtable_bytes = 1 << 20;
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    for (options, write_options) in [
        (options(), WriteOptions::default()),
        (limited, WriteOptions::default()),
        (logged, unlogged),
    ] {
        let vfs = MemVfs::new();
        let db = open(as_vfs(&vfs), &options);
        let mut seen = 0;
        for number in 0..600 {
            write(&db, &format!("key{number:04}"), &write_options);
            if !write_options.disable_wal || number % 2 == 0 {
                db.step().unwrap();
            } else {
                // The logs have something to be limited for.
                db.writing(&write_options).put("logged", vec![7; 500]).unwrap();
                db.step().unwrap();
            }
            if number % 50 == 49 && !write_options.disable_wal {
                let now = survivors(&vfs, &options);
                assert!(now >= seen, "{now} keys after {seen}");
                seen = now;
            }
        }
        assert!(seen > 0 || write_options.disable_wal, "nothing was flushed");
        db.close().unwrap();
        if !write_options.disable_wal {
            assert_eq!(survivors(&vfs, &options), 600);
        }
        assert_sound(&open(as_vfs(&vfs), &options));
    }
}

/// Which member fails does not matter: nothing is installed, and all of it is tried again.
#[test]
fn a_member_that_fails_keeps_all_back() {
    for nth in 1..=3 {
        let (memory, options) = (MemVfs::new(), options());
        let vfs = FaultVfs::new(as_vfs(&memory));
        let db = open(Arc::new(vfs.clone()), &options);
        write(&db, "a", &WriteOptions::default());
        let rule = FaultRule::new(Fault::Io).on(VfsOperation::Sync).class(IoClass::Flush).nth(nth);
        let rule = vfs.add(rule);
        db.flush().unwrap_err();
        assert_eq!(vfs.happened(rule), 1, "sync {nth}");
        assert!(db.live_tables().is_empty(), "sync {nth}");
        assert_eq!(survivors(&memory, &options), 0, "sync {nth}");
        vfs.clear();
        if db.health().0 != Health::Ok {
            db.resume().unwrap();
        }
        db.flush().unwrap();
        assert_eq!(survivors(&memory, &options), 1);
        db.close().unwrap();
        assert_sound(&open(as_vfs(&memory), &options));
    }
}

#[test]
fn a_family_that_is_dropped_meanwhile_keeps_nobody() {
    let mut options = options();
    options.slice_bytes_max = 4 << 10;
    options.column_family.memtable_bytes = 1 << 20;
    for steps in 0..12 {
        let vfs = MemVfs::new();
        let db = open(as_vfs(&vfs), &options);
        (0..40).for_each(|n| write(&db, &format!("key{n:02}"), &WriteOptions::default()));
        let large = db.column_family("large").unwrap();
        large.flush_with(&FlushOptions { wait: false }).unwrap();
        for _ in 0..steps {
            db.step().unwrap();
        }
        db.drop_column_family(&large).unwrap();
        drop(large);
        db.flush().unwrap();
        let again = open(as_vfs(&vfs.crash_image(CrashChoice::SyncedOnly)), &options);
        let counts: Vec<_> = keys(&again).iter().map(Vec::len).collect();
        assert_eq!(counts, [40, 0, 40], "after {steps} steps");
        db.wait_idle().unwrap();
        assert_sound(&db);
    }
}

/// Writers, flushes and a family that comes and goes, with threads: at any moment a power failure
/// leaves one commit of each writer in all column families.
#[test]
fn writers_and_flushes_at_the_same_time() {
    let mut options = options();
    options.background_threads = 3;
    options.max_background_flushes = 2;
    options.column_family.memtable_bytes = 8 << 10;
    let vfs = MemVfs::new();
    let db = open(as_vfs(&vfs), &options);
    let done = AtomicBool::new(false);
    let mut images = Vec::new();
    std::thread::scope(|scope| {
        let (db, done) = (&db, &done);
        let writers = (0..3).map(|writer| {
            scope.spawn(move || {
                for number in 0..400_u32 {
                    let mut batch = WriteBatch::new();
                    for family in &families(db) {
                        let fill = number.to_string().repeat(1 + (number % 60) as usize);
                        batch
                            .to(family)
                            .put(format!("fill{writer}-{}", number % 50), fill)
                            .unwrap();
                        let mark = number.to_string();
                        batch.to(family).put(format!("mark{writer}"), mark).unwrap();
                    }
                    db.write(&batch, &WriteOptions::default()).unwrap();
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let family = db.create_column_family("extra", Default::default()).unwrap();
                family.put("key", vec![7; 2000]).unwrap();
                family.flush_with(&FlushOptions { wait: false }).unwrap();
                db.drop_column_family(&family).unwrap();
            }
        });
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            if images.len() < 60 {
                images.push(vfs.crash_image(CrashChoice::SyncedOnly));
            }
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    for image in images {
        let db = open(as_vfs(&image), &options);
        for writer in 0..3 {
            let of = |family: &ColumnFamily| family.get(format!("mark{writer}")).unwrap();
            let marks: Vec<_> = families(&db).iter().map(of).collect();
            assert!(marks.iter().all(|mark| *mark == marks[0]), "families differ: {marks:?}");
        }
        assert_sound(&db);
    }
}
