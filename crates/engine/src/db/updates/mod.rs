//! Reads what was written, batch by batch, from the WALs: for programs that keep another database
//! in step with this one.
//!
//! 1. [`Db::updates_since`] finds the WAL that holds the sequence number, and keeps it and later
//!    ones from being removed (`KeptLogs::hold`).
//! 2. `read` reads the next record. Where the WAL ends, `go_on` looks for more, or enters the next
//!    WAL and checks that its link fits.
//! 3. `advance` returns a batch once its writes are visible to readers.
//! 4. `as_written` removes what the engine added: times of values, the ids of regions, and the
//!    entries of prepared transactions. It also leaves out what it cannot tell: entries of dropped
//!    column families, where some had times or regions.
//!
//! What must stay true:
//!
//! - A batch is shown once, in commit order, and not before readers of the database see it.
//! - A batch that is in no WAL any more is an error. It is never left out.
//! - Nothing comes from memory: what is shown is what recovery would replay.

use std::sync::Arc;

use sateen_control::{LogNumber, SeqNo};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::files::wal_file_name;
use sateen_store::wal::{Kept, ReadableLog, WalPosition, WalReader};

use crate::batch::WriteBatch;
use crate::core::DbCore;
use crate::db::Db;
use crate::db::behind::Explainer;
use crate::open::as_written::as_written;
use crate::options::WalMode;

#[cfg(test)]
mod tests;

/// The batches of a database from a sequence number on ([`Db::updates_since`]).
///
/// It keeps the WALs that it has not read yet from being removed, so drop it when it is not needed.
pub struct Updates {
    core: Arc<DbCore>,
    /// Batches that end before this sequence number are skipped.
    wanted: SeqNo,
    /// The WAL that is read, or the first one to read. It is held.
    held: LogNumber,
    reader: Option<WalReader>,
    /// The offset up to which the WAL in `reader` was written when it was last looked at.
    end: u64,
    /// A batch that was read and is not visible yet.
    early: Option<Batch>,
    current: Option<Batch>,
    status: Result<()>,
}

struct Batch {
    first: SeqNo,
    last: SeqNo,
    writes: WriteBatch,
}

impl std::fmt::Debug for Updates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Updates")
            .field("log", &self.held)
            .field("sequence_number", &self.sequence_number())
            .finish_non_exhaustive()
    }
}

/// Reading the WAL.
impl Db {
    /// Returns the batches that were committed, from the one with the sequence number `seqno` on.
    /// If no batch has it, they begin with the next one. 0 means 1.
    ///
    /// - Batches that were committed together come as one.
    /// - With [`memtable_hot_part`](crate::ColumnFamilyOptions), values that the database wrote
    ///   again by itself come as batches, too, which change nothing.
    /// - The preparing of a transaction comes as a batch without writes. Its commit has them.
    /// - In a database with a `ttl` or regions, writes to a column family that was dropped since
    ///   are left out. A batch of such writes alone comes without writes.
    /// - A batch of log data alone ([`WriteBatch::put_log_data`]) comes before the write with the
    ///   next sequence number, if both are in the same WAL. A caller that asks for that write may
    ///   not see it.
    ///
    /// Only logged writes are there: no writes with
    /// [`disable_wal`](crate::WriteOptions::disable_wal), and no ingested files. A batch is visible
    /// to readers when it is shown, and as durable as its writer asked for. WALs stay as long as
    /// recovery needs them, and for readers as [`Options::wal_ttl_seconds`] and
    /// [`Options::wal_size_limit_bytes`] say.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let mut updates = db.updates_since(0)?;
    /// assert!(updates.valid());
    /// assert_eq!(updates.sequence_number(), 1);
    /// updates.next();
    /// assert!(!updates.valid());
    ///
    /// db.delete("fig")?;
    /// updates.next(); // there is more now
    /// assert_eq!(updates.sequence_number(), 2);
    /// assert_eq!(updates.batch().map(|batch| batch.count()), Some(1));
    /// updates.status()?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotInLog`] if `seqno` is not written yet, or if a write from there on is in no WAL
    /// any more. `InvalidArgument` if the database writes no WAL. `ReadOnly` in a secondary. `Io`
    /// and `Corruption` if the WAL cannot be read.
    ///
    /// [`Options::wal_ttl_seconds`]: crate::Options::wal_ttl_seconds
    /// [`Options::wal_size_limit_bytes`]: crate::Options::wal_size_limit_bytes
    pub fn updates_since(&self, seqno: u64) -> Result<Updates> {
        Updates::new(self.core(), SeqNo(seqno), false)
    }

