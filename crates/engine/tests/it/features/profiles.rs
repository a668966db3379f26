//! Databases that change their profile: each can be opened with every other one, arranges itself
//! as that says, and holds what it held.

use std::sync::Arc;

use sateen::vfs::{CrashChoice, MemVfs, Vfs};
use sateen::{Db, Options};

use crate::support::common::{assert_sound, contents, open_arranged, small};

const MEMTABLE_BYTES: u64 = 4 << 10;

fn store(db: &Db, keys: u32, value: &str) {
    for n in 0..keys {
        db.put(format!("key{:05}", n * 7919 % 997), format!("{value}{n:040}")).unwrap();
        if n % 100 == 0 {
            db.wait_idle().unwrap();
        }
    }
    db.wait_idle().unwrap();
}

fn deepest(db: &Db) -> usize {
    let levels = db.metrics().column_families[0].levels.clone();
    levels.iter().rposition(|level| level.bytes > 0).unwrap_or(0)
}

#[test]
fn every_profile_opens_what_every_other_one_left() {
    for before in Options::profiles() {
        let left = MemVfs::new();
        let vfs: Arc<dyn Vfs> = Arc::new(left.clone());
        let db = Db::open_with(vfs, "/db", small(before, MEMTABLE_BYTES), &[]).unwrap();
        store(&db, 1_500, "old");
        let expected = contents(&db);
        db.close().unwrap();
        drop(db);
        for after in Options::profiles() {
            println!("{before}, then {after}");
            let vfs: Arc<dyn Vfs> = Arc::new(left.crash_image(CrashChoice::Everything));
            let db = open_arranged(vfs.clone(), "/db", &small(after, MEMTABLE_BYTES), &[]);
            assert_eq!(contents(&db), expected, "{before}, then {after}");
            store(&db, 500, "new");
            assert_sound(&db);
            let now = contents(&db);
            db.close().unwrap();
            drop(db);
            let db = open_arranged(vfs, "/db", &small(before, MEMTABLE_BYTES), &[]);
            assert_eq!(contents(&db), now, "{before}, then {after}, then {before}");
            assert_sound(&db);
            db.close().unwrap();
        }
    }
}

/// Nobody asks for it: what was arranged from the first level down fills the last ones by and by,
/// as work on it goes on.
#[test]
fn a_tree_of_fixed_levels_becomes_one_that_counts_from_the_last() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", small("leveldb", MEMTABLE_BYTES), &[]).unwrap();
    store(&db, 3_000, "old");
    assert!(deepest(&db) < 5, "{}", deepest(&db));
    db.close().unwrap();
    drop(db);
    let db = Db::open_with(vfs, "/db", small("sateen", MEMTABLE_BYTES), &[]).unwrap();
    let mut rounds = 0;
    while deepest(&db) < 6 {
        rounds += 1;
        assert!(rounds < 50, "after {rounds} rounds of work it ends at level {}", deepest(&db));
        store(&db, 500, "new");
    }
    assert_sound(&db);
    db.close().unwrap();
}

/// Who reads alone does not care how levels are arranged, nor does it rearrange them.
#[test]
fn levels_of_several_runs_are_read_and_copied_under_any_profile() {
    let vfs = MemVfs::new();
    let mut guards = small("pebblesdb", MEMTABLE_BYTES);
    guards.column_family.guard_runs = 100;
    let open = |options: &Options, path: &str| {
        Db::open_with(Arc::new(vfs.clone()), path, options.clone(), &[])
    };
    let db = open(&guards, "/db").unwrap();
    store(&db, 6_000, "old");
    // A run of level 0, on its own.
    db.put("key00001", "new").unwrap();
    db.flush().unwrap();
    let before = contents(&db);
    db.close().unwrap();
    drop(db);
    let sateen = small("sateen", MEMTABLE_BYTES);
    assert!(open(&sateen, "/db").is_err(), "there are no levels of several runs");
    let db = Db::open_read_only_with(Arc::new(vfs.clone()), "/db", sateen).unwrap();
    assert_eq!(contents(&db), before);
    let shape = &db.metrics().column_families[0];
    assert!(shape.chain_bytes > 0);
    let debt = db.property("sateen.estimate-pending-compaction-bytes").unwrap();
    assert_eq!(debt, shape.compaction_debt_bytes.to_string());
    db.checkpoint("/copy").unwrap();
    drop(db);
    let db = open(&guards, "/copy").unwrap();
    assert_eq!(contents(&db), before);
    assert_sound(&db);
    db.close().unwrap();
}

#[test]
fn levels_of_several_runs_are_compacted_before_one_run_is_wanted() {
    let vfs = Arc::new(MemVfs::new());
    let mut options = small("pebblesdb", MEMTABLE_BYTES);
    options.column_family.guard_runs = 100;
    let db = Db::open_with(vfs.clone(), "/db", options, &[]).unwrap();
    for n in 0..12_000_u32 {
        db.put(format!("key{:05}", n * 7919 % 997), format!("{n:050}")).unwrap();
        if n % 200 == 0 {
            db.wait_idle().unwrap();
        }
    }
    db.wait_idle().unwrap();
    let before = contents(&db);
    assert_eq!(before.len(), 997);
    let levels = db.metrics().column_families[0].levels.clone();
    assert!(levels.iter().skip(1).any(|level| level.runs > 1), "{levels:?}");
    assert_sound(&db);
    db.close().unwrap();
    let open = |vfs: &Arc<MemVfs>| {
        Db::open_with(vfs.clone(), "/db", small("rocksdb", MEMTABLE_BYTES), &[])
            .map_err(|e| e.to_string())
    };
    let refused = open(&vfs).unwrap_err();
    let command = "sateen db compact '/db' --cf 'default' --set compaction_style=guards";
    assert!(refused.contains(command), "{refused}");
    let db = open_arranged(vfs.clone(), "/db", &small("rocksdb", MEMTABLE_BYTES), &[]);
    assert_eq!(contents(&db), before);
    db.close().unwrap();
    let db = open(&vfs).unwrap();
    assert_eq!(contents(&db), before);
    assert_sound(&db);
}

/// What was arranged from the last level up is arranged from the first level down when the options
/// want that.
#[test]
fn levels_are_lifted_for_targets_that_count_from_the_first() {
    let vfs = Arc::new(MemVfs::new());
    let db = Db::open_with(vfs.clone(), "/db", small("rocksdb", MEMTABLE_BYTES), &[]).unwrap();
    for n in 0..2_000_u32 {
        db.put(format!("key{:05}", n * 7919 % 10_007), vec![b'v'; 50]).unwrap();
    }
    db.wait_idle().unwrap();
    let before = contents(&db);
    assert_eq!(deepest(&db), 6);
    db.close().unwrap();
    for profile in ["leveldb", "vlsm", "bolt", "pebblesdb"] {
        let db = Db::open_with(vfs.clone(), "/db", small(profile, MEMTABLE_BYTES), &[]).unwrap();
        assert!(deepest(&db) < 5, "{profile}: {}", deepest(&db));
        assert_eq!(contents(&db), before, "{profile}");
        db.put(format!("of {profile}"), "1").unwrap();
        db.delete(format!("of {profile}")).unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(contents(&db), before, "{profile}");
        db.close().unwrap();
    }
    let db = open_arranged(vfs, "/db", &small("rocksdb", MEMTABLE_BYTES), &[]);
    db.compact_range(None, None, &Default::default()).unwrap();
    assert_eq!(contents(&db), before);
    assert_sound(&db);
    db.close().unwrap();
}
