//! The parts that all chores share: their outcome, their steps, and how they run cargo.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The problems of a chore: each names a file and line, or the command that failed.
pub(crate) type Outcome = Result<(), Vec<String>>;

/// Says that a chore, or a step of it, is left out. With `REL_REQUIRE_ALL` set that is an error.
pub(crate) fn skipped(chore: &str, reason: &str) -> Outcome {
    println!("SKIPPED({reason})");
    let required = std::env::var_os("REL_REQUIRE_ALL").is_some();
    if required { Err(vec![format!("{chore}: {reason} is required")]) } else { Ok(()) }
}

/// Returns true if `command`, which asks a tool for its version, succeeds: the tool is installed.
pub(crate) fn answers(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Runs one chore and says how long it took.
pub(crate) fn step(name: &str, chore: impl FnOnce() -> Outcome) -> Outcome {
    eprintln!("== {name}");
    let began = Instant::now();
    let outcome = chore();
    eprintln!("== {name}: {:.1} s", began.elapsed().as_secs_f64());
    outcome
}

pub(crate) fn cargo(root: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let name = format!("cargo {}", arguments.join(" "));
    step(&name, || {
        let mut command = Command::new(cargo);
        command.args(arguments).current_dir(root).envs(environment.iter().copied());
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(vec![format!("{name}: {status}")]),
            Err(error) => Err(vec![format!("{name}: {error}")]),
        }
    })
}

/// The top of the repository: two folders above this crate.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
