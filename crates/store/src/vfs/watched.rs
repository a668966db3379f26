//! A file system for check and repair. It records every error of the environment, so that a caller
//! that ignores the error cannot mistake it for damage. It also remembers the files that were
//! created, so that a failed repair can remove them. A caller may be asked before each read and
//! write whether to go on.
//!
//! What must stay true: each error that [`refused_by_system`] recognises is recorded, whatever call
//! returns it. [`WatchedVfs::take_back`] removes only files that were created here, and none after
//! the rename that publishes the result.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::{IoClass, OpenOptions, Vfs, VfsFile};
use crate::base::error::{Error, failed_in_device, refused_by_system};
use crate::base::sync::leaf::lock;

/// Most errors that are recorded. Each is of another file or another kind.
const ERRORS_MAX: usize = 10_000;
/// The unit in which a damaged part of a file is read.
const PAGE_BYTES: usize = 4096;

/// Returns whether the caller wants to stop. It is given the number of bytes that were read so far.
pub type WantsToStop = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// A file system that records what cannot be read.
#[derive(Clone, Debug)]
pub struct WatchedVfs {
    inner: Arc<dyn Vfs>,
    watch: Arc<Watch>,
}

/// What was recorded, shared by all clones and files.
#[derive(Default)]
struct Watch {
    state: Mutex<WatchState>,
    /// Whether pages that the device cannot read are replaced by zeros, which no checksum accepts.
    give_up_unreadable: bool,
    wants_to_stop: Option<WantsToStop>,
    /// Whether a call failed because the caller wanted to stop.
    stopped: AtomicBool,
    bytes_read: AtomicU64,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("state", &self.state).finish_non_exhaustive()
    }
}

/// What was recorded, behind one lock.
#[derive(Debug, Default)]
struct WatchState {
    errors: Vec<Error>,
    /// The pages that were replaced by zeros, as (file, offset).
    given_up: Vec<(PathBuf, u64)>,
    /// What was created, oldest first.
    made: Vec<Made>,
    /// Whether a rename has published the result.
    counts: bool,
}

/// Something that was created.
#[derive(Debug)]
enum Made {
    File(PathBuf),
    Directory(PathBuf),
}

impl WatchedVfs {
    /// Records the errors of `inner`.
    pub fn new(inner: Arc<dyn Vfs>) -> WatchedVfs {
        WatchedVfs { inner, watch: Arc::default() }
    }

    /// Records the errors of `inner`. With `give_up_unreadable`, pages that the device cannot read
    /// are replaced by zeros. Before each read and write `wants_to_stop` is asked: once it returns
    /// true, this and all later calls fail, unless a rename has published the result.
    pub fn with(
        inner: Arc<dyn Vfs>,
        give_up_unreadable: bool,
        wants_to_stop: Option<WantsToStop>,
    ) -> WatchedVfs {
        let watch = Watch { give_up_unreadable, wants_to_stop, ..Watch::default() };
        WatchedVfs { inner, watch: Arc::new(watch) }
    }

    /// Returns true if calls failed because the caller wanted to stop.
    pub fn is_stopped(&self) -> bool {
        self.watch.stopped.load(Ordering::Relaxed)
    }

    /// Returns the first error of the environment, if there was one.
    pub fn first_error(&self) -> Option<Error> {
        lock(&self.watch.state).errors.first().cloned()
    }

    /// Returns every error of the environment so far, one for each file and kind.
    pub fn errors(&self) -> Vec<Error> {
        lock(&self.watch.state).errors.clone()
    }

    /// Returns the files with pages that were replaced by zeros, each with the number of pages and
    /// the first offset.
    pub fn given_up(&self) -> Vec<(PathBuf, u64, u64)> {
        let mut pages = lock(&self.watch.state).given_up.clone();
        pages.sort_unstable();
        pages.dedup();
        let mut files: Vec<(PathBuf, u64, u64)> = Vec::new();
        for (path, offset) in pages {
            match files.last_mut() {
                Some((of, count, _)) if *of == path => *count += 1,
                _ => files.push((path, 1, offset)),
            }
        }
        files
    }

    /// Removes the files and directories that were created, unless a rename has published them.
    /// What cannot be removed stays, and nothing names it.
    pub fn take_back(&self) {
        let made = {
            let mut state = lock(&self.watch.state);
            if state.counts { Vec::new() } else { std::mem::take(&mut state.made) }
        };
        for made in made.into_iter().rev() {
            let _stays = match made {
                Made::File(path) => self.inner.remove(&path),
                Made::Directory(path) => self.inner.remove_dir(&path),
            };
        }
    }

    /// Remembers something that was created.
    fn made(&self, made: Made) {
        lock(&self.watch.state).made.push(made);
    }

    fn note<T>(
        &self,
        operation: &'static str,
        path: &Path,
        result: io::Result<T>,
    ) -> io::Result<T> {
        self.watch.note(operation, path, result)
    }
}

