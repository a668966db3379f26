//! Repair: what can be read is there again, and nothing is destroyed.

use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{
    CompactRangeOptions, Db, Error, Options, ReadOptions, TransactionOptions, repair_with,
};

use crate::support::common::{Contents, as_vfs, assert_sound, read_all, tiny};

/// A database with several levels and something in the log; what it holds.
pub(crate) fn golden() -> (MemVfs, Contents) {
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
    let contents = read_all(&db.default_column_family(), &ReadOptions::default());
    db.close().unwrap();
    (vfs, contents)
}

pub(crate) fn files(vfs: &MemVfs, ending: &str) -> Vec<std::path::PathBuf> {
    let names = vfs.list(Path::new("/db")).unwrap();
    let fits = |name: &std::path::PathBuf| name.to_string_lossy().contains(ending);
    names.into_iter().filter(fits).map(|name| Path::new("/db").join(name)).collect()
}

pub(crate) fn open_repaired(vfs: &MemVfs) -> (Db, Contents) {
    let db = Db::open_with(as_vfs(vfs), "/db", tiny(), &[]).unwrap();
    assert_sound(&db);
    let contents = read_all(&db.default_column_family(), &ReadOptions::default());
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
    let options = OpenOptions::WRITE;
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

pub(crate) fn flip(vfs: &MemVfs, path: &Path, at: u64) {
    let options = OpenOptions::WRITE;
    let file = vfs.open(path, options).unwrap();
    let mut byte = [0];
    assert_eq!(file.read_at(&mut byte, at, IoClass::Manifest).unwrap(), 1);
    file.write_at(&[!byte[0]], at, IoClass::Manifest).unwrap();
}

#[test]
fn of_a_key_the_newest_value_is_kept_wherever_it_was() {
    for seed in 0..40_u64 {
        let vfs = MemVfs::new();
        let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
        let family = db.default_column_family();
        let mut state = seed;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
            (state >> 33) % below
        };
        for i in 0..300 {
            let key = format!("key{:02}", random(40));
            db.put(&key, format!("value {i} {}", "x".repeat(50))).unwrap();
            match random(12) {
                0 => db.flush().unwrap(),
                1 => db.wait_idle().unwrap(),
                2 => family.compact_range(None, Some(key.as_bytes()), &Default::default()).unwrap(),
                _ => {}
            }
        }
        let contents = read_all(&family, &ReadOptions::default());
        db.close().unwrap();
        for path in files(&vfs, "MANIFEST") {
            vfs.remove(&path).unwrap();
        }
        let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
        let [missing] = &report.losses[..] else { panic!("seed {seed}: {report:?}") };
        assert!(missing.to_string().contains("MANIFEST"), "seed {seed}: {missing}");
        let (db, repaired) = open_repaired(&vfs);
        assert_eq!(repaired, contents, "seed {seed}");
        db.put("after", "repair").unwrap();
    }
}

/// A table that goes down unread still says that it was written for level 0.
#[test]
fn a_table_that_was_moved_down_does_not_hide_what_is_above_it() {
    let vfs = MemVfs::new();
    let mut options = tiny();
    options.column_family.dynamic_level_bytes = true;
    let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    db.put("k", "old").unwrap();
    db.flush().unwrap();
    let family = db.default_column_family();
    family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    db.close().unwrap();
    // From here on the first level is the next one, far above.
    options.column_family.dynamic_level_bytes = false;
    let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    for value in ["new", "newest"] {
        db.put("k", value).unwrap();
        db.flush().unwrap();
    }
    db.wait_idle().unwrap();
    let tables = db.property("sateen.levelstats").unwrap_or_default();
    db.close().unwrap();
    files(&vfs, "MANIFEST").iter().for_each(|path| vfs.remove(path).unwrap());
    repair_with(as_vfs(&vfs), "/db", &options).unwrap();
    let (db, _) = open_repaired(&vfs);
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"newest"[..]), "{tables}");
}

