//! Holes: nothing that anybody can still reach is ever taken away. The strict file system is told,
//! at each hole, cut and removal, what must not change: what the manifest names, the one that is
//! there and the one that a power failure would leave; what iterators were opened on; what
//! checkpoints share. It panics where the engine breaks that. On a real file system the holes are
//! looked for where they should be.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::SeekFrom;

use sateen::test_support::clock::{VirtualTime, advance};
use sateen::vfs::{CrashChoice, Guard, MemVfs, OpenOptions, PosixVfs, Ranges, Taken, Vfs};
use sateen::{CompactRangeOptions, Cursor, Db, Options, ReadOptions, Regions, Snapshot, WalMode};

use crate::support::common::{
    Contents, Random, appending, as_vfs, assert_sound, open_arranged, read_all, small,
};
use crate::support::extents::{
    PAGE, contents, current_manifest, directory_begins, named, tables_of,
};
use crate::support::leaks;
use crate::support::rel::Watch;

const DB: &str = "/db";
const KEYS: u64 = 1500;

/// What is reachable besides what manifests name.
#[derive(Default)]
struct Reachable {
    /// What each open iterator was opened on.
    pins: BTreeMap<u64, Arc<Ranges>>,
    /// Directories of databases.
    directories: Vec<PathBuf>,
}

/// What manifests name, by name and length: they are only ever appended to.
type Read = BTreeMap<(PathBuf, u64), Arc<Ranges>>;

/// Where tables are, as far as the current manifest of `directory` goes.
fn reachable(vfs: &MemVfs, directory: &Path) -> Arc<Ranges> {
    let wide = |range: Range<usize>| range.start as u64..range.end as u64;
    let tables = tables_of(vfs, directory).into_iter();
    Arc::new(tables.map(|(path, all)| (path, all.into_iter().map(wide).collect())).collect())
}

/// The same, each manifest of a length read once.
fn tables_once(read: &mut Read, vfs: &MemVfs, directory: &Path) -> Arc<Ranges> {
    let Some(manifest) = current_manifest(vfs, directory) else { return Arc::default() };
    let file = vfs.open(&manifest, OpenOptions::READ).unwrap();
    let key = (manifest, file.len().unwrap());
    if read.len() > 64 && !read.contains_key(&key) {
        read.clear();
    }
    read.entry(key).or_insert_with(|| reachable(vfs, directory)).clone()
}

/// A guard over all of it.
fn guard(reachable: &Arc<Mutex<Reachable>>) -> Guard {
    let reachable = reachable.clone();
    let read = Mutex::new(Read::new());
    Guard::new(move |vfs, name| {
        // Logs and manifests are another suite's.
        if name.is_some_and(|name| name.extension().is_none_or(|extension| extension != "sat")) {
            return Vec::new();
        }
        let (reachable, mut read) = (reachable.lock().unwrap(), read.lock().unwrap());
        let durable = vfs.crash_image(CrashChoice::SyncedOnly);
        let mut all: Vec<Arc<Ranges>> = reachable.pins.values().cloned().collect();
        for directory in &reachable.directories {
            let now = tables_once(&mut read, vfs, directory);
            let then = tables_once(&mut read, &durable, directory);
            // Often nothing was changed meanwhile.
            let same = Arc::ptr_eq(&now, &then);
            all.push(now);
            all.extend((!same).then_some(then));
        }
        all
    })
}

/// Something that keeps what it was opened on.
struct Pinned {
    iter: Cursor,
    expected: Contents,
    number: u64,
}

/// A database whose compaction files are full of small tables.
struct World {
    vfs: MemVfs,
    db: Db,
    options: Options,
    reachable: Arc<Mutex<Reachable>>,
    model: Contents,
    pinned: Vec<Pinned>,
    snapshots: Vec<(Snapshot, Contents)>,
    checkpoints: Vec<(PathBuf, Contents)>,
    /// What was taken away in file systems that are no more.
    before: Taken,
    crashed: bool,
    made: u64,
}

impl World {
    fn new(options: Options, clones: bool) -> World {
        let vfs = MemVfs::new();
        vfs.set_clones_supported(clones);
        let directories = vec![PathBuf::from(DB)];
        let reachable = Arc::new(Mutex::new(Reachable { directories, ..Default::default() }));
        vfs.set_guard(Some(guard(&reachable)));
        let db = Db::open_with(as_vfs(&vfs), DB, options.clone(), &[]).unwrap();
        World {
            vfs,
            db,
            options,
            reachable,
            model: Contents::new(),
            pinned: Vec::new(),
            snapshots: Vec::new(),
            checkpoints: Vec::new(),
            before: Taken::default(),
            crashed: false,
            made: 0,
        }
    }

