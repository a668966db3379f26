//! Backups remove nothing that others made, and share nothing that is damaged.

use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation};
use sateen::{BackupEngine, Db, DirectoryStore, Error, Options, RestoreOptions, Result};

use crate::features::backups::{TARGET, engine, keys, restored};
use crate::support::common::{as_vfs, contents, tiny};

fn open(vfs: &Arc<dyn Vfs>) -> Result<BackupEngine> {
    BackupEngine::open_with(Arc::new(DirectoryStore::new(vfs.clone(), TARGET)))
}

/// Writes a file that is somebody's.
fn write(vfs: &Arc<dyn Vfs>, path: &str) {
    let path = Path::new(path);
    vfs.create_dir_all(path.parent().unwrap()).unwrap();
    let file = vfs.open(path, OpenOptions::CREATE).unwrap();
    file.write_at(b"precious", 0, IoClass::Client).unwrap();
}

fn exists(vfs: &Arc<dyn Vfs>, path: &str) -> bool {
    vfs.exists(Path::new(path)).unwrap()
}

fn database(vfs: &Arc<dyn Vfs>) -> Db {
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    for number in 0..100 {
        db.put(format!("{number:03}"), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    db
}

#[test]
fn a_directory_with_folders_of_the_same_names_is_not_taken() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let files = ["shared/thesis.doc", "private/key.pem", "backups/notes"];
    for file in files.map(|file| format!("{TARGET}/{file}")) {
        write(&vfs, &file);
        let refused = open(&vfs).unwrap_err();
        assert!(matches!(refused, Error::IncompatibleDirectory { .. }), "{refused}");
        assert!(exists(&vfs, &file), "{file}");
        assert!(!exists(&vfs, &format!("{TARGET}/FORMAT")));
        vfs.remove(Path::new(&file)).unwrap();
    }
    // Empty folders are nobody's.
    drop(open(&vfs).unwrap());
    // Later, too, such files stay.
    for file in files {
        write(&vfs, &format!("{TARGET}/{file}"));
    }
    drop(open(&vfs).unwrap());
    for file in files {
        assert!(exists(&vfs, &format!("{TARGET}/{file}")), "{file}");
    }
}

#[test]
fn a_place_that_lost_its_format_keeps_its_backups() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = database(&vfs);
    engine(&vfs).create(&db).unwrap();
    let format = Path::new(TARGET).join("FORMAT");
    vfs.remove(&format).unwrap();
    // The record says whose place it is.
    let backups = open(&vfs).unwrap();
    assert!(backups.verify(1).unwrap().is_sound());
    assert!(vfs.exists(&format).unwrap());
    drop(backups);
    // Without the record, too, nobody knows that nothing is needed.
    vfs.remove(&format).unwrap();
    let record = Path::new(TARGET).join("backups/000001");
    vfs.rename(&record, Path::new("/record")).unwrap();
    let objects = (keys(&vfs, "shared"), keys(&vfs, "private"));
    let refused = open(&vfs).unwrap_err();
    assert!(matches!(refused, Error::IncompatibleDirectory { .. }), "{refused}");
    assert!(refused.to_string().contains("bring back"), "{refused}");
    assert_eq!((keys(&vfs, "shared"), keys(&vfs, "private")), objects);
    vfs.rename(Path::new("/record"), &record).unwrap();
    assert!(open(&vfs).unwrap().verify(1).unwrap().is_sound());
}

#[test]
fn a_damaged_format_says_what_helps() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = database(&vfs);
    engine(&vfs).create(&db).unwrap();
    let format = Path::new(TARGET).join("FORMAT");
    let file = vfs.open(&format, OpenOptions::WRITE).unwrap();
    file.write_at(b"X", 3, IoClass::Client).unwrap();
    let refused = open(&vfs).unwrap_err();
    assert!(refused.is_corruption(), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("FORMAT") && text.contains("Remove this file"), "{text}");
    vfs.remove(&format).unwrap();
    let mut backups = open(&vfs).unwrap();
    backups.create(&db).unwrap();
    for id in [1, 2] {
        assert!(backups.verify(id).unwrap().is_sound());
    }
}

#[test]
fn only_unfinished_objects_are_removed() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = database(&vfs);
    engine(&vfs).create(&db).unwrap();
    let object = |folder: &str| format!("{TARGET}/{folder}/{}.tmp", keys(&vfs, folder)[0]);
    let own = [object("shared"), object("private"), object("backups")];
    let own = own.into_iter().chain([format!("{TARGET}/FORMAT.tmp")]);
    let own: Vec<_> = own.inspect(|file| write(&vfs, file)).collect();
    let foreign = ["reports/draft.tmp", "draft.tmp", "shared/draft.tmp", "backups/1.tmp"];
    let foreign = foreign.map(|file| format!("{TARGET}/{file}"));
    foreign.iter().for_each(|file| write(&vfs, file));
    vfs.create_dir_all(&Path::new(TARGET).join("x.tmp")).unwrap();
    drop(open(&vfs).unwrap());
    for file in own {
        assert!(!exists(&vfs, &file), "{file}");
    }
    for file in foreign {
        assert!(exists(&vfs, &file), "{file}");
    }
    assert!(exists(&vfs, &format!("{TARGET}/x.tmp")));
}

