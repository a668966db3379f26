//! A strict file system in memory. It knows what was synced, so it can build the image that a power
//! loss would leave. It panics when a caller breaks the contract of the [`Vfs`].
//!
//! 1. Calls of [`Vfs`] and [`VfsFile`] lock the `Live` file system, check the contract, and build
//!    an `Operation`.
//! 2. `Live::apply` records the operation and applies it to the state (`state.rs`), which knows
//!    durable and pending changes.
//! 3. [`MemVfs::crash_image`], or [`Recording::image_at`] for an earlier moment, builds the file
//!    system after a power loss (`crash.rs`).
//!
//! These calls panic:
//!
//! - a change or sync through a handle whose sync failed;
//! - a hole, overwrite or truncation of a range registered with [`MemVfs::protect`] or named by a
//!   [`Guard`], and the removal of such a file's last name.
//!
//! [`MemVfs::breaches`] lists the breaches, too, because the thread that panicked may never be
//! joined. The part of a buffer that a short read leaves is overwritten with garbage, so that using
//! it shows.
//!
//! What must stay true: every change goes through `MemState::apply`, live or replayed.

mod contents;
mod crash;
mod live;
mod locks;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::{fmt, io};

use live::{Live, components, fitting};
use locks::{MemLock, MemMark};
use rustix::io::Errno;
use state::{DataChange, Inode, MemState, Name, NameChange, Operation, ROOT};
use twox_hash::XxHash3_64;

use super::{IoClass, OpenOptions, Vfs, VfsFile, VfsLock};
use crate::base::sync::leaf::lock;

pub use crash::{CrashChoice, PendingKind, PendingOperation, Recording};

/// Largest file. An offset beyond it is a mistake of the caller, and would cost memory.
const FILE_BYTES_MAX: u64 = 1 << 42;

/// Fills the part of a buffer that a short read left.
const GARBAGE: u8 = 0xA5;

/// A function that names the bytes that must not change now ([`MemVfs::set_guard`]).
#[derive(Clone)]
pub struct Guard(Arc<GuardFn>);

/// Ranges of files, as a guard names them.
pub type Ranges = BTreeMap<PathBuf, Vec<Range<u64>>>;

type GuardFn = dyn Fn(&MemVfs, Option<&Path>) -> Vec<Arc<Ranges>> + Send + Sync;

impl Guard {
    /// Wraps a function that receives the file system and, if a name is about to go, that name.
    pub fn new(
        ask: impl Fn(&MemVfs, Option<&Path>) -> Vec<Arc<Ranges>> + Send + Sync + 'static,
    ) -> Guard {
        Guard(Arc::new(ask))
    }
}

/// How often space or names were taken away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Holes punched.
    pub punches: u64,
    /// Files truncated.
    pub cuts: u64,
    /// Names removed.
    pub names: u64,
}

/// A file system in memory. Clones share it.
#[derive(Clone, Default)]
pub struct MemVfs {
    live: Arc<Mutex<Live>>,
}

impl MemVfs {
    /// Returns an empty file system without a limit.
    #[must_use]
    pub fn new() -> MemVfs {
        MemVfs::default()
    }

    /// Returns a file system with this state and no handles.
    fn with_state(state: MemState, capacity: Option<u64>) -> MemVfs {
        let live = Live { state, capacity, ..Live::default() };
        MemVfs { live: Arc::new(Mutex::new(live)) }
    }

    /// Returns the number of operations since it was made, syncs included.
    #[must_use]
    pub fn operations(&self) -> u64 {
        lock(&self.live).state.sequence
    }

    /// Returns what a power loss now would leave, by `choice`. The image is independent: it has no
    /// pending operations, open handles or locks.
    #[must_use]
    pub fn crash_image(&self, choice: CrashChoice) -> MemVfs {
        let live = lock(&self.live);
        MemVfs::with_state(crash::image(&live.state, choice), live.capacity)
    }

    /// Returns the operations that a power loss now could undo, oldest first.
    #[must_use]
    pub fn pending(&self) -> Vec<PendingOperation> {
        crash::describe_pending(&lock(&self.live).state)
    }

    /// Returns the choices worth testing now:
    ///
    /// - no pending operation survives, and all survive;
    /// - every subset of up to ten pending operations. If there are more: each alone, each missing,
    ///   every prefix, and `seeds` seeded subsets;
    /// - the last write torn at every sector, every write as its length only, every punch half
    ///   done;
    /// - `seeds` seeded sets of sectors.
    #[must_use]
    pub fn choices(&self, seeds: u64) -> Vec<CrashChoice> {
        crash::choices(&lock(&self.live).state, seeds)
    }

    /// Starts to record every operation, and stops an earlier recording.
    #[must_use]
    pub fn record(&self) -> Recording {
        let mut live = lock(&self.live);
        let recording = Recording::new(live.state.clone(), live.capacity);
        live.recording = Some(recording.clone());
        recording
    }

