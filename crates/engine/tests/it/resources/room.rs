//! The room that logs take: what is reserved before it is needed, given back when it is not, and
//! what becomes of a database that cannot have it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation};
use sateen::{Db, Health, Options, WriteOptions};

use crate::support::common::{Random, as_vfs, assert_sound, tiny};

const KIB: u64 = 1 << 10;
/// Long after this, on any machine, a database that mends itself has done so.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the file system holds of the files in `directory` whose names end so, by name.
fn blocks(directory: &Path, end: &str) -> Vec<(PathBuf, u64)> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let of_kind = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(end));
    let mut all: Vec<_> =
        of_kind.map(|entry| (entry.path(), entry.metadata().unwrap().blocks() * 512)).collect();
    all.sort();
    all
}

fn total(files: &[(PathBuf, u64)]) -> u64 {
    files.iter().map(|(_, bytes)| bytes).sum()
}

#[test]
fn small_databases_are_small_open_and_closed() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.column_family.memtable_bytes = 20 << 30;
    let mut closed = 0;
    for number in 0..5 {
        let directory = place.path().join(number.to_string());
        let db = Db::open(&directory, options.clone()).unwrap();
        let sync = WriteOptions { sync: true, ..WriteOptions::default() };
        db.writing(&sync).put("key", "value").unwrap();
        while db.step().unwrap() {}
        let open = blocks(&directory, ".wal");
        assert!(open.len() == 2 && total(&open) <= 256 * KIB, "{open:?}");
        db.close().unwrap();
        let files = blocks(&directory, "");
        assert!(
            blocks(&directory, ".wal").iter().all(|(_, bytes)| *bytes <= 16 * KIB),
            "{files:?}"
        );
        closed += total(&files);
        let db = Db::open(&directory, options.clone()).unwrap();
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }
    assert!(closed < 1 << 20, "{closed} bytes of five closed databases");
}

/// The log in use is never touched: what is reserved is the next one's, and follows what the log in
/// use has got. A close gives back the rest of both, and no record.
#[test]
fn the_next_log_gets_as_much_as_the_log_in_use_has_got() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = place.path().join("db");
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.column_family.memtable_bytes = 8 << 20;
    let db = Db::open(&directory, options.clone()).unwrap();
    let value = |number: u64| Random::new(number).next().to_le_bytes().repeat(1 << 10);
    for number in 0..400_u64 {
        db.put(number.to_be_bytes(), value(number)).unwrap();
        db.step().unwrap();
        let logs = blocks(&directory, ".wal");
        let [(_, _), (_, next)] = logs.as_slice() else { panic!("{logs:?}") };
        let written = (number + 1) * (8 << 10);
        // Doubled at most, and halved at most while a step is not worth a call.
        assert!(*next <= (2 * written).max(64 * KIB) + 64 * KIB, "{next} after {written}");
        assert!(2 * *next >= written, "{next} after {written}");
    }
    db.close().unwrap();
    let logs = blocks(&directory, ".wal");
    let [(log, bytes)] = logs.as_slice() else { panic!("{logs:?}") };
    let length = log.metadata().unwrap().len();
    assert!(*bytes < length + 64 * KIB, "{bytes} of a log of {length}");
    let db = Db::open(&directory, options).unwrap();
    for number in 0..400_u64 {
        let found = db.get(number.to_be_bytes()).unwrap();
        assert!(found == Some(value(number)), "{number} is gone");
    }
    assert_sound(&db);
}

/// A log that is kept for readers keeps nothing that it does not have, though nobody closed it.
#[test]
fn what_a_process_that_died_had_reserved_is_given_back() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = place.path().join("db");
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.wal_ttl_seconds = 3600;
    let db = Db::open(&directory, options.clone()).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    let (log, _) = blocks(&directory, ".wal").pop().unwrap();
    // As it would be had the process died before it closed the log.
    let file = std::fs::OpenOptions::new().write(true).open(&log).unwrap();
    let mode = rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, mode, 0, 4 << 20).unwrap();
    drop(file);
    assert!(total(&blocks(&directory, ".wal")) >= 4 << 20);
    let db = Db::open(&directory, options).unwrap();
    assert!(log.exists() && total(&blocks(&directory, ".wal")) <= 256 * KIB);
    assert!(db.updates_since(1).unwrap().valid(), "it is there for readers");
}