#[test]
fn a_damaged_block_costs_no_more_than_itself() {
    for with_manifest in [true, false] {
        let (vfs, contents) = golden();
        let size = |path: &std::path::PathBuf| vfs.contents(path).unwrap().len();
        let Some(path) = files(&vfs, ".sat").into_iter().max_by_key(size) else {
            panic!("there are tables")
        };
        flip(&vfs, &path, 4096 + 700);
        if !with_manifest {
            files(&vfs, "MANIFEST").iter().for_each(|path| vfs.remove(path).unwrap());
        }
        let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
        assert!(!report.losses.is_empty());
        let (db, repaired) = open_repaired(&vfs);
        let lost = contents.len() - repaired.len();
        // A block of 512 bytes holds no more.
        // Without a manifest all logs are read, which have more than is in no table.
        let some = lost > 0 || !with_manifest;
        assert!(some && lost <= 12, "{lost} of {}: {report:?}", contents.len());
        for (key, value) in &repaired {
            assert_eq!(contents.get(key), Some(value));
        }
        let options = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
        db.compact_range(None, None, &options).unwrap();
        db.put("after", "repair").unwrap();
        assert_sound(&db);
    }
}

#[test]
fn a_damaged_record_of_a_log_costs_no_more_than_itself() {
    let (vfs, _) = golden();
    {
        let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
        for i in 0..9 {
            db.put(format!("logged{i}"), "x".repeat(60)).unwrap();
        }
        db.close().unwrap();
    }
    let logs = files(&vfs, ".wal");
    let [log] = &logs[..] else { panic!("one log: {logs:?}") };
    let length = vfs.contents(log).unwrap().len() as u64;
    flip(&vfs, log, length / 2);
    assert!(Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).is_err());
    let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
    assert_eq!(report.losses.len(), 1, "{report:?}");
    assert!(vfs.exists(&Path::new("/db/lost").join(log.file_name().unwrap())).unwrap());
    let (db, repaired) = open_repaired(&vfs);
    let there = |i: &u32| repaired.contains_key(format!("logged{i}").as_bytes());
    assert_eq!((0..9).filter(there).count(), 8, "{report:?}");
    assert!(report.notes.iter().any(|note| note.contains("are lost")), "{report:?}");
    db.put("after", "repair").unwrap();
    db.close().unwrap();
    let (_, again) = open_repaired(&vfs);
    assert_eq!(again.len(), repaired.len() + 1);
}

/// The logs may be somewhere else: only who says so gives them up.
#[test]
fn without_any_log_nothing_is_given_up_unasked() {
    let (vfs, contents) = golden();
    let logs = files(&vfs, ".wal");
    logs.iter().for_each(|path| vfs.remove(path).unwrap());
    assert!(Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).is_err());
    let refused = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap_err().to_string();
    assert!(refused.contains("wal_dir") && refused.contains(&logs[0].display().to_string()));
    drop(vfs.open(&logs[0], OpenOptions::CREATE).unwrap());
    let (db, repaired) = open_repaired(&vfs);
    assert_eq!(repaired.len() + 1, contents.len());
    db.put("after", "repair").unwrap();
}

#[test]
fn a_damaged_log_does_not_take_the_others_with_it() {
    let vfs = MemVfs::new();
    {
        let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
        let family = db.create_column_family("users", tiny().column_family).unwrap();
        while db.step().unwrap() {}
        family.put("x", "1").unwrap();
        db.put("a", "1").unwrap();
        // The other family still needs the first log.
        db.flush().unwrap();
        db.put("b", "2").unwrap();
        db.close().unwrap();
    }
    let logs = files(&vfs, ".wal");
    let (Some(last), true) = (logs.iter().max(), logs.len() == 2) else {
        panic!("two logs: {logs:?}")
    };
    flip(&vfs, last, 10);
    assert!(Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).is_err());
    let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
    assert_eq!(report.losses.len(), 1, "{report:?}");
    let (db, repaired) = open_repaired(&vfs);
    assert!(repaired.contains_key(&b"a"[..]), "{report:?}");
    assert!(repaired.contains_key(&b"b"[..]), "what its header says is known: {report:?}");
    let family = db.column_family("users").unwrap();
    assert!(family.get("x").unwrap().is_some());
}

