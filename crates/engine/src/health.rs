//! The health of a database: whether it takes writes, and if not, why.
//!
//! 1. [`HealthState::raise`] records a failure. A later failure counts only if it is worse.
//! 2. [`HealthState::check`] refuses writes with the recorded cause.
//! 3. [`HealthState::clear`] ends the state: after a job has succeeded, or when the chores or a
//!    client's `resume` have recovered the database.
//!
//! Each change is reported to the [`HealthListener`] and queued for the event listeners.

use std::sync::Arc;

use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicU8, Ordering};
use sateen_store::base::sync::{Mutex, lock};

use crate::events::Events;

/// The health of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Everything works.
    Ok,
    /// The background cannot work because of something that may go away, such as a full disk.
    /// Writes are refused with the cause. The engine retries by itself.
    Degraded,
    /// Something failed that does not go away by itself. Reads go on. Writes are refused until
    /// [`Db::resume`](crate::Db::resume) succeeds.
    ReadOnly,
}

impl Health {
    /// Returns the health after the WAL or the manifest could not be written: degraded if the
    /// operating system refused something that it may grant later, such as space, memory or a
    /// descriptor.
    pub(crate) fn after(error: &Error) -> Health {
        let may_pass = error.is_environment() && !error.is_device_failure();
        if may_pass { Health::Degraded } else { Health::ReadOnly }
    }

    /// Returns the name in metrics and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Health::Ok => "ok",
            Health::Degraded => "degraded",
            Health::ReadOnly => "read-only",
        }
    }
}

type Heard = dyn Fn(Health, Option<&Error>) + Send + Sync;

/// A callback for changes of a database's health. It receives the new health and, unless the
/// database has recovered, the cause. RocksDB: `OnBackgroundError` and `OnErrorRecoveryEnd` of an
/// `EventListener`.
///
/// The thread that noticed the change calls it, which may be a writer's thread. It must return
/// soon, must not panic, and must not call the database.
#[derive(Clone)]
pub struct HealthListener(Arc<Heard>);

impl HealthListener {
    /// Creates a listener that calls `hear`.
    pub fn new(hear: impl Fn(Health, Option<&Error>) + Send + Sync + 'static) -> HealthListener {
        HealthListener(Arc::new(hear))
    }
}

impl std::fmt::Debug for HealthListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HealthListener")
    }
}

/// Clones of one listener are equal.
impl PartialEq for HealthListener {
    fn eq(&self, other: &HealthListener) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The health of an open database, which only gets worse until it is cleared.
pub(crate) struct HealthState {
    /// Told of each change at once.
    listener: Option<HealthListener>,
    /// Told of each change through their queue.
    events: Arc<Events>,
    /// The [`Health`] as a number. Writers read it without a lock.
    code: AtomicU8,
    /// The first cause of the present state.
    cause: Mutex<Option<Arc<Error>>>,
}

impl HealthState {
    pub(crate) fn new(listener: Option<HealthListener>, events: Arc<Events>) -> HealthState {
        HealthState { listener, events, code: AtomicU8::new(0), cause: Mutex::new(None) }
    }

    #[inline]
    pub(crate) fn health(&self) -> Health {
        match self.code.load(Ordering::Acquire) {
            0 => Health::Ok,
            1 => Health::Degraded,
            _ => Health::ReadOnly,
        }
    }

    /// Returns the cause of the present state, if the database is not healthy.
    pub(crate) fn cause(&self) -> Option<Arc<Error>> {
        lock(&self.cause).clone()
    }

    /// Fails with the error that writes are refused with, if they are refused.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.code.load(Ordering::Acquire) == 0 { Ok(()) } else { Err(self.refusal()) }
    }

    #[cold]
    fn refusal(&self) -> Error {
        let cause = self.cause().unwrap_or_else(|| Arc::new(Error::Closed));
        Error::Background { state: self.health().name(), cause }
    }

    /// Records a failure. The state only gets worse, and the first cause of a state stays.
    pub(crate) fn raise(&self, health: Health, error: &Error) {
        {
            let mut cause = lock(&self.cause);
            if health <= self.health() {
                return;
            }
            *cause = Some(Arc::new(error.clone()));
            self.code.store(health as u8, Ordering::Release);
        }
        self.tell(health, Some(error));
    }

    /// Reports damage that does not stop the database from working.
    pub(crate) fn found(&self, damage: &Error) {
        self.tell(self.health(), Some(damage));
    }

    fn tell(&self, health: Health, cause: Option<&Error>) {
        if let Some(HealthListener(hear)) = &self.listener {
            hear(health, cause);
        }
        match cause {
            Some(error) => self.events.failed(error),
            None if health == Health::Ok => self.events.recovered(),
            None => {}
        }
    }

    /// Ends the present state. Returns true if the database was not healthy before.
    pub(crate) fn clear(&self) -> bool {
        let was = {
            let mut cause = lock(&self.cause);
            self.code.store(0, Ordering::Release);
            cause.take().is_some()
        };
        if was {
            self.tell(Health::Ok, None);
        }
        was
    }
}
