//! Reading the log: what was written comes out as it went in, once, in order, or it is said that it
//! is gone.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sateen::vfs::{
    CrashChoice, Fault, FaultRule, FaultVfs, IoClass, MemVfs, PosixVfs, Vfs, VfsOperation,
};
use sateen::{
    Db, Error, Options, ReadOptions, Regions, Updates, ValueKind, WalMode, WallClock, WriteBatch,
    WriteOptions,
};

use crate::support::common::{Contents, Random, appending, as_vfs, read_all, tiny};

pub(crate) const OTHER: &str = "other";

/// Logs stay for ever.
pub(crate) fn keeping(mut options: Options) -> Options {
    options.wal_ttl_seconds = 1_000_000;
    options.column_family.merge_operator = Some(appending());
    options
}

pub(crate) fn open(vfs: &MemVfs, options: &Options) -> Db {
    Db::open_with(as_vfs(vfs), "/db", options.clone(), &[]).unwrap()
}

/// The first sequence number and the number of writes of all batches from here to the end.
fn rest(updates: &mut Updates) -> Vec<(u64, u32)> {
    let mut all = Vec::new();
    while updates.valid() {
        all.push((updates.sequence_number(), updates.batch().unwrap().count()));
        updates.next();
    }
    updates.status().unwrap();
    all
}

fn since(db: &Db, seqno: u64) -> Vec<(u64, u32)> {
    rest(&mut db.updates_since(seqno).unwrap())
}

