//! Errors of the environment: the operating system refuses to open or to read something. That says
//! nothing about what is stored, so a repair changes nothing, a check and a scrub say what they
//! could not read, and an open keeps what it cannot look at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sateen::test_support::clock::VirtualTime;
use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation};
use sateen::{
    CheckReport, Db, Error, Options, ReadOptions, RepairListener, RepairOptions, RepairReport,
    Result, WriteOptions, check_with, repair_as, repair_with,
};

use crate::faults::repair::salvage::copied;
use crate::faults::repair::whole::{files, flip, open_repaired};
use crate::support::common::{Contents, as_vfs, read_all, tiny};

/// EMFILE, ENFILE, EACCES, EPERM, ENOMEM, EIO, and what a file system of a network gives (ESTALE).
const ERRNOS: [i32; 7] = [24, 23, 13, 1, 12, 5, 116];
const EMFILE: i32 = 24;
const EIO: i32 = 5;
const READING: [VfsOperation; 5] = [
    VfsOperation::Open,
    VfsOperation::Read,
    VfsOperation::Len,
    VfsOperation::List,
    VfsOperation::Exists,
];

/// A small database of three files of tables, with something in its log; what it holds.
fn made() -> (MemVfs, Contents) {
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
    for round in 0..3 {
        for key in (round..30).step_by(2) {
            db.put(format!("key{key:02}"), format!("value {round} {}", "x".repeat(30))).unwrap();
        }
        db.flush().unwrap();
    }
    db.write(&batch("logged"), &WriteOptions { sync: true, ..WriteOptions::default() }).unwrap();
    db.write(&batch("later"), &WriteOptions::default()).unwrap();
    let contents = read_all(&db.default_column_family(), &ReadOptions::default());
    db.close().unwrap();
    (vfs, contents)
}

fn batch(key: &str) -> sateen::WriteBatch {
    let mut batch = sateen::WriteBatch::new();
    batch.put(key, "in the log").unwrap();
    batch
}

/// Databases that a repair has something to do with, and one that it has not.
fn starts() -> Vec<(&'static str, MemVfs)> {
    let start = |name, change: &dyn Fn(&MemVfs)| {
        let (vfs, _) = made();
        change(&vfs);
        (name, vfs)
    };
    let remove = |vfs: &MemVfs, part: &str| {
        files(vfs, part).iter().for_each(|path| vfs.remove(path).unwrap());
    };
    vec![
        start("whole", &|_| {}),
        start("a damaged table", &|vfs| flip(vfs, &files(vfs, ".sat")[0], 4096 + 10)),
        start("a table without its end", &|vfs| {
            let path = &files(vfs, ".sat")[1];
            let length = vfs.contents(path).unwrap().len() as u64;
            (1..200).for_each(|back| flip(vfs, path, length - back));
        }),
        start("no manifest", &|vfs| remove(vfs, "MANIFEST")),
        start("no CURRENT", &|vfs| remove(vfs, "CURRENT")),
        start("a damaged log", &|vfs| flip(vfs, &files(vfs, ".wal")[0], 150)),
        start("a damaged OPTIONS", &|vfs| flip(vfs, Path::new("/db/OPTIONS"), 20)),
    ]
}

/// All that is in the directory, but for LOCK.
fn everything(vfs: &MemVfs) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for directory in ["/db", "/db/lost"].map(Path::new) {
        for name in vfs.list(directory).unwrap_or_default() {
            let path = directory.join(&name);
            if name != Path::new("LOCK") {
                // A directory is an entry without bytes.
                found.insert(path.clone(), vfs.contents(&path).unwrap_or_default());
            }
        }
    }
    found
}

