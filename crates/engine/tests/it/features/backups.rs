//! Backups: what is restored is what was there, whatever the options; what is shared; what is
//! refused by name.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen::vfs::{IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{
    BackupEngine, BackupListener, BackupProgress, BackupReader, BackupStore, BackupWriter,
    ColumnFamilyOptions, Comparator, CreateBackupOptions, Db, DirectoryStore, Error, Options,
    ReadOptions, RestoreOptions, WalMode, WriteOptions, check_with,
};

use crate::support::common::{
    Contents, Random, appending, as_vfs, assert_no_orphans, contents, read_all, small, tiny,
};

/// Where the tests make backups.
pub(crate) const TARGET: &str = "/backups";

/// An engine over `vfs`.
pub(crate) fn engine(vfs: &Arc<dyn Vfs>) -> BackupEngine {
    BackupEngine::open_with(Arc::new(DirectoryStore::new(vfs.clone(), TARGET))).unwrap()
}

/// What a [`HookedStore`] calls: with the store, the call, and its key or folder.
type Hook = Box<dyn Fn(&DirectoryStore, &str, &str) + Send + Sync>;

/// The place of [`engine`], with a hook after `list` ("listed") and before `create` ("create").
pub(super) struct HookedStore(DirectoryStore, Hook);

impl HookedStore {
    pub(super) fn new(
        vfs: &Arc<dyn Vfs>,
        hook: impl Fn(&DirectoryStore, &str, &str) + Send + Sync + 'static,
    ) -> Arc<HookedStore> {
        Arc::new(HookedStore(DirectoryStore::new(vfs.clone(), TARGET), Box::new(hook)))
    }
}

impl std::fmt::Debug for HookedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl BackupStore for HookedStore {
    fn create(&self, key: &str) -> sateen::Result<Box<dyn BackupWriter>> {
        (self.1)(&self.0, "create", key);
        self.0.create(key)
    }
    fn open(&self, key: &str) -> sateen::Result<Box<dyn BackupReader>> {
        self.0.open(key)
    }
    fn list(&self, folder: &str) -> sateen::Result<Vec<String>> {
        let listed = self.0.list(folder)?;
        (self.1)(&self.0, "listed", folder);
        Ok(listed)
    }
    fn delete(&self, key: &str) -> sateen::Result<()> {
        self.0.delete(key)
    }
    fn sync(&self) -> sateen::Result<()> {
        self.0.sync()
    }
    fn lock(&self) -> sateen::Result<Box<dyn Any + Send + Sync>> {
        self.0.lock()
    }
    fn remove_unfinished(&self) -> sateen::Result<()> {
        self.0.remove_unfinished()
    }
    fn strangers(&self, known: &[&str]) -> sateen::Result<Vec<String>> {
        self.0.strangers(known)
    }
    fn location(&self, key: &str) -> PathBuf {
        self.0.location(key)
    }
}

/// Opens a restored database, looks that it is sound, and returns the default column family.
pub(super) fn restored(vfs: &Arc<dyn Vfs>, path: &str, options: &Options) -> Contents {
    let db = Db::open_with(vfs.clone(), path, options.clone(), &[]).unwrap();
    let contents = contents(&db);
    db.close().unwrap();
    drop(db);
    let report = check_with(vfs.clone(), path, options, &[], &mut |_, _| {}).unwrap();
    assert!(report.is_sound(), "{report:#?}");
    assert_no_orphans(vfs.clone(), path, options);
    contents
}

pub(super) fn write_some(db: &Db, random: &mut Random, count: u64) {
    for _ in 0..count {
        let key = format!("key{:03}", random.below(300));
        if random.one_in(5) {
            db.delete(key).unwrap();
        } else {
            let value = vec![random.next() as u8; random.below(200) as usize];
            db.put(key, value).unwrap();
        }
    }
}

