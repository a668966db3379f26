//! What serves an open database to operators. The engine keeps it until close, and knows no more
//! of it.

use std::any::Any;

/// What an [`Inspector`](crate::Inspector) holds for an open database: a socket, threads. The
/// database drops it when it closes, before anything else; the drop must not wait for the database.
pub struct Inspection {
    _held: Box<dyn Any + Send>,
}

impl Inspection {
    /// Wraps `held`, which is dropped when the database closes.
    pub fn new(held: impl Any + Send) -> Inspection {
        Inspection { _held: Box::new(held) }
    }
}

impl std::fmt::Debug for Inspection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspection").finish_non_exhaustive()
    }
}
