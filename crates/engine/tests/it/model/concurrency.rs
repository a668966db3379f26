//! Many threads on one database: batches are seen whole or not at all, commits in their order, and
//! nothing that is acknowledged is lost while memtables switch, families go and databases close.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sateen::vfs::{CrashChoice, Fault, FaultRule, FaultVfs, IoClass, MemVfs, VfsOperation};
use sateen::{ColumnFamily, Db, Error, Options, ReadOptions, WalMode, WriteBatch, WriteOptions};

use crate::support::common::{Random, as_vfs, assert_sound, read_all, tiny};

fn threaded() -> Options {
    Options { background_threads: 2, ..tiny() }
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// A value of `length` bytes, at least 8, that says `number`.
fn value(number: u64, length: usize) -> Vec<u8> {
    let mut value = vec![b'.'; length.max(8)];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

/// Both families hold the same under all keys at `options`' moment; a batch writes one key of both.
fn families_agree(families: &[ColumnFamily; 2], options: &ReadOptions) {
    let [a, b] = families;
    assert!(read_all(a, options) == read_all(b, options), "half a batch is seen");
}

#[test]
fn batches_are_seen_whole_at_any_snapshot() {
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", threaded(), &[]).unwrap();
    let other = db.create_column_family("other", threaded().column_family).unwrap();
    let families = [db.default_column_family(), other];
    let writers_left = AtomicU64::new(3);
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (db, families, left) = (&db, &families, &writers_left);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for i in 0..1500 {
                    // Writers meet on the same keys.
                    let key = format!("key{}", random.below(40));
                    let value = value(i * 3 + thread, 20 + random.below(100) as usize);
                    let mut batch = WriteBatch::new();
                    for family in families {
                        match random.one_in(1_000_000) {
                            true => batch.to(family).delete(&key).unwrap(),
                            false => batch.to(family).put(&key, &value).unwrap(),
                        }
                    }
                    db.write(&batch, &WriteOptions::default()).unwrap();
                }
                left.fetch_sub(1, Ordering::Relaxed);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut rounds = 0;
                while writers_left.load(Ordering::Relaxed) > 0 || rounds < 3 {
                    let snapshot = db.snapshot();
                    let options = ReadOptions::at(&snapshot);
                    families_agree(&families, &options);
                    // The same again, however the tree has changed meanwhile.
                    families_agree(&families, &options);
                    rounds += 1;
                }
            });
        }
    });
    families_agree(&families, &ReadOptions::default());
    db.wait_idle().unwrap();
    assert_sound(&db);
}

#[test]
fn an_iterator_never_sees_half_a_batch() {
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", threaded(), &[]).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let (db, over) = (&db, &over);
            scope.spawn(move || {
                for round in 0..600 {
                    // All keys of one batch get one number; batches of two threads overwrite each
                    // other.
                    let mut batch = WriteBatch::new();
                    for key in 0..12 {
                        batch.put(format!("key{key:02}"), value(round * 2 + thread, 60)).unwrap();
                    }
                    db.write(&batch, &WriteOptions::default()).unwrap();
                }
                over.store(true, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            let (mut seen, mut rounds) = (0, 0);
            while !over.load(Ordering::Relaxed) || rounds < 3 {
                let mut iter = db.cursor(&ReadOptions::default()).unwrap();
                let mut numbers = Vec::new();
                iter.seek_to_first();
                while iter.valid() {
                    numbers.push(number(iter.value()));
                    iter.next();
                }
                iter.status().unwrap();
                assert!(numbers.is_empty() || numbers.len() == 12, "{} of 12 keys", numbers.len());
                assert!(numbers.windows(2).all(|pair| pair[0] == pair[1]), "{numbers:?}");
                seen += usize::from(!numbers.is_empty());
                rounds += 1;
            }
            assert!(seen > 0, "the reader saw something");
        });
    });
}

