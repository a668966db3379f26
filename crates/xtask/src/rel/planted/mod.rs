//! The suite `planted` builds the test binary with bugs in it. The tests must find each bug
//! (docs/decisions/0028-planted-bugs-are-patches.md).
//!
//! 1. [`copy::make`] copies the sources and puts all bugs into the copy, each from its patch
//!    ([`patch`]).
//! 2. [`run`] builds the copy's test binary once. The environment variable `SATEEN_PLANT` picks a
//!    bug at run time.
//! 3. [`Tests::pass_without_bugs`] runs the tests without a bug, and [`Tests::find`] each test with
//!    the bug that it must find.
//!
//! What must stay true: a bug counts as caught only if its test ran, failed in time and printed one
//! of the messages that the bug causes. `cargo xtask tidy` runs [`check()`].

mod bugs;
mod check;
mod copy;
mod patch;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use super::suites::Suite;
use super::{Amount, Bench, sched};
use crate::chore::Outcome;
use bugs::BUGS;
pub(crate) use check::check;

/// A bug of the engine, and the test that finds it.
struct Bug {
    /// Its name in the engine.
    name: &'static str,
    /// The kind of bug, which other engines have had.
    class: &'static str,
    /// The test of the engine's test binary that fails, or [`SCHEDULES`].
    test: &'static str,
    /// The messages of its failure, one of which must appear.
    says: &'static [&'static str],
}

/// The name that stands for the test of the suite `sched`.
const SCHEDULES: &str = "sched";

/// The time limit of a test, whether it passes or finds its bug.
const TIME_MAX: Duration = Duration::from_secs(600);
/// Power fails at more places than in `cargo xtask test` (`SATEEN_CRASH_SCALE`).
const CRASH_SCALE: &str = "4";
/// The interval at which a running test is checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The number of lines to print of a test without the expected message.
const TAIL_LINES: usize = 30;

