//! Whether values have the times of their writes is a property of a column family: no open, copy or
//! file changes it while there are values.

use std::path::Path;
use std::time::Duration;

use sateen::vfs::{IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{
    ColumnFamilyOptions, CompactRangeOptions, Db, Error, Options, ReadOptions, Regions,
    SstFileWriter, WallClock, WriteBatch, WriteOptions,
};

use crate::support::common::{as_vfs, assert_sound, contents, read_all, tiny};

const HOUR: Duration = Duration::from_secs(3600);

fn with_ttl(ttl: Option<Duration>) -> Options {
    let mut options = tiny();
    options.column_family.ttl = ttl;
    options
}

fn family(ttl: Option<Duration>) -> ColumnFamilyOptions {
    with_ttl(ttl).column_family
}

fn open(vfs: &MemVfs, ttl: Option<Duration>) -> Result<Db, Error> {
    Db::open_with(as_vfs(vfs), "/db", with_ttl(ttl), &[])
}

/// A database with values, and perhaps all of them in the WAL alone.
fn written(ttl: Option<Duration>, flushed: bool) -> MemVfs {
    let vfs = MemVfs::new();
    let db = open(&vfs, ttl).unwrap();
    for (key, value) in [("red", "red"), ("texas", "texas"), ("empty", "")] {
        db.put(key, value).unwrap();
    }
    if flushed {
        db.flush().unwrap();
    }
    db.close().unwrap();
    vfs
}

fn is_intact(db: &Db) {
    let expected = [(&b"empty"[..], &b""[..]), (b"red", b"red"), (b"texas", b"texas")];
    let shown = contents(db);
    assert!(shown.iter().map(|(key, value)| (&key[..], &value[..])).eq(expected), "{shown:?}");
    for (key, value) in expected {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(value));
    }
}

#[test]
fn an_open_in_the_other_form_is_refused_by_name() {
    for (stored, wanted, said) in [
        (None, Some(HOUR), "ttl=1h: the values of the column family default are stored without"),
        (Some(HOUR), None, "ttl=none: the values of the column family default are stored with"),
    ] {
        for flushed in [false, true] {
            let vfs = written(stored, flushed);
            let refused = |opened: Result<Db, Error>| {
                let error = opened.expect_err("it is refused");
                assert!(matches!(&error, Error::InvalidArgument(_)), "{error}");
                assert!(error.to_string().contains(said), "{error}");
            };
            let other = || with_ttl(wanted);
            refused(open(&vfs, wanted));
            refused(Db::open_read_only_with(as_vfs(&vfs), "/db", other()));
            refused(Db::open_secondary_with(as_vfs(&vfs), "/db", other(), &[]));
            // The refusal has changed nothing, and a checkpoint has the same form.
            let db = open(&vfs, stored).unwrap();
            is_intact(&db);
            db.checkpoint("/copy").unwrap();
            refused(Db::open_with(as_vfs(&vfs), "/copy", other(), &[]));
            is_intact(&Db::open_with(as_vfs(&vfs), "/copy", with_ttl(stored), &[]).unwrap());
            let all = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
            db.default_column_family().compact_range(None, None, &all).unwrap();
            is_intact(&db);
            assert_sound(&db);
            let reader = Db::open_secondary_with(as_vfs(&vfs), "/db", with_ttl(stored), &[]);
            is_intact(&reader.unwrap());
            is_intact(&Db::open_read_only_with(as_vfs(&vfs), "/db", with_ttl(stored)).unwrap());
        }
    }
}

