//! A process of its own that writes to a database until it is killed, and says on a pipe what was
//! acknowledged; and what must be there afterwards. For the suites that kill processes or cut the
//! power of real file systems.
//!
//! The child is this test binary. The number of its case decides its options; of each of its
//! writers commit `n` is the same in every process, so what must be there follows from how many
//! commits there are.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sateen::{
    ColumnFamily, CompactRangeOptions, Db, Error, Options, ReadOptions, WalMode, WriteBatch,
    WriteOptions,
};

use super::common::own_test;
use crate::crash::kill::point::{KillVfs, Point};
use crate::support::common::{Contents, Random, assert_sound, read_all, small};

const OTHER: &str = "other";
pub(crate) const WRITERS: usize = 2;
const FAMILIES: usize = 2;
/// The child ends by itself if nobody kills it.
const LIFE: Duration = Duration::from_secs(120);
/// After this on any machine a child has done what it was started for, or hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Of each writer so many commits.
pub(crate) type Marks = [u64; WRITERS];

/// What a child is to do.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) directory: PathBuf,
    /// Decides the options.
    pub(crate) case: u64,
    /// Where it kills itself.
    pub(crate) point: Option<Point>,
    /// One writer alone, which waits for [`Running::go_on`] after each write that is durable.
    pub(crate) in_step: bool,
    /// A write that fails is tried again, and does not end the child.
    pub(crate) may_fail: bool,
    /// Each writer waits so long between two writes.
    pub(crate) pause: Duration,
}

impl Orders {
    pub(crate) fn new(directory: &Path, case: u64) -> Orders {
        Orders {
            directory: directory.to_owned(),
            case,
            point: None,
            in_step: false,
            may_fail: false,
            pause: Duration::ZERO,
        }
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let point = self.point.as_ref().map_or(String::new(), ToString::to_string);
        vec![
            ("SATEEN_CHILD_DIRECTORY", self.directory.to_str().unwrap().to_owned()),
            ("SATEEN_CHILD_CASE", self.case.to_string()),
            ("SATEEN_CHILD_POINT", point),
            ("SATEEN_CHILD_IN_STEP", self.in_step.to_string()),
            ("SATEEN_CHILD_MAY_FAIL", self.may_fail.to_string()),
            ("SATEEN_CHILD_PAUSE", self.pause.as_micros().to_string()),
        ]
    }

    fn of_environment() -> Option<Orders> {
        let directory = std::env::var_os("SATEEN_CHILD_DIRECTORY")?;
        let text = |name: &str| std::env::var(format!("SATEEN_CHILD_{name}")).unwrap();
        let point = Some(text("POINT")).filter(|point| !point.is_empty());
        Some(Orders {
            directory: directory.into(),
            case: text("CASE").parse().unwrap(),
            point: point.map(|point| point.parse().unwrap()),
            in_step: text("IN_STEP").parse().unwrap(),
            may_fail: text("MAY_FAIL").parse().unwrap(),
            pause: Duration::from_micros(text("PAUSE").parse().unwrap()),
        })
    }
}

/// All profiles with all modes of the log take turns.
pub(crate) fn options(case: u64) -> Options {
    let profiles = Options::profiles();
    let profile = profiles[(case % profiles.len() as u64) as usize];
    let mut options = small(profile, 16 << 10);
    options.wal = match case % 4 {
        0 => WalMode::Buffered,
        1 => WalMode::SyncEachWrite,
        2 => WalMode::SyncInterval(Duration::from_millis(5)),
        _ => WalMode::Off,
    };
    options.background_threads = 2;
    options.create_missing_column_families = true;
    options
}

/// One entry of a commit: the family, the key, and the value unless it is a deletion.
type Entry = (usize, Vec<u8>, Option<Vec<u8>>);

/// But for its marks.
fn commit(writer: usize, number: u64) -> Vec<Entry> {
    let mut random = Random::new(number * WRITERS as u64 + writer as u64);
    let mut entries = Vec::new();
    for _ in 0..=random.below(4) {
        let key = format!("w{writer}key{:04}", random.below(900)).into_bytes();
        let fill = vec![b'a' + (random.below(26) as u8); random.below(300) as usize];
        let value = (!random.one_in(5)).then_some(fill);
        entries.push((usize::from(random.one_in(3)), key, value));
    }
    entries
}

fn mark_key(writer: usize) -> Vec<u8> {
    format!("w{writer}~commit").into_bytes()
}

/// A writer's last commit, and how many of the other's were acknowledged before it began.
fn read_mark(value: Option<&Vec<u8>>) -> (u64, u64) {
    let Some(value) = value else { return (0, 0) };
    let text = std::str::from_utf8(value).unwrap();
    let (number, seen) = text.split_once(' ').unwrap();
    (number.parse().unwrap(), seen.parse().unwrap())
}

