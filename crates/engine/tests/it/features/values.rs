//! Values apart: larger values are in value files, and everything else works as if they were in
//! tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sateen::vfs::{IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{
    CompactRangeOptions, Db, Decision, Error, Filtering, LiveFilesOptions, Options, ReadOptions,
    destroy_with, repair_with,
};

use crate::support::common::{
    Contents, appending, appending_late, as_vfs, assert_no_orphans, assert_sound, contents, tiny,
};

/// Values of at least 100 bytes are apart.
pub(super) fn apart() -> Options {
    let mut options = tiny();
    options.column_family.memtable_bytes = 64 << 10;
    options.column_family.value_separation_bytes = 100;
    options
}

pub(super) fn open(vfs: &MemVfs, options: &Options) -> Db {
    Db::open_with(as_vfs(vfs), "/db", options.clone(), &[]).unwrap()
}

fn key(n: u32) -> String {
    format!("key{n:05}")
}

fn value(n: u32, round: u32) -> Vec<u8> {
    let mut value = format!("{n} {round} ").into_bytes();
    // Every eighth value is small.
    value.resize(if n.is_multiple_of(8) { 20 } else { 1000 }, b'v');
    value
}

/// Writes these keys, and remembers them.
pub(super) fn write(db: &Db, keys: impl Iterator<Item = u32>, round: u32, model: &mut Contents) {
    for n in keys {
        db.put(key(n), value(n, round)).unwrap();
        model.insert(key(n).into_bytes(), value(n, round));
    }
}

pub(super) fn compact(db: &Db) {
    let all = CompactRangeOptions { rewrite_last_level: true, ..CompactRangeOptions::default() };
    db.compact_range(None, None, &all).unwrap();
    db.wait_idle().unwrap();
}

/// The value files, and what they take on the disk.
pub(super) fn value_files(vfs: &MemVfs) -> BTreeMap<PathBuf, u64> {
    value_files_in(vfs, "/db")
}

/// The value files of a directory, and what they take on the disk.
pub(super) fn value_files_in(vfs: &MemVfs, directory: &str) -> BTreeMap<PathBuf, u64> {
    let names = vfs.list(Path::new(directory)).unwrap().into_iter();
    let files = names.map(|name| Path::new(directory).join(name)).filter(|path| {
        let begin = vfs.contents(path).unwrap();
        begin.starts_with(b"SATfile\n") && begin.get(12) == Some(&1)
    });
    let allocated = |path: &PathBuf| vfs.open(path, OpenOptions::READ)?.allocated();
    files.map(|path| (path.clone(), allocated(&path).unwrap())).collect()
}

pub(super) fn bytes_of(files: &BTreeMap<PathBuf, u64>) -> u64 {
    files.values().sum()
}

/// A database with 200 keys that are compacted, and what is in it.
pub(super) fn filled(vfs: &MemVfs, options: &Options) -> (Db, Contents) {
    let (db, mut model) = (open(vfs, options), Contents::new());
    write(&db, 0..200, 0, &mut model);
    db.flush().unwrap();
    compact(&db);
    (db, model)
}

#[test]
fn compactions_do_not_move_values() {
    let vfs = MemVfs::new();
    let (db, mut model) = (open(&vfs, &apart()), Contents::new());
    write(&db, 0..200, 0, &mut model);
    db.flush().unwrap();
    let written = value_files(&vfs);
    assert!(bytes_of(&written) >= 175_000, "{written:?}");
    let tables = |db: &Db| {
        let family = db.metrics().column_families[0].clone();
        family.levels.iter().map(|level| level.bytes).sum::<u64>()
    };
    assert!(tables(&db) < 40_000, "{}", tables(&db));
    for _ in 0..3 {
        compact(&db);
        assert_eq!(value_files(&vfs), written);
        assert_eq!(contents(&db), model);
    }
    for (key, value) in &model {
        assert_eq!(db.get(key).unwrap().as_ref(), Some(value));
    }
    let keys: Vec<_> = model.keys().collect();
    let got = db.multi_get(&keys).into_iter().map(|got| got.unwrap().unwrap().to_vec());
    assert!(got.eq(model.values().cloned()));
    let family = db.metrics().column_families[0].clone();
    assert_eq!((family.value_files, family.value_garbage_bytes), (written.len() as u64, 0));
    assert_eq!(family.value_file_bytes, 175_000);
    assert_sound(&db);
    db.close().unwrap();
    let db = open(&vfs, &apart());
    assert_eq!(contents(&db), model);
    assert_eq!(value_files(&vfs), written);
    assert_sound(&db);
    db.close().unwrap();
    assert_no_orphans(as_vfs(&vfs), "/db", &apart());
}