/// What happens when a call fails, at each call of `operation` in turn until there are no more.
fn fail_each(
    vfs: &MemVfs,
    operation: VfsOperation,
    how: How,
    act: &mut dyn FnMut(&MemVfs, &FaultVfs, &str),
) -> u64 {
    for nth in 1.. {
        let (errno, for_good) = match how {
            How::Once(errno) => (errno, false),
            How::ForGood(errno) => (errno, true),
            How::OnceByTurns => (ERRNOS[nth as usize % ERRNOS.len()], false),
        };
        let vfs = copied(vfs);
        let faulty = FaultVfs::new(as_vfs(&vfs));
        let rule = FaultRule::new(Fault::Errno(errno)).on(operation);
        let rule = faulty.add(if for_good { rule.from_nth(nth) } else { rule.nth(nth) });
        let what = format!("error {errno} of {operation:?} {nth}, for good: {for_good}");
        act(&vfs, &faulty, &what);
        if faulty.happened(rule) == 0 {
            return nth - 1;
        }
    }
    0
}

/// How calls fail, each in turn.
#[derive(Clone, Copy)]
enum How {
    /// With this error.
    Once(i32),
    /// With this error, and all calls after it, too.
    ForGood(i32),
    /// The first with one error, the next with another.
    OnceByTurns,
}

/// All errors at all calls of a database that is whole or has no manifest; of others each call
/// fails with some error, and then with one for good.
fn ways(start: &str) -> Vec<How> {
    let mut ways = vec![How::ForGood(EMFILE)];
    if ["whole", "no manifest"].contains(&start) {
        ways.extend(ERRNOS.map(How::Once));
    } else {
        ways.push(How::OnceByTurns);
    }
    ways
}

#[test]
fn a_repair_that_may_not_read_something_changes_nothing() {
    for (start, vfs) in starts() {
        let before = everything(&vfs);
        assert!(before.len() > 5, "{before:?}");
        let whole = copied(&vfs);
        let report = repair_with(as_vfs(&whole), "/db", &tiny());
        assert!(report.is_ok(), "{start}: {report:?}");
        for operation in READING {
            for how in ways(start) {
                let calls = fail_each(&vfs, operation, how, &mut |vfs, faulty, what| {
                    let repaired = repair_with(Arc::new(faulty.clone()), "/db", &tiny());
                    let struck = faulty.sites().iter().any(|(_, counts)| counts.faults > 0);
                    let Err(error) = repaired else {
                        assert!(!struck, "{start}: {what}: changed: {repaired:?}");
                        return;
                    };
                    assert!(error.is_environment(), "{start}: {what}: {error}");
                    let after = everything(vfs);
                    let names = |of: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<PathBuf> {
                        of.keys().cloned().collect()
                    };
                    assert_eq!(names(&after), names(&before), "{start}: {what}: changed");
                    assert!(after == before, "{start}: {what}: changed");
                });
                assert!(calls > 0, "{start}: {operation:?} is not called");
            }
        }
    }
}

/// Lets a repair go on for a number of reads and writes.
#[derive(Default)]
struct Patience {
    left: AtomicU64,
    bytes_read: AtomicU64,
}

impl RepairListener for Patience {
    fn progress(&self, bytes_read: u64) {
        let before = self.bytes_read.swap(bytes_read, Ordering::Relaxed);
        assert!(before <= bytes_read, "{before} and then {bytes_read}");
    }

    fn is_cancelled(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }
}

#[test]
fn a_repair_that_is_cancelled_at_any_read_or_write_changes_nothing() {
    for (start, vfs) in starts() {
        let before = everything(&vfs);
        for patience in 0.. {
            let vfs = copied(&vfs);
            let listener = Arc::new(Patience::default());
            listener.left.store(patience, Ordering::Relaxed);
            let how = RepairOptions { listener: Some(listener.clone()), ..Default::default() };
            match repair_as(as_vfs(&vfs), "/db", &tiny(), &[], &how) {
                Ok(_) => {
                    // It was published before the listener wanted to end it.
                    assert!(patience > 10, "{start}: only {patience} calls");
                    assert!(listener.bytes_read.load(Ordering::Relaxed) > 0, "{start}");
                    open_repaired(&vfs);
                    break;
                }
                Err(Error::Cancelled(_)) => {
                    assert!(everything(&vfs) == before, "{start}: changed after {patience} calls");
                }
                Err(error) => panic!("{start}: after {patience} calls: {error}"),
            }
        }
    }
}

