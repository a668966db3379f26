//! Regions: a column family whose keys have several trees is to clients what one with a single tree
//! is.

use std::sync::Arc;

use sateen::vfs::{CrashChoice, MemVfs};
use sateen::{ColumnFamily, Db, Error, Options, ReadOptions, Regions, WriteBatch, WriteOptions};

use crate::support::common::{Contents, Random, as_vfs, assert_sound, read_all, tiny};

const DB: &str = "/db";

fn with_regions() -> Options {
    let mut options = tiny();
    options.column_family.regions = Regions::at(["key100", "key200", "key250"]).unwrap();
    options
}

fn open(vfs: &MemVfs, options: Options) -> Db {
    Db::open_with(as_vfs(vfs), DB, options, &[]).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

/// Writes in every way there is; what must be there afterwards.
fn fill(db: &Db, family: &ColumnFamily, random: &mut Random) -> Contents {
    let write = WriteOptions::default();
    let mut expected = Contents::new();
    for round in 0..400 {
        let mut batch = WriteBatch::new();
        for _ in 0..random.below(6) {
            let (key, value) = (key(random.below(300)), round.to_string().into_bytes());
            if random.one_in(4) {
                batch.to(family).delete(&key).unwrap();
                expected.remove(&key);
            } else {
                batch.to(family).put(&key, &value).unwrap();
                expected.insert(key, value);
            }
        }
        db.write(&batch, &write).unwrap();
        let (key, value) = (key(random.below(300)), vec![b'v'; random.below(90) as usize]);
        family.writing(&write).put(&key, &value).unwrap();
        expected.insert(key, value);
        if random.one_in(20) {
            let key = self::key(random.below(300));
            family.writing(&write).delete(&key).unwrap();
            expected.remove(&key);
        }
        while random.one_in(2) {
            db.step().unwrap();
        }
    }
    expected
}

fn assert_holds(family: &ColumnFamily, expected: &Contents) {
    let read = ReadOptions::default();
    assert_eq!(&read_all(family, &read), expected);
    let keys: Vec<_> = (0..300).rev().map(key).collect();
    let answers = family.reading(&read).multi_get(&keys);
    for (key, answer) in keys.iter().zip(answers) {
        let answer = answer.unwrap().map(|value| value.to_vec());
        assert_eq!(answer.as_ref(), expected.get(key));
        assert_eq!(&family.reading(&read).get(key).unwrap(), &answer);
    }
    for (lower, upper) in [(0, 300), (50, 150), (99, 101), (100, 200), (120, 130), (250, 299)] {
        let bounded = ReadOptions {
            lower_bound: Some(key(lower)),
            upper_bound: Some(key(upper)),
            ..ReadOptions::default()
        };
        let range = expected.range(key(lower)..key(upper));
        let range: Contents = range.map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(read_all(family, &bounded), range, "{lower} to {upper}");
    }
    let mut iter = family.cursor(&read).unwrap();
    for at in [0, 99, 100, 101, 199, 200, 260, 299] {
        iter.seek(key(at));
        let next = expected.range(key(at)..).next();
        assert_eq!(iter.valid().then(|| iter.key()), next.map(|entry| entry.0.as_slice()));
        if iter.valid() {
            // Back over where a region may begin, and forward again.
            iter.prev();
            let before = expected.range(..key(at)).next_back();
            assert_eq!(iter.valid().then(|| iter.key()), before.map(|entry| entry.0.as_slice()));
        }
        iter.seek_for_prev(key(at));
        let before = expected.range(..=key(at)).next_back();
        assert_eq!(iter.valid().then(|| iter.key()), before.map(|entry| entry.0.as_slice()));
    }
}

#[test]
fn regions_are_one_to_clients() {
    let vfs = MemVfs::new();
    let mut random = Random::new(1);
    let db = open(&vfs, with_regions());
    let family = db.default_column_family();
    let mut expected = fill(&db, &family, &mut random);
    assert_holds(&family, &expected);
    assert_eq!(db.column_families(), ["default"]);
    assert_eq!(db.metrics().column_families.len(), 1);

    // The default family's own calls find the way, too.
    let mut batch = WriteBatch::new();
    for number in [10, 110, 210, 260] {
        batch.put(key(number), "batch").unwrap();
        expected.insert(key(number), b"batch".to_vec());
    }
    db.write(&batch, &WriteOptions::default()).unwrap();
    db.put(key(299), "put").unwrap();
    expected.insert(key(299), b"put".to_vec());
    db.delete(key(0)).unwrap();
    expected.remove(&key(0));
    assert_eq!(db.get(key(260)).unwrap().as_deref(), Some(b"batch".as_slice()));

    // A snapshot is of all of them.
    let snapshot = db.snapshot();
    let before = expected.clone();
    for number in 0..300 {
        db.put(key(number), "later").unwrap();
    }
    let at = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    assert_eq!(read_all(&family, &at), before);
    drop(at);
    let expected: Contents = (0..300).map(|number| (key(number), b"later".to_vec())).collect();
    family.flush().unwrap();
    assert_eq!(db.property("sateen.num-entries-active-mem-table").unwrap(), "0");
    assert!(family.approximate_size(b"key150", b"key220") > 0);
    family.compact_range(Some(b"key150"), None, &Default::default()).unwrap();
    assert_holds(&family, &expected);

    let copy = std::path::Path::new("/copy");
    db.checkpoint(copy).unwrap();
    db.wait_idle().unwrap();
    assert_sound(&db);
    db.close().unwrap();
    // Told nothing of regions, it has them.
    for directory in [DB, "/copy"] {
        let db = Db::open_with(as_vfs(&vfs), directory, tiny(), &[]).unwrap();
        assert_holds(&db.default_column_family(), &expected);
        db.close().unwrap();
    }
    let db = open(&vfs, with_regions());
    assert_holds(&db.default_column_family(), &expected);
}

#[test]
fn other_column_families_have_regions_of_their_own() {
    let vfs = MemVfs::new();
    let mut random = Random::new(2);
    let db = open(&vfs, tiny());
    let other = db.create_column_family("other", with_regions().column_family).unwrap();
    let plain = db.default_column_family();
    let expected = [fill(&db, &plain, &mut random), fill(&db, &other, &mut random)];
    assert_holds(&plain, &expected[0]);
    assert_holds(&other, &expected[1]);
    assert_eq!(db.column_families(), ["default", "other"]);
    db.close().unwrap();
    let db = Db::open_with(as_vfs(&vfs), DB, tiny(), &[("other", tiny().column_family)]).unwrap();
    let other = db.column_family("other").unwrap();
    assert_holds(&other, &expected[1]);
    other.set_options(&[("level0_trigger", "1")]).unwrap();
    db.drop_column_family(&other).unwrap();
    assert!(matches!(other.get("key150"), Err(Error::NoSuchColumnFamily(_))));
    assert_eq!(db.column_families(), ["default"]);
    // Nothing of it is left, in any region.
    let other = db.create_column_family("other", with_regions().column_family).unwrap();
    assert_holds(&other, &Contents::new());
    db.wait_idle().unwrap();
    let live: u64 = db.table_files().iter().map(|file| file.live_bytes).sum();
    let sizes = db.property("sateen.total-sst-files-size").unwrap().parse::<u64>().unwrap();
    assert!(live < sizes + 4096 * 64, "{live} of {sizes}");
    assert_sound(&db);
}

#[test]
fn a_batch_across_regions_survives_whole_or_not_at_all() {
    let vfs = MemVfs::new();
    let db = open(&vfs, with_regions());
    let recording = vfs.record();
    let keys = [10, 110, 210, 260].map(key);
    for round in 0..120_u64 {
        let mut batch = WriteBatch::new();
        for key in &keys {
            batch.put(key, round.to_string()).unwrap();
        }
        batch.put([key(round % 300), b"x".to_vec()].concat(), vec![b'f'; 200]).unwrap();
        db.write(&batch, &WriteOptions::default()).unwrap();
        // Regions are flushed at different times.
        for _ in 0..round % 5 {
            db.step().unwrap();
        }
    }
    db.close().unwrap();
    let mut images = 0;
    for at in (0..recording.len()).step_by(7) {
        for choice in [CrashChoice::SyncedOnly, CrashChoice::Everything, CrashChoice::Subset(7)] {
            let image = recording.image_at(at, choice);
            let db = open(&image, with_regions());
            let values = keys.each_ref().map(|key| db.get(key).unwrap());
            assert!(values.iter().all(|value| value == &values[0]), "{at} {choice:?}: {values:?}");
            assert_sound(&db);
            images += 1;
        }
    }
    assert!(images > 50, "{images}");
}

#[test]
fn regions_cannot_be_changed_and_are_nobodys_column_families() {
    let vfs = MemVfs::new();
    let db = open(&vfs, with_regions());
    db.put(key(150), "value").unwrap();
    // The numbers of regions mean nothing to clients.
    let other = db.create_column_family("other", tiny().column_family).unwrap();
    for id in 1..other.id() {
        let mut data = vec![1, id as u8, 1, b'k', 1, b'v'];
        let batch = WriteBatch::from_data(std::mem::take(&mut data)).unwrap();
        let refused = db.write(&batch, &WriteOptions::default());
        assert!(matches!(refused, Err(Error::NoSuchColumnFamily(_))), "{id}: {refused:?}");
    }
    db.close().unwrap();
    for regions in [Regions::at(["key100"]).unwrap(), Regions::even(4).unwrap()] {
        let mut options = tiny();
        options.column_family.regions = regions;
        let refused = Db::open_with(Arc::new(vfs.clone()), DB, options, &[]).map(drop);
        let Err(Error::InvalidArgument(text)) = refused else { panic!("{refused:?}") };
        assert!(text.contains("default") && text.contains("4 regions"), "{text}");
    }
    let db = open(&vfs, tiny());
    assert_eq!(db.get(key(150)).unwrap().as_deref(), Some(b"value".as_slice()));
}

#[test]
fn what_is_read_across_regions_is_of_one_moment() {
    const REGIONS: u8 = 64;
    let mut options = tiny();
    options.background_threads = 2;
    options.write_controller = sateen::WriteController::Off;
    let family = &mut options.column_family;
    family.regions = Regions::even(REGIONS.into()).unwrap();
    family.memtable_bytes = 16 << 10;
    family.memtables_max = 100;
    family.disable_auto_compactions = true;
    let db = open(&MemVfs::new(), options);
    let keys: Vec<_> = (0..REGIONS).map(|region| [region << 2, 1]).collect();
    let write = |round: u64| {
        let mut batch = WriteBatch::new();
        for key in &keys {
            // Of different lengths, so that memtables are sealed all the time, each at another.
            batch.put(key, format!("{round:0width$}", width = 40 + usize::from(key[0]))).unwrap();
        }
        db.write(&batch, &WriteOptions::default()).unwrap();
    };
    write(0);
    let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse::<u64>().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (1..6000).for_each(write));
        let family = db.default_column_family();
        let read = ReadOptions::default();
        let mut seen = 0;
        while !writer.is_finished() {
            let answers = family.reading(&read).multi_get(&keys);
            let rounds: Vec<_> =
                answers.into_iter().map(|answer| number(&answer.unwrap().unwrap())).collect();
            assert!(rounds.iter().all(|round| *round == rounds[0]), "{rounds:?}");
            assert!(rounds[0] >= seen, "time goes back");
            seen = rounds[0];
            let mut iter = family.cursor(&read).unwrap();
            iter.seek_to_first();
            let mut rounds = Vec::new();
            while iter.valid() {
                rounds.push(number(iter.value()));
                iter.next();
            }
            assert_eq!(rounds.len(), keys.len());
            assert!(rounds.iter().all(|round| *round == rounds[0]), "{rounds:?}");
        }
    });
}

#[test]
fn the_default_column_family_gets_the_regions_of_its_own_options() {
    let vfs = MemVfs::new();
    let own = [("default", with_regions().column_family)];
    for _ in 0..2 {
        let db = Db::open_with(as_vfs(&vfs), DB, tiny(), &own).unwrap();
        let regions = db.default_column_family().options().regions;
        assert_eq!(regions, with_regions().column_family.regions);
        db.put(key(150), "value").unwrap();
    }
    // What regions are called inside is no name of a column family.
    let names = [("default, region 2", tiny().column_family)];
    let refused = Db::open_with(as_vfs(&vfs), DB, tiny(), &names).map(drop);
    assert!(matches!(refused, Err(Error::NoSuchColumnFamily(_))), "{refused:?}");
}

#[test]
fn a_database_that_is_read_only_is_at_rest() {
    let vfs = MemVfs::new();
    let db = open(&vfs, with_regions());
    (0..300).for_each(|number| db.put(key(number), "value").unwrap());
    db.flush_all().unwrap();
    db.close().unwrap();
    let db = Db::open_read_only_with(as_vfs(&vfs), DB, tiny()).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(read_all(&db.default_column_family(), &ReadOptions::default()).len(), 300);
}
