//! A second database that is written to as the log of the first one says is the first one, after
//! each batch, whatever else happens to that.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use sateen::vfs::MemVfs;
use sateen::{Db, Options, ReadOptions, Updates, WriteBatch, WriteOptions};

use crate::features::updates::{OTHER, Replica, keeping, open, settle};
use crate::support::common::{Contents, Random, as_vfs, assert_sound, read_all, small, tiny};

/// What the first column family and the other are after each write.
pub(crate) struct Writer {
    db: Option<Db>,
    options: Options,
    pub(crate) vfs: MemVfs,
    pub(crate) random: Random,
    pub(crate) states: BTreeMap<u64, [Contents; 2]>,
}

impl Writer {
    pub(crate) fn new(seed: u64, options: Options) -> Writer {
        let vfs = MemVfs::new();
        let db = open(&vfs, &options);
        db.create_column_family(OTHER, options.column_family.clone()).unwrap();
        let states = BTreeMap::from([(0, Default::default())]);
        Writer { db: Some(db), options, vfs, random: Random::new(seed), states }
    }

    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn contents(&self) -> [Contents; 2] {
        let latest = ReadOptions::default();
        ["default", OTHER].map(|name| {
            let family = self.db().column_family(name).unwrap();
            read_all(&family, &latest)
        })
    }

    pub(crate) fn write(&mut self) {
        let db = self.db.clone().unwrap();
        let families = ["default", OTHER].map(|name| db.column_family(name).unwrap());
        let random = &mut self.random;
        let mut batch = WriteBatch::new();
        for _ in 0..=random.below(5) {
            let family = &families[usize::from(random.one_in(3))];
            let number = random.below(60);
            let key = format!("key{number:03}");
            let value = vec![b'a' + random.below(26) as u8; random.below(80) as usize];
            match random.below(9) {
                0 => batch.to(family).delete(key).unwrap(),
                1 => batch.to(family).single_delete(key).unwrap(),
                2..4 => batch.to(family).merge(key, &value[..value.len().min(9)]).unwrap(),
                4 if random.one_in(2) => {
                    let end = format!("key{:03}", number + random.below(9));
                    batch.to(family).delete_range(key, end).unwrap();
                }
                _ => batch.to(family).put(key, &value).unwrap(),
            }
        }
        let sync = random.one_in(5);
        db.write(&batch, &WriteOptions { sync, ..WriteOptions::default() }).unwrap();
        self.states.insert(db.latest_sequence_number(), self.contents());
    }

    pub(crate) fn upkeep(&mut self) {
        let db = self.db.clone().unwrap();
        match self.random.below(12) {
            0 => db.flush_all().unwrap(),
            1 => {
                let other = db.column_family(OTHER).unwrap();
                other.flush().unwrap();
            }
            2 => {
                let family = db.default_column_family();
                family.compact_range(None, None, &Default::default()).unwrap();
            }
            3 => {
                let path = format!("/checkpoint{}", self.random.next());
                db.checkpoint(&path).unwrap();
                let options = self.options.clone();
                let copy = Db::open_with(as_vfs(&self.vfs), &path, options, &[]).unwrap();
                let seqno = copy.latest_sequence_number();
                let family = copy.default_column_family();
                let contents = read_all(&family, &ReadOptions::default());
                assert_eq!(
                    contents, self.states[&seqno][0],
                    "a checkpoint has no more than it should"
                );
                copy.close().unwrap();
            }
            4 | 5 => settle(&db),
            _ => {
                db.step().unwrap();
            }
        }
    }

    pub(crate) fn reopen(&mut self) {
        if let Some(db) = self.db.take() {
            db.close().unwrap();
        }
        let db = open(&self.vfs, &self.options);
        assert_sound(&db);
        self.db = Some(db);
    }
}