#[test]
fn commits_are_seen_in_their_order() {
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", threaded(), &[]).unwrap();
    const WRITERS: u64 = 3;
    const COUNT: u64 = 2000;
    let left = AtomicU64::new(WRITERS);
    std::thread::scope(|scope| {
        for thread in 0..WRITERS {
            let (db, left) = (&db, &left);
            scope.spawn(move || {
                for i in 1..=COUNT {
                    db.put(format!("first{thread}"), value(i, 30)).unwrap();
                    db.put(format!("second{thread}"), value(i, 30)).unwrap();
                    // What is acknowledged is seen.
                    let own = db.get(format!("second{thread}")).unwrap().unwrap();
                    assert_eq!(number(&own), i);
                }
                left.fetch_sub(1, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            let mut last = BTreeMap::new();
            while left.load(Ordering::Relaxed) > 0 {
                let snapshot = db.snapshot();
                let options = ReadOptions::at(&snapshot);
                let read = |key: String| {
                    let found = db.reading(&options).get(key).unwrap();
                    found.map_or(0, |value| number(&value))
                };
                for thread in 0..WRITERS {
                    let second = read(format!("second{thread}"));
                    let first = read(format!("first{thread}"));
                    assert!(
                        first == second || first == second + 1,
                        "at one moment the first write is {first} and the second {second}"
                    );
                    let before = last.insert(thread, first).unwrap_or(0);
                    assert!(first >= before, "time runs backwards");
                }
            }
        });
    });
}

#[test]
fn what_eight_threads_synced_survives_the_power() {
    let vfs = MemVfs::new();
    let options = Options { wal: WalMode::SyncEachWrite, ..threaded() };
    let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    let acknowledged: Vec<AtomicU64> = (0..8).map(|_| AtomicU64::new(0)).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|thread| {
                let (db, mine) = (&db, &acknowledged[thread]);
                scope.spawn(move || {
                    for i in 1..=200 {
                        db.put(format!("key{thread}"), value(i, 50)).unwrap();
                        mine.store(i, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut seed = 0;
            while !over.load(Ordering::Relaxed) || seed < 4 {
                seed += 1;
                let before: Vec<u64> =
                    acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).collect();
                let choice =
                    [CrashChoice::SyncedOnly, CrashChoice::Subset(seed)][seed as usize % 2];
                let image = vfs.crash_image(choice);
                let zero = Options { background_threads: 0, ..options.clone() };
                let after = Db::open_with(as_vfs(&image), "/db", zero, &[]).unwrap();
                for (thread, before) in before.into_iter().enumerate() {
                    let found = after.get(format!("key{thread}")).unwrap();
                    let found = found.map_or(0, |value| number(&value));
                    assert!(found >= before, "thread {thread}: {found} of {before}, {choice:?}");
                }
                assert_sound(&after);
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn memtables_switch_under_load() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = threaded();
    options.column_family.memtable_bytes = 1 << 10;
    let db = Db::open(directory.path(), options.clone()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for i in 0..500 {
                    db.put(format!("{thread}-{i:04}"), value(i, 100)).unwrap();
                    if i % 100 == 0 {
                        db.flush().unwrap();
                    }
                    let back = format!("{thread}-{:04}", i / 2);
                    let found = db.get(back).unwrap().unwrap();
                    assert_eq!(number(&found), i / 2);
                }
            });
        }
    });
    db.wait_idle().unwrap();
    assert_sound(&db);
    assert_eq!(read_all(&db.default_column_family(), &ReadOptions::default()).len(), 2000);
    db.close().unwrap();
    drop(db);
    let db = Db::open(directory.path(), options).unwrap();
    assert_eq!(read_all(&db.default_column_family(), &ReadOptions::default()).len(), 2000);
}

#[test]
fn a_column_family_is_dropped_under_load() {
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), "/db", threaded(), &[]).unwrap();
    let mut written = 0;
    for round in 0..6 {
        let family = db.create_column_family("short-lived", threaded().column_family).unwrap();
        let counts: Vec<u64> = std::thread::scope(|scope| {
            let writer = |thread: u64| {
                let (db, family) = (&db, &family);
                move || {
                    let mut done = 0;
                    loop {
                        let mut batch = WriteBatch::new();
                        let key = format!("{round}-{thread}-{done:05}");
                        batch.put(&key, value(done, 50)).unwrap();
                        batch.to(family).put(&key, value(done, 50)).unwrap();
                        match db.write(&batch, &WriteOptions::default()) {
                            Ok(()) => done += 1,
                            Err(Error::NoSuchColumnFamily(_)) => return done,
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            };
            let writers: Vec<_> = (0..3).map(|thread| scope.spawn(writer(thread))).collect();
            let mut iter = family.cursor(&ReadOptions::default()).unwrap();
            let until = db.latest_sequence_number() + 500;
            while db.latest_sequence_number() < until {
                let ended = writers.iter().any(|writer| writer.is_finished());
                assert!(!ended, "a writer ended before the family was dropped");
                std::thread::yield_now();
            }
            db.drop_column_family(&family).unwrap();
            // An iterator made before goes on: it was made before all writes.
            iter.seek_to_first();
            iter.status().unwrap();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        // Exactly what was acknowledged: the batch that was refused left nothing.
        written += counts.iter().sum::<u64>() as usize;
        let found = read_all(&db.default_column_family(), &ReadOptions::default());
        assert_eq!(found.len(), written, "round {round}");
    }
    db.wait_idle().unwrap();
    assert_sound(&db);
    assert_eq!(db.column_families(), ["default"]);
    db.close().unwrap();
    let db = Db::open_with(as_vfs(&vfs), "/db", threaded(), &[]).unwrap();
    let found = read_all(&db.default_column_family(), &ReadOptions::default());
    assert_eq!(found.len(), written, "after reopening");
}

#[test]
fn a_drop_that_fails_leaves_the_batches_of_its_time_whole() {
    for _ in 0..10 {
        let faulty = Arc::new(FaultVfs::new(as_vfs(&MemVfs::new())));
        let mut options = threaded();
        // Nothing but the drop uses the manifest.
        options.column_family.memtable_bytes = 16 << 20;
        options.manifest_bytes_max = 16 << 20;
        let db = Db::open_with(faulty.clone(), "/db", options.clone(), &[]).unwrap();
        let family = db.create_column_family("kept", options.column_family).unwrap();
        std::thread::scope(|scope| {
            let writer = |thread: u64| {
                let (db, family) = (&db, &family);
                move || {
                    for done in 0_u64.. {
                        let mut batch = WriteBatch::new();
                        let key = format!("{thread}-{done:05}");
                        batch.put(&key, value(done, 50)).unwrap();
                        batch.to(family).put(&key, value(done, 50)).unwrap();
                        if db.write(&batch, &WriteOptions::default()).is_err() {
                            return;
                        }
                    }
                }
            };
            let writers: Vec<_> = (0..3).map(|thread| scope.spawn(writer(thread))).collect();
            while db.latest_sequence_number() < 300 {
                std::thread::yield_now();
            }
            let manifest = FaultRule::new(Fault::Io).class(IoClass::Manifest);
            faulty.add(manifest.on(VfsOperation::Sync));
            db.drop_column_family(&family).unwrap_err();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
        });
        faulty.clear();
        db.resume().unwrap();
        families_agree(&[db.default_column_family(), family], &ReadOptions::default());
        assert_sound(&db);
    }
}

#[test]
fn a_database_is_closed_while_others_write() {
    for wal in [WalMode::Buffered, WalMode::SyncEachWrite, WalMode::Off] {
        for seed in 0..4 {
            let vfs = MemVfs::new();
            let options = Options { wal, ..threaded() };
            let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
            let counts: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
            std::thread::scope(|scope| {
                for (thread, count) in counts.iter().enumerate() {
                    let db = db.clone();
                    scope.spawn(move || {
                        for i in 1.. {
                            match db.put(format!("{thread}-{i:05}"), value(i, 40)) {
                                Ok(()) => count.store(i, Ordering::SeqCst),
                                Err(Error::Closed) => return,
                                Err(error) => panic!("{error}"),
                            }
                            let read = db.get(format!("{thread}-{i:05}"));
                            assert!(matches!(read, Ok(Some(_)) | Err(Error::Closed)));
                        }
                    });
                }
                while db.latest_sequence_number() < 50 + 200 * seed {
                    std::thread::yield_now();
                }
                db.close().unwrap();
            });
            drop(db);
            let db = Db::open_with(as_vfs(&vfs), "/db", options, &[]).unwrap();
            if wal != WalMode::Off {
                // The process lives on: what was acknowledged is in the log.
                for (thread, count) in counts.iter().enumerate() {
                    for i in 1..=count.load(Ordering::SeqCst) {
                        let found = db.get(format!("{thread}-{i:05}")).unwrap();
                        assert!(found.is_some(), "{wal:?}: write {i} of thread {thread} is lost");
                    }
                }
            }
            assert_sound(&db);
        }
    }
}

#[test]
fn handles_may_be_dropped_in_any_thread() {
    let vfs: Arc<MemVfs> = Arc::new(MemVfs::new());
    for round in 0..20 {
        let db = Db::open_with(vfs.clone(), "/db", threaded(), &[]).unwrap();
        let expected = (round > 0).then(|| value(round - 1, 40));
        assert_eq!(db.get("key").unwrap(), expected);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let db = db.clone();
                scope.spawn(move || db.put("key", value(round, 40)).unwrap());
            }
            drop(db);
        });
    }
}
