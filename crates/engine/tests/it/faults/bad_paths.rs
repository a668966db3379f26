//! Paths that are wrong: empty ones, directories of other programs, and WALs that are elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen::vfs::{MemVfs, OpenOptions, Vfs};
use sateen::{Db, Error, Options};

use super::bad_input::{assert_names, assert_unchanged, filled, open, replace};
use crate::support::common::{as_vfs, tiny};

/// An empty path is refused by name before anything is written. It would be the current directory
/// as soon as a file name is added to it.
#[test]
fn an_empty_path_is_named() {
    let (vfs, db, contents) = filled();
    let (options, mem) = (tiny(), as_vfs(&vfs));
    let store = sateen::DirectoryStore::new(mem.clone(), "");
    let without_logs = Options { wal_dir: Some(PathBuf::new()), ..tiny() };
    let refused = [
        ("the database", Db::open_with(mem.clone(), "", tiny(), &[]).map(drop)),
        ("the database", Db::open_read_only_with(mem.clone(), "", tiny()).map(drop)),
        ("the database", Db::list_column_families_with(&vfs, "").map(drop)),
        (
            "the database",
            sateen::check_with(mem.clone(), "", &options, &[], &mut |_, _| ()).map(drop),
        ),
        ("the database", sateen::repair_with(mem.clone(), "", &options).map(drop)),
        ("the database", sateen::destroy_with(&vfs, "", &options).map(drop)),
        ("the database", Options::load_with(&vfs, "", true).map(drop)),
        ("the checkpoint", db.checkpoint("")),
        ("the export", db.default_column_family().export("").map(drop)),
        ("the backups", sateen::BackupEngine::open_with(Arc::new(store)).map(drop)),
        ("wal_dir", Db::open_with(mem, "/other", without_logs, &[]).map(drop)),
    ];
    for (what, refused) in refused {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{what}: {error}");
        assert_names(&error, &["the path of", what, "is empty"]);
    }
    assert!(!vfs.exists(Path::new("/other")).unwrap());
    assert_unchanged(&db, &contents);
}

/// A CURRENT that was never ours is no damage. One of ours is, as long as anything else is there.
#[test]
fn a_current_of_another_program_is_no_damage() {
    let vfs = MemVfs::new();
    vfs.create_dir_all(Path::new("/db")).unwrap();
    drop(vfs.open(Path::new("/db/CURRENT"), OpenOptions::CREATE).unwrap());
    replace(&vfs, "CURRENT", b"hi");
    let error = open(&vfs).unwrap_err();
    assert!(matches!(error, Error::IncompatibleDirectory { .. }), "{error}");
    assert_names(&error, &["/db", "no database of Sateen", "\"hi\""]);
    let (vfs, db, _) = filled();
    db.close().unwrap();
    drop(db);
    for damaged in [&b"hi"[..], b"", b"sateen 1\nmanifest"] {
        replace(&vfs, "CURRENT", damaged);
        let error = open(&vfs).unwrap_err();
        assert!(error.is_corruption(), "{error}");
    }
}

/// WALs that are elsewhere are not lost: the error is no damage, and names the directory.
#[test]
fn wals_in_another_directory_are_no_damage() {
    let vfs = MemVfs::new();
    let apart = Options { wal_dir: Some("/logs".into()), ..tiny() };
    let db = Db::open_with(as_vfs(&vfs), "/db", apart.clone(), &[]).unwrap();
    db.put("k", "v").unwrap();
    db.close().unwrap();
    drop(db);
    let mem = as_vfs(&vfs);
    let refused = [
        open(&vfs).map(drop),
        Db::open_read_only_with(mem.clone(), "/db", tiny()).map(drop),
        sateen::check_with(mem.clone(), "/db", &tiny(), &[], &mut |_, _| ()).map(drop),
        sateen::repair_with(mem.clone(), "/db", &tiny()).map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert!(!error.is_corruption(), "{error}");
        assert_names(&error, &["/db", "there is no WAL here", "OPTIONS names the directory /logs"]);
    }
    // The named directory is not there, as if its disk were not mounted.
    let elsewhere = Options { wal_dir: Some("/nowhere".into()), ..tiny() };
    let refused = [
        Db::open_read_only_with(mem.clone(), "/db", elsewhere.clone()).map(drop),
        sateen::check_with(mem.clone(), "/db", &elsewhere, &[], &mut |_, _| ()).map(drop),
        Db::open_with(mem.clone(), "/db", elsewhere, &[]).map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert!(!error.is_corruption(), "{error}");
        assert_names(&error, &["/nowhere", "there is no WAL here", "/logs"]);
    }
    let db = Db::open_with(mem, "/db", apart, &[]).unwrap();
    assert_eq!(db.get("k").unwrap(), Some(b"v".to_vec()));
}
