//! The rules of the source that no compiler checks: the architecture's invariants as far as text
//! shows them, and the habits of STYLE.md. Every problem is `file:line: what`.

pub(crate) mod documents;
mod fix;
mod folders;
mod layers;
pub(crate) mod unsafe_code;

use std::fs;
use std::path::Path;

use crate::chore::Outcome;
use crate::source::{code_of, shipped_code_of};

/// Files longer than [`LINES_MAX`] and how long they are allowed to be. Entries may only shrink.
const LONG_FILES: &str = include_str!("../../long_files.txt");
const LINES_MAX: usize = 600;
const COLUMNS_MAX: usize = 100;

/// Crates whose folders may still import each other in cycles and keep both conventions for modules
/// ([`layers`], [`folders`]). An entry goes when its crate is clean.
const UNLAYERED_CRATES: &[&str] = &[];

/// Where `unsafe` may stand. Everything else is safe code.
const UNSAFE_FILES: &[&str] = &[
    "crates/store/src/memtable/skiplist/",
    "crates/store/src/memtable/arena.rs",
    "crates/store/src/memtable/pool.rs",
    "crates/store/src/memtable/models.rs",
    "crates/capi/examples/boundary.rs",
    "crates/capi/src/",
    "crates/capi/tests/peers/",
    "crates/store/src/vfs/posix/",
    "crates/bench/src/peer/",
    "crates/peers/src/",
    "peers/",
];

/// The two crates of the engine.
const DATA_PLANE: &[&str] = &["crates/store/src/", "crates/engine/src/"];

/// (In files below, except in these, words, why).
type Place =
    (&'static [&'static str], &'static [&'static str], &'static [&'static str], &'static str);

/// Words that may stand in some places only.
const PLACES: &[Place] = &[
    (
        DATA_PLANE,
        &["crates/store/src/vfs/posix/"],
        &["std::fs", "rustix::fs", "fs::File"],
        "only vfs/posix performs file I/O (invariant 3)",
    ),
    (
        DATA_PLANE,
        &["crates/engine/src/runtime/threads.rs"],
        &["thread::spawn", "thread::Builder", "thread::scope"],
        "only runtime/threads.rs starts threads (invariant 2)",
    ),
    (
        DATA_PLANE,
        &["crates/store/src/files/", "crates/store/src/vfs/"],
        &["punch_hole("],
        "only files/ punches holes (invariant 5)",
    ),
    (
        DATA_PLANE,
        &[
            "crates/store/src/base/",
            "crates/store/src/block_cache.rs",
            "crates/store/src/memtable/",
            "crates/store/src/vfs/",
            "crates/engine/src/metrics/",
            "crates/engine/src/timeline/",
        ],
        &[
            "std::sync::atomic",
            "std::sync::Mutex",
            "std::sync::{Arc, Mutex",
            "std::sync::{Mutex",
            "std::thread::park",
            "std::thread::sleep",
            "std::thread::yield_now",
        ],
        "what threads tell each other by comes from base::sync, which schedulers replace",
    ),
    (
        DATA_PLANE,
        &["crates/engine/src/operators/wall_clock.rs"],
        &["SystemTime"],
        "only the monotonic clock decides (rule F10)",
    ),
    (
        DATA_PLANE,
        &[
            "crates/store/src/base/clock.rs",
            "crates/store/src/base/sync.rs",
            "crates/engine/src/background/compaction/measure.rs",
        ],
        &["Instant::now", ".elapsed()", "thread::sleep"],
        "only clock.rs says what time it is (invariant 11)",
    ),
    (
        &["crates/control/src/"],
        &[],
        &[
            "HashMap",
            "HashSet",
            "RandomState",
            "Instant::now",
            "SystemTime",
            "std::fs",
            "std::thread",
            "std::env",
            "std::io",
            "std::net",
            "std::process",
            "std::sync::Mutex",
            "std::sync::RwLock",
        ],
        "control is pure (invariant 1)",
    ),
];

/// What stands nowhere in code.
const NOWHERE: &[&str] = &["todo!", "unimplemented!", "dbg!"];

/// Remarks that put work off; an open matter belongs in the issues or in a document.
const REMARKS: &[&str] = &["TODO", "FIXME", "XXX", "HACK"];

/// Namespaces look like addresses and are none.
const NAMESPACE: &str = "http://www.w3.org/";

/// Breaks comments that are too long, in every file; the rest needs a person.
pub(crate) fn fix(root: &Path) -> Outcome {
    let mut files = Vec::new();
    list(root, root, &mut files);
    for name in files.iter().filter(|name| name.ends_with(".rs")) {
        let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
        let fixed = fix::break_comments(&text, COLUMNS_MAX);
        if fixed != text {
            fs::write(root.join(name), fixed).map_err(|error| vec![format!("{name}: {error}")])?;
            eprintln!("{name}");
        }
    }
    run(root)
}

