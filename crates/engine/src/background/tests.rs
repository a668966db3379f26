//! Compactions that are paused, told to end early or discarded after each of their steps. No entry
//! is lost or comes back, and slots, inputs and files are free again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use sateen_control::{IoClass, JobId, JobResult};
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::sync::lock;
use sateen_store::vfs::MemVfs;

use super::driver::Job;
use crate::options::WalMode;
use crate::timeline::EventKind;
use crate::tree::families::ColumnFamilyData;
use crate::{Db, Decision, Filtering, Options};

fn tiny() -> Options {
    let mut options = Options { background_threads: 0, ..Options::default() };
    options.slice_bytes_max = 4 << 10;
    let family = &mut options.column_family;
    family.memtable_bytes = 4 << 10;
    family.memtables_max = 3;
    family.level0_trigger = 2;
    family.level_base_bytes = 8 << 10;
    family.level_multiplier = 3.0;
    family.table_bytes = 2 << 10;
    family.block_bytes = 512;
    options
}

/// Does all background work. Every `every`-th step of a compaction is told to end early. Returns
/// how often that was.
fn work(db: &Db, every: usize, steps: &mut usize) -> usize {
    let core = db.core();
    let mut told = 0;
    loop {
        {
            let mut shared = lock(&core.background.driver.shared);
            for slot in shared.jobs.values_mut().filter(|slot| !slot.is_flush) {
                *steps += 1;
                if steps.is_multiple_of(every) {
                    told += usize::from(!slot.finish_early);
                    slot.finish_early = true;
                }
            }
        }
        if !core.background.step_here().unwrap() {
            return told;
        }
    }
}

#[test]
fn an_early_end_at_every_slice_loses_nothing() {
    for every in 1..12 {
        let vfs = MemVfs::new();
        let db = Db::open_with(Arc::new(vfs.clone()), "/db", tiny(), &[]).unwrap();
        let mut model = BTreeMap::new();
        let (mut told, mut steps, mut state) = (0, 0, every as u64);
        let mut snapshots = Vec::new();
        for i in 0..3_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = format!("key{:04}", (state >> 40) % 700);
            if state >> 60 == 0 {
                db.delete(&key).unwrap();
                model.remove(&key);
            } else {
                let value = format!("value{i:060}");
                db.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            if i % 50 == 49 {
                told += work(&db, every, &mut steps);
            }
            if i % 700 == 699 {
                snapshots.push((db.snapshot(), model.clone()));
            }
        }
        told += work(&db, every, &mut steps);
        assert!(told > 3, "every {every}: only {told} of {steps} steps");
        let read = |options: &crate::ReadOptions| {
            let mut iter = db.cursor(options).unwrap();
            let mut found = BTreeMap::new();
            iter.seek_to_first();
            while iter.valid() {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let twice = found.insert(text(iter.key()), text(iter.value()));
                assert!(twice.is_none(), "every {every}: {:?}", iter.key());
                iter.next();
            }
            iter.status().unwrap();
            found
        };
        assert!(read(&crate::ReadOptions::default()) == model, "every {every}");
        for (snapshot, model) in &snapshots {
            assert!(read(&crate::ReadOptions::at(snapshot)) == *model, "every {every}: a snapshot");
        }
        let report = db.check(&mut |_, _| {}).unwrap();
        assert!(report.problems.is_empty() && report.orphans.is_empty(), "{report:?}");
        let shared = lock(&db.core().background.driver.shared);
        assert!(shared.jobs.is_empty() && shared.plane.in_flight().is_empty());
    }
}

