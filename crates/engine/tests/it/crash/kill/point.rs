//! A file system that kills its own process at the n-th call of an operation on a class of files:
//! before the call, after it, or when a write is half done.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sateen::vfs::{
    DIRECT_IO_ALIGNMENT, IoClass, OpenOptions, PosixVfs, Vfs, VfsFile, VfsOperation, path_class,
};

use crate::support::common::Random;
use sateen::pass_on;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Before,
    /// Of a write, when half of the bytes are there; of anything else as `Before`.
    Within,
    After,
}

/// Where a process is to die.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    operation: VfsOperation,
    class: String,
    /// From 1.
    nth: u64,
    moment: Moment,
}

/// What is worth dying at: every change of a name or of bytes. For directories the class is not
/// looked at.
const PLACES: &[(VfsOperation, &str)] = &[
    (VfsOperation::Rename, "CURRENT"),
    (VfsOperation::Rename, "OPTIONS"),
    (VfsOperation::Rename, "DEVICE"),
    (VfsOperation::Write, "tmp"),
    (VfsOperation::Sync, "tmp"),
    (VfsOperation::SyncDir, ""),
    (VfsOperation::Create, "MANIFEST"),
    (VfsOperation::Write, "MANIFEST"),
    (VfsOperation::Sync, "MANIFEST"),
    (VfsOperation::Remove, "MANIFEST"),
    (VfsOperation::Create, "sat"),
    (VfsOperation::Write, "sat"),
    (VfsOperation::Sync, "sat"),
    (VfsOperation::Remove, "sat"),
    (VfsOperation::PunchHole, "sat"),
    (VfsOperation::HardLink, "sat"),
    (VfsOperation::HardLink, "wal"),
    (VfsOperation::Create, "wal"),
    (VfsOperation::Write, "wal"),
    (VfsOperation::Sync, "wal"),
    (VfsOperation::Remove, "wal"),
    (VfsOperation::Truncate, "wal"),
];

const OPERATIONS: &[VfsOperation] = &[
    VfsOperation::Create,
    VfsOperation::Write,
    VfsOperation::Sync,
    VfsOperation::PunchHole,
    VfsOperation::Truncate,
    VfsOperation::Rename,
    VfsOperation::Remove,
    VfsOperation::HardLink,
    VfsOperation::SyncDir,
];

impl Point {
    /// The place by the number, so that all have their turn; the rest by chance.
    pub(crate) fn choose(number: u64, random: &mut Random) -> Point {
        let (operation, class) = PLACES[(number % PLACES.len() as u64) as usize];
        let moments = [Moment::Before, Moment::Within, Moment::After];
        let furthest = 1 << random.below(6);
        Point {
            operation,
            class: class.to_owned(),
            nth: 1 + random.below(furthest),
            moment: moments[random.below(3) as usize],
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?},{},{},{:?}", self.operation, self.class, self.nth, self.moment)
    }
}

impl FromStr for Point {
    type Err = String;
    fn from_str(text: &str) -> Result<Point, String> {
        let wrong = || format!("{text:?} is no point to be killed at");
        let words: Vec<_> = text.split(',').collect();
        let [operation, class, nth, moment] = words[..] else { return Err(wrong()) };
        let of_name = |one: &&VfsOperation| format!("{one:?}") == operation;
        let moment = [Moment::Before, Moment::Within, Moment::After]
            .into_iter()
            .find(|one| format!("{one:?}") == moment);
        Ok(Point {
            operation: *OPERATIONS.iter().find(of_name).ok_or_else(wrong)?,
            class: class.to_owned(),
            nth: nth.parse().map_err(|_| wrong())?,
            moment: moment.ok_or_else(wrong)?,
        })
    }
}

/// Nothing of the process runs any more after this.
fn die() -> ! {
    let own = rustix::process::getpid();
    let _sent = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

/// The operating system's files, up to the point.
#[derive(Debug)]
pub(crate) struct KillVfs {
    inner: PosixVfs,
    trap: Arc<Trap>,
}

#[derive(Debug)]
struct Trap {
    point: Option<Point>,
    passed: AtomicU64,
}

impl Trap {
    /// The moment of this call at which to die.
    fn at(&self, operation: VfsOperation, path: &Path) -> Option<Moment> {
        let point = self.point.as_ref()?;
        let here = point.operation == operation
            && (point.class.is_empty() || point.class == path_class(path));
        if !here || self.passed.fetch_add(1, Ordering::Relaxed) + 1 != point.nth {
            return None;
        }
        Some(point.moment)
    }

    fn around<T>(&self, operation: VfsOperation, path: &Path, call: impl FnOnce() -> T) -> T {
        let moment = self.at(operation, path);
        if moment.is_some_and(|moment| moment != Moment::After) {
            die();
        }
        let done = call();
        if moment.is_some() {
            die();
        }
        done
    }
}

impl KillVfs {
    pub(crate) fn new(point: Option<Point>) -> KillVfs {
        let trap = Trap { point, passed: AtomicU64::new(0) };
        KillVfs { inner: PosixVfs::new(), trap: Arc::new(trap) }
    }
}

impl Vfs for KillVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        let open = || self.inner.open(path, options);
        let inner = match options.create_new {
            true => self.trap.around(VfsOperation::Create, path, open)?,
            false => open()?,
        };
        Ok(Arc::new(KillFile { inner, path: path.to_owned(), trap: self.trap.clone() }))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.trap.around(VfsOperation::Rename, to, || self.inner.rename(from, to))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.trap.around(VfsOperation::Remove, path, || self.inner.remove(path))
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.trap.around(VfsOperation::HardLink, from, || self.inner.hard_link(from, to))
    }
    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.trap.around(VfsOperation::SyncDir, directory, || self.inner.sync_dir(directory))
    }
    pass_on! { inner: clone_file list create_dir_all remove_dir exists lock free_space }
}

#[derive(Debug)]
struct KillFile {
    inner: Arc<dyn VfsFile>,
    path: PathBuf,
    trap: Arc<Trap>,
}

impl VfsFile for KillFile {
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        match self.trap.at(VfsOperation::Write, &self.path) {
            None => return self.inner.write_at(bytes, offset, class),
            Some(Moment::Before) => {}
            Some(Moment::Within) => {
                let unit = if self.inner.alignment() > 1 { DIRECT_IO_ALIGNMENT } else { 1 };
                let half = bytes.len() / 2 / unit * unit;
                let _half_of_it = self.inner.write_at(&bytes[..half], offset, class);
            }
            Some(Moment::After) => {
                let _all_of_it = self.inner.write_at(bytes, offset, class);
            }
        }
        die();
    }
    fn sync_data(&self, class: IoClass) -> io::Result<()> {
        self.trap.around(VfsOperation::Sync, &self.path, || self.inner.sync_data(class))
    }
    fn punch_hole(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        let punch = || self.inner.punch_hole(offset, length, class);
        self.trap.around(VfsOperation::PunchHole, &self.path, punch)
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.trap.around(VfsOperation::Truncate, &self.path, || self.inner.truncate(length))
    }
    pass_on! {
        inner: read_at start_writeback finish_writeback preallocate len allocated links modified
            alignment poison
    }
}