    /// Returns the batches as [`Db::updates_since`] does. If older writes are in no WAL any more,
    /// it begins with the oldest one that is, as RocksDB does. The sequence number of the first
    /// batch shows that.
    ///
    /// # Errors
    /// As [`Db::updates_since`].
    pub fn updates_available_since(&self, seqno: u64) -> Result<Updates> {
        Updates::new(self.core(), SeqNo(seqno), true)
    }
}

impl Updates {
    /// Finds and holds the WAL with `seqno`, and moves to its first batch. With `from_oldest`, a
    /// `seqno` that is in no WAL any more begins with the oldest WAL.
    fn new(core: &Arc<DbCore>, seqno: SeqNo, from_oldest: bool) -> Result<Updates> {
        core.env.check_open()?;
        if core.secondary.is_some() {
            return Err(Error::ReadOnly("reading the WAL of a secondary"));
        }
        if core.env.options.load().wal == WalMode::Off {
            let text = "the database writes no WAL: wal=off".into();
            return Err(Error::InvalidArgument(text));
        }
        let visible = core.writes.pipeline.visible_seqno();
        if seqno > visible {
            let (seqno, visible) = (seqno.0, visible.0);
            return Err(Error::NotInLog(format!(
                "the sequence number {seqno} is not yet written, the newest is {visible}"
            )));
        }
        let wanted = seqno.max(SeqNo(1));
        let mut kept = core.writes.kept_logs.lock();
        let logs = logs(core, &kept);
        let begun = logs.iter().rposition(|log| log.begins <= wanted);
        // WALs before that may hold only log data, and begin at the same number.
        let begins = begun.and_then(|at| logs.get(at)).map(|log| log.begins);
        let begun = begins.and_then(|begins| logs.iter().position(|log| log.begins == begins));
        // A database that was never written to may have no WAL at all.
        let any = from_oldest || visible == SeqNo(0);
        let Some(first) = begun.or(any.then_some(0)) else {
            let oldest = logs.first().map_or(visible.0 + 1, |log| log.begins.0);
            let wanted = wanted.0;
            return Err(Error::NotInLog(format!(
                "the writes from sequence number {wanted} on are not all in a WAL any more: the \
                 oldest WAL begins with {oldest}"
            )));
        };
        let held = logs.get(first).map_or(LogNumber(0), |log| log.number);
        kept.hold(held);
        drop(kept);
        let mut updates = Updates {
            core: core.clone(),
            wanted,
            held,
            reader: None,
            end: 0,
            early: None,
            current: None,
            status: Ok(()),
        };
        updates.next();
        updates.status.clone().map(|()| updates)
    }

