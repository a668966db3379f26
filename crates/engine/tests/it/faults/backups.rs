//! Backups on a disk that fails, that is full, or that returns other bytes than it was given:
//! damage is told by name, nothing is restored in part, and other backups are as they were.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen::vfs::{CrashChoice, Fault, FaultRule, FaultVfs, IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{BackupEngine, Db, DirectoryStore, Error, Options, RestoreOptions, Result};

use crate::support::common::{Contents, Random, as_vfs, contents, small, tiny};

const TARGET: &str = "/backups";
const RESTORED: &str = "/restored";

fn write(db: &Db, random: &mut Random, count: u64) {
    for _ in 0..count {
        let key = format!("key{:02}", random.below(80));
        db.put(key, vec![random.next() as u8; 40 + random.below(150) as usize]).unwrap();
    }
}

fn open(vfs: Arc<dyn Vfs>) -> Result<BackupEngine> {
    BackupEngine::open_with(Arc::new(DirectoryStore::new(vfs, TARGET)))
}

/// Backups of a database, with what each has.
struct World {
    db: Db,
    random: Random,
    target: MemVfs,
    expected: BTreeMap<u64, Contents>,
}

impl World {
    fn new(options: Options, count: usize) -> World {
        let db = Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).unwrap();
        let (target, random) = (MemVfs::new(), Random::new(11));
        let mut world = World { db, random, target, expected: BTreeMap::new() };
        for _ in 0..count {
            write(&world.db, &mut world.random, 80);
            world.db.flush_all().unwrap();
            write(&world.db, &mut world.random, 10);
            let mut engine = open(as_vfs(&world.target)).unwrap();
            let id = engine.create(&world.db).unwrap().id;
            world.expected.insert(id, contents(&world.db));
        }
        world
    }

    /// Those backups are there, as they were, and nothing else.
    fn assert_whole(&self, what: &str) {
        let engine = open(as_vfs(&self.target)).unwrap();
        let ids: Vec<u64> = engine.list().unwrap().iter().map(|backup| backup.id).collect();
        assert_eq!(ids, self.expected.keys().copied().collect::<Vec<_>>(), "{what}");
        for id in ids {
            assert!(engine.verify(id).unwrap().is_sound(), "{what}: {id}");
        }
    }

    /// All files of the place, and whether each belongs to backups.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![Path::new(TARGET).join("FORMAT")];
        for folder in ["backups", "private", "shared"] {
            let folder = Path::new(TARGET).join(folder);
            let names = self.target.list(&folder).unwrap();
            files.extend(names.iter().map(|name| folder.join(name.file_name().unwrap())));
        }
        files
    }
}

fn restore(engine: &BackupEngine, id: u64, options: &Options) -> Result<Contents> {
    let memory = MemVfs::new();
    let restored = engine.restore_with(as_vfs(&memory), id, RESTORED, &RestoreOptions::default());
    if let Err(error) = restored {
        let left = memory.exists(Path::new(RESTORED)).unwrap();
        assert!(!left, "something is left of a restore that failed: {error}");
        return Err(error);
    }
    let db = Db::open_with(as_vfs(&memory), RESTORED, options.clone(), &[]).unwrap();
    Ok(contents(&db))
}

/// The ways to damage a file.
fn damages(bytes: &[u8]) -> Vec<(String, Option<Vec<u8>>)> {
    let mut damages: Vec<(String, Option<Vec<u8>>)> = vec![("removed".into(), None)];
    let places = [0, 9, bytes.len() / 3, bytes.len() / 2, bytes.len().saturating_sub(1)];
    for at in places.into_iter().filter(|at| *at < bytes.len()).collect::<BTreeSet<_>>() {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 0x10;
        damages.push((format!("bit of byte {at}"), Some(flipped)));
        damages.push((format!("cut at {at}"), Some(bytes[..at].to_vec())));
    }
    damages.push(("longer".into(), Some([bytes, b"more"].concat())));
    let mut zeros = bytes.to_vec();
    zeros.fill(0);
    if zeros != bytes {
        damages.push(("zeros".into(), Some(zeros)));
    }
    damages
}

