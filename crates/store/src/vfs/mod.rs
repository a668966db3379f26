//! The file system interface. All I/O of the engine passes it, and every data call names its
//! [`IoClass`]. I/O is counted, scheduled and, in tests, failed by class.
//!
//! What must stay true for every implementation:
//!
//! - `read_at` and `write_at` do everything or fail. Only the end of the file shortens a read, and
//!   the returned count says so.
//! - Contents are durable only once `sync_data` has returned Ok, and names only once `sync_dir`
//!   has.
//! - After a failed `sync_data` the handle is poisoned: the engine never syncs or writes it again.

mod bounded;
mod buffer;
mod bytes;
mod descriptors;
mod fault;
mod held;
mod io_event;
mod many;
mod mem;
mod metered;
mod pass_on;
mod paths;
mod posix;
mod watched;

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub use bounded::BoundedVfs;
pub use buffer::{AlignedBuffer, DIRECT_IO_ALIGNMENT};
pub use bytes::BytesFile;
pub use descriptors::{DescriptorPool, PooledFile};
pub use fault::{Fault, FaultId, FaultRule, FaultVfs, Site, SiteCounts, VfsOperation, path_class};
pub use held::HeldVfs;
pub use io_event::{IoEvent, IoObserver, IoOperation};
pub use many::{PlacedRead, SharedDescriptor, read_many};
pub use mem::{
    CrashChoice, Guard, MemVfs, PendingKind, PendingOperation, Ranges, Recording, Taken,
};
pub use metered::{ClassSnapshot, ClassTotals, IoSnapshot, MeteredVfs};
pub use paths::PathsVfs;
pub use posix::PosixVfs;
pub use posix::fork::forks;
pub use posix::heap::give_back_free_memory;
pub use posix::host::HostMeter;
pub use sateen_control::IoClass;
pub use watched::{WantsToStop, WatchedVfs};

/// How a file will be used: page cache or direct I/O, and whether it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Opens for writing as well as reading.
    pub write: bool,
    /// Bypasses the page cache if the file system can; otherwise the file is buffered.
    pub direct: bool,
    /// Creates the file (with `write`), and fails if it exists. Without this the file must exist.
    pub create_new: bool,
}

impl OpenOptions {
    /// Opens an existing file for reading.
    pub const READ: OpenOptions = OpenOptions { write: false, direct: false, create_new: false };
    /// Opens an existing file for writing and reading.
    pub const WRITE: OpenOptions = OpenOptions { write: true, direct: false, create_new: false };
    /// Creates a file for writing and reading.
    pub const CREATE: OpenOptions = OpenOptions { write: true, direct: false, create_new: true };

    /// Returns these options with direct I/O set to `direct`.
    #[must_use]
    pub fn direct(self, direct: bool) -> OpenOptions {
        OpenOptions { direct, ..self }
    }
}

