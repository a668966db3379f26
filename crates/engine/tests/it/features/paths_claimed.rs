//! Directories of tables are known, and nobody takes those of another database: a directory whose
//! disk is not mounted, one that another database has, one that is opened as a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen::vfs::{
    Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, PosixVfs, Vfs, VfsOperation,
};
use sateen::{
    ColumnFamilyOptions, Db, Error, Options, TablePath, check_with, destroy_with, repair_with,
};

use super::paths::{compact, fill, open, refused, tables, two};
use crate::support::common::{as_vfs, assert_sound, contents, tiny};

/// Every operation that reads a database, and its error.
fn errors(vfs: &Arc<dyn Vfs>, home: &Path, options: &Options) -> Vec<Error> {
    let vfs = || vfs.clone();
    vec![
        Db::open_with(vfs(), home, options.clone(), &[]).map(drop).unwrap_err(),
        Db::open_read_only_with(vfs(), home, options.clone()).map(drop).unwrap_err(),
        Db::open_secondary_with(vfs(), home, options.clone(), &[]).map(drop).unwrap_err(),
        check_with(vfs(), home, options, &[], &mut |_, _| {}).map(drop).unwrap_err(),
        repair_with(vfs(), home, options).map(drop).unwrap_err(),
    ]
}

/// A closed database with tables in `/fast` and `/slow`.
fn closed(mem: &MemVfs) -> Options {
    let options = two(tiny());
    let db = open(&as_vfs(mem), &options);
    fill(&db, 0);
    compact(&db);
    fill(&db, 300);
    db.close().unwrap();
    options
}

fn create(mem: &MemVfs, path: &str, bytes: &[u8]) {
    mem.create_dir_all(Path::new(path).parent().unwrap()).unwrap();
    let file = mem.open(Path::new(path), OpenOptions::CREATE).unwrap();
    file.write_at(bytes, 0, IoClass::Client).unwrap();
}

fn listed(mem: &MemVfs) -> String {
    String::from_utf8(mem.contents(Path::new("/db/DIRECTORIES")).unwrap()).unwrap()
}

#[test]
fn a_directory_that_is_not_mounted_is_not_an_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(PosixVfs::new());
    let [home, fast, slow, away] =
        ["db", "fast", "slow", "away"].map(|name| directory.path().join(name));
    let room = tiny().column_family.level_base_bytes;
    let paths = vec![TablePath::new(&fast, room), TablePath::new(&slow, 1 << 30)];
    let options = Options { paths, ..tiny() };
    let db = Db::open_with(vfs.clone(), &home, options.clone(), &[]).unwrap();
    fill(&db, 0);
    compact(&db);
    let before = contents(&db);
    db.close().unwrap();
    drop(db);
    std::fs::rename(&slow, &away).unwrap();
    for exists in [false, true] {
        if exists {
            std::fs::create_dir(&slow).unwrap();
        }
        for error in errors(&vfs, &home, &options) {
            assert!(matches!(error, Error::IncompatibleDirectory { .. }), "{error:?}");
            let error = error.to_string();
            assert!(error.contains("slow: ") && error.contains("is its disk mounted"), "{error}");
        }
        assert_eq!(slow.exists(), exists, "it is not created");
        assert!(!exists || std::fs::read_dir(&slow).unwrap().next().is_none());
    }
    std::fs::remove_dir(&slow).unwrap();
    std::fs::rename(&away, &slow).unwrap();
    let db = Db::open_with(vfs, &home, options, &[]).unwrap();
    assert_eq!(contents(&db), before);
    assert_sound(&db);
}

#[test]
fn the_list_has_a_directory_while_that_has_tables() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let db = open(&vfs, &tiny());
    fill(&db, 0);
    assert!(!mem.exists(Path::new("/db/DIRECTORIES")).unwrap(), "there are no others");
    let own = ColumnFamilyOptions {
        family_paths: vec![TablePath::new("/own", 0)],
        ..tiny().column_family
    };
    let family = db.create_column_family("own", own).unwrap();
    family.put("key", "value").unwrap();
    family.flush().unwrap();
    assert!(listed(&mem).contains("directory /own\n"));
    db.drop_column_family(&family).unwrap();
    db.close().unwrap();
    drop((db, family));
    create(&mem, "/own/900000.sat", b"left behind");
    // Its numbers are not used again, although the options do not name it.
    let db = open(&vfs, &tiny());
    fill(&db, 300);
    assert!(tables(&mem, "/db").iter().any(|name| name.as_str() > "900000.sat"));
    assert!(listed(&mem).contains("directory /own\n"));
    db.close().unwrap();
    drop(db);
    for name in tables(&mem, "/own") {
        mem.remove(&Path::new("/own").join(name)).unwrap();
    }
    open(&vfs, &tiny()).close().unwrap();
    assert!(!listed(&mem).contains("/own"));
}

