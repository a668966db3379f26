//! A runtime on which the calls wait.

use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime. Whoever waits runs it: there are no threads of its own.
#[derive(Clone, Debug)]
pub(crate) struct Waiting(Arc<Runtime>);

impl Waiting {
    pub(crate) fn new() -> io::Result<Waiting> {
        Builder::new_current_thread().enable_all().build().map(Arc::new).map(Waiting)
    }

    /// Waits for `work`.
    pub(crate) fn wait<T>(
        &self,
        work: impl Future<Output = object_store::Result<T>>,
    ) -> io::Result<T> {
        if Handle::try_current().is_ok() {
            let text = "called in a task of an async runtime: use spawn_blocking";
            return Err(io::Error::other(text));
        }
        self.0.block_on(work).map_err(|error| io::Error::new(kind(&error), error))
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
