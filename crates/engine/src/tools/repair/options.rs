//! What a caller may choose for a repair, and what it is told.

use std::fmt;
use std::sync::Arc;

use sateen_store::vfs::WantsToStop;

/// Is told of the progress of a repair, and can end it.
pub trait RepairListener: Send + Sync {
    /// Called before each read and write, on the thread of the repair, with the number of bytes
    /// that were read so far. A repair may read a file more than once.
    fn progress(&self, bytes_read: u64) {
        let _ignored = bytes_read;
    }

    /// Returns true if the repair is to end early, with [`Error::Cancelled`](crate::Error). No
    /// existing file has changed then. Once the repair has made a manifest current, it ends by
    /// itself.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Options of [`repair_as`](crate::repair_as).
#[derive(Clone, Default)]
pub struct RepairOptions {
    /// Count a page for which the device returns EIO as damaged, and lose its content. Other errors
    /// of the operating system, and files that cannot be opened, still end the repair. Default:
    /// false.
    pub give_up_unreadable: bool,
    /// Is told of the progress. Default: `None`.
    pub listener: Option<Arc<dyn RepairListener>>,
}

impl RepairOptions {
    pub(super) fn wants_to_stop(&self) -> Option<WantsToStop> {
        let listener = self.listener.clone()?;
        Some(Arc::new(move |bytes| {
            listener.progress(bytes);
            listener.is_cancelled()
        }))
    }
}

impl fmt::Debug for RepairOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RepairOptions")
            .field("give_up_unreadable", &self.give_up_unreadable)
            .field("listener", &self.listener.is_some())
            .finish()
    }
}
