//! Overload: a child with a memory budget, in a memory cgroup of a quarter more, is offered twice
//! the writes that its device sustains, while the device stalls now and then and a thousand
//! iterators hold what is being overwritten. Its memory stays within the budget (and what the
//! iterators take for themselves), no write waits longer than it said it would, the iterators show
//! what they were opened on, and nothing is lost.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sateen::vfs::{Fault, FaultRule, FaultVfs, IoClass, PosixVfs, VfsOperation};
use sateen::{Cursor, Db, Error, Options, ReadOptions, WriteOptions};

use crate::support::common::{Random, assert_sound, own_test};
use crate::support::rel::Suite;

const DIRECTORY: &str = "SATEEN_OVERLOAD_DIRECTORY";
const CASE: &str = "SATEEN_OVERLOAD_CASE";
const BUDGET: u64 = 96 << 20;
/// Bytes a second, of reads and of writes.
const DEVICE: u64 = 24 << 20;
const WRITERS: u64 = 4;
/// What is overwritten, and what never is: it fills the cache.
const KEYS: u64 = 8_000;
const COLD_KEYS: u64 = 40_000;
const VALUE_BYTES: u64 = 1024;
/// Opened while all of that is overwritten so often.
const ITERATORS: usize = 1_000;
const OVERWRITES: u64 = 4;
/// What an iterator takes, besides what it holds of the store: it is its caller's, and comes on top
/// of the budget.
const ITERATOR_BYTES: u64 = 32 << 10;
/// What the store sustains is measured for so long, then twice as much is offered for so long, and
/// then with iterators.
const MEASURED: Duration = Duration::from_secs(3);
const OVERLOADED: Duration = Duration::from_secs(12);
const HELD: Duration = Duration::from_secs(8);
/// What a write says that it waits at most, and when it must have an answer: the bar.
const DEADLINE: Duration = Duration::from_millis(500);
const UNANSWERED: Duration = Duration::from_secs(1);
/// The longest stall. The short form has shorter ones.
const STALL_SECONDS_MAX: u64 = 10;

fn options(number: u64) -> Options {
    let profiles = Options::profiles();
    let profile = profiles[(number % profiles.len() as u64) as usize];
    let mut options = Options { memory_budget: Some(BUDGET), ..Options::profile(profile).unwrap() };
    options.background_threads = 2;
    options.block_cache_bytes = BUDGET;
    options.slice_bytes_max = 256 << 10;
    let family = &mut options.column_family;
    family.memtable_bytes = 2 << 20;
    family.table_bytes = 1 << 20;
    family.level_base_bytes = 8 << 20;
    family.level0_slowdown = 8;
    family.level0_stop = 12;
    options
}

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// The `version`-th value of a key; not to be compressed.
fn value(n: u64, version: u64) -> Vec<u8> {
    let mut random = Random::new(n << 32 | version);
    let words = (1..VALUE_BYTES / 8).flat_map(|_| random.next().to_le_bytes());
    version.to_le_bytes().into_iter().chain(words).collect()
}

/// What it says on the pipe when it is over.
#[derive(Default)]
struct Seen {
    acknowledged: AtomicU64,
    refused: AtomicU64,
    /// Nanoseconds that a write waited at most, the device's stalls left out.
    longest: AtomicU64,
    /// Until when nothing that takes long is held against the store.
    stalled_until: Mutex<Option<Instant>>,
}

struct Load<'a> {
    db: &'a Db,
    seen: &'a Seen,
    /// The last acknowledged version of each key. A key belongs to one writer.
    versions: &'a [AtomicU64],
    over: &'a AtomicBool,
}

