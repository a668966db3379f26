//! Reads of many places with one system call (`io_uring`), so that the device does them at the same
//! time.
//!
//! 1. [`read`] takes a ring of the process's [`POOL`], or makes one.
//! 2. It queues up to [`ENTRIES`] reads, submits them, and waits for all of them.
//! 3. Without a ring it announces the reads to the page cache (`POSIX_FADV_WILLNEED`), and the
//!    caller reads one after the other.
//!
//! What must stay true: the kernel writes into buffers that are borrowed, so [`read`] returns only
//! when no read of it is under way. A ring belongs to the process that made it: a copy of the
//! process shares its memory, and leaves it alone.
#![expect(unsafe_code, reason = "the kernel reads into borrowed buffers on its own")]

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::{io, mem};

use io_uring::{IoUring, opcode, types};
use rustix::fs::Advice;

use super::fork::forks;
use crate::base::sync::leaf::lock;

/// Most reads under way in a ring.
const ENTRIES: usize = 64;
/// Rings kept for the next reader. Each has one descriptor.
const KEPT: usize = 8;

/// A read of one place.
pub(in crate::vfs) struct RingRead<'a> {
    pub(in crate::vfs) file: Arc<OwnedFd>,
    pub(in crate::vfs) buffer: &'a mut [u8],
    pub(in crate::vfs) offset: u64,
    /// Whether the buffer is full. Otherwise the place is to be read by itself, which tells why.
    pub(in crate::vfs) is_done: bool,
}

/// The rings that nobody uses.
struct Pool {
    /// The process that made them ([`forks`]).
    forks: u64,
    rings: Vec<IoUring>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { forks: 0, rings: Vec::new() });
/// Set where the kernel or a sandbox refuses rings.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Fills the buffers of `reads` at the same time, where the kernel can.
pub(in crate::vfs) fn read(reads: &mut [RingRead<'_>]) {
    for chunk in reads.chunks_mut(ENTRIES) {
        match take() {
            Some(mut ring) => {
                if read_chunk(&mut ring, chunk) {
                    give_back(ring);
                }
            }
            None => chunk.iter().for_each(announce),
        }
    }
}

/// Returns a ring of this process; `None` if there can be none, or none now.
fn take() -> Option<IoUring> {
    if REFUSED.load(Ordering::Relaxed) || cfg!(miri) {
        return None;
    }
    let forks = forks();
    {
        let mut pool = lock(&POOL);
        if pool.forks != forks {
            // They are the parent's.
            mem::take(&mut pool.rings).into_iter().for_each(mem::forget);
            pool.forks = forks;
        }
        if let Some(ring) = pool.rings.pop() {
            return Some(ring);
        }
    }
    match IoUring::new(ENTRIES as u32) {
        Ok(ring) => Some(ring),
        Err(error) => {
            // Descriptors and memory can be had again later.
            let refused = [libc::ENOSYS, libc::EPERM, libc::EACCES, libc::EINVAL];
            if error.raw_os_error().is_some_and(|errno| refused.contains(&errno)) {
                REFUSED.store(true, Ordering::Relaxed);
            }
            None
        }
    }
}

/// Keeps a ring without reads under way for the next reader.
fn give_back(ring: IoUring) {
    let mut pool = lock(&POOL);
    if pool.forks == forks() && pool.rings.len() < KEPT {
        pool.rings.push(ring);
    }
}

/// Reads a chunk that fits into the ring. Returns false if the ring must not be used again.
fn read_chunk(ring: &mut IoUring, chunk: &mut [RingRead<'_>]) -> bool {
    let mut queued = 0;
    for (index, read) in chunk.iter_mut().enumerate() {
        let Ok(length) = u32::try_from(read.buffer.len()) else { continue };
        let file = types::Fd(read.file.as_raw_fd());
        let entry = opcode::Read::new(file, read.buffer.as_mut_ptr(), length).offset(read.offset);
        let entry = entry.build().user_data(index as u64);
        // SAFETY: the buffer is borrowed and the file held by `chunk` until this function returns,
        // and it returns only after the completion of every read that the kernel has taken.
        if unsafe { ring.submission().push(&entry) }.is_err() {
            break;
        }
        queued += 1;
    }
    let mut under_way = queued;
    let mut is_whole = true;
    while under_way > 0 {
        match ring.submit_and_wait(under_way) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                // What the kernel has not taken yet it never takes: the ring is dropped.
                under_way -= ring.submission().len();
                is_whole = false;
                reap(ring, chunk, &mut under_way);
                while under_way > 0 {
                    std::thread::yield_now();
                    // SAFETY: nothing is submitted, so no argument points anywhere.
                    let waited = unsafe { ring.submitter().enter::<()>(0, 1, WAIT, None) };
                    let _tried_again = waited;
                    reap(ring, chunk, &mut under_way);
                }
                break;
            }
        }
        reap(ring, chunk, &mut under_way);
    }
    is_whole
}

