//! The chore `aarch64` checks systems other than the usual one of development.
//!
//! 1. `unsupported` compiles the control crate for a system that is not supported, and expects the
//!    one error that says so.
//! 2. `lint` runs clippy on the whole workspace for aarch64, without the tests: they are the same
//!    code everywhere.
//! 3. `test` runs the tests named in [`TESTS`] for aarch64 under QEMU.
//!
//! A step prints SKIPPED and the reason if the machine lacks a tool. With `REL_REQUIRE_ALL` set, a
//! skipped step is an error.

use std::path::Path;
use std::process::{Command, Output};

use crate::chore::{Outcome, answers, cargo, skipped, step};

const TRIPLE: &str = "aarch64-unknown-linux-gnu";
const UNSUPPORTED: &str = "x86_64-apple-darwin";
/// The C compiler and linker for aarch64: zstd is C.
const COMPILER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";
/// The directory of the C library that the tests load, in Debian's cross compiler.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// The modules whose code depends on the system or on the architecture: system calls, atomics,
/// checksums with vector instructions, and the coding of bytes.
const TESTS: &[&str] = &["vfs::", "memtable::", "wal::", "xxh3::"];
/// QEMU answers `statx` without the alignment of direct I/O, so that no file has any.
const NOT_UNDER_QEMU: &str = "direct_writes_must_be_aligned_and_are_read_back";

pub(crate) fn run(root: &Path) -> Outcome {
    step("unsupported systems", || unsupported(root))?;
    if !has_target(TRIPLE) {
        return skipped("aarch64", &format!("rustup target add {TRIPLE}"));
    }
    if !answers(Command::new(COMPILER).arg("--version")) {
        return skipped("aarch64", &format!("no {COMPILER}"));
    }
    let runner = format!("{EMULATOR} -L {LIBRARIES}");
    let environment = [
        ("CC_aarch64_unknown_linux_gnu", COMPILER),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner.as_str()),
    ];
    let clippy = format!("clippy --workspace --quiet --target {TRIPLE} -- -Dwarnings");
    cargo(root, &clippy.split(' ').collect::<Vec<_>>(), &environment)?;
    if !answers(Command::new(EMULATOR).arg("--version")) {
        return skipped("aarch64", &format!("no {EMULATOR}"));
    }
    let test = format!("test --package sateen-store --lib --quiet --target {TRIPLE} --");
    let words = test.split(' ').chain(TESTS.iter().copied());
    let words: Vec<_> = words.chain(["--skip", NOT_UNDER_QEMU]).collect();
    cargo(root, &words, &environment)
}

/// Checks that an unsupported system gets one error, which says what is supported.
fn unsupported(root: &Path) -> Outcome {
    if !has_target(UNSUPPORTED) {
        return skipped("aarch64", &format!("rustup target add {UNSUPPORTED}"));
    }
    let mut command = Command::new("cargo");
    command.args(["check", "--quiet", "--package", "sateen", "--no-default-features"]);
    command.args(["--target", UNSUPPORTED]).current_dir(root);
    let Output { status, stderr, .. } =
        command.output().map_err(|error| vec![format!("cargo check: {error}")])?;
    let text = String::from_utf8_lossy(&stderr);
    let errors: Vec<_> = text.lines().filter(|line| line.starts_with("error")).collect();
    let [error, end] = errors.as_slice() else {
        return Err(vec![format!("{UNSUPPORTED} should get one error:\n{text}")]);
    };
    let right = !status.success()
        && error.contains("Sateen supports Linux on 64-bit machines")
        && end.contains("could not compile `sateen-control`");
    if right { Ok(()) } else { Err(vec![format!("{UNSUPPORTED} should be refused:\n{text}")]) }
}

/// True if the current compiler has the standard library for `triple`.
fn has_target(triple: &str) -> bool {
    let mut rustc = Command::new("rustc");
    let found = rustc.args(["--print", "target-libdir", "--target", triple]).output();
    found.is_ok_and(|output| {
        let directory = String::from_utf8_lossy(&output.stdout);
        output.status.success() && Path::new(directory.trim()).is_dir()
    })
}
