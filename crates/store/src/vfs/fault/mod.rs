//! A file system that fails on request. Rules say which operations fail, on which files, how often
//! and how. It also lists every call site that a run reached, so that a test can fail each in turn
//! and report those that it never reached.
//!
//! 1. Every call builds its [`Site`]: operation, path class ("wal" for `000012.wal`, "MANIFEST" for
//!    `MANIFEST-000003`) and I/O class.
//! 2. `Faults::choose` counts the call and asks the rules in the order in which they were added.
//!    The first rule that applies decides the fault.
//! 3. `Faults::carry_out` carries out faults that fail, delay or panic.
//! 4. `FaultFile` carries out faults that alter bytes, around the call of the inner file system.
//!
//! A site contains the calling line only if [`FaultVfs::capture_callers`] is on. `#[track_caller]`
//! does not see through `dyn`, so the line is found by walking the stack (`caller`), which costs
//! about a millisecond a call.
//!
//! What must stay true: a fault is never softer than the real one. A sync that fails here poisons
//! the inner handle, so that pending writes may be lost for good. A later sync or change through
//! that handle panics, whatever the inner file system does.

mod rule;
#[cfg(test)]
mod tests;

use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::{fmt, io};

use rule::ActiveRule;
use rustix::io::Errno;

use super::{IoClass, OpenOptions, Vfs, VfsFile, VfsLock};
use crate::base::clock;
use crate::base::sync::leaf::lock;

pub use rule::{Fault, FaultRule, Site, VfsOperation, path_class};

/// The distance between the right place and the place that a misdirected read returns.
const BLOCK_BYTES: u64 = 4096;

/// Identifies a rule that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultId(u64);

/// How often a site was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCounts {
    /// Calls.
    pub calls: u64,
    /// Calls that had a fault.
    pub faults: u64,
}

/// A file system that fails on request. Clones share rules and counts.
#[derive(Clone)]
pub struct FaultVfs {
    inner: Arc<dyn Vfs>,
    faults: Arc<Faults>,
}

/// Rules and counts, shared by all clones and files.
#[derive(Default)]
struct Faults {
    capture_callers: AtomicBool,
    capture_callers_of_faults: AtomicBool,
    state: Mutex<FaultState>,
    /// Notified when rules are removed, for calls that hang.
    changed: Condvar,
}

/// Rules and counts, behind one lock.
#[derive(Default)]
struct FaultState {
    rules: BTreeMap<FaultId, ActiveRule>,
    next_id: u64,
    sites: BTreeMap<Site, SiteCounts>,
    /// The sites of all calls while callers are captured.
    calls: Vec<Site>,
    breaches: Vec<String>,
}

/// A fault that is about to happen.
#[derive(Clone, Copy)]
struct Chosen {
    fault: Fault,
    id: FaultId,
    /// A random number for this occurrence.
    random: u64,
}

impl FaultVfs {
    /// Returns a file system that passes every call to `inner` until rules are added.
    #[must_use]
    pub fn new(inner: Arc<dyn Vfs>) -> FaultVfs {
        FaultVfs { inner, faults: Arc::default() }
    }

    /// Adds a rule. If several apply to a call, the one added first decides.
    pub fn add(&self, rule: FaultRule) -> FaultId {
        let mut state = lock(&self.faults.state);
        let id = FaultId(state.next_id);
        state.next_id += 1;
        state.rules.insert(id, ActiveRule::new(rule, id.0));
        id
    }

    /// Removes a rule. Returns how often its fault happened.
    pub fn remove_rule(&self, id: FaultId) -> u64 {
        let removed = lock(&self.faults.state).rules.remove(&id);
        self.faults.changed.notify_all();
        removed.map_or(0, |rule| rule.happened)
    }

    /// Removes all rules: the disk works again.
    pub fn clear(&self) {
        lock(&self.faults.state).rules.clear();
        self.faults.changed.notify_all();
    }

    /// Returns how often a rule's fault has happened; 0 if there is no such rule.
    #[must_use]
    pub fn happened(&self, id: FaultId) -> u64 {
        lock(&self.faults.state).rules.get(&id).map_or(0, |rule| rule.happened)
    }

