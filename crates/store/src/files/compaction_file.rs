//! Compaction files (BoLT §3.1): all tables of one flush or compaction in one file, one after the
//! other on page boundaries, made durable by one barrier. `docs/format/compaction-file.md`
//! describes the bytes.
//!
//! Writing:
//!
//! 1. [`CompactionFileWriter::create`] creates the file, or `on` takes one that exists, and appends
//!    the header page (`header`).
//! 2. For each table: `begin_table` pads to a page boundary, `append` adds the table's bytes,
//!    `finish_table` adds a [`DirectoryEntry`] (`push_entry`).
//! 3. `append` fills a buffer. The first one is small and grows once (`grow`). A full buffer of the
//!    large size is written (`write_out`), and written back if the file is buffered.
//! 4. A value file has values instead of tables: `append_value` adds one.
//! 5. [`CompactionFileWriter::finish`] appends the directory with its checksum and the footer at
//!    the end of a page, writes the rest, and syncs the contents once.
//!
//! Reading, by `repair` and `check`:
//!
//! 1. [`CompactionFile::open`] reads header, footer and directory ([`Outline::read`]), and decodes
//!    the entries (`decode_directory`).
//!
//! What must stay true: each byte of a file is written once (format rule F2). After an error
//! nothing more is written to the file (format rule F4). The directory suffices to rebuild a lost
//! manifest from the files alone.

use std::path::Path;
use std::sync::Arc;

use sateen_control::{FileId, IoClass, TableId};

use super::PAGE_BYTES;
use super::directory::{DirectoryEntry, decode_directory, push_entry};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::base::random::random_uid;
use crate::files::TableImage;
use crate::files::outline::{FOOTER_BYTES, Footer, HOLDS_VALUES, Outline, header};
use crate::files::seal::Seed;
use crate::vfs::{AlignedBuffer, OpenOptions, Vfs, VfsFile};

const PAGE: usize = PAGE_BYTES;
/// Bytes that are collected before a write: few requests, none of which occupies the device for
/// long.
const BUFFER_BYTES: usize = 256 << 10;
/// Size of the first buffer. Most files of a small database need no more, and mapping a large
/// buffer for each would cost more than filling it.
const FIRST_BUFFER_BYTES: usize = 32 << 10;

/// Bytes of a buffered file that may wait for the device while more are written. Few, so that the
/// sync at the end is short, and enough to keep a device with a long queue busy.
const WRITE_BEHIND_BYTES: u64 = 1 << 20;

/// Writes a compaction file: `begin_table`, `append` and `finish_table` for each table, then
/// `finish`. After an error the file is abandoned: nothing more is written to it (format rule F4).
#[derive(Debug)]
pub struct CompactionFileWriter {
    file: Arc<dyn VfsFile>,
    path: Arc<Path>,
    id: FileId,
    db_uid: u64,
    features: u32,
    class: IoClass,
    buffer: AlignedBuffer,
    /// Filled bytes of `buffer`.
    filled: usize,
    /// Bytes written so far: the offset of the buffer in the file.
    written: u64,
    /// Offset below which a buffered file was written back.
    written_back: u64,
    /// The table that is being written, and its start.
    table: Option<(TableId, u64)>,
    /// The encoded directory, which is written at the end.
    directory: Vec<u8>,
    /// Number of finished tables.
    tables: u32,
    /// The image of the current or last table, and its largest size. `None` if no image is wanted,
    /// or the table exceeded the size.
    image: Option<(TableImage, u64)>,
    /// Whether a write failed.
    failed: bool,
}

impl CompactionFileWriter {
    /// Creates the file. `direct` bypasses the page cache if the file system can.
    pub fn create(
        vfs: &dyn Vfs,
        path: &Path,
        id: FileId,
        db_uid: u64,
        direct: bool,
        class: IoClass,
    ) -> Result<CompactionFileWriter> {
        let file = vfs
            .open(path, OpenOptions::CREATE.direct(direct))
            .map_err(|source| Error::io("create", path, source))?;
        CompactionFileWriter::on(file, path, id, db_uid, class)
    }

    /// Writes tables to `file`, which must be new and empty.
    pub fn on(
        file: Arc<dyn VfsFile>,
        path: &Path,
        id: FileId,
        db_uid: u64,
        class: IoClass,
    ) -> Result<CompactionFileWriter> {
        Self::with_features(file, path, id, db_uid, class, 0)
    }

