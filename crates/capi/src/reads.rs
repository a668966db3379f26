//! Reads of many keys, reads without a copy or into the caller's memory, and several iterators at
//! once.

use std::ffi::{c_char, c_int, c_uchar};
use std::ptr::null_mut;

use sateen::{ColumnFamily, Db, PinnedSlice, ReadOptions};

use crate::abi::{
    ErrPtr, Slice, byte_strings, bytes, free, give, guard, lend, malloc_copy, missing, quiet,
    status,
};
use crate::calls::rocksdb_readoptions_t;
use crate::database::{DEFAULT, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::db::rocksdb_pinnableslice_t;
use crate::promises::{many_options, read_options};
use crate::timestamps::{Found, as_of, value, values_of};

type Family = rocksdb_column_family_handle_t;

/// Returns the values of keys of several column families at one moment.
fn find(db: &Db, families: &[ColumnFamily], keys: &[&[u8]], options: &ReadOptions) -> Vec<Found> {
    let mut options = options.clone();
    let several = families.windows(2).any(|pair| pair[0].id() != pair[1].id());
    if several && options.snapshot.is_none() {
        options.snapshot = Some(db.snapshot());
    }
    let mut answers: Vec<Found> = keys.iter().map(|_| Ok(None)).collect();
    let mut left: Vec<usize> = (0..keys.len()).collect();
    while let Some(first) = left.first() {
        let family = &families[*first];
        let (of_it, others) =
            left.iter().partition::<Vec<usize>, _>(|at| families[**at].id() == family.id());
        let its_keys: Vec<&[u8]> = of_it.iter().map(|at| keys[*at]).collect();
        let found = family.reading(&options).multi_get(&its_keys);
        for (at, answer) in of_it.into_iter().zip(found) {
            answers[at] = answer;
        }
        left = others;
    }
    answers
}

/// Stores the answers. `value` converts each value.
pub(crate) unsafe fn leave(
    found: Vec<Found>,
    errors: *mut *mut c_char,
    mut value: impl FnMut(usize, Option<PinnedSlice>),
) {
    for (nth, answer) in found.into_iter().enumerate() {
        let error = answer.as_ref().err().map(status);
        // SAFETY: the caller has room for as many errors as keys.
        unsafe {
            *errors.add(nth) =
                error.map_or(null_mut(), |text| malloc_copy(sateen::shown(&text).as_bytes()));
        }
        value(nth, answer.ok().flatten());
    }
}

/// Returns the answers of `act` for `count` keys, or its error for each of them.
unsafe fn answers(
    db: *mut rocksdb_t,
    count: usize,
    act: impl FnOnce(&Db) -> sateen::Result<Vec<Found>>,
) -> Vec<Found> {
    // SAFETY: the contract of the module.
    match unsafe { the(db) }.and_then(act) {
        Ok(found) => found,
        Err(error) => (0..count).map(|_| Err(error.clone())).collect(),
    }
}

/// Returns the keys of an array of slices.
unsafe fn of_slices<'a>(count: usize, keys: *const Slice) -> sateen::Result<Vec<&'a [u8]>> {
    if count > 0 && keys.is_null() {
        return Err(missing("the list of keys"));
    }
    // SAFETY: the contract of the module.
    (0..count)
        .map(|nth| unsafe { *keys.add(nth) })
        .map(|it| unsafe { bytes(it.data, it.size) })
        .collect()
}

/// Returns the values of keys, each in the column family at its index, each to be freed, and the
/// error of each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    families: *const *const Family,
    count: usize,
    keys: *const *const c_char,
    key_lengths: *const usize,
    values: *mut *mut c_char,
    value_lengths: *mut usize,
    errors: *mut *mut c_char,
) {
    // SAFETY: the contract of the module.
    quiet((), || unsafe {
        let found = answers(db, count, |db| {
            let families = (0..count).map(|nth| of(db, (*families.add(nth)).cast_mut()));
            let families = families.collect::<sateen::Result<Vec<_>>>()?;
            let keys = byte_strings(count, keys, key_lengths)?;
            let plain = many_options(options)?;
            if families.iter().any(|family| family.comparator().timestamp_bytes() > 0) {
                let each = families.iter().zip(keys);
                return Ok(each.map(|(family, key)| value(family, options, key)).collect());
            }
            families.iter().try_for_each(|family| as_of(family, options).map(drop))?;
            Ok(find(db, &families, &keys, &plain))
        });
        leave(found, errors, |nth, value| {
            *value_lengths.add(nth) = value.as_ref().map_or(0, |value| value.len());
            *values.add(nth) = value.map_or(null_mut(), |value| malloc_copy(&value));
        });
    });
}

