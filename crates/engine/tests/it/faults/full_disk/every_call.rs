//! Disks that are full, or fail: an operation gives an error or the exact answer, never a wrong
//! one. Nothing acknowledged is lost; reads go on; once the cause is gone, writes do, without
//! reopening.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sateen::vfs::{CrashChoice, Fault, FaultRule, FaultVfs, MemVfs, Vfs, VfsOperation};
use sateen::{
    CompactRangeOptions, Db, Error, Health, Options, ReadOptions, WalMode, WriteBatch, WriteOptions,
};

use crate::support::common::{Contents, Random, as_vfs, assert_sound, read_all, tiny};

const MARK: &[u8] = b"~commit";
const OTHER: &str = "other";
/// Long after this, on any machine, a database that mends itself has done so.
const PATIENCE: Duration = Duration::from_secs(60);

/// The rule that strikes the n-th call.
type RuleOf<'a> = &'a (dyn Fn(u64) -> FaultRule + Sync);

/// Keys of a commit, each with its family, and its new value if it is not deleted.
type Commit = Vec<(usize, Vec<u8>, Option<Vec<u8>>)>;

/// Commits of which each knows its number, and what the database holds after each.
struct Script {
    commits: Vec<Commit>,
    states: Vec<[Contents; 2]>,
}

impl Script {
    fn new(seed: u64, commits: usize) -> Script {
        let mut random = Random::new(seed);
        let mut script = Script { commits: vec![Vec::new()], states: vec![Default::default()] };
        for number in 1..=commits {
            let mut entries = Vec::new();
            for _ in 0..=random.below(4) {
                let key = format!("key{:03}", random.below(100)).into_bytes();
                let fill = vec![b'a' + (random.below(26) as u8); random.below(120) as usize];
                let value = (!random.one_in(4)).then_some(fill);
                entries.push((usize::from(random.one_in(3)), key, value));
            }
            for family in 0..2 {
                entries.push((family, MARK.to_vec(), Some(number.to_string().into_bytes())));
            }
            let mut state = script.states[number - 1].clone();
            for (family, key, value) in &entries {
                match value {
                    Some(value) => state[*family].insert(key.clone(), value.clone()),
                    None => state[*family].remove(key),
                };
            }
            script.commits.push(entries);
            script.states.push(state);
        }
        script
    }

    fn write(&self, db: &Db, number: usize, sync: bool) -> Result<(), Error> {
        let other = db.column_family(OTHER).expect("the other column family");
        let mut batch = WriteBatch::new();
        for (family, key, value) in &self.commits[number] {
            match (value, family) {
                (Some(value), 0) => batch.put(key, value).unwrap(),
                (Some(value), _) => batch.to(&other).put(key, value).unwrap(),
                (None, 0) => batch.delete(key).unwrap(),
                (None, _) => batch.to(&other).delete(key).unwrap(),
            }
        }
        db.write(&batch, &WriteOptions { sync, ..WriteOptions::default() })
    }

    /// The database holds exactly a number of commits between the two; returns it.
    fn assert_holds(&self, db: &Db, fewest: usize, most: usize, what: &str) -> usize {
        let other = db.column_family(OTHER).expect("the other column family");
        let families = [db.default_column_family(), other];
        let found = families.map(|family| read_all(&family, &ReadOptions::default()));
        let marks = found.each_ref().map(|found| mark_of(found.get(MARK)));
        assert_eq!(marks[0], marks[1], "{what}: half a batch");
        let number = marks[0];
        assert!((fewest..=most).contains(&number), "{what}: {number} not in {fewest}..={most}");
        assert!(found == self.states[number], "{what}: wrong contents at commit {number}");
        number
    }
}

fn mark_of(value: Option<&Vec<u8>>) -> usize {
    value.map_or(0, |text| String::from_utf8(text.clone()).unwrap().parse().unwrap())
}

fn open(vfs: Arc<dyn Vfs>, options: &Options) -> Result<Db, Error> {
    let options = Options { create_missing_column_families: true, ..options.clone() };
    let family = options.column_family.clone();
    Db::open_with(vfs, "/db", options, &[(OTHER, family)])
}

