//! The state of a file system in memory, as a pure value: what it holds, and what would survive a
//! power loss. The same code runs a live file system and replays a recorded one.
//!
//! The model:
//!
//! 1. A file has current contents, durable contents, and the ordered list of pending changes
//!    between them. `Sync` of the file makes them durable (`MemState::sync`). It does not make the
//!    file's name durable.
//! 2. A directory has current names and durable names. Changes of names stand in one ordered list
//!    for the whole file system.
//! 3. `SyncDirectory` makes the changes that touch the directory durable
//!    (`MemState::sync_directory`). It includes the earlier changes in another directory that these
//!    depend on, because a rename between two directories is one change.
//! 4. `FailedSync` marks the pending changes of a file: no later sync makes them durable.
//! 5. Files are identified by inode, so hard links share contents and pending changes.
//!
//! What must stay true: `MemState::apply` depends only on the state and the operation, so that a
//! replay gives the same state.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fmt;
use std::sync::Arc;

use super::contents::Contents;

/// The number of a file or directory. It is never reused.
pub(super) type Inode = u64;

/// The root directory.
pub(super) const ROOT: Inode = 0;

pub(super) type Name = Arc<OsStr>;
pub(super) type Names = BTreeMap<Name, Inode>;

/// An operation that a power loss may undo, or a sync that makes operations durable.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Name(NameChange),
    Data(Inode, DataChange),
    /// Makes the contents of a file durable.
    Sync(Inode),
    /// A sync that reported failure. The pending changes may or may not survive, and no later sync
    /// makes them durable.
    FailedSync(Inode),
    /// Makes the names in a directory durable.
    SyncDirectory(Inode),
}

/// A change of names, applied whole or not at all.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    CreateFile { at: (Inode, Name), inode: Inode },
    CreateDirectory { at: (Inode, Name), inode: Inode },
    Link { at: (Inode, Name), inode: Inode },
    Remove { at: (Inode, Name), inode: Inode },
    Rename { from: (Inode, Name), to: (Inode, Name), inode: Inode },
}

/// A change of a file's contents.
#[derive(Clone, Debug)]
pub(super) enum DataChange {
    Write { offset: u64, bytes: Arc<[u8]> },
    Punch { offset: u64, length: u64 },
    Truncate { length: u64 },
    Clone(Box<Contents>),
}

impl DataChange {
    /// Applies the change to the contents of a file.
    pub(super) fn apply(&self, contents: &mut Contents) {
        match self {
            DataChange::Write { offset, bytes } => contents.write(bytes, *offset),
            DataChange::Punch { offset, length } => contents.punch(*offset, *length),
            DataChange::Truncate { length } => contents.truncate(*length),
            DataChange::Clone(of) => *contents = of.as_ref().clone(),
        }
    }
}

impl NameChange {
    /// Returns the directories whose names change.
    fn directories(&self) -> [Inode; 2] {
        match self {
            NameChange::CreateFile { at, .. }
            | NameChange::CreateDirectory { at, .. }
            | NameChange::Link { at, .. }
            | NameChange::Remove { at, .. } => [at.0, at.0],
            NameChange::Rename { from, to, .. } => [from.0, to.0],
        }
    }

    /// Returns the file or directory that the change names.
    pub(super) fn inode(&self) -> Inode {
        match self {
            NameChange::CreateFile { inode, .. }
            | NameChange::CreateDirectory { inode, .. }
            | NameChange::Link { inode, .. }
            | NameChange::Remove { inode, .. }
            | NameChange::Rename { inode, .. } => *inode,
        }
    }