fn refusal(db: &Db, seqno: u64) -> String {
    match db.updates_since(seqno) {
        Err(error @ Error::NotInLog(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn logs(vfs: &dyn Vfs, directory: &Path) -> usize {
    let names = vfs.list(directory).unwrap();
    names.iter().filter(|name| name.extension().is_some_and(|ending| ending == "wal")).count()
}

pub(crate) fn settle(db: &Db) {
    while db.step().unwrap() {}
}

/// A database that is written to as another one was.
pub(crate) struct Replica {
    db: Db,
    pub(crate) next: u64,
}

impl Replica {
    pub(crate) fn new(options: &Options, families: &[&str]) -> Replica {
        let mut options = Options { wal: WalMode::Off, ..options.clone() };
        options.column_family.compaction_filter = None;
        options.column_family.memtable_bytes = 1 << 20;
        let db = Db::open_with(as_vfs(&MemVfs::new()), "/replica", options, &[]).unwrap();
        for name in families {
            let mut options = db.options().column_family;
            options.ttl = None;
            db.create_column_family(name, options).unwrap();
        }
        Replica { db, next: 1 }
    }

    /// Takes in the batch that `updates` is at.
    pub(crate) fn take(&mut self, updates: &Updates) {
        let (first, batch) = (updates.sequence_number(), updates.batch().unwrap());
        assert!(first >= self.next, "{first} comes before {}", self.next);
        self.db.write(batch, &WriteOptions::default()).unwrap();
        self.next = updates.last_sequence_number() + 1;
    }

    pub(crate) fn contents(&self, family: &str) -> Contents {
        let family = self.db.column_family(family).unwrap();
        read_all(&family, &ReadOptions::default())
    }
}

#[test]
fn a_reader_sees_what_is_written_while_it_reads() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    assert_eq!(since(&db, 0), []);
    assert!(refusal(&db, 1).contains("1 is not yet written, the newest is 0"));
    let mut from_the_beginning = db.updates_since(0).unwrap();
    let mut batch = WriteBatch::new();
    for key in ["a", "b", "c"] {
        batch.put(key, "1").unwrap();
    }
    db.write(&batch, &WriteOptions::default()).unwrap();
    db.delete("a").unwrap();
    db.put("d", "4").unwrap();
    for (seqno, expected) in
        [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 2)].map(|(seqno, at)| (seqno, at as usize))
    {
        assert_eq!(since(&db, seqno), [(1, 3), (4, 1), (5, 1)][expected..], "{seqno}");
    }
    assert!(refusal(&db, 6).contains("6 is not yet written, the newest is 5"));

    from_the_beginning.next();
    assert_eq!(from_the_beginning.batch().unwrap(), &batch);
    from_the_beginning.next();
    let entry = from_the_beginning.batch().unwrap().iter().next().unwrap();
    assert_eq!((entry.kind, entry.key), (ValueKind::Delete, &b"a"[..]));
    assert_eq!(rest(&mut from_the_beginning), [(4, 1), (5, 1)]);
    assert_eq!(from_the_beginning.sequence_number(), 0);
    db.put("e", "6").unwrap();
    assert!(!from_the_beginning.valid(), "it moves when it is told to");
    from_the_beginning.next();
    assert_eq!(rest(&mut from_the_beginning), [(6, 1)]);
    db.close().unwrap();
    from_the_beginning.next();
    assert!(matches!(from_the_beginning.status(), Err(Error::Closed)));
}

#[test]
fn a_reader_keeps_the_logs_that_it_has_not_read() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    db.put("first", "1").unwrap();
    let mut updates = db.updates_since(1).unwrap();
    for round in 0..5 {
        db.put(format!("key{round}"), "1").unwrap();
        db.flush().unwrap();
        settle(&db);
    }
    assert!(logs(&vfs, Path::new("/db")) > 5, "one for each flush");
    assert_eq!(rest(&mut updates), (1..=6).map(|seqno| (seqno, 1)).collect::<Vec<_>>());
    db.put("last", "1").unwrap();
    updates.next();
    assert_eq!(updates.sequence_number(), 7);
    settle(&db);
    assert_eq!(logs(&vfs, Path::new("/db")), 2, "the one in use and the next one");
    assert!(
        refusal(&db, 6)
            .contains("6 on are not all in a WAL any more: the oldest WAL begins with 7")
    );
    assert_eq!(rest(&mut db.updates_available_since(1).unwrap()), [(7, 1)]);
    db.close().unwrap();
    drop((updates, db));
    let db = open(&vfs, &tiny());
    assert!(refusal(&db, 7).contains("begins with 8"), "recovery has stored it");
    assert_eq!(rest(&mut db.updates_available_since(7).unwrap()), []);
}

#[test]
fn no_more_is_kept_than_the_limits_say() {
    let vfs = MemVfs::new();
    let mut options = Options { wal_size_limit_bytes: 6000, ..tiny() };
    options.column_family.memtable_bytes = 1 << 20;
    let write = |db: &Db| {
        settle(db);
        for round in 0..10 {
            db.put(format!("key{round}"), vec![7; 900]).unwrap();
            db.flush().unwrap();
            settle(db);
        }
    };
    let db = open(&vfs, &options);
    write(&db);
    assert!(refusal(&db, 3).contains("begins with 6"), "each log has one value");
    assert_eq!(since(&db, 6).len(), 5);
    db.close().unwrap();
    drop(db);
    let db = open(&vfs, &options);
    assert_eq!(since(&db, 6).len(), 5, "kept over reopening");
    write(&db);
    assert_eq!(since(&db, 16).len(), 5);
    assert!(logs(&vfs, Path::new("/db")) <= 8);
    db.close().unwrap();
    drop(db);
    // Who keeps none any more has none.
    let db = open(&vfs, &tiny());
    settle(&db);
    assert_eq!(logs(&vfs, Path::new("/db")), 2);
    refusal(&db, 20);
}

/// What is too old is found out from the files after a reopen.
#[test]
fn old_logs_go_after_reopening_too() {
    let directory = tempfile::tempdir().unwrap();
    let later = Arc::new(AtomicU64::new(0));
    let clock = later.clone();
    let wall_clock = WallClock::new(move || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        now.as_secs() + clock.load(Ordering::Relaxed)
    });
    let options = Options { wal_ttl_seconds: 600, wall_clock, ..tiny() };
    let open = || {
        let vfs = Arc::new(PosixVfs::new());
        Db::open_with(vfs, directory.path(), options.clone(), &[]).unwrap()
    };
    let db = open();
    for round in 0..3 {
        db.put(format!("key{round}"), "1").unwrap();
        db.flush().unwrap();
        settle(&db);
    }
    db.close().unwrap();
    drop(db);
    for (seconds, found) in [(0, true), (300, true), (900, false)] {
        later.store(seconds, Ordering::Relaxed);
        let db = open();
        settle(&db);
        assert_eq!(db.updates_since(1).is_ok(), found, "{seconds} seconds later");
        db.close().unwrap();
    }
}

