//! Writes a file of sorted entries outside of any database, to be ingested into one.
//!
//! The file has a table of entries, a table of ranges to delete, or both. Entries are written as
//! they come; ranges are kept in memory until [`SstFileWriter::finish`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::{
    ColumnFamilyId, Comparator, FileId, IoClass, SeqNo, TableId, UserKey, ValueKind,
};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::key;
use sateen_store::base::names::shown_path;
use sateen_store::batch::KEY_BYTES_MAX;
use sateen_store::files::CompactionFileWriter;
use sateen_store::files::replace::sync_directory;
use sateen_store::table::{Compression, TableBuilder, TableBuilderOptions};
use sateen_store::vfs::{PosixVfs, Vfs};

use crate::operators::wall_clock::WallClock;
use crate::options::Options;
use crate::ttl;

/// The database identifier in files that belong to no database.
pub(super) const EXTERNAL_UID: u64 = u64::from_le_bytes(*b"external");
/// The file number of these files.
pub(super) const EXTERNAL_FILE: FileId = FileId(0);
/// The table of entries.
pub(super) const ENTRIES: TableId = TableId(1);
/// The table of ranges to delete: each from its key (inclusive) to its value (exclusive). They
/// ascend, and none touches another.
pub(super) const RANGES: TableId = TableId(2);

/// A finished file ([`SstFileWriter::finish`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SstFileInfo {
    /// The path of the file.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Number of entries, including deletions.
    pub entries: u64,
    /// Number of ranges that are deleted. Ranges that overlap or touch count as one.
    pub ranges: u64,
    /// The smallest key or begin of a range.
    pub smallest: Vec<u8>,
    /// The largest key or end of a range.
    pub largest: Vec<u8>,
}

/// Writes a file for [`Db::ingest`](crate::Db::ingest). Keys are added in strictly ascending order.
///
/// ```
/// use sateen::{Db, IngestOptions, Options, SstFileWriter};
///
/// # let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("new.sst");
/// let mut writer = SstFileWriter::create(&path, &Options::default())?;
/// writer.put("a", "1")?;
/// writer.put("b", "2")?;
/// writer.finish()?;
///
/// let db = Db::open(directory.path().join("db"), Options::default())?;
/// db.ingest(&[path], &IngestOptions::default())?;
/// assert_eq!(db.get("b")?.as_deref(), Some(&b"2"[..]));
/// # Ok::<(), sateen::Error>(())
/// ```
pub struct SstFileWriter {
    path: PathBuf,
    vfs: Arc<dyn Vfs>,
    file: CompactionFileWriter,
    /// The table of entries.
    builder: TableBuilder,
    comparator: Comparator,
    /// Buffer for the internal key of an entry.
    internal: Vec<u8>,
    smallest: Option<Vec<u8>>,
    /// The key that was added last.
    last: Vec<u8>,
    ranges: Vec<(UserKey, UserKey)>,
    options: TableBuilderOptions,
    /// The clock for the times of values, if they have times.
    times: Option<WallClock>,
}

impl SstFileWriter {
    /// Creates the file `path`, which must not exist. The options about blocks count, the
    /// comparator, and `ttl`: a file that was written with `ttl` fits only column families that
    /// have it, and vice versa. The file records it, and others refuse the file.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Options, SstFileWriter};
    ///
    /// let file = directory.path().join("fruit.sst");
    /// let mut writer = SstFileWriter::create(&file, &Options::default())?;
    /// writer.put("fig", "1")?;
    /// writer.finish()?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` if the file exists or cannot be created.
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<SstFileWriter> {
        SstFileWriter::create_with(Arc::new(PosixVfs::new()), path, options)
    }

