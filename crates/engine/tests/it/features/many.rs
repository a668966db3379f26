//! Reads of many keys, whose blocks are read at the same time from real files.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sateen::vfs::IoClass;
use sateen::{ColumnFamilyOptions, CompactRangeOptions, Compression, Db, Options, ReadOptions};

fn key(n: u32) -> Vec<u8> {
    format!("key{n:06}").into_bytes()
}

fn options(direct: bool, compression: Compression, block_cache_bytes: u64) -> Options {
    let column_family = ColumnFamilyOptions {
        memtable_bytes: 256 << 10,
        compression: vec![compression],
        disable_auto_compactions: true,
        ..ColumnFamilyOptions::default()
    };
    Options { direct_reads: direct, block_cache_bytes, column_family, ..Options::default() }
}

/// Writes 4,000 keys in eight runs, of which the last deletes some, and the older ones into one.
fn filled(folder: &Path, options: &Options) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let db = Db::open(folder, options.clone()).unwrap();
    let mut model = BTreeMap::new();
    for run in 0..8_u32 {
        for n in (0..4000).filter(|n| n % (run + 1) == 0) {
            let value = vec![b'a' + (n + run) as u8 % 26; 100 + n as usize % 300];
            db.put(key(n), &value).unwrap();
            model.insert(key(n), value);
        }
        if run == 7 {
            for n in (0..4000).filter(|n| n % 17 == 0) {
                db.delete(key(n)).unwrap();
                model.remove(&key(n));
            }
        }
        db.flush().unwrap();
        if run == 3 {
            db.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
        }
    }
    db.close().unwrap();
    model
}

/// Every third key, and some that are in no table.
fn wanted() -> Vec<Vec<u8>> {
    (0..4400).rev().filter(|n| n % 3 == 0).map(key).collect()
}

#[test]
fn many_answers_are_those_of_single_reads() {
    for (direct, compression, cache) in [
        (true, Compression::None, 64 << 20),
        (false, Compression::Lz4, 64 << 20),
        // Hardly a block stays until it is used.
        (true, Compression::Lz4, 4 << 20),
        (false, Compression::None, 1 << 20),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(direct, compression, cache);
        let model = filled(folder.path(), &options);
        let db = Db::open(folder.path(), options).unwrap();
        let keys = wanted();
        for round in 0..2 {
            let answers = db.multi_get(&keys);
            for (key, answer) in keys.iter().zip(answers) {
                let answer = answer.unwrap().map(|value| value.to_vec());
                assert_eq!(answer.as_ref(), model.get(key), "{round} {direct} {compression:?}");
            }
        }
        let uncached = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let answers = db.reading(&uncached).multi_get(&keys);
        assert!(keys.iter().zip(answers).all(|(key, answer)| {
            answer.unwrap().map(|value| value.to_vec()).as_ref() == model.get(key)
        }));
    }
}

#[test]
fn a_block_is_read_once_for_all_keys_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(true, Compression::None, 64 << 20);
    filled(folder.path(), &options);
    let db = Db::open(folder.path(), options).unwrap();
    let keys = wanted();
    // Opens the tables.
    keys.iter().step_by(10).for_each(|key| drop(db.get(key).unwrap()));
    let client_reads = |db: &Db| db.metrics().io[IoClass::Client.index()].totals.reads;
    let before = client_reads(&db);
    let answers = db.multi_get(&keys);
    let read = client_reads(&db) - before;
    assert!(answers.iter().all(Result::is_ok));
    assert!(read > 20, "{read} reads");
    db.multi_get(&keys);
    assert_eq!(client_reads(&db), before + read, "all is in the cache");
    let misses = db.metrics().counts.data_block_misses;
    assert!(misses >= read, "{misses} misses, {read} reads");
}

#[test]
fn a_damaged_block_fails_its_own_keys_alone() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(false, Compression::None, 64 << 20);
    let model = filled(folder.path(), &options);
    let mut tables: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sat"))
        .collect();
    tables.sort_by_key(|path| std::fs::metadata(path).unwrap().len());
    // In the middle of the largest file are data blocks.
    let largest = tables.last().unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(largest).unwrap();
    let at = file.metadata().unwrap().len() / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    let db = Db::open(folder.path(), options).unwrap();
    let keys: Vec<_> = (0..4000).map(key).collect();
    let answers = db.multi_get(&keys);
    let mut failed = 0;
    for (key, answer) in keys.iter().zip(answers) {
        match answer {
            Ok(value) => assert_eq!(value.map(|v| v.to_vec()).as_ref(), model.get(key)),
            Err(error) => {
                assert!(error.to_string().contains(largest.to_str().unwrap()), "{error}");
                failed += 1;
            }
        }
    }
    assert!((1..200).contains(&failed), "{failed} keys failed");
}
