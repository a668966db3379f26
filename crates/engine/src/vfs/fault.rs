//! A file system that fails on request: rules say which operations, on which files, how often and
//! how. It also lists every place that was passed, so that a test can fail each one in turn and say
//! which it never reached.
//!
//! A place (a [`Site`]) is an operation, a path class ("wal" for `000012.wal`, "MANIFEST" for
//! `MANIFEST-000003`) and an I/O class. The line of the caller is known only when
//! [`FaultVfs::capture_callers`] was switched on: `#[track_caller]` does not see through `dyn`, so
//! it is found by walking the stack, which costs about a millisecond a call.
//!
//! What must stay true: a fault is never softer than the real one. A sync that is failed here
//! poisons the handle beneath, so that what was pending may be lost for good; a second sync or a
//! change through that handle panics here, whatever the file system beneath does.

#[cfg(test)]
mod tests;

use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

use super::{IoClass, OpenOptions, Vfs, VfsFile, VfsLock};
use crate::sync::lock;

/// What a misdirected read is off by.
const BLOCK_BYTES: u64 = 4096;

/// The calls of [`Vfs`] and [`VfsFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum VfsOperation {
    Open,
    Create,
    Read,
    Write,
    Sync,
    StartWriteback,
    PunchHole,
    Preallocate,
    Truncate,
    Len,
    Rename,
    Remove,
    HardLink,
    CloneFile,
    List,
    CreateDir,
    RemoveDir,
    SyncDir,
    Exists,
    Lock,
    FreeSpace,
}

/// How an operation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with EIO and does nothing.
    Io,
    /// It fails with ENOSPC and does nothing.
    NoSpace,
    /// It fails with EDQUOT and does nothing.
    Quota,
    /// It fails with EINTR and does nothing.
    Interrupted,
    /// A read returns half of what there is; a write does its first half and fails with ENOSPC.
    Short,
    /// One bit of what is read or written is wrong.
    FlippedBit,
    /// A read returns the bytes of the block before (of the next one, at the start of the file); a
    /// write, punch or truncation is acknowledged and not done, so that the old bytes stay.
    StaleBlock,
    /// What is read or written is all zeros.
    Zeros,
    /// It takes longer by this, and then succeeds.
    Delay(Duration),
    /// It does not return while the rule stands, and then succeeds.
    Hang,
}

impl Fault {
    /// Whether the fault can happen to `operation`; where it cannot, rules pass it by.
    #[must_use]
    pub fn applies_to(self, operation: VfsOperation) -> bool {
        use VfsOperation as Op;
        match self {
            Fault::Io | Fault::Interrupted | Fault::Delay(_) | Fault::Hang => true,
            Fault::NoSpace | Fault::Quota => !matches!(
                operation,
                Op::Open | Op::Read | Op::Len | Op::List | Op::Exists | Op::FreeSpace
            ),
            Fault::Short | Fault::FlippedBit | Fault::Zeros => {
                matches!(operation, Op::Read | Op::Write)
            }
            Fault::StaleBlock => {
                matches!(operation, Op::Read | Op::Write | Op::PunchHole | Op::Truncate)
            }
        }
    }

    fn error(self) -> Option<io::Error> {
        match self {
            Fault::Io => Some(Errno::IO.into()),
            Fault::NoSpace => Some(Errno::NOSPC.into()),
            Fault::Quota => Some(Errno::DQUOT.into()),
            Fault::Interrupted => Some(Errno::INTR.into()),
            _ => None,
        }
    }
}

/// Which paths a rule is for.
#[derive(Clone, Debug)]
enum PathFilter {
    Any,
    Exactly(PathBuf),
    Contains(String),
    Class(String),
}

/// Which of the operations that match a rule fail.
#[derive(Clone, Copy, Debug)]
enum When {
    Always,
    Nth(u64),
    From(u64),
    Probability { probability: f64, seed: u64 },
}

/// Which operations fail, and how. Made of [`FaultRule::new`] and what follows it; without more it
/// is for every operation, always.
#[derive(Clone, Debug)]
pub struct FaultRule {
    fault: Fault,
    operation: Option<VfsOperation>,
    path: PathFilter,
    class: Option<IoClass>,
    caller: Option<String>,
    when: When,
    once: bool,
}

