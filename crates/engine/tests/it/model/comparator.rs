//! Keys in the order of a comparator: what the random suites, which have option sets with one, do
//! not come to.

use std::cmp::Ordering;
use std::sync::Arc;

use sateen::vfs::{CrashChoice, MemVfs, Vfs};
use sateen::{
    ColumnFamilyOptions, CompactRangeOptions, Comparator, Db, Error, IngestOptions, Options,
    Prefixing, ReadOptions, Regions, SstFileWriter, repair_with,
};

use crate::support::common::{as_vfs, assert_sound, small, tiny};

fn number(key: &[u8]) -> u64 {
    std::str::from_utf8(key).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Numbers as text, the largest first; texts of one number are equal to it.
fn descending() -> Comparator {
    Comparator::custom("descending", |a, b| number(b).cmp(&number(a)))
}

fn with(comparator: Comparator) -> Options {
    let mut options = tiny();
    options.column_family.comparator = comparator;
    options
}

fn keys(db: &Db, options: &ReadOptions) -> Vec<String> {
    let mut iter = db.cursor(options).unwrap();
    let mut keys = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        keys.push(String::from_utf8(iter.key().to_vec()).unwrap());
        iter.next();
    }
    iter.status().unwrap();
    keys
}

#[test]
fn another_comparator_is_refused_by_name() {
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), "/db", with(descending()), &[]).unwrap();
    db.put("7", "v").unwrap();
    db.close().unwrap();
    for other in [Comparator::BYTEWISE, Comparator::reverse_bytewise()] {
        let name = other.name().to_owned();
        let error = Db::open_with(as_vfs(&vfs), "/db", with(other), &[]).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::InvalidArgument(_)), "{text}");
        assert!(text.contains("descending") && text.contains(&name), "{text}");
    }
    let error = Db::open_read_only_with(as_vfs(&vfs), "/db", tiny()).unwrap_err();
    assert!(error.to_string().contains("descending"), "{error}");
    let names = Db::list_column_families_with(&vfs, "/db").unwrap();
    assert_eq!(names, ["default"]);
    let db = Db::open_with(as_vfs(&vfs), "/db", with(descending()), &[]).unwrap();
    assert_eq!(db.get("7").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn what_needs_the_order_of_bytes_is_refused() {
    let mut options = with(descending());
    options.column_family.regions = Regions::at(["b"]).unwrap();
    let open = |options| Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]);
    assert!(open(options).unwrap_err().to_string().contains("descending"));
    for name in ["", "bytewise"] {
        let nameless = Comparator::custom(name, |_, _| Ordering::Equal);
        assert!(matches!(open(with(nameless)), Err(Error::InvalidArgument(_))), "{name}");
    }
    let db = open(with(descending())).unwrap();
    let options = ReadOptions { prefix: Some(b"1".to_vec()), ..ReadOptions::default() };
    assert!(db.cursor(&options).is_err());
    let bounds = |lower: &str, upper: &str| ReadOptions {
        lower_bound: Some(lower.into()),
        upper_bound: Some(upper.into()),
        ..ReadOptions::default()
    };
    assert!(db.cursor(&bounds("5", "10")).is_err(), "5 comes after 10");
    assert!(db.cursor(&bounds("10", "5")).is_ok());
    assert!(db.delete_range("5", "10").is_err() && db.delete_range("10", "5").is_ok());
    let text = Options::from_str_list("comparator=descending").unwrap_err().to_string();
    assert!(text.contains("comparator") && text.contains("reverse-bytewise"), "{text}");
}

/// Equal is what has the same bytes.
#[test]
fn keys_that_a_comparator_takes_for_equal_are_two_keys() {
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", with(descending()), &[]).unwrap();
    for (key, value) in [("7", "a"), ("07", "b"), ("8", "c"), ("007", "d")] {
        db.put(key, value).unwrap();
    }
    db.flush().unwrap();
    db.put("07", "e").unwrap();
    assert_eq!(keys(&db, &ReadOptions::default()), ["8", "007", "07", "7"]);
    assert_eq!(db.get("07").unwrap().as_deref(), Some(&b"e"[..]));
    assert_eq!(db.get("0007").unwrap(), None);
    assert_sound(&db);
}

