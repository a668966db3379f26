//! A reader beside a writer: it sees one moment for as long as its lease lasts, or is told that it
//! is behind. What is whole is never called damage, and damage is.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sateen::vfs::{IoClass, MemVfs, OpenOptions, PosixVfs, Taken, Vfs, VfsFile, VfsLock};
use sateen::{CompactRangeOptions, Db, Error, Options, ReadOptions, dump};

use crate::features::updates::{open, settle};
use crate::support::common::{Contents, as_vfs, read_all, tiny};
use sateen::pass_on;

const KEYS: usize = 60;

/// Reads go to the files, not to a cache.
fn options() -> Options {
    let mut options = tiny();
    options.block_cache_bytes = 1;
    options.max_open_files = 16;
    options
}

fn value(key: usize, round: usize) -> Vec<u8> {
    format!("{key}-{round} ").repeat(60).into_bytes()
}

fn key(key: usize) -> String {
    format!("key{key:03}")
}

/// What is there after a round.
fn after(round: usize) -> Contents {
    (0..KEYS).map(|at| (key(at).into_bytes(), value(at, round))).collect()
}

/// Replaces all values, and what was there before in all files.
fn overwrite(db: &Db, round: usize) {
    for at in 0..KEYS {
        db.put(key(at), value(at, round)).unwrap();
    }
    db.flush().unwrap();
    let family = db.default_column_family();
    family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    settle(db);
}

/// Replaces some of the values, so that files are in use in part.
fn overwrite_some(db: &Db, round: usize) {
    for at in (0..KEYS).filter(|at| at % 3 == round % 3) {
        db.put(key(at), value(at, round)).unwrap();
    }
    db.flush().unwrap();
    settle(db);
}

fn reader(vfs: &MemVfs, options: &Options) -> Db {
    Db::open_read_only_with(as_vfs(vfs), "/db", options.clone()).unwrap()
}

fn contents(db: &Db) -> Contents {
    read_all(&db.default_column_family(), &ReadOptions::default())
}

fn taken_since(vfs: &MemVfs, before: Taken) -> (u64, u64) {
    let now = vfs.taken();
    (now.punches - before.punches, now.names - before.names)
}

/// The writer is closed, or opened again, in between: the next one respects leases, too.
#[test]
fn a_lease_keeps_what_is_read() {
    let vfs = MemVfs::new();
    let mut db = open(&vfs, &options());
    overwrite(&db, 0);
    overwrite_some(&db, 1);
    let expected = contents(&db);
    let reader = reader(&vfs, &options());
    let mut iter = reader.cursor(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    let mut seen = Contents::new();
    let mut round = 2;
    while iter.valid() {
        seen.insert(iter.key().to_vec(), iter.value().to_vec());
        if seen.len().is_multiple_of(10) {
            overwrite_some(&db, round);
            overwrite(&db, round);
            round += 1;
            assert!(db.held().retired_tables > 0, "they wait for the reader");
            assert_eq!(db.held().leases, 1);
        }
        if seen.len().is_multiple_of(20) {
            db.close().unwrap();
            drop(db);
            db = open(&vfs, &options());
        }
        iter.next();
    }
    iter.status().expect("the reader is behind");
    assert_eq!(seen, expected);
    assert_eq!(contents(&reader), expected, "all of it once more");
    for (key, value) in &expected {
        assert_eq!(reader.get(key).unwrap().as_ref(), Some(value));
    }
    drop(iter);
    let (before, kept) = (vfs.taken(), vfs.used_bytes());
    drop(reader);
    db.wait_idle().unwrap();
    settle(&db);
    let held = db.held();
    assert_eq!((held.retired_tables, held.leases), (0, 0));
    let (punches, names) = taken_since(&vfs, before);
    assert!(punches + names > 0 && vfs.used_bytes() < kept, "it is given back at last");
    assert_eq!(contents(&db), after(round - 1));
}

/// Only what was retired while a reader was there waits for it.
#[test]
fn a_reader_that_came_later_keeps_nothing_of_before() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &options());
    overwrite(&db, 0);
    let first = reader(&vfs, &options());
    overwrite(&db, 1);
    let second = reader(&vfs, &options());
    overwrite(&db, 2);
    let both = db.held().retired_tables;
    drop(first);
    settle(&db);
    db.wait_idle().unwrap();
    overwrite_some(&db, 3);
    let one = db.held().retired_tables;
    assert!(one > 0 && one < both + 8, "{one} of {both}");
    assert_eq!(contents(&second), after(1));
    drop(second);
    overwrite_some(&db, 4);
    assert_eq!(db.held().retired_tables, 0);
}

