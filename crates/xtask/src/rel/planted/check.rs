//! The rules of the planted bugs that `cargo xtask tidy` checks, so that no patch rots.
//!
//! What must stay true: every patch applies to the sources as they are; each bug of the list has
//! one patch, which asks for that bug alone; and nothing that ships mentions planted bugs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::bugs::BUGS;
use super::patch::{self, FOLDER, Hunk};
use crate::chore::Outcome;
use crate::tidy::{has_word, list};

/// The patch that adds the function `planted`, which the other patches call.
const FUNCTION: &str = "planted";
/// How the other patches call it.
const ASKED: &str = "planted(\"";
/// The words that nothing that ships has.
const WORDS: &[&str] = &["plant", "planted", "SATEEN_PLANT"];

/// Checks all rules.
pub(crate) fn check(root: &Path) -> Outcome {
    let mut problems = shipped(root);
    match patch::read_all(root) {
        Ok(hunks) => {
            let names: Vec<_> = BUGS.iter().map(|bug| bug.name).collect();
            problems.extend(names_agree(&hunks, &names));
            let applied = patch::apply(&hunks, |path| fs::read_to_string(root.join(path)).ok());
            problems.extend(applied.err().into_iter().flatten());
        }
        Err(found) => problems.extend(found),
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Returns where the names of the list, of the patches and in them differ: such a bug is never
/// planted, or never looked for.
fn names_agree(hunks: &[Hunk], listed: &[&str]) -> Vec<String> {
    let mut problems = Vec::new();
    let patches: BTreeSet<_> = hunks.iter().map(|hunk| hunk.patch.as_str()).collect();
    let wanted: BTreeSet<_> = listed.iter().copied().chain([FUNCTION]).collect();
    for name in wanted.difference(&patches) {
        problems.push(format!("{FOLDER}/{name}.patch: is missing, and bugs.rs has the bug"));
    }
    for name in patches.difference(&wanted) {
        problems.push(format!("{FOLDER}/{name}.patch: there is no such bug in bugs.rs"));
    }
    for patch in patches.into_iter().filter(|patch| *patch != FUNCTION) {
        let lines = hunks.iter().filter(|hunk| hunk.patch == patch).flat_map(Hunk::added);
        let names = lines.flat_map(|line| line.split(ASKED).skip(1));
        let asked: BTreeSet<_> = names.filter_map(|rest| rest.split('"').next()).collect();
        if asked != BTreeSet::from([patch]) {
            problems.push(format!(
                "{FOLDER}/{patch}.patch: asks for {asked:?}: a patch asks for the bug of its name"
            ));
        }
    }
    problems
}

/// Returns where sources or manifests other than this crate's mention planted bugs.
fn shipped(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    list(root, root, &mut files);
    files.sort();
    let mut problems = Vec::new();
    for name in files.iter().filter(|name| ships(name)) {
        let text = fs::read_to_string(root.join(name)).unwrap_or_default();
        for (i, line) in text.lines().enumerate() {
            if WORDS.iter().any(|word| has_word(line, word)) {
                let what = "mentions planted bugs: a bug is a patch in";
                problems.push(format!("{name}:{}: {what} {FOLDER}", i + 1));
            }
        }
    }
    problems
}

/// True for sources and manifests of the crates that ship.
fn ships(name: &str) -> bool {
    let own = name.starts_with("crates/xtask/");
    let source = name.starts_with("crates/") && name.contains("/src/");
    !own && (source || name.ends_with("Cargo.toml") || name.ends_with("build.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_hold() {
        assert_eq!(check(&crate::chore::root()), Ok(()));
    }

    #[test]
    fn names_that_differ_are_told() {
        let patch = |name: &str, asks: &str| {
            let text = format!("--- a.rs\n@@\n a\n+planted(\"{asks}\")\n");
            patch::parse(name, &text).expect("a patch")
        };
        let function = || patch::parse(FUNCTION, "+++ p.rs\n+pub fn planted() {}\n").expect("one");
        let told = |patches: Vec<Vec<Hunk>>, listed: &[&str]| {
            let hunks: Vec<_> = patches.into_iter().flatten().chain(function()).collect();
            names_agree(&hunks, listed).join("\n")
        };
        assert_eq!(told(vec![patch("b", "b"), patch("c", "c")], &["b", "c"]), "");
        assert!(told(vec![patch("b", "b")], &["b", "c"]).contains("c.patch: is missing"));
        assert!(told(vec![patch("b", "b")], &[]).contains("b.patch: there is no such bug"));
        assert!(told(vec![patch("b", "c")], &["b"]).contains("asks for {\"c\"}"));
    }

    #[test]
    fn what_ships_is_all_but_tests_and_this_crate() {
        assert!(ships("crates/engine/src/write/mod.rs") && ships("crates/store/Cargo.toml"));
        assert!(ships("Cargo.toml") && ships("crates/capi/build.rs"));
        assert!(!ships("crates/engine/tests/it/crash/planted.rs"));
        assert!(!ships("crates/xtask/src/rel/planted/mod.rs") && !ships("docs/reliability.md"));
    }
}
