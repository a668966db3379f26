//! The running file system behind the handles: its state, its open handles and locks, and the
//! checks of what callers do.
//!
//! What must stay true: every change goes through [`Live::apply`], which records it. A file is
//! forgotten once it has neither a name nor a handle.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::hash::Hasher;
use std::io;
use std::ops::Range;
use std::path::{Component, Path};

use rustix::io::Errno;
use twox_hash::XxHash3_64;

use super::contents::CHUNK_BYTES;
use super::crash::Recording;
use super::state::{Inode, MemState, Name, NameChange, Names, Operation, ROOT};
use super::{Guard, Taken};

/// A running file system: its state, and what is lost at a power loss, such as handles and locks.
#[derive(Default)]
pub(super) struct Live {
    pub(super) state: MemState,
    /// Number of open handles of each file.
    pub(super) handles: HashMap<Inode, u32>,
    /// Lock files that are locked.
    pub(super) locked: BTreeSet<Inode>,
    /// The bytes of lock files that readers have marked, each with the number of marks.
    pub(super) marks: BTreeMap<(Inode, u64), usize>,
    /// Ranges that must not change.
    pub(super) protected: HashMap<Inode, Vec<Range<u64>>>,
    pub(super) guard: Option<Guard>,
    pub(super) taken: Taken,
    /// Files whose next sync fails.
    pub(super) failing_syncs: HashSet<Inode>,
    /// The recording that is running.
    pub(super) recording: Option<Recording>,
    pub(super) breaches: Vec<String>,
    /// Limit of the bytes that files may take.
    pub(super) capacity: Option<u64>,
    pub(super) clones_supported: bool,
}

impl Live {
    /// Applies and records an operation. Then it forgets the files that became unreachable.
    pub(super) fn apply(&mut self, operation: &Operation) {
        if let Some(recording) = &self.recording {
            recording.push(operation);
        }
        self.state.apply(operation);
        for inode in std::mem::take(&mut self.state.released) {
            self.release(inode);
        }
    }

    /// Called when `inode` has lost a name or a handle.
    pub(super) fn release(&mut self, inode: Inode) {
        let nameless = self.state.node(inode).is_some_and(|node| node.links == 0);
        if nameless && !self.handles.contains_key(&inode) {
            self.protected.remove(&inode);
            self.state.forget_file(inode);
        }
    }

    /// Records a breach of the contract and panics.
    pub(super) fn breach(&mut self, what: String) -> ! {
        self.breaches.push(what.clone());
        panic!("breach of the contract of the file system: {what}");
    }

    /// Returns the bytes in use. It sums them up on every call, because only tests with a limit
    /// ask.
    pub(super) fn used_bytes(&self) -> u64 {
        let in_use = |inode: Inode, links: u32| links > 0 || self.handles.contains_key(&inode);
        let files = self.state.files().filter(|(inode, links, _)| in_use(*inode, *links));
        files.map(|(_, _, contents)| contents.allocated_bytes()).sum()
    }

