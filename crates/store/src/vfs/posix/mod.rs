//! The operating system's files: positioned reads and writes, buffered or direct, and the Linux
//! calls that the engine needs (hole punching, preallocation, reflinks, paced writeback). No other
//! module performs file I/O.
//!
//! What must stay true: a buffered read, or a direct read into an aligned buffer, is one system
//! call and no allocation. A handle whose sync failed refuses further writes and syncs: the kernel
//! may have dropped the dirty pages, and would report success the second time.
#![expect(unsafe_code, reason = "sync_file_range has no safe binding")]

mod disk;
pub(super) mod fork;
pub(super) mod heap;
pub(super) mod host;
mod lock;
mod marks;
pub(super) mod processor;
pub(super) mod ring;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io};

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::buffer::{AlignedBuffer, DIRECT_IO_ALIGNMENT};
use super::{IoClass, OpenOptions, Vfs, VfsFile, VfsLock};
use crate::base::system;

/// Size of the bounce buffer for unaligned direct reads. Each thread that does them has one.
const BOUNCE_BYTES: usize = 64 << 10;

/// `statfs` type of tmpfs, which has no device below it for direct I/O.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct PosixVfs;

impl PosixVfs {
    /// The file system of the operating system.
    #[must_use]
    pub fn new() -> PosixVfs {
        PosixVfs
    }
}

impl Vfs for PosixVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        let mut flags = OFlags::CLOEXEC;
        flags |= if options.write || options.create_new { OFlags::RDWR } else { OFlags::RDONLY };
        if options.create_new {
            flags |= OFlags::CREATE | OFlags::EXCL;
        }
        let fd = retry(|| rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)))?;
        // Direct I/O is switched on after the open: a file system without it refuses an open with
        // O_DIRECT only after it has created the file.
        let unit = if options.direct { direct_read_unit(&fd) } else { None };
        let direct = unit.is_some() && switch_to_direct(&fd)?;
        let read_unit = unit.filter(|_| direct).unwrap_or(1);
        let fd = Arc::new(fd);
        Ok(Arc::new(PosixFile { fd, direct, read_unit, poisoned: AtomicBool::new(false) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::rename(from, to)?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlink(path)?)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::link(from, to)?)
    }

    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mode = Mode::from_raw_mode(0o644);
        let source = retry(|| rustix::fs::open(from, OFlags::RDONLY | OFlags::CLOEXEC, mode))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let target = retry(|| rustix::fs::open(to, flags, mode))?;
        rustix::fs::ioctl_ficlone(&target, &source).map_err(|errno| {
            // Best effort: the caller learns why there is no clone, not that an empty file was
            // left.
            let _ = rustix::fs::unlink(to);
            match errno {
                // The errors of a file system without reflinks, and of two different file systems.
                Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS | Errno::XDEV | Errno::INVAL => {
                    unsupported("the file system has no reflinks here")
                }
                other => other.into(),
            }
        })
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names = fs::read_dir(directory)?
            .map(|entry| entry.map(|entry| PathBuf::from(entry.file_name())))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
        Ok(names)
    }

    fn create_dir_all(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        Ok(rustix::fs::rmdir(directory)?)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = retry(|| rustix::fs::open(directory, flags, Mode::empty()))?;
        match retry(|| rustix::fs::fsync(&fd)) {
            // A file system without this call makes names durable in its own way, or never.
            Err(errno) if lacks_call(errno) || errno == Errno::BADF => Ok(()),
            synced => Ok(synced?),
        }
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match retry(|| rustix::fs::stat(path)) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        Ok(Box::new(lock::PosixLock::take(path)?))
    }

    fn lock_holder(&self, path: &Path) -> Option<String> {
        lock::holder(path)
    }

    fn mark(&self, path: &Path, at: u64) -> io::Result<Box<dyn VfsLock>> {
        Ok(Box::new(marks::Mark::make(path, at)?))
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        match retry(|| rustix::fs::statvfs(path)) {
            Ok(stat) => Ok(stat.f_bavail.saturating_mul(stat.f_frsize)),
            // The space is not known, so the caller has to try.
            Err(errno) if lacks_call(errno) => Ok(u64::MAX),
            Err(errno) => Err(errno.into()),
        }
    }

    fn total_space(&self, path: &Path) -> io::Result<u64> {
        match retry(|| rustix::fs::statvfs(path)) {
            Ok(stat) => Ok(stat.f_blocks.saturating_mul(stat.f_frsize)),
            Err(errno) if lacks_call(errno) => Ok(u64::MAX),
            Err(errno) => Err(errno.into()),
        }
    }

    fn disk(&self, path: &Path) -> Option<u64> {
        disk::of(path)
    }

    fn open_files_limit(&self) -> Option<u64> {
        system::open_files_limit()
    }
}