#[test]
fn what_did_not_go_to_the_log_does_not_come_out() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &keeping(tiny()));
    let family = db.default_column_family();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    family.writing(&unlogged).put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    family.writing(&unlogged).put("c", "3").unwrap();
    assert_eq!(since(&db, 1), [(2, 1)]);
    assert_eq!(since(&db, 3), []);
    db.put("d", "4").unwrap();
    db.close().unwrap();
    drop(db);
    let db = open(&vfs, &keeping(tiny()));
    assert_eq!(since(&db, 1), [(2, 1), (4, 1)]);
    let none =
        Db::open_with(as_vfs(&MemVfs::new()), "/db", Options { wal: WalMode::Off, ..tiny() }, &[]);
    let error = none.unwrap().updates_since(0).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
}

/// Regions and times of values are the engine's own affair.
#[test]
fn batches_come_out_as_they_went_in() {
    let mut options = keeping(tiny());
    options.column_family.regions = Regions::at(["g", "n", "t"]).unwrap();
    options.column_family.ttl = Some(Duration::from_secs(3600));
    let vfs = MemVfs::new();
    let db = open(&vfs, &options);
    let mut without = options.column_family.clone();
    without.ttl = None;
    let other = db.create_column_family(OTHER, without.clone()).unwrap();
    let family = db.default_column_family();
    let mut batch = WriteBatch::new();
    for key in ["a", "h", "o", "z"] {
        batch.to(&family).put(key, "value").unwrap();
        batch.to(&other).merge(key, "operand").unwrap();
        batch.to(&family).single_delete(key).unwrap();
    }
    batch.to(&family).delete_range("b", "y").unwrap();
    batch.to(&family).delete_range("b", "y").unwrap();
    batch.to(&other).delete_range("b", "i").unwrap();
    batch.to(&family).delete_range("b", "c").unwrap();
    batch.to(&other).delete("h").unwrap();
    db.write(&batch, &WriteOptions::default()).unwrap();
    db.put("p", "alone").unwrap();
    let check = |db: &Db| {
        let mut updates = db.updates_since(1).unwrap();
        assert_eq!(updates.batch().unwrap(), &batch);
        updates.next();
        let entry = updates.batch().unwrap().iter().next().unwrap();
        assert_eq!((entry.column_family.0, entry.key, entry.value), (0, &b"p"[..], &b"alone"[..]));
        assert_eq!(updates.sequence_number(), db.latest_sequence_number());
    };
    check(&db);
    db.flush_all().unwrap();
    db.close().unwrap();
    drop((db, family));
    let open = |vfs: &MemVfs, options: &Options| {
        let families = [("default", options.column_family.clone()), (OTHER, without.clone())];
        Db::open_with(as_vfs(vfs), "/db", options.clone(), &families).unwrap()
    };
    check(&open(&vfs, &options));
    // As they came out they can be written to another database.
    let mut replica = Replica::new(&options, &[OTHER]);
    let db = open(&vfs, &options);
    let mut updates = db.updates_since(1).unwrap();
    while updates.valid() {
        replica.take(&updates);
        updates.next();
    }
    let latest = ReadOptions::default();
    for name in ["default", OTHER] {
        let family = db.column_family(name).unwrap();
        assert_eq!(replica.contents(name), read_all(&family, &latest), "{name}");
    }
}

