//! Power failures while backups are made, deleted, purged and restored: earlier backups are whole,
//! a backup is there as a whole or not at all, and a database is restored as a whole or not at all.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sateen::vfs::{CrashChoice, MemVfs, OpenOptions, Recording, Vfs};
use sateen::{
    BackupEngine, Db, DirectoryStore, Error, Options, RestoreOptions, check_with, repair_with,
};

use crate::support::common::{Contents, Random, as_vfs, assert_sound, contents, tiny};

const TARGET: &str = "/backups";
const RESTORED: &str = "/restored";

fn scale() -> usize {
    std::env::var("SATEEN_CRASH_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// A database, a place for its backups in another file system, and what each backup has.
struct World {
    source: Db,
    target: MemVfs,
    random: Random,
    expected: BTreeMap<u64, Contents>,
}

fn store(vfs: &MemVfs) -> Arc<DirectoryStore> {
    Arc::new(DirectoryStore::new(as_vfs(vfs), TARGET))
}

impl World {
    /// With an odd seed, half of the values are in value files.
    fn new(seed: u64) -> World {
        let mut options = tiny();
        options.column_family.value_separation_bytes = seed % 2 * 75;
        let source = Db::open_with(as_vfs(&MemVfs::new()), "/db", options, &[]).unwrap();
        let (target, random) = (MemVfs::new(), Random::new(seed));
        World { source, target, random, expected: BTreeMap::new() }
    }

    fn engine(&self) -> BackupEngine {
        BackupEngine::open_with(store(&self.target)).unwrap()
    }

    fn write(&mut self, count: u64) {
        for _ in 0..count {
            let key = format!("key{:02}", self.random.below(80));
            let value = vec![self.random.next() as u8; self.random.below(150) as usize];
            self.source.put(key, value).unwrap();
        }
    }

    fn create(&mut self, engine: &mut BackupEngine) -> u64 {
        let contents = contents(&self.source);
        let id = engine.create(&self.source).unwrap().id;
        self.expected.insert(id, contents);
        id
    }

    /// Backups of a database that changes.
    fn backups(&mut self, count: usize) {
        let mut engine = self.engine();
        for _ in 0..count {
            self.write(60);
            self.source.flush_all().unwrap();
            self.write(5);
            self.create(&mut engine);
        }
    }
}

/// Looks at some images of every moment of a recording.
fn sweep(recording: &Recording, stride: usize, mut look: impl FnMut(&MemVfs, bool, &str)) {
    let stride = (stride / scale()).max(1);
    let mut images = 0;
    for at in 0..=recording.len() {
        // The moments around changes of names are the ones that matter most.
        let all = at % stride == 0;
        for choice in recording.choices_at(at, 1) {
            let first = matches!(choice, CrashChoice::SyncedOnly | CrashChoice::Everything);
            if all || first {
                let what = format!("{at}: {choice:?}, {:?}", recording.describe(at));
                look(&recording.image_at(at, choice), at == recording.len(), &what);
                images += 1;
            }
        }
    }
    println!("{images} images of {} operations", recording.len());
    assert!(images >= 8);
}

/// What there is after a power failure: those of `certain`, and perhaps others of `expected`. All
/// of them are whole, and nothing else is left.
fn examine(
    image: &MemVfs,
    expected: &BTreeMap<u64, Contents>,
    certain: &dyn Fn(u64) -> bool,
    restores: bool,
    what: &str,
) {
    let mut engine = BackupEngine::open_with(store(image))
        .unwrap_or_else(|error| panic!("{what}: cannot be opened: {error}"));
    let there = engine.list().unwrap();
    for id in expected.keys().filter(|id| certain(**id)) {
        assert!(there.iter().any(|backup| backup.id == *id), "{what}: backup {id} is gone");
    }
    for backup in &there {
        assert!(backup.damage.is_none(), "{what}: {backup:?}");
        let report = engine.verify(backup.id).unwrap();
        assert!(report.is_sound(), "{what}: backup {}: {report:?}", backup.id);
        if restores {
            let memory = MemVfs::new();
            let options = RestoreOptions::default();
            engine.restore_with(Arc::new(memory.clone()), backup.id, RESTORED, &options).unwrap();
            let db = Db::open_with(as_vfs(&memory), RESTORED, tiny(), &[]).unwrap();
            assert!(contents(&db) == expected[&backup.id], "{what}: wrong contents");
        }
    }
    // Of objects there are only those of the backups.
    let Some(newest) = there.last() else { return };
    engine.purge(1).unwrap();
    let bytes = |folder: &str| {
        let folder = Path::new(TARGET).join(folder);
        let names = image.list(&folder).unwrap_or_default();
        let length = |name| image.open(&folder.join(name), OpenOptions::READ).unwrap().len();
        names.iter().map(|name| length(name.file_name().unwrap()).unwrap()).sum::<u64>()
    };
    assert_eq!(bytes("shared") + bytes("private"), newest.bytes, "{what}: something is left");
}

#[test]
fn a_backup_is_there_or_not() {
    let mut world = World::new(1);
    let recording = world.target.record();
    let mut engine = world.engine();
    let mut finished = Vec::new();
    for _ in 0..3 {
        world.write(60);
        world.source.flush_all().unwrap();
        let id = world.create(&mut engine);
        finished.push((id, recording.len()));
    }
    drop(engine);
    let mut n = 0_u64;
    let at = |what: &str| what.split(':').next().unwrap().parse::<usize>().unwrap();
    sweep(&recording, 7, |image, _, what| {
        n += 1;
        let moment = at(what);
        let certain =
            |id: u64| finished.iter().any(|(finished, end)| *finished == id && moment >= *end);
        examine(image, &world.expected, &certain, n.is_multiple_of(9), what);
    });
}

#[test]
fn what_is_not_deleted_stays() {
    let mut world = World::new(2);
    world.backups(4);
    let mut engine = world.engine();
    let recording = world.target.record();
    engine.delete(2).unwrap();
    drop(engine);
    sweep(&recording, 1, |image, _, what| {
        examine(image, &world.expected, &|id| id != 2, false, what);
    });
}

#[test]
fn what_is_not_purged_stays() {
    let mut world = World::new(3);
    world.backups(5);
    let mut engine = world.engine();
    let recording = world.target.record();
    assert_eq!(engine.purge(2).unwrap(), [1, 2, 3]);
    drop(engine);
    sweep(&recording, 3, |image, _, what| {
        examine(image, &world.expected, &|id| id > 3, false, what);
    });
}

/// The process is killed after it deleted a record; the power fails when the next one has removed
/// what that named.
#[test]
fn a_record_that_a_killed_process_deleted_does_not_return_without_its_objects() {
    let mut world = World::new(4);
    world.backups(2);
    let recording = world.target.record();
    drop(world.engine());
    world.target.remove(&Path::new(TARGET).join("backups/000001")).unwrap();
    drop(world.engine());
    sweep(&recording, 1, |image, _, what| {
        examine(image, &world.expected, &|id| id == 2, false, what);
    });
}

#[test]
fn a_database_is_restored_as_a_whole_or_not_at_all() {
    let mut world = World::new(5);
    world.backups(1);
    let engine = world.engine();
    for wal in [true, false] {
        let disk = MemVfs::new();
        let recording = disk.record();
        let options = RestoreOptions { wal, ..RestoreOptions::default() };
        engine.restore_with(as_vfs(&disk), 1, RESTORED, &options).unwrap();
        let whole = contents(&Db::open_with(as_vfs(&disk), RESTORED, tiny(), &[]).unwrap());
        if wal {
            assert!(whole == world.expected[&1]);
        }
        let len = recording.len();
        let mut refused = 0;
        sweep(&recording, 5, |image, last, what| {
            let options = Options { create_if_missing: false, ..tiny() };
            match Db::open_with(as_vfs(image), RESTORED, options, &[]) {
                Ok(db) => {
                    assert!(contents(&db) == whole, "{what}: restored in part");
                    assert_sound(&db);
                }
                Err(error) => {
                    refused += 1;
                    assert!(!last || len == 0, "{what}: {error}");
                    let is_refusal =
                        matches!(error, Error::IncompatibleDirectory { .. } | Error::Io { .. });
                    assert!(is_refusal, "{what}: {error}");
                    let checked = check_with(as_vfs(image), RESTORED, &tiny(), &[], &mut |_, _| {});
                    assert!(checked.is_err(), "{what}: taken for a damaged database");
                    let repaired = repair_with(as_vfs(image), RESTORED, &tiny());
                    assert!(repaired.is_err(), "{what}: repaired from a part of a backup");
                    // The same restore starts over.
                    let plain = RestoreOptions { wal, ..RestoreOptions::default() };
                    engine.restore_with(as_vfs(image), 1, RESTORED, &plain).unwrap();
                    let db = Db::open_with(as_vfs(image), RESTORED, tiny(), &[]).unwrap();
                    assert!(contents(&db) == whole, "{what}: after another restore");
                }
            }
        });
        assert!(refused > 10);
    }
}
