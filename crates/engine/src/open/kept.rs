//! Finds the WALs that readers may want although recovery does not need them. It follows the links
//! back from where replay ended, as far as they lead.

use std::time::Duration;

use sateen_control::{Instant, SeqNo};
use sateen_store::base::error::{Error, Result};
use sateen_store::files::wal_file_name;
use sateen_store::vfs::{OpenOptions, Vfs};
use sateen_store::wal::{KeptLog, ReadableLog, WalEnd, WalReader, WalWriter};

use super::Opening;

/// Returns what was read of a WAL, or `None` if the WAL cannot be used. [`Opening::find_kept_logs`]
/// says which errors are returned.
fn of_use<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_environment() && !error.is_device_failure() => Err(error),
        Err(_) => Ok(None),
    }
}

/// What a file takes beyond its length at most if nothing is preallocated: a block of the file
/// system.
const BLOCK_BYTES_MAX: u64 = 64 << 10;

impl Opening {
    /// Returns what [`Opening::find_kept_logs`] does, and frees the preallocated space of these
    /// WALs.
    pub(super) fn take_kept_logs(&self) -> Result<Vec<KeptLog>> {
        let kept = self.find_kept_logs()?;
        if !self.read_only {
            self.trim_kept_logs(&kept);
        }
        Ok(kept)
    }

    /// Returns the WALs before the next one, oldest first. A WAL that is damaged, or that the
    /// device cannot read, ends the search: an open does not fail because of a WAL that only
    /// readers need.
    ///
    /// # Errors
    /// Any other error of the environment, such as too many open files. WALs that are not returned
    /// are removed, so they must not be left out for a passing reason.
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
            // It is shorter than its successor says. A power loss took bytes that were not synced.
            if of_use(length)?.unwrap_or(0) < end {
                break;
            }
            let written = file.modified().ok().flatten();
            let now = self.options.wall_clock.seconds();
            // What was just replayed has been needed until now.
            let is_unneeded = number < self.versions.oldest_log();
            let written = written.filter(|_| is_unneeded);
            let age = Duration::from_secs(written.map_or(0, |at| now.saturating_sub(at)));
            let readable = ReadableLog { number, end, begins };
            kept.push(KeptLog { readable, age, at: Instant::default() });
            next = (link.number.0 > 0 && link.number < number).then_some((link.number, link.end));
        }
        kept.reverse();
        Ok(kept)
    }

    /// Frees the space that a process which died had preallocated for these WALs. Best effort.
    pub(super) fn trim_kept_logs(&self, kept: &[KeptLog]) {
        for KeptLog { readable, .. } in kept.iter().filter(|_| !self.read_only) {
            let path = wal_file_name(&self.wal_directory(), readable.number);
            let _more_space_taken = self.vfs.open(&path, OpenOptions::WRITE).and_then(|file| {
                // Others are left as they are: a truncation would change the time of the last
                // write, which tells the age.
                let bytes = file.len()?;
                let is_preallocated = file.allocated()? > bytes + BLOCK_BYTES_MAX;
                // So is a file with another name.
                if is_preallocated && file.links()? == 1 { file.truncate(bytes) } else { Ok(()) }
            });
        }
    }

    /// Links `log` to the kept WALs. The link is durable before an edit says that no older WAL is
    /// needed, because from then on only the link leads to them.
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