/// Runs bugs from number `first` on: as many as the amount says, or all of them in the long form.
pub(super) fn run(bench: &Bench, suite: &Suite, amount: Amount, first: Option<u64>) -> Outcome {
    check(&bench.root)?;
    let folder = bench.folder.join("planted");
    let copy = Bench { root: folder.join("src"), folder: bench.folder.clone() };
    let written = copy::make(&bench.root, &copy.root)?;
    eprintln!("{}: {written} files changed", copy.root.display());
    let target = folder.join("target");
    let binary = copy.test_binary(&[("CARGO_TARGET_DIR", &target.to_string_lossy())])?;
    // Another first case means the same bugs in rotated order.
    let first = usize::try_from(first.unwrap_or(1)).unwrap_or(1).max(1) - 1;
    let first = first % BUGS.len();
    let most = if amount.seconds > 0 { u64::MAX } else { amount.at_least.max(1) };
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(BUGS.len());
    let chosen: Vec<_> = BUGS.iter().zip(1_u64..).cycle().skip(first).take(most).collect();
    let tests = Tests { binary, copy, folder };
    tests.are_there()?;
    tests.pass_without_bugs(chosen.iter().map(|(bug, _)| *bug))?;
    let (mut caught, mut problems) = (0, Vec::new());
    for (bug, number) in chosen {
        match tests.find(bug) {
            Ok(took) => {
                eprintln!("{number:3} {}: caught by {} in {took:.1?}", bug.name, bug.test);
                caught += 1;
            }
            Err(why) => problems.push(format!(
                "{why}\nREPLAY: cargo xtask rel replay --suite {} --case {number}",
                suite.name
            )),
        }
    }
    bench.record(suite, &BTreeMap::from([("planted bugs caught", caught)]))?;
    eprintln!("{}: {caught} of {} bugs caught", suite.name, BUGS.len());
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

pub(super) fn replay(bench: &Bench, suite: &Suite, case: u64) -> Outcome {
    run(bench, suite, Amount { at_least: 1, ..Amount::default() }, Some(case))
}

/// The engine's test binary, built with the bugs.
struct Tests {
    binary: PathBuf,
    /// The copy of the sources that has the bugs.
    copy: Bench,
    /// The folder of what the tests print.
    folder: PathBuf,
}

impl Tests {
    /// Checks that every bug, selected or not, names an existing test.
    fn are_there(&self) -> Outcome {
        let listed = Command::new(&self.binary).arg("--list").output();
        let listed = listed.map_err(|error| vec![format!("{}: {error}", self.binary.display())])?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        let there: BTreeSet<_> =
            listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
        let missing = BUGS.iter().filter(|bug| bug.test != SCHEDULES && !there.contains(bug.test));
        let missing: Vec<_> =
            missing.map(|bug| format!("{}: there is no test {}", bug.name, bug.test)).collect();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }

    /// Checks that the tests pass without bugs, because a test that fails anyway proves nothing.
    fn pass_without_bugs<'a>(&self, bugs: impl Iterator<Item = &'a Bug>) -> Outcome {
        // The suite `sched` itself runs without a bug.
        let tests = bugs.map(|bug| bug.test).filter(|test| *test != SCHEDULES);
        let tests: BTreeSet<_> = tests.collect();
        let count = tests.len();
        if count == 0 {
            return Ok(());
        }
        let mut command = Command::new(&self.binary);
        command.arg("--exact").args(tests);
        let longest = TIME_MAX * u32::try_from(count).unwrap_or(u32::MAX);
        let (status, text, took) = self.test(command, "without", longest)?;
        if !status.is_some_and(|status| status.success())
            || !text.contains(&format!("{count} passed"))
        {
            return Err(vec![tail(&text), "tests fail or are missing without any bug".to_owned()]);
        }
        eprintln!("{count} tests pass without a bug in {took:.1?}");
        Ok(())
    }

    /// Returns how long it took to find the bug.
    fn find(&self, bug: &Bug) -> Result<Duration, String> {
        let command = match bug.test {
            SCHEDULES => {
                sched::schedules(&self.copy, &self.folder.join("shuttle")).map(|mut command| {
                    let seconds = TIME_MAX.as_secs() / 2;
                    command.env("SATEEN_REL_SECONDS", seconds.to_string());
                    command
                })
            }
            test => {
                let mut command = Command::new(&self.binary);
                command.args(["--exact", test]);
                Ok(command)
            }
        };
        let tested = command.and_then(|mut command| {
            command.env("SATEEN_PLANT", bug.name);
            self.test(command, bug.name, TIME_MAX)
        });
        let (status, text, took) = tested.map_err(|problems| problems.join("\n"))?;
        let what = format!("{} ({}), by {}", bug.name, bug.class, bug.test);
        match status {
            None => Err(format!("{}\n{what}: not found in {TIME_MAX:?}", tail(&text))),
            Some(status) if status.success() => Err(format!("{what}: not found, the test passes")),
            _ if !text.contains("running 1 test") => {
                Err(format!("{}\n{what}: no test", tail(&text)))
            }
            _ if bug.says.iter().any(|said| text.contains(said)) => Ok(took),
            _ => Err(format!("{}\n{what}: fails for another reason", tail(&text))),
        }
    }

    /// Runs tests and returns their output and how they ended, `None` if they did not end.
    fn test(
        &self,
        mut command: Command,
        name: &str,
        longest: Duration,
    ) -> Result<(Option<ExitStatus>, String, Duration), Vec<String>> {
        let said = self.folder.join(format!("{name}.txt"));
        let problem = |error: std::io::Error| vec![format!("{}: {error}", said.display())];
        let out = File::create(&said).map_err(problem)?;
        let errors = out.try_clone().map_err(problem)?;
        command.env("SATEEN_CRASH_SCALE", CRASH_SCALE);
        command.current_dir(self.copy.root.join("crates/engine")).stdout(out).stderr(errors);
        let began = Instant::now();
        let mut child = command.spawn().map_err(problem)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(problem)? {
                break Some(status);
            }
            if began.elapsed() > longest {
                let _gone = child.kill();
                let _gone = child.wait();
                break None;
            }
            std::thread::sleep(LOOK_EVERY);
        };
        let text = fs::read(&said).map_err(problem)?;
        Ok((status, String::from_utf8_lossy(&text).into_owned(), began.elapsed()))
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