#[test]
fn a_damaged_length_is_seen_and_the_object_is_copied_again() {
    for failing in [false, true] {
        let mem = MemVfs::new();
        let faulty = FaultVfs::new(as_vfs(&mem));
        let vfs: Arc<dyn Vfs> = Arc::new(faulty.clone());
        let db = database(&vfs);
        engine(&vfs).create(&db).unwrap();
        let shared = keys(&vfs, "shared");
        for key in &shared {
            let path = Path::new(TARGET).join("shared").join(key);
            vfs.open(&path, OpenOptions::WRITE).unwrap().truncate(50).unwrap();
        }
        let mut backups = open(&vfs).unwrap();
        assert!(!backups.verify(1).unwrap().is_sound());
        if failing {
            // What was there is replaced in one step.
            let rule = FaultRule::new(Fault::Io).on(VfsOperation::Rename).path_contains("shared");
            faulty.add(rule.from_nth(2));
            backups.create(&db).unwrap_err();
            faulty.clear();
            assert_eq!(keys(&vfs, "shared").len(), shared.len());
        }
        let second = backups.create(&db).unwrap();
        for id in [1, second.id] {
            let report = backups.verify(id).unwrap();
            assert!(report.is_sound(), "backup {id}: {report:#?}");
        }
        assert_eq!(keys(&vfs, "shared").len(), shared.len(), "both share what was copied again");
        let path = "/restored";
        backups.restore_with(vfs.clone(), second.id, path, &RestoreOptions::default()).unwrap();
        assert!(restored(&vfs, path, &tiny()) == contents(&db));
    }
}

#[test]
fn a_restore_puts_the_logs_into_a_directory_inside() {
    for wal_dir in ["/restored/wal", "/restored/./deep/wal"] {
        let mem = MemVfs::new();
        let faulty = FaultVfs::new(as_vfs(&mem));
        let vfs: Arc<dyn Vfs> = Arc::new(faulty.clone());
        let db = database(&vfs);
        db.put("newest", "1").unwrap();
        let mut backups = engine(&vfs);
        let id = backups.create(&db).unwrap().id;
        let options = RestoreOptions { wal_dir: Some(wal_dir.into()), ..Default::default() };
        let restore =
            |options: &RestoreOptions| backups.restore_with(vfs.clone(), id, "/restored", options);
        // A failure leaves nothing, so any restore may follow.
        for nth in 1.. {
            let rule = FaultRule::new(Fault::Io).on(VfsOperation::Write).path_contains("restored");
            faulty.add(rule.from_nth(nth));
            let failed = restore(&options);
            faulty.clear();
            if failed.is_ok() {
                assert!(nth > 3);
                break;
            }
            assert!(!exists(&vfs, "/restored"), "write {nth}");
        }
        let opening = Options { wal_dir: Some(wal_dir.into()), ..tiny() };
        assert!(restored(&vfs, "/restored", &opening) == contents(&db));
        restore(&options).unwrap_err();
    }
}

#[test]
fn a_killed_restore_with_logs_inside_starts_over() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    let vfs: Arc<dyn Vfs> = Arc::new(faulty.clone());
    let db = database(&vfs);
    db.put("newest", "1").unwrap();
    let mut backups = engine(&vfs);
    let id = backups.create(&db).unwrap().id;
    let wal_dir = "/restored/wal";
    let options = RestoreOptions { wal_dir: Some(wal_dir.into()), ..Default::default() };
    // It cannot write CURRENT, and cannot remove anything, as if it was killed there.
    faulty.add(FaultRule::new(Fault::Io).on(VfsOperation::Rename).path_contains("CURRENT"));
    faulty.add(FaultRule::new(Fault::Io).on(VfsOperation::Remove).path_contains("restored"));
    faulty.add(FaultRule::new(Fault::Io).on(VfsOperation::RemoveDir).path_contains("restored"));
    backups.restore_with(vfs.clone(), id, "/restored", &options).unwrap_err();
    faulty.clear();
    assert!(exists(&vfs, "/restored/RESTORING") && exists(&vfs, wal_dir));
    backups.restore_with(vfs.clone(), id, "/restored", &options).unwrap();
    let opening = Options { wal_dir: Some(wal_dir.into()), ..tiny() };
    assert!(restored(&vfs, "/restored", &opening) == contents(&db));
}