    /// Returns true if it stands on a batch.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let mut updates = db.updates_since(1)?;
    /// assert!(updates.valid());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn valid(&self) -> bool {
        self.current.is_some()
    }

    /// Moves to the next batch. If there was none before, one may have been written since.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let mut updates = db.updates_since(1)?;
    /// updates.next();
    /// assert!(!updates.valid(), "there was one");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    pub fn next(&mut self) {
        self.current = None;
        if self.status.is_err() {
            return;
        }
        match self.advance() {
            Ok(found) => self.current = found,
            Err(error) => self.status = Err(Explainer { core: &self.core }.explain(error)),
        }
    }

    /// Returns the sequence number of the batch's first write; 0 if it stands on none. A batch of
    /// log data alone has the number of the write after it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let updates = db.updates_since(1)?;
    /// assert_eq!(updates.sequence_number(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn sequence_number(&self) -> u64 {
        self.current.as_ref().map_or(0, |batch| batch.first.0)
    }

    /// Returns the sequence number of the batch's last write; 0 if it stands on none. The numbers
    /// may exceed the count of writes, because a range tombstone takes one in each region. For a
    /// batch of log data alone it is one less than [`Updates::sequence_number`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let updates = db.updates_since(1)?;
    /// assert_eq!(updates.last_sequence_number(), 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn last_sequence_number(&self) -> u64 {
        self.current.as_ref().map_or(0, |batch| batch.last.0)
    }

    /// Returns the batch, which can be read, and written to another database.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let updates = db.updates_since(1)?;
    /// assert_eq!(updates.batch().map(|batch| batch.count()), Some(1));
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn batch(&self) -> Option<&WriteBatch> {
        self.current.as_ref().map(|batch| &batch.writes)
    }

    /// Returns the error that ended reading, if one did. An error stays.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
    /// db.put("fig", "1")?;
    /// let updates = db.updates_since(1)?;
    /// updates.status()?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotInLog`] if the next writes are in no WAL any more. `Io` or `Corruption` if the
    /// WAL cannot be read. `Closed` if the database was closed.
    pub fn status(&self) -> Result<()> {
        self.status.clone()
    }

    /// Returns the next batch that is wanted and visible; `None` if there is none yet.
    fn advance(&mut self) -> Result<Option<Batch>> {
        self.core.env.check_open()?;
        loop {
            if self.early.is_none() {
                self.early = self.read()?;
            }
            let Some(batch) = self.early.take() else { return Ok(None) };
            if batch.last > self.core.writes.pipeline.visible_seqno() {
                self.early = Some(batch);
                return Ok(None);
            }
            // A batch of log data alone ends before it begins.
            if batch.last.max(batch.first) >= self.wanted {
                return Ok(Some(batch));
            }
        }
    }

    /// Returns the next batch of the WALs; `None` where they end at present.
    fn read(&mut self) -> Result<Option<Batch>> {
        let directory = self.core.env.wal_directory();
        loop {
            if let Some(reader) = &mut self.reader {
                if let Some(record) = reader.next()? {
                    let first = record.first_seqno;
                    let last = SeqNo((first.0 + u64::from(record.count)).saturating_sub(1));
                    let written = as_written(record.payload, &self.core.tree.families());
                    let written = written.map_err(|what| {
                        let path = wal_file_name(&directory, record.log);
                        Error::corruption(&path, record.offset, CorruptionKind::Malformed(what))
                    })?;
                    return Ok(Some(Batch { first, last, writes: written.batch }));
                }
                let position = reader.position();
                if position.end < self.end {
                    let path = wal_file_name(&directory, position.number);
                    return Err(Error::corruption(&path, position.end, CorruptionKind::Checksum));
                }
            }
            if !self.go_on()? {
                return Ok(None);
            }
        }
    }

    /// Looks for more in the present WAL, or enters the next one. Returns false if there is nothing
    /// more.
    fn go_on(&mut self) -> Result<bool> {
        let mut kept = self.core.writes.kept_logs.lock();
        let logs = logs(&self.core, &kept);
        let here = logs.iter().position(|log| log.number >= self.held);
        let here = here.and_then(|at| logs.get(at..)).unwrap_or_default();
        let Some(current) = here.first() else {
            return if self.reader.is_none() { Ok(false) } else { Err(self.gap()) };
        };
        let entered = self.reader.as_ref().map(WalReader::position);
        let is_current = current.number == self.held;
        if let Some(reader) = &mut self.reader {
            if !is_current {
                return Err(self.gap());
            }
            if current.end > self.end {
                self.end = current.end;
                reader.go_on(current.end);
                return Ok(true);
            }
        }
        let skipped = usize::from(entered.is_some());
        let Some(next) = here.iter().skip(skipped).find(|log| !log.is_empty()).copied() else {
            return Ok(false);
        };
        kept.hold(next.number);
        kept.let_go(self.held);
        let before = std::mem::replace(&mut self.held, next.number);
        drop(kept);
        self.enter(next, entered, before)?;
        Ok(true)
    }

    /// Opens `log`, which must continue the WAL at `before`, or the WAL `held` if none was read.
    fn enter(
        &mut self,
        log: ReadableLog,
        before: Option<WalPosition>,
        held: LogNumber,
    ) -> Result<()> {
        let path = wal_file_name(&self.core.env.wal_directory(), log.number);
        let uid = Some(self.core.tree.versions.db_uid());
        let mut reader = WalReader::open(self.core.env.vfs.as_ref(), &path, log.number, uid, 0)?;
        let Some(link) = reader.link() else {
            return Err(Error::corruption(&path, 0, CorruptionKind::MissingFile));
        };
        let is_next = held != LogNumber(0) && held != log.number;
        if before.is_none() && is_next && link.number == LogNumber(0) {
            return Err(self.gap());
        }
        if let Some(before) = before
            && (link.number, link.end, link.chain) != (before.number, before.end, before.chain)
        {
            if link.number == LogNumber(0) {
                return Err(self.gap());
            }
            let what = "does not continue the WAL before it";
            return Err(Error::corruption(&path, 0, CorruptionKind::Inconsistent(what)));
        }
        reader.go_on(log.end);
        self.end = log.end;
        self.reader = Some(reader);
        Ok(())
    }

    /// Returns the error for writes that are in no WAL.
    #[cold]
    fn gap(&self) -> Error {
        let log = self.held;
        let text = format!("there is a gap: the writes after WAL {log} are in no WAL");
        Error::NotInLog(text)
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.core.writes.kept_logs.lock().let_go(self.held);
        // It may have been the last reader of WALs that are too old.
        self.core.background.board.poke();
    }
}

/// Returns the WALs that can be read, oldest first. Each but the last is complete.
fn logs(core: &DbCore, kept: &Kept) -> Vec<ReadableLog> {
    kept.logs().chain(core.writes.pipeline.readable_logs()).collect()
}
