//! Replaying the logs of a database as one sequence, and deciding where it ends.
//!
//! Each log's first record, its link, says where the log before it ended. The newest log that has
//! one starts the way back: its predecessor, that one's predecessor, and so on to a log that
//! follows nothing that is still needed. Replay then goes forward along this way. Logs beside it
//! are branches that an earlier recovery dropped.
//!
//! When a log ends before the place that its successor links to, everything after is dropped too:
//! what is replayed is a prefix. It is corruption instead if anything proves that the log had been
//! durable: the link itself, or any later log of which more than its header was synced, since a log
//! is never synced before those it follows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::LogNumber;
use sateen_control::version::DurableLog;

use super::frame::FILE_HEADER_BYTES;
use super::reader::{Tail, WalReader, WalRecord};
use super::{WalLink, WalPosition};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::vfs::{Vfs, VfsFile};
#[cfg(test)]
use sateen_control::SeqNo;

const HEADER_END: u64 = FILE_HEADER_BYTES as u64;

/// What replay left behind.
#[derive(Clone, Debug, Default)]
pub struct ChainEnd {
    /// The place behind the last record that was replayed; `None` if there was no log with records.
    pub position: Option<WalPosition>,
    /// How the log there ended.
    pub tail: Tail,
    /// The logs that were replayed, oldest first.
    pub replayed: Vec<LogNumber>,
    /// Needed by number, but without a record, or dropped because what came before them is lost.
    /// None of them has a record that was durable.
    pub dropped: Vec<LogNumber>,
}

/// Reads the needed logs of a database in order.
#[derive(Debug)]
pub struct WalChain {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    db_uid: u64,
    /// Logs that are open already: their names may be gone.
    held: BTreeMap<LogNumber, Arc<dyn VfsFile>>,
    /// The needed logs, ascending.
    logs: Vec<LogNumber>,
    /// How far they are known to be durable.
    durable: Option<DurableLog>,
    /// The way, newest first: the log with its link. The last one is the next to be read.
    way: Vec<(LogNumber, WalLink)>,
    current: Option<WalReader>,
    end: ChainEnd,
}

impl WalChain {
    /// Prepares to replay those of `logs` in `directory` whose number is at least `first_needed`:
    /// the smallest number of which some column family still needs a record. The caller knows that
    /// the logs were `durable` so far: what is missing before is damage.
    pub fn open(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        logs: impl IntoIterator<Item = LogNumber>,
        db_uid: u64,
        first_needed: LogNumber,
        durable: Option<DurableLog>,
    ) -> Result<WalChain> {
        let held = BTreeMap::new();
        WalChain::open_held(vfs, directory, logs, db_uid, first_needed, durable, held)
    }

    /// [`WalChain::open`] of logs of which those that are `held` are open already.
    pub fn open_held(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        logs: impl IntoIterator<Item = LogNumber>,
        db_uid: u64,
        first_needed: LogNumber,
        durable: Option<DurableLog>,
        held: BTreeMap<LogNumber, Arc<dyn VfsFile>>,
    ) -> Result<WalChain> {
        let mut logs: Vec<_> = logs.into_iter().filter(|log| *log >= first_needed).collect();
        logs.sort();
        let durable = durable.filter(|durable| durable.log >= first_needed);
        if let Some(DurableLog { log, .. }) = durable
            && !logs.contains(&log)
        {
            let path = super::file_path(directory, log);
            return Err(Error::corruption(&path, 0, CorruptionKind::MissingFile));
        }
        let mut chain = WalChain {
            vfs,
            directory: directory.to_owned(),
            db_uid,
            held,
            logs,
            durable,
            way: Vec::new(),
            current: None,
            end: ChainEnd::default(),
        };
        chain.find_way(first_needed)?;
        Ok(chain)
    }

