//! What is wrong with a database, if anything: ok, degraded (writes are refused, it mends itself
//! when the cause is gone), read-only (until `resume`).

use std::sync::Arc;

use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicU8, Ordering};
use sateen_store::base::sync::{Mutex, lock};

use crate::events::Events;

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

type Heard = dyn Fn(Health, Option<&Error>) + Send + Sync;

/// Hears when the health of a database changes: the new one and, unless all is well again, why.
/// RocksDB: `OnBackgroundError` and `OnErrorRecoveryEnd` of an `EventListener`.
///
/// It is called by the thread that found out, which may be a writer's: it must return soon, may not
/// panic, and may not call the database.
#[derive(Clone)]
pub struct HealthListener(Arc<Heard>);

impl HealthListener {
    /// A listener that calls `hear`.
    pub fn new(hear: impl Fn(Health, Option<&Error>) + Send + Sync + 'static) -> HealthListener {
        HealthListener(Arc::new(hear))
    }
}

impl std::fmt::Debug for HealthListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HealthListener")
    }
}

/// Equal are clones of one.
impl PartialEq for HealthListener {
    fn eq(&self, other: &HealthListener) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The sticky state.
pub(crate) struct HealthState {
    listener: Option<HealthListener>,
    events: Arc<Events>,
    code: AtomicU8,
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

    /// Damage was found that keeps nobody from working so far.
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

    /// All is well again. Returns whether it was not before.
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