    /// Sets whether sites are told apart by the calling line. This is slow; it is for runs that
    /// list sites or fail them one by one.
    pub fn capture_callers(&self, capture: bool) {
        self.faults.capture_callers.store(capture, Ordering::Relaxed);
    }

    /// Sets whether the calling line is captured for calls that have a fault, and only for those. A
    /// run that fails one caller checks in this way that it hit the intended one.
    pub fn capture_callers_of_faults(&self, capture: bool) {
        self.faults.capture_callers_of_faults.store(capture, Ordering::Relaxed);
    }

    /// Returns the site of each call made while [`FaultVfs::capture_callers`] was on, in order.
    #[must_use]
    pub fn captured_calls(&self) -> Vec<Site> {
        lock(&self.faults.state).calls.clone()
    }

    /// Returns every site that was reached, with its counts.
    #[must_use]
    pub fn sites(&self) -> Vec<(Site, SiteCounts)> {
        let state = lock(&self.faults.state);
        state.sites.iter().map(|(site, counts)| (site.clone(), *counts)).collect()
    }

    /// Returns how often `operation` was called at any site.
    #[must_use]
    pub fn calls(&self, operation: VfsOperation) -> u64 {
        let state = lock(&self.faults.state);
        let sites = state.sites.iter().filter(|(site, _)| site.operation == operation);
        sites.map(|(_, counts)| counts.calls).sum()
    }

    /// Clears the sites and their counts.
    pub fn reset_sites(&self) {
        lock(&self.faults.state).sites.clear();
    }

    /// Returns the breaches of contract that caused a panic.
    #[must_use]
    pub fn breaches(&self) -> Vec<String> {
        lock(&self.faults.state).breaches.clone()
    }
}

impl fmt::Debug for FaultVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultVfs").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Faults {
    /// Counts a call and decides whether a fault happens to it.
    fn choose(
        &self,
        operation: VfsOperation,
        paths: &[&Path],
        class: Option<IoClass>,
    ) -> Option<Chosen> {
        let path_class = paths.first().map(|path| path_class(path)).unwrap_or_default();
        let capture = self.capture_callers.load(Ordering::Relaxed);
        let mut site = Site { operation, path_class, class, caller: capture.then(caller) };
        let mut state = lock(&self.state);
        let state = &mut *state;
        let chosen = state.rules.iter_mut().find_map(|(&id, active)| {
            active.decide(&site, paths).map(|random| Chosen {
                fault: active.rule.fault,
                id,
                random,
            })
        });
        if capture {
            state.calls.push(site.clone());
        } else if chosen.is_some() && self.capture_callers_of_faults.load(Ordering::Relaxed) {
            site.caller = Some(caller());
        }
        let counts = state.sites.entry(site).or_default();
        counts.calls += 1;
        counts.faults += u64::from(chosen.is_some());
        chosen
    }

    /// Carries out a fault that only fails, delays or panics, for a call of `bytes` bytes. Returns
    /// any other fault.
    fn carry_out(&self, chosen: Option<Chosen>, bytes: usize) -> io::Result<Option<Chosen>> {
        let Some(chosen) = chosen else { return Ok(None) };
        match chosen.fault {
            Fault::Delay(delay) => clock::sleep(delay),
            Fault::Bandwidth(bytes_per_second) => {
                let mut state = lock(&self.state);
                let rule = state.rules.get_mut(&chosen.id);
                let done = rule.map(|rule| rule.transfer(bytes as u64, bytes_per_second));
                drop(state);
                if let Some(done) = done {
                    clock::sleep(done.saturating_duration_since(clock::now()));
                }
            }
            Fault::Hang => {
                let state = lock(&self.state);
                let stands = |state: &mut FaultState| state.rules.contains_key(&chosen.id);
                drop(
                    self.changed.wait_while(state, stands).unwrap_or_else(PoisonError::into_inner),
                );
            }
            Fault::Panic => panic!("panic by a fault rule"),
            fault => return fault.error().map_or(Ok(Some(chosen)), Err),
        }
        Ok(None)
    }

    /// Passes a call whose faults can only fail or delay it.
    fn pass(&self, operation: VfsOperation, paths: &[&Path]) -> io::Result<()> {
        self.carry_out(self.choose(operation, paths, None), 0).map(drop)
    }

    /// Records a breach of the contract and panics.
    fn breach(&self, what: String) -> ! {
        lock(&self.state).breaches.push(what.clone());
        panic!("breach of the contract of the file system: {what}");
    }
}

