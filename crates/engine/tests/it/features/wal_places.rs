//! A database that is opened with another `wal_dir`: its WALs are found where they are, or the
//! open is refused by name. Nothing that was synced is lost.

use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation};
use sateen::{Db, Error, Options, RestoreOptions, WriteOptions, check_with, repair_with};

use crate::features::backups::engine;
use crate::support::common::{as_vfs, tiny};

const LOGS: &str = "/logs";

fn with_logs(directory: &str) -> Options {
    Options { wal_dir: Some(directory.into()), ..tiny() }
}

fn open(vfs: &MemVfs, path: &str, options: &Options) -> Result<Db, Error> {
    Db::open_with(as_vfs(vfs), path, options.clone(), &[])
}

fn put(db: &Db, key: &str) {
    db.writing(WriteOptions::sync()).put(key, "v").unwrap();
}

/// Closes the database after it was looked whether it has exactly `keys`.
fn has(db: Db, keys: &[&str]) {
    let found: Vec<_> =
        ["a", "b", "c", "d"].into_iter().filter(|key| db.get(key).unwrap().is_some()).collect();
    assert_eq!(found, keys);
    db.close().unwrap();
}

/// The names of the WALs in a directory.
fn logs(vfs: &MemVfs, directory: &str) -> Vec<String> {
    let listing = vfs.list(Path::new(directory)).unwrap_or_default();
    let names = listing.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    names.filter(|name| name.ends_with(".wal")).collect()
}

fn copy(vfs: &MemVfs, from: &str, to: &str) {
    let read = vfs.open(Path::new(from), OpenOptions::READ).unwrap();
    let mut bytes = vec![0; usize::try_from(read.len().unwrap()).unwrap()];
    read.read_exact_at(&mut bytes, 0, IoClass::Wal).unwrap();
    let write = vfs.open(Path::new(to), OpenOptions::CREATE).unwrap();
    write.write_at(&bytes, 0, IoClass::Wal).unwrap();
}

/// A database in `/db` with one synced write, in its own directory, and an empty `/logs`.
fn plain() -> MemVfs {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", &tiny()).unwrap();
    put(&db, "a");
    db.close().unwrap();
    vfs.create_dir_all(Path::new(LOGS)).unwrap();
    vfs
}

#[test]
fn a_database_is_opened_with_another_wal_dir_and_keeps_its_writes() {
    let vfs = plain();
    let db = open(&vfs, "/db", &with_logs(LOGS)).unwrap();
    put(&db, "b");
    has(db, &["a", "b"]);
    assert_eq!(logs(&vfs, "/db"), [""; 0], "they are in tables");
    has(open(&vfs, "/db", &with_logs(LOGS)).unwrap(), &["a", "b"]);
    // Nothing is lost when the option is left out, either.
    let refused = open(&vfs, "/db", &tiny()).unwrap_err();
    assert!(refused.to_string().contains(".wal"), "{refused}");
    has(open(&vfs, "/db", &with_logs(LOGS)).unwrap(), &["a", "b"]);
}

