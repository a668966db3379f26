//! The write-ahead log (WAL): keeps a write durable until its memtable is a table.
//!
//! 1. [`writer`] appends one checksummed record per commit group ([`frame`]) to the current file.
//! 2. `sync` makes it durable beside the writer, together with the files before it.
//! 3. A full memtable starts a new WAL file. Its first record, the link, says where the one before
//!    ended.
//! 4. After a crash, [`WalChain`] follows the links and replays the files through [`reader`]. It
//!    tells "the WAL before is whole" from "its unsynced tail is lost, and with it everything
//!    after".
//! 5. [`LogFollower`] reads WALs that another process writes, and [`KeptLogs`] keeps WALs for such
//!    readers.
//! 6. [`space`] preallocates space for records.
//! 7. [`LogPlace`] says in which of two directories the WALs are.
//!
//! `docs/format/wal.md` describes bytes and rules.
//!
//! What must stay true (format rules F1, F4, F5):
//!
//! - Replay yields a prefix of the commit order that contains at least what was synced. Anything
//!   else is an error that names file and offset.
//! - A dead WAL (after a failed write or sync) is never written, synced or acknowledged again.
//! - WAL files are never recycled: the number in every checksum belongs to one file for ever.

mod chain;
mod follow;
pub mod frame;
mod kept;
mod place;
pub mod reader;
pub mod space;
mod sync;
#[cfg(test)]
pub(crate) mod test_vfs;
#[cfg(test)]
mod tests;
pub mod writer;

use std::path::Path;

use sateen_control::{LogNumber, SeqNo};

#[cfg(test)]
pub use chain::ChainEnd;
pub use chain::WalChain;
pub use follow::{Followed, LogFollower};
pub use kept::{KeepLimits, Kept, KeptLog, KeptLogs, ReadableLog};
pub use place::{LogPlace, is_of_another, logs_if_any};
pub use reader::{Tail, WalReader, WalRecord};
pub use sync::WalSync;
pub use writer::{WalEnd, WalWriter};

use crate::base::coding;
use crate::vfs::{IoClass, MemVfs, OpenOptions, Vfs};

/// Length of a link's payload.
const LINK_BYTES: usize = 32;

/// A place between two records of a WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalPosition {
    /// Number of the WAL; 0 for none.
    pub number: LogNumber,
    /// Offset behind the last record before the place.
    pub end: u64,
    /// Checksum of that record, and so of everything before it.
    pub chain: u64,
    /// Larger than every sequence number before the place.
    pub next_seqno: SeqNo,
}

impl WalPosition {
    /// What a WAL follows if no older one is needed.
    const ANEW: WalPosition =
        WalPosition { number: LogNumber(0), end: 0, chain: 0, next_seqno: SeqNo(0) };
    /// What a WAL follows if older ones may exist, but nothing in them counts.
    const NOTHING: WalPosition = WalPosition { end: 1, ..WalPosition::ANEW };

    /// Appends the payload of a link to this place. `synced` is how much of that WAL is known to be
    /// durable.
    fn encode(&self, synced: u64, out: &mut Vec<u8>) {
        for field in [self.number.0, self.end, self.chain, synced] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }
}

/// The first record of a WAL, which describes the WAL before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalLink {
    /// Number of the WAL before; 0 if there is none.
    pub number: LogNumber,
    /// Where it ended. With number 0: 0 if no older WAL is needed, 1 if older ones do not count.
    pub end: u64,
    /// Its last checksum.
    pub chain: u64,
    /// How much of it was known to be durable.
    pub synced: u64,
}

impl WalLink {
    /// Returns true if this WAL follows none.
    fn is_start(&self) -> bool {
        self.number.0 == 0
    }

    /// Returns true if no older WAL is needed, so that none may exist.
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

/// Fuzz entry: reads `data` as a WAL, and passes every record to `payload`. It must neither panic
/// nor allocate much more than `data`.
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
