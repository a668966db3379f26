//! Compares the public API of the libraries that users name with its baseline. `cargo
//! semver-checks` does it, if it is installed. A change that breaks callers needs a new version
//! number.

use std::path::Path;
use std::process::Command;

use crate::chore::{Outcome, answers, cargo, skipped};

/// The commit whose API is the baseline. Each release moves it to its own commit; nothing has been
/// released yet.
const BASELINE: &str = "55b07c80be04";

/// The library that users name, and those whose types it shows.
const PACKAGES: [&str; 3] = ["sateen", "sateen-store", "sateen-control"];

pub(crate) fn run(root: &Path) -> Outcome {
    if !answers(Command::new("cargo").args(["semver-checks", "--version"])) {
        return skipped("semver", "cargo-semver-checks is not installed");
    }
    let mut words = vec!["semver-checks", "--baseline-rev", BASELINE];
    for package in PACKAGES {
        words.extend(["--package", package]);
    }
    cargo(root, &words, &[])
}
