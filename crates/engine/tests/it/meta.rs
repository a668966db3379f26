//! The engine against a model: random operations under extreme option sets, every answer compared.
//!
//! A run is a list of operations made from one seed, on a file system in memory, without threads.
//! When one fails, operations are left out of its list while it still fails, and what remains is
//! printed. `SATEEN_META_SEED=<n>` replays a seed (with `SATEEN_META_SET=<n>` one option set only,
//! from `sets::FIXED` on a random one), `SATEEN_META_OPS=<n>` changes the number of operations.

mod act;
mod keys;
mod look;
mod model;
mod ops;
mod sets;
mod threads;
mod world;
mod writes;

use std::cell::Cell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::Random;
use ops::Op;
use sateen::Options;
use world::World;

/// Longer than any operation takes.
const HANG: Duration = Duration::from_secs(30);
const SHRINK_FOR: Duration = Duration::from_secs(40);

thread_local! {
    /// Panics of this thread are expected: they are not printed.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Does all of `ops`. Returns what went wrong, and at which.
fn run(
    options: &Options,
    faults: bool,
    ops: &[Op],
    progress: &AtomicUsize,
) -> Option<(usize, String)> {
    progress.store(0, Ordering::Relaxed);
    let done = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(options.clone(), faults);
        for (at, op) in ops.iter().enumerate() {
            progress.store(at, Ordering::Relaxed);
            world.act(*op);
        }
        progress.store(ops.len(), Ordering::Relaxed);
        world.quiesce();
    }));
    let payload = done.err()?;
    let text = payload.downcast_ref::<String>().cloned();
    let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Some((progress.load(Ordering::Relaxed), text.unwrap_or_default()))
}

/// Leaves out what the failure does not need.
fn shrink(options: &Options, faults: bool, ops: &[Op], progress: &AtomicUsize) -> Vec<Op> {
    let start = Instant::now();
    let mut ops = ops.to_vec();
    let mut size = ops.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < ops.len() {
            if start.elapsed() > SHRINK_FOR {
                return ops;
            }
            let mut fewer = ops.clone();
            fewer.drain(at..(at + size).min(ops.len()));
            match run(options, faults, &fewer, progress) {
                Some((failed_at, _)) => {
                    fewer.truncate(failed_at + 1);
                    ops = fewer;
                }
                None => at += size,
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    ops
}

/// A test that hangs says where and ends the process: nothing else would.
fn watch(what: String, steps: std::sync::Arc<AtomicUsize>, over: std::sync::Arc<AtomicUsize>) {
    std::thread::spawn(move || {
        let (mut last, mut since) = (0, Instant::now());
        while over.load(Ordering::Relaxed) == 0 {
            std::thread::park_timeout(Duration::from_millis(500));
            let now = steps.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > HANG {
                // Past the capture of the test harness, which would keep it.
                let text = format!("{what}: operation {now} does not return\n");
                let _lost = std::io::stderr().write_all(text.as_bytes());
                std::process::abort();
            }
        }
    });
}

fn examine(name: &str, options: &Options, seed: u64, set: usize, count: usize, faults: bool) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let count = number("SATEEN_META_OPS").map_or(count, |count| count as usize);
    let seed = number("SATEEN_META_SEED").unwrap_or(seed);
    if number("SATEEN_META_SET").is_some_and(|only| only != set as u64) {
        return;
    }
    let replay = format!("SATEEN_META_SEED={seed} SATEEN_META_SET={set} SATEEN_META_OPS={count}");
    let mut list = ops::list(&mut Random::new(seed), count, faults);
    let (progress, over) = (std::sync::Arc::new(AtomicUsize::new(0)), std::sync::Arc::default());
    watch(format!("{name}: {replay}"), progress.clone(), std::sync::Arc::clone(&over));
    QUIET.set(true);
    let failed = run(options, faults, &list, &progress);
    if let Some((at, why)) = failed {
        list.truncate(at + 1);
        let few = shrink(options, faults, &list, &progress);
        let again = run(options, faults, &few, &progress);
        QUIET.set(false);
        over.store(1, Ordering::Relaxed);
        let tail: Vec<_> = few.iter().rev().take(60).rev().collect();
        panic!(
            "{name}, faults {faults}: operation {at} of {count}: {why}\nREPLAY: {replay}\n\
             {} operations suffice: {again:?}\n{tail:?}",
            few.len()
        );
    }
    QUIET.set(false);
    over.store(1, Ordering::Relaxed);
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