/// The filter's decisions change over time. No copy of an entry that it removed is left, and no
/// removed entry comes back.
#[test]
fn a_filtered_compaction_ends_when_it_is_done() {
    let number = |value: &[u8]| -> u32 { std::str::from_utf8(value).unwrap().parse().unwrap() };
    for every in 1..8 {
        let gone_below = Arc::new(AtomicU32::new(0));
        let mut options = tiny();
        let below = gone_below.clone();
        options.column_family.compaction_filter =
            Some(Filtering::by("old ones", move |_, _, value| {
                let is_old = number(value) < below.load(Ordering::Relaxed);
                if is_old { Decision::Remove } else { Decision::Keep }
            }));
        let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
        let (mut steps, mut state, mut seen) = (0, every as u64, BTreeMap::new());
        for i in 0..3_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = format!("key{:04}", (state >> 40) % 700);
            db.put(&key, format!("{i:060}")).unwrap();
            seen.insert(key, i);
            if i % 50 != 49 {
                continue;
            }
            gone_below.store(i.saturating_sub(400), Ordering::Relaxed);
            work(&db, every, &mut steps);
            let mut iter = db.cursor(&crate::ReadOptions::default()).unwrap();
            iter.seek_to_first();
            for (key, put) in std::mem::take(&mut seen) {
                let shown = (iter.valid() && iter.key() == key.as_bytes()).then(|| {
                    let shown = number(iter.value());
                    iter.next();
                    shown
                });
                let found = db.get(&key).unwrap().map(|value| number(&value));
                assert_eq!(found, shown, "every {every}, {i}: {key}");
                if let Some(found) = found {
                    assert_eq!(found, put);
                    seen.insert(key, put);
                }
            }
            assert!(!iter.valid(), "every {every}, {i}: what was gone came back");
        }
        assert!(seen.len() < 700, "nothing was filtered");
    }
}

/// How a deep compaction gives way to level 0.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Level 0 of another column family needs its slot: it is paused, and goes on later.
    Paused,
    /// Level 0 of its column family needs its inputs: it ends early.
    EndsEarly,
    /// Like `EndsEarly`, but its work is discarded.
    Discarded,
}

/// Number of entries that fill about two thirds of a memtable.
const BATCH: u64 = 250;

/// What was written to a column family.
type Model = BTreeMap<String, String>;

fn put_some(family: &crate::ColumnFamily, model: &mut Model, from: u64, count: u64) {
    for i in from..from + count {
        let key = format!("key{:05}", i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50);
        let value = format!("value{i:060}");
        family.put(&key, &value).unwrap();
        model.insert(key, value);
    }
}

fn all_of(family: &crate::ColumnFamily) -> Model {
    let mut iter = family.cursor(&crate::ReadOptions::default()).unwrap();
    let mut found = Model::new();
    iter.seek_to_first();
    while iter.valid() {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert!(found.insert(text(iter.key()), text(iter.value())).is_none());
        iter.next();
    }
    iter.status().unwrap();
    found
}

/// Returns a deep compaction that needs several slices.
fn deep_job(db: &Db) -> Option<JobId> {
    let shared = lock(&db.core().background.driver.shared);
    let is_deep = |job: &Job| {
        let is_deep = !matches!(job.class(), IoClass::Flush | IoClass::L0);
        is_deep && job.info(JobId(0)).input_bytes > 12 * (4 << 10)
    };
    let found = shared.jobs.iter().find(|(_, slot)| slot.job.as_deref().is_some_and(is_deep));
    found.map(|(id, _)| *id)
}

