//! Removing a database: its own files go, wherever they are and whatever they have become, and no
//! others.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen::vfs::{
    CrashChoice, Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs, VfsOperation,
};
use sateen::{Db, DestroyReport, Error, Options, destroy, destroy_with, repair_with};

use crate::faults::repair::whole::golden;
use crate::support::common::{Random, as_vfs, contents, tiny};

fn store(vfs: &Arc<dyn Vfs>, path: &str, options: &Options) {
    let db = Db::open_with(vfs.clone(), path, options.clone(), &[]).unwrap();
    (0..200).for_each(|key| db.put(format!("key{key:03}"), [b'v'; 60]).unwrap());
    db.flush().unwrap();
    db.put("last", "only in the log").unwrap();
    db.close().unwrap();
}

fn with_logs(path: &str) -> Options {
    Options { wal_dir: Some(path.into()), ..tiny() }
}

fn names(vfs: &dyn Vfs, path: &str) -> Vec<String> {
    let listed = vfs.list(Path::new(path)).unwrap_or_default();
    listed.iter().map(|name| name.to_str().unwrap().to_owned()).collect()
}

fn gone(vfs: &MemVfs, path: &str) -> bool {
    !vfs.exists(Path::new(path)).unwrap()
}

fn put_file(vfs: &MemVfs, path: &str, bytes: &[u8]) {
    let file = vfs.open(Path::new(path), OpenOptions::CREATE).unwrap();
    file.write_at(bytes, 0, IoClass::Client).unwrap();
}

#[test]
fn what_is_not_the_databases_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let open = |path: &Path| Db::open(path, tiny()).unwrap();
    let fill = |path: &Path| {
        let db = open(path);
        (0..500).for_each(|key| db.put(format!("key{key:03}"), [b'v'; 60]).unwrap());
        db.close().unwrap();
    };
    fill(&path);
    fill(&path.join("nested"));
    let kept = ["000123.log", "777777.wal", "999999.sat", "CURRENT.bak", "MANIFEST-7", "notes.txt"];
    kept.iter().for_each(|name| fs::write(path.join(name), "of mine\n").unwrap());
    fs::create_dir(path.join("888888.sat")).unwrap();
    symlink("nowhere", path.join("666666.wal")).unwrap();
    let report = destroy(&path, &tiny()).unwrap();
    assert!(!report.directory_removed && !report.removed.is_empty());
    let mut left: Vec<String> = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let mut expected = kept.to_vec();
    expected.extend(["888888.sat", "666666.wal", "nested"]);
    expected.sort_unstable();
    assert_eq!(left, expected);
    let mut told = report.left.clone();
    told.sort();
    assert_eq!(told, expected.iter().map(|name| path.join(name)).collect::<Vec<_>>());
    assert_eq!(contents(&open(&path.join("nested"))).len(), 500);
}

#[test]
fn through_a_link_the_data_go_and_the_link_stays() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real"), directory.path().join("link"));
    symlink(&real, &link).unwrap();
    fs::create_dir(&real).unwrap();
    let db = Db::open(&link, tiny()).unwrap();
    db.put("a", "1").unwrap();
    db.close().unwrap();
    let report = destroy(&link, &tiny()).unwrap();
    assert!(!report.directory_removed && report.left.is_empty(), "{report:?}");
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
    assert!(contents(&Db::open(&link, tiny()).unwrap()).is_empty());
}

#[test]
fn a_database_that_is_open_is_refused() {
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), "/db", with_logs("/logs"), &[]).unwrap();
    db.put("a", "1").unwrap();
    let before = (names(&vfs, "/db"), names(&vfs, "/logs"));
    let refused = destroy_with(&vfs, "/db", &tiny()).unwrap_err();
    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
    assert_eq!((names(&vfs, "/db"), names(&vfs, "/logs")), before);
    db.close().unwrap();
    assert!(destroy_with(&vfs, "/db", &tiny()).unwrap().directory_removed);
}

#[test]
fn logs_elsewhere_go_too() {
    // As the options say, or, where they do not, the stored ones.
    for options in [with_logs("/logs"), tiny()] {
        let vfs = MemVfs::new();
        store(&as_vfs(&vfs), "/db", &with_logs("/logs"));
        assert!(names(&vfs, "/logs").iter().any(|name| name.ends_with(".wal")));
        let report = destroy_with(&vfs, "/db", &options).unwrap();
        assert!(report.directory_removed && report.left.is_empty(), "{report:?}");
        assert!(gone(&vfs, "/db") && gone(&vfs, "/logs"));
        store(&as_vfs(&vfs), "/db", &with_logs("/logs"));
    }
}