/// A writer, and a reader beside it whose replay into a second database is the first one's contents
/// after each batch.
fn differential(seed: u64, options: Options, rounds: usize) {
    println!("seed {seed}");
    let mut writer = Writer::new(seed, options.clone());
    let mut replica = Replica::new(&options, &[OTHER]);
    let mut updates: Option<Updates> = None;
    let mut batches = 0;
    for _ in 0..rounds {
        for _ in 0..writer.random.below(12) {
            writer.write();
            writer.upkeep();
        }
        if writer.random.one_in(12) {
            updates = None;
            writer.reopen();
        }
        if writer.random.one_in(15) {
            updates = None;
        }
        let newest = writer.db().latest_sequence_number();
        if replica.next > newest {
            continue;
        }
        let reader = match &mut updates {
            Some(updates) => {
                updates.next();
                updates
            }
            None => updates.insert(writer.db().updates_since(replica.next).unwrap()),
        };
        for _ in 0..writer.random.below(40) {
            assert!(reader.valid(), "{:?}: {} of {newest}", reader.status(), replica.next);
            replica.take(reader);
            batches += 1;
            // What the database wrote again by itself changes nothing.
            let (_, state) = writer.states.range(..replica.next).next_back().unwrap();
            assert_eq!(&replica.contents("default"), &state[0], "after {}", replica.next - 1);
            assert_eq!(&replica.contents(OTHER), &state[1], "after {}", replica.next - 1);
            if replica.next > newest {
                break;
            }
            reader.next();
        }
        // The next round goes on with what it is at.
        if reader.valid() && reader.sequence_number() >= replica.next {
            updates = None;
        }
    }
    assert!(batches > rounds, "{batches} batches were compared");
}

#[test]
fn a_replay_is_the_database_after_each_batch() {
    for seed in 0..4 {
        differential(seed, keeping(tiny()), 60);
    }
    let mut flushing = keeping(tiny());
    flushing.column_family.memtable_bytes = 1 << 10;
    flushing.max_total_wal_bytes = 4 << 10;
    differential(10, flushing, 60);
    differential(11, keeping(small("triad", 4 << 10)), 60);
    differential(12, keeping(small("vlsm", 4 << 10)), 60);
}

/// Writers on several threads, flushes and compactions behind them, and a reader that ends up with
/// the same and never ran ahead of what is visible.
#[test]
fn a_reader_beside_many_writers() {
    let options = Options { background_threads: 2, ..keeping(tiny()) };
    let vfs = MemVfs::new();
    let db = open(&vfs, &options);
    db.put("begin", "").unwrap();
    let done = AtomicBool::new(false);
    let mut replica = Replica::new(&options, &[]);
    std::thread::scope(|scope| {
        let (db, done, replica) = (&db, &done, &mut replica);
        let reader = scope.spawn(move || {
            let mut updates = db.updates_since(0).unwrap();
            let mut expected = 1;
            loop {
                let last_round = done.load(Ordering::Acquire);
                if !updates.valid() {
                    updates.next();
                }
                while updates.valid() {
                    let first = updates.sequence_number();
                    assert_eq!(first, expected, "nothing is left out");
                    replica.take(&updates);
                    expected = replica.next;
                    assert!(db.latest_sequence_number() >= expected - 1);
                    updates.next();
                }
                updates.status().unwrap();
                if last_round {
                    return;
                }
            }
        });
        let writers: Vec<_> = (0..3)
            .map(|thread| {
                scope.spawn(move || {
                    for round in 0..400 {
                        let mut batch = WriteBatch::new();
                        batch.put(format!("key{:02}", round % 50), vec![thread; 40]).unwrap();
                        batch.merge(format!("sum{}", round % 7), "+").unwrap();
                        db.write(&batch, &WriteOptions::default()).unwrap();
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
        reader.join().unwrap();
    });
    let family = db.default_column_family();
    let contents = read_all(&family, &ReadOptions::default());
    assert!(replica.contents("default") == contents, "the replay ends up with the same");
}
