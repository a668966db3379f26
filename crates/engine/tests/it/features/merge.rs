//! Merge operators and single deletes, as a user meets them.

use std::sync::Arc;

use sateen::vfs::MemVfs;
use sateen::{
    CompactRangeOptions, Db, Error, MergeOperator, Merging, Options, ReadOptions, WriteBatch,
    WriteOptions,
};

use crate::support::common::{appending, appending_late, as_vfs, assert_sound, read_all, tiny};

fn with(merging: Merging) -> Options {
    let mut options = tiny();
    options.column_family.merge_operator = Some(merging);
    options
}

fn open(vfs: &MemVfs, options: Options) -> Db {
    Db::open_with(as_vfs(vfs), "/db", options, &[]).unwrap()
}

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn adding() -> Merging {
    Merging::associative("add", |_key, before, operand| {
        let before = before.map_or(Some(0), number)?;
        Some(before.wrapping_add(number(operand)?).to_le_bytes().to_vec())
    })
}

fn compact(db: &Db) {
    let options = CompactRangeOptions::default();
    db.compact_range(None, None, &options).unwrap();
}

#[test]
fn counters_count_through_flushes_compactions_and_reopening() {
    let vfs = MemVfs::new();
    let mut counts = [0_u64; 50];
    for round in 0..4 {
        let db = open(&vfs, with(adding()));
        for nth in 0..3_000_u64 {
            let key = nth.wrapping_mul(2_654_435_761) % 50;
            db.merge(format!("counter{key:02}"), nth.to_le_bytes()).unwrap();
            counts[usize::try_from(key).unwrap()] += nth;
            if nth % 40 == 0 {
                db.step().unwrap();
            }
        }
        for (key, count) in counts.iter().enumerate() {
            let found = db.get(format!("counter{key:02}")).unwrap().unwrap();
            assert_eq!(number(&found), Some(*count), "counter {key}, round {round}");
        }
        if round == 2 {
            compact(&db);
        }
        let all = read_all(&db.default_column_family(), &ReadOptions::default());
        let found: Vec<_> = all.values().map(|value| number(value).unwrap()).collect();
        assert_eq!(found, counts);
        assert_sound(&db);
        db.close().unwrap();
    }
}

/// Wherever operands are (memory, a run, several runs, a value below), every way to read shows what
/// they make, at every snapshot.
#[test]
fn every_way_to_read_sees_the_same() {
    for merging in [appending(), appending_late()] {
        let vfs = MemVfs::new();
        let db = open(&vfs, with(merging));
        let mut snapshots = Vec::new();
        let mut text = String::new();
        db.put("key", "").unwrap();
        db.put("a neighbour", "below").unwrap();
        db.merge("key of nothing before", "n").unwrap();
        for (nth, letter) in ('a'..='z').enumerate() {
            db.merge("key", letter.to_string()).unwrap();
            text.push(letter);
            snapshots.push((db.snapshot(), text.clone()));
            match nth % 5 {
                1 => db.flush().unwrap(),
                3 => drop(db.step().unwrap()),
                _ => {}
            }
            if nth == 13 {
                compact(&db);
            }
        }
        let family = db.default_column_family();
        for (snapshot, text) in &snapshots {
            let options = ReadOptions::at(snapshot);
            let found = family.reading(&options).get("key").unwrap().unwrap();
            assert_eq!(String::from_utf8(found).unwrap(), *text);
            let found = family.reading(&options).multi_get(&["key", "none"]);
            assert_eq!(found[0].as_ref().unwrap().as_deref(), Some(text.as_bytes()));
            let mut iter = db.cursor(&options).unwrap();
            iter.seek("key");
            assert_eq!(iter.value(), text.as_bytes());
            iter.next();
            assert_eq!((iter.key(), iter.value()), (&b"key of nothing before"[..], &b"n"[..]));
            iter.prev();
            assert_eq!((iter.key(), iter.value()), (&b"key"[..], text.as_bytes()));
            iter.prev();
            assert_eq!(iter.key(), b"a neighbour");
            iter.next();
            assert_eq!(iter.value(), text.as_bytes());
            iter.seek_for_prev("key");
            assert_eq!(iter.value(), text.as_bytes());
        }
        drop(snapshots);
        compact(&db);
        assert_eq!(db.get("key").unwrap().unwrap(), text.as_bytes());
        assert_sound(&db);
    }
}

