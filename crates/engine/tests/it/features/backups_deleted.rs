//! Backups that are deleted, also while they are read, and copies in the directory of the database.

use std::path::Path;
use std::sync::{Arc, Mutex};

use sateen::vfs::{IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{
    BackupEngine, BackupListener, BackupProgress, BackupStore, Db, DirectoryStore, Error,
    RestoreOptions, VerifyBackupOptions,
};

use super::backups::{HookedStore, TARGET, engine, restored, write_some};
use crate::support::common::{Random, as_vfs, contents, tiny};

#[test]
fn no_id_is_given_twice() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    let last = Path::new(TARGET).join("LAST");
    let mut backups = engine(&vfs);
    let made = [(); 3].map(|()| backups.create(&db).unwrap().id);
    assert_eq!(made, [1, 2, 3]);
    backups.delete(1).unwrap();
    assert!(!mem.exists(&last).unwrap(), "the highest is there");
    backups.delete(3).unwrap();
    assert_eq!(backups.create(&db).unwrap().id, 4);
    assert_eq!(backups.purge(0).unwrap(), [2, 4]);
    drop(backups);
    let mut backups = engine(&vfs);
    assert_eq!(backups.create(&db).unwrap().id, 5, "another engine knows as well");
    // A place of an earlier version has no such object, and one of a later version another one.
    let bytes = mem.contents(&last).unwrap();
    let write = |bytes: &[u8]| {
        let file = vfs.open(&last, OpenOptions::CREATE).unwrap();
        file.write_at(bytes, 0, IoClass::Client).unwrap();
    };
    vfs.remove(&last).unwrap();
    assert_eq!(backups.create(&db).unwrap().id, 6);
    write(&bytes[1..]);
    for error in [backups.create(&db).unwrap_err(), backups.delete(6).unwrap_err()] {
        assert!(error.is_corruption() && error.to_string().contains("LAST"), "{error}");
    }
    backups.delete(5).unwrap();
    vfs.remove(&last).unwrap();
    write(b"sateen last backup 2\n");
    let error = backups.create(&db).unwrap_err().to_string();
    assert!(error.contains("LAST") && error.contains("newer format"), "{error}");
    vfs.remove(&last).unwrap();
    assert_eq!(backups.create(&db).unwrap().id, 7);
}

/// Deletes a backup once it is being read.
struct Deleting(Mutex<Option<BackupEngine>>);

impl BackupListener for Deleting {
    fn progress(&self, _: &BackupProgress) {
        if let Some(mut writer) = self.0.lock().unwrap().take() {
            writer.delete(1).unwrap();
        }
    }
}

#[test]
fn a_backup_that_is_deleted_while_it_is_read_is_told_by_name() {
    for verifies in [false, true] {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
        write_some(&db, &mut Random::new(5), 600);
        let mut writer = engine(&vfs);
        writer.create(&db).unwrap();
        let store = Arc::new(DirectoryStore::new(vfs.clone(), TARGET));
        let reader = BackupEngine::open_read_only_with(store).unwrap();
        let listener =
            Some(Arc::new(Deleting(Mutex::new(Some(writer)))) as Arc<dyn BackupListener>);
        let done = if verifies {
            let options = VerifyBackupOptions { listener, ..VerifyBackupOptions::default() };
            reader.verify_with(1, &options).map(drop)
        } else {
            let options = RestoreOptions { listener, ..RestoreOptions::default() };
            reader.restore_with(vfs.clone(), 1, "/restored", &options)
        };
        let error = done.unwrap_err();
        assert!(matches!(error, Error::BackupDeleted(1)), "{error}");
        assert_eq!(error.to_string(), "backup 1 was deleted while it was being read");
        assert!(!vfs.exists(Path::new("/restored")).unwrap(), "nothing of it is left");
        assert!(reader.list().unwrap().is_empty());
    }
}

#[test]
fn a_backup_that_goes_while_backups_are_listed_is_not_damaged() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    let mut writer = engine(&vfs);
    writer.create(&db).unwrap();
    writer.create(&db).unwrap();
    // A place whose backups are deleted as soon as they are listed.
    let store = HookedStore::new(&vfs, |store, call, folder| {
        if call == "listed" {
            let listed = store.list(folder).unwrap();
            listed.iter().take(1).for_each(|key| store.delete(key).unwrap());
        }
    });
    let reader = BackupEngine::open_read_only_with(store).unwrap();
    let listed = reader.list().unwrap();
    assert_eq!(
        listed.iter().map(|one| (one.id, one.damage.is_some())).collect::<Vec<_>>(),
        [(2, false)]
    );
}

/// Copies may be in the directory of a database, but not under a name of its files.
#[test]
fn copies_in_the_directory_of_a_database_take_no_name_of_its_files() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", tiny(), &[]).unwrap();
    write_some(&db, &mut Random::new(6), 100);
    let expected = contents(&db);
    let store = |path: &str| Arc::new(DirectoryStore::new(vfs.clone(), path));
    let mut backups = BackupEngine::open_with(store("/db/backups")).unwrap();
    backups.create(&db).unwrap();
    for target in ["/db/lost", "/db/000099.sat", "/db/DEVICE"] {
        let refused = |done: sateen::Result<()>, what: &str| {
            let error = done.unwrap_err();
            assert!(matches!(error, Error::InvalidArgument(_)), "{what}: {error}");
            assert!(error.to_string().contains(target), "{what}: {error}");
            assert!(!vfs.exists(Path::new(target)).unwrap(), "{what}");
        };
        refused(db.checkpoint(target), "checkpoint");
        refused(db.default_column_family().export(target).map(drop), "export");
        refused(BackupEngine::open_with(store(target)).map(drop), "backup");
        let plain = RestoreOptions::default();
        refused(backups.restore_with(vfs.clone(), 1, target, &plain), "restore");
    }
    db.checkpoint("/db/copy").unwrap();
    backups.restore_with(vfs.clone(), 1, "/db/restored", &RestoreOptions::default()).unwrap();
    drop(backups);
    db.close().unwrap();
    drop(db);
    // The database does not mind them, and does not take them along.
    assert!(restored(&vfs, "/db", &tiny()) == expected);
    let report = sateen::destroy_with(vfs.as_ref(), "/db", &tiny()).unwrap();
    assert!(!report.directory_removed && report.left.len() == 3, "{report:?}");
    for copy in ["/db/copy", "/db/restored"] {
        assert!(restored(&vfs, copy, &tiny()) == expected, "{copy}");
    }
    let backups = BackupEngine::open_with(store("/db/backups")).unwrap();
    assert!(backups.verify(1).unwrap().is_sound());
}
