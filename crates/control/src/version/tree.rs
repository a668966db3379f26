//! A persistent order-statistic B+tree of tables: the tables of one run in key order.
//!
//! 1. A clone costs one reference count and shares every node.
//! 2. [`Tree::insert`] and [`Tree::remove`] copy the nodes on their path that another tree still
//!    holds. A node that is too large is split; one that is too small joins its neighbour (`join`).
//! 3. [`Tree::find`] and [`Tree::lower_bound`] find by key, [`Tree::get`] finds by rank. All of
//!    them take O(log n).
//! 4. [`Tree::range`] walks over tables in key order.
//!
//! What must stay true: tables are disjoint and ascend, so their smallest keys have the same order
//! as their largest keys. All leaves are equally deep. The sums in a parent equal those of its
//! children.

use std::sync::Arc;

use super::TableMeta;
use super::heads::{Bounded, Entries};
use crate::types::UserKey;

/// The largest number of entries in a node.
const ENTRIES_MAX: usize = 48;
/// A node with fewer entries than this joins its neighbour. The root may have fewer.
const ENTRIES_MIN: usize = ENTRIES_MAX / 4;

/// A node of the tree.
#[derive(Clone, Debug)]
enum Node {
    Leaf(Entries<Arc<TableMeta>>),
    Inner(Entries<Child>),
}

impl Bounded for Arc<TableMeta> {
    #[inline]
    fn largest(&self) -> &UserKey {
        &self.largest
    }
    #[inline]
    fn smallest(&self) -> Option<&UserKey> {
        Some(&self.smallest)
    }
}

impl Bounded for Child {
    #[inline]
    fn largest(&self) -> &UserKey {
        &self.largest
    }
    #[inline]
    fn smallest(&self) -> Option<&UserKey> {
        None
    }
}

/// A child, and the sums over everything below it.
#[derive(Clone, Debug)]
struct Child {
    node: Arc<Node>,
    tables: usize,
    bytes: u64,
    largest: UserKey,
}

impl Child {
    /// Returns `node` with its sums; `None` if it is empty.
    fn of(node: Arc<Node>) -> Option<Child> {
        let (tables, bytes, largest) = node.sums()?;
        Some(Child { node, tables, bytes, largest })
    }
}

impl Node {
    fn entries(&self) -> usize {
        match self {
            Node::Leaf(tables) => tables.len(),
            Node::Inner(children) => children.len(),
        }
    }

    /// Returns number, bytes and largest key of the tables below; `None` if there are none.
    fn sums(&self) -> Option<(usize, u64, UserKey)> {
        match self {
            Node::Leaf(tables) => {
                let bytes = tables.iter().map(|table| table.size_bytes).sum();
                Some((tables.len(), bytes, tables.last()?.largest.clone()))
            }
            Node::Inner(children) => {
                let tables = children.iter().map(|child| child.tables).sum();
                let bytes = children.iter().map(|child| child.bytes).sum();
                Some((tables, bytes, children.last()?.largest.clone()))
            }
        }
    }

    /// Inserts `table` at its place. Returns the right half of a node that was split.
    fn insert(node: &mut Arc<Node>, table: Arc<TableMeta>) -> Option<Arc<Node>> {
        match Arc::make_mut(node) {
            Node::Leaf(tables) => {
                // It overlaps no other table.
                let at = tables.search(table.smallest.bytes());
                tables.insert(at, table);
                (tables.len() > ENTRIES_MAX)
                    .then(|| Arc::new(Node::Leaf(tables.split_off(tables.len() / 2))))
            }
            Node::Inner(children) => {
                let at = children.search(table.smallest.bytes()).min(children.len() - 1);
                let split = children.change(at, |child| {
                    child.tables += 1;
                    child.bytes += table.size_bytes;
                    if child.largest < table.largest {
                        child.largest = table.largest.clone();
                    }
                    Node::insert(&mut child.node, table)
                });
                if let Some(right) = split.flatten() {
                    let halves = [Child::of(children[at].node.clone()), Child::of(right)];
                    children.replace(at..at + 1, halves.into_iter().flatten());
                }
                (children.len() > ENTRIES_MAX)
                    .then(|| Arc::new(Node::Inner(children.split_off(children.len() / 2))))
            }
        }
    }

    /// Removes the table of rank `index`, which must exist.
    fn remove(node: &mut Arc<Node>, mut index: usize) -> Arc<TableMeta> {
        match Arc::make_mut(node) {
            Node::Leaf(tables) => tables.remove(index),
            Node::Inner(children) => {
                let mut at = 0;
                while index >= children[at].tables {
                    index -= children[at].tables;
                    at += 1;
                }
                let mut child = children.remove(at);
                let removed = Node::remove(&mut child.node, index);
                if let Some(child) = Child::of(child.node) {
                    let few = child.node.entries() < ENTRIES_MIN;
                    children.insert(at, child);
                    if few && children.len() > 1 {
                        join(children, at.min(children.len() - 2));
                    }
                }
                removed
            }
        }
    }
}