/// A write that fails before the new manifest counts is taken back, too.
#[test]
fn a_repair_that_finds_no_room_changes_nothing() {
    let operations = [
        VfsOperation::Create,
        VfsOperation::Write,
        VfsOperation::Sync,
        VfsOperation::HardLink,
        VfsOperation::CreateDir,
    ];
    for (start, vfs) in starts() {
        let before = everything(&vfs);
        for operation in operations {
            // ENOSPC.
            fail_each(&vfs, operation, How::Once(28), &mut |vfs, faulty, what| {
                let repaired = repair_with(Arc::new(faulty.clone()), "/db", &tiny());
                if let Err(error) = repaired {
                    assert!(error.is_no_space(), "{start}: {what}: {error}");
                    assert!(everything(vfs) == before, "{start}: {what}: changed");
                }
            });
        }
    }
}

#[test]
fn a_check_that_may_not_read_something_says_so_and_no_more() {
    for (start, vfs) in starts() {
        let look = |vfs: Arc<dyn Vfs>| check_with(vfs, "/db", &tiny(), &[], &mut |_, _| {});
        let texts = |report: &CheckReport| -> Vec<String> {
            report.problems.iter().map(ToString::to_string).collect()
        };
        let report = look(as_vfs(&vfs)).unwrap();
        assert!(report.unreadable.is_empty(), "{start}: {report:#?}");
        assert_eq!(report.is_sound(), start == "whole", "{start}: {report:#?}");
        let known = texts(&report);
        for operation in READING {
            for how in ways(start) {
                fail_each(&vfs, operation, how, &mut |vfs, faulty, what| {
                    let before = everything(vfs);
                    let struck = |faulty: &FaultVfs| {
                        faulty.sites().iter().any(|(_, counts)| counts.faults > 0)
                    };
                    match look(Arc::new(faulty.clone())) {
                        Err(error) => assert!(error.is_environment(), "{start}: {what}: {error}"),
                        Ok(report) => {
                            let told = !report.unreadable.is_empty();
                            assert_eq!(told, struck(faulty), "{start}: {what}: {report:#?}");
                            let mut new = texts(&report);
                            new.retain(|text| !known.contains(text));
                            // Without its manifest each file is looked at for itself, and says
                            // of the same damage something else.
                            let held = report.manifest.is_some() || start == "whole";
                            assert!(new.is_empty() || !held, "{start}: {what}: {new:#?}");
                        }
                    }
                    assert!(everything(vfs) == before, "{start}: {what}");
                });
            }
        }
    }
}

#[test]
fn a_database_that_checks_itself_tells_what_it_could_not_read_from_damage() {
    let _time = VirtualTime::begin(1);
    let (vfs, _) = made();
    for operation in READING {
        for how in ways("open") {
            fail_each(&vfs, operation, how, &mut |_, faulty, what| {
                // Opened without a fault: the rule counts from the check on.
                let Ok(db) = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]) else {
                    return;
                };
                match db.check(&mut |_, _| {}) {
                    Err(error) => assert!(error.is_environment(), "{what}: {error}"),
                    Ok(report) => assert!(report.problems.is_empty(), "{what}: {report:#?}"),
                }
                match db.scrub(None) {
                    Err(error) => assert!(error.is_environment(), "{what}: {error}"),
                    Ok(report) => assert!(report.problems.is_empty(), "{what}: {report:#?}"),
                }
            });
        }
    }
}

#[test]
fn a_scrub_counts_what_it_could_not_read_apart() {
    let _time = VirtualTime::begin(1);
    let (vfs, _) = made();
    let faulty = FaultVfs::new(as_vfs(&vfs));
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]).unwrap();
    let class = IoClass::Deep(u8::MAX);
    let rule = FaultRule::new(Fault::Errno(EMFILE)).on(VfsOperation::Open).path_contains(".sat");
    faulty.add(rule);
    faulty.add(FaultRule::new(Fault::Errno(EIO)).on(VfsOperation::Read).class(class));
    let report = db.scrub(None).unwrap();
    assert!(report.problems.is_empty() && report.unreadable.len() >= 3, "{report:?}");
    assert!(!report.is_sound() && db.metrics().scrub.problems == 0, "{report:?}");
    faulty.clear();
    assert!(db.scrub(None).unwrap().is_sound());
}

