//! `cargo xtask rel`: the suites of the reliability programme (docs/reliability.md), their results
//! as JSON under `target/rel`, and what they must come to.
//!
//! Most suites are an ignored test `<module>::rel` in a test binary of the engine or of another
//! package. The environment tells it how much to do (`crates/engine/tests/it/support/rel.rs`).

mod fuzz;
mod planted;
mod sched;
mod suites;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::chore::Outcome;
pub(crate) use planted::check as planted_bugs;
use suites::{SUITES, Suite};

const HELP: &str = "\
The suites of the reliability programme.

Usage: cargo xtask rel <suite> [--minutes N] [--first CASE]
       cargo xtask rel ci [--divide N]         the short form of all suites, or an N-th of it
       cargo xtask rel all --minutes N         the long form, the time divided among the suites
       cargo xtask rel check [--long]          what was counted, against the bars
       cargo xtask rel replay --suite S --case N
       cargo xtask rel list                    the suites and their bars

Results go to target/rel/results.jsonl, a line for each run of a suite; failures to
target/rel/failures. A suite that can't be run here prints SKIPPED(reason) and counts nothing; with
REL_REQUIRE_ALL=1 that is a failure.
";

/// The arguments of `cargo xtask rel`.
#[derive(Default)]
struct Asked {
    what: String,
    suite: Option<String>,
    case: Option<u64>,
    first: Option<u64>,
    minutes: Option<f64>,
    divide: Option<u64>,
    long: bool,
}

pub(crate) fn run(root: &Path, arguments: &[String]) -> Outcome {
    let asked = parse(arguments).map_err(|problem| vec![problem, HELP.to_owned()])?;
    let bench = Bench { root: root.to_owned(), folder: target(root).join("rel") };
    match asked.what.as_str() {
        "" | "help" | "--help" => {
            print!("{HELP}");
            Ok(())
        }
        "list" => {
            for suite in SUITES {
                println!("{:10} {}", suite.name, suite.what);
                for bar in suite.bars {
                    println!("{:10}   {}: {} (long: {})", "", bar.figure, bar.short, bar.long);
                }
            }
            Ok(())
        }
        "check" => bench.check(asked.long, 1),
        "replay" => {
            let (Some(name), Some(case)) = (&asked.suite, asked.case) else {
                return Err(vec!["replay wants --suite and --case".into()]);
            };
            bench.replay(find(name)?, case)
        }
        "ci" => {
            let divide = asked.divide.unwrap_or(1).max(1);
            bench.forget_results()?;
            bench.every(|suite| Amount::until(suite, divide), asked.first)?;
            bench.check(false, divide)
        }
        "all" => {
            let minutes = asked.minutes.ok_or_else(|| vec!["all wants --minutes".to_owned()])?;
            let shares: f64 = SUITES.iter().map(|suite| suite.share).sum();
            bench.every(|suite| Amount::minutes(minutes * suite.share / shares), asked.first)
        }
        name => {
            let suite = find(name)?;
            let amount = asked.minutes.map_or_else(|| Amount::until(suite, 1), Amount::minutes);
            bench.suite(suite, amount, asked.first)
        }
    }
}

fn parse(arguments: &[String]) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        let wrong = |text: &str| format!("{word} {text}: not a number");
        match word.as_str() {
            "--suite" => asked.suite = Some(value()?.clone()),
            "--case" => asked.case = Some(value().and_then(|v| v.parse().map_err(|_| wrong(v)))?),
            "--first" => asked.first = Some(value().and_then(|v| v.parse().map_err(|_| wrong(v)))?),
            "--minutes" => {
                asked.minutes = Some(value().and_then(|v| v.parse().map_err(|_| wrong(v)))?);
            }
            "--divide" => {
                asked.divide = Some(value().and_then(|v| v.parse().map_err(|_| wrong(v)))?);
            }
            "--long" => asked.long = true,
            flag if flag.starts_with("--") && flag != "--help" => {
                return Err(format!("unknown option {flag}"));
            }
            other if asked.what.is_empty() => asked.what = other.to_owned(),
            other => return Err(format!("what is {other:?} for?")),
        }
    }
    Ok(asked)
}

fn find(name: &str) -> Result<&'static Suite, Vec<String>> {
    SUITES.iter().find(|suite| suite.name == name).ok_or_else(|| {
        let names: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
        vec![format!("no suite {name:?}; there are {}", names.join(", "))]
    })
}

/// How much of a suite to run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Amount {
    pub(crate) seconds: u64,
    pub(crate) at_least: u64,
    /// Whether it is too little for what is rare to happen.
    pub(crate) divided: bool,
}

impl Amount {
    /// Returns the amount of the suite's short form, divided by `divide`.
    fn until(suite: &Suite, divide: u64) -> Amount {
        let at_least = suite.bars.first().map_or(1, |bar| bar.short.div_ceil(divide));
        Amount { seconds: 0, at_least, divided: divide > 1 }
    }

