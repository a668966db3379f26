//! Creates a column family in an open database.
//!
//! 1. The family and its regions get ids, versions and memtables.
//! 2. One edit of the manifest makes them durable.
//! 3. The commit pipeline, the list of families and control learn of them, in this order.

use std::sync::Arc;

use sateen_control::version::{Region, VersionEdit};
use sateen_control::{ColumnFamilyId, Event, UserKey};
use sateen_store::base::error::{Error, Result};

use super::paths::claim_for;
use crate::core::DbCore;
use crate::options::{ColumnFamilyOptions, control};
use crate::tree::families::ColumnFamilyData;
use crate::tree::version_set::fresh_version;

/// Creates a column family and its regions, in the manifest and in memory. The caller holds
/// `Tree::changes`.
pub(crate) fn create_family(
    core: &Arc<DbCore>,
    name: &str,
    options: ColumnFamilyOptions,
) -> Result<Arc<ColumnFamilyData>> {
    let options = options.with_absolute_paths()?;
    claim_for(core, &options)?;
    let of = core.tree.versions.counters.family();
    let regions = regions_of(of, name, &options, || core.tree.versions.counters.family());
    let trees: Vec<_> = std::iter::once((of, name.to_owned(), None))
        .chain(regions.into_iter().map(|(id, name, region)| (id, name, Some(region))))
        .map(|(id, name, region)| {
            let version = Arc::new(fresh_version(id, &options));
            let pool = core.writes.memtable_pool.clone();
            Arc::new(ColumnFamilyData::new(id, name, region, options.clone(), version, pool))
        })
        .collect();
    // Their first entries go to the WAL in use or a later one. The hold keeps that WAL until the
    // manifest names it.
    let _hold = core.tree.reclaimer.hold();
    let log = core.writes.pipeline.exclusive(|stage| stage.wal_number());
    let edit = |data: &Arc<ColumnFamilyData>| VersionEdit {
        column_family: data.id(),
        create: Some(data.name().to_owned()),
        region: data.region().cloned(),
        comparator: Some(options.comparator.clone()),
        value_times: Some(options.ttl.is_some()),
        style: Some(options.compaction_style.to_string()),
        log_number: Some(log),
        ..VersionEdit::default()
    };
    let last_seqno = core.writes.pipeline.visible_seqno();
    let edits = trees.iter().map(edit).collect();
    let installed = core.tree.versions.install_new(edits, &trees, last_seqno, &core.tree.reclaimer);
    let versions = match installed {
        Ok(versions) => versions,
        Err(error) => {
            core.background.driver.edit_failed(&error);
            return Err(error);
        }
    };
    core.writes.pipeline.exclusive(|stage| core.writes.pipeline.add_families(stage, trees.iter()));
    let control_options = Arc::new(control::column_family(&core.env.options.load(), &options));
    let (data, regions) = trees.split_first().ok_or(Error::Closed)?;
    data.set_regions(regions.to_vec());
    let mut families = (**core.tree.families()).clone();
    families.insert(data);
    core.tree.families.store(Arc::new(families));
    for version in versions {
        let options = control_options.clone();
        core.background
            .driver
            .report(core.env.now(), Event::ColumnFamilyAdded { options, version });
    }
    Ok(data.clone())
}

/// Returns the regions of a column family with these options: id, name for messages, and range.
pub(crate) fn regions_of(
    of: ColumnFamilyId,
    name: &str,
    options: &ColumnFamilyOptions,
    mut number: impl FnMut() -> ColumnFamilyId,
) -> Vec<(ColumnFamilyId, String, Region)> {
    let begins = options.regions.begins().iter();
    let region = |(nth, begin): (usize, &Vec<u8>)| {
        let region = Region { of, begin: UserKey::bytewise(begin.as_slice()) };
        (number(), format!("{name}, region {}", nth + 2), region)
    };
    begins.enumerate().map(region).collect()
}
