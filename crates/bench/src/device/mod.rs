//! A device of limited bandwidth in front of any disk. Reads and writes each move at most this many
//! bytes a second, in real time. It needs neither root nor a file system of its own.
//!
//! 1. A call reaches the disk at once ([`Device::read`], [`Device::write`]).
//! 2. Its bytes then enter the queue of their direction ([`Queue::reserve`]), which says when a
//!    device of this bandwidth has moved them.
//! 3. A read and a direct write return at that time. A buffered write returns at once, as from a
//!    page cache, unless [`BUFFERED_BYTES_MAX`] are queued. A sync returns when all writes to its
//!    file have been moved ([`Device::sync`]).
//!
//! The two directions do not share a budget: Linux limits a device in the same way
//! (`blkio.throttle`, `io.max`). A disk that is slower than the limit stays as slow as it is.
//!
//! The limit may stand in a file. Then it can be changed while the load runs ([`Device::look`]).

mod limited;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use limited::LimitedVfs;

use crate::units::parse_count;

/// The unused time that an idle queue may save: a burst of this length passes at once. It makes up
/// for threads that sleep longer than they asked to.
const SAVED_NS: u64 = 5_000_000;

/// The shortest sleep. A shorter wait is added to that of the next call of the same direction.
const SHORTEST_SLEEP_NS: u64 = 50_000;

/// How often the file with the limit is read again.
const LOOK_NS: u64 = 100_000_000;

/// Bytes that may be queued before a buffered write waits, as for dirty pages.
const BUFFERED_BYTES_MAX: u64 = 64 << 20;

/// One direction of a device. Time is an argument: nothing here reads a clock.
#[derive(Debug)]
struct Queue {
    bytes_per_second: u64,
    /// The time at which all reserved bytes have been transferred.
    free_at_ns: u64,
}

impl Queue {
    fn new(bytes_per_second: u64) -> Queue {
        Queue { bytes_per_second: bytes_per_second.max(1), free_at_ns: 0 }
    }

    /// Queues the bytes of a call that began at `begun_ns`. Returns when they have been
    /// transferred.
    fn reserve(&mut self, begun_ns: u64, bytes: u64) -> u64 {
        let begin = self.free_at_ns.max(begun_ns.saturating_sub(SAVED_NS));
        self.free_at_ns = begin.saturating_add(self.ns_of(bytes));
        self.free_at_ns
    }

    /// Returns how long the device takes for this many bytes.
    fn ns_of(&self, bytes: u64) -> u64 {
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// The bytes that have passed a device.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) syncs: u64,
}

/// A limited device. Its clock starts when it is made.
#[derive(Debug)]
pub(crate) struct Device {
    begun: Instant,
    reads: Mutex<Queue>,
    writes: Mutex<Queue>,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    syncs: AtomicU64,
    /// The file with the limit, if there is one, and when it was last read.
    file: Option<PathBuf>,
    looked_ns: AtomicU64,
}

/// The time on the device's clock at which the last write to a file has been transferred.
#[derive(Debug, Default)]
pub(crate) struct WrittenAt(AtomicU64);

impl WrittenAt {
    /// Resets the time for another file in the same place.
    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Device {
    pub(crate) fn new(bytes_per_second: u64) -> Device {
        Device {
            begun: Instant::now(),
            reads: Mutex::new(Queue::new(bytes_per_second)),
            writes: Mutex::new(Queue::new(bytes_per_second)),
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            file: None,
            looked_ns: AtomicU64::new(0),
        }
    }

    /// A device whose limit is that in `file` whenever the file has one.
    pub(crate) fn following(bytes_per_second: u64, file: Option<PathBuf>) -> Device {
        Device { file, ..Device::new(bytes_per_second) }
    }

    /// Reads the limit again if that is due. A file that has no number, because it is being
    /// written or is gone, changes nothing.
    fn look(&self, now_ns: u64) {
        let Some(file) = &self.file else { return };
        let looked_ns = self.looked_ns.load(Ordering::Relaxed);
        let due = now_ns.saturating_sub(looked_ns) >= LOOK_NS;
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        if !due || self.looked_ns.compare_exchange(looked_ns, now_ns, set, read).is_err() {
            return;
        }
        let Ok(text) = std::fs::read_to_string(file) else { return };
        if let Ok(limit) = parse_count(&text) {
            for queue in [&self.reads, &self.writes] {
                lock(queue).bytes_per_second = limit.max(1);
            }
        }
    }

    /// Returns the time on the device's clock. A call asks for it before it goes to the disk.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Ends a read of `bytes` that began at `begun_ns`.
    pub(crate) fn read(&self, begun_ns: u64, bytes: usize) {
        self.look(begun_ns);
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let done = reserve(&self.reads, begun_ns, bytes as u64);
        self.wait_until(done);
    }

    /// Ends a write of `bytes` to `file` that began at `begun_ns`.
    pub(crate) fn write(&self, begun_ns: u64, bytes: usize, direct: bool, file: &WrittenAt) {
        self.look(begun_ns);
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let done = reserve(&self.writes, begun_ns, bytes as u64);
        file.0.fetch_max(done, Ordering::Relaxed);
        let cached_ns = if direct { 0 } else { lock(&self.writes).ns_of(BUFFERED_BYTES_MAX) };
        self.wait_until(done.saturating_sub(cached_ns));
    }

    /// Ends a wait for writeback of `file`, after which `behind` of its bytes may be under way.
    pub(crate) fn written_back(&self, file: &WrittenAt, behind: u64) {
        self.wait_until(self.written_back_at(file, behind));
    }

    /// Returns when all but the last `behind` bytes of `file` have been transferred.
    fn written_back_at(&self, file: &WrittenAt, behind: u64) -> u64 {
        file.0.load(Ordering::Relaxed).saturating_sub(lock(&self.writes).ns_of(behind))
    }

    /// Ends a sync of `file`.
    pub(crate) fn sync(&self, file: &WrittenAt) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.wait_until(file.0.load(Ordering::Relaxed));
    }

    /// Returns the bytes that have passed so far.
    #[cfg(test)]
    pub(crate) fn passed(&self) -> Passed {
        Passed {
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            syncs: self.syncs.load(Ordering::Relaxed),
        }
    }

    fn wait_until(&self, ns: u64) {
        let left = ns.saturating_sub(self.now_ns());
        if left >= SHORTEST_SLEEP_NS {
            std::thread::sleep(Duration::from_nanos(left));
        }
    }
}

fn reserve(queue: &Mutex<Queue>, begun_ns: u64, bytes: u64) -> u64 {
    lock(queue).reserve(begun_ns, bytes)
}

fn lock(queue: &Mutex<Queue>) -> std::sync::MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
