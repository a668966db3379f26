//! Power failures: at every operation that changed the file system, in every way that what was not
//! synced may have survived, the database opens and is a prefix of the commit order no shorter than
//! what was promised.

mod examine;
mod work;

use std::collections::BTreeSet;
use std::path::Path;

use sateen::vfs::{CrashChoice, MemVfs, Vfs};
use sateen::{
    ColumnFamilyOptions, CompactionStyle, Db, Options, Preemption, Regions, WalMode, WriteBatch,
    WriteOptions,
};

use crate::features::paths::two;
use crate::support::common::{Random, appending, as_vfs, assert_sound, deciding, small, tiny};
use examine::{Sweep, again};
use work::{KINDS, Run, workload};

fn scale() -> usize {
    std::env::var("SATEEN_CRASH_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn crash(seed: u64, options: &Options) {
    crash_and_open(seed, options, options);
}

/// What ran with some options is opened with others after the crash.
fn crash_and_open(seed: u64, options: &Options, afterwards: &Options) {
    let mut run = Run { options: afterwards.clone(), ..workload(seed, options, 120) };
    run.options.column_family.merge_operator = Some(appending());
    if let Some(at) = std::env::var("SATEEN_CRASH_AT").ok().and_then(|text| text.parse().ok()) {
        for choice in run.recording.choices_at(at, 4) {
            println!("{at}: {:?}", run.recording.describe(at));
            let (image, what) = (run.recording.image_at(at, choice), format!("{at} {choice:?}"));
            again(&run, &image, at, &what);
            run.examine(&image, image.fingerprint(), at, &what);
        }
        return;
    }
    // The suite looks at all choices; here a quarter of them has to do.
    let one_in = (4 / scale()).max(1);
    let stride = (4 * 61 / scale().max(4)).max(1);
    let sweep = Sweep { threads: 2, stride, offset: seed as usize % stride, one_in, nested: 199 };
    let (images, doubles) = sweep.go(&run, seed);
    println!(
        "seed {seed}: {images} images, {doubles} of a second crash, of {} operations",
        run.recording.len()
    );
    assert!(images > 25 && doubles > 0, "the sweep looked at something");
}

/// The profile, how the log is written and what else there is to choose, by the number of the case.
fn chosen(case: u64) -> (Options, Options) {
    let random = &mut Random::new(case.wrapping_mul(7919));
    let profiles = Options::profiles();
    // One beyond the profiles: regions.
    let at = case as usize % (profiles.len() + 1);
    let name = profiles.get(at).copied().unwrap_or("sateen");
    let mut options = small(name, 2 << 10 << random.below(2));
    options.slice_bytes_max = 4 << 10;
    options.wal = match random.below(10) {
        0 | 1 => WalMode::SyncEachWrite,
        2 => WalMode::SyncInterval(std::time::Duration::from_nanos(1)),
        3 => WalMode::Off,
        _ => WalMode::Buffered,
    };
    options.manifest_bytes_max = [1, 1 << 10, 4 << 10][random.below(3) as usize];
    options.max_total_wal_bytes = [0, 0, 4 << 10][random.below(3) as usize];
    let family = &mut options.column_family;
    if random.one_in(2) {
        // Several levels, of little.
        family.level_base_bytes = 2 << 10;
        family.level_multiplier = 2.0;
        family.table_bytes = 1 << 10;
        family.level0_trigger = 2;
    }
    if random.one_in(3) {
        apart(family);
        family.value_garbage_collection = random.one_in(2);
        family.compaction_files = !random.one_in(4);
    }
    // Few slots, so that what is deep is in the way of what is not.
    options.max_background_compactions = 1 + random.below(2) as u32;
    if options.preemption != Preemption::Off {
        options.preempt_discard = random.one_in(2);
    }
    if at == profiles.len() {
        options.column_family.regions = Regions::at(["key030", "key060", "key090"]).unwrap();
        // Without a log regions are at one commit only where they are flushed together.
        options.atomic_flush = options.wal == WalMode::Off;
    }
    if random.one_in(3) {
        options.atomic_flush = true;
        if random.one_in(2) {
            options.wal = WalMode::Off;
        }
    }
    let mut afterwards = options.clone();
    if at < profiles.len() && options.wal != WalMode::Off && random.one_in(6) {
        let other = profiles[random.below(profiles.len() as u64) as usize];
        let wal = options.wal;
        // What has guards is compacted by hand before others open it.
        if name != "pebblesdb" {
            let atomic_flush = options.atomic_flush;
            afterwards = Options { wal, atomic_flush, ..small(other, 4 << 10) };
        }
    }
    (options, afterwards)
}

/// The profile and everything else by the number of the case; see `rel.rs`.
#[test]
#[ignore = "run by cargo xtask rel crash"]
fn rel() {
    let suite = crate::support::rel::Suite::new("crash", "images").requires(KINDS);
    suite.run(crate::support::rel::processors(), |suite, case| {
        let (options, afterwards) = chosen(case);
        let run = workload(case, &options, 100);
        for (kind, count) in &run.tally {
            suite.count(kind, *count);
        }
        let mut run = Run { options: afterwards, ..run };
        run.options.column_family.merge_operator = Some(appending());
        // Rather more workloads than more images of one: some kinds are rare.
        let stride = (run.recording.len() / 12).max(1);
        let offset = (case.wrapping_mul(0x9E37) % stride as u64) as usize;
        let (images, doubles) =
            Sweep { threads: 1, stride, offset, one_in: 1, nested: 1103 }.go(&run, case);
        suite.count("images", images as u64);
        suite.count("double-crash images", doubles as u64);
    });
}

/// A workload that does not do something does not test it.
#[test]
fn workloads_do_everything() {
    let mut tally = work::Tally::new();
    for case in 1..=64 {
        for (kind, count) in workload(case, &chosen(case).0, 100).tally {
            *tally.entry(kind).or_default() += count;
        }
    }
    println!("{tally:?}");
    let missing = KINDS.iter().find(|kind| tally.get(*kind).is_none_or(|count| *count == 0));
    assert_eq!(missing, None, "of {tally:?}");
}

#[test]
fn buffered_log() {
    crash(1, &tiny());
}

#[test]
fn synced_log() {
    crash(2, &Options { wal: WalMode::SyncEachWrite, ..tiny() });
}

/// The edit of a flush that nobody asked for waits for another's barrier. At rest it is durable, or
/// the log is there still.
#[test]
fn a_log_is_there_until_the_flush_is_durable() {
    let vfs = MemVfs::new();
    let options = Options { wal: WalMode::SyncEachWrite, ..tiny() };
    let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    for key in 0..400_u32 {
        db.put(format!("key{key:04}"), vec![b'v'; 200]).unwrap();
        if key % 10 == 9 {
            db.wait_idle().unwrap();
            vfs.sync_dir(Path::new("/db")).unwrap();
            let image = vfs.crash_image(CrashChoice::SyncedOnly);
            let left = Db::open_with(as_vfs(&image), "/db", options.clone(), &[]).unwrap();
            for key in 0..=key {
                let found = left.get(format!("key{key:04}")).unwrap();
                assert!(found.is_some(), "a synced write is lost: {key}");
            }
        }
    }
    assert!(!db.live_tables().is_empty());
}

/// Without a log all families are at one commit after a crash if they are flushed together, also
/// their regions, families that are made and dropped meanwhile, and several memtables that wait.
#[test]
fn atomic_flush_without_a_log() {
    let base = Options { wal: WalMode::Off, atomic_flush: true, ..tiny() };
    for seed in [61, 62] {
        let mut options = base.clone();
        let family = &mut options.column_family;
        family.memtable_bytes = 1 << 10;
        if seed == 61 {
            (family.memtables_max, family.memtables_to_flush_min) = (5, 3);
            options.slice_bytes_max = 4 << 10;
        } else {
            family.regions = Regions::at(["key030", "key090"]).unwrap();
            options.manifest_bytes_max = 1;
        }
        crash(seed, &options);
    }
}

/// With a log the families are flushed together and recovered from it.
#[test]
fn atomic_flush_with_a_log() {
    for (seed, mut options) in [(63, tiny()), (64, small("triad", 4 << 10))] {
        options.atomic_flush = true;
        crash(seed, &options);
    }
}

/// Larger values are apart, in many small files, and garbage is collected early.
fn apart(family: &mut ColumnFamilyOptions) {
    family.value_separation_bytes = 30;
    family.value_file_bytes = 2 << 10;
    family.value_garbage_collection = true;
    family.value_garbage_age_cutoff = 0.7;
    family.value_garbage_force_threshold = 0.3;
}

#[test]
fn values_apart() {
    let mut own_files = tiny();
    own_files.column_family.compaction_files = false;
    for (seed, mut options) in [(70, tiny()), (71, small("triad", 4 << 10)), (72, own_files)] {
        apart(&mut options.column_family);
        crash(seed, &options);
    }
}

/// What is apart before the crash is written into tables afterwards, and the other way round.
#[test]
fn values_apart_before_or_after_the_crash() {
    let mut options = tiny();
    apart(&mut options.column_family);
    crash_and_open(73, &options, &tiny());
    crash_and_open(74, &tiny(), &options);
}

/// Tables are in two directories, of which each is synced for itself.
#[test]
fn tables_in_several_directories() {
    for (seed, base) in [(80, tiny()), (81, small("bolt-rocksdb", 4 << 10))] {
        let mut options = two(base);
        if seed == 80 {
            apart(&mut options.column_family);
        }
        crash(seed, &options);
    }
}

/// Directories are added after the crash.
#[test]
fn tables_in_other_directories_after_the_crash() {
    crash_and_open(82, &tiny(), &two(tiny()));
}

#[test]
fn flush_heavy() {
    let mut options = tiny();
    options.column_family.memtable_bytes = 1 << 10;
    options.column_family.memtables_max = 4;
    crash(3, &options);
}

#[test]
fn manifest_roll_at_every_edit() {
    crash(4, &Options { manifest_bytes_max: 1, ..tiny() });
}

#[test]
fn profiles() {
    let profiles = [
        "leveldb",
        "bolt",
        "vlsm",
        "silk",
        "pebblesdb",
        "triad",
        "bolt-rocksdb",
        "adoc",
        "rocksdb-universal",
    ];
    for (seed, profile) in (6..).zip(profiles) {
        println!("{profile}");
        crash(seed, &small(profile, 4 << 10));
    }
}

#[test]
fn tiered_with_trivial_moves() {
    let mut options = small("rocksdb-universal", 4 << 10);
    let family = &mut options.column_family;
    family.tiered_trivial_move = true;
    family.tiered_size_amplification_max = 50;
    family.level0_trigger = 2;
    crash(60, &options);
}

#[test]
fn fifo_without_a_limit() {
    let mut options = small("rocksdb", 4 << 10);
    let family = &mut options.column_family;
    family.compaction_style = CompactionStyle::Fifo;
    family.fifo_bytes_max = u64::MAX;
    family.fifo_compaction = true;
    crash(61, &options);
}

#[test]
fn another_profile_after_the_crash() {
    let pairs = [
        ("bolt", "vlsm"),
        ("vlsm", "silk"),
        ("silk", "bolt-rocksdb"),
        ("silk", "pebblesdb"),
        ("triad", "sateen"),
        ("sateen", "vlsm"),
        ("leveldb", "sateen"),
        ("rocksdb-universal", "sateen"),
        ("sateen", "rocksdb-universal"),
    ];
    for (seed, (before, after)) in (40..).zip(pairs) {
        println!("{before}, then {after}");
        crash_and_open(seed, &small(before, 4 << 10), &small(after, 4 << 10));
    }
}

#[test]
fn compaction_filters() {
    for (seed, mut options) in [(20, tiny()), (21, small("triad-silk", 4 << 10))] {
        options.column_family.compaction_filter = Some(deciding());
        options.column_family.ttl = Some(std::time::Duration::from_secs(3600));
        crash(seed, &options);
    }
}

/// Logs that are kept for readers have what survived, whatever else became of it.
#[test]
fn kept_logs() {
    for (seed, mut options) in [(30, tiny()), (32, small("triad", 4 << 10))] {
        options.wal_ttl_seconds = 1_000_000;
        if seed == 30 {
            options.column_family.memtable_bytes = 1 << 10;
            options.manifest_bytes_max = 1;
        }
        crash(seed, &options);
    }
}

#[test]
fn wal_bound() {
    crash(5, &Options { max_total_wal_bytes: 8 << 10, ..tiny() });
}

/// What a recovery stores while it still replays counts as stored as far as it was replayed, and no
/// further.
#[test]
fn a_recovery_that_flushes_on_its_way() {
    let mut options = tiny();
    options.column_family.memtable_bytes = 1 << 20;
    let mut afterwards = tiny();
    afterwards.column_family.memtable_bytes = 1 << 10;
    afterwards.column_family.merge_operator = Some(appending());
    for seed in 20..24 {
        let run = Run { options: afterwards.clone(), ..workload(seed, &options, 60) };
        let end = run.recording.len();
        let image = run.recording.image_at(end, CrashChoice::Everything);
        assert!(again(&run, &image, end, &format!("seed {seed}")) > 50);
    }
}

/// What is read from a log whose sync has failed need not be on the disk, whatever later syncs say:
/// a recovery stores it in all column families at once, or a power failure could take it from some.
#[test]
fn a_recovery_from_what_was_never_on_the_disk() {
    for memtable_bytes in [2 << 10, 1 << 20] {
        let mut options = Options { create_missing_column_families: true, ..tiny() };
        options.column_family.memtable_bytes = 1 << 20;
        let vfs = MemVfs::new();
        let family = options.column_family.clone();
        let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[("other", family)]).unwrap();
        let other = db.column_family("other").unwrap();
        for nth in 0..40 {
            let mut batch = WriteBatch::new();
            let key = format!("key{nth:03}");
            batch.put(&key, [7; 100]).unwrap();
            batch.to(&other).put(&key, [8; 100]).unwrap();
            db.write(&batch, &WriteOptions::default()).unwrap();
        }
        let listing = vfs.list(Path::new("/db")).unwrap();
        let log = listing.iter().find(|name| name.extension().is_some_and(|end| end == "wal"));
        vfs.fail_next_sync(&Path::new("/db").join(log.unwrap())).unwrap();
        db.sync_wal().unwrap_err();
        drop((other, db));

        options.column_family.memtable_bytes = memtable_bytes;
        let open = |vfs: &MemVfs| {
            let family = options.column_family.clone();
            Db::open_with(as_vfs(vfs), "/db", options.clone(), &[("other", family)]).unwrap()
        };
        let recording = vfs.record();
        drop(open(&vfs));
        let mut shown = BTreeSet::new();
        for at in 0..=recording.len() {
            for choice in [CrashChoice::SyncedOnly, CrashChoice::Everything] {
                let db = open(&recording.image_at(at, choice));
                let other = db.column_family("other").unwrap();
                let there = |key: &String| {
                    let of_other = other.get(key).unwrap();
                    assert_eq!(
                        db.get(key).unwrap().is_some(),
                        of_other.is_some(),
                        "{at} {choice:?}: {key}"
                    );
                    of_other.is_some()
                };
                shown.insert((0..40).map(|nth| format!("key{nth:03}")).filter(there).count());
            }
        }
        assert!(shown.contains(&0) && shown.contains(&40), "{shown:?}");
    }
}

/// A clone is durable when the checkpoint is, not when the file system gets to it.
#[test]
fn a_checkpoint_of_clones_survives() {
    let vfs = MemVfs::new();
    vfs.set_clones_supported(true);
    let db = Db::open_with(as_vfs(&vfs), "/db", tiny(), &[]).unwrap();
    (0..100).for_each(|n| db.put(format!("key{n:03}"), [7; 100]).unwrap());
    db.flush().unwrap();
    db.checkpoint("/copy").unwrap();
    let image = vfs.crash_image(CrashChoice::SyncedOnly);
    let copy = Db::open_with(as_vfs(&image), "/copy", tiny(), &[]).unwrap();
    (0..100).for_each(|n| assert!(copy.get(format!("key{n:03}")).unwrap().is_some(), "{n}"));
    assert_sound(&copy);
}
