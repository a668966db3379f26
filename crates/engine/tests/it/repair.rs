//! Repair: what can be read is there again, and nothing is destroyed.

use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{Db, Options, ReadOptions, repair_with};

use crate::common::{Contents, as_vfs, assert_sound, read_all, tiny};

/// A database with several levels and something in the log; what it holds.
fn golden() -> (MemVfs, Contents) {
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
    for i in 0..600_u32 {
        let key = format!("key{:04}", i * 7 % 400);
        if i % 9 == 0 {
            db.delete(key).unwrap();
        } else {
            db.put(key, format!("value {i} {}", "x".repeat(40))).unwrap();
        }
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    db.put("unflushed", "in the log").unwrap();
    let contents = read_all(&db, &db.default_column_family(), &ReadOptions::default());
    db.close().unwrap();
    (vfs, contents)
}

fn files(vfs: &MemVfs, ending: &str) -> Vec<std::path::PathBuf> {
    let names = vfs.list(Path::new("/db")).unwrap();
    let fits = |name: &std::path::PathBuf| name.to_string_lossy().contains(ending);
    names.into_iter().filter(fits).map(|name| Path::new("/db").join(name)).collect()
}

fn open_repaired(vfs: &MemVfs) -> (Db, Contents) {
    let db = Db::open_with(as_vfs(vfs), "/db", tiny(), &[]).unwrap();
    assert_sound(&db);
    let contents = read_all(&db, &db.default_column_family(), &ReadOptions::default());
    (db, contents)
}

#[test]
fn a_lost_current_is_written_again() {
    let (vfs, contents) = golden();
    vfs.remove(Path::new("/db/CURRENT")).unwrap();
    assert!(Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).is_err());
    let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
    assert!(report.manifest.is_some() && report.losses.is_empty(), "{report:?}");
    let (db, repaired) = open_repaired(&vfs);
    assert_eq!(repaired, contents);
    db.put("after", "repair").unwrap();
}

#[test]
fn without_a_manifest_the_tables_speak_for_themselves() {
    let (vfs, contents) = golden();
    for path in files(&vfs, "MANIFEST") {
        vfs.remove(&path).unwrap();
    }
    let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
    assert!(report.manifest.is_none() && report.entries_salvaged > 0, "{report:?}");
    let (_, repaired) = open_repaired(&vfs);
    assert_eq!(repaired, contents);
}

#[test]
fn a_damaged_table_costs_no_more_than_itself_and_is_kept_aside() {
    let (vfs, contents) = golden();
    let bytes = |path: &std::path::PathBuf| vfs.contents(path).unwrap().len();
    let Some(path) = files(&vfs, ".sat").into_iter().max_by_key(bytes) else {
        panic!("there are tables")
    };
    let options = OpenOptions { write: true, ..OpenOptions::READ };
    let file = vfs.open(&path, options).unwrap();
    let length = file.len().unwrap();
    file.write_at(&vec![0xAA; usize::try_from(length).unwrap()], 0, IoClass::Manifest).unwrap();
    let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
    assert!(!report.losses.is_empty());
    let lost = Path::new("/db/lost").join(path.file_name().unwrap());
    assert!(vfs.exists(&lost).unwrap(), "the damaged file is kept aside");
    let (_, repaired) = open_repaired(&vfs);
    assert!(repaired.len() < contents.len());
    assert!(repaired.contains_key(&b"unflushed"[..]), "the log is replayed");
}

#[test]
fn what_is_open_or_no_database_is_refused() {
    let (vfs, _) = golden();
    let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
    let refused = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap_err();
    assert!(refused.to_string().contains("LOCK"), "{refused}");
    drop(db);
    vfs.create_dir_all(Path::new("/empty")).unwrap();
    let nothing = repair_with(Arc::new(vfs), "/empty", &Options::default()).unwrap_err();
    assert!(nothing.to_string().contains("/empty"), "{nothing}");
}