/// Waits until writes are possible: by itself with threads, through `step` without.
fn until_well(db: &Db, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while db.health().0 != Health::Ok {
        if db.options().background_threads == 0 {
            db.step().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
        assert!(Instant::now() < deadline, "{what}: still {:?}", db.health());
    }
}

/// A job that met the full disk may say so only now: that passes as it did before.
fn until_idle(db: &Db, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = db.wait_idle() {
        assert!(error.is_no_space() && Instant::now() < deadline, "{what}: {error}");
        until_well(db, what);
    }
}

/// The two ways in which a disk is full here.
enum Disk {
    Capacity(MemVfs),
    Faulty(MemVfs, FaultVfs),
}

impl Disk {
    fn vfs(&self) -> Arc<dyn Vfs> {
        match self {
            Disk::Capacity(vfs) => as_vfs(vfs),
            Disk::Faulty(_, vfs) => Arc::new(vfs.clone()),
        }
    }
    fn mem(&self) -> &MemVfs {
        match self {
            Disk::Capacity(vfs) | Disk::Faulty(vfs, _) => vfs,
        }
    }
    fn fill(&self) {
        match self {
            Disk::Capacity(vfs) => vfs.set_capacity(Some(vfs.used_bytes() + 8192)),
            Disk::Faulty(_, vfs) => {
                for operation in [VfsOperation::Write, VfsOperation::Create] {
                    vfs.add(FaultRule::new(Fault::NoSpace).on(operation));
                }
            }
        }
    }
    fn empty(&self) {
        match self {
            Disk::Capacity(vfs) => vfs.set_capacity(None),
            Disk::Faulty(_, vfs) => vfs.clear(),
        }
    }
}

fn fills_up_and_recovers(disk: &Disk, options: &Options, cycles: usize, what: &str) {
    let script = Script::new(11, 400 * cycles);
    let db = open(disk.vfs(), options).unwrap();
    let (mut done, mut refused) = (0, 0);
    for cycle in 0..cycles {
        let what = format!("{what}, cycle {cycle}");
        for _ in 0..60 {
            done += 1;
            script.write(&db, done, done % 7 == 0).unwrap();
        }
        disk.fill();
        let error = loop {
            if let Err(error) = script.write(&db, done + 1, done % 7 == 0) {
                break error;
            }
            done += 1;
            assert!(done < 400 * (cycle + 1) - 60, "{what}: a full disk takes writes for ever");
        };
        assert!(error.is_no_space(), "{what}: {error}");
        for _ in 0..3 {
            let error = script.write(&db, done + 1, false).unwrap_err();
            assert!(error.is_no_space(), "{what}: {error}");
            refused += 1;
        }
        let (health, cause) = db.health();
        assert_eq!(health, Health::Degraded, "{what}");
        assert!(cause.unwrap().is_no_space(), "{what}");
        // The write that failed may be there; nothing else is different.
        script.assert_holds(&db, done, done + 1, &what);
        disk.empty();
        until_well(&db, &what);
        done += 1;
        script.write(&db, done, true).unwrap();
        script.assert_holds(&db, done, done, &what);
        let image = disk.mem().crash_image(CrashChoice::SyncedOnly);
        let after = open(as_vfs(&image), options).unwrap();
        script.assert_holds(&after, done, done, &format!("{what}, after a power loss"));
        assert_sound(&after);
    }
    assert_eq!(refused, 3 * cycles);
    until_idle(&db, what);
    assert_sound(&db);
    db.close().unwrap();
    drop(db);
    let db = open(disk.vfs(), options).unwrap();
    script.assert_holds(&db, done, done, what);
    assert_sound(&db);
}

fn with_threads() -> Options {
    Options { background_threads: 2, ..tiny() }
}

#[test]
fn a_full_disk_without_threads() {
    fills_up_and_recovers(&Disk::Capacity(MemVfs::new()), &tiny(), 3, "capacity, no threads");
}

#[test]
fn a_full_disk_with_threads() {
    fills_up_and_recovers(&Disk::Capacity(MemVfs::new()), &with_threads(), 3, "capacity, threads");
}

#[test]
fn a_disk_that_says_it_is_full_without_threads() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    fills_up_and_recovers(&Disk::Faulty(mem, faulty), &tiny(), 3, "faults, no threads");
}

