//! Locks of single bytes of a lock file. A reader marks one byte while it reads. The process that
//! has the database open locks the first byte, so that others can find its process id.
//!
//! 1. `Mark::make` locks one byte for reading, with a lock of the open file description.
//! 2. `marks` asks the kernel for conflicting locks, and splits the range at each answer.
//! 3. `name_holder` locks byte 0 for the process, and `holder` finds that process.
//!
//! What must stay true: a mark ends with its handle or its process, so it is never stale. A mark
//! never keeps a process from opening the database. A process id is reported only while that
//! process holds the lock.
#![expect(unsafe_code, reason = "locks of open file descriptions have no safe binding")]

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::{retry, unsupported};
use crate::vfs::VfsLock;

/// Byte that the process locks while it has the database open.
const HOLDER_AT: u64 = 0;
/// First byte that readers may mark.
const FIRST_MARK: u64 = 1;
/// End of the bytes that readers may mark.
const MARKS_END: u64 = i64::MAX as u64;
/// Most marks that are reported. Readers whose marks are left out are not protected.
const MARKS_MAX: usize = 4096;
/// `statfs` types of network file systems. They implement `flock` by byte locks, so that a mark
/// would keep writers out.
const NETWORK_MAGICS: [u64; 4] = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42];

/// The mark of one reader.
#[derive(Debug)]
pub(super) struct Mark {
    fd: OwnedFd,
    at: u64,
}

impl VfsLock for Mark {}

impl Mark {
    /// Marks a byte of an existing file, which the caller must be able to read.
    pub(super) fn make(path: &Path, at: u64) -> io::Result<Mark> {
        let fd = open(path)?;
        let stat = rustix::fs::fstatfs(&fd)?;
        if u64::try_from(stat.f_type).is_ok_and(|kind| NETWORK_MAGICS.contains(&kind)) {
            return Err(unsupported("marks would keep writers out on a network file system"));
        }
        let at = FIRST_MARK + at % (MARKS_END - FIRST_MARK);
        let mark = Mark { fd, at };
        call(&mark.fd, libc::F_OFD_SETLK, libc::F_RDLCK, (at, 1))?;
        Ok(mark)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // Closing alone would leave the mark to a child that was forked meanwhile.
        let _closed_next = call(&self.fd, libc::F_OFD_SETLK, libc::F_UNLCK, (self.at, 1));
    }
}

/// Returns the bytes that readers have marked in the lock file `fd`.
pub(super) fn marks(fd: &OwnedFd) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    let mut to_ask = vec![(FIRST_MARK, MARKS_END)];
    while let Some((start, end)) = to_ask.pop() {
        if start >= end || found.len() >= MARKS_MAX {
            continue;
        }
        let answer = call(fd, libc::F_OFD_GETLK, libc::F_WRLCK, (start, end - start))?;
        let Some((at, length, _)) = conflict(&answer) else { continue };
        found.push(at);
        let behind = if length == 0 { end } else { at.saturating_add(length) };
        to_ask.extend([(start, at.min(end)), (behind.max(start), end)]);
    }
    Ok(found)
}

/// Registers this process as the holder of the lock file `fd`, until it closes any handle of that
/// file.
pub(super) fn name_holder(fd: &OwnedFd) {
    // Without it, only an error message has less to say.
    let _unnamed = call(fd, libc::F_SETLK, libc::F_WRLCK, (HOLDER_AT, 1));
}

/// Returns the process that holds a lock file, if it is known for certain.
pub(super) fn holder(path: &Path) -> Option<String> {
    let fd = open(path).ok()?;
    let process = || {
        let answer = call(&fd, libc::F_GETLK, libc::F_WRLCK, (HOLDER_AT, 1)).ok()?;
        conflict(&answer).map(|(.., process)| process).filter(|process| *process > 0)
    };
    let before = process()?;
    let command = fs::read_to_string(format!("/proc/{before}/comm")).ok();
    // If the answers differ, the process has ended, and another may have got its id.
    if process() != Some(before) {
        return None;
    }
    Some(match command {
        Some(command) => format!("{} (pid {before})", command.trim_end().escape_debug()),
        None => format!("pid {before}"),
    })
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(retry(|| rustix::fs::open(path, flags, Mode::empty()))?)
}

/// Returns offset, length and process of a conflicting lock.
fn conflict(answer: &libc::flock) -> Option<(u64, u64, i32)> {
    if i32::from(answer.l_type) == libc::F_UNLCK {
        return None;
    }
    let (at, length) = (u64::try_from(answer.l_start), u64::try_from(answer.l_len));
    Some((at.ok()?, length.ok()?, answer.l_pid))
}

/// Calls `fcntl` for `range.1` bytes from `range.0` on, and returns the kernel's answer.
fn call(fd: &OwnedFd, command: i32, kind: i32, range: (u64, u64)) -> io::Result<libc::flock> {
    let out_of_range = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let mut lock = libc::flock {
        l_type: libc::c_short::try_from(kind).map_err(out_of_range)?,
        l_whence: libc::c_short::try_from(libc::SEEK_SET).map_err(out_of_range)?,
        l_start: libc::off_t::try_from(range.0).map_err(out_of_range)?,
        l_len: libc::off_t::try_from(range.1).map_err(out_of_range)?,
        l_pid: 0,
    };
    loop {
        // SAFETY: the descriptor is open as long as `fd` lives, and `lock` outlives the call.
        let result = unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw mut lock) };
        if result != -1 {
            return Ok(lock);
        }
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EINTR) => continue,
            Some(libc::EINVAL | libc::ENOLCK | libc::ENOSYS | libc::EOPNOTSUPP) => {
                Err(unsupported("the file system has no byte-range locks"))
            }
            _ => Err(error),
        };
    }
}
