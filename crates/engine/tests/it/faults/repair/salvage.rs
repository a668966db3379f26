//! Repair, further: what is saved of what is damaged, what is said of it, and that it can be
//! interrupted.

use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation};
use sateen::{
    Comparator, Db, Error, Options, ReadOptions, Regions, RepairReport, WriteOptions,
    repair_families_with, repair_with,
};

use crate::faults::repair::whole::{files, flip, golden, open_repaired};
use crate::support::common::{Contents, Random, as_vfs, assert_sound, read_all, small, tiny};

fn all_bytes(vfs: &MemVfs) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    files(vfs, ".").into_iter().map(|path| (path.clone(), vfs.contents(&path).unwrap())).collect()
}

pub(crate) fn copied(from: &MemVfs) -> MemVfs {
    let vfs = MemVfs::new();
    vfs.create_dir_all(Path::new("/db")).unwrap();
    for path in files(from, "").into_iter().filter(|path| !path.ends_with("lost")) {
        let file = vfs.open(&path, OpenOptions::CREATE).unwrap();
        file.write_at(&from.contents(&path).unwrap(), 0, IoClass::Manifest).unwrap();
        file.sync_data(IoClass::Manifest).unwrap();
    }
    ["/db", "/"].iter().for_each(|path| vfs.sync_dir(Path::new(path)).unwrap());
    vfs
}

fn largest(vfs: &MemVfs, ending: &str) -> std::path::PathBuf {
    let size = |path: &std::path::PathBuf| vfs.contents(path).unwrap().len();
    files(vfs, ending).into_iter().max_by_key(size).unwrap()
}

/// Whatever is lost with tables is in a range that is reported.
fn assert_told(report: &RepairReport, before: &Contents, after: &Contents, what: &str) {
    for (key, value) in before {
        let told = report.lost_ranges.iter().any(|range| {
            range.first <= *key && *key <= range.last && range.column_family == "default"
        });
        let (text, now) = (key.escape_ascii(), after.get(key));
        assert!(told || now == Some(value), "{what}: {text} is lost untold: {report:?}");
    }
    for key in after.keys() {
        assert!(before.contains_key(key), "{what}: {} was not there", key.escape_ascii());
    }
}

#[test]
fn whatever_byte_of_a_table_is_damaged_a_block_at_most_is_lost_and_told() {
    let scale = std::env::var("SATEEN_CORRUPT_SCALE").ok().and_then(|text| text.parse().ok());
    for profile in ["sateen", "triad"] {
        let options = small(profile, 4 << 10);
        let golden = MemVfs::new();
        let db = Db::open_with(as_vfs(&golden), "/db", options.clone(), &[]).unwrap();
        for i in 0..300_u32 {
            let value = format!("value {i} {}", "x".repeat(60));
            db.put(format!("key{:04}", i * 7 % 150), value).unwrap();
        }
        db.flush().unwrap();
        let contents = read_all(&db.default_column_family(), &ReadOptions::default());
        db.close().unwrap();
        let mut random = Random::new(7);
        for case in 0..scale.unwrap_or(1) * 60_u64 {
            let vfs = copied(&golden);
            let tables = files(&vfs, ".sat");
            let path = &tables[random.below(tables.len() as u64) as usize];
            let length = vfs.contents(path).unwrap().len() as u64;
            let at = match random.below(4) {
                0 => random.below(4096),
                1 => length - 1 - random.below(200),
                _ => random.below(length),
            };
            flip(&vfs, path, at);
            let with_manifest = random.one_in(2);
            if !with_manifest {
                files(&vfs, "MANIFEST").iter().for_each(|path| vfs.remove(path).unwrap());
            }
            let what = format!("{profile}, case {case}: {} at {at}", path.display());
            let report = repair_with(as_vfs(&vfs), "/db", &options)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
            assert_sound(&db);
            let family = db.default_column_family();
            let repaired = read_all(&family, &ReadOptions::default());
            assert_told(&report, &contents, &repaired, &what);
            let lost = contents.iter().filter(|(key, value)| repaired.get(*key) != Some(value));
            let (lost, whole) = (lost.count(), contents.len());
            assert!(lost <= 20, "{what}: {lost} of {whole}: {report:?}");
            assert!(lost == 0 || !report.losses.is_empty(), "{what}: {report:?}");
        }
    }
}

