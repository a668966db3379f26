//! WALs that nothing needs any more: they are removed, or kept for a while for readers of the WAL.

use std::time::Duration;

use sateen_control::LogNumber;
use sateen_store::base::error::Result;
use sateen_store::files::wal_file_name;
use sateen_store::vfs::{OpenOptions, Vfs};
use sateen_store::wal::KeepLimits;

use super::Chores;
use crate::options::Options;

impl Chores {
    /// Retires the WALs below `oldest`, whose entries are all in tables. Returns the WALs that can
    /// be removed.
    pub(crate) fn retire_logs(&self, oldest: LogNumber) -> Vec<LogNumber> {
        let limits = keep_limits(&self.env.options.load());
        let now = self.env.now();
        let mut kept = self.writes.kept_logs.lock();
        let (mut added, mut gone) = (Vec::new(), Vec::new());
        for log in self.writes.pipeline.retire_logs_below(oldest) {
            if kept.add(log, now) { added.push(log) } else { gone.push(log.number) }
        }
        gone.extend(kept.expire(limits, now));
        let next = kept.expires_in(limits, now).map(|left| now + left);
        drop(kept);
        // A database at rest is to remove them, too.
        self.board.again_at(next);
        for log in added.iter().filter(|log| !gone.contains(&log.number)) {
            // A kept WAL is cut to its end. No limit counts the space that was preallocated. A
            // failure only leaves that space allocated.
            let path = wal_file_name(&self.env.wal_directory(), log.number);
            let options = OpenOptions::WRITE;
            let _more_space_taken = self.env.vfs.open(&path, options).and_then(|file| {
                // A file with another name (of a checkpoint, say) is left as it is.
                if file.links()? == 1 { file.truncate(log.end) } else { Ok(()) }
            });
        }
        gone
    }

    /// Removes the files of WALs.
    pub(crate) fn remove_logs(&self, logs: &[LogNumber]) {
        for number in logs {
            // A WAL that cannot be removed is an orphan, which the next open removes.
            let _orphan = self.env.vfs.remove(&wal_file_name(&self.env.wal_directory(), *number));
        }
    }

    /// Syncs the WAL, if WALs are kept for readers. Called before an edit declares WALs obsolete:
    /// the kept WALs, and the link that leads to them from the active one, must be durable.
    pub(crate) fn sync_kept_logs(&self) -> Result<()> {
        if self.env.options.load().keeps_logs() {
            self.writes.pipeline.sync_wal().map(drop)
        } else {
            Ok(())
        }
    }
}

/// Returns the limits of the WALs that are kept for readers.
fn keep_limits(options: &Options) -> KeepLimits {
    let limit = |value: u64| (value > 0).then_some(value);
    KeepLimits {
        age: limit(options.wal_ttl_seconds).map(Duration::from_secs),
        bytes: limit(options.wal_size_limit_bytes),
    }
}