/// Otherwise a later open would not know where tables are.
#[test]
fn nothing_is_written_into_a_directory_that_cannot_be_listed() {
    let mem = MemVfs::new();
    let faults = FaultVfs::new(as_vfs(&mem));
    let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
    let db = open(&vfs, &tiny());
    for operation in [VfsOperation::Write, VfsOperation::Sync, VfsOperation::Rename] {
        let rule = FaultRule::new(Fault::Io).on(operation).path_contains("DIRECTORIES");
        let rule = faults.add(rule);
        let own = ColumnFamilyOptions {
            family_paths: vec![TablePath::new("/own", 0)],
            ..tiny().column_family
        };
        db.create_column_family("own", own).map(drop).unwrap_err();
        assert!(db.column_family("own").is_none());
        let other = Db::open_with(vfs.clone(), "/other", two(tiny()), &[]);
        assert!(matches!(other.map(drop), Err(Error::Io { .. })), "{operation:?}");
        faults.remove_rule(rule);
    }
    assert!(tables(&mem, "/own").is_empty());
    open(&as_vfs(&MemVfs::new()), &two(tiny())).close().unwrap();
}

#[test]
fn a_damaged_list_is_put_aside() {
    let mem = MemVfs::new();
    let options = closed(&mem);
    let vfs = as_vfs(&mem);
    let file = mem.open(Path::new("/db/DIRECTORIES"), OpenOptions::WRITE).unwrap();
    file.write_at(b"S", 0, IoClass::Client).unwrap();
    let error = refused(Db::open_with(vfs.clone(), "/db", options.clone(), &[]));
    assert!(error.contains("DIRECTORIES"), "{error}");
    let report = check_with(vfs.clone(), "/db", &options, &[], &mut |_, _| {}).unwrap();
    assert!(report.problems.iter().any(|problem| problem.to_string().contains("DIRECTORIES")));
    let report = repair_with(vfs.clone(), "/db", &options).unwrap();
    assert!(report.moved.contains(&PathBuf::from("/db/lost/DIRECTORIES")), "{report:?}");
    let db = open(&vfs, &options);
    assert_eq!(contents(&db).len(), 600);
    assert!(listed(&mem).contains("directory /slow\n"));
}

#[test]
fn repair_takes_no_tables_of_others() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let options = closed(&mem);
    let other = Db::open_with(vfs.clone(), "/other", tiny(), &[]).unwrap();
    fill(&other, 0);
    other.checkpoint("/copy").unwrap();
    other.close().unwrap();
    let with = |directory: &str| {
        let mut options = options.clone();
        options.paths.push(TablePath::new(directory, 0));
        options
    };
    let elsewhere = Options { paths: vec![TablePath::new("/its", 0)], ..tiny() };
    let third = Db::open_with(vfs.clone(), "/third", elsewhere, &[]).unwrap();
    fill(&third, 0);
    third.close().unwrap();
    drop((other, third));
    create(&mem, "/loose/000077.sat", b"of nobody");
    for (directory, said) in [
        ("/other", "it is a database"),
        ("/copy", "it is a database"),
        ("/its", "it has the tables of the database in /third"),
        ("/loose", "no file OWNER"),
    ] {
        let before = mem.list(Path::new(directory)).unwrap();
        let error = repair_with(vfs.clone(), "/db", &with(directory)).unwrap_err();
        assert!(matches!(error, Error::IncompatibleDirectory { .. }), "{error:?}");
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(mem.list(Path::new(directory)).unwrap(), before, "{directory}");
    }
    let locked = vfs.lock(Path::new("/slow/LOCK")).unwrap();
    let error = repair_with(vfs.clone(), "/db", &options).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error:?}");
    drop(locked);
    repair_with(vfs.clone(), "/db", &options).unwrap();
    assert_eq!(contents(&open(&vfs, &options)).len(), 600);
}