impl FaultRule {
    /// Every operation that `fault` applies to.
    #[must_use]
    pub fn new(fault: Fault) -> FaultRule {
        FaultRule {
            fault,
            operation: None,
            path: PathFilter::Any,
            class: None,
            caller: None,
            when: When::Always,
            once: false,
        }
    }

    /// Only this operation.
    #[must_use]
    pub fn on(self, operation: VfsOperation) -> FaultRule {
        FaultRule { operation: Some(operation), ..self }
    }

    /// Only this path (of a rename, link or clone: either path).
    #[must_use]
    pub fn path(self, path: impl Into<PathBuf>) -> FaultRule {
        FaultRule { path: PathFilter::Exactly(path.into()), ..self }
    }

    /// Only paths in which this occurs.
    #[must_use]
    pub fn path_contains(self, part: impl Into<String>) -> FaultRule {
        FaultRule { path: PathFilter::Contains(part.into()), ..self }
    }

    /// Only paths of this class: see [`path_class`].
    #[must_use]
    pub fn path_class(self, class: impl Into<String>) -> FaultRule {
        FaultRule { path: PathFilter::Class(class.into()), ..self }
    }

    /// Only calls for this purpose. Calls without an I/O class do not match.
    #[must_use]
    pub fn class(self, class: IoClass) -> FaultRule {
        FaultRule { class: Some(class), ..self }
    }

    /// Only calls from a place whose text contains this; needs [`FaultVfs::capture_callers`].
    #[must_use]
    pub fn caller_contains(self, part: impl Into<String>) -> FaultRule {
        FaultRule { caller: Some(part.into()), ..self }
    }

    /// Only the operations of one listed place.
    #[must_use]
    pub fn at(self, site: &Site) -> FaultRule {
        FaultRule {
            operation: Some(site.operation),
            path: PathFilter::Class(site.path_class.clone()),
            class: site.class,
            caller: site.caller.clone(),
            ..self
        }
    }

    /// Only the `n`-th matching operation, counted from 1 and from when the rule was added.
    #[must_use]
    pub fn nth(self, n: u64) -> FaultRule {
        FaultRule { when: When::Nth(n), ..self }
    }

    /// The `n`-th matching operation (from 1) and all that follow: a fault that stays.
    #[must_use]
    pub fn from_nth(self, n: u64) -> FaultRule {
        FaultRule { when: When::From(n), ..self }
    }

    /// Each matching operation with this probability (0 to 1), drawn from `seed`.
    #[must_use]
    pub fn probability(self, probability: f64, seed: u64) -> FaultRule {
        FaultRule { when: When::Probability { probability, seed }, ..self }
    }

    /// Only the first time that it would happen.
    #[must_use]
    pub fn once(self) -> FaultRule {
        FaultRule { once: true, ..self }
    }

    fn matches(&self, site: &Site, paths: &[&Path]) -> bool {
        let path_matches = |path: &Path| match &self.path {
            PathFilter::Any => true,
            PathFilter::Exactly(exactly) => path == exactly,
            PathFilter::Contains(part) => path.to_string_lossy().contains(part),
            PathFilter::Class(class) => path_class(path) == *class,
        };
        self.fault.applies_to(site.operation)
            && self.operation.is_none_or(|operation| operation == site.operation)
            && (self.class.is_none() || self.class == site.class)
            && self.caller.as_ref().is_none_or(|part| {
                site.caller.as_ref().is_some_and(|caller| caller.contains(part.as_str()))
            })
            && paths.iter().any(|path| path_matches(path))
    }
}

/// Names a rule that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultId(u64);

/// A place from which the file system is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The call.
    pub operation: VfsOperation,
    /// The class of its (first) path: see [`path_class`].
    pub path_class: String,
    /// Its purpose, of data calls.
    pub class: Option<IoClass>,
    /// The line it was called from, as `file:line`, if [`FaultVfs::capture_callers`] is on.
    pub caller: Option<String>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.operation, self.path_class)?;
        if let Some(class) = self.class {
            write!(f, " for {class}")?;
        }
        match &self.caller {
            Some(caller) => write!(f, " at {caller}"),
            None => Ok(()),
        }
    }
}