#[test]
fn a_disk_that_says_it_is_full_with_threads() {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    fills_up_and_recovers(&Disk::Faulty(mem, faulty), &with_threads(), 3, "faults, threads");
}

#[test]
fn deletes_and_a_compaction_free_space_on_a_nearly_full_disk() {
    let vfs = MemVfs::new();
    let db = open(as_vfs(&vfs), &tiny()).unwrap();
    let keys: Vec<String> = (0..400).map(|i| format!("key{i:04}")).collect();
    for key in &keys {
        db.put(key, vec![b'x'; 500]).unwrap();
    }
    db.flush_all().unwrap();
    db.wait_idle().unwrap();
    let before = vfs.used_bytes();
    vfs.set_capacity(Some(before + (128 << 10)));
    for key in &keys {
        db.delete(key).unwrap();
    }
    let options = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
    db.compact_range(None, None, &options).unwrap();
    db.wait_idle().unwrap();
    while db.step().unwrap() {}
    let after = vfs.used_bytes();
    let files: Vec<_> = vfs.list(std::path::Path::new("/db")).unwrap();
    assert!(after * 3 < before, "{before} bytes before, {after} after: {files:?}");
    for key in keys.iter().take(200) {
        db.put(key, vec![b'y'; 100]).unwrap();
    }
    assert_sound(&db);
}

/// What happened in one run under a fault.
#[derive(Default)]
struct Told {
    errors: usize,
}

/// Writes a fixed script while a fault strikes, mends the disk at the first error that anything
/// returns, and goes on. Every answer on the way must be exact.
struct Trial<'a> {
    script: &'a Script,
    options: &'a Options,
    mem: MemVfs,
    faulty: FaultVfs,
    what: String,
    told: Told,
    /// Commits that survive a power loss.
    durable: usize,
    done: usize,
}

impl Trial<'_> {
    fn open(&mut self) -> Db {
        match open(Arc::new(self.faulty.clone()), self.options) {
            Ok(db) => db,
            Err(error) => {
                self.tell(&error);
                open(Arc::new(self.faulty.clone()), self.options)
                    .unwrap_or_else(|error| panic!("{}: cannot be opened: {error}", self.what))
            }
        }
    }

    /// An error names a file. The disk is mended.
    fn tell(&mut self, error: &Error) {
        let text = error.to_string();
        assert!(text.contains('/'), "{}: names no file: {text}", self.what);
        self.told.errors += 1;
        self.faulty.clear();
    }

    /// Tries until it works; a database that refuses is resumed.
    fn insist<T>(&mut self, db: &Db, mut act: impl FnMut(&Db) -> Result<T, Error>) -> T {
        for _ in 0..4 {
            match act(db) {
                Ok(value) => return value,
                Err(error) => {
                    self.tell(&error);
                    db.resume()
                        .unwrap_or_else(|error| panic!("{}: cannot resume: {error}", self.what));
                }
            }
        }
        panic!("{}: fails on and on: {:?}", self.what, db.health());
    }

    fn run(&mut self) {
        let db = self.open();
        let script = self.script;
        for number in 1..script.commits.len() {
            let sync = number % 5 == 0;
            let mut first = true;
            self.insist(&db, |db| {
                let written = script.write(db, number, sync);
                if written.is_err() && std::mem::take(&mut first) {
                    // Reads go on, and are right, while writes are refused.
                    if let Ok(mark) = db.get(MARK) {
                        let mark = mark_of(mark.as_ref());
                        assert!(mark == number || mark + 1 == number, "mark {mark} at {number}");
                    }
                }
                written
            });
            self.done = number;
            if sync {
                self.durable = number;
            }
            if number % 3 == 0 {
                db.step().unwrap();
            }
            match number % 40 {
                13 => self.insist(&db, Db::flush_all),
                29 => self.insist(&db, |db| {
                    let family = db.default_column_family();
                    family.compact_range(None, None, &CompactRangeOptions::default())
                }),
                37 => self.insist(&db, |db| check_reads(script, db, number)),
                _ => {}
            }
        }
        self.insist(&db, Db::wait_idle);
        self.insist(&db, |db| check_reads(script, db, number_of(script)));
        self.faulty.clear();
        script.assert_holds(&db, self.done, self.done, &self.what);
        assert_sound(&db);
        let image = self.mem.crash_image(CrashChoice::SyncedOnly);
        let after = open(as_vfs(&image), self.options)
            .unwrap_or_else(|error| panic!("{}: after a power loss: {error}", self.what));
        script.assert_holds(&after, self.durable, self.done, &self.what);
        drop(after);
        db.close().unwrap_or_else(|error| panic!("{}: {error}", self.what));
        drop(db);
        let db = self.open();
        script.assert_holds(&db, self.done, self.done, &self.what);
        assert_sound(&db);
        assert!(self.mem.breaches().is_empty() && self.faulty.breaches().is_empty());
    }
}