fn put(vfs: &MemVfs, path: &Path, bytes: Option<&[u8]>) {
    if vfs.exists(path).unwrap() {
        vfs.remove(path).unwrap();
    }
    if let Some(bytes) = bytes {
        let file = vfs.open(path, OpenOptions::CREATE).unwrap();
        file.write_at(bytes, 0, IoClass::Client).unwrap();
    }
}

/// Each kind of file, with values that were left in WALs or are in value files as well.
#[test]
fn damage_is_told_by_name_and_nothing_is_restored_in_part() {
    let mut apart = tiny();
    apart.column_family.value_separation_bytes = 100;
    for options in [tiny(), small("triad", 2 << 10), apart] {
        let mut world = World::new(options.clone(), 3);
        let files = world.files();
        let kinds: BTreeSet<_> = files.iter().filter_map(|path| path.extension()).collect();
        assert!(kinds.len() >= 4, "{kinds:?}");
        for path in &files {
            let whole = world.target.contents(path).unwrap();
            for (how, bytes) in damages(&whole) {
                let what = format!("{}: {how}", path.display());
                // An open removes the objects of a record that is gone.
                let before = world.target.crash_image(CrashChoice::Everything);
                put(&world.target, path, bytes.as_deref());
                look(&world, path, &options, &what);
                world.target = before;
            }
        }
        world.assert_whole("after all");
    }
}

fn look(world: &World, path: &Path, options: &Options, what: &str) {
    let store = || Arc::new(DirectoryStore::new(as_vfs(&world.target), TARGET));
    let is_format = path.ends_with("FORMAT");
    let is_record = path.parent().unwrap().ends_with("backups/backups");
    let is_gone = !world.target.exists(path).unwrap();
    match open(as_vfs(&world.target)) {
        Ok(engine) => assert!(!is_format || is_gone, "{what}: {engine:?}"),
        Err(error) => {
            assert!(is_format, "{what}: {error}");
            assert!(error.to_string().contains("FORMAT"), "{what}: {error}");
        }
    }
    let engine = BackupEngine::open_read_only_with(store()).unwrap();
    let mut damaged = 0;
    for (id, expected) in &world.expected {
        let restored = restore(&engine, *id, options);
        let verified = engine.verify(*id);
        match restored {
            Ok(contents) => {
                assert!(contents == *expected, "{what}: backup {id} is another one");
                assert!(verified.unwrap().is_sound(), "{what}: {id}");
            }
            Err(Error::NoSuchBackup(_)) => assert!(is_record && is_gone, "{what}"),
            Err(error) => {
                damaged += 1;
                assert!(!error.is_environment(), "{what}: {error}");
                let name = path.to_str().unwrap();
                assert!(error.to_string().contains(name), "{what}: {error}");
                let problems = verified.map_or_else(|error| vec![error], |report| report.problems);
                assert!(problems.iter().any(|error| error.to_string().contains(name)), "{what}");
            }
        }
    }
    assert_eq!(damaged > 0, !(is_format || is_record && is_gone), "{what}");
    let listed = engine.list().unwrap();
    let with_damage = listed.iter().filter(|backup| backup.damage.is_some()).count();
    assert_eq!(with_damage, usize::from(is_record && !is_gone), "{what}: {listed:?}");
    // A record that is gone is a deleted backup. The others are as they were.
    assert_eq!(listed.len(), world.expected.len() - usize::from(is_record && is_gone), "{what}");
}

/// While a record cannot be read, what backups share stays, whatever is deleted beside it.
#[test]
fn a_damaged_record_keeps_what_it_may_name() {
    let world = World::new(tiny(), 4);
    let record = Path::new(TARGET).join("backups/000002");
    let whole = world.target.contents(&record).unwrap();
    put(&world.target, &record, Some(&whole[..whole.len() - 1]));
    let mut engine = open(as_vfs(&world.target)).unwrap();
    engine.delete(1).unwrap();
    assert_eq!(engine.purge(3).unwrap(), [0_u64; 0], "it does not count");
    engine.create(&world.db).unwrap();
    drop(engine);
    put(&world.target, &record, Some(&whole));
    let mut engine = open(as_vfs(&world.target)).unwrap();
    assert!(engine.verify(2).unwrap().is_sound());
    assert!(restore(&engine, 2, &tiny()).unwrap() == world.expected[&2]);
    // A damaged one that is older than those that are kept goes.
    put(&world.target, &record, Some(&whole[1..]));
    assert_eq!(engine.purge(2).unwrap(), [2, 3]);
    assert!(engine.list().unwrap().iter().all(|backup| backup.damage.is_none()));
}