impl Load<'_> {
    /// Writes every key of a writer's own in turn; `pace` is the time from one write to the next.
    fn write(&self, writer: u64, pace: Duration) {
        let begin = Instant::now();
        for count in 0.. {
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let n = (count * WRITERS + writer) % KEYS;
            let version = self.versions[n as usize].load(Ordering::Relaxed) + 1;
            let options = WriteOptions { deadline: Some(DEADLINE), ..WriteOptions::default() };
            let family = self.db.default_column_family();
            let value = value(n, version);
            let began = Instant::now();
            let written = family.writing(&options).put(key(n), value);
            self.answered(began);
            match written {
                Ok(()) => {
                    self.versions[n as usize].store(version, Ordering::Relaxed);
                    self.seen.acknowledged.fetch_add(1, Ordering::Relaxed);
                }
                Err(Error::WouldStall { .. }) => {
                    self.seen.refused.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => panic!("{error}"),
            }
            // Whoever is late catches up: the offer does not fall with the answers.
            let next = begin + pace * u32::try_from(count + 1).unwrap();
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    /// All writers at that pace, for so long.
    fn offer(&self, pace: Duration, time: Duration) {
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                scope.spawn(move || self.write(writer, pace));
            }
            std::thread::sleep(time);
            self.over.store(true, Ordering::Relaxed);
        });
    }

    fn answered(&self, began: Instant) {
        let took = began.elapsed();
        let stalled = self.seen.stalled_until.lock().unwrap();
        if stalled.is_none_or(|until| began > until) {
            let took = u64::try_from(took.as_nanos()).unwrap();
            self.seen.longest.fetch_max(took, Ordering::Relaxed);
        }
    }

    fn read(&self) {
        let mut random = Random::new(1);
        while !self.over.load(Ordering::Relaxed) {
            let n = random.below(KEYS + COLD_KEYS);
            let versions = self.versions.get(n as usize);
            let least = versions.map_or(1, |version| version.load(Ordering::Relaxed));
            let found = self.db.get(key(n)).unwrap();
            let version = version_of(found.as_deref());
            assert!(version >= least, "key {n}: version {version} after {least}");
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

fn version_of(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value[..8].try_into().unwrap()))
}

const STALLING: [VfsOperation; 3] = [VfsOperation::Read, VfsOperation::Write, VfsOperation::Sync];

/// The device does nothing for some seconds, again and again.
fn stall(vfs: &FaultVfs, seen: &Seen, random: &mut Random, over: &AtomicBool) {
    let short = Duration::from_millis(20);
    let mut next = Instant::now() + Duration::from_secs(1 + random.below(3));
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(short);
        if Instant::now() < next {
            continue;
        }
        let most = if random.one_in(6) { STALL_SECONDS_MAX } else { 3 };
        let length = Duration::from_secs(1 + random.below(most));
        // A log is written to memory: a write waits for a device that stalls when memory is full.
        let with_log = random.one_in(2);
        *seen.stalled_until.lock().unwrap() = Some(Instant::now() + length + UNANSWERED);
        let classes = IoClass::ALL.into_iter().filter(|class| with_log || *class != IoClass::Wal);
        let rules: Vec<_> = classes
            .flat_map(|class| STALLING.map(|on| FaultRule::new(Fault::Hang).on(on).class(class)))
            .map(|rule| vfs.add(rule))
            .collect();
        let end = Instant::now() + length;
        while Instant::now() < end && !over.load(Ordering::Relaxed) {
            std::thread::sleep(short);
        }
        for rule in rules {
            vfs.remove_rule(rule);
        }
        *seen.stalled_until.lock().unwrap() = Some(Instant::now() + UNANSWERED);
        next = Instant::now() + Duration::from_secs(2 + random.below(4));
    }
}

type Held = (Cursor, u64, Vec<u8>);

