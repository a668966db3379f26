//! Rules hit the operations that they name and no others, and each fault does what it says.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::*;
use crate::vfs::{CrashChoice, MemVfs};

const CLASS: IoClass = IoClass::Client;

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn vfs() -> (FaultVfs, MemVfs) {
    let mem = MemVfs::new();
    (FaultVfs::new(Arc::new(mem.clone())), mem)
}

fn create(vfs: &FaultVfs, name: &str) -> Arc<dyn VfsFile> {
    vfs.open(path(name), OpenOptions::CREATE).unwrap()
}

fn pattern() -> Vec<u8> {
    (0..3 * 4096).map(|n| (n / 4096 + 1) as u8).collect()
}

#[test]
fn each_error_is_the_systems_own_and_nothing_is_done() {
    let (vfs, mem) = vfs();
    let file = create(&vfs, "f");
    for (fault, kind) in [
        (Fault::Io, Errno::IO),
        (Fault::NoSpace, Errno::NOSPC),
        (Fault::Quota, Errno::DQUOT),
        (Fault::Interrupted, Errno::INTR),
    ] {
        let id = vfs.add(FaultRule::new(fault));
        let before = mem.operations();
        let error = file.write_at(b"data", 0, CLASS).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(kind.raw_os_error()));
        let expected = io::Error::from(kind).kind();
        assert_eq!(vfs.remove(path("f")).unwrap_err().kind(), expected);
        assert_eq!(vfs.rename(path("f"), path("g")).unwrap_err().kind(), expected);
        assert_eq!(vfs.sync_dir(path("")).unwrap_err().kind(), expected);
        assert_eq!(mem.operations(), before);
        assert_eq!(vfs.remove_rule(id), 4);
    }
    file.write_at(b"data", 0, CLASS).unwrap();
    assert_eq!(mem.contents(path("f")).unwrap(), b"data");
}

#[test]
fn every_operation_can_fail() {
    let (vfs, _) = vfs();
    let file = create(&vfs, "f");
    vfs.add(FaultRule::new(Fault::Io));
    let (a, b) = (path("f"), path("g"));
    assert!(vfs.open(a, OpenOptions::READ).is_err() && vfs.open(b, OpenOptions::CREATE).is_err());
    assert!(vfs.rename(a, b).is_err() && vfs.remove(a).is_err() && vfs.hard_link(a, b).is_err());
    assert!(vfs.clone_file(a, b).is_err() && vfs.list(path("")).is_err());
    assert!(vfs.create_dir_all(b).is_err() && vfs.remove_dir(b).is_err());
    assert!(vfs.sync_dir(path("")).is_err() && vfs.exists(a).is_err() && vfs.lock(b).is_err());
    assert!(vfs.free_space(a).is_err());
    assert!(file.read_at(&mut [0], 0, CLASS).is_err() && file.write_at(b"x", 0, CLASS).is_err());
    assert!(file.start_writeback(0, 1).is_err() && file.punch_hole(0, 1, CLASS).is_err());
    assert!(file.preallocate(0, 1).is_err() && file.truncate(0).is_err() && file.len().is_err());
    assert!(file.sync_data(CLASS).is_err());
    let sites = vfs.sites();
    assert_eq!(sites.len(), 22, "every method, and the creation that came before");
    assert!(sites.iter().skip(1).all(|(_, counts)| counts.calls >= counts.faults));
    assert_eq!(sites.iter().map(|(_, counts)| counts.faults).sum::<u64>(), 21);
}

#[test]
fn rules_select_by_operation_path_class_and_count() {
    let (vfs, _) = vfs();
    let (wal, sst) = (create(&vfs, "000001.wal"), create(&vfs, "000002.sst"));
    let fails = |file: &Arc<dyn VfsFile>, class| file.write_at(b"x", 0, class).is_err();

    vfs.add(FaultRule::new(Fault::Io).on(VfsOperation::Write).path_class("wal"));
    assert!(fails(&wal, CLASS) && !fails(&sst, CLASS) && wal.len().is_ok());
    vfs.clear();
    vfs.add(FaultRule::new(Fault::Io).path("000002.sst"));
    assert!(!fails(&wal, CLASS) && fails(&sst, CLASS));
    vfs.clear();
    vfs.add(FaultRule::new(Fault::Io).path_contains("0001"));
    assert!(fails(&wal, CLASS) && !fails(&sst, CLASS));
    vfs.clear();
    vfs.add(FaultRule::new(Fault::Io).class(IoClass::Flush));
    assert!(fails(&wal, IoClass::Flush) && !fails(&wal, IoClass::Wal) && wal.len().is_ok());
    vfs.clear();

    let id = vfs.add(FaultRule::new(Fault::Io).on(VfsOperation::Write).nth(3));
    let turns: Vec<_> = (0..5).map(|_| fails(&wal, CLASS)).collect();
    assert_eq!(turns, [false, false, true, false, false]);
    assert_eq!(vfs.happened(id), 1);
    vfs.clear();
    vfs.add(FaultRule::new(Fault::Io).on(VfsOperation::Write).from_nth(3));
    let turns: Vec<_> = (0..5).map(|_| fails(&wal, CLASS)).collect();
    assert_eq!(turns, [false, false, true, true, true]);
    vfs.clear();
    vfs.add(FaultRule::new(Fault::Io).once());
    assert!(fails(&wal, CLASS) && !fails(&wal, CLASS));
}

