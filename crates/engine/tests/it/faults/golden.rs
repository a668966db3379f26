//! Databases that released versions of the format have written: each opens, holds what it held
//! then, and can be written. What a newer version writes is refused by name.
//!
//! They are under `tests/data/golden`, a directory for each version of the format. One is never
//! written again; with a new version of any file of it a new directory is made:
//! `cargo test -p sateen --test it faults::golden::generate -- --ignored`, with the version raised
//! here.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen::vfs::{IoClass, MemVfs, OpenOptions, PosixVfs, Vfs};
use sateen::{
    ColumnFamilyOptions, CompactRangeOptions, Comparator, Db, Error, IngestOptions, Options,
    ReadOptions, Regions, SstFileWriter, StoredOptions, WriteBatch, WriteOptions,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::support::common::{appending, as_vfs, assert_sound, read_all, small};

/// The version that this engine writes.
const VERSION: &str = "1";
const DB: &str = "/db";
/// What the database held when it was written.
const CONTENTS: &str = "contents.txt";
/// One with every feature, and one of each profile that places tables in its own way.
const NAMES: [&str; 7] = ["features", "sateen", "rocksdb", "leveldb", "bolt", "pebblesdb", "triad"];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden")
}

/// Everything that there is in files.
fn write_features(path: &Path) {
    let mut options = small("sateen", 8 << 10);
    options.column_family.merge_operator = Some(appending());
    let default = options.column_family.clone();
    let with = |change: &dyn Fn(&mut ColumnFamilyOptions)| {
        let mut options = default.clone();
        change(&mut options);
        options
    };
    let families = [
        ("plain", with(&|options| options.set("compression", "none").unwrap())),
        ("lz4", with(&|options| options.set("compression", "lz4").unwrap())),
        ("zstd", with(&|options| options.set("compression", "zstd").unwrap())),
        ("reversed", with(&|options| options.comparator = Comparator::reverse_bytewise())),
        ("regions", with(&|options| options.regions = Regions::at(["key3", "key6"]).unwrap())),
        ("prefixes", with(&|options| options.set("prefix_extractor", "fixed:4").unwrap())),
        ("kept in the log", with(&|options| options.set("values_stay_in_log", "true").unwrap())),
    ];
    let db = Db::open_with(Arc::new(PosixVfs::new()), path, options.clone(), &[]).unwrap();
    for (name, options) in families {
        db.create_column_family(name, options).unwrap();
    }
    let gone = db.create_column_family("dropped", default).unwrap();
    gone.put("key", "value").unwrap();
    gone.flush().unwrap();
    db.drop_column_family(&gone).unwrap();
    for (number, name) in db.column_families().iter().enumerate() {
        let family = db.column_family(name).unwrap();
        for round in 0..2 {
            let mut batch = WriteBatch::new();
            for i in 0..60 {
                let key = format!("key{}", i * 7 % 90 + round * 5);
                match (i + number) % 7 {
                    0 => batch.to(&family).delete(key).unwrap(),
                    1 => batch.to(&family).merge(key, format!("+{round}")).unwrap(),
                    2 => batch.to(&family).single_delete(key).unwrap(),
                    _ => batch
                        .to(&family)
                        .put(key, format!("{name} {round} {i} ").repeat(6))
                        .unwrap(),
                }
            }
            batch.put_log_data(format!("round {round}")).unwrap();
            db.write(&batch, &WriteOptions::default()).unwrap();
            let (begin, end) = range(name, format!("key{round}2"), format!("key{round}4"));
            family.delete_range(begin, end).unwrap();
            family.flush().unwrap();
        }
        if number % 2 == 0 {
            family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
        }
    }
    let file = path.with_extension("sst");
    let mut writer = SstFileWriter::create(&file, &options).unwrap();
    for i in 0..20 {
        writer.put(format!("taken in {i:02}"), "from a file").unwrap();
    }
    writer.delete_range("key80", "key85").unwrap();
    writer.finish().unwrap();
    let ingest = IngestOptions { move_files: true, ..IngestOptions::default() };
    db.ingest(&[&file], &ingest).unwrap();
    // What is in the log alone, of all column families.
    let mut batch = WriteBatch::new();
    for name in db.column_families() {
        let family = db.column_family(&name).unwrap();
        batch.to(&family).put("logged", "not flushed").unwrap();
        batch.to(&family).merge("key1", "+logged").unwrap();
        let (begin, end) = range(&name, "key50".to_owned(), "key52".to_owned());
        batch.to(&family).delete_range(begin, end).unwrap();
    }
    db.write(&batch, &WriteOptions::sync()).unwrap();
    finish(&db, path);
}

