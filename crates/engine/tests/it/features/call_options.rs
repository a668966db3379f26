//! Options of single calls that refuse or leave out part of a call.

use std::path::PathBuf;

use sateen::vfs::MemVfs;
use sateen::{
    Comparator, Cursor, Db, Error, IngestOptions, Options, ReadOptions, SstFileWriter, WriteBatch,
    WriteOptions,
};

use crate::support::common::{appending, as_vfs, assert_sound, tiny};

fn open(vfs: &MemVfs) -> Db {
    let mut options = tiny();
    options.column_family.merge_operator = Some(appending());
    Db::open_with(as_vfs(vfs), "/db", options, &[]).unwrap()
}

fn key(number: u64) -> String {
    format!("k{number:02}")
}

/// Where a move ends: the key, or the error.
fn found(iter: &Cursor) -> Result<String, String> {
    match iter.status() {
        Ok(()) => Ok(String::from_utf8_lossy(iter.key()).into_owned()),
        Err(error) => {
            assert!(!iter.valid());
            Err(error.to_string())
        }
    }
}

#[test]
fn a_move_that_passes_over_more_than_it_may_fails_and_the_next_one_begins_anew() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    for number in 0..20 {
        db.put(key(number), "v").unwrap();
    }
    // Each deleted key has two entries: 20 lie between 01 and 12.
    for number in 2..12 {
        db.delete(key(number)).unwrap();
    }
    for max in 0..30 {
        let mut iter = db.cursor(&ReadOptions { skipped_max: max, ..Default::default() }).unwrap();
        let ends = |iter: &Cursor, there: &str| match max {
            0 | 20.. => assert_eq!(found(iter), Ok(there.to_owned()), "{max}"),
            _ => assert!(found(iter).unwrap_err().contains(&max.to_string()), "{max}"),
        };
        iter.seek("k01");
        assert_eq!(found(&iter), Ok("k01".into()), "{max}: nothing was passed over");
        iter.next();
        ends(&iter, "k12");
        iter.seek_for_prev("k12");
        assert_eq!(found(&iter), Ok("k12".into()), "{max}: an iterator goes on after that");
        iter.prev();
        ends(&iter, "k01");
        iter.seek("k02");
        ends(&iter, "k12");
        iter.seek_for_prev("k11");
        ends(&iter, "k01");
        iter.seek_to_last();
        assert_eq!(found(&iter), Ok("k19".into()), "{max}");
    }
    let mut iter = db.cursor(&ReadOptions { skipped_max: 3, ..Default::default() }).unwrap();
    iter.seek("k02");
    assert!(matches!(iter.status(), Err(Error::TooManySkipped(3))));
}

#[test]
fn entries_of_column_families_that_are_gone_are_left_out_where_that_is_asked_for() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    let family = db.options().column_family;
    let kept = db.create_column_family("kept", family.clone()).unwrap();
    let gone = db.create_column_family("gone", family).unwrap();
    let mut batch = WriteBatch::new();
    batch.to(&gone).put("a", "1").unwrap();
    batch.to(&kept).put("a", "1").unwrap();
    batch.to(&gone).delete_range("a", "b").unwrap();
    batch.put("a", "1").unwrap();
    let mut only_gone = WriteBatch::new();
    only_gone.to(&gone).put("b", "2").unwrap();
    db.drop_column_family(&gone).unwrap();

    let strict = WriteOptions::default();
    let lenient = WriteOptions { ignore_missing_column_families: true, ..WriteOptions::default() };
    let refused = |done: sateen::Result<()>| {
        assert!(matches!(done, Err(Error::NoSuchColumnFamily(_))), "{done:?}");
    };
    refused(db.write(&batch, &strict));
    refused(gone.writing(&strict).put("c", "3"));
    assert_eq!(db.get("a").unwrap(), None, "nothing of it was written");
    db.write(&batch, &lenient).unwrap();
    db.write(&only_gone, &lenient).unwrap();
    gone.writing(&lenient).put("c", "3").unwrap();
    gone.writing(&lenient).delete("c").unwrap();
    gone.writing(&lenient).single_delete("c").unwrap();
    gone.writing(&lenient).merge("c", "3").unwrap();
    gone.writing(&lenient).delete_range("a", "b").unwrap();
    kept.writing(&lenient).put("d", "4").unwrap();
    let read = |db: &Db| {
        let kept = db.column_family("kept").unwrap();
        let of_kept = |key| kept.get(key).unwrap();
        assert_eq!(db.get("a").unwrap().unwrap(), b"1");
        assert_eq!(of_kept("a").unwrap(), b"1");
        assert_eq!(of_kept("d").unwrap(), b"4");
    };
    read(&db);
    db.close().unwrap();
    let options = db.options();
    let families = [("kept", options.column_family.clone())];
    drop(db);
    let db = Db::open_with(as_vfs(&vfs), "/db", options, &families).unwrap();
    read(&db);
    assert_sound(&db);
}