    /// Writes values of tables to `file`, which must be new and empty.
    pub fn for_values(
        file: Arc<dyn VfsFile>,
        path: &Path,
        id: FileId,
        db_uid: u64,
        class: IoClass,
    ) -> Result<CompactionFileWriter> {
        Self::with_features(file, path, id, db_uid, class, HOLDS_VALUES)
    }

    fn with_features(
        file: Arc<dyn VfsFile>,
        path: &Path,
        id: FileId,
        db_uid: u64,
        class: IoClass,
        features: u32,
    ) -> Result<CompactionFileWriter> {
        let mut writer = CompactionFileWriter {
            file,
            path: path.into(),
            id,
            db_uid,
            features,
            class,
            buffer: AlignedBuffer::with_capacity(FIRST_BUFFER_BYTES),
            filled: 0,
            written: 0,
            written_back: 0,
            table: None,
            directory: Vec::new(),
            tables: 0,
            image: None,
            failed: false,
        };
        writer.append(&header(id, db_uid, features, random_uid()))?;
        Ok(writer)
    }

    /// Returns the number of bytes written to the file system.
    pub fn bytes_written(&self) -> u64 {
        self.written
    }

    /// Returns the length of the file so far, with the bytes that are still in memory.
    pub fn position(&self) -> u64 {
        self.written + self.filled as u64
    }

    /// Returns the seed of the checksums of `table`'s blocks.
    pub fn seed(&self, table: TableId) -> Seed {
        Seed::of_table(self.db_uid, self.id, table)
    }

    /// Appends a value. Returns its offset, and its checksum, which is mixed with that place.
    pub fn append_value(&mut self, value: &[u8]) -> Result<(u64, u64)> {
        let offset = self.position();
        self.append(value)?;
        Ok((offset, Seed::of_file(self.db_uid, self.id).checksum(value, offset)))
    }

    /// Starts a table on the next page boundary. Returns its offset.
    pub fn begin_table(&mut self, table: TableId) -> Result<u64> {
        if self.table.is_some() {
            return Err(Error::InvalidArgument(format!(
                "table {table} begun before the table before it was finished"
            )));
        }
        self.pad_to_page(0)?;
        let offset = self.position();
        self.table = Some((table, offset));
        Ok(offset)
    }

    /// Keeps the next table in `image`, which is empty, unless it exceeds `bytes_max`.
    pub fn keep_image(&mut self, image: TableImage, bytes_max: u64) {
        self.image = Some((image, bytes_max));
    }

    /// Returns the image of the last finished table, if one was kept.
    pub fn take_image(&mut self) -> Option<TableImage> {
        Some(self.image.take()?.0)
    }

    /// Adds bytes to the image, and drops the image once it is too large.
    #[inline(never)]
    fn append_to_image(&mut self, bytes: &[u8]) {
        let Some((image, bytes_max)) = &mut self.image else { return };
        image.append(bytes);
        if image.memory_bytes() > *bytes_max {
            self.image = None;
        }
    }

