//! What is wrong with a database, if anything: ok, degraded (writes are refused, it mends itself
//! when the cause is gone), read-only (until `resume`).

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::sync::lock;

/// How a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Everything works.
    Ok,
    /// Something that may go away, such as a full disk, keeps the background from working. Writes
    /// are refused with the cause; it is tried again by itself.
    Degraded,
    /// Something that does not go away by itself. Reads go on; writes are refused until
    /// [`Db::resume`](crate::Db::resume) succeeds.
    ReadOnly,
}

impl Health {
    /// The name in metrics and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Health::Ok => "ok",
            Health::Degraded => "degraded",
            Health::ReadOnly => "read-only",
        }
    }
}

/// The sticky state.
#[derive(Default)]
pub(crate) struct HealthState {
    code: AtomicU8,
    cause: Mutex<Option<Arc<Error>>>,
}

impl HealthState {
    #[inline]
    pub(crate) fn health(&self) -> Health {
        match self.code.load(Ordering::Acquire) {
            0 => Health::Ok,
            1 => Health::Degraded,
            _ => Health::ReadOnly,
        }
    }

    pub(crate) fn cause(&self) -> Option<Arc<Error>> {
        lock(&self.cause).clone()
    }

    /// Ok if writes are possible; otherwise the error that they are refused with.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.code.load(Ordering::Acquire) == 0 { Ok(()) } else { Err(self.refusal()) }
    }

    #[cold]
    fn refusal(&self) -> Error {
        let cause = self.cause().unwrap_or_else(|| Arc::new(Error::Closed));
        Error::Background { state: self.health().name(), cause }
    }

    /// Something failed. The state only gets worse; the first cause of a state stays.
    pub(crate) fn raise(&self, health: Health, error: &Error) {
        let mut cause = lock(&self.cause);
        if health > self.health() {
            *cause = Some(Arc::new(error.clone()));
            self.code.store(health as u8, Ordering::Release);
        }
    }

    /// All is well again. Returns whether it was not before.
    pub(crate) fn clear(&self) -> bool {
        let mut cause = lock(&self.cause);
        let was = cause.take().is_some();
        self.code.store(0, Ordering::Release);
        was
    }
}
