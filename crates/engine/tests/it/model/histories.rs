//! Histories of concurrent transactions, against the rules of snapshot isolation.
//!
//! 1. Threads run random transactions ([`run`]), and note what each committed one read and wrote
//!    ([`Record`]). All values are different.
//! 2. The WAL has all versions of each key, in the order of commits ([`versions`]).
//! 3. [`violation`] looks at each transaction by itself:
//!    - There is a moment at which all that it read was there: no read skew. With a snapshot, that
//!      moment is the snapshot.
//!    - Nobody else wrote a key that it wrote or guarded, between that moment and its commit: no
//!      lost update.
//!
//! Write skew is allowed: a key that was only read may change before the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use sateen::vfs::MemVfs;
use sateen::{Db, Error, Options, Result, Transaction, TransactionOptions, ValueKind, WriteBatch};

use crate::support::common::{Random, as_vfs, assert_sound, tiny};

const KEYS: u64 = 12;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:02}").into_bytes()
}

/// What a committed transaction read and wrote.
#[derive(Default)]
struct Record {
    /// The sequence number of its snapshot, if it had one from its begin.
    snapshot: Option<u64>,
    reads: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// The keys that were read for update.
    guarded: Vec<Vec<u8>>,
    /// Without those that were not tracked.
    writes: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The versions of each key in the order of commits: the sequence number of the first entry of its
/// commit, and the value.
type Versions = BTreeMap<Vec<u8>, Vec<(u64, Vec<u8>)>>;

/// The order of all commits, from the WAL.
fn versions(db: &Db) -> Versions {
    let mut versions = Versions::new();
    let mut updates = db.updates_since(1).unwrap();
    while updates.valid() {
        // A record holds the commits of a group. What one commit writes has its name in front.
        let (mut commit, mut first) = (Vec::new(), 0);
        let writes = updates.batch().unwrap().iter();
        for (seqno, entry) in (updates.sequence_number()..).zip(writes) {
            assert_eq!(entry.kind, ValueKind::Put);
            let name = entry.value.rsplitn(2, |byte| *byte == b'.').nth(1).unwrap();
            if name != commit {
                (commit, first) = (name.to_vec(), seqno);
            }
            versions.entry(entry.key.to_vec()).or_default().push((first, entry.value.to_vec()));
        }
        updates.next();
    }
    updates.status().unwrap();
    versions
}

/// Says what of a committed transaction snapshot isolation does not allow, if anything.
fn violation(versions: &Versions, record: &Record) -> Option<String> {
    let of = |key: &[u8]| versions.get(key).map_or(&[][..], Vec::as_slice);
    // When it was committed; a transaction without writes at no certain moment.
    let own = record.writes.iter().next();
    let own = own.map(|(key, value)| of(key).iter().find(|(_, v)| v == value));
    let own = own.map(|found| found.expect("what was committed is in the WAL").0);
    // All that it read was there from `from` until, not including, `to`.
    let (mut from, mut to) = (0, u64::MAX);
    for (key, value) in &record.reads {
        let all = of(key);
        let next = match value {
            None => 0,
            Some(value) => {
                let at = all.iter().position(|(_, v)| v == value);
                let at = at.expect("what was read was written");
                from = from.max(all[at].0);
                at + 1
            }
        };
        to = to.min(all.get(next).map_or(u64::MAX, |(seqno, _)| *seqno));
    }
    if from >= to {
        return Some(format!("read skew: no moment shows {:?}", record.reads));
    }
    if let Some(snapshot) = record.snapshot {
        if !(from..to).contains(&snapshot) {
            return Some(format!("the snapshot {snapshot} does not show {:?}", record.reads));
        }
        (from, to) = (snapshot, snapshot + 1);
    }
    let own = own?;
    for key in record.writes.keys().chain(&record.guarded) {
        // Without a snapshot only what it read first may be required.
        if record.snapshot.is_none() && !record.reads.contains_key(key) {
            continue;
        }
        let since = if record.snapshot.is_some() { from } else { to - 1 };
        let other = of(key).iter().find(|(seqno, _)| *seqno > since && *seqno < own);
        if let Some((seqno, value)) = other {
            let (key, value) = (key.escape_ascii(), value.escape_ascii());
            return Some(format!("lost update: {value} of {key} at {seqno}, before {own}"));
        }
    }
    None
}

/// Which transactions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Optimistic ones, beside plain writes.
    Optimistic,
    /// Pessimistic ones with snapshots, beside writes that take locks.
    Snapshots,
    /// Pessimistic ones that lock what they read.
    Locking,
}

