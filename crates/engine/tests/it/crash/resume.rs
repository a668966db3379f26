//! After a database was made to work again it loses as little as before.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sateen::vfs::{CrashChoice, Fault, FaultRule, FaultVfs, IoClass, MemVfs, Vfs, VfsOperation};
use sateen::{
    CompactRangeOptions, Db, FlushOptions, Health, HealthListener, Options, WalMode, WriteOptions,
};

use crate::support::common::{as_vfs, assert_sound, tiny};

/// A log that was prepared before the one in use died comes too early in the order of numbers.
#[test]
fn a_log_prepared_before_the_failure_is_not_written_to() {
    for (wal, choice) in [
        (WalMode::SyncEachWrite, CrashChoice::SyncedOnly),
        (WalMode::Buffered, CrashChoice::Everything),
    ] {
        let mem = MemVfs::new();
        let faulty = FaultVfs::new(as_vfs(&mem));
        let mut options = tiny();
        options.wal = wal;
        let db = Db::open_with(Arc::new(faulty.clone()), "/db", options.clone(), &[]).unwrap();
        db.put("a", "1").unwrap();
        db.flush().unwrap();
        // The next log is made now; no memtable has anything.
        while db.step().unwrap() {}
        faulty.add(FaultRule::new(Fault::Io).class(IoClass::Wal).on(VfsOperation::Write));
        db.put("refused", "2").unwrap_err();
        faulty.clear();
        db.resume().unwrap();
        for round in 0..4 {
            db.put(format!("before{round}"), "3").unwrap();
            db.flush().unwrap();
            db.put(format!("after{round}"), "4").unwrap();
            let image =
                Db::open_with(as_vfs(&mem.crash_image(choice)), "/db", options.clone(), &[]);
            let image = image.unwrap();
            for key in ["a".to_owned(), format!("before{round}"), format!("after{round}")] {
                assert!(
                    image.get(&key).unwrap().is_some(),
                    "{wal:?}, round {round}: {key} is lost"
                );
            }
            assert_eq!(image.get("refused").unwrap(), None);
            assert_sound(&image);
        }
        let sync = WriteOptions::sync();
        db.writing(&sync).put("b", "5").unwrap();
        db.close().unwrap();
    }
}

/// What an attempt to go on has made goes with the next one that succeeds, not only at the next
/// open.
#[test]
fn attempts_to_resume_that_fail_leave_no_logs() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]).unwrap();
    let log = || FaultRule::new(Fault::Io).class(IoClass::Wal).on(VfsOperation::Write);
    // The edit that stores all dies with its manifest.
    let operations = [VfsOperation::Sync, VfsOperation::Write];
    for (round, operation) in operations.into_iter().cycle().take(4).enumerate() {
        db.put(format!("key{round}"), "1").unwrap();
        faulty.add(log());
        db.put("refused", "2").unwrap_err();
        faulty.clear();
        let rule = FaultRule::new(Fault::Io).class(IoClass::Manifest).on(operation);
        let rule = faulty.add(rule);
        db.resume().unwrap_err();
        assert_eq!(faulty.happened(rule), 1, "round {round}");
        faulty.clear();
        db.resume().unwrap();
        while db.step().unwrap() {}
        let names = mem.list("/db".as_ref()).unwrap().into_iter();
        let logs: Vec<_> =
            names.filter(|name| name.extension().is_some_and(|end| end == "wal")).collect();
        // The one in use and one made in advance.
        assert!(logs.len() <= 2, "round {round}: {logs:?}");
    }
    for round in 0..4 {
        assert_eq!(db.get(format!("key{round}")).unwrap().as_deref(), Some(&b"1"[..]));
    }
    assert_sound(&db);
}

/// A log may die of its link to the one before it, which nobody is told of.
#[test]
fn a_log_that_died_while_all_was_well_is_replaced() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    let options = Options { wal_ttl_seconds: 1000, ..tiny() };
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", options, &[]).unwrap();
    for round in 0..3 {
        let key = format!("key{round}");
        db.put(&key, "1").unwrap();
        // The next log is made.
        while db.step().unwrap() {}
        let links = FaultRule::new(Fault::Io).class(IoClass::Wal).on(VfsOperation::Write);
        let links = faulty.add(links);
        let nobody_waits = FlushOptions { wait: false };
        db.flush_with(&nobody_waits).unwrap();
        assert_eq!(faulty.happened(links), 1);
        faulty.clear();
        assert_eq!(db.health().0, Health::Ok);
        db.resume().unwrap();
        db.put("after", "2").unwrap();
        db.flush().unwrap();
        assert_eq!(db.get(&key).unwrap().as_deref(), Some(&b"1"[..]));
    }
    assert_sound(&db);
}