/// Iterators, opened one after the other while everything is overwritten some times, each with what
/// it showed.
fn open_iterators(load: &Load<'_>, wanted: usize) -> Vec<Held> {
    let begin = load.seen.acknowledged.load(Ordering::Relaxed);
    let mut held = Vec::new();
    while held.len() < wanted && !load.over.load(Ordering::Relaxed) {
        let count = held.len() as u64;
        let written = load.seen.acknowledged.load(Ordering::Relaxed) - begin;
        if written < count * OVERWRITES * KEYS / wanted as u64 {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let n = count * 7 % KEYS;
        let mut iter = load.db.cursor(&ReadOptions::default()).unwrap();
        iter.seek(key(n));
        let value = iter.value().to_vec();
        held.push((iter, n, value));
    }
    held
}

/// The child: says what it has seen.
#[test]
fn is_overloaded() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let number: u64 = std::env::var(CASE).unwrap().parse().unwrap();
    // Until it is where its memory is limited.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let vfs = FaultVfs::new(Arc::new(PosixVfs::new()));
    println!("\nBASE {}", resident());
    let options = options(number);
    let db = Db::open_with(Arc::new(vfs.clone()), &directory, options.clone(), &[]).unwrap();
    let versions: Vec<_> = (0..KEYS).map(|_| AtomicU64::new(1)).collect();
    for n in 0..KEYS + COLD_KEYS {
        db.put(key(n), value(n, 1)).unwrap();
    }
    db.flush_all().unwrap();
    for operation in [VfsOperation::Read, VfsOperation::Write] {
        for class in IoClass::ALL.into_iter().filter(|class| *class != IoClass::Wal) {
            vfs.add(FaultRule::new(Fault::Bandwidth(DEVICE)).on(operation).class(class));
        }
    }
    let seen = Seen::default();
    overload(&db, &vfs, &seen, &versions, number);
    vfs.clear();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!("\nANSWERS {} {}", count(&seen.acknowledged), count(&seen.refused));
    println!("\nLONGEST {}", count(&seen.longest));
    db.close().unwrap();
    drop(db);
    let db = Db::open(&directory, options).unwrap();
    for n in 0..KEYS + COLD_KEYS {
        let version = versions.get(n as usize).map_or(1, count);
        let found = db.get(key(n)).unwrap();
        assert!(found == Some(value(n, version)), "key {n}, version {version}: lost");
    }
    assert_sound(&db);
    db.close().unwrap();
    println!("\nDONE");
}

/// Twice what is sustained, first as it is and then with iterators. Says what memory it took.
fn overload(db: &Db, vfs: &FaultVfs, seen: &Seen, versions: &[AtomicU64], number: u64) {
    let over = AtomicBool::new(false);
    let load = Load { db, seen, versions, over: &over };
    load.offer(Duration::ZERO, MEASURED);
    let sustained = seen.acknowledged.load(Ordering::Relaxed).max(1);
    // Each of the writers takes its part of twice the rate.
    let pace = MEASURED * WRITERS as u32 / 2 / u32::try_from(sustained).unwrap();
    println!("\nSUSTAINED {} writes a second", sustained / MEASURED.as_secs());
    let random = &mut Random::new(number);
    for (name, iterators, time) in [("PLAIN", 0, OVERLOADED), ("HELD", ITERATORS, HELD)] {
        over.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let (load, random) = (&load, &mut *random);
            let memory = scope.spawn(move || watch_memory(db, load.over));
            let iterators = scope.spawn(move || open_iterators(load, iterators));
            scope.spawn(move || load.read());
            scope.spawn(move || stall(vfs, seen, random, load.over));
            load.offer(pace, time);
            let mut iterators = iterators.join().unwrap();
            println!("\n{name} {}", memory.join().unwrap());
            println!("\n{} ITERATORS of {name}", iterators.len());
            for (iter, n, value) in &mut iterators {
                iter.seek(key(*n));
                assert!(iter.value() == value, "an iterator shows another value of key {n}");
            }
        });
    }
}