/// Returns the innermost line on the stack that belongs to this workspace, and neither to a file
/// system nor to `files/replace.rs`, which many callers share. The lines are the frames "at
/// path:line:column" of a backtrace.
#[inline(never)]
fn caller() -> String {
    let backtrace = Backtrace::force_capture().to_string();
    let lines = backtrace.lines().filter_map(|line| line.trim().strip_prefix("at "));
    let ours = |line: &&str| {
        let own = !["/rustc/", "/rustlib/", "/.cargo/"].iter().any(|part| line.contains(part));
        own && !line.contains("/files/replace.rs")
            && (!line.contains("/vfs/") || line.contains("/vfs/fault/tests.rs"))
    };
    let line = lines.into_iter().find(ours).unwrap_or("unknown");
    // Removes the column, and the path before the crate.
    let line = line.rsplit_once(':').map_or(line, |(line, _)| line);
    let line = line.rsplit_once("crates/").map_or(line, |(_, line)| line);
    line.trim_start_matches("./").to_owned()
}

/// An open file to which the rules apply.
struct FaultFile {
    inner: Arc<dyn VfsFile>,
    faults: Arc<Faults>,
    path: PathBuf,
    poisoned: AtomicBool,
}

impl FaultFile {
    fn choose(
        &self,
        operation: VfsOperation,
        class: Option<IoClass>,
        bytes: usize,
    ) -> io::Result<Option<Chosen>> {
        self.faults.carry_out(self.faults.choose(operation, &[&self.path], class), bytes)
    }

    /// Panics if a sync of this handle has failed.
    fn check_poison(&self, what: &str) {
        if self.poisoned.load(Ordering::Relaxed) {
            self.faults.breach(format!("{}: {what} after a failed sync", self.path.display()));
        }
    }
}

impl fmt::Debug for FaultFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl VfsFile for FaultFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, class: IoClass) -> io::Result<usize> {
        let Some(chosen) = self.choose(VfsOperation::Read, Some(class), buffer.len())? else {
            return self.inner.read_at(buffer, offset, class);
        };
        let misdirected =
            if offset >= BLOCK_BYTES { offset - BLOCK_BYTES } else { offset + BLOCK_BYTES };
        let from = if chosen.fault == Fault::StaleBlock { misdirected } else { offset };
        let mut read = self.inner.read_at(buffer, from, class)?;
        match chosen.fault {
            Fault::Short => {
                buffer[read / 2..].fill(0xA5);
                read /= 2;
            }
            Fault::FlippedBit => flip_bit(&mut buffer[..read], chosen.random),
            Fault::Zeros => buffer[..read].fill(0),
            Fault::StaleBlock => {
                // The read keeps the length of the right place. Only the bytes are wrong.
                let there = self.inner.len()?.saturating_sub(offset).min(buffer.len() as u64);
                let there = there as usize;
                buffer[read.min(there)..there].fill(0);
                read = there;
            }
            _ => {}
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<()> {
        self.check_poison("write");
        let Some(chosen) = self.choose(VfsOperation::Write, Some(class), bytes.len())? else {
            return self.inner.write_at(bytes, offset, class);
        };
        let mut altered = super::AlignedBuffer::with_capacity(bytes.len());
        altered.extend_from_slice(bytes);
        match chosen.fault {
            Fault::Short => {
                let half = bytes.len() / 2;
                let half = half - half % self.inner.alignment();
                self.inner.write_at(&bytes[..half], offset, class)?;
                return Err(Errno::NOSPC.into());
            }
            Fault::StaleBlock => return Ok(()),
            Fault::FlippedBit => flip_bit(altered.as_mut_slice(), chosen.random),
            Fault::Zeros => altered.as_mut_slice().fill(0),
            _ => {}
        }
        self.inner.write_at(&altered, offset, class)
    }

    fn sync_data(&self, class: IoClass) -> io::Result<()> {
        self.check_poison("sync");
        match self.choose(VfsOperation::Sync, Some(class), 0) {
            Ok(_) => self.inner.sync_data(class).inspect_err(|_| {
                self.poisoned.store(true, Ordering::Relaxed);
            }),
            Err(error) => {
                self.poison();
                Err(error)
            }
        }
    }

    fn start_writeback(&self, offset: u64, length: u64) -> io::Result<()> {
        self.choose(VfsOperation::StartWriteback, None, 0)?;
        self.inner.start_writeback(offset, length)
    }

    fn finish_writeback(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        self.choose(VfsOperation::FinishWriteback, Some(class), 0)?;
        self.inner.finish_writeback(offset, length, class)
    }

    fn punch_hole(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        match self.choose(VfsOperation::PunchHole, Some(class), 0)? {
            Some(_) => Ok(()),
            None => self.inner.punch_hole(offset, length, class),
        }
    }

    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.choose(VfsOperation::Preallocate, None, 0)?;
        self.inner.preallocate(offset, length)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.check_poison("truncation");
        match self.choose(VfsOperation::Truncate, None, 0)? {
            Some(_) => Ok(()),
            None => self.inner.truncate(length),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.choose(VfsOperation::Len, None, 0)?;
        self.inner.len()
    }

    fn allocated(&self) -> io::Result<u64> {
        self.choose(VfsOperation::Allocated, None, 0)?;
        self.inner.allocated()
    }

    fn links(&self) -> io::Result<u64> {
        self.choose(VfsOperation::Links, None, 0)?;
        self.inner.links()
    }

    fn modified(&self) -> io::Result<Option<u64>> {
        self.choose(VfsOperation::Modified, None, 0)?;
        self.inner.modified()
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }

    fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
        self.inner.poison();
    }
}

