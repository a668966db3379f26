//! The records of a file, whatever they trace.
//!
//! 1. [`Records::open`] opens the file, and [`Records::first`] finds its first record.
//! 2. [`Records::next`] finds the next record in a window of the file, which `fill` moves
//!    forward.
//!
//! What must stay true: a length is believed only if the file is that long.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::IoClass;
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::vfs::{OpenOptions, Vfs, VfsFile};

use super::format::{self, HEAD_BYTES, kind_of, payload_bytes};

/// Bytes that are read at once, unless a record is longer.
const WINDOW_BYTES: usize = 256 << 10;

/// The records of a trace's file, from first to last.
#[derive(Debug)]
pub(super) struct Records {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    length: u64,
    /// The place in the file of the next record, and of the window's first byte.
    next: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl Records {
    /// Opens a file in the file system `vfs`.
    pub(super) fn open(vfs: &dyn Vfs, path: &Path) -> Result<Records> {
        let path = path.to_owned();
        let of_file = |error| Error::io("open", &path, error);
        let file = vfs.open(&path, OpenOptions::READ).map_err(of_file)?;
        let length = file.len().map_err(|error| Error::io("read", &path, error))?;
        Ok(Records { file, path, length, next: 0, window: Vec::new(), window_at: 0 })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the place of the next record.
    pub(super) fn position(&self) -> u64 {
        self.next
    }

    /// Goes to the record at `position`.
    pub(super) fn go_to(&mut self, position: u64) {
        self.next = position;
    }

    /// Goes behind the last record.
    pub(super) fn go_to_end(&mut self) {
        self.next = self.length;
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.next == self.length
    }

    /// Returns the place of the first record in the window; `None` if the file does not begin with
    /// one that may be the first of a trace.
    pub(super) fn first(&mut self) -> Result<Option<Range<usize>>> {
        self.next = 0;
        // The length is looked at before the window would read as much.
        if self.length < HEAD_BYTES as u64 {
            return Ok(None);
        }
        let head = self.fill(0, HEAD_BYTES)?;
        let head = self.bytes(&head);
        let is_begin = kind_of(head) == Some(format::BEGIN);
        let payload = head.first_chunk().map_or(0, payload_bytes);
        if !is_begin || u64::from(payload) > self.length - HEAD_BYTES as u64 {
            return Ok(None);
        }
        self.next().map(Some)
    }

    /// Returns the place of the next record in the window.
    pub(super) fn next(&mut self) -> Result<Range<usize>> {
        let at = self.next;
        let head = self.fill(at, HEAD_BYTES)?;
        let Some(head) = self.bytes(&head).first_chunk::<HEAD_BYTES>().copied() else {
            return Err(self.damage(at));
        };
        let whole = self.fill(at, HEAD_BYTES + payload_bytes(&head) as usize)?;
        self.next = at + whole.len() as u64;
        Ok(whole)
    }

    /// Has the window contain the `length` bytes at `at`, and returns their place in it. Fails if
    /// the file ends before.
    fn fill(&mut self, at: u64, length: usize) -> Result<Range<usize>> {
        let from = at.checked_sub(self.window_at).and_then(|from| usize::try_from(from).ok());
        let end = from.and_then(|from| from.checked_add(length));
        if let (Some(from), Some(end)) = (from, end)
            && end <= self.window.len()
        {
            return Ok(from..end);
        }
        let left = self.length.saturating_sub(at);
        if length as u64 > left {
            return Err(Error::corruption(&self.path, at, CorruptionKind::Truncated));
        }
        let wanted = length.max(usize::try_from(left).unwrap_or(usize::MAX).min(WINDOW_BYTES));
        self.window.clear();
        self.window.resize(wanted, 0);
        let read = self.file.read_exact_at(&mut self.window, at, IoClass::Client);
        if let Err(error) = read {
            self.window.clear();
            return Err(Error::io("read", &self.path, error));
        }
        self.window_at = at;
        Ok(0..length)
    }

    /// Returns the bytes of a place in the window.
    pub(super) fn bytes(&self, place: &Range<usize>) -> &[u8] {
        self.window.get(place.clone()).unwrap_or_default()
    }

    pub(super) fn damage(&self, at: u64) -> Error {
        Error::corruption(&self.path, at, CorruptionKind::Checksum)
    }

    /// Returns the error of a record that is whole, but cannot be used.
    pub(super) fn unreadable(&self, at: u64, why: &str) -> Error {
        let path = sateen_store::base::names::shown_path(&self.path);
        Error::InvalidArgument(format!("{path}: the record at offset {at}: {why}"))
    }
}