/// Lets a deep compaction give way after `after` of its steps. Returns `None` if it has fewer
/// steps, otherwise whether it gave way.
fn give_way(way: Way, after: usize) -> Option<bool> {
    let mut options = tiny();
    options.max_background_compactions = 1;
    let sizes = &mut options.column_family;
    (sizes.memtable_bytes, sizes.table_bytes) = (32 << 10, 16 << 10);
    sizes.level_base_bytes = 64 << 10;
    let family_options = sizes.clone();
    options.preempt_discard = way == Way::Discarded;
    let vfs = MemVfs::new();
    let db = Db::open_with(Arc::new(vfs.clone()), "/db", options, &[]).unwrap();
    let one = db.default_column_family();
    let two = db.create_column_family("two", family_options).unwrap();
    let (mut in_one, mut in_two) = (Model::new(), Model::new());
    put_some(&two, &mut in_two, 0, BATCH);
    two.flush_with(&crate::FlushOptions::default()).unwrap();
    let mut written = 0;
    let deep = loop {
        put_some(&one, &mut in_one, written, BATCH);
        written += BATCH;
        assert!(written < 100_000, "no deep compaction");
        let found = loop {
            let deep = deep_job(&db);
            if deep.is_some() || !db.core().background.step_here().unwrap() {
                break deep;
            }
        };
        if let Some(found) = found
            && written > 4000
        {
            break found;
        }
        while db.core().background.step_here().unwrap() {}
    };
    for _ in 0..after {
        db.core().background.step_here().unwrap();
    }
    if deep_job(&db) != Some(deep) {
        return None;
    }
    // Its level 0 gets more runs than a compaction needs.
    let (family, model) =
        if way == Way::Paused { (&two, &mut in_two) } else { (&one, &mut in_one) };
    for _ in 0..3 {
        // Few entries, so that the flush takes hardly any steps.
        put_some(family, model, written, 8);
        written += 8;
        family.flush_with(&crate::FlushOptions { wait: false }).unwrap();
        loop {
            let shared = lock(&db.core().background.driver.shared);
            let flushed = !shared.jobs.values().any(|slot| slot.is_flush);
            drop(shared);
            if !db.core().background.step_here().unwrap() || flushed && !family.data.wants_flush() {
                break;
            }
        }
    }
    while db.core().background.step_here().unwrap() {}
    let timeline = db.timeline();
    let jobs = timeline.jobs();
    let span = jobs.iter().find(|job| job.info.job == deep).unwrap();
    let told = |kind| timeline.events.iter().filter(|event| event.kind == kind).count() == 1;
    let (early, discarded) =
        (told(EventKind::FinishEarly { job: deep }), told(EventKind::Discarded { job: deep }));
    assert_eq!(discarded, span.result == Some(JobResult::Cancelled));
    let gave_way = match way {
        Way::Paused => !span.pauses.is_empty() && span.result == Some(JobResult::Done),
        Way::EndsEarly => early && span.result == Some(JobResult::Done),
        Way::Discarded => discarded,
    };

    assert!(all_of(&one) == in_one, "{way:?} after {after} steps");
    assert!(all_of(&two) == in_two, "{way:?} after {after} steps");
    let shared = lock(&db.core().background.driver.shared);
    assert!(shared.jobs.is_empty() && shared.abandoned.is_empty());
    assert!(shared.plane.in_flight().is_empty() && shared.plane.is_idle());
    drop(shared);
    // No file is left behind. Without a writer it is known which files are in use.
    drop((one, two, db));
    let db = Db::open_read_only_with(Arc::new(vfs), "/db", Options::default()).unwrap();
    let report = db.check(&mut |_, _| {}).unwrap();
    assert!(report.problems.is_empty() && report.orphans.is_empty(), "{report:?}");
    Some(gave_way)
}

#[test]
fn whatever_gives_way_at_any_slice_comes_back() {
    for way in [Way::Paused, Way::EndsEarly, Way::Discarded] {
        let slices = (0..).map(|after| give_way(way, after)).take_while(Option::is_some);
        let gave_way: Vec<bool> = slices.flatten().collect();
        let times = gave_way.iter().filter(|gave| **gave).count();
        assert!(gave_way.len() > 4 && times > gave_way.len() / 2, "{way:?}: {gave_way:?}");
    }
}

#[test]
fn steps_tell_the_bytes_of_files_not_of_what_is_in_them() {
    let mut options = tiny();
    options.column_family.compression = vec![sateen_store::table::Compression::Lz4];
    options.column_family.memtable_bytes = 256 << 10;
    options.column_family.table_bytes = 64 << 10;
    let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
    let before = db.core().env.vfs.totals();
    let mut written = 0;
    for i in 0..4_000_u64 {
        let random = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let value = format!("{random:016x}{}", "x".repeat(400));
        written += value.len() as u64;
        db.put(format!("key{:04}", i * 7 % 2000), value).unwrap();
        if i % 50 == 49 {
            work(&db, usize::MAX, &mut 0);
        }
    }
    let after = db.core().env.vfs.totals();
    let classes = IoClass::ALL.into_iter().map(IoClass::index);
    let on_disk: u64 = classes.map(|at| after[at].read_bytes - before[at].read_bytes).sum();
    let jobs = db.timeline().jobs();
    let told: u64 = jobs.iter().map(|job| job.read_bytes).sum();
    // No step includes the opening of the outputs. The uncompressed contents of the inputs would be
    // several times as much.
    assert!(told > written / 20 && told <= on_disk, "{told} of {on_disk}, {written} written");
}

