//! Transactions against models: each commit fails exactly if a tracked key was written since, and
//! the history of concurrent threads is one that snapshot isolation allows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use sateen::vfs::MemVfs;
use sateen::{
    Db, Error, Options, Result, Transaction, TransactionOptions, ValueKind, WriteBatch,
    WriteOptions,
};

use crate::support::common::{Contents, Random, as_vfs, assert_sound, contents, tiny};

const KEYS: u64 = 12;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:02}").into_bytes()
}

/// The committed states, and when each key was written last.
struct Model {
    states: Vec<Contents>,
    written: BTreeMap<Vec<u8>, usize>,
}

type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;
type Tracked = BTreeMap<Vec<u8>, usize>;

/// A transaction, and what the model knows of it.
struct Open {
    transaction: Transaction,
    /// The state that it reads; `None` reads the newest.
    snapshot: Option<usize>,
    own: Writes,
    tracked: Tracked,
    points: Vec<(Writes, Tracked)>,
    /// Flushes so far when it began.
    flushes: usize,
}

impl Model {
    fn now(&self) -> usize {
        self.states.len() - 1
    }

    fn commit(&mut self, writes: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        let mut state = self.states[self.now()].clone();
        for (key, value) in writes {
            match value {
                Some(value) => drop(state.insert(key.clone(), value.clone())),
                None => drop(state.remove(key)),
            }
            self.written.insert(key.clone(), self.states.len());
        }
        self.states.push(state);
    }

    /// What `open` sees.
    fn seen(&self, open: &Open) -> Contents {
        let mut state = self.states[open.snapshot.unwrap_or(self.now())].clone();
        for (key, value) in &open.own {
            match value {
                Some(value) => drop(state.insert(key.clone(), value.clone())),
                None => drop(state.remove(key)),
            }
        }
        state
    }

