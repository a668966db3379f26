//! A database needs few descriptors, whatever it has: it works under a low limit of the process,
//! beside an application that takes what is left, and where an open fails for want of one.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sateen::test_support::clock::VirtualTime;
use sateen::vfs::{Fault, FaultRule, FaultVfs, MemVfs, Vfs, VfsOperation};
use sateen::{CompactRangeOptions, Db, Health, Options};

use crate::support::common::{own_test, tiny};

const LIMITED: &str = "SATEEN_TEST_DESCRIPTORS";

/// Runs `scenario` of [`limited_process`] in a process that may have `limit` files open.
fn limited(scenario: &str, limit: u64) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &own_test(module_path!(), "limited_process"), "--nocapture"])
        .env(LIMITED, format!("{scenario} {limit}"))
        .status()
        .unwrap();
    assert!(status.success(), "{scenario} with {limit} descriptors: {status}");
}

/// What the other process runs; as a test of its own it does nothing.
#[test]
fn limited_process() {
    let Ok(told) = std::env::var(LIMITED) else { return };
    let (scenario, limit) = told.split_once(' ').unwrap();
    let place = tempfile::tempdir().unwrap();
    let limit: u64 = limit.parse().unwrap();
    let lower = || {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum }).unwrap();
    };
    match scenario {
        "flushes" => {
            lower();
            overwrite_and_flush(place.path(), limit);
        }
        "runs" => {
            many_runs(place.path());
            lower();
            read_many_runs(place.path(), limit);
        }
        "application" => {
            many_runs(place.path());
            lower();
            beside_an_application(place.path());
        }
        other => panic!("no scenario {other}"),
    }
}

const RUNS: u32 = 300;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Each key in a run of level 0 and a file of its own.
fn many_runs(directory: &Path) {
    let mut options = Options::default();
    options.column_family.disable_auto_compactions = true;
    options.column_family.level0_slowdown = 100_000;
    options.column_family.level0_stop = 100_000;
    let db = Db::open(directory, options).unwrap();
    for number in 0..RUNS {
        db.put(key(number), key(number)).unwrap();
        db.flush().unwrap();
    }
    db.close().unwrap();
}

fn assert_all_runs(db: &Db) {
    let mut iter = db.cursor(&sateen::ReadOptions::default()).unwrap();
    iter.seek_to_first();
    for number in 0..RUNS {
        assert!(iter.valid(), "key {number}");
        assert_eq!((iter.key(), iter.value()), (&key(number)[..], &key(number)[..]));
        iter.next();
    }
    assert!(!iter.valid() && iter.status().is_ok(), "{:?}", iter.status());
    for number in 0..RUNS {
        assert_eq!(db.get(key(number)).unwrap().unwrap(), key(number));
    }
}

/// The limit's half is not exceeded, and nothing is refused.
fn assert_well(db: &Db, limit: u64) {
    let files = db.metrics().table_files;
    assert!(files.descriptors_max <= limit / 2, "{files:?}");
    assert!(files.descriptors <= files.descriptors_max, "{files:?}");
    assert_eq!(u64::from(db.options().max_open_files), files.descriptors_max);
    assert_eq!(db.health().0, Health::Ok, "{:?}", db.health());
}

fn overwrite_and_flush(directory: &Path, limit: u64) {
    let db = Db::open(directory, Options::default()).unwrap();
    for turn in 0..600u32 {
        db.put(key(turn % 50), turn.to_be_bytes()).unwrap();
        db.flush().unwrap();
    }
    let all = |db: &Db| {
        for number in 0..50u32 {
            assert_eq!(db.get(key(number)).unwrap().unwrap(), (550 + number).to_be_bytes());
        }
    };
    all(&db);
    assert_well(&db, limit);
    let family = db.default_column_family();
    family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    all(&db);
    db.close().unwrap();
    drop(db);
    let db = Db::open(directory, Options::default()).unwrap();
    all(&db);
    assert_well(&db, limit);
}

fn read_many_runs(directory: &Path, limit: u64) {
    for max_open_files in [200, u32::MAX] {
        let options = || Options { max_open_files, ..Options::default() };
        let db = Db::open(directory, options()).unwrap();
        let before = db.cursor(&sateen::ReadOptions::default()).unwrap();
        db.put("later", "written").unwrap();
        assert_all_runs_but_later(&db);
        let family = db.default_column_family();
        family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
        db.wait_idle().unwrap();
        drop(before);
        db.delete("later").unwrap();
        assert_all_runs(&db);
        assert_well(&db, limit);
        db.close().unwrap();
        drop(db);
        assert_all_runs(&Db::open_read_only(directory, options()).unwrap());
    }
}

fn assert_all_runs_but_later(db: &Db) {
    assert_eq!(db.get("later").unwrap().unwrap(), b"written");
    db.delete("later").unwrap();
    assert_all_runs(db);
    db.put("later", "written").unwrap();
}

