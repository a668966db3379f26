//! A runtime on which the calls wait.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime. Whoever waits runs it: there are no threads of its own.
#[derive(Clone, Debug)]
pub(crate) struct Waiting(Arc<Runtime>);

impl Waiting {
    pub(crate) fn new() -> io::Result<Waiting> {
        Builder::new_current_thread().enable_all().build().map(Arc::new).map(Waiting)
    }

    /// Waits for `work`.
    pub(crate) fn wait<T: Send>(
        &self,
        work: impl Future<Output = object_store::Result<T>> + Send,
    ) -> io::Result<T> {
        let done = if Handle::try_current().is_ok() {
            // A thread that belongs to another runtime must not run this one. Those of
            // `spawn_blocking` cannot be told from those that run tasks.
            thread::scope(|scope| scope.spawn(|| self.0.block_on(work)).join())
                .unwrap_or_else(|panic| resume_unwind(panic))
        } else {
            self.0.block_on(work)
        };
        done.map_err(|error| io::Error::new(kind(&error), error))
    }
}

fn kind(error: &object_store::Error) -> io::ErrorKind {
    match error {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
        object_store::Error::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        object_store::Error::PermissionDenied { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    }
}
