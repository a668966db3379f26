//! The options that a database was opened with are in its directory, and what was changed since.

use std::path::Path;

use sateen::vfs::{
    CrashChoice, Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation,
};
use sateen::{ColumnFamilyOptions, CorruptionKind, Db, Error, Options, StoredOptions};

use crate::support::common::{appending, as_vfs, assert_sound, tiny};

const FAMILY: &str = "odd\nname\\";

fn load(vfs: &dyn Vfs) -> sateen::Result<StoredOptions> {
    Options::load_with(vfs, "/db", false)
}

fn open(vfs: &MemVfs, options: &Options) -> Db {
    Db::open_with(as_vfs(vfs), "/db", options.clone(), &[]).unwrap()
}

/// Opens a database whose chores run in `Db::step`, on a file system whose calls can fail.
fn without_threads() -> (MemVfs, FaultVfs, Db) {
    let vfs = MemVfs::new();
    let faults = FaultVfs::new(as_vfs(&vfs));
    let options = Options { background_threads: 0, ..tiny() };
    let db = Db::open_with(std::sync::Arc::new(faults.clone()), "/db", options, &[]).unwrap();
    (vfs, faults, db)
}

/// Of the default column family: how hard zstd tries.
fn effort(stored: &StoredOptions) -> i32 {
    stored.options.column_family.zstd_level
}

/// Neither options that change back to what the file says nor an open that finds them as they are
/// write them: what an attempt has left goes all the same.
#[test]
fn nothing_is_left_of_an_attempt_to_store_options_that_failed() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    let vfs: std::sync::Arc<dyn Vfs> = std::sync::Arc::new(faulty.clone());
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    let before = effort(&load(&mem).unwrap());
    let left = || -> Vec<_> {
        let names = mem.list(Path::new("/db")).unwrap().into_iter();
        names.filter(|name| name.extension().is_some_and(|end| end == "tmp")).collect()
    };
    for fault in [VfsOperation::Write, VfsOperation::Sync, VfsOperation::Rename] {
        faulty.add(FaultRule::new(Fault::Io).on(fault).path_contains("OPTIONS").once());
        let error = db.set_options(&[("zstd_level", "9")]).unwrap_err();
        assert!(error.to_string().contains("OPTIONS"), "{fault:?}: {error}");
        faulty.clear();
        assert_eq!(db.options().column_family.zstd_level, before, "{fault:?}: nothing has changed");
        assert_eq!(effort(&load(&mem).unwrap()), before, "{fault:?}: it was not stored");
        db.set_options(&[("zstd_level", &before.to_string())]).unwrap();
        while db.step().unwrap() {}
        assert!(left().is_empty(), "{fault:?}: {:?}", left());
    }
    db.close().unwrap();
    drop(db);
    // As a power failure would leave them.
    for name in ["OPTIONS.tmp", "DEVICE.tmp"] {
        mem.open(&Path::new("/db").join(name), OpenOptions::CREATE).unwrap();
    }
    let db = Db::open_with(vfs, "/db", tiny(), &[]).unwrap();
    assert!(left().is_empty(), "{:?}", left());
    assert_sound(&db);
}

#[test]
fn what_a_database_was_opened_with_and_what_was_changed_is_found() {
    let vfs = MemVfs::new();
    let mut options = Options { max_open_files: 321, ..tiny() };
    options.column_family.merge_operator = Some(appending());
    let db = open(&vfs, &options);
    let mut of_family = ColumnFamilyOptions { levels: 5, ..ColumnFamilyOptions::default() };
    let family = db.create_column_family(FAMILY, of_family.clone()).unwrap();
    // It may be open.
    let stored = load(&vfs).unwrap();
    let plain = |options: &Options| {
        let mut options = options.clone();
        options.column_family.merge_operator = None;
        options
    };
    assert_eq!(stored.options, plain(&options));
    let named = ["default", "merge_operator", "append"].map(str::to_owned);
    assert_eq!(stored.named, [named.into()]);
    let expected = [
        ("default".to_owned(), stored.options.column_family.clone()),
        (FAMILY.to_owned(), of_family.clone()),
    ];
    assert_eq!(stored.families, expected);

    db.set_options(&[("zstd_level", "9"), ("block_cache_bytes", "5MiB")]).unwrap();
    family.set_options(&[("zstd_level", "11")]).unwrap();
    of_family.zstd_level = 11;
    let stored = load(&vfs).unwrap();
    assert_eq!((effort(&stored), stored.options.block_cache_bytes), (9, 5 << 20));
    assert_eq!(stored.families[1].1, of_family);

    db.checkpoint("/copy").unwrap();
    assert_eq!(Options::load_with(&vfs, "/copy", false).unwrap(), stored);
    db.drop_column_family(&family).unwrap();
    assert_eq!(load(&vfs).unwrap().families.len(), 1);
    assert_eq!(Options::load_with(&vfs, "/copy", false).unwrap().families.len(), 2);
    db.close().unwrap();

    // Others of the next open count; nothing is written for the same ones.
    let db = open(&vfs, &plain(&options));
    assert_eq!(effort(&load(&vfs).unwrap()), options.column_family.zstd_level);
    assert_eq!(load(&vfs).unwrap().named, []);
    drop(db);
    let reader = Db::open_read_only_with(as_vfs(&vfs), "/db", Options::default()).unwrap();
    assert_eq!(load(&vfs).unwrap().options, plain(&options), "a reader leaves nothing");
    drop(reader);
}

