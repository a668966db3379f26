//! What a user does first: open, write, read, reopen.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{assert_sound, open_arranged, small};
use sateen::vfs::{CrashChoice, MemVfs, Vfs};
use sateen::{ColumnFamilyOptions, Db, Options, ReadOptions, WalMode, WriteBatch, WriteOptions};

fn tiny() -> Options {
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.column_family.memtable_bytes = 64 << 10;
    options.column_family.table_bytes = 32 << 10;
    options.column_family.level_base_bytes = 128 << 10;
    options
}

fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    let mut all = BTreeMap::new();
    iter.seek_to_first();
    while iter.valid() {
        all.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status().unwrap();
    all
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
    batch.put_cf(&other, "b", "3").unwrap();
    db.write(&batch, &WriteOptions::default()).unwrap();
    assert_eq!(db.get("a").unwrap(), Some(b"2".to_vec()));
    assert_eq!(db.get_cf(&other, "b", &ReadOptions::default()).unwrap(), Some(b"3".to_vec()));
    let then = ReadOptions::at(&before);
    assert_eq!(db.get_cf(&db.default_column_family(), "a", &then).unwrap(), Some(b"1".to_vec()));
    assert_eq!(db.get_cf(&other, "b", &then).unwrap(), None);
    db.flush_all().unwrap();
    db.compact_range(&db.default_column_family(), None, None, &Default::default()).unwrap();
    assert_eq!(db.get_cf(&db.default_column_family(), "a", &then).unwrap(), Some(b"1".to_vec()));
    db.close().unwrap();
    let db = Db::open_with(vfs, "/db", tiny(), &[]).unwrap();
    let other = db.column_family("other").unwrap();
    assert_eq!(db.get_cf(&other, "b", &ReadOptions::default()).unwrap(), Some(b"3".to_vec()));
    db.drop_column_family(&other).unwrap();
    assert!(db.get_cf(&other, "b", &ReadOptions::default()).is_err());
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
    db.compact_range(&db.default_column_family(), None, None, &Default::default()).unwrap();
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
    db.put_cf(&idle, "key", "value", &WriteOptions::default()).unwrap();
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
    let found = db.get_cf(&idle, "key", &ReadOptions::default()).unwrap();
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
    db.put_cf(&other, "b", "2", &options).unwrap();
    // Begins another log, and the entry of the default family stays in the old one.
    db.flush_cf(&other, &sateen::FlushOptions { wait: false }).unwrap();
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
    assert_eq!(db.options_cf(&family).memtable_bytes, 128 << 10);
    assert_eq!(db.options().slice_bytes_max, 64 << 10);
    let refused = db.set_options(&[("memtable_bytes", "1MiB"), ("levels", "3")]).unwrap_err();
    assert!(refused.to_string().contains("levels"), "{refused}");
    assert_eq!(db.options_cf(&family).memtable_bytes, 128 << 10, "all or none");
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
    db.delete_cf(&family, "deleted", &unlogged).unwrap();
    db.put_cf(&family, "overwritten", "new", &unlogged).unwrap();
    // Down to the last level, where sequence numbers and deletions are given up.
    db.compact_range(&family, None, None, &Default::default()).unwrap();
    let after = vfs.crash_image(CrashChoice::Everything);
    let after = Db::open_with(Arc::new(after), "/db", tiny(), &[]).unwrap();
    assert_eq!(after.get("deleted").unwrap(), None);
    assert_eq!(after.get("overwritten").unwrap(), Some(b"new".to_vec()));
}

/// What was arranged from the last level up is arranged from the first level down when the options
/// want that, and by and by the other way round.
#[test]
fn levels_of_several_runs_are_compacted_before_one_run_is_wanted() {
    let vfs = Arc::new(MemVfs::new());
    let mut options = small("pebblesdb", 4 << 10);
    options.column_family.guard_runs = 100;
    let db = Db::open_with(vfs.clone(), "/db", options, &[]).unwrap();
    for n in 0..12_000_u32 {
        db.put(format!("key{:05}", n * 7919 % 997), format!("{n:050}")).unwrap();
        if n % 200 == 0 {
            db.wait_idle().unwrap();
        }
    }
    db.wait_idle().unwrap();
    let before = contents(&db);
    assert_eq!(before.len(), 997);
    let levels = db.metrics().column_families[0].levels.clone();
    assert!(levels.iter().skip(1).any(|level| level.runs > 1), "{levels:?}");
    assert_sound(&db);
    db.close().unwrap();
    let open = |vfs: &Arc<MemVfs>| {
        Db::open_with(vfs.clone(), "/db", small("rocksdb", 4 << 10), &[]).map_err(|e| e.to_string())
    };
    let refused = open(&vfs).unwrap_err();
    assert!(refused.contains("compact it first, with compaction_style=guards"), "{refused}");
    let db = open_arranged(vfs.clone(), "/db", &small("rocksdb", 4 << 10), &[]);
    assert_eq!(contents(&db), before);
    db.close().unwrap();
    let db = open(&vfs).unwrap();
    assert_eq!(contents(&db), before);
    assert_sound(&db);
}

#[test]
fn levels_are_lifted_for_targets_that_count_from_the_first() {
    let vfs = Arc::new(MemVfs::new());
    let deepest = |db: &Db| {
        let levels = db.metrics().column_families[0].levels.clone();
        levels.iter().rposition(|level| level.bytes > 0).unwrap()
    };
    let db = Db::open_with(vfs.clone(), "/db", small("rocksdb", 4 << 10), &[]).unwrap();
    for n in 0..2_000_u32 {
        db.put(format!("key{:05}", n * 7919 % 10_007), vec![b'v'; 50]).unwrap();
    }
    db.wait_idle().unwrap();
    let before = contents(&db);
    assert_eq!(deepest(&db), 6);
    db.close().unwrap();
    for profile in ["leveldb", "vlsm", "bolt", "pebblesdb"] {
        let db = Db::open_with(vfs.clone(), "/db", small(profile, 4 << 10), &[]).unwrap();
        assert!(deepest(&db) < 5, "{profile}: {}", deepest(&db));
        assert_eq!(contents(&db), before, "{profile}");
        db.put(format!("of {profile}"), "1").unwrap();
        db.delete(format!("of {profile}")).unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(contents(&db), before, "{profile}");
        db.close().unwrap();
    }
    let db = open_arranged(vfs, "/db", &small("rocksdb", 4 << 10), &[]);
    db.compact_range(&db.default_column_family(), None, None, &Default::default()).unwrap();
    assert_eq!(contents(&db), before);
    assert_sound(&db);
    db.close().unwrap();
}
