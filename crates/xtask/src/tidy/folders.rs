//! The convention for modules: a module with submodules is `x/mod.rs`, never `x.rs` beside `x/`,
//! and a folder below `src/` holds more than one source file.

use std::collections::BTreeMap;

/// Adds a problem for each folder of a crate's `src/` or `tests/` that breaks the convention.
/// `files` are the repository's.
pub(super) fn check(files: &[String], exempt: &[&str], problems: &mut Vec<String>) {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in files.iter().filter(|name| name.ends_with(".rs")) {
        let Some((owner, _)) = name.strip_prefix("crates/").and_then(|rest| rest.split_once('/'))
        else {
            continue;
        };
        if exempt.contains(&owner) {
            continue;
        }
        let mut folder = name.as_str();
        while let Some((above, _)) = folder.rsplit_once('/') {
            folder = above;
            folders.entry(folder).or_default().push(name);
        }
    }
    for (folder, inside) in folders {
        // The folder's path below its crate, for instance `src/tidy/layers`.
        let below = folder.splitn(3, '/').nth(2).unwrap_or_default();
        if !below.starts_with("src/") && !below.starts_with("tests/") {
            continue;
        }
        let beside = format!("{folder}.rs");
        if files.contains(&beside) {
            problems.push(format!("{beside}:1: has submodules: move it to {folder}/mod.rs"));
        } else if let ([only], true) = (&inside[..], below.starts_with("src/")) {
            problems.push(format!("{only}:1: is the only file of its folder: move it up"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[&str]) -> Vec<String> {
        let files: Vec<String> = files.iter().map(|name| (*name).to_owned()).collect();
        let mut problems = Vec::new();
        check(&files, &["exempt"], &mut problems);
        problems
    }

    #[test]
    fn a_module_with_submodules_is_a_mod_file() {
        let clean = ["crates/x/src/lib.rs", "crates/x/src/a/mod.rs", "crates/x/src/a/b.rs"];
        assert_eq!(problems(&clean), Vec::<String>::new());
        let found = problems(&["crates/x/src/a.rs", "crates/x/src/a/b.rs", "crates/x/src/a/c.rs"]);
        assert_eq!(
            found,
            ["crates/x/src/a.rs:1: has submodules: move it to crates/x/src/a/mod.rs"]
        );
    }

    #[test]
    fn a_folder_with_one_file_fails_below_src() {
        let found = problems(&["crates/x/src/a/mod.rs", "crates/x/tests/b/main.rs"]);
        assert_eq!(found, ["crates/x/src/a/mod.rs:1: is the only file of its folder: move it up"]);
    }

    #[test]
    fn exempt_crates_and_build_scripts_are_left_alone() {
        let files = ["crates/exempt/src/a.rs", "crates/exempt/src/a/b.rs", "crates/x/build.rs"];
        assert_eq!(problems(&files), Vec::<String>::new());
        assert_eq!(problems(&["crates/x/build.rs", "crates/x/build/a.rs"]), Vec::<String>::new());
    }
}
