//! Opens a secondary: a database that follows the manifest and the WALs of its primary.

use std::path::Path;
use std::sync::Arc;

use sateen_store::base::error::{Error, Result};
use sateen_store::vfs::Vfs;

use super::catalogue::{Catalogue, no_catalogue};
use super::paths::Claimed;
use super::{Opening, paths, prepare_options};
use crate::core::DbCore;
use crate::options::paths::{absolute, check_named};
use crate::options::{ColumnFamilyOptions, Options};
use crate::secondary::Secondary;
use crate::tree::manifest_follower::ManifestFollower;
use crate::tree::version_set::FindComparator;

/// Number of attempts to read a manifest while the primary replaces it.
const TRIES_MAX: u32 = 20;

/// Opens a secondary of the database in `directory`, and catches up with it.
pub(crate) fn open_secondary(
    vfs: Arc<dyn Vfs>,
    directory: &Path,
    options: Options,
    family_options: &[(&str, ColumnFamilyOptions)],
) -> Result<Arc<DbCore>> {
    let (options, family_options) = prepare_options(options, family_options)?;
    let family_options = family_options.as_slice();
    let options = Options { create_missing_column_families: false, ..options };
    check_named("the database", directory)?;
    let directory = absolute(directory);
    let (vfs, paths) = paths::layered(vfs, &directory, &options, family_options);
    Claimed::read(vfs.as_ref(), &directory)?;
    let comparators = super::families::comparators(&options, family_options);
    let dyn_vfs: Arc<dyn Vfs> = vfs.clone();
    let manifest = find_manifest(&dyn_vfs, &directory, &comparators)?;
    // A table in two directories is refused.
    vfs.list(&directory).map_err(|error| Error::io("list", &directory, error))?;
    let catalogue = Catalogue {
        identity: manifest.identity,
        counters: manifest.counters(),
        families: manifest.families().clone(),
        shared_files: manifest.shared_files.clone(),
        last_seqno: manifest.stored_seqno(),
    };
    let logs = options.wal_directory(&directory);
    let vfs = (vfs, paths);
    let mut opening = Opening::new(vfs, &directory, options, catalogue, family_options, true)?;
    opening.attach_families(family_options)?;
    // Later values have the form that the primary stores.
    opening.refuse_changed_forms()?;
    opening.secondary = Some(Secondary::new(manifest, &logs));
    let core = opening.finish(Vec::new())?;
    core.catch_up()?;
    Ok(core)
}

/// Returns the manifest that CURRENT names, which the primary may replace meanwhile.
pub(crate) fn find_manifest(
    vfs: &Arc<dyn Vfs>,
    directory: &Path,
    comparators: &FindComparator,
) -> Result<ManifestFollower> {
    let exists = vfs.exists(directory).map_err(|e| Error::io("look for", directory, e))?;
    if !exists {
        return Err(super::missing(directory));
    }
    let manifest = current_manifest(vfs, directory, |vfs| {
        let manifest = ManifestFollower::open(vfs, directory, comparators)?;
        manifest.as_ref().map_or(Ok(()), ManifestFollower::check)?;
        Ok(manifest)
    })?;
    manifest.ok_or_else(|| no_catalogue(vfs.as_ref(), directory))
}

/// Returns what `read` returns, and repeats it while the primary replaces the manifest. `None` if
/// there is no CURRENT.
pub(crate) fn current_manifest(
    vfs: &Arc<dyn Vfs>,
    directory: &Path,
    read: impl Fn(Arc<dyn Vfs>) -> Result<Option<ManifestFollower>>,
) -> Result<Option<ManifestFollower>> {
    let mut failed = None;
    for _ in 0..TRIES_MAX {
        match read(vfs.clone()) {
            Ok(manifest) => return Ok(manifest),
            // The manifest may have been replaced. The same failure twice is damage.
            Err(error) if error.is_corruption() => {
                if failed.as_ref() == Some(&error.to_string()) {
                    return Err(error);
                }
                failed = Some(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    let cause = format!("{}: its manifest changes faster than it can be read", directory.display());
    Err(Error::Behind { cause })
}
