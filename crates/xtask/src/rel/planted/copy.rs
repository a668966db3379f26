//! The copy of the sources that has the planted bugs. The sources themselves have none.
//!
//! What must stay true: a file is written only if its content changes, because cargo compiles
//! again what is newer than its last build. The copy has no file that the sources do not have, but
//! for those that a patch adds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::patch;
use crate::chore::Outcome;

/// Makes `to` the working tree of `root` with all patches applied, and returns how many files had
/// to be written.
pub(super) fn make(root: &Path, to: &Path) -> Result<usize, Vec<String>> {
    let hunks = patch::read_all(root)?;
    let changed = patch::apply(&hunks, |path| fs::read_to_string(root.join(path)).ok())?;
    let mut files = working_tree(root)?;
    files.extend(changed.into_iter().map(|(name, text)| (name, text.into_bytes())));
    fs::create_dir_all(to).map_err(|error| vec![format!("{}: {error}", to.display())])?;
    remove_others(to, "", &files)?;
    let mut written = 0;
    for (name, content) in &files {
        let path = to.join(name);
        if fs::read(&path).is_ok_and(|there| there == *content) {
            continue;
        }
        let folder = path.parent().unwrap_or(to);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, content))
            .map_err(|error| vec![format!("{}: {error}", path.display())])?;
        written += 1;
    }
    Ok(written)
}

/// Returns the files of the working tree by name: all that git knows or would add.
fn working_tree(root: &Path) -> Result<BTreeMap<String, Vec<u8>>, Vec<String>> {
    let words = "ls-files -z --cached --others --exclude-standard";
    let listed = Command::new("git").args(words.split(' ')).current_dir(root).output();
    let listed = listed.map_err(|error| vec![format!("git {words}: {error}")])?;
    if !listed.status.success() {
        let said = String::from_utf8_lossy(&listed.stderr).into_owned();
        return Err(vec![format!(
            "git {words}: {}: the suite copies a git work tree: {said}",
            listed.status
        )]);
    }
    let mut files = BTreeMap::new();
    for name in String::from_utf8_lossy(&listed.stdout).split_terminator('\0') {
        match fs::read(root.join(name)) {
            Ok(content) => {
                files.insert(name.to_owned(), content);
            }
            // Deleted, and still in the index.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(vec![format!("{name}: {error}")]),
        }
    }
    Ok(files)
}

/// Removes what is below the folder `below` of `to` and is not one of `files`.
fn remove_others(to: &Path, below: &str, files: &BTreeMap<String, Vec<u8>>) -> Outcome {
    let folder = to.join(below);
    let problem = |error: std::io::Error| vec![format!("{}: {error}", folder.display())];
    for entry in fs::read_dir(&folder).map_err(problem)? {
        let entry = entry.map_err(problem)?;
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.file_type().map_err(problem)?.is_dir() {
            remove_others(to, &format!("{name}/"), files)?;
        } else if !files.contains_key(&name) {
            fs::remove_file(entry.path()).map_err(problem)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_written_where_it_differs_and_holds_nothing_else() {
        let root = crate::chore::root();
        if !root.join(".git").exists() {
            return println!("SKIPPED(not a git work tree)");
        }
        let to = std::env::temp_dir().join(format!("sateen-planted-copy-{}", std::process::id()));
        let changed = make(&root, &to).expect("the copy is made");
        assert!(changed > 500, "{changed}");
        assert!(to.join("crates/store/src/plant.rs").is_file());
        fs::create_dir_all(to.join("stale")).expect("a folder");
        fs::write(to.join("stale/a.rs"), "//! Stale.\n").expect("a stale file");
        fs::write(to.join("Cargo.toml"), "").expect("a changed file");
        assert_eq!(make(&root, &to), Ok(1));
        assert!(!to.join("stale/a.rs").exists());
        fs::remove_dir_all(&to).expect("the copy is removed");
    }
}