#[test]
fn logs_of_another_database_stay() {
    let vfs = MemVfs::new();
    store(&as_vfs(&vfs), "/other", &tiny());
    let log = names(&vfs, "/other").into_iter().find(|name| name.ends_with(".wal")).unwrap();
    store(&as_vfs(&vfs), "/db", &with_logs("/logs"));
    let bytes = vfs.contents(&Path::new("/other").join(log)).unwrap();
    put_file(&vfs, "/logs/900000.wal", &bytes);
    put_file(&vfs, "/logs/900001.wal", b"");
    put_file(&vfs, "/logs/900002.wal", b"a list of mine");
    let report = destroy_with(&vfs, "/db", &with_logs("/logs")).unwrap();
    assert!(report.directory_removed && gone(&vfs, "/db"));
    let left = names(&vfs, "/logs");
    assert!(left.contains(&"900000.wal".to_owned()), "the other database's log stays: {left:?}");
    assert_eq!(left, ["900000.wal", "900001.wal", "900002.wal", "LOCK"]);
    // Without another's in it what says nothing goes with the rest.
    left.iter().for_each(|name| vfs.remove(&Path::new("/logs").join(name)).unwrap());
    store(&as_vfs(&vfs), "/db", &with_logs("/logs"));
    put_file(&vfs, "/logs/900003.wal", b"");
    put_file(&vfs, "/logs/900004.wal", b"a list of mine");
    destroy_with(&vfs, "/db", &with_logs("/logs")).unwrap();
    assert_eq!(names(&vfs, "/logs"), ["900004.wal", "LOCK"]);
}

#[test]
fn a_checkpoint_goes_without_the_logs_of_its_source() {
    let vfs = MemVfs::new();
    let options = with_logs("/logs");
    let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    db.put("early", "1").unwrap();
    db.checkpoint("/copy").unwrap();
    db.put("late", "2").unwrap();
    // Also while the source is open.
    db.checkpoint("/another").unwrap();
    if destroy_with(&vfs, "/another", &options).is_ok() {
        assert!(gone(&vfs, "/another"));
    }
    db.close().unwrap();
    destroy_with(&vfs, "/copy", &options).unwrap();
    assert!(gone(&vfs, "/copy"));
    let db = Db::open_with(as_vfs(&vfs), "/db", options, &[]);
    let there = db.map(|db| contents(&db).len());
    assert_eq!(there.ok(), Some(2), "the source opens with all that it had");
}

/// What may have happened to a file.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Removed,
    Emptied,
    CutShort,
    Zeros,
    Noise,
    FlippedBit,
}

fn harm(vfs: &MemVfs, path: &Path, harm: Harm, random: &mut Random) {
    let length = vfs.contents(path).unwrap().len() as u64;
    let file = vfs.open(path, OpenOptions::WRITE).unwrap();
    let at = random.below(length.min(64));
    match harm {
        Harm::Removed => vfs.remove(path).unwrap(),
        Harm::Emptied => file.truncate(0).unwrap(),
        Harm::CutShort => file.truncate(at).unwrap(),
        Harm::Zeros => file.write_at(&vec![0; length as usize], 0, IoClass::Client).unwrap(),
        Harm::Noise => {
            let noise: Vec<u8> = (0..length).map(|_| random.next().to_le_bytes()[3]).collect();
            file.write_at(&noise, 0, IoClass::Client).unwrap();
        }
        Harm::FlippedBit if length > 0 => {
            let byte = vfs.contents(path).unwrap()[at as usize] ^ 1 << random.below(8);
            file.write_at(&[byte], at, IoClass::Client).unwrap();
        }
        Harm::FlippedBit => {}
    }
}

/// Whatever is damaged: destroy, then create, ends well.
#[test]
fn a_damaged_database_goes_as_a_whole_one() {
    const HARMS: [Harm; 6] =
        [Harm::Removed, Harm::Emptied, Harm::CutShort, Harm::Zeros, Harm::Noise, Harm::FlippedBit];
    let (whole, _) = golden();
    let files = names(&whole, "/db");
    let mut random = Random::new(39);
    let gone_after = |vfs: &MemVfs, what: &str| {
        let report = destroy_with(vfs, "/db", &tiny());
        let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(report.directory_removed && gone(vfs, "/db"), "{what}: {report:?}");
        store(&as_vfs(vfs), "/db", &tiny());
    };
    for how in HARMS {
        for name in &files {
            let vfs = whole.crash_image(CrashChoice::Everything);
            harm(&vfs, &Path::new("/db").join(name), how, &mut random);
            gone_after(&vfs, &format!("{name} {how:?}"));
        }
        // And everything at once: that was a database, if nothing else is there.
        let vfs = whole.crash_image(CrashChoice::Everything);
        for name in &files {
            harm(&vfs, &Path::new("/db").join(name), how, &mut random);
        }
        let text = format!("everything {how:?}");
        if matches!(how, Harm::Removed) {
            assert!(destroy_with(&vfs, "/db", &tiny()).unwrap().directory_removed, "{text}");
        } else {
            gone_after(&vfs, &text);
        }
    }
}

