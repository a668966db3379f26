//! The clock by which values expire. It decides nothing else (rule F10).

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the seconds since 1970, which decide only what expires.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl WallClock {
    /// Creates a clock that returns the results of `seconds`, for tests and simulations.
    pub fn new(seconds: impl Fn() -> u64 + Send + Sync + 'static) -> WallClock {
        WallClock(Arc::new(seconds))
    }

    /// Returns the seconds since 1970, at most `u32::MAX`.
    pub(crate) fn now(&self) -> u32 {
        u32::try_from(self.seconds()).unwrap_or(u32::MAX)
    }

    /// Returns the seconds since 1970.
    pub(crate) fn seconds(&self) -> u64 {
        (self.0)()
    }
}

/// The clock of the operating system.
impl Default for WallClock {
    fn default() -> WallClock {
        WallClock::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.unwrap_or_default().as_secs()
        })
    }
}

/// All clocks are equal, so that options can be compared.
impl PartialEq for WallClock {
    fn eq(&self, _other: &WallClock) -> bool {
        true
    }
}

impl std::fmt::Debug for WallClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WallClock").field(&self.now()).finish()
    }
}
