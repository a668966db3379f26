//! Deletions of ranges, as a user meets them.

use sateen::vfs::MemVfs;
use sateen::{
    CompactRangeOptions, Db, FlushOptions, Options, ReadOptions, Regions, WriteBatch, WriteOptions,
};

use crate::support::common::{
    Contents, Random, appending, as_vfs, assert_sound, read_all, small, tiny,
};

fn open(vfs: &MemVfs, options: &Options) -> Db {
    Db::open_with(as_vfs(vfs), "/db", options.clone(), &[]).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

fn compact(db: &Db) {
    let options = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
    db.compact_range(None, None, &options).unwrap();
    db.wait_idle().unwrap();
}

fn tombstones(db: &Db) -> u64 {
    db.property("sateen.num-range-tombstones").unwrap().parse().unwrap()
}

/// Every way to read agrees with `expected`.
fn assert_reads(db: &Db, expected: &Contents, options: &ReadOptions) {
    let family = db.default_column_family();
    assert_eq!(&read_all(&family, options), expected);
    let mut iter = db.cursor(options).unwrap();
    iter.seek_to_last();
    for (key, value) in expected.iter().rev() {
        assert_eq!((iter.key(), iter.value()), (&**key, &**value));
        iter.prev();
    }
    assert!(!iter.valid());
    iter.status().unwrap();
    let keys: Vec<_> = (0..200).map(key).collect();
    let found = family.reading(options).multi_get(&keys);
    for (key, found) in keys.iter().zip(found) {
        let wanted = expected.get(key);
        assert_eq!(found.unwrap().as_deref(), wanted.map(|value| &**value), "{key:?}");
        assert_eq!(family.reading(options).get(key).unwrap().as_ref(), wanted, "{key:?}");
        iter.seek(key);
        let next = expected.range(key.clone()..).next();
        assert_eq!(iter.valid().then(|| iter.key().to_vec()), next.map(|(key, _)| key.clone()));
        iter.seek_for_prev(key);
        let before = expected.range(..=key.clone()).next_back();
        assert_eq!(iter.valid().then(|| iter.key().to_vec()), before.map(|(key, _)| key.clone()));
    }
}

#[test]
fn every_way_to_read_sees_the_same_wherever_the_ranges_are() {
    for profile in ["sateen", "rocksdb", "triad", "pebblesdb", "vlsm"] {
        let vfs = MemVfs::new();
        let mut options = small(profile, 4 << 10);
        options.background_threads = 0;
        options.column_family.merge_operator = Some(appending());
        let mut db = open(&vfs, &options);
        let mut random = Random::new(7);
        let mut model = Contents::new();
        let mut snapshots = Vec::new();
        for round in 0..60_u64 {
            for _ in 0..40 {
                let (at, value) = (key(random.below(200)), random.next().to_string().into_bytes());
                if random.one_in(3) {
                    db.merge(&at, &value).unwrap();
                    model.entry(at).or_default().extend(value);
                } else {
                    db.put(&at, &value).unwrap();
                    model.insert(at, value);
                }
            }
            let begin = random.below(200);
            let (begin, end) = (key(begin), key(begin + random.below(60)));
            db.delete_range(&begin, &end).unwrap();
            model.retain(|key, _| *key < begin || *key >= end);
            match round % 7 {
                0 => db.flush().unwrap(),
                2 => snapshots.push((db.snapshot(), model.clone())),
                3 if random.one_in(2) => drop((!snapshots.is_empty()).then(|| snapshots.remove(0))),
                4 => while db.step().unwrap() {},
                6 if random.one_in(3) => compact(&db),
                _ => {}
            }
            if round % 20 == 19 {
                snapshots.clear();
                assert_sound(&db);
                db.close().unwrap();
                db = open(&vfs, &options);
            }
            assert_reads(&db, &model, &ReadOptions::default());
            for (snapshot, model) in &snapshots {
                assert_reads(&db, model, &ReadOptions::at(snapshot));
            }
        }
        snapshots.clear();
        compact(&db);
        assert_reads(&db, &model, &ReadOptions::default());
        assert_eq!(tombstones(&db), 0, "{profile}: everything was applied");
        assert_sound(&db);
    }
}

#[test]
fn a_snapshot_keeps_what_it_sees_and_the_deletion() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    let snapshot = db.snapshot();
    db.delete_range("a", "z").unwrap();
    db.put("b", "3").unwrap();
    compact(&db);
    assert_eq!(tombstones(&db), 1, "the old values are still there");
    assert_eq!(db.get("a").unwrap(), None);
    let family = db.default_column_family();
    let then = ReadOptions::at(&snapshot);
    assert_eq!(family.reading(&then).get("a").unwrap().unwrap(), b"1");
    assert_eq!(family.reading(&then).get("b").unwrap().unwrap(), b"2");
    assert_eq!(db.get("b").unwrap().unwrap(), b"3");
    drop((then, snapshot));
    compact(&db);
    assert_eq!(tombstones(&db), 0);
    assert_eq!(db.get("b").unwrap().unwrap(), b"3");
    assert_sound(&db);
}

