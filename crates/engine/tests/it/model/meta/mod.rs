//! The engine against a model: random operations under extreme option sets, every answer compared.
//!
//! A run is a list of operations made from one seed, on a file system in memory, without threads.
//! When one fails, operations are left out of its list while it still fails, and what remains is
//! printed. `SATEEN_META_SEED=<n>` replays a seed (with `SATEEN_META_SET=<n>` one option set only,
//! from `sets::FIXED` on a random one), `SATEEN_META_OPS=<n>` changes the number of operations.

mod act;
mod draw;
mod keys;
mod look;
mod model;
mod more;
mod ops;
mod sets;
mod threads;
mod world;
mod writes;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::common::Random;
use crate::support::rel::{Watch, quietly, said};
use ops::Op;
use sateen::Options;
use sateen::test_support::clock::{VirtualTime, advance};
use world::World;

/// So long at most it is between two operations, as those go on.
const PACE_MICROS: u64 = 1000;

const SHRINK_FOR: Duration = Duration::from_secs(40);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Does all of `ops`. Returns how many calls that were, or what went wrong, and at which.
fn run(
    options: &Options,
    faults: bool,
    ops: &[Op],
    progress: &AtomicUsize,
) -> Result<u64, (usize, String)> {
    progress.store(0, Ordering::Relaxed);
    let done = catch_unwind(AssertUnwindSafe(|| {
        // Who waits before trying again after a failure does not keep anybody.
        let _time = VirtualTime::begin(ops.len() as u64);
        let mut world = World::new(options.clone(), faults);
        for (at, op) in ops.iter().enumerate() {
            progress.store(at, Ordering::Relaxed);
            advance(Duration::from_micros(op.seed % PACE_MICROS));
            world.act(*op);
        }
        progress.store(ops.len(), Ordering::Relaxed);
        world.quiesce();
        world.calls
    }));
    done.map_err(|payload| (progress.load(Ordering::Relaxed), said(payload.as_ref())))
}

/// A list of operations, made from its seed, under a set of options.
struct Case<'a> {
    name: &'a str,
    options: &'a Options,
    seed: u64,
    count: usize,
    faults: bool,
    /// What replays it.
    replay: String,
}

fn examine(name: &str, options: &Options, seed: u64, set: usize, count: usize, faults: bool) {
    let count = number("SATEEN_META_OPS").map_or(count, |count| count as usize);
    let seed = number("SATEEN_META_SEED").unwrap_or(seed);
    if number("SATEEN_META_SET").is_some_and(|only| only != set as u64) {
        return;
    }
    let replay =
        format!("REPLAY: SATEEN_META_SEED={seed} SATEEN_META_SET={set} SATEEN_META_OPS={count}");
    examine_case(&Case { name, options, seed, count, faults, replay });
}

/// Does all of the case, and returns what that was, and in how many calls. A failing one is
/// reduced.
fn examine_case(case: &Case<'_>) -> (Vec<Op>, u64) {
    let Case { name, options, seed, count, faults, ref replay } = *case;
    let mut list = ops::list(&mut Random::new(seed), count, faults);
    let watch = Watch::new(format!("{name}: {replay}"));
    let progress = watch.steps.clone();
    let done = quietly(|| run(options, faults, &list, &progress));
    if let Err((at, why)) = done {
        list.truncate(at + 1);
        let run = |ops: &[Op]| quietly(|| run(options, faults, ops, &progress)).err();
        let few = draw::shrink(list, SHRINK_FOR, |ops| run(ops).map(|(at, _)| at));
        let again = run(&few);
        drop(watch);
        let tail: Vec<_> = few.iter().rev().take(60).rev().collect();
        panic!(
            "{name}, faults {faults}: operation {at} of {count}: {why}\n{replay}\n\
             {} operations suffice: {again:?}\n{tail:?}",
            few.len()
        );
    }
    (list, done.unwrap_or_default())
}

/// How many random sets a round of the long form has.
const RANDOM: u64 = 64;

/// The set of options by the number of the case: each fixed one, each profile, and random ones.
fn chosen(case: u64) -> (String, Options) {
    let profiles = Options::profiles();
    let sets = sets::FIXED as u64 + profiles.len() as u64 + RANDOM;
    let at = (case % sets) as usize;
    if at < sets::FIXED {
        let (name, options) = sets::fixed(at);
        return (name.to_owned(), options);
    }
    let random = &mut Random::new(case.wrapping_mul(86_028_121));
    let mut options = match profiles.get(at - sets::FIXED) {
        Some(profile) => sets::profile(profile, random),
        None => sets::random(random),
    };
    if random.one_in(5) {
        keys::mirror(&mut options);
    }
    let profile = profiles.get(at - sets::FIXED).copied();
    (profile.unwrap_or("a random set").to_owned(), options)
}

/// The set of options, whether disks fail, and all operations by the number of the case; see
/// `rel.rs`.
#[test]
#[ignore = "run by cargo xtask rel meta"]
fn rel() {
    let suite = crate::support::rel::Suite::new("meta", "operations").requires(ops::NAMES);
    suite.run(crate::support::rel::processors(), |suite, number| {
        let (name, options) = chosen(number);
        let (name, options, seed) = (&*name, &options, number);
        let sets = sets::FIXED as u64 + Options::profiles().len() as u64 + RANDOM;
        let faults = (number / sets + number).is_multiple_of(3);
        let count = if faults { 500 } else { 1000 };
        let replay = format!("REPLAY: cargo xtask rel replay --suite meta --case {number}");
        let (done, calls) = examine_case(&Case { name, options, seed, count, faults, replay });
        suite.count("operations", calls);
        for op in done {
            suite.count(op.kind.name(), 1);
        }
    });
}

/// Each fixed set once, from `first` on each `stride`-th.
fn fixed_sets(first: usize, stride: usize, faults: bool) {
    for set in (first..sets::FIXED).step_by(stride) {
        let (name, options) = sets::fixed(set);
        examine(name, &options, 1000 + set as u64, set, if faults { 400 } else { 1000 }, faults);
    }
}

fn random_sets(first: usize, count: usize, faults: bool) {
    for number in first..first + count {
        let mut options = sets::random(&mut Random::new(number as u64));
        if number % 5 == 4 {
            keys::mirror(&mut options);
        }
        let set = sets::FIXED + number;
        examine("a random set", &options, 5000 + number as u64, set, 800, faults);
    }
}

#[test]
fn fixed_sets_first_half() {
    fixed_sets(0, 2, false);
}

#[test]
fn fixed_sets_second_half() {
    fixed_sets(1, 2, false);
}

#[test]
fn random_option_sets() {
    random_sets(0, 30, false);
}

#[test]
fn disks_that_fail_under_fixed_sets() {
    fixed_sets(0, 1, true);
}

#[test]
fn disks_that_fail_under_random_sets() {
    random_sets(100, 15, true);
}