    /// Appends to the file. Writes whenever a full-size buffer is full.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.image.is_some() && self.table.is_some() {
            self.append_to_image(bytes);
        }
        let mut rest = bytes;
        loop {
            let room = self.buffer.whole_mut().get_mut(self.filled..).unwrap_or_default();
            let n = rest.len().min(room.len());
            let (now, later) = rest.split_at(n);
            if let Some(target) = room.get_mut(..n) {
                target.copy_from_slice(now);
            }
            self.filled += n;
            rest = later;
            if rest.is_empty() {
                return Ok(());
            }
            if self.buffer.capacity() < BUFFER_BYTES {
                self.grow();
            } else {
                self.write_out()?;
            }
        }
    }

    /// Continues with a buffer of full size, which takes over the content of the first.
    #[cold]
    fn grow(&mut self) {
        let mut larger = AlignedBuffer::with_capacity(BUFFER_BYTES);
        let filled = self.buffer.whole().get(..self.filled).unwrap_or_default();
        if let Some(target) = larger.whole_mut().get_mut(..filled.len()) {
            target.copy_from_slice(filled);
        }
        self.buffer = larger;
    }

    /// Finishes the table and adds `entry` to the directory, with offset and length set here.
    /// Returns both.
    pub fn finish_table(&mut self, entry: &DirectoryEntry) -> Result<(u64, u64)> {
        let Some((table, offset)) = self.table.take() else {
            return Err(Error::InvalidArgument(format!(
                "table {} is finished but was not begun",
                entry.table
            )));
        };
        let length = self.position() - offset;
        push_entry(&mut self.directory, &DirectoryEntry { table, offset, length, ..entry.clone() });
        self.tables += 1;
        Ok((offset, length))
    }

    /// Writes the directory and everything in memory, and makes the contents durable. The caller
    /// makes the name durable by syncing the directory of the database.
    pub fn finish(mut self) -> Result<u64> {
        if self.table.is_some() {
            return Err(Error::InvalidArgument("a table was begun and not finished".to_owned()));
        }
        self.pad_to_page(0)?;
        let offset = self.position();
        let directory = std::mem::take(&mut self.directory);
        let seed = Seed::of_file(self.db_uid, self.id);
        let checksum = seed.checksum(&directory, offset);
        self.append(&directory)?;
        self.append(&checksum.to_le_bytes())?;
        self.pad_to_page(FOOTER_BYTES)?;
        let at = self.position();
        let footer = Footer { offset, length: directory.len() as u64, tables: self.tables };
        self.append(&footer.encode(at, self.id, self.db_uid, self.features))?;
        self.write_out()?;
        self.file.sync_data(self.class).map_err(|source| Error::io("sync", &self.path, source))?;
        Ok(self.written)
    }

    /// Appends zeros until `before` bytes are left in the page.
    fn pad_to_page(&mut self, before: usize) -> Result<()> {
        let page = PAGE as u64;
        let target = (self.position() + before as u64).next_multiple_of(page) - before as u64;
        let zeros = usize::try_from(target - self.position()).unwrap_or(0);
        self.append(&[0; PAGE][..zeros])
    }

    /// Writes the buffer at its place in the file, and empties it.
    fn write_out(&mut self) -> Result<()> {
        if self.failed {
            return Err(Error::io("write", &self.path, std::io::ErrorKind::BrokenPipe.into()));
        }
        let bytes = self.buffer.whole().get(..self.filled).unwrap_or_default();
        // Set first and cleared at the end, so that no early return leaves a half-written file in
        // use.
        self.failed = true;
        self.file
            .write_at(bytes, self.written, self.class)
            .map_err(|source| Error::io("write", &self.path, source))?;
        if self.file.alignment() == 1 {
            self.write_back()?;
        }
        self.failed = false;
        self.written += self.filled as u64;
        self.filled = 0;
        Ok(())
    }

    /// Starts writeback of a buffer that was just written, and waits until few bytes are left that
    /// the device does not have. A buffered file would otherwise send all its pages at the end, and
    /// writing would run ahead of the device, whose pace the scheduler must see. With direct I/O
    /// there is nothing to do.
    fn write_back(&mut self) -> Result<()> {
        // A hint: if it fails, a later call reports the failure.
        drop(self.file.start_writeback(self.written, self.filled as u64));
        let end = self.written + self.filled as u64;
        let due = end.saturating_sub(WRITE_BEHIND_BYTES);
        if due > self.written_back {
            let length = due - self.written_back;
            self.file
                .finish_writeback(self.written_back, length, self.class)
                .map_err(|source| Error::io("write back", &self.path, source))?;
            self.written_back = due;
        }
        Ok(())
    }
}

/// What a compaction file says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionFile {
    pub id: FileId,
    /// Uid of the database in which the file was made.
    pub db_uid: u64,
    pub tables: Vec<DirectoryEntry>,
    /// The end of the values, if it is a value file. They begin behind the header.
    pub values_end: Option<u64>,
}

impl CompactionFile {
    /// Reads header and directory of the file at `path`, which must be `id`. The database's uid is
    /// read from it, because `repair` may not know it.
    pub fn open(file: &Arc<dyn VfsFile>, path: &Path, id: FileId) -> Result<CompactionFile> {
        let outline = Outline::read(file, path, id, None, IoClass::Manifest)?;
        let corrupt = |kind| Error::corruption(path, outline.directory_at(), kind);
        let malformed = || corrupt(CorruptionKind::Malformed("directory of tables"));
        let (directory, count) = (outline.directory(), outline.footer.tables);
        let tables =
            decode_directory(directory, count, outline.directory_at()).ok_or_else(malformed)?;
        let values_end = outline.holds_values.then_some(outline.directory_at());
        if values_end.is_some() && !tables.is_empty() {
            return Err(corrupt(CorruptionKind::Inconsistent("tables among values")));
        }
        Ok(CompactionFile { id, db_uid: outline.db_uid, tables, values_end })
    }
}
