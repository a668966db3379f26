//! Damage: whatever happened to the bytes of a database, it is reported with the name of a file, or
//! does no harm. Never is an answer wrong or missing without an error; never does the engine panic,
//! hang or reserve memory that nobody has.
//!
//! The one exception is the end of the log: what was never known to be synced cannot be told from
//! what a crash left unfinished. There a *prefix* of the commits is allowed; it must be exact, and
//! hold everything that lies before the damage.

mod damage;
mod golden;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use sateen::vfs::{CrashChoice, MemVfs};
use sateen::{ColumnFamily, CompactRangeOptions, Db, Error, ReadOptions};

use crate::support::common::{Contents, small, tiny};
use crate::support::rel::said;
use damage::{Damage, of_bytes, of_parts};
use golden::{Golden, MARK, Shape};

/// No single case takes a tenth of this on a slow machine.
const HUNG_AFTER: Duration = Duration::from_secs(60);

/// What a case came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Detected,
    Harmless,
    Prefix,
}

/// The fewest commits that may be left.
fn fewest(golden: &Golden, damage: &Damage) -> usize {
    let all = golden.all();
    let parts = damage.of_logs(golden);
    // What proves that one part was synced may be in the other.
    let alone = parts.len() == 1;
    let left = parts.iter().map(|part| {
        let log = &*part.log;
        let own_proof = golden.proven.get(log).is_some_and(|proven| part.to <= *proven);
        if alone && (own_proof || golden.proven_whole.iter().any(|whole| whole == log)) {
            return all;
        }
        let damaged = golden.ends.iter().find(|(_, file, end)| file == log && *end > part.from);
        damaged.map_or(all, |(commit, ..)| commit - 1).max(golden.stored)
    });
    left.min().unwrap_or(all)
}

fn scan(family: &ColumnFamily) -> sateen::Result<Contents> {
    let mut iter = family.cursor(&ReadOptions::default())?;
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

/// An error says which file it is, and what of it.
fn named(error: &Error) -> Outcome {
    let text = error.to_string();
    assert!(text.contains("/db/") || text.contains("/db:"), "names no file: {text}");
    let cause = match error {
        Error::Background { cause, .. } => cause,
        cause => cause,
    };
    let told = cause.is_corruption() || matches!(cause, Error::IncompatibleDirectory { .. });
    assert!(told, "damage is told as something else: {text}");
    Outcome::Detected
}

/// Uses the database in every way and holds the answers against what was written.
fn examine(golden: &Golden, vfs: &MemVfs, fewest: usize) -> Outcome {
    let all = golden.all();
    let db = match golden.shape.open(vfs) {
        Ok(db) => db,
        Err(error) => return named(&error),
    };
    let mut families = vec![db.default_column_family()];
    for (name, _) in &golden.shape.families {
        let Some(family) = db.column_family(name) else {
            panic!("SILENT: a column family is gone")
        };
        families.push(family);
    }
    let mut outcome = Outcome::Harmless;
    let mut commits = None;
    for round in 0..2 {
        // What is found of one family, the others must agree with.
        for (number, family) in families.iter().enumerate() {
            match scan(family) {
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
        if round == 1 {
            break;
        }
        // If no scan ends, it is not known how many commits there are.
        let known = commits.map_or(fewest..=all, |commits| commits..=commits);
        let mut states: Vec<_> = golden.states[known].iter().collect();
        for (number, family) in families.iter().enumerate() {
            for key in (0..golden.shape.keys).map(|i| format!("key{i:03}").into_bytes()) {
                match family.get(&key) {
                    Err(error) => outcome = named(&error),
                    Ok(found) => {
                        states.retain(|state| found.as_ref() == state[number].get(&key));
                        assert!(!states.is_empty(), "SILENT: get of {}", key.escape_ascii());
                    }
                }
            }
        }
        outcome = check_and_compact(&db, &families, outcome);
    }
    // Closing tells what could not be stored; a refusal is none of a silent kind.
    let _told = db.close();
    let whole = commits.is_none_or(|commits| commits == all);
    if outcome == Outcome::Harmless && !whole { Outcome::Prefix } else { outcome }
}

fn check_and_compact(db: &Db, families: &[ColumnFamily], mut outcome: Outcome) -> Outcome {
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
    for family in families {
        if let Err(error) = family.compact_range(None, None, &options) {
            outcome = named(&error);
        }
    }
    outcome
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

/// Tries cases in turn, under a deadline for each, and counts what they came to. The first failure
/// is a panic that says which it was.
fn try_each<'a>(
    (golden, another): (&Golden, &Golden),
    cases: impl Iterator<Item = &'a Damage>,
) -> BTreeMap<Outcome, u64> {
    let current = Mutex::new((Instant::now(), None));
    let (alive, over) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let over = over;
            while over.recv_timeout(Duration::from_secs(1)) == Err(mpsc::RecvTimeoutError::Timeout)
            {
                let (since, case): (Instant, Option<&Damage>) = *current.lock().unwrap();
                if since.elapsed() > HUNG_AFTER {
                    eprintln!("it hangs: {case:?}");
                    std::process::abort();
                }
            }
        });
        let _alive = alive;
        let mut counts = BTreeMap::new();
        for case in cases.filter(|case| !case.is_none(golden)) {
            *current.lock().unwrap() = (Instant::now(), Some(case));
            let vfs = case.do_it(golden, another);
            let tried =
                catch_unwind(AssertUnwindSafe(|| examine(golden, &vfs, fewest(golden, case))));
            match tried {
                Ok(outcome) => *counts.entry(outcome).or_default() += 1,
                Err(payload) => panic!("{case:?}: {}", said(payload.as_ref())),
            }
        }
        counts
    })
}

