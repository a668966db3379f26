//! What surrounds the tables of a compaction file, or the values of a value file: the header at its
//! begin, the directory and the footer at its end. `docs/format/compaction-file.md` describes the
//! bytes.
//!
//! [`Outline::read`] verifies the header (`read_header`), then the footer ([`Footer::decode`]),
//! then the directory's checksum. [`check_header`] and [`check_values_header`] verify only the
//! header.
//!
//! What must stay true: nothing is decoded before its checksum has verified (format rule F1).

use std::path::Path;
use std::sync::Arc;

use sateen_control::{FileId, IoClass};

use super::PAGE_BYTES;
use crate::base::decoder::Decoder;
use crate::base::error::{CorruptionKind, Error, Result};
use crate::files::seal::Seed;
use crate::vfs::{AlignedBuffer, VfsFile};

/// Length of the header. The first table starts behind it.
pub const HEADER_BYTES: u64 = PAGE as u64;

const PAGE: usize = PAGE_BYTES;
const HEADER_MAGIC: &[u8; 8] = b"SATfile\n";
const END_MAGIC: &[u8; 8] = b"SATend\n\0";
const FORMAT_VERSION: u32 = 1;
/// Feature that a reader must know: the file has values of tables, and no tables.
pub(super) const HOLDS_VALUES: u32 = 1;
const KNOWN_FEATURES: u32 = HOLDS_VALUES;
/// Length of the footer, which is the last bytes of the file.
pub(super) const FOOTER_BYTES: usize = 64;

/// The verified bytes of a compaction file that are not tables.
#[derive(Debug)]
pub struct Outline {
    /// Uid of the database in which the file was made.
    pub db_uid: u64,
    /// A number that was drawn when the file was made. Database, file and stamp tell its tables
    /// from all others. 0 in files of versions without stamps.
    pub stamp: u64,
    /// Whether it is a value file: it has values of tables, and no tables.
    pub holds_values: bool,
    pub(super) footer: Footer,
    /// The header page.
    header: Vec<u8>,
    /// Everything from the directory to the end of the file.
    tail: Vec<u8>,
}

impl Outline {
    /// Reads header, footer and directory of the file at `path`, which must be `id`, and a file of
    /// the database `db_uid` if that is known.
    pub fn read(
        file: &Arc<dyn VfsFile>,
        path: &Path,
        id: FileId,
        db_uid: Option<u64>,
        class: IoClass,
    ) -> Result<Outline> {
        // 1. The header says whose file it is. Its checksum is checked first.
        let mut buffer = AlignedBuffer::with_capacity(PAGE);
        let Header { db_uid, stamp, features } =
            read_header(file, path, (id, db_uid), &mut buffer, class)?;
        let holds_values = features & HOLDS_VALUES != 0;
        let header = buffer.whole().get(..PAGE).unwrap_or_default().to_vec();
        let length = file.len().map_err(|source| Error::io("stat", path, source))?;
        let corrupt = |offset, kind| Error::corruption(path, offset, kind);
        let seed = Seed::of_file(db_uid, id);
        // 2. The footer is at the end of the last page. A file that was not finished has none.
        let page = length
            .checked_sub(PAGE as u64)
            .filter(|&page| page >= HEADER_BYTES && page.is_multiple_of(PAGE as u64))
            .ok_or(corrupt(length, CorruptionKind::Truncated))?;
        let last = buffer.whole_mut().get_mut(..PAGE).unwrap_or_default();
        file.read_exact_at(last, page, class).map_err(|source| Error::io("read", path, source))?;
        let (_, footer) = last.split_last_chunk::<FOOTER_BYTES>().unwrap_or((&[], &[0; 64]));
        let at = length - FOOTER_BYTES as u64;
        let footer = Footer::decode(footer, seed, at, path)?;

        // 3. The directory must lie between the header and the footer.
        let in_file = footer.offset.checked_add(footer.length).is_some_and(|end| end + 8 <= at);
        if !in_file || !footer.offset.is_multiple_of(PAGE as u64) || footer.offset < HEADER_BYTES {
            return Err(corrupt(at, CorruptionKind::Malformed("directory outside of its file")));
        }
        let stored = usize::try_from(length - footer.offset)
            .map_err(|_| corrupt(at, CorruptionKind::Malformed("directory too large")))?;
        buffer.reserve(stored);
        let bytes = buffer.whole_mut().get_mut(..stored).unwrap_or_default();
        file.read_exact_at(bytes, footer.offset, class)
            .map_err(|source| Error::io("read", path, source))?;
        let mut decoder = Decoder(bytes);
        let directory = decoder.take(usize::try_from(footer.length).unwrap_or(usize::MAX));
        let (directory, checksum) = directory.zip(decoder.u64()).unwrap_or_default();
        if !seed.verify(directory, footer.offset, checksum) {
            return Err(corrupt(footer.offset, CorruptionKind::Checksum));
        }
        let tail = bytes.to_vec();
        Ok(Outline { db_uid, stamp, holds_values, footer, header, tail })
    }