/// Logs that only readers want are removed if they are of no use; not because of an open file.
#[test]
fn an_open_that_may_not_read_a_kept_log_fails_and_keeps_it() {
    let options = Options { wal_ttl_seconds: 1_000_000, ..tiny() };
    let vfs = MemVfs::new();
    for round in 0..4 {
        let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
        db.put(format!("key{round}"), "value").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
    }
    let updates = |vfs: &MemVfs| {
        let db = Db::open_with(as_vfs(vfs), "/db", options.clone(), &[]).unwrap();
        let mut updates = db.updates_since(1).unwrap();
        let mut seen = 0;
        while updates.valid() {
            seen += 1;
            updates.next();
        }
        updates.status().unwrap();
        drop(updates);
        db.close().unwrap();
        seen
    };
    let expected = updates(&copied(&vfs));
    assert!(expected >= 4, "{expected}");
    for operation in [VfsOperation::Open, VfsOperation::Read, VfsOperation::Len] {
        for errno in ERRNOS.into_iter().filter(|errno| *errno != EIO) {
            fail_each(&vfs, operation, How::Once(errno), &mut |vfs, faulty, what| {
                let opened = Db::open_with(Arc::new(faulty.clone()), "/db", options.clone(), &[]);
                if let Ok(db) = opened {
                    let _told = db.close();
                }
                assert_eq!(updates(vfs), expected, "{what}: a log is gone");
            });
        }
    }
}

/// What the device cannot read for good is given up where that was asked for, a page at a time.
#[test]
fn what_the_device_cannot_read_is_given_up_on_demand() {
    let giving_up = RepairOptions { give_up_unreadable: true, ..RepairOptions::default() };
    let give_up = |vfs: &FaultVfs| -> Result<RepairReport> {
        repair_as(Arc::new(vfs.clone()), "/db", &tiny(), &[], &giving_up)
    };
    for part in [".sat", ".wal", "MANIFEST", "CURRENT", "OPTIONS"] {
        let (vfs, contents) = made();
        let path = files(&vfs, part)[0].clone();
        let original = vfs.contents(&path).unwrap();
        let faulty = FaultVfs::new(as_vfs(&vfs));
        let unreadable = FaultRule::new(Fault::Io).on(VfsOperation::Read).path(path.clone());
        faulty.add(unreadable);
        let before = everything(&vfs);
        let refused = repair_with(Arc::new(faulty.clone()), "/db", &tiny()).unwrap_err();
        assert!(refused.is_device_failure(), "{part}: {refused}");
        assert!(everything(&vfs) == before, "{part}");
        let report = give_up(&faulty).unwrap_or_else(|error| panic!("{part}: {error}"));
        let name = path.display().to_string();
        let tells = |text: &String| text.contains(&name) && text.contains("given up");
        assert!(report.notes.iter().any(tells), "{part}: {report:?}");
        assert!(!report.losses.is_empty(), "{part}: {report:?}");
        faulty.clear();
        let lost = Path::new("/db/lost").join(path.file_name().unwrap());
        assert_eq!(vfs.contents(&lost).unwrap(), original, "{part}: kept as it was");
        let (_, after) = open_repaired(&vfs);
        if [".sat", ".wal"].contains(&part) {
            assert!(!after.is_empty() && after.len() <= contents.len(), "{part}: {report:?}");
        } else {
            assert_eq!(after, contents, "{part}: {report:?}");
        }
    }
    // All else is still refused.
    let (vfs, _) = made();
    let faulty = FaultVfs::new(as_vfs(&vfs));
    faulty.add(FaultRule::new(Fault::Errno(EMFILE)).on(VfsOperation::Read).path_contains(".sat"));
    let before = everything(&vfs);
    assert!(give_up(&faulty).unwrap_err().is_environment());
    assert!(everything(&vfs) == before);
}