#[test]
fn what_a_repair_kept_goes_too() {
    let (vfs, _) = golden();
    for path in crate::faults::repair::whole::files(&vfs, ".sat") {
        let file = vfs.open(&path, OpenOptions::WRITE).unwrap();
        file.write_at(&[0xAA; 300], 4200, IoClass::Client).unwrap();
    }
    repair_with(as_vfs(&vfs), "/db", &tiny()).unwrap();
    assert!(!names(&vfs, "/db/lost").is_empty());
    let report = destroy_with(&vfs, "/db", &tiny()).unwrap();
    assert!(report.directory_removed && report.left.is_empty(), "{report:?}");
    assert!(gone(&vfs, "/db"));
}

#[test]
fn what_is_no_database_is_not_touched() {
    let foreign: &[&[(&str, &str)]] = &[
        &[("CURRENT", "MANIFEST-000005\n"), ("IDENTITY", "a"), ("000004.sst", "b"), ("LOCK", "")],
        &[("CURRENT", "MANIFEST-000005\n"), ("000004.ldb", "b"), ("LOCK", "")],
        &[("MANIFEST-000005", "\x01\x02"), ("000004.ldb", "b")],
    ];
    for files in foreign {
        let vfs = MemVfs::new();
        vfs.create_dir_all(Path::new("/db")).unwrap();
        files
            .iter()
            .for_each(|(name, text)| put_file(&vfs, &format!("/db/{name}"), text.as_bytes()));
        let refused = destroy_with(&vfs, "/db", &tiny()).unwrap_err();
        assert!(refused.to_string().contains("DB database"), "{refused}");
        assert_eq!(names(&vfs, "/db").len(), files.len());
    }
    let others: &[&[(&str, &str)]] = &[
        &[("notes.txt", "mine"), ("LOCK", "")],
        &[("000001.wal", "mine"), ("OPTIONS", "of mine")],
        &[("000001.wal", ""), ("wal.txt", "")],
    ];
    for files in others {
        let vfs = MemVfs::new();
        vfs.create_dir_all(Path::new("/db")).unwrap();
        files
            .iter()
            .for_each(|(name, text)| put_file(&vfs, &format!("/db/{name}"), text.as_bytes()));
        let report = destroy_with(&vfs, "/db", &tiny()).unwrap();
        assert!(report.removed.is_empty() && !report.directory_removed, "{report:?}");
        assert_eq!(report.left.len(), files.len());
        assert_eq!(names(&vfs, "/db").len(), files.len());
    }
    let vfs = MemVfs::new();
    assert_eq!(destroy_with(&vfs, "/none", &tiny()).unwrap(), DestroyReport::default());
    vfs.create_dir_all(Path::new("/empty")).unwrap();
    assert!(destroy_with(&vfs, "/empty", &tiny()).unwrap().directory_removed);
}

/// Each call of the file system fails once: that is the error, and a second call ends it.
#[test]
fn an_error_ends_it_and_a_second_call_finishes() {
    use VfsOperation::{Len, List, Lock, Open, Read, Remove, RemoveDir, SyncDir};
    let whole = MemVfs::new();
    store(&as_vfs(&whole), "/db", &with_logs("/logs"));
    put_file(&whole, "/logs/notes.txt", b"mine");
    let mut failed = 0;
    for operation in [Open, Read, Len, List, Lock, Remove, RemoveDir, SyncDir] {
        for nth in 1.. {
            let vfs = whole.crash_image(CrashChoice::Everything);
            let faulty = FaultVfs::new(as_vfs(&vfs));
            let rule = faulty.add(FaultRule::new(Fault::Io).on(operation).nth(nth));
            let done = destroy_with(&faulty, "/db", &tiny());
            if faulty.happened(rule) == 0 {
                break;
            }
            failed += 1;
            // What cannot be synced above the directory is not ours to sync.
            let above = operation == SyncDir && done.is_ok();
            assert!(
                matches!(done, Err(Error::Io { .. })) || above,
                "{operation:?} {nth}: {done:?}"
            );
            faulty.clear();
            destroy_with(&faulty, "/db", &tiny()).unwrap();
            assert!(gone(&vfs, "/db"), "{operation:?} {nth}");
            assert_eq!(names(&vfs, "/logs"), ["notes.txt"], "{operation:?} {nth}");
        }
    }
    assert!(failed > 30, "{failed} calls failed");
}

/// A directory whose files may not be read keeps them all.
#[test]
fn what_may_not_be_read_stays() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: root may read everything");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("db");
    Db::open(&path, tiny()).unwrap().close().unwrap();
    let manifest = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let manifest = manifest.into_iter().find(|path| path.to_str().unwrap().contains("MANIFEST"));
    let manifest = manifest.unwrap();
    fs::set_permissions(&manifest, fs::Permissions::from_mode(0o000)).unwrap();
    let refused = destroy(&path, &tiny()).unwrap_err();
    assert!(refused.to_string().contains("Permission denied"), "{refused}");
    fs::set_permissions(&manifest, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(destroy(&path, &tiny()).unwrap().directory_removed);
}
