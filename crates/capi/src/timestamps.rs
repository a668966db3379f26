//! Keys with timestamps: their comparator, reads as of a timestamp, and the end of history.
//! `timestamp_writes` adds versions. How they are stored is in `sateen`'s module of timestamps.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr::{null, null_mut};

use sateen::{ColumnFamily, Comparator, PinnedSlice, ReadOptions, Timestamped, TimestampedFamily};

use crate::abi::{
    ErrPtr, byte_strings, bytes, give, guard, malloc_copy, optional_bytes, quiet, set_error, status,
};
use crate::callbacks::{State, name_of};
use crate::calls::{rocksdb_compactoptions_t, rocksdb_readoptions_t};
use crate::comparator::{Compare, ordered_by, rocksdb_comparator_t};
use crate::database::{DEFAULT, check_untimed, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::promises::{many_options, read_options};
use crate::settings::Settings;

type Family = rocksdb_column_family_handle_t;
/// The answer of a read.
pub(crate) type Found = sateen::Result<Option<PinnedSlice>>;

/// The timestamps of a read: as of one, or all versions from another one on.
#[derive(Clone, Debug)]
pub(crate) struct AsOf {
    pub(crate) at: Vec<u8>,
    pub(crate) from: Option<Vec<u8>>,
}

/// Keeps bytes as text, because they may have zeros.
fn keep_bytes(settings: &mut Settings, key: &'static str, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            settings.put_text(key, &digits);
        }
        None => settings.clear(key),
    }
}

/// Returns such bytes.
fn kept_bytes(settings: &Settings, key: &str) -> Option<Vec<u8>> {
    let digits = settings.text(key)?.to_str().ok()?;
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Makes a comparator of keys that end with a timestamp; null without a comparing function, or for
/// timestamps without bytes. Only `compare` is called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_comparator_with_ts_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    compare: Option<Compare>,
    _compare_ts: Option<Compare>,
    _compare_without_ts: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *const c_char,
            usize,
            c_uchar,
            *const c_char,
            usize,
            c_uchar,
        ) -> c_int,
    >,
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
    timestamp_size: usize,
) -> *mut rocksdb_comparator_t {
    let Some(compare) = compare.filter(|_| timestamp_size > 0) else { return null_mut() };
    // SAFETY: RocksDB's contract.
    let name = unsafe { name_of(name, state) };
    let compare = ordered_by(State { state, destructor }, compare);
    quiet(null_mut(), || {
        give(rocksdb_comparator_t::of(Comparator::timestamped(name, timestamp_size, compare)))
    })
}

macro_rules! timestamps {
    ($($(#[$doc:meta])* $set:ident $option:literal;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(
            options: *mut rocksdb_readoptions_t,
            timestamp: *const c_char,
            length: usize,
        ) {
            // SAFETY: the contract of the crate.
            unsafe {
                if let Some(options) = options.as_mut() {
                    let timestamp = optional_bytes(timestamp, length);
                    quiet((), || keep_bytes(&mut options.1, $option, timestamp));
                }
            }
        }
    )* };
}

timestamps! {
    /// Sets the timestamp to read as of; null for none.
    rocksdb_readoptions_set_timestamp "timestamp";
    /// Sets the oldest timestamp of the versions that iterators show; null for the newest alone.
    rocksdb_readoptions_set_iter_start_ts "iter_start_ts";
}

/// Sets the oldest timestamp that may be read after the compaction; null for no change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactoptions_set_full_history_ts_low(
    options: *mut rocksdb_compactoptions_t,
    timestamp: *mut c_char,
    length: usize,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(options) = options.as_mut() {
            let timestamp = optional_bytes(timestamp, length);
            quiet((), || keep_bytes(&mut options.1, "full_history_ts_low", timestamp));
        }
    }
}