    /// Applies the change through `set`, which receives a directory, a name and the name's new
    /// target.
    pub(super) fn apply(&self, mut set: impl FnMut(Inode, &Name, Option<Inode>)) {
        match self {
            NameChange::CreateFile { at, inode }
            | NameChange::CreateDirectory { at, inode }
            | NameChange::Link { at, inode } => set(at.0, &at.1, Some(*inode)),
            NameChange::Remove { at, .. } => set(at.0, &at.1, None),
            NameChange::Rename { from, to, inode } => {
                set(from.0, &from.1, None);
                set(to.0, &to.1, Some(*inode));
            }
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Name(change) => change.fmt(f),
            Operation::Data(inode, change) => write!(f, "{change} of file {inode}"),
            Operation::Sync(inode) => write!(f, "sync file {inode}"),
            Operation::FailedSync(inode) => write!(f, "failed sync of file {inode}"),
            Operation::SyncDirectory(inode) => write!(f, "sync directory {inode}"),
        }
    }
}

impl fmt::Display for NameChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameChange::CreateFile { at, inode } => {
                write!(f, "create {} (file {inode})", at.1.display())
            }
            NameChange::CreateDirectory { at, inode } => {
                write!(f, "create {} (directory {inode})", at.1.display())
            }
            NameChange::Link { at, inode } => write!(f, "link {} (file {inode})", at.1.display()),
            NameChange::Remove { at, inode } => write!(f, "remove {} ({inode})", at.1.display()),
            NameChange::Rename { from, to, inode } => {
                write!(f, "rename {} to {} ({inode})", from.1.display(), to.1.display())
            }
        }
    }
}

impl fmt::Display for DataChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataChange::Write { offset, bytes } => write!(f, "write {}@{offset}", bytes.len()),
            DataChange::Punch { offset, length } => write!(f, "punch {length}@{offset}"),
            DataChange::Truncate { length } => write!(f, "truncate to {length}"),
            DataChange::Clone(of) => write!(f, "clone of {} bytes", of.len()),
        }
    }
}

/// A change that a power loss may undo.
#[derive(Clone, Debug)]
pub(super) struct Pending<C> {
    /// The number of the operation.
    pub(super) sequence: u64,
    pub(super) change: C,
    /// Whether a failed sync covered the change. If so, no later sync makes it durable.
    lost: bool,
}

/// A file or directory, with the number of its names.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Number of current names.
    pub(super) links: u32,
    /// Number of durable names.
    pub(super) durable_links: u32,
    pub(super) kind: Kind,
}

/// What a node is: the current state, the durable state, and for a file the changes between them.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    File { current: Contents, durable: Contents, pending: Vec<Pending<DataChange>> },
    Directory { current: Arc<Names>, durable: Arc<Names> },
}

/// The state of a file system.
#[derive(Clone, Debug)]
pub(super) struct MemState {
    /// All files and directories that can still be reached, or be brought back by a power loss.
    nodes: HashMap<Inode, Node>,
    /// The pending changes of names, oldest first.
    names: Vec<Pending<NameChange>>,
    /// The files with pending changes.
    dirty: BTreeSet<Inode>,
    next_inode: Inode,
    /// Number of operations applied.
    pub(super) sequence: u64,
    /// The inodes that lost a current or durable name in the last operation.
    pub(super) released: Vec<Inode>,
}

impl Default for MemState {
    fn default() -> MemState {
        let root = Node { links: 1, durable_links: 1, kind: Kind::directory(Names::new()) };
        MemState {
            nodes: HashMap::from([(ROOT, root)]),
            names: Vec::new(),
            dirty: BTreeSet::new(),
            next_inode: ROOT + 1,
            sequence: 0,
            released: Vec::new(),
        }
    }
}

impl Kind {
    /// Returns a file whose contents are durable.
    pub(super) fn file(contents: Contents) -> Kind {
        Kind::File { current: contents.clone(), durable: contents, pending: Vec::new() }
    }

    /// Returns a directory whose names are durable.
    pub(super) fn directory(names: Names) -> Kind {
        let names = Arc::new(names);
        Kind::Directory { current: names.clone(), durable: names }
    }
}

impl MemState {
    /// Returns a file system in which everything is durable.
    pub(super) fn durable(nodes: HashMap<Inode, Node>, next_inode: Inode) -> MemState {
        MemState { nodes, next_inode, ..MemState::default() }
    }

    pub(super) fn node(&self, inode: Inode) -> Option<&Node> {
        self.nodes.get(&inode)
    }

