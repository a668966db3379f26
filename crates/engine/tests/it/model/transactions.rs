//! Transactions against a model: each commit fails exactly if a tracked key was written since.

use std::collections::{BTreeMap, BTreeSet};

use sateen::vfs::MemVfs;
use sateen::{Db, Error, Result, Transaction, TransactionOptions, WriteBatch, WriteOptions};

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