/// Does what the options of a compaction say of timestamps. Returns the bounds of the compaction
/// as stored keys.
pub(crate) fn before_compaction(
    family: &ColumnFamily,
    options: Option<&rocksdb_compactoptions_t>,
    bounds: [Option<&[u8]>; 2],
) -> sateen::Result<[Option<Vec<u8>>; 2]> {
    let size = family.comparator().timestamp_bytes();
    let low = options.and_then(|options| kept_bytes(&options.1, "full_history_ts_low"));
    if let Some(low) = low {
        timestamped(family)?.raise_history_low(low)?;
    }
    // All versions of both keys.
    let [begin, end] = bounds;
    let with = |key: Option<&[u8]>, byte| key.map(|key| [key, &vec![byte; size]].concat());
    Ok([with(begin, 0xff), with(end, 0)])
}

/// Returns the column family as one with timestamps, or an error.
pub(crate) fn timestamped(family: &ColumnFamily) -> sateen::Result<TimestampedFamily> {
    family.timestamped().ok_or_else(|| {
        let text = format!("the keys of the column family {} have no timestamps", family.name());
        sateen::Error::InvalidArgument(text)
    })
}

/// Returns the timestamp in the options of a read, if there is one.
pub(crate) unsafe fn timestamp_of(options: *const rocksdb_readoptions_t) -> Option<Vec<u8>> {
    // SAFETY: the contract of the crate.
    kept_bytes(&unsafe { options.as_ref() }?.1, "timestamp")
}

/// Returns the timestamps of a read of `family`; `None` if its keys have none.
pub(crate) unsafe fn as_of(
    family: &ColumnFamily,
    options: *const rocksdb_readoptions_t,
) -> sateen::Result<Option<AsOf>> {
    // SAFETY: the contract of the crate.
    let settings = unsafe { options.as_ref() }.map(|options| &options.1);
    let kept = |key| settings.and_then(|settings| kept_bytes(settings, key));
    match (kept("timestamp"), kept("iter_start_ts")) {
        (None, None) => check_untimed(family).map(|()| None),
        (Some(at), from) => timestamped(family).map(|_| Some(AsOf { at, from })),
        (None, Some(_)) => {
            let text = "iter_start_ts is set, and timestamp is not";
            Err(sateen::Error::InvalidArgument(text.into()))
        }
    }
}

/// Returns the value of a key, as of the timestamp in the options if the keys have timestamps.
pub(crate) unsafe fn value(
    family: &ColumnFamily,
    options: *const rocksdb_readoptions_t,
    key: &[u8],
) -> sateen::Result<Option<PinnedSlice>> {
    // SAFETY: the contract of the crate.
    let (plain, as_of) = unsafe { (read_options(options)?, as_of(family, options)?) };
    match as_of {
        None => family.reading(&plain).get_pinned(key),
        Some(_) => Ok(version(family, &plain, as_of, key)?.map(|found| found.value.into())),
    }
}

/// Returns the values of keys of one column family.
pub(crate) unsafe fn values_of(
    family: &ColumnFamily,
    options: *const rocksdb_readoptions_t,
    keys: &[&[u8]],
) -> sateen::Result<Vec<Found>> {
    // SAFETY: the contract of the crate.
    unsafe {
        let (plain, as_of) = (many_options(options)?, as_of(family, options)?);
        Ok(match as_of {
            None => family.reading(&plain).multi_get(keys),
            Some(_) => keys.iter().map(|key| value(family, options, key)).collect(),
        })
    }
}

/// Returns the version of a key that a read sees. `None` for `as_of` is an error.
pub(crate) fn version(
    family: &ColumnFamily,
    options: &ReadOptions,
    as_of: Option<AsOf>,
    key: &[u8],
) -> sateen::Result<Option<Timestamped>> {
    let family = timestamped(family)?;
    let Some(AsOf { at, .. }) = as_of else {
        let text = "the options of the read have no timestamp";
        return Err(sateen::Error::InvalidArgument(text.into()));
    };
    family.get(key, at, options)
}

/// Stores bytes for C, to be freed; null and 0 for none.
pub(crate) unsafe fn leave(found: Option<&[u8]>, at: *mut *mut c_char, length: *mut usize) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(at) = at.as_mut() {
            *at = found.map_or(null_mut(), malloc_copy);
        }
        if let Some(length) = length.as_mut() {
            *length = found.map_or(0, <[u8]>::len);
        }
    }
}

