//! The logs that readers may want beyond what recovery needs: the way back along the links from
//! where replay ended, as far as it goes.

use std::time::Duration;

use sateen_control::{Instant, SeqNo};
use sateen_store::base::error::{Error, Result};
use sateen_store::files::wal_file_name;
use sateen_store::vfs::{OpenOptions, Vfs};
use sateen_store::wal::{KeptLog, ReadableLog, WalEnd, WalReader, WalWriter};

use super::Opening;

/// What was read of a log; `None` if the log is of no use to readers. See
/// [`Opening::find_kept_logs`].
fn of_use<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_environment() && !error.is_device_failure() => Err(error),
        Err(_) => Ok(None),
    }
}

impl Opening {
    /// [`Opening::find_kept_logs`], without the space behind them that was reserved for more.
    pub(super) fn take_kept_logs(&self) -> Result<Vec<KeptLog>> {
        let kept = self.find_kept_logs()?;
        if !self.read_only {
            self.trim_kept_logs(&kept);
        }
        Ok(kept)
    }

    /// The logs behind which the next one comes, oldest first. A log that is damaged, or that the
    /// device cannot read, ends the way: an open does not fail of what only readers of the log
    /// would need.
    ///
    /// # Errors
    /// Any other error of the environment: logs that are not kept are removed, and a log is not
    /// superfluous because there were too many open files.
    fn find_kept_logs(&self) -> Result<Vec<KeptLog>> {
        let mut kept = Vec::new();
        let mut next = self.replayed_to.map(|position| (position.number, position.end));
        while let Some((number, end)) = next {
            let path = wal_file_name(&self.wal_directory(), number);
            if !self.logs.contains(&number) {
                break;
            }
            let uid = self.versions.db_uid();
            let looked = WalReader::look(self.vfs.as_ref(), &path, number, uid);
            let Some((link, begins)) = of_use(looked)?.flatten() else { break };
            let file = self.vfs.open(&path, OpenOptions::READ);
            let file = of_use(file.map_err(|e| Error::io("open", &path, e)))?;
            let Some(file) = file else { break };
            let length = file.len().map_err(|e| Error::io("read the length of", &path, e));
            // Shorter than its successor says: what a power loss took was not synced then.
            if of_use(length)?.unwrap_or(0) < end {
                break;
            }
            let written = file.modified().ok().flatten();
            let now = self.options.wall_clock.seconds();
            let age = Duration::from_secs(written.map_or(0, |at| now.saturating_sub(at)));
            let readable = ReadableLog { number, end, begins };
            kept.push(KeptLog { readable, age, at: Instant::default() });
            next = (link.number.0 > 0 && link.number < number).then_some((link.number, link.end));
        }
        kept.reverse();
        Ok(kept)
    }

    /// Gives back what a process that died had reserved for the last of these logs. Best effort.
    pub(super) fn trim_kept_logs(&self, kept: &[KeptLog]) {
        for KeptLog { readable, .. } in kept.iter().filter(|_| !self.read_only) {
            let path = wal_file_name(&self.wal_directory(), readable.number);
            let _more_space_taken = self.vfs.open(&path, OpenOptions::WRITE).and_then(|file| {
                // What has another name is left as it is.
                if file.links()? == 1 { file.truncate(file.len()?) } else { Ok(()) }
            });
        }
    }

    /// Makes `log` the one after those that are kept. Its link is durable before an edit says that
    /// no older log is needed: it is all that leads to them from then on.
    pub(super) fn link_first_wal(&self, log: &mut WalWriter, kept: &[KeptLog]) -> Result<()> {
        let next_seqno = SeqNo(self.last_seqno.0 + 1);
        match self.replayed_to {
            Some(position) if !kept.is_empty() => {
                log.follow(WalEnd { position: Some(position), sync: None, next_seqno })?;
                log.write_link()?;
                log.sync_handle().sync().map(drop)
            }
            // Everything older is in tables.
            _ => log.begin_anew(next_seqno),
        }
    }
}
