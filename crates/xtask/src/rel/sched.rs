//! The suite `sched` explores the interleavings of threads: the engine under shuttle's schedulers,
//! the memtable under loom's, and the unsafe modules under Miri.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::suites::Suite;
use super::{Amount, Bench};
use crate::chore::{Outcome, answers, step};

const SHUTTLE: &str = "--cfg shuttle";
/// The tests of the memtable that Miri finishes in a few seconds, and those to leave out, because
/// they write for long, count allocations, or use no unsafe code.
const MIRI: &str = "memtable::tests";
const MIRI_NOT: &[&str] = &["threads_", "reserves_", "the_pool", "codes_"];

/// Runs the suite. The short form leaves loom to `cargo xtask test`, which runs its models anyway.
pub(super) fn run(bench: &Bench, suite: &Suite, amount: Amount, first: Option<u64>) -> Outcome {
    let command = schedules(bench, &target(bench))?;
    bench.run_as_test(command, suite, amount, first)?;
    miri(bench, suite)?;
    if amount.seconds > 0 { crate::models::run(&bench.root) } else { Ok(()) }
}

pub(super) fn replay(bench: &Bench, case: u64) -> Outcome {
    let mut command = schedules(bench, &target(bench))?;
    let status = command.env("SATEEN_REL_ONLY", case.to_string()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(vec![format!("suite sched, case {case}: {status}")]),
        Err(error) => Err(vec![error.to_string()]),
    }
}

/// Returns where cargo builds what shuttle schedules.
fn target(bench: &Bench) -> PathBuf {
    super::target(&bench.root).join("shuttle")
}

/// Returns the command that runs the models of `crates/engine/tests/schedules.rs`, built in
/// `target`. Two copies of the sources must not share it: cargo may take one for the other.
pub(super) fn schedules(bench: &Bench, target: &Path) -> Result<Command, Vec<String>> {
    let target = target.to_string_lossy();
    // The build takes far longer than the schedules of the short form.
    let level = ("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    let environment = [("RUSTFLAGS", SHUTTLE), ("CARGO_TARGET_DIR", &*target), level];
    let binary = bench.built_test("schedules", &environment)?;
    let mut command = Command::new(binary);
    command.args(["--ignored", "--exact", "rel", "--nocapture", "--test-threads=1"]);
    command.current_dir(bench.root.join("crates/engine"));
    Ok(command)
}

/// Runs the memtable's tests under Miri with Tree Borrows, if there is a nightly toolchain with
/// Miri.
fn miri(bench: &Bench, suite: &Suite) -> Outcome {
    if !answers(cargo_miri().arg("--version")) {
        println!("SKIPPED(Miri: no nightly toolchain with it)");
        let required = std::env::var_os("REL_REQUIRE_ALL").is_some();
        return if required { Err(vec!["Miri is required".to_owned()]) } else { Ok(()) };
    }
    step("miri", || {
        let mut command = cargo_miri();
        let words = "test --package sateen-store --no-default-features --lib --quiet --";
        command.args(words.split(' ')).arg(MIRI).current_dir(&bench.root);
        MIRI_NOT.iter().for_each(|name| {
            command.args(["--skip", name]);
        });
        command
            .env("MIRIFLAGS", "-Zmiri-tree-borrows")
            .env("CARGO_TARGET_DIR", super::target(&bench.root).join("miri"));
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| vec![format!("cargo +nightly miri: {error}")])?;
        let text = String::from_utf8_lossy(&output.stdout);
        let passed = text.lines().find_map(|line| {
            let line = line.strip_prefix("test result: ok. ")?;
            line.split(' ').next()?.parse::<u64>().ok()
        });
        match passed.filter(|passed| *passed > 0 && output.status.success()) {
            Some(passed) => bench.record(suite, &BTreeMap::from([("tests under Miri", passed)])),
            None => Err(vec![text.into_owned(), "Miri: the memtable's tests fail".to_owned()]),
        }
    })
}

/// Returns the nightly toolchain's Miri, whatever the current toolchain is.
fn cargo_miri() -> Command {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "miri"]);
    for inherited in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTFLAGS"] {
        command.env_remove(inherited);
    }
    command
}
