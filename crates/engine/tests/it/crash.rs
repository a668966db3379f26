//! Power failures: at every operation that changed the file system, in every way that what was not
//! synced may have survived, the database opens and is a prefix of the commit order no shorter than
//! what was promised.

use std::sync::atomic::{AtomicUsize, Ordering};

use sateen::vfs::{CrashChoice, MemVfs, Recording};
use sateen::{Db, Error, Options, ReadOptions, WalMode, WriteBatch, WriteOptions};

use crate::common::{
    Contents, Random, appended, appending, as_vfs, assert_sound, decided, deciding, is_decided,
    read_all, small, tiny,
};
use crate::updates::Replica;

const MARK: &[u8] = b"~commit";
const OTHER: &str = "other";

/// What was done, and what it promised.
struct Run {
    recording: Recording,
    /// The contents of both families after so many commits, as compactions that filter leave them.
    states: Vec<[Contents; 2]>,
    /// (operations of the file system, commits that survive any crash from there on).
    promised: Vec<(usize, usize)>,
    /// (operations of the file system, commits begun by then).
    begun: Vec<(usize, usize)>,
    options: Options,
}

/// What a commit does to a key.
enum What {
    Put(Vec<u8>),
    Delete,
    SingleDelete,
    Merge(Vec<u8>),
    /// Up to this key.
    DeleteRange(Vec<u8>),
}

fn apply(state: &mut [Contents; 2], family: usize, key: Vec<u8>, what: What) {
    if let What::DeleteRange(end) = &what {
        return state[family].retain(|other, _| *other < key || *other >= *end);
    }
    match what {
        What::Put(value) => match decided(&key, &value) {
            Some(value) => state[family].insert(key, value),
            None => state[family].remove(&key),
        },
        What::Delete | What::SingleDelete | What::DeleteRange(_) => state[family].remove(&key),
        What::Merge(operand) => {
            let value = appended(state[family].get(&key).map(Vec::as_slice), &operand);
            state[family].insert(key, value)
        }
    };
}

fn workload(seed: u64, options: &Options, commits: usize) -> Run {
    let options = &mut options.clone();
    options.column_family.merge_operator = Some(appending());
    let mut random = Random::new(seed);
    let vfs = MemVfs::new();
    let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    let other = db.create_column_family(OTHER, options.column_family.clone()).unwrap();
    let recording = vfs.record();
    let mut run = Run {
        recording: recording.clone(),
        states: vec![Default::default()],
        promised: vec![(0, 0)],
        begun: vec![(0, 0)],
        options: options.clone(),
    };
    let logged = options.wal != WalMode::Off;
    let mut snapshots = Vec::new();
    while run.states.len() <= commits {
        let number = run.states.len();
        let mut state = run.states[number - 1].clone();
        let mut batch = WriteBatch::new();
        for _ in 0..=random.below(4) {
            let number = random.below(120);
            let key = format!("key{number:03}").into_bytes();
            let family = usize::from(random.one_in(3));
            let large = if random.one_in(40) { 6000 } else { 60 };
            let fill = vec![b'a' + (random.below(26) as u8); random.below(large) as usize];
            let what = match random.below(12) {
                0..2 => What::Delete,
                2 => What::SingleDelete,
                3..6 if !is_decided(&key) => What::Merge(fill),
                6 if random.one_in(3) => {
                    let end = number + random.below(20);
                    What::DeleteRange(format!("key{end:03}").into_bytes())
                }
                _ => What::Put(fill),
            };
            match (&what, family) {
                (What::Put(value), 0) => batch.put(&key, value).unwrap(),
                (What::Put(value), _) => batch.put_cf(&other, &key, value).unwrap(),
                (What::Delete, 0) => batch.delete(&key).unwrap(),
                (What::Delete, _) => batch.delete_cf(&other, &key).unwrap(),
                (What::SingleDelete, 0) => batch.single_delete(&key).unwrap(),
                (What::SingleDelete, _) => batch.single_delete_cf(&other, &key).unwrap(),
                (What::Merge(operand), 0) => batch.merge(&key, operand).unwrap(),
                (What::Merge(operand), _) => batch.merge_cf(&other, &key, operand).unwrap(),
                (What::DeleteRange(end), 0) => batch.delete_range(&key, end).unwrap(),
                (What::DeleteRange(end), _) => batch.delete_range_cf(&other, &key, end).unwrap(),
            }
            apply(&mut state, family, key, what);
        }
        let mark = number.to_string().into_bytes();
        batch.put(MARK, &mark).unwrap();
        batch.put_cf(&other, MARK, &mark).unwrap();
        apply(&mut state, 0, MARK.to_vec(), What::Put(mark.clone()));
        apply(&mut state, 1, MARK.to_vec(), What::Put(mark));
        run.states.push(state);
        run.begun.push((recording.len(), number));
        let sync = logged && random.one_in(8);
        db.write(&batch, &WriteOptions { sync, ..WriteOptions::default() }).unwrap();
        if sync || options.wal == WalMode::SyncEachWrite {
            run.promised.push((recording.len(), number));
        }
        match random.below(24) {
            0 => {
                db.flush_all().unwrap();
                run.promised.push((recording.len(), number));
            }
            1 => {
                let begin = format!("key{:03}", random.below(120)).into_bytes();
                let family = db.default_column_family();
                db.compact_range(&family, Some(&begin), None, &Default::default()).unwrap();
            }
            2 => snapshots.push(db.snapshot()),
            3 => snapshots.clear(),
            4..10 => {
                for _ in 0..random.below(12) {
                    db.step().unwrap();
                }
            }
            _ => {}
        }
    }
    db.wait_idle().unwrap();
    drop(snapshots);
    db.close().unwrap();
    if logged {
        run.promised.push((recording.len(), commits));
    }
    run
}

