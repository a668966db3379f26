//! Keeps the file OPTIONS equal to the current options.

use std::path::Path;
use std::sync::Arc;

use sateen_control::ColumnFamilyId;
use sateen_store::base::error::Result;
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::sync::lock;
use sateen_store::files::options_file;
use sateen_store::files::replace::sync_directory;
use sateen_store::vfs::Vfs;

use super::Chores;
use crate::options::{ColumnFamilyOptions, Options, StoredOptions};
use crate::tree::families::ColumnFamilyData;

impl Chores {
    /// Writes the current options to the directory, durably. The caller holds the lock of the
    /// catalogue. After a failure the chores try again, and so does the close.
    pub(crate) fn store_options(&self) {
        let _tried_again = self.write_options(&self.env.options.load(), None);
    }

    /// Writes options that are to be in force next: `options`, and those of one column family. The
    /// caller holds the lock of the catalogue. After a failure the current ones stay in force, and
    /// the chores write those again.
    pub(crate) fn store_changed_options(
        &self,
        options: &Options,
        changed: (ColumnFamilyId, &Arc<ColumnFamilyOptions>),
    ) -> Result<()> {
        let stored = self.write_options(options, Some(changed));
        if stored.is_err() {
            self.board.poke();
        }
        stored
    }

    fn write_options(
        &self,
        options: &Options,
        changed: Option<(ColumnFamilyId, &Arc<ColumnFamilyOptions>)>,
    ) -> Result<()> {
        let text = self.options_text(options, |family| match changed {
            Some((id, options)) if id == family.id() => Arc::clone(options),
            _ => family.options(),
        });
        let (vfs, directory) = (self.env.vfs.as_ref(), &self.env.directory);
        let mut stored = options_file::write(vfs, directory, &text);
        if self.options_unstored.load(Ordering::Relaxed) {
            // A failed attempt may have written the same options under a name that is not durable.
            stored = stored.and_then(|()| sync_directory(vfs, directory));
        }
        self.options_unstored.store(stored.is_err(), Ordering::Relaxed);
        stored
    }

    /// Writes the options of a copy of the database to `directory`.
    pub(crate) fn write_options_of_copy(&self, vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        options_file::write(vfs, directory, &self.options_text_of_copy())
    }

    /// Returns the text of the options for a copy of the database, whose WALs and tables are in its
    /// own directory.
    pub(crate) fn options_text_of_copy(&self) -> String {
        let options = (**self.env.options.load()).clone();
        let options = Options { wal_dir: None, paths: Vec::new(), ..options };
        self.options_text(&options, |family| {
            let own = (*family.options()).clone();
            Arc::new(ColumnFamilyOptions { family_paths: Vec::new(), ..own })
        })
    }

    fn options_text(
        &self,
        options: &Options,
        of_family: impl Fn(&ColumnFamilyData) -> Arc<ColumnFamilyOptions>,
    ) -> String {
        let families = self.tree.families();
        let default = self.tree.default_family.id();
        let named = families.named().map(|family| (family, of_family(family)));
        let mut named: Vec<_> = named.collect();
        named.sort_by_key(|(family, _)| family.id() != default);
        let of = named.iter().map(|(family, options)| (family.name(), &**options));
        StoredOptions::text(options, of)
    }

    /// Writes the options again if the last attempt failed. A chore.
    pub(crate) fn store_options_again(&self) {
        if self.options_unstored.load(Ordering::Relaxed) && self.env.health.check().is_ok() {
            let _catalogue = lock(&self.tree.changes);
            self.store_options();
        }
    }
}