#[test]
fn column_families_have_comparators_of_their_own() {
    let vfs = MemVfs::new();
    let own = ColumnFamilyOptions { comparator: descending(), ..tiny().column_family };
    let plain = tiny();
    let db = Db::open_with(as_vfs(&vfs), "/db", plain.clone(), &[]).unwrap();
    let family = db.create_column_family("numbers", own.clone()).unwrap();
    let gone = db.create_column_family("gone", own.clone()).unwrap();
    for at in 0..300 {
        let key = (at * 37 % 300).to_string();
        db.put(&key, "v").unwrap();
        family.put(&key, "v").unwrap();
        gone.put(&key, "v").unwrap();
    }
    db.flush_all().unwrap();
    db.drop_column_family(&gone).unwrap();
    drop((family, gone));
    db.close().unwrap();
    drop(db);
    // What was dropped needs no comparator; what was not does.
    let text = Db::open_with(as_vfs(&vfs), "/db", plain.clone(), &[]).unwrap_err().to_string();
    assert!(text.contains("numbers") && text.contains("descending"), "{text}");
    let families = [("numbers", own.clone())];
    let db = Db::open_with(as_vfs(&vfs), "/db", plain.clone(), &families).unwrap();
    let family = db.column_family("numbers").unwrap();
    let mut iter = family.cursor(&ReadOptions::default()).unwrap();
    iter.seek(b"150");
    assert_eq!(iter.key(), b"150");
    iter.next();
    assert_eq!(iter.key(), b"149");
    assert!(keys(&db, &ReadOptions::default()).is_sorted());
    assert_sound(&db);
    drop((iter, family));
    db.close().unwrap();
    drop(db);
    // And the other way round: one in the order of bytes needs no options of its own.
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), "/db", with(descending()), &[]).unwrap();
    db.create_column_family("bytes", tiny().column_family).unwrap();
    db.close().unwrap();
    drop(db);
    let db = Db::open_with(as_vfs(&vfs), "/db", with(descending()), &[]).unwrap();
    let bytes = db.column_family("bytes").unwrap();
    assert!(bytes.options().comparator.is_bytewise());
}

#[test]
fn a_repair_keeps_the_order() {
    for (lose_manifest, leave_log) in [(false, false), (true, false), (true, true)] {
        let vfs = MemVfs::new();
        let db = Db::open_with(as_vfs(&vfs), "/db", with(descending()), &[]).unwrap();
        for round in 0..3 {
            for at in 0..200 {
                db.put((at * 37 % 200).to_string(), format!("{round}")).unwrap();
            }
            if round < 2 || !leave_log {
                db.flush().unwrap();
            }
        }
        if leave_log {
            db.sync_wal().unwrap();
        } else {
            db.close().unwrap();
        }
        let image = vfs.crash_image(CrashChoice::Everything);
        drop(db);
        if lose_manifest {
            for path in image.list("/db".as_ref()).unwrap() {
                let name = path.to_string_lossy().into_owned();
                if name.contains("MANIFEST") || name.contains("manifest") {
                    image.remove(&std::path::Path::new("/db").join(path)).unwrap();
                }
            }
        }
        let before = image.fingerprint();
        assert!(repair_with(as_vfs(&image), "/db", &tiny()).is_err(), "without the comparator");
        let left = |image: &MemVfs| image.list("/db".as_ref()).unwrap().len();
        assert!(left(&image) > 1, "{before:?}");
        repair_with(as_vfs(&image), "/db", &with(descending())).unwrap();
        let db = Db::open_with(as_vfs(&image), "/db", with(descending()), &[]).unwrap();
        let expected: Vec<String> = (0..200).rev().map(|at: u32| at.to_string()).collect();
        assert_eq!(keys(&db, &ReadOptions::default()), expected, "{lose_manifest} {leave_log}");
        assert_eq!(db.get("123").unwrap().as_deref(), Some(&b"2"[..]));
        assert_sound(&db);
    }
}

