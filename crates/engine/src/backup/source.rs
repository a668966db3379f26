//! What a backup copies: ranges of files, and of memory.

use std::path::Path;
use std::sync::{Arc, Weak};

use sateen_control::IoClass;
use sateen_control::version::{Placement, TableMeta};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::table::{Table, TableIterOptions, TableSource};
use sateen_store::vfs::{BytesFile, Vfs, VfsFile};

use super::pacer::{Pacer, STEP_BYTES};
use super::record::{Object, SUM_BYTES};
use super::store::BackupWriter;

/// The I/O class of reads of the database: that of the deepest compactions, as for a scrub.
pub(super) const CLASS: IoClass = IoClass::Deep(u8::MAX);
/// Bytes of one read while a table is verified.
const CHUNK_BYTES: usize = 256 << 10;

/// A range of a file.
pub(super) struct Source {
    pub(super) file: Arc<dyn VfsFile>,
    pub(super) path: Arc<Path>,
    /// Offset in the file.
    pub(super) at: u64,
    pub(super) length: u64,
    /// Whether the bytes were read from the disk already.
    pub(super) is_in_memory: bool,
}

impl Source {
    /// Returns a source of bytes in memory. `path` names them in errors.
    pub(super) fn of_bytes(bytes: Vec<u8>, path: &Path) -> Source {
        let length = bytes.len() as u64;
        let file = Arc::new(BytesFile::new(bytes, 0));
        Source { file, path: path.into(), at: 0, length, is_in_memory: true }
    }

    /// Reads the range into memory.
    pub(super) fn into_memory(self, pacer: &mut Pacer<'_>) -> Result<Source> {
        let mut bytes = vec![0; usize::try_from(self.length).unwrap_or(usize::MAX)];
        let mut at = self.at;
        for part in bytes.chunks_mut(STEP_BYTES) {
            pacer.turn()?;
            self.fill(part, at)?;
            pacer.moved(part.len() as u64, 0, 0);
            at += part.len() as u64;
        }
        let file = Arc::new(BytesFile::new(bytes, self.at));
        Ok(Source { file, is_in_memory: true, ..self })
    }

    /// Fills `part` from the offset `at` of the file.
    fn fill(&self, part: &mut [u8], at: u64) -> Result<()> {
        let got = self.file.read_at(part, at, CLASS);
        let got = got.map_err(|error| Error::io("read", &self.path, error))?;
        if got < part.len() {
            let end = at + got as u64;
            return Err(Error::corruption(&self.path, end, CorruptionKind::Truncated));
        }
        Ok(())
    }

    /// Copies the range to `to`, if there is one. Returns the checksum of each MiB.
    pub(super) fn copy(
        &self,
        pacer: &mut Pacer<'_>,
        mut to: Option<&mut dyn BackupWriter>,
    ) -> Result<Vec<u64>> {
        let mut sums = Vec::new();
        let mut buffer = vec![0; usize::try_from(self.length.min(SUM_BYTES)).unwrap_or(0)];
        let mut done = 0;
        while done < self.length {
            let bytes = usize::try_from((self.length - done).min(SUM_BYTES)).unwrap_or(0);
            let buffer = buffer.get_mut(..bytes).unwrap_or_default();
            let mut at = self.at + done;
            for part in buffer.chunks_mut(STEP_BYTES) {
                pacer.turn()?;
                self.fill(part, at)?;
                let mut written = 0;
                if let Some(to) = &mut to {
                    to.append(part)?;
                    written = part.len() as u64;
                }
                let read = if self.is_in_memory { 0 } else { part.len() as u64 };
                pacer.moved(read, written, written);
                at += part.len() as u64;
            }
            sums.push(Object::sum(sums.len() as u64, buffer));
            done += bytes as u64;
        }
        Ok(sums)
    }
}

/// Verifies every block of a table, whose bytes are those of `source`, and its values in a WAL.
pub(super) fn verify_table(
    source: &Source,
    meta: &TableMeta,
    db_uid: u64,
    (vfs, directory): (&dyn Vfs, &Path),
    pacer: &Pacer<'_>,
) -> Result<()> {
    let table = Table::open(
        TableSource {
            file: source.file.clone(),
            path: source.path.clone(),
            table: meta.id,
            file_id: meta.placement.file(),
            db_uid,
            offset: source.at,
            length: source.length,
            tail_bytes: meta.tail_bytes,
            global_seqno: meta.global_seqno,
            comparator: Some(meta.smallest.comparator().clone()),
            image: Weak::new(),
        },
        CLASS,
    )?;
    let table = Arc::new(table.with_values(vfs, directory)?);
    let has_values = table.properties().values.is_some();
    let mut iter = table.iter(TableIterOptions::compaction(CLASS, CHUNK_BYTES));
    iter.seek_to_first()?;
    while iter.valid() {
        pacer.check()?;
        if has_values {
            iter.next()?;
        } else if !iter.skip_block()? {
            break;
        }
    }
    Ok(())
}

/// Returns the bytes of a table in its file; `None` if it has the file for itself.
pub(super) fn extent(table: &TableMeta) -> Option<(u64, u64)> {
    match table.placement {
        Placement::Slice { offset, length, .. } | Placement::Log { offset, length, .. } => {
            Some((offset, length))
        }
        Placement::WholeFile(_) => None,
    }
}