/// How often a place was passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCounts {
    /// Calls.
    pub calls: u64,
    /// Calls to which a fault happened.
    pub faults: u64,
}

/// The kind of file that a name stands for: its extension, or else its letters up to the first
/// that is none ("MANIFEST-000012" is a "MANIFEST"), or else "other".
#[must_use]
pub fn path_class(path: &Path) -> String {
    if let Some(extension) = path.extension() {
        return extension.to_string_lossy().into_owned();
    }
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let letters: String = name.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    if letters.is_empty() { "other".to_owned() } else { letters }
}

/// A file system that fails on request. Clones share rules and counts.
#[derive(Clone)]
pub struct FaultVfs {
    inner: Arc<dyn Vfs>,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    capture_callers: AtomicBool,
    state: Mutex<FaultState>,
    /// Told when rules are taken away, for calls that hang.
    changed: Condvar,
}

#[derive(Default)]
struct FaultState {
    rules: BTreeMap<FaultId, ActiveRule>,
    next_id: u64,
    sites: BTreeMap<Site, SiteCounts>,
    breaches: Vec<String>,
}

struct ActiveRule {
    rule: FaultRule,
    matched: u64,
    happened: u64,
    random: u64,
}

/// A fault that is about to happen.
#[derive(Clone, Copy)]
struct Chosen {
    fault: Fault,
    id: FaultId,
    /// A number of this occurrence, for what is to be random in it.
    random: u64,
}

impl FaultVfs {
    /// Passes everything on to `inner` until rules are added.
    #[must_use]
    pub fn new(inner: Arc<dyn Vfs>) -> FaultVfs {
        FaultVfs { inner, faults: Arc::default() }
    }

    /// Adds a rule. Where several apply, the one added first happens.
    pub fn add(&self, rule: FaultRule) -> FaultId {
        let mut state = lock(&self.faults.state);
        let id = FaultId(state.next_id);
        state.next_id += 1;
        let random = match rule.when {
            When::Probability { seed, .. } => seed,
            _ => id.0,
        };
        state.rules.insert(id, ActiveRule { rule, matched: 0, happened: 0, random });
        id
    }

    /// Takes a rule away and says how often it happened.
    pub fn remove_rule(&self, id: FaultId) -> u64 {
        let removed = lock(&self.faults.state).rules.remove(&id);
        self.faults.changed.notify_all();
        removed.map_or(0, |rule| rule.happened)
    }

    /// Takes all rules away: the disk is well again.
    pub fn clear(&self) {
        lock(&self.faults.state).rules.clear();
        self.faults.changed.notify_all();
    }

    /// How often a rule has happened; 0 if it is not there.
    #[must_use]
    pub fn happened(&self, id: FaultId) -> u64 {
        lock(&self.faults.state).rules.get(&id).map_or(0, |rule| rule.happened)
    }

    /// Whether places are told apart by the calling line. Slow: for runs that list places, or fail
    /// them one by one.
    pub fn capture_callers(&self, capture: bool) {
        self.faults.capture_callers.store(capture, Ordering::Relaxed);
    }

    /// Every place that was passed, with counts.
    #[must_use]
    pub fn sites(&self) -> Vec<(Site, SiteCounts)> {
        let state = lock(&self.faults.state);
        state.sites.iter().map(|(site, counts)| (site.clone(), *counts)).collect()
    }

    /// How often `operation` was called, anywhere.
    #[must_use]
    pub fn calls(&self, operation: VfsOperation) -> u64 {
        let state = lock(&self.faults.state);
        let sites = state.sites.iter().filter(|(site, _)| site.operation == operation);
        sites.map(|(_, counts)| counts.calls).sum()
    }

    /// Forgets the places and their counts.
    pub fn reset_sites(&self) {
        lock(&self.faults.state).sites.clear();
    }