/// Returns the value of a key and its timestamp, both to be freed; null if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_length: usize,
    value_length: *mut usize,
    timestamp: *mut *mut c_char,
    timestamp_length: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    let family = DEFAULT;
    // SAFETY: the contract of the crate.
    unsafe {
        rocksdb_get_cf_with_ts(
            db,
            options,
            family,
            key,
            key_length,
            value_length,
            timestamp,
            timestamp_length,
            errptr,
        )
    }
}

/// Does the same in a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_cf_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    key: *const c_char,
    key_length: usize,
    value_length: *mut usize,
    timestamp: *mut *mut c_char,
    timestamp_length: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        let found = guard(errptr, None, || {
            let family = of(the(db)?, family)?;
            let (plain, as_of) = (read_options(options)?, as_of(&family, options)?);
            version(&family, &plain, as_of, bytes(key, key_length)?)
        });
        let (value, time) = (found.as_ref().map(|it| &*it.value), found.as_ref());
        leave(time.map(|it| &*it.timestamp), timestamp, timestamp_length);
        let mut copy = null_mut();
        leave(value, &raw mut copy, value_length);
        copy
    }
}

/// Returns the values of keys and their timestamps, each to be freed, and the error of each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get_with_ts(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    count: usize,
    keys: *const *const c_char,
    key_lengths: *const usize,
    values: *mut *mut c_char,
    value_lengths: *mut usize,
    timestamps: *mut *mut c_char,
    timestamp_lengths: *mut usize,
    errors: *mut *mut c_char,
) {
    let families = null();
    // SAFETY: the contract of the crate.
    unsafe {
        rocksdb_multi_get_cf_with_ts(
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
            errors,
        );
    }
}

/// Does the same for keys of the column families at their index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get_cf_with_ts(
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
    errors: *mut *mut c_char,
) {
    // SAFETY: the contract of the crate; the lists have `count` members.
    quiet((), || unsafe {
        let keys = byte_strings(count, keys, key_lengths);
        let key_of = |nth: usize| keys.as_ref().map(|keys| keys[nth]).map_err(Clone::clone);
        let snapshot = the(db).ok().map(sateen::Db::snapshot);
        for nth in 0..count {
            let found = (|| {
                let family =
                    if families.is_null() { DEFAULT } else { (*families.add(nth)).cast_mut() };
                let family = of(the(db)?, family)?;
                let (mut plain, as_of) = (read_options(options)?, as_of(&family, options)?);
                plain.snapshot = plain.snapshot.or_else(|| snapshot.clone());
                version(&family, &plain, as_of, key_of(nth)?)
            })();
            *errors.add(nth) = null_mut();
            if let Err(error) = &found {
                set_error(errors.add(nth), &status(error));
            }
            let found = found.ok().flatten();
            let (value, time) = (found.as_ref().map(|it| &*it.value), found.as_ref());
            leave(value, values.add(nth), value_lengths.add(nth));
            leave(time.map(|it| &*it.timestamp), timestamps.add(nth), timestamp_lengths.add(nth));
        }
    });
}

/// Has reads as of older timestamps fail from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_increase_full_history_ts_low(
    db: *mut rocksdb_t,
    family: *mut Family,
    timestamp: *const c_char,
    length: usize,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            timestamped(&of(the(db)?, family)?)?.raise_history_low(bytes(timestamp, length)?)
        });
    }
}

/// Returns the oldest timestamp that may be read, to be freed. It is empty if none was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_full_history_ts_low(
    db: *mut rocksdb_t,
    family: *mut Family,
    length: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        let found = guard(errptr, None, || {
            let family = timestamped(&of(the(db)?, family)?)?;
            Ok(Some(family.history_low(&ReadOptions::default())?.unwrap_or_default()))
        });
        let mut copy = null_mut();
        leave(found.as_deref(), &raw mut copy, length);
        copy
    }
}