/// Each call in turn, of those that have to do with files of tables.
#[test]
fn a_table_that_cannot_be_read_at_some_time_is_not_lost_untold() {
    let (vfs, mut contents) = golden();
    contents.retain(|key, _| key != b"unflushed");
    for path in [files(&vfs, "MANIFEST"), files(&vfs, ".wal")].concat() {
        vfs.remove(&path).unwrap();
    }
    for operation in [VfsOperation::Open, VfsOperation::Len, VfsOperation::Read] {
        for nth in 1.. {
            let vfs = copied(&vfs);
            let faulty = FaultVfs::new(as_vfs(&vfs));
            let rule = FaultRule::new(Fault::Io).on(operation).path_contains(".sat").nth(nth);
            let rule = faulty.add(rule);
            let Ok(report) = repair_with(Arc::new(faulty.clone()), "/db", &tiny()) else {
                continue;
            };
            if faulty.happened(rule) == 0 {
                assert!(nth > 3, "{operation:?} is not called");
                break;
            }
            let (_, after) = open_repaired(&vfs);
            let tells = |loss: &Error| loss.to_string().contains(".sat");
            let told = report.losses.iter().any(tells);
            assert!(after == contents || told, "{operation:?} {nth}: {report:?}");
        }
    }
}

#[test]
fn the_index_of_a_table_and_the_directory_of_its_file_can_be_done_without() {
    for with_manifest in [true, false] {
        let (vfs, contents) = golden();
        let path = largest(&vfs, ".sat");
        let bytes = vfs.contents(&path).unwrap();
        let end = bytes.windows(8).position(|at| at == b"SATtable").unwrap() + 8;
        // The header of the file, the footer of a table, and the directory.
        for at in [100, end - 40, bytes.len() - 60] {
            flip(&vfs, &path, at as u64);
        }
        if !with_manifest {
            files(&vfs, "MANIFEST").iter().for_each(|path| vfs.remove(path).unwrap());
        }
        let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
        assert!(!report.losses.is_empty(), "{report:?}");
        let (_, repaired) = open_repaired(&vfs);
        if with_manifest {
            assert_eq!(repaired, contents, "{report:?}");
        } else {
            // The one table nobody knows of.
            assert!(repaired.len() + 40 > contents.len(), "{} {report:?}", repaired.len());
            assert!(report.notes.iter().any(|note| note.contains("were found")), "{report:?}");
        }
    }
}

#[test]
fn ranges_that_a_damaged_log_has_deleted_stay_deleted() {
    for with_manifest in [true, false] {
        let (vfs, contents) = golden();
        {
            let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
            db.delete_range("key0100", "key0200").unwrap();
            for i in 0..5 {
                db.put(format!("logged{i}"), "x".repeat(60)).unwrap();
            }
            db.put("key0150", "since").unwrap();
            db.close().unwrap();
        }
        let log = largest(&vfs, ".wal");
        let length = vfs.contents(&log).unwrap().len() as u64;
        flip(&vfs, &log, length - 250);
        if !with_manifest {
            files(&vfs, "MANIFEST").iter().for_each(|path| vfs.remove(path).unwrap());
        }
        let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
        assert!(!report.losses.is_empty(), "{report:?}");
        let (db, repaired) = open_repaired(&vfs);
        for key in contents.keys().filter(|key| key.starts_with(b"key")) {
            let text = String::from_utf8_lossy(key);
            let inside = ("key0100".."key0200").contains(&&*text);
            let deleted = inside && key != b"key0150";
            assert_eq!(repaired.contains_key(key), !deleted, "{}", key.escape_ascii());
        }
        assert_eq!(db.get("key0150").unwrap().as_deref(), Some(&b"since"[..]));
    }
}