    /// Creates a file in the file system `vfs`, as [`SstFileWriter::create`] does.
    ///
    /// # Errors
    /// As [`SstFileWriter::create`].
    pub fn create_with(
        vfs: Arc<dyn Vfs>,
        path: impl AsRef<Path>,
        options: &Options,
    ) -> Result<SstFileWriter> {
        let path = path.as_ref().to_owned();
        let family = &options.column_family;
        let table = TableBuilderOptions {
            block_bytes: usize::try_from(family.block_bytes).unwrap_or(4096),
            restart_interval: family.restart_interval,
            filter_bits_per_key: 0,
            compression: Compression::Lz4,
            comparator: family.comparator.clone(),
            value_times: Some(family.ttl.is_some()),
            ..TableBuilderOptions::new(ENTRIES, ColumnFamilyId(0))
        };
        let builder = TableBuilder::new(table.clone())?;
        let class = IoClass::Client;
        let file = CompactionFileWriter::create(
            vfs.as_ref(),
            &path,
            EXTERNAL_FILE,
            EXTERNAL_UID,
            false,
            class,
        )?;
        Ok(SstFileWriter {
            path,
            vfs,
            file,
            builder,
            comparator: family.comparator.clone(),
            internal: Vec::new(),
            smallest: None,
            last: Vec::new(),
            ranges: Vec::new(),
            options: table,
            times: family.ttl.is_some().then(|| options.wall_clock.clone()),
        })
    }