#[test]
fn a_column_family_that_only_the_log_knows_is_found() {
    let (vfs, contents) = golden();
    {
        let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
        let family = db.create_column_family("users", tiny().column_family).unwrap();
        family.put("x", "1").unwrap();
        db.close().unwrap();
    }
    files(&vfs, "MANIFEST").iter().for_each(|path| vfs.remove(path).unwrap());
    repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
    let (db, repaired) = open_repaired(&vfs);
    assert_eq!(repaired, contents);
    let names = db.column_families();
    let Some(name) = names.iter().find(|name| name.starts_with("recovered-")) else {
        panic!("not found: {names:?}")
    };
    let family = db.column_family(name).unwrap();
    assert_eq!(family.get("x").unwrap().as_deref(), Some(&b"1"[..]));
}

/// The names of column families are lost with the manifest. Prepared transactions are found all the
/// same, whether they are in tables, in a WAL, or in both.
#[test]
fn prepared_transactions_are_found_without_a_manifest() {
    for place in ["tables", "wal", "both"] {
        let (vfs, contents) = golden();
        {
            let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
            let other = db.create_column_family("other", tiny().column_family).unwrap();
            let prepare = |name: &str, bytes: usize| {
                let mut transaction = db.transaction_with(&TransactionOptions::pessimistic());
                transaction.put(name, "prepared").unwrap();
                transaction.to(&other).put(name, vec![b'x'; bytes]).unwrap();
                transaction.prepare(name).unwrap();
                transaction
            };
            prepare("committed", 3).commit().unwrap();
            drop(prepare("first", 3 << 20));
            if place == "both" {
                db.flush_all().unwrap();
            }
            drop(prepare("second", 3));
            if place == "tables" {
                db.flush_all().unwrap();
            }
            db.close().unwrap();
        }
        files(&vfs, "MANIFEST").iter().for_each(|path| vfs.remove(path).unwrap());
        vfs.remove(Path::new("/db/CURRENT")).unwrap();
        let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
        let told = report.notes.iter().any(|note| note.contains("prepared transactions"));
        assert!(told, "{place}: {report:?}");
        let (db, mut repaired) = open_repaired(&vfs);
        assert_eq!(repaired.remove(&b"committed"[..]).as_deref(), Some(&b"prepared"[..]));
        assert_eq!(repaired, contents, "{place}");
        assert_eq!(db.list_prepared().unwrap(), [&b"first"[..], b"second"], "{place}");
        // Nobody sees the entries, and the keys are locked.
        assert_eq!(db.column_families(), ["default", "recovered-1"], "{place}");
        let lock_timeout = Some(std::time::Duration::ZERO);
        let options = TransactionOptions { lock_timeout, ..TransactionOptions::pessimistic() };
        let refused = db.transaction_with(&options).put("first", "").unwrap_err();
        assert!(matches!(refused, Error::LockTimedOut { .. }), "{place}: {refused}");
        db.prepared_transaction("first").unwrap().unwrap().commit().unwrap();
        let other = db.column_family("recovered-1").unwrap();
        assert_eq!(other.get("first").unwrap().unwrap().len(), 3 << 20, "{place}");
        db.prepared_transaction("second").unwrap().unwrap().rollback().unwrap();
        drop(other);
        db.close().unwrap();
        drop(db);
        // Of a database without such transactions, only the mark is found, which is nothing to
        // tell.
        files(&vfs, "MANIFEST").iter().for_each(|path| vfs.remove(path).unwrap());
        let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
        let told = report.notes.iter().any(|note| note.contains("prepared transactions"));
        assert!(!told, "{place}: {report:?}");
        let (db, _) = open_repaired(&vfs);
        assert!(db.list_prepared().unwrap().is_empty());
        assert_eq!(db.column_families(), ["default", "recovered-1"], "{place}");
    }
}
