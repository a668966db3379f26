//! Space: what is given back to the file system is nothing that anybody can still reach, and what
//! nobody can reach is given back, whatever came between.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sateen::timeline::EventKind;
use sateen::vfs::{CrashChoice, Fault, FaultRule, FaultVfs, MemVfs, Vfs, VfsOperation};
use sateen::{Db, Options, ReadOptions};

use crate::support::common::{Random, as_vfs, assert_sound, read_all, small, tiny};
use crate::support::extents::{Extents, tables_of, wasted_bytes};

const DB: &str = "/db";
/// Long after this, on any machine, what is sparse has been written anew.
const PATIENCE: Duration = Duration::from_secs(60);

fn assert_unchanged(extents: &Extents, before: &MemVfs, after: &MemVfs, what: &str) {
    for (path, ranges) in extents {
        let was = before.contents(path).unwrap();
        let is = after.contents(path).unwrap_or_else(|_| panic!("{what}: {path:?} is gone"));
        for range in ranges {
            let (was, is) = (was.get(range.clone()), is.get(range.clone()));
            assert!(was.is_some() && was == is, "{what}: {path:?} {range:?}");
        }
    }
}

/// What somebody can reach from one operation of the file system to another.
struct Pin {
    from: usize,
    to: usize,
    tables: Extents,
}

/// Whatever is punched, cut off or removed in a run of `options`, it is nothing that the manifest
/// would have named had the power failed, nothing that the current version, an iterator or a
/// snapshot had, and nothing of a checkpoint. Returns how many times something was.
fn nothing_needed_goes(seed: u64, options: &Options) -> usize {
    let mut random = Random::new(seed);
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), DB, options.clone(), &[]).unwrap();
    let recording = vfs.record();
    let family = db.default_column_family();
    let mut pins: Vec<Pin> = Vec::new();
    let mut iterators = Vec::new();
    let mut checkpoints = Vec::new();
    for step in 0..2000 {
        for _ in 0..4 {
            let key = format!("key{:03}", random.below(300));
            if random.one_in(5) {
                db.delete(key).unwrap();
            } else {
                db.put(key, vec![b'a' + (random.below(26) as u8); 100]).unwrap();
            }
        }
        match random.below(16) {
            0 => {
                let iterator = family.cursor(&ReadOptions::default()).unwrap();
                let from = recording.len();
                iterators.push((iterator, pins.len()));
                pins.push(Pin { from, to: usize::MAX, tables: Extents::new() });
            }
            1 | 2 if !iterators.is_empty() => {
                let at = random.below(iterators.len() as u64) as usize;
                let (mut iterator, pin) = iterators.swap_remove(at);
                iterator.seek_to_first();
                while iterator.valid() {
                    iterator.next();
                }
                iterator.status().unwrap();
                pins[pin].to = recording.len();
            }
            3 if step % 100 < 10 => {
                let path = PathBuf::from(format!("/checkpoint{step}"));
                db.checkpoint(&path).unwrap();
                checkpoints.push((recording.len(), path));
            }
            4 => family.compact_range(None, None, &Default::default()).unwrap(),
            5..12 => {
                for _ in 0..random.below(10) {
                    db.step().unwrap();
                }
            }
            12 => db.wait_idle().unwrap(),
            _ => {}
        }
    }
    for (_, pin) in iterators {
        pins[pin].to = recording.len();
    }
    db.wait_idle().unwrap();
    db.close().unwrap();

    let mut taken = 0;
    for at in 0..recording.len() {
        for pin in pins.iter_mut().filter(|pin| pin.from == at) {
            let image = recording.image_at(at, CrashChoice::Everything);
            pin.tables = tables_of(&image, Path::new(DB));
        }
        let what = recording.describe(at).unwrap();
        let removes = what.starts_with("remove") && what.contains(".sat");
        if !(removes || what.starts_with("punch") || what.starts_with("truncate")) {
            continue;
        }
        taken += 1;
        let what = format!("seed {seed}, operation {at}, {what}");
        let durable = recording.image_at(at, CrashChoice::SyncedOnly);
        let before = recording.image_at(at, CrashChoice::Everything);
        let after = recording.image_at(at + 1, CrashChoice::Everything);
        assert_unchanged(&tables_of(&durable, Path::new(DB)), &before, &after, &what);
        assert_unchanged(&tables_of(&before, Path::new(DB)), &before, &after, &what);
        for pin in pins.iter().filter(|pin| pin.from <= at && at < pin.to) {
            assert_unchanged(&pin.tables, &before, &after, &format!("{what}, pinned"));
        }
        for (_, path) in checkpoints.iter().filter(|(from, _)| *from <= at) {
            assert_unchanged(&tables_of(&before, path), &before, &after, &what);
        }
    }
    taken
}