/// A WAL that is replayed at open was needed until then. One that is not needed keeps its age.
#[test]
fn the_age_of_a_log_begins_when_it_is_no_longer_needed() {
    let directory = tempfile::tempdir().unwrap();
    let later = Arc::new(AtomicU64::new(0));
    let clock = later.clone();
    let wall_clock = WallClock::new(move || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        now.as_secs() + clock.load(Ordering::Relaxed)
    });
    let options = Options { wal_ttl_seconds: 600, wall_clock, ..tiny() };
    let open = || {
        let vfs = Arc::new(PosixVfs::new());
        Db::open_with(vfs, directory.path(), options.clone(), &[]).unwrap()
    };
    let db = open();
    db.put("key", "1").unwrap();
    db.close().unwrap();
    drop(db);
    later.store(900, Ordering::Relaxed);
    let db = open();
    db.flush().unwrap();
    settle(&db);
    assert_eq!(since(&db, 1), [(1, 1)]);
    db.close().unwrap();
    drop(db);
    later.store(0, Ordering::Relaxed);
    let wals = || {
        let files = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|it| it == "wal")).collect::<Vec<_>>()
    };
    let oldest = wals().into_iter().min().unwrap();
    let then = SystemTime::now() - std::time::Duration::from_secs(300);
    std::fs::File::options().write(true).open(&oldest).unwrap().set_modified(then).unwrap();
    let db = open();
    settle(&db);
    assert_eq!(since(&db, 1), [(1, 1)]);
    assert_eq!(oldest.metadata().unwrap().modified().unwrap(), then);
}

#[test]
fn a_log_that_died_leaves_a_gap_for_a_reader_that_has_read_none() {
    let faulty = FaultVfs::new(as_vfs(&MemVfs::new()));
    let options = keeping(tiny());
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", options, &[]).unwrap();
    let mut updates = db.updates_since(0).unwrap();
    db.put("a", "1").unwrap();
    faulty.add(FaultRule::new(Fault::Io).class(IoClass::Wal).on(VfsOperation::Write));
    db.put("refused", "2").unwrap_err();
    faulty.clear();
    db.resume().unwrap();
    db.put("b", "3").unwrap();
    updates.next();
    assert!(!updates.valid(), "{updates:?}");
    assert!(matches!(updates.status(), Err(Error::NotInLog(_))), "{:?}", updates.status());
}

/// A log that failed is left behind, and what comes after does not follow it.
#[test]
fn a_log_that_died_leaves_a_gap_that_is_told() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    let options = keeping(tiny());
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", options.clone(), &[]).unwrap();
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    let mut updates = db.updates_since(1).unwrap();
    faulty.add(FaultRule::new(Fault::Io).class(IoClass::Wal).on(VfsOperation::Write));
    db.put("refused", "3").unwrap_err();
    faulty.clear();
    db.resume().unwrap();
    db.put("c", "4").unwrap();
    updates.next();
    assert_eq!(updates.sequence_number(), 2, "what was committed to it is");
    updates.next();
    assert!(!updates.valid(), "what is next did not follow it");
    assert!(matches!(updates.status(), Err(Error::NotInLog(_))), "{:?}", updates.status());
    assert!(refusal(&db, 2).contains("begins with 3"));
    assert_eq!(since(&db, 3), [(3, 1)]);
    db.close().unwrap();
    drop((updates, db));
    let db = open(&mem, &options);
    assert!(refusal(&db, 2).contains("begins with 3"), "after reopening, too");
    assert_eq!(since(&db, 3), [(3, 1)]);
    assert_eq!(db.get("refused").unwrap(), None);
}

