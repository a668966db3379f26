//! Traces of calls: what clients asked is recorded, in the order of the commits, and a database
//! into which the trace is played has the same content.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sateen::vfs::{IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{
    ColumnFamilyOptions, Db, Error, Merging, Options, ReadOptions, Regions, ReplayOptions,
    Replayed, Replayer, TraceCall, TraceKinds, TraceOptions, TraceReader, TraceRecord,
    TransactionOptions, WriteBatch, WriteOptions,
};

use crate::support::common::{Random, appending, as_vfs, contents, read_all, tiny};

pub(crate) const TRACE: &str = "/trace";

pub(crate) fn open(vfs: &MemVfs, path: &str, options: Options) -> Db {
    Db::open_with(as_vfs(vfs), path, options, &[]).unwrap()
}

/// Replays without waiting.
fn fast(threads: u32) -> ReplayOptions {
    ReplayOptions { speed: f64::INFINITY, threads, ..ReplayOptions::default() }
}

pub(crate) fn calls(vfs: &dyn Vfs) -> Vec<TraceRecord> {
    TraceReader::open_with(vfs, TRACE).unwrap().collect::<Result<_, _>>().unwrap()
}

fn key(random: &mut Random) -> String {
    format!("key{:03}", random.below(200))
}

/// Options of a column family in which what is stored differs from what was written.
fn odd() -> ColumnFamilyOptions {
    let mut options = tiny().column_family;
    options.merge_operator = Some(appending());
    options.ttl = Some(Duration::from_secs(100_000));
    options.regions = Regions::at(["key050", "key150"]).unwrap();
    options
}

fn with_families(vfs: &MemVfs, path: &str) -> Db {
    let mut options = Options { background_threads: 2, ..tiny() };
    options.column_family.merge_operator = Some(appending());
    let db = open(vfs, path, options);
    // Its id differs from that of the other database.
    if path == "/other" {
        db.create_column_family("first", odd()).unwrap();
    }
    db.create_column_family("odd", odd()).unwrap();
    db
}

/// Writes in every way there is, and reads.
fn work(db: &Db, seed: u64) {
    let (mut random, odd) = (Random::new(seed), db.column_family("odd").unwrap());
    let write = WriteOptions::default();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    for number in 0..300 {
        let (key, value) = (key(&mut random), format!("{seed} {number}"));
        match random.below(12) {
            0 => db.delete(key).unwrap(),
            1 => db.merge(key, value).unwrap(),
            2 => odd.put(key, value).unwrap(),
            3 => odd.merge(key, value).unwrap(),
            4 => {
                let mut batch = WriteBatch::new();
                batch.put(&key, &value).unwrap();
                batch.to(&odd).delete_range(&key, "key999").unwrap();
                batch.to(&odd).put(&key, &value).unwrap();
                if number % 2 == 0 {
                    // The same range again, for which the first deletion is no reason to drop it.
                    batch.to(&odd).delete_range(&key, "key999").unwrap();
                }
                batch.put_log_data("noted").unwrap();
                db.write(&batch, &write).unwrap();
            }
            5 => {
                let mut transaction = db.transaction();
                transaction.get_for_update(&key).unwrap();
                transaction.put(&key, &value).unwrap();
                // Another thread may have written the key.
                let _busy = transaction.commit();
            }
            6 => {
                let mut transaction = db.transaction_with(&TransactionOptions::pessimistic());
                if transaction.put(&key, &value).is_ok() {
                    transaction.commit().unwrap();
                }
            }
            7 => drop(db.writing(&write).try_put(key, value).unwrap()),
            8 => db.writing(&unlogged).put(key, value).unwrap(),
            9 => drop(db.multi_get(&[&key, "key007"])),
            10 => drop(odd.get(key).unwrap()),
            _ => db.range(key..).unwrap().take(3).for_each(|entry| drop(entry.unwrap())),
        }
    }
}

