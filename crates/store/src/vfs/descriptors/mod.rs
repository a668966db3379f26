//! Limits the number of open descriptors of table files.
//!
//! 1. [`DescriptorPool::file`] opens a [`PooledFile`]. Its holder can read it at any time, even if
//!    the pool has closed its descriptor.
//! 2. `PooledFile::with` borrows the descriptor for a read: one load of an atomic pointer, no lock.
//! 3. If the descriptor was closed, `PooledFile::reopen` opens the file again by its name, and
//!    `DescriptorPool::enter` registers the descriptor.
//! 4. `DescriptorPool::evict` closes descriptors beyond the pool's limit by CLOCK: a descriptor
//!    that was used since the last look is spared once. A read that has borrowed a descriptor keeps
//!    it open until the read returns.
//! 5. `Process::keep_to_limit` closes descriptors of the largest pool. The process has one limit
//!    for all its databases and for its other files, and pools together take at most half of it.
//! 6. If an open still fails (EMFILE, ENFILE), [`patiently`] lets every pool close a quarter
//!    (`DescriptorPool::give_back`), waits, and tries again.
//!
//! What must stay true: a file keeps its name while a version that names one of its tables is
//! pinned (`files/reclaim`), so that it can be opened again. Files are opened and closed outside
//! every lock.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;

use super::{IoClass, OpenOptions, SharedDescriptor, Vfs, VfsFile};
use crate::base::clock;
use crate::base::sync::leaf::lock;
use crate::base::system::is_out_of_descriptors;

#[cfg(test)]
mod tests;

/// Pools may take 1/`PART_OF_LIMIT` of the process's limit. The rest is for the application, and
/// for WALs, manifests and files that are being written.
const PART_OF_LIMIT: u64 = 2;
/// When descriptors have run out, each pool closes 1/`PART_GIVEN_BACK` of its own.
const PART_GIVEN_BACK: usize = 4;
/// How often an open is retried, and the wait before the first retry. The wait doubles, so all
/// waits together take half a second.
const TRIES: u32 = 9;
const FIRST_WAIT: Duration = Duration::from_millis(1);
/// Entries of dropped files are removed from the CLOCK queue once the queue is longer than twice
/// the number of open descriptors plus this number.
const FEW: usize = 64;

/// All pools whose descriptors count against the operating system's limit.
struct Process {
    pools: Mutex<Vec<Weak<DescriptorPool>>>,
    /// Number of open descriptors of all pools.
    open: AtomicUsize,
    /// Largest number of descriptors of all pools together.
    max: AtomicUsize,
}

static PROCESS: Process = Process {
    pools: Mutex::new(Vec::new()),
    open: AtomicUsize::new(0),
    max: AtomicUsize::new(usize::MAX),
};

impl Process {
    /// Returns the pools that are alive.
    fn pools(&self) -> Vec<Arc<DescriptorPool>> {
        lock(&self.pools).iter().filter_map(Weak::upgrade).collect()
    }

    /// Closes descriptors of the largest pools until all pools together keep their part of the
    /// limit.
    fn keep_to_limit(&self) {
        let pools = self.pools();
        // Each step closes one descriptor. Another thread may open one meanwhile.
        for _ in 0..pools.len().saturating_add(FEW) {
            if self.open.load(Ordering::Relaxed) <= self.max.load(Ordering::Relaxed) {
                return;
            }
            let Some(largest) = pools.iter().max_by_key(|pool| pool.in_use()) else { return };
            largest.evict(largest.in_use().saturating_sub(1), None);
        }
    }
}

/// Returns the number of descriptors that a pool may have open: `wanted`, or the pools' part of the
/// process's limit if that is less.
fn descriptors_max(wanted: usize, vfs: &dyn Vfs) -> usize {
    let part = vfs.open_files_limit().map_or(usize::MAX, part_of);
    wanted.min(part).max(1)
}

/// Returns the part of `limit` that pools may take.
fn part_of(limit: u64) -> usize {
    usize::try_from(limit / PART_OF_LIMIT).unwrap_or(usize::MAX).max(1)
}

/// Calls `open`. If the process is out of descriptors, it lets pools close some, waits, and calls
/// `open` again, for at most half a second.
pub(super) fn patiently<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    match open() {
        Err(error) if is_out_of_descriptors(&error) => try_again(open, error),
        opened => opened,
    }
}