/// Begin and end of a range, in the order of a column family.
fn range(family: &str, one: String, other: String) -> (String, String) {
    if family == "reversed" { (other, one) } else { (one, other) }
}

/// What a profile makes of plain writes.
fn write_profile(path: &Path, profile: &str) {
    let options = small(profile, 4 << 10);
    let db = Db::open_with(Arc::new(PosixVfs::new()), path, options, &[]).unwrap();
    for i in 0..400_u32 {
        let key = format!("key{:03}", i * 37 % 150);
        match i % 11 {
            0 => db.delete(key).unwrap(),
            _ => db.put(key, format!("value {i} ").repeat(8)).unwrap(),
        }
        while db.step().unwrap() {}
    }
    finish(&db, path);
}

fn finish(db: &Db, path: &Path) {
    assert_sound(db);
    std::fs::write(path.join(CONTENTS), text_of(db)).unwrap();
    db.close().unwrap();
}

/// All that a database holds, as text.
fn text_of(db: &Db) -> String {
    let mut text = String::new();
    for name in db.column_families() {
        let family = db.column_family(&name).unwrap();
        writeln!(text, "[{name}]").unwrap();
        for (key, value) in read_all(&family, &ReadOptions::default()) {
            writeln!(text, "{}\t{}", key.escape_ascii(), value.escape_ascii()).unwrap();
        }
    }
    text
}

/// Writes the golden databases of this version.
#[test]
#[ignore = "writes test data, once for each version of the format"]
fn generate() {
    for name in NAMES {
        let path = data().join(VERSION).join(name);
        assert!(!path.exists(), "{} is there: it is never written again", path.display());
        std::fs::create_dir_all(&path).unwrap();
        match name {
            "features" => write_features(&path),
            profile => write_profile(&path, profile),
        }
        std::fs::remove_file(path.join("LOCK")).unwrap();
    }
}

/// A golden database in memory, and what it held.
fn load(path: &Path) -> (MemVfs, String) {
    let vfs = MemVfs::new();
    vfs.create_dir_all(Path::new(DB)).unwrap();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        if name != CONTENTS {
            let file = vfs.open(&Path::new(DB).join(name), OpenOptions::CREATE).unwrap();
            file.write_at(&std::fs::read(&path).unwrap(), 0, IoClass::Manifest).unwrap();
        }
    }
    (vfs, std::fs::read_to_string(path.join(CONTENTS)).unwrap())
}

/// With the options that it was opened with last, and what of them is no text.
fn stored(vfs: &MemVfs) -> StoredOptions {
    let mut stored = Options::load_with(vfs, DB, false).unwrap();
    for (name, field, is) in stored.named.clone() {
        assert_eq!((&*field, &*is), ("merge_operator", "append"));
        for (other, options) in &mut stored.families {
            if *other == name {
                options.merge_operator = Some(appending());
            }
        }
    }
    stored.options.column_family.merge_operator = Some(appending());
    stored
}

fn open(vfs: &MemVfs) -> Db {
    let StoredOptions { options, families, .. } = stored(vfs);
    let families: Vec<_> =
        families.iter().map(|(name, options)| (name.as_str(), options.clone())).collect();
    Db::open_with(as_vfs(vfs), DB, options, &families).unwrap()
}

fn all() -> Vec<PathBuf> {
    let below = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    below(&data()).iter().flat_map(|version| below(version)).collect()
}

