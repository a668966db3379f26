//! Writes fresh manifests: for this database ([`VersionSet::roll`]), and for a copy of it
//! ([`VersionSet::write_copy`]).
//!
//! A roll:
//!
//! 1. It copies the state. From then on edits are installed in the old manifest as before, and also
//!    recorded in `since_roll`.
//! 2. `write_snapshot` writes the copy to the new manifest and syncs it.
//! 3. With the token, it appends the recorded edits, syncs the manifest and the directory, and
//!    replaces CURRENT.
//! 4. The new manifest takes the edits from then on. The old one is returned for removal.
//!
//! If replacing CURRENT fails, either manifest may be the one that it names. Then neither takes
//! edits, and the next roll tries again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::PoisonError;

use sateen_control::version::VersionEdit;
use sateen_control::{ColumnFamilyId, FileId, SeqNo};
use sateen_store::base::error::Result;
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::sync::lock;
use sateen_store::files::manifest_file_name;
use sateen_store::files::replace::sync_directory;
use sateen_store::manifest::{
    Current, Identity, ManifestWriter, prepare_current, replace_current, write_current,
};
use sateen_store::vfs::Vfs;

use super::VersionSet;
use crate::tree::family_state::{FamilyState, snapshot_edits};

/// The turn to write a new manifest, returned on drop.
struct Rolling<'a>(&'a VersionSet);

impl Drop for Rolling<'_> {
    fn drop(&mut self) {
        *lock(&self.0.rolling) = false;
        self.0.rolled.notify_one();
    }
}

impl VersionSet {
    /// Starts a new manifest with a snapshot of every column family, followed by the edits that
    /// were installed meanwhile. Returns the manifests that are not needed any more.
    pub(crate) fn roll(&self) -> Result<Vec<FileId>> {
        // Two rolls at once would share `since_roll`, and each would miss edits.
        let mut rolling = lock(&self.rolling);
        while *rolling {
            rolling = self.rolled.wait(rolling).unwrap_or_else(PoisonError::into_inner);
        }
        *rolling = true;
        drop(rolling);
        let _turn = Rolling(self);
        self.roll_alone()
    }

    /// Does the roll. The caller has the turn.
    fn roll_alone(&self) -> Result<Vec<FileId>> {
        // 1. Copy the state. Edits that follow are recorded as well as installed.
        let number = self.counters.file();
        let mut state = self.take_token();
        let families = state.families.clone();
        let last_seqno = state.last_seqno;
        let known = state.shared_files.clone();
        state.since_roll = Some(Vec::new());
        self.give_token(state);
        // Shared files are carried over only if a table is still in them.
        let tables = families.values().flat_map(|family| family.version.tables());
        let files: BTreeSet<FileId> = tables.flat_map(|(_, _, table)| table.files()).collect();
        let shared: Vec<FileId> = known.intersection(&files).copied().collect();

        // 2. Write the copy, without the token.
        let path = manifest_file_name(&self.directory, number);
        let written =
            self.write_snapshot(self.vfs.as_ref(), &path, number, &families, last_seqno, shared);
        let mut writer = match written {
            Ok(writer) => writer,
            Err(error) => {
                lock(&self.state).since_roll = None;
                // Nothing names the unfinished file. If it cannot be removed now, the next open
                // removes it as an orphan.
                let _orphan = self.vfs.remove(&path);
                return Err(error);
            }
        };

        // 3. No edit is installed from here on, until CURRENT names the new manifest.
        let mut state = self.take_token();
        let since = state.since_roll.take().unwrap_or_default();
        drop(state);
        // The directory is synced before CURRENT is replaced: the name of the new manifest must be
        // durable first.
        let finished = since
            .iter()
            .try_for_each(|edits| writer.append(edits).map(drop))
            .and_then(|()| writer.sync())
            .and_then(|synced| {
                sync_directory(self.vfs.as_ref(), &self.directory)?;
                Ok(Current { manifest: number.0, identity: self.identity, synced })
            });
        let prepared = finished
            .and_then(|current| prepare_current(self.vfs.as_ref(), &self.directory, &current));
        // From here on CURRENT may have been replaced.
        let undecided = prepared.is_ok();
        let finished = prepared.and_then(|()| replace_current(self.vfs.as_ref(), &self.directory));
        let mut state = lock(&self.state);
        let old = match finished {
            Ok(()) => {
                self.manifest_bytes.store(writer.size_bytes(), Ordering::Relaxed);
                self.snapshot_bytes.store(writer.size_bytes(), Ordering::Relaxed);
                (state.writer, state.failed) = (Some(writer), None);
                state.needed_until_barrier = None;
                let old = std::mem::replace(&mut state.manifest, number);
                let mut unneeded = std::mem::take(&mut state.strays);
                unneeded.extend((old != FileId(0)).then_some(old));
                Ok(unneeded)
            }
            Err(error) => {
                if undecided {
                    // CURRENT may name the new manifest or the old one. An edit in one of them
                    // would be missing in the other, so neither takes edits.
                    (state.writer, state.failed) = (None, Some(error.clone()));
                    state.strays.push(number);
                } else {
                    let _orphan = self.vfs.remove(&path);
                }
                Err(error)
            }
        };
        self.give_token(state);
        old
    }

    /// Writes a manifest of `families` and a CURRENT with `identity` into another directory.
    pub(crate) fn write_copy(
        &self,
        vfs: &dyn Vfs,
        directory: &Path,
        identity: Identity,
        families: &BTreeMap<ColumnFamilyId, FamilyState>,
        shared: &[FileId],
    ) -> Result<()> {
        let number = self.counters.file();
        let path = manifest_file_name(directory, number);
        let last_seqno = lock(&self.state).last_seqno;
        let mut writer =
            self.write_snapshot(vfs, &path, number, families, last_seqno, shared.to_vec())?;
        let synced = writer.sync()?;
        sync_directory(vfs, directory)?;
        let current = Current { manifest: number.0, identity, synced };
        write_current(vfs, directory, &current)
    }

    /// Writes a manifest that holds only a snapshot of `families`, and syncs it.
    fn write_snapshot(
        &self,
        vfs: &dyn Vfs,
        path: &Path,
        number: FileId,
        families: &BTreeMap<ColumnFamilyId, FamilyState>,
        last_seqno: SeqNo,
        shared: Vec<FileId>,
    ) -> Result<ManifestWriter> {
        let mut writer = ManifestWriter::create(vfs, path, number.0, self.identity.uid)?;
        for (id, family) in families {
            for edit in snapshot_edits(*id, family) {
                writer.append(std::slice::from_ref(&edit))?;
            }
        }
        let mut numbers = VersionEdit {
            column_family: families.keys().next().copied().unwrap_or_default(),
            last_seqno: Some(last_seqno),
            shared_files: shared,
            ..VersionEdit::default()
        };
        self.counters.stamp(&mut numbers);
        writer.append(std::slice::from_ref(&numbers))?;
        writer.end_snapshot()?;
        writer.sync()?;
        Ok(writer)
    }
}