/// Returns the values of keys of one column family without copies; null for missing keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_batched_multi_get_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    count: usize,
    keys: *const *const c_char,
    key_lengths: *const usize,
    values: *mut *mut rocksdb_pinnableslice_t,
    errors: *mut *mut c_char,
    _sorted_input: bool,
) {
    // SAFETY: the contract of the module.
    quiet((), || unsafe {
        let found = answers(db, count, |db| {
            let keys = byte_strings(count, keys, key_lengths)?;
            values_of(&of(db, family)?, options, &keys)
        });
        leave(found, errors, |nth, value| *values.add(nth) = pinned(value));
    });
}

/// Does the same for keys that are slices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_batched_multi_get_cf_slice(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    count: usize,
    keys: *const Slice,
    values: *mut *mut rocksdb_pinnableslice_t,
    errors: *mut *mut c_char,
    _sorted_input: bool,
) {
    // SAFETY: the contract of the module.
    quiet((), || unsafe {
        let found = answers(db, count, |db| {
            let keys = of_slices(count, keys)?;
            values_of(&of(db, family)?, options, &keys)
        });
        leave(found, errors, |nth, value| *values.add(nth) = pinned(value));
    });
}

/// The answers for many keys, whose values stay in memory until it is freed.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_pinnable_multi_get_t(Vec<Outcome>);

/// The answer for a key.
enum Outcome {
    NotFound,
    Found(PinnedSlice),
    /// A text that ends with a zero.
    Failed(Vec<u8>),
}

// What `rocksdb_pinnable_multi_get_result` returns.
const NOT_FOUND: c_int = 0;
const FOUND: c_int = 1;
const FAILED: c_int = 2;
const OUT_OF_BOUNDS: c_int = 3;

/// Returns the answers for keys of one column family, without copies of the values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_batched_multi_get_pinned_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    count: usize,
    keys: *const Slice,
    _sorted_input: c_uchar,
) -> *mut rocksdb_pinnable_multi_get_t {
    // SAFETY: the contract of the module.
    quiet(null_mut(), || unsafe {
        let found = answers(db, count, |db| {
            let keys = of_slices(count, keys)?;
            values_of(&of(db, family)?, options, &keys)
        });
        let outcomes = found.into_iter().map(|answer| match answer {
            Ok(None) => Outcome::NotFound,
            Ok(Some(value)) => Outcome::Found(value),
            Err(error) => {
                let mut text = sateen::shown(&status(&error)).as_bytes().to_vec();
                text.push(0);
                Outcome::Failed(text)
            }
        });
        give(rocksdb_pinnable_multi_get_t(outcomes.collect()))
    })
}

/// Returns the number of keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnable_multi_get_count(
    answers: *const rocksdb_pinnable_multi_get_t,
) -> usize {
    // SAFETY: the contract of the module.
    unsafe { answers.as_ref() }.map_or(0, |answers| answers.0.len())
}

/// Stores the value of a key, or its error, and returns which of the two: 0 for a missing key, 1
/// for a value, 2 for an error, 3 behind the last key. Both are valid until the answers are freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnable_multi_get_result(
    answers: *const rocksdb_pinnable_multi_get_t,
    index: usize,
    value: *mut *const c_char,
    value_length: *mut usize,
    error: *mut *const c_char,
    error_length: *mut usize,
) -> c_int {
    // SAFETY: the contract of the module.
    unsafe {
        let outcome = answers.as_ref().and_then(|answers| answers.0.get(index));
        let (found, failed) = match outcome {
            Some(Outcome::Found(value)) => (Some(&**value), None),
            Some(Outcome::Failed(text)) => (None, text.split_last().map(|(_, text)| text)),
            Some(Outcome::NotFound) | None => (None, None),
        };
        for (place, length, bytes) in [(value, value_length, found), (error, error_length, failed)]
        {
            let text = lend(bytes, length);
            if let Some(place) = place.as_mut() {
                *place = text;
            }
        }
        match outcome {
            Some(Outcome::NotFound) => NOT_FOUND,
            Some(Outcome::Found(_)) => FOUND,
            Some(Outcome::Failed(_)) => FAILED,
            None => OUT_OF_BOUNDS,
        }
    }
}