    /// The breaches of contract that were answered with a panic.
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
        let site = Site { operation, path_class, class, caller: capture.then(caller) };
        let mut state = lock(&self.state);
        let state = &mut *state;
        let chosen = state.rules.iter_mut().find_map(|(&id, active)| {
            active.decide(&site, paths).map(|random| Chosen {
                fault: active.rule.fault,
                id,
                random,
            })
        });
        let counts = state.sites.entry(site).or_default();
        counts.calls += 1;
        counts.faults += u64::from(chosen.is_some());
        chosen
    }

    /// Lets a call fail or wait, if that is all there is to its fault; gives other faults back.
    fn strike(&self, chosen: Option<Chosen>) -> io::Result<Option<Chosen>> {
        let Some(chosen) = chosen else { return Ok(None) };
        match chosen.fault {
            Fault::Delay(delay) => std::thread::sleep(delay),
            Fault::Hang => {
                let state = lock(&self.state);
                let stands = |state: &mut FaultState| state.rules.contains_key(&chosen.id);
                drop(
                    self.changed.wait_while(state, stands).unwrap_or_else(PoisonError::into_inner),
                );
            }
            fault => return fault.error().map_or(Ok(Some(chosen)), Err),
        }
        Ok(None)
    }

    /// For calls to which nothing subtler can happen than to fail or wait.
    fn pass(&self, operation: VfsOperation, paths: &[&Path]) -> io::Result<()> {
        self.strike(self.choose(operation, paths, None)).map(drop)
    }

    fn breach(&self, what: String) -> ! {
        lock(&self.state).breaches.push(what.clone());
        panic!("breach of the contract of the file system: {what}");
    }
}

impl ActiveRule {
    /// A random number if it happens to this call.
    fn decide(&mut self, site: &Site, paths: &[&Path]) -> Option<u64> {
        if !self.rule.matches(site, paths) || (self.rule.once && self.happened > 0) {
            return None;
        }
        self.matched += 1;
        let random = self.next_random();
        let happens = match self.rule.when {
            When::Always => true,
            When::Nth(n) => self.matched == n,
            When::From(n) => self.matched >= n,
            When::Probability { probability, .. } => {
                (random >> 11) as f64 / ((1u64 << 53) as f64) < probability
            }
        };
        self.happened += u64::from(happens);
        happens.then(|| self.next_random())
    }

    /// splitmix64.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.random;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

/// The innermost line on the stack that is of this workspace and not of a file system: its frames
/// are the lines "at path:line:column" of a backtrace.
#[inline(never)]
fn caller() -> String {
    let backtrace = Backtrace::force_capture().to_string();
    let lines = backtrace.lines().filter_map(|line| line.trim().strip_prefix("at "));
    let ours = |line: &&str| {
        let own = !["/rustc/", "/rustlib/", "/.cargo/"].iter().any(|part| line.contains(part));
        own && (!line.contains("/vfs/") || line.contains("/vfs/fault/tests.rs"))
    };
    let line = lines.into_iter().find(ours).unwrap_or("unknown");
    // Without the column, and from the crate on.
    let line = line.rsplit_once(':').map_or(line, |(line, _)| line);
    let line = line.rsplit_once("crates/").map_or(line, |(_, line)| line);
    line.trim_start_matches("./").to_owned()
}

/// An open file under rules.
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
    ) -> io::Result<Option<Chosen>> {
        self.faults.strike(self.faults.choose(operation, &[&self.path], class))
    }

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
        let Some(chosen) = self.choose(VfsOperation::Read, Some(class))? else {
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
                // As many bytes as the right place has: the fault is their value alone.
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
        let Some(chosen) = self.choose(VfsOperation::Write, Some(class))? else {
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
        match self.choose(VfsOperation::Sync, Some(class)) {
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
        self.choose(VfsOperation::StartWriteback, None)?;
        self.inner.start_writeback(offset, length)
    }

    fn punch_hole(&self, offset: u64, length: u64, class: IoClass) -> io::Result<()> {
        match self.choose(VfsOperation::PunchHole, Some(class))? {
            Some(_) => Ok(()),
            None => self.inner.punch_hole(offset, length, class),
        }
    }

    fn preallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.choose(VfsOperation::Preallocate, None)?;
        self.inner.preallocate(offset, length)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.check_poison("truncation");
        match self.choose(VfsOperation::Truncate, None)? {
            Some(_) => Ok(()),
            None => self.inner.truncate(length),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.choose(VfsOperation::Len, None)?;
        self.inner.len()
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }

    fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
        self.inner.poison();
    }
}

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
        // The new name first: it says what kind of file it becomes.
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

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        self.faults.pass(VfsOperation::FreeSpace, &[path])?;
        self.inner.free_space(path)
    }
}
