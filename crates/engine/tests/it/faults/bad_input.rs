//! What users and their disks get wrong: each mistake gets an error that names the thing, and the
//! database is as it was.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use sateen::vfs::{CrashChoice, IoClass, MemVfs, OpenOptions, PosixVfs, Vfs, VfsFile, VfsLock};
use sateen::{
    CompactRangeOptions, Db, Error, KEY_BYTES_MAX, Options, ReadOptions, VALUE_BYTES_MAX,
    WriteBatch, WriteOptions,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::support::common::{Contents, as_vfs, assert_sound, own_test, read_all, tiny};
use sateen::pass_on;

const SECOND_OPENER: &str = "SATEEN_SECOND_OPENER";

pub(super) fn open(vfs: &MemVfs) -> Result<Db, Error> {
    Db::open_with(as_vfs(vfs), "/db", tiny(), &[])
}

/// A database with tables and with entries that only the log has.
pub(super) fn filled() -> (MemVfs, Db, Contents) {
    let vfs = MemVfs::new();
    let db = open(&vfs).unwrap();
    for i in 0..200 {
        db.put(format!("key{i:03}"), format!("value{i}")).unwrap();
        if i == 150 {
            db.flush().unwrap();
        }
    }
    let contents = read_all(&db.default_column_family(), &ReadOptions::default());
    (vfs, db, contents)
}

pub(super) fn assert_unchanged(db: &Db, contents: &Contents) {
    let found = read_all(&db.default_column_family(), &ReadOptions::default());
    assert!(found == *contents, "the contents changed");
    assert_sound(db);
    db.put("key000", "value0").unwrap();
}

/// All words are in the error's text.
#[track_caller]
pub(super) fn assert_names(error: &Error, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// All names and bytes of a directory.
fn listing(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn an_unknown_option_is_named_with_the_nearest_one() {
    let error = Options::from_str_list("wal=sync;memtable_bites=1").unwrap_err();
    assert_names(&error, &["memtable_bites", "memtable_bytes"]);
    let error = Options::from_str_list("memtable_bytes=many").unwrap_err();
    assert_names(&error, &["memtable_bytes", "many"]);
    let (_vfs, db, contents) = filled();
    let before = db.options();
    let error = db.set_options(&[("max_open_files", "77"), ("max_opened", "7")]).unwrap_err();
    assert_names(&error, &["max_opened"]);
    let error = db.set_options(&[("wal", "off")]).unwrap_err();
    assert_names(&error, &["wal"]);
    let family = db.default_column_family();
    let error = family.set_options(&[("table_bite", "1")]).unwrap_err();
    assert_names(&error, &["table_bite"]);
    assert_eq!(db.options(), before, "all or none");
    assert_unchanged(&db, &contents);
}

#[test]
fn options_that_are_reserved_or_contradict_are_named() {
    for (name, value) in [("comparator", "reverse"), ("levels", "1")] {
        let mut options = tiny();
        let told = options
            .set(name, value)
            .and_then(|()| Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).map(drop));
        assert_names(&told.unwrap_err(), &[name]);
    }
}

#[test]
fn a_wrong_directory_is_named_and_left_alone() {
    let place = temporary();
    let file = place.path().join("file");
    std::fs::write(&file, "text").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = Db::open(&path, tiny()).unwrap_err();
        assert_names(&error, &[path.to_str().unwrap()]);
        let error = Db::open_read_only(&path, tiny()).unwrap_err();
        assert_names(&error, &[file.to_str().unwrap()]);
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"text");

    let missing = place.path().join("missing");
    let options = Options { create_if_missing: false, ..tiny() };
    let error = Db::open(&missing, options.clone()).unwrap_err();
    assert_names(&error, &[missing.to_str().unwrap(), "create_if_missing"]);
    assert!(!missing.exists());
    let error = Db::open_read_only(&missing, options.clone()).unwrap_err();
    assert_names(&error, &[missing.to_str().unwrap()]);
    assert!(!missing.exists());

    std::fs::create_dir(&missing).unwrap();
    let error = Db::open(&missing, options).unwrap_err();
    assert_names(&error, &[missing.to_str().unwrap(), "create_if_missing"]);
    let error = Db::open_read_only(&missing, tiny()).unwrap_err();
    assert_names(&error, &[missing.to_str().unwrap()]);
    assert!(listing(&missing).is_empty(), "{:?}", listing(&missing));
}

#[test]
fn the_databases_of_others_are_recognised_and_left_alone() {
    let rocksdb = ["CURRENT", "IDENTITY", "MANIFEST-000005", "OPTIONS-000007", "000004.log"];
    let leveldb = ["CURRENT", "LOG", "MANIFEST-000002", "000003.log", "000005.ldb"];
    let no_current = ["IDENTITY", "MANIFEST-000005", "OPTIONS-000007", "000009.sst"];
    let bare = ["CURRENT", "LOG", "MANIFEST-000002", "000003.log"];
    let all: [(&[&str], &str); 4] = [
        (&rocksdb, "RocksDB"),
        (&leveldb, "LevelDB"),
        (&no_current, "RocksDB"),
        (&bare, "LevelDB"),
    ];
    for (files, whose) in all {
        let place = temporary();
        for name in files {
            let text =
                if *name == "CURRENT" { "MANIFEST-000005\n" } else { "V1 data that is not ours" };
            std::fs::write(place.path().join(name), text).unwrap();
        }
        let before = listing(place.path());
        let path = place.path().to_str().unwrap();
        assert_names(&Db::open(place.path(), tiny()).unwrap_err(), &[path, whose]);
        let error = Db::open_read_only(place.path(), tiny()).unwrap_err();
        assert_names(&error, &[path, whose]);
        assert!(listing(place.path()) == before, "{whose}: the directory changed");
    }
}

#[test]
fn a_second_opener_in_the_same_process_is_refused() {
    let place = temporary();
    let db = Db::open(place.path(), tiny()).unwrap();
    db.put("key", "value").unwrap();
    let error = Db::open(place.path(), tiny()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert_names(&error, &[place.path().to_str().unwrap()]);
    assert_eq!(db.get("key").unwrap().unwrap(), b"value");
    db.put("key", "other").unwrap();
    db.close().unwrap();
    let again = Db::open(place.path(), tiny()).unwrap();
    assert_eq!(again.get("key").unwrap().unwrap(), b"other");
}

/// What the other process runs; as a test of its own it does nothing.
#[test]
fn second_opener() {
    let Ok(directory) = std::env::var(SECOND_OPENER) else { return };
    let error = Db::open(&directory, tiny()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert_names(&error, &[&directory]);
    let reader = Db::open_read_only(&directory, tiny()).unwrap();
    assert_eq!(reader.get("key").unwrap().unwrap(), b"value");
}

#[test]
fn a_second_opener_in_another_process_is_refused() {
    let place = temporary();
    let db = Db::open(place.path(), tiny()).unwrap();
    db.put("key", "value").unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &own_test(module_path!(), "second_opener")])
        .env(SECOND_OPENER, place.path())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    db.put("key", "other").unwrap();
    assert_sound(&db);
}

pub(super) fn replace(vfs: &MemVfs, name: &str, bytes: &[u8]) {
    let path = Path::new("/db").join(name);
    let file = vfs.open(&path, OpenOptions::WRITE).unwrap();
    file.truncate(0).unwrap();
    file.write_at(bytes, 0, IoClass::Client).unwrap();
}

#[test]
fn a_newer_format_is_named_for_every_kind_of_file() {
    let (vfs, db, contents) = filled();
    db.close().unwrap();
    drop(db);
    let mut kinds = Vec::new();
    for name in vfs.list(Path::new("/db")).unwrap() {
        let path = Path::new("/db").join(&name);
        let name = name.to_str().unwrap();
        let image = vfs.crash_image(CrashChoice::Everything);
        let original = image.contents(&path).unwrap();
        let mut bytes = original.clone();
        if name == "CURRENT" {
            let text = String::from_utf8(bytes).unwrap().replace("sateen 1", "sateen 2");
            bytes = text.into_bytes();
            kinds.push("CURRENT");
        } else if name.ends_with(".sat") {
            bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
            let mut identity = bytes[16..32].to_vec();
            identity.extend_from_slice(&[0; 8]);
            let checksum = xxh3_64_with_seed(&bytes[..4088], xxh3_64(&identity)).max(1);
            bytes[4088..4096].copy_from_slice(&checksum.to_le_bytes());
            kinds.push("table");
        } else if name.ends_with(".wal") || name.starts_with("MANIFEST") {
            bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
            let checksum = xxh3_64(&bytes[..56]);
            bytes[56..64].copy_from_slice(&checksum.to_le_bytes());
            kinds.push(if name.ends_with(".wal") { "wal" } else { "manifest" });
        } else {
            continue;
        }
        replace(&image, name, &bytes);
        let before = image.fingerprint();
        let read_only = Db::open_read_only_with(as_vfs(&image), "/db", tiny());
        let told = read_only.and_then(|db| db.get("key000"));
        let error = told.expect_err(name);
        assert!(matches!(error, Error::IncompatibleDirectory { .. }), "{name}: {error}");
        assert_names(&error, &[name, "newer"]);
        assert_eq!(image.fingerprint(), before, "{name}: a read-only open changed something");
        // The file comes back, and with it everything.
        let told = open(&image).and_then(|db| db.get("key000"));
        assert_names(&told.expect_err(name), &[name, "newer"]);
        replace(&image, name, &original);
        let db = open(&image).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_unchanged(&db, &contents);
    }
    for kind in ["CURRENT", "table", "wal", "manifest"] {
        assert!(kinds.contains(&kind), "{kind} was tried");
    }
}

#[test]
fn what_is_too_large_is_refused_whole() {
    let (_vfs, db, contents) = filled();
    let long = vec![b'k'; KEY_BYTES_MAX + 1];
    let small = Options { value_bytes_max: 1000, ..tiny() };
    let family = db.default_column_family();
    let options = WriteOptions::default();
    let limit = KEY_BYTES_MAX.to_string();
    for error in [
        db.put(&long, "v").unwrap_err(),
        db.delete(&long).unwrap_err(),
        family.writing(&options).put(&long, "v").unwrap_err(),
        family.writing(&options).delete(&long).unwrap_err(),
        WriteBatch::new().put(&long, "v").unwrap_err(),
        WriteBatch::new().delete(&long).unwrap_err(),
    ] {
        assert!(matches!(error, Error::InvalidArgument(_)));
        assert_names(&error, &["key", &limit]);
    }
    assert_eq!(db.get(&long).unwrap(), None);
    // Never touched, so never in memory.
    let huge = vec![0; VALUE_BYTES_MAX + 1];
    let error = db.put("big", &huge).unwrap_err();
    assert_names(&error, &["value", &huge.len().to_string()]);
    let mut batch = WriteBatch::with_value_bytes_max(VALUE_BYTES_MAX);
    batch.put("before", "1").unwrap();
    assert_names(&batch.put("big", &huge).unwrap_err(), &["value"]);
    assert_eq!(batch.count(), 1, "what was refused is not in the batch");
    // The database's own limit counts, whatever the batch allowed.
    db.set_options(&[("value_bytes_max", "1000")]).unwrap();
    batch.put("big", vec![1; 1001]).unwrap();
    let error = db.write(&batch, &options).unwrap_err();
    assert_names(&error, &["value", "1001", "1000"]);
    assert_eq!(db.get("before").unwrap(), None, "nothing of the batch was done");
    assert_unchanged(&db, &contents);
    db.put("longest", vec![7; 1000]).unwrap();
    db.put(vec![b'k'; KEY_BYTES_MAX], "v").unwrap();
    assert!(db.get(vec![b'k'; KEY_BYTES_MAX]).unwrap().is_some());
    let over = Options { value_bytes_max: VALUE_BYTES_MAX as u64 + 1, ..small };
    let error = Db::open_with(as_vfs(&MemVfs::new()), "/db", over, &[]).unwrap_err();
    assert_names(&error, &["value_bytes_max"]);
}

#[test]
fn reversed_bounds_are_named() {
    let (_vfs, db, contents) = filled();
    let reversed = ReadOptions {
        lower_bound: Some(b"key9".to_vec()),
        upper_bound: Some(b"key1".to_vec()),
        ..ReadOptions::default()
    };
    let error = db.cursor(&reversed).map(drop).unwrap_err();
    assert_names(&error, &["key9", "key1"]);
    let family = db.default_column_family();
    let error = family
        .compact_range(Some(b"key9"), Some(b"key1"), &CompactRangeOptions::default())
        .unwrap_err();
    assert_names(&error, &["key9", "key1"]);
    assert_unchanged(&db, &contents);
    // Equal bounds are no mistake: there is nothing between them.
    let nothing = ReadOptions { lower_bound: Some(b"key1".to_vec()), ..reversed };
    assert!(read_all(&family, &nothing).is_empty());
}

#[test]
fn a_missing_file_is_named_and_nothing_is_cleaned_up() {
    let (vfs, db, contents) = filled();
    db.close().unwrap();
    drop(db);
    for name in vfs.list(Path::new("/db")).unwrap() {
        let path = Path::new("/db").join(&name);
        let name = name.to_str().unwrap().to_owned();
        // Nothing depends on these.
        if ["LOCK", "OPTIONS"].contains(&&*name) {
            continue;
        }
        let image = vfs.crash_image(CrashChoice::Everything);
        let bytes = image.contents(&path).unwrap();
        image.remove(&path).unwrap();
        let error = open(&image).map(drop).expect_err(&name);
        assert_names(&error, &[&name]);
        let file = image.open(&path, OpenOptions::CREATE).unwrap();
        file.write_at(&bytes, 0, IoClass::Client).unwrap();
        let db = open(&image).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_unchanged(&db, &contents);
    }
}

/// A file system that refuses everything of one kind.
#[derive(Clone, Debug)]
struct Refusing {
    inner: MemVfs,
    changes: bool,
    errno: i32,
}

#[derive(Debug)]
struct RefusingFile(Arc<dyn VfsFile>, Refusing);

impl Refusing {
    fn change(&self) -> io::Result<()> {
        if self.changes { Err(io::Error::from_raw_os_error(self.errno)) } else { Ok(()) }
    }
    fn read(&self) -> io::Result<()> {
        if self.changes { Ok(()) } else { Err(io::Error::from_raw_os_error(self.errno)) }
    }
}

impl VfsFile for RefusingFile {
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        self.1.change()?;
        self.0.write_at(bytes, offset, class)
    }
    fn sync_data(&self, class: IoClass) -> io::Result<()> {
        self.1.change()?;
        self.0.sync_data(class)
    }
    fn punch_hole(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        self.1.change()?;
        self.0.punch_hole(offset, length, class)
    }
    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.1.change()?;
        self.0.preallocate(offset, length)
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.1.change()?;
        self.0.truncate(length)
    }
    pass_on! { 0: read_at start_writeback finish_writeback len }
}

