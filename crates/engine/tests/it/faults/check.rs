//! The check of a whole database: what is damaged is found and named, nothing else is, and nothing
//! is changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use sateen::vfs::{IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{
    CheckReport, CompactRangeOptions, CorruptionKind, Db, Error, Options, WriteBatch, WriteOptions,
    check_with,
};

use crate::support::common::{as_vfs, small, tiny};

const WRITE: OpenOptions = OpenOptions::WRITE;
const DB: &str = "/db";

fn look(vfs: &MemVfs, options: &Options) -> CheckReport {
    check_with(as_vfs(vfs), DB, options, &[], &mut |_, _| {}).unwrap()
}

fn names(vfs: &MemVfs) -> Vec<PathBuf> {
    let names = vfs.list(Path::new(DB)).unwrap();
    names.into_iter().map(|name| Path::new(DB).join(name)).collect()
}

fn ending(vfs: &MemVfs, text: &str) -> Vec<PathBuf> {
    let fits = |path: &PathBuf| path.to_string_lossy().contains(text);
    names(vfs).into_iter().filter(fits).collect()
}

fn all_bytes(vfs: &MemVfs) -> BTreeMap<PathBuf, Vec<u8>> {
    names(vfs).into_iter().map(|path| (path.clone(), vfs.contents(&path).unwrap())).collect()
}

/// A database with several levels, a log with synced writes, and values in a log.
fn made(options: &Options) -> MemVfs {
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), DB, options.clone(), &[]).unwrap();
    let other = db.create_column_family("other", options.column_family.clone()).unwrap();
    for i in 0..500_u32 {
        db.put(format!("key{:04}", i * 7 % 300), format!("value {i} {}", "x".repeat(60))).unwrap();
        other.put(format!("o{i}"), "there").unwrap();
    }
    db.flush_all().unwrap();
    db.wait_idle().unwrap();
    for i in 0..9 {
        db.put(format!("logged{i}"), "x".repeat(100)).unwrap();
    }
    db.close().unwrap();
    vfs
}

fn copied(from: &MemVfs) -> MemVfs {
    let vfs = MemVfs::new();
    vfs.create_dir_all(Path::new(DB)).unwrap();
    for (path, bytes) in all_bytes(from) {
        let file = vfs.open(&path, OpenOptions::CREATE).unwrap();
        file.write_at(&bytes, 0, IoClass::Manifest).unwrap();
    }
    vfs
}

fn flip(vfs: &MemVfs, path: &Path, at: u64) {
    let file = vfs.open(path, WRITE).unwrap();
    let mut byte = [0];
    assert_eq!(file.read_at(&mut byte, at, IoClass::Manifest).unwrap(), 1);
    file.write_at(&[!byte[0]], at, IoClass::Manifest).unwrap();
}