#[test]
fn probability_is_kept_and_replays_from_its_seed() {
    let draw = |seed| {
        let (vfs, _) = vfs();
        let file = create(&vfs, "f");
        vfs.add(FaultRule::new(Fault::Io).probability(0.25, seed));
        (0..1000).map(|_| file.len().is_err()).collect::<Vec<_>>()
    };
    let first = draw(7);
    assert_eq!(first, draw(7));
    assert_ne!(first, draw(8));
    let failed = first.iter().filter(|failed| **failed).count();
    assert!((150..350).contains(&failed), "{failed} of 1000");
}

#[test]
fn reads_are_short_flipped_stale_or_zero() {
    let (vfs, _) = vfs();
    let file = create(&vfs, "f");
    file.write_at(&pattern(), 0, CLASS).unwrap();
    let read = |fault, offset| {
        vfs.add(FaultRule::new(fault).on(VfsOperation::Read).once());
        let mut buffer = vec![9; 4096];
        let read = file.read_at(&mut buffer, offset, CLASS).unwrap();
        vfs.clear();
        buffer.truncate(read);
        buffer
    };
    assert_eq!(read(Fault::Short, 4096), [2; 2048]);
    assert_eq!(read(Fault::Zeros, 4096), [0; 4096]);
    assert_eq!(read(Fault::StaleBlock, 4096), [1; 4096]);
    assert_eq!(read(Fault::StaleBlock, 0), [2; 4096]);
    let flipped = read(Fault::FlippedBit, 8192);
    let differing: u32 = flipped.iter().map(|byte| (byte ^ 3).count_ones()).sum();
    assert_eq!(differing, 1);
    assert_eq!(read(Fault::Delay(Duration::ZERO), 8192), [3; 4096]);
    assert_eq!(read(Fault::Bandwidth(u64::MAX), 8192), [3; 4096]);
}

#[test]
fn transfers_follow_each_other() {
    let (vfs, _) = vfs();
    let file = create(&vfs, "f");
    vfs.add(FaultRule::new(Fault::Bandwidth(400 << 10)).on(VfsOperation::Write));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for at in 0..4 {
            let file = &file;
            scope.spawn(move || file.write_at(&[1; 4096], at * 4096, CLASS).unwrap());
        }
    });
    assert!(start.elapsed() >= Duration::from_millis(40));
}

#[test]
fn writes_are_short_flipped_lost_or_zero() {
    let write = |fault| {
        let (vfs, mem) = vfs();
        let file = create(&vfs, "f");
        file.write_at(&[1; 4096], 0, CLASS).unwrap();
        vfs.add(FaultRule::new(fault).on(VfsOperation::Write));
        let result = file.write_at(&[7; 4096], 0, CLASS);
        (result.map_err(|error| error.kind()), mem.contents(path("f")).unwrap())
    };
    let (result, left) = write(Fault::Short);
    assert_eq!(result, Err(io::ErrorKind::StorageFull));
    assert_eq!(left, [[7; 2048], [1; 2048]].concat());
    assert_eq!(write(Fault::StaleBlock), (Ok(()), vec![1; 4096]));
    assert_eq!(write(Fault::Zeros), (Ok(()), vec![0; 4096]));
    let (result, left) = write(Fault::FlippedBit);
    assert_eq!(result, Ok(()));
    assert_eq!(left.iter().map(|byte| (byte ^ 7).count_ones()).sum::<u32>(), 1);
}