/// Without leases, or past their limits, a reader is behind.
#[test]
fn what_is_given_back_is_never_called_damage() {
    for limit in ["reader_lease_seconds=0", "reader_lease_bytes=0", "reader_lease_bytes=4096"] {
        let mut writers = options();
        writers.apply_str_list(limit).unwrap();
        let vfs = MemVfs::new();
        let db = open(&vfs, &writers);
        overwrite(&db, 0);
        let (before, mut behind) = (vfs.taken(), 0);
        for round in 1..20 {
            let expected = contents(&db);
            let reader = reader(&vfs, &options());
            let mut iter = reader.cursor(&ReadOptions::default()).unwrap();
            iter.seek_to_first();
            if round % 2 == 0 {
                overwrite_some(&db, round)
            } else {
                overwrite(&db, round)
            }
            let mut is_behind = |error: Error| {
                assert!(matches!(error, Error::Behind { .. }), "{limit}: {error}");
                assert!(!error.to_string().contains("corruption"), "{error}");
                behind += 1;
            };
            let mut seen = Contents::new();
            while iter.valid() {
                seen.insert(iter.key().to_vec(), iter.value().to_vec());
                iter.next();
            }
            match iter.status() {
                Ok(()) => assert_eq!(seen, expected),
                Err(error) => is_behind(error),
            }
            for (key, value) in &expected {
                match reader.get(key) {
                    Ok(found) => assert_eq!(found.as_ref(), Some(value)),
                    Err(error) => is_behind(error),
                }
            }
            for found in reader.multi_get(&expected.keys().collect::<Vec<_>>()) {
                found.map(drop).unwrap_or_else(&mut is_behind);
            }
            let again = self::reader(&vfs, &options());
            assert_eq!(contents(&again), contents(&db), "what is opened again is not behind");
        }
        let (punches, names) = taken_since(&vfs, before);
        println!("{limit}: {behind} behind, {punches} punches, {names} names gone");
        assert!(behind > 0 && punches > 0 && names > 0, "{limit}");
    }
}

/// A database that was removed, or replaced by another one, is not damaged either.
#[test]
fn a_database_that_is_gone_is_no_damage() {
    for again in [false, true] {
        let vfs = MemVfs::new();
        let db = open(&vfs, &options());
        overwrite(&db, 0);
        let reader = reader(&vfs, &options());
        db.close().unwrap();
        for name in vfs.list(Path::new("/db")).unwrap() {
            vfs.remove(&Path::new("/db").join(name)).unwrap();
        }
        if again {
            overwrite(&open(&vfs, &options()), 1);
        }
        let mut errors = 0;
        for at in 0..KEYS {
            match reader.get(key(at)) {
                Ok(found) => assert_eq!(found, Some(value(at, 0))),
                Err(error) => {
                    // A file that says whose it is tells more.
                    let other = matches!(error, Error::IncompatibleDirectory { .. }) && again;
                    assert!(other || matches!(error, Error::Behind { .. }), "{error}");
                    errors += 1;
                }
            }
        }
        println!("{errors} reads were behind");
    }
}

/// Whatever the writer did meanwhile.
#[test]
fn damage_is_damage_still() {
    for secondary in [false, true] {
        let vfs = MemVfs::new();
        let db = open(&vfs, &options());
        overwrite(&db, 0);
        let reader = if secondary {
            Db::open_secondary_with(as_vfs(&vfs), "/db", options(), &[]).unwrap()
        } else {
            reader(&vfs, &options())
        };
        // The manifest goes on, and these tables stay.
        db.put("later", "1").unwrap();
        db.flush().unwrap();
        let tables = db.live_tables();
        let table = tables.iter().find(|table| table.smallest.starts_with(b"key")).unwrap();
        let file = vfs.open(&table.file, OpenOptions::WRITE).unwrap();
        file.write_at(&[0x5A; 64], table.offset + 16, IoClass::Client).unwrap();
        let first = std::str::from_utf8(&table.smallest).unwrap();
        let error = reader.get(first).expect_err("the first block is damaged");
        assert!(error.is_corruption(), "{error}");
        let mut iter = reader.cursor(&ReadOptions::default()).unwrap();
        iter.seek_to_first();
        assert!(iter.status().unwrap_err().is_corruption());
        vfs.remove(&table.file).unwrap();
        let fresh = Db::open_read_only_with(as_vfs(&vfs), "/db", options()).unwrap_err();
        assert!(fresh.is_corruption(), "{fresh}");
    }
}

