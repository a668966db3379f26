//! Files written outside and taken in.

use std::path::PathBuf;
use std::sync::Arc;

use sateen::vfs::{Fault, FaultRule, FaultVfs, MemVfs, Vfs, VfsOperation};
use sateen::{
    CompactRangeOptions, Db, Error, IngestOptions, Options, ReadOptions, Regions, SstFileWriter,
    WriteOptions,
};

use crate::support::common::{
    Contents, Random, appending, as_vfs, assert_sound, read_all, small, tiny,
};

fn open(vfs: &MemVfs, options: &Options) -> Db {
    Db::open_with(as_vfs(vfs), "/db", options.clone(), &[]).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

/// A file of these entries: values, or deletions.
fn file<'a>(
    vfs: &MemVfs,
    name: &str,
    entries: impl IntoIterator<Item = (&'a Vec<u8>, Option<&'a [u8]>)>,
) -> PathBuf {
    file_with_ranges(vfs, name, entries, &[])
}

/// A file of these entries that deletes these ranges.
fn file_with_ranges<'a>(
    vfs: &MemVfs,
    name: &str,
    entries: impl IntoIterator<Item = (&'a Vec<u8>, Option<&'a [u8]>)>,
    ranges: &[(Vec<u8>, Vec<u8>)],
) -> PathBuf {
    let path = PathBuf::from(format!("/{name}"));
    let mut writer = SstFileWriter::create_with(as_vfs(vfs), &path, &tiny()).unwrap();
    for (key, value) in entries {
        match value {
            Some(value) => writer.put(key, value).unwrap(),
            None => writer.delete(key).unwrap(),
        }
    }
    for (begin, end) in ranges {
        writer.delete_range(begin, end).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn ingest(db: &Db, paths: &[PathBuf]) -> sateen::Result<()> {
    db.ingest(paths, &IngestOptions::default())
}

fn assert_reads(db: &Db, expected: &Contents, options: &ReadOptions) {
    let family = db.default_column_family();
    let found = read_all(&family, options);
    for key in found.keys().chain(expected.keys()) {
        let text = |of: &Contents| of.get(key).map(|value| value.escape_ascii().to_string());
        assert_eq!(text(&found), text(expected), "{}", key.escape_ascii());
    }
    let mut iter = db.cursor(options).unwrap();
    iter.seek_to_last();
    for (key, value) in expected.iter().rev() {
        assert_eq!((iter.key(), iter.value()), (&**key, &**value));
        iter.prev();
    }
    for number in 0..200 {
        let key = key(number);
        assert_eq!(family.reading(options).get(&key).unwrap().as_ref(), expected.get(&key));
    }
}

#[test]
fn a_writer_takes_keys_that_ascend() {
    let vfs = MemVfs::new();
    let mut writer = SstFileWriter::create_with(as_vfs(&vfs), "/new", &tiny()).unwrap();
    writer.put("b", "1").unwrap();
    for key in ["a", "b"] {
        let error = writer.put(key, "2").unwrap_err().to_string();
        assert!(error.contains("must ascend"), "{error}");
    }
    writer.delete("c").unwrap();
    let info = writer.finish().unwrap();
    assert_eq!((info.entries, &*info.smallest, &*info.largest), (2, &b"b"[..], &b"c"[..]));
    assert_eq!(as_vfs(&vfs).list("/".as_ref()).unwrap().len(), 1);
    let mut empty = SstFileWriter::create_with(as_vfs(&vfs), "/empty", &tiny()).unwrap();
    empty.delete_range("a", "a").unwrap();
    assert!(matches!(empty.delete_range("b", "a"), Err(Error::InvalidArgument(_))));
    assert!(matches!(empty.delete_range("a", [b'x'; 1 << 16]), Err(Error::InvalidArgument(_))));
    assert!(matches!(empty.finish(), Err(Error::InvalidArgument(_))));
    let mut ranges = SstFileWriter::create_with(as_vfs(&vfs), "/ranges", &tiny()).unwrap();
    for (begin, end) in [("x", "z"), ("b", "d"), ("c", "e"), ("e", "f"), ("b", "c")] {
        ranges.delete_range(begin, end).unwrap();
    }
    let info = ranges.finish().unwrap();
    assert_eq!((info.entries, info.ranges), (0, 2));
    assert_eq!((&*info.smallest, &*info.largest), (&b"b"[..], &b"z"[..]));
    assert!(SstFileWriter::create_with(as_vfs(&vfs), "/new", &tiny()).is_err(), "it exists");
}

#[test]
fn what_is_taken_in_is_newer_than_all_before_and_older_than_all_after() {
    for profile in ["sateen", "rocksdb", "triad", "pebblesdb", "vlsm"] {
        let vfs = MemVfs::new();
        let mut options = small(profile, 4 << 10);
        options.background_threads = 0;
        options.column_family.merge_operator = Some(appending());
        let mut db = open(&vfs, &options);
        let mut random = Random::new(11);
        let mut model = Contents::new();
        let mut snapshots = Vec::new();
        for round in 0..50_u64 {
            for _ in 0..30 {
                let (at, value) = (key(random.below(200)), random.next().to_string().into_bytes());
                match random.below(5) {
                    0 => {
                        db.merge(&at, &value).unwrap();
                        model.entry(at).or_default().extend(value);
                    }
                    1 => {
                        db.delete(&at).unwrap();
                        model.remove(&at);
                    }
                    _ => {
                        db.put(&at, &value).unwrap();
                        model.insert(at, value);
                    }
                }
            }
            if random.one_in(4) {
                let begin = random.below(200);
                let (begin, end) = (key(begin), key(begin + random.below(40)));
                db.delete_range(&begin, &end).unwrap();
                model.retain(|key, _| *key < begin || *key >= end);
            }
            let mut paths = Vec::new();
            for nth in 0..1 + random.below(3) {
                let begin = random.below(150);
                let keys: Vec<_> = (begin..begin + 1 + random.below(50)).map(key).collect();
                let value = format!("taken in, {round}, {nth}").into_bytes();
                let entries = keys.iter().map(|key| (key, (key[6] % 3 != 0).then_some(&*value)));
                let mut entries: Vec<_> = entries.collect();
                let mut ranges = Vec::new();
                while random.one_in(2) {
                    let begin = random.below(200);
                    ranges.push((key(begin), key(begin + random.below(30))));
                }
                if random.one_in(4) && ranges.iter().any(|(begin, end)| begin < end) {
                    entries.clear();
                }
                for (begin, end) in &ranges {
                    model.retain(|key, _| key < begin || key >= end);
                }
                let name = format!("{round}-{nth}");
                paths.push(file_with_ranges(&vfs, &name, entries.iter().copied(), &ranges));
                for (key, value) in entries {
                    match value {
                        Some(value) => model.insert(key.clone(), value.to_vec()),
                        None => model.remove(key),
                    };
                }
            }
            ingest(&db, &paths).unwrap();
            match round % 5 {
                0 => snapshots.push((db.snapshot(), model.clone())),
                1 => while db.step().unwrap() {},
                2 if random.one_in(2) => drop((!snapshots.is_empty()).then(|| snapshots.remove(0))),
                3 if random.one_in(3) => {
                    let all = CompactRangeOptions::default();
                    db.compact_range(None, None, &all).unwrap();
                }
                _ => {}
            }
            if round % 15 == 14 {
                snapshots.clear();
                assert_sound(&db);
                assert_reads(&db, &model, &ReadOptions::default());
                db.close().unwrap();
                db = open(&vfs, &options);
            }
            assert_reads(&db, &model, &ReadOptions::default());
            for (snapshot, model) in &snapshots {
                assert_reads(&db, model, &ReadOptions::at(snapshot));
            }
        }
        assert_sound(&db);
    }
}

#[test]
fn files_go_to_their_regions_and_are_moved_if_wanted() {
    let vfs = MemVfs::new();
    let mut options = tiny();
    options.column_family.regions = Regions::at([key(50), key(100)]).unwrap();
    let db = open(&vfs, &options);
    let keys: Vec<_> = (0..150).map(key).collect();
    let path = file(&vfs, "all", keys.iter().map(|key| (key, Some(&b"v"[..]))));
    let family = db.default_column_family();
    let moves = IngestOptions { move_files: true, ..IngestOptions::default() };
    family.ingest(std::slice::from_ref(&path), &moves).unwrap();
    assert!(!as_vfs(&vfs).exists(&path).unwrap());
    assert_eq!(read_all(&family, &ReadOptions::default()).len(), 150);
    assert_sound(&db);
}

/// What was taken in is there, whether or not the file of it goes.
#[test]
fn a_file_that_cannot_be_removed_stays() {
    let mem = MemVfs::new();
    let vfs = Arc::new(FaultVfs::new(as_vfs(&mem)));
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    let keys: Vec<_> = (0..20).map(key).collect();
    let part =
        |name, keys: &[Vec<u8>]| file(&mem, name, keys.iter().map(|key| (key, Some(&b"v"[..]))));
    let parts = [part("one", &keys[..10]), part("two", &keys[10..])];
    vfs.add(FaultRule::new(Fault::Io).path("/two").on(VfsOperation::Remove));
    let import = db.import_column_family("new", Default::default(), &parts, true);
    assert_eq!(read_all(&import.unwrap(), &ReadOptions::default()).len(), 20);
    assert!(!mem.exists(&parts[0]).unwrap() && mem.exists(&parts[1]).unwrap());
    let moves = IngestOptions { move_files: true, ..IngestOptions::default() };
    db.ingest(&parts[1..], &moves).unwrap();
    assert_eq!(read_all(&db.default_column_family(), &ReadOptions::default()).len(), 10);
    assert_sound(&db);
}

#[test]
fn what_cannot_be_taken_in_leaves_no_trace() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    db.put("key0001", "before").unwrap();
    let keys: Vec<_> = (0..10).map(key).collect();
    let good = file(&vfs, "good", keys.iter().map(|key| (key, Some(&b"v"[..]))));
    let files = || as_vfs(&vfs).list("/db".as_ref()).unwrap().len();
    let (before, seqno) = (files(), db.latest_sequence_number());
    let refused = |paths: &[PathBuf], text: &str| {
        let error = ingest(&db, paths).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        assert_eq!(db.get("key0001").unwrap().unwrap(), b"before");
        assert_eq!((files(), db.latest_sequence_number()), (before, seqno));
    };
    refused(&[good.clone(), "/none".into()], "none");
    // Every single damaged byte is found, and nothing of any file is taken.
    let image = |path: &PathBuf| {
        let file = as_vfs(&vfs).open(path, sateen::vfs::OpenOptions::READ).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_exact_at(&mut bytes, 0, sateen::vfs::IoClass::Client).unwrap();
        bytes
    };
    let bytes = image(&good);
    for at in (4096..4096 + 300).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let path = PathBuf::from(format!("/damaged{at}"));
        let create = sateen::vfs::OpenOptions::CREATE;
        let file = as_vfs(&vfs).open(&path, create).unwrap();
        file.write_at(&damaged, 0, sateen::vfs::IoClass::Client).unwrap();
        refused(&[good.clone(), path], "damaged");
    }
    let own = db.live_tables();
    assert!(own.is_empty());
    db.flush().unwrap();
    let before = files();
    let own = db.live_tables()[0].file.clone();
    let error = ingest(&db, &[own]).unwrap_err().to_string();
    assert!(error.contains(".sat"), "{error}");
    let merged = PathBuf::from("/merged");
    let mut writer = SstFileWriter::create_with(as_vfs(&vfs), &merged, &tiny()).unwrap();
    writer.merge("a", "b").unwrap();
    writer.finish().unwrap();
    let error = ingest(&db, &[merged]).unwrap_err().to_string();
    assert!(error.contains("no merge operator"), "{error}");
    db.put("key0001", "in memory").unwrap();
    let family = db.default_column_family();
    let quiet = IngestOptions { allow_flush: false, ..IngestOptions::default() };
    let error = family.ingest(&[&good], &quiet).unwrap_err().to_string();
    assert!(error.contains("allow_flush"), "{error}");
    assert_eq!(files(), before);
    ingest(&db, &[good]).unwrap();
    assert_eq!(db.get("key0001").unwrap().unwrap(), b"v");
}

