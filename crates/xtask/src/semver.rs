//! Compares the public API of the published libraries with that of the last release, by
//! cargo-semver-checks if it is installed. A change that breaks callers needs a new version number.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::chore::{Outcome, cargo, skipped};

/// The commit whose API is the baseline: that of the last release, or as long as there is none,
/// that from which on changes are counted.
const BASELINE: &str = "55b07c80be04";

/// The library that users name, and those whose types it shows.
const PACKAGES: [&str; 3] = ["sateen", "sateen-store", "sateen-control"];

pub(crate) fn run(root: &Path) -> Outcome {
    let installed = Command::new("cargo")
        .args(["semver-checks", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !installed {
        return skipped("semver", "cargo-semver-checks is not installed");
    }
    let mut words = vec!["semver-checks", "--baseline-rev", BASELINE];
    for package in PACKAGES {
        words.extend(["--package", package]);
    }
    cargo(root, &words, &[])
}
