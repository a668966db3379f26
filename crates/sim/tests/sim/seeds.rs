//! Runs seeds. Some run twice to compare their traces. A failing plan runs again with fewer
//! operations.

use std::cell::Cell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use crate::draw;
use crate::plan::{Op, Plan};
use crate::support::rel::{Suite, processors, quietly, said};
use crate::world::{Counts, World};

const SHRINK_FOR: Duration = Duration::from_secs(60);
/// One of this many seeds runs twice.
const TWICE: u64 = 100;
/// This many seeds together reach every kind of event.
const ENOUGH: u64 = 200;

/// The real time after which a run counts as hung, on a busy machine.
const HANG: Duration = Duration::from_secs(120);
static RUNNING: Mutex<Vec<(u64, Instant)>> = Mutex::new(Vec::new());

/// The result of a run.
struct Ran {
    counts: Counts,
    trace: u64,
    log: Vec<String>,
}

/// Starts a thread that ends the process, with a message, if a run does not return.
fn watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::park_timeout(Duration::from_secs(1));
                let running = RUNNING.lock().unwrap();
                for (seed, since) in running.iter() {
                    if since.elapsed() > HANG {
                        // The test harness would keep captured output, so the message goes past it.
                        let replay = format!("cargo xtask rel replay --suite sim --case {seed}");
                        let text = format!("seed {seed} does not return\nREPLAY: {replay}\n");
                        let _lost = std::io::stderr().write_all(text.as_bytes());
                        std::process::abort();
                    }
                }
            }
        });
    });
}

/// Runs a whole plan. Returns the failure and the index of its operation.
fn run(plan: &Plan, log: bool) -> Result<Ran, (usize, String)> {
    watch();
    let (at, began) = (Cell::new(0), Instant::now());
    RUNNING.lock().unwrap().push((plan.seed, began));
    let done = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(plan.clone(), log);
        for (number, op) in plan.ops.iter().enumerate() {
            at.set(number);
            world.act(*op);
        }
        at.set(plan.ops.len());
        world.quiesce();
        Ran { counts: world.counts.clone(), trace: world.sim.trace(), log: world.sim.log() }
    }));
    RUNNING.lock().unwrap().retain(|(seed, since)| (*seed, *since) != (plan.seed, began));
    done.map_err(|payload| (at.get(), said(payload.as_ref())))
}

/// Removes operations that the failure does not need.
fn shrink(plan: &Plan, failed_at: usize) -> Plan {
    let with = |ops: &[Op]| Plan { ops: ops.to_vec(), ..plan.clone() };
    let fails = |ops: &[Op]| run(&with(ops), false).err().map(|(failed_at, _)| failed_at);
    let ops = plan.ops.iter().take(failed_at + 1).copied().collect();
    with(&draw::shrink(ops, SHRINK_FOR, fails))
}

/// Runs a seed. Two runs of the same seed are identical.
fn examine(seed: u64) -> Counts {
    let plan = Plan::new(seed);
    let (why, few) = match quietly(|| run(&plan, false)) {
        Ok(ran) => {
            if seed.is_multiple_of(TWICE) {
                let again = quietly(|| run(&plan, false));
                if again.map(|again| again.trace) != Ok(ran.trace) {
                    panic!("seed {seed} is not the same twice: {}", difference(&plan));
                }
            }
            return ran.counts;
        }
        Err((at, why)) => {
            if std::env::var_os("SATEEN_SIM_WHOLE").is_some() {
                panic!("seed {seed}: operation {at} of {}: {why}\n{plan:?}", plan.ops.len());
            }
            (format!("operation {at} of {}: {why}", plan.ops.len()), quietly(|| shrink(&plan, at)))
        }
    };
    let again = quietly(|| run(&few, false)).err();
    let tail: Vec<_> = few.ops.iter().rev().take(60).rev().collect();
    panic!(
        "seed {seed}, profile {}: {why}\nREPLAY: SATEEN_SIM_SEED={seed}\n{} operations suffice: \
         {again:?}\n{tail:?}",
        plan.options.profile,
        few.ops.len()
    );
}

/// Returns the first entry of the trace that differs in a second run.
fn difference(plan: &Plan) -> String {
    let logs = [0, 1].map(|_| quietly(|| run(plan, true)).map(|ran| ran.log).unwrap_or_default());
    let [first, second] = &logs;
    let same = first.iter().zip(second).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(5);
    let around = |log: &[String]| log[from.min(log.len())..(same + 3).min(log.len())].join("\n  ");
    format!("entry {same}\n  {}\nand\n  {}", around(first), around(second))
}

#[test]
fn short_runs_come_to_rest() {
    let only = std::env::var("SATEEN_SIM_SEED").ok().and_then(|text| text.parse().ok());
    if let Some(only) = only {
        println!("{:#?}", examine(only));
        return;
    }
    let next = AtomicU64::new(100);
    std::thread::scope(|scope| {
        for _ in 0..processors().min(4) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= 130 {
                        return;
                    }
                    examine(seed);
                }
            });
        }
    });
}

/// The long form: see `rel.rs`.
#[test]
#[ignore = "goes on as long as it is told to"]
fn rel() {
    let seeds = AtomicU64::new(0);
    let virtual_ms = AtomicU64::new(0);
    let seen: [(&'static str, AtomicU64); 12] = [
        "operations",
        "power failures",
        "failures in recovery",
        "process deaths",
        "restarts",
        "faults struck",
        "stalled writes",
        "device stalls",
        "refused late",
        "checkpoints",
        "preemptions",
        "traces compared",
    ]
    .map(|name| (name, AtomicU64::new(0)));
    // Its thread stays and must exist before threads are counted.
    watch();
    Suite::new("sim", "seeds").run(processors(), |suite, seed| {
        let counts = examine(seed);
        let figures = [
            counts.operations,
            counts.power_failures,
            counts.failures_in_recovery,
            counts.kills,
            counts.restarts,
            counts.faults,
            counts.waits,
            counts.device_stalls,
            counts.refused_late,
            counts.checkpoints,
            counts.preemptions,
            u64::from(seed.is_multiple_of(TWICE)),
        ];
        for ((name, sum), more) in seen.iter().zip(figures) {
            suite.count(name, more);
            sum.fetch_add(more, Ordering::Relaxed);
        }
        let before = virtual_ms.fetch_add(counts.virtual_ms, Ordering::Relaxed);
        let seconds = (before + counts.virtual_ms) / 1000 - before / 1000;
        suite.count("virtual seconds", seconds);
        suite.count("seeds", 1);
        seeds.fetch_add(1, Ordering::Relaxed);
    });
    if seeds.load(Ordering::Relaxed) >= ENOUGH {
        for (name, sum) in &seen {
            assert!(sum.load(Ordering::Relaxed) > 0, "no {name} in {ENOUGH} seeds and more");
        }
    }
}
