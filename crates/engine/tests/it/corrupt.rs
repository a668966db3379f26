//! Damage: whatever happened to the bytes of a database, it is reported with the name of a file, or
//! does no harm. Never is an answer wrong or missing without an error; never does the engine panic,
//! hang or reserve memory that nobody has.
//!
//! The one exception is the end of the log: what was never known to be synced cannot be told from
//! what a crash left unfinished. There a *prefix* of the commits is allowed; it must be exact, and
//! hold everything that lies before the damage.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sateen::vfs::{CrashChoice, IoClass, MemVfs, OpenOptions, Vfs};
use sateen::{
    ColumnFamily, CompactRangeOptions, Db, FlushOptions, Options, ReadOptions, WriteBatch,
    WriteOptions,
};

use crate::common::{Contents, Random, as_vfs, small, tiny};

const MARK: &[u8] = b"~commit";
const OTHER: &str = "other";
const WRITE: OpenOptions = OpenOptions { write: true, ..OpenOptions::READ };
/// No single case takes a tenth of this on a slow machine.
const HUNG_AFTER: Duration = Duration::from_secs(60);

/// A small database with files of every kind, and what is in it.
struct Golden {
    vfs: MemVfs,
    files: BTreeMap<String, Vec<u8>>,
    /// The contents of both families after so many commits.
    states: Vec<[Contents; 2]>,
    /// Commits that are in tables.
    stored: usize,
    /// For each later commit: the log that it is in, and where it ends there.
    ends: Vec<(usize, String, u64)>,
    /// Of each log: up to here its own later records prove that it was durable.
    proven: BTreeMap<String, u64>,
    /// Logs of which a later log proves that they were durable to their end.
    proven_whole: Vec<String>,
    options: Options,
}

fn newest_log(vfs: &MemVfs) -> (String, u64) {
    let names = vfs.list(Path::new("/db")).unwrap();
    let logs = names.iter().filter(|name| name.extension().is_some_and(|text| text == "wal"));
    logs.map(|name| {
        let name = name.to_str().unwrap().to_owned();
        let length = vfs.contents(&Path::new("/db").join(&name)).unwrap().len() as u64;
        (name, length)
    })
    .filter(|(_, length)| *length > 64)
    .max()
    .unwrap_or_default()
}

struct Writer<'a> {
    db: &'a Db,
    other: ColumnFamily,
    random: Random,
    states: Vec<[Contents; 2]>,
}

impl Writer<'_> {
    fn commit(&mut self, sync: bool) {
        let number = self.states.len();
        let mut state = self.states[number - 1].clone();
        let mut batch = WriteBatch::new();
        let mut apply = |family: usize, key: &[u8], value: Option<&[u8]>| {
            match (value, family) {
                (Some(value), 0) => batch.put(key, value).unwrap(),
                (Some(value), _) => batch.put_cf(&self.other, key, value).unwrap(),
                (None, 0) => batch.delete(key).unwrap(),
                (None, _) => batch.delete_cf(&self.other, key).unwrap(),
            }
            match value {
                Some(value) => state[family].insert(key.to_vec(), value.to_vec()),
                None => state[family].remove(key),
            };
        };
        for _ in 0..=self.random.below(4) {
            let key = format!("key{:03}", self.random.below(90)).into_bytes();
            let family = usize::from(self.random.one_in(3));
            let fill = vec![b'a' + (self.random.below(26) as u8); self.random.below(60) as usize];
            apply(family, &key, (!self.random.one_in(5)).then_some(&fill));
        }
        let mark = number.to_string().into_bytes();
        apply(0, MARK, Some(&mark));
        apply(1, MARK, Some(&mark));
        self.states.push(state);
        self.db.write(&batch, &WriteOptions { sync, ..WriteOptions::default() }).unwrap();
    }
}