/// The rare part of [`patiently`]: closes descriptors, waits and calls `open` again.
#[cold]
fn try_again<T>(mut open: impl FnMut() -> io::Result<T>, mut error: io::Error) -> io::Result<T> {
    let mut wait = FIRST_WAIT;
    for tried in 0..TRIES {
        let closed: usize = PROCESS.pools().iter().map(|pool| pool.give_back()).sum();
        // Other threads may take the closed descriptors at once, so later retries wait in any case.
        if closed == 0 || tried > 0 {
            clock::sleep(wait);
            wait *= 2;
        }
        match open() {
            Err(again) if is_out_of_descriptors(&again) => error = again,
            opened => return opened,
        }
    }
    Err(error)
}

/// The descriptors of the files of one table cache, and their limit.
#[derive(Debug)]
pub struct DescriptorPool {
    vfs: Arc<dyn Vfs>,
    max: AtomicUsize,
    open: AtomicUsize,
    /// The files whose descriptors are open, in CLOCK order. Some of them may have been dropped.
    clock: Mutex<VecDeque<Weak<PooledFile>>>,
    /// Whether the descriptors count against the operating system's limit.
    counted: bool,
}

impl DescriptorPool {
    /// Returns a pool of at most `wanted` descriptors of files in `vfs`, or fewer if the process's
    /// limit demands it.
    pub fn new(vfs: Arc<dyn Vfs>, wanted: usize) -> Arc<DescriptorPool> {
        let limit = vfs.open_files_limit();
        let max = descriptors_max(wanted, vfs.as_ref());
        let pool = Arc::new(DescriptorPool {
            vfs,
            max: AtomicUsize::new(max),
            open: AtomicUsize::new(0),
            clock: Mutex::default(),
            counted: limit.is_some(),
        });
        if let Some(limit) = limit {
            PROCESS.max.store(part_of(limit), Ordering::Relaxed);
            lock(&PROCESS.pools).push(Arc::downgrade(&pool));
        }
        pool
    }

