//! Values that a flush leaves in the WAL (TRIAD's log component).
//!
//! 1. [`Flusher::leave_values_in_log`] gives the WAL a second name among the table files, by a hard
//!    link.
//! 2. `places` reads the WAL and notes where each larger value of the memtable is.
//! 3. [`LogValues::stands_for`] encodes a reference instead of the value.
//!
//! What must stay true:
//!
//! - What the table refers to is durable before the flush is installed.
//! - A WAL with such a name is never written again where it was written before.

use std::io::ErrorKind;
use std::path::Path;

use sateen_control::{ColumnFamilyId, FileId, LogNumber, SeqNo, ValueKind};
use sateen_store::base::error::Result;
use sateen_store::base::xxh3::xxh3_64;
use sateen_store::files::{table_file_name, wal_file_name};
use sateen_store::table::{Separated, ValuePlace};
use sateen_store::vfs::Vfs;
use sateen_store::wal::WalReader;

use super::Flusher;
use super::job::FlushJob;
use crate::options::WalMode;
use crate::timeline::EventKind;
use crate::tree::families::ColumnFamilyData;

/// A shorter value takes about as much space in the table as a reference.
const VALUE_BYTES_MIN: usize = 32;

/// Where in a WAL the values of a memtable are.
pub(crate) struct LogValues {
    /// The second name of the WAL, as a table file.
    pub(crate) file: FileId,
    /// Sequence number, offset and length of each value, ordered by sequence number.
    places: Vec<(SeqNo, u64, u32)>,
    /// Buffer of the last encoded value or reference.
    stands: Vec<u8>,
}

/// The entries whose values are looked for, and the WAL that has them.
struct Wanted {
    log: LogNumber,
    db_uid: u64,
    family: ColumnFamilyId,
    last: SeqNo,
}

impl Flusher {
    /// Returns true if the database writes a WAL, in which values or hot keys of `family` can stay.
    /// Otherwise it notes that in the timeline, once.
    pub(crate) fn has_log_for(&self, family: &ColumnFamilyData) -> bool {
        let there_is = self.env.options.load().wal != WalMode::Off;
        if !there_is {
            self.tell_of_no_log(family);
        }
        there_is
    }

    fn tell_of_no_log(&self, family: &ColumnFamilyData) {
        if family.note_lack_of_log() {
            self.env.metrics.timeline.told(self.env.now(), EventKind::CannotUseLog);
        }
    }

    /// Leaves the values of a flush that has not begun in the WAL, if the options of its column
    /// family say so. If that is not possible, the flush stores them as usual.
    pub(crate) fn leave_values_in_log(&self, job: &mut FlushJob) {
        let wanted = job.family.options().values_stay_in_log;
        if !wanted || !self.has_log_for(&job.family) {
            return;
        }
        // A second name of the WAL would not be in the directory of the table.
        if job.directory() != self.env.directory {
            return self.tell_of_no_log(&job.family);
        }
        let Some(log) = job.oldest_log() else { return };
        let wanted = Wanted {
            log,
            db_uid: self.tree.versions.db_uid(),
            family: job.family.id(),
            last: job.last_seqno(),
        };
        let file = self.tree.versions.counters.file();
        let path = table_file_name(&self.env.directory, file);
        let vfs = self.env.vfs.as_ref();
        if let Err(error) = vfs.hard_link(&wal_file_name(&self.env.wal_directory(), log), &path) {
            if error.kind() != ErrorKind::NotFound {
                self.tell_of_no_log(&job.family);
            }
            return;
        }
        match places(vfs, &path, &wanted) {
            Ok(places) if !places.is_empty() => {
                job.leave_values(LogValues { file, places, stands: Vec::new() });
            }
            _ => {
                // A file that cannot be removed is an orphan, which the next open removes.
                let _orphan = vfs.remove(&path);
            }
        }
    }
}

/// Returns where the larger values of `wanted` are in the WAL at `path`, in the order of their
/// sequence numbers.
fn places(vfs: &dyn Vfs, path: &Path, wanted: &Wanted) -> Result<Vec<(SeqNo, u64, u32)>> {
    let mut reader = WalReader::open(vfs, path, wanted.log, Some(wanted.db_uid), 0)?;
    let mut places = Vec::new();
    while let Some(record) = reader.next()? {
        if record.first_seqno > wanted.last {
            break;
        }
        let payload = record.payload_offset();
        let begin = record.payload.as_ptr().addr();
        record.for_each_entry(path, |seqno, entry| {
            // Operands are left out: a flush may merge them into an entry with the same number and
            // other bytes.
            let large = entry.kind == ValueKind::Put && entry.value.len() >= VALUE_BYTES_MIN;
            if large && entry.column_family == wanted.family && seqno <= wanted.last {
                let within = entry.value.as_ptr().addr() - begin;
                let length = u32::try_from(entry.value.len()).unwrap_or(u32::MAX);
                places.push((seqno, payload + within as u64, length));
            }
        })?;
    }
    Ok(places)
}

impl LogValues {
    /// Returns what the table stores for the value of `seqno`: the value, or where it is in the
    /// WAL.
    pub(crate) fn stands_for(&mut self, seqno: SeqNo, value: &[u8]) -> &[u8] {
        let found = self.places.binary_search_by_key(&seqno, |(at, ..)| *at).ok();
        let place = found.and_then(|at| self.places.get(at));
        let place = place.filter(|(_, _, length)| *length as usize == value.len());
        self.stands.clear();
        match place {
            Some(&(_, offset, length)) => {
                let checksum = xxh3_64(value);
                Separated::InLog(ValuePlace { offset, length, checksum })
            }
            None => Separated::Here(value),
        }
        .encode(&mut self.stands);
        &self.stands
    }
}