fn golden(seed: u64, mut options: Options) -> Golden {
    let vfs = MemVfs::new();
    options.column_family.memtable_bytes = 20 << 10;
    options.column_family.level_base_bytes = 2 << 10;
    options.column_family.table_bytes = 1 << 10;
    options.column_family.memtables_max = 6;
    let db = Db::open_with(as_vfs(&vfs), "/db", options.clone(), &[]).unwrap();
    let other = db.create_column_family(OTHER, options.column_family.clone()).unwrap();
    let random = Random::new(seed);
    let mut writer = Writer { db: &db, other, random, states: vec![Default::default()] };
    for i in 0..300 {
        writer.commit(false);
        if i % 20 == 0 {
            db.flush_all().unwrap();
        }
        db.step().unwrap();
    }
    db.flush_all().unwrap();
    db.wait_idle().unwrap();
    for _ in 0..8 {
        writer.commit(false);
    }
    // One more run in level 0, and not compacted.
    db.flush_all().unwrap();
    let stored = writer.states.len() - 1;
    let (mut ends, mut proven) = (Vec::new(), BTreeMap::new());
    let mut synced: Option<(String, u64)> = None;
    let mut proven_whole = Vec::new();
    for i in 0..24 {
        if i == 12 {
            // A memtable that waits for its flush: its log is not the newest one.
            let nobody_waits = FlushOptions { wait: false };
            db.flush_cf(&db.default_column_family(), &nobody_waits).unwrap();
        }
        writer.commit(i % 5 == 3);
        let (log, end) = newest_log(&vfs);
        if let Some((synced_log, synced_end)) = &synced
            && *synced_log == log
        {
            proven.insert(log.clone(), *synced_end);
        }
        if i % 5 == 3 {
            synced = Some((log.clone(), end));
        }
        ends.push((writer.states.len() - 1, log, end));
    }
    let newest = ends.last().unwrap().1.clone();
    if proven.contains_key(&newest) {
        proven_whole = ends.iter().map(|end| end.1.clone()).filter(|log| *log != newest).collect();
        proven_whole.dedup();
    }
    let states = writer.states;
    let image = vfs.crash_image(CrashChoice::Everything);
    drop(db);
    let mut files = BTreeMap::new();
    for name in image.list(Path::new("/db")).unwrap() {
        let bytes = image.contents(&Path::new("/db").join(&name)).unwrap();
        files.insert(name.to_str().unwrap().to_owned(), bytes);
    }
    Golden { vfs: image, files, states, stored, ends, proven, proven_whole, options }
}

/// One way to damage a database.
#[derive(Clone, Debug)]
enum Damage {
    Bit { file: String, at: usize, bit: u8 },
    Byte { file: String, at: usize, to: u8 },
    Sector { file: String, at: usize },
    Truncated { file: String, length: usize },
    Missing { file: String },
    Exchanged { one: String, other: String },
    OfAnother { file: String, from: String },
}

/// What a case came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Detected,
    Harmless,
    Prefix,
}

impl Damage {
    fn do_it(&self, golden: &Golden, another: &Golden) -> MemVfs {
        let vfs = golden.vfs.crash_image(CrashChoice::Everything);
        let open = |file: &str| vfs.open(&path(file), WRITE).unwrap();
        let write = |file: &str, at: usize, bytes: &[u8]| {
            open(file).write_at(bytes, at as u64, IoClass::Client).unwrap();
        };
        let replace = |file: &str, bytes: &[u8]| {
            open(file).truncate(0).unwrap();
            write(file, 0, bytes);
        };
        match self {
            Damage::Bit { file, at, bit } => {
                write(file, *at, &[golden.files[file][*at] ^ (1 << bit)]);
            }
            Damage::Byte { file, at, to } => write(file, *at, &[*to]),
            Damage::Sector { file, at } => {
                let length = golden.files[file].len().min(at + 512) - at;
                write(file, *at, &vec![0; length]);
            }
            Damage::Truncated { file, length } => open(file).truncate(*length as u64).unwrap(),
            Damage::Missing { file } => vfs.remove(&path(file)).unwrap(),
            Damage::Exchanged { one, other } => {
                replace(one, &golden.files[other]);
                replace(other, &golden.files[one]);
            }
            Damage::OfAnother { file, from } => replace(file, &another.files[from]),
        }
        vfs
    }

