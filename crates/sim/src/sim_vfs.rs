//! A file system for the real engine on a modelled device. Its calls take the time that a
//! [`Device`] says, in the virtual time of the calling thread ([`sateen::test_support::clock`]).
//!
//! Buffered writes cost time when they are synced or written back, and the writer itself waits if
//! too many bytes are dirty. Direct writes and all reads cost time at once. Every call goes into a
//! hash with its time and its result; two runs are the same if their hashes are. The power may fail
//! at any call. From then on all calls fail.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sateen::test_support::clock;
use sateen::vfs::{IoClass, OpenOptions, Vfs, VfsFile, VfsLock};
use sateen_control::IO_CLASSES;

use crate::device::{Device, DeviceConfig, Direction};

/// The time of a call in addition to the device's.
const CALL_NS: u64 = 2_000;
/// Bytes that the page cache copies in a nanosecond.
const CACHE_BYTES_PER_NS: u64 = 4;
/// A request that takes at least this time counts as a stall.
const STALL_NS: u64 = 500_000_000;

/// Counts of the calls of a [`SimVfs`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimCounts {
    /// All calls.
    pub calls: u64,
    /// Time of the calls by [`IoClass::index`]. Calls without a class count with the manifest.
    pub class_ns: [u64; IO_CLASSES],
    /// Calls that took half a second or longer.
    pub stalls: u64,
    /// Syncs of files and directories.
    pub barriers: u64,
}

type Failure = Box<dyn FnOnce() + Send>;

struct SimState {
    device: Device,
    /// Dirty bytes of each open file, by the file's number: the page cache has them and the device
    /// does not.
    dirty: BTreeMap<u64, u64>,
    dirty_max: u64,
    next_file: u64,
    counts: SimCounts,
    hash: u64,
    log: Option<Vec<String>>,
    /// The call at which the power fails, and the action just before it.
    failure: Option<(u64, Failure)>,
    power: bool,
}

/// A file system on a modelled device. Clones share the device.
#[derive(Clone)]
pub struct SimVfs {
    inner: Arc<dyn Vfs>,
    state: Arc<Mutex<SimState>>,
}

fn lock(state: &Mutex<SimState>) -> MutexGuard<'_, SimState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimVfs {
    /// Puts `inner` on a device. Buffered writers wait once `dirty_max` bytes are dirty.
    #[must_use]
    pub fn new(inner: Arc<dyn Vfs>, device: DeviceConfig, dirty_max: u64) -> SimVfs {
        let state = SimState {
            device: Device::new(device),
            dirty: BTreeMap::new(),
            dirty_max,
            next_file: 0,
            counts: SimCounts::default(),
            hash: 0,
            log: None,
            failure: None,
            power: true,
        };
        SimVfs { inner, state: Arc::new(Mutex::new(state)) }
    }

    /// Returns another file system on the same device, for instance after a power failure.
    #[must_use]
    pub fn with_files(&self, inner: Arc<dyn Vfs>) -> SimVfs {
        SimVfs { inner, state: self.state.clone() }
    }

    /// Makes the power fail after this many calls. `act` runs just before.
    pub fn fail_power(&self, calls: u64, act: impl FnOnce() + Send + 'static) {
        let mut state = lock(&self.state);
        state.failure = Some((state.counts.calls + calls, Box::new(act)));
    }

    /// True if the power has failed and was not switched on again.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        !lock(&self.state).power
    }

    /// Switches the power on or off and cancels a planned failure.
    pub fn switch_power(&self, on: bool) {
        let mut state = lock(&self.state);
        state.failure = None;
        state.power = on;
        state.dirty.clear();
    }

    /// Returns the counts of all calls.
    #[must_use]
    pub fn counts(&self) -> SimCounts {
        lock(&self.state).counts.clone()
    }

    /// Returns a hash of all calls and notes.
    #[must_use]
    pub fn trace(&self) -> u64 {
        lock(&self.state).hash
    }

    /// Adds a note to the trace, for instance an answer of the database.
    pub fn note(&self, what: &str, bytes: &[u8]) {
        let mut state = lock(&self.state);
        let hash = fold_bytes(0, bytes);
        state.trace(what, "", &[bytes.len() as u64, hash]);
    }

    /// Keeps a line for each further entry of the trace, so that two traces can be compared.
    pub fn keep_log(&self) {
        lock(&self.state).log = Some(Vec::new());
    }

    /// Returns the lines that were kept.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        lock(&self.state).log.clone().unwrap_or_default()
    }

    /// Makes a call that costs the device a barrier, or nothing.
    fn pass<T>(
        &self,
        what: &'static str,
        paths: &[&Path],
        barrier: bool,
        act: impl FnOnce(&dyn Vfs) -> io::Result<T>,
    ) -> io::Result<T> {
        let call = Call { what, path: paths.first().copied(), class: None, words: [0; 3] };
        call.make(
            &self.state,
            |state, now| match barrier {
                true => state.barrier(now),
                false => now,
            },
            || act(self.inner.as_ref()),
        )
    }
}