#[test]
fn a_file_goes_with_its_last_value_and_pages_before() {
    let vfs = MemVfs::new();
    let (db, mut model) = filled(&vfs, &apart());
    let first = value_files(&vfs);
    let snapshot = db.snapshot();
    write(&db, 0..100, 1, &mut model);
    db.flush().unwrap();
    compact(&db);
    // A snapshot still reads the old values.
    let kept: BTreeMap<_, _> = value_files(&vfs);
    assert!(first.iter().all(|(path, bytes)| kept.get(path) == Some(bytes)), "{kept:?}");
    let at = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
    assert_eq!(db.reading(&at).get(key(7)).unwrap(), Some(value(7, 0)));
    drop((snapshot, at));
    // An iterator does so, too, as long as it lives.
    let mut iter = db.reading(ReadOptions::default()).cursor().unwrap();
    iter.seek(key(9));
    compact(&db);
    assert_eq!((iter.key(), iter.value()), (key(9).as_bytes(), &*value(9, 1)));
    drop(iter);
    db.wait_idle().unwrap();
    let punched = value_files(&vfs);
    let left: u64 = first.keys().map(|path| punched[path]).sum();
    assert!(left < bytes_of(&first) * 6 / 10, "{first:?} {punched:?}");
    assert_eq!(contents(&db), model);
    assert_sound(&db);
    // What is live now, and what is dead, is known after a restart.
    let told = |db: &Db| {
        let family = db.metrics().column_families[0].clone();
        (family.value_files, family.value_file_bytes, family.value_garbage_bytes)
    };
    let before = told(&db);
    assert!(before.2 > 80_000, "{before:?}");
    db.close().unwrap();
    let db = open(&vfs, &apart());
    assert_eq!(told(&db), before);
    write(&db, 0..200, 2, &mut model);
    db.flush().unwrap();
    compact(&db);
    let now = value_files(&vfs);
    assert!(first.keys().all(|path| !now.contains_key(path)), "{first:?} {now:?}");
    assert_eq!(told(&db).2, 0);
    assert_eq!(contents(&db), model);
    assert_sound(&db);
    db.close().unwrap();
}

/// The entries of a transaction form a layer above those of the database.
#[test]
fn a_transaction_shows_values_apart_below_its_own() {
    let vfs = MemVfs::new();
    let (db, mut model) = filled(&vfs, &apart());
    let mut transaction = db.transaction();
    for n in (0..200).step_by(3) {
        transaction.put(key(n), value(n, 1)).unwrap();
        model.insert(key(n).into_bytes(), value(n, 1));
    }
    let forward = transaction.iter().unwrap().map(Result::unwrap);
    assert!(forward.map(|(key, value)| (key.to_vec(), value.to_vec())).eq(model.clone()));
    let backward = transaction.iter().unwrap().rev().map(Result::unwrap);
    let expected = model.clone().into_iter().rev();
    assert!(backward.map(|(key, value)| (key.to_vec(), value.to_vec())).eq(expected));
    for (key, value) in &model {
        assert_eq!(transaction.get(key).unwrap().as_ref(), Some(value));
    }
    transaction.commit().unwrap();
    assert_eq!(contents(&db), model);
    assert_sound(&db);
}