/// The names of the objects in a folder.
pub(super) fn keys(vfs: &Arc<dyn Vfs>, folder: &str) -> Vec<String> {
    let listing = vfs.list(&Path::new(TARGET).join(folder)).unwrap_or_default();
    listing.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_profile_is_restored_as_it_was_at_each_backup() {
    for profile in Options::profiles() {
        for wal in [WalMode::Buffered, WalMode::SyncEachWrite, WalMode::Off] {
            let mut options = small(profile, 2 << 10);
            options.wal = wal;
            let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
            let db = Db::open_with(vfs.clone(), "/db", options.clone(), &[]).unwrap();
            let mut backups = engine(&vfs);
            let random = &mut Random::new(7);
            let mut expected = Vec::new();
            for round in 0..4 {
                write_some(&db, random, 120);
                if round == 1 {
                    db.flush_all().unwrap();
                }
                if round == 2 {
                    db.wait_for_compact(&sateen::WaitForCompactOptions::default()).unwrap();
                }
                let backup = backups.create(&db).unwrap();
                assert!(backups.verify(backup.id).unwrap().is_sound());
                expected.push((backup.id, contents(&db)));
            }
            write_some(&db, random, 120);
            db.close().unwrap();
            for (id, expected) in expected {
                let path = format!("/restored{id}");
                let plain = RestoreOptions::default();
                backups.restore_with(vfs.clone(), id, &path, &plain).unwrap();
                assert!(restored(&vfs, &path, &options) == expected, "{profile} {wal:?}: {id}");
            }
        }
    }
}

#[test]
fn column_families_comparators_and_options_come_back() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let mut options = tiny();
    options.wal_dir = Some("/logs".into());
    let mut backwards =
        ColumnFamilyOptions { merge_operator: Some(appending()), ..options.column_family.clone() };
    backwards.set("comparator", "reverse-bytewise").unwrap();
    let mut expiring = options.column_family.clone();
    expiring.set("ttl", "1000000s").unwrap();
    let mut creating = options.clone();
    creating.create_missing_column_families = true;
    let families = [("backwards", backwards), ("expiring", expiring)];
    let db = Db::open_with(vfs.clone(), "/db", creating, &families).unwrap();
    let named = |db: &Db, name: &str| db.column_family(name).unwrap();
    for number in 0..200 {
        let key = format!("{number:03}");
        db.put(&key, "x").unwrap();
        named(&db, "backwards").merge(&key, "a").unwrap();
        named(&db, "backwards").merge(&key, "b").unwrap();
        named(&db, "expiring").put(&key, "y").unwrap();
    }
    db.delete_range("050", "100").unwrap();
    let mut backups = engine(&vfs);
    let backup = backups.create(&db).unwrap();
    backups.restore_with(vfs.clone(), backup.id, "/restored", &RestoreOptions::default()).unwrap();
    let stored = Options::load_with(vfs.as_ref(), "/restored", false).unwrap();
    assert_eq!(stored.options.wal_dir, None, "the WALs are in the restored directory");
    assert_eq!(stored.families.len(), 3);
    let other = Options { wal_dir: None, ..options };
    let copy = Db::open_with(vfs.clone(), "/restored", other, &families).unwrap();
    for name in ["default", "backwards", "expiring"] {
        let (was, is) = (named(&db, name), named(&copy, name));
        let all = |family| read_all(family, &ReadOptions::default());
        assert!(all(&was) == all(&is), "{name}");
    }
    assert_eq!(copy.get("049").unwrap().as_deref(), Some(&b"x"[..]));
    assert_eq!(copy.get("050").unwrap(), None);
    let merged = named(&copy, "backwards").get("001").unwrap();
    assert_eq!(merged.as_deref(), Some(&b"ab"[..]));
    assert!(*named(&copy, "backwards").comparator() != Comparator::default());
}

#[test]
fn a_second_backup_shares_what_did_not_change() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    let mut backups = engine(&vfs);
    write_some(&db, &mut Random::new(1), 600);
    db.flush_all().unwrap();
    let first = backups.create(&db).unwrap();
    let shared = keys(&vfs, "shared");
    assert!(first.tables > 3 && shared.len() > 6, "{first:?}");
    let second = backups.create(&db).unwrap();
    assert_eq!(keys(&vfs, "shared"), shared, "nothing is copied again");
    assert_eq!((second.id, second.tables), (2, first.tables));
    let shared_bytes = second.bytes - second.own_bytes;
    assert!(shared_bytes > 0 && first.own_bytes == first.bytes, "{second:?}");
    let key = |n: u64| format!("key{n:03}");
    db.put(key(0), "new").unwrap();
    db.flush_all().unwrap();
    backups.create(&db).unwrap();
    let more = keys(&vfs, "shared");
    assert_eq!(more.len(), shared.len() + 2, "one table and the outline of its file");
    assert!(shared.iter().all(|name| more.contains(name)));
}

