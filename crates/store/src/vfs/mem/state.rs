//! What a file system holds and what of it would survive a power loss, as a pure value that
//! operations are applied to: the same code runs a live file system and replays a recorded one.
//!
//! The model. A file has current contents, durable contents, and the ordered list of changes
//! between them; `Sync` of the file makes them durable, and says nothing about its name. A
//! directory has current names and durable names; changes of names are in one ordered list of the
//! whole file system, and `SyncDirectory` makes those that touch the directory durable, together
//! with the earlier ones they build on in another directory (a rename between two is one change).
//! Files are identified by inode, so hard links share contents and what is pending on them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fmt;
use std::sync::Arc;

use super::contents::Contents;

/// The number of a file or directory; never reused.
pub(super) type Inode = u64;

/// The root directory.
pub(super) const ROOT: Inode = 0;

pub(super) type Name = Arc<OsStr>;
pub(super) type Names = BTreeMap<Name, Inode>;

/// Something done to the file system that a power loss may undo, or that forbids it to.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Name(NameChange),
    Data(Inode, DataChange),
    Sync(Inode),
    /// A sync that reported failure: what was pending may or may not survive, and no later sync
    /// will make it durable.
    FailedSync(Inode),
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
    /// The directories whose names it changes.
    fn directories(&self) -> [Inode; 2] {
        match self {
            NameChange::CreateFile { at, .. }
            | NameChange::CreateDirectory { at, .. }
            | NameChange::Link { at, .. }
            | NameChange::Remove { at, .. } => [at.0, at.0],
            NameChange::Rename { from, to, .. } => [from.0, to.0],
        }
    }

    /// What it names.
    pub(super) fn inode(&self) -> Inode {
        match self {
            NameChange::CreateFile { inode, .. }
            | NameChange::CreateDirectory { inode, .. }
            | NameChange::Link { inode, .. }
            | NameChange::Remove { inode, .. }
            | NameChange::Rename { inode, .. } => *inode,
        }
    }

    /// Applies it through `set`, which is given a directory, a name and what it now names.
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
    /// A failed sync covered it: no later sync makes it durable.
    lost: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    /// How many current names it has.
    pub(super) links: u32,
    /// How many durable names it has.
    pub(super) durable_links: u32,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    File { current: Contents, durable: Contents, pending: Vec<Pending<DataChange>> },
    Directory { current: Arc<Names>, durable: Arc<Names> },
}

/// A file system: see the head of this file.
#[derive(Clone, Debug)]
pub(super) struct State {
    nodes: HashMap<Inode, Node>,
    names: Vec<Pending<NameChange>>,
    /// The files with pending changes.
    dirty: BTreeSet<Inode>,
    next_inode: Inode,
    /// How many operations were applied.
    pub(super) sequence: u64,
    /// What lost a name, current or durable, in the last operation.
    pub(super) released: Vec<Inode>,
}

impl Default for State {
    fn default() -> State {
        let root = Node { links: 1, durable_links: 1, kind: Kind::directory(Names::new()) };
        State {
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
    pub(super) fn file(contents: Contents) -> Kind {
        Kind::File { current: contents.clone(), durable: contents, pending: Vec::new() }
    }

    pub(super) fn directory(names: Names) -> Kind {
        let names = Arc::new(names);
        Kind::Directory { current: names.clone(), durable: names }
    }
}

impl State {
    /// A file system in which everything is durable.
    pub(super) fn durable(nodes: HashMap<Inode, Node>, next_inode: Inode) -> State {
        State { nodes, next_inode, ..State::default() }
    }

    pub(super) fn node(&self, inode: Inode) -> Option<&Node> {
        self.nodes.get(&inode)
    }

    /// The current names of a directory; `None` if it is a file or gone.
    pub(super) fn names(&self, directory: Inode) -> Option<&Names> {
        match &self.nodes.get(&directory)?.kind {
            Kind::Directory { current, .. } => Some(current),
            Kind::File { .. } => None,
        }
    }

    /// The current contents of a file; `None` if it is a directory or gone.
    pub(super) fn contents(&self, file: Inode) -> Option<&Contents> {
        match &self.nodes.get(&file)?.kind {
            Kind::File { current, .. } => Some(current),
            Kind::Directory { .. } => None,
        }
    }

    /// All files: number, how many current names, current contents.
    pub(super) fn files(&self) -> impl Iterator<Item = (Inode, u32, &Contents)> {
        self.nodes.iter().filter_map(|(&inode, node)| match &node.kind {
            Kind::File { current, .. } => Some((inode, node.links, current)),
            Kind::Directory { .. } => None,
        })
    }

    pub(super) fn next_inode(&self) -> Inode {
        self.next_inode
    }

    pub(super) fn dirty(&self) -> impl Iterator<Item = Inode> + '_ {
        self.dirty.iter().copied()
    }

    pub(super) fn pending_names(&self) -> &[Pending<NameChange>] {
        &self.names
    }

    /// Applies one operation. On inodes that are gone it does nothing, so that a log whose files
    /// were unlinked while open replays.
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

    fn sync_directory(&mut self, directory: Inode) {
        // From the newest back: a change between two directories takes with it what came before
        // it in the other one.
        let mut directories = BTreeSet::from([directory]);
        let mut chosen = vec![false; self.names.len()];
        for (pending, chosen) in self.names.iter().zip(&mut chosen).rev() {
            let touched = pending.change.directories();
            *chosen = touched.iter().any(|touched| directories.contains(touched));
            if *chosen {
                directories.extend(touched);
            }
        }
        let mut chosen = chosen.into_iter();
        let (durable, pending) = std::mem::take(&mut self.names)
            .into_iter()
            .partition(|_| chosen.next().is_some_and(|chosen| chosen));
        self.names = pending;
        for Pending { change, .. } in &durable {
            change.apply(|directory, name, inode| self.set_durable(directory, name, inode));
        }
        // What a rename replaced is in none of the changes: it is among what lost a name.
        let named = durable.iter().map(|pending| pending.change.inode());
        for inode in named.chain(self.released.clone()) {
            self.forget_directory(inode);
        }
    }

    /// Forgets a directory that no power loss can bring back, and what was pending in it.
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

    /// True if the node has a name, or could have one after a power loss.
    pub(super) fn is_reachable(&self, inode: Inode) -> bool {
        self.nodes.get(&inode).is_some_and(|node| {
            node.links > 0
                || node.durable_links > 0
                || self.names.iter().any(|pending| pending.change.inode() == inode)
        })
    }

    /// Forgets a file that nobody can reach any more.
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

/// Sets or removes a name and returns what it named before.
pub(super) fn set(names: &mut Arc<Names>, name: &Name, inode: Option<Inode>) -> Option<Inode> {
    let names = Arc::make_mut(names);
    match inode {
        Some(inode) => names.insert(name.clone(), inode),
        None => names.remove(name),
    }
}