fn all(db: &Db) -> [Vec<(Vec<u8>, Vec<u8>)>; 2] {
    let odd = db.column_family("odd").unwrap();
    [contents(db), read_all(&odd, &ReadOptions::default())].map(|all| all.into_iter().collect())
}

#[test]
fn a_replayed_trace_makes_the_same_database() {
    for threads in [1, 4] {
        let vfs = MemVfs::new();
        let db = with_families(&vfs, "/db");
        db.start_trace(TRACE, &TraceOptions::default()).unwrap();
        // Several writers: the trace has their writes in the order of the commits.
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let db = &db;
                scope.spawn(move || work(db, writer + 10 * u64::from(threads)));
            }
        });
        let summary = db.end_trace().unwrap();
        assert_eq!((summary.lost, summary.is_full), (0, false));
        assert_eq!(summary.records, calls(&vfs).len() as u64);
        assert_eq!(summary.bytes, vfs.contents(Path::new(TRACE)).unwrap().len() as u64);

        let other = with_families(&vfs, "/other");
        let odd = other.column_family("odd").unwrap();
        let mut replayer = Replayer::new(&other, other.open_trace(TRACE).unwrap());
        replayer.map(db.column_family("odd").unwrap().id(), &odd).unwrap();
        let replayed = replayer.replay(&fast(threads)).unwrap();
        assert_eq!((replayed.calls, replayed.lost), (summary.records, 0));
        assert_eq!(all(&db), all(&other), "{threads} threads");
        // It has ended, until it is told to begin again.
        assert_eq!(replayer.replay(&fast(1)).unwrap().calls, 0);
        replayer.rewind();
        assert_eq!(replayer.replay(&fast(1)).unwrap().calls, summary.records);
    }
}

#[test]
fn a_trace_has_each_call_as_it_was_made() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    let family = db.create_column_family("other", ColumnFamilyOptions::default()).unwrap();
    db.put("before", "").unwrap();
    db.start_trace(TRACE, &TraceOptions::default()).unwrap();
    db.put("a", "1").unwrap();
    assert_eq!(family.get("a").unwrap(), None);
    drop(db.multi_get(&["a", "b"]));
    drop(db.multi_get::<&str>(&[]));
    let bounds = ReadOptions { upper_bound: Some(b"x".to_vec()), ..ReadOptions::default() };
    let mut cursor = family.cursor(&bounds).unwrap();
    cursor.seek("k");
    cursor.seek_for_prev("l");
    cursor.seek_to_first();
    cursor.seek_to_last();
    db.end_trace().unwrap();
    db.put("after", "").unwrap();

    let records = calls(&vfs);
    assert!(records.is_sorted_by_key(|record| record.at_us));
    let shown: Vec<String> = records.iter().map(|record| shown(&record.call)).collect();
    let id = family.id();
    let expected = [
        "write 1".to_owned(),
        format!("get {id} a"),
        "multi get 0 a, 0 b".to_owned(),
        format!("seek {id} k"),
        format!("seek for prev {id} l"),
        format!("seek {id} "),
        format!("seek for prev {id} x"),
    ];
    assert_eq!(shown, expected);
    let mut replayer = Replayer::new(&db, db.open_trace(TRACE).unwrap());
    assert!(replayer.start_us() <= records[0].at_us);
    let write = WriteOptions::default();
    let mut results = Vec::new();
    while let Some(record) = replayer.next_record().unwrap() {
        results.push(replayer.execute(&record, &write).unwrap());
    }
    assert_eq!(results[0], Replayed::Written);
    assert_eq!(results[2], Replayed::Values(vec![Some(b"1".to_vec()), None]));
    assert_eq!(results[3], Replayed::Entry(None));
}