    /// Registers bytes of a file that must not change because they are still reachable. Renames and
    /// hard links keep the registration.
    pub fn protect(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        let mut live = lock(&self.live);
        let file = live.file(path)?;
        live.protected.entry(file).or_default().push(range);
        Ok(())
    }

    /// Replaces the registered ranges of a file by these.
    pub fn set_protected(&self, path: &Path, ranges: Vec<Range<u64>>) -> io::Result<()> {
        let mut live = lock(&self.live);
        let file = live.file(path)?;
        live.protected.insert(file, ranges);
        Ok(())
    }

    /// Sets the guard. Before a punch, a truncation, a removal or a rename over a name, the guard
    /// is asked which bytes must not change. Its answer replaces all registered ranges. For a
    /// removal or rename it receives the name that goes. `None` removes the guard.
    pub fn set_guard(&self, guard: Option<Guard>) {
        let mut live = lock(&self.live);
        live.guard = guard;
        live.protected.clear();
    }

    /// Asks the guard without holding the lock, because the guard looks at the file system itself.
    fn ask_guard(&self, name: Option<&Path>) {
        let Some(guard) = lock(&self.live).guard.clone() else { return };
        let all = (guard.0)(self, name);
        let mut live = lock(&self.live);
        live.protected.clear();
        for (path, ranges) in all.iter().flat_map(|some| some.iter()) {
            if let Ok(file) = live.file(path) {
                live.protected.entry(file).or_default().extend_from_slice(ranges);
            }
        }
    }

    /// Returns how often space or names were taken away since it was made.
    #[must_use]
    pub fn taken(&self) -> Taken {
        lock(&self.live).taken
    }

    /// Removes all registered ranges.
    pub fn clear_protected(&self) {
        lock(&self.live).protected.clear();
    }

    /// Returns the breaches of contract that caused a panic.
    #[must_use]
    pub fn breaches(&self) -> Vec<String> {
        lock(&self.live).breaches.clone()
    }

    /// Returns the number of open handles, and of held locks and marks. Both are 0 once everything
    /// is closed.
    #[must_use]
    pub fn open_handles(&self) -> (usize, usize) {
        let live = lock(&self.live);
        (
            live.handles.values().map(|count| *count as usize).sum(),
            live.locked.len() + live.marks.len(),
        )
    }

    /// Makes the next sync of this file fail, with all consequences of [`VfsFile::poison`].
    pub fn fail_next_sync(&self, path: &Path) -> io::Result<()> {
        let mut live = lock(&self.live);
        let file = live.file(path)?;
        live.failing_syncs.insert(file);
        Ok(())
    }

    /// Limits the bytes that files may take, in blocks of 4096; `None` lifts the limit. A write
    /// beyond it writes what fits and fails with `StorageFull`.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        lock(&self.live).capacity = bytes;
    }

    /// Returns the bytes that files take, in blocks of 4096. An unlinked file counts while it is
    /// open.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        lock(&self.live).used_bytes()
    }

    /// Sets whether `clone_file` works. By default it fails with `Unsupported`.
    pub fn set_clones_supported(&self, supported: bool) {
        lock(&self.live).clones_supported = supported;
    }

    /// Returns all bytes of a file.
    pub fn contents(&self, path: &Path) -> io::Result<Vec<u8>> {
        let live = lock(&self.live);
        let file = live.file(path)?;
        let contents = live.state.contents(file).ok_or(Errno::NOENT)?;
        let mut bytes = vec![0; usize::try_from(contents.len()).map_err(io::Error::other)?];
        contents.read(&mut bytes, 0);
        Ok(bytes)
    }

    /// Returns a hash of all current names and contents. Equal file systems have equal hashes, so a
    /// test can skip an image that it has seen.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let live = lock(&self.live);
        let mut hash = XxHash3_64::with_seed(0);
        live.hash_into(ROOT, &mut hash);
        hash.finish()
    }
}

impl Recording {
    /// Returns what a power loss after the first `n` operations would have left, by `choice`.
    #[must_use]
    pub fn image_at(&self, n: usize, choice: CrashChoice) -> MemVfs {
        let image = self.with_state_at(n, |state| crash::image(state, choice));
        MemVfs::with_state(image, self.capacity)
    }
}

impl fmt::Debug for MemVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let live = lock(&self.live);
        f.debug_struct("MemVfs").field("operations", &live.state.sequence).finish_non_exhaustive()
    }
}

/// An open file.
struct MemFile {
    live: Arc<Mutex<Live>>,
    inode: Inode,
    writable: bool,
    poisoned: AtomicBool,
}