/// However many input runs reach the end of their chunks at once, a step reads little more than its
/// grant, because clients' reads wait behind it.
#[test]
fn a_step_reads_little_more_than_its_grant() {
    const GRANT: u64 = 128 << 10;
    let mut options = tiny();
    options.slice_bytes_max = GRANT;
    options.level0_cache_percent = 0;
    options.compaction_readahead_bytes = 1 << 20;
    let family = &mut options.column_family;
    family.memtable_bytes = 2 << 20;
    family.level0_trigger = 4;
    family.level0_stripe_bytes = 0;
    family.table_bytes = 1 << 20;
    family.block_bytes = 4 << 10;
    family.level_base_bytes = 64 << 20;
    let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
    for i in 0..20_000_u64 {
        let random = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        db.put(random.to_be_bytes(), vec![b'v'; 500]).unwrap();
        if i % 500 == 0 {
            work(&db, usize::MAX, &mut 0);
        }
    }
    work(&db, usize::MAX, &mut 0);
    let timeline = db.timeline();
    let of_compactions = timeline.steps.iter().filter(|step| step.read_bytes > 0);
    let reads: Vec<u64> = of_compactions.map(|step| step.read_bytes).collect();
    let most = reads.iter().max().copied().unwrap_or(0);
    assert!(reads.len() > 50 && most <= GRANT * 3 / 2 + (64 << 10), "{most}: {reads:?}");
}

/// Tables that overlap nothing are moved without a barrier of their own. After a power failure the
/// database is as it was before.
#[test]
fn what_settles_costs_no_barrier() {
    let vfs = MemVfs::new();
    let mut options = tiny();
    options.wal = crate::WalMode::Off;
    options.column_family.level_base_bytes = 100 << 10;
    let open = |vfs: &MemVfs| Db::open_with(Arc::new(vfs.clone()), "/db", options.clone(), &[]);
    let db = open(&vfs).unwrap();
    let barriers = || db.metrics().io.iter().map(|class| class.totals.syncs).sum::<u64>();
    let in_level0 = |db: &Db| db.live_tables().iter().filter(|table| table.level == 0).count();
    let (mut of_flushes, mut of_moves) = (0, 0);
    for i in 0..40_u32 {
        db.put(format!("key{i:04}"), vec![b'v'; 3000]).unwrap();
        let before = barriers();
        db.flush().unwrap();
        let flushed = barriers();
        db.wait_idle().unwrap();
        of_flushes += flushed - before;
        of_moves += barriers() - flushed;
    }
    let tables = db.live_tables().len();
    let moved = tables - in_level0(&db);
    assert!(moved > 10 && tables == 40, "{moved} of {tables}");
    // The barriers of the file, of its name and of the manifest. There is no other work in between.
    assert_eq!((of_flushes, of_moves), (40 * 3, 0));
    let image = vfs.crash_image(sateen_store::vfs::CrashChoice::SyncedOnly);
    let again = open(&image).unwrap();
    let moved_again = tables - in_level0(&again);
    assert!((10..=moved).contains(&moved_again), "{moved_again} of {moved}");
    for i in 0..40_u32 {
        assert!(again.get(format!("key{i:04}")).unwrap().is_some(), "{i}");
    }
    let report = again.check(&mut |_, _| {}).unwrap();
    assert!(report.problems.is_empty() && report.orphans.is_empty(), "{report:?}");
}

