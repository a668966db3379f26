//! What writes pass, and what stands beside the pipeline: the logs, the snapshots, the memory.

use std::sync::Arc;

use sateen_control::SeqNo;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicBool, Ordering};
use sateen_store::files::spare::SpareFiles;
use sateen_store::memtable::ArenaPool;
use sateen_store::wal::KeptLogs;

use super::{CommitPipeline, Logging};
use crate::admission::write_buffers::WriteBuffers;
use crate::options::{WalMode, WriteOptions};
use crate::snapshot::{Snapshot, SnapshotList};

/// The write path of an open database.
pub(crate) struct WritePath {
    pub(crate) pipeline: CommitPipeline,
    pub(crate) snapshots: Arc<SnapshotList>,
    /// Logs that were created before they are needed.
    pub(crate) spare_logs: SpareFiles,
    /// Logs that only readers of the WAL need.
    pub(crate) kept_logs: KeptLogs,
    /// True once a write went past the WAL: closing has to flush.
    pub(crate) unlogged_writes: AtomicBool,
    /// Memory of flushed memtables, for the next ones.
    pub(crate) memtable_pool: Arc<ArenaPool>,
    /// This database's part of a limit that several share.
    pub(crate) write_buffers: Option<WriteBuffers>,
}

impl WritePath {
    /// Takes a snapshot of what is visible now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshots.acquire(|| self.pipeline.visible_seqno())
    }

    /// The sequence numbers that compactions must respect: all snapshots and what is visible now.
    pub(crate) fn snapshot_list(&self) -> Vec<SeqNo> {
        self.snapshots.list(|| self.pipeline.visible_seqno())
    }

    pub(crate) fn has_unlogged_writes(&self) -> bool {
        self.unlogged_writes.load(Ordering::Relaxed)
    }

    /// Returns how a write reaches the WAL, which is in `mode`.
    pub(crate) fn logging(&self, mode: WalMode, options: &WriteOptions) -> Result<Logging> {
        if mode == WalMode::Off || options.disable_wal {
            if options.sync {
                return Err(Error::InvalidArgument(
                    "a synced write needs the log, which is switched off".into(),
                ));
            }
            if mode != WalMode::Off && !self.unlogged_writes.load(Ordering::Relaxed) {
                self.unlogged_writes.store(true, Ordering::Relaxed);
            }
            return Ok(Logging::None);
        }
        let synced = options.sync || mode == WalMode::SyncEachWrite;
        Ok(if synced { Logging::Synced } else { Logging::Buffered })
    }
}
