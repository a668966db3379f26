//! Checks the site that mdbook wrote: each link of each page leads to a file there, and to an
//! element that has the name behind its `#`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::chore::Outcome;

pub(super) fn check(site: &Path) -> Outcome {
    let mut pages = BTreeMap::new();
    read(site, &mut pages);
    let mut problems = Vec::new();
    // The page for what is not found has links from the top of the server.
    for (path, text) in pages.iter().filter(|(path, _)| !path.ends_with("404.html")) {
        let targets = attributes(text, "href").chain(attributes(text, "src"));
        for target in targets.filter(|target| !target.contains(':')) {
            let (file, name) = target.split_once('#').unwrap_or((target, ""));
            let folder = path.parent().unwrap_or(site);
            let there = if file.is_empty() { path.clone() } else { normal(&folder.join(file)) };
            let found = match pages.get(&there) {
                Some(page) => name.is_empty() || attributes(page, "id").any(|id| id == name),
                None => there.exists(),
            };
            if !found {
                problems.push(format!("{}: leads nowhere: {target}", path.display()));
            }
        }
    }
    eprintln!("{} pages", pages.len());
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Adds the HTML files below `folder` with their text.
fn read(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read(&path, pages);
        } else if path.extension().is_some_and(|end| end == "html") {
            let text = fs::read_to_string(&path).unwrap_or_default();
            pages.insert(path, text);
        }
    }
}

/// Returns the values of an attribute in `text`.
fn attributes<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let opening = format!(" {name}=\"");
    let values = text.match_indices(&opening).map(|(at, found)| &text[at + found.len()..]);
    values.filter_map(|rest| rest.split('"').next()).collect::<Vec<_>>().into_iter()
}

/// Returns `path` without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}