pub(crate) fn shapes() -> Vec<Options> {
    let changed = |change: fn(&mut Options)| {
        let mut options = tiny();
        options.column_family.table_bytes = 4 << 10;
        options.column_family.memtable_bytes = 16 << 10;
        options.column_family.level_base_bytes = 32 << 10;
        change(&mut options);
        options
    };
    vec![
        changed(|_| {}),
        changed(|options| {
            options.column_family.level0_stripe_bytes = 0;
            options.column_family.group_compaction_bytes = 0;
        }),
        changed(|options| {
            options.column_family.level0_stripe_bytes = 0;
            options.column_family.group_compaction_bytes = 16 << 10;
        }),
        changed(|options| {
            options.column_family.level0_stripe_bytes = 16 << 10;
            options.column_family.group_compaction_bytes = 0;
        }),
        changed(|options| {
            options.column_family.level0_trigger = 1;
            options.column_family.level0_fifo = true;
            options.column_family.overlap_aware_tables = true;
            options.column_family.base_level_multiplier = 8.0;
        }),
    ]
}

#[test]
fn what_is_taken_away_is_nothing_that_is_needed() {
    let mut taken = 0;
    let profiles = ["bolt", "bolt-rocksdb", "vlsm", "leveldb", "pebblesdb", "triad"]
        .map(|name| small(name, 16 << 10));
    for (seed, options) in (1..).zip(shapes().into_iter().chain(profiles)) {
        let here = nothing_needed_goes(seed, &options);
        println!("shape {seed}: something was taken away {here} times");
        assert!(here > 100);
        taken += here;
    }
    println!("{taken} times in all");
}

/// Stores these keys and has them compacted as far as they go.
pub(crate) fn store(db: &Db, keys: Range<u64>, value: &str) {
    let key = |number: u64| format!("key{number:05}");
    for number in keys.clone() {
        db.put(key(number), value.repeat(20)).unwrap();
    }
    let (first, last) = (key(keys.start), key(keys.end - 1));
    let (first, last) = (Some(first.as_bytes()), Some(last.as_bytes()));
    let family = db.default_column_family();
    family.compact_range(first, last, &Default::default()).unwrap();
    db.wait_idle().unwrap();
}

/// Half of so many keys, in pieces: what is between them stays where it is.
pub(crate) fn store_half(db: &Db, keys: u64) {
    let piece = keys / 10;
    (0..10).for_each(|at| store(db, at * piece..at * piece + piece / 2, "new"));
}

#[test]
fn what_was_dead_when_the_power_failed_is_given_back() {
    for (shape, options) in (1..).zip(shapes()) {
        let vfs = MemVfs::new();
        let db = Db::open_with(as_vfs(&vfs), DB, options.clone(), &[]).unwrap();
        let family = db.default_column_family();
        store(&db, 0..2000, "old");
        // Nothing is given back while it lives.
        let iterator = family.cursor(&ReadOptions::default()).unwrap();
        store_half(&db, 2000);
        let expected = read_all(&family, &ReadOptions::default());
        let image = vfs.crash_image(CrashChoice::Everything);
        assert!(
            wasted_bytes(&image, Path::new(DB)) > 100 << 10,
            "shape {shape}: nothing to give back"
        );
        drop(iterator);
        db.close().unwrap();
        assert_eq!(wasted_bytes(&vfs, Path::new(DB)), 0, "shape {shape}: after an orderly end");

        let db = Db::open_with(as_vfs(&image), DB, options.clone(), &[]).unwrap();
        db.wait_idle().unwrap();
        let family = db.default_column_family();
        assert_eq!(wasted_bytes(&image, Path::new(DB)), 0, "shape {shape}: after a power failure");
        assert!(db.table_files().iter().all(|file| file.dead_bytes == 0));
        assert_eq!(read_all(&family, &ReadOptions::default()), expected);
        assert_sound(&db);
        db.close().unwrap();
    }
}

#[test]
fn where_holes_cannot_be_files_with_much_that_is_dead_are_written_anew() {
    let mem = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(mem.clone()));
    faults.add(FaultRule::new(Fault::Unsupported).on(VfsOperation::PunchHole));
    let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
    let mut options = tiny();
    options.column_family.table_bytes = 8 << 10;
    options.column_family.memtable_bytes = 64 << 10;
    options.column_family.level_base_bytes = 128 << 10;
    let db = Db::open_with(vfs, DB, options, &[]).unwrap();
    let family = db.default_column_family();
    store(&db, 0..4000, "old");
    store_half(&db, 4000);
    let expected = read_all(&family, &ReadOptions::default());
    let space = || {
        let files = db.table_files();
        let live: u64 = files.iter().map(|file| file.live_bytes).sum();
        (live, files.iter().map(|file| file.dead_bytes).sum::<u64>())
    };
    let (live, before) = space();
    assert!(before > live / 10, "{before} of {live} dead: there is nothing to do");
    let end = Instant::now() + PATIENCE;
    while space().1 > space().0 / 10 {
        assert!(Instant::now() < end, "{:?} of live and dead are left", space());
        while db.step().unwrap() {}
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!db.metrics().table_files.punching);
    // What they take on disk, not what is said of it.
    let wasted = wasted_bytes(&mem, Path::new(DB));
    assert!(wasted * 100 <= space().0 * 15, "{wasted} wasted for {} live", space().0);
    let told = db.timeline().events.iter().filter(|e| e.kind == EventKind::CannotPunch).count();
    assert_eq!(told, 1);
    assert_eq!(read_all(&family, &ReadOptions::default()), expected);
    assert_sound(&db);
    db.close().unwrap();
}
