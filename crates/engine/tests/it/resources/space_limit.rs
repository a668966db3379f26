//! A limit on the space of tables: writes are refused as on a full disk, nothing is lost, and they
//! go on by themselves. And the end of background work before a close.

use std::time::Duration;

use sateen::vfs::MemVfs;
use sateen::{CompactRangeOptions, Db, Error, FlushOptions, Options, SpaceManager, WalMode};

use crate::support::common::{as_vfs, assert_sound, tiny};

fn open(vfs: &MemVfs, space: &SpaceManager) -> Db {
    let space_manager = Some(space.clone());
    let mut options = Options { background_threads: 1, space_manager, ..tiny() };
    // Each table takes whole pages. Those of `tiny` hold an entry each, so that one flush that
    // begins below the limit could take many times as much.
    options.column_family.table_bytes = 64 << 10;
    Db::open_with(as_vfs(vfs), "/db", options, &[]).unwrap()
}

/// Writes until an error, and returns it with the number of writes.
fn fill(db: &Db, from: u32) -> (u32, Error) {
    for number in from.. {
        if let Err(error) = db.put(format!("key{number:06}"), [7; 200]) {
            return (number, error);
        }
        assert!(number < from + 100_000, "nothing is refused");
    }
    unreachable!()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}");
}

#[test]
fn writes_are_refused_at_the_limit_and_go_on_below_it() {
    let (space, vfs) = (SpaceManager::new(200 << 10), MemVfs::new());
    let db = open(&vfs, &space);
    let (written, refused) = fill(&db, 0);
    assert!(refused.is_no_space(), "{refused}");
    assert!(refused.to_string().contains("the space manager allows 204800"), "{refused}");
    // Compactions may have made room meanwhile.
    assert!(space.used_bytes() > 100 << 10, "{}", space.used_bytes());
    assert_eq!(db.iter().unwrap().count(), written as usize);
    // The limit is that of all databases.
    let other = open(&MemVfs::new(), &space);
    let (_, error) = fill(&other, 0);
    assert!(error.is_no_space(), "{error}");
    space.set_limit_bytes(4 << 20);
    for db in [&db, &other] {
        until("writes do not go on", || db.put("again", "1").is_ok());
    }
    // Another database takes the room, and gives it back as it is closed.
    for db in [&other, &db] {
        let (_, refused) = fill(db, written);
        assert!(refused.is_no_space(), "{refused}");
    }
    drop(other);
    until("the space of a closed database counts", || db.put("again", "2").is_ok());
    space.set_limit_bytes(0);
    until("what was refused is not flushed", || db.flush().is_ok());
    db.wait_idle().unwrap();
    assert_sound(&db);
    drop(db);
    // An open does not fail at the limit.
    space.set_limit_bytes(1);
    let db = open(&vfs, &space);
    assert!(db.contains_key("key000000").unwrap());
    assert!(space.used_bytes() > 100 << 10);
    // Nor may other ways bring tables in.
    let load = db.bulk_load().unwrap();
    let mut part = load.part();
    let refused = part.put("loaded", "1").and_then(|()| part.finish()).unwrap_err();
    assert!(refused.is_no_space(), "{refused}");
    load.finish().unwrap();
    assert!(!db.contains_key("loaded").unwrap());
}

#[test]
fn files_that_wait_to_be_deleted_count() {
    let (space, vfs) = (SpaceManager::new(0), MemVfs::new());
    space.set_delete_rate(1);
    let db = open(&vfs, &space);
    for round in 0..3_u8 {
        (0..20_000_u32).for_each(|n| db.put(n.to_be_bytes(), [round; 200]).unwrap());
        db.flush().unwrap();
        db.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    }
    let (used, obsolete) = (space.used_bytes(), space.obsolete_bytes());
    // One of three rounds is live. At most a first step of 1 MiB was given back.
    assert!(obsolete > 4 << 20 && used > obsolete + (1 << 20), "{used} used, {obsolete} obsolete");
    space.set_delete_rate(0);
    until("they are deleted", || space.obsolete_bytes() == 0);
    assert!(space.used_bytes() < used - (4 << 20), "{} of {used}", space.used_bytes());
}

#[test]
fn after_the_end_of_background_work_nothing_waits() {
    for wal in [WalMode::Buffered, WalMode::Off] {
        let (vfs, options) = (MemVfs::new(), Options { background_threads: 1, wal, ..tiny() });
        let open = || Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
        let db = open();
        db.put("before", "1").unwrap();
        db.end_background_work(wal == WalMode::Off).unwrap();
        db.end_background_work(true).unwrap();
        // Without a WAL everything was flushed before.
        let flushed = db.flush();
        assert_eq!(matches!(flushed, Err(Error::Closed)), wal == WalMode::Buffered, "{flushed:?}");
        let refused = db.compact_range(None, None, &sateen::CompactRangeOptions::default());
        assert!(matches!(refused, Err(Error::ManualCompactionPaused)), "{refused:?}");
        let (written, error) = fill(&db, 0);
        assert!(matches!(error, Error::Closed), "{error}");
        // How many that are depends on when writers would be slowed down.
        assert!(written > 0, "writes go on until they would wait");
        drop(db.flush_with(&FlushOptions { wait: false }));
        assert_eq!(db.iter().unwrap().count(), written as usize + 1);
        db.close().unwrap();
        let db = open();
        assert_eq!(db.iter().unwrap().count(), written as usize + 1, "{wal:?}");
        assert_sound(&db);
    }
}

/// Who ends the pause that the end of background work is made of does not keep the database from
/// being closed.
#[test]
fn a_database_is_closed_whose_background_work_was_ended_and_goes_on() {
    for dropped in [false, true] {
        let vfs = MemVfs::new();
        let open = || {
            let options = Options { background_threads: 1, ..tiny() };
            Db::open_with(as_vfs(&vfs), "/db", options, &[])
        };
        let db = open().unwrap();
        db.put("fig", "1").unwrap();
        db.end_background_work(true).unwrap();
        db.continue_background_work().unwrap();
        db.put("fig", "2").unwrap();
        if dropped {
            drop(db);
        } else {
            db.close().unwrap();
            assert!(matches!(db.get("fig"), Err(Error::Closed)));
        }
        assert_eq!(open().unwrap().get("fig").unwrap().unwrap(), b"2");
    }
}