fn file(vfs: &MemVfs, name: &str, keys: &[&str]) -> PathBuf {
    let path = PathBuf::from(format!("/{name}"));
    let mut writer = SstFileWriter::create_with(as_vfs(vfs), &path, &tiny()).unwrap();
    keys.iter().for_each(|key| writer.put(key, "new").unwrap());
    writer.finish().unwrap();
    path
}

#[test]
fn files_that_lie_on_top_of_something_are_refused_where_that_is_asked_for() {
    let no_seqno = IngestOptions { allow_global_seqno: false, ..IngestOptions::default() };
    let last = IngestOptions { fail_if_not_bottommost_level: true, ..IngestOptions::default() };
    let check = |prepare: &dyn Fn(&Db), files: &[&[&str]], fails: [bool; 2]| {
        for (options, fails) in [&no_seqno, &last].into_iter().zip(fails) {
            let vfs = MemVfs::new();
            let db = open(&vfs);
            prepare(&db);
            let snapshot = fails.then(|| db.snapshot().sequence_number());
            let names = (0..).map(|number| format!("file{number}"));
            let paths: Vec<_> =
                names.zip(files).map(|(name, keys)| file(&vfs, &name, keys)).collect();
            let before = db.live_tables();
            let done = db.ingest(&paths, options);
            let told = format!("{files:?} {options:?} {done:?}");
            match (&done, options.allow_global_seqno) {
                (Ok(()), _) => assert!(!fails, "{told}"),
                (Err(Error::NotBottommost { .. }), true) => assert!(fails, "{told}"),
                (Err(Error::InvalidArgument(text)), false) => {
                    assert!(fails && text.contains("allow_global_seqno"), "{told}");
                }
                _ => panic!("{told}"),
            }
            if let Some(seqno) = snapshot {
                assert_eq!(db.live_tables(), before, "{told}");
                assert_eq!(db.snapshot().sequence_number(), seqno, "{told}");
            }
            assert_sound(&db);
        }
    };
    let nothing = |_: &Db| {};
    let in_memory = |db: &Db| {
        db.put("a", "old").unwrap();
        db.put("m", "old").unwrap();
    };
    let flushed = |db: &Db| {
        in_memory(db);
        db.flush().unwrap();
    };
    let deleted = |db: &Db| db.delete("b").unwrap();
    let ranges = |db: &Db| db.delete_range("a", "m").unwrap();
    let compacted = |db: &Db| {
        flushed(db);
        let all = sateen::CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
        let family = db.default_column_family();
        family.compact_range(None, None, &all).unwrap();
        while db.step().unwrap() {}
    };
    check(&nothing, &[&["b", "c"]], [false, false]);
    check(&nothing, &[&["b", "d"], &["c"]], [true, true]);
    check(&nothing, &[&["b", "d"], &["e"]], [false, false]);
    // Between two keys there is nothing.
    check(&in_memory, &[&["b", "c"]], [false, false]);
    check(&in_memory, &[&["c", "m"]], [true, true]);
    check(&flushed, &[&["b", "c"]], [false, false]);
    check(&flushed, &[&["a"]], [true, true]);
    check(&deleted, &[&["a", "c"]], [true, true]);
    check(&ranges, &[&["b", "c"]], [true, true]);
    // A table of the last level spans it, with nothing there.
    check(&compacted, &[&["b", "c"]], [false, true]);
    check(&compacted, &[&["x"]], [false, false]);
}

#[test]
fn a_snapshot_needs_a_sequence_number() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    let path = file(&vfs, "file", &["a"]);
    let options = IngestOptions { allow_global_seqno: false, ..IngestOptions::default() };
    let snapshot = db.snapshot();
    let family = db.default_column_family();
    let error = family.ingest(&[&path], &options).unwrap_err().to_string();
    assert!(error.contains("snapshot"), "{error}");
    drop(snapshot);
    family.ingest(&[&path], &options).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"new");
}

#[test]
fn options_of_a_comparator_of_ones_own_are_loaded_without_it() {
    let vfs = MemVfs::new();
    let mine = || Comparator::custom("odd = name\n[column family] x", |a, b| a.cmp(b));
    let mut options = Options { max_open_files: 321, ..tiny() };
    options.column_family.comparator = mine();
    let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    db.put("a", "1").unwrap();
    db.close().unwrap();
    drop(db);
    let mut stored = Options::load_with(&vfs, "/db", false).unwrap();
    let named = ["default", "comparator", mine().name()].map(str::to_owned);
    assert_eq!(stored.named, [named.into()]);
    assert_eq!(stored.options.max_open_files, 321);
    let error = Db::open_with(as_vfs(&vfs), "/db", stored.options.clone(), &[]).err();
    assert!(error.is_some(), "a database opens with no other comparator than its own");
    stored.options.column_family.comparator = mine();
    assert_eq!(stored.options, options);
    let db = Db::open_with(as_vfs(&vfs), "/db", stored.options, &[]).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"1");
}