impl Run {
    fn bounds(&self, at: usize) -> (usize, usize) {
        let last = |list: &[(usize, usize)]| {
            list[list.partition_point(|(operations, _)| *operations <= at) - 1].1
        };
        (last(&self.promised), last(&self.begun))
    }

    /// Opens what the crash left and holds it against what was promised.
    fn examine(&self, image: &MemVfs, at: usize, what: &str) {
        let (floor, ceiling) = self.bounds(at);
        if self.options.wal_ttl_seconds > 0 {
            self.examine_beside(image, ceiling, what);
        }
        let db = Db::open_with(as_vfs(image), "/db", self.options.clone(), &[])
            .unwrap_or_else(|error| panic!("{what}: cannot be opened: {error}"));
        let Some(other) = db.column_family(OTHER) else {
            panic!("{what}: the column family is gone");
        };
        let latest = ReadOptions::default();
        let mark = db.get(MARK).unwrap();
        assert_eq!(
            db.get_cf(&other, MARK, &latest).unwrap(),
            mark,
            "{what}: a batch is in one family and not in the other"
        );
        let commits = mark.map_or(0, |text| String::from_utf8(text).unwrap().parse().unwrap());
        assert!(
            (floor..=ceiling).contains(&commits),
            "{what}: {commits} commits, promised {floor}, begun {ceiling}"
        );
        let expected = &self.states[commits];
        let family = db.default_column_family();
        let settled = |family| {
            let found = read_all(&db, family, &latest).into_iter();
            found
                .filter_map(|(key, value)| decided(&key, &value).map(|value| (key, value)))
                .collect()
        };
        assert_same(&settled(&family), &expected[0], what);
        assert_same(&settled(&other), &expected[1], what);
        assert_sound(&db);
        if self.options.wal_ttl_seconds > 0 {
            self.examine_log(&db, commits, what);
        }
        for i in 0..10 {
            db.put(format!("after{i}"), "crash").unwrap();
        }
        db.close().unwrap();
        let db = Db::open_with(as_vfs(image), "/db", self.options.clone(), &[]).unwrap();
        for i in 0..10 {
            assert!(db.get(format!("after{i}")).unwrap().is_some(), "{what}: lost after reopening");
        }
        assert_sound(&db);
    }
}

impl Run {
    /// A secondary of a primary that is not there any more shows some state that there was, or says
    /// that it cannot.
    fn examine_beside(&self, image: &MemVfs, ceiling: usize, what: &str) {
        let opened = Db::open_secondary_with(as_vfs(image), "/db", self.options.clone(), &[]);
        let db = match opened {
            Ok(db) => db,
            Err(error) => {
                // A primary that was just made, or before its recovery.
                assert!(!matches!(error, Error::Io { .. }), "{what}: {error}");
                return;
            }
        };
        let mark = db.get(MARK).unwrap();
        let commits = mark.map_or(0, |text| String::from_utf8(text).unwrap().parse().unwrap());
        assert!(commits <= ceiling, "{what}: {commits} commits beside, begun {ceiling}");
        let latest = ReadOptions::default();
        for (at, name) in ["default", OTHER].into_iter().enumerate() {
            let family = db.column_family(name).unwrap();
            let found = read_all(&db, &family, &latest).into_iter();
            let decide =
                |(key, value): (Vec<u8>, Vec<u8>)| Some((key.clone(), decided(&key, &value)?));
            let found = found.filter_map(decide).collect();
            assert_same(&found, &self.states[commits][at], &format!("{what}, beside"));
        }
    }