    /// Returns the number of open descriptors.
    pub fn in_use(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the largest number of descriptors that may be open.
    pub fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Sets the limit to `wanted`, or to less if the process's limit demands it, and closes
    /// descriptors beyond it.
    pub fn set_max(&self, wanted: usize) {
        self.max.store(descriptors_max(wanted, self.vfs.as_ref()), Ordering::Relaxed);
        self.evict(self.max(), None);
    }

    /// Returns where the file `path` is: see [`Vfs::place_of`].
    #[must_use]
    pub fn place_of(&self, path: &Path) -> PathBuf {
        self.vfs.place_of(path)
    }

    /// Opens a file whose reads go through this pool.
    pub fn file(
        self: &Arc<Self>,
        path: &Arc<Path>,
        options: OpenOptions,
    ) -> io::Result<Arc<PooledFile>> {
        let opened = self.vfs.open(path, options)?;
        let file = Arc::new_cyclic(|own| PooledFile {
            pool: self.clone(),
            own: own.clone(),
            path: path.clone(),
            options,
            alignment: opened.alignment(),
            descriptor: ArcSwapOption::empty(),
            used: AtomicBool::new(false),
        });
        self.enter(&file, Arc::new(Descriptor(opened)));
        Ok(file)
    }

    /// Makes `opened` the descriptor of `file` unless another thread was faster. Returns the
    /// descriptor that is now in use.
    fn enter(&self, file: &PooledFile, opened: Arc<Descriptor>) -> Arc<Descriptor> {
        {
            let mut clock = lock(&self.clock);
            if let Some(other) = file.descriptor.load_full() {
                return other;
            }
            file.descriptor.store(Some(opened.clone()));
            clock.push_back(file.own.clone());
            self.count(true);
        }
        self.evict(self.max(), Some(file));
        if self.counted
            && PROCESS.open.load(Ordering::Relaxed) > PROCESS.max.load(Ordering::Relaxed)
        {
            PROCESS.keep_to_limit();
        }
        opened
    }

    /// Closes descriptors, except that of `keep`, until `left` are open. Returns the number it
    /// closed.
    fn evict(&self, left: usize, keep: Option<&PooledFile>) -> usize {
        // Dropped after the lock is released, because the last reference to a file may be among
        // them.
        let (mut looked_at, mut closed) = (Vec::new(), Vec::new());
        let mut clock = lock(&self.clock);
        // Each entry is spared at most once for having been used, so two rounds suffice.
        let mut looks = clock.len() * 2;
        while looks > 0 && self.in_use() > left {
            looks -= 1;
            let Some(entry) = clock.pop_front() else { break };
            let Some(file) = entry.upgrade() else { continue };
            let keeps = keep.is_some_and(|keep| std::ptr::eq(keep, &*file));
            if keeps || file.used.swap(false, Ordering::Relaxed) {
                clock.push_back(entry);
            } else if let Some(descriptor) = file.descriptor.swap(None) {
                self.count(false);
                closed.push(descriptor);
            }
            looked_at.push(file);
        }
        if clock.len() > 2 * self.in_use() + FEW {
            clock.retain(|entry| entry.strong_count() > 0);
        }
        drop(clock);
        drop(looked_at);
        closed.len()
    }

    /// Closes a quarter of the descriptors, at least one. Returns the number it closed.
    fn give_back(&self) -> usize {
        let open = self.in_use();
        self.evict(open - open.div_ceil(PART_GIVEN_BACK).min(open), None)
    }

    /// Counts a descriptor that was opened or closed, in the pool and in the process.
    fn count(&self, opened: bool) {
        let counters = [Some(&self.open), self.counted.then_some(&PROCESS.open)];
        for counter in counters.into_iter().flatten() {
            if opened {
                counter.fetch_add(1, Ordering::Relaxed);
            } else {
                counter.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for DescriptorPool {
    fn drop(&mut self) {
        if self.counted {
            lock(&PROCESS.pools).retain(|pool| pool.strong_count() > 0);
        }
    }
}

/// An open file. Its descriptor is closed when the last reader drops it.
#[derive(Debug)]
struct Descriptor(Arc<dyn VfsFile>);

/// A file that is read. Its descriptor is opened again when the pool has closed it.
#[derive(Debug)]
pub struct PooledFile {
    pool: Arc<DescriptorPool>,
    own: Weak<PooledFile>,
    path: Arc<Path>,
    options: OpenOptions,
    /// The file's alignment, kept so that it is known while the descriptor is closed.
    alignment: usize,
    /// Changes under the lock of the pool's CLOCK queue, which has an entry for every open
    /// descriptor.
    descriptor: ArcSwapOption<Descriptor>,
    /// Set by reads, cleared by [`DescriptorPool::evict`].
    used: AtomicBool,
}

impl PooledFile {
    /// Returns true if the descriptor is open.
    pub fn is_open(&self) -> bool {
        self.descriptor.load().is_some()
    }

    /// Calls `call` with the open file, and opens it again if needed.
    #[inline]
    fn with<T>(&self, call: impl FnOnce(&dyn VfsFile) -> io::Result<T>) -> io::Result<T> {
        let borrowed = self.descriptor.load();
        // A first read does not count as use: a scan that opens each file once evicts its own
        // files.
        let Some(descriptor) = &*borrowed else { return call(&*self.reopen()?.0) };
        // Stored only if it changes. A store by every reader would move the cache line between
        // cores.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        call(&*descriptor.0)
    }

    /// Clears the use mark: the reads so far belonged to opening the table.
    pub fn opened(&self) {
        self.used.store(false, Ordering::Relaxed);
    }

    /// Opens the file again by its name.
    #[cold]
    #[inline(never)]
    fn reopen(&self) -> io::Result<Arc<Descriptor>> {
        let opened = self.pool.vfs.open(&self.path, self.options)?;
        Ok(self.pool.enter(self, Arc::new(Descriptor(opened))))
    }
}

impl Drop for PooledFile {
    fn drop(&mut self) {
        if self.is_open() {
            self.pool.count(false);
        }
    }
}

impl VfsFile for PooledFile {
    #[inline]
    fn read_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        self.with(|file| file.read_at(buffer, offset, class))
    }
    fn descriptor(&self) -> Option<SharedDescriptor> {
        self.with(|file| Ok(file.descriptor())).ok().flatten()
    }
    fn was_read(&self, place: (u64, usize), started: Instant, ns: u64, class: IoClass) {
        // If the pool has closed the descriptor meanwhile, the read is not counted.
        if let Some(descriptor) = &*self.descriptor.load() {
            descriptor.0.was_read(place, started, ns, class);
        }
    }
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        self.with(|file| file.write_at(bytes, offset, class))
    }
    fn sync_data(&self, class: IoClass) -> io::Result<()> {
        self.with(|file| file.sync_data(class))
    }
    fn start_writeback(&self, offset: u64, length: u64) -> io::Result<()> {
        self.with(|file| file.start_writeback(offset, length))
    }

    fn finish_writeback(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        self.with(|file| file.finish_writeback(offset, length, class))
    }
    fn punch_hole(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        self.with(|file| file.punch_hole(offset, length, class))
    }
    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.with(|file| file.preallocate(offset, length))
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.with(|file| file.truncate(length))
    }
    fn len(&self) -> io::Result<u64> {
        self.with(|file| file.len())
    }
    fn allocated(&self) -> io::Result<u64> {
        self.with(|file| file.allocated())
    }
    fn links(&self) -> io::Result<u64> {
        self.with(|file| file.links())
    }
    fn modified(&self) -> io::Result<Option<u64>> {
        self.with(|file| file.modified())
    }
    fn alignment(&self) -> usize {
        self.alignment
    }
}