/// The application opens files until it gets none any more; then the database closes some for what
/// it has to open.
fn beside_an_application(directory: &Path) {
    let db = Db::open(directory, Options::default()).unwrap();
    assert_all_runs(&db);
    assert!(db.metrics().table_files.descriptors > 10);
    let taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!taken.is_empty());
    assert_all_runs(&db);
    db.put("later", "written").unwrap();
    db.flush().unwrap();
    assert_eq!(db.get("later").unwrap().unwrap(), b"written");
    // A second database takes from the first.
    let other = tempfile::tempdir_in(directory).unwrap();
    let second = Db::open(other.path(), Options::default()).unwrap();
    second.put("key", "value").unwrap();
    second.flush().unwrap();
    assert_eq!(second.get("key").unwrap().unwrap(), b"value");
    assert_eq!((db.health().0, second.health().0), (Health::Ok, Health::Ok));
}

#[test]
fn flushes_need_few_descriptors() {
    [64, 128, 256].into_iter().for_each(|limit| limited("flushes", limit));
}

#[test]
fn iterators_and_compactions_over_many_files_need_few_descriptors() {
    [64, 256].into_iter().for_each(|limit| limited("runs", limit));
}

#[test]
fn what_an_application_takes_is_taken_from_tables() {
    limited("application", 128);
}

/// Opens, writes, flushes, compacts, reads, copies, and opens again. Returns the first error.
fn everything(vfs: &Arc<dyn Vfs>, memory: &MemVfs) -> sateen::Result<()> {
    for _ in 0..2 {
        let options = Options { background_threads: 0, max_open_files: 16, ..tiny() };
        let db = Db::open_with(vfs.clone(), "/db", options, &[])?;
        for number in 0..60u32 {
            db.put(key(number), [7; 100])?;
            if number % 10 == 9 {
                db.flush()?;
            }
        }
        db.compact_range(None, None, &CompactRangeOptions::default())?;
        let mut iter = db.cursor(&sateen::ReadOptions::default())?;
        iter.seek_to_first();
        let mut found = 0;
        while iter.valid() {
            found += 1;
            iter.next();
        }
        iter.status()?;
        assert_eq!(found, 60);
        drop(iter);
        let copy = Path::new("/copy");
        db.checkpoint(copy)?;
        db.wait_idle()?;
        assert_eq!(db.health().0, Health::Ok, "{:?}", db.health());
        db.close()?;
        drop(db);
        for name in memory.list(copy).unwrap() {
            memory.remove(&copy.join(name)).unwrap();
        }
        memory.remove_dir(copy).unwrap();
    }
    Ok(())
}

const NEEDING: [VfsOperation; 6] = [
    VfsOperation::Open,
    VfsOperation::Create,
    VfsOperation::List,
    VfsOperation::SyncDir,
    VfsOperation::Lock,
    VfsOperation::CloneFile,
];

#[test]
fn a_descriptor_that_is_missing_once_is_waited_for_everywhere() {
    let mut calls = 0;
    for operation in NEEDING {
        for nth in 1.. {
            let _time = VirtualTime::begin(nth);
            let memory = MemVfs::new();
            let faults = FaultVfs::new(Arc::new(memory.clone()));
            let rule = FaultRule::new(Fault::TooManyOpenFiles).on(operation).nth(nth);
            let rule = faults.add(rule);
            let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
            everything(&vfs, &memory)
                .unwrap_or_else(|error| panic!("{operation:?} {nth}: {error}"));
            if faults.happened(rule) == 0 {
                break;
            }
            calls += 1;
        }
    }
    assert!(calls > 60, "{calls}");
}

/// Without descriptors for longer than an open waits the error says so, and all is well as soon as
/// there are some.
#[test]
fn a_lasting_want_of_descriptors_is_told_and_passes() {
    let _time = VirtualTime::begin(1);
    let faults = FaultVfs::new(Arc::new(MemVfs::new()));
    let options = Options { background_threads: 0, ..tiny() };
    let none = || faults.add(FaultRule::new(Fault::TooManyOpenFiles));
    let open = || Db::open_with(Arc::new(faults.clone()), "/db", options.clone(), &[]);
    none();
    let error = open().unwrap_err().to_string();
    assert!(error.contains("open files") && error.contains("ulimit -n"), "{error}");
    faults.clear();
    let db = open().unwrap();
    db.put("key", "value").unwrap();
    none();
    let error = db.flush().unwrap_err().to_string();
    assert!(error.contains("ulimit -n"), "{error}");
    // What is in memory is there all the same.
    assert_eq!(db.get("key").unwrap().unwrap(), b"value");
    faults.clear();
    db.resume().unwrap();
    db.put("another", "value").unwrap();
    db.flush().unwrap();
    assert_eq!(db.health().0, Health::Ok);
    for key in ["key", "another"] {
        assert_eq!(db.get(key).unwrap().unwrap(), b"value");
    }
}
