//! Level 0 does not keep a run for each flush of a nearly empty memtable.

use std::sync::Arc;

use sateen::test_support::clock::VirtualTime;
use sateen::vfs::{MemVfs, Vfs};
use sateen::{Db, Options, ReadOptions};

use crate::support::common::Random;

fn options() -> Options {
    Options { background_threads: 0, ..Options::default() }
}

fn open(vfs: &MemVfs, options: Options) -> Db {
    let vfs: Arc<dyn Vfs> = Arc::new(vfs.clone());
    Db::open_with(vfs, "/db", options, &[]).unwrap()
}

fn runs(db: &Db) -> u64 {
    db.metrics().column_families[0].levels[0].runs
}

/// Does all the work that there is.
fn rest(db: &Db) {
    while db.step().unwrap() {}
}

fn assert_rested(db: &Db) {
    let trigger = db.options().column_family.level0_trigger;
    assert!(runs(db) <= u64::from(2 * trigger), "{} runs", runs(db));
}

fn assert_keys(db: &Db, keys: &[u32]) {
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    let mut iter = db.cursor(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    for key in &sorted {
        assert!(iter.valid(), "{key}: {:?}", iter.status());
        assert_eq!((iter.key(), iter.value()), (&key.to_be_bytes()[..], &key.to_le_bytes()[..]));
        iter.next();
    }
    assert!(!iter.valid());
    iter.status().unwrap();
    for key in keys.iter().step_by(17) {
        assert_eq!(db.get(key.to_be_bytes()).unwrap().unwrap(), key.to_le_bytes());
    }
}

fn flush_each(db: &Db, keys: &[u32]) {
    for key in keys {
        db.put(key.to_be_bytes(), key.to_le_bytes()).unwrap();
        db.flush().unwrap();
    }
}

/// Keys that ascend, and the same in an order of `seed`.
fn orders(count: u32, seed: u64) -> [Vec<u32>; 2] {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut mixed: Vec<u32> = (0..count).collect();
    for at in (1..mixed.len()).rev() {
        mixed.swap(at, random.below(at as u64 + 1) as usize);
    }
    [(0..count).collect(), mixed]
}

#[test]
fn runs_of_one_key_are_merged_while_they_come_and_at_rest() {
    for keys in orders(3000, 11) {
        let _time = VirtualTime::begin(1);
        let vfs = MemVfs::new();
        let db = open(&vfs, options());
        flush_each(&db, &keys);
        rest(&db);
        assert_rested(&db);
        assert_keys(&db, &keys);
    }
}

#[test]
fn runs_that_are_there_at_open_are_merged() {
    let _time = VirtualTime::begin(1);
    let [keys, _] = orders(700, 12);
    let vfs = MemVfs::new();
    let mut kept = options();
    kept.column_family.disable_auto_compactions = true;
    kept.column_family.level0_slowdown = 100_000;
    kept.column_family.level0_stop = 100_000;
    let db = open(&vfs, kept);
    flush_each(&db, &keys);
    rest(&db);
    assert_eq!(runs(&db), 700);
    db.close().unwrap();
    drop(db);
    let db = open(&vfs, options());
    rest(&db);
    assert_rested(&db);
    assert_keys(&db, &keys);
}

/// The newest value of a key is above the older ones, whichever runs were merged meanwhile.
#[test]
fn what_was_written_last_is_read_whatever_was_merged() {
    let seed = 13;
    println!("seed {seed}");
    let _time = VirtualTime::begin(seed);
    let mut random = Random::new(seed);
    let vfs = MemVfs::new();
    let db = open(&vfs, options());
    let mut newest = vec![None; 200];
    for turn in 0..600u32 {
        let key = random.below(200) as usize;
        if random.one_in(5) {
            db.delete((key as u32).to_be_bytes()).unwrap();
            newest[key] = None;
        } else {
            db.put((key as u32).to_be_bytes(), turn.to_be_bytes()).unwrap();
            newest[key] = Some(turn.to_be_bytes());
        }
        db.flush().unwrap();
        for _ in 0..random.below(40) {
            db.step().unwrap();
        }
    }
    rest(&db);
    for (key, value) in (0u32..).zip(&newest) {
        let found = db.get(key.to_be_bytes()).unwrap();
        assert_eq!(found.as_deref(), value.as_ref().map(|value| &value[..]), "key {key}");
    }
}
