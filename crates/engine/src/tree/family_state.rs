//! What an edit makes of a column family, and the edits that make one out of nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::version::{AddedTable, DurableLog, LEVELS_MAX, Region, Version, VersionEdit};
use sateen_control::{ColumnFamilyId, Comparator, LogNumber, SeqNo};
use sateen_store::base::error::{CorruptionKind, Error, Result};

use crate::tree::families::ColumnFamilyData;

/// Tables in one record of a snapshot: keeps a record, and so a pause, short.
const SNAPSHOT_TABLES_PER_RECORD: usize = 512;

/// What the version set knows of a column family.
#[derive(Clone)]
pub(crate) struct FamilyState {
    pub(crate) name: String,
    /// If clients know it as a part of another column family.
    pub(crate) region: Option<Region>,
    pub(crate) version: Arc<Version>,
    /// Entries up to here are in tables, or were and are overwritten.
    pub(crate) stored: SeqNo,
    /// How far the logs were durable when the last of it was stored.
    pub(crate) durable_log: Option<DurableLog>,
    /// None while the database is being recovered.
    pub(crate) data: Option<Arc<ColumnFamilyData>>,
}

/// How far the logs were durable at least, as `families` know, if that log is needed still.
pub(crate) fn durable_log(families: &BTreeMap<ColumnFamilyId, FamilyState>) -> Option<DurableLog> {
    // One that was made while there was no log needs none, whatever its number says.
    let needed = families.values().map(|family| family.version.log_number());
    let oldest = needed.filter(|log| *log > LogNumber(0)).min().unwrap_or_default();
    let durable = families.values().filter_map(|family| family.durable_log).max();
    durable.filter(|durable| durable.log >= oldest)
}

/// The edits that make `family` out of nothing.
pub(super) fn snapshot_edits(id: ColumnFamilyId, family: &FamilyState) -> Vec<VersionEdit> {
    let compact_pointers =
        family.version.compact_pointers().map(|(level, key)| (level, key.clone()));
    let mut edits = vec![VersionEdit {
        column_family: id,
        create: Some(family.name.clone()),
        region: family.region.clone(),
        comparator: Some(family.version.comparator().clone()),
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

/// What is known of comparators where a manifest has their names: that of the column family of
/// this name whose keys are compared by what has the second name.
pub(crate) type FindComparator = Arc<dyn Fn(&str, &str) -> Result<Comparator> + Send + Sync>;

/// Column families as the edits of a manifest make them.
pub(crate) struct Replay {
    path: PathBuf,
    comparators: FindComparator,
    families: BTreeMap<ColumnFamilyId, FamilyState>,
    /// Those whose comparator is not known, and why that is an error if they are not dropped.
    refused: BTreeMap<ColumnFamilyId, Error>,
}

impl Replay {
    /// Of the manifest `path`.
    pub(crate) fn new(path: &Path, comparators: &FindComparator) -> Replay {
        let (path, comparators) = (path.to_owned(), comparators.clone());
        Replay { path, comparators, families: BTreeMap::new(), refused: BTreeMap::new() }
    }

    /// The next edit.
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

    /// The column families that are there so far, but for those whose comparator is not known.
    pub(crate) fn families(&self) -> &BTreeMap<ColumnFamilyId, FamilyState> {
        &self.families
    }

    /// An error if there is one whose comparator is not known, or the default one is not there.
    pub(crate) fn check(&self, position: u64) -> Result<()> {
        if let Some(error) = self.refused.values().next() {
            return Err(error.clone());
        }
        if self.families.contains_key(&ColumnFamilyId(0)) {
            return Ok(());
        }
        let kind = CorruptionKind::Inconsistent("the default column family is not there");
        Err(Error::corruption(&self.path, position, kind))
    }
}

/// The state of the family of `edit` after it; None if it is dropped. Recovery replays with it what
/// `path` holds.
pub(crate) fn next_family_state(
    path: &Path,
    families: &BTreeMap<ColumnFamilyId, FamilyState>,
    edit: &VersionEdit,
) -> Result<Option<FamilyState>> {
    let inconsistent = |what| Error::corruption(path, 0, CorruptionKind::Inconsistent(what));
    let mut family = match (families.get(&edit.column_family), &edit.create) {
        (Some(_), Some(_)) => return Err(inconsistent("a column family is created twice")),
        (None, None) => return Err(inconsistent("an edit of a column family that is not there")),
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

/// The state after `edit`, which is told to retire the range tombstones that are done with it.
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