#[test]
fn a_file_deletes_ranges_of_what_came_before_it() {
    let vfs = MemVfs::new();
    let mut options = Options { background_threads: 0, ..tiny() };
    options.column_family.regions = Regions::even(4).unwrap();
    let db = open(&vfs, &options);
    let keys: Vec<Vec<u8>> = (0..=255_u8).map(|byte| vec![byte, b'k']).collect();
    let family = db.default_column_family();
    for (at, key) in keys.iter().enumerate() {
        db.put(key, "old").unwrap();
        if at == 200 {
            db.flush().unwrap();
        }
    }
    let snapshot = db.snapshot();
    // Over all regions, in what is stored and in memory; its own entries stay, also those that it
    // adds before it deletes the range.
    let first = (vec![10], vec![240]);
    let own = (&keys[20], Some(&b"own"[..]));
    let one = file_with_ranges(&vfs, "one", [own], &[first.clone(), first]);
    // Of the file before it, and nothing else.
    let two = file_with_ranges(&vfs, "two", [], &[(keys[20].clone(), keys[21].clone())]);
    let expected = |with_own: bool| -> Contents {
        let outside = keys.iter().filter(|key| key[0] < 10 || key[0] >= 240);
        let mut left: Contents = outside.map(|key| (key.clone(), b"old".to_vec())).collect();
        if with_own {
            left.insert(keys[20].clone(), b"own".to_vec());
        }
        left
    };
    ingest(&db, std::slice::from_ref(&one)).unwrap();
    assert_eq!(read_all(&family, &ReadOptions::default()), expected(true));
    assert_eq!(read_all(&family, &ReadOptions::at(&snapshot)).len(), 256);
    assert_eq!(db.get(&keys[30]).unwrap(), None);
    ingest(&db, &[one, two]).unwrap();
    assert_eq!(read_all(&family, &ReadOptions::default()), expected(false));
    drop(snapshot);
    db.put(&keys[50], "new").unwrap();
    assert_sound(&db);
    db.close().unwrap();
    let db = open(&vfs, &options);
    let family = db.default_column_family();
    let mut expected = expected(false);
    expected.insert(keys[50].clone(), b"new".to_vec());
    assert_eq!(read_all(&family, &ReadOptions::default()), expected);
    family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    assert_eq!(read_all(&family, &ReadOptions::default()), expected);
    assert_sound(&db);

    let mut writer = SstFileWriter::create_with(as_vfs(&vfs), "/three", &tiny()).unwrap();
    assert!(writer.delete_range("b", "a").unwrap_err().to_string().contains("is above"));
    writer.delete_range("a", "a").unwrap();
    assert!(writer.finish().unwrap_err().to_string().contains("nothing was added"));
}