pub(crate) fn run(root: &Path) -> Outcome {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    list(root, root, &mut files);
    files.sort();
    for name in &files {
        let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
        if name.ends_with(".rs") {
            rust_file(name, &text, &mut problems);
        } else if name.ends_with(".md") {
            documents::check(root, name, &text, &mut problems);
        }
        whitespace(name, &text, &mut problems);
    }
    documents::summary(root, &files, &mut problems);
    long_files(&files, &mut problems);
    layers::check(root, &files, UNLAYERED_CRATES, &mut problems);
    folders::check(&files, UNLAYERED_CRATES, &mut problems);
    match fs::read_to_string(root.join("crates/control/Cargo.toml")) {
        Ok(manifest) => control_has_no_dependencies(&manifest, &mut problems),
        Err(error) => problems.push(format!("crates/control/Cargo.toml: {error}")),
    }
    eprintln!("{} files", files.len());
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The text files of the repository, with slashes, relative to its top.
pub(crate) fn list(root: &Path, folder: &Path, files: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = entry.path();
        if path.is_dir() {
            if !matches!(&*name, "target" | ".git" | "corpus" | "node_modules" | "artifacts") {
                list(root, &path, files);
            }
        } else if [".rs", ".md", ".toml", ".txt"].iter().any(|end| name.ends_with(end)) {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            files.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
}

fn rust_file(name: &str, text: &str, problems: &mut Vec<String>) {
    let mut problem = |line: usize, what: String| problems.push(format!("{name}:{line}: {what}"));
    if !text.starts_with("//! ") {
        problem(1, "a file begins with `//!`: what it is for and what must stay true".to_owned());
    }
    for (i, line) in text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            problem(i + 1, format!("{columns} columns, more than {COLUMNS_MAX} (tidy --fix)"));
        }
        let lists_the_words = name == "crates/xtask/src/tidy/mod.rs";
        for word in REMARKS.iter().filter(|word| !lists_the_words && has_word(line, word)) {
            problem(i + 1, format!("{word}: do it, or write down why not where it will be found"));
        }
        if line.contains("://") && !line.contains(NAMESPACE) && address(line) {
            problem(i + 1, "names a network address".to_owned());
        }
    }
    let lines = text.lines().count();
    if lines > long_file_allowance(name) {
        problem(lines, format!("{lines} lines, more than {LINES_MAX}: split it by purpose"));
    }
    let code = code_of(text);
    for (i, line) in code.lines().enumerate() {
        for word in NOWHERE.iter().filter(|word| line.contains(*word)) {
            problem(i + 1, format!("{word} is left over"));
        }
        let below = |place: &str| name.starts_with(place);
        if has_word(line, "unsafe") && !UNSAFE_FILES.iter().any(|place| below(place)) {
            problem(i + 1, "unsafe outside the modules that may have it".to_owned());
        }
    }
    if is_test(name) {
        return;
    }
    let shipped = shipped_code_of(text);
    for (below, except, words, why) in PLACES {
        let stands_in = |places: &[&str]| places.iter().any(|place| name.starts_with(place));
        if !stands_in(below) || stands_in(except) {
            continue;
        }
        for (i, line) in shipped.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(*word)) {
                problem(i + 1, format!("{word}: {why}"));
            }
        }
    }
}

/// True for a file that is compiled for tests, models, benchmarks or fuzzing only.
fn is_test(name: &str) -> bool {
    let names = ["tests.rs", "/models.rs", "/bench.rs", "/fuzz.rs"];
    let parts = ["/tests/", "/tests_", "/test_"];
    parts.iter().any(|part| name.contains(part)) || names.iter().any(|end| name.ends_with(end))
}

/// True if `line` has the word by itself, not as part of a longer one.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = line.as_bytes();
    line.match_indices(word).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|i| bytes.get(i));
        !part(before) && !part(bytes.get(at + word.len()))
    })
}

/// True if `line` has something like `https://…`.
fn address(line: &str) -> bool {
    ["http", "https", "ftp", "git", "ssh"].iter().any(|scheme| {
        line.match_indices(&format!("{scheme}://")).any(|(at, found)| {
            line[at + found.len()..].bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        })
    })
}

fn whitespace(name: &str, text: &str, problems: &mut Vec<String>) {
    for (i, line) in text.lines().enumerate() {
        if ["<<<<<<< ", ">>>>>>> "].iter().any(|marker| line.starts_with(marker)) {
            problems.push(format!("{name}:{}: half a merge", i + 1));
        }
        if line.ends_with([' ', '\t']) && !name.ends_with(".txt") {
            problems.push(format!("{name}:{}: space at the end of the line", i + 1));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        problems.push(format!("{name}: no line end at the end of the file"));
    }
}

fn long_file_allowance(name: &str) -> usize {
    long_file_entries().find(|(file, _)| *file == name).map_or(LINES_MAX, |(_, lines)| lines)
}

fn long_file_entries() -> impl Iterator<Item = (&'static str, usize)> {
    let entries = LONG_FILES.lines().filter(|line| !line.starts_with('#'));
    entries.filter_map(|line| {
        let (file, lines) = line.split_once(' ')?;
        Some((file, lines.trim().parse().ok()?))
    })
}

/// An entry of the list whose file is gone or short enough must go, so that the list only shrinks.
fn long_files(files: &[String], problems: &mut Vec<String>) {
    for (file, lines) in long_file_entries() {
        if !files.iter().any(|name| name == file) {
            problems.push(format!("crates/xtask/long_files.txt: {file} is gone: drop its line"));
        }
        if lines <= LINES_MAX {
            problems.push(format!("crates/xtask/long_files.txt: {file} needs no line"));
        }
    }
}

fn control_has_no_dependencies(manifest: &str, problems: &mut Vec<String>) {
    let after = manifest.split("[dependencies]").nth(1).unwrap_or("");
    let section = after.split("\n[").next().unwrap_or("");
    for line in section.lines().map(str::trim) {
        if !line.is_empty() && !line.starts_with('#') {
            problems.push(format!("crates/control/Cargo.toml: control depends on nothing: {line}"));
        }
    }
}

#[cfg(test)]
mod tests;
