//! The models: loom runs every interleaving of a few operations on the memtable.

use std::path::{Path, PathBuf};

use crate::chore::{Outcome, cargo};

/// Runs the models. Loom replaces the atomics of the whole build, so they have a target directory
/// of their own and nothing of the ordinary one is built again.
pub(crate) fn run(root: &Path) -> Outcome {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let target = root.join(target).join("loom").to_string_lossy().into_owned();
    let environment = [("RUSTFLAGS", "--cfg loom"), ("CARGO_TARGET_DIR", &*target)];
    let words = "test --package sateen-store --lib --no-default-features --quiet loom";
    cargo(root, &words.split(' ').collect::<Vec<_>>(), &environment)
}
