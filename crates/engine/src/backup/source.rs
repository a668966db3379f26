//! What a backup copies: ranges of files, and of memory.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Weak};

use sateen_control::IoClass;
use sateen_control::version::{Placement, TableMeta};
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::iterator::InternalIterator;
use sateen_store::files::PAGE_BYTES;
use sateen_store::table::{Table, TableIterOptions, TableSource, ValueFiles};
use sateen_store::vfs::{BytesFile, VfsFile};

use super::pacer::{Pacer, STEP_BYTES};
use super::record::{Object, SUM_BYTES};
use super::store::BackupWriter;

/// The I/O class of reads of the database: that of the deepest compactions, as for a scrub.
pub(super) const CLASS: IoClass = IoClass::Deep(u8::MAX);

/// Ranges of a file.
pub(super) struct Source {
    pub(super) file: Arc<dyn VfsFile>,
    pub(super) path: Arc<Path>,
    /// The ranges, ascending.
    pub(super) ranges: Vec<Range<u64>>,
    /// Bytes of all of them.
    pub(super) length: u64,
    /// Whether the bytes were read from the disk already.
    pub(super) is_in_memory: bool,
    /// Whether dead values in it may turn to zeros while it is copied.
    pub(super) may_be_punched: bool,
}

impl Source {
    /// Returns a source of bytes in memory. `path` names them in errors.
    pub(super) fn of_bytes(bytes: Vec<u8>, path: &Path) -> Source {
        let length = bytes.len() as u64;
        let ranges = std::iter::once(0..length).collect();
        let file = Arc::new(BytesFile::new(bytes, 0));
        let path = path.into();
        Source { file, path, ranges, length, is_in_memory: true, may_be_punched: false }
    }

    /// Returns the `length` bytes at `at` of a file.
    pub(super) fn of_range(
        file: Arc<dyn VfsFile>,
        path: Arc<Path>,
        at: u64,
        length: u64,
    ) -> Source {
        let ranges = std::iter::once(at..at + length).collect();
        Source { file, path, ranges, length, is_in_memory: false, may_be_punched: false }
    }

    /// Returns the first `length` bytes of a file with values, without its holes: pages of zeros.
    /// They are looked for only in a file that takes less space than its length.
    pub(super) fn without_holes(
        file: Arc<dyn VfsFile>,
        path: Arc<Path>,
        length: u64,
        pacer: &mut Pacer<'_>,
    ) -> Result<Source> {
        let allocated = file.allocated().map_err(|error| Error::io("stat", &path, error))?;
        let whole = Source { may_be_punched: true, ..Source::of_range(file, path, 0, length) };
        if allocated >= length {
            return Ok(whole);
        }
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut buffer = vec![0; STEP_BYTES];
        let mut at = 0;
        while at < length {
            let pages = (pacer.turn()? / PAGE_BYTES).max(1) * PAGE_BYTES;
            let bytes = usize::try_from(length - at).unwrap_or(usize::MAX).min(pages);
            let part = buffer.get_mut(..bytes).unwrap_or_default();
            whole.fill(part, at)?;
            pacer.moved(bytes as u64, 0, 0);
            for page in part.chunks(PAGE_BYTES) {
                let end = at + page.len() as u64;
                if page.iter().any(|byte| *byte != 0) {
                    match ranges.last_mut() {
                        Some(last) if last.end == at => last.end = end,
                        _ => ranges.push(at..end),
                    }
                }
                at = end;
            }
        }
        let length = ranges.iter().map(|range| range.end - range.start).sum();
        Ok(Source { ranges, length, ..whole })
    }

    /// Returns the offset of the first range in the file.
    fn begin(&self) -> u64 {
        self.ranges.first().map_or(0, |range| range.start)
    }

    /// Reads a source of one range into memory.
    pub(super) fn into_memory(self, pacer: &mut Pacer<'_>) -> Result<Source> {
        let mut bytes = vec![0; usize::try_from(self.length).unwrap_or(usize::MAX)];
        let (mut at, mut rest) = (0, bytes.as_mut_slice());
        while !rest.is_empty() {
            let (part, later) = rest.split_at_mut(pacer.turn()?.min(rest.len()));
            self.fill(part, at)?;
            pacer.moved(part.len() as u64, 0, 0);
            at += part.len() as u64;
            rest = later;
        }
        let file = Arc::new(BytesFile::new(bytes, self.begin()));
        Ok(Source { file, is_in_memory: true, ..self })
    }

    /// Fills `part` from the offset `at` of the source, whose ranges follow each other.
    fn fill(&self, part: &mut [u8], at: u64) -> Result<()> {
        let (mut rest, mut skip) = (part, at);
        for range in &self.ranges {
            let has = range.end - range.start;
            if skip >= has {
                skip -= has;
                continue;
            }
            let length = usize::try_from(has - skip).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at_mut(length);
            self.read(now, range.start + skip)?;
            (rest, skip) = (later, 0);
            if rest.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Fills `part` from the offset `at` of the file.
    fn read(&self, part: &mut [u8], at: u64) -> Result<()> {
        let got = self.file.read_at(part, at, CLASS);
        let got = got.map_err(|error| Error::io("read", &self.path, error))?;
        if got < part.len() {
            let end = at + got as u64;
            return Err(Error::corruption(&self.path, end, CorruptionKind::Truncated));
        }
        Ok(())
    }

    /// Copies the ranges to `to`, if there is one. Returns the checksum of each MiB.
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
            let (mut at, mut rest) = (done, &mut *buffer);
            while !rest.is_empty() {
                let (part, later) = rest.split_at_mut(pacer.turn()?.min(rest.len()));
                self.fill(part, at)?;
                let mut written = 0;
                if let Some(to) = &mut to {
                    to.append(part)?;
                    written = part.len() as u64;
                }
                let read = if self.is_in_memory { 0 } else { part.len() as u64 };
                pacer.moved(read, written, written);
                at += part.len() as u64;
                rest = later;
            }
            sums.push(Object::sum(sums.len() as u64, buffer));
            done += bytes as u64;
        }
        Ok(sums)
    }
}

/// Verifies every block of a table, whose bytes are those of `source`, and its values in `files`.
pub(super) fn verify_table(
    source: &Source,
    meta: &TableMeta,
    db_uid: u64,
    files: &Arc<ValueFiles>,
    pacer: &mut Pacer<'_>,
) -> Result<()> {
    let table = Table::open(
        TableSource {
            file: source.file.clone(),
            path: source.path.clone(),
            table: meta.id,
            file_id: meta.placement.file(),
            db_uid,
            offset: source.begin(),
            length: source.length,
            tail_bytes: meta.tail_bytes,
            global_seqno: meta.global_seqno,
            comparator: Some(meta.smallest.comparator().clone()),
            image: Weak::new(),
        },
        CLASS,
    )?;
    let table = Arc::new(table.with_values(files)?);
    let mut iter = table.iter(TableIterOptions::compaction(CLASS, STEP_BYTES));
    iter.seek_to_first()?;
    // Bytes of values since the last turn.
    let mut read = 0;
    while iter.valid() {
        pacer.check()?;
        if !table.separates_values() {
            if !iter.skip_block()? {
                break;
            }
            continue;
        }
        read += iter.value().len();
        if read >= STEP_BYTES {
            pacer.moved(read as u64, 0, 0);
            pacer.turn()?;
            read = 0;
        }
        iter.next()?;
    }
    pacer.moved(read as u64, 0, 0);
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