/// An open file. All methods take `&self`: handles are shared.
pub trait VfsFile: Send + Sync + Debug {
    /// Fills `buffer` from `offset`. Returns fewer bytes only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()>;
    /// Makes the contents and the length durable (fdatasync).
    fn sync_data(&self, class: IoClass) -> io::Result<()>;
    /// Starts writeback of the range without waiting for durability. This is a hint.
    fn start_writeback(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Writes the range back and waits until the device has it, which does not make it durable. An
    /// error means that bytes were lost, and no later sync may report it again.
    fn finish_writeback(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()>;
    /// Frees the range's blocks. Reads of it then return zeros. The length stays.
    fn punch_hole(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()>;
    /// Reserves space without changing the length (KEEP_SIZE). This is a hint: an unsupported call
    /// returns Ok, and the engine continues after any error.
    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Sets the length, and frees space that was reserved beyond it.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Returns the length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Returns the bytes that the file takes on disk without its holes, or its length if that is
    /// not known.
    fn allocated(&self) -> io::Result<u64> {
        self.len()
    }
    /// Returns the number of the file's names; 1 if that is not known.
    fn links(&self) -> io::Result<u64> {
        Ok(1)
    }
    /// Returns the time of the last write in seconds since 1970; `None` if that is not known.
    fn modified(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }
    /// Returns true if the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Returns the alignment of offsets, lengths and buffer addresses that avoids a copy: 1 for
    /// buffered I/O, at most 4096 for direct I/O. Unaligned reads are still served, through a
    /// bounce buffer. Unaligned direct writes are an error of the caller.
    fn alignment(&self) -> usize {
        1
    }
    /// Returns the descriptor, if [`read_many`] may read it beside this handle. Such reads are not
    /// calls of `read_at`, so a layer that must see them returns `None`.
    fn descriptor(&self) -> Option<SharedDescriptor> {
        None
    }
    /// Tells a layer that `place`, an offset and a length, was read from its
    /// [`VfsFile::descriptor`] since `started`, in `ns` nanoseconds.
    fn was_read(&self, place: (u64, usize), started: Instant, ns: u64, class: IoClass) {
        let _uncounted = (place, started, ns, class);
    }
    /// Tells the handle that a layer above reported a failed sync. The handle then refuses what it
    /// would refuse after a failure of its own. For layers that inject faults.
    fn poison(&self) {}
}

/// The lock of an open database. Dropping it releases the lock.
pub trait VfsLock: Send + Sync + Debug {
    /// Returns the bytes of the lock file that readers have marked ([`Vfs::mark`]), each once.
    fn marks(&self) -> io::Result<Vec<u64>> {
        Ok(Vec::new())
    }

    /// Returns false if the lock file was removed or replaced, so that it keeps nobody out.
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }
}

/// A file system.
pub trait Vfs: Send + Sync + Debug {
    /// Opens or creates a file.
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>>;
    /// Renames atomically, and replaces `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes `to` another name of the file `from`.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes `to` a copy of `from` that shares its blocks. Fails with `Unsupported` if the file
    /// system cannot do that.
    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Lists the names in a directory, in byte order.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;
    /// Creates a directory and its parents.
    fn create_dir_all(&self, directory: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, directory: &Path) -> io::Result<()>;
    /// Makes names that were created, renamed or removed in the directory durable.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;
    /// Returns true if a file or directory has this name.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Takes the exclusive lock on `path`, which is created if missing. Fails with `WouldBlock` if
    /// another process or handle has the lock.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>>;
    /// Returns the process that holds the lock on `path`; `None` if it is not known for certain.
    fn lock_holder(&self, path: &Path) -> Option<String> {
        let _unknown = path;
        None
    }
    /// Marks the byte `at` of the lock file `path` as a reader's, until the mark is dropped or the
    /// process ends. It changes no file, needs only permission to read, and never conflicts with
    /// [`Vfs::lock`] or another mark. Fails with `Unsupported` if the file system cannot do that.
    fn mark(&self, path: &Path, at: u64) -> io::Result<Box<dyn VfsLock>> {
        let _unmarked = (path, at);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Returns the bytes that can still be written in the file system of `path`.
    fn free_space(&self, path: &Path) -> io::Result<u64>;
    /// Returns the size of the file system of `path` in bytes; `u64::MAX` if that is not known.
    fn total_space(&self, path: &Path) -> io::Result<u64> {
        let _ = path;
        Ok(u64::MAX)
    }

    /// Returns the number of the disk that `path` is on, of a partition that of its disk; `None` if
    /// that is not known. Databases on one disk share a scheduler.
    fn disk(&self, path: &Path) -> Option<u64> {
        let _ = path;
        None
    }

    /// Returns where the file `path` is. That is another place only for tables of a database with
    /// several directories ([`PathsVfs`]).
    fn place_of(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    /// Returns the process's limit on open files, which includes files of the application; `None`
    /// if there is no limit.
    fn open_files_limit(&self) -> Option<u64> {
        None
    }
}

impl dyn VfsFile {
    /// Fills all of `buffer`, or fails with `UnexpectedEof`.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<()> {
        let got = self.read_at(buffer, offset, class)?;
        if got < buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Fills `buffer` up to the end of the file, and returns the number of bytes. If the file is
    /// longer than what was read, it fails with `UnexpectedEof`. Otherwise a short read could not
    /// be told from the end of a file that may end early.
    pub fn read_all_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        let got = self.read_at(buffer, offset, class)?;
        if got < buffer.len() && self.len()? > offset.saturating_add(got as u64) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(got)
    }
}