    fn taken(&self) -> Taken {
        let now = self.vfs.taken();
        Taken {
            punches: self.before.punches + now.punches,
            cuts: self.before.cuts + now.cuts,
            names: self.before.names + now.names,
        }
    }

    fn write(&mut self, random: &mut Random) {
        // Now in one place, now everywhere.
        let (first, step) = (random.below(KEYS), 1 + random.below(2) * random.below(40));
        for at in 0..20 + random.below(60) {
            let key = format!("key{:05}", (first + at * step) % KEYS).into_bytes();
            if random.one_in(12) {
                self.db.delete(&key).unwrap();
                self.model.remove(&key);
            } else {
                let length = if random.one_in(50) { 3000 } else { 20 + random.below(100) };
                let value = vec![b'a' + random.below(26) as u8; length as usize];
                self.db.put(&key, &value).unwrap();
                self.model.insert(key, value);
            }
        }
    }

    /// Keys here and there, each compacted with what is around it: what is between stays where it
    /// is, and the tables that it was in become holes.
    fn nibble(&mut self, random: &mut Random) {
        let family = self.db.default_column_family();
        if !random.one_in(4) {
            // All at once: each small table of level 0 takes with it what it overlaps.
            let (first, step) = (random.below(40), 15 + random.below(60));
            for number in (first..KEYS).step_by(step as usize) {
                let key = format!("key{number:05}").into_bytes();
                let value = vec![b'a' + random.below(26) as u8; 20 + random.below(100) as usize];
                self.db.put(&key, &value).unwrap();
                self.model.insert(key, value);
            }
            family.compact_range(None, None, &Default::default()).unwrap();
            return self.db.wait_idle().unwrap();
        }
        for _ in 0..8 + random.below(24) {
            let first = random.below(KEYS - 4);
            let keys = (first..first + 1 + random.below(4))
                .map(|number| format!("key{number:05}").into_bytes());
            let keys: Vec<_> = keys.collect();
            for key in &keys {
                let value = vec![b'a' + random.below(26) as u8; 20 + random.below(100) as usize];
                self.db.put(key, &value).unwrap();
                self.model.insert(key.clone(), value);
            }
            let (begin, end) = (keys.first().map(|key| &**key), keys.last().map(|key| &**key));
            family.compact_range(begin, end, &Default::default()).unwrap();
        }
        self.db.wait_idle().unwrap();
    }

    fn pin(&mut self) {
        let mut iter = self.db.cursor(&ReadOptions::default()).unwrap();
        iter.seek_to_first();
        self.made += 1;
        let pins = reachable(&self.vfs, Path::new(DB));
        self.reachable.lock().unwrap().pins.insert(self.made, pins);
        self.pinned.push(Pinned { iter, expected: self.model.clone(), number: self.made });
    }

    /// An iterator shows what it was opened on, and lets go of it.
    fn unpin(&mut self, at: usize) {
        let Pinned { mut iter, expected, number } = self.pinned.swap_remove(at);
        let mut expected = expected.iter();
        iter.seek_to_first();
        while iter.valid() {
            let (key, value) = expected.next().expect("an iterator shows more than there was");
            assert!(iter.key() == &**key && iter.value() == &**value, "an iterator shows another");
            iter.next();
        }
        iter.status().unwrap();
        assert!(expected.next().is_none(), "an iterator shows less than there was");
        drop(iter);
        self.reachable.lock().unwrap().pins.remove(&number);
    }

    fn forget_readers(&mut self) {
        while !self.pinned.is_empty() {
            self.unpin(0);
        }
        for (snapshot, expected) in self.snapshots.drain(..) {
            let family = self.db.default_column_family();
            let found = read_all(&family, &ReadOptions::at(&snapshot));
            assert!(found == expected, "a snapshot shows another state");
        }
    }

    fn checkpoint(&mut self) {
        self.made += 1;
        let path = PathBuf::from(format!("/checkpoint{}", self.made));
        self.reachable.lock().unwrap().directories.push(path.clone());
        self.db.checkpoint(&path).unwrap();
        self.checkpoints.push((path, self.model.clone()));
    }

    /// A checkpoint holds what it held, and goes.
    fn remove_checkpoint(&mut self, at: usize) {
        let (path, expected) = self.checkpoints.swap_remove(at);
        let db = open_arranged(as_vfs(&self.vfs), &path, &self.options, &[]);
        let found = read_all(&db.default_column_family(), &ReadOptions::default());
        assert!(found == expected, "a checkpoint shows another state");
        assert_sound(&db);
        db.close().unwrap();
        drop(db);
        self.reachable.lock().unwrap().directories.retain(|other| *other != path);
        for name in self.vfs.list(&path).unwrap() {
            self.vfs.remove(&path.join(name)).unwrap();
        }
        self.vfs.remove_dir(&path).unwrap();
        self.vfs.sync_dir(Path::new("/")).unwrap();
    }

