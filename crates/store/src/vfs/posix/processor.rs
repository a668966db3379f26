//! Measures how long a thread waited for a processor during a request. A request ends only when its
//! thread runs again. On a busy machine that wait is most of the latency, and says nothing about
//! the device.
//!
//! What must stay true: short requests cost no system call, except once in [`KNOWN_FOR`] per
//! thread.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use crate::base::clock;

/// Requests shorter than this have not waited for long.
const LONG_NS: u64 = 250_000;
/// Longest age of a thread's last reading when one of its requests is examined, while it makes
/// requests.
const KNOWN_FOR: Duration = Duration::from_millis(10);
/// Enough for the three numbers of the kernel's line.
const TEXT_BYTES: usize = 64;

/// The kernel's scheduler statistics of one thread.
struct Thread {
    /// `None` if the kernel does not provide them.
    stat: Option<OwnedFd>,
    /// Nanoseconds that the thread has spent on a run queue, as of the last reading.
    waited_ns: u64,
    at: Instant,
}

thread_local! {
    static THREAD: RefCell<Option<Thread>> = const { RefCell::new(None) };
}

/// Returns about how much of the `took_ns` of a request that began at `started` this thread has
/// waited for a processor. At most all of it.
pub(crate) fn waited_ns(started: Instant, took_ns: u64) -> u64 {
    if clock::is_virtual() {
        return 0;
    }
    let look = |thread: &RefCell<Option<Thread>>| {
        let mut thread = thread.borrow_mut();
        let Some(thread) = &mut *thread else {
            *thread = Some(Thread::new(started));
            return 0;
        };
        thread.waited_for(started, took_ns)
    };
    // A thread that is ending makes no more requests worth examining.
    THREAD.try_with(look).unwrap_or(0)
}

impl Thread {
    fn new(at: Instant) -> Thread {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let stat = rustix::fs::open("/proc/thread-self/schedstat", flags, Mode::empty()).ok();
        let mut thread = Thread { stat, waited_ns: 0, at };
        thread.waited_ns = thread.read().unwrap_or(0);
        thread
    }

    fn waited_for(&mut self, started: Instant, took_ns: u64) -> u64 {
        let long = took_ns >= LONG_NS;
        if !long && started.saturating_duration_since(self.at) < KNOWN_FOR {
            return 0;
        }
        let Some(waited_ns) = self.read() else { return 0 };
        let since = waited_ns.saturating_sub(self.waited_ns);
        (self.waited_ns, self.at) = (waited_ns, started);
        if long { since.min(took_ns) } else { 0 }
    }

    /// Reads the second number of the kernel's line: nanoseconds on a run queue.
    fn read(&self) -> Option<u64> {
        let mut text = [0; TEXT_BYTES];
        let length = rustix::io::pread(self.stat.as_ref()?, &mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_waits_longer_than_it_took_and_short_ones_do_not_count() {
        let now = Instant::now();
        let mut thread = Thread::new(now);
        assert!(thread.read().is_some(), "the kernel tells");
        // Pretends that the thread has waited for ever.
        let forget = |thread: &mut Thread| thread.waited_ns = 0;
        forget(&mut thread);
        assert_eq!(thread.waited_for(now, LONG_NS - 1), 0);
        assert_eq!(thread.waited_ns, 0, "not looked at");
        let waits = thread.read().unwrap();
        assert!(thread.waited_for(now, u64::MAX) >= waits);
        forget(&mut thread);
        assert!(thread.waited_for(now, LONG_NS) <= LONG_NS);
        forget(&mut thread);
        assert_eq!(thread.waited_for(now + KNOWN_FOR, 1), 0, "known anew, and not counted");
        assert!(thread.waited_ns >= waits);
    }

    #[test]
    fn without_kernel_statistics_no_wait_is_assumed() {
        let mut thread = Thread { stat: None, waited_ns: 0, at: Instant::now() };
        assert_eq!(thread.waited_for(Instant::now(), u64::MAX), 0);
    }
}