impl MemFile {
    fn open(vfs: &MemVfs, live: &mut Live, inode: Inode, writable: bool) -> Arc<dyn VfsFile> {
        *live.handles.entry(inode).or_default() += 1;
        let live = vfs.live.clone();
        Arc::new(MemFile { live, inode, writable, poisoned: AtomicBool::new(false) })
    }

    /// Panics if a sync of this handle has failed.
    fn check_poison(&self, live: &mut Live, what: &str) {
        if self.poisoned.load(Ordering::Relaxed) {
            live.breach(format!("{what} of file {} after a failed sync", self.inode));
        }
    }

    /// Checks that the handle may change this range.
    fn check_change(&self, live: &mut Live, what: &str, offset: u64, len: u64) -> io::Result<()> {
        self.check_poison(live, what);
        if !self.writable {
            return Err(Errno::BADF.into());
        }
        match offset.checked_add(len) {
            Some(end) if end <= FILE_BYTES_MAX => Ok(()),
            _ => Err(Errno::FBIG.into()),
        }
    }

    /// Poisons the handle, and marks what is pending as lost.
    fn fail_sync(&self, live: &mut Live) {
        self.poisoned.store(true, Ordering::Relaxed);
        live.apply(&Operation::FailedSync(self.inode));
    }

    /// Applies a change of this file's data.
    fn change(&self, live: &mut Live, change: DataChange) {
        live.apply(&Operation::Data(self.inode, change));
    }
}

impl Drop for MemFile {
    fn drop(&mut self) {
        let mut live = lock(&self.live);
        if let Some(count) = live.handles.get_mut(&self.inode) {
            *count -= 1;
            if *count == 0 {
                live.handles.remove(&self.inode);
                live.release(self.inode);
            }
        }
    }
}

impl fmt::Debug for MemFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemFile").field("inode", &self.inode).finish_non_exhaustive()
    }
}

impl VfsFile for MemFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, _: IoClass) -> io::Result<usize> {
        let live = lock(&self.live);
        let contents = live.state.contents(self.inode).ok_or(Errno::BADF)?;
        let read = contents.read(buffer, offset);
        buffer[read..].fill(GARBAGE);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64, _: IoClass) -> io::Result<()> {
        let mut live = lock(&self.live);
        if bytes.is_empty() {
            // The operating system would not even be called.
            self.check_poison(&mut live, "write");
            return Ok(());
        }
        let end = offset.saturating_add(bytes.len() as u64);
        self.check_change(&mut live, "write", offset, bytes.len() as u64)?;
        live.check_range(self.inode, "write", offset..end);
        let fitting = fitting(&live, self.inode, offset, bytes.len());
        if fitting > 0 {
            let bytes = Arc::from(&bytes[..fitting]);
            self.change(&mut live, DataChange::Write { offset, bytes });
        }
        if fitting < bytes.len() { Err(Errno::NOSPC.into()) } else { Ok(()) }
    }

    fn sync_data(&self, _: IoClass) -> io::Result<()> {
        let mut live = lock(&self.live);
        self.check_poison(&mut live, "sync");
        if live.failing_syncs.remove(&self.inode) {
            self.fail_sync(&mut live);
            return Err(Errno::IO.into());
        }
        live.apply(&Operation::Sync(self.inode));
        Ok(())
    }

    fn start_writeback(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn finish_writeback(&self, _: u64, _: u64, _: IoClass) -> io::Result<()> {
        Ok(())
    }

    fn punch_hole(&self, offset: u64, length: u64, _: IoClass) -> io::Result<()> {
        MemVfs { live: self.live.clone() }.ask_guard(None);
        let mut live = lock(&self.live);
        live.taken.punches += u64::from(length > 0);
        self.check_change(&mut live, "punch", offset, length)?;
        live.check_range(self.inode, "punch", offset..offset + length);
        if length > 0 {
            self.change(&mut live, DataChange::Punch { offset, length });
        }
        Ok(())
    }

    /// Takes no space, so nothing has to return it, but fails where a disk would.
    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut live = lock(&self.live);
        self.check_change(&mut live, "preallocation", offset, length)?;
        let needed = match live.capacity {
            Some(_) => {
                live.state.contents(self.inode).map_or(0, |c| c.growth_bytes(offset, length))
            }
            None => 0,
        };
        if needed > live.free_bytes() { Err(Errno::NOSPC.into()) } else { Ok(()) }
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        MemVfs { live: self.live.clone() }.ask_guard(None);
        let mut live = lock(&self.live);
        live.taken.cuts += 1;
        self.check_change(&mut live, "truncation", 0, length)?;
        live.check_range(self.inode, "truncation", length..u64::MAX);
        self.change(&mut live, DataChange::Truncate { length });
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.live).state.contents(self.inode).ok_or(Errno::BADF)?.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        let live = lock(&self.live);
        Ok(live.state.contents(self.inode).ok_or(Errno::BADF)?.allocated_bytes())
    }

    fn links(&self) -> io::Result<u64> {
        let live = lock(&self.live);
        Ok(live.state.node(self.inode).map_or(0, |node| u64::from(node.links)))
    }

    fn poison(&self) {
        self.fail_sync(&mut lock(&self.live));
    }
}

