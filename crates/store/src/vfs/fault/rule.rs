//! Fault rules: which operations fail, and how.
//!
//! 1. A test builds a [`FaultRule`] from [`FaultRule::new`] and the filters behind it.
//! 2. `ActiveRule::decide` matches a call against the filters (`FaultRule::matches`), counts it,
//!    and says whether the fault happens.
//!
//! What must stay true: a rule with the same seed makes the same decisions for the same calls.

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
    FinishWriteback,
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

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Fails with EIO and does nothing.
    Io,
    /// Fails with this error of the operating system and does nothing.
    Errno(i32),
    /// Fails with ENOSPC and does nothing.
    NoSpace,
    /// Fails with EDQUOT and does nothing.
    Quota,
    /// Fails with EINTR and does nothing.
    Interrupted,
    /// Fails with EOPNOTSUPP and does nothing.
    Unsupported,
    /// Fails with EMFILE and does nothing.
    TooManyOpenFiles,
    /// A read returns half of the bytes. A write does its first half and fails with ENOSPC.
    Short,
    /// Flips one bit of what is read or written.
    FlippedBit,
    /// A read returns the bytes of the block before, or of the next one at the start of the file. A
    /// write, punch or truncation returns success but is not done, so the old bytes stay.
    StaleBlock,
    /// Everything read or written is zeros.
    Zeros,
    /// Takes longer by this time, and then succeeds.
    Delay(Duration),
    /// A read or write takes the time that a device with this number of bytes a second needs. The
    /// device serves the calls of a rule one after the other. Then the call succeeds.
    Bandwidth(u64),
    /// Does not return while the rule exists, and then succeeds.
    Hang,
    /// Panics, as a bug above the file system would.
    Panic,
}

impl Fault {
    /// Returns true if the fault can happen to `operation`. A rule ignores all other operations.
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

    /// Returns the error of a fault that fails a call without doing anything.
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

/// The paths to which a rule applies.
#[derive(Clone, Debug)]
enum PathFilter {
    Any,
    Exactly(PathBuf),
    Contains(String),
    Class(String),
}

/// Which of the matching operations fail.
#[derive(Clone, Copy, Debug)]
enum When {
    Always,
    Nth(u64),
    From(u64),
    Probability { probability: f64, seed: u64 },
}

/// A rule: which operations fail, and how. [`FaultRule::new`] makes one for every operation, and
/// the other methods narrow it.
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
    /// Applies to every operation that `fault` can happen to.
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

    /// Narrows the rule to `operation`.
    #[must_use]
    pub fn on(self, operation: VfsOperation) -> FaultRule {
        FaultRule { operation: Some(operation), ..self }
    }

    /// Narrows the rule to this path. For a rename, link or clone, either path counts.
    #[must_use]
    pub fn path(self, path: impl Into<PathBuf>) -> FaultRule {
        FaultRule { path: PathFilter::Exactly(path.into()), ..self }
    }

    /// Narrows the rule to paths that contain `part`.
    #[must_use]
    pub fn path_contains(self, part: impl Into<String>) -> FaultRule {
        FaultRule { path: PathFilter::Contains(part.into()), ..self }
    }

    /// Narrows the rule to paths of this class ([`path_class`]).
    #[must_use]
    pub fn path_class(self, class: impl Into<String>) -> FaultRule {
        FaultRule { path: PathFilter::Class(class.into()), ..self }
    }

    /// Narrows the rule to calls with this I/O class. Calls without one do not match.
    #[must_use]
    pub fn class(self, class: IoClass) -> FaultRule {
        FaultRule { class: Some(class), ..self }
    }

    /// Narrows the rule to sites whose calling line contains `part`. Needs
    /// [`FaultVfs::capture_callers`](super::FaultVfs::capture_callers).
    #[must_use]
    pub fn caller_contains(self, part: impl Into<String>) -> FaultRule {
        FaultRule { caller: Some(part.into()), ..self }
    }

    /// Narrows the rule to one listed site.
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

    /// Narrows the rule to the `n`-th matching operation, counted from 1 since the rule was added.
    #[must_use]
    pub fn nth(self, n: u64) -> FaultRule {
        FaultRule { when: When::Nth(n), ..self }
    }

    /// Narrows the rule to the `n`-th matching operation (from 1) and all later ones: a permanent
    /// fault.
    #[must_use]
    pub fn from_nth(self, n: u64) -> FaultRule {
        FaultRule { when: When::From(n), ..self }
    }

    /// Gives each matching operation this probability (0 to 1) of failing, drawn from `seed`.
    #[must_use]
    pub fn probability(self, probability: f64, seed: u64) -> FaultRule {
        FaultRule { when: When::Probability { probability, seed }, ..self }
    }

    /// Narrows the rule to the first time that the fault would happen.
    #[must_use]
    pub fn once(self) -> FaultRule {
        FaultRule { once: true, ..self }
    }

    /// Returns true if the rule's filters apply to a call.
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

/// A call site of the file system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The call.
    pub operation: VfsOperation,
    /// The class of the (first) path ([`path_class`]).
    pub path_class: String,
    /// The I/O class, for calls that move data.
    pub class: Option<IoClass>,
    /// The calling line as `file:line`, if
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

/// Returns the kind of file that a name stands for: its extension if that is no number, or else its
/// leading letters ("MANIFEST" for "MANIFEST-000012"), or else "other".
#[must_use]
pub fn path_class(path: &Path) -> String {
    // A number at the end is no class: it may be a time.
    let extension = path.extension().map(|extension| extension.to_string_lossy());
    if let Some(extension) = extension.filter(|text| !text.chars().all(|c| c.is_ascii_digit())) {
        return extension.into_owned();
    }
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let letters: String = name.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    if letters.is_empty() { "other".to_owned() } else { letters }
}

/// A rule with its counters.
pub(super) struct ActiveRule {
    pub(super) rule: FaultRule,
    /// Number of calls that matched.
    matched: u64,
    /// Number of times that the fault happened.
    pub(super) happened: u64,
    /// State of the random numbers.
    random: u64,
    /// When the device of [`Fault::Bandwidth`] has served all earlier calls.
    free_at: Option<Instant>,
}

impl ActiveRule {
    /// Starts the counters of a rule.
    pub(super) fn new(rule: FaultRule, salt: u64) -> ActiveRule {
        let random = match rule.when {
            When::Probability { seed, .. } => seed,
            _ => salt,
        };
        ActiveRule { rule, matched: 0, happened: 0, random, free_at: None }
    }

    /// Returns a random number if the fault happens to this call.
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

    /// Returns the end of a transfer of `bytes`, which begins when the transfers before it end.
    pub(super) fn transfer(&mut self, bytes: u64, bytes_per_second: u64) -> Instant {
        let now = clock::now();
        let begin = self.free_at.map_or(now, |free_at| free_at.max(now));
        let end = begin + Duration::from_secs_f64(bytes as f64 / bytes_per_second.max(1) as f64);
        self.free_at = Some(end);
        end
    }

    /// Returns the next number of splitmix64.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.random;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}
