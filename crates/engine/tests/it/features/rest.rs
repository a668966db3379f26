//! What is due later is done for a database at rest, too, although no client calls it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sateen::vfs::{MemVfs, OpenOptions, Vfs};
use sateen::{Db, Options, Runtime};

/// After this on any machine what does not hang has come to an end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for `done`. Between the looks nothing calls the database.
fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn open(runtime: &Runtime, options: Options) -> (Arc<MemVfs>, Db) {
    let vfs = Arc::new(MemVfs::new());
    let options = Options { runtime: Some(runtime.clone()), ..options };
    let db = Db::open_with(vfs.clone(), "/db", options, &[]).unwrap();
    (vfs, db)
}

fn fill(db: &Db, bytes: usize) {
    for n in 0..bytes / 1000 {
        db.put(n.to_be_bytes(), [7; 1000]).unwrap();
    }
}

#[test]
fn the_memory_for_the_next_memtable_is_returned() {
    let runtime = Runtime::builder().threads(1).build();
    let (_vfs, db) = open(&runtime, Options::default());
    wait("memory is kept for the memtable", || {
        fill(&db, 2 << 20);
        db.metrics().memory.immutable_memtables > 0
    });
    wait("the database rests", || runtime.metrics().resting == 1);
    assert_eq!(db.metrics().memory.immutable_memtables, 0);
}

#[test]
fn wals_that_are_kept_for_a_time_are_removed() {
    let runtime = Runtime::builder().threads(1).build();
    let (vfs, db) = open(&runtime, Options { wal_ttl_seconds: 6, ..Options::default() });
    fill(&db, 1 << 20);
    db.flush().unwrap();
    let bytes = || {
        let files = vfs.list(Path::new("/db")).unwrap().into_iter();
        let logs =
            files.filter(|path| path.extension().is_some_and(|extension| extension == "wal"));
        // One may have been removed meanwhile.
        let open = |path| vfs.open(&Path::new("/db").join(path), OpenOptions::READ).ok();
        logs.filter_map(open).map(|file| file.len().unwrap()).sum()
    };
    let kept: u64 = bytes();
    assert!(kept > 1 << 20, "no WAL is kept: {kept} bytes");
    wait("the database rests", || runtime.metrics().resting == 1);
    wait("the WAL is removed", || bytes() < 1 << 20);
}

#[test]
fn tables_of_a_deleted_range_go_after_the_last_snapshot() {
    let runtime = Runtime::builder().threads(1).build();
    let (_vfs, db) = open(&runtime, Options::default());
    fill(&db, 1 << 20);
    db.flush().unwrap();
    let snapshot = db.snapshot();
    db.delete_range([0], [255]).unwrap();
    db.flush().unwrap();
    // Longer than it takes a database to rest.
    std::thread::sleep(Duration::from_secs(4));
    let bytes = || db.metrics().column_families[0].levels.iter().map(|level| level.bytes).sum();
    let before: u64 = bytes();
    assert!(before > 1 << 20, "{before} bytes");
    drop(snapshot);
    wait("the tables go", || bytes() < 1 << 20);
}
