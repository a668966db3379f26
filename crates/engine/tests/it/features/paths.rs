//! Tables in several directories: upper levels are in the first ones, and everything that works on
//! a database finds them there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen::vfs::{
    CrashChoice, Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, PosixVfs, Vfs,
    VfsOperation,
};
use sateen::{
    BackupEngine, ColumnFamilyOptions, CompactRangeOptions, CompactionStyle, Db, Error, Options,
    TablePath, check_with, destroy_with, repair_with,
};

use crate::support::common::{as_vfs, assert_no_orphans, assert_sound, contents, small, tiny};

/// Level 0 in `/fast`, which has room for no other one, and all deeper levels in `/slow`.
pub(crate) fn two(base: Options) -> Options {
    let room = base.column_family.level_base_bytes;
    let paths = vec![TablePath::new("/fast", room), TablePath::new("/slow", 1 << 30)];
    Options { paths, ..base }
}

pub(super) fn open(vfs: &Arc<dyn Vfs>, options: &Options) -> Db {
    Db::open_with(vfs.clone(), "/db", options.clone(), &[]).unwrap()
}

pub(super) fn fill(db: &Db, from: u32) {
    for key in from..from + 300 {
        db.put(format!("key{key:05}"), [b'v'; 60]).unwrap();
    }
    db.flush().unwrap();
}

pub(super) fn compact(db: &Db) {
    let family = db.default_column_family();
    family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
}

/// The table files in a directory.
pub(super) fn tables(vfs: &dyn Vfs, directory: &str) -> Vec<String> {
    let listed = vfs.list(Path::new(directory)).unwrap_or_default();
    let names = listed.iter().map(|name| name.to_str().unwrap().to_owned());
    names.filter(|name| name.ends_with(".sat")).collect()
}

