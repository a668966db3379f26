//! A peer on a limited [`Device`]. Its C interface takes no file system, so its library's calls of
//! libc are redirected here: opening, reading, mapping, writing, syncing and closing. Syncs are
//! counted, and may be slowed down, also without a device. A file that is mapped costs a read of
//! its whole length.
//!
//! Invariants: files outside of the database's directory and all other code of the process see no
//! difference, and a call returns the result of libc, `errno` included. I/O of the library through
//! other calls costs nothing: that of its info log and of the file CURRENT (`fopen`).
#![expect(unsafe_code, reason = "functions in place of libc's")]

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libc::{off_t, size_t, ssize_t};

use super::Hook;
use crate::device::{Device, WrittenAt};
use crate::{Error, Result};

/// Descriptors at and above this number are not limited. A benchmark has a few hundred.
const DESCRIPTORS_MAX: usize = 1 << 16;

const OTHER: u8 = 0;
const BUFFERED: u8 = 1;
const DIRECT: u8 = 2;

/// A descriptor of the process.
#[derive(Debug, Default)]
struct Descriptor {
    /// `OTHER` for a file outside of the database.
    kind: AtomicU8,
    written: WrittenAt,
}

struct Limited {
    directory: PathBuf,
    device: Arc<Device>,
    descriptors: Vec<Descriptor>,
}

/// The limited database of the process. It is set before the first call is redirected.
static LIMITED: OnceLock<Limited> = OnceLock::new();

/// Syncs of files and directories by the library that succeeded.
static BARRIERS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of barriers since the library was loaded.
pub(in crate::peer) fn barriers() -> u64 {
    BARRIERS.load(Ordering::Relaxed)
}

/// Extra time of each barrier in nanoseconds.
static BARRIER_COST_NS: AtomicU64 = AtomicU64::new(0);

/// Makes each barrier take this much longer from now on.
///
/// # Errors
/// If the library does not sync with functions that are redirected.
pub(super) fn slow_down(cost_ns: u64, redirected: &BTreeMap<&'static str, usize>) -> Result<()> {
    if cost_ns > 0 && !SYNCS.iter().any(|(name, _)| redirected.contains_key(name)) {
        let text = "--barrier-cost: the library does not call fsync or fdatasync";
        return Err(Error::Failed(text.to_owned()));
    }
    BARRIER_COST_NS.store(cost_ns, Ordering::Relaxed);
    Ok(())
}

/// Puts the files below `directory` on `device`, as soon as the hooks are installed.
///
/// # Errors
/// If the process already has a limited library.
pub(super) fn begin(directory: &Path, device: Arc<Device>) -> Result<()> {
    let mut descriptors = Vec::new();
    descriptors.resize_with(DESCRIPTORS_MAX, Descriptor::default);
    let limited = Limited { directory: directory.to_owned(), device, descriptors };
    LIMITED
        .set(limited)
        .map_err(|_| Error::Failed("a process limits one database's device only".to_owned()))
}

/// Checks that the library reads and writes with functions that are limited.
///
/// # Errors
/// Names the functions that it does not call.
pub(super) fn check(redirected: &BTreeMap<&'static str, usize>) -> Result<()> {
    let has = |names: &[&str]| names.iter().any(|name| redirected.contains_key(name));
    let needed: [&[&str]; 3] =
        [&["open", "open64"], &["pread", "pread64"], &["write", "pwrite", "pwrite64"]];
    match needed.iter().find(|names| !has(names)) {
        None => Ok(()),
        Some(names) => Err(Error::Failed(format!(
            "the library's calls cannot be limited: it does not call {}",
            names.join(" or ")
        ))),
    }
}

/// The hooks that count barriers and slow them down.
pub(super) const SYNCS: [Hook; 2] =
    [("fsync", fsync as *const ()), ("fdatasync", fdatasync as *const ())];

/// The other hooks of a limited device.
pub(super) fn hooks() -> [Hook; 13] {
    [
        ("open", open as *const ()),
        ("open64", open as *const ()),
        ("openat", openat as *const ()),
        ("close", close as *const ()),
        ("read", read as *const ()),
        ("pread", pread as *const ()),
        ("pread64", pread as *const ()),
        ("write", write as *const ()),
        ("pwrite", pwrite as *const ()),
        ("pwrite64", pwrite as *const ()),
        ("pwritev", pwritev as *const ()),
        ("mmap", mmap as *const ()),
        ("mmap64", mmap as *const ()),
    ]
}

/// Returns the descriptor if it belongs to a file of the database.
fn of_database(fd: c_int) -> Option<(&'static Limited, &'static Descriptor, u8)> {
    let limited = LIMITED.get()?;
    let descriptor = limited.descriptors.get(usize::try_from(fd).ok()?)?;
    let kind = descriptor.kind.load(Ordering::Relaxed);
    (kind != OTHER).then_some((limited, descriptor, kind))
}