    /// The log has what survived from the first write on, and nothing else.
    fn examine_log(&self, db: &Db, commits: usize, what: &str) {
        let mut updates = db.updates_since(0).unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut replica = Replica::new(&self.options, &[OTHER]);
        let mut batches = 0;
        while updates.valid() {
            replica.take(&updates);
            batches += 1;
            updates.next();
        }
        updates.status().unwrap_or_else(|error| panic!("{what}: {error}"));
        // What the database writes again by itself comes as a batch, too.
        let again = self.options.column_family.memtable_hot_part > 0.0;
        assert!(batches == commits || again && batches > commits, "{what}: {batches} batches");
        let settled = |contents: Contents| -> Contents {
            let decide =
                |(key, value): (Vec<u8>, Vec<u8>)| Some((key.clone(), decided(&key, &value)?));
            contents.into_iter().filter_map(decide).collect()
        };
        assert_same(&settled(replica.contents("default")), &self.states[commits][0], what);
        assert_same(&settled(replica.contents(OTHER)), &self.states[commits][1], what);
    }
}

/// Says which keys differ, not all that are there.
fn assert_same(got: &Contents, expected: &Contents, what: &str) {
    if got == expected {
        return;
    }
    let keys = got.keys().chain(expected.keys());
    let differ = keys.filter(|key| got.get(*key) != expected.get(*key));
    for key in differ {
        let text = |value: Option<&Vec<u8>>| value.map(|value| value.escape_ascii().to_string());
        println!(
            "{}: {:?}, not {:?}",
            key.escape_ascii(),
            text(got.get(key)),
            text(expected.get(key))
        );
    }
    panic!("{what}: wrong contents");
}

/// Examines images at operations `offset`, `offset + stride`, …; returns how many. With `nested`,
/// one in so many images is crashed again at every operation of its recovery.
fn sweep(run: &Run, seed: u64, stride: usize, offset: usize, nested: usize) -> (usize, usize) {
    let next = AtomicUsize::new(offset);
    let (images, doubles) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(stride, Ordering::Relaxed);
                    if at > run.recording.len() {
                        return;
                    }
                    for choice in run.recording.choices_at(at, 4) {
                        let what = format!("seed {seed}, operation {at}, {choice:?}");
                        let image = run.recording.image_at(at, choice);
                        let number = images.fetch_add(1, Ordering::Relaxed);
                        if nested > 0 && number.is_multiple_of(nested) {
                            doubles.fetch_add(again(run, &image, at, &what), Ordering::Relaxed);
                        }
                        run.examine(&image, at, &what);
                    }
                }
            });
        }
    });
    (images.into_inner(), doubles.into_inner())
}

/// Crashes the recovery of `image` at each of its operations.
fn again(run: &Run, image: &MemVfs, at: usize, what: &str) -> usize {
    let image = image.crash_image(CrashChoice::Everything);
    let recovery = image.record();
    let db = Db::open_with(as_vfs(&image), "/db", run.options.clone(), &[]).unwrap();
    db.close().unwrap();
    let mut images = 0;
    for operation in 0..=recovery.len() {
        for choice in [CrashChoice::SyncedOnly, CrashChoice::Everything] {
            let twice = recovery.image_at(operation, choice);
            let what = format!("{what}, then operation {operation} of recovery, {choice:?}");
            run.examine(&twice, at, &what);
            images += 1;
        }
    }
    images
}

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
            run.examine(&image, at, &what);
        }
        return;
    }
    let stride = (61 / scale()).max(1);
    let (images, doubles) = sweep(&run, seed, stride, seed as usize % stride, 199);
    println!(
        "seed {seed}: {images} images, {doubles} of a second crash, of {} operations",
        run.recording.len()
    );
    assert!(images > 100 && doubles > 0, "the sweep looked at something");
}

/// The profile and everything else by the number of the case; see `rel.rs`.
#[test]
#[ignore = "run by cargo xtask rel crash"]
fn rel() {
    crate::rel::Suite::new("crash", "images").run(crate::rel::processors(), |suite, case| {
        let profiles = ["sateen", "leveldb", "bolt", "vlsm", "silk", "pebblesdb", "triad"];
        let options = small(profiles[case as usize % profiles.len()], 4 << 10);
        let mut run = workload(case, &options, 60);
        run.options.column_family.merge_operator = Some(appending());
        let (images, doubles) = sweep(&run, case, 7, case as usize % 7, 199);
        suite.count("images", images as u64);
        suite.count("double-crash images", doubles as u64);
    });
}

#[test]
fn buffered_log() {
    crash(1, &tiny());
}

#[test]
fn synced_log() {
    crash(2, &Options { wal: WalMode::SyncEachWrite, ..tiny() });
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
    for (seed, profile) in (6..).zip(["leveldb", "bolt", "vlsm", "silk", "pebblesdb", "triad"]) {
        println!("{profile}");
        crash(seed, &small(profile, 4 << 10));
    }
}

#[test]
fn another_profile_after_the_crash() {
    let pairs = [
        ("bolt", "vlsm"),
        ("vlsm", "silk"),
        ("silk", "bolt-rocksdb"),
        ("silk", "pebblesdb"),
        ("triad", "sateen"),
    ];
    for (seed, (before, after)) in (10..).zip(pairs) {
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
