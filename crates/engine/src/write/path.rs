//! The write path of an open database: the commit pipeline, and what stands beside it: snapshots,
//! spare and kept WALs, memtable memory.

use std::sync::Arc;

use sateen_control::SeqNo;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicBool, Ordering};
use sateen_store::files::spare::SpareFiles;
use sateen_store::memtable::ArenaPool;
use sateen_store::wal::KeptLogs;

use super::prepared::Prepared;
use super::{CommitPipeline, Logging};
use crate::admission::key_locks::KeyLocks;
use crate::admission::write_buffers::WriteBuffers;
use crate::options::{WalMode, WriteOptions};
use crate::snapshot::{Snapshot, SnapshotList};

/// The write path of an open database.
pub(crate) struct WritePath {
    pub(crate) pipeline: CommitPipeline,
    pub(crate) snapshots: Arc<SnapshotList>,
    /// Preallocated WAL files that are not in use yet.
    pub(crate) spare_logs: SpareFiles,
    /// WALs that only readers of the WAL need.
    pub(crate) kept_logs: KeptLogs,
    /// True once a write was not logged. Closing must flush then.
    pub(crate) unlogged_writes: AtomicBool,
    /// Memory of freed memtables, for the next ones.
    pub(crate) memtable_pool: Arc<ArenaPool>,
    /// This database's membership in a limit that several databases share.
    pub(crate) write_buffers: Option<WriteBuffers>,
    /// Locks of pessimistic transactions.
    pub(crate) key_locks: Arc<KeyLocks>,
    /// Prepared transactions.
    pub(crate) prepared: Prepared,
}

impl WritePath {
    /// Takes a snapshot of what is visible now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshots.acquire(|| self.pipeline.visible_seqno())
    }

    /// Returns the sequence numbers that compactions must respect: those of all snapshots, and the
    /// newest visible one.
    pub(crate) fn snapshot_list(&self) -> Vec<SeqNo> {
        self.snapshots.list(|| self.pipeline.visible_seqno())
    }

    /// Returns true if a write was not logged since the database was opened.
    pub(crate) fn has_unlogged_writes(&self) -> bool {
        self.unlogged_writes.load(Ordering::Relaxed)
    }

    /// Returns how a write reaches the WAL, which is in `mode`. Fails if a sync is wanted without a
    /// WAL.
    pub(crate) fn logging(&self, mode: WalMode, options: &WriteOptions) -> Result<Logging> {
        if mode == WalMode::Off || options.disable_wal {
            if options.sync {
                return Err(Error::InvalidArgument(
                    "a synced write needs the WAL, which is switched off".into(),
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