#[test]
fn deleting_a_backup_takes_what_it_alone_has() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    let mut backups = engine(&vfs);
    let random = &mut Random::new(3);
    let mut expected = Vec::new();
    for _ in 0..6 {
        write_some(&db, random, 150);
        db.flush_all().unwrap();
        write_some(&db, random, 20);
        expected.push((backups.create(&db).unwrap().id, contents(&db)));
    }
    backups.delete(2).unwrap();
    assert!(matches!(backups.delete(2), Err(Error::NoSuchBackup(2))));
    assert_eq!(backups.purge(3).unwrap(), [1, 3]);
    assert_eq!(backups.purge(3).unwrap(), [0_u64; 0]);
    let left: Vec<u64> = backups.list().unwrap().iter().map(|backup| backup.id).collect();
    assert_eq!(left, [4, 5, 6]);
    for (id, expected) in &expected[3..] {
        assert!(backups.verify(*id).unwrap().is_sound());
        let path = format!("/restored{id}");
        backups.restore_with(vfs.clone(), *id, &path, &RestoreOptions::default()).unwrap();
        assert!(restored(&vfs, &path, &tiny()) == *expected);
    }
    assert_eq!(backups.purge(0).unwrap(), [4, 5, 6]);
    assert_eq!(keys(&vfs, "shared").len() + keys(&vfs, "private").len(), 0, "all is gone");
    assert!(matches!(backups.latest(), Err(Error::NoSuchBackup(_))));
}

/// A restored database gives the same numbers to other tables than its source did.
#[test]
fn tables_with_the_same_numbers_and_other_content_are_not_shared() {
    let memory = MemVfs::new();
    let vfs: Arc<dyn Vfs> = Arc::new(memory.clone());
    let mut options = tiny();
    options.column_family.disable_auto_compactions = true;
    let db = Db::open_with(vfs.clone(), "/db", options.clone(), &[]).unwrap();
    let mut backups = engine(&vfs);
    db.put("a", "1").unwrap();
    db.flush_all().unwrap();
    backups.create(&db).unwrap();
    db.close().unwrap();
    drop(db);
    // A copied directory goes on with the same numbers.
    vfs.create_dir_all(Path::new("/other")).unwrap();
    for path in vfs.list(Path::new("/db")).unwrap() {
        let name = path.file_name().unwrap();
        let bytes = memory.contents(&Path::new("/db").join(name)).unwrap();
        let copy = vfs.open(&Path::new("/other").join(name), OpenOptions::CREATE).unwrap();
        copy.write_at(&bytes, 0, IoClass::Client).unwrap();
    }
    let mut expected = Vec::new();
    for (path, value) in [("/db", "2"), ("/other", "3")] {
        let db = Db::open_with(vfs.clone(), path, options.clone(), &[]).unwrap();
        for key in ["a", "b"] {
            db.put(key, value).unwrap();
            db.flush_all().unwrap();
        }
        let backup = backups.create(&db).unwrap();
        expected.push((backup.id, contents(&db)));
        db.close().unwrap();
    }
    for (id, expected) in expected {
        let path = format!("/restored{id}");
        backups.restore_with(vfs.clone(), id, &path, &RestoreOptions::default()).unwrap();
        assert!(restored(&vfs, &path, &options) == expected, "backup {id} has other content");
    }
}

#[test]
fn without_the_wal_there_is_what_was_flushed() {
    for wal in [WalMode::Buffered, WalMode::SyncEachWrite] {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let mut options = Options { wal, ..tiny() };
        options.column_family.memtable_bytes = 1 << 20;
        let db = Db::open_with(vfs.clone(), "/db", options.clone(), &[]).unwrap();
        let other = db.create_column_family("other", options.column_family.clone()).unwrap();
        db.put("stored", "1").unwrap();
        other.put("stored", "1").unwrap();
        db.flush_all().unwrap();
        db.put("flushed", "1").unwrap();
        db.flush().unwrap();
        db.put("logged", "1").unwrap();
        other.put("logged", "1").unwrap();
        let mut backups = engine(&vfs);
        let id = backups.create(&db).unwrap().id;
        let wal = |wal| RestoreOptions { wal, ..RestoreOptions::default() };
        backups.restore_with(vfs.clone(), id, "/with", &wal(true)).unwrap();
        backups.restore_with(vfs.clone(), id, "/without", &wal(false)).unwrap();
        assert_eq!(restored(&vfs, "/with", &options).len(), 3);
        let names: Vec<_> = restored(&vfs, "/without", &options).into_keys().collect();
        assert_eq!(names, [b"flushed".to_vec(), b"stored".to_vec()]);
        let copy = Db::open_with(vfs.clone(), "/without", options.clone(), &[]).unwrap();
        let other = copy.column_family("other").unwrap();
        assert!(other.contains_key("stored").unwrap() && !other.contains_key("logged").unwrap());
        // It goes on like any other database.
        copy.writing(WriteOptions::sync()).put("later", "1").unwrap();
        copy.close().unwrap();
        drop(copy);
        assert_eq!(restored(&vfs, "/without", &options).len(), 3);
        // Flushed first, nothing is missing without it.
        let flush = CreateBackupOptions { flush: true, ..CreateBackupOptions::default() };
        let id = backups.create_with(&db, &flush).unwrap().id;
        backups
            .restore_with(
                vfs.clone(),
                id,
                "/flushed",
                &RestoreOptions { wal: false, ..RestoreOptions::default() },
            )
            .unwrap();
        assert_eq!(restored(&vfs, "/flushed", &options).len(), 3);
    }
}