/// A range that is in memory is older than one that a file deletes, and is stored before it: what a
/// compaction writes in between is not taken for written without both.
#[test]
fn a_range_in_memory_outlives_one_of_a_file() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &Options { background_threads: 0, ..tiny() });
    let family = db.default_column_family();
    for number in 0..40 {
        db.put(key(number), "old").unwrap();
    }
    db.flush().unwrap();
    db.delete_range(key(10), key(20)).unwrap();
    let far = file_with_ranges(&vfs, "far", [], &[(key(30), key(35))]);
    ingest(&db, &[far]).unwrap();
    let rewrite = CompactRangeOptions { flush: false, rewrite_last_level: true, wait: true };
    family.compact_range(None, None, &rewrite).unwrap();
    db.flush().unwrap();
    let left: Vec<u64> =
        (0..40).filter(|n| !(10..20).contains(n) && !(30..35).contains(n)).collect();
    let expected: Contents = left.into_iter().map(|n| (key(n), b"old".to_vec())).collect();
    assert_eq!(read_all(&family, &ReadOptions::default()), expected);
    assert_sound(&db);
}

/// A crash at any operation of the file system: all files are in, or none.
#[test]
fn all_or_none_after_a_crash() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    let keys: Vec<_> = (0..100).map(key).collect();
    for key in &keys[..50] {
        db.put(key, "old").unwrap();
    }
    let new = |key| (key, Some(&b"new"[..]));
    let paths = [
        file_with_ranges(
            &vfs,
            "first",
            keys[20..60].iter().map(new),
            &[(key(0), key(10)), (key(30), key(70))],
        ),
        file(&vfs, "second", keys[80..].iter().map(new)),
    ];
    let family = db.default_column_family();
    let old = read_all(&family, &ReadOptions::default());
    let recording = vfs.record();
    ingest(&db, &paths).unwrap();
    let after = read_all(&family, &ReadOptions::default());
    let ingested = recording.len();
    family.writing(&WriteOptions { sync: true, ..Default::default() }).put("later", "1").unwrap();
    drop(db);
    let mut seen = [0, 0];
    for at in 0..=recording.len() {
        for choice in recording.choices_at(at, 2) {
            let image = recording.image_at(at, choice);
            let db = open(&image, &tiny());
            let family = db.default_column_family();
            let mut found = read_all(&family, &ReadOptions::default());
            let later = found.remove(&b"later"[..]).is_some();
            let is_new = found == after;
            // What was not synced before may be gone where nothing was taken in.
            let subset = found.iter().all(|(key, value)| old.get(key) == Some(value));
            assert!(is_new || subset && !later, "{at} {choice:?}: {} keys", found.len());
            assert!(is_new || at < ingested, "{at} {choice:?}: it was promised");
            seen[usize::from(is_new)] += 1;
            assert_sound(&db);
        }
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
}