/// Space in advance is a convenience: whatever its error, all goes on without.
#[test]
fn no_failure_of_a_preallocation_is_a_failure() {
    for fault in [Fault::Io, Fault::NoSpace, Fault::Quota, Fault::Unsupported] {
        for on in [VfsOperation::Preallocate, VfsOperation::FreeSpace] {
            let vfs = MemVfs::new();
            let faulty = FaultVfs::new(as_vfs(&vfs));
            if fault.applies_to(on) {
                faulty.add(FaultRule::new(fault).on(on));
            }
            for round in 0..3 {
                let db = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]).unwrap();
                for number in 0..200 {
                    db.put(format!("key{number}"), vec![round; 100]).unwrap();
                }
                while db.step().unwrap() {}
                assert_eq!(db.health().0, Health::Ok);
                assert_eq!(db.get("key7").unwrap().unwrap(), vec![round; 100]);
                db.close().unwrap();
            }
        }
    }
}

/// Memtables may be allowed more than there is memory: logs are not.
#[test]
fn memtables_of_any_size_open() {
    for bytes in [1, 1 << 40, 1 << 62, 1 << 63, u64::MAX] {
        let mut options = Options { background_threads: 0, ..Options::default() };
        options.column_family.memtable_bytes = bytes;
        let vfs = MemVfs::new();
        for _ in 0..2 {
            let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
            db.put("key", "value").unwrap();
            while db.step().unwrap() {}
            db.flush().unwrap();
            assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]), "{bytes}");
            db.close().unwrap();
        }
    }
}

/// Whatever fails while a database is created, the next open finds a place for one, or one.
#[test]
fn after_a_create_that_failed_the_next_one_works() {
    let mut taken = 0;
    for fault in [Fault::Io, Fault::NoSpace] {
        for nth in 1.. {
            let vfs = MemVfs::new();
            let faulty = FaultVfs::new(as_vfs(&vfs));
            let rule = faulty.add(FaultRule::new(fault).nth(nth).once());
            let create = Options { error_if_exists: true, ..tiny() };
            let again =
                |options: &Options| Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]);
            let made = Db::open_with(Arc::new(faulty.clone()), "/db", create.clone(), &[]);
            if faulty.happened(rule) == 0 {
                assert!(nth > 10, "there was little to fail");
                break;
            }
            if made.is_err() {
                match again(&create) {
                    Ok(db) => db.put("key", "value").unwrap(),
                    // What failed was the last sync.
                    Err(error) => {
                        assert!(error.to_string().contains("already"), "{fault:?} {nth}: {error}");
                        taken += 1;
                    }
                }
            }
            drop(made);
            let db = again(&tiny()).unwrap_or_else(|error| panic!("{fault:?} {nth}: {error}"));
            db.put("key", "value").unwrap();
            assert_sound(&db);
        }
    }
    assert!(taken <= 2, "{taken} creates failed though the database was there");
}

/// Other files have filled a small file system. Once they are gone writes go on, though less is
/// free than two memtables would take.
#[test]
fn writes_go_on_where_little_space_is_all_there_is() {
    let vfs = MemVfs::new();
    vfs.set_capacity(Some(60 << 20));
    let options = Options { background_threads: 0, ..Options::default() };
    let db = Db::open_with(as_vfs(&vfs), "/db", options, &[]).unwrap();
    db.put("before", "1").unwrap();
    vfs.create_dir_all(Path::new("/other")).unwrap();
    let other = Path::new("/other/file");
    let file = vfs.open(other, OpenOptions::CREATE).unwrap();
    file.write_at(&vec![1; 60 << 20], 0, IoClass::Client).unwrap_err();
    let refused = (0..1000).find_map(|_| db.put("meanwhile", vec![b'x'; 4000]).err()).unwrap();
    assert!(refused.is_no_space(), "{refused}");
    drop(file);
    vfs.remove(other).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while db.health().0 != Health::Ok {
        db.step().unwrap();
        assert!(Instant::now() < deadline, "still {:?}", db.health());
        std::thread::sleep(Duration::from_millis(2));
    }
    db.put("after", "2").unwrap();
    assert_eq!(db.get("before").unwrap().as_deref(), Some(&b"1"[..]));
    assert_sound(&db);
}