#[test]
fn a_failed_sync_loses_what_was_pending_and_forbids_the_handle() {
    let (vfs, mem) = vfs();
    let file = create(&vfs, "f");
    vfs.sync_dir(path("")).unwrap();
    file.write_at(b"data", 0, CLASS).unwrap();
    vfs.add(FaultRule::new(Fault::Io).on(VfsOperation::Sync).once());
    assert!(file.sync_data(CLASS).is_err());
    let panics = |act: &dyn Fn()| catch_unwind(AssertUnwindSafe(act)).is_err();
    assert!(panics(&|| drop(file.sync_data(CLASS))));
    assert!(panics(&|| drop(file.write_at(b"x", 0, CLASS))));
    assert!(panics(&|| drop(file.truncate(0))));
    assert_eq!(vfs.breaches().len(), 3);
    // A sync through another handle does not save it either.
    vfs.open(path("f"), OpenOptions::READ).unwrap().sync_data(CLASS).unwrap();
    let left = mem.crash_image(CrashChoice::SyncedOnly).contents(path("f")).unwrap();
    assert_eq!(left, b"");
}

#[test]
fn a_call_hangs_until_its_rule_is_gone() {
    let (vfs, _) = vfs();
    let file = create(&vfs, "f");
    let id = vfs.add(FaultRule::new(Fault::Hang).on(VfsOperation::Sync));
    let (done, finished) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            file.sync_data(CLASS).unwrap();
            done.send(()).unwrap();
        });
        while vfs.happened(id) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(finished.try_recv(), Err(mpsc::TryRecvError::Empty));
        vfs.remove_rule(id);
        finished.recv().unwrap();
    });
}

#[test]
fn places_are_told_apart_by_their_line_and_can_be_failed_one_by_one() {
    let (vfs, _) = vfs();
    vfs.capture_callers(true);
    let file = create(&vfs, "000001.wal");
    let first = |file: &Arc<dyn VfsFile>| file.write_at(b"x", 0, IoClass::Wal);
    let second = |file: &Arc<dyn VfsFile>| file.write_at(b"x", 0, IoClass::Wal);
    first(&file).unwrap();
    second(&file).unwrap();
    let sites = vfs.sites();
    let writes: Vec<_> =
        sites.iter().map(|(site, _)| site).filter(|s| s.operation == VfsOperation::Write).collect();
    assert_eq!(writes.len(), 2, "{sites:?}");
    for site in &writes {
        assert!(site.caller.as_ref().unwrap().contains("vfs/fault/tests.rs:"), "{site}");
        assert!(site.to_string().starts_with("Write wal for wal at "), "{site}");
    }
    let id = vfs.add(FaultRule::new(Fault::Io).at(writes[0]));
    assert!(first(&file).is_err() && second(&file).is_ok());
    vfs.remove_rule(id);
    vfs.add(FaultRule::new(Fault::Io).at(writes[1]));
    assert!(first(&file).is_ok() && second(&file).is_err());
}

#[test]
fn each_captured_call_is_listed_and_so_is_the_line_of_a_fault() {
    let (vfs, _) = vfs();
    let file = create(&vfs, "000001.wal");
    vfs.capture_callers(true);
    file.links().unwrap();
    file.allocated().unwrap();
    file.modified().unwrap();
    file.links().unwrap();
    vfs.capture_callers(false);
    file.links().unwrap();
    use VfsOperation::{Allocated, Links, Modified};
    let calls = vfs.captured_calls();
    let operations: Vec<_> = calls.iter().map(|site| site.operation).collect();
    assert_eq!(operations, [Links, Allocated, Modified, Links]);
    assert!(calls.iter().all(|site| site.caller.is_some()));
    vfs.reset_sites();
    vfs.capture_callers_of_faults(true);
    for operation in [Links, Allocated, Modified] {
        vfs.add(FaultRule::new(Fault::Io).on(operation).nth(2));
    }
    for _ in 0..3 {
        let _fails = (file.links(), file.allocated(), file.modified());
    }
    let struck: Vec<_> = vfs.sites().into_iter().filter(|(_, counts)| counts.faults > 0).collect();
    assert_eq!(struck.len(), 3);
    for (site, counts) in struck {
        assert_eq!(counts, SiteCounts { calls: 1, faults: 1 }, "{site}");
        assert!(site.caller.unwrap().contains("vfs/fault/tests.rs:"));
    }
}

#[test]
fn files_are_classed_by_their_names() {
    for (name, class) in [
        ("db/000012.wal", "wal"),
        ("db/MANIFEST-000003", "MANIFEST"),
        ("db/CURRENT", "CURRENT"),
        ("db/CURRENT.tmp", "tmp"),
        ("db/0001", "other"),
        ("", "other"),
    ] {
        assert_eq!(path_class(path(name)), class);
    }
}
