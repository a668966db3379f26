//! Whether an operation that failed is worth another try.

use std::io;
use std::time::Duration;

use crate::base::error::Error;
use crate::base::system::is_out_of_descriptors;

/// Whether the same call may succeed later, and when. What [`Error::retry`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// The same call fails again until somebody changes something: the call, the options, the
    /// files, or the state of the database (`Db::resume`).
    Never,
    /// The same call may succeed later, by itself: once space, descriptors or a lock are free, or
    /// what was paused goes on.
    Later,
    /// The same call is expected to succeed after this time.
    After(Duration),
    /// The transaction has failed, and the same may succeed in a new one.
    NewTransaction,
    /// The same call may succeed once the reader is no longer behind the writer: after
    /// `Db::try_catch_up_with_primary` of a secondary, or in a database that is opened again.
    CaughtUp,
}

impl Error {
    /// Whether the same call may succeed later, and when.
    ///
    /// | error | retry |
    /// | --- | --- |
    /// | `WouldStall` | `After`: the expected time |
    /// | `TimedOut`, `Locked`, `BackgroundPaused`, `ManualCompactionPaused` | `Later` |
    /// | `Io`: no space, quota, descriptors or memory; busy, interrupted, timed out | `Later` |
    /// | `Io`: anything else | `Never` |
    /// | `Behind` | `CaughtUp` |
    /// | `Busy`, `TryAgain`, `Deadlock` | `NewTransaction` |
    /// | `LockTimedOut` | `Later` |
    /// | `Background`, degraded: writes are taken again once the cause is gone | `Later` |
    /// | `Background`, read-only: until `Db::resume` | `Never` |
    /// | `InvalidArgument`, `NoSuchColumnFamily`, `NoMergeOperator`, `NoSavePoint` | `Never` |
    /// | `NotSecondary`, `NotBottommost`, `NotInLog`, `NotInMemory`, `TooManySkipped` | `Never` |
    /// | `Corruption`, `InconsistentEdit`, `IncompatibleDirectory` | `Never` |
    /// | `LockLimit`, `TransactionSize`, `TransactionOver` | `Never` |
    /// | `MergeFailed`, `FilterFailed`, `Panicked`, `ReadOnly`, `Closed` | `Never` |
    /// | `OfParentProcess`, `NoSuchBackup`, `BackupDeleted`, `Cancelled` | `Never` |
    ///
    /// A write that failed is there as a whole or not at all, so it is safe to repeat a `put` or
    /// `delete`; a `merge` may then be there twice, unless the error is `WouldStall`.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Error::WouldStall { retry_after, .. } => Retry::After(*retry_after),
            Error::TimedOut(_)
            | Error::LockTimedOut { .. }
            | Error::Locked { .. }
            | Error::BackgroundPaused
            | Error::ManualCompactionPaused => Retry::Later,
            Error::Io { source, .. } if passes(source) => Retry::Later,
            Error::Background { state: "degraded", .. } => Retry::Later,
            Error::Behind { .. } => Retry::CaughtUp,
            Error::Busy { .. } | Error::TryAgain { .. } | Error::Deadlock { .. } => {
                Retry::NewTransaction
            }
            Error::Io { .. }
            | Error::Background { .. }
            | Error::Corruption { .. }
            | Error::InconsistentEdit { .. }
            | Error::InvalidArgument(_)
            | Error::IncompatibleDirectory { .. }
            | Error::MergeFailed { .. }
            | Error::FilterFailed { .. }
            | Error::NoSuchColumnFamily(_)
            | Error::NoMergeOperator(_)
            | Error::NotInLog(_)
            | Error::NotSecondary
            | Error::NotInMemory
            | Error::TooManySkipped(_)
            | Error::NotBottommost { .. }
            | Error::NoSavePoint
            | Error::NoSuchBackup(_)
            | Error::BackupDeleted(_)
            | Error::Cancelled(_)
            | Error::TransactionOver(_)
            | Error::LockLimit(_)
            | Error::TransactionSize { .. }
            | Error::Panicked { .. }
            | Error::ReadOnly(_)
            | Error::Closed
            | Error::OfParentProcess => Retry::Never,
        }
    }

    /// Whether another try is worth it: [`Error::retry`] is not [`Retry::Never`].
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.retry() != Retry::Never
    }
}

/// True for a refusal of the operating system that ends without anybody's doing.
fn passes(error: &io::Error) -> bool {
    use io::ErrorKind::{
        Interrupted, OutOfMemory, QuotaExceeded, ResourceBusy, StorageFull, TimedOut, WouldBlock,
    };
    is_out_of_descriptors(error)
        || matches!(
            error.kind(),
            Interrupted
                | OutOfMemory
                | QuotaExceeded
                | ResourceBusy
                | StorageFull
                | TimedOut
                | WouldBlock
        )
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use rustix::io::Errno;

    use super::*;
    use crate::base::error::CorruptionKind;

    #[test]
    fn what_passes_by_itself_is_worth_another_try() {
        let io = |errno: Errno| Error::io("write", Path::new("000001.sat"), errno.into());
        for errno in [
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
            Errno::BUSY,
            Errno::INTR,
            Errno::AGAIN,
        ] {
            assert_eq!(io(errno).retry(), Retry::Later, "{errno}");
        }
        for errno in [Errno::IO, Errno::ACCESS, Errno::PERM, Errno::NOENT, Errno::ROFS] {
            assert_eq!(io(errno).retry(), Retry::Never, "{errno}");
        }
        let background = |state| Error::Background { state, cause: Arc::new(io(Errno::NOSPC)) };
        assert_eq!(background("degraded").retry(), Retry::Later);
        assert_eq!(background("read-only").retry(), Retry::Never);
        let retry_after = Duration::from_millis(3);
        let stall = Error::WouldStall { retry_after, cause: "level 0" };
        assert_eq!(stall.retry(), Retry::After(retry_after));
        assert_eq!(Error::Behind { cause: String::new() }.retry(), Retry::CaughtUp);
        let damage = Error::corruption(Path::new("1"), 0, CorruptionKind::Checksum);
        assert!(!damage.is_retryable() && !Error::Closed.is_retryable());
    }
}
