//! The layers of each crate: its top-level folders and files import each other in one direction.
//!
//! 1. [`graph::Graph::of`] reads the imports between the folders and files at the top of `src/`.
//! 2. [`graph::Graph::cycles`] finds folders and files that import each other; each is a problem.
//! 3. If ARCHITECTURE.md has a table of the crate's layers ([`table`]), every import that the table
//!    does not allow is a problem, and so is every folder or file that it does not name.

mod graph;
mod imports;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use graph::{Edge, File, Graph};
use table::{Allowed, Layer};

/// The page with the tables.
const PAGE: &str = "ARCHITECTURE.md";

/// Adds the problems of all crates but the exempt ones. `files` are the repository's.
pub(super) fn check(root: &Path, files: &[String], exempt: &[&str], problems: &mut Vec<String>) {
    let page = fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    let mut tables = table::read(&page);
    let mut crates: BTreeMap<&str, Vec<File>> = BTreeMap::new();
    for name in files.iter().filter(|name| name.ends_with(".rs")) {
        let Some(rest) = name.strip_prefix("crates/") else { continue };
        let Some((folder, file)) = rest.split_once("/src/") else { continue };
        if let (false, Ok(text)) = (folder.contains('/'), fs::read_to_string(root.join(name))) {
            crates.entry(folder).or_default().push((file.to_owned(), text));
        }
    }
    for (folder, files) in crates {
        let layers = tables.remove(folder);
        if !exempt.contains(&folder) {
            one_crate(folder, &files, layers.as_deref(), problems);
        }
    }
    for (folder, layers) in tables {
        let line = layers.first().map_or(1, |layer| layer.line);
        problems.push(format!("{PAGE}:{line}: there is no crate {folder:?}"));
    }
}

/// Adds the problems of one crate, whose files are named below its `src/`.
fn one_crate(folder: &str, files: &[File], layers: Option<&[Layer]>, problems: &mut Vec<String>) {
    let library = files.iter().any(|(name, _)| name == "lib.rs");
    let root = if library { "lib.rs" } else { "main.rs" };
    let graph = Graph::of(root, files);
    let place = |edge: &Edge| format!("crates/{folder}/src/{}:{}", edge.file, edge.line);
    for cycle in graph.cycles() {
        let all = cycle.join(", ");
        problems.push(format!("crates/{folder}/src: {} import each other: {all}", cycle.len()));
        for ((from, to), edge) in &graph.edges {
            if cycle.contains(from) && cycle.contains(to) {
                let (place, count) = (place(edge), edge.count);
                problems.push(format!("{place}: `{from}` imports `{to}` ({count} places)"));
            }
        }
    }
    let Some(layers) = layers else { return };
    let (allowed, wrong) = Allowed::of(layers, &graph.nodes);
    problems.extend(wrong.iter().map(|problem| format!("{PAGE}:{problem}")));
    let root = root.trim_end_matches(".rs");
    for node in graph.nodes.iter().filter(|node| *node != root && allowed.layer(node).is_none()) {
        let line = layers.first().map_or(1, |layer| layer.line);
        problems.push(format!("{PAGE}:{line}: no layer of `{folder}` names `{node}`"));
    }
    for ((from, to), edge) in &graph.edges {
        // The root declares every module and re-exports from them, so it stands above all layers.
        let from_layer = allowed.layer(from);
        if from_layer.is_none() {
            continue;
        }
        let place = place(edge);
        match (from_layer, allowed.layer(to)) {
            (Some(layer), Some(other)) if !allowed.allows(layer, other) => {
                problems.push(format!(
                    "{place}: `{from}` ({layer}) may not import `{to}` ({other}): {PAGE}"
                ));
            }
            (Some(layer), None) if to == root => {
                problems.push(format!("{place}: `{from}` ({layer}) imports the crate's root"));
            }
            _ => (),
        }
    }
}

#[cfg(test)]
mod tests;
