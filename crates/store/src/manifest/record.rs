//! Manifest files: the records of [`crate::wal::frame`] under a magic of their own.
//!
//! What must stay true:
//! - A manifest is a snapshot (begin, edits, end), then deltas. Without the end it is worth
//!   nothing: a roll is written in slices and may be cut anywhere.
//! - After a failed write or sync the file is dead (format rule F4): the next edit goes to a new
//!   one.
//! - After a sync a mark follows that says so, not synced itself. It tells damage of the last edit
//!   from an edit that never became durable.

use std::path::{Path, PathBuf};

use sateen_control::version::VersionEdit;
use sateen_control::{FileId, SeqNo};

use super::Current;
use super::codec::{EditError, decode_edits, encode_edit};
use crate::base::error::{CorruptionKind, Error, Result};
use crate::files::manifest_file_name;
use crate::vfs::{OpenOptions, Vfs};
use crate::wal::frame::{FORMAT_VERSION, FileHeader, FileKind, RecordKind};
use crate::wal::reader::{CHUNK_BYTES, Record, RecordReader, Tail};
use crate::wal::writer::RecordWriter;

/// Where a manifest is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing yet.
    New,
    /// The snapshot has begun.
    Snapshot,
    /// The snapshot is complete; deltas follow.
    Deltas,
}

/// Writes a manifest.
#[derive(Debug)]
pub struct ManifestWriter {
    records: RecordWriter,
    phase: Phase,
    payload: Vec<u8>,
    /// Something was appended, and no sync followed.
    has_unsynced: bool,
}

impl ManifestWriter {
    /// Creates manifest `number` and begins its snapshot. It does not count before
    /// [`ManifestWriter::end_snapshot`], a sync, a sync of the directory and
    /// [`super::write_current`].
    pub fn create(vfs: &dyn Vfs, path: &Path, number: u64, db_uid: u64) -> Result<ManifestWriter> {
        let header = FileHeader { version: FORMAT_VERSION, db_uid, number };
        let (options, kind) = (OpenOptions::CREATE, FileKind::Manifest);
        let records = RecordWriter::open(vfs, path, options, kind, header, 0)?;
        let (phase, payload) = (Phase::New, Vec::new());
        let mut writer = ManifestWriter { records, phase, payload, has_unsynced: false };
        writer.write(RecordKind::SnapshotBegin)?;
        writer.phase = Phase::Snapshot;
        Ok(writer)
    }

    /// Writes `edits` as one record: all of them or none. Not durable before a sync. Returns the
    /// file's length.
    pub fn append(&mut self, edits: &[VersionEdit]) -> Result<u64> {
        assert!(self.phase != Phase::New, "a manifest starts with a snapshot");
        self.payload.clear();
        edits.iter().for_each(|edit| encode_edit(edit, &mut self.payload));
        self.has_unsynced = true;
        self.write(RecordKind::Data)
    }

    /// Completes the snapshot: what is appended from here on are deltas.
    pub fn end_snapshot(&mut self) -> Result<u64> {
        assert!(self.phase == Phase::Snapshot, "a manifest has one snapshot");
        self.payload.clear();
        let end = self.write(RecordKind::SnapshotEnd)?;
        self.phase = Phase::Deltas;
        Ok(end)
    }

    /// Makes everything that was appended durable, and returns the length that is.
    pub fn sync(&mut self) -> Result<u64> {
        let before = self.records.sync_handle().synced_offset();
        let synced = self.records.sync_handle().sync()?;
        self.has_unsynced = false;
        if synced > before {
            // What was asked for is done; a failure here ends the file's life and shows next time.
            self.payload.clear();
            let _shown_by_the_next_call = self.write(RecordKind::Mark);
        }
        Ok(synced)
    }

    /// True if something was appended since the last sync.
    pub fn has_unsynced(&self) -> bool {
        self.has_unsynced
    }

    /// False once a write or sync has failed.
    pub fn is_alive(&self) -> bool {
        self.records.sync_handle().check_alive().is_ok()
    }

    /// Bytes written.
    pub fn size_bytes(&self) -> u64 {
        self.records.end()
    }