#[test]
fn a_database_that_is_opened_for_reading_is_backed_up() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let mut options = tiny();
    let db = Db::open_with(vfs.clone(), "/db", options.clone(), &[]).unwrap();
    write_some(&db, &mut Random::new(9), 400);
    let expected = contents(&db);
    let reader = Db::open_read_only_with(vfs.clone(), "/db", options.clone()).unwrap();
    let mut backups = engine(&vfs);
    let beside = backups.create(&reader).unwrap().id;
    drop(reader);
    db.close().unwrap();
    drop(db);
    let before = mem.contents(Path::new("/db/CURRENT")).unwrap();
    let reader = Db::open_read_only_with(vfs.clone(), "/db", options.clone()).unwrap();
    let closed = backups.create(&reader).unwrap().id;
    assert_eq!(mem.contents(Path::new("/db/CURRENT")).unwrap(), before, "nothing is changed");
    options.create_if_missing = false;
    for id in [beside, closed] {
        let path = format!("/restored{id}");
        backups.restore_with(vfs.clone(), id, &path, &RestoreOptions::default()).unwrap();
        assert!(restored(&vfs, &path, &options) == expected);
    }
}

/// A missing parent may be a file system that is not mounted: a copy would fill the disk below.
#[test]
fn copies_want_an_existing_parent_directory() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/new/path/db", tiny(), &[]).unwrap();
    db.put("fig", "1").unwrap();
    let mut backups = engine(&vfs);
    let id = backups.create(&db).unwrap().id;
    let elsewhere = |path: &str| Arc::new(DirectoryStore::new(vfs.clone(), path));
    let logs_at =
        |path: &str| RestoreOptions { wal_dir: Some(path.into()), ..RestoreOptions::default() };
    let restore =
        |path: &str, options: &RestoreOptions| backups.restore_with(vfs.clone(), id, path, options);
    let refused = [
        db.checkpoint("/mnt/backups/copy"),
        db.default_column_family().export("/mnt/backups/copy").map(drop),
        BackupEngine::open_with(elsewhere("/mnt/backups/copy")).map(drop),
        restore("/mnt/backups/copy", &RestoreOptions::default()),
        restore("/copy", &logs_at("/mnt/backups/copy")),
    ];
    for refused in refused {
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("/mnt/backups/copy: the parent directory /mnt/backups is missing"),
            "{text}"
        );
    }
    for untouched in ["/mnt", "/copy"] {
        assert!(!vfs.exists(Path::new(untouched)).unwrap(), "{untouched}");
    }
    vfs.create_dir_all(Path::new("/mnt/backups")).unwrap();
    db.checkpoint("/mnt/backups/checkpoint").unwrap();
    db.default_column_family().export("/mnt/backups/export").unwrap();
    BackupEngine::open_with(elsewhere("/mnt/backups/backups")).unwrap();
    restore("/mnt/backups/restored", &logs_at("/mnt/backups/logs")).unwrap();
}

