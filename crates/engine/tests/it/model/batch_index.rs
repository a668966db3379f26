//! A batch with an index against a second database, to which the batch was written: both show the
//! same, by keys and by iterators in both directions.

use sateen::vfs::MemVfs;
use sateen::{
    BatchValue, ColumnFamily, Comparator, Db, Options, ReadOptions, Regions, WriteBatchWithIndex,
    WriteOptions,
};

use crate::support::common::{Random, appending, as_vfs, read_all, tiny};

const KEYS: u64 = 40;

fn key(number: u64) -> String {
    format!("key{number:03}")
}

/// What is written once to both databases, and to the batch and the second database.
#[derive(Clone, Debug)]
enum Act {
    Put(usize, u64, String),
    Delete(usize, u64),
    Merge(usize, u64, String),
    DeleteRange(usize, u64, u64),
}

fn draw(random: &mut Random, count: u64) -> Act {
    let family = random.below(3) as usize;
    let (a, b) = (random.below(KEYS), random.below(KEYS));
    match random.below(12) {
        0..5 => Act::Put(family, a, format!("put{count}.")),
        5..8 => Act::Delete(family, a),
        8..11 => Act::Merge(family, a, format!("merge{count}.")),
        _ => Act::DeleteRange(family, a.min(b), a.max(b).min(a.min(b) + 6)),
    }
}

fn write(families: &[ColumnFamily], act: &Act) {
    match act {
        Act::Put(at, k, value) => families[*at].put(key(*k), value),
        Act::Delete(at, k) => families[*at].delete(key(*k)),
        Act::Merge(at, k, operand) => families[*at].merge(key(*k), operand),
        Act::DeleteRange(at, a, b) => {
            let (begin, end) = ends(&families[*at], *a, *b);
            families[*at].delete_range(begin, end)
        }
    }
    .unwrap();
}

/// The ends of a range in the order of the family.
fn ends(family: &ColumnFamily, a: u64, b: u64) -> (String, String) {
    if family.comparator().compare(key(a).as_bytes(), key(b).as_bytes()).is_le() {
        (key(a), key(b))
    } else {
        (key(b), key(a))
    }
}

fn add(batch: &mut WriteBatchWithIndex, families: &[ColumnFamily], act: &Act) {
    match act {
        Act::Put(at, k, value) => batch.to(&families[*at]).put(key(*k), value),
        Act::Delete(at, k) => batch.to(&families[*at]).delete(key(*k)),
        Act::Merge(at, k, operand) => batch.to(&families[*at]).merge(key(*k), operand),
        Act::DeleteRange(at, a, b) => {
            let (begin, end) = ends(&families[*at], *a, *b);
            batch.to(&families[*at]).delete_range(begin, end)
        }
    }
    .unwrap();
}

/// A database with a plain family, one that compares keys in reverse and expires, one with regions.
fn open() -> (Db, Vec<ColumnFamily>) {
    let mut options = Options { create_missing_column_families: true, ..tiny() };
    options.column_family.merge_operator = Some(appending());
    let mut reversed = options.column_family.clone();
    reversed.comparator = Comparator::reverse_bytewise();
    reversed.ttl = Some(std::time::Duration::from_secs(1000));
    let mut divided = options.column_family.clone();
    divided.regions = Regions::at([key(10), key(25)]).unwrap();
    let families = [("reversed", reversed), ("divided", divided)];
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &families).unwrap();
    let handles = ["default", "reversed", "divided"].map(|name| db.column_family(name).unwrap());
    (db, handles.to_vec())
}

/// The moves of a random walk of a cursor.
fn walk(cursor: &mut sateen::Cursor, random: &mut Random) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seen = Vec::new();
    for _ in 0..40 {
        match random.below(10) {
            0 => cursor.seek_to_first(),
            1 => cursor.seek_to_last(),
            2 => cursor.seek(key(random.below(KEYS))),
            3 => cursor.seek_for_prev(key(random.below(KEYS))),
            4..7 => cursor.next(),
            _ => cursor.prev(),
        }
        cursor.status().unwrap();
        seen.push((cursor.key().to_vec(), cursor.value().to_vec()));
    }
    seen
}

