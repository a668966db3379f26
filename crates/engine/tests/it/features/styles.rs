//! Universal and FIFO compaction in a whole database, and column families that change their style.

use std::sync::Arc;

use sateen::vfs::{MemVfs, Vfs};
use sateen::{CompactRangeOptions, CompactionStyle, Db, Options};

use crate::support::common::{assert_sound, contents, small};

const MEMTABLE_BYTES: u64 = 4 << 10;

fn fifo(bytes_max: u64) -> Options {
    let mut options = small("rocksdb", MEMTABLE_BYTES);
    options.column_family.compaction_style = CompactionStyle::Fifo;
    options.column_family.fifo_bytes_max = bytes_max;
    options
}

fn open(vfs: &Arc<dyn Vfs>, options: &Options) -> Result<Db, String> {
    Db::open_with(vfs.clone(), "/db", options.clone(), &[]).map_err(|error| error.to_string())
}

fn put(db: &Db, keys: std::ops::Range<u32>) {
    for n in keys {
        db.put(format!("key{n:06}"), format!("{n:060}")).unwrap();
        if n % 50 == 0 {
            db.wait_idle().unwrap();
        }
    }
    db.wait_idle().unwrap();
}

/// The runs of the default column family: those of level 0, and each level that is in use.
fn runs(db: &Db) -> u64 {
    let levels = &db.metrics().column_families[0].levels;
    levels.iter().map(|level| level.runs).sum()
}

#[test]
fn fewer_levels_are_possible_once_the_tables_are_moved_up() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let mut options = small("sateen", MEMTABLE_BYTES);
    let db = open(&vfs, &options).unwrap();
    put(&db, 0..300);
    db.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    db.close().unwrap();
    drop(db);
    options.column_family.levels = 4;
    let refused = open(&vfs, &options).unwrap_err();
    assert!(
        refused.contains("levels=4: the column family default has tables in level 6.")
            && refused.contains("levels=7 and dynamic_level_bytes=false moves them up"),
        "{refused}"
    );
    options.column_family.dynamic_level_bytes = false;
    options.column_family.levels = 7;
    open(&vfs, &options).unwrap().close().unwrap();
    // From here on targets may follow from the last level again.
    for dynamic in [false, true] {
        options.column_family.dynamic_level_bytes = dynamic;
        options.column_family.levels = 4;
        let db = open(&vfs, &options).unwrap();
        assert_eq!(db.metrics().column_families[0].levels.len(), 4);
        assert_eq!(db.iter().unwrap().count(), 300);
        put(&db, 0..300);
        db.close().unwrap();
    }
}

#[test]
fn universal_compaction_bounds_the_runs_and_the_space_and_keeps_all_data() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let options = small("rocksdb-universal", MEMTABLE_BYTES);
    let db = open(&vfs, &options).unwrap();
    let mut most = 0;
    for _ in 0..6 {
        put(&db, 0..1_000);
        most = most.max(runs(&db));
    }
    assert!(most <= u64::from(options.column_family.level0_trigger), "{most} runs at rest");
    let bytes = |db: &Db| {
        let levels = db.metrics().column_families[0].levels.clone();
        levels.iter().map(|level| level.bytes).sum::<u64>()
    };
    let before = bytes(&db);
    let family = db.column_family("default").unwrap();
    family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    let levels = db.metrics().column_families[0].levels.clone();
    assert_eq!(levels.iter().rposition(|level| level.bytes > 0), Some(levels.len() - 1));
    assert_eq!(runs(&db), 1);
    // 200 percent beside the oldest run, and the newest memtable.
    assert!(before <= 3 * bytes(&db) + 2 * MEMTABLE_BYTES, "{before} of {}", bytes(&db));
    assert_eq!(contents(&db).len(), 1_000);
    assert_sound(&db);
    db.close().unwrap();
}

#[test]
fn fifo_drops_the_oldest_and_keeps_the_newest() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    for compaction in [false, true] {
        let mut options = fifo(64 << 10);
        options.column_family.fifo_compaction = compaction;
        let db = Db::open_with(vfs.clone(), format!("/{compaction}"), options, &[]).unwrap();
        put(&db, 0..6_000);
        let levels = db.metrics().column_families[0].levels.clone();
        assert!(levels[0].bytes <= 64 << 10, "{} bytes", levels[0].bytes);
        assert!(levels[0].bytes >= 32 << 10, "{} bytes", levels[0].bytes);
        assert!(levels.iter().skip(1).all(|level| level.bytes == 0), "{levels:?}");
        // What is left is the newest, without a gap.
        let left: Vec<_> = contents(&db).into_keys().collect();
        let expected: Vec<_> =
            (6_000 - left.len() as u32..6_000).map(|n| format!("key{n:06}").into_bytes()).collect();
        assert_eq!(left, expected);
        // A manual compaction only flushes: what that adds makes the oldest go.
        let family = db.column_family("default").unwrap();
        family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
        db.wait_idle().unwrap();
        let after: Vec<_> = contents(&db).into_keys().collect();
        assert!(left.ends_with(&after) && after.len() > 500, "{} of {}", after.len(), left.len());
        assert_sound(&db);
        db.close().unwrap();
    }
}

#[test]
fn styles_change_where_the_next_one_admits_all_runs() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = open(&vfs, &fifo(u64::MAX)).unwrap();
    put(&db, 0..500);
    let before = contents(&db);
    db.close().unwrap();
    drop(db);
    for profile in ["rocksdb-universal", "rocksdb", "rocksdb-universal", "sateen"] {
        let db = open(&vfs, &small(profile, MEMTABLE_BYTES)).unwrap();
        db.wait_idle().unwrap();
        put(&db, 0..500);
        assert_eq!(contents(&db), before, "{profile}");
        assert_sound(&db);
        db.close().unwrap();
    }
    let refused = open(&vfs, &fifo(u64::MAX)).err().unwrap();
    assert!(refused.contains("has tables below level 0"), "{refused}");
    assert!(refused.contains("open it with compaction_style=leveled"), "{refused}");
    let db = open(&vfs, &small("sateen", MEMTABLE_BYTES)).unwrap();
    assert_eq!(contents(&db), before);
    db.close().unwrap();
}