#[test]
fn what_every_version_has_written_is_read_and_written() {
    let all = all();
    assert!(all.len() >= NAMES.len(), "{all:?}");
    for path in all {
        let (vfs, contents) = load(&path);
        let StoredOptions { options, families, .. } = stored(&vfs);
        let families: Vec<_> =
            families.iter().map(|(name, options)| (name.as_str(), options.clone())).collect();
        let report =
            sateen::check_with(as_vfs(&vfs), DB, &options, &families, &mut |_, _| {}).unwrap();
        assert!(report.problems.is_empty(), "{}: {:#?}", path.display(), report.problems);
        let read_only =
            Db::open_read_only_families_with(as_vfs(&vfs), DB, options.clone(), &families);
        let read_only = read_only.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(text_of(&read_only) == contents, "{} to be read", path.display());
        drop(read_only);
        let db = open(&vfs);
        assert!(text_of(&db) == contents, "{}", path.display());
        assert_sound(&db);
        let names = db.column_families();
        for name in &names {
            let family = db.column_family(name).unwrap();
            family.put("written", "since").unwrap();
        }
        db.flush_all().unwrap();
        for name in &names {
            let family = db.column_family(name).unwrap();
            let options = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
            family.compact_range(None, None, &options).unwrap();
            family.delete("written").unwrap();
        }
        assert!(text_of(&db) == contents, "{} after compaction", path.display());
        assert_sound(&db);
        db.close().unwrap();
        let db = open(&vfs);
        assert!(text_of(&db) == contents, "{} reopened", path.display());
        assert_sound(&db);
    }
}

/// The first manifests did not record whether values have the times of their writes.
#[test]
fn the_form_of_values_is_what_the_options_say() {
    let (vfs, contents) = load(&data().join("1/sateen"));
    let mut options = stored(&vfs).options;
    options.column_family.ttl = Some(std::time::Duration::ZERO);
    let error = Db::open_with(as_vfs(&vfs), DB, options.clone(), &[]).unwrap_err().to_string();
    assert!(error.contains("ttl=0: ") && error.contains("column family default"), "{error}");
    vfs.remove(&Path::new(DB).join("OPTIONS")).unwrap();
    // Nothing says it now, so it is as asked. No value ends with a time.
    let reader = Db::open_read_only_with(as_vfs(&vfs), DB, options.clone()).unwrap();
    let db = Db::open_with(as_vfs(&vfs), DB, options, &[]).unwrap();
    let compacted = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
    for db in [reader, db] {
        let error = db.get("key000").unwrap_err();
        assert!(error.is_corruption() && error.to_string().contains("`ttl`"), "{error}");
        assert!(db.multi_get(&["key000"])[0].is_err());
        let mut cursor = db.cursor(&ReadOptions::default()).unwrap();
        let moves: [fn(&mut sateen::Cursor); 3] = [
            |cursor| cursor.seek_to_first(),
            |cursor| cursor.seek_to_last(),
            |cursor| cursor.seek("key000"),
        ];
        for go in moves {
            go(&mut cursor);
            assert!(!cursor.valid());
            assert_eq!(cursor.status().unwrap_err().to_string(), error.to_string());
        }
        drop(cursor);
        // A compaction keeps what it does not understand.
        let _read_only = db.default_column_family().compact_range(None, None, &compacted);
        db.close().unwrap();
    }
    // From then on the manifest records it, wrong as it is.
    let options = Options { background_threads: 0, ..Options::profile("sateen").unwrap() };
    assert!(Db::open_with(as_vfs(&vfs), DB, options.clone(), &[]).is_err());
    let (vfs, _) = load(&data().join("1/sateen"));
    vfs.remove(&Path::new(DB).join("OPTIONS")).unwrap();
    let db = Db::open_with(as_vfs(&vfs), DB, options, &[]).unwrap();
    assert!(text_of(&db) == contents);
}