/// Frees the answers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnable_multi_get_destroy(
    answers: *mut rocksdb_pinnable_multi_get_t,
) {
    // SAFETY: the contract of the module.
    unsafe { free(answers) };
}

fn pinned(value: Option<PinnedSlice>) -> *mut rocksdb_pinnableslice_t {
    value.map_or(null_mut(), |value| give(rocksdb_pinnableslice_t(value)))
}

/// A value that stays in memory until this handle is freed.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_pinnable_handle_t(PinnedSlice);

/// Returns the value of a key without a copy; null if the key does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_pinned_v2(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_length: usize,
    errptr: ErrPtr,
) -> *mut rocksdb_pinnable_handle_t {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_get_pinned_cf_v2(db, options, DEFAULT, key, key_length, errptr) }
}

/// Returns the value of a key in a column family without a copy; null if the key does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_pinned_cf_v2(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    key: *const c_char,
    key_length: usize,
    errptr: ErrPtr,
) -> *mut rocksdb_pinnable_handle_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, null_mut(), || {
            let db = the(db)?;
            let key = bytes(key, key_length)?;
            let found = value(&of(db, family)?, options, key)?;
            Ok(found.map_or(null_mut(), |value| give(rocksdb_pinnable_handle_t(value))))
        })
    }
}

/// Returns the bytes of a value; null and 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnable_handle_get_value(
    value: *const rocksdb_pinnable_handle_t,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the module.
    unsafe {
        let value = value.as_ref().map(|value| &*value.0);
        lend(value, length)
    }
}

/// Frees a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnable_handle_destroy(value: *mut rocksdb_pinnable_handle_t) {
    // SAFETY: the contract of the module.
    unsafe { free(value) };
}

/// Copies the value of a key to `buffer` if it fits, and returns 1 then. Stores the length of the
/// value and whether the key exists in any case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_into_buffer(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    key: *const c_char,
    key_length: usize,
    buffer: *mut c_char,
    room: usize,
    value_length: *mut usize,
    found: *mut c_uchar,
    errptr: ErrPtr,
) -> c_uchar {
    let family = DEFAULT;
    // SAFETY: the contract of the module.
    unsafe {
        rocksdb_get_into_buffer_cf(
            db,
            options,
            family,
            key,
            key_length,
            buffer,
            room,
            value_length,
            found,
            errptr,
        )
    }
}

/// Does the same in a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_into_buffer_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut Family,
    key: *const c_char,
    key_length: usize,
    buffer: *mut c_char,
    room: usize,
    value_length: *mut usize,
    found: *mut c_uchar,
    errptr: ErrPtr,
) -> c_uchar {
    // SAFETY: the contract of the module.
    unsafe {
        let value = guard(errptr, None, || {
            let db = the(db)?;
            let key = bytes(key, key_length)?;
            value(&of(db, family)?, options, key)
        });
        if let Some(found) = found.as_mut() {
            *found = c_uchar::from(value.is_some());
        }
        let value = value.as_deref();
        if let Some(length) = value_length.as_mut() {
            *length = value.map_or(0, <[u8]>::len);
        }
        match value {
            Some(value) if value.len() <= room && !buffer.is_null() => {
                buffer.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), value.len());
                1
            }
            _ => 0,
        }
    }
}

/// Makes an iterator over each of several column families, all at one moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_iterators(
    db: *mut rocksdb_t,
    options: *mut rocksdb_readoptions_t,
    families: *mut *mut Family,
    iterators: *mut *mut crate::iter::rocksdb_iterator_t,
    count: usize,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let db = the(db)?;
            if count > 0 && (families.is_null() || iterators.is_null()) {
                return Err(missing("the list of column families or that of iterators"));
            }
            let given = options.cast_const();
            let mut options = read_options(given)?;
            options.snapshot.get_or_insert_with(|| db.snapshot());
            let made = (0..count).map(|nth| {
                let family = of(db, *families.add(nth))?;
                let as_of = crate::timestamps::as_of(&family, given)?;
                crate::iter::rocksdb_iterator_t::open(db, &family, &options, as_of)
            });
            let made = made.collect::<sateen::Result<Vec<_>>>()?;
            for (nth, iterator) in made.into_iter().enumerate() {
                *iterators.add(nth) = give(iterator);
            }
            Ok(())
        });
    }
}