/// `IORING_ENTER_GETEVENTS`: waits for completions (io_uring_enter(2)).
const WAIT: u32 = 1;

/// Takes the completions that are there.
fn reap(ring: &mut IoUring, chunk: &mut [RingRead<'_>], under_way: &mut usize) {
    for completion in ring.completion() {
        *under_way = under_way.saturating_sub(1);
        let index = usize::try_from(completion.user_data()).unwrap_or(usize::MAX);
        if let (Some(read), Ok(bytes)) =
            (chunk.get_mut(index), usize::try_from(completion.result()))
        {
            read.is_done = bytes == read.buffer.len();
        }
    }
}

/// Lets the kernel begin to read into the page cache. It is a hint.
fn announce(read: &RingRead<'_>) {
    let length = std::num::NonZeroU64::new(read.buffer.len() as u64);
    let _hint = rustix::fs::fadvise(&read.file, read.offset, length, Advice::WillNeed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> Arc<OwnedFd> {
        use std::io::Write;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Arc::new(file.into())
    }

    #[test]
    fn more_reads_than_a_ring_has_are_all_done_and_short_ones_are_left() {
        let content: Vec<u8> = (0..200_u32).flat_map(u32::to_le_bytes).collect();
        let file = file(&content);
        let mut buffers = vec![[0xFF_u8; 4]; 201];
        let mut reads: Vec<RingRead<'_>> = buffers
            .iter_mut()
            .enumerate()
            .map(|(nth, buffer)| RingRead {
                file: file.clone(),
                buffer,
                offset: nth as u64 * 4,
                is_done: false,
            })
            .collect();
        read(&mut reads);
        let done = reads.iter().filter(|read| read.is_done).count();
        // A sandbox may have no rings.
        if take().map(give_back).is_none() {
            assert_eq!(done, 0);
            return;
        }
        assert_eq!(done, 200);
        assert!(!reads.last().unwrap().is_done, "behind the end");
        drop(reads);
        assert_eq!(buffers[..200].concat(), content);
        assert!(lock(&POOL).rings.len() <= KEPT);
    }

    #[test]
    fn a_read_that_fails_is_left_and_harms_no_other() {
        let readable = file(b"0123");
        let named = tempfile::NamedTempFile::new().unwrap();
        let unreadable = std::fs::OpenOptions::new().write(true).open(named.path()).unwrap();
        let unreadable: Arc<OwnedFd> = Arc::new(unreadable.into());
        let (mut first, mut second) = ([0; 4], [0; 4]);
        let mut reads = [
            RingRead { file: unreadable, buffer: &mut first, offset: 0, is_done: false },
            RingRead { file: readable, buffer: &mut second, offset: 0, is_done: false },
        ];
        read(&mut reads);
        assert!(!reads[0].is_done);
        assert_eq!(reads[1].is_done, take().map(give_back).is_some());
    }
}