#[test]
fn damage_is_told() {
    let vfs = MemVfs::new();
    let options = keeping(tiny());
    let db = open(&vfs, &options);
    settle(&db);
    for round in 0..3 {
        db.put(format!("key{round}"), "1").unwrap();
        db.flush().unwrap();
        settle(&db);
    }
    let names = vfs.list(Path::new("/db")).unwrap();
    let mut names: Vec<_> = names.iter().map(|name| Path::new("/db").join(name)).collect();
    names.retain(|name| name.extension().is_some_and(|ending| ending == "wal"));
    let options = sateen::vfs::OpenOptions { write: true, ..sateen::vfs::OpenOptions::READ };
    let file = vfs.open(&names[1], options).unwrap();
    let end = file.len().unwrap();
    file.write_at(&[0xff], end - 1, IoClass::Wal).unwrap();
    let mut updates = db.updates_since(1).unwrap();
    assert!(updates.valid(), "what comes before the damage is there");
    updates.next();
    assert!(!updates.valid() && updates.status().unwrap_err().is_corruption());
    updates.next();
    assert!(updates.status().unwrap_err().is_corruption(), "an error stays");
    assert_eq!(since(&db, 3), [(3, 1)], "what comes behind it can be asked for");
    file.truncate(end - 1).unwrap();
    let mut updates = db.updates_since(1).unwrap();
    updates.next();
    assert!(updates.status().unwrap_err().is_corruption());
    vfs.remove(&names[1]).unwrap();
    let mut updates = db.updates_since(1).unwrap();
    updates.next();
    assert!(updates.status().unwrap_err().is_corruption());
}

/// What a power loss leaves in tables it leaves in the logs, too, and the way to them: also where
/// one column family alone would not need it.
#[test]
fn kept_logs_have_what_tables_have_after_a_power_loss() {
    for seed in 0..2 {
        let vfs = MemVfs::new();
        let options = keeping(tiny());
        let recording = vfs.record();
        let db = open(&vfs, &options);
        let mut random = Random::new(seed);
        for number in 0..40_u64 {
            db.merge(format!("key{}", random.below(9)), number.to_string()).unwrap();
            db.put(format!("mark{number}"), vec![7; random.below(200) as usize]).unwrap();
            match random.below(5) {
                0 => db.flush().unwrap(),
                1 => settle(&db),
                _ => {}
            }
        }
        let mut images = 0;
        for at in (seed as usize..=recording.len()).step_by(7) {
            for choice in recording.choices_at(at, 1) {
                let image = recording.image_at(at, choice);
                // Twice: what a recovery left is recovered from, too.
                for _ in 0..2 {
                    let Ok(db) = Db::open_with(as_vfs(&image), "/db", options.clone(), &[]) else {
                        panic!("seed {seed}, operation {at}, {choice:?}: cannot be opened");
                    };
                    let mut replica = Replica::new(&options, &[]);
                    let mut updates = db.updates_since(0).unwrap();
                    while updates.valid() {
                        assert_eq!(updates.sequence_number(), replica.next);
                        replica.take(&updates);
                        updates.next();
                    }
                    updates.status().unwrap();
                    let family = db.default_column_family();
                    let stored = read_all(&family, &ReadOptions::default());
                    let replayed = replica.contents("default");
                    assert!(replayed == stored, "seed {seed}, operation {at}, {choice:?}");
                    assert_eq!(replica.next, db.latest_sequence_number() + 1);
                }
                images += 1;
            }
        }
        println!("seed {seed}: {images} images");
    }
}

/// What a killed process left in the logs is durable in them once a recovery has stored it in
/// tables.
#[test]
fn a_power_loss_after_the_recovery_of_a_killed_process() {
    let vfs = MemVfs::new();
    let options = keeping(tiny());
    let faulty = FaultVfs::new(as_vfs(&vfs));
    let db = Db::open_with(Arc::new(faulty.clone()), "/db", options.clone(), &[]).unwrap();
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    // A database that failed syncs nothing when it is closed, as if its process had been killed.
    faulty.add(FaultRule::new(Fault::Io).class(IoClass::Wal).on(VfsOperation::Write));
    db.put("c", "3").unwrap_err();
    db.close().unwrap_err();
    drop(db);
    let db = open(&vfs, &options);
    assert_eq!(since(&db, 0), [(1, 1), (2, 1)]);
    let image = vfs.crash_image(CrashChoice::SyncedOnly);
    let db = open(&image, &options);
    assert!(db.get("b").unwrap().is_some(), "the recovery stored it");
    assert_eq!(since(&db, 0), [(1, 1), (2, 1)]);
}