    fn write(&mut self, kind: RecordKind) -> Result<u64> {
        self.records.sync_handle().check_alive()?;
        self.records.stage(kind, SeqNo(0), 0, [self.payload.as_slice()])?;
        self.records.write_staged()
    }
}

/// Reads a manifest.
#[derive(Debug)]
pub struct ManifestReader {
    records: RecordReader,
    phase: Phase,
}

impl ManifestReader {
    /// Opens manifest `number` of the database `db_uid` (`None`: whichever the file says). The
    /// caller knows that it was durable up to `synced_floor`.
    pub fn open(
        vfs: &dyn Vfs,
        path: &Path,
        number: u64,
        db_uid: Option<u64>,
        synced_floor: u64,
    ) -> Result<ManifestReader> {
        if !vfs.exists(path).map_err(|e| Error::io("look for", path, e))? {
            return Err(Error::corruption(path, 0, CorruptionKind::MissingFile));
        }
        let records = RecordReader::open(
            vfs,
            path,
            FileKind::Manifest,
            number,
            db_uid,
            synced_floor,
            CHUNK_BYTES,
        )?;
        Ok(ManifestReader { records, phase: Phase::New })
    }

    /// Opens the manifest of `directory` that `current` names; where it is, too.
    pub fn of_current(
        vfs: &dyn Vfs,
        directory: &Path,
        current: &Current,
    ) -> Result<(PathBuf, ManifestReader)> {
        let Current { manifest, identity, synced } = *current;
        let path = manifest_file_name(directory, FileId(manifest));
        let reader = ManifestReader::open(vfs, &path, manifest, Some(identity.uid), synced)?;
        Ok((path, reader))
    }

    /// The edits of the next record; `None` at the end. The snapshot's come first, then the deltas;
    /// they are applied alike. An error if the file ends before its snapshot does.
    pub fn next(&mut self) -> Result<Option<Vec<VersionEdit>>> {
        while let Some(record) = self.records.next()? {
            match (record.header.kind, self.phase) {
                (RecordKind::SnapshotBegin, Phase::New) => self.phase = Phase::Snapshot,
                (RecordKind::SnapshotEnd, Phase::Snapshot) => self.phase = Phase::Deltas,
                (RecordKind::Mark, _) => {}
                (RecordKind::Data, Phase::Snapshot | Phase::Deltas) => {
                    return self.decode(record).map(Some);
                }
                _ => {
                    let kind = CorruptionKind::Malformed("a record out of place");
                    return Err(self.records.corruption(record.offset, kind));
                }
            }
        }
        if self.phase != Phase::Deltas {
            let kind = CorruptionKind::Malformed("the snapshot that opens it is not complete");
            return Err(self.records.corruption(self.records.position(), kind));
        }
        Ok(None)
    }

    /// Goes on behind what was read, to the end of the manifest as it is now.
    pub fn grow(&mut self) -> Result<()> {
        self.records.grow()
    }

    /// True if the record that was read last is part of the snapshot.
    pub fn in_snapshot(&self) -> bool {
        self.phase == Phase::Snapshot
    }

    /// True once the snapshot was read to its end.
    pub fn has_snapshot(&self) -> bool {
        self.phase == Phase::Deltas
    }

    /// How the file ended, once [`ManifestReader::next`] returned `None`.
    pub fn tail(&self) -> Option<Tail> {
        self.records.tail()
    }

    /// The uid of the database that the file is of; `None` if it has no header.
    pub fn db_uid(&self) -> Option<u64> {
        self.records.header().map(|header| header.db_uid)
    }

    /// The offset behind the last record that was read.
    pub fn position(&self) -> u64 {
        self.records.position()
    }

    fn decode(&self, record: Record) -> Result<Vec<VersionEdit>> {
        decode_edits(self.records.payload()).map_err(|error| match error {
            EditError::Malformed(what) => {
                self.records.corruption(record.offset, CorruptionKind::Malformed(what))
            }
            EditError::NewerField(field) => {
                self.records.newer(format!("the required field {field} of a version edit"))
            }
        })
    }
}
