//! Errors: every call of the file system that the engine has fails in every way that it can, once
//! and for good. Each operation gives an error or the exact answer, never a wrong one; the database
//! is well, degraded or read-only; what was a passing failure is over without opening it again;
//! nothing acknowledged is lost.
//!
//! The calls are those of the source (`calls.rs`), and what passes them is a few scenarios
//! (`scenarios.rs`), run once with the line of each call captured and then failed in one call after
//! the other. That the call that was meant has failed is looked at again each time.

mod backups;
mod calls;
mod damaged;
mod directories;
mod loads;
mod remote;
mod run;
mod scenarios;
mod transactions;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use sateen::test_support::clock::VirtualTime;
use sateen::vfs::{Fault, FaultRule, Site, VfsOperation};

use crate::support::common::Random;
use crate::support::rel::{Suite, processors, said};
use calls::Call;
use run::Start;
use scenarios::{SCENARIOS, Scenario};

const FAULTS: [Fault; 10] = [
    Fault::Io,
    Fault::NoSpace,
    Fault::Quota,
    Fault::Interrupted,
    Fault::Unsupported,
    Fault::Short,
    Fault::FlippedBit,
    Fault::StaleBlock,
    Fault::Zeros,
    Fault::Delay(Duration::from_micros(20)),
];

/// Functions whose calls no scenario passes, or one method there, each with the reason.
const NEVER_PASSED: &[(&str, &str, &str, &str)] = &[
    ("manifest/mod.rs", "fuzz", "", "is there for the fuzzer"),
    ("wal/mod.rs", "fuzz", "", "is there for the fuzzer"),
    ("trace/fuzz.rs", "fuzz", "", "is there for the fuzzer"),
    (
        "files/own_name.rs",
        "refuse_own_name",
        "list",
        "only if a copy is to have a name of the engine: its own test fails it",
    ),
    ("wal/chain.rs", "make_durable", "", "is there for tests"),
    ("open/kept.rs", "trim_kept_logs", "links", "no file in memory has preallocated space"),
    ("open/kept.rs", "trim_kept_logs", "truncate", "no file in memory has preallocated space"),
    ("files/reclaim/mod.rs", "shrink", "", "only beside clients: its own test fails each call"),
    ("files/reclaim/mod.rs", "reclaim", "sync_data", "only beside clients: its own test fails it"),
    (
        "tree/manifest_follower.rs",
        "has_moved",
        "",
        "only if what a secondary needs is damaged, the same twice",
    ),
    ("files/device_hint.rs", "write", "", "depends on time: its own test fails each call"),
    (
        "background/chores/mod.rs",
        "create_wal",
        "remove",
        "only where a new log's first write fails",
    ),
    ("db/live_files.rs", "list", "create_dir_all", "is of a file system in memory"),
    ("db/live_files.rs", "read", "", "is of a file system in memory"),
    ("table/value_files.rs", "of_table", "", "only in dumps of tables with values in other files"),
    ("table/value_files.rs", "open_file", "open", "only in dumps, as above"),
    ("table/many.rs", "load_blocks", "", "is repeated by the reader: `vfs::many` fails it"),
    ("backup/create.rs", "catalogue", "create_dir_all", "is of a file system in memory"),
    ("backup/create.rs", "contents", "", "is of a file system in memory"),
    (
        "background/compaction/remote/mod.rs",
        "remove_outputs",
        "remove",
        "only after a result is refused",
    ),
    ("open/remote.rs", "open_and_compact", "remove_dir", "only after the worker has failed"),
];

/// Files whose calls other tests fail one by one, each with these tests.
const FAILED_ELSEWHERE: &[(&str, &str)] = &[
    ("backup/directory.rs", "faults::backups"),
    ("backup/mod.rs", "faults::backups"),
    ("backup/restore.rs", "faults::backups"),
    ("trace/records.rs", "faults::traces"),
    ("trace/recorder.rs", "faults::traces"),
];

/// One passing of a call by a scenario: its number among the calls of the same operation, class
/// of path and purpose.
#[derive(Clone)]
struct Pass {
    scenario: usize,
    site: Site,
    nth: u64,
}

/// A call, and how it fails.
struct Case {
    call: Call,
    operation: VfsOperation,
    fault: Fault,
    for_good: bool,
}

/// What there is to do.
struct Plan {
    starts: Vec<Start>,
    passes: BTreeMap<(Call, VfsOperation), Vec<Pass>>,
    cases: Vec<Case>,
}

impl Plan {
    /// Runs all scenarios without a fault, and lists what they pass.
    fn new() -> Plan {
        let listed = calls::of_the_engine();
        let mut passes: BTreeMap<(Call, VfsOperation), Vec<Pass>> = BTreeMap::new();
        let mut unknown = BTreeSet::new();
        let mut starts = Vec::new();
        for (scenario, (start, sites)) in tried().into_iter().enumerate() {
            starts.push(start);
            let name = SCENARIOS[scenario].name;
            let mut numbers: BTreeMap<Site, u64> = BTreeMap::new();
            for site in sites {
                let caller = site.caller.clone().unwrap_or_default();
                let stream = Site { caller: None, ..site };
                let nth = numbers.entry(stream.clone()).or_default();
                *nth += 1;
                let Some(call) = call_at(&listed, stream.operation, &caller) else {
                    unknown.insert(format!("{:?} at {caller}", stream.operation));
                    continue;
                };
                let key = (call.clone(), stream.operation);
                passes.entry(key).or_default().push(Pass { scenario, site: stream, nth: *nth });
            }
            println!("{name}: {} calls", numbers.values().sum::<u64>());
        }
        let passed: BTreeSet<_> = passes.keys().map(|(call, _)| call).collect();
        let excused = |call: &Call| {
            NEVER_PASSED.iter().any(|(file, function, method, _)| {
                let of_method = method.is_empty() || *method == call.method;
                *file == call.file && *function == call.function && of_method
            }) || FAILED_ELSEWHERE.iter().any(|(file, _)| call.file == *file)
        };
        let missed: Vec<_> = listed
            .iter()
            .filter(|call| !passed.contains(call) && !excused(call))
            .map(ToString::to_string)
            .collect();
        assert!(unknown.is_empty(), "calls that the list does not have: {unknown:#?}");
        assert!(missed.is_empty(), "calls that are not passed: {missed:#?}");
        let mut cases = Vec::new();
        for (call, operation) in passes.keys() {
            for fault in FAULTS.into_iter().filter(|fault| fault.applies_to(*operation)) {
                for for_good in [false, true] {
                    let (call, operation) = (call.clone(), *operation);
                    cases.push(Case { call, operation, fault, for_good });
                }
            }
        }
        println!("{} calls, {} cases", passes.len(), cases.len());
        Plan { starts, passes, cases }
    }
}