    /// Returns the bytes below the limit that are free.
    pub(super) fn free_bytes(&self) -> u64 {
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used_bytes()))
    }

    /// Returns the file or directory at `path`.
    pub(super) fn find(&self, path: &Path) -> io::Result<Inode> {
        let mut inode = ROOT;
        for name in components(path) {
            let names = self.state.names(inode).ok_or(Errno::NOTDIR)?;
            inode = *names.get(name).ok_or(Errno::NOENT)?;
        }
        Ok(inode)
    }

    /// Returns the file at `path`.
    pub(super) fn file(&self, path: &Path) -> io::Result<Inode> {
        let inode = self.find(path)?;
        if self.is_directory(inode) { Err(Errno::ISDIR.into()) } else { Ok(inode) }
    }

    /// Returns the directory at `path`.
    pub(super) fn directory(&self, path: &Path) -> io::Result<Inode> {
        let inode = self.find(path)?;
        if self.is_directory(inode) { Ok(inode) } else { Err(Errno::NOTDIR.into()) }
    }

    /// Returns true if `inode` is a directory.
    pub(super) fn is_directory(&self, inode: Inode) -> bool {
        self.state.names(inode).is_some()
    }

    /// Returns the directory and name that `path` stands for, and what has this name now.
    pub(super) fn place(&self, path: &Path) -> io::Result<((Inode, Name), Option<Inode>)> {
        let mut parts = components(path);
        let name = parts.pop().ok_or(Errno::BUSY)?;
        let mut directory = ROOT;
        for part in parts {
            let names = self.state.names(directory).ok_or(Errno::NOTDIR)?;
            directory = *names.get(part).ok_or(Errno::NOENT)?;
        }
        let names = self.state.names(directory).ok_or(Errno::NOTDIR)?;
        Ok(((directory, Name::from(name)), names.get(name).copied()))
    }

    /// Creates an empty file.
    pub(super) fn create(&mut self, at: (Inode, Name)) -> Inode {
        let inode = self.state.next_inode();
        self.apply(&Operation::Name(NameChange::CreateFile { at, inode }));
        inode
    }

    /// Panics if this removes the last name of protected bytes.
    pub(super) fn check_unlink(&mut self, inode: Inode, path: &Path) {
        let last = self.state.node(inode).is_some_and(|node| node.links == 1);
        if last && self.protected.get(&inode).is_some_and(|ranges| !ranges.is_empty()) {
            self.breach(format!("{}: removed while protected", path.display()));
        }
    }

    /// Panics if the change touches protected bytes.
    pub(super) fn check_range(&mut self, inode: Inode, what: &str, range: Range<u64>) {
        let Some(protected) = self.protected.get(&inode) else { return };
        let hit = |other: &&Range<u64>| {
            !range.is_empty() && other.start < range.end && range.start < other.end
        };
        if let Some(hit) = protected.iter().find(hit) {
            let what = format!("{what} of {range:?} in file {inode} touches protected {hit:?}");
            self.breach(what);
        }
    }

    /// Returns true if `directory` is `inode` or below it.
    pub(super) fn is_within(&self, directory: Inode, inode: Inode) -> bool {
        let below = |names: &Names| names.values().any(|&n| self.is_within(directory, n));
        directory == inode || self.state.names(inode).is_some_and(below)
    }

    /// Refuses what the kernel refuses, in the kernel's order. The places are (directory, entry).
    pub(super) fn check_rename(
        &self,
        (parent, from): (Inode, Inode),
        (into, over): (Inode, Option<Inode>),
    ) -> io::Result<()> {
        if self.is_directory(from) && self.is_within(into, from) {
            return Err(Errno::INVAL.into());
        }
        let Some(over) = over else { return Ok(()) };
        if self.is_directory(over) && self.is_within(parent, over) && parent != into {
            return Err(Errno::NOTEMPTY.into());
        }
        match self.state.names(over) {
            None if self.is_directory(from) => Err(Errno::NOTDIR.into()),
            Some(_) if !self.is_directory(from) => Err(Errno::ISDIR.into()),
            Some(names) if !names.is_empty() => Err(Errno::NOTEMPTY.into()),
            _ => Ok(()),
        }
    }

    /// Hashes the names and contents below `inode`.
    pub(super) fn hash_into(&self, inode: Inode, hash: &mut XxHash3_64) {
        if let Some(names) = self.state.names(inode) {
            for (name, &inode) in names {
                hash.write(name.as_encoded_bytes());
                hash.write(&[0, u8::from(self.is_directory(inode))]);
                self.hash_into(inode, hash);
            }
            hash.write(&[0]);
        } else if let Some(contents) = self.state.contents(inode) {
            hash.write(&contents.len().to_le_bytes());
            // A chunk of zeros and a hole are equal contents.
            let chunks = contents.chunks().filter(|(_, bytes)| *bytes != [0; CHUNK_BYTES]);
            for (place, bytes) in chunks {
                hash.write(&place.to_le_bytes());
                hash.write(bytes);
            }
        }
    }
}

/// Returns the names of a path without `/` and `.`. `..` removes the name before it.
pub(super) fn components(path: &Path) -> Vec<&OsStr> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::ParentDir => {
                names.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    names
}

/// Returns the length of the first part of a write for which there is space.
pub(super) fn fitting(live: &Live, inode: Inode, offset: u64, length: usize) -> usize {
    if live.capacity.is_none() || length == 0 {
        return length;
    }
    let free = live.free_bytes();
    let Some(contents) = live.state.contents(inode) else { return length };
    if contents.growth_bytes(offset, length as u64) <= free {
        return length;
    }
    let mut fitting = 0;
    while fitting < length {
        // Up to the end of the chunk.
        let position = offset + fitting as u64;
        let rest = CHUNK_BYTES - (position % CHUNK_BYTES as u64) as usize;
        let next = (fitting + rest).min(length);
        if contents.growth_bytes(offset, next as u64) > free {
            break;
        }
        fitting = next;
    }
    fitting
}
