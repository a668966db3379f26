//! Checks licences, sources and banned crates of the dependencies by `deny.toml`. The check reads
//! `cargo metadata`, so that it needs no other tool. If `cargo deny` is installed, it runs as well,
//! with the same file.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::chore::{Outcome, answers};

pub(crate) fn run(root: &Path) -> Outcome {
    let rules = fs::read_to_string(root.join("deny.toml"))
        .map_err(|error| vec![format!("deny.toml: {error}")])?;
    let allowed = list_in(&rules, "allow");
    let banned = list_in(&rules, "deny");
    if allowed.is_empty() {
        return Err(vec!["deny.toml: no licence is allowed: `allow` was not found".to_owned()]);
    }
    let metadata = metadata(root, &[])?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut problems = Vec::new();
    for package in packages {
        check(package, &allowed, &banned, &mut problems);
    }
    if packages.is_empty() {
        problems.push("cargo metadata lists no package".to_owned());
    }
    eprintln!("{} packages", packages.len());
    if !problems.is_empty() {
        return Err(problems);
    }
    with_cargo_deny(root)
}

fn check(package: &Value, allowed: &[String], banned: &[String], problems: &mut Vec<String>) {
    let name = package["name"].as_str().unwrap_or("?");
    let version = package["version"].as_str().unwrap_or("?");
    match package["license"].as_str() {
        Some(licence) if permits(licence, allowed) => {}
        Some(licence) => problems.push(format!("{name} {version}: licence {licence:?}")),
        None => problems.push(format!("{name} {version}: states no licence")),
    }
    if banned.iter().any(|word| word == name) {
        problems.push(format!("{name} {version}: banned in deny.toml"));
    }
    // Null stands for a crate of this workspace. Any other source must be the public registry.
    match package["source"].as_str() {
        None => {}
        Some(source) if source.starts_with("registry+") && source.ends_with("crates.io-index") => {}
        Some(source) => problems.push(format!("{name} {version}: comes from {source}")),
    }
}

/// True if the allowed licences alone satisfy `expression`, an SPDX expression. `OR` binds weaker
/// than `AND`, the old `/` means `OR`, and ` WITH exception` is part of a name.
fn permits(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let permitted = any_of(&words, &mut at, allowed);
    permitted && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut permitted = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        permitted |= all_of(words, at, allowed);
    }
    permitted
}

fn all_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut permitted = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        permitted &= one(words, at, allowed);
    }
    permitted
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let word = words.get(*at).copied().unwrap_or("");
    *at += 1;
    if word == "(" {
        let permitted = any_of(words, at, allowed);
        *at += 1;
        return permitted;
    }
    let mut name = word.to_owned();
    if words.get(*at) == Some(&"WITH") {
        name = format!("{word} WITH {}", words.get(*at + 1).copied().unwrap_or(""));
        *at += 2;
    }
    allowed.contains(&name)
}

/// Returns the strings of the list `key = [ … ]` in a TOML text. Its elements are strings, or
/// tables whose first string is the name of a crate.
fn list_in(text: &str, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let opens = line.strip_prefix(key).map(str::trim_start);
        let body = match opens.and_then(|rest| rest.strip_prefix('=')) {
            Some(rest) if rest.trim_start().starts_with('[') => {
                inside = true;
                rest
            }
            _ if inside => line,
            _ => continue,
        };
        if body.contains('{') {
            found.extend(body.split('"').nth(1).map(str::to_owned));
        } else {
            found.extend(body.split('"').skip(1).step_by(2).map(str::to_owned));
        }
        if body.ends_with(']') {
            inside = false;
        }
    }
    found
}

/// Returns what cargo knows of the workspace and its dependencies.
pub(crate) fn metadata(root: &Path, more: &[&str]) -> Result<Value, Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--locked"]).args(more).current_dir(root);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| vec![format!("cargo metadata: {error}")])?;
    if !output.status.success() {
        return Err(vec![format!("cargo metadata --locked: {}", output.status)]);
    }
    serde_json::from_slice(&output.stdout).map_err(|error| vec![format!("cargo metadata: {error}")])
}

fn with_cargo_deny(root: &Path) -> Outcome {
    if !answers(Command::new("cargo-deny").arg("--version")) {
        eprintln!("cargo deny is not installed: licences, sources and bans were checked without");
        return Ok(());
    }
    let arguments = ["--all-features", "check", "bans", "licenses", "sources"];
    match Command::new("cargo-deny").args(arguments).current_dir(root).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(vec![format!("cargo deny: {status}")]),
        Err(error) => Err(vec![format!("cargo deny: {error}")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn licence_expressions_are_weighed() {
        let rules = allowed(&["MIT", "Apache-2.0 WITH LLVM-exception"]);
        assert!(permits("MIT", &rules));
        assert!(permits("GPL-3.0 OR MIT", &rules));
        assert!(permits("Unlicense/MIT", &rules));
        assert!(permits("Apache-2.0 WITH LLVM-exception OR Apache-2.0", &rules));
        assert!(!permits("(MIT OR Apache-2.0) AND Unicode-3.0", &rules));
        assert!(permits("(Zlib OR MIT) AND (MIT)", &rules));
        assert!(!permits("MIT AND GPL-3.0", &rules));
        assert!(!permits("GPL-3.0", &rules));
        assert!(!permits("", &rules));
    }

    #[test]
    fn lists_are_read_whatever_their_layout() {
        let text = "allow = [\"A\", \"B\"]\n# allow = [\"X\"]\n\
            deny = [\n    { crate = \"c\", reason = \"r\" },\n    \"d\",\n]\n";
        assert_eq!(list_in(text, "allow"), ["A", "B"]);
        assert_eq!(list_in(text, "deny"), ["c", "d"]);
    }

    #[test]
    fn a_banned_crate_a_licence_and_a_source_are_named() {
        let package = serde_json::json!({
            "name": "x", "version": "1", "license": "GPL-3.0", "source": "git+somewhere",
        });
        let mut problems = Vec::new();
        check(&package, &allowed(&["MIT"]), &allowed(&["x"]), &mut problems);
        assert_eq!(problems.len(), 3, "{problems:?}");
    }
}
