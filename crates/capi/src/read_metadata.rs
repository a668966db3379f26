//! Reads that also return the timestamp of the value, and whether the key was written after the
//! snapshot of the read (`…_with_metadata`).

use std::ffi::{c_char, c_uchar};
use std::ptr::{null, null_mut};

use sateen::{ColumnFamily, Error, PinnedSlice, Snapshot};

use crate::abi::{ErrPtr, byte_strings, bytes, guard, quiet, set_error, status};
use crate::calls::rocksdb_readoptions_t;
use crate::database::{DEFAULT, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::promises::read_options;
use crate::timestamps::{as_of, leave, version};

type Family = rocksdb_column_family_handle_t;

/// What a read returns.
struct Read {
    value: Option<PinnedSlice>,
    timestamp: Option<Vec<u8>>,
    superseded: bool,
}

/// Reads a key. `wants_newer` asks whether it was written after the snapshot. `as_snapshot` is the
/// snapshot of the read if its options have none.
unsafe fn read(
    family: &ColumnFamily,
    options: *const rocksdb_readoptions_t,
    key: &[u8],
    wants_newer: bool,
    as_snapshot: Option<&Snapshot>,
) -> sateen::Result<Read> {
    // SAFETY: the contract of the crate.
    let (mut plain, as_of) = unsafe { (read_options(options)?, as_of(family, options)?) };
    let is_newest = plain.snapshot.is_none();
    plain.snapshot = plain.snapshot.or_else(|| as_snapshot.cloned());
    if as_of.is_none() {
        let reading = family.reading(&plain);
        let value = reading.get_pinned(key)?;
        let superseded = wants_newer && !is_newest && reading.is_superseded(key)?;
        return Ok(Read { value, timestamp: None, superseded });
    }
    if wants_newer {
        let name = family.name();
        let text = format!(
            "newer_version_present is not implemented for keys with timestamps, which the column \
             family {name} has"
        );
        return Err(Error::InvalidArgument(text));
    }
    let (value, timestamp) = match version(family, &plain, as_of, key)? {
        Some(found) => (Some(found.value.into()), Some(found.timestamp)),
        None => (None, None),
    };
    Ok(Read { value, timestamp, superseded: false })
}

/// Where C wants the results of one read; null for those that it does not want.
struct Places {
    value_length: *mut usize,
    timestamp: *mut *mut c_char,
    timestamp_length: *mut usize,
    newer: *mut c_uchar,
}

impl Places {
    /// Stores what was found. Returns the value, to be freed.
    unsafe fn fill(&self, found: Option<&Read>) -> *mut c_char {
        // SAFETY: the contract of the crate.
        unsafe {
            let timestamp = found.and_then(|found| found.timestamp.as_deref());
            leave(timestamp, self.timestamp, self.timestamp_length);
            if let Some(newer) = self.newer.as_mut() {
                *newer = found.is_some_and(|found| found.superseded).into();
            }
            let mut copy = null_mut();
            let value = found.and_then(|found| found.value.as_deref());
            leave(value, &raw mut copy, self.value_length);
            copy
        }
    }
}

/// Returns the value of a key, to be freed; null if it has none. Stores its timestamp, to be freed,
/// and whether the key was written after the snapshot of the read, unless their places are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_with_metadata(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_length: usize,
    value_length: *mut usize,
    timestamp: *mut *mut c_char,
    timestamp_length: *mut usize,
    newer: *mut c_uchar,
    errptr: ErrPtr,
) -> *mut c_char {
    let family = DEFAULT;
    // SAFETY: the contract of the crate.
    unsafe {
        rocksdb_get_cf_with_metadata(
            db,
            options,
            family,
            key,
            key_length,
            value_length,
            timestamp,
            timestamp_length,
            newer,
            errptr,
        )
    }
}

/// Does the same in a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_cf_with_metadata(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    key: *const c_char,
    key_length: usize,
    value_length: *mut usize,
    timestamp: *mut *mut c_char,
    timestamp_length: *mut usize,
    newer: *mut c_uchar,
    errptr: ErrPtr,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        let found = guard(errptr, None, || {
            let family = of(the(db)?, family)?;
            read(&family, options, bytes(key, key_length)?, !newer.is_null(), None).map(Some)
        });
        Places { value_length, timestamp, timestamp_length, newer }.fill(found.as_ref())
    }
}

/// Does the same for many keys of the default column family, and stores the error of each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get_with_metadata(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    count: usize,
    keys: *const *const c_char,
    key_lengths: *const usize,
    values: *mut *mut c_char,
    value_lengths: *mut usize,
    timestamps: *mut *mut c_char,
    timestamp_lengths: *mut usize,
    newer: *mut c_uchar,
    errors: *mut *mut c_char,
) {
    let families = null();
    // SAFETY: the contract of the crate.
    unsafe {
        rocksdb_multi_get_cf_with_metadata(
            db,
            options,
            families,
            count,
            keys,
            key_lengths,
            values,
            value_lengths,
            timestamps,
            timestamp_lengths,
            newer,
            errors,
        );
    }
}

/// Does the same for keys of the column families at their index. All are read at one moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get_cf_with_metadata(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    families: *const *const Family,
    count: usize,
    keys: *const *const c_char,
    key_lengths: *const usize,
    values: *mut *mut c_char,
    value_lengths: *mut usize,
    timestamps: *mut *mut c_char,
    timestamp_lengths: *mut usize,
    newer: *mut c_uchar,
    errors: *mut *mut c_char,
) {
    // SAFETY: the contract of the crate; the lists have `count` members, or are null.
    quiet((), || unsafe {
        let keys = byte_strings(count, keys, key_lengths);
        let key_of = |nth: usize| keys.as_ref().map(|keys| keys[nth]).map_err(Clone::clone);
        let snapshot = the(db).ok().map(sateen::Db::snapshot);
        for nth in 0..count {
            let found = the(db).and_then(|db| {
                let family =
                    if families.is_null() { DEFAULT } else { (*families.add(nth)).cast_mut() };
                let family = of(db, family)?;
                read(&family, options, key_of(nth)?, !newer.is_null(), snapshot.as_ref())
            });
            *errors.add(nth) = null_mut();
            if let Err(error) = &found {
                set_error(errors.add(nth), &status(error));
            }
            let places = Places {
                value_length: value_lengths.add(nth),
                timestamp: at(timestamps, nth),
                timestamp_length: at(timestamp_lengths, nth),
                newer: at(newer, nth),
            };
            *values.add(nth) = places.fill(found.as_ref().ok());
        }
    });
}

/// Returns the place of a member of a list; null if there is no list.
unsafe fn at<T>(list: *mut T, nth: usize) -> *mut T {
    // SAFETY: the caller's promise.
    if list.is_null() { null_mut() } else { unsafe { list.add(nth) } }
}