fn case(seed: u64) {
    let mut random = Random::new(seed);
    let (below, families) = open();
    let (_whole, expected) = open();
    for count in 0..random.below(400) {
        let act = draw(&mut random, count);
        write(&families, &act);
        write(&expected, &act);
        if random.one_in(100) {
            families[0].flush().unwrap();
        }
    }
    let snapshot = below.snapshot();
    let mut options = ReadOptions::default();
    if random.one_in(2) {
        // What comes later is not seen.
        options = ReadOptions::at(&snapshot);
        for count in 1000..1000 + random.below(200) {
            write(&families, &draw(&mut random, count));
        }
    }
    let mut batch = WriteBatchWithIndex::new();
    for count in 2000..2000 + random.below(60) {
        let act = draw(&mut random, count);
        add(&mut batch, &families, &act);
        write(&expected, &act);
        if random.one_in(10) {
            batch.set_save_point();
            for count in 3000..3000 + random.below(5) {
                add(&mut batch, &families, &draw(&mut random, count));
            }
            batch.rollback_to_save_point().unwrap();
        }
    }
    for (family, expected) in families.iter().zip(&expected) {
        let both = batch.reading(family, &options);
        for number in 0..KEYS {
            let (read, wanted) = (both.get(key(number)).unwrap(), expected.get(key(number)));
            assert_eq!(read, wanted.unwrap(), "{} of {}", key(number), family.name());
            match batch.get_from_batch(family, key(number)).unwrap() {
                BatchValue::Value(value) => assert_eq!(read.unwrap(), value),
                BatchValue::Deleted => assert_eq!(read, None),
                BatchValue::Merge(operands) => assert!(read.unwrap().ends_with(&operands.concat())),
                BatchValue::Missing => {
                    assert_eq!(read, family.reading(&options).get(key(number)).unwrap());
                }
                _ => unreachable!(),
            }
        }
        let all: Vec<_> = both.iter().unwrap().map(Result::unwrap).collect();
        let wanted: Vec<_> = expected.iter().unwrap().map(Result::unwrap).collect();
        assert_eq!(all, wanted);
        let backwards: Vec<_> = both.iter().unwrap().rev().map(Result::unwrap).collect();
        assert!(backwards.iter().rev().eq(&wanted));
        let (begin, end) = ends(family, random.below(KEYS), random.below(KEYS));
        let some = both.range(begin.as_bytes()..end.as_bytes()).unwrap().map(Result::unwrap);
        let wanted = expected.range(begin.as_bytes()..end.as_bytes()).unwrap();
        assert!(some.eq(wanted.map(Result::unwrap)));
        let bounded = ReadOptions {
            lower_bound: Some(begin.into()),
            upper_bound: random.one_in(2).then(|| end.into()),
            ..options.clone()
        };
        let mut own = batch.reading(family, &bounded).cursor().unwrap();
        let mut other =
            expected.cursor(&ReadOptions { snapshot: None, ..bounded.clone() }).unwrap();
        let walk_seed = random.next();
        assert_eq!(
            walk(&mut own, &mut Random::new(walk_seed)),
            walk(&mut other, &mut Random::new(walk_seed))
        );
    }
    // What the batch showed is what it writes.
    if options.snapshot.is_none() {
        below.write(batch.batch(), &WriteOptions::default()).unwrap();
        for (family, expected) in families.iter().zip(&expected) {
            let options = ReadOptions::default();
            assert!(read_all(family, &options) == read_all(expected, &options));
        }
    }
}

#[test]
fn a_batch_shows_what_it_would_write() {
    for seed in 0..60 {
        let failed = std::panic::catch_unwind(|| case(seed)).is_err();
        assert!(!failed, "REPLAY: batch_index case {seed}");
    }
}

#[test]
fn an_iterator_keeps_the_batch_that_it_began_with() {
    let (_db, families) = open();
    let family = &families[0];
    family.put("a", "stored").unwrap();
    let mut batch = WriteBatchWithIndex::new();
    batch.put("b", "1").unwrap();
    batch.set_save_point();
    let mut cursor = batch.reading(family, ReadOptions::default()).cursor().unwrap();
    batch.delete("a").unwrap();
    batch.put("b", "2").unwrap();
    batch.rollback_to_save_point().unwrap();
    batch.put("c", "3").unwrap();
    cursor.seek_to_first();
    assert_eq!((cursor.key(), cursor.value()), (&b"a"[..], &b"stored"[..]));
    cursor.next();
    assert_eq!((cursor.key(), cursor.value()), (&b"b"[..], &b"1"[..]));
    cursor.next();
    assert!(!cursor.valid());
    batch.clear();
    assert_eq!(batch.get_from_batch(family, "c").unwrap(), BatchValue::Missing);
}

#[test]
fn a_batch_that_compares_keys_otherwise_is_refused() {
    let mut options = tiny();
    options.column_family.comparator = Comparator::reverse_bytewise();
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).unwrap();
    let family = db.default_column_family();
    let mut batch = WriteBatchWithIndex::new();
    batch.put("a", "1").unwrap();
    // A batch for no certain database is indexed anew.
    assert_eq!(batch.reading(&family, ReadOptions::default()).get("a").unwrap().unwrap(), b"1");
    let mut batch = WriteBatchWithIndex::with_comparator(family.comparator());
    batch.put("a", "1").unwrap();
    assert!(batch.delete_range("a", "b").is_err(), "the end comes before the begin");
    assert!(batch.reading(&family, ReadOptions::default()).contains_key("a").unwrap());
    let bytewise = Db::open_with(as_vfs(&MemVfs::new()), "/db", tiny(), &[]).unwrap();
    let family = bytewise.default_column_family();
    let refused = batch.reading(&family, ReadOptions::default()).get("a").unwrap_err();
    assert!(refused.to_string().contains("reverse-bytewise"), "{refused}");
}
