//! Keeping aside what a repaired database does not use.
//!
//! What must stay true: no byte of a file that was there is destroyed, wherever the repair is cut
//! short. So what is to be kept has its second name in `lost` before the new manifest counts, after
//! which an open would remove it; the first name goes last.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Repair;
use crate::error::{Error, Result};
use crate::files::replace::sync_directory;

impl Repair {
    /// Gives each of `files` of `directory` a second name in `lost` there. Where the file system
    /// knows no second names [`Repair::take_away`] renames them.
    pub(super) fn keep_aside(&mut self, directory: &Path, files: &[PathBuf]) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let lost = directory.join("lost");
        self.vfs.create_dir_all(&lost).map_err(|e| Error::io("create", &lost, e))?;
        for path in files {
            if self.aside.contains_key(path) {
                continue;
            }
            let to = self.free_name(&lost, path)?;
            match self.vfs.hard_link(path, &to) {
                Ok(()) => drop(self.aside.insert(path.clone(), to)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {}
                Err(error) => return Err(Error::io("link", path, error)),
            }
        }
        self.sync(&[&lost, directory])
    }

    /// Takes the first names of `files` away, which have a second one.
    pub(super) fn take_away(&mut self, directory: &Path, files: &[PathBuf]) -> Result<()> {
        let lost = directory.join("lost");
        for path in files {
            let to = match self.aside.get(path).cloned() {
                Some(to) => {
                    self.vfs.remove(path).map_err(|e| Error::io("remove", path, e))?;
                    to
                }
                None => {
                    let to = self.free_name(&lost, path)?;
                    self.vfs.rename(path, &to).map_err(|e| Error::io("move", path, e))?;
                    to
                }
            };
            self.report.moved.push(to);
        }
        if files.is_empty() { Ok(()) } else { self.sync(&[directory, &lost]) }
    }

    /// A name in `lost` that nothing has: an earlier repair may have left a file of the same.
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

    fn sync(&self, directories: &[&Path]) -> Result<()> {
        directories.iter().try_for_each(|directory| sync_directory(self.vfs.as_ref(), directory))
    }
}