/// Joins the children `at` and `at + 1`, or divides their entries equally if they do not fit into
/// one node.
fn join(children: &mut Entries<Child>, at: usize) {
    let (left, right) = (&children[at].node, &children[at + 1].node);
    let nodes = match (left.as_ref(), right.as_ref()) {
        (Node::Leaf(left), Node::Leaf(right)) => {
            let mut all: Vec<_> = left.iter().chain(right.iter()).cloned().collect();
            let rest = (all.len() > ENTRIES_MAX).then(|| all.split_off(all.len() / 2));
            [Some(all), rest].map(|part| part.map(|part| Node::Leaf(Entries::new(part))))
        }
        (Node::Inner(left), Node::Inner(right)) => {
            let mut all: Vec<_> = left.iter().chain(right.iter()).cloned().collect();
            let rest = (all.len() > ENTRIES_MAX).then(|| all.split_off(all.len() / 2));
            [Some(all), rest].map(|part| part.map(|part| Node::Inner(Entries::new(part))))
        }
        // Unreachable, because all leaves are equally deep. It is harmless to leave the nodes as
        // they are.
        _ => return,
    };
    let joined = nodes.into_iter().flatten().filter_map(|node| Child::of(Arc::new(node)));
    children.replace(at..at + 2, joined);
}

/// The tables of a run, by key and by rank.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    root: Arc<Node>,
    tables: usize,
    bytes: u64,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree { root: Arc::new(Node::Leaf(Entries::new(Vec::new()))), tables: 0, bytes: 0 }
    }
}

impl Tree {
    /// Returns a tree of `tables`, which must ascend and be disjoint. O(n).
    pub(super) fn from_sorted(tables: Vec<Arc<TableMeta>>) -> Tree {
        let count = tables.len();
        let bytes = tables.iter().map(|table| table.size_bytes).sum();
        let mut nodes: Vec<Arc<Node>> = chunks(tables)
            .into_iter()
            .map(|part| Arc::new(Node::Leaf(Entries::new(part))))
            .collect();
        while nodes.len() > 1 {
            let children = chunks(nodes.into_iter().filter_map(Child::of).collect());
            let children = children.into_iter().map(Entries::new);
            nodes = children.map(|part| Arc::new(Node::Inner(part))).collect();
        }
        match nodes.pop() {
            Some(root) => Tree { root, tables: count, bytes },
            None => Tree::default(),
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.tables
    }

    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the table of rank `index`.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Arc<TableMeta>> {
        let mut rest = index;
        let mut node = &self.root;
        loop {
            match node.as_ref() {
                Node::Leaf(tables) => return tables.get(rest),
                Node::Inner(children) => {
                    let child = children.iter().find(|child| {
                        let inside = rest < child.tables;
                        if !inside {
                            rest -= child.tables;
                        }
                        inside
                    })?;
                    node = &child.node;
                }
            }
        }
    }

    /// Returns the rank of the first table whose largest key is at or above `key`; [`Tree::len`] if
    /// there is none.
    #[inline]
    pub(super) fn lower_bound(&self, key: &[u8]) -> usize {
        let mut before = 0;
        let mut node = &self.root;
        loop {
            match node.as_ref() {
                Node::Leaf(tables) => return before + tables.search(key),
                Node::Inner(children) => {
                    let at = children.search(key);
                    before += children[..at].iter().map(|child| child.tables).sum::<usize>();
                    match children.get(at) {
                        Some(child) => node = &child.node,
                        None => return before,
                    }
                }
            }
        }
    }

    /// Returns the table with `key` in its range.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Option<&Arc<TableMeta>> {
        let mut node = &self.root;
        loop {
            match node.as_ref() {
                Node::Leaf(tables) => return tables.find(key),
                Node::Inner(children) => node = &children.get(children.search(key))?.node,
            }
        }
    }

    /// Returns the bytes of the tables with a rank below `index`.
    pub(super) fn bytes_before(&self, index: usize) -> u64 {
        let mut rest = index;
        let mut bytes = 0;
        let mut node = &self.root;
        loop {
            match node.as_ref() {
                Node::Leaf(tables) => {
                    return bytes + tables.iter().take(rest).map(|t| t.size_bytes).sum::<u64>();
                }
                Node::Inner(children) => {
                    let mut inside = None;
                    for child in children.iter() {
                        if rest < child.tables {
                            inside = Some(child);
                            break;
                        }
                        rest -= child.tables;
                        bytes += child.bytes;
                    }
                    match inside {
                        Some(child) => node = &child.node,
                        None => return bytes,
                    }
                }
            }
        }
    }

