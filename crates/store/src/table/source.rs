//! Where the bytes of an open table are: a range of a file, and perhaps an image in memory.
//!
//! What must stay true: a read takes the image if there is one and it is believed, and the file
//! otherwise; an error names the file and the offset in it.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Weak};

use sateen_control::{Comparator, FileId, IoClass, SeqNo, TableId};

use super::format::{FORMAT_VERSION, FooterError};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::base::perf::{self, PerfMetric};
use crate::files::TableImage;
use crate::vfs::{AlignedBuffer, VfsFile};

/// Where a table is.
#[derive(Clone, Debug)]
pub struct TableSource {
    pub file: Arc<dyn VfsFile>,
    pub path: Arc<Path>,
    pub table: TableId,
    pub file_id: FileId,
    /// Uid of the database in which the file was made.
    pub db_uid: u64,
    /// Start of the table in the file.
    pub offset: u64,
    /// Length without padding.
    pub length: u64,
    /// Bytes behind the data blocks; 0 if unknown.
    pub tail_bytes: u64,
    /// Sequence number of all entries, which are stored with 0 (an ingested table). 0 if entries
    /// have their own.
    pub global_seqno: SeqNo,
    /// Comparator of the keys; `None` for callers that only scan from end to end.
    pub comparator: Option<Comparator>,
    /// Image of the table in memory, while it is kept.
    pub image: Weak<TableImage>,
}

impl TableSource {
    /// Reads `length` bytes at `offset` of the table, in whole pages if the file needs that.
    pub(super) fn read<'a>(
        &self,
        offset: u64,
        length: u64,
        buffer: &'a mut AlignedBuffer,
        class: IoClass,
    ) -> Result<&'a [u8]> {
        let range = self.read_range(offset, length, buffer, class)?;
        Ok(buffer.whole().get(range).unwrap_or_default())
    }

    /// Like `read`, but returns the range of the bytes in the buffer.
    pub(super) fn read_range(
        &self,
        offset: u64,
        length: u64,
        buffer: &mut AlignedBuffer,
        class: IoClass,
    ) -> Result<Range<usize>> {
        let too_large = |_| self.corruption(offset, CorruptionKind::Malformed("block too large"));
        if let Some(length) = self.copy_image(offset, length, buffer)? {
            return Ok(0..length);
        }
        let align = self.file.alignment().max(1) as u64;
        let start = self.offset + offset;
        let from = start - start % align;
        let wanted = usize::try_from((start + length).next_multiple_of(align) - from);
        let wanted = wanted.map_err(too_large)?;
        buffer.reserve(wanted);
        let target = buffer.whole_mut().get_mut(..wanted).unwrap_or_default();
        let got = self.read_at(target, from, class)?;
        let first = usize::try_from(start - from).map_err(too_large)?;
        let range = first..first + usize::try_from(length).map_err(too_large)?;
        if got < range.end {
            return Err(self.corruption(offset, CorruptionKind::Truncated));
        }
        Ok(range)
    }

    /// Reads `length` bytes at `offset` of the table from its image in memory.
    pub(super) fn read_image<'a>(
        &self,
        offset: u64,
        length: u64,
        buffer: &'a mut AlignedBuffer,
    ) -> Result<&'a [u8]> {
        let Some(length) = self.copy_image(offset, length, buffer)? else {
            return Err(Error::NotInMemory);
        };
        Ok(buffer.whole().get(..length).unwrap_or_default())
    }

    /// Copies a part of the image to the front of `buffer`, and returns the length of the part.
    /// Returns `None` if the table has no image.
    pub(super) fn copy_image(
        &self,
        offset: u64,
        length: u64,
        buffer: &mut AlignedBuffer,
    ) -> Result<Option<usize>> {
        let Some(image) = self.image.upgrade() else { return Ok(None) };
        let too_large = |_| self.corruption(offset, CorruptionKind::Malformed("block too large"));
        let length = usize::try_from(length).map_err(too_large)?;
        buffer.reserve(length);
        let target = buffer.whole_mut().get_mut(..length).unwrap_or_default();
        Ok(image.read(offset, target).then_some(length))
    }

    /// Called when bytes were damaged. If they came from an image, the table is read from its file
    /// from now on, and the result is true.
    pub(super) fn give_up_image(&self) -> bool {
        let image = self.image.upgrade();
        image.is_some_and(|image| image.give_up())
    }

    /// Reads from the file, and counts it for the thread's perf context.
    pub(super) fn read_at(&self, target: &mut [u8], from: u64, class: IoClass) -> Result<usize> {
        let _timed = perf::time(PerfMetric::BlockReadTime);
        perf::add(PerfMetric::BlockReadCount, 1);
        perf::add(PerfMetric::BlockReadByte, target.len() as u64);
        let read = self.file.read_at(target, from, class);
        read.map_err(|error| Error::of_pooled("read", &self.path, error))
    }

    /// Returns corruption at `offset` of the table, with the offset in the file.
    pub(super) fn corruption(&self, offset: u64, kind: CorruptionKind) -> Error {
        Error::corruption(&self.path, self.offset.saturating_add(offset), kind)
    }

    /// Returns the error for a footer that was refused.
    pub(super) fn footer_error(&self, error: FooterError, offset: u64) -> Error {
        match error {
            FooterError::Corrupt(kind) => self.corruption(offset, kind),
            FooterError::Newer { version, features } => Error::IncompatibleDirectory {
                path: self.path.to_path_buf(),
                reason: format!(
                    "written in a newer format: table {} of format {version} with features \
                     {features:#x}; this engine reads format {FORMAT_VERSION}",
                    self.table
                ),
            },
        }
    }
}