    /// Returns the current names of a directory; `None` if it is a file or does not exist.
    pub(super) fn names(&self, directory: Inode) -> Option<&Names> {
        match &self.nodes.get(&directory)?.kind {
            Kind::Directory { current, .. } => Some(current),
            Kind::File { .. } => None,
        }
    }

    /// Returns the current contents of a file; `None` if it is a directory or does not exist.
    pub(super) fn contents(&self, file: Inode) -> Option<&Contents> {
        match &self.nodes.get(&file)?.kind {
            Kind::File { current, .. } => Some(current),
            Kind::Directory { .. } => None,
        }
    }

    /// Iterates over all files: inode, number of current names, current contents.
    pub(super) fn files(&self) -> impl Iterator<Item = (Inode, u32, &Contents)> {
        self.nodes.iter().filter_map(|(&inode, node)| match &node.kind {
            Kind::File { current, .. } => Some((inode, node.links, current)),
            Kind::Directory { .. } => None,
        })
    }

    pub(super) fn next_inode(&self) -> Inode {
        self.next_inode
    }

    /// Iterates over the files with pending changes.
    pub(super) fn dirty(&self) -> impl Iterator<Item = Inode> + '_ {
        self.dirty.iter().copied()
    }

    /// Returns the pending changes of names, oldest first.
    pub(super) fn pending_names(&self) -> &[Pending<NameChange>] {
        &self.names
    }

    /// Applies one operation. It ignores inodes that are gone, so that a recording replays even if
    /// files were unlinked while open.
    pub(super) fn apply(&mut self, operation: &Operation) {
        let sequence = self.sequence;
        self.sequence += 1;
        self.released.clear();
        match operation {
            Operation::Name(change) => self.change_names(change, sequence),
            Operation::Data(inode, change) => {
                if let Some(Kind::File { current, pending, .. }) = self.kind_mut(*inode) {
                    change.apply(current);
                    pending.push(Pending { sequence, change: change.clone(), lost: false });
                    self.dirty.insert(*inode);
                }
            }
            Operation::Sync(inode) => self.sync(*inode),
            Operation::FailedSync(inode) => {
                if let Some(Kind::File { pending, .. }) = self.kind_mut(*inode) {
                    pending.iter_mut().for_each(|pending| pending.lost = true);
                }
            }
            Operation::SyncDirectory(directory) => self.sync_directory(*directory),
        }
    }

    /// Applies a change of names to the current names, and makes it pending.
    fn change_names(&mut self, change: &NameChange, sequence: u64) {
        let kind = match change {
            NameChange::CreateFile { .. } => Some(Kind::file(Contents::default())),
            NameChange::CreateDirectory { .. } => Some(Kind::directory(Names::new())),
            _ => None,
        };
        if let Some(kind) = kind {
            self.nodes.insert(change.inode(), Node { links: 0, durable_links: 0, kind });
            self.next_inode = self.next_inode.max(change.inode() + 1);
        }
        change.apply(|directory, name, inode| self.set_current(directory, name, inode));
        self.names.push(Pending { sequence, change: change.clone(), lost: false });
    }

    /// Sets a current name, and counts the names of the old and the new target.
    fn set_current(&mut self, directory: Inode, name: &Name, inode: Option<Inode>) {
        let Some(Kind::Directory { current, .. }) = self.kind_mut(directory) else { return };
        let old = set(current, name, inode);
        self.released.extend(old);
        if let Some(node) = old.and_then(|old| self.nodes.get_mut(&old)) {
            node.links -= 1;
        }
        if let Some(node) = inode.and_then(|inode| self.nodes.get_mut(&inode)) {
            node.links += 1;
        }
    }

    /// Sets a durable name, and counts the durable names of the old and the new target.
    fn set_durable(&mut self, directory: Inode, name: &Name, inode: Option<Inode>) {
        let Some(Kind::Directory { durable, .. }) = self.kind_mut(directory) else { return };
        let old = set(durable, name, inode);
        self.released.extend(old);
        if let Some(node) = inode.and_then(|inode| self.nodes.get_mut(&inode)) {
            node.durable_links += 1;
        }
        if let Some(node) = old.and_then(|old| self.nodes.get_mut(&old)) {
            node.durable_links -= 1;
        }
    }

    /// Makes the pending changes of a file durable, except those that a failed sync covered.
    fn sync(&mut self, inode: Inode) {
        let Some(Kind::File { current, durable, pending }) = self.kind_mut(inode) else { return };
        if pending.iter().any(|pending| pending.lost) {
            pending.iter().filter(|pending| !pending.lost).for_each(|pending| {
                pending.change.apply(durable);
            });
            pending.retain(|pending| pending.lost);
        } else if !pending.is_empty() {
            durable.clone_from(current);
            pending.clear();
            self.dirty.remove(&inode);
        }
    }

    /// Makes the changes durable that touch the directory, and those that they depend on.
    fn sync_directory(&mut self, directory: Inode) {
        // From the newest change back: a change between two directories also needs the earlier
        // changes of the other one.
        let mut directories = BTreeSet::from([directory]);
        let mut chosen = vec![false; self.names.len()];
        for (pending, chosen) in self.names.iter().zip(&mut chosen).rev() {
            let touched = pending.change.directories();
            *chosen = touched.iter().any(|touched| directories.contains(touched));
            if *chosen {
                directories.extend(touched);
            }
        }
        // The chosen changes are applied to the durable names, oldest first. The others stay
        // pending.
        let mut chosen = chosen.into_iter();
        let (durable, pending) = std::mem::take(&mut self.names)
            .into_iter()
            .partition(|_| chosen.next().is_some_and(|chosen| chosen));
        self.names = pending;
        for Pending { change, .. } in &durable {
            change.apply(|directory, name, inode| self.set_durable(directory, name, inode));
        }
        // No change names the file that a rename replaced. It is among those that lost a name.
        let named = durable.iter().map(|pending| pending.change.inode());
        for inode in named.chain(self.released.clone()) {
            self.forget_directory(inode);
        }
    }

    /// Forgets a directory that no power loss can bring back, and the pending changes in it.
    fn forget_directory(&mut self, directory: Inode) {
        let Some(Kind::Directory { durable, .. }) = self.nodes.get(&directory).map(|n| &n.kind)
        else {
            return;
        };
        if self.is_reachable(directory) {
            return;
        }
        let mut named: Vec<Inode> = durable.values().copied().collect();
        for inode in &named {
            if let Some(node) = self.nodes.get_mut(inode) {
                node.durable_links -= 1;
            }
        }
        self.names.retain(|pending| {
            let kept = pending.change.directories() != [directory; 2];
            named.extend((!kept).then(|| pending.change.inode()));
            kept
        });
        self.released.extend(&named);
        self.nodes.remove(&directory);
        for inode in named {
            self.forget_directory(inode);
        }
    }

    /// Returns true if the node has a name, or could have one after a power loss.
    pub(super) fn is_reachable(&self, inode: Inode) -> bool {
        self.nodes.get(&inode).is_some_and(|node| {
            node.links > 0
                || node.durable_links > 0
                || self.names.iter().any(|pending| pending.change.inode() == inode)
        })
    }

    /// Forgets a file that can no longer be reached.
    pub(super) fn forget_file(&mut self, file: Inode) {
        if self.contents(file).is_some() && !self.is_reachable(file) {
            self.nodes.remove(&file);
            self.dirty.remove(&file);
        }
    }

    fn kind_mut(&mut self, inode: Inode) -> Option<&mut Kind> {
        self.nodes.get_mut(&inode).map(|node| &mut node.kind)
    }
}

/// Sets or removes a name, and returns its earlier target.
pub(super) fn set(names: &mut Arc<Names>, name: &Name, inode: Option<Inode>) -> Option<Inode> {
    let names = Arc::make_mut(names);
    match inode {
        Some(inode) => names.insert(name.clone(), inode),
        None => names.remove(name),
    }
}
