//! The fuzzers of `fuzz/` as a suite. Each target runs for its share of the time and starts from
//! the seeds of the repository. The nightly toolchain builds them with the flags of cargo-fuzz,
//! which need not be installed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::suites::Suite;
use super::{Amount, Bench};
use crate::chore::{Outcome, answers};

const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// Seconds of the short form, for all targets together.
const SECONDS: u64 = 30;
/// Flags for libFuzzer's coverage, for the address sanitizer, and for checksums that always pass.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0 -Zsanitizer=address -Cdebug-assertions";

/// Builds and runs all targets.
pub(super) fn run(bench: &Bench, suite: &Suite, amount: Amount, first: Option<u64>) -> Outcome {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return bench.skip(suite, "the fuzzers are built for Linux on x86-64");
    }
    if !answers(Command::new("rustc").args(["+nightly", "--version"])) {
        return bench.skip(suite, "no nightly toolchain");
    }
    let folder = bench.root.join("fuzz");
    let target = super::target(&bench.root).join("fuzz");
    let mut build = Command::new("cargo");
    // The caller's toolchain would take precedence over the requested one.
    build.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    // The short form fuzzes for less time than the build takes.
    let short = amount.seconds == 0;
    build.env("RUSTFLAGS", format!("{FLAGS} -Ccodegen-units={}", if short { 16 } else { 1 }));
    if short {
        build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    }
    build.args(["+nightly", "build", "--release", "--target", TRIPLE, "--target-dir"]).arg(&target);
    build.args(["--manifest-path"]).arg(folder.join("Cargo.toml"));
    let built = build.status().map_err(|error| vec![format!("cargo +nightly: {error}")])?;
    if !built.success() {
        return Err(vec![format!("the fuzzers cannot be built: {built}")]);
    }
    let targets = targets(&folder)?;
    let all = if amount.seconds > 0 { amount.seconds } else { SECONDS };
    let seconds = (all / targets.len().max(1) as u64).max(1);
    let (mut executions, mut problems) = (0, Vec::new());
    for name in &targets {
        let binary = target.join(TRIPLE).join("release").join(name);
        match fuzz(bench, &binary, name, seconds, first.unwrap_or(1)) {
            Ok(more) => {
                eprintln!("{name}: {more} executions");
                executions += more;
            }
            Err(problem) => problems.push(problem),
        }
    }
    bench.record(suite, &BTreeMap::from([("executions", executions)]))?;
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Returns the names of the targets, which are those of their files.
fn targets(folder: &Path) -> Result<Vec<String>, Vec<String>> {
    let folder = folder.join("fuzz_targets");
    let entries =
        fs::read_dir(&folder).map_err(|error| vec![format!("{}: {error}", folder.display())])?;
    let mut names: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Runs one target and returns the number of its runs.
fn fuzz(bench: &Bench, binary: &Path, name: &str, seconds: u64, seed: u64) -> Result<u64, String> {
    let corpus = bench.folder.join("fuzz").join(name);
    let failures = bench.folder.join("failures");
    for folder in [&corpus, &failures] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let prefix: PathBuf = failures.join(format!("fuzz-{name}-"));
    let mut command = Command::new(binary);
    command
        .arg(&corpus)
        .arg(bench.root.join("fuzz/seeds").join(name))
        .arg(format!("-artifact_prefix={}", prefix.display()))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-seed={seed}"))
        .args(["-print_final_stats=1", "-rss_limit_mb=2048", "-malloc_limit_mb=512"])
        .args(["-timeout=20", "-max_len=32768"]);
    let output = command.output().map_err(|error| format!("{}: {error}", binary.display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let tail: Vec<_> = text.lines().rev().take(40).collect();
        let tail: Vec<_> = tail.into_iter().rev().collect();
        return Err(format!(
            "fuzz target {name}: {}\n{}\nREPLAY: {} {}FILE, with what was written there",
            output.status,
            tail.join("\n"),
            binary.display(),
            prefix.display(),
        ));
    }
    let ran = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    ran.and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| format!("fuzz target {name} does not say how often it ran"))
}