fn number_of(script: &Script) -> usize {
    script.commits.len() - 1
}

/// Reads keys singly and by scan; an error is passed on, an answer must be right.
fn check_reads(script: &Script, db: &Db, number: usize) -> Result<(), Error> {
    let state = &script.states[number][0];
    for i in 0..100 {
        let key = format!("key{i:03}").into_bytes();
        assert_eq!(db.get(&key)?.as_ref(), state.get(&key), "key {i} at commit {number}");
    }
    let mut iter = db.cursor(&ReadOptions::default())?;
    let mut found = BTreeMap::new();
    iter.seek_to_first();
    while iter.valid() {
        found.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status()?;
    assert!(found == *state, "a scan at commit {number}");
    Ok(())
}

fn scale() -> usize {
    std::env::var("SATEEN_FAULT_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The number of calls to which `fault` can happen when nothing does.
fn count_calls(script: &Script, options: &Options, wanted: &dyn Fn(VfsOperation) -> bool) -> u64 {
    let mem = MemVfs::new();
    let faulty = FaultVfs::new(as_vfs(&mem));
    let (what, told) = ("no fault".to_owned(), Told::default());
    let mut trial =
        Trial { script, options, mem, faulty: faulty.clone(), what, told, durable: 0, done: 0 };
    trial.run();
    assert_eq!(trial.told.errors, 0);
    let sites = faulty.sites();
    sites.iter().filter(|(site, _)| wanted(site.operation)).map(|(_, counts)| counts.calls).sum()
}

/// Strikes call after call; returns in how many trials the fault happened, and was told.
fn strike(options: &Options, rules: &[(&str, RuleOf<'_>, u64)], stride: usize) -> (usize, usize) {
    let script = Script::new(5, 90);
    let (tried, told) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for (name, rule, calls) in rules {
        let next = AtomicUsize::new(1);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let n = next.fetch_add(stride, Ordering::Relaxed) as u64;
                        if n > *calls {
                            return;
                        }
                        let mem = MemVfs::new();
                        let faulty = FaultVfs::new(as_vfs(&mem));
                        faulty.add(rule(n));
                        let mut trial = Trial {
                            script: &script,
                            options,
                            mem,
                            faulty,
                            what: format!("{name}, call {n}"),
                            told: Told::default(),
                            durable: 0,
                            done: 0,
                        };
                        trial.run();
                        tried.fetch_add(1, Ordering::Relaxed);
                        told.fetch_add(usize::from(trial.told.errors > 0), Ordering::Relaxed);
                    }
                });
            }
        });
    }
    (tried.into_inner(), told.into_inner())
}