pub(super) fn refused(error: Result<Db, Error>) -> String {
    match error {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn levels_are_in_their_directories() {
    let mem = MemVfs::new();
    let options = two(tiny());
    let db = open(&as_vfs(&mem), &options);
    for from in 0..10 {
        fill(&db, 300 * from);
        db.wait_idle().unwrap();
    }
    fill(&db, 3000);
    let live = db.live_tables();
    let in_their_place = live.iter().all(|table| {
        let expected = if table.level == 0 { "/fast" } else { "/slow" };
        table.file.parent() == Some(Path::new(expected)) && mem.exists(&table.file).unwrap()
    });
    assert!(in_their_place, "{live:#?}");
    assert!(live.iter().any(|table| table.level == 0) && live.iter().any(|table| table.level > 1));
    assert!(tables(&mem, "/db").is_empty());
    assert_sound(&db);
    let before = contents(&db);
    db.close().unwrap();
    drop(db);
    assert_no_orphans(as_vfs(&mem), "/db", &options);
    let db = open(&as_vfs(&mem), &options);
    assert_eq!(contents(&db), before);
    compact(&db);
    db.wait_idle().unwrap();
    assert!(tables(&mem, "/fast").is_empty() && !tables(&mem, "/slow").is_empty());
    assert_eq!(contents(&db), before);
    assert_sound(&db);
}

#[test]
fn values_apart_go_with_their_tables() {
    let mem = MemVfs::new();
    let mut options = two(tiny());
    options.column_family.value_separation_bytes = 30;
    let db = open(&as_vfs(&mem), &options);
    fill(&db, 0);
    compact(&db);
    fill(&db, 100);
    assert!(tables(&mem, "/db").is_empty());
    assert_eq!(contents(&db).len(), 400);
    assert_sound(&db);
}

/// A second name of the WAL could not be in the directory of the table.
#[test]
fn values_do_not_stay_in_the_log_of_another_directory() {
    let mem = MemVfs::new();
    let options = two(small("triad", 4 << 10));
    let db = open(&as_vfs(&mem), &options);
    fill(&db, 0);
    assert!(tables(&mem, "/db").is_empty() && !tables(&mem, "/fast").is_empty());
    let image = mem.crash_image(CrashChoice::SyncedOnly);
    assert_eq!(contents(&open(&as_vfs(&image), &options)).len(), 300);
}

#[test]
fn a_column_family_has_directories_of_its_own() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let options = two(tiny());
    let own = ColumnFamilyOptions {
        family_paths: vec![TablePath::new("/own", 0)],
        ..options.column_family.clone()
    };
    let db = open(&vfs, &options);
    let family = db.create_column_family("own", own.clone()).unwrap();
    family.put("key", "value").unwrap();
    family.flush().unwrap();
    assert_eq!(tables(&mem, "/own").len(), 1);
    // Its directory has a lock, and a mark of whose it is.
    let other = Db::open_with(
        vfs.clone(),
        "/other",
        Options { paths: own.family_paths.clone(), ..tiny() },
        &[],
    );
    assert!(refused(other).contains("/own: it has the tables of the database in /db"));
    fill(&db, 0);
    db.close().unwrap();
    drop((db, family));
    // Without its options its directory is not known.
    let error = refused(Db::open_with(vfs.clone(), "/db", options.clone(), &[]));
    assert!(error.contains("tables in /own") && error.contains("family_paths"), "{error}");
    let db = Db::open_with(vfs, "/db", options, &[("own", own)]).unwrap();
    let family = db.column_family("own").unwrap();
    assert_eq!(family.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_sound(&db);
}

#[test]
fn a_directory_that_is_not_named_is_named_by_the_error() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let options = two(tiny());
    let db = open(&vfs, &options);
    fill(&db, 0);
    compact(&db);
    db.close().unwrap();
    drop(db);
    let without = |paths: Vec<TablePath>| Options { paths, ..tiny() };
    for paths in [vec![], vec![options.paths[0].clone()]] {
        let options = without(paths);
        let opened = [
            Db::open_with(vfs.clone(), "/db", options.clone(), &[]),
            Db::open_read_only_with(vfs.clone(), "/db", options.clone()),
        ];
        for opened in opened {
            let error = refused(opened);
            assert!(error.contains("tables in /") && error.contains("option paths"), "{error}");
        }
        let error = repair_with(vfs.clone(), "/db", &options).unwrap_err().to_string();
        assert!(error.contains("option paths"), "{error}");
        let report = check_with(vfs.clone(), "/db", &options, &[], &mut |_, _| {}).unwrap();
        assert!(report.is_sound(), "it reads the directories that are listed: {report:?}");
        assert!(report.notes.iter().any(|note| note.contains("option paths")), "{report:?}");
    }
    // With the directories in another order everything is found.
    let reversed: Vec<_> = options.paths.iter().rev().cloned().collect();
    assert_eq!(contents(&open(&vfs, &without(reversed))).len(), 300);
    // A directory that does not exist is named where it is not created.
    let gone =
        without(vec![options.paths[0].clone(), options.paths[1].clone(), TablePath::new("/no", 0)]);
    let error = refused(Db::open_read_only_with(vfs, "/db", gone));
    assert!(error.contains("/no"), "{error}");
}

#[test]
fn tables_of_an_earlier_time_stay_where_they_are() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let db = open(&vfs, &tiny());
    fill(&db, 0);
    db.close().unwrap();
    drop(db);
    let db = open(&vfs, &two(tiny()));
    fill(&db, 300);
    assert!(!tables(&mem, "/db").is_empty() && !tables(&mem, "/fast").is_empty());
    assert_eq!(contents(&db).len(), 600);
    compact(&db);
    db.wait_idle().unwrap();
    assert!(tables(&mem, "/db").is_empty(), "a compaction moves them");
    assert_eq!(contents(&db).len(), 600);
}