    /// The log and the range of it that is damaged, if a prefix of the commits is then allowed.
    fn of_log(&self, golden: &Golden) -> Option<(String, u64, u64)> {
        let (file, from, to) = match self {
            Damage::Bit { file, at, .. } | Damage::Byte { file, at, .. } => (file, *at, at + 1),
            Damage::Sector { file, at } => (file, *at, golden.files[file].len().min(at + 512)),
            Damage::Truncated { file, length } => (file, *length, usize::MAX),
            Damage::Missing { file } => (file, 0, usize::MAX),
            // Swapped with the empty file: as if cut off at once.
            Damage::Exchanged { one, other: empty }
            | Damage::Exchanged { one: empty, other: one }
                if golden.files[empty].is_empty() =>
            {
                (one, 0, usize::MAX)
            }
            // A log knows its number and its database: another file in its place never looks torn.
            Damage::Exchanged { .. } | Damage::OfAnother { .. } => return None,
        };
        file.ends_with(".wal").then(|| (file.clone(), from as u64, to as u64))
    }
}

fn path(file: &str) -> PathBuf {
    Path::new("/db").join(file)
}

/// The fewest commits that may be left.
fn fewest(golden: &Golden, damage: &Damage) -> usize {
    let all = golden.states.len() - 1;
    let Some((log, from, to)) = damage.of_log(golden) else { return all };
    let own_proof = golden.proven.get(&log).is_some_and(|proven| to <= *proven);
    if own_proof || golden.proven_whole.contains(&log) {
        return all;
    }
    let damaged = golden.ends.iter().find(|(_, file, end)| *file == log && *end > from);
    damaged.map_or(all, |(commit, ..)| commit - 1).max(golden.stored)
}

fn scan(db: &Db, family: &ColumnFamily) -> sateen::Result<Contents> {
    let mut iter = db.iter_cf(family, &ReadOptions::default())?;
    let mut forwards = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        forwards.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next();
    }
    let first = iter.status();
    let mut backwards = Vec::new();
    iter.seek_to_last();
    while iter.valid() {
        backwards.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.prev();
    }
    first?;
    iter.status()?;
    backwards.reverse();
    assert!(forwards == backwards, "the directions differ");
    Ok(forwards.into_iter().collect())
}

/// Uses the database in every way and holds the answers against what was written.
fn examine(golden: &Golden, vfs: &MemVfs, fewest: usize) -> Outcome {
    let all = golden.states.len() - 1;
    let named = |error: &sateen::Error| {
        let text = error.to_string();
        assert!(text.contains("/db/") || text.contains("/db:"), "names no file: {text}");
        Outcome::Detected
    };
    let db = match Db::open_with(as_vfs(vfs), "/db", golden.options.clone(), &[]) {
        Ok(db) => db,
        Err(error) => return named(&error),
    };
    let Some(other) = db.column_family(OTHER) else { panic!("SILENT: a column family is gone") };
    let families = [db.default_column_family(), other];
    let mut outcome = Outcome::Harmless;
    let mut commits = None;
    for round in 0..2 {
        // What is found of one family, the other must agree with.
        for (number, family) in families.iter().enumerate() {
            match scan(&db, family) {
                Err(error) => outcome = named(&error),
                Ok(found) => {
                    let mark = found.get(MARK).map_or(0, |text| {
                        String::from_utf8(text.clone()).unwrap().parse().unwrap()
                    });
                    assert!(*commits.get_or_insert(mark) == mark, "SILENT: half a batch");
                    assert!((fewest..=all).contains(&mark), "SILENT: {mark} of {all} commits");
                    let expected = &golden.states[mark][number];
                    assert!(found == *expected, "SILENT: scan, round {round}, commit {mark}");
                }
            }
        }
        let state = &golden.states[commits.unwrap_or(all)];
        for (number, family) in families.iter().enumerate() {
            for key in (0..90).map(|i| format!("key{i:03}").into_bytes()) {
                match db.get_cf(family, &key, &ReadOptions::default()) {
                    Err(error) => outcome = named(&error),
                    Ok(found) => assert!(
                        found.as_ref() == state[number].get(&key),
                        "SILENT: get of {}, round {round}",
                        key.escape_ascii()
                    ),
                }
            }
        }
        if round == 0 {
            match db.check(&mut |_, _| {}) {
                Err(error) => outcome = named(&error),
                Ok(report) => {
                    assert!(
                        outcome != Outcome::Detected || !report.problems.is_empty(),
                        "a read fails and the check finds nothing"
                    );
                    for problem in &report.problems {
                        outcome = named(problem);
                    }
                }
            }
            let options = CompactRangeOptions { rewrite_last_level: true, ..Default::default() };
            for family in &families {
                if let Err(error) = db.compact_range(family, None, None, &options) {
                    outcome = named(&error);
                }
            }
        }
    }
    // Closing tells what could not be stored; a refusal is none of a silent kind.
    let _told = db.close();
    let whole = commits.is_none_or(|commits| commits == all);
    if outcome == Outcome::Harmless && !whole { Outcome::Prefix } else { outcome }
}

