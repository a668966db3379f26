//! The calls of the file system that the engine's source has, found by their text, so that none is
//! forgotten: a run says which of them it passed.

use std::fs;
use std::path::{Path, PathBuf};

use sateen::vfs::VfsOperation;

/// A call in the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call {
    /// From `src` on.
    pub(super) file: String,
    /// Where the expression begins, and where the method's name is.
    pub(super) first: usize,
    pub(super) line: usize,
    /// The function that it is in.
    pub(super) function: String,
    /// The method, or the one of [`FUNCTIONS`].
    pub(super) method: &'static str,
}

/// The methods of files and file systems. Of those with another meaning elsewhere (`true`) only
/// what is called on something named as in `RECEIVERS` counts; a run tells if one was missed. A
/// file that lent its descriptor to others is opened again by what reads it.
const METHODS: &[(&str, bool, &[VfsOperation])] = &[
    ("read_at", false, &[VfsOperation::Read, VfsOperation::Open]),
    ("read_exact_at", false, &[VfsOperation::Read, VfsOperation::Open]),
    ("read_all_at", false, &[VfsOperation::Read, VfsOperation::Len, VfsOperation::Open]),
    ("write_at", false, &[VfsOperation::Write]),
    ("sync_data", false, &[VfsOperation::Sync]),
    ("start_writeback", false, &[VfsOperation::StartWriteback]),
    ("finish_writeback", false, &[VfsOperation::FinishWriteback]),
    ("punch_hole", false, &[VfsOperation::PunchHole]),
    ("preallocate", false, &[VfsOperation::Preallocate]),
    ("truncate", true, &[VfsOperation::Truncate]),
    ("len", true, &[VfsOperation::Len, VfsOperation::Open]),
    ("allocated", true, &[VfsOperation::Allocated, VfsOperation::Open]),
    ("links", true, &[VfsOperation::Links, VfsOperation::Open]),
    ("modified", true, &[VfsOperation::Modified, VfsOperation::Open]),
    ("is_empty", true, &[VfsOperation::Len, VfsOperation::Open]),
    ("file", true, &[VfsOperation::Open]),
    ("open", true, &[VfsOperation::Open, VfsOperation::Create]),
    ("rename", true, &[VfsOperation::Rename]),
    ("remove", true, &[VfsOperation::Remove]),
    ("hard_link", false, &[VfsOperation::HardLink]),
    ("clone_file", false, &[VfsOperation::CloneFile]),
    ("list", true, &[VfsOperation::List]),
    ("create_dir_all", false, &[VfsOperation::CreateDir, VfsOperation::Exists]),
    ("remove_dir", false, &[VfsOperation::RemoveDir]),
    ("sync_dir", false, &[VfsOperation::SyncDir]),
    ("exists", true, &[VfsOperation::Exists]),
    ("lock", true, &[VfsOperation::Lock]),
    ("free_space", false, &[VfsOperation::FreeSpace]),
    ("total_space", false, &[VfsOperation::FreeSpace]),
];

/// Functions of `files/replace.rs` and `vfs/many.rs`: what they call is called where they are, each
/// with a place of its own.
const FUNCTIONS: &[(&str, &[VfsOperation])] = &[
    ("read_many", &[VfsOperation::Read, VfsOperation::Open]),
    ("sync_directory", &[VfsOperation::SyncDir]),
    ("replace_file", REPLACE),
    ("replace_path", REPLACE),
    ("write_temporary", WRITE),
    ("move_temporary", &[VfsOperation::Rename, VfsOperation::Remove, VfsOperation::SyncDir]),
];

/// What writing a temporary file calls.
const WRITE: &[VfsOperation] =
    &[VfsOperation::Remove, VfsOperation::Create, VfsOperation::Write, VfsOperation::Sync];

/// What replacing a file calls.
const REPLACE: &[VfsOperation] = &[
    VfsOperation::Remove,
    VfsOperation::Create,
    VfsOperation::Write,
    VfsOperation::Sync,
    VfsOperation::Rename,
    VfsOperation::SyncDir,
];

/// What files and file systems are called.
const RECEIVERS: &[&str] = &["vfs", "file", "handle", "as_ref", "descriptors"];

