//! Follows the WALs of a database that another process writes: first all commit groups, later those
//! that were added.
//!
//! 1. [`LogFollower::read`] finds the first WAL that leads to the newest (`first`), and opens it.
//! 2. `drain` reads it to its current end, and passes on every commit group.
//! 3. `next` looks for the WAL whose link continues this one. If another link shows that the
//!    current WAL has more records, it is read once more.
//!
//! What must stay true: a WAL that ends within a record is not damaged, because the rest may still
//! come. What is read is a prefix of the commit order. A WAL is followed only by the one whose link
//! says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::{LogNumber, SeqNo};

use super::reader::{WalReader, WalRecord};
use super::{WalLink, WalPosition};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::files::{FileName, wal_file_name};
use crate::vfs::Vfs;

/// What a follower meets.
pub enum Followed<'a> {
    /// A commit group.
    Group(WalRecord<'a>),
    /// A WAL that begins anew. Everything that was read from this sequence number on was never
    /// committed.
    Anew(SeqNo),
}

/// A reader that goes from WAL to WAL as they are written.
#[derive(Debug)]
pub struct LogFollower {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    db_uid: u64,
    reader: Option<WalReader>,
}

/// What comes behind the end of a WAL.
enum Next {
    Nothing,
    /// The WAL itself has more records, as the link of another one shows.
    More,
    Log(LogNumber),
}

impl LogFollower {
    pub fn new(vfs: Arc<dyn Vfs>, directory: &Path, db_uid: u64) -> LogFollower {
        LogFollower { vfs, directory: directory.to_owned(), db_uid, reader: None }
    }

    /// Returns the directory in which it looks.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Looks in `directory` from now on. If that is another one, starts again there.
    pub fn move_to(&mut self, directory: &Path) {
        if self.directory != directory {
            directory.clone_into(&mut self.directory);
            self.restart();
        }
    }

    /// Starts again with the oldest WAL that is needed.
    pub fn restart(&mut self) {
        self.reader = None;
    }

    /// Passes what was added since the last call to `take`. The first call passes everything from
    /// `oldest` on, the oldest WAL that is needed.
    pub fn read(
        &mut self,
        oldest: LogNumber,
        mut take: impl FnMut(Followed<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.reader.as_ref().is_some_and(|reader| reader.position().number < oldest) {
            self.reader = None;
        }
        if self.reader.is_none() {
            let Some((first, link, begins)) = self.first(oldest)? else { return Ok(()) };
            if link.is_start() {
                take(Followed::Anew(begins))?;
            }
            self.reader = Some(self.open(first)?);
        }
        let mut more_at = None;
        while let Some(reader) = &mut self.reader {
            drain(reader, &mut take)?;
            let position = reader.position();
            match self.next(position)? {
                Next::Log(number) => self.reader = Some(self.open(number)?),
                // What was written before that link can now be read. If it is not there, a power
                // failure has lost it with everything behind it.
                Next::More if more_at != Some(position.end) => more_at = Some(position.end),
                Next::More | Next::Nothing => break,
            }
        }
        Ok(())
    }

    /// Returns the path of a WAL.
    fn path(&self, number: LogNumber) -> PathBuf {
        wal_file_name(&self.directory, number)
    }

    /// Opens a WAL.
    fn open(&self, number: LogNumber) -> Result<WalReader> {
        WalReader::open(&*self.vfs, &self.path(number), number, Some(self.db_uid), 0)
    }

    /// Returns the WALs from `first` on, ascending.
    fn logs(&self, first: LogNumber) -> Result<Vec<LogNumber>> {
        let listing = self.vfs.list(&self.directory);
        let listing = listing.map_err(|e| Error::io("list", &self.directory, e))?;
        let names = listing.iter().filter_map(|path| path.file_name()?.to_str());
        let logs = names.filter_map(|name| match FileName::parse(name) {
            Some(FileName::Wal(log)) if log >= first => Some(log),
            _ => None,
        });
        let mut logs: Vec<_> = logs.collect();
        logs.sort_unstable();
        Ok(logs)
    }

    /// Returns the link of a WAL and the sequence number with which it begins, if it has a link.
    fn look(&self, number: LogNumber) -> Result<Option<(WalLink, SeqNo)>> {
        WalReader::look(&*self.vfs, &self.path(number), number, self.db_uid)
    }

    /// Returns the first WAL on the way from `oldest` to the newest one.
    fn first(&self, oldest: LogNumber) -> Result<Option<(LogNumber, WalLink, SeqNo)>> {
        // From the newest back, along the links. WALs beside this way were dropped by a recovery.
        let logs = self.logs(oldest)?;
        let mut found: Option<(LogNumber, WalLink, SeqNo)> = None;
        for number in logs.iter().rev() {
            let wanted = found.is_none_or(|(_, link, _)| link.number == *number);
            if let Some((link, begins)) = if wanted { self.look(*number)? } else { None } {
                found = Some((*number, link, begins));
            }
        }
        match found {
            Some((_, link, _)) if !link.is_start() && link.number >= oldest => {
                let kind = CorruptionKind::MissingFile;
                Err(Error::corruption(&self.path(link.number), 0, kind))
            }
            found => Ok(found),
        }
    }

    /// Returns what follows the end of the current WAL.
    fn next(&self, position: WalPosition) -> Result<Next> {
        for number in self.logs(LogNumber(position.number.0 + 1))? {
            let Some((link, _)) = self.look(number)? else { continue };
            if link.number != position.number {
                continue;
            }
            if (link.end, link.chain) == (position.end, position.chain) {
                return Ok(Next::Log(number));
            }
            if link.end > position.end && link.synced <= position.end {
                return Ok(Next::More);
            }
            let kind = CorruptionKind::Inconsistent("not what the next log continues");
            return Err(Error::corruption(&self.path(position.number), position.end, kind));
        }
        Ok(Next::Nothing)
    }
}

/// Reads the WAL to its current end.
fn drain(reader: &mut WalReader, take: &mut impl FnMut(Followed<'_>) -> Result<()>) -> Result<()> {
    reader.grow()?;
    let mut again = None;
    loop {
        match reader.advance() {
            Ok(true) => {
                if let Some(record) = reader.record() {
                    take(Followed::Group(record))?;
                }
            }
            Ok(false) => return Ok(()),
            // The record may have been read while it was written, and the proof that it was durable
            // directly afterwards. It is whole now.
            Err(error) if error.is_corruption() && again != Some(reader.position().end) => {
                again = Some(reader.position().end);
                reader.grow()?;
            }
            Err(error) => return Err(error),
        }
    }
}