/// Each call fails once, or from then on. The operation says so, and afterwards it works.
fn every_call(fault: Fault, sticky: bool) {
    let options = tiny();
    let mut world = World::new(options.clone(), 2);
    for operation in ["create", "delete", "purge"] {
        let mut failed = 0;
        for n in 1.. {
            let before = world.target.crash_image(CrashChoice::Everything);
            let faulty = FaultVfs::new(as_vfs(&world.target));
            let mut engine = open(Arc::new(faulty.clone())).unwrap();
            let rule = FaultRule::new(fault);
            let rule = if sticky { rule.from_nth(n) } else { rule.nth(n) };
            let rule = faulty.add(rule);
            let what = format!("{operation} {n} {fault:?} {sticky}");
            let done = match operation {
                "create" => engine.create(&world.db).map(drop),
                "delete" => engine.delete(1),
                _ => engine.purge(1).map(drop),
            };
            let happened = faulty.happened(rule) > 0;
            faulty.clear();
            drop(engine);
            let breaches = world.target.breaches();
            assert!(breaches.is_empty() && faulty.breaches().is_empty(), "{what}: {breaches:?}");
            let engine = open(as_vfs(&world.target)).unwrap();
            for backup in engine.list().unwrap() {
                assert!(engine.verify(backup.id).unwrap().is_sound(), "{what}: {}", backup.id);
            }
            let has = |id| engine.list().unwrap().iter().any(|backup| backup.id == id);
            assert!(has(2), "{what}");
            assert!(operation != "create" || has(1), "{what}");
            drop(engine);
            if done.is_ok() {
                if happened {
                    // A hint that failed, such as writeback, or what is tried again at once.
                    world.target = before;
                    continue;
                }
                // Beyond the last call.
                world.target = before;
                break;
            }
            failed += 1;
            let error = done.unwrap_err();
            assert!(error.is_environment(), "{what}: {error}");
            world.target = before;
        }
        assert!(failed >= 3, "{operation}: {failed}");
    }
    world.assert_whole("after all");
}

#[test]
fn every_call_fails_once() {
    every_call(Fault::Io, false);
}

#[test]
fn every_call_fails_from_then_on() {
    every_call(Fault::NoSpace, true);
}

#[test]
fn every_read_of_a_restore_fails() {
    let world = World::new(tiny(), 1);
    let mut failed = 0;
    for n in 1.. {
        // Where it is read, and where it is written.
        let (from, to) = (FaultVfs::new(as_vfs(&world.target)), MemVfs::new());
        let into = FaultVfs::new(as_vfs(&to));
        let store = DirectoryStore::new(Arc::new(from.clone()), TARGET);
        let engine = BackupEngine::open_read_only_with(Arc::new(store)).unwrap();
        let rules = [&from, &into].map(|vfs| vfs.add(FaultRule::new(Fault::Io).nth(n)));
        let vfs: Arc<dyn Vfs> = Arc::new(into.clone());
        let restored = engine.restore_with(vfs, 1, RESTORED, &RestoreOptions::default());
        let happened = from.happened(rules[0]) + into.happened(rules[1]);
        match restored {
            Ok(()) => {
                let db = Db::open_with(as_vfs(&to), RESTORED, tiny(), &[]).unwrap();
                assert!(contents(&db) == world.expected[&1], "{n}");
                if happened == 0 {
                    break;
                }
            }
            Err(error) => {
                failed += 1;
                assert!(error.is_environment(), "{n}: {error}");
                let options = Options { create_if_missing: false, ..tiny() };
                // If CURRENT was there already, it is whole. Otherwise it is no database.
                if let Ok(db) = Db::open_with(as_vfs(&to), RESTORED, options, &[]) {
                    assert!(contents(&db) == world.expected[&1], "{n}");
                }
            }
        }
    }
    assert!(failed > 20, "{failed}");
}

