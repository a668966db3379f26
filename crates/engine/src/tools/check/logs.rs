//! Checks of WALs, record by record.
//!
//! 1. [`Checker::check_logs`] replays the chain of WALs as the next open would. An error counts
//!    only if it comes twice: WALs change while they are read.
//! 2. If the chain is damaged, `check_each_log` reads each WAL by itself.
//! 3. `check_kept_logs` follows the links to older WALs, which are kept for readers.

use sateen_control::LogNumber;
use sateen_store::base::error::Result;
use sateen_store::files::wal_file_name;
use sateen_store::wal::{LogPlace, Tail, WalChain, WalReader};

use super::{Checker, TRIES_MAX, View, view_of};
use crate::tree::manifest_follower::ManifestFollower;
use crate::tree::version_set::durable_log;

/// What a replay has read.
#[derive(Default)]
struct Replayed {
    logs: Vec<LogNumber>,
    records: u64,
    /// The WAL with a torn tail, the tail's offset, and its length in bytes.
    torn: Option<(LogNumber, u64, u64)>,
}

impl Checker<'_> {
    /// Checks that the WALs can be replayed, and those that are kept for readers.
    pub(super) fn check_logs(&mut self, manifest: &mut ManifestFollower) -> Result<()> {
        let mut failed: Option<String> = None;
        for _ in 0..TRIES_MAX {
            (self.goes_on)()?;
            self.advance(manifest);
            let view = view_of(manifest);
            let replayed = self.find_logs(&view).and_then(|logs| {
                let replayed = self.replay(&view, &logs)?;
                Ok((logs, replayed))
            });
            match replayed {
                Ok((logs, replayed)) => {
                    self.report.logs += replayed.logs.len() as u64;
                    self.report.log_records += replayed.records;
                    if let Some((log, offset, bytes)) = replayed.torn {
                        let path = wal_file_name(&self.wal_directory, log);
                        self.note_torn(&path, offset, bytes);
                    }
                    return self.check_kept_logs(&view, &logs);
                }
                // The same error twice: the WAL was not being written while it was read, and it was
                // still needed after it had failed.
                Err(error) if failed.as_ref() == Some(&error.to_string()) => {
                    self.problem(error);
                    let oldest = view.oldest_log();
                    return self.check_each_log(&view, &|log| log >= oldest);
                }
                Err(error) => failed = Some(error.to_string()),
            }
        }
        let text = "the WALs were not checked: they change faster than they can be read";
        self.report.notes.push(text.to_owned());
        Ok(())
    }

    /// Chooses the directory of the WALs as the next open would. Returns the WALs in it.
    fn find_logs(&mut self, view: &View) -> Result<Vec<LogNumber>> {
        let (vfs, oldest) = (self.vfs.as_ref(), view.oldest_log());
        let place = LogPlace::find(vfs, &self.directory, &self.wal_dir, oldest, view.db_uid)?;
        self.wal_directory = place.directory;
        Ok(place.logs)
    }

    /// Replays the WALs as the next open would.
    fn replay(&self, view: &View, logs: &[LogNumber]) -> Result<Replayed> {
        let needed = view.oldest_log();
        if needed > LogNumber(0) && !logs.contains(&needed) {
            return Err(self.missing_log(needed));
        }
        let (directory, uid) = (&self.wal_directory, view.db_uid);
        let logs = logs.iter().copied();
        let durable = durable_log(&view.families);
        let mut chain = WalChain::open(self.vfs.clone(), directory, logs, uid, needed, durable)?;
        let mut replayed = Replayed::default();
        while let Some(record) = chain.next()? {
            record.for_each_entry(directory, |_, _| {})?;
            replayed.records += 1;
        }
        let end = chain.into_end();
        if let (Some(position), Tail::Torn { offset, bytes }) = (end.position, end.tail) {
            replayed.torn = Some((position.number, offset, bytes));
        }
        replayed.logs = end.replayed;
        Ok(replayed)
    }

    /// Checks the older WALs that are kept for readers. The links lead to them.
    fn check_kept_logs(&mut self, view: &View, logs: &[LogNumber]) -> Result<()> {
        let mut next = view.oldest_log();
        loop {
            let path = wal_file_name(&self.wal_directory, next);
            let looked = WalReader::look(self.vfs.as_ref(), &path, next, view.db_uid);
            let before = match looked {
                Ok(Some((link, _))) if link.number < next => link.number,
                _ => return Ok(()),
            };
            if before == LogNumber(0) || !logs.contains(&before) {
                return Ok(());
            }
            next = before;
            self.check_each_log(view, &|log| log == next)?;
        }
    }

    /// Reads each of the `wanted` WALs by itself.
    pub(super) fn check_each_log(
        &mut self,
        view: &View,
        wanted: &dyn Fn(LogNumber) -> bool,
    ) -> Result<()> {
        for log in self.logs()?.into_iter().filter(|log| wanted(*log)) {
            (self.goes_on)()?;
            let path = wal_file_name(&self.wal_directory, log);
            let mut read = self.read_log(view, log);
            if read.is_err() {
                // The WAL may have been written or removed while it was read.
                read = self.read_log(view, log);
            }
            match read {
                Ok((records, torn)) => {
                    self.report.logs += 1;
                    self.report.log_records += records;
                    if let Tail::Torn { offset, bytes } = torn {
                        self.note_torn(&path, offset, bytes);
                    }
                }
                Err(error) => self.problem(error),
            }
        }
        Ok(())
    }

    /// Reads a WAL to its end. Returns the number of its records, and its tail.
    fn read_log(&self, view: &View, log: LogNumber) -> Result<(u64, Tail)> {
        let path = wal_file_name(&self.wal_directory, log);
        let uid = (view.db_uid != 0).then_some(view.db_uid);
        let mut reader = WalReader::open(self.vfs.as_ref(), &path, log, uid, 0)?;
        let mut records = 0;
        while let Some(record) = reader.next()? {
            record.for_each_entry(&self.wal_directory, |_, _| {})?;
            records += 1;
        }
        Ok((records, reader.tail().unwrap_or_default()))
    }
}