    fn minutes(minutes: f64) -> Amount {
        Amount { seconds: (minutes * 60.0).max(1.0) as u64, at_least: 0, divided: false }
    }
}

/// The place where suites are built, run and counted.
pub(crate) struct Bench {
    pub(crate) root: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Bench {
    fn results(&self) -> PathBuf {
        self.folder.join("results.jsonl")
    }

    fn forget_results(&self) -> Outcome {
        match fs::remove_file(self.results()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(vec![format!("{}: {error}", self.results().display())])
            }
            _ => Ok(()),
        }
    }

    /// Runs all suites, even after one has failed. Suites that mostly wait run beside the others.
    fn every(&self, amount: impl Fn(&Suite) -> Amount + Sync, first: Option<u64>) -> Outcome {
        let run = |waits: bool| -> Vec<String> {
            let suites = SUITES.iter().filter(|suite| suite.waits == waits);
            let failed = suites.filter_map(|suite| self.suite(suite, amount(suite), first).err());
            failed.flatten().collect()
        };
        let problems = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| run(true));
            let mut problems = run(false);
            let waited = waiting.join();
            problems.extend(waited.unwrap_or_else(|_| vec!["a suite's thread panicked".into()]));
            problems
        });
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn suite(&self, suite: &Suite, amount: Amount, first: Option<u64>) -> Outcome {
        fs::create_dir_all(&self.folder)
            .map_err(|error| vec![format!("{}: {error}", self.folder.display())])?;
        eprintln!("== rel {}", suite.name);
        let began = Instant::now();
        let done = (suite.run)(self, suite, amount, first);
        eprintln!("== rel {}: {:.1} s", suite.name, began.elapsed().as_secs_f64());
        done
    }

    fn replay(&self, suite: &Suite, case: u64) -> Outcome {
        match suite.name {
            "planted" => return planted::replay(self, suite, case),
            "sched" => return sched::replay(self, case),
            "fuzz" => {
                let text = "its failures are files, which say how they are replayed";
                return Err(vec![format!("suite fuzz has no case {case}: {text}")]);
            }
            _ => {}
        }
        let environment = [("SATEEN_REL_ONLY", case.to_string())];
        let mut command = self.test_command(suite)?;
        let status = command.envs(environment).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(vec![format!("suite {}, case {case}: {status}", suite.name)]),
            Err(error) => Err(vec![error.to_string()]),
        }
    }

    /// Returns the command that runs the suite as a test of its binary.
    fn test_command(&self, suite: &Suite) -> Result<Command, Vec<String>> {
        let (package, test, module) = suite.place();
        let binary = self.built_test(test, &[])?;
        let mut command = Command::new(binary);
        let name = format!("{module}::rel");
        command.args(["--ignored", "--exact", &name, "--nocapture", "--test-threads=1"]);
        let folder = package.strip_prefix("sateen-").unwrap_or("engine");
        command.current_dir(self.root.join("crates").join(folder));
        Ok(command)
    }

    /// Builds the engine's test binary and returns its path.
    pub(crate) fn test_binary(&self, environment: &[(&str, &str)]) -> Result<PathBuf, Vec<String>> {
        self.built_test("it", environment)
    }

    /// Builds a test binary and returns its path. With the features of the whole workspace it is
    /// the one that `cargo xtask test` has built.
    pub(crate) fn built_test(
        &self,
        test: &str,
        environment: &[(&str, &str)],
    ) -> Result<PathBuf, Vec<String>> {
        let words = "test --workspace --no-run --message-format json --test";
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(words.split(' '))
            .arg(test)
            .current_dir(&self.root)
            .envs(environment.iter().copied());
        let built = command.stderr(std::process::Stdio::inherit()).output();
        let built = built.map_err(|error| vec![format!("cargo {words}: {error}")])?;
        let lines = String::from_utf8_lossy(&built.stdout);
        let messages = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_test = messages.filter(|message| message["target"]["name"] == test);
        let path =
            of_test.filter_map(|message| Some(message["executable"].as_str()?.into())).next_back();
        path.filter(|_| built.status.success())
            .ok_or_else(|| vec![format!("cargo {words} {test}: {}", built.status)])
    }

    /// Runs the suite as a test, and keeps its output if it fails.
    pub(crate) fn run_test(&self, suite: &Suite, amount: Amount, first: Option<u64>) -> Outcome {
        self.run_as_test(self.test_command(suite)?, suite, amount, first)
    }

    /// Runs the suite as a test with another command.
    pub(crate) fn run_as_test(
        &self,
        mut command: Command,
        suite: &Suite,
        amount: Amount,
        first: Option<u64>,
    ) -> Outcome {
        command
            .env("SATEEN_REL_SECONDS", amount.seconds.to_string())
            .env("SATEEN_REL_AT_LEAST", amount.at_least.to_string())
            .env("SATEEN_REL_RESULTS", self.results());
        if amount.divided {
            command.env("SATEEN_REL_DIVIDED", "1");
        }
        if let Some(first) = first {
            command.env("SATEEN_REL_FIRST", first.to_string());
        }
        let output = command.output().map_err(|error| vec![format!("{command:?}: {error}")])?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        if output.status.success() {
            let figures = format!("{}: ", suite.name);
            let told = |line: &&str| line.starts_with(&figures) || line.starts_with("SKIPPED(");
            text.lines().filter(told).for_each(|line| eprintln!("{line}"));
            return Ok(());
        }
        let kept = self.folder.join("failures").join(format!("{}.txt", suite.name));
        let _made = fs::create_dir_all(self.folder.join("failures"));
        let _kept = fs::write(&kept, text.as_bytes());
        let tail: Vec<_> = text.lines().rev().take(40).collect();
        let tail: Vec<_> = tail.into_iter().rev().collect();
        Err(vec![
            tail.join("\n"),
            format!("suite {}: {}; all of it in {}", suite.name, output.status, kept.display()),
        ])
    }

    /// Writes the result of a suite that is not a test of the engine.
    pub(crate) fn record(&self, suite: &Suite, figures: &BTreeMap<&str, u64>) -> Outcome {
        self.append(&json!({ "suite": suite.name, "figures": figures, "failed": null }))
    }

    /// Says that a suite cannot run here. It counts nothing, and fails if all suites are required.
    pub(crate) fn skip(&self, suite: &Suite, reason: &str) -> Outcome {
        eprintln!("SKIPPED({reason})");
        let line = json!({ "suite": suite.name, "skipped": reason, "failed": null });
        self.append(&line)?;
        match std::env::var_os("REL_REQUIRE_ALL") {
            Some(_) => Err(vec![format!("suite {} is required: {reason}", suite.name)]),
            None => Ok(()),
        }
    }

    fn append(&self, line: &Value) -> Outcome {
        use std::io::Write;
        let file = fs::OpenOptions::new().create(true).append(true).open(self.results());
        file.and_then(|mut file| writeln!(file, "{line}"))
            .map_err(|error| vec![format!("{}: {error}", self.results().display())])
    }

    /// Prints the figures that have no bar.
    fn tell_figures_without_bars(&self, suite: &Suite, results: &[&Value]) {
        let mut sums = BTreeMap::<&str, u64>::new();
        let figures = results.iter().filter_map(|one| one["figures"].as_object()).flatten();
        for (figure, sum) in figures {
            *sums.entry(figure.as_str()).or_default() += sum.as_u64().unwrap_or(0);
        }
        for (figure, sum) in sums {
            if suite.bars.iter().all(|bar| bar.figure != figure) {
                println!("{:10} {figure}: {sum}", suite.name);
            }
        }
    }

    /// Compares the sums of all results with the bars, divided by `divide`.
    fn check(&self, long: bool, divide: u64) -> Outcome {
        let text = fs::read_to_string(self.results())
            .map_err(|error| vec![format!("{}: {error}", self.results().display())])?;
        let results: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut problems = Vec::new();
        for suite in SUITES {
            let own: Vec<_> = results.iter().filter(|one| one["suite"] == suite.name).collect();
            let failed = own.iter().find(|one| !one["failed"].is_null());
            if let Some(failed) = failed {
                problems.push(format!("suite {}: {}", suite.name, failed["failed"]));
            }
            let skipped = own.iter().find_map(|one| one["skipped"].as_str());
            if let Some(reason) = skipped {
                println!("{:10} SKIPPED({reason})", suite.name);
                continue;
            }
            self.tell_figures_without_bars(suite, &own);
            for bar in suite.bars {
                let sum: u64 =
                    own.iter().filter_map(|one| one["figures"][bar.figure].as_u64()).sum();
                let wanted = if long { bar.long } else { bar.short }.div_ceil(divide);
                let word = if sum >= wanted { "ok" } else { "MISSED" };
                println!("{:10} {}: {sum} of {wanted}  {word}", suite.name, bar.figure);
                if sum < wanted {
                    problems
                        .push(format!("suite {}: {sum} {} of {wanted}", suite.name, bar.figure));
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// Counts the unsafe code of the source. All of it must be where it is allowed and give its reason.
fn count_unsafe(bench: &Bench, suite: &Suite, _: Amount, _: Option<u64>) -> Outcome {
    let found = crate::tidy::unsafe_code::count(&bench.root);
    let figures = [
        ("unsafe blocks", found.blocks),
        ("without SAFETY", found.undocumented.len() as u64),
        ("outside the named modules", found.outside.len() as u64),
    ];
    bench.record(suite, &BTreeMap::from(figures))?;
    let problem = |what: &'static str| move |place: &String| format!("{place}: unsafe {what}");
    let undocumented = found.undocumented.iter().map(problem("without SAFETY"));
    let outside = found.outside.iter().map(problem("outside the named modules"));
    let problems: Vec<_> = undocumented.chain(outside).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |path| root.join(path))
}