#[test]
fn a_full_disk_takes_nothing_from_earlier_backups() {
    let mut world = World::new(tiny(), 2);
    write(&world.db, &mut world.random, 300);
    world.db.flush_all().unwrap();
    let used = world.target.used_bytes();
    let mut refused = 0;
    for pages in 0.. {
        world.target.set_capacity(Some(used + pages * 4096));
        let mut engine = open(as_vfs(&world.target)).unwrap();
        let made = engine.create(&world.db);
        drop(engine);
        match made {
            Ok(_) => break,
            Err(error) => {
                assert!(error.is_no_space(), "{pages}: {error}");
                assert_eq!(world.target.used_bytes(), used, "{pages}: all is given back");
                world.assert_whole("on a full disk");
                refused += 1;
            }
        }
    }
    assert!(refused > 5, "{refused}");
    world.target.set_capacity(None);
    world.expected.insert(3, contents(&world.db));
    world.assert_whole("with room again");
    // A restore that does not fit leaves nothing.
    let disk = MemVfs::new();
    disk.set_capacity(Some(5 * 4096));
    let engine = open(as_vfs(&world.target)).unwrap();
    let error = engine.restore_with(as_vfs(&disk), 3, RESTORED, &RestoreOptions::default());
    assert!(error.unwrap_err().is_no_space());
    assert!(!disk.exists(Path::new(RESTORED)).unwrap());
}

/// What was damaged in the database does not become a backup.
#[test]
fn a_damaged_database_is_not_backed_up() {
    let disk = MemVfs::new();
    let mut options = tiny();
    options.column_family.disable_auto_compactions = true;
    let db = Db::open_with(as_vfs(&disk), "/db", options.clone(), &[]).unwrap();
    write(&db, &mut Random::new(3), 20);
    db.flush_all().unwrap();
    let target = as_vfs(&MemVfs::new());
    let mut engine = open(target).unwrap();
    engine.create(&db).unwrap();
    write(&db, &mut Random::new(4), 20);
    db.flush_all().unwrap();
    let path = db.live_tables().iter().map(|table| table.file.clone()).max().unwrap();
    let bytes = disk.contents(&path).unwrap();
    for at in [5000, 4096] {
        let damaged = disk.open(&path, OpenOptions::WRITE).unwrap();
        damaged.write_at(&[bytes[at] ^ 1], at as u64, IoClass::Client).unwrap();
        let error = engine.create(&db).unwrap_err();
        assert!(error.is_corruption() && error.to_string().contains(path.to_str().unwrap()));
        assert_eq!(engine.list().unwrap().len(), 1);
        damaged.write_at(&bytes[at..=at], at as u64, IoClass::Client).unwrap();
    }
    engine.create(&db).unwrap();
}

/// The id of a backup that is deleted is not given again, whichever call fails meanwhile and
/// whatever a power loss leaves.
#[test]
fn no_id_is_given_twice_after_a_failure_or_a_power_loss() {
    let start = World::new(tiny(), 2);
    for (operation, sticky) in
        [("delete", false), ("delete", true), ("purge", false), ("purge", true)]
    {
        let mut failed = 0;
        for n in 1.. {
            let target = start.target.crash_image(CrashChoice::Everything);
            let faulty = FaultVfs::new(as_vfs(&target));
            let mut engine = open(Arc::new(faulty.clone())).unwrap();
            let rule = FaultRule::new(Fault::Io);
            let rule = faulty.add(if sticky { rule.from_nth(n) } else { rule.nth(n) });
            let done = match operation {
                "delete" => engine.delete(2),
                _ => engine.purge(0).map(drop),
            };
            let happened = faulty.happened(rule) > 0;
            faulty.clear();
            drop(engine);
            let seeds = (0..4).map(CrashChoice::Subset);
            for left in [CrashChoice::SyncedOnly, CrashChoice::Everything].into_iter().chain(seeds)
            {
                let what = format!("{operation} {n} {sticky} {left:?}");
                let mut engine = open(as_vfs(&target.crash_image(left))).unwrap();
                let whole = |id| engine.verify(id).unwrap().is_sound();
                let listed = engine.list().unwrap();
                assert!(listed.iter().all(|backup| whole(backup.id)), "{what}");
                assert_eq!(engine.create(&start.db).unwrap().id, 3, "{what}");
            }
            if !happened {
                done.unwrap();
                break;
            }
            failed += u64::from(done.is_err());
        }
        assert!(failed > 4, "{operation}: {failed}");
    }
}