/// The finding that names `path`; where it says that it is.
fn named<'a>(report: &'a CheckReport, path: &Path) -> (&'a Error, u64) {
    let found = report.problems.iter().find_map(|problem| match problem {
        Error::Corruption { path: of, offset, .. } if of == path => Some((problem, *offset)),
        Error::IncompatibleDirectory { path: of, .. } if of == path => Some((problem, 0)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{} is not named: {:?}", path.display(), report.problems))
}

#[test]
fn a_sound_database_has_nothing_wrong_and_is_not_changed() {
    for options in [tiny(), small("triad", 4 << 10), small("pebblesdb", 4 << 10)] {
        let vfs = made(&options);
        let before = all_bytes(&vfs);
        let report = look(&vfs, &options);
        assert!(report.problems.is_empty(), "{report:#?}");
        assert!(report.orphans.is_empty() && report.notes.is_empty(), "{report:#?}");
        assert!(report.tables > 1 && report.entries > 300 && report.logs >= 1, "{report:?}");
        assert!(report.log_records >= 9 && report.manifest.is_some(), "{report:?}");
        assert!(report.live_bytes > 0 && report.disk_bytes >= report.live_bytes, "{report:?}");
        assert!(before == all_bytes(&vfs), "nothing is changed");
        assert!(vfs.exists(&Path::new(DB).join("LOCK")).unwrap());
    }
}

/// A flush of one column family makes sure that the logs are durable of what the others hold there,
/// and says so: what is missing then is damage, whatever manifest says it and wherever it is read.
#[test]
fn what_a_flush_relied_on_is_not_taken_for_an_unfinished_end() {
    let mut options = tiny();
    options.manifest_bytes_max = 1 << 20;
    for (rolled, copy) in [(false, false), (true, false), (false, true)] {
        let vfs = MemVfs::new();
        let db = Db::open_with(as_vfs(&vfs), DB, options.clone(), &[]).unwrap();
        let other = db.create_column_family("other", options.column_family.clone()).unwrap();
        let mut batch = WriteBatch::new();
        batch.put("first", "1").unwrap();
        batch.to(&other).put("second", "2").unwrap();
        db.write(&batch, &WriteOptions::default()).unwrap();
        db.flush().unwrap();
        if rolled {
            db.set_options(&[("manifest_bytes_max", "1")]).unwrap();
            let before = ending(&vfs, "MANIFEST");
            db.put("third", "3").unwrap();
            db.flush().unwrap();
            db.wait_idle().unwrap();
            assert_ne!(ending(&vfs, "MANIFEST"), before);
        }
        if copy {
            db.checkpoint("/copy").unwrap();
        }
        let at = if copy { "/copy" } else { DB };
        let image = MemVfs::new();
        image.create_dir_all(Path::new(DB)).unwrap();
        let mut log = PathBuf::new();
        for name in vfs.list(Path::new(at)).unwrap() {
            let bytes = vfs.contents(&Path::new(at).join(&name)).unwrap();
            let path = Path::new(DB).join(&name);
            let file = image.open(&path, OpenOptions::CREATE).unwrap();
            if name.extension().is_some_and(|kind| kind == "wal") && bytes.len() > 100 {
                log = path;
                file.write_at(&vec![0; bytes.len()], 0, IoClass::Manifest).unwrap();
            } else {
                file.write_at(&bytes, 0, IoClass::Manifest).unwrap();
            }
        }
        drop((db, other));
        let report = look(&image, &options);
        named(&report, &log);
        let opened = Db::open_with(as_vfs(&image), DB, options.clone(), &[]);
        let text = opened.err().unwrap().to_string();
        assert!(text.contains(log.to_str().unwrap()), "{rolled} {copy}: {text}");
    }
}

#[test]
fn each_kind_of_file_that_is_damaged_is_named_with_the_place() {
    let options = tiny();
    let golden = made(&options);
    let image = |change: &dyn Fn(&MemVfs)| {
        let vfs = copied(&golden);
        change(&vfs);
        let before = all_bytes(&vfs);
        let report = look(&vfs, &options);
        assert!(before == all_bytes(&vfs), "nothing is changed");
        report
    };
    let [manifest] = &ending(&golden, "MANIFEST")[..] else { panic!("one manifest") };
    let largest = |paths: Vec<PathBuf>| {
        paths.into_iter().max_by_key(|path| golden.contents(path).unwrap().len()).unwrap()
    };
    let table = largest(ending(&golden, ".sat"));
    let log = largest(ending(&golden, ".wal"));
    let length = |path: &Path| golden.contents(path).unwrap().len() as u64;

    // A block of a table: where it begins; the directory of its file; the header.
    let report = image(&|vfs| flip(vfs, &table, 4096 + 700));
    let (_, at) = named(&report, &table);
    assert!((4096..=4096 + 700).contains(&at) && at + 700 > 4096 + 700, "{at}");
    let report = image(&|vfs| flip(vfs, &table, length(&table) - 60));
    let (_, at) = named(&report, &table);
    assert_eq!(at, length(&table) - 64, "the footer");
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    let report = image(&|vfs| flip(vfs, &table, 100));
    assert_eq!(named(&report, &table).1, 0);
    let report = image(&|vfs| vfs.remove(&table).unwrap());
    assert!(named(&report, &table).0.to_string().contains("missing file"));
    let report = image(&|vfs| vfs.open(&table, WRITE).unwrap().truncate(4096 + 512).unwrap());
    assert!(named(&report, &table).0.to_string().contains("truncated"));

    // A log: the record.
    let report = image(&|vfs| flip(vfs, &log, length(&log) / 2));
    let (_, at) = named(&report, &log);
    assert!(at <= length(&log) / 2 && at + 300 > length(&log) / 2, "{at}");
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    let report = image(&|vfs| vfs.remove(&log).unwrap());
    assert!(named(&report, &log).0.to_string().contains("missing file"));

    // The manifest and CURRENT: what they do not say is looked for elsewhere.
    let report = image(&|vfs| flip(vfs, manifest, length(manifest) / 2));
    assert!(named(&report, manifest).1 > 0);
    assert!(report.tables > 1 && report.logs >= 1, "{report:?}");
    let report = image(&|vfs| vfs.remove(manifest).unwrap());
    assert!(named(&report, manifest).0.to_string().contains("missing file"));
    assert!(report.tables > 1, "{report:?}");
    let current = Path::new(DB).join("CURRENT");
    let report = image(&|vfs| flip(vfs, &current, 8));
    named(&report, &current);
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert!(report.tables > 1 && report.notes.iter().any(|note| note.contains("MANIFEST")));
    let report = image(&|vfs| vfs.remove(&current).unwrap());
    assert!(report.problems[0].to_string().contains("CURRENT is missing"), "{report:?}");
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);

    // The options; what somebody left there; the hint, which may be damaged.
    let stored = Path::new(DB).join("OPTIONS");
    let report = image(&|vfs| flip(vfs, &stored, 40));
    assert_eq!(named(&report, &stored).1, 0);
    let stray = Path::new(DB).join("987654.sat");
    let report = image(&|vfs| drop(vfs.open(&stray, OpenOptions::CREATE).unwrap()));
    assert_eq!(report.orphans, std::slice::from_ref(&stray));
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let hint = Path::new(DB).join("DEVICE");
    let report = image(&|vfs| {
        let _none_there = vfs.remove(&hint);
        drop(vfs.open(&hint, OpenOptions::CREATE).unwrap());
    });
    assert!(report.notes.iter().any(|note| note.contains("DEVICE")), "{report:?}");
}

#[test]
fn several_damaged_blocks_are_all_told_and_damage_after_damage_of_the_manifest() {
    let options = tiny();
    let vfs = made(&options);
    let table = ending(&vfs, ".sat");
    let table = table.iter().max_by_key(|path| vfs.contents(path).unwrap().len()).unwrap();
    for at in [700, 2_000, 4_000] {
        flip(&vfs, table, 4096 + at);
    }
    let told = |vfs: &MemVfs| {
        let report = look(vfs, &options);
        let of = |problem: &&Error| problem.to_string().contains(table.to_str().unwrap());
        report.problems.iter().filter(of).count()
    };
    assert!(told(&vfs) >= 2, "{:?}", look(&vfs, &options).problems);
    ending(&vfs, "MANIFEST").iter().for_each(|path| vfs.remove(path).unwrap());
    assert!(told(&vfs) >= 1, "{:?}", look(&vfs, &options).problems);
}

#[test]
fn a_hole_under_a_live_table_is_called_one() {
    let vfs = made(&tiny());
    let table = ending(&vfs, ".sat");
    let table = table.iter().max_by_key(|path| vfs.contents(path).unwrap().len()).unwrap();
    vfs.open(table, WRITE).unwrap().punch_hole(8192, 4096, IoClass::Reclaim).unwrap();
    let report = look(&vfs, &tiny());
    let hole = |problem: &Error| match problem {
        Error::Corruption { path, offset, kind: CorruptionKind::Hole } => {
            path == table && *offset == 8192
        }
        _ => false,
    };
    assert!(report.problems.iter().any(hole), "{:?}", report.problems);
}

#[test]
fn damage_that_an_open_database_has_read_already_is_found() {
    let vfs = made(&tiny());
    let db = Db::open_with(as_vfs(&vfs), DB, tiny(), &[]).unwrap();
    assert!(db.check(&mut |_, _| {}).unwrap().problems.is_empty());
    let [manifest] = &ending(&vfs, "MANIFEST")[..] else { panic!("one manifest") };
    flip(&vfs, manifest, 100);
    let report = db.check(&mut |_, _| {}).unwrap();
    named(&report, manifest);
    assert!(report.tables > 1, "the tables are checked all the same: {report:?}");
}

#[test]
fn what_is_no_database_is_refused() {
    let vfs = MemVfs::new();
    let refuse = |vfs: &MemVfs| {
        check_with(as_vfs(vfs), DB, &tiny(), &[], &mut |_, _| {}).unwrap_err().to_string()
    };
    assert!(refuse(&vfs).contains(DB));
    vfs.create_dir_all(Path::new(DB)).unwrap();
    assert!(refuse(&vfs).contains("no database here"), "{}", refuse(&vfs));
    let file = vfs.open(&Path::new(DB).join("CURRENT"), OpenOptions::CREATE).unwrap();
    file.write_at(b"MANIFEST-000007\n", 0, IoClass::Manifest).unwrap();
    drop(vfs.open(&Path::new(DB).join("MANIFEST-000007"), OpenOptions::CREATE).unwrap());
    assert!(refuse(&vfs).contains("import"), "{}", refuse(&vfs));
}

/// Whoever has it open flushes, compacts, punches, deletes and rolls; nothing of it is damage.
#[test]
fn nothing_is_wrong_with_a_database_while_it_is_written() {
    for profile in ["sateen", "triad", "pebblesdb"] {
        let mut options = small(profile, 8 << 10);
        options.background_threads = 2;
        options.manifest_bytes_max = 2 << 10;
        let vfs = MemVfs::new();
        let db = Db::open_with(as_vfs(&vfs), DB, options.clone(), &[]).unwrap();
        let done = AtomicBool::new(false);
        let (mut tables, mut checks) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut state = 1_u64;
                while !done.load(Ordering::Relaxed) {
                    let mut batch = WriteBatch::new();
                    for _ in 0..8 {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let key = format!("key{:05}", (state >> 33) % 4000);
                        batch.put(key, vec![b'v'; 50 + (state >> 60) as usize]).unwrap();
                    }
                    db.write(&batch, &WriteOptions::default()).unwrap();
                }
            });
            scope.spawn(|| {
                let family = db.default_column_family();
                while !done.load(Ordering::Relaxed) {
                    let all = CompactRangeOptions::default();
                    family.compact_range(None, None, &all).unwrap();
                }
            });
            while checks < 12 || tables < 50 {
                let outside = look(&vfs, &options);
                let inside = db.check(&mut |_, _| {}).unwrap();
                let secondary =
                    Db::open_secondary_with(as_vfs(&vfs), DB, options.clone(), &[]).unwrap();
                let followed = secondary.check(&mut |_, _| {}).unwrap();
                for report in [outside, inside, followed] {
                    if !report.problems.is_empty() {
                        done.store(true, Ordering::Relaxed);
                        panic!("{profile}: {:#?}", report.problems);
                    }
                    tables += report.tables;
                }
                checks += 1;
            }
            done.store(true, Ordering::Relaxed);
        });
        db.close().unwrap();
    }
}