/// EXDEV, EOPNOTSUPP, EPERM, EMLINK, ENOSYS, EACCES, EINVAL.
const NO_LINKS: [i32; 7] = [18, 95, 1, 31, 38, 13, 22];

#[test]
fn a_checkpoint_copies_where_files_cannot_be_linked() {
    let (vfs, contents) = made();
    for errno in NO_LINKS {
        let vfs = copied(&vfs);
        let faulty = FaultVfs::new(as_vfs(&vfs));
        for operation in [VfsOperation::CloneFile, VfsOperation::HardLink] {
            faulty.add(FaultRule::new(Fault::Errno(errno)).on(operation));
        }
        let db = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]).unwrap();
        db.checkpoint("/copy").unwrap_or_else(|error| panic!("error {errno}: {error}"));
        assert!(faulty.calls(VfsOperation::HardLink) > 0);
        db.put("later", "is not in the copy").unwrap();
        db.delete_range("key", "kez").unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        db.close().unwrap();
        let copy = Db::open_with(as_vfs(&vfs), "/copy", tiny(), &[]).unwrap();
        let family = copy.default_column_family();
        assert_eq!(read_all(&family, &ReadOptions::default()), contents, "error {errno}");
        crate::support::common::assert_sound(&copy);
    }
}

#[test]
fn a_checkpoint_ends_when_its_database_is_closed() {
    let (vfs, _) = made();
    let faulty = FaultVfs::new(as_vfs(&vfs));
    for operation in [VfsOperation::CloneFile, VfsOperation::HardLink] {
        faulty.add(FaultRule::new(Fault::Errno(NO_LINKS[0])).on(operation));
    }
    let copying = FaultRule::new(Fault::Hang).on(VfsOperation::Write).path_contains("/copy/");
    let copying = faulty.add(copying);
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]).unwrap();
    let made = std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| db.checkpoint("/copy"));
        while faulty.happened(copying) == 0 {
            std::thread::yield_now();
        }
        db.close().unwrap();
        faulty.clear();
        checkpoint.join().unwrap()
    });
    assert!(matches!(made, Err(Error::Closed)), "{made:?}");
    assert!(vfs.list(Path::new("/copy")).unwrap_or_default().is_empty());
    open_repaired(&vfs);
}

#[test]
fn a_repair_keeps_everything_where_files_cannot_be_linked() {
    for (start, vfs) in starts() {
        let linked = copied(&vfs);
        repair_with(as_vfs(&linked), "/db", &tiny()).unwrap();
        let lost = |vfs: &MemVfs| -> BTreeMap<PathBuf, Vec<u8>> {
            let all = everything(vfs).into_iter();
            all.filter(|(path, _)| path.starts_with("/db/lost/")).collect()
        };
        let expected = lost(&linked);
        assert!(!expected.is_empty(), "{start}");
        for errno in NO_LINKS {
            let vfs = copied(&vfs);
            let faulty = FaultVfs::new(as_vfs(&vfs));
            faulty.add(FaultRule::new(Fault::Errno(errno)).on(VfsOperation::HardLink));
            repair_with(Arc::new(faulty), "/db", &tiny()).unwrap();
            assert!(lost(&vfs) == expected, "{start}: error {errno}");
            open_repaired(&vfs);
        }
    }
}

/// A name that is not there is missing, whatever the operating system says of others.
#[test]
fn only_a_name_that_is_not_there_is_missing() {
    let (vfs, _) = made();
    let path = files(&vfs, ".sat")[0].clone();
    let file = vfs.open(&path, OpenOptions::READ).unwrap();
    drop(file);
    vfs.remove(&path).unwrap();
    let report = check_with(as_vfs(&vfs), "/db", &tiny(), &[], &mut |_, _| {}).unwrap();
    let told = report.problems.iter().any(|problem| problem.to_string().contains("missing file"));
    assert!(told && report.unreadable.is_empty(), "{report:#?}");
}
