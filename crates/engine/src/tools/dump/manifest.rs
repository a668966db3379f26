//! Shows the records and edits of a manifest.

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
    /// The header, which comes first.
    Header {
        /// The number of the manifest.
        number: u64,
        /// The unique id of its database.
        db_uid: u64,
        /// The version of its format.
        format_version: u32,
    },
    /// A record, which is one atomic change. Its edits follow.
    Record {
        /// The offset of its end in the file.
        end: u64,
        /// Whether it is part of the snapshot that opens the file.
        snapshot: bool,
        /// The number of its edits.
        edits: usize,
    },
    /// An edit of the record that was shown last.
    Edit(&'a VersionEdit),
    /// The end, which comes last.
    End(FileEnd),
}

/// Calls `each` with every piece of the manifest at `path`, until it breaks.
///
/// # Errors
/// `Corruption` or `IncompatibleDirectory` of the file, after all pieces before it were shown;
/// `Io`.
pub fn manifest(
    path: impl AsRef<Path>,
    each: &mut dyn FnMut(ManifestItem<'_>) -> ControlFlow<()>,
) -> Result<()> {
    manifest_with(&posix(), path.as_ref(), each)
}

/// [`manifest`] in the caller's file system.
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
            // The record may have been read while it was written.
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
