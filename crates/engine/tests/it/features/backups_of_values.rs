//! Backups of databases with value files: what is in them is backed up, verified and shared like
//! the tables, and holes stay holes.

use std::path::Path;
use std::sync::{Arc, Mutex};

use sateen::vfs::{IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{BackupEngine, Db, RestoreOptions};

use super::backups::{HookedStore, TARGET, engine, keys, restored};
use super::values::{apart, bytes_of, compact, filled, value_files, value_files_in, write};
use crate::support::common::{Contents, as_vfs, contents};

/// The objects that hold files with values.
fn objects(vfs: &Arc<dyn Vfs>) -> Vec<String> {
    let mut objects = keys(vfs, "shared");
    objects.retain(|key| key.ends_with(".file"));
    objects
}

/// The bytes of these objects.
fn bytes_in(vfs: &Arc<dyn Vfs>, objects: &[String]) -> u64 {
    let folder = Path::new(TARGET).join("shared");
    let length = |name: &String| vfs.open(&folder.join(name), OpenOptions::READ).unwrap().len();
    objects.iter().map(|name| length(name).unwrap()).sum()
}

/// Overwrites half of the keys, so that many pages of the value files are punched.
fn overwrite_half(db: &Db, vfs: &MemVfs, round: u32, model: &mut Contents) {
    let before = value_files(vfs);
    write(db, 0..100, round, model);
    db.flush().unwrap();
    compact(db);
    let after = value_files(vfs);
    let left: u64 = before.keys().filter_map(|path| after.get(path)).sum();
    assert!(left < bytes_of(&before) * 6 / 10, "nothing was punched: {before:?} {after:?}");
}

fn restore(backups: &BackupEngine, vfs: &Arc<dyn Vfs>, id: u64) -> String {
    let path = format!("/restored{id}");
    backups.restore_with(vfs.clone(), id, &path, &RestoreOptions::default()).unwrap();
    path
}

#[test]
fn value_files_are_shared_and_restored_without_what_was_punched() {
    let mem = MemVfs::new();
    let (vfs, options) = (as_vfs(&mem), apart());
    let (db, mut model) = filled(&mem, &options);
    let mut backups = engine(&vfs);
    let mut expected = Vec::new();
    let mut make = |backups: &mut BackupEngine, db: &Db, model: &Contents| {
        let id = backups.create(db).unwrap().id;
        assert!(backups.verify(id).unwrap().is_sound());
        expected.push((id, model.clone(), bytes_of(&value_files(&mem))));
    };
    make(&mut backups, &db, &model);
    let had = objects(&vfs);
    assert_eq!(had.len(), value_files(&mem).len());
    assert!(bytes_in(&vfs, &had) >= 175_000);
    make(&mut backups, &db, &model);
    assert_eq!(objects(&vfs), had, "nothing is copied again");

    overwrite_half(&db, &mem, 1, &mut model);
    make(&mut backups, &db, &model);
    let mut new = objects(&vfs);
    new.retain(|object| !had.contains(object));
    // About half of the old file, and all of the new one.
    let taken = bytes_of(&value_files(&mem));
    assert!(!new.is_empty() && bytes_in(&vfs, &new) <= taken, "{new:?} {taken}");
    // Values that are only in the WAL, and only in memory until the backup stores them.
    write(&db, 50..60, 2, &mut model);
    make(&mut backups, &db, &model);
    db.close().unwrap();
    drop(db);
    let reader = Db::open_read_only_with(vfs.clone(), "/db", options.clone()).unwrap();
    make(&mut backups, &reader, &model);
    drop(reader);

    for (id, expected, allocated) in expected {
        let path = restore(&backups, &vfs, id);
        let takes = bytes_of(&value_files_in(&mem, &path));
        assert!(takes <= allocated, "{id}: {takes} {allocated}");
        assert!(restored(&vfs, &path, &options) == expected, "{id}");
    }
    // What no backup has any more goes, and what one has stays.
    assert_eq!(backups.purge(1).unwrap(), [1, 2, 3, 4]);
    assert!(backups.verify(5).unwrap().is_sound());
    backups.delete(5).unwrap();
    assert!(objects(&vfs).is_empty());
}

/// Both have the same number for the file, of which one has punched what the other one needs.
#[test]
fn a_restored_database_is_backed_up_with_what_its_source_has_punched() {
    let mem = MemVfs::new();
    let (vfs, options) = (as_vfs(&mem), apart());
    let (db, mut model) = filled(&mem, &options);
    let before = model.clone();
    let mut backups = engine(&vfs);
    let first = backups.create(&db).unwrap().id;
    let other = restore(&backups, &vfs, first);
    overwrite_half(&db, &mem, 1, &mut model);
    backups.create(&db).unwrap();
    backups.delete(first).unwrap();
    let other = Db::open_with(vfs.clone(), &other, options.clone(), &[]).unwrap();
    let of_other = backups.create(&other).unwrap().id;
    other.close().unwrap();
    assert!(backups.verify(of_other).unwrap().is_sound());
    let path = restore(&backups, &vfs, of_other);
    assert!(restored(&vfs, &path, &options) == before);
}

/// Also if an earlier backup has all tables, which are then not verified for their own sake.
#[test]
fn a_damaged_value_is_told_by_name_and_not_backed_up() {
    for earlier in [false, true] {
        let mem = MemVfs::new();
        let vfs = as_vfs(&mem);
        let (db, model) = filled(&mem, &apart());
        let mut backups = engine(&vfs);
        if earlier {
            backups.create(&db).unwrap();
        }
        let had = [keys(&vfs, "shared"), keys(&vfs, "private"), keys(&vfs, "backups")].concat();
        let (path, _) = value_files(&mem).pop_first().unwrap();
        let flip = || {
            let file = vfs.open(&path, OpenOptions::WRITE).unwrap();
            let byte = mem.contents(&path).unwrap()[50_000] ^ 1;
            file.write_at(&[byte], 50_000, IoClass::Client).unwrap();
        };
        flip();
        let error = backups.create(&db).unwrap_err();
        assert!(error.is_corruption(), "{error}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        let has = [keys(&vfs, "shared"), keys(&vfs, "private"), keys(&vfs, "backups")].concat();
        assert_eq!(has, had, "nothing is left");
        flip();
        let id = backups.create(&db).unwrap().id;
        let at = restore(&backups, &vfs, id);
        assert!(restored(&vfs, &at, &apart()) == model);
    }
}

#[test]
fn a_missing_value_file_is_told_by_name() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let (db, model) = filled(&mem, &apart());
    let mut backups = engine(&vfs);
    let (path, _) = value_files(&mem).pop_first().unwrap();
    let elsewhere = Path::new("/elsewhere");
    vfs.rename(&path, elsewhere).unwrap();
    let error = backups.create(&db).unwrap_err().to_string();
    assert!(error.contains(path.to_str().unwrap()), "{error}");
    assert!(backups.list().unwrap().is_empty() && objects(&vfs).is_empty());
    vfs.rename(elsewhere, &path).unwrap();
    backups.create(&db).unwrap();
    assert!(contents(&db) == model);
}

/// The object of an earlier backup is damaged, so it is written again, and the file loses dead
/// values after it was found to have the same bytes and before it is read for that.
#[test]
fn a_file_that_is_punched_while_an_object_is_replaced_is_not_damaged() {
    let mem = MemVfs::new();
    let (vfs, options) = (as_vfs(&mem), apart());
    let (db, mut model) = filled(&mem, &options);
    // It keeps the values that are dead from now on.
    let iter = db.iter().unwrap();
    let first = value_files(&mem);
    write(&db, 0..100, 1, &mut model);
    db.flush().unwrap();
    compact(&db);
    engine(&vfs).create(&db).unwrap();
    for object in objects(&vfs) {
        let path = Path::new(TARGET).join("shared").join(object);
        vfs.open(&path, OpenOptions::WRITE).unwrap().truncate(50).unwrap();
    }
    let held = Mutex::new(Some((iter, db.clone())));
    let store = HookedStore::new(&vfs, move |_, call, key| {
        if call == "create"
            && key.ends_with(".file")
            && let Some((iter, db)) = held.lock().unwrap().take()
        {
            drop(iter);
            db.wait_idle().unwrap();
        }
    });
    let mut backups = BackupEngine::open_with(store).unwrap();
    let id = backups.create(&db).unwrap().id;
    let left = value_files(&mem);
    assert!(first.iter().any(|(path, bytes)| left[path] < *bytes), "nothing was punched");
    assert!(backups.verify(id).unwrap().is_sound());
    let path = restore(&backups, &vfs, id);
    assert!(restored(&vfs, &path, &options) == model);
}