/// A read-only database shows what was there when it was opened.
#[test]
fn a_read_only_database_reads_the_log() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &keeping(tiny()));
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.put("b", "2").unwrap();
    let reader = Db::open_read_only_with(as_vfs(&vfs), "/db", keeping(tiny())).unwrap();
    let mut updates = reader.updates_since(1).unwrap();
    assert_eq!(rest(&mut updates), [(1, 1), (2, 1)]);
    db.put("c", "3").unwrap();
    updates.next();
    assert!(!updates.valid() && updates.status().is_ok());
    // Nor is one without a log an error, but what is asked for may have been in one.
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    settle(&db);
    let read_only = || Db::open_read_only_with(as_vfs(&vfs), "/db", tiny()).unwrap();
    assert_eq!(since(&read_only(), 0), []);
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    settle(&db);
    let reader = read_only();
    refusal(&reader, 1);
    assert_eq!(rest(&mut reader.updates_available_since(1).unwrap()), []);
}

/// Prepared transactions are entries of a column family that clients do not know.
#[test]
fn prepares_come_without_writes_and_commits_with_their_own() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &keeping(tiny()));
    let mut transaction = db.transaction_with(&sateen::TransactionOptions::pessimistic());
    transaction.put("a", "1").unwrap();
    transaction.prepare("t").unwrap();
    db.put("b", "2").unwrap();
    transaction.commit().unwrap();
    let mut updates = db.updates_since(0).unwrap();
    let mut seen: Vec<Vec<(u32, Vec<u8>)>> = Vec::new();
    let mut next = 1;
    while updates.valid() {
        assert_eq!(updates.sequence_number(), next, "no number is left out");
        next = updates.last_sequence_number() + 1;
        let entries = updates.batch().unwrap().iter();
        seen.push(entries.map(|entry| (entry.column_family.0, entry.key.to_vec())).collect());
        updates.next();
    }
    updates.status().unwrap();
    let one = |key: &[u8]| vec![(0, key.to_vec())];
    assert_eq!(seen, [Vec::new(), one(b"b"), one(b"a")]);
}

/// Nothing knows any more in which form the values of a dropped column family were written.
#[test]
fn writes_to_a_dropped_column_family_do_not_come_out() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &keeping(tiny()));
    let mut timed = tiny().column_family;
    timed.ttl = Some(Duration::from_secs(3600));
    timed.regions = Regions::at(["m"]).unwrap();
    let gone = db.create_column_family("gone", timed.clone()).unwrap();
    let mut both = WriteBatch::new();
    both.put("a", "1").unwrap();
    both.to(&gone).put("a", "2").unwrap();
    both.to(&gone).delete_range("a", "z").unwrap();
    db.write(&both, &WriteOptions::default()).unwrap();
    gone.put("x", "3").unwrap();
    db.put("b", "4").unwrap();
    // The numbers stay: a range in two regions has two.
    assert_eq!(since(&db, 0), [(1, 3), (5, 1), (6, 1)]);
    db.drop_column_family(&gone).unwrap();
    drop(gone);
    let without = [(1, 1), (5, 0), (6, 1)];
    assert_eq!(since(&db, 0), without);
    let updates = db.updates_since(0).unwrap();
    assert_eq!(updates.batch().unwrap().iter().next().unwrap().value, b"1");
    drop(updates);
    let kept = db.create_column_family("kept", timed).unwrap();
    kept.put("c", "5").unwrap();
    drop(kept);
    db.close().unwrap();
    drop(db);
    let db = open(&vfs, &keeping(tiny()));
    assert_eq!(since(&db, 0), [(1, 1), (5, 0), (6, 1), (7, 1)]);
    // All that were there have one form, so that of the others is known.
    let vfs = MemVfs::new();
    let db = open(&vfs, &keeping(tiny()));
    let gone = db.create_column_family("gone", tiny().column_family).unwrap();
    gone.put("x", "3").unwrap();
    db.drop_column_family(&gone).unwrap();
    drop(gone);
    assert_eq!(since(&db, 0), [(1, 1)]);
}