/// Begins each scenario and runs it without a fault: what it begins with, and its calls in order.
/// To find the lines of the calls takes nearly all the time.
fn tried() -> Vec<(Start, Vec<Site>)> {
    let next = AtomicUsize::new(0);
    let tried: Vec<_> = SCENARIOS.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        while let Some(at) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < tried.len())
        {
            let _time = VirtualTime::begin(0);
            let Scenario { name, start, act } = &SCENARIOS[at];
            let start = start();
            let mut run = start.run((*name).to_owned(), None);
            run.faulty.capture_callers(true);
            assert!(act(&mut run).is_some(), "{name} without a fault");
            let sites = run.faulty.captured_calls();
            assert!(tried[at].set((start, sites)).is_ok(), "{name} is run once");
        }
    };
    std::thread::scope(|scope| {
        (0..processors()).for_each(|_| drop(scope.spawn(work)));
    });
    tried.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// The call of the list that is meant: of several in one expression the nearest.
fn call_at<'a>(listed: &'a [Call], operation: VfsOperation, caller: &str) -> Option<&'a Call> {
    let meant = listed.iter().filter(|call| call.is_at(operation, caller));
    meant.min_by_key(|call| call.line - call.first)
}

/// Fails a call; tries other passings of it until it was the one that has failed.
fn fail(suite: &Suite, plan: &Plan, case: &Case, round: u64) {
    let passes = &plan.passes[&(case.call.clone(), case.operation)];
    let mut random = Random::new(round);
    for attempt in 0..8 {
        let nth = if round == 0 && attempt == 0 { 0 } else { random.below(passes.len() as u64) };
        let Pass { scenario, site, nth } = passes[nth as usize].clone();
        let Scenario { name, act, .. } = SCENARIOS[scenario];
        let what = format!(
            "{} fails with {:?}{}: scenario {name}, call {nth} of {site}",
            case.call,
            case.fault,
            if case.for_good { " for good" } else { "" },
        );
        let rule = FaultRule::new(case.fault).at(&site);
        let rule = if case.for_good { rule.from_nth(nth) } else { rule.nth(nth) };
        let rule = Some((rule, case.fault, site));
        let mut run = plan.starts[scenario].run(what.clone(), rule);
        run.faulty.capture_callers_of_faults(true);
        // What is tried again after a while is so at once.
        let _time = VirtualTime::begin(round);
        let done = catch_unwind(AssertUnwindSafe(|| act(&mut run)));
        let breaches = [run.faulty.breaches(), run.mem.breaches()].concat();
        if let Err(payload) = done {
            panic!("{what}: {} {breaches:?}", said(payload.as_ref()));
        }
        assert!(breaches.is_empty(), "{what}: {breaches:?}");
        let struck = run.faulty.sites().into_iter().filter(|(_, counts)| counts.faults > 0);
        let hit = struck
            .filter_map(|(site, _)| site.caller)
            .any(|caller| case.call.is_at(case.operation, &caller));
        suite.count("errors told", run.errors);
        if hit {
            suite.count("failed calls", 1);
            let sync = matches!(case.operation, VfsOperation::Sync | VfsOperation::SyncDir);
            suite.count("failed syncs", u64::from(sync && run.is_honest()));
            return;
        }
        suite.count("another call was struck", 1);
    }
    panic!("{} was never struck: {:?}", case.call, case.fault);
}

/// Every call of the source in every way; see `rel.rs`. A round fails each once in each way, at one
/// of the times when it is made.
#[test]
#[ignore = "run by cargo xtask rel errors"]
fn rel() {
    let plan = Plan::new();
    let left: Mutex<BTreeMap<u64, u64>> = Mutex::default();
    let calls = AtomicU64::new(0);
    Suite::new("errors", "rounds").run(processors(), |suite, case| {
        let all = plan.cases.len() as u64;
        let (round, nth) = ((case - 1) / all, (case - 1) % all);
        if calls.swap(1, Ordering::Relaxed) == 0 {
            suite.count("calls", plan.passes.len() as u64);
        }
        fail(suite, &plan, &plan.cases[nth as usize], round);
        let mut left = left.lock().unwrap();
        let left = left.entry(round).or_insert(all);
        *left -= 1;
        suite.count("rounds", u64::from(*left == 0));
    });
}

/// A few of the calls on every change.
#[test]
fn a_call_that_fails_is_told_or_does_not_matter() {
    let plan = Plan::new();
    let suite = Suite::new("errors", "failed calls");
    for case in plan.cases.iter().step_by(97) {
        fail(&suite, &plan, case, 0);
    }
}