fn batch_of(
    families: &[ColumnFamily; FAMILIES],
    only: &[usize],
    writer: usize,
    number: u64,
    seen: u64,
) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (family, key, value) in commit(writer, number) {
        let of = &families[family];
        match value {
            _ if !only.contains(&family) => {}
            Some(value) => batch.to(of).put(&key, value).unwrap(),
            None => batch.to(of).delete(&key).unwrap(),
        }
    }
    for family in only {
        let mark = format!("{number} {seen}");
        batch.to(&families[*family]).put(mark_key(writer), mark).unwrap();
    }
    batch
}

/// One write call a line: the pipe keeps it when the process is gone.
fn say(line: &str) {
    std::io::stdout().write_all(format!("\n{line}\n").as_bytes()).unwrap();
}

/// What the process runs that is to be killed; as a test of its own it does nothing.
#[test]
fn writes_until_it_is_killed() {
    let Some(orders) = Orders::of_environment() else { return };
    let options = options(orders.case);
    let family = options.column_family.clone();
    let vfs = Arc::new(KillVfs::new(orders.point.clone()));
    let db = match Db::open_with(vfs, &orders.directory, options, &[(OTHER, family)]) {
        Ok(db) => db,
        Err(error) => return fail(&orders, &error),
    };
    say("OPEN");
    let end = Instant::now() + LIFE;
    let acknowledged = [const { AtomicU64::new(0) }; WRITERS];
    std::thread::scope(|scope| {
        let (db, orders, acknowledged) = (&db, &orders, &acknowledged);
        for writer in 0..if orders.in_step { 1 } else { WRITERS } {
            scope.spawn(move || Writer { db, orders, acknowledged, writer, end }.run());
        }
        scope.spawn(move || upkeep(db, orders, acknowledged, end));
    });
}

struct Writer<'a> {
    db: &'a Db,
    orders: &'a Orders,
    acknowledged: &'a [AtomicU64; WRITERS],
    writer: usize,
    end: Instant,
}

impl Writer<'_> {
    fn run(&self) {
        let (db, writer) = (self.db, self.writer);
        let families = [db.default_column_family(), db.column_family(OTHER).unwrap()];
        let mut marks = [0; FAMILIES];
        for (family, mark) in families.iter().zip(&mut marks) {
            match family.get(mark_key(writer)) {
                Ok(found) => *mark = read_mark(found.as_ref()).0,
                Err(error) => return fail(self.orders, &error),
            }
        }
        let mut number = *marks.iter().max().unwrap();
        // Without a log a family may be behind the other.
        for (family, mark) in marks.into_iter().enumerate() {
            for number in mark + 1..=number {
                self.write(&batch_of(&families, &[family], writer, number, 0), false);
            }
        }
        let mode = db.options().wal;
        let each = [1, 4, 16, 64][(self.orders.case / 4 % 4) as usize];
        while Instant::now() < self.end {
            number += 1;
            let seen = self.acknowledged[1 - writer].load(Ordering::Acquire);
            let sync = mode != WalMode::Off && number.is_multiple_of(each);
            self.write(&batch_of(&families, &[0, 1], writer, number, seen), sync);
            self.acknowledged[writer].store(number, Ordering::Release);
            let durable = sync || mode == WalMode::SyncEachWrite;
            say(&format!("ACK {writer} {number} {seen} {durable}"));
            if self.orders.in_step && durable {
                std::io::stdin().read_line(&mut String::new()).unwrap();
            }
            std::thread::sleep(self.orders.pause);
        }
    }

    fn write(&self, batch: &WriteBatch, sync: bool) {
        let options = WriteOptions { sync, ..WriteOptions::default() };
        while let Err(error) = self.db.write(batch, &options) {
            fail(self.orders, &error);
            assert!(Instant::now() < self.end, "nobody has killed this process");
        }
    }
}

fn fail(orders: &Orders, error: &Error) {
    assert!(orders.may_fail, "{error}");
    say("ERROR");
    std::thread::sleep(Duration::from_millis(5));
}

/// Flushes, compactions and checkpoints.
fn upkeep(db: &Db, orders: &Orders, acknowledged: &[AtomicU64; WRITERS], end: Instant) {
    let mut random = Random::new(orders.case);
    let mut checkpoints = 0;
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(random.below(30)));
        let [first, second] = acknowledged.each_ref().map(|n| n.load(Ordering::Acquire));
        let (done, line) = match random.below(5) {
            0..3 => (db.flush_all(), format!("FLUSHED {first} {second}")),
            3 if checkpoints < 4 => {
                checkpoints += 1;
                let path = checkpoint_path(&orders.directory, checkpoints);
                let line = format!("CHECKPOINT {checkpoints} {first} {second}");
                (db.checkpoint(path), line)
            }
            _ => {
                let begin = format!("w{}", random.below(2));
                let options = CompactRangeOptions::default();
                let family = db.default_column_family();
                let done = family.compact_range(Some(begin.as_bytes()), None, &options);
                (done, "COMPACTED".to_owned())
            }
        };
        match done {
            Ok(()) => say(&line),
            Err(error) => fail(orders, &error),
        }
    }
}

