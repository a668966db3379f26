//! The write-ahead log: what makes a write survive before its memtable is a table.
//!
//! A log is a file of checksummed, chained records, one per commit group ([`frame`], [`writer`],
//! [`reader`]). Logs form a chain of their own: the first record of each says where the one before
//! it ended, so that replay ([`chain`]) can tell "the log before is whole" from "its unsynced tail
//! is gone, and with it everything after". `docs/format/wal.md` describes bytes and rules.
//!
//! What must stay true (format rules F1, F4, F5):
//! - What replay yields is a prefix of the commit order, at least as long as what was synced;
//!   anything else is an error that names file and offset.
//! - A dead log (failed write or sync) is never written, synced or acknowledged on again.
//! - Logs are never recycled: the number in every checksum belongs to one file for ever.

mod chain;
mod follow;
pub mod frame;
mod kept;
pub mod reader;
pub mod space;
mod sync;
#[cfg(test)]
pub(crate) mod test_vfs;
#[cfg(test)]
mod tests;
pub mod writer;

use std::path::{Path, PathBuf};

use sateen_control::{LogNumber, SeqNo};

#[cfg(test)]
pub use chain::ChainEnd;
pub use chain::WalChain;
pub use follow::{Followed, LogFollower};
pub use kept::{KeepLimits, Kept, KeptLog, KeptLogs, ReadableLog};
pub use reader::{Tail, WalReader};
pub use sync::WalSync;
pub use writer::{WalEnd, WalWriter};

use crate::base::coding;
use crate::vfs::{IoClass, MemVfs, OpenOptions, Vfs};

/// Bytes of a link's payload.
const LINK_BYTES: usize = 32;

/// The name of a log's file.
pub fn file_path(directory: &Path, number: LogNumber) -> PathBuf {
    directory.join(format!("{:06}.wal", number.0))
}

/// A place between two records of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalPosition {
    /// The log. 0 is no log.
    pub number: LogNumber,
    /// The offset behind the last record before it.
    pub end: u64,
    /// The checksum of that record, and so of everything before it.
    pub chain: u64,
    /// No record before it has this sequence number or a larger one.
    pub next_seqno: SeqNo,
}

impl WalPosition {
    /// What a log follows if no older log is needed.
    const ANEW: WalPosition =
        WalPosition { number: LogNumber(0), end: 0, chain: 0, next_seqno: SeqNo(0) };
    /// What a log follows if older logs may be there, but nothing of them counts.
    const NOTHING: WalPosition = WalPosition { end: 1, ..WalPosition::ANEW };

    /// The payload of a link to this place; `synced` is how much of that log is known to be
    /// durable.
    fn encode(&self, synced: u64, out: &mut Vec<u8>) {
        for field in [self.number.0, self.end, self.chain, synced] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }
}

/// What the first record of a log says of the log before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalLink {
    /// The log before; 0 if there is none.
    pub number: LogNumber,
    /// Where it ended. With number 0: 0 if no older log is needed, 1 if older ones do not count.
    pub end: u64,
    /// Its last checksum.
    pub chain: u64,
    /// How much of it was known to be durable.
    pub synced: u64,
}

impl WalLink {
    /// True if the log before this one is none.
    fn is_start(&self) -> bool {
        self.number.0 == 0
    }

    /// True if no older log is needed, and so none may be there.
    fn is_anew(&self) -> bool {
        self.is_start() && self.end == 0
    }

    fn decode(mut payload: &[u8]) -> Option<WalLink> {
        let link = WalLink {
            number: LogNumber(coding::take_u64(&mut payload)?),
            end: coding::take_u64(&mut payload)?,
            chain: coding::take_u64(&mut payload)?,
            synced: coding::take_u64(&mut payload)?,
        };
        payload.is_empty().then_some(link)
    }
}

/// Fuzz entry: reads `data` as a log, and gives every record to `payload`. Must neither panic nor
/// allocate much more than `data` has.
pub fn fuzz(data: &[u8], payload: impl Fn(&[u8])) {
    let vfs = MemVfs::new();
    let path = Path::new("fuzz.wal");
    let Ok(file) = vfs.open(path, OpenOptions::CREATE) else { return };
    if file.write_at(data, 0, IoClass::Wal).is_err() {
        return;
    }
    let Ok(mut reader) = WalReader::open(&vfs, path, LogNumber(1), Some(1), 0) else { return };
    while let Ok(Some(record)) = reader.next() {
        payload(record.payload);
    }
}