#[test]
fn what_the_whole_part_of_a_manifest_says_is_remembered() {
    let vfs = MemVfs::new();
    let options = Options { manifest_bytes_max: 1 << 20, ..tiny() };
    let reversed = sateen::ColumnFamilyOptions {
        comparator: Comparator::reverse_bytewise(),
        ..tiny().column_family
    };
    let regions = sateen::ColumnFamilyOptions {
        regions: Regions::at(["key1", "key2"]).unwrap(),
        ..tiny().column_family
    };
    let write = WriteOptions::default();
    let names = ["users", "reversed", "regions"];
    {
        let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
        let gone = db.create_column_family("gone", tiny().column_family).unwrap();
        gone.writing(&write).put("key", "value").unwrap();
        db.drop_column_family(&gone).unwrap();
        db.create_column_family("users", tiny().column_family).unwrap();
        db.create_column_family("reversed", reversed.clone()).unwrap();
        db.create_column_family("regions", regions.clone()).unwrap();
        for name in names {
            let family = db.column_family(name).unwrap();
            for i in 0..300 {
                family.writing(&write).put(format!("key{i}"), name).unwrap();
            }
            family.flush().unwrap();
        }
        let users = db.column_family("users").unwrap();
        users.writing(&write).delete_range("key10", "key20").unwrap();
        db.flush_all().unwrap();
        users.writing(&write).put("in the log", "alone").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
    }
    let expected: Vec<Contents> = {
        let families = [("reversed", reversed.clone())];
        let read = Db::open_read_only_families_with(as_vfs(&vfs), "/db", tiny(), &families);
        let read = read.unwrap();
        names.iter().map(|name| contents(&read, name)).collect()
    };
    let [manifest] = &files(&vfs, "MANIFEST")[..] else { panic!("one manifest") };
    let length = vfs.contents(manifest).unwrap().len() as u64;
    flip(&vfs, manifest, length - 60);
    let families = [("reversed", reversed.clone())];
    assert!(Db::open_with(as_vfs(&vfs), "/db", tiny(), &families).is_err());
    let refused = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap_err().to_string();
    assert!(refused.contains("reversed"), "{refused}");
    let report = repair_families_with(as_vfs(&vfs), "/db", &tiny(), &families).unwrap();
    assert!(report.manifest.is_none() && report.lost_ranges.is_empty(), "{report:?}");
    let families = [("reversed", reversed), ("regions", regions)];
    let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &families).unwrap();
    assert_sound(&db);
    let there: Vec<_> = db.column_families();
    assert_eq!(there, ["default", "regions", "reversed", "users"]);
    for (name, expected) in names.iter().zip(expected) {
        assert_eq!(contents(&db, name), expected, "{name}: {report:?}");
    }
}

fn contents(db: &Db, name: &str) -> Contents {
    read_all(&db.column_family(name).unwrap(), &ReadOptions::default())
}

/// A manifest that CURRENT named before is not believed in the place of the one that it names.
#[test]
fn an_older_manifest_is_not_believed() {
    let (vfs, _) = golden();
    let [old] = &files(&vfs, "MANIFEST")[..] else { panic!("one manifest") };
    let stale = vfs.contents(old).unwrap();
    let contents = {
        let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
        for i in 0..100 {
            db.put(format!("later{i}"), "x".repeat(60)).unwrap();
        }
        db.flush().unwrap();
        let contents = read_all(&db.default_column_family(), &ReadOptions::default());
        db.close().unwrap();
        contents
    };
    let [new] = &files(&vfs, "MANIFEST")[..] else { panic!("one manifest") };
    assert_ne!(old, new);
    let file = vfs.open(old, OpenOptions::CREATE).unwrap();
    file.write_at(&stale, 0, IoClass::Manifest).unwrap();
    let length = vfs.contents(new).unwrap().len() as u64;
    flip(&vfs, new, length / 2);
    let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
    assert!(report.manifest.is_none(), "{report:?}");
    let (_, repaired) = open_repaired(&vfs);
    assert_eq!(repaired, contents, "{report:?}");
}

#[test]
fn what_was_set_aside_before_is_not_overwritten() {
    let (vfs, _) = golden();
    for _ in 0..2 {
        let path = largest(&vfs, "MANIFEST");
        flip(&vfs, &path, 100);
        repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
    }
    let before = vfs.list(Path::new("/db/lost")).unwrap();
    let [first] = &files(&vfs, "MANIFEST")[..] else { panic!("one manifest") };
    let stray = Path::new("/db/lost").join(first.file_name().unwrap());
    let file = vfs.open(&stray, OpenOptions::CREATE).unwrap();
    file.write_at(b"of before", 0, IoClass::Manifest).unwrap();
    repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
    assert_eq!(vfs.contents(&stray).unwrap(), b"of before");
    assert!(vfs.list(Path::new("/db/lost")).unwrap().len() > before.len() + 1);
}

/// The damaged file is where it was, or in `lost`.
fn assert_kept(vfs: &MemVfs, path: &Path, bytes: &[u8], what: &str) {
    let lost = Path::new("/db/lost");
    let aside = vfs.list(lost).unwrap_or_default().into_iter().map(|name| lost.join(name));
    let mut places = aside.chain([path.to_owned()]);
    let there = places.any(|place| vfs.contents(&place).is_ok_and(|found| found == bytes));
    assert!(there, "{what}: an open has removed {}", path.display());
}