impl Watch {
    /// Fails if the caller wants to stop and nothing is published yet.
    fn go_on(&self) -> io::Result<()> {
        let Some(wants_to_stop) = &self.wants_to_stop else { return Ok(()) };
        let stops = self.stopped.load(Ordering::Relaxed)
            || wants_to_stop(self.bytes_read.load(Ordering::Relaxed));
        if !stops || lock(&self.state).counts {
            return Ok(());
        }
        self.stopped.store(true, Ordering::Relaxed);
        Err(io::Error::other("the caller ended it"))
    }

    /// Records the error of a call, unless the same error of the same file is recorded.
    fn note<T>(
        &self,
        operation: &'static str,
        path: &Path,
        result: io::Result<T>,
    ) -> io::Result<T> {
        let error = match result {
            Err(error) if refused_by_system(&error) => error,
            other => return other,
        };
        let mut state = lock(&self.state);
        let same = |noted: &Error| match noted {
            Error::Io { path: of, source, .. } => {
                of == path
                    && source.kind() == error.kind()
                    && source.raw_os_error() == error.raw_os_error()
            }
            _ => false,
        };
        if state.errors.len() < ERRORS_MAX && !state.errors.iter().any(same) {
            let copy = match error.raw_os_error() {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => io::Error::new(error.kind(), error.to_string()),
            };
            state.errors.push(Error::io(operation, path, copy));
        }
        Err(error)
    }
}

/// A file whose errors are recorded.
#[derive(Debug)]
struct WatchedFile {
    inner: Arc<dyn VfsFile>,
    watch: Arc<Watch>,
    path: PathBuf,
}

impl WatchedFile {
    fn note<T>(&self, operation: &'static str, result: io::Result<T>) -> io::Result<T> {
        self.watch.note(operation, &self.path, result)
    }