    /// Adds a value.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Options, SstFileWriter};
    ///
    /// let file = directory.path().join("fruit.sst");
    /// let mut writer = SstFileWriter::create(&file, &Options::default())?;
    /// writer.put("date", "1")?;
    /// writer.put("fig", "2")?;
    /// assert!(writer.put("apple", "3").is_err(), "keys ascend");
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the key does not come after the one before, or is too long; `Io`.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), ValueKind::Put, value.as_ref())
    }

    /// Adds a deletion.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Options, SstFileWriter};
    ///
    /// let file = directory.path().join("fruit.sst");
    /// let mut writer = SstFileWriter::create(&file, &Options::default())?;
    /// writer.delete("fig")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`SstFileWriter::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), ValueKind::Delete, &[])
    }

    /// Adds a merge operand, for the merge operator of the column family that the file goes to.
    ///
    /// # Errors
    /// As [`SstFileWriter::put`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), ValueKind::Merge, operand.as_ref())
    }

    /// Deletes all keys from `begin` (inclusive) to `end` (exclusive), except those in this file.
    /// Ranges may be added in any order, also between entries. They are kept in memory. An empty
    /// range has no effect.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Options, SstFileWriter};
    ///
    /// let file = directory.path().join("fruit.sst");
    /// let mut writer = SstFileWriter::create(&file, &Options::default())?;
    /// writer.delete_range("a", "g")?;
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if `end` comes before `begin`, or a key is too long.
    pub fn delete_range(&mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        let (begin, end) = (begin.as_ref(), end.as_ref());
        let order = self.comparator.compare(begin, end);
        if order.is_gt() {
            return Err(Error::reversed_bounds(begin, end));
        }
        if let Some(long) = [begin, end].into_iter().find(|key| key.len() > KEY_BYTES_MAX) {
            let text =
                format!("a key of {} bytes exceeds the limit of {KEY_BYTES_MAX} bytes", long.len());
            return Err(Error::InvalidArgument(text));
        }
        if order.is_lt() {
            self.ranges.push((self.comparator.key(begin), self.comparator.key(end)));
        }
        Ok(())
    }

    /// Returns the bytes written so far, without what is still in a buffer.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Options, SstFileWriter};
    ///
    /// let file = directory.path().join("fruit.sst");
    /// let mut writer = SstFileWriter::create(&file, &Options::default())?;
    /// writer.put("fig", "1")?;
    /// println!("{} bytes so far", writer.file_bytes());
    /// # Ok::<(), sateen::Error>(())
    /// ```
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file.bytes_written()
    }

    /// Adds an entry, with the time of the write if values have times.
    fn add(&mut self, user_key: &[u8], kind: ValueKind, value: &[u8]) -> Result<()> {
        if self.smallest.is_none() {
            self.smallest = Some(user_key.to_vec());
        } else if self.comparator.compare(user_key, &self.last).is_le() {
            return Err(descending(user_key, &self.last));
        }
        let timed = match (kind, &self.times) {
            (ValueKind::Put | ValueKind::Merge, Some(clock)) => Some(ttl::timed(value, clock)?),
            _ => None,
        };
        self.internal.clear();
        key::append(&mut self.internal, user_key, SeqNo(0), kind);
        let value = timed.as_deref().unwrap_or(value);
        self.builder.add(&mut self.file, &self.internal, value)?;
        self.last.clear();
        self.last.extend_from_slice(user_key);
        Ok(())
    }

    /// Ends the file and makes it durable.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use sateen::{Options, SstFileWriter};
    ///
    /// let file = directory.path().join("fruit.sst");
    /// let mut writer = SstFileWriter::create(&file, &Options::default())?;
    /// writer.put("fig", "1")?;
    /// assert_eq!(writer.finish()?.entries, 1);
    /// # Ok::<(), sateen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if nothing was added; `Io`.
    pub fn finish(mut self) -> Result<SstFileInfo> {
        let ranges = united(std::mem::take(&mut self.ranges));
        let first = self.smallest.as_ref().map(|key| self.comparator.key(key));
        let begins = first.into_iter().chain(ranges.first().map(|(begin, _)| begin.clone()));
        let Some(smallest) = begins.min() else {
            let text = format!("nothing was added to {}", shown_path(&self.path));
            return Err(Error::InvalidArgument(text));
        };
        let has_entries = self.smallest.is_some();
        let entries = if has_entries { self.builder.finish(&mut self.file)?.entries } else { 0 };
        if !ranges.is_empty() {
            let mut table = TableBuilderOptions { table: RANGES, ..self.options };
            table.filter_bits_per_key = 0;
            let mut builder = TableBuilder::new(table)?;
            for (begin, end) in &ranges {
                self.internal.clear();
                let kind = ValueKind::RangeDelete;
                key::append(&mut self.internal, begin.bytes(), SeqNo(0), kind);
                builder.add(&mut self.file, &self.internal, end.bytes())?;
            }
            builder.finish(&mut self.file)?;
        }
        let file_bytes = self.file.finish()?;
        if let Some(directory) = self.path.parent().filter(|path| !path.as_os_str().is_empty()) {
            sync_directory(self.vfs.as_ref(), directory)?;
        }
        let last = has_entries.then(|| self.comparator.key(&self.last));
        let largest = last.into_iter().chain(ranges.last().map(|(_, end)| end.clone())).max();
        Ok(SstFileInfo {
            path: self.path,
            file_bytes,
            entries,
            ranges: ranges.len() as u64,
            smallest: smallest.bytes().to_vec(),
            largest: largest.map_or_else(Vec::new, |key| key.bytes().to_vec()),
        })
    }
}

/// Returns the error for a key that was added after `last`, and is not greater.
#[cold]
pub(super) fn descending(key: &[u8], last: &[u8]) -> Error {
    let (key, last) = (key.escape_ascii(), last.escape_ascii());
    Error::InvalidArgument(format!("keys must ascend: {key} was added after {last}"))
}

/// Returns the ranges in order. Those that overlap or touch are united.
fn united(mut ranges: Vec<(UserKey, UserKey)>) -> Vec<(UserKey, UserKey)> {
    ranges.sort();
    let mut united: Vec<(UserKey, UserKey)> = Vec::new();
    for (begin, end) in ranges {
        match united.last_mut() {
            Some((_, last)) if begin <= *last => {
                if end > *last {
                    *last = end;
                }
            }
            _ => united.push((begin, end)),
        }
    }
    united
}

impl std::fmt::Debug for SstFileWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SstFileWriter").field("path", &self.path).finish_non_exhaustive()
    }
}
