//! The ids of backups. None is given twice in a place: what an operator wrote down about backup 7
//! stays true after backup 7 is gone.
//!
//! 1. [`next`] returns an id above those of all records, and above the one in the object LAST.
//! 2. [`note`] writes LAST before the record with the highest id goes.
//!
//! What must stay true: LAST is durable before the record with the highest id is deleted. A place
//! without LAST, as earlier versions made, has not lost such a record.

use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::files::checked_text;

use super::read;
use super::store::BackupStore;

/// The object with the highest id that was given, once its record is gone.
pub(super) const LAST: &str = "LAST";
const LAST_LINE: &str = "sateen last backup 1";
/// Largest such object that is read.
const BYTES_MAX: u64 = 4096;

/// Returns the id for a backup beside records whose highest id is `highest`.
pub(super) fn next(store: &dyn BackupStore, highest: Option<u64>) -> Result<u64> {
    let last = highest.unwrap_or(0).max(last(store)?);
    last.checked_add(1).ok_or_else(|| {
        Error::InvalidArgument(format!("backup {last} has the highest id that there is"))
    })
}

/// Notes that `id` was given, durably.
pub(super) fn note(store: &dyn BackupStore, id: u64) -> Result<()> {
    if last(store)? < id {
        let text = checked_text::seal(&format!("{LAST_LINE}\nid {id}\n"));
        let mut writer = store.create(LAST)?;
        writer.append(text.as_bytes())?;
        writer.finish()?;
    }
    // An earlier call may have failed before its name was durable.
    store.sync()
}

/// Returns the id in LAST; 0 if there is none.
fn last(store: &dyn BackupStore) -> Result<u64> {
    let bytes = match read(store, LAST, BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(Error::Corruption { kind: CorruptionKind::MissingFile, .. }) => return Ok(0),
        Err(error) => return Err(error),
    };
    let path = store.location(LAST);
    let newer = |text| checked_text::newer(text, LAST_LINE);
    if let Some(reason) = std::str::from_utf8(&bytes).ok().and_then(newer) {
        return Err(Error::IncompatibleDirectory { path, reason });
    }
    let id = checked_text::unseal(&bytes).and_then(|text| {
        let id = text.strip_prefix(LAST_LINE)?.strip_prefix("\nid ")?.strip_suffix('\n')?;
        id.parse().ok()
    });
    id.ok_or_else(|| Error::corruption(&path, 0, CorruptionKind::Checksum))
}