/// The seed of what belongs to a file (`table` 0) or a table, as docs/format/table.md says.
fn seed(uid: u64, file: u64, table: u64, at: u64) -> u64 {
    let bytes: Vec<u8> = [uid, file, table].iter().flat_map(|n| n.to_le_bytes()).collect();
    xxh3_64(&bytes) ^ at.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Raises the version at `at` and makes the checksum right that covers `from..to` and stands there.
fn raise(bytes: &mut [u8], at: usize, from: usize, to: usize, checksum: impl Fn(&[u8]) -> u64) {
    assert_eq!(bytes[at..at + 4], 1_u32.to_le_bytes(), "this version");
    let before = checksum(&bytes[from..to]);
    assert_eq!(u64_at(bytes, to), before, "the test computes checksums as the engine does");
    bytes[at..at + 4].copy_from_slice(&2_u32.to_le_bytes());
    let after = checksum(&bytes[from..to]);
    bytes[to..to + 8].copy_from_slice(&after.to_le_bytes());
}

/// The same of a small text.
fn raise_text(bytes: &mut Vec<u8>, first: &str) {
    let text = String::from_utf8(bytes.clone()).unwrap();
    let rest = text.strip_prefix(&format!("{first} 1\n")).unwrap();
    let (rest, _) = rest.split_at(rest.rfind("check ").unwrap());
    let text = format!("{first} 2\n{rest}");
    *bytes = format!("{text}check {:016x}\n", xxh3_64(text.as_bytes())).into_bytes();
}

fn raise_table(bytes: &mut [u8]) {
    let uid = u64_at(bytes, 16);
    let file = u64_at(bytes, 24);
    let end = bytes.windows(8).position(|at| at == b"SATtable").unwrap() + 8;
    let begin = 4096;
    let footer = end - 128;
    let table = u64_at(bytes, footer + 80);
    let seed = seed(uid, file, table, (footer - begin) as u64);
    raise(bytes, footer + 108, footer, footer + 112, |body| xxh3_64_with_seed(body, seed).max(1));
}

/// What opening or reading says of a database of which the first file named so was changed.
fn refusal(file: &str, change: impl Fn(&mut Vec<u8>)) -> (String, String) {
    let (vfs, _) = load(&data().join(VERSION).join("sateen"));
    let names = vfs.list(Path::new(DB)).unwrap();
    let fits = |name: &&PathBuf| name.to_string_lossy().contains(file);
    let path = Path::new(DB).join(names.iter().rev().find(fits).unwrap());
    let mut bytes = vfs.contents(&path).unwrap();
    change(&mut bytes);
    let options = OpenOptions::WRITE;
    vfs.open(&path, options).unwrap().write_at(&bytes, 0, IoClass::Manifest).unwrap();
    let options = small("sateen", 4 << 10);
    let read = || {
        if file == "OPTIONS" {
            return Options::load_with(&vfs, DB, false).map(drop);
        }
        let db = Db::open_with(as_vfs(&vfs), DB, options.clone(), &[])?;
        let mut iter = db.cursor(&ReadOptions::default())?;
        iter.seek_to_first();
        while iter.valid() {
            iter.next();
        }
        iter.status()
    };
    let check = sateen::check_with(as_vfs(&vfs), DB, &options, &[], &mut |_, _| {}).unwrap();
    let name = path.display().to_string();
    let told = check.problems.iter().map(ToString::to_string).find(|text| text.contains(&name));
    assert!(told.is_some_and(|text| text.contains("newer format")), "{file}: {check:?}");
    // It is not damaged, and a repair would lose it.
    if file != "OPTIONS" {
        let repaired = sateen::repair_with(as_vfs(&vfs), DB, &options).unwrap_err().to_string();
        assert!(repaired.contains("newer format") && repaired.contains(&name), "{repaired}");
    }
    match read() {
        Err(error @ Error::IncompatibleDirectory { .. }) => {
            (path.display().to_string(), error.to_string())
        }
        other => panic!("{file}: {other:?}"),
    }
}

#[test]
fn what_a_newer_version_has_written_is_refused_by_name() {
    let header = |bytes: &mut Vec<u8>| raise(bytes, 8, 0, 56, xxh3_64);
    let of_file = |bytes: &mut Vec<u8>| {
        let seed = seed(u64_at(bytes, 16), u64_at(bytes, 24), 0, 0);
        raise(bytes, 8, 0, 4088, |body| xxh3_64_with_seed(body, seed).max(1));
    };
    let told = [
        refusal(".wal", header),
        refusal("MANIFEST-", header),
        refusal(".sat", of_file),
        refusal(".sat", |bytes| raise_table(bytes)),
        refusal("CURRENT", |bytes| raise_text(bytes, "sateen")),
        refusal("OPTIONS", |bytes| raise_text(bytes, "sateen options")),
    ];
    for (file, text) in told {
        assert!(text.contains(&file), "{text} names {file}");
        assert!(text.contains("newer format"), "{text}");
        let numbers = text.replace(&file, "");
        assert!(numbers.contains('2') && numbers.contains('1'), "found and known: {text}");
    }
}
