//! Listeners, pausing background work, compacting files by name, filters of tables.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, MemVfs, Vfs, VfsOperation};
use sateen::{
    CompactFilesOptions, CompactionInfo, Db, Error, ErrorReason, EventListener, FlushInfo,
    FlushOptions, LiveTable, Options, ReadOptions, SealInfo, TableFilter, ValueFileInfo,
    WaitForCompactOptions,
};

use crate::support::common::{as_vfs, assert_sound, tiny};

/// Writes down what it is told, one line each.
#[derive(Default)]
struct Writer {
    lines: Mutex<Vec<String>>,
    panics: AtomicBool,
}

impl Writer {
    fn line(&self, text: String) {
        self.lines.lock().unwrap().push(text);
        assert!(!self.panics.load(Ordering::Relaxed), "a listener that panics");
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

impl EventListener for Writer {
    fn flush_begins(&self, _db: &Db, flush: &FlushInfo) {
        self.line(format!("flush of {} begins", flush.column_family));
    }
    fn flush_ended(&self, db: &Db, flush: &FlushInfo) {
        let entries: u64 = flush.tables.iter().map(|table| table.entries).sum();
        // No lock is held, and what it tells is there.
        let tables = db.live_tables();
        assert!(flush.tables.iter().all(|table| tables.contains(table)));
        db.get("a").unwrap();
        self.line(format!("flush of {entries} entries ended"));
    }
    fn compaction_begins(&self, _db: &Db, compaction: &CompactionInfo) {
        self.line(format!("compaction of {} begins", compaction.inputs.len()));
    }
    fn compaction_ended(&self, _db: &Db, compaction: &CompactionInfo) {
        let error = compaction.error.as_ref().map_or("well", |_| "badly");
        let (inputs, outputs) = (compaction.inputs.len(), compaction.outputs.len());
        self.line(format!("compaction of {inputs} into {outputs} ended {error}"));
    }
    fn memtable_sealed(&self, memtable: &SealInfo) {
        self.line(format!("sealed {} from {}", memtable.entries, memtable.first_seqno));
    }
    fn background_error(&self, reason: ErrorReason, _error: &Error) {
        self.line(format!("{reason:?} failed"));
    }
    fn recovered(&self) {
        self.line("recovered".into());
    }
}

/// A database whose steps the test does, and what its listener is told.
fn open(vfs: Arc<dyn sateen::vfs::Vfs>) -> (Db, Arc<Writer>) {
    let writer = Arc::new(Writer::default());
    let mut options = Options { background_threads: 0, ..tiny() };
    options.column_family.disable_auto_compactions = true;
    options.listeners.add(writer.clone());
    (Db::open_with(vfs, "/db", options, &[]).unwrap(), writer)
}

#[test]
fn flushes_and_compactions_are_told_in_order() {
    let (db, writer) = open(as_vfs(&MemVfs::new()));
    db.put("a", "1").unwrap();
    db.put("b", "1").unwrap();
    db.flush().unwrap();
    let flush = ["sealed 2 from 1", "flush of default begins", "flush of 2 entries ended"];
    assert_eq!(writer.take(), flush);
    db.put("a", "2").unwrap();
    db.flush().unwrap();
    let flush = ["sealed 1 from 3", "flush of default begins", "flush of 1 entries ended"];
    assert_eq!(writer.take(), flush);
    let family = db.default_column_family();
    family.compact_range(None, None, &Default::default()).unwrap();
    assert_eq!(writer.take(), ["compaction of 2 begins", "compaction of 2 into 1 ended well"]);
}

/// What is told of value files.
#[derive(Default)]
struct ValueFiles {
    ended: Mutex<Vec<[Vec<ValueFileInfo>; 2]>>,
    created: Mutex<Vec<ValueFileInfo>>,
    deleted: Mutex<Vec<PathBuf>>,
}

impl EventListener for ValueFiles {
    fn flush_begins(&self, _db: &Db, flush: &FlushInfo) {
        assert!(flush.value_files.is_empty());
    }
    fn flush_ended(&self, _db: &Db, flush: &FlushInfo) {
        self.ended.lock().unwrap().push([flush.value_files.clone(), Vec::new()]);
    }
    fn compaction_begins(&self, _db: &Db, compaction: &CompactionInfo) {
        assert!(compaction.value_files.is_empty() && compaction.value_garbage.is_empty());
    }
    fn compaction_ended(&self, _db: &Db, compaction: &CompactionInfo) {
        let files = [compaction.value_files.clone(), compaction.value_garbage.clone()];
        self.ended.lock().unwrap().push(files);
    }
    fn value_file_created(&self, db: &Db, column_family: &str, file: &ValueFileInfo) {
        assert_eq!(column_family, "default");
        assert!(db.contains_key("a1").unwrap());
        self.created.lock().unwrap().push(file.clone());
    }
    fn value_file_deleted(&self, _db: &Db, file: &Path) {
        self.deleted.lock().unwrap().push(file.to_owned());
    }
}

#[test]
fn value_files_are_told_from_their_making_to_their_end() {
    let vfs = MemVfs::new();
    let heard = Arc::new(ValueFiles::default());
    let mut options = Options { background_threads: 0, ..tiny() };
    options.column_family.disable_auto_compactions = true;
    options.column_family.value_separation_bytes = 100;
    options.column_family.memtable_bytes = 1 << 20;
    options.listeners.add(heard.clone());
    let db = Db::open_with(as_vfs(&vfs), "/db", options, &[]).unwrap();
    let ended = || heard.ended.lock().unwrap().pop().unwrap();
    for key in 0..10 {
        db.put(format!("a{key}"), [b'1'; 300]).unwrap();
    }
    db.put("small", "1").unwrap();
    db.flush().unwrap();
    let [files, _] = ended();
    let [first] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!((first.values, first.bytes), (10, 3000));
    assert!(vfs.exists(&first.file).unwrap() && first.number > 0);
    assert_eq!(*heard.created.lock().unwrap(), files);
    // Three are overwritten, one is deleted.
    for key in 0..3 {
        db.put(format!("a{key}"), [b'2'; 200]).unwrap();
    }
    db.delete("a3").unwrap();
    db.flush().unwrap();
    let [files, _] = ended();
    let second = files[0].clone();
    assert_eq!((second.values, second.bytes), (3, 600));
    db.compact_range(None, None, &Default::default()).unwrap();
    let [files, garbage] = ended();
    assert_eq!(files, []);
    let [of_first] = garbage.as_slice() else { panic!("{garbage:?}") };
    assert_eq!((&of_first.file, of_first.values, of_first.bytes), (&first.file, 4, 1200));
    assert!(heard.deleted.lock().unwrap().is_empty());
    // The rest of the first file dies.
    for key in 4..10 {
        db.delete(format!("a{key}")).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(ended()[0], []);
    db.compact_range(None, None, &Default::default()).unwrap();
    let [_, garbage] = ended();
    assert_eq!((garbage[0].values, garbage[0].bytes), (6, 1800));
    while db.step().unwrap() {}
    db.wait_for_listeners();
    let deleted = heard.deleted.lock().unwrap();
    assert_eq!(*deleted, std::slice::from_ref(&first.file));
    assert!(!vfs.exists(&first.file).unwrap());
    assert_eq!(*heard.created.lock().unwrap(), [first.clone(), second]);
}

/// What a listener does wrong is not the database's: jobs end as they would.
#[test]
fn a_listener_that_panics_changes_nothing() {
    let (db, writer) = open(as_vfs(&MemVfs::new()));
    writer.panics.store(true, Ordering::Relaxed);
    for round in 0..3 {
        db.put("a", round.to_string()).unwrap();
        db.flush().unwrap();
    }
    let family = db.default_column_family();
    family.compact_range(None, None, &Default::default()).unwrap();
    db.wait_for_listeners();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(db.live_tables().len(), 1);
    assert_sound(&db);
}

#[test]
fn failures_are_told_with_what_was_done() {
    let faulty = FaultVfs::new(as_vfs(&MemVfs::new()));
    let (db, writer) = open(Arc::new(faulty.clone()));
    db.put("a", "1").unwrap();
    faulty.add(FaultRule::new(Fault::Io).class(IoClass::Flush).on(VfsOperation::Write));
    db.flush().unwrap_err();
    faulty.clear();
    db.resume().unwrap();
    db.flush().unwrap();
    while db.step().unwrap() {}
    let told = writer.take();
    let failed = told.iter().position(|line| line == "Flush failed").unwrap();
    let recovered = told.iter().position(|line| line == "recovered").unwrap();
    assert!(failed < recovered && told.iter().any(|line| line == "flush of 1 entries ended"));
}

/// A paused database takes writes, and does nothing else; what was under way goes on later.
#[test]
fn a_paused_database_flushes_and_compacts_nothing() {
    let (db, writer) = open(as_vfs(&MemVfs::new()));
    let family = db.default_column_family();
    db.pause_background_work().unwrap();
    db.pause_background_work().unwrap();
    db.put("a", "1").unwrap();
    family.flush_with(&FlushOptions { wait: false }).unwrap();
    for paused in [true, true, false] {
        for _ in 0..50 {
            db.step().unwrap();
        }
        let wait = WaitForCompactOptions {
            abort_on_pause: true,
            timeout: Some(Duration::from_secs(60)),
            ..Default::default()
        };
        let waited = db.wait_for_compact(&wait);
        assert_eq!(db.live_tables().is_empty(), paused);
        let flushes = writer.take().iter().filter(|line| line.starts_with("flush")).count();
        assert_eq!(flushes, if paused { 0 } else { 2 });
        if paused {
            assert!(matches!(waited, Err(Error::BackgroundPaused)), "{waited:?}");
            db.continue_background_work().unwrap();
        } else {
            waited.unwrap();
        }
    }
    assert!(matches!(db.continue_background_work(), Err(Error::InvalidArgument(_))));
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

fn newest_of_level0(db: &Db) -> LiveTable {
    let level0 = db.live_tables().into_iter().filter(|table| table.level == 0);
    level0.max_by_key(|table| table.largest_seqno).unwrap()
}

/// What is older than a chosen table must not stay above it.
#[test]
fn compacting_the_newest_file_takes_what_is_older_along() {
    let (db, _writer) = open(as_vfs(&MemVfs::new()));
    let family = db.default_column_family();
    for value in ["old", "newer", "newest"] {
        db.put("key", value).unwrap();
        db.put(value, "kept").unwrap();
        db.flush().unwrap();
    }
    // It shares no key with the others, and stays.
    db.put("zzz", "apart").unwrap();
    db.flush().unwrap();
    let apart = newest_of_level0(&db);
    let level0 = db.live_tables().into_iter().filter(|table| table.level == 0 && *table != apart);
    let newest = level0.max_by_key(|table| table.largest_seqno).unwrap();
    let options = CompactFilesOptions::default();
    let made = family.compact_files(&[&newest.file], 3, &options).unwrap();
    assert_eq!(made.inputs.len(), 3);
    assert!(made.is_manual && made.output_level == 3 && !made.outputs.is_empty());
    let tables = db.live_tables();
    assert!(made.outputs.iter().all(|table| tables.contains(table)));
    assert!(tables.contains(&apart));
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"newest"[..]));
    for key in ["old", "newer", "newest", "zzz"] {
        assert!(db.get(key).unwrap().is_some(), "{key}");
    }
    // What is in a level goes on from there, and never up.
    let deep = &made.outputs[0].file;
    family.compact_files(&[deep], 2, &options).unwrap_err();
    let further = family.compact_files(&[deep], 5, &options).unwrap();
    assert_eq!((further.start_level, further.output_level), (3, 5));
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"newest"[..]));
    let gone = family.compact_files(&[deep], 5, &options).unwrap_err();
    assert!(gone.to_string().contains("is not a file of the column family"), "{gone}");
    assert_sound(&db);
}

