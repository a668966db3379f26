//! Reads a manifest repeatedly while another process may be writing it.
//!
//! 1. [`ManifestFollower::open`] reads CURRENT and the whole manifest that it names.
//! 2. [`ManifestFollower::has_moved`] looks whether there is more to read.
//! 3. [`ManifestFollower::advance`] applies the new edits. If CURRENT names another manifest, it
//!    reads that one from the beginning.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::version::TableMeta;
use sateen_control::{ColumnFamilyId, Comparator, FileId, LogNumber, SeqNo};
use sateen_store::base::error::{Error, Result};
use sateen_store::files::counters::Counters;
use sateen_store::files::manifest_file_name;
use sateen_store::manifest::{Identity, ManifestReader, read_current};
use sateen_store::vfs::{OpenOptions, Vfs};
use sateen_store::wal::Tail;

use super::family_state::{FamilyState, FindComparator, Replay, oldest_log};

type Families = std::collections::BTreeMap<ColumnFamilyId, FamilyState>;

/// The manifest that CURRENT names, and the state after the edits that were read.
pub(crate) struct ManifestFollower {
    pub(crate) vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    number: u64,
    reader: ManifestReader,
    pub(crate) identity: Identity,
    replay: Replay,
    comparators: FindComparator,
    pub(crate) shared_files: BTreeSet<FileId>,
}

impl ManifestFollower {
    /// Reads CURRENT and the manifest that it names. Returns `None` if there is no CURRENT.
    pub(crate) fn open(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        comparators: &FindComparator,
    ) -> Result<Option<ManifestFollower>> {
        let Some(current) = read_current(vfs.as_ref(), directory)? else { return Ok(None) };
        let (path, reader) = ManifestReader::of_current(vfs.as_ref(), directory, &current)?;
        let mut follower = ManifestFollower {
            vfs,
            directory: directory.to_owned(),
            number: current.manifest,
            reader,
            identity: current.identity,
            replay: Replay::new(&path, comparators),
            comparators: comparators.clone(),
            shared_files: BTreeSet::new(),
        };
        follower.read()?;
        Ok(Some(follower))
    }

    /// Returns the column families so far. Those whose comparator is not known are left out.
    pub(crate) fn families(&self) -> &Families {
        self.replay.families()
    }

    /// Fails if the comparator of a column family is not known, or if there is no default column
    /// family.
    pub(crate) fn check(&self) -> Result<()> {
        self.replay.check(self.reader.position())
    }

    /// Returns the path of the manifest.
    pub(crate) fn path(&self) -> PathBuf {
        manifest_file_name(&self.directory, FileId(self.number))
    }

    /// Returns the number of the manifest.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns how the manifest ended when it was last read.
    pub(crate) fn tail(&self) -> Option<Tail> {
        self.reader.tail()
    }

    /// Applies the edits that were appended since the last call. Returns true if there were any.
    fn read(&mut self) -> Result<bool> {
        self.reader.grow()?;
        let (mut any, mut again) = (false, None);
        loop {
            match self.reader.next() {
                Ok(Some(edits)) => {
                    any = true;
                    for edit in edits {
                        self.shared_files.extend(edit.shared_files.iter().copied());
                        self.replay.apply(edit)?;
                    }
                }
                Ok(None) => return Ok(any),
                // The record may have been read while it was written, so it is read once more. If
                // it fails again at the same place, it is damaged. `wal/follow.rs` does the same.
                Err(error) if error.is_corruption() && again != Some(self.reader.position()) => {
                    again = Some(self.reader.position());
                    self.reader.grow()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Applies new edits of the manifest, or reads the new manifest if CURRENT names another one.
    /// Returns true if anything was applied.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let identity = self.identity;
        let current = read_current(self.vfs.as_ref(), &self.directory)?;
        let current = current.filter(|current| current.identity == identity).ok_or_else(|| {
            let reason = "another database took the place of the primary".into();
            Error::IncompatibleDirectory { path: self.directory.clone(), reason }
        })?;
        if current.manifest == self.number {
            return self.read();
        }
        let next = ManifestFollower::open(self.vfs.clone(), &self.directory, &self.comparators)?;
        *self = next.ok_or(Error::NotSecondary)?;
        Ok(true)
    }

    /// Returns the oldest WAL that is needed.
    pub(crate) fn oldest_log(&self) -> LogNumber {
        oldest_log(self.families().values())
    }

    /// Returns true if the manifest has grown, or CURRENT names another one.
    pub(crate) fn has_moved(&self) -> Result<bool> {
        let current = read_current(self.vfs.as_ref(), &self.directory)?;
        if current.is_none_or(|current| current.manifest != self.number) {
            return Ok(true);
        }
        let path = self.path();
        let file = self.vfs.open(&path, OpenOptions::READ);
        let length = file.and_then(|file| file.len());
        let length = length.map_err(|e| Error::io("read the length of", &path, e))?;
        Ok(length > self.reader.position())
    }

    /// Returns the newest sequence number in tables.
    pub(crate) fn stored_seqno(&self) -> SeqNo {
        let tables = self.families().values().flat_map(|family| family.version.tables());
        let newest = tables.map(|(_, _, table)| table.seqno_max).max().unwrap_or_default();
        let stored = self.families().values().map(|family| family.stored).max().unwrap_or_default();
        newest.max(stored)
    }

    /// Returns the tables of all column families.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<TableMeta>> {
        let versions = self.families().values().map(|family| &family.version);
        versions.flat_map(|version| version.tables()).map(|(.., table)| table)
    }

    /// Returns counters that know the number of the manifest.
    pub(crate) fn counters(&self) -> Counters {
        let counters = Counters::default();
        counters.file_seen(self.number);
        counters
    }
}

/// Returns a finder that takes the comparator of a column family from `known`. Otherwise it takes
/// `others`, or the bytewise comparator, whichever has the recorded name.
pub(crate) fn known_comparators(
    known: impl Iterator<Item = (String, Comparator)>,
    others: Comparator,
) -> FindComparator {
    let known: std::collections::BTreeMap<String, Comparator> = known.collect();
    Arc::new(move |name, recorded| {
        let mut candidates = known.get(name).into_iter().chain([&others, &Comparator::BYTEWISE]);
        candidates.find(|known| known.name() == recorded).cloned().ok_or_else(|| {
            let text = format!("comparator: keys of {name} are compared by {recorded}");
            Error::InvalidArgument(text)
        })
    })
}