impl Call {
    pub(super) fn operations(&self) -> &'static [VfsOperation] {
        let of_methods = METHODS.iter().map(|&(method, _, operations)| (method, operations));
        let mut all = of_methods.chain(FUNCTIONS.iter().copied());
        all.find(|(called, _)| *called == self.method).map_or(&[], |(_, operations)| operations)
    }

    /// Whether a call of `operation` from `caller`, a file and a line, is this one.
    pub(super) fn is_at(&self, operation: VfsOperation, caller: &str) -> bool {
        let Some((file, line)) = caller.rsplit_once(':') else { return false };
        let line = line.parse().unwrap_or(0);
        let file = file.rsplit_once("src/").map_or(file, |(_, file)| file);
        file == self.file
            && (self.first..=self.line).contains(&line)
            && self.operations().contains(&operation)
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}() at {}:{}", self.method, self.function, self.file, self.line)
    }
}

/// All calls of the engine, in the order of files and lines.
pub(super) fn of_the_engine() -> Vec<Call> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut calls = Vec::new();
    for source in [crates.join("engine/src"), crates.join("store/src")] {
        let mut files = Vec::new();
        collect(&source, &mut files);
        files.sort();
        for path in files {
            let name = path.strip_prefix(&source).unwrap().to_str().unwrap().to_owned();
            find(&name, &fs::read_to_string(&path).unwrap(), &mut calls);
        }
    }
    calls
}

/// The files that are not of a file system, a test, a bench or a fuzzer, nor of [`FUNCTIONS`].
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !matches!(name, "vfs" | "tests" | "fuzz") {
                collect(&path, files);
            }
        } else if !name.contains("test") && !matches!(name, "bench.rs" | "fuzz.rs" | "replace.rs") {
            files.push(path);
        }
    }
}

fn find(name: &str, text: &str, calls: &mut Vec<Call>) {
    // Unit tests end a file.
    let end = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let text = without_comments(&text[..end]);
    let mut add = |method, begin: usize, at: usize| {
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        let before = text[..begin].replace('\n', " ");
        let function = before.rsplit(" fn ").next().unwrap_or_default();
        let function = function.split(|c| !is_of_name(c)).next().unwrap_or_default().to_owned();
        let (file, first, line) = (name.to_owned(), line(begin), line(at));
        calls.push(Call { file, first, line, function, method });
    };
    for (function, _) in FUNCTIONS {
        for (at, _) in text.match_indices(&format!("{function}(")) {
            let before = &text[..at];
            if !before.ends_with(is_of_name) && !before.ends_with("fn ") {
                add(function, at, at);
            }
        }
    }
    for (at, _) in text.match_indices('.') {
        let rest = &text[at + 1..];
        let known = METHODS.iter().find(|(method, ..)| {
            rest.strip_prefix(method).is_some_and(|rest| rest.starts_with('('))
        });
        let Some((method, ambiguous, _)) = known else { continue };
        let begin = expression_before(&text, at);
        let receiver = text[begin..at].trim_end().trim_end_matches("()");
        let last = receiver.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next();
        // Methods of our own that are called as those of a file are.
        if last.is_some_and(|last| ["self", "records"].contains(&last)) {
            continue;
        }
        let of_vfs = last.is_some_and(|last| RECEIVERS.contains(&last))
            && (last != Some("as_ref") || receiver.contains("vfs"));
        if *ambiguous && !of_vfs {
            continue;
        }
        add(method, begin, at);
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text with comments made blank, so that lines stay where they are.
fn without_comments(text: &str) -> String {
    let of_line = |line: &str| match line.find("//") {
        Some(at) if !line[..at].contains('"') => line[..at].to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(of_line).collect::<Vec<_>>().join("\n")
}

/// Where the chain of names and calls begins that ends at `end`.
fn expression_before(text: &str, end: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = end;
    let mut wants_name = true;
    while at > 0 {
        let mut before = at;
        while before > 0 && bytes[before - 1].is_ascii_whitespace() {
            before -= 1;
        }
        let Some(&last) = bytes[..before].last() else { break };
        if wants_name && (last.is_ascii_alphanumeric() || last == b'_') {
            at = before;
            while at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_') {
                at -= 1;
            }
            wants_name = false;
        } else if wants_name && (last == b')' || last == b'?') {
            at = if last == b'?' { before - 1 } else { opening(bytes, before - 1) };
        } else if last == b'.' && !wants_name {
            at = before - 1;
            wants_name = true;
        } else {
            break;
        }
    }
    at
}

/// Where the bracket opens that closes at `close`.
fn opening(bytes: &[u8], close: usize) -> usize {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        match bytes[at] {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    0
}