impl Vfs for Refusing {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        if options.write {
            self.change()?
        } else {
            self.read()?
        }
        Ok(Arc::new(RefusingFile(self.inner.open(path, options)?, self.clone())))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change()?;
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        self.inner.remove(path)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change()?;
        self.inner.hard_link(from, to)
    }
    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change()?;
        self.inner.clone_file(from, to)
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.read()?;
        self.inner.list(directory)
    }
    fn create_dir_all(&self, directory: &Path) -> io::Result<()> {
        self.change()?;
        self.inner.create_dir_all(directory)
    }
    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        self.change()?;
        self.inner.remove_dir(directory)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        self.change()?;
        self.inner.lock(path)
    }
    pass_on! { inner: sync_dir exists free_space }
}

#[test]
fn a_read_only_file_system_can_be_read_and_no_more() {
    let (vfs, db, contents) = filled();
    db.close().unwrap();
    drop(db);
    let before = vfs.fingerprint();
    let read_only_disk: Arc<dyn Vfs> =
        Arc::new(Refusing { inner: vfs.clone(), changes: true, errno: 30 });
    let error = Db::open_with(read_only_disk.clone(), "/db", tiny(), &[]).unwrap_err();
    assert_names(&error, &["/db", "Read-only file system"]);
    let error = Db::open_with(read_only_disk.clone(), "/new", tiny(), &[]).unwrap_err();
    assert_names(&error, &["/new", "Read-only file system"]);
    let reader = Db::open_read_only_with(read_only_disk, "/db", tiny()).unwrap();
    let family = reader.default_column_family();
    assert!(read_all(&family, &ReadOptions::default()) == contents);
    assert_sound(&reader);
    for error in [
        reader.put("key", "value").unwrap_err(),
        reader.delete("key").unwrap_err(),
        reader.flush().unwrap_err(),
        family.compact_range(None, None, &CompactRangeOptions::default()).unwrap_err(),
        reader.set_options(&[("max_open_files", "77")]).unwrap_err(),
        reader.create_column_family("new", tiny().column_family).map(drop).unwrap_err(),
        reader.sync_wal().unwrap_err(),
        reader.resume().unwrap_err(),
    ] {
        assert!(matches!(error, Error::ReadOnly(_)), "{error}");
        assert_names(&error, &["read-only"]);
    }
    drop(reader);
    assert_eq!(vfs.fingerprint(), before, "nothing changed");
    assert_unchanged(&open(&vfs).unwrap(), &contents);
}

