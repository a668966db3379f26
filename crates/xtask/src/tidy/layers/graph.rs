//! The graph of imports between the top-level folders and files of a crate, and its cycles.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{self, Imports, Named};

/// A source file of a crate: its name below `src/` with slashes, and its text.
pub(super) type File = (String, String);

/// The first place of an import, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) count: usize,
}

/// The imports of a crate by (importing node, imported node). A node is a folder or file at the top
/// of `src/`, without `.rs`; the crate's root file is a node as well.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: BTreeSet<String>,
    pub(super) edges: BTreeMap<(String, String), Edge>,
}

impl Graph {
    /// Reads all files of a crate. `root` is `lib.rs` or `main.rs`.
    pub(super) fn of(root: &str, files: &[File]) -> Graph {
        let read: Vec<_> = files
            .iter()
            .filter_map(|(name, text)| {
                let module = module_of(root, name)?;
                let imports = imports::read(&module, text);
                Some((name, module, imports))
            })
            .collect();
        let test_modules: Vec<_> =
            read.iter().flat_map(|(_, _, found)| found.test_modules.clone()).collect();
        let tests_only = |module: &[String]| test_modules.iter().any(|t| module.starts_with(t));
        let root_node = root.trim_end_matches(".rs").to_owned();
        let shipped: Vec<_> = read.iter().filter(|(_, module, _)| !tests_only(module)).collect();
        let top = |module: &[String]| module.first().unwrap_or(&root_node).clone();
        let names = Names {
            nodes: shipped.iter().map(|(_, module, _)| top(module)).collect(),
            modules: shipped.iter().map(|(_, module, found)| (module.clone(), found)).collect(),
            root_node: root_node.clone(),
        };
        let mut graph = Graph { nodes: names.nodes.clone(), ..Graph::default() };
        for (name, module, found) in shipped {
            let from = top(module);
            for path in &found.paths {
                let root = || path.certain.then(|| names.root_node.clone());
                let found = names.node_of(&path.segments, 0).or_else(root);
                if let Some(to) = found.filter(|to| *to != from) {
                    let (file, line) = ((*name).clone(), path.line);
                    let edge = graph.edges.entry((from.clone(), to));
                    edge.or_insert(Edge { file, line, count: 0 }).count += 1;
                }
            }
        }
        graph
    }

    /// Returns the sets of nodes that import each other, directly or not.
    pub(super) fn cycles(&self) -> Vec<Vec<String>> {
        let reach: BTreeMap<_, _> =
            self.nodes.iter().map(|node| (node, self.reachable(node))).collect();
        let mut left = self.nodes.clone();
        let mut cycles = Vec::new();
        while let Some(node) = left.pop_first() {
            let together = |other: &&String| {
                reach[&node].contains(*other) && reach.get(other).is_some_and(|r| r.contains(&node))
            };
            let mut cycle: Vec<String> = left.iter().filter(together).cloned().collect();
            if cycle.is_empty() {
                continue;
            }
            left.retain(|other| !cycle.contains(other));
            cycle.insert(0, node);
            cycles.push(cycle);
        }
        cycles
    }

    fn reachable(&self, from: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut open = vec![from.to_owned()];
        while let Some(node) = open.pop() {
            for (_, to) in self.edges.keys().filter(|(begin, _)| *begin == node) {
                if seen.insert(to.clone()) {
                    open.push(to.clone());
                }
            }
        }
        seen
    }
}

/// Returns the module of a file, or `None` for a file of another crate (a binary beside a library).
fn module_of(root: &str, name: &str) -> Option<Vec<String>> {
    if name == root {
        return Some(Vec::new());
    }
    if name == "main.rs" || name.starts_with("bin/") {
        return None;
    }
    let path = name.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    Some(path.split('/').map(str::to_owned).collect())
}

/// Resolves paths that begin at the crate's root.
struct Names<'a> {
    nodes: BTreeSet<String>,
    modules: BTreeMap<Vec<String>, &'a Imports>,
    root_node: String,
}

impl Names<'_> {
    /// Returns the node that defines the item at a path from the root. `depth` bounds the number of
    /// re-exports that are followed.
    fn node_of(&self, path: &[String], depth: usize) -> Option<String> {
        let Some(first) = path.first() else { return Some(self.root_node.clone()) };
        if self.nodes.contains(first) && *first != self.root_node {
            return Some(first.clone());
        }
        let root = self.modules.get(&Vec::new())?;
        if depth > 8 || first == "*" {
            return Some(self.root_node.clone());
        }
        if let Some(named) = root.named.iter().find(|named| named.name == *first) {
            // `use other_crate::Name` in the root leads out of this crate.
            let inside = named.segments.first().is_some_and(|head| self.knows(head));
            return if inside { self.node_of(&named.segments, depth + 1) } else { None };
        }
        if root.defined.contains(first) {
            return Some(self.root_node.clone());
        }
        let globs = root.named.iter().filter(|named| named.name == "*");
        for Named { segments, .. } in globs {
            let Some(module) = self.modules.get(segments) else { continue };
            let renamed = module.named.iter().any(|named| named.name == *first);
            if renamed || module.defined.contains(first) {
                return segments.first().cloned();
            }
        }
        // `#[macro_export]` puts a macro of any file at the root.
        let mut modules = self.modules.iter();
        let exports = modules.find(|(_, found)| path.len() == 1 && found.macros.contains(first))?;
        exports.0.first().cloned()
    }

    fn knows(&self, head: &str) -> bool {
        self.nodes.contains(head) || self.modules[&Vec::new()].defined.iter().any(|d| d == head)
    }
}
