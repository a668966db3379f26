//! The WAL chain: replays the WALs of a database as one sequence, and decides where it ends.
//!
//! 1. [`WalChain::open`] takes the WALs that are still needed, and `find_way` reads the link in the
//!    first record of each. The link says where the WAL before it ended.
//! 2. `find_way` starts at the newest WAL with a link and follows the links back, until a WAL
//!    follows nothing that is needed. WALs beside this way are branches that an earlier recovery
//!    dropped.
//! 3. [`WalChain::next`] replays forward along the way. `step` returns the next commit group of the
//!    current WAL, and `enter_next` opens the next WAL and compares its link with what was read.
//! 4. If a WAL ends before the place that its successor links to, `drop_rest` drops everything
//!    behind it, so that a prefix is replayed.
//! 5. [`WalChain::into_end`] says where replay ended, and which WALs were replayed and dropped.
//!
//! What must stay true: it is corruption, and not a dropped tail, if anything proves that the
//! missing part was durable. The link itself may prove it, or a later WAL of which more than the
//! header was synced, because a WAL is never synced before those that it follows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::LogNumber;
use sateen_control::version::DurableLog;

use super::frame::FILE_HEADER_BYTES;
use super::reader::{Tail, WalReader, WalRecord};
use super::{WalLink, WalPosition};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::files::wal_file_name;
use crate::vfs::{Vfs, VfsFile};
#[cfg(test)]
use sateen_control::SeqNo;

const HEADER_END: u64 = FILE_HEADER_BYTES as u64;

/// Where and how replay ended.
#[derive(Clone, Debug, Default)]
pub struct ChainEnd {
    /// The place behind the last record that was replayed; `None` if no WAL had a record.
    pub position: Option<WalPosition>,
    /// How the WAL at that place ended.
    pub tail: Tail,
    /// The WALs that were replayed, oldest first.
    pub replayed: Vec<LogNumber>,
    /// Needed WALs that have no record, or were dropped because what came before them is lost. None
    /// of them has a record that was durable.
    pub dropped: Vec<LogNumber>,
}

/// Reads the needed WALs of a database in order.
#[derive(Debug)]
pub struct WalChain {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    db_uid: u64,
    /// WALs that are open already. Their names may be gone.
    held: BTreeMap<LogNumber, Arc<dyn VfsFile>>,
    /// The needed WALs, ascending.
    logs: Vec<LogNumber>,
    /// How far the WALs are known to be durable.
    durable: Option<DurableLog>,
    /// The way back, newest first: each WAL with its link. The last one is read next.
    way: Vec<(LogNumber, WalLink)>,
    /// The WAL that is being replayed.
    current: Option<WalReader>,
    /// Where replay has got so far.
    end: ChainEnd,
}

impl WalChain {
    /// Prepares to replay the WALs of `logs` in `directory` from `first_needed` on, the oldest from
    /// which a column family still needs a record. The caller knows that the WALs were `durable` up
    /// to a place; if something before it is missing, that is damage.
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

    /// Like [`WalChain::open`], with the WALs in `held` open already.
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
            let path = wal_file_name(directory, log);
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

    /// Returns the next commit group in commit order; `None` at the end.
    pub fn next(&mut self) -> Result<Option<WalRecord<'_>>> {
        while !self.step()? {
            if self.way.is_empty() {
                return Ok(None);
            }
            self.enter_next()?;
        }
        Ok(self.current.as_ref().and_then(WalReader::record))
    }

    /// Returns where replay ended, once [`WalChain::next`] has returned `None`.
    pub fn into_end(mut self) -> ChainEnd {
        self.logs.retain(|log| !self.end.replayed.contains(log));
        self.end.dropped = self.logs;
        self.end
    }

    /// Moves to the next commit group of the current WAL. Returns false at its end.
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

    /// Opens the next WAL of the way, or drops it with all WALs behind it.
    fn enter_next(&mut self) -> Result<()> {
        let Some((number, link)) = self.way.pop() else { return Ok(()) };
        let reader = self.reader(number)?;
        if let Some(before) = self.end.position {
            // The WAL before is shorter than this one's link says: its tail is lost.
            if before.end < link.end {
                self.way.push((number, link));
                return self.drop_rest(before);
            }
            // It must end exactly there, with the same checksum.
            if (before.end, before.chain) != (link.end, link.chain) {
                let kind = CorruptionKind::Inconsistent("does not continue the WAL before it");
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

    /// The WAL at `before` ends too early for its successor. Drops the rest of the way, unless
    /// something proves that the missing part was durable.
    fn drop_rest(&mut self, before: WalPosition) -> Result<()> {
        let mut proven = false;
        while let Some((number, link)) = self.way.pop() {
            // A link that says that more was synced than was found is a proof. So is a later WAL
            // that was synced beyond its header, since a WAL is synced after those before it.
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

    /// Follows the links back from the newest WAL that has one.
    fn find_way(&mut self, first_needed: LogNumber) -> Result<()> {
        let mut linked = Vec::new();
        for number in self.logs.clone() {
            if let Some(link) = self.reader(number)?.link() {
                linked.push((number, link));
            }
        }
        // Start at the newest WAL with a link, and follow the links to older ones.
        let mut wanted = linked.last().map(|newest| newest.0);
        while let Some(number) = wanted {
            let Some(found) = linked.iter().rposition(|log| log.0 == number) else {
                // The WAL is missing or has no record. What follows it is dropped, and what is
                // older stays.
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
            // A link leads to an older WAL. Checksums cover it, so any other link is damage.
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

    /// Opens a WAL, with its known durable length.
    fn reader(&self, number: LogNumber) -> Result<WalReader> {
        let known = self.durable.filter(|durable| durable.log == number);
        let floor = known.map_or(0, |durable| durable.bytes);
        let (path, uid) = (self.path(number), Some(self.db_uid));
        match self.held.get(&number) {
            Some(file) => WalReader::of_file(file.clone(), &path, number, uid, floor),
            None => WalReader::open(&*self.vfs, &path, number, uid, floor),
        }
    }

    /// Returns the path of a WAL.
    fn path(&self, number: LogNumber) -> PathBuf {
        wal_file_name(&self.directory, number)
    }
}

impl ChainEnd {
    /// Makes the replayed WALs durable, and returns what the next WAL follows. This is needed
    /// before a sync of the next WAL is acknowledged, unless all replayed entries are in tables by
    /// then. Data that a killed process left in the page cache can be read, but need not be
    /// durable.
    #[cfg(test)]
    pub fn make_durable(&self, vfs: &dyn Vfs, directory: &Path) -> Result<super::WalEnd> {
        use crate::vfs::{IoClass, OpenOptions};

        for number in &self.replayed {
            let path = wal_file_name(directory, *number);
            let options = OpenOptions::WRITE;
            let file = vfs.open(&path, options).map_err(|e| Error::io("open", &path, e))?;
            file.sync_data(IoClass::Wal).map_err(|e| Error::io("sync", &path, e))?;
        }
        let next_seqno = self.position.map_or(SeqNo(0), |position| position.next_seqno);
        Ok(super::WalEnd { position: self.position, sync: None, next_seqno })
    }
}
