//! Patches without line numbers: how a planted bug is written down and put into the sources.
//!
//! A patch names a file by `--- path` and then has hunks. A hunk begins with `@@`; its lines begin
//! with a space (context), `-` (removed) or `+` (added). `+++ path` begins a new file of `+` lines.
//!
//! 1. [`read_all`] reads the patches in the order of their names, and [`parse`] splits each into
//!    hunks.
//! 2. [`apply`] finds the place of each hunk: its old lines, context and removed, must be in the
//!    file exactly once.
//! 3. [`Hunk::edits`] reduces a hunk to the lines that it changes, so that hunks may share context.
//! 4. [`merge`] makes the edits of all patches of a file.
//!
//! What must stay true: every place is found in the file as it is without any patch. So the order
//! of the patches only matters for lines that two of them insert at one place.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// The folder of the patches in the repository.
pub(super) const FOLDER: &str = "crates/xtask/src/rel/planted/patches";

const KEPT: char = ' ';
const REMOVED: char = '-';
const ADDED: char = '+';

/// A change at one place of one file, or a whole new file.
#[derive(Debug)]
pub(super) struct Hunk {
    /// The name of its patch.
    pub(super) patch: String,
    /// Its first line in the patch.
    line: usize,
    path: String,
    is_new_file: bool,
    /// What each line is ([`KEPT`], [`REMOVED`] or [`ADDED`]), and its text.
    lines: Vec<(char, String)>,
}

/// Lines of a file, and those that replace them.
#[derive(Debug)]
struct Edit<'a> {
    at: Range<usize>,
    lines: Vec<&'a str>,
    hunk: &'a Hunk,
}

/// Returns the hunks of all patches of `root`, sorted by the names of the patches.
pub(super) fn read_all(root: &Path) -> Result<Vec<Hunk>, Vec<String>> {
    let problem = |error: std::io::Error| vec![format!("{FOLDER}: {error}")];
    let mut patches = BTreeMap::new();
    for entry in fs::read_dir(root.join(FOLDER)).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(name) = name.strip_suffix(".patch") else {
            return Err(vec![format!("{FOLDER}/{name}: not a patch: its name ends with .patch")]);
        };
        let text = fs::read_to_string(&path).map_err(problem)?;
        patches.insert(name.to_owned(), text);
    }
    let (mut hunks, mut problems) = (Vec::new(), Vec::new());
    for (name, text) in patches {
        match parse(&name, &text) {
            Ok(parsed) => hunks.extend(parsed),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(hunks) } else { Err(problems) }
}

/// Splits the patch `name` into its hunks.
pub(super) fn parse(name: &str, text: &str) -> Result<Vec<Hunk>, String> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut file = None;
    for (line, content) in text.lines().enumerate().map(|(i, content)| (i + 1, content)) {
        let problem = |what: &str| Err(format!("{FOLDER}/{name}.patch:{line}: {what}"));
        let mut begin = |path: &str, is_new_file| {
            let (patch, path) = (name.to_owned(), path.to_owned());
            hunks.push(Hunk { patch, line, path, is_new_file, lines: Vec::new() });
        };
        if let Some(path) = content.strip_prefix("--- ") {
            file = Some(path);
        } else if let Some(path) = content.strip_prefix("+++ ") {
            begin(path, true);
            file = None;
        } else if content == "@@" {
            let Some(path) = file else { return problem("a hunk without `--- path` above it") };
            begin(path, false);
        } else {
            // Editors cut the space of an empty line of context.
            let mark = content.chars().next().unwrap_or(KEPT);
            let Some(hunk) = hunks.last_mut() else {
                return problem("a patch begins with `--- path` or `+++ path`");
            };
            if ![KEPT, REMOVED, ADDED].contains(&mark) {
                return problem("a line of a hunk begins with a space, `-` or `+`");
            }
            let content = content.get(1..).unwrap_or_default();
            hunk.lines.push((mark, content.to_owned()));
        }
    }
    for hunk in &hunks {
        if hunk.is_new_file != hunk.old_lines().is_empty() {
            return Err(hunk.problem("a hunk has lines of the file, and a new file has none"));
        }
        if hunk.lines.iter().all(|(mark, _)| *mark == KEPT) {
            return Err(hunk.problem("the hunk changes nothing"));
        }
    }
    if hunks.is_empty() {
        return Err(format!("{FOLDER}/{name}.patch: no hunk"));
    }
    Ok(hunks)
}