    /// Reads page by page. Pages that the device cannot read become zeros.
    fn read_pages(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        let length = self.inner.len()?;
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let in_page = PAGE_BYTES - (at % PAGE_BYTES as u64) as usize;
            let in_file = usize::try_from(length.saturating_sub(at)).unwrap_or(usize::MAX);
            let wanted = in_page.min(buffer.len() - done).min(in_file);
            let Some(part) = buffer.get_mut(done..done + wanted).filter(|part| !part.is_empty())
            else {
                break;
            };
            match self.inner.read_at(part, at, class) {
                Ok(got) => {
                    done += got;
                    if got < wanted {
                        break;
                    }
                }
                Err(error) if failed_in_device(&error) => {
                    part.fill(0);
                    let page = at - at % PAGE_BYTES as u64;
                    lock(&self.watch.state).given_up.push((self.path.clone(), page));
                    done += wanted;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

impl VfsFile for WatchedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        let going = self.watch.go_on();
        let mut read = going.and_then(|()| self.inner.read_at(buffer, offset, class));
        if self.watch.give_up_unreadable && read.as_ref().is_err_and(failed_in_device) {
            read = self.read_pages(buffer, offset, class);
        }
        if let Ok(got) = read {
            self.watch.bytes_read.fetch_add(got as u64, Ordering::Relaxed);
        }
        self.note("read", read)
    }

    fn len(&self) -> io::Result<u64> {
        self.note("read the length of", self.inner.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        self.note("read the size of", self.inner.allocated())
    }

    fn links(&self) -> io::Result<u64> {
        self.note("count the names of", self.inner.links())
    }

    crate::pass_on! {
        inner: sync_data start_writeback finish_writeback punch_hole preallocate truncate modified
            alignment poison
    }

    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        self.watch.go_on()?;
        self.inner.write_at(bytes, offset, class)
    }
}

impl Vfs for WatchedVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        let operation = if options.create_new { "create" } else { "open" };
        let inner = self.note(operation, path, self.inner.open(path, options))?;
        if options.create_new {
            self.made(Made::File(path.to_owned()));
        }
        Ok(Arc::new(WatchedFile { inner, watch: self.watch.clone(), path: path.to_owned() }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.note("list", directory, self.inner.list(directory))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.note("look for", path, self.inner.exists(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)?;
        lock(&self.watch.state).counts = true;
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.hard_link(from, to)?;
        self.made(Made::File(to.to_owned()));
        Ok(())
    }

    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.clone_file(from, to)?;
        self.made(Made::File(to.to_owned()));
        Ok(())
    }

    fn create_dir_all(&self, directory: &Path) -> io::Result<()> {
        let known = self.note("look for", directory, self.inner.exists(directory))?;
        self.inner.create_dir_all(directory)?;
        if !known {
            self.made(Made::Directory(directory.to_owned()));
        }
        Ok(())
    }

    crate::pass_on! {
        inner: remove remove_dir sync_dir lock lock_holder mark free_space total_space
            place_of open_files_limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{Fault, FaultRule, FaultVfs, MemVfs, VfsOperation};

    fn faulty() -> (FaultVfs, Arc<dyn Vfs>) {
        let mem: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        (FaultVfs::new(mem.clone()), mem)
    }

    #[test]
    fn errors_of_the_system_are_recorded_and_a_missing_file_is_not() {
        let (faults, mem) = faulty();
        let path = Path::new("000001.sat");
        mem.open(path, OpenOptions::CREATE).unwrap();
        let watched = WatchedVfs::new(Arc::new(faults.clone()));
        assert!(watched.open(Path::new("000002.sat"), OpenOptions::READ).is_err());
        let file = watched.open(path, OpenOptions::READ).unwrap();
        assert!(watched.first_error().is_none());
        faults.add(FaultRule::new(Fault::Errno(libc::EMFILE)).on(VfsOperation::Open));
        faults.add(FaultRule::new(Fault::Io).on(VfsOperation::Read));
        for _ in 0..3 {
            assert!(watched.open(path, OpenOptions::READ).is_err());
            assert!(file.read_at(&mut [0; 8], 0, IoClass::Client).is_err());
        }
        let errors = watched.errors();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors.iter().all(Error::is_environment), "{errors:?}");
    }

    #[test]
    fn created_files_are_removed_unless_a_rename_has_published_them() {
        for rename in [false, true] {
            let (_, mem) = faulty();
            let [old, new, link] = ["old", "new", "lost/old"].map(Path::new);
            mem.open(old, OpenOptions::CREATE).unwrap();
            let watched = WatchedVfs::new(mem.clone());
            watched.create_dir_all(Path::new("lost")).unwrap();
            watched.open(new, OpenOptions::CREATE).unwrap();
            watched.hard_link(old, link).unwrap();
            if rename {
                watched.rename(new, Path::new("newer")).unwrap();
            }
            watched.take_back();
            assert!(mem.exists(old).unwrap() && !mem.exists(new).unwrap());
            assert_eq!(mem.exists(link).unwrap(), rename);
            assert_eq!(mem.exists(Path::new("lost")).unwrap(), rename);
        }
    }

    #[test]
    fn unreadable_pages_become_zeros_on_request() {
        let (faults, mem) = faulty();
        let path = Path::new("000001.sat");
        let written = mem.open(path, OpenOptions::CREATE).unwrap();
        written.write_at(&[7; 3 * PAGE_BYTES - 100], 0, IoClass::Client).unwrap();
        let watched = WatchedVfs::with(Arc::new(faults.clone()), true, None);
        let file = watched.open(path, OpenOptions::READ).unwrap();
        // Fails the read of everything, and the second of the reads of single pages.
        faults.add(FaultRule::new(Fault::Io).on(VfsOperation::Read).nth(1));
        faults.add(FaultRule::new(Fault::Io).on(VfsOperation::Read).nth(2));
        let mut bytes = vec![0xFF; 4 * PAGE_BYTES];
        let got = file.read_at(&mut bytes, 0, IoClass::Client).unwrap();
        assert_eq!(got, 3 * PAGE_BYTES - 100);
        assert!(bytes[..PAGE_BYTES].iter().all(|byte| *byte == 7));
        assert!(bytes[PAGE_BYTES..2 * PAGE_BYTES].iter().all(|byte| *byte == 0));
        assert!(bytes[2 * PAGE_BYTES..got].iter().all(|byte| *byte == 7));
        assert_eq!(watched.given_up(), [(path.to_owned(), 1, PAGE_BYTES as u64)]);
        assert!(watched.first_error().is_none());
        // Running out of descriptors is not a failure of the device.
        faults.clear();
        faults.add(FaultRule::new(Fault::Errno(libc::EMFILE)).on(VfsOperation::Read));
        assert!(file.read_at(&mut bytes, 0, IoClass::Client).is_err());
        assert!(watched.first_error().is_some());
    }

    #[test]
    fn a_caller_who_wants_to_stop_ends_reads_and_writes_until_a_rename_has_published_them() {
        for rename in [false, true] {
            let (_, mem) = faulty();
            let path = Path::new("000001.sat");
            let wanted = Arc::new(AtomicBool::new(false));
            let (asked, seen) = (wanted.clone(), Arc::new(AtomicU64::new(0)));
            let last = seen.clone();
            let watched = WatchedVfs::with(
                mem.clone(),
                false,
                Some(Arc::new(move |bytes| {
                    last.store(bytes, Ordering::Relaxed);
                    asked.load(Ordering::Relaxed)
                })),
            );
            let file = watched.open(path, OpenOptions::CREATE).unwrap();
            file.write_at(&[7; 100], 0, IoClass::Client).unwrap();
            assert_eq!(file.read_at(&mut [0; 60], 0, IoClass::Client).unwrap(), 60);
            file.write_at(&[7; 100], 0, IoClass::Client).unwrap();
            assert_eq!(seen.load(Ordering::Relaxed), 60);
            if rename {
                watched.rename(path, Path::new("000002.sat")).unwrap();
            }
            wanted.store(true, Ordering::Relaxed);
            let write = file.write_at(&[8; 100], 0, IoClass::Client);
            // It stays so, even if the caller changes its mind.
            wanted.store(rename, Ordering::Relaxed);
            let read = file.read_at(&mut [0; 60], 0, IoClass::Client);
            assert_eq!((read.is_ok(), write.is_ok()), (rename, rename));
            assert_eq!(watched.is_stopped(), !rename);
            assert_eq!(watched.first_error().is_some(), !rename);
        }
    }
}
