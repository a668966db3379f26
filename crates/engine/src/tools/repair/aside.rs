//! Keeps the files that a repaired database does not use, in the directory `lost`.
//!
//! 1. [`Repair::keep_aside`] gives each such file a second name in `lost`, before the new manifest
//!    is current.
//! 2. The repair makes the new manifest current (`Repair::install`). From then on an open would
//!    remove unused files.
//! 3. [`Repair::take_away`] removes the first names.
//!
//! What must stay true: no byte of an existing file is destroyed, even if the repair is
//! interrupted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sateen_control::FileId;
use sateen_store::base::error::{Error, Result};
use sateen_store::files::paths::Directories;
use sateen_store::files::replace::sync_directory;
use sateen_store::files::{FileName, LOST, manifest_file_name, table_file_name, wal_file_name};
use sateen_store::manifest::read_current;

use super::{Catalogue, Repair};
use crate::db::checkpoint::copy;
use crate::options::Options;
use crate::tree::version_set::VersionSet;

/// Where in `lost` a file is kept.
#[derive(Clone, Debug)]
pub(super) enum Aside {
    /// It has this second name.
    Kept(PathBuf),
    /// It will be moved to this name.
    Planned(PathBuf),
}

impl Repair {
    /// Makes the catalogue durable as a new manifest, then moves unused files to `lost`.
    pub(super) fn install(&mut self, catalogue: Catalogue) -> Result<()> {
        catalogue.counters.file_seen(self.numbers_seen);
        let live: BTreeSet<FileId> = catalogue
            .families
            .values()
            .flat_map(|family| family.version.tables().flat_map(|(_, _, table)| table.files()))
            .collect();
        let versions = VersionSet::new(
            &self.directory,
            self.vfs.clone(),
            catalogue.identity,
            catalogue.counters,
            catalogue.families,
            catalogue.shared,
            catalogue.last_seqno,
        );
        let directory = self.directory.clone();
        let unused = self.tables.iter().filter(|file| !live.contains(file));
        let mut away: Vec<PathBuf> =
            unused.map(|file| table_file_name(&directory, *file)).collect();
        away.extend(self.manifests.iter().map(|file| manifest_file_name(&directory, *file)));
        // A part of these files is in use. The rest would be reclaimed.
        let damaged = self.damaged.iter().filter(|file| live.contains(file));
        let mut kept: Vec<PathBuf> =
            damaged.map(|file| table_file_name(&directory, *file)).collect();
        let (current, others) = self.damaged_texts()?;
        kept.extend(current);
        away.extend(others);
        kept.extend(away.iter().cloned());
        let places = self.by_directory(kept, away);
        for (directory, kept, away) in &places {
            self.keep_aside(directory, kept, away)?;
        }
        let wal_directory = self.old_logs.clone();
        let mut logs = Vec::new();
        if self.logs_are_stored {
            logs.extend(self.logs.iter().map(|log| wal_file_name(&wal_directory, *log)));
            self.keep_aside(&wal_directory, &logs, &logs)?;
        }
        self.everything_was_read()?;
        versions.roll()?;
        for (directory, _, away) in &places {
            self.take_away(directory, away)?;
        }
        self.take_away(&wal_directory, &logs)?;
        for file in std::mem::take(&mut self.temporary) {
            // The next open would remove the file anyway.
            let _orphan = self.vfs.remove(&table_file_name(&directory, file));
        }
        Ok(())
    }

    /// Divides files that are kept and those of them that go away by the directory in which they
    /// are. A table cannot get a second name on another file system.
    fn by_directory(
        &self,
        kept: Vec<PathBuf>,
        away: Vec<PathBuf>,
    ) -> Vec<(PathBuf, Vec<PathBuf>, Vec<PathBuf>)> {
        let mut places: BTreeMap<PathBuf, (Vec<PathBuf>, Vec<PathBuf>)> = BTreeMap::new();
        let directory_of = |path: &Path| {
            let place = self.vfs.place_of(path);
            let directory = place.parent().unwrap_or(&self.directory).to_owned();
            (directory, place)
        };
        for path in kept {
            let (directory, path) = directory_of(&path);
            places.entry(directory).or_default().0.push(path);
        }
        for path in away {
            let (directory, path) = directory_of(&path);
            places.entry(directory).or_default().1.push(path);
        }
        places.into_iter().map(|(directory, (kept, away))| (directory, kept, away)).collect()
    }