fn checkpoint_path(directory: &Path, number: u64) -> PathBuf {
    directory.with_file_name(format!("checkpoint{number}"))
}

/// What a child has said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) open: bool,
    pub(crate) acknowledged: Marks,
    /// What survives a power failure.
    pub(crate) durable: Marks,
    /// What is in tables.
    pub(crate) flushed: Marks,
    /// Writes that were durable when they were acknowledged.
    pub(crate) syncs: u64,
    pub(crate) errors: u64,
    /// What each of the finished ones has at least.
    pub(crate) checkpoints: BTreeMap<u64, Marks>,
    over: bool,
}

impl Told {
    fn hear(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let number = |text: &str| text.parse::<u64>().unwrap();
        match words[..] {
            ["OPEN"] => self.open = true,
            ["ERROR"] => self.errors += 1,
            ["ACK", writer, of, seen, durable] => {
                let writer = number(writer) as usize;
                self.acknowledged[writer] = number(of);
                if durable == "true" {
                    self.syncs += 1;
                    let mut marks = [number(seen); WRITERS];
                    marks[writer] = number(of);
                    raise(&mut self.durable, &marks);
                }
            }
            ["FLUSHED", first, second] => {
                let marks = [number(first), number(second)];
                raise(&mut self.flushed, &marks);
                raise(&mut self.durable, &marks);
            }
            ["CHECKPOINT", which, first, second] => {
                self.checkpoints.insert(number(which), [number(first), number(second)]);
            }
            _ => {}
        }
    }
}

fn raise(marks: &mut Marks, to: &Marks) {
    for (mark, to) in marks.iter_mut().zip(to) {
        *mark = (*mark).max(*to);
    }
}

/// A child at work; it is killed when this is dropped.
pub(crate) struct Running {
    child: std::process::Child,
    told: Arc<(Mutex<Told>, Condvar)>,
    reader: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(orders: &Orders) -> Running {
        for number in 1..=4 {
            let _old = std::fs::remove_dir_all(checkpoint_path(&orders.directory, number));
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                &own_test(module_path!(), "writes_until_it_is_killed"),
                "--nocapture",
            ])
            .arg("--test-threads=1")
            .envs(orders.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let told = Arc::<(Mutex<Told>, Condvar)>::default();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let hears = told.clone();
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                hears.0.lock().unwrap().hear(&line);
                hears.1.notify_all();
            }
            hears.0.lock().unwrap().over = true;
            hears.1.notify_all();
        });
        Running { child, told, reader: Some(reader) }
    }

    /// So far.
    pub(crate) fn told(&self) -> Told {
        self.told.0.lock().unwrap().clone()
    }

    /// Waits until what it says is enough; false if it ended before.
    pub(crate) fn wait_until(&self, enough: impl Fn(&Told) -> bool) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut told = self.told.0.lock().unwrap();
        while !enough(&told) && !told.over {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the child hangs; it said {told:?}");
            told = self.told.1.wait_timeout(told, left).unwrap().0;
        }
        enough(&told)
    }

    /// Waits so long, or until it has ended.
    pub(crate) fn wait(&self, time: Duration) {
        let deadline = Instant::now() + time;
        let mut told = self.told.0.lock().unwrap();
        while !told.over {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            told = self.told.1.wait_timeout(told, left).unwrap().0;
        }
    }

    /// After a write in step.
    pub(crate) fn go_on(&mut self) {
        // It may have ended.
        let _told = self.child.stdin.as_mut().unwrap().write_all(b"\n");
    }

    fn end(&mut self) -> Option<ExitStatus> {
        let reader = self.reader.take()?;
        let _it_may_be_dead = self.child.kill();
        let status = self.child.wait().unwrap();
        reader.join().unwrap();
        Some(status)
    }

    /// Kills it, if it has not ended otherwise. All it said, and whether it had.
    pub(crate) fn end_of_any_kind(mut self) -> (Told, bool) {
        let dead = self.told().over;
        self.end();
        (self.told(), dead)
    }

    /// Kills it, if it has not killed itself. All it said, and whether it was dead already.
    pub(crate) fn kill(mut self) -> (Told, bool) {
        let dead = self.told().over;
        let status = self.end().unwrap();
        assert_eq!(status.signal(), Some(9), "the child ended by itself: {status}");
        (self.told(), dead)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// What must be there: of each family no fewer commits of each writer than `floor`, no more than
/// `ceiling`.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) floor: [Marks; FAMILIES],
    pub(crate) ceiling: Marks,
}