#[test]
fn no_other_database_takes_the_directories() {
    let directory = tempfile::tempdir().unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(PosixVfs::new());
    let [home, fast, copy, moved, other] =
        ["db", "fast", "copy", "moved", "other"].map(|name| directory.path().join(name));
    let options = Options { paths: vec![TablePath::new(&fast, 0)], ..tiny() };
    let open = |home: &Path| Db::open_with(vfs.clone(), home, options.clone(), &[]);
    let db = open(&home).unwrap();
    fill(&db, 0);
    db.checkpoint(&copy).unwrap();
    db.close().unwrap();
    drop(db);
    for second in [&copy, &other] {
        let error = refused(open(second));
        assert!(error.contains(&format!("the database in {}", home.display())), "{error}");
    }
    // A database that was moved is the same one.
    std::fs::rename(&home, &moved).unwrap();
    let db = open(&moved).unwrap();
    assert_eq!(contents(&db).len(), 300);
    db.close().unwrap();
    drop(db);
    // A directory cannot be a database and have the tables of another one.
    let inside = Options { paths: vec![TablePath::new(&moved, 0)], ..tiny() };
    let error = refused(Db::open_with(vfs.clone(), directory.path().join("x"), inside, &[]));
    assert!(error.contains("it is a database"), "{error}");
    // Tables of which nobody says whose they are stay.
    std::fs::remove_file(fast.join("OWNER")).unwrap();
    let error = refused(open(&moved));
    assert!(error.contains("no file OWNER"), "{error}");
    // The same holds for those of a database that is gone, and not for an empty directory.
    let again = Options { paths: vec![TablePath::new(directory.path().join("y"), 0)], ..tiny() };
    let open = || Db::open_with(vfs.clone(), &home, again.clone(), &[]);
    let db = open().unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    std::fs::remove_dir_all(&home).unwrap();
    let db = open().unwrap();
    fill(&db, 0);
    db.close().unwrap();
    drop(db);
    std::fs::remove_dir_all(&home).unwrap();
    let error = refused(open());
    assert!(error.contains("CURRENT is missing") && error.contains("repair"), "{error}");
    Db::open_with(vfs.clone(), &home, tiny(), &[]).unwrap().close().unwrap();
    let error = refused(open());
    assert!(error.contains("of a database that is gone; move the tables away"), "{error}");
    assert!(!tables(vfs.as_ref(), fast.to_str().unwrap()).is_empty());
}

#[test]
fn copies_are_whole() {
    let directory = tempfile::tempdir().unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(PosixVfs::new());
    let [home, fast, slow, copy, place, restored] =
        ["db", "fast", "slow", "copy", "backups", "restored"]
            .map(|name| directory.path().join(name));
    let room = tiny().column_family.level_base_bytes;
    let paths = vec![TablePath::new(&fast, room), TablePath::new(&slow, 0)];
    let options = Options { paths, ..tiny() };
    let db = Db::open_with(vfs.clone(), &home, options.clone(), &[]).unwrap();
    fill(&db, 0);
    compact(&db);
    fill(&db, 100);
    let before = contents(&db);
    db.checkpoint(&copy).unwrap();
    let mut backups = BackupEngine::open(&place).unwrap();
    backups.create(&db).unwrap();
    backups.restore_latest(&restored).unwrap();
    for copy in [&copy, &restored] {
        // Its options do not name directories of others.
        assert!(Options::load(copy).unwrap().options.paths.is_empty());
        let db = Db::open(copy, tiny()).unwrap();
        assert_eq!(contents(&db), before);
        assert_sound(&db);
        db.close().unwrap();
    }
    // To remove a copy removes nothing of its source.
    destroy_with(vfs.as_ref(), &copy, &options).unwrap();
    assert_eq!(contents(&db), before);
    assert_sound(&db);
}

#[test]
fn readers_find_all_tables() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let options = two(tiny());
    let db = open(&vfs, &options);
    fill(&db, 0);
    let secondary = Db::open_secondary_with(vfs.clone(), "/db", options.clone(), &[]).unwrap();
    let reader = Db::open_read_only_with(vfs.clone(), "/db", options.clone()).unwrap();
    compact(&db);
    fill(&db, 300);
    db.wait_idle().unwrap();
    assert!(secondary.try_catch_up_with_primary().unwrap());
    assert_eq!(contents(&secondary).len(), 600);
    assert_eq!(contents(&reader).len(), 300);
}

#[test]
fn repair_keeps_what_it_does_not_use_where_it_is() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let options = two(tiny());
    let db = open(&vfs, &options);
    fill(&db, 0);
    compact(&db);
    fill(&db, 300);
    let before = contents(&db);
    db.close().unwrap();
    drop(db);
    let left = mem.open(Path::new("/slow/900000.sat"), OpenOptions::CREATE).unwrap();
    left.write_at(b"left behind", 0, IoClass::Client).unwrap();
    for name in mem.list(Path::new("/db")).unwrap() {
        if name.to_str().unwrap().starts_with("MANIFEST") {
            mem.remove(&Path::new("/db").join(name)).unwrap();
        }
    }
    let report = repair_with(vfs.clone(), "/db", &options).unwrap();
    assert!(report.moved.contains(&PathBuf::from("/slow/lost/900000.sat")), "{report:?}");
    let db = open(&vfs, &options);
    assert_eq!(contents(&db), before);
    assert_sound(&db);
}