    fn conflicts(&self, open: &Open) -> BTreeSet<Vec<u8>> {
        let newer = |(key, since): &(&Vec<u8>, &usize)| {
            self.written.get(*key).is_some_and(|written| written > since)
        };
        open.tracked.iter().filter(newer).map(|(key, _)| key.clone()).collect()
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each operation")]
fn case(seed: u64) -> [usize; 3] {
    let mut random = Random::new(seed);
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", tiny(), &[]).unwrap();
    let mut model = Model { states: vec![Contents::new()], written: BTreeMap::new() };
    let mut opens: Vec<Open> = Vec::new();
    let (mut flushes, mut seen) = (0, [0; 3]);
    let flushing = random.one_in(2);
    for step in 0..300_u64 {
        let value = |random: &mut Random| {
            (!random.one_in(4)).then(|| format!("{step}.{}", random.below(9)).into_bytes())
        };
        let at = random.below(opens.len() as u64) as usize;
        match random.below(14) {
            0 | 1 if opens.len() < 4 => {
                let set_snapshot = random.one_in(2);
                let options = TransactionOptions { set_snapshot, ..Default::default() };
                opens.push(Open {
                    transaction: db.transaction_with(&options),
                    snapshot: set_snapshot.then(|| model.now()),
                    own: BTreeMap::new(),
                    tracked: BTreeMap::new(),
                    points: Vec::new(),
                    flushes,
                });
            }
            2 | 3 => {
                let mut batch = WriteBatch::new();
                let mut writes = BTreeMap::new();
                for _ in 0..=random.below(3) {
                    let (key, value) = (key(random.below(KEYS)), value(&mut random));
                    match &value {
                        Some(value) => batch.put(&key, value).unwrap(),
                        None => batch.delete(&key).unwrap(),
                    }
                    writes.insert(key, value);
                }
                db.write(&batch, &WriteOptions::default()).unwrap();
                model.commit(&writes);
            }
            4 if random.one_in(3) => {
                let (from, to) = (random.below(KEYS), random.below(KEYS));
                let (from, to) = (from.min(to), from.max(to));
                db.delete_range(key(from), key(to)).unwrap();
                model.commit(&(from..to).map(|number| (key(number), None)).collect());
            }
            5 if flushing && random.one_in(3) => {
                db.flush().unwrap();
                while db.step().unwrap() {}
                flushes += 1;
            }
            _ if opens.is_empty() => {}
            6..10 => {
                let (key, value) = (key(random.below(KEYS)), value(&mut random));
                let open = &mut opens[at];
                match &value {
                    Some(value) => open.transaction.put(&key, value).unwrap(),
                    None => open.transaction.delete(&key).unwrap(),
                }
                open.own.insert(key.clone(), value);
                let since = open.snapshot.unwrap_or(model.now());
                open.tracked.entry(key).or_insert(since);
            }
            10 => {
                let key = key(random.below(KEYS));
                let found = opens[at].transaction.get_for_update(&key).unwrap();
                let open = &mut opens[at];
                let since = open.snapshot.unwrap_or(model.now());
                open.tracked.entry(key.clone()).or_insert(since);
                assert_eq!(found, model.seen(open).remove(&key));
            }
            11 => {
                let open = &mut opens[at];
                if open.points.is_empty() || random.one_in(2) {
                    open.transaction.set_save_point();
                    open.points.push((open.own.clone(), open.tracked.clone()));
                } else {
                    open.transaction.rollback_to_save_point().unwrap();
                    (open.own, open.tracked) = open.points.pop().unwrap();
                }
            }
            12 => {
                let open = &opens[at];
                let shown = open.transaction.iter().unwrap().map(Result::unwrap);
                let shown: Contents = shown.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
                assert_eq!(shown, model.seen(open));
            }
            _ => {
                let mut open = opens.swap_remove(at);
                let conflicts = model.conflicts(&open);
                match open.transaction.commit() {
                    Ok(()) => {
                        assert!(conflicts.is_empty(), "{conflicts:?} were written since");
                        if !open.own.is_empty() {
                            model.commit(&open.own);
                        }
                        seen[0] += 1;
                    }
                    Err(Error::Busy { key, .. }) => {
                        assert!(conflicts.contains(&key), "{} is no conflict", key.escape_ascii());
                        seen[1] += 1;
                    }
                    Err(Error::TryAgain { .. }) => {
                        // Memtables are flushed by themselves, too.
                        let flushed = flushes > open.flushes || !db.live_tables().is_empty();
                        assert!(flushed, "memtables have everything");
                        seen[2] += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    drop(opens);
    assert_eq!(contents(&db), model.states[model.now()]);
    assert_sound(&db);
    seen
}

#[test]
fn commits_fail_exactly_on_conflicts() {
    let mut seen = [0; 3];
    for seed in 0..80 {
        let Ok(of_case) = std::panic::catch_unwind(|| case(seed)) else {
            panic!("REPLAY: transactions case {seed}");
        };
        seen.iter_mut().zip(of_case).for_each(|(sum, of_case)| *sum += of_case);
    }
    assert!(seen.iter().all(|count| *count > 10), "commits, conflicts, unknown: {seen:?}");
}

/// What a committed transaction read and wrote. Values are unique.
struct Record {
    reads: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    writes: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The versions of each key in the order of commits: the sequence number of the first entry of its
/// commit, and the value.
type Versions = BTreeMap<Vec<u8>, Vec<(u64, Option<Vec<u8>>)>>;

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
            let value = Some(entry.value.to_vec());
            versions.entry(entry.key.to_vec()).or_default().push((first, value));
        }
        updates.next();
    }
    updates.status().unwrap();
    versions
}

/// Fails if the history is none that snapshot isolation allows.
fn check_history(versions: &Versions, records: &[Record]) {
    for record in records {
        // Each read was right during some time: all of them at one moment.
        let (mut from, mut to) = (0, u64::MAX);
        for (key, value) in &record.reads {
            let none = Vec::new();
            let all = versions.get(key).unwrap_or(&none);
            let written = || all.iter().position(|(_, v)| v == value).expect("it was written");
            let at = value.as_ref().map(|_| written());
            let (begin, next) = match at {
                None => (0, 0),
                Some(at) => (all[at].0, at + 1),
            };
            let end = all.get(next).map_or(u64::MAX, |(seqno, _)| *seqno);
            (from, to) = (from.max(begin), to.min(end));
            // What it wrote follows at once what it read: no update is lost.
            if let Some(written) = record.writes.get(key) {
                let own = all.get(next).and_then(|(_, value)| value.as_ref());
                assert_eq!(own, Some(written), "lost update of {}", key.escape_ascii());
            }
        }
        assert!(from < to, "read skew: no moment shows {:?}", record.reads);
    }
}

fn threads(options: Options, seed: u64) {
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).unwrap();
    let records = Mutex::new(Vec::new());
    let outcomes = Mutex::new([0_usize; 3]);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (db, records, outcomes) = (&db, &records, &outcomes);
            scope.spawn(move || {
                let mut random = Random::new(seed * 10 + thread);
                for number in 0..400_u64 {
                    let unique = |part: u64| format!("{thread}.{number}.{part}").into_bytes();
                    if random.one_in(5) {
                        // A plain write, which no transaction may write over unseen.
                        db.put(key(random.below(KEYS)), unique(9)).unwrap();
                        continue;
                    }
                    let mut transaction = db.transaction();
                    let mut record = Record { reads: BTreeMap::new(), writes: BTreeMap::new() };
                    for part in 0..1 + random.below(3) {
                        let key = key(random.below(KEYS));
                        if record.reads.contains_key(&key) {
                            continue;
                        }
                        let read = transaction.get(&key).unwrap();
                        record.reads.insert(key.clone(), read);
                        if random.one_in(2) {
                            std::thread::yield_now();
                        }
                        if !random.one_in(3) {
                            transaction.put(&key, unique(part)).unwrap();
                            record.writes.insert(key, unique(part));
                        }
                    }
                    let which = match transaction.commit() {
                        Ok(()) => {
                            records.lock().unwrap().push(record);
                            0
                        }
                        Err(Error::Busy { .. }) => 1,
                        Err(Error::TryAgain { .. }) => 2,
                        Err(error) => panic!("{error}"),
                    };
                    outcomes.lock().unwrap()[which] += 1;
                }
            });
        }
    });
    let records = records.into_inner().unwrap();
    check_history(&versions(&db), &records);
    let outcomes = outcomes.into_inner().unwrap();
    println!("commits, conflicts, unknown: {outcomes:?}");
    assert!(outcomes[0] > 100 && outcomes[1] > 0, "{outcomes:?}");
    db.wait_idle().unwrap();
    assert_sound(&db);
}

#[test]
fn histories_of_threads_are_snapshot_isolated() {
    for seed in 0..4 {
        let mut options = Options { background_threads: 2, wal_ttl_seconds: 100_000, ..tiny() };
        // With small memtables, flushes come in between.
        options.column_family.memtable_bytes = [4 << 10, 1 << 20][seed as usize % 2];
        threads(options, seed);
    }
}

/// The checker finds what it is there for.
#[test]
fn the_checker_sees_lost_updates_and_read_skew() {
    let version = |seqno, value: &str| (seqno, Some(value.as_bytes().to_vec()));
    let versions = Versions::from([
        (b"x".to_vec(), vec![version(1, "x1"), version(3, "x2"), version(5, "x3")]),
        (b"y".to_vec(), vec![version(1, "y1"), version(3, "y2")]),
    ]);
    let record = |reads: &[(&str, &str)], writes: &[(&str, &str)]| Record {
        reads: reads.iter().map(|(k, v)| ((*k).into(), Some((*v).into()))).collect(),
        writes: writes.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
    };
    check_history(&versions, &[record(&[("x", "x2"), ("y", "y2")], &[("x", "x3")])]);
    for wrong in [record(&[("x", "x1"), ("y", "y2")], &[]), record(&[("x", "x1")], &[("x", "x3")])]
    {
        let found = std::panic::catch_unwind(|| check_history(&versions, &[wrong]));
        assert!(found.is_err(), "it passed");
    }
}
