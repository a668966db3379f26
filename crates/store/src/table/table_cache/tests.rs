//! Tests of the table cache: right answers, limits that hold, and no handle left behind.

use std::path::Path;
use std::sync::atomic::AtomicUsize;

use sateen_control::{ColumnFamilyId, SeqNo};

use super::*;
use crate::base::key;
use crate::files::CompactionFileWriter;
use crate::table::OnMiss;
use crate::table::{TableBuilder, TableBuilderOptions, hash_key};
use crate::vfs::MemVfs;

const DB: u64 = 7;
const CLASS: IoClass = IoClass::Client;

/// Writes `files` files of `tables` tables. Table `t` has the key `t` with the value `t`.
fn write(vfs: &MemVfs, files: u64, tables: u64) -> Vec<Arc<TableMeta>> {
    let mut metas = Vec::new();
    for f in 1..=files {
        let path = table_file_name(Path::new("/"), FileId(f));
        let mut file =
            CompactionFileWriter::create(vfs, &path, FileId(f), DB, false, CLASS).unwrap();
        for t in 0..tables {
            let id = f * 1000 + t;
            let options = TableBuilderOptions::new(TableId(id), ColumnFamilyId(0));
            let mut builder = TableBuilder::new(options).unwrap();
            let key = key::seek_key(&id.to_be_bytes(), SeqNo(1));
            builder.add(&mut file, &key, &id.to_be_bytes()).unwrap();
            metas.push(Arc::new(builder.finish(&mut file).unwrap().into_meta(FileId(f))));
        }
        file.finish().unwrap();
    }
    metas
}

fn cache(vfs: &MemVfs, open_files_max: usize, memory_bytes_max: u64) -> TableCache {
    TableCache::new(TableCacheOptions {
        vfs: Arc::new(vfs.clone()),
        directory: "/".into(),
        db_uid: DB,
        direct: false,
        open_files_max,
        memory_bytes_max,
        images: None,
    })
}

fn check(cache: &TableCache, meta: &TableMeta) {
    let table = cache.get(meta, CLASS).unwrap();
    let user = meta.smallest.bytes();
    let found = table.get(user, SeqNo::MAX, hash_key(user), None, OnMiss::Read).unwrap().unwrap();
    assert_eq!((table.id(), &*found.2), (meta.id, user));
}

#[test]
fn tables_of_a_file_share_one_descriptor() {
    let vfs = MemVfs::new();
    let metas = write(&vfs, 3, 20);
    let cache = cache(&vfs, 100, u64::MAX);
    metas.iter().for_each(|meta| check(&cache, meta));
    assert_eq!((cache.open_files().len(), cache.open_tables()), (3, 60));
    let sum: usize = metas.iter().map(|m| cache.get_open(m.id).unwrap().memory_bytes()).sum();
    assert_eq!(cache.memory_bytes(), sum as u64);
    cache.evict(metas[0].id);
    assert!(cache.get_open(metas[0].id).is_none());
    assert_eq!((cache.open_files().len(), cache.open_tables()), (3, 59));
    cache.evict_file(FileId(2));
    assert_eq!((cache.open_files().len(), cache.open_tables()), (2, 39));
    cache.evict_file(FileId(1));
    cache.evict_file(FileId(3));
    assert_eq!((cache.open_files().len(), cache.open_tables(), cache.memory_bytes()), (0, 0, 0));
}

#[test]
fn bounds_are_kept_and_answers_stay_right() {
    let vfs = MemVfs::new();
    let metas = write(&vfs, 20, 5);
    for (files_max, memory_max) in [(1, u64::MAX), (3, u64::MAX), (100, 8000), (0, 0)] {
        let cache = cache(&vfs, files_max, memory_max);
        let mut state = 1u64;
        for _ in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let meta = &metas[(state >> 33) as usize % metas.len()];
            check(&cache, meta);
            assert!(cache.open_files().len() <= files_max.max(1));
            // The table that was opened last stays, whatever the limit.
            assert!(cache.memory_bytes() <= memory_max.max(5 * 2000), "{}", cache.memory_bytes());
        }
    }
}

/// The memory limit evicts single tables, whatever file they are in.
#[test]
fn a_table_in_use_outlasts_those_beside_it() {
    let vfs = MemVfs::new();
    let metas = write(&vfs, 2, 40);
    let one = {
        let cache = cache(&vfs, 10, u64::MAX);
        check(&cache, &metas[0]);
        cache.memory_bytes()
    };
    let cache = cache(&vfs, 10, 8 * one);
    for _ in 0..100 {
        for meta in &metas[1..] {
            check(&cache, meta);
            check(&cache, &metas[0]);
            assert!(cache.memory_bytes() <= 9 * one);
        }
    }
    assert!(cache.open_tables() >= 7);
    assert_eq!((cache.open_files().len(), cache.opens()), (2, 1 + 100 * 79));
    // Entries of tables that are gone are about as many as the open tables, at most.
    assert!(cache.files.lock().unwrap().tables.len() < 2000);
}

#[test]
fn files_in_use_outlast_files_that_are_not() {
    let vfs = MemVfs::new();
    let metas = write(&vfs, 10, 1);
    let cache = cache(&vfs, 3, u64::MAX);
    check(&cache, &metas[0]);
    for meta in &metas[1..] {
        check(&cache, meta);
        assert!(cache.get_open(metas[0].id).is_some(), "the file in use was closed");
    }
}

#[test]
fn an_evicted_table_serves_those_who_hold_it() {
    let vfs = MemVfs::new();
    let metas = write(&vfs, 1, 1);
    let cache = cache(&vfs, 1, u64::MAX);
    let held = cache.get(&metas[0], CLASS).unwrap();
    cache.evict_file(FileId(1));
    let user = metas[0].smallest.bytes();
    assert!(held.get(user, SeqNo::MAX, hash_key(user), None, OnMiss::Read).unwrap().is_some());
}

#[test]
fn a_missing_or_foreign_file_is_named() {
    let vfs = MemVfs::new();
    let metas = write(&vfs, 2, 1);
    let to = |f| table_file_name(Path::new("/"), FileId(f));
    vfs.rename(&to(2), &to(1)).unwrap();
    let cache = cache(&vfs, 10, u64::MAX);
    let missing = cache.get(&metas[1], CLASS).unwrap_err().to_string();
    assert!(missing.contains("000002.sat") && missing.contains("missing"), "{missing}");
    let exchanged = cache.get(&metas[0], CLASS).unwrap_err().to_string();
    assert!(exchanged.contains("this is file f2, not file f1"), "{exchanged}");
    assert_eq!(cache.open_files().len(), 0);
}

#[test]
fn threads_that_open_and_evict_agree() {
    let vfs = MemVfs::new();
    let metas = write(&vfs, 8, 4);
    let cache = cache(&vfs, 2, u64::MAX);
    let opened = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (metas, cache, opened) = (&metas, &cache, &opened);
            scope.spawn(move || {
                let mut state = thread;
                for i in 0..500 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let meta = &metas[(state >> 33) as usize % metas.len()];
                    check(cache, meta);
                    opened.fetch_add(1, Ordering::Relaxed);
                    if i % 50 == 0 {
                        cache.evict(meta.id);
                        cache.evict_file(FileId(1 + state % 8));
                    }
                }
            });
        }
    });
    assert_eq!(opened.load(Ordering::Relaxed), 2000);
    assert!(cache.open_files().len() <= 2);
    for f in 1..=8 {
        cache.evict_file(FileId(f));
    }
    // At the end, no table or memory is left without a file.
    assert_eq!((cache.open_tables(), cache.memory_bytes()), (0, 0));
}