/// Keeps a flush in its last step until the other end of the channel is dropped.
struct Holds(Mutex<Receiver<()>>);

impl EventListener for Holds {
    fn flush_ended(&self, _db: &Db, _flush: &FlushInfo) {
        self.0.lock().unwrap().recv().unwrap_err();
    }
}

/// The tables of a flush are there before the flush has ended. They can be chosen at once.
#[test]
fn files_of_a_flush_that_has_not_ended_are_compacted() {
    let (release, held) = channel();
    let mut options = Options { background_threads: 2, ..tiny() };
    options.column_family.disable_auto_compactions = true;
    options.listeners.add(Arc::new(Holds(Mutex::new(held))));
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    let files: Vec<_> = db.live_tables().into_iter().map(|table| table.file).collect();
    let made = db.compact_files(&files, 6, &CompactFilesOptions::default());
    drop(release);
    assert_eq!(made.unwrap().outputs.len(), 1);
    assert_eq!(db.live_tables()[0].level, 6);
}

#[test]
fn a_cancelled_compaction_of_files_changes_nothing() {
    let (db, _writer) = open(as_vfs(&MemVfs::new()));
    let family = db.default_column_family();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    let before = db.live_tables();
    let cancelled = Some(Arc::new(AtomicBool::new(true)));
    let options = CompactFilesOptions { cancelled, ..Default::default() };
    let refused = family.compact_files(&[&before[0].file], 4, &options).unwrap_err();
    assert!(matches!(refused, Error::ManualCompactionPaused), "{refused}");
    assert_eq!(db.live_tables(), before);
}

/// A filter hides tables from iterators, not from point reads.
#[test]
fn iterators_pass_tables_by_that_a_filter_does_not_want() {
    let (db, _writer) = open(as_vfs(&MemVfs::new()));
    for keys in [&["a"][..], &["b", "c"], &["d", "e", "f"]] {
        keys.iter().for_each(|key| db.put(key, "value").unwrap());
        db.flush().unwrap();
    }
    let asked = Arc::new(Mutex::new(0));
    let counts = asked.clone();
    let filter = TableFilter::new(move |table| {
        *counts.lock().unwrap() += 1;
        table.entries != 2
    });
    let options = ReadOptions { table_filter: Some(filter), ..Default::default() };
    let mut iter = db.cursor(&options).unwrap();
    let mut keys = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        keys.push(iter.key().to_vec());
        iter.next();
    }
    iter.status().unwrap();
    assert_eq!(keys, [b"a", b"d", b"e", b"f"]);
    iter.seek_to_last();
    iter.seek_for_prev("c");
    assert_eq!(iter.key(), b"a");
    assert_eq!(*asked.lock().unwrap(), 3);
    let family = db.default_column_family();
    assert!(family.reading(&options).get_pinned("b").unwrap().is_some());
}
