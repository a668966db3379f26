//! The scrub: all that is stored is verified beside clients, and what is damaged is told.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sateen::timeline::EventKind;
use sateen::vfs::{IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{Db, Error, HealthListener, Options, WriteBatch, WriteOptions};

use crate::support::common::{as_vfs, small, tiny};

const DB: &str = "/db";

fn ending(vfs: &MemVfs, text: &str) -> Vec<PathBuf> {
    let names = vfs.list(Path::new(DB)).unwrap();
    let fits = |path: &PathBuf| path.to_string_lossy().contains(text);
    names.into_iter().filter(fits).map(|name| Path::new(DB).join(name)).collect()
}

fn flip(vfs: &MemVfs, path: &Path, at: u64) {
    let file = vfs.open(path, OpenOptions::WRITE).unwrap();
    let mut byte = [0];
    assert_eq!(file.read_at(&mut byte, at, IoClass::Manifest).unwrap(), 1);
    file.write_at(&[!byte[0]], at, IoClass::Manifest).unwrap();
}

/// A database with tables and a synced log.
fn filled(vfs: &MemVfs, options: &Options) -> Db {
    let db = Db::open_with(as_vfs(vfs), DB, options.clone(), &[]).unwrap();
    for i in 0..400_u32 {
        db.put(format!("key{:04}", i * 7 % 300), format!("value {i} {}", "x".repeat(60))).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    for i in 0..9 {
        let value = "x".repeat(100);
        let batch = {
            let mut batch = WriteBatch::new();
            batch.put(format!("logged{i}"), value).unwrap();
            batch
        };
        db.write(&batch, &WriteOptions::sync()).unwrap();
    }
    db
}

#[test]
fn what_is_damaged_is_found_and_told() {
    for options in [tiny(), small("triad", 4 << 10)] {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let hears = heard.clone();
        let listener = HealthListener::new(move |health, error| {
            assert_eq!(health, sateen::Health::Ok);
            hears.lock().unwrap().push(error.unwrap().to_string());
        });
        let vfs = MemVfs::new();
        let options = Options { health_listener: Some(listener), scrub_rate: 0, ..options };
        let db = filled(&vfs, &options);
        let sound = db.scrub(None).unwrap();
        assert!(sound.problems.is_empty(), "{sound:?}");
        let tables = db.live_tables().len() as u64;
        assert!(sound.tables == tables && sound.logs >= 1 && sound.bytes > 0, "{sound:?}");
        assert!(heard.lock().unwrap().is_empty());

        let size = |path: &PathBuf| vfs.contents(path).unwrap().len();
        let mut tables = ending(&vfs, ".sat");
        // Not a log that has values.
        tables.retain(|path| vfs.contents(path).unwrap().starts_with(b"SATfile"));
        let table = tables.into_iter().max_by_key(size).unwrap();
        let log = ending(&vfs, ".wal").into_iter().max_by_key(size).unwrap();
        let bytes = vfs.contents(&table).unwrap();
        let end = bytes.windows(8).position(|at| at == b"SATtable").unwrap() + 8;
        for (path, at) in [(&table, 4096 + 700), (&table, end - 40), (&log, size(&log) / 2)] {
            let told = heard.lock().unwrap().len();
            flip(&vfs, path, at as u64);
            let report = db.scrub(None).unwrap();
            let names = |problem: &Error| problem.to_string().contains(path.to_str().unwrap());
            assert!(report.problems.iter().any(names), "{}: {report:?}", path.display());
            assert_eq!(heard.lock().unwrap().len(), told + report.problems.len());
            flip(&vfs, path, at as u64);
        }
        let metrics = db.metrics();
        assert_eq!(metrics.scrub.runs, 4);
        assert_eq!(metrics.scrub.problems, heard.lock().unwrap().len() as u64);
        assert!(metrics.scrub.bytes > 0 && !metrics.scrub.running);
        let events = db.timeline().events;
        let ended = |problems: bool| {
            let fits = |kind: &EventKind| match kind {
                EventKind::ScrubEnded { problems: found, .. } => (*found > 0) == problems,
                _ => false,
            };
            events.iter().filter(|event| fits(&event.kind)).count()
        };
        assert_eq!((ended(false), ended(true)), (1, 3));
        assert_eq!(db.scrub(None).unwrap().problems.len(), 0, "mended");
        db.put("goes", "on").unwrap();
    }
}

#[test]
fn it_leaves_the_cache_alone_and_is_no_client() {
    let vfs = MemVfs::new();
    let db = filled(&vfs, &Options { scrub_rate: 0, ..tiny() });
    for i in 0..300 {
        db.get(format!("key{i:04}")).unwrap();
    }
    let look = || {
        let metrics = db.metrics();
        let client = metrics.io[IoClass::Client.index()].totals.read_bytes;
        let counts = metrics.counts;
        (client, counts.data_block_hits, counts.data_block_misses, metrics.memory.block_cache)
    };
    let before = look();
    let report = db.scrub(None).unwrap();
    assert!(report.bytes > 4096 && report.problems.is_empty());
    assert_eq!(look(), before);
}

#[test]
fn it_comes_by_itself_and_the_interval_can_be_changed() {
    let vfs = MemVfs::new();
    let db = filled(&vfs, &tiny());
    while db.step().unwrap() {}
    assert_eq!(db.metrics().scrub.runs, 0);
    db.set_options(&[("scrub_interval_seconds", "1"), ("scrub_rate", "0")]).unwrap();
    let begun = Instant::now();
    while db.metrics().scrub.runs < 2 {
        db.step().unwrap();
        std::thread::sleep(Duration::from_millis(1));
        assert!(begun.elapsed() < Duration::from_secs(60), "none has come");
    }
    assert!(db.set_options(&[("scrub_interval_seconds", "soon")]).is_err());
}

#[test]
fn a_close_ends_it_at_once() {
    for threads in [0, 2] {
        let vfs = MemVfs::new();
        let db = filled(&vfs, &Options { background_threads: threads, ..tiny() });
        let waiting = db.clone();
        let ended = std::thread::scope(|scope| {
            // A byte a second: it would take hours.
            let scrub = scope.spawn(move || waiting.scrub(Some(1)));
            while !db.metrics().scrub.running {
                std::thread::yield_now();
            }
            db.close().unwrap();
            scrub.join().unwrap()
        });
        assert!(matches!(ended, Err(Error::Closed)), "{ended:?}");
    }
    let vfs = MemVfs::new();
    filled(&vfs, &tiny()).close().unwrap();
    let reader = Db::open_read_only_with(as_vfs(&vfs), DB, tiny()).unwrap();
    assert!(matches!(reader.scrub(None), Err(Error::ReadOnly(_))));
}

#[test]
fn nothing_is_damaged_while_it_is_written() {
    for profile in ["sateen", "triad"] {
        let mut options = small(profile, 8 << 10);
        options.background_threads = 2;
        options.scrub_rate = 0;
        let vfs = MemVfs::new();
        let db = Db::open_with(as_vfs(&vfs), DB, options, &[]).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut state = 1_u64;
                while !done.load(Ordering::Relaxed) {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let key = format!("key{:05}", (state >> 33) % 4000);
                    db.put(key, vec![b'v'; 50 + (state >> 58) as usize]).unwrap();
                }
            });
            let (mut tables, mut scrubs) = (0, 0);
            while tables < 100 || scrubs < 10 {
                let report = db.scrub(None).unwrap();
                if !report.problems.is_empty() {
                    done.store(true, Ordering::Relaxed);
                    panic!("{profile}: {:?}", report.problems);
                }
                (tables, scrubs) = (tables + report.tables, scrubs + 1);
            }
            done.store(true, Ordering::Relaxed);
        });
        db.close().unwrap();
    }
}