/// Damage of the bytes of each file; and of whole files.
fn cases(golden: &Golden, another: &Golden) -> (Vec<Damage>, Vec<Damage>) {
    let mut random = Random::new(9);
    let (mut bytes, mut files) = (Vec::new(), Vec::new());
    for (name, contents) in &golden.files {
        let file = name.clone();
        for (at, byte) in contents.iter().enumerate() {
            let bit = random.below(8) as u8;
            bytes.push(Damage::Bit { file: file.clone(), at, bit });
            for to in [0, 0xff] {
                if *byte != to {
                    bytes.push(Damage::Byte { file: file.clone(), at, to });
                }
            }
            bytes.push(Damage::Truncated { file: file.clone(), length: at });
        }
        for at in (0..contents.len()).step_by(512) {
            if contents[at..].iter().take(512).any(|byte| *byte != 0) {
                files.push(Damage::Sector { file: file.clone(), at });
            }
        }
        files.push(Damage::Missing { file: file.clone() });
        for other in golden.files.keys().filter(|other| *other > name) {
            files.push(Damage::Exchanged { one: file.clone(), other: other.clone() });
        }
        let kind = Path::new(name).extension();
        let same_kind =
            |from: &&String| Path::new(from).extension() == kind && from.get(..4) == name.get(..4);
        for from in another.files.keys().filter(same_kind) {
            files.push(Damage::OfAnother { file: file.clone(), from: from.clone() });
        }
    }
    (bytes, files)
}

/// How many of the byte cases are tried; `all` of them if asked.
fn sample(cases: Vec<Damage>, count: usize) -> Vec<Damage> {
    let count = match std::env::var("SATEEN_CORRUPT_SCALE").as_deref() {
        Ok("all") => cases.len(),
        Ok(scale) => count * scale.parse::<usize>().unwrap_or(1),
        Err(_) => count,
    };
    // A stride that shares no factor with the four kinds of damage per byte.
    let stride = (cases.len() / count.max(1)).max(1) | 1;
    let wanted = if count >= cases.len() { 1 } else { stride };
    cases.into_iter().step_by(wanted).collect()
}