#[test]
fn what_is_not_there_or_damaged_is_told_and_a_database_opens_all_the_same() {
    let vfs = MemVfs::new();
    let none = load(&vfs).unwrap_err();
    assert!(none.to_string().contains("/db has no stored options"), "{none}");
    drop(open(&vfs, &tiny()));
    let path = Path::new("/db/OPTIONS");
    let whole = vfs.contents(path).unwrap();
    let replace = |bytes: &[u8]| {
        vfs.remove(path).unwrap();
        let file = vfs.open(path, OpenOptions::CREATE).unwrap();
        file.write_at(bytes, 0, IoClass::Manifest).unwrap();
    };
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        replace(&damaged);
        let error = load(&vfs).unwrap_err();
        let kind = CorruptionKind::Checksum;
        assert!(matches!(error, Error::Corruption { kind: k, .. } if k == kind), "{at}: {error}");
        replace(&whole[..at]);
        assert!(matches!(load(&vfs), Err(Error::Corruption { .. })), "{at} bytes");
    }
    assert_sound(&open(&vfs, &tiny()));
    assert_eq!(vfs.contents(path).unwrap(), whole);
    vfs.remove(path).unwrap();
    assert_sound(&open(&vfs, &tiny()));
    assert_eq!(vfs.contents(path).unwrap(), whole);
}

/// A crash at any operation while options are changed: the old ones or the new ones are there.
#[test]
fn the_old_ones_or_the_new_ones_after_a_crash() {
    let vfs = MemVfs::new();
    let options = Options { background_threads: 0, ..tiny() };
    let db = open(&vfs, &options);
    let recording = vfs.record();
    let old = effort(&load(&vfs).unwrap());
    db.set_options(&[("zstd_level", "9")]).unwrap();
    let (first, mut seen) = (recording.len(), [0, 0]);
    db.set_options(&[("zstd_level", "10")]).unwrap();
    for at in 0..=recording.len() {
        for choice in recording.choices_at(at, 2) {
            let image = recording.image_at(at, choice);
            let found = effort(&load(&image).unwrap());
            let possible = if at < first { [old, 9] } else { [9, 10] };
            assert!(possible.contains(&found), "{at} {choice:?}: {found}");
            assert!(at < recording.len() || found == 10, "it was promised");
            seen[usize::from(found == possible[1])] += 1;
            // Whatever the crash has left besides.
            drop(open(&image, &options));
            assert_eq!(effort(&load(&image).unwrap()), old);
        }
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
    let image = vfs.crash_image(CrashChoice::SyncedOnly);
    assert_eq!(effort(&load(&image).unwrap()), 10);
}

#[test]
fn what_cannot_be_stored_now_is_stored_later() {
    let (vfs, faults, db) = without_threads();
    let rule = FaultRule::new(Fault::NoSpace).on(VfsOperation::Write).path_contains("OPTIONS");
    let failing = faults.add(rule);
    let names = || -> Vec<String> {
        load(&vfs).unwrap().families.into_iter().map(|(name, _)| name).collect()
    };
    // The manifest has the column family, so it is there.
    let loans = db.create_column_family("loans", Default::default()).unwrap();
    assert!(faults.happened(failing) > 0);
    assert_eq!(names(), ["default"]);
    db.put("key", "value").unwrap();
    let error = loans.set_options(&[("zstd_level", "9")]).unwrap_err();
    assert!(error.to_string().contains("OPTIONS"), "{error}");
    faults.clear();
    db.step().unwrap();
    assert_eq!(names(), ["default", "loans"]);
    assert_ne!(load(&vfs).unwrap().families[1].1.zstd_level, 9);
    loans.set_options(&[("zstd_level", "9")]).unwrap();
    assert_eq!(load(&vfs).unwrap().families[1].1.zstd_level, 9);
    faults.add(FaultRule::new(Fault::NoSpace).on(VfsOperation::Write).path_contains("OPTIONS"));
    db.create_column_family("members", Default::default()).unwrap();
    faults.clear();
    db.close().unwrap();
    assert_eq!(names(), ["default", "loans", "members"]);
}

/// The file has its new name already if the directory cannot be synced.
#[test]
fn options_that_were_refused_do_not_stay_in_the_file() {
    let (vfs, faults, db) = without_threads();
    let before = effort(&load(&vfs).unwrap());
    let failing = faults.add(FaultRule::new(Fault::Io).on(VfsOperation::SyncDir).once());
    db.set_options(&[("zstd_level", "9")]).unwrap_err();
    assert!(faults.happened(failing) > 0);
    assert_eq!(db.options().column_family.zstd_level, before);
    db.step().unwrap();
    assert_eq!(effort(&load(&vfs).unwrap()), before);
}

/// Its WALs are in its own directory, so the stored options must not lead to those of its source.
#[test]
fn a_checkpoint_opens_with_the_options_that_it_has() {
    let vfs = MemVfs::new();
    let options = Options { wal_dir: Some("/logs".into()), ..tiny() };
    let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    db.put("only", "in a WAL").unwrap();
    db.checkpoint("/copy").unwrap();
    let stored = Options::load_with(&vfs, "/copy", false).unwrap().options;
    assert_eq!(stored, Options { wal_dir: None, ..options.clone() });
    let copy = Db::open_with(as_vfs(&vfs), "/copy", stored, &[]).unwrap();
    assert_eq!(copy.get("only").unwrap().as_deref(), Some(&b"in a WAL"[..]));
    let of_source = Options::load_with(&vfs, "/db", false).unwrap().options;
    assert_eq!(of_source.wal_dir, options.wal_dir, "the source keeps its own");
}
