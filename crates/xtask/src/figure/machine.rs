//! What a result has to say about where it was measured: the build, the machine, the date, and how
//! much processor time the host gave to others meanwhile.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// The folders and files that a run depends on. A change elsewhere (documents, tests of other
/// crates, this one) leaves its result as it was.
const BUILT_FROM: [&str; 9] = [
    "Cargo.lock",
    "crates/control",
    "crates/store",
    "crates/engine",
    "crates/workload",
    "crates/sim",
    "crates/peers",
    "crates/bench",
    "crates/cli",
];

/// The build that is measured.
#[derive(Clone, Debug)]
pub(super) struct Build {
    /// The commit, with `-dirty` if tracked files differ from it.
    pub(super) commit: String,
    /// Stands for the source that the command is built from.
    pub(super) source: u64,
}

impl Build {
    /// Describes the source below `root`.
    pub(super) fn of(root: &Path) -> Build {
        let describe = ["describe", "--always", "--dirty", "--abbrev=8", "--exclude", "*"];
        let commit = git(root, &describe);
        let mut source = git(root, &[&["ls-tree", "HEAD"][..], &BUILT_FROM].concat());
        source.push_str(&git(root, &[&["diff", "HEAD", "--"][..], &BUILT_FROM].concat()));
        Build {
            commit: if commit.is_empty() { "unknown".to_owned() } else { commit },
            source: fnv(source.as_bytes()),
        }
    }
}

fn git(root: &Path, words: &[&str]) -> String {
    let output = Command::new("git").args(words).current_dir(root).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_default()
}

/// FNV-1a: the same for the same bytes, on every machine and with every compiler.
pub(super) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Describes this machine as the benchmark does.
pub(super) fn this() -> Value {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (cpu_info, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let cpu = cpu_info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = memory.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    json!({
        "cpus": std::thread::available_parallelism().map_or(1, usize::from),
        "cpu": cpu.trim_start_matches([' ', '\t', ':']),
        "memory_bytes": kib.unwrap_or(0) * 1024,
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
    })
}

/// Returns the seconds of processor time that the host has given to other guests since the start.
pub(super) fn stolen_seconds() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = text.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse().ok());
    // A tick is a hundredth of a second.
    ticks.unwrap_or(0.0) / 100.0
}

/// Returns the date in UTC, as 2026-11-27.
pub(super) fn today() -> String {
    let output = Command::new("date").args(["-u", "+%F"]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_default()
}