    /// Gives each of `files` in `directory` a second name in `lost`. If the file system has no hard
    /// links, files that are also in `away` get a name to which [`Repair::take_away`] will rename
    /// them. The others stay in use, and are copied.
    pub(super) fn keep_aside(
        &mut self,
        directory: &Path,
        files: &[PathBuf],
        away: &[PathBuf],
    ) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let lost = directory.join(LOST);
        self.vfs.create_dir_all(&lost).map_err(|e| Error::io("create", &lost, e))?;
        for path in files {
            if self.aside.contains_key(path) {
                continue;
            }
            let to = self.free_name(&lost, path)?;
            match self.vfs.hard_link(path, &to) {
                Ok(()) => drop(self.aside.insert(path.clone(), Aside::Kept(to))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    let error = Error::io("link", path, error);
                    // A rename or a copy would not find room either.
                    if error.is_no_space() || error.is_device_failure() {
                        return Err(error);
                    }
                    let aside = if away.contains(path) {
                        Aside::Planned(to)
                    } else {
                        copy(self.vfs.as_ref(), path, &to, u64::MAX, &|| Ok(()))?;
                        Aside::Kept(to)
                    };
                    self.aside.insert(path.clone(), aside);
                }
            }
        }
        self.sync(&[&lost, directory])
    }

    /// Returns the paths of CURRENT, and of OPTIONS and DIRECTORIES, each only if it is damaged.
    /// CURRENT will be replaced.
    pub(super) fn damaged_texts(&self) -> Result<(Option<PathBuf>, Vec<PathBuf>)> {
        let vfs = self.vfs.as_ref();
        let current = read_current(vfs, &self.directory).is_err();
        let stored = Options::load_with(vfs, &self.directory, true);
        let options = matches!(stored, Err(Error::Corruption { .. }));
        let list = Directories::read(vfs, &self.directory);
        let list = matches!(list, Err(Error::Corruption { .. }));
        self.everything_was_read()?;
        let others = [(options, FileName::Options), (list, FileName::Directories)];
        let others = others.into_iter().filter(|(damaged, _)| *damaged);
        Ok((
            current.then(|| FileName::Current.path(&self.directory)),
            others.map(|(_, name)| name.path(&self.directory)).collect(),
        ))
    }

    /// Removes the first names of `files`, or moves them. It reads nothing, because the new
    /// manifest is already current.
    pub(super) fn take_away(&mut self, directory: &Path, files: &[PathBuf]) -> Result<()> {
        let lost = directory.join(LOST);
        for path in files {
            let to = match self.aside.get(path).cloned() {
                Some(Aside::Kept(to)) => {
                    self.vfs.remove(path).map_err(|e| Error::io("remove", path, e))?;
                    to
                }
                Some(Aside::Planned(to)) => {
                    self.vfs.rename(path, &to).map_err(|e| Error::io("move", path, e))?;
                    to
                }
                // The file was gone when it was to be kept.
                None => continue,
            };
            self.report.moved.push(to);
        }
        if files.is_empty() { Ok(()) } else { self.sync(&[directory, &lost]) }
    }

    /// Returns a name in `lost` that is free. An earlier repair may have left a file with the same
    /// name.
    fn free_name(&self, lost: &Path, path: &Path) -> Result<PathBuf> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let taken = self.vfs.list(lost).map_err(|e| Error::io("list", lost, e))?;
        let taken: BTreeSet<String> = taken
            .iter()
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect();
        let numbered = (1_u64..).map(|n| format!("{name}.{n}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
        Ok(lost.join(free.unwrap_or(name)))
    }

    /// Makes the names in `directories` durable.
    fn sync(&self, directories: &[&Path]) -> Result<()> {
        directories.iter().try_for_each(|directory| sync_directory(self.vfs.as_ref(), directory))
    }
}