#[test]
fn a_restored_database_is_opened_with_its_usual_wal_dir() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", &with_logs(LOGS)).unwrap();
    put(&db, "a");
    let all = as_vfs(&vfs);
    let mut backups = engine(&all);
    let backup = backups.create(&db).unwrap();
    put(&db, "b");
    db.close().unwrap();
    drop(db);
    let options = RestoreOptions::default();
    backups.restore_with(all.clone(), backup.id, "/restored", &options).unwrap();
    // The WALs of its source are no continuation of it.
    let refused = open(&vfs, "/restored", &with_logs(LOGS)).unwrap_err();
    assert!(matches!(refused, Error::IncompatibleDirectory { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("/restored/") && text.contains("/logs/"), "{text}");
    has(open(&vfs, "/db", &with_logs(LOGS)).unwrap(), &["a", "b"]);
    has(open(&vfs, "/restored", &with_logs("/others")).unwrap(), &["a"]);
    has(open(&vfs, "/restored", &with_logs("/others")).unwrap(), &["a"]);
}

/// A copy has the identity of its source in its WALs, so these do not tell them apart.
#[test]
fn the_directory_of_a_copy_is_no_wal_dir() {
    let vfs = plain();
    let db = open(&vfs, "/db", &tiny()).unwrap();
    db.checkpoint("/copy").unwrap();
    has(open(&vfs, "/copy", &tiny()).unwrap(), &["a"]);
    put(&db, "b");
    db.flush().unwrap();
    db.close().unwrap();
    drop(db);
    let refused = open(&vfs, "/db", &with_logs("/copy")).unwrap_err();
    assert!(matches!(refused, Error::IncompatibleDirectory { .. }), "{refused}");
    assert!(refused.to_string().contains("/copy"), "{refused}");
    has(open(&vfs, "/copy", &tiny()).unwrap(), &["a"]);
    has(open(&vfs, "/db", &tiny()).unwrap(), &["a", "b"]);
}

#[test]
fn readers_checks_and_repairs_find_the_logs_too() {
    for damage in [false, true] {
        let vfs = plain();
        let options = with_logs(LOGS);
        let read = || Db::open_read_only_with(as_vfs(&vfs), "/db", options.clone()).unwrap();
        has(read(), &["a"]);
        let follow = || Db::open_secondary_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
        has(follow(), &["a"]);
        let check = || check_with(as_vfs(&vfs), "/db", &options, &[], &mut |_, _| {}).unwrap();
        let report = check();
        assert!(report.is_sound() && report.log_records == 1, "{report:#?}");
        if damage {
            // No manifest says which WALs are needed.
            for name in vfs.list(Path::new("/db")).unwrap() {
                let name = name.file_name().unwrap().to_str().unwrap().to_owned();
                if name == "CURRENT" || name.starts_with("MANIFEST") {
                    vfs.remove(&Path::new("/db").join(name)).unwrap();
                }
            }
        }
        repair_with(as_vfs(&vfs), "/db", &options).unwrap();
        let secondary = if damage { None } else { Some(follow()) };
        let db = open(&vfs, "/db", &options).unwrap();
        put(&db, "b");
        if let Some(secondary) = secondary {
            // The primary writes to the other directory now.
            secondary.try_catch_up_with_primary().unwrap();
            has(secondary, &["a", "b"]);
        }
        has(db, &["a", "b"]);
    }
}

#[test]
fn an_interrupted_change_of_directories_loses_nothing() {
    for nth in 1.. {
        let mem = plain();
        let faulty = FaultVfs::new(as_vfs(&mem));
        faulty.add(FaultRule::new(Fault::Io).on(VfsOperation::Write).from_nth(nth));
        let vfs: Arc<dyn Vfs> = Arc::new(faulty.clone());
        let opened = Db::open_with(vfs, "/db", with_logs(LOGS), &[]);
        faulty.clear();
        let done = opened.is_ok();
        drop(opened);
        // Either directory may be the right one now. The other one is refused or works.
        let mut expected = vec!["a"];
        for (options, key) in [(tiny(), "b"), (with_logs(LOGS), "c"), (with_logs(LOGS), "d")] {
            match open(&mem, "/db", &options) {
                Ok(db) => {
                    put(&db, key);
                    expected.push(key);
                    has(db, &expected);
                }
                Err(error) => assert!(options.wal_dir.is_none(), "write {nth}, {key}: {error}"),
            }
        }
        assert!(expected.ends_with(&["c", "d"]), "write {nth}");
        if done {
            assert!(nth > 3, "the faults were met");
            return;
        }
    }
}

#[test]
fn logs_with_records_in_both_directories_are_refused_and_stay() {
    let vfs = plain();
    let own = logs(&vfs, "/db");
    // What was copied earlier, and is older than what the database has now.
    copy(&vfs, &format!("/db/{}", own[0]), &format!("{LOGS}/{}", own[0]));
    let db = open(&vfs, "/db", &tiny()).unwrap();
    put(&db, "b");
    db.close().unwrap();
    drop(db);
    let (before, copied) = (logs(&vfs, "/db"), logs(&vfs, LOGS));
    let options = with_logs(LOGS);
    let read_only = Db::open_read_only_with(as_vfs(&vfs), "/db", options.clone());
    let secondary = Db::open_secondary_with(as_vfs(&vfs), "/db", options.clone(), &[]);
    let writer = open(&vfs, "/db", &options);
    let repair = repair_with(as_vfs(&vfs), "/db", &options).map(drop);
    for refused in [read_only.map(drop), secondary.map(drop), writer.map(drop), repair] {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::IncompatibleDirectory { .. }), "{error}");
        assert!(error.to_string().contains("move the others away"), "{error}");
    }
    let report = check_with(as_vfs(&vfs), "/db", &options, &[], &mut |_, _| {}).unwrap();
    assert!(!report.is_sound(), "{report:#?}");
    assert_eq!((logs(&vfs, "/db"), logs(&vfs, LOGS)), (before, copied));
    has(open(&vfs, "/db", &tiny()).unwrap(), &["a", "b"]);
}
