//! Logs that nothing needs any more: they go, or are kept for readers of the log for a while.

use std::time::Duration;

use sateen_control::LogNumber;
use sateen_store::base::error::Result;
use sateen_store::files::wal_file_name;
use sateen_store::vfs::{OpenOptions, Vfs};
use sateen_store::wal::KeepLimits;

use super::Chores;
use crate::options::Options;

impl Chores {
    /// Everything in the logs below `oldest` is in tables. Returns the logs that can be removed.
    pub(crate) fn retire_logs(&self, oldest: LogNumber) -> Vec<LogNumber> {
        let limits = keep_limits(&self.env.options.load());
        let now = self.env.now();
        let mut kept = self.writes.kept_logs.lock();
        let (mut added, mut gone) = (Vec::new(), Vec::new());
        for log in self.writes.pipeline.retire_logs_below(oldest) {
            if kept.add(log, now) { added.push(log) } else { gone.push(log.number) }
        }
        gone.extend(kept.expire(limits, now));
        drop(kept);
        for log in added.iter().filter(|log| !gone.contains(&log.number)) {
            // The space that was reserved for more, and that no limit counts. Best effort.
            let path = wal_file_name(&self.env.wal_directory(), log.number);
            let options = OpenOptions::WRITE;
            let _more_space_taken = self.env.vfs.open(&path, options).and_then(|file| {
                // What has another name is left as it is.
                if file.links()? == 1 { file.truncate(log.end) } else { Ok(()) }
            });
        }
        gone
    }

    /// Removes the files of logs.
    pub(crate) fn remove_logs(&self, logs: &[LogNumber]) {
        for number in logs {
            // A log that stays is removed as an orphan at the next open.
            let _orphan = self.env.vfs.remove(&wal_file_name(&self.env.wal_directory(), *number));
        }
    }

    /// Before an edit says that logs are not needed: where they are kept they are durable, and so
    /// is the link that leads to them from the log in use.
    pub(crate) fn sync_kept_logs(&self) -> Result<()> {
        if self.env.options.load().keeps_logs() {
            self.writes.pipeline.sync_wal().map(drop)
        } else {
            Ok(())
        }
    }
}

/// How much of what only readers of the WAL need is kept.
fn keep_limits(options: &Options) -> KeepLimits {
    let limit = |value: u64| (value > 0).then_some(value);
    KeepLimits {
        age: limit(options.wal_ttl_seconds).map(Duration::from_secs),
        bytes: limit(options.wal_size_limit_bytes),
    }
}