impl Kind {
    fn begin(self, db: &Db) -> Transaction {
        db.transaction_with(&TransactionOptions {
            set_snapshot: self != Kind::Locking,
            pessimistic: self != Kind::Optimistic,
            lock_timeout: None,
            ..TransactionOptions::default()
        })
    }
}

/// Runs one transaction. Returns what it did if it was committed.
fn one(kind: Kind, db: &Db, random: &mut Random, name: &str) -> Result<Record> {
    let mut transaction = kind.begin(db);
    let snapshot = transaction.snapshot().map(sateen::Snapshot::sequence_number);
    let (mut record, mut written) = (Record { snapshot, ..Record::default() }, BTreeSet::new());
    for part in 0..1 + random.below(4) {
        let key = key(random.below(KEYS));
        if record.reads.contains_key(&key) || !written.insert(key.clone()) {
            continue;
        }
        // What guards the key afterwards has to notice what others wrote, all the same.
        if random.one_in(4) {
            transaction.put_untracked(&key, format!("{name}.{}", part + 4))?;
            match random.below(3) {
                0 => continue,
                1 => drop(transaction.get_for_update(&key)?),
                _ => {}
            }
            let value = format!("{name}.{part}").into_bytes();
            transaction.put(&key, &value)?;
            record.writes.insert(key, value);
            continue;
        }
        let for_update = kind == Kind::Locking || random.one_in(4);
        // Some keys are written without being read.
        if kind == Kind::Locking || !random.one_in(4) {
            let read = match for_update {
                true => transaction.get_for_update(&key)?,
                false => transaction.get(&key)?,
            };
            record.reads.insert(key.clone(), read);
            record.guarded.extend(for_update.then(|| key.clone()));
        }
        if random.one_in(2) {
            std::thread::yield_now();
        }
        if !record.reads.contains_key(&key) || !random.one_in(3) {
            let value = format!("{name}.{part}").into_bytes();
            transaction.put(&key, &value)?;
            record.writes.insert(key, value);
        }
    }
    transaction.commit()?;
    Ok(record)
}

/// A write without a transaction, which no transaction may write over unseen.
fn plain(kind: Kind, db: &Db, random: &mut Random, name: &str) -> Result<()> {
    let (key, value) = (key(random.below(KEYS)), format!("{name}.9"));
    if kind == Kind::Optimistic {
        return db.put(key, value);
    }
    let mut batch = WriteBatch::new();
    batch.put(key, value)?;
    let patient = TransactionOptions { lock_timeout: None, ..TransactionOptions::pessimistic() };
    db.write_locked(&batch, &patient)
}

fn run(kind: Kind, options: Options, seed: u64) {
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).unwrap();
    let records = Mutex::new(Vec::new());
    let refused = Mutex::new(BTreeMap::<&str, usize>::new());
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (db, records, refused) = (&db, &records, &refused);
            scope.spawn(move || {
                let mut random = Random::new(seed * 10 + thread);
                for number in 0..400_u64 {
                    let name = format!("{thread}.{number}");
                    let done = if random.one_in(5) {
                        plain(kind, db, &mut random, &name).map(|()| None)
                    } else {
                        one(kind, db, &mut random, &name).map(Some)
                    };
                    let why = match done {
                        Ok(record) => {
                            records.lock().unwrap().extend(record);
                            continue;
                        }
                        Err(Error::Busy { .. }) => "busy",
                        Err(Error::TryAgain { .. }) => "try again",
                        Err(Error::Deadlock { .. }) => "deadlock",
                        Err(error) => panic!("{error}"),
                    };
                    *refused.lock().unwrap().entry(why).or_default() += 1;
                }
            });
        }
    });
    let (records, refused) = (records.into_inner().unwrap(), refused.into_inner().unwrap());
    let versions = versions(&db);
    for record in &records {
        let wrong = violation(&versions, record);
        assert!(wrong.is_none(), "REPLAY: {kind:?} {seed}: {}", wrong.unwrap_or_default());
    }
    println!("{kind:?} {seed}: {} committed, {refused:?}", records.len());
    assert!(records.len() > 100, "{kind:?} {seed}: {refused:?}");
    db.wait_idle().unwrap();
    assert_sound(&db);
}