/// Wherever it is cut short, nothing is destroyed, and begun again it comes to the same.
#[test]
fn an_interrupted_repair_is_begun_again() {
    let (golden, contents) = golden();
    for damage in ["table", "manifest", "log", "current"] {
        let vfs = copied(&golden);
        let path = match damage {
            "table" => largest(&vfs, ".sat"),
            "manifest" => largest(&vfs, "MANIFEST"),
            "log" => largest(&vfs, ".wal"),
            _ => Path::new("/db/CURRENT").to_owned(),
        };
        let length = vfs.contents(&path).unwrap().len() as u64;
        flip(&vfs, &path, if damage == "table" { 4096 + 700 } else { length * 2 / 3 });
        let file = vfs.open(&path, OpenOptions::WRITE).unwrap();
        file.sync_data(IoClass::Manifest).unwrap();
        let before = all_bytes(&vfs);
        let damaged = vfs.contents(&path).unwrap();
        let recording = vfs.record();
        let whole = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
        let (_, expected) = open_repaired(&copied(&vfs));
        assert!(expected.len() + 12 >= contents.len(), "{damage}: {whole:?}");
        for operation in 0..=recording.len() {
            for choice in recording.choices_at(operation, 1) {
                let what = format!("{damage}, operation {operation} of {}", recording.len());
                let image = recording.image_at(operation, choice);
                let kept = |image: &MemVfs, when: &str| {
                    for (path, bytes) in &before {
                        let name = path.file_name().unwrap().to_string_lossy().into_owned();
                        let lost = image.list(Path::new("/db/lost")).unwrap_or_default();
                        let same =
                            |path: &Path| image.contents(path).is_ok_and(|found| found == *bytes);
                        let aside = lost.iter().any(|other| {
                            other.to_string_lossy().starts_with(&name)
                                && same(&Path::new("/db/lost").join(other))
                        });
                        // Logs that are whole are replayed; texts that are whole are replaced.
                        let whole = ["CURRENT", "OPTIONS", "LOCK", "DEVICE"].contains(&&*name)
                            && damage != "current";
                        assert!(aside || whole || same(path), "{what}, {when}: {name} is gone");
                    }
                };
                kept(&image, "interrupted");
                let opened = recording.image_at(operation, choice);
                if let Ok(db) = Db::open_with(as_vfs(&opened), "/db", tiny(), &[]) {
                    // It removes what it does not know.
                    db.close().unwrap();
                    assert_kept(&opened, &path, &damaged, &what);
                }
                repair_with(as_vfs(&image), "/db", &tiny())
                    .unwrap_or_else(|error| panic!("{what}, {choice:?}: {error}"));
                kept(&image, "repaired");
                let (db, repaired) = open_repaired(&image);
                assert!(repaired == expected, "{what}, {choice:?}");
                db.put("after", "repair").unwrap();
            }
        }
    }
}

#[test]
fn whatever_byte_of_a_log_is_damaged_one_commit_at_most_is_lost() {
    let (golden, _) = golden();
    {
        let db = Db::open_with(as_vfs(&golden), "/db", tiny(), &[]).unwrap();
        for i in 0..12 {
            db.put(format!("logged{i:02}"), "x".repeat(i)).unwrap();
        }
        db.close().unwrap();
    }
    let log = largest(&golden, ".wal");
    let length = golden.contents(&log).unwrap().len() as u64;
    let mut lost_some = 0;
    for at in 0..length {
        let vfs = copied(&golden);
        flip(&vfs, &log, at);
        let report = repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
        let (_, repaired) = open_repaired(&vfs);
        let there = |i: &usize| {
            let value = repaired.get(format!("logged{i:02}").as_bytes());
            assert!(value.is_none_or(|value| value.len() == *i), "at {at}: {report:?}");
            value.is_some()
        };
        let lost = 12 - (0..12).filter(there).count();
        assert!(lost <= 1, "at {at}: {lost} are lost: {report:?}");
        let said = !report.losses.is_empty() && report.notes.iter().any(|n| n.contains("lost"));
        assert!(lost == 0 || said, "at {at}: {report:?}");
        lost_some += lost;
    }
    assert!(lost_some as u64 > length / 2, "{lost_some} of {length}");
}