impl Bounds {
    pub(crate) fn new(floor: Marks, told: &Told) -> Bounds {
        // One more may have been under way. Without a log families catch up with each other.
        Bounds { floor: [floor; FAMILIES], ceiling: told.acknowledged.map(|n| n + 1) }
    }

    /// What was there before the child began is there still.
    pub(crate) fn keep(&mut self, found: &[Marks; FAMILIES]) {
        for (floor, found) in self.floor.iter_mut().zip(found) {
            raise(floor, found);
            raise(&mut self.ceiling, &found.map(|number| number + 1));
        }
    }
}

/// What each family has after so many commits of a writer; goes forwards cheaply.
#[derive(Default)]
pub(crate) struct Model {
    states: BTreeMap<(usize, usize), (u64, Contents)>,
}

impl Model {
    fn at(&mut self, family: usize, writer: usize, number: u64) -> &Contents {
        let (at, contents) = self.states.entry((family, writer)).or_default();
        if number < *at {
            *at = 0;
            contents.clear();
        }
        while *at < number {
            *at += 1;
            for (of, key, value) in commit(writer, *at) {
                match value {
                    _ if of != family => None,
                    Some(value) => contents.insert(key, value),
                    None => contents.remove(&key),
                };
            }
        }
        contents
    }

    /// The database is whole, and has what it must. Returns how much that is.
    pub(crate) fn examine(&mut self, db: &Db, bounds: &Bounds, what: &str) -> [Marks; FAMILIES] {
        let marks = [0, 1].map(|family| self.examine_family(db, family, bounds, what));
        if db.options().wal != WalMode::Off {
            assert_eq!(marks[0], marks[1], "{what}: half a batch");
        }
        assert_sound(db);
        marks
    }

    fn examine_family(&mut self, db: &Db, family: usize, bounds: &Bounds, what: &str) -> Marks {
        let handle = match family {
            0 => Some(db.default_column_family()),
            _ => db.column_family(OTHER),
        };
        let mut found =
            handle.map_or_else(Contents::new, |of| read_all(&of, &ReadOptions::default()));
        let marks = [0, 1].map(|writer| read_mark(found.remove(&mark_key(writer)).as_ref()));
        let numbers = marks.map(|(number, _)| number);
        let what = format!("{what}, family {family}, commits {numbers:?}");
        for writer in 0..WRITERS {
            let (number, seen) = marks[writer];
            let (least, most) = (bounds.floor[family][writer], bounds.ceiling[writer]);
            assert!((least..=most).contains(&number), "{what}: not within {bounds:?}");
            assert!(
                numbers[1 - writer] >= seen,
                "{what}: the last of writer {writer} came after {seen} of the other"
            );
        }
        let mut expected = Contents::new();
        for (writer, number) in numbers.into_iter().enumerate() {
            let own = self.at(family, writer, number).iter();
            expected.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        }
        if found != expected {
            let keys: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).collect();
            let differ = keys.into_iter().filter(|key| found.get(*key) != expected.get(*key));
            let differ: Vec<_> = differ.take(8).map(|key| key.escape_ascii().to_string()).collect();
            panic!("{what}: wrong contents, of {differ:?} and maybe more");
        }
        numbers
    }

    /// Opens a database and examines it.
    pub(crate) fn examine_at(
        &mut self,
        directory: &Path,
        options: Options,
        read_only: bool,
        bounds: &Bounds,
        what: &str,
    ) -> [Marks; FAMILIES] {
        let opened = match read_only {
            true => Db::open_read_only(directory, options),
            false => Db::open(directory, options),
        };
        let db = opened.unwrap_or_else(|error| panic!("{what}: cannot be opened: {error}"));
        let marks = self.examine(&db, bounds, what);
        db.close().unwrap_or_else(|error| panic!("{what}: cannot be closed: {error}"));
        marks
    }

    /// The checkpoints that were finished before what `told` is of.
    pub(crate) fn examine_checkpoints(
        &mut self,
        directory: &Path,
        case: u64,
        told: &Told,
        ceiling: Marks,
        what: &str,
    ) -> u64 {
        for (number, floor) in &told.checkpoints {
            let what = format!("{what}, checkpoint {number}");
            let bounds = Bounds { floor: [*floor; FAMILIES], ceiling };
            let path = checkpoint_path(directory, *number);
            self.examine_at(&path, options(case), false, &bounds, &what);
        }
        told.checkpoints.len() as u64
    }
}