/// A compaction passes places on to its outputs. A reader may still have the table before.
#[test]
fn an_iterator_reads_values_of_tables_that_were_replaced_twice() {
    let vfs = MemVfs::new();
    let (db, mut model) = filled(&vfs, &apart());
    let then = model.clone();
    let mut iter = db.reading(ReadOptions::default()).cursor().unwrap();
    iter.seek_to_first();
    for round in 1..4 {
        compact(&db);
        write(&db, 0..200, round, &mut model);
        db.flush().unwrap();
        compact(&db);
        db.wait_idle().unwrap();
    }
    let mut seen = Contents::new();
    while iter.valid() {
        seen.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status().unwrap();
    assert!(seen == then, "{} of {} values", seen.len(), then.len());
    drop(iter);
    db.wait_idle().unwrap();
    assert_eq!(db.metrics().column_families[0].value_garbage_bytes, 0);
    assert_eq!(contents(&db), model);
    assert_sound(&db);
}

#[test]
fn garbage_is_collected_by_compactions() {
    for force in [false, true] {
        let vfs = MemVfs::new();
        let mut options = apart();
        options.column_family.value_garbage_collection = true;
        options.column_family.value_garbage_age_cutoff = 1.0;
        options.column_family.value_garbage_force_threshold = if force { 0.3 } else { 1.0 };
        let (db, mut model) = filled(&vfs, &options);
        let first = value_files(&vfs);
        for n in (0..200).filter(|n| n % 10 != 1) {
            db.delete(key(n)).unwrap();
            model.remove(key(n).as_bytes());
        }
        db.flush().unwrap();
        compact(&db);
        if !force {
            // The compaction that found the garbage could not know of it before.
            let (begin, end) = (key(0), key(150));
            let all = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
            db.compact_range(Some(begin.as_bytes()), Some(end.as_bytes()), &all).unwrap();
            compact(&db);
        }
        db.wait_idle().unwrap();
        let now = value_files(&vfs);
        assert!(first.keys().all(|path| !now.contains_key(path)), "{first:?} {now:?}");
        assert_eq!(db.metrics().column_families[0].value_garbage_bytes, 0);
        assert_eq!(contents(&db), model);
        assert_sound(&db);
        db.close().unwrap();
        assert_no_orphans(as_vfs(&vfs), "/db", &options);
    }
}

#[test]
fn without_collection_the_rest_of_a_file_stays() {
    let vfs = MemVfs::new();
    let (db, mut model) = filled(&vfs, &apart());
    let first = value_files(&vfs);
    for n in 0..199 {
        db.delete(key(n)).unwrap();
        model.remove(key(n).as_bytes());
    }
    db.flush().unwrap();
    compact(&db);
    compact(&db);
    let now = value_files(&vfs);
    assert_eq!(now.len(), 1, "{now:?}");
    assert!(first.contains_key(now.keys().next().unwrap()));
    assert!(bytes_of(&now) < 20_000, "{now:?}");
    assert_eq!(contents(&db), model);
    assert_sound(&db);
}

#[test]
fn options_change_while_the_database_is_open() {
    let vfs = MemVfs::new();
    let (db, mut model) = filled(&vfs, &apart());
    let first = value_files(&vfs);
    let set = |name: &str, value: &str| {
        db.default_column_family().set_options(&[(name, value)]).unwrap();
    };
    // Off: new values stay in tables, and those in value files stay there.
    set("value_separation_bytes", "0");
    write(&db, 200..300, 0, &mut model);
    db.flush().unwrap();
    compact(&db);
    assert_eq!(value_files(&vfs), first);
    assert_eq!(contents(&db), model);
    // On from level 1: a flush leaves values in its table, and a compaction takes them out.
    set("value_starting_level", "1");
    set("value_separation_bytes", "100");
    set("value_file_bytes", "20000");
    write(&db, 300..340, 0, &mut model);
    db.flush().unwrap();
    assert_eq!(value_files(&vfs), first);
    compact(&db);
    let now = value_files(&vfs);
    assert!(now.len() >= first.len() + 5, "{now:?}");
    assert_eq!(contents(&db), model);
    assert_sound(&db);
    // Collected values go back to tables if they are too small now.
    set("value_separation_bytes", "0");
    set("value_garbage_collection", "true");
    set("value_garbage_age_cutoff", "1");
    for n in 0..340 {
        if n % 3 == 0 {
            db.delete(key(n)).unwrap();
            model.remove(key(n).as_bytes());
        }
    }
    db.flush().unwrap();
    for _ in 0..3 {
        compact(&db);
    }
    assert_eq!(value_files(&vfs), BTreeMap::new());
    assert_eq!(contents(&db), model);
    assert_sound(&db);
    let refused = db.default_column_family().set_options(&[("value_garbage_age_cutoff", "2")]);
    assert!(refused.unwrap_err().to_string().contains("value_garbage_age_cutoff"));
}

#[test]
fn operators_filters_and_deletions_see_values() {
    for late in [false, true] {
        let vfs = MemVfs::new();
        let mut options = apart();
        let merging = if late { appending_late() } else { appending() };
        options.column_family.merge_operator = Some(merging);
        let filter = Filtering::by("by value", |_level, _key, value| match value {
            [b'-', ..] => Decision::Remove,
            [b'=', ..] => Decision::Change(vec![b'!'; 300]),
            _ => Decision::Keep,
        });
        options.column_family.compaction_filter = Some(filter);
        let (db, mut model) = filled(&vfs, &options);
        for n in 0..200 {
            let key = key(n);
            match n % 5 {
                0 => {
                    db.merge(&key, "more").unwrap();
                    model.get_mut(key.as_bytes()).unwrap().extend_from_slice(b"more");
                }
                1 => {
                    db.put(&key, [b'-'; 200]).unwrap();
                    model.remove(key.as_bytes());
                }
                2 => {
                    db.put(&key, [b'='; 200]).unwrap();
                    model.insert(key.into_bytes(), vec![b'!'; 300]);
                }
                3 if n < 100 => {
                    db.single_delete(&key).unwrap();
                    model.remove(key.as_bytes());
                }
                _ => {}
            }
        }
        db.delete_range(key(150), key(170)).unwrap();
        model.retain(|key, _| {
            !(self::key(150).as_bytes()..self::key(170).as_bytes()).contains(&&**key)
        });
        db.flush().unwrap();
        for _ in 0..2 {
            compact(&db);
        }
        assert_eq!(contents(&db), model);
        assert_sound(&db);
        db.close().unwrap();
        let db = open(&vfs, &options);
        assert_eq!(contents(&db), model);
        db.close().unwrap();
    }
}

#[test]
fn expired_values_leave_their_files() {
    let vfs = MemVfs::new();
    let mut options = apart();
    options.column_family.ttl = Some(Duration::ZERO);
    let (db, model) = filled(&vfs, &options);
    assert_eq!(contents(&db), model);
    assert!(!value_files(&vfs).is_empty());
    assert_sound(&db);
    for n in 0..200 {
        assert_eq!(db.get(key(n)).unwrap(), Some(value(n, 0)));
    }
}

#[test]
fn a_checkpoint_keeps_its_values() {
    let vfs = MemVfs::new();
    let (db, mut model) = filled(&vfs, &apart());
    db.checkpoint("/copy").unwrap();
    let then = model.clone();
    write(&db, 0..150, 1, &mut model);
    db.flush().unwrap();
    for _ in 0..2 {
        compact(&db);
    }
    assert_eq!(contents(&db), model);
    let copy = Db::open_with(as_vfs(&vfs), "/copy", apart(), &[]).unwrap();
    assert_eq!(contents(&copy), then);
    assert_sound(&copy);
    copy.close().unwrap();
    assert_sound(&db);
}

#[test]
fn readers_and_secondaries_read_values() {
    let vfs = MemVfs::new();
    let (db, mut model) = filled(&vfs, &apart());
    let secondary = Db::open_secondary_with(as_vfs(&vfs), "/db", apart(), &[]).unwrap();
    assert_eq!(contents(&secondary), model);
    write(&db, 0..100, 1, &mut model);
    db.flush().unwrap();
    compact(&db);
    secondary.try_catch_up_with_primary().unwrap();
    assert_eq!(contents(&secondary), model);
    drop(secondary);
    let reader = Db::open_read_only_with(as_vfs(&vfs), "/db", apart()).unwrap();
    assert_eq!(contents(&reader), model);
    drop(reader);
    // Values are not in the block cache, so a read of memory alone does not find them.
    let memory_only = ReadOptions { memory_only: true, ..ReadOptions::default() };
    db.get(key(1)).unwrap();
    let refused = db.reading(&memory_only).get(key(1));
    assert!(matches!(refused, Err(Error::NotInMemory)), "{refused:?}");
    assert_eq!(db.reading(&memory_only).get(key(8)).unwrap().map(|v| v.len()), Some(20));
}

/// A value file that has one of these bytes in a row.
fn file_with(vfs: &MemVfs, byte: u8) -> (PathBuf, u64) {
    let found = value_files(vfs).into_keys().find_map(|path| {
        let contents = vfs.contents(&path).unwrap();
        let at = contents.windows(8).position(|bytes| bytes.iter().all(|b| *b == byte))?;
        Some((path, at as u64))
    });
    found.expect("a value file has it")
}

#[test]
fn damage_of_a_value_costs_that_value_alone() {
    let vfs = MemVfs::new();
    let (db, mut model) = filled(&vfs, &apart());
    db.put("key00200", vec![b'X'; 500]).unwrap();
    db.flush().unwrap();
    compact(&db);
    let (path, at) = file_with(&vfs, b'X');
    let file = vfs.open(&path, OpenOptions::WRITE).unwrap();
    file.write_at(b"Y", at + 100, IoClass::Client).unwrap();
    let error = db.get("key00200").unwrap_err();
    let names = |error: &Error| error.to_string().contains(path.to_str().unwrap());
    assert!(error.is_corruption() && names(&error), "{error}");
    assert_eq!(db.get(key(199)).unwrap(), Some(value(199, 0)));
    let told = db.check(&mut |_, _| {}).unwrap();
    assert!(told.problems.len() == 1 && names(&told.problems[0]), "{told:?}");
    let scrubbed = db.scrub(None).unwrap();
    assert!(scrubbed.problems.len() == 1 && names(&scrubbed.problems[0]), "{scrubbed:?}");
    db.close().unwrap();
    let report = repair_with(as_vfs(&vfs), "/db", &apart()).unwrap();
    let lost: Vec<_> = report.lost_ranges.iter().map(|lost| &lost.first).collect();
    assert!(!lost.is_empty(), "{report:?}");
    let db = open(&vfs, &apart());
    assert_eq!(contents(&db), model);
    assert_sound(&db);
    write(&db, 0..200, 1, &mut model);
    db.flush().unwrap();
    compact(&db);
    assert_eq!(contents(&db), model);
    assert_sound(&db);
}

#[test]
fn a_lost_manifest_is_made_anew_from_tables_and_value_files() {
    let vfs = MemVfs::new();
    let (db, mut model) = filled(&vfs, &apart());
    write(&db, 50..100, 1, &mut model);
    db.flush().unwrap();
    db.close().unwrap();
    let names = vfs.list(Path::new("/db")).unwrap().into_iter();
    for name in names.map(|name| Path::new("/db").join(name)) {
        let text = name.to_str().unwrap();
        if text.contains("MANIFEST") || text.ends_with("CURRENT") {
            vfs.remove(&name).unwrap();
        }
    }
    let report = repair_with(as_vfs(&vfs), "/db", &apart()).unwrap();
    assert_eq!(report.lost_ranges, [], "{report:?}");
    let db = open(&vfs, &apart());
    assert_eq!(contents(&db), model);
    assert_sound(&db);
    db.close().unwrap();
}

#[test]
fn a_missing_value_file_is_told_at_open() {
    let vfs = MemVfs::new();
    let (db, _) = filled(&vfs, &apart());
    db.close().unwrap();
    let path = value_files(&vfs).into_keys().next().unwrap();
    vfs.remove(&path).unwrap();
    let error = Db::open_with(as_vfs(&vfs), "/db", apart(), &[]).unwrap_err();
    let names = error.to_string().contains(path.to_str().unwrap());
    assert!(error.is_corruption() && names, "{error}");
}

#[test]
fn a_database_is_destroyed_with_its_value_files() {
    let vfs = MemVfs::new();
    let (db, _) = filled(&vfs, &apart());
    db.close().unwrap();
    destroy_with(&vfs, "/db", &apart()).unwrap();
    assert!(!vfs.exists(Path::new("/db")).unwrap());
}

#[test]
fn live_files_name_value_files() {
    let vfs = MemVfs::new();
    let (db, _) = filled(&vfs, &apart());
    let live = db.live_files(&LiveFilesOptions::default()).unwrap();
    let named: Vec<_> = live.iter().map(|file| Path::new("/db").join(&file.name)).collect();
    for path in value_files(&vfs).keys() {
        assert!(named.contains(path), "{path:?} in {named:?}");
    }
}

#[test]
fn a_scan_reads_values_only_where_they_are_shown() {
    let vfs = Arc::new(sateen::vfs::FaultVfs::new(Arc::new(MemVfs::new())));
    let mut options = apart();
    options.column_family.memtable_bytes = 4 << 20;
    let db = Db::open_with(vfs.clone(), "/db", options, &[]).unwrap();
    let mut model = Contents::new();
    // Three runs on top of each other: a seek finds an entry in each.
    for round in 0..3 {
        write(&db, 0..500, round, &mut model);
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    assert_eq!(contents(&db), model);
    let reads = || vfs.calls(sateen::vfs::VfsOperation::Read);
    let before = reads();
    let mut iter = db.reading(ReadOptions::default()).cursor().unwrap();
    iter.seek_to_first();
    let mut shown = 0;
    while iter.valid() {
        shown += 1;
        iter.next();
    }
    assert_eq!(shown, 500);
    assert!(reads() - before < 100, "{} reads for {shown} values", reads() - before);
}

#[test]
fn scans_that_read_several_values_at_once_show_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), apart()).unwrap();
    let mut model = Contents::new();
    // Neighbours are in different files, and a third of the values is replaced: some are holes.
    for round in 0..3 {
        write(&db, (0..600).map(|n| n * 37 % 600).filter(|n| n % 3 >= round), round, &mut model);
        db.flush().unwrap();
    }
    compact(&db);
    for round in 0..60_u32 {
        let (from, length) = (round * 97 % 560, [1, 12, 40][round as usize % 3]);
        let mut options = ReadOptions::default();
        if round % 2 == 0 {
            options.upper_bound = Some(key(from + length).into_bytes());
        }
        let mut cursor = db.cursor(&options).unwrap();
        cursor.seek(key(from));
        for n in from..from + length {
            assert_eq!(cursor.key(), key(n).as_bytes());
            assert_eq!(cursor.value(), model[key(n).as_bytes()], "{n}");
            cursor.next();
        }
        // Back again, over what was read ahead.
        for n in (from + length / 2..from + length).rev() {
            cursor.seek(key(n));
            assert_eq!(cursor.value(), model[key(n).as_bytes()], "{n}");
            if n > from {
                cursor.prev();
                assert_eq!(cursor.value(), model[key(n - 1).as_bytes()], "{n}");
            }
        }
    }
}