/// Notes the file that was opened as `fd`.
fn opened(fd: c_int, path: &CStr, flags: c_int) {
    let Some(limited) = LIMITED.get() else { return };
    let Some(descriptor) = usize::try_from(fd).ok().and_then(|fd| limited.descriptors.get(fd))
    else {
        return;
    };
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    let kind = match path.starts_with(&limited.directory) {
        false => OTHER,
        true if flags & libc::O_DIRECT != 0 => DIRECT,
        true => BUFFERED,
    };
    descriptor.written.clear();
    descriptor.kind.store(kind, Ordering::Relaxed);
}

/// Opens a file by `call` with the flags. If the file system has no direct I/O, opens it again
/// without: the modelled device has direct I/O.
fn open_by(path: *const c_char, flags: c_int, call: impl Fn(c_int) -> c_int) -> c_int {
    let mut fd = call(flags);
    // SAFETY: the library passes a path that ends in NUL.
    let path = unsafe { CStr::from_ptr(path) };
    if fd < 0 && flags & libc::O_DIRECT != 0 && errno() == libc::EINVAL {
        fd = call(flags & !libc::O_DIRECT);
    }
    if fd >= 0 {
        opened(fd, path, flags);
    }
    fd
}

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

// C passes the mode as a variadic argument. On the systems that Sateen supports it is in the
// register of a third argument, whose value is ignored unless a file is created.

unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the library's arguments.
    open_by(path, flags, |flags| unsafe { libc::open(path, flags, mode) })
}

unsafe extern "C" fn openat(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    // SAFETY: the library's arguments.
    open_by(path, flags, |flags| unsafe { libc::openat(directory, path, flags, mode) })
}

unsafe extern "C" fn close(fd: c_int) -> c_int {
    if let Some((_, descriptor, _)) = of_database(fd) {
        descriptor.kind.store(OTHER, Ordering::Relaxed);
    }
    // SAFETY: the library's argument.
    unsafe { libc::close(fd) }
}

/// Makes a call that returns the bytes read.
fn reading(fd: c_int, call: impl FnOnce() -> ssize_t) -> ssize_t {
    let Some((limited, ..)) = of_database(fd) else { return call() };
    let begun = limited.device.now_ns();
    let done = call();
    if let Ok(bytes) = usize::try_from(done) {
        limited.device.read(begun, bytes);
    }
    done
}

/// Makes a call that returns the bytes written.
fn writing(fd: c_int, call: impl FnOnce() -> ssize_t) -> ssize_t {
    let Some((limited, descriptor, kind)) = of_database(fd) else { return call() };
    let begun = limited.device.now_ns();
    let done = call();
    if let Ok(bytes) = usize::try_from(done) {
        limited.device.write(begun, bytes, kind == DIRECT, &descriptor.written);
    }
    done
}

/// Makes a call that returns 0 when the file is durable.
fn syncing(fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let cost_ns = BARRIER_COST_NS.load(Ordering::Relaxed);
    if cost_ns > 0 {
        std::thread::sleep(Duration::from_nanos(cost_ns));
    }
    let done = call();
    BARRIERS.fetch_add(u64::from(done == 0), Ordering::Relaxed);
    if let Some((limited, descriptor, _)) = of_database(fd).filter(|_| done == 0) {
        limited.device.sync(&descriptor.written);
    }
    done
}

unsafe extern "C" fn read(fd: c_int, to: *mut c_void, bytes: size_t) -> ssize_t {
    // SAFETY: the library's arguments.
    reading(fd, || unsafe { libc::read(fd, to, bytes) })
}

unsafe extern "C" fn pread(fd: c_int, to: *mut c_void, bytes: size_t, at: off_t) -> ssize_t {
    // SAFETY: the library's arguments.
    reading(fd, || unsafe { libc::pread(fd, to, bytes, at) })
}

unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    let begun = of_database(fd).map(|(limited, ..)| (limited, limited.device.now_ns()));
    // SAFETY: the library's arguments.
    let mapped = unsafe { libc::mmap(at, bytes, protection, flags, fd, offset) };
    if let Some((limited, begun)) = begun.filter(|_| mapped != libc::MAP_FAILED) {
        limited.device.read(begun, bytes);
    }
    mapped
}

unsafe extern "C" fn write(fd: c_int, from: *const c_void, bytes: size_t) -> ssize_t {
    // SAFETY: the library's arguments.
    writing(fd, || unsafe { libc::write(fd, from, bytes) })
}

