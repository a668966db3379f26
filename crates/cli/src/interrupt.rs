//! Ctrl-C and the end that a supervisor asks for: long work that can stop in good order looks at a
//! flag. A second signal ends the program at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::INTERRUPTED;

/// How long a read that waits for text goes without a look at the flag: a signal may come just
/// before the wait begins.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A flag that is set when the user, or who runs the program, wants it to stop.
pub(crate) fn watch() -> io::Result<Arc<AtomicBool>> {
    let wanted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag down, and raises it.
        flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&wanted))?;
        flag::register(signal, Arc::clone(&wanted))?;
    }
    Ok(wanted)
}

/// Opens a file or pipe for [`Interruptible`]. A pipe that nobody writes to opens at once: the wait
/// for a writer is a wait for text.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// A file or pipe whose reading ends with an error once the flag is set.
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