    /// With the same options as before, or with others: what one profile left is given back under
    /// another.
    fn open_again(&mut self, random: &mut Random) {
        if random.one_in(2) {
            self.options = chosen(random.next());
            // Those it has stay, and it gets no others.
            self.options.column_family.regions = Regions::default();
        }
        self.db = open_arranged(as_vfs(&self.vfs), DB, &self.options, &[]);
    }

    fn close(&mut self) {
        self.forget_readers();
        self.db.close().unwrap();
    }

    /// The power fails; what was written is there in part, as another suite looks at.
    fn crash(&mut self, random: &mut Random) {
        let choice = match random.below(3) {
            0 => CrashChoice::SyncedOnly,
            1 => CrashChoice::Everything,
            _ => CrashChoice::Subset(random.next()),
        };
        let image = self.vfs.crash_image(choice);
        self.forget_readers();
        self.before = self.taken();
        self.vfs.set_guard(None);
        // Checkpoints were durable when they returned.
        image.set_guard(Some(guard(&self.reachable)));
        self.vfs = image;
        self.open_again(random);
        self.crashed = true;
        let family = self.db.default_column_family();
        self.model = read_all(&family, &ReadOptions::default());
    }

    fn act(&mut self, random: &mut Random) {
        match random.below(8) {
            0 => self.write(random),
            _ => self.nibble(random),
        }
        match random.below(24) {
            0 | 1 if self.pinned.len() < 4 => self.pin(),
            2 | 3 if !self.pinned.is_empty() => {
                let at = random.below(self.pinned.len() as u64) as usize;
                self.unpin(at);
            }
            4 => self.snapshots.push((self.db.snapshot(), self.model.clone())),
            5 if !self.snapshots.is_empty() => drop(self.snapshots.remove(0)),
            6 if self.checkpoints.len() < 2 => self.checkpoint(),
            7 if !self.checkpoints.is_empty() => self.remove_checkpoint(0),
            8 => {
                // All in few files again.
                let family = self.db.default_column_family();
                let all = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
                family.compact_range(None, None, &all).unwrap();
            }
            9..14 => {
                for _ in 0..random.below(20) {
                    self.db.step().unwrap();
                }
            }
            14 if random.one_in(3) => {
                self.close();
                self.open_again(random);
            }
            15 if random.one_in(2) => self.crash(random),
            16 => {
                let (begin, end) = (random.below(KEYS), random.below(KEYS));
                let key = |number: u64| format!("key{number:05}").into_bytes();
                let (begin, end) = (key(begin.min(end)), key(begin.max(end)));
                self.db.delete_range(&begin, &end).unwrap();
                self.model.retain(|key, _| *key < begin || *key >= end);
            }
            _ => self.db.wait_idle().unwrap(),
        }
    }

    fn end(mut self) -> Taken {
        self.forget_readers();
        while !self.checkpoints.is_empty() {
            self.remove_checkpoint(0);
        }
        let family = self.db.default_column_family();
        let found = read_all(&family, &ReadOptions::default());
        assert!(found == self.model, "the database shows another state");
        drop(family);
        let waste = if self.crashed { leaks::AFTER_A_CRASH } else { leaks::EXACTLY };
        let (vfs, taken) = (self.vfs.clone(), self.taken());
        let World { db, .. } = self;
        leaks::end(db, &vfs, Path::new(DB), waste);
        taken
    }
}

fn chosen(case: u64) -> Options {
    let random = &mut Random::new(case.wrapping_mul(104_729));
    let profiles = Options::profiles();
    let at = case as usize % (profiles.len() + 1);
    let mut options = small(profiles.get(at).copied().unwrap_or("sateen"), 16 << 10);
    options.wal = if random.one_in(4) { WalMode::SyncEachWrite } else { WalMode::Buffered };
    let family = &mut options.column_family;
    family.merge_operator = Some(appending());
    // Small tables, many to a file.
    family.table_bytes = 1 << 10 << random.below(2);
    family.flush_table_bytes = family.table_bytes;
    if !random.one_in(4) {
        family.compaction_files = true;
        family.group_compaction_bytes = 256 << 10;
    }
    if at == profiles.len() {
        family.regions = Regions::at(["key00400", "key00800"]).unwrap();
    }
    options
}

fn run(case: u64, steps: u64) -> Taken {
    let _time = VirtualTime::begin(case);
    let mut random = Random::new(case);
    let mut world = World::new(chosen(case), random.one_in(3));
    // All keys once.
    for number in 0..KEYS {
        let (key, value) = (format!("key{number:05}").into_bytes(), vec![b'0'; 100]);
        world.db.put(&key, &value).unwrap();
        world.model.insert(key, value);
    }
    let replay = format!("REPLAY: cargo xtask rel replay --suite punch --case {case}");
    let watch = Watch::new(replay);
    for _ in 0..steps {
        advance(Duration::from_micros(random.below(1000)));
        world.act(&mut random);
        watch.step();
    }
    world.end()
}

