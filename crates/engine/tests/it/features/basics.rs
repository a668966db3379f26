//! What a user does first: open, write, read, reopen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::common::{as_vfs, assert_sound, contents, small};
use sateen::timeline::EventKind;
use sateen::vfs::{
    CrashChoice, Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation,
};
use sateen::{
    ColumnFamilyOptions, Db, Error, Options, ReadOptions, WalMode, WriteBatch, WriteOptions,
};

fn tiny() -> Options {
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.column_family.memtable_bytes = 64 << 10;
    options.column_family.table_bytes = 32 << 10;
    options.column_family.level_base_bytes = 128 << 10;
    options
}

/// With `memory_only` nothing is read from the disk, and what is not known is no answer.
#[test]
fn reads_that_may_not_go_to_the_disk_say_so() {
    let vfs = MemVfs::new();
    let options = Options { background_threads: 0, ..Options::default() };
    let open = || Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    let db = open();
    (0..100_u8).for_each(|n| db.put([n], [n; 1000]).unwrap());
    db.flush().unwrap();
    db.close().unwrap();
    let db = open();
    db.put("new", "value").unwrap();
    let family = db.default_column_family();
    let memory = ReadOptions { memory_only: true, ..ReadOptions::default() };
    assert_eq!(family.reading(&memory).get("new").unwrap().as_deref(), Some(&b"value"[..]));
    let refused = family.reading(&memory).get([7]);
    assert!(matches!(refused, Err(Error::NotInMemory)), "{refused:?}");
    let answers = family.reading(&memory).multi_get(&[&b"new"[..], &[7]]);
    assert!(answers[0].is_ok() && matches!(answers[1], Err(Error::NotInMemory)));
    let mut iter = db.cursor(&memory).unwrap();
    iter.seek_to_first();
    assert!(!iter.valid() && matches!(iter.status(), Err(Error::NotInMemory)));
    // Others may, and then it is there.
    assert_eq!(db.get([7]).unwrap().unwrap(), [7; 1000]);
    assert_eq!(family.reading(&memory).get([7]).unwrap().unwrap(), [7; 1000]);
    let far = family.reading(&memory).get([77]);
    assert!(matches!(far, Err(Error::NotInMemory)), "its block is another: {far:?}");
    iter.seek([7]);
    assert_eq!(iter.key(), [7]);
    while iter.valid() {
        iter.next();
    }
    assert!(matches!(iter.status(), Err(Error::NotInMemory)), "the next block is not there");
}

#[test]
fn what_was_written_is_read_before_and_after_reopening() {
    let vfs = Arc::new(MemVfs::new());
    let mut model = BTreeMap::new();
    for round in 0..3_u32 {
        let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
        assert_eq!(contents(&db), model);
        for i in 0..5_000_u32 {
            let key = format!("key{:06}", i.wrapping_mul(2_654_435_761) % 3_000).into_bytes();
            let value = format!("value {round} {i} {}", "x".repeat(100)).into_bytes();
            if i % 7 == 0 {
                db.delete(&key).unwrap();
                model.remove(&key);
            } else {
                db.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            if i % 50 == 0 {
                db.step().unwrap();
            }
        }
        for i in 0..3_000 {
            let key = format!("key{i:06}").into_bytes();
            assert_eq!(db.get(&key).unwrap().as_ref(), model.get(&key), "{i}");
        }
        assert_eq!(contents(&db), model);
        db.wait_idle().unwrap();
        assert_eq!(contents(&db), model);
        db.close().unwrap();
    }
}

#[test]
fn threads_and_the_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = tiny();
    options.background_threads = 2;
    for wal in [WalMode::Buffered, WalMode::Off, WalMode::SyncEachWrite] {
        let path = directory.path().join(format!("{wal:?}"));
        let options = Options { wal, ..options.clone() };
        let per_thread = if wal == WalMode::SyncEachWrite { 50 } else { 5_000 };
        let db = Db::open(&path, options.clone()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                let db = db.clone();
                scope.spawn(move || {
                    for i in 0..per_thread {
                        db.put(format!("{thread}-{i:05}"), [b'v'; 200]).unwrap();
                    }
                });
            }
        });
        assert_eq!(contents(&db).len(), 4 * per_thread as usize);
        db.wait_idle().unwrap();
        drop(db);
        let db = Db::open(&path, options).unwrap();
        assert_eq!(contents(&db).len(), 4 * per_thread as usize);
    }
}