#[test]
fn every_call_fails_once_and_for_good() {
    let script = Script::new(5, 90);
    let options = tiny();
    let calls = |fault: Fault| count_calls(&script, &options, &|call| fault.applies_to(call));
    let (io, full) = (calls(Fault::Io), calls(Fault::NoSpace));
    let rules: [(&str, RuleOf<'_>, u64); 4] = [
        ("EIO once", &|n| FaultRule::new(Fault::Io).nth(n), io),
        ("EIO for good", &|n| FaultRule::new(Fault::Io).from_nth(n), io),
        ("ENOSPC once", &|n| FaultRule::new(Fault::NoSpace).nth(n), full),
        ("ENOSPC for good", &|n| FaultRule::new(Fault::NoSpace).from_nth(n), full),
    ];
    let stride = (17 / scale()).max(1);
    let (tried, told) = strike(&options, &rules, stride);
    println!("{tried} trials of {} calls, {told} told of an error", 2 * (io + full));
    assert!(tried > 100 && told > tried / 4);
}

#[test]
fn every_sync_fails() {
    let script = Script::new(5, 90);
    for wal in [WalMode::Buffered, WalMode::SyncEachWrite] {
        let options = Options { wal, ..tiny() };
        let calls = |operation| count_calls(&script, &options, &|call| call == operation);
        let (files, directories) = (calls(VfsOperation::Sync), calls(VfsOperation::SyncDir));
        let on = |operation, n| FaultRule::new(Fault::Io).on(operation).nth(n);
        let rules: [(&str, RuleOf<'_>, u64); 2] = [
            ("fsync", &|n| on(VfsOperation::Sync, n), files),
            ("fsync of a directory", &|n| on(VfsOperation::SyncDir, n), directories),
        ];
        let stride = (4 / scale()).max(1);
        let (tried, told) = strike(&options, &rules, stride);
        println!("{tried} of {} syncs failed, {told} were told", files + directories);
        assert!(tried > 20 && told > tried / 2);
    }
}

/// A killed process leaves a log that can be read and is not durable. What recovery makes of it
/// must not outlive it in one column family alone.
#[test]
fn a_power_loss_during_the_recovery_from_a_kill_leaves_whole_batches() {
    let mut images = 0;
    for seed in 1..=3 {
        let mem = MemVfs::new();
        let faulty = FaultVfs::new(as_vfs(&mem));
        let mut options = tiny();
        // One flush of each family in the recovery, and time to lose the power between them.
        options.column_family.memtable_bytes = 32 << 10;
        let script = Script::new(seed, 60);
        let db = open(Arc::new(faulty.clone()), &options).unwrap();
        for number in 1..=40 {
            script.write(&db, number, number == 10).unwrap();
        }
        // Nothing is stored on the way out: as if the process were gone.
        faulty.add(FaultRule::new(Fault::Io));
        script.write(&db, 41, false).unwrap_err();
        let _refused = db.close();
        drop(db);
        let recording = mem.record();
        let db = open(as_vfs(&mem), &options).unwrap();
        script.assert_holds(&db, 40, 41, "after the kill");
        drop(db);
        for operation in 0..=recording.len() {
            let choices = recording.choices_at(operation, 2);
            let stride = choices.len().div_ceil(12);
            for choice in choices.into_iter().step_by(stride) {
                let what = format!("seed {seed}, operation {operation}, {choice:?}");
                let image = recording.image_at(operation, choice);
                let db = open(as_vfs(&image), &options)
                    .unwrap_or_else(|error| panic!("{what}: cannot be opened: {error}"));
                script.assert_holds(&db, 10, 41, &what);
                images += 1;
            }
        }
    }
    println!("{images} images");
}

#[test]
fn a_disk_too_small_for_a_log_s_reserve_holds_a_small_database() {
    let vfs = MemVfs::new();
    vfs.set_capacity(Some(256 << 10));
    let options = Options { background_threads: 0, ..Options::default() };
    assert!(options.column_family.memtable_bytes > 256 << 10);
    for _ in 0..2 {
        let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
        db.put("key", "value").unwrap();
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
        db.close().unwrap();
    }
}