#[test]
fn destroy_removes_the_tables_everywhere() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let options = two(tiny());
    let db = open(&vfs, &options);
    fill(&db, 0);
    compact(&db);
    fill(&db, 300);
    db.close().unwrap();
    drop(db);
    let kept = mem.open(Path::new("/fast/notes.txt"), OpenOptions::CREATE).unwrap();
    kept.write_at(b"mine", 0, IoClass::Client).unwrap();
    // A directory of tables is not a database.
    let report = destroy_with(vfs.as_ref(), "/slow", &tiny()).unwrap();
    assert!(report.removed.is_empty() && !report.directory_removed && !report.left.is_empty());
    // The stored options name the directories.
    let report = destroy_with(vfs.as_ref(), "/db", &tiny()).unwrap();
    assert!(report.directory_removed && !mem.exists(Path::new("/slow")).unwrap(), "{report:?}");
    assert_eq!(report.left, [PathBuf::from("/fast/notes.txt")]);
    assert_eq!(mem.list(Path::new("/fast")).unwrap(), [PathBuf::from("notes.txt")]);
}

#[test]
fn unfinished_tables_are_removed_everywhere() {
    let mem = MemVfs::new();
    let vfs = as_vfs(&mem);
    let options = two(tiny());
    let db = open(&vfs, &options);
    fill(&db, 0);
    db.close().unwrap();
    drop(db);
    for path in ["/fast/900000.sat", "/slow/900001.sat"] {
        mem.open(Path::new(path), OpenOptions::CREATE).unwrap();
    }
    let db = open(&vfs, &options);
    db.wait_idle().unwrap();
    let left = [tables(&mem, "/fast"), tables(&mem, "/slow")].concat();
    let unfinished = ["900000.sat", "900001.sat"];
    assert!(left.iter().all(|name| !unfinished.contains(&name.as_str())), "{left:?}");
    // Numbers of files in all directories count.
    fill(&db, 300);
    assert!(tables(&mem, "/fast").iter().any(|name| name.as_str() > "900001.sat"));
}

/// The names of tables are durable before the manifest names them.
#[test]
fn a_directory_that_cannot_be_synced_fails_the_flush() {
    let mem = MemVfs::new();
    let faults = FaultVfs::new(as_vfs(&mem));
    let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
    let options = two(tiny());
    let db = open(&vfs, &options);
    db.put("key", "value").unwrap();
    let rule = FaultRule::new(Fault::Io).on(VfsOperation::SyncDir).path("/fast");
    let rule = faults.add(rule);
    assert!(db.flush().is_err() && db.live_tables().is_empty());
    faults.remove_rule(rule);
    db.resume().unwrap();
    db.flush().unwrap();
    assert!(!tables(&mem.crash_image(CrashChoice::SyncedOnly), "/fast").is_empty());
}

#[test]
fn styles_place_their_tables_or_refuse() {
    let mut options = two(small("rocksdb-universal", 4 << 10));
    let mem = MemVfs::new();
    let db = open(&as_vfs(&mem), &options);
    for from in 0..8 {
        fill(&db, 300 * from);
        db.wait_idle().unwrap();
    }
    assert!(tables(&mem, "/db").is_empty() && !tables(&mem, "/slow").is_empty());
    assert_eq!(contents(&db).len(), 2400);
    assert_sound(&db);
    options.column_family.compaction_style = CompactionStyle::Fifo;
    let error = refused(Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]));
    assert!(error.contains("paths=/fast:") && error.contains("fifo"), "{error}");
    let guards = two(small("pebblesdb", 4 << 10));
    let mem = MemVfs::new();
    let db = open(&as_vfs(&mem), &guards);
    fill(&db, 0);
    compact(&db);
    assert!(tables(&mem, "/fast").is_empty() && !tables(&mem, "/slow").is_empty());
}

#[test]
fn the_option_is_text() {
    let mut options = Options::default();
    options.set("db_paths", "/fast:10GiB, /slow:2TiB").unwrap();
    assert_eq!(
        options.paths,
        [TablePath::new("/fast", 10 << 30), TablePath::new("/slow", 2 << 40)]
    );
    assert_eq!(options.get("paths").unwrap(), "/fast:10GiB,/slow:2TiB");
    options.set("cf_paths", "/own:0").unwrap();
    assert_eq!(options.column_family.family_paths, [TablePath::new("/own", 0)]);
    let error = options.set("paths", "/fast").unwrap_err().to_string();
    assert!(error.contains("/fast:10GiB"), "{error}");
}