#[test]
fn a_directory_of_tables_is_not_a_database() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let options = closed(&mem);
    for name in tables(&mem, "/slow") {
        mem.rename(&Path::new("/slow").join(&name), &Path::new("/fast").join(&name)).unwrap();
    }
    // One has tables, the other one has none.
    for directory in ["/fast", "/slow"] {
        let before = mem.list(Path::new(directory)).unwrap();
        let directory = Path::new(directory);
        let vfs = || vfs.clone();
        let errors = [
            Db::open_with(vfs(), directory, tiny(), &[]).map(drop).unwrap_err(),
            Db::open_read_only_with(vfs(), directory, tiny()).map(drop).unwrap_err(),
            repair_with(vfs(), directory, &tiny()).map(drop).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::IncompatibleDirectory { .. }), "{error:?}");
            assert!(error.to_string().contains("tables of the database in /db"), "{error}");
        }
        assert_eq!(mem.list(directory).unwrap(), before);
    }
    assert_eq!(contents(&open(&vfs, &options)).len(), 600);
}

/// A change of the working directory must not change where tables are.
#[test]
fn relative_directories_become_absolute() {
    let directory = tempfile::tempdir().unwrap();
    let here = std::env::current_dir().unwrap();
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    let relative = |name: &str| up.join(directory.path().strip_prefix("/").unwrap()).join(name);
    let [home, fast, own] = ["db", "fast", "own"].map(relative);
    let paths = vec![TablePath::new(&fast, 0)];
    let options = Options { paths, wal_dir: Some(home.clone()), ..tiny() };
    let family =
        ColumnFamilyOptions { family_paths: vec![TablePath::new(&own, 0)], ..tiny().column_family };
    let db = Db::open(&home, options.clone()).unwrap();
    db.create_column_family("own", family.clone()).unwrap();
    fill(&db, 0);
    assert!(db.options().paths.iter().all(|path| path.directory.is_absolute()));
    db.close().unwrap();
    drop(db);
    let stored = Options::load(&home).unwrap();
    let of_family = stored.families.iter().flat_map(|(_, family)| &family.family_paths);
    let all: Vec<_> = stored.options.paths.iter().chain(of_family).collect();
    assert!(all.len() == 2 && all.iter().all(|path| path.directory.is_absolute()), "{all:?}");
    let families = [("own", family)];
    let db = Db::open_with(Arc::new(PosixVfs::new()), &home, options, &families).unwrap();
    assert_eq!(contents(&db).len(), 300);
    assert_sound(&db);
}

#[test]
fn a_table_in_two_directories_is_refused() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let options = closed(&mem);
    let name = tables(&mem, "/slow").remove(0);
    let bytes = mem.contents(&Path::new("/slow").join(&name)).unwrap();
    create(&mem, &format!("/fast/{name}"), &bytes);
    for error in errors(&vfs, Path::new("/db"), &options) {
        let error = error.to_string();
        let both = ["/fast", "/slow"].map(|directory| format!("{directory}/{name}"));
        assert!(both.iter().all(|path| error.contains(path)), "{error}");
    }
    mem.remove(&Path::new("/fast").join(&name)).unwrap();
    assert_eq!(contents(&open(&vfs, &options)).len(), 600);
}

#[test]
fn what_a_repair_puts_aside_is_not_among_tables() {
    let mem = MemVfs::new();
    let lost = vec![TablePath::new("/db/lost", 0)];
    let options = Options { paths: lost.clone(), ..tiny() };
    let error = refused(Db::open_with(as_vfs(&mem), "/db", options, &[]));
    assert!(error.contains("/db/lost") && error.contains("a repair puts files there"), "{error}");
    let db = open(&as_vfs(&mem), &tiny());
    let family = ColumnFamilyOptions { family_paths: lost, ..tiny().column_family };
    let error = db.create_column_family("own", family).map(drop).unwrap_err().to_string();
    assert!(error.contains("a repair puts files there"), "{error}");
    assert!(!mem.exists(Path::new("/db/lost")).unwrap());
}

#[test]
fn destroy_leaves_what_others_have() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let options = closed(&mem);
    // A repair of another database has put a table aside here.
    let other = Db::open_with(vfs.clone(), "/other", tiny(), &[]).unwrap();
    fill(&other, 0);
    other.close().unwrap();
    drop(other);
    let name = tables(&mem, "/other").remove(0);
    let bytes = mem.contents(&Path::new("/other").join(&name)).unwrap();
    create(&mem, &format!("/fast/lost/{name}"), &bytes);
    create(&mem, "/slow/OWNER.tmp", b"unfinished");
    destroy_with(vfs.as_ref(), "/db", &options).unwrap();
    assert_eq!(mem.list(Path::new("/fast")).unwrap(), [PathBuf::from("lost")]);
    assert_eq!(mem.contents(&Path::new("/fast/lost").join(&name)).unwrap(), bytes);
    assert!(!mem.exists(Path::new("/slow")).unwrap() && !mem.exists(Path::new("/db")).unwrap());
}