fn shown(call: &TraceCall) -> String {
    let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
    match call {
        TraceCall::Write(batch) => format!("write {}", batch.count()),
        TraceCall::Get { family, key } => format!("get {} {}", family.0, text(key)),
        TraceCall::MultiGet(keys) => {
            let keys: Vec<_> =
                keys.iter().map(|(id, key)| format!("{} {}", id.0, text(key))).collect();
            format!("multi get {}", keys.join(", "))
        }
        TraceCall::Seek(seek) => {
            assert_eq!((seek.lower.as_deref(), seek.upper.as_deref()), (None, Some(&b"x"[..])));
            let how = if seek.backwards { "seek for prev" } else { "seek" };
            format!("{how} {} {}", seek.family.0, text(&seek.key))
        }
        call => panic!("{call:?}"),
    }
}

#[test]
fn what_is_recorded_can_be_chosen() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    let traced = |options: TraceOptions| {
        let options = TraceOptions { replace: true, ..options };
        db.start_trace(TRACE, &options).unwrap();
        for number in 0..100_u32 {
            db.put(number.to_be_bytes(), [7; 50]).unwrap();
            db.get(number.to_be_bytes()).unwrap();
        }
        db.end_trace().unwrap()
    };
    let gets = TraceKinds { gets: true, ..TraceKinds::NONE };
    assert_eq!(traced(TraceOptions { kinds: gets, ..TraceOptions::default() }).records, 100);
    assert!(calls(&vfs).iter().all(|record| matches!(record.call, TraceCall::Get { .. })));
    let sampled = TraceOptions { sampling_frequency: 7, ..TraceOptions::default() };
    assert_eq!(traced(sampled).records, 200 / 7);
    let full = traced(TraceOptions { max_file_bytes: 3000, ..TraceOptions::default() });
    assert!(full.is_full && full.bytes <= 3000 && full.records > 10, "{full:?}");
    assert_eq!(calls(&vfs).len() as u64, full.records);
    assert_eq!(vfs.contents(Path::new(TRACE)).unwrap().len() as u64, full.bytes);
}

#[test]
fn a_trace_is_recorded_once_and_replaces_no_file_unasked() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    let told = |done: Result<(), Error>| done.unwrap_err().to_string();
    let options = TraceOptions::default();
    assert!(told(db.end_trace().map(drop)).contains("no trace"));
    db.start_trace(TRACE, &options).unwrap();
    assert!(told(db.start_trace("/second", &options)).contains("already"));
    assert!(!vfs.exists(Path::new("/second")).unwrap());
    db.put("key", "value").unwrap();
    // The close ends it.
    db.close().unwrap();
    assert_eq!(calls(&vfs).len(), 1);
    assert!(matches!(db.start_trace("/second", &options), Err(Error::Closed)));
    assert!(matches!(db.end_trace(), Err(Error::Closed)));

    let db = open(&vfs, "/db", tiny());
    assert!(told(db.start_trace(TRACE, &options)).contains("create"));
    assert_eq!(calls(&vfs).len(), 1);
    db.start_trace(TRACE, &TraceOptions { replace: true, ..options }).unwrap();
    db.end_trace().unwrap();
    assert_eq!(calls(&vfs).len(), 0);
}

#[test]
fn a_reader_is_traced_too() {
    let vfs = MemVfs::new();
    open(&vfs, "/db", tiny()).put("key", "value").unwrap();
    let reader = Db::open_read_only_with(as_vfs(&vfs), "/db", tiny()).unwrap();
    reader.start_trace(TRACE, &TraceOptions::default()).unwrap();
    reader.get("key").unwrap();
    assert_eq!(reader.end_trace().unwrap().records, 1);
    assert_eq!(calls(&vfs).len(), 1);
}