#[test]
fn batches_are_atomic_across_families_and_snapshots_hold() {
    let vfs = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    let other = db.create_column_family("other", ColumnFamilyOptions::default()).unwrap();
    db.put("a", "1").unwrap();
    let before = db.snapshot();
    let mut batch = WriteBatch::new();
    batch.put("a", "2").unwrap();
    batch.to(&other).put("b", "3").unwrap();
    db.write(&batch, &WriteOptions::default()).unwrap();
    assert_eq!(db.get("a").unwrap(), Some(b"2".to_vec()));
    assert_eq!(other.get("b").unwrap(), Some(b"3".to_vec()));
    let then = ReadOptions::at(&before);
    assert_eq!(db.reading(&then).get("a").unwrap(), Some(b"1".to_vec()));
    assert_eq!(other.reading(&then).get("b").unwrap(), None);
    db.flush_all().unwrap();
    db.compact_range(None, None, &Default::default()).unwrap();
    assert_eq!(db.reading(&then).get("a").unwrap(), Some(b"1".to_vec()));
    db.close().unwrap();
    let db = Db::open_with(vfs, "/db", tiny(), &[]).unwrap();
    let other = db.column_family("other").unwrap();
    assert_eq!(other.get("b").unwrap(), Some(b"3".to_vec()));
    db.drop_column_family(&other).unwrap();
    assert!(other.get("b").is_err());
    assert_eq!(db.column_families(), ["default"]);
}

