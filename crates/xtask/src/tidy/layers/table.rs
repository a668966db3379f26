//! The tables of layers in ARCHITECTURE.md.
//!
//! Below the heading `## Layers` each crate may have a heading `### …` that names its folder in
//! backquotes, and a table of three columns: the layer's name, its folders and files (in
//! backquotes), and the layers that they may import. The highest layer comes first. `all below`
//! stands for every layer further down, and `nothing` for none. Files of one layer may import each
//! other.

use std::collections::{BTreeMap, BTreeSet};

/// The heading under which the tables stand.
const HEADING: &str = "## Layers";

/// One row of a crate's table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) name: String,
    pub(super) nodes: Vec<String>,
    pub(super) may_import: Vec<String>,
    pub(super) line: usize,
}

/// Returns the tables of a page, by crate.
pub(super) fn read(page: &str) -> BTreeMap<String, Vec<Layer>> {
    let mut tables: BTreeMap<String, Vec<Layer>> = BTreeMap::new();
    let mut inside = false;
    let mut owner = None;
    for (i, line) in page.lines().enumerate() {
        if let Some(title) = line.strip_prefix("### ") {
            owner = backquoted(title).next().map(|name| name.replace("crates/", ""));
        } else if line.starts_with("## ") {
            inside = line.trim_end() == HEADING;
            owner = None;
        }
        let (true, Some(owner)) = (inside, &owner) else { continue };
        let Some(row) = line.trim().strip_prefix('|').and_then(|row| row.strip_suffix('|')) else {
            continue;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [name, nodes, imports] = cells[..] else { continue };
        let nodes: Vec<String> = backquoted(nodes)
            .map(|node| node.trim_end_matches('/').trim_end_matches(".rs").to_owned())
            .collect();
        if nodes.is_empty() {
            continue; // The heading of the table, and the line below it.
        }
        let imports = imports.replace('`', "");
        let may_import = imports.split(',').map(str::trim).filter(|word| *word != "nothing");
        tables.entry(owner.clone()).or_default().push(Layer {
            name: name.replace('`', ""),
            nodes,
            may_import: may_import.map(str::to_owned).collect(),
            line: i + 1,
        });
    }
    tables
}

fn backquoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The imports that a table allows.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    layer_of: BTreeMap<String, String>,
    pairs: BTreeSet<(String, String)>,
}

impl Allowed {
    /// Reads the rows of a table. Returns a problem, `line: what`, for each row that contradicts
    /// another one or names a missing layer or folder.
    pub(super) fn of(layers: &[Layer], nodes: &BTreeSet<String>) -> (Allowed, Vec<String>) {
        let mut allowed = Allowed::default();
        let mut problems = Vec::new();
        for (i, layer) in layers.iter().enumerate() {
            for node in &layer.nodes {
                if !nodes.contains(node) {
                    problems.push(format!("{}: `{node}` does not exist", layer.line));
                }
                let before = allowed.layer_of.insert(node.clone(), layer.name.clone());
                if before.is_some() {
                    problems.push(format!("{}: `{node}` is in two layers", layer.line));
                }
            }
            for name in &layer.may_import {
                let below: Vec<&Layer> = if name == "all below" {
                    layers[i + 1..].iter().collect()
                } else {
                    layers.iter().filter(|other| other.name == *name).collect()
                };
                if below.is_empty() {
                    problems.push(format!("{}: there is no layer {name:?}", layer.line));
                }
                let pairs = below.iter().map(|other| (layer.name.clone(), other.name.clone()));
                allowed.pairs.extend(pairs);
            }
        }
        (allowed, problems)
    }

    /// Returns the layer of a folder or file.
    pub(super) fn layer(&self, node: &str) -> Option<&str> {
        self.layer_of.get(node).map(String::as_str)
    }

    /// True if files of layer `from` may import files of layer `to`.
    pub(super) fn allows(&self, from: &str, to: &str) -> bool {
        from == to || self.pairs.contains(&(from.to_owned(), to.to_owned()))
    }
}