type Step = Box<dyn FnMut() + Send>;

/// A file system whose owner does something before one of its calls, or before each.
#[derive(Clone)]
struct Stepping {
    inner: Arc<dyn Vfs>,
    step: Arc<Mutex<Option<Step>>>,
    calls: Arc<AtomicU64>,
    /// Before which call; `None`: before each.
    at: Option<u64>,
}

impl std::fmt::Debug for Stepping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stepping")
    }
}

impl Stepping {
    fn call(&self) {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        if self.at.is_none_or(|at| at == number)
            && let Some(step) = &mut *self.step.lock().unwrap()
        {
            step();
        }
    }
}

impl Vfs for Stepping {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        self.call();
        let inner = self.inner.open(path, options)?;
        Ok(Arc::new(SteppingFile { inner, vfs: self.clone() }))
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.call();
        self.inner.list(directory)
    }
    pass_on! {
        inner: rename remove hard_link clone_file create_dir_all remove_dir sync_dir exists lock
            mark free_space
    }
}

#[derive(Debug)]
struct SteppingFile {
    inner: Arc<dyn VfsFile>,
    vfs: Stepping,
}

impl VfsFile for SteppingFile {
    fn read_at(&self, to: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        self.vfs.call();
        self.inner.read_at(to, offset, class)
    }
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        self.inner.write_at(bytes, offset, class)
    }
    fn len(&self) -> io::Result<u64> {
        self.vfs.call();
        self.inner.len()
    }
    pass_on! {
        inner: sync_data start_writeback finish_writeback punch_hole preallocate truncate allocated
            links modified
            alignment poison
    }
}

/// A writer whose manifest is replaced all the time, and its logs with it.
fn restless(limit: &str) -> Options {
    let mut options = options();
    options.manifest_bytes_max = 256;
    options.apply_str_list(limit).unwrap();
    options
}

/// At each call of an open, once, the writer stores what logs have, compacts, and begins another
/// manifest.
#[test]
fn an_open_sees_one_moment_whenever_the_writer_moves() {
    for limit in ["reader_lease_seconds=3600", "reader_lease_seconds=0"] {
        let mut at = 0;
        loop {
            let vfs = MemVfs::new();
            let db = open(&vfs, &restless(limit));
            overwrite(&db, 0);
            // These are in the log alone.
            for at in 0..KEYS / 2 {
                db.put(key(at), value(at, 1)).unwrap();
            }
            let before = contents(&db);
            let calls = Arc::new(AtomicU64::new(0));
            let moved = Arc::new(AtomicBool::new(false));
            let (step_db, told) = (db, moved.clone());
            let step: Step = Box::new(move || {
                overwrite(&step_db, 2);
                told.store(true, Ordering::Relaxed);
            });
            let stepping = Stepping {
                inner: as_vfs(&vfs),
                step: Arc::new(Mutex::new(Some(step))),
                calls: calls.clone(),
                at: Some(at),
            };
            let reader = Db::open_read_only_with(Arc::new(stepping), "/db", options())
                .unwrap_or_else(|error| panic!("call {at}, {limit}: {error}"));
            let opened = calls.load(Ordering::Relaxed);
            if moved.load(Ordering::Relaxed) {
                // The tables are read only now.
                let mut seen = Contents::new();
                let mut iter = reader.cursor(&ReadOptions::default()).unwrap();
                iter.seek_to_first();
                while iter.valid() {
                    seen.insert(iter.key().to_vec(), iter.value().to_vec());
                    iter.next();
                }
                match iter.status() {
                    Ok(()) => assert!(
                        seen == before || is_prefix_of_overwriting(&seen),
                        "call {at}, {limit}"
                    ),
                    Err(Error::Behind { .. }) if limit.ends_with("=0") => {}
                    Err(error) => panic!("call {at}, {limit}: {error}"),
                }
            }
            if at >= opened {
                break;
            }
            at += 1;
        }
        println!("{limit}: {at} calls");
        assert!(at > 10);
    }
}