/// A log that died of a full disk is found dead by who syncs it later, too: the disk is why.
#[test]
fn a_sync_of_a_log_that_died_of_a_full_disk_lets_it_mend_itself() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    let wal = WalMode::SyncInterval(Duration::from_nanos(1));
    let options = Options { wal, ..tiny() };
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", options, &[]).unwrap();
    for operation in [VfsOperation::Write, VfsOperation::Sync] {
        db.put("a", "1").unwrap();
        faulty.add(FaultRule::new(Fault::NoSpace).class(IoClass::Wal).on(operation));
        let refused = match operation {
            VfsOperation::Write => db.put("refused", "2"),
            _ => db.sync_wal(),
        };
        assert!(refused.unwrap_err().is_no_space());
        faulty.clear();
        assert_eq!(db.health().0, Health::Degraded);
        let began = Instant::now();
        while db.health().0 != Health::Ok {
            db.step().unwrap();
            let health = db.health();
            let patient = began.elapsed() < Duration::from_secs(20);
            assert!(patient && health.0 != Health::ReadOnly, "still {health:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    }
}

/// What the system refuses while a full disk is recovered from is no reason to give up.
#[test]
fn a_recovery_that_the_system_refuses_is_tried_again() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", tiny(), &[]).unwrap();
    db.put("a", "1").unwrap();
    let full = FaultRule::new(Fault::NoSpace).class(IoClass::Wal).on(VfsOperation::Write);
    let full = faulty.add(full);
    assert!(db.put("refused", "2").unwrap_err().is_no_space());
    faulty.remove_rule(full);
    // There is space again, but the new WAL cannot be created.
    let refused = FaultRule::new(Fault::Errno(libc::EACCES)).on(VfsOperation::Create);
    let refused = faulty.add(refused.path_contains(".wal"));
    until_mended(&db, |db| {
        assert_eq!(db.health().0, Health::Degraded, "{:?}", db.health());
        faulty.happened(refused) > 0
    });
    faulty.clear();
    until_mended(&db, |db| db.health().0 == Health::Ok);
    db.put("b", "2").unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_sound(&db);
}

/// Steps `db`, whose recovery takes attempts half a second and more apart, until `is_done`.
fn until_mended(db: &Db, is_done: impl Fn(&Db) -> bool) {
    let began = Instant::now();
    while !is_done(db) {
        db.step().unwrap();
        assert!(began.elapsed() < Duration::from_secs(20), "still {:?}", db.health());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A new manifest that cannot be begun now is begun later, and the old one goes on.
#[test]
fn a_manifest_that_cannot_be_replaced_now_goes_on() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    let options = Options { manifest_bytes_max: 1, ..tiny() };
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", options.clone(), &[]).unwrap();
    for operation in [VfsOperation::Create, VfsOperation::Write, VfsOperation::Sync] {
        let refused = FaultRule::new(Fault::Errno(libc::EACCES)).on(operation);
        let refused = faulty.add(refused.path_contains("CURRENT.tmp"));
        db.put("a", "1").unwrap();
        db.flush().unwrap();
        while db.step().unwrap() && faulty.happened(refused) == 0 {}
        assert!(faulty.happened(refused) > 0, "{operation:?}");
        assert_eq!(db.health().0, Health::Ok, "{operation:?}: {:?}", db.health());
        db.put("b", "2").unwrap();
        db.flush().unwrap();
        faulty.clear();
        while db.step().unwrap() {}
    }
    drop(db);
    let db = Db::open_with(as_vfs(&mem), "/db", options, &[]).unwrap();
    assert_eq!(db.get("b").unwrap().as_deref(), Some(&b"2"[..]));
    assert_sound(&db);
}

/// Who listens hears of each change of health once, with its cause.
#[test]
fn changes_of_health_are_told() {
    let told: Arc<Mutex<Vec<(Health, String)>>> = Arc::default();
    let heard = told.clone();
    let listener = HealthListener::new(move |health, cause| {
        let cause = cause.map_or(String::new(), ToString::to_string);
        heard.lock().unwrap().push((health, cause));
    });
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    let options = Options { health_listener: Some(listener), ..tiny() };
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", options, &[]).unwrap();
    db.put("a", "1").unwrap();
    faulty.add(FaultRule::new(Fault::Io).class(IoClass::Flush).on(VfsOperation::Write));
    db.flush().unwrap_err();
    let _again = db.flush();
    assert_eq!(db.health().0, Health::Degraded);
    faulty.clear();
    db.resume().unwrap();
    db.resume().unwrap();
    let told = told.lock().unwrap();
    let [(bad, cause), (good, none)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((*bad, *good, none.as_str()), (Health::Degraded, Health::Ok, ""));
    assert!(cause.contains("/db/"), "{cause}");
}

/// A panic in a thread of the database is an error like any other: nobody waits for its job for
/// ever, and what was written is there after the next open.
#[test]
fn a_thread_that_panics_stops_writes_and_loses_nothing() {
    for class in [IoClass::Flush, IoClass::L0] {
        let mem = MemVfs::new();
        let faulty = FaultVfs::new(as_vfs(&mem));
        let mut options = tiny();
        options.background_threads = 2;
        options.wal = WalMode::SyncEachWrite;
        let db = Db::open_with(Arc::new(faulty.clone()), "/db", options.clone(), &[]).unwrap();
        faulty.add(FaultRule::new(Fault::Panic).class(class).on(VfsOperation::Write).once());
        let mut written = 0_u32;
        // In no order, so that level 0 has something to merge.
        let key = |nth: u32| format!("key{:08}", nth * 7919 % 1009);
        let refused = loop {
            match db.put(key(written), vec![7; 1000]) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        let text = refused.to_string();
        assert!(text.contains("sateen-work-") && text.contains("panic by a fault rule"), "{text}");
        db.flush().unwrap_err();
        let options_of_compaction = CompactRangeOptions::default();
        let family = db.default_column_family();
        family.compact_range(None, None, &options_of_compaction).unwrap_err();
        assert!(db.get(key(0)).unwrap().is_some());
        // The job has ended, so that another one can do its work.
        db.resume().unwrap();
        db.flush().unwrap();
        family.compact_range(None, None, &options_of_compaction).unwrap();
        drop((family, db));
        faulty.clear();
        let db = Db::open_with(as_vfs(&mem), "/db", options, &[]).unwrap();
        for nth in 0..written {
            assert!(db.get(key(nth)).unwrap().is_some(), "{class}: {nth}");
        }
        assert_sound(&db);
        db.close().unwrap();
    }
}