#[test]
fn a_replay_keeps_the_times_and_needs_a_speed() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    db.start_trace(TRACE, &TraceOptions::default()).unwrap();
    db.put("a", "1").unwrap();
    std::thread::sleep(Duration::from_millis(60));
    db.put("b", "2").unwrap();
    db.end_trace().unwrap();
    let records = calls(&vfs);
    let apart = Duration::from_micros(records[1].at_us - records[0].at_us);
    assert!(apart >= Duration::from_millis(60));
    let mut replayer = Replayer::new(&db, db.open_trace(TRACE).unwrap());
    for speed in [0.0, -1.0, f64::NAN] {
        let error = replayer.replay(&ReplayOptions { speed, ..fast(1) }).unwrap_err();
        assert!(error.to_string().contains("speed"), "{error}");
    }
    let begun = std::time::Instant::now();
    let summary = replayer.replay(&ReplayOptions { speed: 2.0, ..fast(1) }).unwrap();
    assert!(begun.elapsed() >= apart / 2 && summary.calls == 2);
}

#[test]
fn a_column_family_that_is_missing_ends_the_replay() {
    for threads in [1, 3] {
        let vfs = MemVfs::new();
        let db = open(&vfs, "/db", tiny());
        let family = db.create_column_family("other", ColumnFamilyOptions::default()).unwrap();
        db.start_trace(TRACE, &TraceOptions::default()).unwrap();
        db.put("a", "1").unwrap();
        family.get("a").unwrap();
        db.end_trace().unwrap();
        let other = open(&vfs, "/other", tiny());
        let mut replayer = Replayer::new(&other, other.open_trace(TRACE).unwrap());
        let error = replayer.replay(&fast(threads)).unwrap_err();
        assert!(matches!(error, Error::NoSuchColumnFamily(_)), "{error}");
        assert!(other.contains_key("a").unwrap());
        assert!(replayer.map(family.id(), &family).is_err(), "it is of the other database");
    }
}

/// The column family that holds prepared transactions is no client's, and other databases lack it.
#[test]
fn prepared_transactions_are_traced_when_they_are_committed() {
    let vfs = MemVfs::new();
    let prepare = |db: &Db, name: &str| {
        let mut transaction = db.transaction_with(&TransactionOptions::pessimistic());
        transaction.put(name, "value").unwrap();
        transaction.prepare(name).unwrap();
        transaction
    };
    drop(prepare(&open(&vfs, "/db", tiny()), "before"));
    let db = open(&vfs, "/db", tiny());
    db.start_trace(TRACE, &TraceOptions::default()).unwrap();
    // This reads those from before the open.
    assert_eq!(db.list_prepared().unwrap(), [b"before"]);
    prepare(&db, "committed").commit().unwrap();
    prepare(&db, "undone").rollback().unwrap();
    db.prepared_transaction("before").unwrap().unwrap().commit().unwrap();
    db.end_trace().unwrap();
    assert!(calls(&vfs).iter().all(|record| matches!(record.call, TraceCall::Write(_))));
    let other = open(&vfs, "/other", tiny());
    let mut replayer = Replayer::new(&other, other.open_trace(TRACE).unwrap());
    assert_eq!(replayer.replay(&fast(1)).unwrap().calls, 2);
    assert_eq!(contents(&db), contents(&other));
    assert_eq!(contents(&other).len(), 2);
}

/// Nobody waits for a thread that is gone.
#[test]
fn a_read_that_panics_ends_the_replay() {
    let vfs = MemVfs::new();
    let merging = |operator| {
        let mut options = tiny();
        options.column_family.merge_operator = Some(operator);
        options
    };
    let db = open(&vfs, "/db", merging(appending()));
    db.start_trace(TRACE, &TraceOptions::default()).unwrap();
    db.merge("key", "operand").unwrap();
    for _ in 0..3000 {
        db.get("key").unwrap();
    }
    db.end_trace().unwrap();
    let panics = Merging::associative("append", |_key, _before, _operand| panic!("a bad operator"));
    let other = open(&vfs, "/other", merging(panics));
    let mut replayer = Replayer::new(&other, other.open_trace(TRACE).unwrap());
    let error = replayer.replay(&fast(3)).unwrap_err();
    assert!(matches!(error, Error::Panicked { .. }), "{error}");
    assert!(error.to_string().contains("a bad operator"), "{error}");
    let error = replayer.replay(&fast(5000)).unwrap_err();
    assert!(error.to_string().contains("threads: a replay has at most 1024"), "{error}");
}