/// The edit of a flush whose entries are in the WAL waits for another edit's barrier. Until then
/// the WAL is kept, and a power failure loses nothing that was durable.
#[test]
fn a_flush_waits_for_a_barrier_and_its_log_with_it() {
    for wal in [WalMode::SyncEachWrite, WalMode::Buffered] {
        let vfs = MemVfs::new();
        let mut options = tiny();
        options.wal = wal;
        options.column_family.level0_trigger = 12;
        let open = |vfs: &MemVfs| Db::open_with(Arc::new(vfs.clone()), "/db", options.clone(), &[]);
        let db = open(&vfs).unwrap();
        let core = db.core();
        let manifest_syncs = || core.env.vfs.totals()[IoClass::Manifest.index()].syncs;
        let mut keys = 0;
        for round in 0..6 {
            for _ in 0..3 {
                db.put(format!("key{keys:04}"), vec![b'v'; 1000]).unwrap();
                keys += 1;
            }
            let ids: Vec<_> = core.tree.families().values().map(|family| family.id()).collect();
            core.writes.pipeline.exclusive(|stage| core.writes.pipeline.seal(stage, &ids));
            core.background.driver.memtables_changed();
            let before = manifest_syncs();
            while core.tree.families().values().any(|family| family.sealed_usage().0 > 0) {
                assert!(db.step().unwrap());
            }
            // At most the barriers for the names of preallocated files.
            let barriers = manifest_syncs() - before;
            assert!(
                core.tree.versions.holds_until_barrier() && barriers <= 2,
                "{round}: {barriers}"
            );
            match wal {
                // From here on the flushed entries must be durable.
                WalMode::Buffered => db.flush().unwrap(),
                _ if round % 2 == 1 => db.wait_idle().unwrap(),
                _ => core.background.chores.remove_old_logs().map(drop).unwrap(),
            }
            let image = vfs.crash_image(sateen_store::vfs::CrashChoice::SyncedOnly);
            let again = open(&image).unwrap();
            for key in 0..keys {
                let found = again.get(format!("key{key:04}")).unwrap();
                assert!(found.is_some(), "{key} of {keys}, {wal:?}");
            }
            let report = again.check(&mut |_, _| {}).unwrap();
            assert!(report.problems.is_empty() && report.orphans.is_empty(), "{report:?}");
        }
        db.wait_idle().unwrap();
        assert!(!core.tree.versions.holds_until_barrier());
        assert!(
            core.writes.pipeline.live_logs().len() == 1,
            "{:?}",
            core.writes.pipeline.live_logs()
        );
    }
}

/// Tables of level 0 stay in memory as images until they leave it, if there is room.
#[test]
fn level_0_is_not_read_from_its_files() {
    let run = |percent: u32| {
        let mut options = tiny();
        options.block_cache_bytes = 1 << 20;
        options.level0_cache_percent = percent;
        options.direct_io_for_flush_and_compaction = true;
        let family = &mut options.column_family;
        family.memtable_bytes = 32 << 10;
        family.level0_trigger = 8;
        family.level0_stripe_bytes = 0;
        family.flush_table_bytes = 0;
        family.cut_tables_at_gaps = false;
        family.table_bytes = 8 << 10;
        family.level_base_bytes = 1 << 20;
        let db = Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap();
        let core = db.core();
        let read = || {
            let totals = core.env.vfs.totals();
            let all: u64 = totals.iter().map(|class| class.read_bytes).sum();
            let clients = totals[IoClass::Client.index()].read_bytes;
            [clients, all - clients]
        };
        let images = || core.tree.tables.images().unwrap().count();
        let in_level0 = || core.tree.families().values().map(level0_tables).sum::<usize>();
        for i in 0..200_u32 {
            db.put(format!("key{:03}", i * 7 % 100), [b'v'; 500]).unwrap();
            if i % 40 == 39 {
                db.flush().unwrap();
            }
        }
        let kept = if percent > 0 { in_level0() } else { 0 };
        assert_eq!((in_level0(), images()), (5, kept));
        let before = read();
        for i in 0..100 {
            assert!(db.get(format!("key{i:03}")).unwrap().is_some());
        }
        db.compact_range(None, None, &crate::CompactRangeOptions::default()).unwrap();
        for i in 0..100 {
            assert!(db.get(format!("key{i:03}")).unwrap().is_some());
        }
        db.wait_idle().unwrap();
        assert_eq!((in_level0(), images(), core.tree.blocks.table_images_bytes()), (0, 0, 0));
        let after = read();
        [after[0] - before[0], after[1] - before[1]]
    };
    let (without, with) = (run(0), run(50));
    // A compaction opens its outputs, which reads their indexes, and clients read the outputs.
    assert!(without[1] > with[1] + 90_000 && with[1] < 20_000, "{without:?}, {with:?}");
    assert!(without[0] > with[0] + 20_000, "{without:?}, {with:?}");
}

fn level0_tables(family: &Arc<ColumnFamilyData>) -> usize {
    family.super_version().version.level(0).runs().iter().map(|run| run.len()).sum()
}
