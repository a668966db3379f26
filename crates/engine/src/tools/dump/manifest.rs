//! What a manifest says.

use std::ops::ControlFlow;
use std::path::Path;

use sateen_control::version::VersionEdit;
use sateen_store::base::error::Result;
use sateen_store::manifest::ManifestReader;
use sateen_store::vfs::Vfs;
use sateen_store::wal::frame::FileKind;

use super::{FileEnd, file_header, posix, show};

/// A piece of a manifest.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ManifestItem<'a> {
    /// First of all.
    Header {
        /// The number of the manifest.
        number: u64,
        /// What tells its database from all others.
        db_uid: u64,
        /// The version of its format.
        format_version: u32,
    },
    /// A record: one atomic change. Its edits follow.
    Record {
        /// Where in the file it ends.
        end: u64,
        /// True if it is part of the snapshot that opens the file.
        snapshot: bool,
        /// How many edits follow.
        edits: usize,
    },
    /// An edit of the record before it.
    Edit(&'a VersionEdit),
    /// Last of all.
    End(FileEnd),
}

/// Shows what the manifest at `path` says to `each`, until that breaks.
///
/// # Errors
/// `Corruption` or `IncompatibleDirectory` of the file, after what stands before it was shown;
/// `Io`.
pub fn manifest(
    path: impl AsRef<Path>,
    each: &mut dyn FnMut(ManifestItem<'_>) -> ControlFlow<()>,
) -> Result<()> {
    manifest_with(&posix(), path.as_ref(), each)
}

/// [`manifest`] in a file system of the caller's.
///
/// # Errors
/// As [`manifest`].
pub fn manifest_with(
    vfs: &dyn Vfs,
    path: &Path,
    each: &mut dyn FnMut(ManifestItem<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let header = file_header(vfs, path, FileKind::Manifest)?;
    let (number, db_uid, format_version) = (header.number, header.db_uid, header.version);
    show!(each, ManifestItem::Header { number, db_uid, format_version });
    let mut reader = ManifestReader::open(vfs, path, number, Some(db_uid), 0)?;
    loop {
        let next = match reader.next() {
            // It may have been read while it was written.
            Err(error) if error.is_corruption() => {
                reader.grow()?;
                reader.next()
            }
            next => next,
        };
        let Some(edits) = next? else { break };
        let (end, snapshot) = (reader.position(), reader.in_snapshot());
        show!(each, ManifestItem::Record { end, snapshot, edits: edits.len() });
        for edit in &edits {
            show!(each, ManifestItem::Edit(edit));
        }
    }
    show!(each, ManifestItem::End(FileEnd::of(reader.tail(), reader.position())));
    Ok(())
}
