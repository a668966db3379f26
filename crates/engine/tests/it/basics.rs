//! What a user does first: open, write, read, reopen.

use std::collections::BTreeMap;
use std::sync::Arc;

use sateen::vfs::MemVfs;
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
