//! Manifest files: the records of [`crate::wal::frame`] under a magic of their own.
//!
//! 1. [`ManifestWriter::create`] writes the header and the record that begins the snapshot.
//! 2. [`ManifestWriter::append`] writes the edits of one atomic change as one record.
//! 3. [`ManifestWriter::end_snapshot`] completes the snapshot. Later records are deltas.
//! 4. [`ManifestWriter::sync`] makes everything durable, then writes a mark.
//! 5. [`ManifestReader::next`] returns the edits of one record after the other, and checks the
//!    order of the records.
//!
//! What must stay true:
//!
//! - A manifest without a complete snapshot is invalid, because a new manifest is written in slices
//!   and may end anywhere.
//! - After a failed write or sync the file is dead (format rule F4), and the next edit goes to a
//!   new manifest.
//! - The mark after a sync is not synced itself. It tells damage of the last edit from an edit that
//!   never became durable.

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

/// The part of a manifest that is being written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing yet.
    New,
    /// The snapshot has begun.
    Snapshot,
    /// The snapshot is complete. Deltas follow.
    Deltas,
}

/// Writes a manifest.
#[derive(Debug)]
pub struct ManifestWriter {
    records: RecordWriter,
    phase: Phase,
    /// Buffer for the payload of a record.
    payload: Vec<u8>,
    /// Whether something was appended since the last sync.
    has_unsynced: bool,
}

impl ManifestWriter {
    /// Creates manifest `number` and begins its snapshot. It becomes current only after
    /// [`ManifestWriter::end_snapshot`], a sync, a sync of the directory and
    /// [`super::write_current`].
    pub fn create(vfs: &dyn Vfs, path: &Path, number: u64, db_uid: u64) -> Result<ManifestWriter> {
        let header = FileHeader { version: FORMAT_VERSION, db_uid, number };
        let (options, kind) = (OpenOptions::CREATE, FileKind::Manifest);
        let records = RecordWriter::open(vfs, path, options, kind, header, 0)?;
        let (phase, payload) = (Phase::New, Vec::new());
        let mut writer = ManifestWriter { records, phase, payload, has_unsynced: true };
        writer.write(RecordKind::SnapshotBegin)?;
        writer.phase = Phase::Snapshot;
        Ok(writer)
    }

    /// Writes `edits` as one record, all of them or none. They are not durable before a sync.
    /// Returns the file's length.
    pub fn append(&mut self, edits: &[VersionEdit]) -> Result<u64> {
        assert!(self.phase != Phase::New, "a manifest starts with a snapshot");
        self.payload.clear();
        edits.iter().for_each(|edit| encode_edit(edit, &mut self.payload));
        self.has_unsynced = true;
        self.write(RecordKind::Data)
    }

    /// Completes the snapshot. Records that are appended later are deltas.
    pub fn end_snapshot(&mut self) -> Result<u64> {
        assert!(self.phase == Phase::Snapshot, "a manifest has one snapshot");
        self.payload.clear();
        self.has_unsynced = true;
        let end = self.write(RecordKind::SnapshotEnd)?;
        self.phase = Phase::Deltas;
        Ok(end)
    }

    /// Makes everything that was appended durable. Returns the durable length.
    pub fn sync(&mut self) -> Result<u64> {
        let before = self.records.sync_handle().synced_offset();
        if !self.has_unsynced {
            self.records.sync_handle().check_alive()?;
            return Ok(before);
        }
        let synced = self.records.sync_handle().sync()?;
        self.has_unsynced = false;
        if synced > before {
            // The sync has succeeded. If the mark fails, the file is dead, and the next call
            // reports it.
            self.payload.clear();
            let _shown_by_the_next_call = self.write(RecordKind::Mark);
        }
        Ok(synced)
    }

    /// Returns true if something was appended since the last sync.
    pub fn has_unsynced(&self) -> bool {
        self.has_unsynced
    }

    /// Returns false once a write or sync has failed.
    pub fn is_alive(&self) -> bool {
        self.records.sync_handle().check_alive().is_ok()
    }

    /// Returns the bytes written.
    pub fn size_bytes(&self) -> u64 {
        self.records.end()
    }

    /// Writes one record with the current payload.
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
    /// Opens manifest `number` of the database `db_uid` (`None`: any database). `synced_floor` is a
    /// length up to which the caller knows that it was durable.
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

    /// Opens the manifest of `directory` that `current` names. Also returns its path.
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

    /// Returns the edits of the next record; `None` at the end. The snapshot's edits come first,
    /// then the deltas; both are applied alike. Fails if the file ends before its snapshot does.
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

    /// Continues behind what was read, up to the current end of the manifest.
    pub fn grow(&mut self) -> Result<()> {
        self.records.grow()
    }

    /// Returns true if the last record that was read is part of the snapshot.
    pub fn in_snapshot(&self) -> bool {
        self.phase == Phase::Snapshot
    }

    /// Returns true once the snapshot was read completely.
    pub fn has_snapshot(&self) -> bool {
        self.phase == Phase::Deltas
    }

    /// Returns how the file ended, once [`ManifestReader::next`] has returned `None`.
    pub fn tail(&self) -> Option<Tail> {
        self.records.tail()
    }

    /// Returns the uid of the file's database; `None` if the file has no header.
    pub fn db_uid(&self) -> Option<u64> {
        self.records.header().map(|header| header.db_uid)
    }

    /// Returns the offset behind the last record that was read.
    pub fn position(&self) -> u64 {
        self.records.position()
    }

    /// Decodes the edits of a record. An error names the file and the record's offset.
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