/// A call that fails at any operation leaves the database as it was, and it can be done again.
#[test]
fn all_or_none_where_the_disk_fails() {
    let mut failed = 0;
    for nth in 1..60 {
        let vfs = MemVfs::new();
        let faults = std::sync::Arc::new(FaultVfs::new(as_vfs(&vfs)));
        let db = Db::open_with(faults.clone(), "/db", tiny(), &[]).unwrap();
        let keys: Vec<_> = (0..60).map(key).collect();
        db.put(&keys[0], "old").unwrap();
        let path = file(&vfs, "new", keys[20..].iter().map(|key| (key, Some(&b"new"[..]))));
        faults.add(FaultRule::new(Fault::Io).nth(nth).once());
        let result = ingest(&db, std::slice::from_ref(&path));
        faults.clear();
        let family = db.default_column_family();
        let found = read_all(&family, &ReadOptions::default()).len();
        if let Err(error) = result {
            failed += 1;
            assert_eq!(found, 1, "{nth}: {error}");
            if db.health().0 != sateen::Health::Ok {
                db.resume().unwrap();
            }
            ingest(&db, &[path]).unwrap();
        }
        assert_eq!(read_all(&family, &ReadOptions::default()).len(), 41, "{nth}");
        assert_sound(&db);
    }
    assert!(failed > 10, "{failed}");
}

/// Writers go on while a large file is taken in.
#[test]
fn writers_go_on_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path().join("db"), Options::default()).unwrap();
    let path = directory.path().join("large");
    let mut writer = SstFileWriter::create(&path, &Options::default()).unwrap();
    for number in 0..50_000_u64 {
        writer.put(format!("large{number:08}"), [b'v'; 100]).unwrap();
    }
    writer.finish().unwrap();
    let written = std::thread::scope(|scope| {
        let taken = scope.spawn(|| ingest(&db, &[path]));
        let mut written = 0_u64;
        while !taken.is_finished() {
            db.put(format!("small{written:08}"), "v").unwrap();
            written += 1;
        }
        taken.join().unwrap().unwrap();
        written
    });
    assert!(written > 10, "{written} writes were done meanwhile");
    let family = db.default_column_family();
    let found = read_all(&family, &ReadOptions::default()).len() as u64;
    assert_eq!(found, 50_000 + written);
}
