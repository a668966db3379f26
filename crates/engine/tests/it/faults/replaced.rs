//! The directory of an open database is removed, and another database is created at its path. Their
//! files have the same names, and each must leave those of the other alone.

use std::fs;

use sateen::{Db, Options, WriteOptions, check};

#[test]
fn a_database_whose_directory_was_replaced_leaves_the_new_one_alone() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("db");
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    let options = || {
        let mut options = Options::default();
        options.column_family.memtable_bytes = 64 << 10;
        options
    };
    let old = Db::open(&path, options()).unwrap();
    old.writing(synced.clone()).put("old", "1").unwrap();
    // The background may create a file meanwhile.
    while path.exists() {
        let _again = fs::remove_dir_all(&path);
    }

    let new = Db::open(&path, options()).unwrap();
    new.writing(synced.clone()).put("first", "1").unwrap();
    let error = old.flush().unwrap_err().to_string();
    assert!(error.contains("the directory was removed or replaced"), "{error}");
    // What it does next may fail, but must end.
    for n in 0..2_000_u32 {
        if old.writing(synced.clone()).put(n.to_be_bytes(), [7; 200]).is_err() {
            break;
        }
    }
    let _failed = old.close();
    drop(old);

    new.writing(synced.clone()).put("second", "2").unwrap();
    new.flush().unwrap();
    new.writing(synced).put("third", "3").unwrap();
    new.close().unwrap();
    drop(new);
    assert!(check(&path, &Options::default(), &mut |_, _| {}).unwrap().problems.is_empty());
    let again = Db::open(&path, options()).unwrap();
    for key in ["first", "second", "third"] {
        assert!(again.get(key).unwrap().is_some(), "{key}");
    }
    assert!(again.get("old").unwrap().is_none());
}
