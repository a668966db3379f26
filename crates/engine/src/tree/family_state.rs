//! The state of a column family in the version set: how edits change it, and the edits that
//! recreate it in a fresh manifest.
//!
//! - [`Replay`] applies the edits of a manifest one by one, at open and in a secondary.
//! - [`next_family_state`] computes the state after one edit.
//! - [`snapshot_edits`] returns the edits that recreate a state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::version::{AddedTable, DurableLog, LEVELS_MAX, Region, Version, VersionEdit};
use sateen_control::{ColumnFamilyId, Comparator, LogNumber, SeqNo};
use sateen_store::base::error::{CorruptionKind, Error, Result};

use crate::tree::families::ColumnFamilyData;

/// Number of tables in one record of a manifest snapshot. It keeps the records short.
const SNAPSHOT_TABLES_PER_RECORD: usize = 512;

/// Returns the oldest WAL that one of the column families needs; 0 if there is none.
pub(crate) fn oldest_log<'a>(families: impl IntoIterator<Item = &'a FamilyState>) -> LogNumber {
    let needed = families.into_iter().map(|family| family.version.log_number());
    needed.min().unwrap_or_default()
}

/// The version set's record of a column family.
#[derive(Clone)]
pub(crate) struct FamilyState {
    pub(crate) name: String,
    /// The region that it is, if it is one.
    pub(crate) region: Option<Region>,
    pub(crate) version: Arc<Version>,
    /// All entries up to this sequence number have been flushed.
    pub(crate) stored: SeqNo,
    /// How far the WAL was durable when its entries were flushed last.
    pub(crate) durable_log: Option<DurableLog>,
    /// The engine's side. `None` during recovery.
    pub(crate) data: Option<Arc<ColumnFamilyData>>,
}

/// Returns how far the WAL was durable at least, according to `families`. Returns `None` if they
/// name only a WAL that recovery does not need.
pub(crate) fn durable_log(families: &BTreeMap<ColumnFamilyId, FamilyState>) -> Option<DurableLog> {
    // A family that was created while there was no WAL needs none, and its number is 0.
    let needed = families.values().map(|family| family.version.log_number());
    let oldest = needed.filter(|log| *log > LogNumber(0)).min().unwrap_or_default();
    let durable = families.values().filter_map(|family| family.durable_log).max();
    durable.filter(|durable| durable.log >= oldest)
}

/// Returns the edits that recreate `family`: one with its properties, then its tables in portions.
pub(super) fn snapshot_edits(id: ColumnFamilyId, family: &FamilyState) -> Vec<VersionEdit> {
    let compact_pointers =
        family.version.compact_pointers().map(|(level, key)| (level, key.clone()));
    let mut edits = vec![VersionEdit {
        column_family: id,
        create: Some(family.name.clone()),
        region: family.region.clone(),
        comparator: Some(family.version.comparator().clone()),
        value_times: family.version.value_times(),
        style: family.version.style().map(str::to_owned),
        log_number: Some(family.version.log_number()),
        flushed_seqno: Some(family.stored),
        durable_log: family.durable_log,
        compact_pointers: compact_pointers.collect(),
        range_tombstones: family.version.range_tombstones().iter().cloned().collect(),
        ..VersionEdit::default()
    }];
    let mut added = Vec::new();
    for (level, epoch, table) in family.version.tables() {
        added.push(AddedTable { level, epoch, table: table.clone() });
        if added.len() == SNAPSHOT_TABLES_PER_RECORD {
            let added = std::mem::take(&mut added);
            edits.push(VersionEdit { column_family: id, added, ..VersionEdit::default() });
        }
    }
    if !added.is_empty() {
        edits.push(VersionEdit { column_family: id, added, ..VersionEdit::default() });
    }
    edits
}

/// Finds the comparator of a column family: the first argument is the family's name, the second the
/// comparator's name in the manifest. Fails if it is not known.
pub(crate) type FindComparator = Arc<dyn Fn(&str, &str) -> Result<Comparator> + Send + Sync>;

/// The column families that the edits of a manifest lead to.
pub(crate) struct Replay {
    path: PathBuf,
    comparators: FindComparator,
    families: BTreeMap<ColumnFamilyId, FamilyState>,
    /// Column families whose comparator is not known, with the error that results unless they are
    /// dropped.
    refused: BTreeMap<ColumnFamilyId, Error>,
}