#[test]
fn an_unreadable_directory_is_named() {
    let (vfs, db, contents) = filled();
    db.close().unwrap();
    drop(db);
    let closed: Arc<dyn Vfs> = Arc::new(Refusing { inner: vfs.clone(), changes: false, errno: 13 });
    let error = Db::open_with(closed.clone(), "/db", tiny(), &[]).unwrap_err();
    assert_names(&error, &["/db", "Permission denied"]);
    let error = Db::open_read_only_with(closed, "/db", tiny()).unwrap_err();
    assert_names(&error, &["/db", "Permission denied"]);
    assert_unchanged(&open(&vfs).unwrap(), &contents);
}

#[test]
fn handles_of_dropped_column_families_are_refused() {
    let (vfs, db, contents) = filled();
    let family = db.create_column_family("gone", tiny().column_family).unwrap();
    let options = WriteOptions::default();
    family.writing(&options).put("key", "value").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("key000", "changed").unwrap();
    batch.to(&family).put("key", "changed").unwrap();
    let mut open_iter = family.cursor(&ReadOptions::default()).unwrap();
    db.drop_column_family(&family).unwrap();
    let read = ReadOptions::default();
    for error in [
        family.writing(&options).put("key", "value").unwrap_err(),
        family.writing(&options).delete("key").unwrap_err(),
        family.reading(&read).get("key").map(drop).unwrap_err(),
        family.reading(&read).get_pinned("key").map(drop).unwrap_err(),
        family.reading(&read).multi_get(&["key"]).remove(0).map(drop).unwrap_err(),
        family.cursor(&read).map(drop).unwrap_err(),
        family.flush().unwrap_err(),
        family.compact_range(None, None, &CompactRangeOptions::default()).unwrap_err(),
        family.set_options(&[("table_bytes", "4096")]).unwrap_err(),
        db.drop_column_family(&family).unwrap_err(),
    ] {
        assert!(matches!(error, Error::NoSuchColumnFamily(_)), "{error}");
        assert_names(&error, &["gone"]);
    }
    let error = db.write(&batch, &options).unwrap_err();
    assert_names(&error, &["gone"]);
    open_iter.seek_to_first();
    assert!(open_iter.valid() && open_iter.key() == b"key", "an iterator goes on");
    drop(open_iter);
    let again = db.create_column_family("gone", tiny().column_family).unwrap();
    assert_ne!(again.id(), family.id());
    assert_eq!(again.reading(&read).get("key").unwrap(), None);
    family.reading(&read).get("key").unwrap_err();
    let error = db.create_column_family("gone", tiny().column_family).map(drop).unwrap_err();
    assert_names(&error, &["gone"]);
    let default = db.default_column_family();
    assert!(matches!(db.drop_column_family(&default), Err(Error::InvalidArgument(_))));
    db.drop_column_family(&again).unwrap();
    assert_unchanged(&db, &contents);
    db.close().unwrap();
    drop(db);
    let db = open(&vfs).unwrap();
    assert_eq!(db.column_families(), ["default"]);
    assert_unchanged(&db, &contents);
    let missing = [("nowhere", tiny().column_family)];
    drop(db);
    let error = Db::open_with(as_vfs(&vfs), "/db", tiny(), &missing).map(drop).unwrap_err();
    assert_names(&error, &["nowhere"]);
    assert_unchanged(&open(&vfs).unwrap(), &contents);
}

