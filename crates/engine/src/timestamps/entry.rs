//! How versions are stored: the key with its timestamp at the end, and a value behind a byte that
//! says whether there is one.

use sateen_control::Comparator;
use sateen_store::base::error::{Error, Result};

use crate::db::family::ColumnFamily;

const VALUE: u8 = 0;
const DELETED: u8 = 1;

/// What a version of a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version<'a> {
    Value(&'a [u8]),
    Deleted,
}

/// Fails if `timestamp` has not the length of the comparator's.
pub(super) fn check(comparator: &Comparator, timestamp: &[u8]) -> Result<()> {
    let bytes = comparator.timestamp_bytes();
    if timestamp.len() == bytes {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!(
        "a timestamp of {} bytes: those of the comparator {} have {bytes}",
        timestamp.len(),
        comparator.name()
    )))
}

/// Returns the stored key of a version.
pub(crate) fn key_of(comparator: &Comparator, key: &[u8], timestamp: &[u8]) -> Result<Vec<u8>> {
    check(comparator, timestamp)?;
    Ok([key, timestamp].concat())
}

/// Returns `key`, which must end with a timestamp.
pub(super) fn whole_key<'a>(family: &ColumnFamily, key: &'a [u8]) -> Result<&'a [u8]> {
    let bytes = family.comparator().timestamp_bytes();
    if key.len() >= bytes {
        return Ok(key);
    }
    Err(Error::InvalidArgument(format!(
        "a key of {} bytes has no timestamp of {bytes} bytes, which the keys of the column family \
         {} have",
        key.len(),
        family.name()
    )))
}

/// Returns the key and the timestamp of a stored key; `None` if it is that of no version.
pub(super) fn split(stored: &[u8], timestamp_bytes: usize) -> Option<(&[u8], &[u8])> {
    stored.split_at_checked(stored.len().checked_sub(timestamp_bytes)?)
}

/// Returns the stored value of a version.
pub(crate) fn value_of(version: Version<'_>) -> Vec<u8> {
    match version {
        Version::Value(value) => [&[VALUE], value].concat(),
        Version::Deleted => vec![DELETED],
    }
}

/// Returns the version that a stored value is. Anything else than a value is a deletion.
pub(super) fn version_of(stored: &[u8]) -> Version<'_> {
    match stored.split_first() {
        Some((&VALUE, value)) => Version::Value(value),
        _ => Version::Deleted,
    }
}

/// Returns true if the timestamp `a` is before `b`.
pub(super) fn is_before(comparator: &Comparator, a: &[u8], b: &[u8]) -> bool {
    // Newer versions of a key, here the empty one, come first.
    comparator.compare(a, b).is_gt()
}

/// Returns the stored key and value of a version, for files that are ingested later. `None` stands
/// for a deletion.
///
/// # Errors
/// `InvalidArgument` if the timestamp has not the length of the comparator's.
pub fn timestamped_entry(
    comparator: &Comparator,
    key: &[u8],
    timestamp: &[u8],
    value: Option<&[u8]>,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let version = value.map_or(Version::Deleted, Version::Value);
    Ok((key_of(comparator, key, timestamp)?, value_of(version)))
}
