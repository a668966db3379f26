//! The value files of a version: how many of their bytes are live. Nothing is read for that,
//! because each table says which files it refers to, and with how many bytes.
//!
//! 1. [`ValueFiles::add`] and [`ValueFiles::remove`] account for a table that enters or leaves the
//!    version.
//! 2. [`ValueFiles::to_collect`] returns the files out of which compactions copy values, and
//!    [`ValueFiles::is_due`] whether they are worth a compaction of their own.
//!
//! What must stay true: the numbers are the sums over the tables of the version. A file without a
//! table is not in the version.

use std::collections::{BTreeMap, BTreeSet};

use super::TableMeta;
use crate::arithmetic::part_of;
use crate::types::FileId;

/// The live part of a value file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueFile {
    /// Bytes of all values that were written to it.
    pub bytes: u64,
    /// Bytes of the values that tables refer to.
    pub live_bytes: u64,
    /// Number of tables that refer to it.
    pub tables: u64,
}

impl ValueFile {
    /// Returns the bytes that no table refers to.
    #[must_use]
    pub fn garbage_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.live_bytes)
    }
}

/// The value files of a version, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueFiles(BTreeMap<FileId, ValueFile>);

impl ValueFiles {
    /// Returns true if there is none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over the files, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &ValueFile)> {
        self.0.iter().map(|(id, file)| (*id, file))
    }

    /// Returns a file.
    #[must_use]
    pub fn get(&self, file: FileId) -> Option<&ValueFile> {
        self.0.get(&file)
    }

    /// Returns the bytes of all values, and those that tables refer to.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        self.0.values().fold((0, 0), |(all, live), file| {
            (all + file.bytes, live + file.live_bytes.min(file.bytes))
        })
    }

    /// Returns the files that have garbage among the oldest `part` of all files.
    #[must_use]
    pub fn to_collect(&self, part: f64) -> BTreeSet<FileId> {
        let garbage = self.oldest(part).filter(|(_, file)| file.garbage_bytes() > 0);
        garbage.map(|(id, _)| id).collect()
    }

    /// Returns true if at least `threshold` of the bytes of the oldest `part` of all files is
    /// garbage.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rounding error of a threshold")]
    pub fn is_due(&self, part: f64, threshold: f64) -> bool {
        let (mut bytes, mut garbage) = (0, 0);
        for (_, file) in self.oldest(part) {
            bytes += file.bytes;
            garbage += file.garbage_bytes();
        }
        garbage > 0 && garbage as f64 >= bytes as f64 * threshold
    }

    fn oldest(&self, part: f64) -> impl Iterator<Item = (FileId, &ValueFile)> {
        let files = part_of(self.0.len() as u64, part);
        self.iter().take(usize::try_from(files).unwrap_or(usize::MAX))
    }

    /// Accounts for a table that enters the version.
    pub(super) fn add(&mut self, table: &TableMeta) {
        for one in &table.values.files {
            let file = self.0.entry(one.file).or_default();
            file.bytes = file.bytes.max(one.file_bytes);
            file.live_bytes += one.bytes;
            file.tables += 1;
        }
    }

    /// Accounts for a table that leaves the version.
    pub(super) fn remove(&mut self, table: &TableMeta) {
        for one in &table.values.files {
            let Some(file) = self.0.get_mut(&one.file) else { continue };
            file.live_bytes = file.live_bytes.saturating_sub(one.bytes);
            file.tables = file.tables.saturating_sub(1);
            if file.tables == 0 {
                self.0.remove(&one.file);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{ColumnFamilyId, Epoch, SeqNo, UserKey};
    use crate::version::{
        AddedTable, Placement, RemovedTable, TableMeta, ValueRef, ValueRefs, Version, VersionEdit,
    };

    /// A table with so many bytes of each file, all of which have 100.
    fn table(id: u64, key: &str, refs: &[(u64, u64)]) -> AddedTable {
        let key = UserKey::bytewise(key.as_bytes());
        let files = refs.iter().map(|&(file, bytes)| ValueRef {
            file: FileId(file),
            bytes,
            file_bytes: 100,
        });
        let table = TableMeta {
            placement: Placement::Slice { file: FileId(1), offset: id * 4096, length: 10 },
            seqno_min: SeqNo(1),
            seqno_max: SeqNo(1),
            values: ValueRefs { files: files.collect(), encoded: true },
            ..TableMeta::of_one(id, [key.clone(), key], 10)
        };
        AddedTable { level: 1, epoch: Epoch(0), table: table.into() }
    }

    fn removed(added: &AddedTable) -> RemovedTable {
        let AddedTable { level, epoch, table } = added;
        let (smallest, id) = (table.smallest.clone(), table.id);
        RemovedTable { level: *level, epoch: *epoch, smallest, id }
    }

    #[test]
    fn a_version_knows_what_is_live() {
        let (a, b) = (table(1, "a", &[(7, 60), (8, 100)]), table(2, "b", &[(7, 30)]));
        let edit = VersionEdit { added: vec![a.clone(), b.clone()], ..Default::default() };
        let version = Version::new(ColumnFamilyId(0), 3).apply(&edit).unwrap();
        version.validate().unwrap();
        let live = |version: &Version| -> Vec<_> {
            let files = version.value_files().iter();
            files.map(|(id, file)| (id.0, file.live_bytes, file.garbage_bytes())).collect()
        };
        assert_eq!(live(&version), [(7, 90, 10), (8, 100, 0)]);
        assert_eq!(version.value_files().bytes(), (200, 190));
        assert_eq!(version.bytes(), 20, "values do not count for the level");
        let edit = VersionEdit { removed: vec![removed(&a)], ..Default::default() };
        let next = version.apply(&edit).unwrap();
        next.validate().unwrap();
        assert_eq!(live(&next), [(7, 30, 70)]);
        // A move changes nothing.
        let moved = AddedTable { level: 2, ..b.clone() };
        let edit = VersionEdit { removed: vec![removed(&b)], added: vec![moved], ..edit };
        let edit = VersionEdit { removed: edit.removed[..1].to_vec(), ..edit };
        assert_eq!(live(&next.apply(&edit).unwrap()), [(7, 30, 70)]);
        // A new manifest has the same.
        let again = Version::new(ColumnFamilyId(0), 3).apply(&version.snapshot_edit()).unwrap();
        assert_eq!(again.value_files(), version.value_files());
    }

    #[test]
    fn the_oldest_files_with_garbage_are_collected() {
        let refs = [(7, 100), (8, 20), (9, 90), (10, 10)];
        let edit = VersionEdit { added: vec![table(1, "a", &refs)], ..Default::default() };
        let version = Version::new(ColumnFamilyId(0), 3).apply(&edit).unwrap();
        let files = version.value_files();
        let collected = |part| files.to_collect(part).iter().map(|file| file.0).collect::<Vec<_>>();
        assert_eq!(collected(0.0), [0; 0]);
        assert_eq!(collected(0.25), [0; 0], "the oldest has none");
        assert_eq!(collected(0.5), [8]);
        assert_eq!(collected(1.0), [8, 9, 10]);
        assert!(files.is_due(0.5, 0.4) && !files.is_due(0.5, 0.41));
        assert!(!files.is_due(0.25, 0.0), "without garbage there is nothing to do");
        assert!(!files.is_due(1.0, 1.0));
    }
}
