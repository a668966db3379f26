//! The only door to the disk. Every data call names its [`IoClass`], so that all bytes are counted,
//! scheduled and, in tests, faulted by purpose.
//!
//! Contract for every implementation:
//! - `read_at` and `write_at` do all of what was asked or fail; only the end of the file shortens a
//!   read, and the count returned says so.
//! - nothing is durable before `sync_data` returned Ok (contents) and `sync_dir` returned Ok
//!   (names).
//! - after a failed `sync_data` the handle is poisoned: the engine never syncs or writes it again.

mod bounded;
mod buffer;
mod descriptors;
mod fault;
mod mem;
mod metered;
mod pass_on;
mod posix;
mod watched;

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use bounded::BoundedVfs;
pub use buffer::{AlignedBuffer, DIRECT_IO_ALIGNMENT};
pub use descriptors::{DescriptorPool, PooledFile};
pub use fault::{Fault, FaultId, FaultRule, FaultVfs, Site, SiteCounts, VfsOperation, path_class};
pub use mem::{
    CrashChoice, Guard, MemVfs, PendingKind, PendingOperation, Ranges, Recording, Taken,
};
pub use metered::{ClassSnapshot, ClassTotals, IoSnapshot, MeteredVfs};
pub use posix::PosixVfs;
pub use posix::fork::forks;
pub use posix::heap::give_back_free_memory;
pub use sateen_control::IoClass;
pub use watched::WatchedVfs;

/// How a file will be used: decides page cache or direct I/O, and where it may be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Open for writing as well as reading.
    pub write: bool,
    /// Bypass the page cache where the file system can; otherwise falls back to buffered.
    pub direct: bool,
    /// Fail if it exists, create it otherwise (with `write`). Without it the file must exist.
    pub create_new: bool,
}

impl OpenOptions {
    /// An existing file, for reading.
    pub const READ: OpenOptions = OpenOptions { write: false, direct: false, create_new: false };
    /// An existing file, for writing and reading back.
    pub const WRITE: OpenOptions = OpenOptions { write: true, direct: false, create_new: false };
    /// A new file, for writing and reading back.
    pub const CREATE: OpenOptions = OpenOptions { write: true, direct: false, create_new: true };

    /// The same with direct I/O switched to `direct`.
    #[must_use]
    pub fn direct(self, direct: bool) -> OpenOptions {
        OpenOptions { direct, ..self }
    }
}

/// An open file. All methods take `&self`: handles are shared.
pub trait VfsFile: Send + Sync + Debug {
    /// Fills `buffer` from `offset`; returns fewer bytes only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()>;
    /// Makes the contents and the length durable (fdatasync).
    fn sync_data(&self, class: IoClass) -> io::Result<()>;
    /// Starts writing back the given range without waiting for durability; a hint.
    fn start_writeback(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Gives the range's blocks back to the file system; reads of it return zeros. Length
    /// unchanged.
    fn punch_hole(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()>;
    /// Reserves space without changing the length (KEEP_SIZE). A hint: unsupported is Ok, and the
    /// engine goes on after any error.
    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Sets the length, and gives back space that was reserved beyond it.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// The bytes that the file takes on disk, holes left out; its length where that is not known.
    fn allocated(&self) -> io::Result<u64> {
        self.len()
    }
    /// How many names the file has; 1 where that is not known.
    fn links(&self) -> io::Result<u64> {
        Ok(1)
    }
    /// When it was last written, in seconds since 1970; `None` where that is not known.
    fn modified(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }
    /// True if the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// What offsets, lengths and buffer addresses should be multiples of to avoid a copy:
    /// 4096 for direct I/O, 1 otherwise. Unaligned reads are still served, through a bounce buffer;
    /// unaligned direct writes are an error of the caller.
    fn alignment(&self) -> usize {
        1
    }
    /// Tells the handle that a layer above reported a failed sync of it, so that it refuses what
    /// it would refuse had the failure been its own. For layers that inject faults.
    fn poison(&self) {}
}

/// Held while a database is open; gives the lock back on drop.
pub trait VfsLock: Send + Sync + Debug {
    /// The bytes of the lock file that readers have marked ([`Vfs::mark`]), each once.
    fn marks(&self) -> io::Result<Vec<u64>> {
        Ok(Vec::new())
    }
}

/// A file system.
pub trait Vfs: Send + Sync + Debug {
    /// Opens or creates a file.
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>>;
    /// Renames atomically, replacing `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes `to` another name of `from`.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes `to` a copy that shares blocks, where the file system can; Unsupported otherwise.
    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// The names in a directory, in byte order.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;
    /// Makes a directory and its parents.
    fn create_dir_all(&self, directory: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, directory: &Path) -> io::Result<()>;
    /// Makes names created, renamed or removed in the directory durable.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;
    /// True if there is a file or directory of that name.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Takes the exclusive lock on `path` (created if missing); `WouldBlock` if another has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>>;
    /// The process that holds the lock on `path`; `None` where that is not certain.
    fn lock_holder(&self, path: &Path) -> Option<String> {
        let _unknown = path;
        None
    }
    /// Marks the byte `at` of the lock file `path` as a reader's, until the mark is dropped or the
    /// process ends. Changes no file, needs no permission but to read it, and never conflicts with
    /// [`Vfs::lock`] or another mark. Unsupported where the file system cannot do that.
    fn mark(&self, path: &Path, at: u64) -> io::Result<Box<dyn VfsLock>> {
        let _unmarked = (path, at);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Bytes that can still be written in the file system of `path`.
    fn free_space(&self, path: &Path) -> io::Result<u64>;
    /// Bytes that the file system of `path` has in all; `u64::MAX` where that is not known.
    fn total_space(&self, path: &Path) -> io::Result<u64> {
        let _ = path;
        Ok(u64::MAX)
    }

    /// How many files may be open at once, those of others in the same process included; `None`
    /// where there is no such limit.
    fn open_files_limit(&self) -> Option<u64> {
        None
    }
}

impl dyn VfsFile {
    /// Fills all of `buffer` or fails with `UnexpectedEof`.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<()> {
        let got = self.read_at(buffer, offset, class)?;
        if got < buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Fills `buffer` as far as the file goes, and says how far that is. Fails with
    /// `UnexpectedEof` if the file goes further than what was read: where a file may end early,
    /// nothing else tells a read that came short from the end.
    pub fn read_all_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        let got = self.read_at(buffer, offset, class)?;
        if got < buffer.len() && self.len()? > offset.saturating_add(got as u64) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(got)
    }
}