#[test]
fn an_empty_column_family_changes_its_form() {
    let vfs = MemVfs::new();
    for round in 0..3 {
        for ttl in [None, Some(HOUR)] {
            let db = open(&vfs, ttl).unwrap();
            assert!(contents(&db).is_empty());
            assert_eq!(Db::list_ttls_with(&vfs, "/db").unwrap(), [("default".to_owned(), ttl)]);
            db.close().unwrap();
        }
        for ttl in [Some(HOUR), None] {
            let db = open(&vfs, ttl).unwrap();
            db.put("key", "value").unwrap();
            if round > 0 {
                db.flush().unwrap();
            }
            assert_eq!(db.get("key").unwrap().unwrap(), b"value");
            db.close().unwrap();
            // What it holds now has a form.
            let other = if ttl.is_some() { None } else { Some(HOUR) };
            assert!(open(&vfs, other).is_err());
            let db = open(&vfs, ttl).unwrap();
            assert_eq!(db.get("key").unwrap().unwrap(), b"value");
            db.delete("key").unwrap();
            let all = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
            db.default_column_family().compact_range(None, None, &all).unwrap();
            db.close().unwrap();
        }
    }
}

/// The options of the default column family are for others, too, but do not decide on their form.
/// WALs from before were written in another form.
#[test]
fn readers_of_the_log_see_nothing_from_before_a_change() {
    for (old, new) in [(None, Some(HOUR)), (Some(HOUR), None)] {
        let vfs = MemVfs::new();
        let keeping = |ttl| Options { wal_ttl_seconds: 1_000_000, ..with_ttl(ttl) };
        let open = |ttl| Db::open_with(as_vfs(&vfs), "/db", keeping(ttl), &[]).unwrap();
        let db = open(old);
        db.put("texas", "texas").unwrap();
        db.delete("texas").unwrap();
        let all = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
        db.compact_range(None, None, &all).unwrap();
        db.close().unwrap();
        drop(db);
        let values = |db: &Db| {
            let mut updates = db.updates_since(1)?;
            let mut values = Vec::new();
            while updates.valid() {
                let entries = updates.batch().unwrap().iter();
                values.extend(entries.map(|entry| entry.value.to_vec()));
                updates.next();
            }
            updates.status().map(|()| values)
        };
        // An open that changes nothing shows them.
        let db = open(old);
        assert_eq!(values(&db).unwrap(), [b"texas".to_vec(), Vec::new()]);
        db.close().unwrap();
        drop(db);
        let reader = Db::open_read_only_with(as_vfs(&vfs), "/db", keeping(new)).unwrap();
        assert!(matches!(values(&reader), Err(Error::NotInLog(_))), "{:?}", values(&reader));
        drop(reader);
        for _ in 0..2 {
            let db = open(new);
            assert!(matches!(values(&db), Err(Error::NotInLog(_))), "{:?}", values(&db));
            db.put("red", "red").unwrap();
            let mut updates = db.updates_since(3).unwrap();
            assert_eq!(updates.batch().unwrap().iter().next().unwrap().value, b"red");
            updates.next();
            db.close().unwrap();
        }
    }
}

#[test]
fn column_families_that_are_not_named_keep_their_form() {
    for default in [None, Some(HOUR)] {
        let vfs = MemVfs::new();
        let db = open(&vfs, default).unwrap();
        let regions = Regions::at(["m"]).unwrap();
        let timed = ColumnFamilyOptions { regions, ..family(Some(HOUR)) };
        for (name, options) in [("timed", timed), ("plain", family(None))] {
            let family = db.create_column_family(name, options).unwrap();
            family.put("a", "abc").unwrap();
            family.put("z", "").unwrap();
            family.flush().unwrap();
        }
        db.close().unwrap();
        for round in 0..2 {
            let db = open(&vfs, default).unwrap();
            for name in ["timed", "plain"] {
                let family = db.column_family(name).unwrap();
                let shown = read_all(&family, &ReadOptions::default());
                assert_eq!(shown.get(&b"a"[..]).unwrap(), b"abc", "{name}");
                assert_eq!(shown.get(&b"z"[..]).unwrap(), b"", "{name}");
                assert_eq!(shown.len(), 2 + round);
                family.put(format!("new{round}"), "value").unwrap();
                family.flush().unwrap();
            }
            assert_sound(&db);
            db.close().unwrap();
        }
        let own = |timed, plain| [("timed", family(timed)), ("plain", family(plain))];
        let open = |own: &[(&str, ColumnFamilyOptions)]| {
            Db::open_with(as_vfs(&vfs), "/db", with_ttl(default), own)
        };
        let error = open(&own(None, None)).unwrap_err().to_string();
        assert!(error.contains("the column family timed"), "{error}");
        let error = open(&own(Some(HOUR), Some(HOUR))).unwrap_err().to_string();
        assert!(error.contains("the column family plain"), "{error}");
        let db = open(&own(Some(HOUR), None)).unwrap();
        let timed = db.column_family("timed").unwrap();
        assert_eq!(timed.get("new1").unwrap().unwrap(), b"value");
    }
}

