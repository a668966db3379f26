//! Keeps the file OPTIONS equal to the current options.

use std::path::Path;

use sateen_store::base::error::Result;
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::sync::lock;
use sateen_store::files::options_file;
use sateen_store::vfs::Vfs;

use super::Chores;
use crate::options::StoredOptions;

impl Chores {
    /// Writes the current options to the directory, durably. The caller holds the lock of the
    /// catalogue. After a failure the chores try again, and so does the close.
    pub(crate) fn store_options(&self) {
        let stored = self.write_options(self.env.vfs.as_ref(), &self.env.directory);
        self.options_unstored.store(stored.is_err(), Ordering::Relaxed);
    }

    /// Writes the current options into `directory`.
    pub(crate) fn write_options(&self, vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        let families = self.tree.families();
        let default = self.tree.default_family.id();
        let mut named: Vec<_> = families.named().map(|family| (family, family.options())).collect();
        named.sort_by_key(|(family, _)| family.id() != default);
        let of = named.iter().map(|(family, options)| (family.name(), &**options));
        let text = StoredOptions::text(&self.env.options.load(), of);
        options_file::write(vfs, directory, &text)
    }

    /// Writes the options again if the last attempt failed. A chore.
    pub(crate) fn store_options_again(&self) {
        if self.options_unstored.load(Ordering::Relaxed) && self.env.health.check().is_ok() {
            let _catalogue = lock(&self.tree.changes);
            self.store_options();
        }
    }
}