/// An open file of the operating system.
#[derive(Debug)]
struct PosixFile {
    fd: Arc<OwnedFd>,
    direct: bool,
    /// Unit of offset and length of direct reads. A power of two.
    read_unit: usize,
    /// Set by a failed sync, never cleared. Relaxed: it guards no other memory, and a racing write
    /// equals one before the failure.
    poisoned: AtomicBool,
}

impl VfsFile for PosixFile {
    #[inline]
    fn read_at(&self, buffer: &mut [u8], offset: u64, _: IoClass) -> io::Result<usize> {
        if !self.direct {
            self.read_buffered(buffer, offset)
        } else if is_aligned(buffer, offset, self.read_unit) {
            self.read_aligned(buffer, offset)
        } else {
            self.read_bounced(buffer, offset)
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64, _: IoClass) -> io::Result<()> {
        self.refuse_if_poisoned()?;
        if self.direct && !is_aligned(bytes, offset, DIRECT_IO_ALIGNMENT) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "direct write of {} bytes at offset {offset} from address {:#x}: each must be \
                     a multiple of {DIRECT_IO_ALIGNMENT}",
                    bytes.len(),
                    bytes.as_ptr().addr(),
                ),
            ));
        }
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&self.fd, &bytes[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn sync_data(&self, _: IoClass) -> io::Result<()> {
        self.refuse_if_poisoned()?;
        retry(|| rustix::fs::fdatasync(&self.fd)).map_err(|errno| {
            self.poison();
            errno.into()
        })
    }

    fn start_writeback(&self, offset: u64, length: u64) -> io::Result<()> {
        if self.direct || length == 0 {
            return Ok(());
        }
        self.sync_range(offset, length, libc::SYNC_FILE_RANGE_WRITE)
    }

    fn finish_writeback(&self, offset: u64, length: u64, _: IoClass) -> io::Result<()> {
        if self.direct || length == 0 {
            return Ok(());
        }
        self.refuse_if_poisoned()?;
        let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // The kernel reports a failed writeback once, here or at the sync.
        self.sync_range(offset, length, wait).inspect_err(|_| self.poison())
    }

    fn punch_hole(&self, offset: u64, length: u64, _: IoClass) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match retry(|| rustix::fs::fallocate(&self.fd, mode, offset, length)) {
            Ok(()) => Ok(()),
            Err(errno) if lacks_call(errno) => {
                Err(unsupported("the file system cannot punch holes"))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        let mode = FallocateFlags::KEEP_SIZE;
        match retry(|| rustix::fs::fallocate(&self.fd, mode, offset, length)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.refuse_if_poisoned()?;
        Ok(retry(|| rustix::fs::ftruncate(&self.fd, length))?)
    }

    fn len(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstat(&self.fd)?;
        u64::try_from(stat.st_size).map_err(io::Error::other)
    }

    fn allocated(&self) -> io::Result<u64> {
        /// Unit of `st_blocks`, whatever the file system's own unit is (stat(2)).
        const BLOCK_BYTES: u64 = 512;
        let stat = rustix::fs::fstat(&self.fd)?;
        let blocks = u64::try_from(stat.st_blocks).map_err(io::Error::other)?;
        Ok(blocks * BLOCK_BYTES)
    }

    fn links(&self) -> io::Result<u64> {
        Ok(widen(rustix::fs::fstat(&self.fd)?.st_nlink))
    }

    fn modified(&self) -> io::Result<Option<u64>> {
        Ok(u64::try_from(rustix::fs::fstat(&self.fd)?.st_mtime).ok())
    }

    fn alignment(&self) -> usize {
        self.read_unit
    }

    fn descriptor(&self) -> Option<Arc<OwnedFd>> {
        Some(self.fd.clone())
    }

    fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }
}

impl PosixFile {
    /// Writes pages of the range back. An error means that its bytes cannot be stored.
    fn sync_range(&self, offset: u64, length: u64, flags: libc::c_uint) -> io::Result<()> {
        let (offset, length) = (to_off64(offset)?, to_off64(length)?);
        // SAFETY: the descriptor is open as long as `self.fd` lives; the call takes no pointers.
        let result = unsafe { libc::sync_file_range(self.fd.as_raw_fd(), offset, length, flags) };
        if result == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // Any other error means that the call is not there or does not know such a file, so
            // that the sync does all the work.
            Some(libc::EIO | libc::ENOSPC | libc::EDQUOT) => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads through the page cache until the buffer is full or the file ends.
    fn read_buffered(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match rustix::io::pread(&self.fd, &mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(done)
    }

    /// Reads directly with everything aligned. A count that is not a multiple of the unit can only
    /// be the end of the file; a further read from there would be refused as unaligned.
    fn read_aligned(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match rustix::io::pread(&self.fd, &mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => {
                    done += n;
                    if n % self.read_unit != 0 {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(done)
    }

    /// Reads any range directly into any buffer. It reads the aligned range around it into this
    /// thread's bounce buffer, one buffer at a time, and copies.
    #[inline(never)]
    fn read_bounced(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        thread_local! {
            static BOUNCE: RefCell<Option<AlignedBuffer>> = const { RefCell::new(None) };
        }
        BOUNCE.with_borrow_mut(|bounce| {
            let bounce = bounce.get_or_insert_with(|| AlignedBuffer::with_capacity(BOUNCE_BYTES));
            let mut done = 0;
            while done < buffer.len() {
                let position = offset + done as u64;
                let skip = (position % self.read_unit as u64) as usize;
                let wanted = (skip + buffer.len() - done).next_multiple_of(self.read_unit);
                bounce.set_len(wanted.min(bounce.capacity()));
                let got = self.read_aligned(bounce.as_mut_slice(), position - skip as u64)?;
                let n = got.saturating_sub(skip).min(buffer.len() - done);
                buffer[done..done + n].copy_from_slice(&bounce[skip..skip + n]);
                done += n;
                if got < bounce.len() {
                    break;
                }
            }
            Ok(done)
        })
    }

    /// Fails if a sync of this handle has failed.
    fn refuse_if_poisoned(&self) -> io::Result<()> {
        if self.poisoned.load(Ordering::Relaxed) {
            return Err(io::Error::other(
                "an earlier sync of this handle failed, so its content on disk is unknown",
            ));
        }
        Ok(())
    }
}

/// Turns direct I/O on. Returns false if the file system has none.
fn switch_to_direct(fd: &OwnedFd) -> io::Result<bool> {
    // A file system that does not tell its type is not tmpfs.
    let kind = rustix::fs::fstatfs(fd).ok().and_then(|stat| u64::try_from(stat.f_type).ok());
    if kind == Some(TMPFS_MAGIC) {
        return Ok(false);
    }
    match rustix::fs::fcntl_setfl(fd, OFlags::DIRECT) {
        Ok(()) => Ok(true),
        Err(errno) if lacks_call(errno) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns true if address, length and offset are multiples of `unit`, a power of two.
#[inline]
fn is_aligned(buffer: &[u8], offset: u64, unit: usize) -> bool {
    let mask = unit - 1;
    (buffer.as_ptr().addr() | buffer.len()) & mask == 0 && offset & mask as u64 == 0
}

/// Returns the unit of direct reads of a file. Smaller units help: reading a 4 KiB block that is
/// not page-aligned moves far fewer bytes with 512-byte sectors. Returns `None` if the file has no
/// direct I/O, or only in units larger than those of writes.
fn direct_read_unit(fd: &OwnedFd) -> Option<usize> {
    let asked = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    let units = asked.ok().filter(|stat| stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    // Older kernels do not tell. Every device accepts this unit.
    let Some(stat) = units else { return Some(DIRECT_IO_ALIGNMENT) };
    if stat.stx_dio_offset_align == 0 || stat.stx_dio_mem_align == 0 {
        return None;
    }
    match usize::try_from(stat.stx_dio_offset_align.max(stat.stx_dio_mem_align)) {
        Ok(unit) if unit > DIRECT_IO_ALIGNMENT => None,
        Ok(unit) if unit.is_power_of_two() && unit >= 512 => Some(unit),
        _ => Some(DIRECT_IO_ALIGNMENT),
    }
}

/// Repeats a call while signals interrupt it.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Widens a field of `stat` whose width depends on the architecture: `st_nlink` has 64 bits on
/// x86-64 and 32 on aarch64.
fn widen(value: impl Into<u64>) -> u64 {
    value.into()
}

/// Returns true if the file system, or a filter of system calls, does not support the call. The
/// caller then does without it.
fn lacks_call(errno: Errno) -> bool {
    let lacking =
        [Errno::OPNOTSUPP, Errno::NOSYS, Errno::NOTTY, Errno::INVAL, Errno::PERM, Errno::NODEV];
    lacking.contains(&errno)
}

fn to_off64(value: u64) -> io::Result<libc::off64_t> {
    value.try_into().map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn unsupported(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, reason)
}