    /// Inserts `table`, which must not overlap any table of the tree.
    pub(super) fn insert(&mut self, table: Arc<TableMeta>) {
        self.tables += 1;
        self.bytes += table.size_bytes;
        if let Some(right) = Node::insert(&mut self.root, table) {
            let halves = [Child::of(self.root.clone()), Child::of(right)];
            let children = Entries::new(halves.into_iter().flatten().collect());
            self.root = Arc::new(Node::Inner(children));
        }
    }

    /// Removes the table of rank `index`.
    pub(super) fn remove(&mut self, index: usize) -> Option<Arc<TableMeta>> {
        if index >= self.tables {
            return None;
        }
        let removed = Node::remove(&mut self.root, index);
        self.tables -= 1;
        self.bytes -= removed.size_bytes;
        while let Node::Inner(children) = self.root.as_ref() {
            match &**children {
                [] => self.root = Arc::new(Node::Leaf(Entries::new(Vec::new()))),
                [only] => self.root = only.node.clone(),
                _ => break,
            }
        }
        Some(removed)
    }

    /// Returns the tables with ranks from `from` up to `to` (exclusive), ascending. O(log n) to
    /// start, O(1) a step.
    pub(super) fn range(&self, from: usize, to: usize) -> Tables<'_> {
        let to = to.min(self.tables);
        let mut tables =
            Tables { stack: Vec::new(), leaf: [].iter(), rest: to.saturating_sub(from) };
        if tables.rest > 0 {
            tables.descend(&self.root, from);
        }
        tables
    }

    /// Checks the sums, depths and sizes of the nodes.
    #[cfg(test)]
    pub(super) fn check(&self) {
        fn depth(node: &Node, root: bool) -> usize {
            assert!(node.entries() <= ENTRIES_MAX);
            assert!(root || node.entries() > 0);
            match node {
                Node::Leaf(tables) => {
                    tables.check();
                    assert!(tables.windows(2).all(|pair| pair[0].largest < pair[1].smallest));
                    1
                }
                Node::Inner(children) => {
                    assert!(!root || children.len() > 1);
                    let depths: Vec<_> =
                        children.iter().map(|child| depth(&child.node, false)).collect();
                    assert!(depths.windows(2).all(|pair| pair[0] == pair[1]));
                    children.check();
                    for child in children.iter() {
                        let (tables, bytes, largest) = child.node.sums().unwrap();
                        assert_eq!((child.tables, child.bytes), (tables, bytes));
                        assert_eq!(child.largest, largest);
                    }
                    depths[0] + 1
                }
            }
        }
        depth(&self.root, true);
        let (tables, bytes) = self.root.sums().map_or((0, 0), |sums| (sums.0, sums.1));
        assert_eq!((self.tables, self.bytes), (tables, bytes));
    }
}

/// Divides `entries` into equal pieces of at most three quarters of a node.
fn chunks<T>(entries: Vec<T>) -> Vec<Vec<T>> {
    let total = entries.len();
    let pieces = total.div_ceil(ENTRIES_MAX * 3 / 4);
    let mut entries = entries.into_iter();
    (0..pieces)
        .map(|i| total * (i + 1) / pieces - total * i / pieces)
        .map(|size| entries.by_ref().take(size).collect())
        .collect()
}

/// An iterator over tables in key order.
#[derive(Clone, Debug)]
pub struct Tables<'a> {
    /// The children that are still to be visited, from the root down.
    stack: Vec<std::slice::Iter<'a, Child>>,
    leaf: std::slice::Iter<'a, Arc<TableMeta>>,
    rest: usize,
}

impl<'a> Tables<'a> {
    /// Moves down to the leaf with the table of rank `index` below `node`.
    fn descend(&mut self, mut node: &'a Node, mut index: usize) {
        loop {
            match node {
                Node::Leaf(tables) => {
                    self.leaf = tables.get(index..).unwrap_or(&[]).iter();
                    return;
                }
                Node::Inner(children) => {
                    let mut rest = children.iter();
                    let Some(child) = rest.find(|child| {
                        let inside = index < child.tables;
                        if !inside {
                            index -= child.tables;
                        }
                        inside
                    }) else {
                        return;
                    };
                    self.stack.push(rest);
                    node = &child.node;
                }
            }
        }
    }
}

impl<'a> Iterator for Tables<'a> {
    type Item = &'a Arc<TableMeta>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest == 0 {
            return None;
        }
        loop {
            if let Some(table) = self.leaf.next() {
                self.rest -= 1;
                return Some(table);
            }
            let node = loop {
                match self.stack.last_mut()?.next() {
                    Some(child) => break &child.node,
                    None => {
                        self.stack.pop();
                    }
                }
            };
            self.descend(node, 0);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.rest, Some(self.rest))
    }
}

impl ExactSizeIterator for Tables<'_> {}
