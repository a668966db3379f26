//! Ctrl-C and SIGTERM. A signal sets a flag at which long work looks to stop in good order. A
//! second signal ends the program at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::{Failure, INTERRUPTED};

/// The interval at which a waiting read checks the flag, because a signal may arrive just before
/// the wait begins.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The interval at which [`watched`] checks the flag.
const PARK: Duration = Duration::from_millis(50);

/// How long [`ending`] waits for work to end by itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns a flag that is set when the user or a supervisor wants the program to stop.
pub(crate) fn watch() -> io::Result<Arc<AtomicBool>> {
    let wanted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the first signal finds the flag unset and sets it.
        flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&wanted))?;
        flag::register(signal, Arc::clone(&wanted))?;
    }
    Ok(wanted)
}

/// Runs `work`, and calls `stop` on another thread once `wanted` is set. Returns what the work
/// returned, and whether it was stopped.
pub(crate) fn stopping<T>(
    wanted: &AtomicBool,
    stop: impl FnOnce() + Send,
    work: impl FnOnce() -> T,
) -> (T, bool) {
    let worked = watched(wanted, Duration::ZERO, stop, work);
    (worked, wanted.load(Ordering::Relaxed))
}

/// Runs `work`, which looks at `wanted` itself. If it has not ended [`PATIENCE`] after that was
/// set, because the reader of its output takes nothing, the program ends here and says what `late`
/// says. Only for work that leaves nothing behind.
pub(crate) fn ending<T>(
    wanted: &AtomicBool,
    late: impl FnOnce() -> Failure + Send,
    json: bool,
    work: impl FnOnce() -> T,
) -> T {
    let end = || {
        late().report(json);
        std::process::exit(INTERRUPTED.into());
    };
    watched(wanted, PATIENCE, end, work)
}

/// Runs `work`, and calls `act` on another thread if that has not ended `patience` after `wanted`
/// was set.
fn watched<T>(
    wanted: &AtomicBool,
    patience: Duration,
    act: impl FnOnce() + Send,
    work: impl FnOnce() -> T,
) -> T {
    let done = AtomicBool::new(false);
    let done = &done;
    std::thread::scope(|scope| {
        let watcher = scope.spawn(move || {
            let mut left = patience;
            while !done.load(Ordering::Acquire) {
                if wanted.load(Ordering::Relaxed) {
                    if left.is_zero() {
                        act();
                        return;
                    }
                    left = left.saturating_sub(PARK);
                }
                std::thread::park_timeout(PARK);
            }
        });
        let worked = work();
        done.store(true, Ordering::Release);
        watcher.thread().unpark();
        worked
    })
}

/// Opens a file or pipe for [`Interruptible`]. A pipe without a writer opens at once; the reader
/// then waits for text.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// A file or pipe whose reads fail once the flag is set.
pub(crate) struct Interruptible {
    file: File,
    wanted: Arc<AtomicBool>,
}

impl Interruptible {
    pub(crate) fn new(file: File, wanted: Arc<AtomicBool>) -> Interruptible {
        Interruptible { file, wanted }
    }
}

impl Read for Interruptible {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.wanted.load(Ordering::Relaxed) {
                return Err(io::Error::other("interrupted"));
            }
            let mut waiting = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut waiting, Some(&LOOK_EVERY)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => match self.file.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                },
                Err(error) => return Err(error.into()),
            }
        }
    }
}