/// A call that is being made.
struct Call<'a> {
    what: &'static str,
    path: Option<&'a Path>,
    class: Option<IoClass>,
    words: [u64; 3],
}

impl Call<'_> {
    /// Makes the call if the power is on, and lets its time pass.
    fn make<T>(
        self,
        state: &Mutex<SimState>,
        cost: impl FnOnce(&mut SimState, u64) -> u64,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut guard = lock(state);
        guard.counts.calls += 1;
        if guard.failure.as_ref().is_some_and(|(at, _)| guard.counts.calls >= *at) {
            guard.power = false;
            if let Some((_, failure)) = guard.failure.take() {
                failure();
            }
        }
        if !guard.power {
            return Err(io::Error::other("the power is off"));
        }
        drop(guard);
        let result = act();
        let now = now_ns();
        let mut guard = lock(state);
        let done = cost(&mut guard, now).max(now) + CALL_NS;
        let took = done - now;
        guard.counts.class_ns[self.class.unwrap_or(IoClass::Manifest).index()] += took;
        guard.counts.stalls += u64::from(took >= STALL_NS);
        let failed = u64::from(result.is_err());
        let class = self.class.map_or(0, |class| class.index() as u64 + 1);
        let [a, b, c] = self.words;
        let path = self.path.map_or_else(String::new, |path| path.to_string_lossy().into_owned());
        guard.trace(self.what, &path, &[a, b, c, class, failed, took]);
        drop(guard);
        clock::advance(Duration::from_nanos(took));
        result
    }
}

fn now_ns() -> u64 {
    let passed = clock::virtual_time().unwrap_or_default();
    u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
}