impl Vfs for MemVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        let mut live = lock(&self.live);
        if !options.create_new {
            let inode = live.file(path)?;
            return Ok(MemFile::open(self, &mut live, inode, options.write));
        }
        let (at, None) = live.place(path)? else { return Err(Errno::EXIST.into()) };
        let inode = live.create(at);
        Ok(MemFile::open(self, &mut live, inode, true))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.ask_guard(Some(to));
        let mut live = lock(&self.live);
        let (from, inode) = live.place(from)?;
        let (to_place, over) = live.place(to)?;
        let inode = inode.ok_or(Errno::NOENT)?;
        if over == Some(inode) {
            // Both are names of the same file, and both stay.
            return Ok(());
        }
        live.check_rename((from.0, inode), (to_place.0, over))?;
        if let Some(over) = over {
            live.check_unlink(over, to);
        }
        live.apply(&Operation::Name(NameChange::Rename { from, to: to_place, inode }));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.ask_guard(Some(path));
        let mut live = lock(&self.live);
        live.taken.names += 1;
        let inode = live.file(path)?;
        let (at, _) = live.place(path)?;
        live.check_unlink(inode, path);
        live.apply(&Operation::Name(NameChange::Remove { at, inode }));
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut live = lock(&self.live);
        let inode = live.find(from)?;
        let (at, None) = live.place(to)? else { return Err(Errno::EXIST.into()) };
        if live.is_directory(inode) {
            return Err(Errno::PERM.into());
        }
        live.apply(&Operation::Name(NameChange::Link { at, inode }));
        Ok(())
    }

    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut live = lock(&self.live);
        if !live.clones_supported {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let source = live.file(from)?;
        let contents = live.state.contents(source).cloned().ok_or(Errno::NOENT)?;
        let (at, None) = live.place(to)? else { return Err(Errno::EXIST.into()) };
        let inode = live.create(at);
        live.apply(&Operation::Data(inode, DataChange::Clone(Box::new(contents))));
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let live = lock(&self.live);
        let directory = live.directory(directory)?;
        let names = live.state.names(directory).ok_or(Errno::NOTDIR)?;
        Ok(names.keys().map(PathBuf::from).collect())
    }

    fn create_dir_all(&self, directory: &Path) -> io::Result<()> {
        let mut live = lock(&self.live);
        let mut parent = ROOT;
        let names = components(directory);
        for (depth, name) in names.iter().enumerate() {
            let siblings = live.state.names(parent).ok_or(Errno::NOTDIR)?;
            parent = match siblings.get(*name) {
                Some(&inode) if live.is_directory(inode) => inode,
                Some(_) if depth + 1 == names.len() => return Err(Errno::EXIST.into()),
                Some(_) => return Err(Errno::NOTDIR.into()),
                None => {
                    let (at, inode) = ((parent, Name::from(*name)), live.state.next_inode());
                    live.apply(&Operation::Name(NameChange::CreateDirectory { at, inode }));
                    inode
                }
            };
        }
        Ok(())
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        let mut live = lock(&self.live);
        let inode = live.directory(directory)?;
        let (at, _) = live.place(directory)?;
        if live.state.names(inode).is_some_and(|names| !names.is_empty()) {
            return Err(Errno::NOTEMPTY.into());
        }
        live.apply(&Operation::Name(NameChange::Remove { at, inode }));
        Ok(())
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let mut live = lock(&self.live);
        let directory = live.directory(directory)?;
        live.apply(&Operation::SyncDirectory(directory));
        Ok(())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(lock(&self.live).find(path).is_ok())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        let mut live = lock(&self.live);
        let inode = match live.place(path)? {
            (_, Some(inode)) if live.is_directory(inode) => return Err(Errno::ISDIR.into()),
            (_, Some(inode)) => inode,
            (at, None) => live.create(at),
        };
        if !live.locked.insert(inode) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(MemLock { live: self.live.clone(), inode }))
    }

    fn mark(&self, path: &Path, at: u64) -> io::Result<Box<dyn VfsLock>> {
        let mut live = lock(&self.live);
        let inode = live.file(path)?;
        *live.marks.entry((inode, at)).or_default() += 1;
        Ok(Box::new(MemMark { vfs: self.clone(), inode, at }))
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        let live = lock(&self.live);
        live.find(path)?;
        Ok(live.free_bytes())
    }

    fn total_space(&self, path: &Path) -> io::Result<u64> {
        let live = lock(&self.live);
        live.find(path)?;
        Ok(live.capacity.unwrap_or(u64::MAX))
    }
}