    /// The next commit group in the commit order; `None` at the end.
    pub fn next(&mut self) -> Result<Option<WalRecord<'_>>> {
        while !self.step()? {
            if self.way.is_empty() {
                return Ok(None);
            }
            self.enter_next()?;
        }
        Ok(self.current.as_ref().and_then(WalReader::record))
    }

    /// What is left behind, once [`WalChain::next`] returned `None`.
    pub fn into_end(mut self) -> ChainEnd {
        self.logs.retain(|log| !self.end.replayed.contains(log));
        self.end.dropped = self.logs;
        self.end
    }

    fn step(&mut self) -> Result<bool> {
        let Some(reader) = &mut self.current else { return Ok(false) };
        if reader.advance()? {
            return Ok(true);
        }
        self.end.tail = reader.tail().unwrap_or_default();
        self.end.position = Some(reader.position());
        self.current = None;
        Ok(false)
    }

    /// Goes on to the next log of the way, or drops it with all that follow.
    fn enter_next(&mut self) -> Result<()> {
        let Some((number, link)) = self.way.pop() else { return Ok(()) };
        let reader = self.reader(number)?;
        if let Some(before) = self.end.position {
            if before.end < link.end {
                self.way.push((number, link));
                return self.drop_rest(before);
            }
            if (before.end, before.chain) != (link.end, link.chain) {
                let kind = CorruptionKind::Inconsistent("does not continue the log before it");
                return Err(reader.corruption(HEADER_END, kind));
            }
            if reader.position().next_seqno < before.next_seqno {
                let kind = CorruptionKind::Inconsistent("sequence numbers run backwards");
                return Err(reader.corruption(HEADER_END, kind));
            }
        }
        self.end.replayed.push(number);
        self.current = Some(reader);
        Ok(())
    }

    /// The log at `before` ends too early for what follows it on the way: drops that, unless
    /// something proves that the missing part had been durable.
    fn drop_rest(&mut self, before: WalPosition) -> Result<()> {
        let mut proven = false;
        while let Some((number, link)) = self.way.pop() {
            let floor = if link.number == before.number { before.end } else { 0 };
            proven = proven
                || link.synced > floor.max(HEADER_END)
                || self.reader(number)?.proves_synced_beyond(HEADER_END)?;
        }
        if !proven {
            return Ok(());
        }
        let path = self.path(before.number);
        let missing = !self.logs.contains(&before.number);
        let kind = if missing { CorruptionKind::MissingFile } else { CorruptionKind::Truncated };
        Err(Error::corruption(&path, before.end, kind))
    }

    /// Walks the links back from the newest log that has one.
    fn find_way(&mut self, first_needed: LogNumber) -> Result<()> {
        let mut linked = Vec::new();
        for number in self.logs.clone() {
            if let Some(link) = self.reader(number)?.link() {
                linked.push((number, link));
            }
        }
        let mut wanted = linked.last().map(|newest| newest.0);
        while let Some(number) = wanted {
            let Some(found) = linked.iter().rposition(|log| log.0 == number) else {
                // Missing, or without a record: what follows it goes, what is older stays.
                let end = self.reader(number)?.position().end;
                self.drop_rest(WalPosition { number, end, ..WalPosition::ANEW })?;
                wanted = linked.last().map(|newest| newest.0);
                continue;
            };
            let Some((_, link)) = linked.drain(found..).next() else { break };
            let inconsistent = |what| {
                let kind = CorruptionKind::Inconsistent(what);
                Error::corruption(&self.path(number), HEADER_END, kind)
            };
            if link.number >= number {
                return Err(inconsistent("follows a newer log"));
            }
            if link.is_anew() && !linked.is_empty() {
                return Err(inconsistent("starts anew while an older log is needed"));
            }
            self.way.push((number, link));
            wanted = (link.number >= first_needed && !link.is_start()).then_some(link.number);
        }
        Ok(())
    }

    fn reader(&self, number: LogNumber) -> Result<WalReader> {
        let known = self.durable.filter(|durable| durable.log == number);
        let floor = known.map_or(0, |durable| durable.bytes);
        let (path, uid) = (self.path(number), Some(self.db_uid));
        match self.held.get(&number) {
            Some(file) => WalReader::of_file(file.clone(), &path, number, uid, floor),
            None => WalReader::open(&*self.vfs, &path, number, uid, floor),
        }
    }

    fn path(&self, number: LogNumber) -> PathBuf {
        super::file_path(&self.directory, number)
    }
}

impl ChainEnd {
    /// Makes durable what was replayed, and returns what the next log follows. Needed before a sync
    /// of that log is acknowledged, unless everything replayed is in tables by then: what a killed
    /// process left in the page cache is not durable because it could be read.
    #[cfg(test)]
    pub fn make_durable(&self, vfs: &dyn Vfs, directory: &Path) -> Result<super::WalEnd> {
        use crate::vfs::{IoClass, OpenOptions};

        for number in &self.replayed {
            let path = super::file_path(directory, *number);
            let options = OpenOptions::WRITE;
            let file = vfs.open(&path, options).map_err(|e| Error::io("open", &path, e))?;
            file.sync_data(IoClass::Wal).map_err(|e| Error::io("sync", &path, e))?;
        }
        let next_seqno = self.position.map_or(SeqNo(0), |position| position.next_seqno);
        Ok(super::WalEnd { position: self.position, sync: None, next_seqno })
    }
}