fn fold(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn fold_bytes(hash: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(hash, |hash, word| fold(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| fold(hash, u64::from(*byte)))
}

impl SimState {
    fn trace(&mut self, what: &str, path: &str, words: &[u64]) {
        let now = now_ns();
        let mut hash = fold(fold_bytes(self.hash, what.as_bytes()), now);
        hash = fold_bytes(hash, path.as_bytes());
        self.hash = words.iter().fold(hash, |hash, word| fold(hash, *word));
        if let Some(log) = &mut self.log {
            log.push(format!("{now} {what} {path} {words:x?}"));
        }
    }

    /// Submits a barrier, after which all earlier writes are durable.
    fn barrier(&mut self, now: u64) -> u64 {
        self.counts.barriers += 1;
        self.device.barrier(now)
    }

    /// Sends the dirty bytes of a file to the device. Returns the moment at which it has them.
    fn write_back(&mut self, now: u64, file: u64) -> u64 {
        match self.dirty.remove(&file) {
            Some(bytes) => self.device.submit(now, Direction::Write, bytes),
            None => now,
        }
    }
}

impl fmt::Debug for SimVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimVfs").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Vfs for SimVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        let inner = self.pass("open", &[path], false, |vfs| vfs.open(path, options))?;
        let mut state = lock(&self.state);
        state.next_file += 1;
        Ok(Arc::new(SimFile {
            inner,
            state: self.state.clone(),
            number: state.next_file,
            path: path.to_owned(),
            direct: options.direct,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass("rename", &[from, to], false, |vfs| vfs.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.pass("remove", &[path], false, |vfs| vfs.remove(path))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass("link", &[to], false, |vfs| vfs.hard_link(from, to))
    }

    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass("clone", &[to], false, |vfs| vfs.clone_file(from, to))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.pass("list", &[directory], false, |vfs| vfs.list(directory))
    }

    fn create_dir_all(&self, directory: &Path) -> io::Result<()> {
        self.pass("create_dir", &[directory], false, |vfs| vfs.create_dir_all(directory))
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        self.pass("remove_dir", &[directory], false, |vfs| vfs.remove_dir(directory))
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.pass("sync_dir", &[directory], true, |vfs| vfs.sync_dir(directory))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.pass("exists", &[path], false, |vfs| vfs.exists(path))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        self.pass("lock", &[path], false, |vfs| vfs.lock(path))
    }

    sateen::pass_on! { inner: mark free_space total_space }
}

struct SimFile {
    inner: Arc<dyn VfsFile>,
    state: Arc<Mutex<SimState>>,
    number: u64,
    path: PathBuf,
    direct: bool,
}

impl SimFile {
    fn call(&self, what: &'static str, class: Option<IoClass>, words: [u64; 3]) -> Call<'_> {
        Call { what, path: Some(&self.path), class, words }
    }

    fn small<T>(
        &self,
        what: &'static str,
        words: [u64; 3],
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.call(what, None, words).make(&self.state, |_, now| now, act)
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimFile").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl VfsFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        let bytes = buffer.len() as u64;
        let read = |state: &mut SimState, now| state.device.submit(now, Direction::Read, bytes);
        self.call("read", Some(class), [offset, bytes, 0])
            .make(&self.state, read, || self.inner.read_at(buffer, offset, class))
    }

    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        let length = bytes.len() as u64;
        let write = |state: &mut SimState, now| {
            if self.direct {
                return state.device.submit(now, Direction::Write, length);
            }
            *state.dirty.entry(self.number).or_default() += length;
            let all: u64 = state.dirty.values().sum();
            let free = if all > state.dirty_max { state.write_back(now, self.number) } else { now };
            free + length / CACHE_BYTES_PER_NS
        };
        let words = [offset, length, fold_bytes(0, bytes)];
        self.call("write", Some(class), words)
            .make(&self.state, write, || self.inner.write_at(bytes, offset, class))
    }

    fn sync_data(&self, class: IoClass) -> io::Result<()> {
        let sync = |state: &mut SimState, now| {
            let written = state.write_back(now, self.number);
            state.barrier(written)
        };
        self.call("sync", Some(class), [0; 3])
            .make(&self.state, sync, || self.inner.sync_data(class))
    }

    fn start_writeback(&self, offset: u64, length: u64) -> io::Result<()> {
        let begin = |state: &mut SimState, now| {
            // No caller waits for these writes, but the device serves later requests after them.
            state.write_back(now, self.number);
            now
        };
        self.call("writeback", None, [offset, length, 0])
            .make(&self.state, begin, || self.inner.start_writeback(offset, length))
    }

    /// Waits for all dirty bytes of the file: the model does not know where in the file they are.
    fn finish_writeback(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        let wait = |state: &mut SimState, now| state.write_back(now, self.number);
        self.call("writeback", Some(class), [offset, length, 0])
            .make(&self.state, wait, || self.inner.finish_writeback(offset, length, class))
    }

    fn punch_hole(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        let punch = |state: &mut SimState, now| state.device.submit(now, Direction::Write, 0);
        self.call("punch", Some(class), [offset, length, 0])
            .make(&self.state, punch, || self.inner.punch_hole(offset, length, class))
    }

    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.small("preallocate", [offset, length, 0], || self.inner.preallocate(offset, length))
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.small("truncate", [length, 0, 0], || self.inner.truncate(length))
    }

    fn len(&self) -> io::Result<u64> {
        self.small("len", [0; 3], || self.inner.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        self.small("allocated", [0; 3], || self.inner.allocated())
    }

    sateen::pass_on! { inner: links modified alignment poison }
}

#[cfg(test)]
mod tests {
    use sateen::vfs::MemVfs;

    use super::*;
    use crate::device::Bandwidth;

    const MB: u64 = 1_000_000;

    fn device() -> DeviceConfig {
        DeviceConfig {
            bandwidth: Bandwidth { read: 100 * MB, write: 10 * MB },
            latency_ns: 1_000_000,
            barrier_ns: 5_000_000,
            burst_ns: 0,
            ..DeviceConfig::default()
        }
    }

    fn ms(vfs: impl FnOnce()) -> u64 {
        let before = now_ns();
        vfs();
        (now_ns() - before) / 1_000_000
    }

    #[test]
    fn calls_take_the_time_that_the_device_needs() {
        let _time = clock::VirtualTime::begin(1);
        let vfs = SimVfs::new(Arc::new(MemVfs::new()), device(), 2 * MB);
        let file = vfs.open("/file".as_ref(), OpenOptions::CREATE).unwrap();
        let bytes = vec![7; MB as usize];
        let write = |at: u64| file.write_at(&bytes, at * MB, IoClass::Flush).unwrap();
        assert_eq!(ms(|| write(0)), 0, "into the page cache");
        // 1 MB takes 100 ms.
        assert_eq!(ms(|| file.sync_data(IoClass::Flush).unwrap()), 106);
        assert_eq!(ms(|| file.sync_data(IoClass::Flush).unwrap()), 5, "nothing to write");
        write(1);
        write(2);
        assert_eq!(ms(|| write(3)), 301, "too much is dirty");
        write(4);
        assert_eq!(ms(|| file.start_writeback(0, 0).unwrap()), 0);
        assert_eq!(ms(|| file.sync_data(IoClass::Flush).unwrap()), 106, "behind it");
        write(5);
        assert_eq!(ms(|| file.finish_writeback(0, MB, IoClass::Flush).unwrap()), 101);
        let mut buffer = vec![0; MB as usize];
        let mut read = || file.read_at(&mut buffer, 0, IoClass::Client).unwrap();
        assert_eq!(ms(|| assert_eq!(read(), MB as usize)), 11);
        let direct = vfs.open("/direct".as_ref(), OpenOptions::CREATE.direct(true)).unwrap();
        assert_eq!(ms(|| direct.write_at(&bytes, 0, IoClass::Flush).unwrap()), 101);
        assert_eq!(vfs.counts().barriers, 3);
    }

    #[test]
    fn the_same_calls_have_the_same_trace_and_others_another() {
        let run = |value: u8| {
            let _time = clock::VirtualTime::begin(1);
            let vfs = SimVfs::new(Arc::new(MemVfs::new()), device(), MB);
            let file = vfs.open("/file".as_ref(), OpenOptions::CREATE).unwrap();
            file.write_at(&[value], 0, IoClass::Wal).unwrap();
            vfs.note("found", &[1]);
            vfs.trace()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn after_the_power_has_failed_no_call_succeeds() {
        let _time = clock::VirtualTime::begin(1);
        let mem = MemVfs::new();
        let vfs = SimVfs::new(Arc::new(mem.clone()), device(), MB);
        let file = vfs.open("/file".as_ref(), OpenOptions::CREATE).unwrap();
        let (live, seen) = (mem.clone(), Arc::new(Mutex::new(0)));
        let told = seen.clone();
        vfs.fail_power(2, move || *told.lock().unwrap() = live.operations());
        file.write_at(b"1", 0, IoClass::Wal).unwrap();
        let operations = mem.operations();
        assert!(file.write_at(b"2", 1, IoClass::Wal).is_err() && vfs.has_failed());
        assert!(vfs.exists("/file".as_ref()).is_err());
        assert_eq!((*seen.lock().unwrap(), mem.operations()), (operations, operations));
        vfs.switch_power(true);
        assert!(vfs.exists("/file".as_ref()).unwrap());
    }
}