#[test]
fn reads_that_are_refused_are_not_traced() {
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    let family = db.create_column_family("other", ColumnFamilyOptions::default()).unwrap();
    db.drop_column_family(&family).unwrap();
    db.start_trace(TRACE, &TraceOptions::default()).unwrap();
    assert!(family.multi_get(&["a"])[0].is_err());
    let _found = family.get("a");
    assert_eq!(db.end_trace().unwrap().records, 0);
}

/// A trace as RocksDB 10 writes it: without checksums, with the markers of two-phase commits, and
/// without its last record, because the process was killed.
#[test]
fn a_trace_of_rocksdb_is_replayed() {
    let record = |time: u64, kind: u8, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap();
        [&time.to_le_bytes()[..], &[kind], &length.to_le_bytes(), payload].concat()
    };
    let header = b"feedcafedeadbeef\tTrace Version: 0.2\tRocksDB Version: 10.4\t\
                   Format: Timestamp OpType Payload\n";
    // The commit of a prepared transaction.
    let batch = b"\0\0\0\0\0\0\0\0\x02\0\0\0\x0b\x03xid\
                  \x09\x01\x01k\x01v\x05\x01\x01m\x01w\x0a\x03xid";
    let length = u8::try_from(batch.len()).unwrap();
    let write = [b"\x02\0\0\0\0\0\0\0", &[length][..], &batch[..]].concat();
    let get = b"\x0c\0\0\0\0\0\0\0\0\0\0\0\x01k";
    let bytes = [
        record(1_000_000, 1, header),
        record(1_000_010, 3, &write),
        record(1_000_020, 99, b"of a later version"),
        record(1_000_030, 4, get),
    ]
    .concat();
    let vfs = MemVfs::new();
    let file = vfs.open(Path::new(TRACE), OpenOptions::CREATE).unwrap();
    file.write_at(&bytes, 0, IoClass::Client).unwrap();
    let db = open(&vfs, "/db", tiny());
    let family = db.create_column_family("other", ColumnFamilyOptions::default()).unwrap();
    let mut replayer = Replayer::new(&db, db.open_trace(TRACE).unwrap());
    assert_eq!(replayer.start_us(), 1_000_000);
    replayer.map(1, &family).unwrap();
    assert_eq!(replayer.replay(&fast(1)).unwrap().calls, 2);
    assert_eq!(db.get("k").unwrap().unwrap(), b"v");
    assert_eq!(family.get("m").unwrap().unwrap(), b"w");
}

#[test]
fn virtual_time_needs_no_thread() {
    let _time = sateen::test_support::clock::VirtualTime::begin(1);
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    db.start_trace(TRACE, &TraceOptions::default()).unwrap();
    for number in 0..3000_u32 {
        db.put(number.to_be_bytes(), [7; 50]).unwrap();
    }
    let written = vfs.contents(Path::new(TRACE)).unwrap().len();
    assert!(written > 60 << 10, "the calls have written {written} bytes");
    assert_eq!(db.end_trace().unwrap().records, 3000);
    assert_eq!(calls(&vfs).len(), 3000);
}

#[test]
fn a_trace_goes_wherever_a_writer_takes_it() {
    struct Kept(Arc<std::sync::Mutex<Vec<u8>>>);
    impl sateen::TraceWriter for Kept {
        fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(())
        }
    }
    let vfs = MemVfs::new();
    let db = open(&vfs, "/db", tiny());
    let bytes = Arc::default();
    db.start_trace_to(Box::new(Kept(Arc::clone(&bytes))), &TraceOptions::default()).unwrap();
    db.put("key", "value").unwrap();
    let summary = db.end_trace().unwrap();
    assert_eq!(bytes.lock().unwrap().len() as u64, summary.bytes);
}
