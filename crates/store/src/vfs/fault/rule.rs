//! Which operations fail, and how: rules as values, and the counting that goes with each.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, io};

use rustix::io::Errno;

use super::super::IoClass;
use crate::base::clock;

/// The calls of [`Vfs`](crate::vfs::Vfs) and [`VfsFile`](crate::vfs::VfsFile).
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
    Allocated,
    Links,
    Modified,
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
    /// It fails with this error of the operating system and does nothing.
    Errno(i32),
    /// It fails with ENOSPC and does nothing.
    NoSpace,
    /// It fails with EDQUOT and does nothing.
    Quota,
    /// It fails with EINTR and does nothing.
    Interrupted,
    /// It fails with EOPNOTSUPP and does nothing.
    Unsupported,
    /// It fails with EMFILE and does nothing.
    TooManyOpenFiles,
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
    /// A read or write takes what a device of so many bytes a second needs for it, which serves
    /// the calls of a rule one after the other, and then succeeds.
    Bandwidth(u64),
    /// It does not return while the rule stands, and then succeeds.
    Hang,
    /// It panics, as a bug above the file system would.
    Panic,
}

impl Fault {
    /// Whether the fault can happen to `operation`; where it cannot, rules pass it by.
    #[must_use]
    pub fn applies_to(self, operation: VfsOperation) -> bool {
        use VfsOperation as Op;
        match self {
            Fault::Io
            | Fault::Errno(_)
            | Fault::Interrupted
            | Fault::Delay(_)
            | Fault::Hang
            | Fault::Panic => true,
            Fault::NoSpace | Fault::Quota => !matches!(
                operation,
                Op::Open
                    | Op::Read
                    | Op::Len
                    | Op::Allocated
                    | Op::Links
                    | Op::Modified
                    | Op::List
                    | Op::Exists
                    | Op::FreeSpace
            ),
            Fault::Short | Fault::FlippedBit | Fault::Zeros | Fault::Bandwidth(_) => {
                matches!(operation, Op::Read | Op::Write)
            }
            Fault::Unsupported => {
                matches!(operation, Op::PunchHole | Op::Preallocate | Op::CloneFile | Op::HardLink)
            }
            Fault::TooManyOpenFiles => matches!(
                operation,
                Op::Open | Op::Create | Op::CloneFile | Op::List | Op::SyncDir | Op::Lock
            ),
            Fault::StaleBlock => {
                matches!(operation, Op::Read | Op::Write | Op::PunchHole | Op::Truncate)
            }
        }
    }

    pub(super) fn error(self) -> Option<io::Error> {
        match self {
            Fault::Io => Some(Errno::IO.into()),
            Fault::Errno(errno) => Some(io::Error::from_raw_os_error(errno)),
            Fault::NoSpace => Some(Errno::NOSPC.into()),
            Fault::Quota => Some(Errno::DQUOT.into()),
            Fault::Interrupted => Some(Errno::INTR.into()),
            Fault::Unsupported => Some(Errno::OPNOTSUPP.into()),
            Fault::TooManyOpenFiles => Some(Errno::MFILE.into()),
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
    pub(super) fault: Fault,
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

    /// Only calls from a place whose text contains this; needs
    /// [`FaultVfs::capture_callers`](super::FaultVfs::capture_callers).
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

/// A place from which the file system is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The call.
    pub operation: VfsOperation,
    /// The class of its (first) path: see [`path_class`].
    pub path_class: String,
    /// Its purpose, of data calls.
    pub class: Option<IoClass>,
    /// The line it was called from, as `file:line`, if
    /// [`FaultVfs::capture_callers`](super::FaultVfs::capture_callers) is on.
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

/// A rule with what it has seen.
pub(super) struct ActiveRule {
    pub(super) rule: FaultRule,
    matched: u64,
    pub(super) happened: u64,
    random: u64,
    /// When a device of limited bandwidth is done with what it was asked for.
    free_at: Option<Instant>,
}

impl ActiveRule {
    pub(super) fn new(rule: FaultRule, salt: u64) -> ActiveRule {
        let random = match rule.when {
            When::Probability { seed, .. } => seed,
            _ => salt,
        };
        ActiveRule { rule, matched: 0, happened: 0, random, free_at: None }
    }

    /// A random number if it happens to this call.
    pub(super) fn decide(&mut self, site: &Site, paths: &[&Path]) -> Option<u64> {
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

    /// When the transfer of so many bytes is done, which begins when those before it are.
    pub(super) fn transfer(&mut self, bytes: u64, bytes_per_second: u64) -> Instant {
        let now = clock::now();
        let begin = self.free_at.map_or(now, |free_at| free_at.max(now));
        let end = begin + Duration::from_secs_f64(bytes as f64 / bytes_per_second.max(1) as f64);
        self.free_at = Some(end);
        end
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
