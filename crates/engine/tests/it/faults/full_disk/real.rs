//! Full disks: small file systems are filled up under load. Reads go on and are exact, writes fail
//! at once and say why; when a little space is there again they go on, without reopening, and what
//! is deleted then gives its space back. Nothing that was acknowledged is lost.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::FallocateFlags;
use sateen::vfs::{PosixVfs, Vfs};
use sateen::{CompactRangeOptions, Db, Options, ReadOptions, WalMode, WriteOptions};

use crate::support::common::{Contents, Random, assert_sound, read_all, small};
use crate::support::device::{FileSystem, Mount, Place, assert_nothing_is_mounted, missing};
use crate::support::rel::Suite;

const WRITERS: usize = 2;
/// Of one database.
const CYCLES_EACH: u64 = 3;
/// What the database may fill up in a cycle.
const ROOM: u64 = 24 << 20;
/// What is given back first when it has: what one compaction may write, and four memtables.
const LITTLE: u64 = 16 << 20;
/// Less than a memtable of the default options.
const SMALL_VOLUME: u64 = 60 << 20;
/// A write to a full disk is refused within this, and one goes through within `RESUMED` once there
/// is space: the bars of the suite.
const REFUSED: Duration = Duration::from_secs(1);
const RESUMED: Duration = Duration::from_secs(5);
/// Long after this, on any machine, a compaction is over.
const PATIENCE: Duration = Duration::from_secs(120);

fn options(number: u64) -> Options {
    let profiles = Options::profiles();
    let profile = profiles[(number % profiles.len() as u64) as usize];
    let mut options = small(profile, 1 << 20);
    options.background_threads = 2;
    options.manifest_bytes_max = 64 << 10;
    options.column_family.memtables_max = 2;
    options.wal = match number % 3 {
        0 => WalMode::SyncEachWrite,
        1 => WalMode::Buffered,
        _ => WalMode::SyncInterval(Duration::from_millis(5)),
    };
    options
}

fn key(writer: usize, number: u64) -> Vec<u8> {
    format!("w{writer}-{number:08}").into_bytes()
}

/// Not to be compressed.
fn value(writer: usize, number: u64) -> Vec<u8> {
    let mut random = Random::new(number * WRITERS as u64 + writer as u64);
    let length = 256 + random.below(16_000);
    (0..length.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).collect()
}

/// What a writer has in the database: the values from the first up to the last, that one included.
#[derive(Default)]
struct Own {
    first: AtomicU64,
    last: AtomicU64,
}

impl Own {
    fn range(&self) -> (u64, u64) {
        (self.first.load(Ordering::Relaxed), self.last.load(Ordering::Relaxed))
    }
}

struct Trial<'a> {
    db: Db,
    at: &'a Path,
    what: String,
    own: [Own; WRITERS],
}