/// Where the file has data and where holes: the next place of the kind from `at` on.
fn next_hole(file: &std::fs::File, at: u64) -> u64 {
    rustix::fs::seek(file, SeekFrom::Hole(at)).unwrap()
}

fn next_data(file: &std::fs::File, at: u64) -> Option<u64> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(at) => Some(at),
        // Nothing but a hole to the end.
        Err(rustix::io::Errno::NXIO) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Live tables have no hole, and what is between them is nothing but holes. Returns how many holes
/// there are.
fn holes_are_where_they_should_be(path: &Path) -> u64 {
    let vfs = PosixVfs::new();
    let named = named(&vfs, path);
    let mut holes = 0;
    for (file, ranges) in &named.extents {
        if named.values.contains(file) {
            continue;
        }
        let end = directory_begins(&contents(&vfs, file).unwrap());
        let handle = std::fs::File::open(file).unwrap();
        let mut ranges = ranges.clone();
        ranges.sort_by_key(|range| range.start);
        let mut at = PAGE;
        for range in ranges.iter().cloned().chain(std::iter::once(end..end)) {
            let hole = next_hole(&handle, range.start as u64);
            assert!(hole >= range.end as u64, "{file:?}: a hole at {hole} in a table {range:?}");
            if at < range.start {
                let data = next_data(&handle, at as u64).unwrap_or(u64::MAX);
                assert!(
                    data >= range.start as u64,
                    "{file:?}: data at {data}, and no table from {at} to {}",
                    range.start
                );
                holes += 1;
            }
            at = range.end.next_multiple_of(PAGE);
        }
    }
    holes
}

/// Returns how many holes were found where they should be; `None` if the file system has none.
fn real_files(case: u64) -> Option<u64> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("db");
    let mut random = Random::new(case);
    let mut options = chosen(case);
    options.wal = WalMode::Buffered;
    let mut holes = 0;
    for round in 0..3 {
        let vfs: Arc<dyn Vfs> = Arc::new(PosixVfs::new());
        let db = Db::open_with(vfs, &path, options.clone(), &[]).unwrap();
        for piece in 0..6 {
            // All of it once, then parts: what is between them stays where it is.
            let (first, count) = match (round, piece) {
                (0, 0) => (0, KEYS),
                _ => (random.below(KEYS), 50 + random.below(200)),
            };
            for at in first..first + count {
                let value = vec![b'a' + random.below(26) as u8; 100];
                db.put(format!("key{at:05}"), value).unwrap();
            }
            let (begin, end) = (format!("key{first:05}"), format!("key{:05}", first + count));
            let (begin, end) = (Some(begin.as_bytes()), Some(end.as_bytes()));
            let family = db.default_column_family();
            family.compact_range(begin, end, &Default::default()).unwrap();
            drop(family);
            leaks::bring_to_rest(&db);
            if !db.metrics().table_files.punching {
                return None;
            }
            holes += holes_are_where_they_should_be(&path);
        }
        leaks::assert_at_rest(&db);
        assert_sound(&db);
        db.close().unwrap();
    }
    Some(holes)
}

/// The profile and everything else by the number of the case; see `rel.rs`.
#[test]
#[ignore = "run by cargo xtask rel punch"]
fn rel() {
    const REQUIRED: &[&str] = &["punches", "names removed", "holes in real files"];
    let suite = crate::support::rel::Suite::new("punch", "punches").requires(REQUIRED);
    suite.run(crate::support::rel::processors(), |suite, case| {
        if case.is_multiple_of(40) {
            match real_files(case) {
                Some(holes) => suite.count("holes in real files", holes),
                None => println!("SKIPPED(the file system of target/tmp has no holes)"),
            }
            return;
        }
        let taken = run(case, 200);
        suite.count("punches", taken.punches);
        suite.count("files cut", taken.cuts);
        suite.count("names removed", taken.names);
    });
}

#[test]
fn nothing_reachable_is_taken_away() {
    let punches: u64 = (1..=Options::profiles().len() as u64 + 1)
        .map(|case| {
            println!("REPLAY: cargo xtask rel replay --suite punch --case {case}");
            run(case, 60).punches
        })
        .sum();
    println!("{punches} punches");
    assert!(punches > 100);
}

#[test]
fn holes_in_real_files_are_where_the_manifest_says() {
    let found: Option<Vec<u64>> = (1..=Options::profiles().len() as u64).map(real_files).collect();
    match found {
        Some(found) => assert!(found.iter().sum::<u64>() > 10, "{found:?}"),
        None => println!("SKIPPED(the file system of target/tmp has no holes)"),
    }
}
