//! Seek compaction (LevelDB): tables into which reads look in vain are compacted.

use std::sync::Arc;

use sateen::timeline::{CompactionReason, EventKind};
use sateen::vfs::{MemVfs, Vfs};
use sateen::{CompactRangeOptions, Db, Options};

use crate::support::common::{assert_sound, contents, small};

/// Charges at which a small table is compacted, at 16 KiB each.
const CHARGES: u32 = 100;

fn key(n: u32) -> String {
    format!("key{n:06}")
}

/// Every tenth key up to 1000 in the lowest level, and `above` in level 0.
fn two_tables(options: &Options, above: impl Iterator<Item = u32>, value: &str) -> Db {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs, "/db", options.clone(), &[]).unwrap();
    (0..1000).step_by(10).for_each(|n| db.put(key(n), value).unwrap());
    db.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    above.for_each(|n| db.put(key(n), value).unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert_eq!(tables_in_level0(&db), 1);
    db
}

fn leveldb() -> Options {
    small("leveldb", 1 << 20)
}

fn tables_in_level0(db: &Db) -> u64 {
    db.metrics().column_families[0].levels[0].tables
}

/// The number of compactions for reads so far.
fn for_reads(db: &Db) -> usize {
    db.wait_idle().unwrap();
    let events = db.timeline().events;
    let reasons = events.iter().filter_map(|event| match &event.kind {
        EventKind::JobFinished { info, .. } => info.reason,
        _ => None,
    });
    reasons.filter(|reason| *reason == CompactionReason::Charged).count()
}

#[test]
fn gets_that_look_into_two_tables_compact_the_first() {
    let db = two_tables(&leveldb(), (5..1000).step_by(10), "");
    // Found in the first table, or outside of all.
    for _ in 0..2 * CHARGES {
        assert!(db.get(key(505)).unwrap().is_some());
        assert!(db.get(key(5000)).unwrap().is_none());
    }
    assert_eq!(for_reads(&db), 0);
    for _ in 1..CHARGES {
        assert!(db.get(key(500)).unwrap().is_some());
    }
    assert_eq!(for_reads(&db), 0);
    // A read that finds nothing looks just as far.
    assert!(db.get(key(501)).unwrap().is_none());
    assert_eq!((for_reads(&db), tables_in_level0(&db)), (1, 0));
    // One table is left, and is charged nothing.
    for _ in 0..2 * CHARGES {
        assert!(db.get(key(501)).unwrap().is_none());
    }
    assert_eq!((for_reads(&db), contents(&db).len()), (1, 200));
    assert_sound(&db);
    db.close().unwrap();
}

#[test]
fn many_keys_at_once_are_charged_one_by_one() {
    let db = two_tables(&leveldb(), (5..1000).step_by(10), "");
    let keys: Vec<_> = (0..CHARGES).map(|n| key(10 + n)).collect();
    assert_eq!(db.multi_get(&keys[1..]).len(), 99);
    // Ten of them end in the first table.
    assert_eq!(for_reads(&db), 0);
    assert!(db.multi_get(&keys).iter().all(Result::is_ok));
    assert_eq!(for_reads(&db), 1);
    db.close().unwrap();
}

#[test]
fn iterators_are_charged_for_what_they_pass() {
    // Two hundred entries, of which about 105 have a MiB.
    let db = two_tables(&leveldb(), [5, 995].into_iter(), &"v".repeat(10_000));
    let entries = |db: &Db| db.iter().unwrap().map(Result::unwrap).count();
    assert_eq!(entries(&db), 102);
    for _ in 0..CHARGES / 2 {
        assert_eq!(db.iter().unwrap().rev().count(), 102);
    }
    assert_eq!(for_reads(&db), 0, "each of them ended before the first MiB was full");
    let mut cursor = db.cursor(&sateen::ReadOptions::default()).unwrap();
    for _ in 0..CHARGES + 10 {
        cursor.seek_to_first();
        while cursor.valid() {
            cursor.next();
        }
    }
    assert_eq!((for_reads(&db), tables_in_level0(&db)), (1, 0));
    drop(cursor);
    assert_eq!(entries(&db), 102);
    db.close().unwrap();
}

#[test]
fn regions_are_charged_each_for_itself() {
    let mut options = leveldb();
    options.set("regions", "at:key000500").unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs, "/db", options, &[]).unwrap();
    for round in 0..2 {
        (round..1000).step_by(10).for_each(|n| db.put(key(n), "").unwrap());
        if round == 0 {
            db.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
        }
    }
    db.flush().unwrap();
    assert_eq!(tables_in_level0(&db), 2);
    for _ in 0..CHARGES {
        assert!(db.get(key(800)).unwrap().is_some());
    }
    assert_eq!((for_reads(&db), tables_in_level0(&db)), (1, 1));
    for _ in 0..CHARGES {
        assert!(db.get(key(200)).unwrap().is_some());
    }
    assert_eq!((for_reads(&db), tables_in_level0(&db)), (2, 0));
    db.close().unwrap();
}

#[test]
fn the_option_is_off_elsewhere_and_can_be_changed() {
    let mut options = leveldb();
    options.column_family.seek_compaction_bytes = 0;
    let db = two_tables(&options, (5..1000).step_by(10), "");
    let read = |times: u32| (0..times).for_each(|_| drop(db.get(key(500)).unwrap()));
    read(10 * CHARGES);
    assert_eq!(for_reads(&db), 0);
    // Four times the bytes for each read: a quarter of the reads.
    db.set_options(&[("seek_compaction_bytes", "64KiB")]).unwrap();
    read(CHARGES / 4 - 1);
    assert_eq!(for_reads(&db), 0);
    read(1);
    assert_eq!(for_reads(&db), 1);
    db.close().unwrap();
}