#[test]
fn files_are_ingested_in_their_order_alone() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let write = |path: &str, comparator: Comparator, keys: &[&str]| {
        let options = with(comparator);
        let mut writer = SstFileWriter::create_with(vfs.clone(), path, &options)?;
        keys.iter().try_for_each(|key| writer.put(key, "in"))?;
        writer.finish().map(drop)
    };
    write("/down", descending(), &["100", "20", "3"]).unwrap();
    write("/up", Comparator::BYTEWISE, &["100", "20", "3"]).unwrap();
    assert!(write("/wrong", descending(), &["3", "20"]).is_err());
    let db = Db::open_with(vfs.clone(), "/db", with(descending()), &[]).unwrap();
    db.put("20", "old").unwrap();
    let family = db.default_column_family();
    let error = family.ingest(&["/up"], &IngestOptions::default()).unwrap_err();
    assert!(error.to_string().contains("descending"), "{error}");
    family.ingest(&["/down"], &IngestOptions::default()).unwrap();
    assert_eq!(keys(&db, &ReadOptions::default()), ["100", "20", "3"]);
    assert_eq!(db.get("20").unwrap().as_deref(), Some(&b"in"[..]));
    assert_sound(&db);
}

#[test]
fn files_delete_ranges_in_their_order() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let options = with(descending());
    let mut writer = SstFileWriter::create_with(vfs.clone(), "/ranges", &options).unwrap();
    assert!(writer.delete_range("3", "20").is_err());
    for (begin, end) in [("20", "9"), ("100", "50"), ("60", "40"), ("9", "9")] {
        writer.delete_range(begin, end).unwrap();
    }
    writer.put("50", "in").unwrap();
    let info = writer.finish().unwrap();
    assert_eq!((info.ranges, &*info.smallest, &*info.largest), (2, &b"100"[..], &b"9"[..]));
    let db = Db::open_with(vfs, "/db", options, &[]).unwrap();
    for key in ["200", "100", "50", "40", "30", "20", "10", "9", "3"] {
        db.put(key, "old").unwrap();
    }
    let family = db.default_column_family();
    family.ingest(&["/ranges"], &IngestOptions::default()).unwrap();
    assert_eq!(keys(&db, &ReadOptions::default()), ["200", "50", "40", "30", "9", "3"]);
    family.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
    assert_eq!(keys(&db, &ReadOptions::default()), ["200", "50", "40", "30", "9", "3"]);
    assert_sound(&db);
}

/// The power fails at many moments: what is found is in order, and a prefix of what was written.
#[test]
fn a_crash_leaves_keys_in_order() {
    for profile in ["sateen", "rocksdb", "triad"] {
        let mut options = small(profile, 2 << 10);
        options.column_family.comparator = descending();
        let vfs = MemVfs::new();
        let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
        for at in 0..600_u32 {
            db.put((at * 7 % 600).to_string(), at.to_string()).unwrap();
            while at % 40 == 39 && db.step().unwrap() {}
            if at % 90 != 89 {
                continue;
            }
            db.sync_wal().unwrap();
            for choice in [CrashChoice::SyncedOnly, CrashChoice::Subset(at.into())] {
                let image = vfs.crash_image(choice);
                let db = Db::open_with(as_vfs(&image), "/db", options.clone(), &[]).unwrap();
                let mut expected: Vec<u32> = (0..=at).map(|at| at * 7 % 600).collect();
                expected.sort_unstable_by(|a, b| b.cmp(a));
                let expected: Vec<String> = expected.iter().map(u32::to_string).collect();
                assert_eq!(keys(&db, &ReadOptions::default()), expected, "{profile} at {at}");
                assert_sound(&db);
            }
        }
    }
}

/// A prefix is before the keys that it begins as bytes, and behind them in reverse.
#[test]
fn no_table_is_passed_by_for_its_prefix() {
    let mut options = with(Comparator::reverse_bytewise());
    options.column_family.prefix_extractor = Some(Prefixing::fixed(2));
    let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).unwrap();
    for keys in [["ab1", "ab2"], ["aa1", "aa2"], ["ac1", "ac2"]] {
        keys.iter().for_each(|key| db.put(key, "v").unwrap());
        db.flush().unwrap();
    }
    let read = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
    let mut iter = db.cursor(&read).unwrap();
    let mut shown = Vec::new();
    iter.seek_for_prev(b"ab0");
    while iter.valid() {
        shown.push(iter.key().to_vec());
        iter.prev();
    }
    assert_eq!(shown, [b"ab1", b"ab2"]);
    iter.seek(b"ab9");
    shown.clear();
    while iter.valid() {
        shown.push(iter.key().to_vec());
        iter.next();
    }
    assert_eq!(shown, [b"ab2", b"ab1"]);
}
