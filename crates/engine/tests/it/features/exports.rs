//! Exports of column families: what another database gets of them, and what a failure leaves.

use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{Fault, FaultRule, FaultVfs, MemVfs, Vfs, VfsOperation};
use sateen::{ColumnFamily, ColumnFamilyOptions, Db, Error, ReadOptions};

use crate::support::common::{Contents, appending, as_vfs, read_all, tiny};

fn options() -> ColumnFamilyOptions {
    ColumnFamilyOptions { merge_operator: Some(appending()), ..tiny().column_family }
}

fn all(family: &ColumnFamily) -> Contents {
    read_all(family, &ReadOptions::default())
}

#[test]
fn a_column_family_moves_to_another_database() {
    let vfs = MemVfs::new();
    let open = |path: &str| Db::open_with(as_vfs(&vfs), path, tiny(), &[]).unwrap();
    let (db, other) = (open("/db"), open("/other"));
    let family = db.create_column_family("from", options()).unwrap();
    for number in 0..300 {
        family.put(format!("{number:03}"), vec![b'v'; number]).unwrap();
        if number % 100 == 50 {
            db.flush().unwrap();
        }
    }
    family.delete_range("100", "150").unwrap();
    family.merge("200", "more").unwrap();
    family.delete("007").unwrap();
    let files = family.export("/files").unwrap();
    assert_eq!(files.iter().map(|file| file.entries).sum::<u64>(), 249);
    family.put("later", "is not exported").unwrap();
    let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
    let taken = other.import_column_family("to", options(), &paths, false).unwrap();
    family.delete("later").unwrap();
    assert!(all(&taken) == all(&family));
    drop((taken, other));
    let families = [("to", options())];
    let other = Db::open_with(as_vfs(&vfs), "/other", tiny(), &families).unwrap();
    assert!(all(&other.column_family("to").unwrap()) == all(&family), "it is durable");
    // Nothing is nothing, and may be imported.
    let empty = db.create_column_family("empty", options()).unwrap();
    assert!(empty.export("/nothing").unwrap().is_empty());
    let taken = other.import_column_family::<&str>("nothing", options(), &[], true).unwrap();
    assert_eq!(taken.iter().unwrap().count(), 0);
}

#[test]
fn what_cannot_be_exported_or_imported_leaves_nothing() {
    let vfs = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&vfs));
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]).unwrap();
    let family = db.default_column_family();
    (0..50).for_each(|key: u8| family.put([key], "value").unwrap());
    assert!(family.export("/db").unwrap_err().to_string().contains("exists already"));
    for operation in [VfsOperation::CreateDir, VfsOperation::Create, VfsOperation::Sync] {
        faulty.add(FaultRule::new(Fault::NoSpace).on(operation).path_contains("/files"));
        assert!(matches!(family.export("/files"), Err(Error::Io { .. })), "{operation:?}");
        faulty.clear();
        assert!(!vfs.exists(Path::new("/files")).unwrap(), "{operation:?}");
    }
    let mut expiring = tiny().column_family;
    expiring.set("ttl", "1000s").unwrap();
    let expiring = db.create_column_family("expiring", expiring).unwrap();
    assert!(expiring.export("/files").unwrap_err().to_string().contains("expire"));
    let missing = db.import_column_family("new", options(), &["/none.sst"], false).unwrap_err();
    assert!(matches!(missing, Error::Io { .. }), "{missing}");
    assert_eq!(db.column_families(), ["default", "expiring"]);
}