unsafe extern "C" fn pwrite(fd: c_int, from: *const c_void, bytes: size_t, at: off_t) -> ssize_t {
    // SAFETY: the library's arguments.
    writing(fd, || unsafe { libc::pwrite(fd, from, bytes, at) })
}

unsafe extern "C" fn pwritev(
    fd: c_int,
    parts: *const libc::iovec,
    count: c_int,
    at: off_t,
) -> ssize_t {
    // SAFETY: the library's arguments.
    writing(fd, || unsafe { libc::pwritev(fd, parts, count, at) })
}

unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    // SAFETY: the library's argument.
    syncing(fd, || unsafe { libc::fsync(fd) })
}

unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    // SAFETY: the library's argument.
    syncing(fd, || unsafe { libc::fdatasync(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::hooks::install_on;
    use sateen_peers::Library;

    /// A library that writes, reads and syncs a file in RocksDB's way.
    const SOURCE: &str = r"
        #include <fcntl.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int twice(const char* path, const char* text, long bytes, char* back) {
            int fd = open(path, O_RDWR | O_CREAT, 0644);
            if (fd < 0) return -1;
            if (write(fd, text, bytes) != bytes) return -2;
            if (pwrite(fd, text, bytes, bytes) != bytes) return -3;
            if (fdatasync(fd) != 0) return -4;
            long got = pread(fd, back, 2 * bytes, 0);
            char* map = mmap(0, bytes, PROT_READ, MAP_SHARED, fd, 0);
            if (map == MAP_FAILED || map[0] != back[0] || munmap(map, bytes) != 0) return -6;
            return close(fd) == 0 && got == 2 * bytes ? 0 : -5;
        }
    ";

    type Twice = unsafe extern "C" fn(*const c_char, *const c_char, i64, *mut c_char) -> c_int;

    unsafe fn install(twice: Twice, directory: &Path, device: Arc<Device>) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { install_on(twice as *const c_void, directory, Some(device), &[]) }.map(drop)
    }

    /// There is one test because a process can limit one database only.
    #[test]
    fn the_librarys_calls_are_counted_and_pass_bytes_on_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let (source, library) = (folder.path().join("t.c"), folder.path().join("t.so"));
        std::fs::write(&source, SOURCE).unwrap();
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wl,-z,relro,-z,now", "-o"]);
        assert!(compiler.arg(&library).arg(&source).status().unwrap().success());
        let library = Library::open(&library).unwrap();
        // SAFETY: the signature is that of the source.
        let twice: Twice = unsafe { library.find("", "twice") }.unwrap();
        let call = |path: &Path, text: &[u8]| {
            let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
            let mut back = vec![0u8; 2 * text.len()];
            // SAFETY: the buffers are as long as the function is told.
            let done = unsafe {
                let (text, bytes) = (text.as_ptr().cast(), text.len() as i64);
                twice(path.as_ptr(), text, bytes, back.as_mut_ptr().cast())
            };
            (done, back)
        };
        let text: Vec<u8> = (0..5000u32).map(|i| (i * 7) as u8).collect();
        let directory = folder.path().join("db");
        std::fs::create_dir(&directory).unwrap();
        let before = directory.join("before");
        assert_eq!(call(&before, &text), (0, text.repeat(2)));

        let device = Arc::new(Device::new(u64::MAX));
        // SAFETY: this thread alone runs in the library.
        unsafe { install(twice, &directory, Arc::clone(&device)) }.unwrap();
        assert_eq!(device.passed(), crate::device::Passed::default());
        let (inside, outside) = (directory.join("in"), folder.path().join("out"));
        assert_eq!(call(&inside, &text), (0, text.repeat(2)));
        let passed = device.passed();
        assert_eq!((passed.read_bytes, passed.written_bytes, passed.syncs), (15_000, 10_000, 1));
        assert_eq!(barriers(), 1);
        // Files elsewhere are not limited, nor are calls of the rest of the process.
        assert_eq!(call(&outside, &text), (0, text.repeat(2)));
        assert_eq!(std::fs::read(&inside).unwrap(), text.repeat(2));
        std::fs::write(directory.join("ours"), &text).unwrap();
        assert_eq!(device.passed(), passed);
        // The caller sees a failure of libc.
        assert_eq!(call(&directory.join("no/file"), &text).0, -1);
        slow_down(30_000_000, &BTreeMap::from([("fdatasync", 1)])).unwrap();
        let begun = std::time::Instant::now();
        assert_eq!(call(&inside, &text).0, 0);
        assert!(begun.elapsed() >= Duration::from_millis(30));
        let error = slow_down(1, &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains("--barrier-cost"), "{error}");
        // SAFETY: as above.
        let again = unsafe { install(twice, &directory, device) };
        assert!(again.unwrap_err().to_string().contains("one database"));
    }
}