/// Flips one bit, chosen by `random`.
fn flip_bit(bytes: &mut [u8], random: u64) {
    let bits = bytes.len() as u64 * 8;
    if let Some(bit) = random.checked_rem(bits) {
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

impl Vfs for FaultVfs {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        let create = options.create_new;
        let operation = if create { VfsOperation::Create } else { VfsOperation::Open };
        self.faults.pass(operation, &[path])?;
        let inner = self.inner.open(path, options)?;
        let (faults, path) = (self.faults.clone(), path.to_owned());
        Ok(Arc::new(FaultFile { inner, faults, path, poisoned: AtomicBool::new(false) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        // The new name comes first: it says what kind of file this becomes.
        self.faults.pass(VfsOperation::Rename, &[to, from])?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.faults.pass(VfsOperation::Remove, &[path])?;
        self.inner.remove(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.pass(VfsOperation::HardLink, &[to, from])?;
        self.inner.hard_link(from, to)
    }

    fn clone_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.pass(VfsOperation::CloneFile, &[to, from])?;
        self.inner.clone_file(from, to)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.faults.pass(VfsOperation::List, &[directory])?;
        self.inner.list(directory)
    }

    fn create_dir_all(&self, directory: &Path) -> io::Result<()> {
        self.faults.pass(VfsOperation::CreateDir, &[directory])?;
        self.inner.create_dir_all(directory)
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        self.faults.pass(VfsOperation::RemoveDir, &[directory])?;
        self.inner.remove_dir(directory)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.faults.pass(VfsOperation::SyncDir, &[directory])?;
        self.inner.sync_dir(directory)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.faults.pass(VfsOperation::Exists, &[path])?;
        self.inner.exists(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        self.faults.pass(VfsOperation::Lock, &[path])?;
        self.inner.lock(path)
    }

    fn lock_holder(&self, path: &Path) -> Option<String> {
        self.inner.lock_holder(path)
    }

    fn mark(&self, path: &Path, at: u64) -> io::Result<Box<dyn VfsLock>> {
        self.inner.mark(path, at)
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        self.faults.pass(VfsOperation::FreeSpace, &[path])?;
        self.inner.free_space(path)
    }

    fn total_space(&self, path: &Path) -> io::Result<u64> {
        self.faults.pass(VfsOperation::FreeSpace, &[path])?;
        self.inner.total_space(path)
    }

    fn open_files_limit(&self) -> Option<u64> {
        self.inner.open_files_limit()
    }
}
