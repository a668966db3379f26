//! What an observer of a file system is told of each call.

use std::io;
use std::path::Path;

use super::IoClass;

/// Calls on files and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoOperation {
    Open,
    Create,
    Read,
    /// A read that was done at the same time as others.
    ReadWithOthers,
    Write,
    Sync,
    FinishWriteback,
    PunchHole,
    Preallocate,
    Truncate,
    SyncDir,
    Clone,
    Rename,
    Remove,
    Link,
    List,
}

/// A call that is done.
#[derive(Clone, Copy, Debug)]
pub struct IoEvent<'a> {
    pub operation: IoOperation,
    /// The file or directory. Of two names, the one that was there before.
    pub path: &'a Path,
    /// The class of a data call.
    pub class: Option<IoClass>,
    /// Offset and length of a data call.
    pub place: Option<(u64, u64)>,
    /// The file's new size.
    pub size: Option<u64>,
    /// Nanoseconds that it took.
    pub ns: u64,
    /// The error of a call that failed.
    pub error: Option<&'a io::Error>,
}

impl<'a> IoEvent<'a> {
    pub(super) fn new(operation: IoOperation, path: &'a Path) -> IoEvent<'a> {
        let (class, place, size) = (None, None, None);
        IoEvent { operation, path, class, place, size, ns: 0, error: None }
    }
}

/// Somebody who is told of each call on a file system, on the thread that made it.
pub trait IoObserver: Send + Sync {
    /// Is told of a call that is done. It must not wait.
    fn done(&self, event: &IoEvent<'_>);
}