#[test]
fn without_deletions_of_ranges_what_is_still_there_is_read() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    db.put("a", "1").unwrap();
    db.delete_range("a", "b").unwrap();
    let family = db.default_column_family();
    let all = ReadOptions { ignore_range_deletions: true, ..ReadOptions::default() };
    assert_eq!(family.reading(&all).get("a").unwrap().unwrap(), b"1");
    assert_eq!(read_all(&family, &all).len(), 1);
    assert_eq!(read_all(&family, &ReadOptions::default()).len(), 0);
}

#[test]
fn a_queue_that_deletes_what_is_done_leaves_no_deletions_behind() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    for number in 0..3_000_u64 {
        db.put(key(number), [b'v'; 30]).unwrap();
        if number % 10 == 9 {
            db.delete_range(key(0), key(number - 5)).unwrap();
        }
        if number % 100 == 99 {
            db.flush().unwrap();
            assert!(tombstones(&db) <= 1, "newer ones make older ones needless");
        }
    }
    let family = db.default_column_family();
    assert_eq!(read_all(&family, &ReadOptions::default()).len(), 6);
}

/// Tables of which nothing is left are neither opened nor read.
#[test]
fn what_is_deleted_costs_no_reads() {
    let vfs = MemVfs::new();
    let mut options = tiny();
    options.block_cache_bytes = 0;
    let db = open(&vfs, &options);
    for number in 0..5_000 {
        db.put(key(number), [b'v'; 50]).unwrap();
        if number % 50 == 0 {
            while db.step().unwrap() {}
        }
    }
    compact(&db);
    db.delete_range(key(10), key(4_990)).unwrap();
    let family = db.default_column_family();
    let flush = FlushOptions::default();
    family.flush_with(&flush).unwrap();
    let before = db.metrics().counts.data_block_misses;
    assert_eq!(read_all(&family, &ReadOptions::default()).len(), 20);
    let mut iter = db.cursor(&ReadOptions::default()).unwrap();
    iter.seek(key(2_000));
    assert_eq!(iter.key(), key(4_990));
    iter.seek_for_prev(key(3_000));
    assert_eq!(iter.key(), key(9));
    assert_eq!(db.get(key(2_500)).unwrap(), None);
    let read = db.metrics().counts.data_block_misses - before;
    assert!(read < 100, "{read} blocks were read");
}

/// Tables that have nothing else are dropped by the manifest alone, once no snapshot needs them.
#[test]
fn the_space_of_what_is_deleted_is_given_back_without_a_compaction() {
    for profile in ["sateen", "rocksdb", "pebblesdb"] {
        let vfs = MemVfs::new();
        let mut options = small(profile, 4 << 10);
        options.background_threads = 0;
        let db = open(&vfs, &options);
        for number in 0..5_000_u64 {
            db.put(key(number), [b'v'; 50]).unwrap();
            if number % 50 == 0 {
                while db.step().unwrap() {}
            }
        }
        compact(&db);
        let size = || db.property("sateen.total-sst-files-size").unwrap().parse::<u64>().unwrap();
        let compacted =
            || db.metrics().compactions.iter().map(|level| level.bytes_out).sum::<u64>();
        let (before, work) = (size(), compacted());
        let snapshot = db.snapshot();
        db.delete_range(key(10), key(4_990)).unwrap();
        db.flush().unwrap();
        while db.step().unwrap() {}
        assert_eq!(size(), before, "{profile}: a snapshot sees it");
        assert_eq!(read_all(&db.default_column_family(), &ReadOptions::at(&snapshot)).len(), 5_000);
        drop(snapshot);
        while db.step().unwrap() {}
        assert!(size() < before / 5, "{profile}: {} of {before} bytes are left", size());
        assert_eq!(compacted(), work, "{profile}: nothing was rewritten");
        assert_eq!(read_all(&db.default_column_family(), &ReadOptions::default()).len(), 20);
        assert_sound(&db);
    }
}

#[test]
fn ranges_go_across_regions_and_batches() {
    let vfs = MemVfs::new();
    let mut options = tiny();
    options.column_family.regions = Regions::at([key(50), key(100)]).unwrap();
    let db = open(&vfs, &options);
    let mut batch = WriteBatch::new();
    for number in 0..150 {
        batch.put(key(number), "v").unwrap();
    }
    batch.delete_range(key(20), key(120)).unwrap();
    batch.put(key(70), "again").unwrap();
    batch.delete_range(key(130), key(130)).unwrap();
    assert_eq!(batch.count(), 153);
    db.write(&batch, &WriteOptions::default()).unwrap();
    let family = db.default_column_family();
    let expect = || {
        let found = read_all(&family, &ReadOptions::default());
        let wanted = (0..20).chain([70]).chain(120..150).map(key);
        assert!(found.keys().cloned().eq(wanted), "{:?}", found.keys());
    };
    expect();
    db.flush().unwrap();
    expect();
    compact(&db);
    expect();
    assert_sound(&db);
}

#[test]
fn a_reversed_range_is_refused_with_its_batch() {
    let vfs = MemVfs::new();
    let db = open(&vfs, &tiny());
    let mut batch = WriteBatch::new();
    batch.put("a", "1").unwrap();
    batch.delete_range("y", "x").unwrap();
    let error = db.write(&batch, &WriteOptions::default()).unwrap_err().to_string();
    assert!(error.contains("the end x") && error.contains("its begin y"), "{error}");
    assert_eq!(db.get("a").unwrap(), None);
}