impl Trial<'_> {
    fn write(&self, writer: usize) -> Result<(), sateen::Error> {
        let own = &self.own[writer];
        let number = own.last.load(Ordering::Relaxed) + 1;
        let sync = number.is_multiple_of(16);
        let options = WriteOptions { sync, ..WriteOptions::default() };
        let family = self.db.default_column_family();
        family.writing(&options).put(key(writer, number), value(writer, number))?;
        own.last.store(number, Ordering::Relaxed);
        Ok(())
    }

    /// Writes until there is no space, and some more.
    fn fill(&self) {
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                scope.spawn(move || {
                    let mut written = 0;
                    let error = loop {
                        if let Err(error) = self.write(writer) {
                            break error;
                        }
                        written += 1;
                        assert!(written < ROOM / 1000, "{}: it never fills up", self.what);
                    };
                    assert!(error.is_no_space(), "{}: {error}", self.what);
                });
            }
        });
        // A compaction that was under way may still make room for some.
        let (mut refused, mut taken) = (0, 0);
        while refused < 40 {
            let began = Instant::now();
            let written = self.write(refused % WRITERS);
            let took = began.elapsed();
            match written {
                Ok(()) => (refused, taken) = (0, taken + 1),
                Err(error) if error.is_no_space() => refused += 1,
                Err(error) => panic!("{}: {error}", self.what),
            }
            assert!(taken < ROOM / 1000, "{}: it never fills up", self.what);
            assert!(took < REFUSED, "{}: answered only after {took:?}", self.what);
        }
    }

    /// What may be refused once more, until it is not.
    fn insist(&self, act: impl Fn() -> Result<(), sateen::Error>) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = act() {
            let patient = error.is_no_space() && Instant::now() < deadline;
            assert!(patient, "{}: {error}", self.what);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All is there; the write that failed last may be.
    fn check(&self, db: &Db) {
        let found = read_all(&db.default_column_family(), &ReadOptions::default());
        let mut expected = Contents::new();
        for (writer, own) in self.own.iter().enumerate() {
            let (first, last) = own.range();
            expected.extend(
                (first..=last)
                    .skip(usize::from(first == 0))
                    .map(|number| (key(writer, number), value(writer, number))),
            );
            let failed = key(writer, last + 1);
            if found.contains_key(&failed) {
                expected.insert(failed, value(writer, last + 1));
            }
        }
        let differ: BTreeMap<_, _> = found
            .keys()
            .map(|key| (key, "too much"))
            .chain(expected.keys().map(|key| (key, "lost")))
            .filter(|(key, _)| found.get(*key) != expected.get(*key))
            .take(8)
            .map(|(key, what)| (key.escape_ascii().to_string(), what))
            .collect();
        assert!(differ.is_empty(), "{}: {differ:?} and maybe more", self.what);
        for writer in 0..WRITERS {
            let (first, last) = self.own[writer].range();
            for number in (first.max(1)..=last).step_by(37) {
                let got = db.get(key(writer, number)).unwrap();
                assert!(got == Some(value(writer, number)), "{}: {number}", self.what);
            }
        }
    }

    fn free(&self) -> u64 {
        PosixVfs::new().free_space(self.at).unwrap()
    }

    /// What is in the directory, and what of it the file system holds.
    fn files(&self) -> BTreeMap<PathBuf, u64> {
        let directory = self.at.join("db");
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
        let of = |entry: std::fs::DirEntry| {
            let blocks = entry.metadata().map_or(0, |metadata| metadata.blocks());
            (entry.file_name().into(), blocks * 512)
        };
        entries.map(of).collect()
    }

    /// The bar: writes go on by themselves within so much of when space was there.
    fn resumes(&self) {
        let began = Instant::now();
        while let Err(error) = self.write(0) {
            assert!(error.is_no_space(), "{}: {error}", self.what);
            let health = self.db.health();
            assert!(
                began.elapsed() < RESUMED,
                "{}: {} bytes are free and it has not resumed: {health:?}",
                self.what,
                self.free()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        println!("{}: resumed after {:?}", self.what, began.elapsed());
    }

    /// Deletes the older half, one by one or at once.
    fn delete_half(&self, at_once: bool) {
        for (writer, own) in self.own.iter().enumerate() {
            let (first, last) = own.range();
            let middle = first + (last - first) / 2;
            if at_once {
                self.insist(|| self.db.delete_range(key(writer, first), key(writer, middle)));
            } else {
                (first..middle)
                    .for_each(|number| self.insist(|| self.db.delete(key(writer, number))));
            }
            own.first.store(middle, Ordering::Relaxed);
        }
    }

    /// A compaction gives back what was deleted, though there is little space for it.
    fn compact(&self) {
        let before = self.free();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let options = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
            let family = self.db.default_column_family();
            let Err(error) = family.compact_range(None, None, &options) else { break };
            assert!(error.is_no_space(), "{}: {error}", self.what);
            let there = || (self.free(), self.files(), self.db.property("rocksdb.levelstats"));
            assert!(
                Instant::now() < deadline,
                "{}: no compaction: {error}: {:?}",
                self.what,
                there()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        while self.free() < before + ROOM / 4 {
            assert!(
                Instant::now() < deadline,
                "{}: {before} bytes were free, now {}",
                self.what,
                self.free()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Takes space until so much is left.
fn ballast(path: PathBuf, bytes: u64) -> PathBuf {
    let file = std::fs::File::create_new(&path).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes).unwrap();
    file.sync_all().unwrap();
    path
}

fn cycle(trial: &Trial<'_>, random: &mut Random) {
    let little = ballast(trial.at.join("little"), LITTLE);
    let rest = trial.free().saturating_sub(ROOM);
    let rest = (rest > 0).then(|| ballast(trial.at.join("rest"), rest));
    trial.fill();
    trial.check(&trial.db);
    // It looks for space less often when it has not found any for a while.
    if random.one_in(3) {
        std::thread::sleep(Duration::from_millis(random.below(9000)));
    }
    std::fs::remove_file(little).unwrap();
    trial.resumes();
    trial.delete_half(random.one_in(2));
    trial.compact();
    if let Some(rest) = rest {
        std::fs::remove_file(rest).unwrap();
    }
    (0..200).for_each(|n| trial.insist(|| trial.write(n % WRITERS)));
    trial.check(&trial.db);
    assert_sound(&trial.db);
}

/// One file system of each kind, filled again and again.
fn case(suite: &Suite, place: &Place, kind: FileSystem, number: u64) {
    let image = place.path().join(format!("{}-{number}", kind.name()));
    kind.make(&image, kind.bytes());
    let at = place.path().join(format!("{}-{number}-mounted", kind.name()));
    let mount = Mount::new(kind, &image, &at, "");
    let directory = at.join("db");
    let mut random = Random::new(number);
    let open = || Db::open(&directory, options(number)).unwrap();
    let mut trial = Trial { db: open(), at: &at, what: String::new(), own: Default::default() };
    for number_of_cycle in 0..CYCLES_EACH {
        trial.what = format!(
            "case {number}, {}, {}, cycle {number_of_cycle}",
            kind.name(),
            trial.db.options().profile
        );
        cycle(&trial, &mut random);
        suite.count(
            match kind {
                FileSystem::Ext4 => "ext4 full-disk cycles",
                FileSystem::Xfs => "xfs full-disk cycles",
            },
            1,
        );
    }
    trial.db.close().unwrap();
    let Trial { db, what, own, .. } = trial;
    drop(db);
    // The same after a new open, of a file system that was mounted anew.
    mount.unmount();
    let mount = Mount::new(kind, &image, &at, "");
    let trial = Trial { db: open(), at: &at, what: format!("{what}, reopened"), own };
    trial.check(&trial.db);
    assert_sound(&trial.db);
    drop(trial);
    mount.unmount();
    std::fs::remove_file(image).unwrap();
}

/// A volume that is smaller than one memtable of the default options: what must be free there
/// before writes go on is a part of the volume, not of the options.
fn small_volume(place: &Place, number: u64) {
    let kind = FileSystem::Ext4;
    let image = place.path().join(format!("small-{number}"));
    kind.make(&image, SMALL_VOLUME);
    let at = place.path().join(format!("small-{number}-mounted"));
    let mount = Mount::new(kind, &image, &at, "");
    let little = ballast(at.join("little"), SMALL_VOLUME / 2);
    let db = Db::open(at.join("db"), Options::default()).unwrap();
    let what = format!("case {number}, a volume of {SMALL_VOLUME} bytes");
    let trial = Trial { db, at: &at, what, own: Default::default() };
    trial.fill();
    trial.check(&trial.db);
    std::fs::remove_file(little).unwrap();
    trial.resumes();
    trial.check(&trial.db);
    assert_sound(&trial.db);
    drop(trial);
    mount.unmount();
    std::fs::remove_file(image).unwrap();
}

#[test]
#[ignore = "the suite `enospc`: cargo xtask rel enospc"]
fn rel() {
    let suite = Suite::new("enospc", "ext4 full-disk cycles");
    if let Some(reason) = missing() {
        return suite.skip(&reason);
    }
    {
        let place = Place::new();
        // Alone: it has bars of time.
        suite.run(1, |suite, number| {
            case(suite, &place, FileSystem::Xfs, number);
            case(suite, &place, FileSystem::Ext4, number);
            small_volume(&place, number);
        });
    }
    assert_nothing_is_mounted();
}