/// Whether the keys up to one have the values of round 2, and those behind what was there before.
fn is_prefix_of_overwriting(seen: &Contents) -> bool {
    let before = |at: usize| value(at, usize::from(at < KEYS / 2));
    (0..=KEYS).any(|end| {
        (0..KEYS).all(|at| {
            let expected = if at < end { value(at, 2) } else { before(at) };
            seen.get(key(at).as_bytes()) == Some(&expected)
        })
    })
}

/// The writer moves at each call of the reader: the open ends, and calls nothing damaged.
#[test]
fn an_open_beside_a_writer_that_never_rests_ends() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &restless("reader_lease_seconds=0"));
    overwrite(&db, 0);
    let mut round = 1;
    let step: Step = Box::new(move || {
        db.put(key(round % KEYS), value(round % KEYS, round)).unwrap();
        db.flush().unwrap();
        if round % 7 == 0 {
            overwrite(&db, round);
        }
        settle(&db);
        round += 1;
    });
    let stepping = Stepping {
        inner: as_vfs(&vfs),
        step: Arc::new(Mutex::new(Some(step))),
        calls: Arc::default(),
        at: None,
    };
    let (opened, behind) = (Cell::new(0), Cell::new(0));
    for _ in 0..5 {
        match Db::open_read_only_with(Arc::new(stepping.clone()), "/db", options()) {
            Ok(reader) => {
                opened.set(opened.get() + 1);
                for at in 0..KEYS {
                    match reader.get(key(at)) {
                        Ok(found) => assert!(found.is_some()),
                        Err(error) => assert!(matches!(error, Error::Behind { .. }), "{error}"),
                    }
                }
            }
            Err(error) => {
                assert!(matches!(error, Error::Behind { .. }), "{error}");
                behind.set(behind.get() + 1);
            }
        }
    }
    println!("{} opened, {} behind", opened.get(), behind.get());
}

/// A table that is given back while its file is dumped is not damaged.
#[test]
fn a_dump_beside_a_writer() {
    let vfs = MemVfs::new();
    let mut writers = options();
    writers.reader_lease_seconds = 0;
    let db = open(&vfs, &writers);
    overwrite(&db, 0);
    let file = db.live_tables()[0].file.clone();
    for at in 0..40 {
        overwrite(&db, 0);
        let step_db = db.clone();
        let step: Step = Box::new(move || overwrite_some(&step_db, 1));
        let stepping = Stepping {
            inner: as_vfs(&vfs),
            step: Arc::new(Mutex::new(Some(step))),
            calls: Arc::default(),
            at: Some(at),
        };
        let dumped =
            dump::table_with(&stepping, &file, &mut |_| std::ops::ControlFlow::Continue(()));
        if let Err(error) = dumped {
            assert!(!error.is_corruption(), "call {at}: {error}");
        }
    }
}

#[test]
fn marks_are_seen_by_the_holder_of_the_lock_and_end_with_their_handles() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = place.path().join("LOCK");
    let vfs = PosixVfs::new();
    assert!(vfs.mark(&path, 7).is_err(), "a reader makes no file");
    let lock = vfs.lock(&path).unwrap();
    assert!(lock.marks().unwrap().is_empty());
    let marks: Vec<Box<dyn VfsLock>> =
        [7, 9, 9, 1 << 40, u64::MAX].map(|at| vfs.mark(&path, at).unwrap()).into();
    assert_eq!(lock.marks().unwrap().len(), 4, "one of them twice");
    assert_eq!(vfs.lock_holder(&path).as_deref(), Some("this process"));
    assert!(vfs.lock(&path).is_err(), "it is locked still");
    drop(lock);
    let lock = vfs.lock(&path).expect("marks keep nobody out");
    assert_eq!(lock.marks().unwrap().len(), 4);
    drop(marks);
    assert!(lock.marks().unwrap().is_empty());
}