fn try_all(golden: &Golden, another: &Golden, cases: &[Damage]) {
    let next = AtomicUsize::new(0);
    let counts = Mutex::new(BTreeMap::<Outcome, u64>::new());
    let failures = Mutex::new(Vec::new());
    let begun = Instant::now();
    let busy: Vec<_> = (0..2).map(|_| AtomicU64::new(u64::MAX)).collect();
    let finished = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for busy in &busy {
            let (next, counts, failures, finished) = (&next, &counts, &failures, &finished);
            scope.spawn(move || {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    busy.store(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
                    let vfs = case.do_it(golden, another);
                    let tried = catch_unwind(AssertUnwindSafe(|| {
                        examine(golden, &vfs, fewest(golden, case))
                    }));
                    match tried {
                        Ok(outcome) => *counts.lock().unwrap().entry(outcome).or_default() += 1,
                        Err(payload) => {
                            let text = payload.downcast_ref::<String>().cloned().or_else(|| {
                                payload.downcast_ref::<&str>().map(ToString::to_string)
                            });
                            failures.lock().unwrap().push(format!("{case:?}: {text:?}"));
                        }
                    }
                }
                busy.store(u64::MAX, Ordering::Relaxed);
                finished.fetch_add(1, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            while finished.load(Ordering::Relaxed) < busy.len() {
                std::thread::sleep(Duration::from_millis(20));
                let now = begun.elapsed().as_millis() as u64;
                let hung = busy.iter().any(|since| {
                    now.saturating_sub(since.load(Ordering::Relaxed))
                        > HUNG_AFTER.as_millis() as u64
                });
                if hung {
                    eprintln!("a case hangs, about number {}", next.load(Ordering::Relaxed));
                    std::process::abort();
                }
            }
        });
    });
    let (counts, failures) = (counts.into_inner().unwrap(), failures.into_inner().unwrap());
    println!("{} cases in {:?}: {counts:?}", cases.len(), begun.elapsed());
    assert!(counts[&Outcome::Detected] > 0, "nothing was detected");
    let shown = failures.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {} cases:\n{shown}", failures.len(), cases.len());
}

/// The golden database has what it is for.
fn assert_rich(golden: &Golden) {
    let files = |kind: &str| golden.files.keys().filter(|name| name.ends_with(kind)).count();
    assert!(files(".sat") >= 3, "{:?}", golden.files.keys());
    assert!(golden.ends.iter().any(|end| end.1 != golden.ends[0].1), "commits in two logs");
    assert!(!golden.proven.is_empty(), "a synced commit with another behind it");
    let image = golden.vfs.crash_image(CrashChoice::Everything);
    let db = Db::open_with(Arc::new(image.clone()), "/db", golden.options.clone(), &[]).unwrap();
    let levels = db.property("sateen.levelstats");
    println!(
        "{} bytes: {:?}\n{}",
        golden.files.values().map(Vec::len).sum::<usize>(),
        golden.files.iter().map(|(name, bytes)| (name, bytes.len())).collect::<Vec<_>>(),
        levels.unwrap_or_default()
    );
    drop(db);
    let untouched = golden.vfs.crash_image(CrashChoice::Everything);
    let all = golden.states.len() - 1;
    assert_eq!(examine(golden, &untouched, all), Outcome::Harmless, "without damage");
}

/// Memory is reserved only for what is there: beyond this the process would end.
fn limit_memory() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(8 << 30), maximum: limit.maximum }).unwrap();
}

#[test]
fn damaged_bytes_are_reported_or_harmless() {
    limit_memory();
    let (golden, another) = (golden(1, tiny()), golden(2, tiny()));
    assert_rich(&golden);
    let (bytes, _) = cases(&golden, &another);
    println!("{} ways to damage a byte or the length", bytes.len());
    try_all(&golden, &another, &sample(bytes, 8_000));
}

#[test]
fn damaged_sectors_and_wrong_files_are_reported_or_harmless() {
    limit_memory();
    let (golden, another) = (golden(3, tiny()), golden(4, tiny()));
    let (_, files) = cases(&golden, &another);
    try_all(&golden, &another, &files);
}

/// What other shapes write: many tables in a file, a file for each table, runs of many tables.
#[test]
fn damage_under_other_profiles_is_reported_or_harmless() {
    limit_memory();
    for profile in ["bolt", "vlsm", "silk", "pebblesdb", "triad"] {
        println!("{profile}");
        let of_seed = |seed| golden(seed, small(profile, 20 << 10));
        let (golden, another) = (of_seed(5), of_seed(6));
        assert_rich(&golden);
        let (bytes, files) = cases(&golden, &another);
        try_all(&golden, &another, &sample(bytes, 1_000));
        try_all(&golden, &another, &sample(files, 300));
    }
}