impl Replay {
    /// Returns an empty replay of the manifest `path`.
    pub(crate) fn new(path: &Path, comparators: &FindComparator) -> Replay {
        let (path, comparators) = (path.to_owned(), comparators.clone());
        Replay { path, comparators, families: BTreeMap::new(), refused: BTreeMap::new() }
    }

    /// Applies the next edit.
    pub(crate) fn apply(&mut self, mut edit: VersionEdit) -> Result<()> {
        let id = edit.column_family;
        if let Some(name) = &edit.create {
            let recorded = edit.comparator.as_ref().unwrap_or(&Comparator::BYTEWISE);
            match (self.comparators)(name, recorded.name()) {
                Ok(comparator) => edit.comparator = Some(comparator),
                Err(error) => drop(self.refused.insert(id, error)),
            }
        }
        if self.refused.contains_key(&id) {
            if edit.drop {
                self.refused.remove(&id);
            }
            return Ok(());
        }
        let known = self.families.get(&id).map(|family| family.version.comparator());
        if let Some(comparator) = known.or(edit.comparator.as_ref()).cloned()
            && !comparator.is_bytewise()
        {
            edit.compare_by(&comparator);
        }
        match next_family_state(&self.path, &self.families, &edit)? {
            Some(family) => self.families.insert(id, family),
            None => self.families.remove(&id),
        };
        Ok(())
    }

    /// Returns the column families so far, without those whose comparator is not known.
    pub(crate) fn families(&self) -> &BTreeMap<ColumnFamilyId, FamilyState> {
        &self.families
    }

    /// Fails if the comparator of a column family is not known, or if there is no default column
    /// family.
    pub(crate) fn check(&self, position: u64) -> Result<()> {
        if let Some(error) = self.refused.values().next() {
            return Err(error.clone());
        }
        if self.families.contains_key(&ColumnFamilyId(0)) {
            return Ok(());
        }
        let kind = CorruptionKind::Inconsistent("there is no default column family");
        Err(Error::corruption(&self.path, position, kind))
    }
}

/// Returns the state of the column family after `edit`, or `None` if the edit drops it. Fails if
/// the edit contradicts the state; `path` is named in the error.
pub(crate) fn next_family_state(
    path: &Path,
    families: &BTreeMap<ColumnFamilyId, FamilyState>,
    edit: &VersionEdit,
) -> Result<Option<FamilyState>> {
    let inconsistent = |what| Error::corruption(path, 0, CorruptionKind::Inconsistent(what));
    let mut family = match (families.get(&edit.column_family), &edit.create) {
        (Some(_), Some(_)) => return Err(inconsistent("a column family is created twice")),
        (None, None) => return Err(inconsistent("an edit of a column family that does not exist")),
        (Some(family), None) => family.clone(),
        (None, Some(name)) => FamilyState {
            name: name.clone(),
            region: edit.region.clone(),
            version: Arc::new(Version::new(edit.column_family, LEVELS_MAX)),
            stored: SeqNo(0),
            durable_log: None,
            data: None,
        },
    };
    if edit.drop {
        return Ok(None);
    }
    let version = family.version.apply(edit).map_err(|error| Error::InconsistentEdit {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    family.version = Arc::new(version);
    family.stored = family.stored.max(edit.flushed_seqno.unwrap_or_default());
    family.durable_log = family.durable_log.max(edit.durable_log);
    Ok(Some(family))
}

/// Returns the state after `edit`, and adds to the edit the range tombstones that it completes:
/// those which no table needs any more.
pub(super) fn next_without_done_ranges(
    path: &Path,
    families: &BTreeMap<ColumnFamilyId, FamilyState>,
    edit: &mut VersionEdit,
) -> Result<Option<FamilyState>> {
    let next = next_family_state(path, families, edit)?;
    let changes = !edit.removed.is_empty() || !edit.range_tombstones.is_empty();
    let done = match &next {
        Some(family) if changes && !family.version.range_tombstones().is_empty() => {
            family.version.done_ranges()
        }
        _ => Vec::new(),
    };
    if done.is_empty() {
        return Ok(next);
    }
    edit.range_tombstones.retain(|one| !done.contains(&one.seqno));
    edit.retired_ranges.extend(done);
    next_family_state(path, families, edit)
}