#[test]
fn a_database_opens_after_the_tables_that_a_checkpoint_shares_are_gone() {
    let vfs = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.checkpoint("/copy").unwrap();
    db.delete("a").unwrap();
    db.compact_range(None, None, &Default::default()).unwrap();
    db.wait_idle().unwrap();
    while db.step().unwrap() {}
    let report = db.check(&mut |_, _| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    for _ in 0..2 {
        db.close().unwrap();
        let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
        assert!(contents(&db).is_empty());
    }
    let copy = Db::open_with(vfs, "/copy", tiny(), &[]).unwrap();
    assert_eq!(copy.get("a").unwrap(), Some(b"1".to_vec()));
}

#[test]
fn a_manifest_that_begins_larger_than_its_limit_is_not_rolled_for_ever() {
    let options = Options { manifest_bytes_max: 1, ..tiny() };
    let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    let steps = (0..100).take_while(|_| db.step().unwrap()).count();
    assert!(steps < 100, "there is always something to do");
}

#[test]
fn waiting_ends_though_fewer_memtables_are_sealed_than_are_flushed_together() {
    let mut options = tiny();
    options.column_family.memtable_bytes = 1;
    options.column_family.memtables_max = 4;
    options.column_family.memtables_to_flush_min = 3;
    let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    assert_eq!(db.property("sateen.num-immutable-mem-table").unwrap(), "1");
    db.wait_idle().unwrap();
    assert_eq!(db.property("sateen.mem-table-flush-pending").unwrap(), "0");
    db.flush().unwrap();
    assert_eq!(db.property("sateen.num-immutable-mem-table").unwrap(), "0");
}

#[test]
fn a_column_family_that_nobody_writes_to_keeps_no_logs() {
    let vfs = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    let idle = db.create_column_family("idle", ColumnFamilyOptions::default()).unwrap();
    idle.put("key", "value").unwrap();
    db.flush_all().unwrap();
    let logs = || {
        let names = vfs.list("/db".as_ref()).unwrap();
        names.iter().filter(|name| name.extension().is_some_and(|part| part == "wal")).count()
    };
    for round in 0..20 {
        db.put("key", [round; 100]).unwrap();
        db.flush().unwrap();
        while db.step().unwrap() {}
    }
    assert!(logs() <= 3, "{} logs", logs());
    db.close().unwrap();
    let db = Db::open_with(vfs, "/db", tiny(), &[]).unwrap();
    let idle = db.column_family("idle").unwrap();
    let found = idle.get("key").unwrap();
    assert_eq!(found, Some(b"value".to_vec()));
    assert_eq!(db.get("key").unwrap(), Some(vec![19; 100]));
}

#[test]
fn a_sync_reaches_the_log_before_the_one_that_was_just_begun() {
    let vfs = MemVfs::new();
    let db = Db::open_with(Arc::new(vfs.clone()), "/db", tiny(), &[]).unwrap();
    let other = db.create_column_family("other", ColumnFamilyOptions::default()).unwrap();
    let options = WriteOptions::default();
    while db.step().unwrap() {}
    db.put("a", "1").unwrap();
    other.writing(&options).put("b", "2").unwrap();
    // Begins another log, and the entry of the default family stays in the old one.
    other.flush_with(&sateen::FlushOptions { wait: false }).unwrap();
    db.sync_wal().unwrap();
    let image = vfs.crash_image(CrashChoice::SyncedOnly);
    let after = Db::open_with(Arc::new(image), "/db", tiny(), &[]).unwrap();
    assert_eq!(after.get("a").unwrap(), Some(b"1".to_vec()));
}

#[test]
fn options_set_at_run_time_reach_the_default_column_family() {
    let db = Db::open_with(Arc::new(MemVfs::new()), "/db", tiny(), &[]).unwrap();
    db.set_options(&[("memtable_bytes", "128KiB"), ("slice_bytes_max", "64KiB")]).unwrap();
    let family = db.default_column_family();
    assert_eq!(family.options().memtable_bytes, 128 << 10);
    assert_eq!(db.options().slice_bytes_max, 64 << 10);
    let refused = db.set_options(&[("memtable_bytes", "1MiB"), ("levels", "3")]).unwrap_err();
    assert!(refused.to_string().contains("levels"), "{refused}");
    assert_eq!(family.options().memtable_bytes, 128 << 10, "all or none");
}

/// Two databases cannot have their logs in one directory: each would remove those of the other.
#[test]
fn a_directory_for_logs_belongs_to_one_database() {
    let vfs = MemVfs::new();
    let options = Options { wal_dir: Some("/logs".into()), ..tiny() };
    let open = |path: &str| Db::open_with(as_vfs(&vfs), path, options.clone(), &[]);
    let first = open("/first").unwrap();
    first.put("k", "v").unwrap();
    assert!(matches!(open("/second"), Err(Error::Locked { .. })), "while it is open");
    first.close().unwrap();
    drop(first);
    let refused = open("/second").unwrap_err();
    assert!(matches!(refused, Error::IncompatibleDirectory { .. }), "{refused}");
    assert!(refused.to_string().contains("/logs"), "{refused}");
    let first = open("/first").unwrap();
    assert_eq!(first.get("k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_log_that_is_read_short_is_no_end_of_it_and_nobodys() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    let options = Options { wal_dir: Some("/logs".into()), ..tiny() };
    let open = |path: &str| Db::open_with(Arc::new(faulty.clone()), path, options.clone(), &[]);
    let first = open("/first").unwrap();
    (0..9).for_each(|key| first.put([key], "value").unwrap());
    first.close().unwrap();
    drop(first);
    for nth in 1..4 {
        let short = FaultRule::new(Fault::Short).on(VfsOperation::Read).path_contains(".wal");
        faulty.add(short.from_nth(nth));
        let refused = [open("/second").unwrap_err(), open("/first").unwrap_err()];
        faulty.clear();
        for error in refused {
            let text = error.to_string();
            assert!(!error.is_corruption() && text.contains("/logs"), "read {nth}: {text}");
        }
        let db = open("/first").unwrap();
        let there = (0..9).filter(|key| db.get([*key]).unwrap().is_some());
        assert_eq!(there.count(), 9, "after short reads from the {nth}th on");
        db.close().unwrap();
    }
}

#[test]
fn logs_in_a_directory_of_their_own_survive_the_power() {
    let vfs = MemVfs::new();
    let options = Options { wal_dir: Some("/deep/down/logs".into()), ..tiny() };
    let open = |vfs: &MemVfs| {
        Db::open_with(Arc::new(vfs.clone()), "/data/base/db", options.clone(), &[]).unwrap()
    };
    let db = open(&vfs);
    db.put("a", "1").unwrap();
    db.sync_wal().unwrap();
    let after = open(&vfs.crash_image(CrashChoice::SyncedOnly));
    assert_eq!(after.get("a").unwrap(), Some(b"1".to_vec()));
}

#[test]
fn a_log_does_not_bring_back_what_was_deleted_beside_it() {
    let vfs = MemVfs::new();
    let db = Db::open_with(Arc::new(vfs.clone()), "/db", tiny(), &[]).unwrap();
    let family = db.default_column_family();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    db.put("deleted", "old").unwrap();
    db.put("overwritten", "old").unwrap();
    family.writing(&unlogged).delete("deleted").unwrap();
    family.writing(&unlogged).put("overwritten", "new").unwrap();
    // Down to the last level, where sequence numbers and deletions are given up.
    family.compact_range(None, None, &Default::default()).unwrap();
    let after = vfs.crash_image(CrashChoice::Everything);
    let after = Db::open_with(Arc::new(after), "/db", tiny(), &[]).unwrap();
    assert_eq!(after.get("deleted").unwrap(), None);
    assert_eq!(after.get("overwritten").unwrap(), Some(b"new".to_vec()));
}

/// The logs among the files of tables.
fn logs_with_values(vfs: &MemVfs) -> Vec<PathBuf> {
    let files =
        vfs.list(Path::new("/db")).unwrap().into_iter().map(|name| Path::new("/db").join(name));
    let tables = files.filter(|path| path.extension().is_some_and(|extension| extension == "sat"));
    tables.filter(|path| vfs.contents(path).unwrap().starts_with(b"SATEENwl")).collect()
}

/// A database in which some keys are written again and again, what it holds, and how many logs
/// with values were seen meanwhile.
fn with_hot_keys(vfs: &Arc<MemVfs>, options: Options) -> (Db, BTreeMap<Vec<u8>, Vec<u8>>, usize) {
    let db = Db::open_with(vfs.clone(), "/db", options, &[]).unwrap();
    let mut model = BTreeMap::new();
    let mut logs = BTreeSet::new();
    for n in 0..3_000_u32 {
        let key = if n % 2 == 0 { format!("hot{}", n % 10) } else { format!("key{n:05}") };
        let value = vec![b'a' + (n % 26) as u8; 40 + n as usize % 20];
        db.put(&key, &value).unwrap();
        model.insert(key.into_bytes(), value);
        if n % 100 == 0 {
            db.wait_idle().unwrap();
            logs.extend(logs_with_values(vfs));
        }
    }
    db.wait_idle().unwrap();
    (db, model, logs.len())
}

/// The profile `triad`, in which hot keys stay in memory only if their values do not stay in the
/// log.
fn small_triad(values_stay_in_log: bool, memtable_bytes: u64) -> Options {
    let mut options = small("triad", memtable_bytes);
    options.column_family.values_stay_in_log = values_stay_in_log;
    options
}

#[test]
fn values_stay_in_the_log_or_hot_keys_in_memory() {
    for in_log in [true, false] {
        let vfs = Arc::new(MemVfs::new());
        let options = small_triad(in_log, 4 << 10);
        let (db, model, logs) = with_hot_keys(&vfs, options.clone());
        let kept = db.metrics().flushes.keys_kept;
        assert_eq!((logs > 10, kept > 20), (in_log, !in_log), "{logs} logs, {kept} keys");
        assert_eq!((logs > 0, kept > 0), (in_log, !in_log), "not both");
        assert_eq!(contents(&db), model);
        assert_sound(&db);
        // A machine that stops keeps what was durable; what was not flushed is in the log.
        let image = Arc::new(vfs.crash_image(CrashChoice::Everything));
        let after = Db::open_with(image, "/db", options, &[]).unwrap();
        assert_eq!(contents(&after), model);
        after.close().unwrap();
        // On demand all is stored, and what goes down takes its values along.
        db.flush().unwrap();
        db.compact_range(None, None, &Default::default()).unwrap();
        db.wait_idle().unwrap();
        assert_eq!(contents(&db), model);
        assert_eq!(logs_with_values(&vfs), Vec::<PathBuf>::new());
        assert_sound(&db);
        db.close().unwrap();
    }
}

/// Keys that are written less often than the mean are flushed, even if they are written twice.
#[test]
fn keys_below_the_mean_are_flushed() {
    let vfs = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs, "/db", small_triad(false, 64 << 10), &[]).unwrap();
    // 200 keys with 2 entries each, 10 with 40 each: the mean is 3.8.
    for n in 0..800_u32 {
        if n < 400 {
            db.put(format!("twice{}", n % 200), vec![b'v'; 20]).unwrap();
        }
        if n % 2 == 0 {
            db.put(format!("often{}", n / 2 % 10), vec![b'v'; 20]).unwrap();
        }
    }
    while db.metrics().flushes.keys_kept == 0 {
        db.put("rest", vec![b'v'; 1000]).unwrap();
        db.wait_idle().unwrap();
    }
    assert!(db.metrics().flushes.keys_kept < 40, "{}", db.metrics().flushes.keys_kept);
    db.close().unwrap();
}

#[test]
fn a_damaged_value_in_a_log_is_reported() {
    let vfs = Arc::new(MemVfs::new());
    let mut options = small("triad", 64 << 10);
    options.block_cache_bytes = 1;
    let db = Db::open_with(vfs.clone(), "/db", options, &[]).unwrap();
    db.put("key", vec![b'v'; 1000]).unwrap();
    db.put("other", vec![b'o'; 1000]).unwrap();
    db.flush().unwrap();
    let logs = logs_with_values(&vfs);
    let [log] = &*logs else { panic!("one log: {logs:?}") };
    let contents = vfs.contents(log).unwrap();
    let at = contents.windows(8).position(|bytes| bytes == b"vvvvvvvv").unwrap();
    let file = vfs.open(log, OpenOptions::WRITE).unwrap();
    file.write_at(b"w", at as u64 + 500, IoClass::Client).unwrap();
    let error = db.get("key").unwrap_err();
    assert!(matches!(error, Error::Corruption { .. }), "{error}");
    assert!(error.to_string().contains(log.to_str().unwrap()), "{error}");
    assert_eq!(db.get("other").unwrap(), Some(vec![b'o'; 1000]));
    // The log in use has the same bytes, by its other name.
    let told = db.check(&mut |_, _| {}).unwrap();
    let named = |end| told.problems.iter().any(|problem| problem.to_string().contains(end));
    assert!(told.problems.len() == 2 && named(".wal") && named(".sat"), "{:?}", told.problems);
}

#[test]
fn without_a_log_all_is_flushed() {
    let vfs = Arc::new(MemVfs::new());
    let (db, model, logs) =
        with_hot_keys(&vfs, Options { wal: WalMode::Off, ..small("triad", 4 << 10) });
    assert_eq!(db.metrics().flushes.keys_kept, 0);
    assert_eq!(logs, 0);
    assert_eq!(contents(&db), model);
    let told = db.timeline().events.iter().any(|event| event.kind == EventKind::CannotUseLog);
    assert!(told, "and it is said");
    db.close().unwrap();
}

/// What a snapshot sees of a key that stays in memory, by a newer entry, is in the table.
#[test]
fn snapshots_see_what_was_before_a_hot_key_was_written_again() {
    let vfs = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs, "/db", small_triad(false, 64 << 10), &[]).unwrap();
    let mut snapshots = Vec::new();
    for n in 0..40_u32 {
        db.put("hot", format!("value {n}")).unwrap();
        db.put(format!("key{n}"), vec![b'v'; 100]).unwrap();
        if n % 8 == 0 {
            snapshots.push((db.snapshot(), n));
        }
    }
    for n in 0..2_000_u32 {
        db.put(format!("more{n}"), vec![b'v'; 100]).unwrap();
        // It rests for a while, so that nothing newer is there when it is flushed.
        if n % 50 < 25 {
            db.put("hot", format!("value {}", 40 + n)).unwrap();
        }
        if n % 50 == 49 {
            db.wait_idle().unwrap();
        }
    }
    db.wait_idle().unwrap();
    assert!(db.metrics().flushes.keys_kept > 0);
    for (snapshot, n) in snapshots {
        let at = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
        let seen = db.reading(&at).get("hot").unwrap();
        assert_eq!(seen, Some(format!("value {n}").into_bytes()));
    }
    assert_eq!(db.get("hot").unwrap(), Some(b"value 2014".to_vec()));
}

/// A power failure right after a flush leaves a prefix of what was written.
#[test]
fn what_a_flush_leaves_in_the_log_is_durable_with_it() {
    let hot = small("triad", 4 << 10);
    let mut log_only = hot.clone();
    log_only.column_family.memtable_hot_part = 0.0;
    let mut hot_only = hot.clone();
    hot_only.column_family.values_stay_in_log = false;
    for options in [hot, log_only, hot_only] {
        let vfs = Arc::new(MemVfs::new());
        let db = Db::open_with(vfs.clone(), "/db", options.clone(), &[]).unwrap();
        let mut states = vec![BTreeMap::new()];
        let mut most = 0;
        for n in 1..800_usize {
            let mut state: BTreeMap<Vec<u8>, Vec<u8>> = states[n - 1].clone();
            let mut batch = WriteBatch::new();
            let mark = (b"mark".to_vec(), n.to_string().into_bytes());
            let hot = (format!("hot{}", n % 3).into_bytes(), vec![b'a' + (n % 26) as u8; 50]);
            let cold = (format!("key{n}").into_bytes(), vec![b'a' + (n % 26) as u8; 40]);
            for (key, value) in [mark, hot, cold] {
                batch.put(&key, &value).unwrap();
                state.insert(key, value);
            }
            db.write(&batch, &WriteOptions::default()).unwrap();
            states.push(state);
            if n % 7 != 0 {
                continue;
            }
            db.wait_idle().unwrap();
            let image = Arc::new(vfs.crash_image(CrashChoice::SyncedOnly));
            let after = Db::open_with(image, "/db", options.clone(), &[]).unwrap();
            let found = contents(&after);
            let commits = found
                .get(&b"mark"[..])
                .map_or(0, |mark| std::str::from_utf8(mark).unwrap().parse::<usize>().unwrap());
            assert_eq!(found, states[commits], "after {n}");
            assert!(commits >= most, "{commits} commits, and {most} before");
            most = commits;
        }
        assert!(most > 700, "{most}");
    }
}
