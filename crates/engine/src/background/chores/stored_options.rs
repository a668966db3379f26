//! Keeps the file OPTIONS as the options in force are.

use std::path::Path;

use sateen_store::base::error::Result;
use sateen_store::base::sync::atomic::Ordering;
use sateen_store::base::sync::lock;
use sateen_store::files::options_file;
use sateen_store::vfs::Vfs;

use super::Chores;
use crate::options::StoredOptions;

impl Chores {
    /// Leaves the options that count now in the directory, durably. The catalogue is locked. What
    /// cannot be written now is tried again by the chores, and at close.
    pub(crate) fn store_options(&self) {
        let stored = self.write_options(self.env.vfs.as_ref(), &self.env.directory);
        self.options_unstored.store(stored.is_err(), Ordering::Relaxed);
    }

    /// Writes them into `directory`.
    pub(crate) fn write_options(&self, vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        let families = self.tree.families();
        let default = self.tree.default_family.id();
        let mut named: Vec<_> = families.named().map(|family| (family, family.options())).collect();
        named.sort_by_key(|(family, _)| family.id() != default);
        let of = named.iter().map(|(family, options)| (family.name(), &**options));
        let text = StoredOptions::text(&self.env.options.load(), of);
        options_file::write(vfs, directory, &text)
    }

    /// A chore: tries again what could not be stored.
    pub(crate) fn store_options_again(&self) {
        if self.options_unstored.load(Ordering::Relaxed) && self.env.health.check().is_ok() {
            let _catalogue = lock(&self.tree.changes);
            self.store_options();
        }
    }
}
