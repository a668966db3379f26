//! Shows the contents of WALs, manifests and table files, piece by piece, to people and tools.
//!
//! What must stay true:
//!
//! - Nothing is changed, locked or repaired.
//! - A file is shown without its database, whatever its name is.
//! - Memory is limited by a block or record.
//! - Damage ends a dump with an error that names file and offset, after everything before it was
//!   shown.

use std::path::Path;
use std::sync::Arc;

use sateen_control::IoClass;
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::vfs::{OpenOptions, PosixVfs, Vfs, VfsFile};
use sateen_store::wal::frame::{FILE_HEADER_BYTES, FileHeader, FileKind};
use sateen_store::wal::reader::Tail;

mod log;
mod manifest;
mod table;

pub use log::{LogEntry, LogHeader, LogItem, LogLink, LogRecord, wal, wal_with};
pub use manifest::{ManifestItem, manifest, manifest_with};
pub use sateen_control::version::{
    AddedTable, Placement, RangeTombstone, RemovedTable, TableMeta, ValueRef, ValueRefs,
    VersionEdit,
};
pub use table::{TableEntry, TableFile, TableItem, TableLayout, TableSummary, table, table_with};

/// How a WAL or manifest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEnd {
    /// The offset behind the last record.
    pub offset: u64,
    /// Bytes behind the last record that are no record, and that nothing proves to have been
    /// durable: the torn last write before a crash. 0 after an orderly end.
    pub torn_bytes: u64,
}

impl FileEnd {
    fn of(tail: Option<Tail>, position: u64) -> FileEnd {
        match tail {
            Some(Tail::Torn { offset, bytes }) => FileEnd { offset, torn_bytes: bytes },
            Some(Tail::Clean) | None => FileEnd { offset: position, torn_bytes: 0 },
        }
    }
}

fn posix() -> PosixVfs {
    PosixVfs::new()
}

/// Shows `$item`, and returns from the caller if `$each` breaks.
macro_rules! show {
    ($each:expr, $item:expr) => {
        if $each($item).is_break() {
            return Ok(());
        }
    };
}
use show;

fn open(vfs: &dyn Vfs, path: &Path) -> Result<Arc<dyn VfsFile>> {
    vfs.open(path, OpenOptions::READ).map_err(|error| Error::io("open", path, error))
}

/// Reads the header of a WAL or manifest. The number comes from the header, because a copy may have
/// lost its name.
fn file_header(vfs: &dyn Vfs, path: &Path, kind: FileKind) -> Result<FileHeader> {
    let file = open(vfs, path)?;
    let mut block = [0; FILE_HEADER_BYTES];
    let got = file.read_all_at(&mut block, 0, IoClass::Client);
    let got = got.map_err(|error| Error::io("read", path, error))?;
    let block = block.get(..got).unwrap_or_default();
    let wrong = match kind {
        _ if got < FILE_HEADER_BYTES => CorruptionKind::Truncated,
        FileKind::Wal if !block.starts_with(&kind.magic()) => {
            CorruptionKind::Malformed("not a WAL of this engine")
        }
        FileKind::Manifest if !block.starts_with(&kind.magic()) => {
            CorruptionKind::Malformed("not a manifest of this engine")
        }
        _ => CorruptionKind::Checksum,
    };
    FileHeader::decode(kind, block).ok_or_else(|| Error::corruption(path, 0, wrong))
}

#[cfg(test)]
mod tests;