    /// Returns the header page.
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Returns the bytes from the directory to the end of the file.
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// Returns the offset of the directory in the file, where the tail begins.
    pub fn directory_at(&self) -> u64 {
        self.footer.offset
    }

    /// Returns the directory without its checksum.
    pub(super) fn directory(&self) -> &[u8] {
        let length = usize::try_from(self.footer.length).unwrap_or(usize::MAX);
        self.tail.get(..length).unwrap_or_default()
    }
}

/// Checks that the file at `path` is the compaction file `id` of the database `db_uid`, and has
/// tables.
pub fn check_header(
    file: &Arc<dyn VfsFile>,
    path: &Path,
    id: FileId,
    db_uid: u64,
    class: IoClass,
) -> Result<()> {
    let mut buffer = AlignedBuffer::with_capacity(PAGE);
    let header = read_header(file, path, (id, Some(db_uid)), &mut buffer, class)?;
    if header.features & HOLDS_VALUES == 0 {
        return Ok(());
    }
    Err(Error::corruption(path, 0, CorruptionKind::Inconsistent("it has values only")))
}

/// Checks that the file at `path` is the value file `id` of the database `db_uid`.
pub fn check_values_header(
    file: &Arc<dyn VfsFile>,
    path: &Path,
    id: FileId,
    db_uid: u64,
    class: IoClass,
) -> Result<()> {
    let mut buffer = AlignedBuffer::with_capacity(PAGE);
    let header = read_header(file, path, (id, Some(db_uid)), &mut buffer, class)?;
    if header.features & HOLDS_VALUES != 0 {
        return Ok(());
    }
    Err(Error::corruption(path, 0, CorruptionKind::Inconsistent("it has no values")))
}

/// What a verified header says.
struct Header {
    db_uid: u64,
    stamp: u64,
    features: u32,
}

/// Reads the header into the first page of `buffer`.
fn read_header(
    file: &Arc<dyn VfsFile>,
    path: &Path,
    (id, db_uid): (FileId, Option<u64>),
    buffer: &mut AlignedBuffer,
    class: IoClass,
) -> Result<Header> {
    let page = buffer.whole_mut().get_mut(..PAGE).unwrap_or_default();
    let got = file.read_at(page, 0, class).map_err(|source| Error::io("read", path, source))?;
    let page = page.get(..got).unwrap_or_default();
    let incompatible = |reason| Err(Error::IncompatibleDirectory { path: path.into(), reason });
    let truncated = || Error::corruption(path, got as u64, CorruptionKind::Truncated);
    let mut decoder = Decoder(page);
    if decoder.take(8).ok_or_else(truncated)? != HEADER_MAGIC {
        return Err(Error::corruption(
            path,
            0,
            CorruptionKind::Malformed("not a compaction file of this engine"),
        ));
    }
    let version = decoder.u32().ok_or_else(truncated)?;
    let features = decoder.u32().ok_or_else(truncated)?;
    let uid = decoder.u64().ok_or_else(truncated)?;
    let stored_id = decoder.u64().ok_or_else(truncated)?;
    let stamp = decoder.u64().ok_or_else(truncated)?;
    let (body, checksum) = page
        .first_chunk::<PAGE>()
        .and_then(|page| page.split_last_chunk())
        .ok_or_else(truncated)?;
    // The seed is made of the header's own numbers. A file under a wrong name is then reported as
    // such, and not as damaged.
    let seed = Seed::of_file(uid, FileId(stored_id));
    if !seed.verify(body, 0, u64::from_le_bytes(*checksum)) {
        return Err(Error::corruption(path, 0, CorruptionKind::Checksum));
    }
    if version > FORMAT_VERSION || features & !KNOWN_FEATURES != 0 {
        return incompatible(format!(
            "written in a newer format: compaction file of format {version} with features \
             {features:#x}; this engine reads format {FORMAT_VERSION} with features \
             {KNOWN_FEATURES:#x}"
        ));
    }
    if stored_id != id.0 {
        return incompatible(format!("this is file {}, not file {}", FileId(stored_id), id));
    }
    if db_uid.is_some_and(|db_uid| db_uid != uid) {
        return incompatible(format!("file of another database ({uid:016x})"));
    }
    Ok(Header { db_uid: uid, stamp, features })
}