/// The most memory that the process had, and what the store says of that moment: where the two
/// differ, something is not in its account.
fn watch_memory(db: &Db, over: &AtomicBool) -> String {
    let (mut most, mut what) = (0, String::new());
    while !over.load(Ordering::Relaxed) {
        let memory = db.metrics().memory;
        let bytes = resident();
        if bytes > most {
            most = bytes;
            what = format!("{bytes} of which {} {:?}", memory.total(), memory.owners());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    what
}

/// Bytes of this process's own memory that are in RAM.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().split(' ').next().unwrap().parse::<u64>().unwrap() << 10
}

/// A limit of memory for a process; gone when this is dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    /// Of version 1 or 2, whichever there is.
    fn new(name: &str, bytes: u64) -> Option<Cgroup> {
        let root = Path::new("/sys/fs/cgroup");
        let ways = [("memory", "memory.limit_in_bytes"), ("", "memory.max")];
        ways.into_iter().find_map(|(controller, limit)| {
            let folder = root.join(controller).join(name);
            std::fs::create_dir(&folder).ok()?;
            let group = Cgroup(folder);
            // Without the controller there is no such file; dropping takes the folder away.
            let limit = group.0.join(limit);
            (limit.exists() && std::fs::write(&limit, bytes.to_string()).is_ok()).then_some(group)
        })
    }

    fn take(&self, process: u32) {
        std::fs::write(self.0.join("cgroup.procs"), process.to_string()).unwrap();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // What was in it may take a moment to go.
        for _ in 0..200 {
            match std::fs::remove_dir(&self.0) {
                Err(_) if self.0.exists() => std::thread::sleep(Duration::from_millis(10)),
                _ => return,
            }
        }
    }
}

/// Killed and waited for when it is dropped.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _it_may_be_over = self.0.kill();
        let _status = self.0.wait();
    }
}

fn case(suite: &Suite, number: u64) {
    let parent = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let limit = (BUDGET + ITERATORS as u64 * ITERATOR_BYTES) / 4 * 5;
    let group = Cgroup::new(&format!("sateen-overload-{}", std::process::id()), limit);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        &own_test(module_path!(), "is_overloaded"),
        "--nocapture",
        "--test-threads=1",
    ]);
    child.env(DIRECTORY, parent.path().join("db")).env(CASE, number.to_string());
    let mut child = Child(child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    if let Some(group) = &group {
        group.take(child.0.id());
    }
    let mut stdin = child.0.stdin.take().unwrap();
    stdin.write_all(b"\n").unwrap();
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let said: Vec<_> = lines.map_while(Result::ok).filter(|line| !line.is_empty()).collect();
    let status = child.0.wait().unwrap();
    let limits = if group.is_some() { "in a memory cgroup" } else { "without a memory cgroup" };
    let profile = options(number).profile;
    let what = format!("case {number}, {profile}, {limits}");
    println!("{what}: {said:#?}");
    assert!(status.success() && said.iter().any(|line| line == "DONE"), "{what}: {status}");
    let number_in = |name: &str| -> u64 {
        let line = said.iter().find_map(|line| line.strip_prefix(name));
        let words = line.and_then(|line| line.trim().split(' ').next());
        words.unwrap_or_else(|| panic!("{what}: it did not say {name}")).parse().unwrap()
    };
    let most = BUDGET + BUDGET / 10 + number_in("BASE");
    for (name, most) in [("PLAIN", most), ("HELD", most + ITERATORS as u64 * ITERATOR_BYTES)] {
        let took = number_in(name);
        assert!(took <= most, "{what}: {took} bytes of {most}, {name}");
    }
    let longest = Duration::from_nanos(number_in("LONGEST"));
    assert!(longest <= UNANSWERED, "{what}: a write took {longest:?}");
    suite.count("overload seconds", (OVERLOADED + HELD).as_secs());
}

#[test]
#[ignore = "the suite `overload`: cargo xtask rel overload"]
fn rel() {
    // Alone: it has bars of time.
    Suite::new("overload", "overload seconds").run(1, case);
}