/// Applies all hunks to the files that `read` returns. Returns the texts of the changed files.
pub(super) fn apply(
    hunks: &[Hunk],
    read: impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, Vec<String>> {
    let mut of_files: BTreeMap<&str, Vec<&Hunk>> = BTreeMap::new();
    for hunk in hunks {
        of_files.entry(&hunk.path).or_default().push(hunk);
    }
    let (mut changed, mut problems) = (BTreeMap::new(), Vec::new());
    for (path, hunks) in of_files {
        match changed_file(&hunks, read(path)) {
            Ok(text) => {
                changed.insert(path.to_owned(), text);
            }
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(changed) } else { Err(problems) }
}

/// Returns the text of a file with `hunks` applied; `text` is `None` if there is no such file.
fn changed_file(hunks: &[&Hunk], text: Option<String>) -> Result<String, Vec<String>> {
    if let Some(hunk) = hunks.iter().find(|hunk| hunk.is_new_file) {
        if text.is_some() || hunks.len() > 1 {
            let what = "is there already: name the new file otherwise";
            return Err(vec![hunk.problem(&format!("{} {what}", hunk.path))]);
        }
        let lines: Vec<_> = hunk.lines.iter().map(|(_, text)| text.as_str()).collect();
        return Ok(lines.join("\n") + "\n");
    }
    let Some(text) = text else {
        let gone = |hunk: &&Hunk| {
            hunk.problem(&format!("there is no file {}: name the file it is in now", hunk.path))
        };
        return Err(hunks.iter().map(gone).collect());
    };
    let lines: Vec<_> = text.lines().collect();
    let (mut edits, mut problems) = (Vec::new(), Vec::new());
    for hunk in hunks {
        match hunk.place(&lines) {
            Ok(at) => edits.extend(hunk.edits(at)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        merge(&lines, edits).map_err(|problem| vec![problem])
    } else {
        Err(problems)
    }
}

/// Returns `lines` with the edits made. Edits of one line are a problem.
fn merge(lines: &[&str], mut edits: Vec<Edit<'_>>) -> Result<String, String> {
    edits.sort_by(|a, b| {
        let key = |edit: &Edit<'_>| (edit.at.start, edit.at.end);
        key(a).cmp(&key(b)).then_with(|| a.hunk.patch.cmp(&b.hunk.patch))
    });
    for pair in edits.windows(2) {
        if let [first, second] = pair
            && second.at.start < first.at.end
        {
            let what = format!(
                "changes line {} of {}, as {} does: let one of them insert lines, or change a line \
                 of its own",
                second.at.start + 1,
                second.hunk.path,
                first.hunk.place_in_patch(),
            );
            return Err(second.hunk.problem(&what));
        }
    }
    let mut merged = String::new();
    let mut done = 0;
    let mut write = |lines: &[&str]| {
        for line in lines {
            merged.push_str(line);
            merged.push('\n');
        }
    };
    for edit in edits {
        write(&lines[done..edit.at.start]);
        write(&edit.lines);
        done = edit.at.end;
    }
    write(&lines[done..]);
    Ok(merged)
}

impl Hunk {
    /// Returns the texts of the lines that it adds.
    pub(super) fn added(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|(mark, _)| *mark == ADDED).map(|(_, text)| text.as_str())
    }

    fn old_lines(&self) -> Vec<&str> {
        let old = self.lines.iter().filter(|(mark, _)| *mark != ADDED);
        old.map(|(_, text)| text.as_str()).collect()
    }

    fn place_in_patch(&self) -> String {
        format!("{FOLDER}/{}.patch:{}", self.patch, self.line)
    }

    fn problem(&self, what: &str) -> String {
        format!("{}: {what}", self.place_in_patch())
    }

    /// Returns the index of the line of the file at which its old lines begin.
    fn place(&self, file: &[&str]) -> Result<usize, String> {
        let old = self.old_lines();
        let fits = |at: &usize| file[*at..].starts_with(&old);
        let places: Vec<_> = (0..file.len()).filter(fits).collect();
        match places[..] {
            [at] => Ok(at),
            [] => Err(self.problem(&format!(
                "the hunk's old lines are not in {}: {}; write them as they are in the file now",
                self.path,
                first_difference(&old, file)
            ))),
            [first, second, ..] => Err(self.problem(&format!(
                "the hunk's old lines are in {} {} times (lines {} and {}): add lines of context \
                 until one place is left",
                self.path,
                places.len(),
                first + 1,
                second + 1
            ))),
        }
    }

    /// Returns what it changes of a file where its old lines begin at `at`.
    fn edits(&self, at: usize) -> Vec<Edit<'_>> {
        let mut edits: Vec<Edit<'_>> = Vec::new();
        let mut here = at;
        let mut open = false;
        for (mark, text) in &self.lines {
            if *mark == KEPT {
                open = false;
                here += 1;
                continue;
            }
            if !open {
                edits.push(Edit { at: here..here, lines: Vec::new(), hunk: self });
                open = true;
            }
            let Some(edit) = edits.last_mut() else { continue };
            if *mark == REMOVED {
                here += 1;
                edit.at.end = here;
            } else {
                edit.lines.push(text);
            }
        }
        edits
    }
}

/// Says how `old` differs from the lines of the file that are most like it.
fn first_difference(old: &[&str], file: &[&str]) -> String {
    let same = |at: usize| file[at..].iter().zip(old).take_while(|(a, b)| a == b).count();
    let nearest =
        (0..file.len()).map(|at| (same(at), at)).max_by_key(|(same, at)| (*same, usize::MAX - at));
    match nearest {
        Some((same, at)) if same > 0 => {
            let told = old.get(same).copied().unwrap_or_default().trim();
            match file.get(at + same) {
                Some(there) => {
                    let there = there.trim();
                    format!("line {} is `{there}`, not `{told}`", at + same + 1)
                }
                None => format!("the file ends before `{told}`"),
            }
        }
        _ => format!("no line is `{}`", old.first().copied().unwrap_or_default().trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "fn a() {\n    one();\n    two();\n}\n\nfn b() {\n    two();\n    three();\n}\n";

    /// Applies patches, each a name and a text, to the file `f.rs`.
    fn applied(patches: &[(&str, &str)]) -> Result<BTreeMap<String, String>, Vec<String>> {
        let mut hunks = Vec::new();
        for (name, text) in patches {
            hunks.extend(parse(name, text).map_err(|problem| vec![problem])?);
        }
        apply(&hunks, |path| (path == "f.rs").then(|| FILE.to_owned()))
    }

    fn text(patches: &[(&str, &str)]) -> String {
        applied(patches).expect("the patches apply").remove("f.rs").expect("the file is changed")
    }

    fn problem(patches: &[(&str, &str)]) -> String {
        let problems = applied(patches).expect_err("the patches do not apply");
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].clone()
    }

    #[test]
    fn a_hunk_that_fits_once_applies() {
        let patched = text(&[("x", "--- f.rs\n@@\n     one();\n-    two();\n+    2();\n }\n")]);
        assert_eq!(patched, FILE.replacen("two", "2", 1));
        let inserted = text(&[("x", "--- f.rs\n@@\n+// First.\n fn a() {\n")]);
        assert_eq!(inserted, format!("// First.\n{FILE}"));
        // The space of an empty line of context may be gone.
        let across = text(&[("x", "--- f.rs\n@@\n }\n\n-fn b() {\n+fn c() {\n")]);
        assert_eq!(across, FILE.replace("fn b", "fn c"));
    }

    #[test]
    fn a_hunk_that_fits_twice_names_both_places() {
        let told = problem(&[("x", "--- f.rs\n@@\n+    early();\n     two();\n")]);
        assert!(told.starts_with(&format!("{FOLDER}/x.patch:2: ")), "{told}");
        assert!(told.contains("f.rs 2 times (lines 3 and 7): add lines of context"), "{told}");
    }

    #[test]
    fn a_hunk_that_fits_nowhere_says_what_differs() {
        let told = problem(&[("x", "--- f.rs\n@@\n     one();\n-    three();\n")]);
        assert!(told.starts_with(&format!("{FOLDER}/x.patch:2: ")), "{told}");
        assert!(told.contains("not in f.rs: line 3 is `two();`, not `three();`"), "{told}");
        let told = problem(&[("x", "--- f.rs\n@@\n-    four();\n")]);
        assert!(told.contains("no line is `four();`"), "{told}");
        let told = problem(&[("x", "--- f.rs\n@@\n     three();\n }\n-end\n")]);
        assert!(told.contains("the file ends before `end`"), "{told}");
        let told = problem(&[("x", "--- g.rs\n@@\n-    one();\n")]);
        assert!(told.contains("there is no file g.rs"), "{told}");
    }

    #[test]
    fn bugs_of_one_file_compose_in_any_order() {
        let inserts = ("x", "--- f.rs\n@@\n     one();\n+    before();\n     two();\n");
        let replaces = ("y", "--- f.rs\n@@\n     one();\n-    two();\n+    2();\n");
        let elsewhere = ("z", "--- f.rs\n@@\n-    three();\n+    3();\n@@\n-fn a() {\n+fn c() {\n");
        let wanted = FILE.replacen("    two", "    before();\n    2", 1);
        let wanted = wanted.replace("three", "3").replace("fn a", "fn c");
        assert_eq!(text(&[inserts, replaces, elsewhere]), wanted);
        assert_eq!(text(&[elsewhere, replaces, inserts]), wanted);
        // Lines at one place come in the order of the names.
        let second = ("w", "--- f.rs\n@@\n     one();\n+    first();\n");
        let both = FILE.replacen("    two", "    first();\n    before();\n    two", 1);
        assert_eq!(text(&[inserts, second]), both);
    }

    #[test]
    fn bugs_that_change_one_line_are_refused() {
        let one = ("x", "--- f.rs\n@@\n-    one();\n+    1();\n");
        let other = ("y", "--- f.rs\n@@\n-    one();\n+    uno();\n");
        let told = problem(&[one, other]);
        assert!(told.contains("y.patch:2: changes line 2 of f.rs, as"), "{told}");
        assert!(told.contains("x.patch:2 does"), "{told}");
        let inside = ("z", "--- f.rs\n@@\n     three();\n+    four();\n }\n");
        let around = ("w", "--- f.rs\n@@\n-    three();\n-}\n");
        assert!(problem(&[around, inside]).contains("z.patch:2: changes line 9"));
    }

    #[test]
    fn a_new_file_is_added_and_replaces_none() {
        let changed = applied(&[("x", "+++ g.rs\n+//! G.\n+\n+fn g() {}\n")]).expect("it applies");
        assert_eq!(changed["g.rs"], "//! G.\n\nfn g() {}\n");
        assert_eq!(changed.len(), 1);
        assert!(problem(&[("x", "+++ f.rs\n+//! F.\n")]).contains("f.rs is there already"));
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        let told = |text: &str| parse("x", text).expect_err("not a patch");
        assert!(told("").contains("no hunk"));
        assert!(told("a\n").contains("x.patch:1: a patch begins with"));
        assert!(told("@@\n").contains("a hunk without `--- path`"));
        assert!(told("--- f.rs\n@@\n a\n*b\n").contains("x.patch:4: a line of a hunk begins with"));
        assert!(told("--- f.rs\n@@\n a\n").contains("changes nothing"));
        assert!(told("--- f.rs\n@@\n+a\n").contains("a new file has none"));
        assert!(told("+++ f.rs\n+a\n b\n").contains("a new file has none"));
    }
}