fn all(kind: Kind) {
    for seed in 0..4 {
        let mut options = Options { background_threads: 2, wal_ttl_seconds: 100_000, ..tiny() };
        // With small memtables, flushes come in between.
        options.column_family.memtable_bytes = [4 << 10, 1 << 20][seed as usize % 2];
        run(kind, options, seed);
    }
}

#[test]
fn optimistic_transactions_are_snapshot_isolated() {
    all(Kind::Optimistic);
}

#[test]
fn pessimistic_transactions_with_snapshots_are_snapshot_isolated() {
    all(Kind::Snapshots);
}

#[test]
fn what_is_locked_is_not_changed() {
    all(Kind::Locking);
}

/// The checker finds what it is there for, and nothing that is allowed.
#[test]
fn the_checker_sees_lost_updates_and_read_skew() {
    let version = |seqno, value: &str| (seqno, value.as_bytes().to_vec());
    let versions = Versions::from([
        (b"x".to_vec(), vec![version(1, "x1"), version(3, "x2"), version(5, "x3")]),
        (b"y".to_vec(), vec![version(1, "y1"), version(3, "y2"), version(7, "y3")]),
    ]);
    let record = |snapshot, reads: &[(&str, &str)], guarded: &[&str], writes: &[(&str, &str)]| {
        let bytes = |text: &str| text.as_bytes().to_vec();
        Record {
            snapshot,
            reads: reads.iter().map(|(k, v)| (bytes(k), Some(bytes(v)))).collect(),
            guarded: guarded.iter().map(|key| bytes(key)).collect(),
            writes: writes.iter().map(|(k, v)| (bytes(k), bytes(v))).collect(),
        }
    };
    let right = [
        record(None, &[("x", "x2"), ("y", "y2")], &[], &[("x", "x3")]),
        record(Some(4), &[("x", "x2"), ("y", "y2")], &["y"], &[("x", "x3")]),
        // Write skew: x changes between the read and the commit.
        record(Some(4), &[("x", "x2"), ("y", "y2")], &[], &[("y", "y3")]),
    ];
    for right in &right {
        assert_eq!(violation(&versions, right), None);
    }
    let wrong = [
        ("read skew", record(None, &[("x", "x1"), ("y", "y2")], &[], &[])),
        ("lost update", record(None, &[("x", "x1")], &[], &[("x", "x3")])),
        ("snapshot", record(Some(6), &[("x", "x2")], &[], &[])),
        ("lost update", record(Some(2), &[("y", "y1")], &[], &[("x", "x3")])),
        ("lost update", record(Some(4), &[("x", "x2"), ("y", "y2")], &["x"], &[("y", "y3")])),
    ];
    for (what, wrong) in &wrong {
        let found = violation(&versions, wrong).unwrap_or_default();
        assert!(found.contains(what), "{what}: {found}");
    }
}

/// Each reads what the other one writes: both are committed, unless they read for update.
#[test]
fn write_skew_is_allowed_and_reads_for_update_prevent_it() {
    for for_update in [false, true] {
        let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", tiny(), &[]).unwrap();
        let (mut one, mut two) = (db.transaction(), db.transaction());
        let read = |transaction: &mut Transaction, key| match for_update {
            true => transaction.get_for_update(key).unwrap(),
            false => transaction.get(key).unwrap(),
        };
        read(&mut one, "b");
        read(&mut two, "a");
        one.put("a", "on call").unwrap();
        two.put("b", "on call").unwrap();
        one.commit().unwrap();
        let second = two.commit();
        assert_eq!(matches!(second, Err(Error::Busy { .. })), for_update, "{second:?}");
    }
}