#[test]
fn what_is_not_possible_is_refused_by_name() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    let store = |path: &str| Arc::new(DirectoryStore::new(vfs.clone(), path));
    let text = |error: Error| error.to_string();

    let error = BackupEngine::open_with(store("/db")).unwrap_err();
    assert!(text(error).contains("is no place for backups"));
    let error = BackupEngine::open_read_only_with(store("/nothing")).unwrap_err();
    assert_eq!(text(error), "/nothing: there are no backups here");
    assert!(!vfs.exists(Path::new("/nothing")).unwrap());

    let mut backups = engine(&vfs);
    let error = BackupEngine::open_with(store(TARGET)).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    backups.create(&db).unwrap();
    let mut reader = BackupEngine::open_read_only_with(store(TARGET)).unwrap();
    assert_eq!(reader.list().unwrap().len(), 1);
    let error = text(reader.create(&db).unwrap_err());
    assert!(error.contains("read-only: a backup is not possible"), "{error}");
    assert!(reader.delete(1).is_err() && reader.purge(0).is_err());

    let error = backups.restore_with(vfs.clone(), 9, "/new", &RestoreOptions::default());
    assert_eq!(text(error.unwrap_err()), "there is no backup 9");
    let error = backups.restore_with(vfs.clone(), 1, "/db", &RestoreOptions::default());
    assert_eq!(text(error.unwrap_err()), "invalid argument: /db exists already and is not empty");

    let follower = Db::open_secondary_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    let error = text(backups.create(&follower).unwrap_err());
    assert!(error.contains("a backup of a secondary"), "{error}");
    db.close().unwrap();
    assert!(matches!(backups.create(&db), Err(Error::Closed)));
    assert_eq!(backups.list().unwrap().len(), 1);
}

/// Cancels when a number of steps were told.
struct After(std::sync::atomic::AtomicU64);

impl BackupListener for After {
    fn progress(&self, progress: &BackupProgress) {
        assert!(
            progress.bytes <= progress.total_bytes
                || progress.total_bytes == 0
                || progress.bytes > 0
        );
        let _left = self.0.fetch_update(
            std::sync::atomic::Ordering::Relaxed,
            std::sync::atomic::Ordering::Relaxed,
            |left| left.checked_sub(1),
        );
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed) == 0
    }
}

#[test]
fn what_is_cancelled_leaves_nothing() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    write_some(&db, &mut Random::new(5), 300);
    db.flush_all().unwrap();
    let mut backups = engine(&vfs);
    for steps in 1..12 {
        let listener: Arc<dyn BackupListener> = Arc::new(After(steps.into()));
        let options =
            CreateBackupOptions { listener: Some(listener), ..CreateBackupOptions::default() };
        let error = backups.create_with(&db, &options).unwrap_err();
        assert_eq!(error.to_string(), "the backup was cancelled");
        let left = [keys(&vfs, "shared"), keys(&vfs, "private"), keys(&vfs, "backups")].concat();
        assert!(left.is_empty(), "{left:?}");
    }
    let id = backups.create(&db).unwrap().id;
    let listener: Arc<dyn BackupListener> = Arc::new(After(3.into()));
    let options = RestoreOptions { listener: Some(listener), ..RestoreOptions::default() };
    let error = backups.restore_with(vfs.clone(), id, "/restored", &options).unwrap_err();
    assert_eq!(error.to_string(), "the restore was cancelled");
    assert!(!vfs.exists(Path::new("/restored")).unwrap());
}

/// An engine over `vfs` that makes no backups, beside others.
fn reader(vfs: &Arc<dyn Vfs>) -> BackupEngine {
    let store = DirectoryStore::new(vfs.clone(), TARGET);
    BackupEngine::open_read_only_with(Arc::new(store)).unwrap()
}

/// Begins another restore into the same directory at each step.
struct Rival {
    vfs: Arc<dyn Vfs>,
    refused: std::sync::atomic::AtomicU64,
}

impl BackupListener for Rival {
    fn progress(&self, _: &BackupProgress) {
        let plain = RestoreOptions::default();
        let again = reader(&self.vfs).restore_with(self.vfs.clone(), 1, "/restored", &plain);
        assert!(matches!(again, Err(Error::Locked { .. })), "{again:?}");
        let opened = Db::open_with(self.vfs.clone(), "/restored", tiny(), &[]);
        let refused =
            matches!(opened, Err(Error::Locked { .. } | Error::IncompatibleDirectory { .. }));
        assert!(refused, "{:?}", opened.err());
        self.refused.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn one_restore_at_a_time_writes_into_a_directory() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    write_some(&db, &mut Random::new(6), 300);
    engine(&vfs).create(&db).unwrap();
    let rival = Arc::new(Rival { vfs: vfs.clone(), refused: 0.into() });
    let options = RestoreOptions { listener: Some(rival.clone()), ..RestoreOptions::default() };
    reader(&vfs).restore_with(vfs.clone(), 1, "/restored", &options).unwrap();
    assert!(rival.refused.load(std::sync::atomic::Ordering::Relaxed) > 3);
    assert!(restored(&vfs, "/restored", &tiny()) == contents(&db));
}