#[test]
fn a_secondary_learns_that_the_form_has_changed() {
    let vfs = MemVfs::new();
    open(&vfs, None).unwrap().close().unwrap();
    let secondary = Db::open_secondary_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
    // A primary might write in its form at any time.
    let other = Db::open_secondary_with(as_vfs(&vfs), "/db", with_ttl(Some(HOUR)), &[]);
    assert!(other.is_err());
    let db = open(&vfs, Some(HOUR)).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    let error = secondary.try_catch_up_with_primary().unwrap_err().to_string();
    assert!(error.contains("ttl") && error.contains("opened again"), "{error}");
    assert_eq!(secondary.get("key").unwrap(), None);
}

#[test]
fn files_in_the_other_form_are_not_ingested() {
    let vfs = MemVfs::new();
    for ttl in [None, Some(HOUR)] {
        let path = format!("/file{}", u8::from(ttl.is_some()));
        let options = with_ttl(ttl);
        let mut writer = SstFileWriter::create_with(as_vfs(&vfs), path, &options).unwrap();
        writer.put("key", "value").unwrap();
        writer.finish().unwrap();
    }
    for (ttl, own, other) in [(None, "/file0", "/file1"), (Some(HOUR), "/file1", "/file0")] {
        let vfs = vfs.clone();
        let path = format!("/db{own}").replace("/file", "");
        let db = Db::open_with(as_vfs(&vfs), &path, with_ttl(ttl), &[]).unwrap();
        let error = db.ingest(&[own, other], &Default::default()).unwrap_err();
        assert!(matches!(&error, Error::InvalidArgument(_)), "{error}");
        assert!(error.to_string().contains("option ttl"), "{error}");
        let import =
            |name: &str, file: &str| db.import_column_family(name, family(ttl), &[file], false);
        assert!(import("imported", other).is_err());
        assert!(db.column_family("imported").is_none());
        assert_eq!(db.get("key").unwrap(), None);
        db.ingest(&[own], &Default::default()).unwrap();
        assert_eq!(db.get("key").unwrap().unwrap(), b"value");
        assert_eq!(import("imported", own).unwrap().get("key").unwrap().unwrap(), b"value");
    }
}

/// A repair keeps the form, with a manifest and with the readable part of one.
#[test]
fn a_repair_keeps_the_form() {
    for damaged in [false, true] {
        let vfs = written(Some(HOUR), true);
        let db = open(&vfs, Some(HOUR)).unwrap();
        db.create_column_family("plain", family(None)).unwrap().put("key", "value").unwrap();
        db.flush_all().unwrap();
        db.close().unwrap();
        if damaged {
            let db = open(&vfs, Some(HOUR)).unwrap();
            db.put("red", "red").unwrap();
            db.flush().unwrap();
            db.close().unwrap();
            let names = vfs.list(Path::new("/db")).unwrap();
            let manifest = names.iter().find(|path| path.to_string_lossy().contains("MANIFEST"));
            let path = Path::new("/db").join(manifest.unwrap().file_name().unwrap());
            let at = vfs.contents(&path).unwrap().len() as u64 - 60;
            let file = vfs.open(&path, OpenOptions::WRITE).unwrap();
            file.write_at(b"damaged", at, IoClass::Manifest).unwrap();
            // The form is not taken from there.
            vfs.remove(Path::new("/db/OPTIONS")).unwrap();
        }
        sateen::repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
        assert!(open(&vfs, None).is_err(), "damaged: {damaged}");
        let db = open(&vfs, Some(HOUR)).unwrap();
        is_intact(&db);
        let plain = db.column_family("plain").unwrap();
        assert_eq!(plain.get("key").unwrap().unwrap(), b"value");
    }
}