fn try_all(golden: &Golden, another: &Golden, cases: &[Damage]) {
    let next = AtomicUsize::new(0);
    let counts = Mutex::new(BTreeMap::<Outcome, u64>::new());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let turns = std::iter::from_fn(|| cases.get(next.fetch_add(1, Ordering::Relaxed)));
                for (outcome, more) in try_each((golden, another), turns) {
                    *counts.lock().unwrap().entry(outcome).or_default() += more;
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap();
    println!("{} cases in {:?}: {counts:?}", cases.len(), begun.elapsed());
    assert!(counts[&Outcome::Detected] > 0, "nothing was detected");
}

/// Without damage there is nothing to find.
fn assert_well(golden: &Golden) {
    golden.assert_rich();
    let image = golden.vfs.crash_image(CrashChoice::Everything);
    let db = golden.shape.open(&image).unwrap();
    println!("{}", db.property("sateen.levelstats").unwrap_or_default());
    drop(db);
    let untouched = golden.vfs.crash_image(CrashChoice::Everything);
    assert_eq!(examine(golden, &untouched, golden.all()), Outcome::Harmless, "without damage");
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
    let [golden, another] = [1, 2].map(|seed| Golden::new(seed, &Shape::of(tiny())));
    assert_well(&golden);
    let bytes = of_bytes(&golden);
    println!("{} ways to damage a byte or the length", bytes.len());
    try_all(&golden, &another, &sample(bytes, 8_000));
}

#[test]
fn damaged_parts_and_wrong_files_are_reported_or_harmless() {
    limit_memory();
    let [golden, another] = [3, 4].map(|seed| Golden::new(seed, &Shape::of(tiny())));
    let parts = of_parts(&golden, &another);
    println!("{} ways to damage a part", parts.len());
    try_all(&golden, &another, &sample(parts, 3_000));
}

/// What other shapes write: many tables in a file, a file for each table, runs of many tables.
#[test]
fn damage_under_other_profiles_is_reported_or_harmless() {
    limit_memory();
    let profiles = ["bolt", "bolt-rocksdb", "vlsm", "silk", "pebblesdb", "triad"];
    let alone = profiles.map(|profile| (profile, profile));
    let changed = [("triad", "bolt"), ("sateen", "vlsm"), ("vlsm", "pebblesdb")];
    for (before, profile) in alone.into_iter().chain(changed) {
        println!("{before}, then {profile}");
        let mut shape = Shape::of(small(profile, 20 << 10));
        if before != profile {
            shape = shape.begun_with(small(before, 20 << 10));
        }
        let [golden, another] = [5, 6].map(|seed| Golden::new(seed, &shape));
        assert_well(&golden);
        try_all(&golden, &another, &sample(of_bytes(&golden), 1_000));
        try_all(&golden, &another, &sample(of_parts(&golden, &another), 300));
    }
}

/// A golden database, another one to exchange files with, and all the damage that is done to it.
struct Ground {
    golden: Golden,
    another: Golden,
    cases: Vec<Damage>,
}

impl Ground {
    /// The first has tables of every kind; then come the profiles, again and again, every other one
    /// after another one has written the first part.
    fn of(number: u64) -> Ground {
        let profiles =
            ["sateen", "leveldb", "bolt", "vlsm", "silk", "bolt-rocksdb", "triad", "pebblesdb"];
        let shape = match number.checked_sub(1) {
            None => Shape::of_every_placement(tiny()),
            Some(nth) => {
                let (round, nth) = (nth as usize / profiles.len(), nth as usize % profiles.len());
                let shape = Shape::of(small(profiles[nth], 20 << 10)).small();
                if (round + nth).is_multiple_of(2) {
                    shape
                } else {
                    // What has guards would have to be compacted first.
                    let before = profiles[(nth + 1 + round) % (profiles.len() - 1)];
                    shape.begun_with(small(before, 20 << 10))
                }
            }
        };
        let [golden, another] = [0, 1].map(|one| Golden::new(2 * number + one, &shape));
        assert_well(&golden);
        assert!(number > 0 || golden.has_tables_in_log(), "{:?}", golden.files.keys());
        let mut cases = of_parts(&golden, &another);
        cases.append(&mut of_bytes(&golden));
        // What nobody reads comes last.
        cases.sort_by_key(|case| case.is_of_padding(&golden));
        println!("database {number}: {} ways to damage it", cases.len());
        Ground { golden, another, cases }
    }
}

/// So many cases of the suite are one database.
const SLICES: u64 = 256;

/// Database after database, each damaged in every way there is; see `rel.rs`. A case is a part of
/// the ways to damage one.
#[test]
#[ignore = "run by cargo xtask rel corrupt"]
fn rel() {
    limit_memory();
    let grounds: Mutex<BTreeMap<u64, Arc<Ground>>> = Mutex::default();
    crate::support::rel::Suite::new("corrupt", "mutations").run(
        crate::support::rel::processors(),
        |suite, case| {
            let (number, slice) = ((case - 1) / SLICES, (case - 1) % SLICES);
            let ground = {
                let mut grounds = grounds.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                grounds.retain(|known, _| known + 1 >= number);
                grounds.entry(number).or_insert_with(|| Arc::new(Ground::of(number))).clone()
            };
            let length = ground.cases.len().div_ceil(SLICES as usize);
            let cases = ground.cases.iter().skip(slice as usize * length).take(length);
            for (outcome, more) in try_each((&ground.golden, &ground.another), cases) {
                suite.count("mutations", more);
                let name = match outcome {
                    Outcome::Detected => "detected",
                    Outcome::Harmless => "harmless",
                    Outcome::Prefix => "unfinished end of a log",
                };
                suite.count(name, more);
            }
        },
    );
}