#[test]
fn a_family_of_another_database_is_refused() {
    let (_vfs, db, contents) = filled();
    let (_other_vfs, other, _) = filled();
    let foreign = other.create_column_family("foreign", tiny().column_family).unwrap();
    // It has the number of a family here.
    let own = db.create_column_family("own", tiny().column_family).unwrap();
    assert_eq!(own.id(), foreign.id());
    let error = db.drop_column_family(&foreign).unwrap_err();
    assert_names(&error, &["column family foreign", "another database"]);
    own.put("key", "value").unwrap();
    let unknown = other.create_column_family("unknown", tiny().column_family).unwrap();
    let mut batch = WriteBatch::new();
    batch.put("key000", "changed").unwrap();
    batch.to(&unknown).put("key", "value").unwrap();
    let error = db.write(&batch, &WriteOptions::default()).unwrap_err();
    assert_names(&error, &["column family"]);
    assert_unchanged(&db, &contents);
}

#[test]
fn a_closed_handle_is_refused() {
    let (vfs, db, contents) = filled();
    let clone = db.clone();
    let family = db.default_column_family();
    db.close().unwrap();
    db.close().unwrap();
    let read = ReadOptions::default();
    let mut batch = WriteBatch::new();
    batch.put("key000", "changed").unwrap();
    for error in [
        clone.put("key000", "changed").unwrap_err(),
        clone.delete("key000").unwrap_err(),
        clone.write(&batch, &WriteOptions::default()).unwrap_err(),
        clone.get("key000").map(drop).unwrap_err(),
        family.reading(&read).multi_get(&["key000"]).remove(0).map(drop).unwrap_err(),
        clone.cursor(&read).map(drop).unwrap_err(),
        clone.flush().unwrap_err(),
        clone.flush_all().unwrap_err(),
        family.compact_range(None, None, &CompactRangeOptions::default()).unwrap_err(),
        clone.create_column_family("new", tiny().column_family).map(drop).unwrap_err(),
        clone.set_options(&[("max_open_files", "77")]).unwrap_err(),
        clone.sync_wal().unwrap_err(),
        clone.wait_idle().unwrap_err(),
        clone.step().map(drop).unwrap_err(),
        clone.resume().unwrap_err(),
        clone.check(&mut |_, _| {}).map(drop).unwrap_err(),
        clone.checkpoint("/copy").unwrap_err(),
    ] {
        assert!(matches!(error, Error::Closed), "{error}");
    }
    // The directory is free while old handles are around.
    let again = open(&vfs).unwrap();
    assert_unchanged(&again, &contents);
}

#[test]
fn the_real_file_system_reports_a_missing_parent() {
    let error = Db::open_with(Arc::new(PosixVfs::new()), "/proc/no/such/place", tiny(), &[]);
    assert_names(&error.unwrap_err(), &["/proc/no/such/place"]);
}