/// A clock from before there were times: what it writes can be read, and expires when it is right.
#[test]
fn a_clock_that_is_years_behind_loses_nothing() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    for start in [0, 1, 86_400, 1_368_146_401] {
        let seconds = Arc::new(AtomicU64::new(start));
        let clock = seconds.clone();
        let mut options = with_ttl(Some(HOUR));
        options.wall_clock = WallClock::new(move || clock.load(Ordering::Relaxed));
        let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).unwrap();
        for (key, value) in [("red", "red"), ("texas", "texas"), ("empty", "")] {
            db.put(key, value).unwrap();
        }
        for _ in 0..2 {
            is_intact(&db);
            let all = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
            db.default_column_family().compact_range(None, None, &all).unwrap();
        }
        seconds.store(1_800_000_000, Ordering::Relaxed);
        assert!(contents(&db).is_empty() && db.get("red").unwrap().is_none());
        assert_sound(&db);
    }
}

#[test]
fn a_batch_may_have_the_times() {
    let vfs = MemVfs::new();
    let db = open(&vfs, Some(HOUR)).unwrap();
    let plain = db.create_column_family("plain", family(None)).unwrap();
    let write = |value: &[u8]| {
        let mut batch = WriteBatch::new();
        batch.put("key", value).unwrap();
        batch.to(&plain).put("key", "v").unwrap();
        batch.delete("other").unwrap();
        db.write_with_times(&batch, &WriteOptions::default())
    };
    for short in ["", "abc", "1368"] {
        let error = write(short.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    }
    assert_eq!(plain.get("key").unwrap(), None, "nothing was written");
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let at = |seconds: u64| [b"value", &u32::try_from(seconds).unwrap().to_le_bytes()[..]].concat();
    write(&at(now)).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), b"value");
    assert_eq!(plain.get("key").unwrap().unwrap(), b"v");
    write(&at(now - 7200)).unwrap();
    assert_eq!(db.get("key").unwrap(), None, "it is as old as it says");
}

/// A crash at any operation: no value is read in another form than it was written in.
#[test]
fn a_new_form_is_durable_before_a_value_has_it() {
    for (before, after) in [(None, Some(HOUR)), (Some(HOUR), None)] {
        let vfs = MemVfs::new();
        open(&vfs, before).unwrap().close().unwrap();
        let recording = vfs.record();
        let db = open(&vfs, after).unwrap();
        db.writing(WriteOptions::sync()).put("key", "value").unwrap();
        let promised = recording.len();
        drop(db);
        let mut seen = [0, 0];
        for at in 0..=recording.len() {
            for choice in recording.choices_at(at, 2) {
                let image = recording.image_at(at, choice);
                let db = open(&image, after).unwrap();
                let shown = contents(&db);
                let there = shown.get(&b"key"[..]).is_some_and(|value| value == b"value");
                assert!(there || shown.is_empty(), "{at} {choice:?}: {shown:?}");
                assert!(there || at < promised, "{at} {choice:?}: it was promised");
                seen[usize::from(there)] += 1;
                assert_sound(&db);
            }
        }
        assert!(seen[0] > 5 && seen[1] > 0, "{seen:?}");
    }
}