/// Examines the first page of a file, or its beginning. Returns `None` if no compaction file begins
/// this way. Otherwise returns the database's uid, if the checksum is right.
pub fn uid_of_page(page: &[u8]) -> Option<Option<u64>> {
    if !page.starts_with(HEADER_MAGIC) && !HEADER_MAGIC.starts_with(page) {
        return None;
    }
    let verified = || {
        let mut decoder = Decoder(page.get(16..)?);
        let (uid, id) = (decoder.u64()?, decoder.u64()?);
        let (body, checksum) = page.first_chunk::<PAGE>()?.split_last_chunk()?;
        let seed = Seed::of_file(uid, FileId(id));
        seed.verify(body, 0, u64::from_le_bytes(*checksum)).then_some(uid)
    };
    Some(verified())
}

/// Returns the header page: magic, version, features, uid, file id, stamp, zeros, checksum.
pub(super) fn header(id: FileId, db_uid: u64, features: u32, stamp: u64) -> Vec<u8> {
    let mut page = Vec::with_capacity(PAGE);
    page.extend_from_slice(HEADER_MAGIC);
    page.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    page.extend_from_slice(&features.to_le_bytes());
    page.extend_from_slice(&db_uid.to_le_bytes());
    page.extend_from_slice(&id.0.to_le_bytes());
    page.extend_from_slice(&stamp.to_le_bytes());
    page.resize(PAGE - 8, 0);
    let checksum = Seed::of_file(db_uid, id).checksum(&page, 0);
    page.extend_from_slice(&checksum.to_le_bytes());
    page
}

/// The last bytes of the file: where the directory is.
#[derive(Debug)]
pub(super) struct Footer {
    /// Offset of the directory.
    pub(super) offset: u64,
    /// Length of the directory without its checksum.
    pub(super) length: u64,
    /// Number of tables in the directory.
    pub(super) tables: u32,
}

impl Footer {
    /// Encodes the footer, whose last bytes are the checksum and the magic.
    pub(super) fn encode(&self, at: u64, id: FileId, db_uid: u64, features: u32) -> Vec<u8> {
        let seed = Seed::of_file(db_uid, id);
        let mut bytes = Vec::with_capacity(FOOTER_BYTES);
        bytes.extend_from_slice(&self.offset.to_le_bytes());
        bytes.extend_from_slice(&self.length.to_le_bytes());
        bytes.extend_from_slice(&self.tables.to_le_bytes());
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&features.to_le_bytes());
        bytes.extend_from_slice(&0u32.to_le_bytes());
        bytes.extend_from_slice(&db_uid.to_le_bytes());
        bytes.extend_from_slice(&id.0.to_le_bytes());
        let checksum = seed.checksum(&bytes, at);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(END_MAGIC);
        bytes
    }

    /// Verifies and decodes the footer, which stands at offset `at` of the file.
    fn decode(bytes: &[u8; FOOTER_BYTES], seed: Seed, at: u64, path: &Path) -> Result<Footer> {
        let corrupt = |kind| Error::corruption(path, at, kind);
        let truncated = || corrupt(CorruptionKind::Truncated);
        let (rest, magic) = bytes.split_last_chunk().ok_or_else(truncated)?;
        let (body, checksum) = rest.split_last_chunk().ok_or_else(truncated)?;
        if magic != END_MAGIC {
            return Err(corrupt(CorruptionKind::Malformed("not the end of a compaction file")));
        }
        if !seed.verify(body, at, u64::from_le_bytes(*checksum)) {
            return Err(corrupt(CorruptionKind::Checksum));
        }
        let mut decoder = Decoder(body);
        let footer = Footer {
            offset: decoder.u64().ok_or_else(truncated)?,
            length: decoder.u64().ok_or_else(truncated)?,
            tables: decoder.u32().ok_or_else(truncated)?,
        };
        Ok(footer)
    }
}
