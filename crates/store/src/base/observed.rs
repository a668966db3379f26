//! Something whose events are told to an observer, while there is one.
//!
//! What must stay true: without an observer an event costs one relaxed load, and its details are
//! not made.

use std::fmt;
use std::sync::Arc;
// Not of [`sync`](super::sync): nothing waits for the flag, and who asks may hold a lock of
// `sync::leaf` or borrow a thread-local.
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;

/// An observer, or the place of one.
pub struct Observed<T: ?Sized + 'static> {
    on: AtomicBool,
    observer: ArcSwapOption<Arc<T>>,
}

impl<T: ?Sized> Observed<T> {
    /// Returns true if there is an observer.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Replaces the observer. An event that has begun may still be told to the one before.
    pub fn set(&self, observer: Option<Arc<T>>) {
        let is_on = observer.is_some();
        self.observer.store(observer.map(Arc::new));
        self.on.store(is_on, Ordering::Release);
    }

    /// Calls `tell` with the observer, if there still is one.
    #[cold]
    pub fn tell(&self, tell: impl FnOnce(&T)) {
        if let Some(observer) = self.observer.load_full() {
            tell(&observer);
        }
    }
}

impl<T: ?Sized> Default for Observed<T> {
    fn default() -> Observed<T> {
        Observed { on: AtomicBool::new(false), observer: ArcSwapOption::empty() }
    }
}

impl<T: ?Sized> fmt::Debug for Observed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("on", &self.is_on()).finish_non_exhaustive()
    }
}