/// Without the operator nothing can be read and nothing is lost.
#[test]
fn operands_wait_for_their_operator() {
    let vfs = MemVfs::new();
    let db = open(&vfs, with(appending_late()));
    for nth in 0..500 {
        db.merge(format!("key{:02}", nth % 20), format!("{nth},")).unwrap();
    }
    db.put("plain", "value").unwrap();
    let family = db.default_column_family();
    let before = read_all(&family, &ReadOptions::default());
    db.close().unwrap();

    let db = open(&vfs, tiny());
    let refused = db.merge("key00", "x").unwrap_err();
    assert!(refused.to_string().contains("has no merge operator"), "{refused}");
    let mut batch = WriteBatch::new();
    batch.put("plain", "another").unwrap();
    batch.merge("key00", "x").unwrap();
    let refused = db.write(&batch, &WriteOptions::default()).unwrap_err();
    assert!(matches!(refused, Error::NoMergeOperator(_)), "{refused}");
    assert_eq!(db.get("plain").unwrap().unwrap(), b"value");
    let failed = db.get("key00").unwrap_err();
    assert!(matches!(&failed, Error::MergeFailed { key, .. } if key == b"key00"), "{failed}");
    assert!(failed.to_string().contains("without a merge operator"), "{failed}");
    let mut iter = db.cursor(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    assert!(!iter.valid() && iter.status().is_err());
    iter.seek("plain");
    assert_eq!(iter.value(), b"value");
    compact(&db);
    assert_sound(&db);
    db.close().unwrap();

    let db = open(&vfs, with(appending()));
    let family = db.default_column_family();
    assert_eq!(read_all(&family, &ReadOptions::default()), before);
    compact(&db);
    assert_eq!(read_all(&family, &ReadOptions::default()), before);
}

/// An operand that the operator refuses makes its key unreadable until it is written over, and
/// stops neither flushes nor compactions.
#[test]
fn an_operand_that_is_refused_harms_its_key_alone() {
    let vfs = MemVfs::new();
    let db = open(&vfs, with(adding()));
    db.put("good", 1_u64.to_le_bytes()).unwrap();
    db.put("spoilt", 1_u64.to_le_bytes()).unwrap();
    db.merge("spoilt", "no number").unwrap();
    db.merge("spoilt", 1_u64.to_le_bytes()).unwrap();
    for _ in 0..2 {
        assert!(matches!(db.get("spoilt").unwrap_err(), Error::MergeFailed { .. }));
        db.merge("good", 1_u64.to_le_bytes()).unwrap();
        db.flush().unwrap();
        compact(&db);
    }
    assert_eq!(number(&db.get("good").unwrap().unwrap()), Some(3));
    db.put("spoilt", 7_u64.to_le_bytes()).unwrap();
    db.merge("spoilt", 1_u64.to_le_bytes()).unwrap();
    assert_eq!(number(&db.get("spoilt").unwrap().unwrap()), Some(8));
    compact(&db);
    assert_eq!(number(&db.get("spoilt").unwrap().unwrap()), Some(8));
}

/// A full merge sees the value below and all operands, oldest first, in one call.
#[test]
fn a_full_merge_gets_all_at_once() {
    struct Shape;
    impl MergeOperator for Shape {
        fn name(&self) -> &str {
            "shape"
        }
        fn full_merge(
            &self,
            key: &[u8],
            existing: Option<&[u8]>,
            operands: &[&[u8]],
        ) -> Option<Vec<u8>> {
            let existing = existing.map_or("none".into(), String::from_utf8_lossy);
            let operands = String::from_utf8(operands.join(&b' ')).ok()?;
            Some(format!("{}: {existing} + {operands}", key.escape_ascii()).into_bytes())
        }
    }
    let db = open(&MemVfs::new(), with(Merging::new(Shape)));
    db.merge("a", "1").unwrap();
    db.merge("a", "2").unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"a: none + 1 2");
    db.put("a", "base").unwrap();
    db.flush().unwrap();
    db.merge("a", "3").unwrap();
    db.flush().unwrap();
    db.merge("a", "4").unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"a: base + 3 4");
    db.delete("a").unwrap();
    db.merge("a", "5").unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"a: none + 5");
}

#[test]
fn single_deletes_delete_whatever_was_written() {
    let vfs = MemVfs::new();
    let db = open(&vfs, with(appending()));
    let family = db.default_column_family();
    for key in ["once", "twice", "merged"] {
        db.put(key, "old").unwrap();
    }
    db.flush().unwrap();
    compact(&db);
    db.put("twice", "new").unwrap();
    db.merge("merged", "er").unwrap();
    let before = db.snapshot();
    for key in ["once", "twice"] {
        db.single_delete(key).unwrap();
    }
    let mut batch = WriteBatch::new();
    batch.to(&family).single_delete("merged").unwrap();
    batch.single_delete("never there").unwrap();
    db.write(&batch, &WriteOptions::default()).unwrap();
    for _ in 0..3 {
        assert!(read_all(&family, &ReadOptions::default()).is_empty());
        let seen = read_all(&family, &ReadOptions::at(&before));
        let values: Vec<_> = seen.values().map(Vec::as_slice).collect();
        assert_eq!(values, [&b"older"[..], b"old", b"new"]);
        db.flush().unwrap();
        compact(&db);
    }
    drop(before);
    compact(&db);
    assert_sound(&db);
    db.close().unwrap();
    let db = Db::open_with(Arc::new(vfs), "/db", tiny(), &[]).unwrap();
    assert_eq!(db.get("once").unwrap(), None);
}
