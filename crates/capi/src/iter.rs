//! Iterators.

use std::ffi::{c_char, c_uchar};
use std::ptr::null;

use sateen::{ColumnFamily, Cursor, Db, Error, ReadOptions, WriteBatchWithIndex};

use crate::abi::{
    ErrPtr, Slice, bytes, free, give, guard, lend, missing, quiet, set_error, status,
};
use crate::calls::rocksdb_readoptions_t;
use crate::database::{DEFAULT, of, rocksdb_column_family_handle_t, rocksdb_t};
use crate::moves::{Moves, in_order};
use crate::promises::read_options;
use crate::settings::Setting;
use crate::timestamps::{AsOf, as_of};

/// An iterator, or the error of making it, and the arguments that it was made with.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_iterator_t {
    iter: sateen::Result<Moves>,
    db: Db,
    family: ColumnFamily,
    options: ReadOptions,
    /// The timestamps that it reads as of, if keys have any.
    as_of: Option<AsOf>,
    /// For a tailing iterator, the newest sequence number when it was made or renewed.
    tailing: Option<u64>,
    /// True if it shows the writes of a batch or transaction, too.
    has_batch: bool,
}

impl rocksdb_iterator_t {
    /// Opens the iterator.
    pub(crate) fn open(
        db: &Db,
        family: &ColumnFamily,
        options: &ReadOptions,
        as_of: Option<AsOf>,
    ) -> sateen::Result<rocksdb_iterator_t> {
        let iter = Ok(Moves::new(family, options, as_of.as_ref())?);
        let (db, family, options) = (db.clone(), family.clone(), options.clone());
        let (tailing, has_batch) = (None, false);
        Ok(rocksdb_iterator_t { iter, db, family, options, as_of, tailing, has_batch })
    }

    /// Returns the database that it reads.
    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// Makes an iterator of a cursor that shows the writes of a batch or transaction, too.
    pub(crate) fn above(
        iter: sateen::Result<Cursor>,
        db: &Db,
        family: &ColumnFamily,
    ) -> rocksdb_iterator_t {
        let (db, family, options) = (db.clone(), family.clone(), ReadOptions::default());
        let (iter, as_of, tailing, has_batch) = (iter.map(Moves::Plain), None, None, true);
        rocksdb_iterator_t { iter, db, family, options, as_of, tailing, has_batch }
    }

    /// Returns the iterator with the writes of `batch` above it. It reads anew, by its options and
    /// within the bounds of `bounds`.
    pub(crate) fn below(
        self,
        batch: sateen::Result<&WriteBatchWithIndex>,
        family: sateen::Result<Option<ColumnFamily>>,
        bounds: sateen::Result<Option<ReadOptions>>,
    ) -> rocksdb_iterator_t {
        let (family, refused) = match family {
            Ok(family) => (family.unwrap_or(self.family), None),
            Err(error) => (self.family, Some(error)),
        };
        let cursor = self.iter.and_then(|_| {
            refused.map_or(Ok(()), Err)?;
            crate::database::check_untimed(&family)?;
            let mut options = self.options;
            if let Some(bounds) = bounds? {
                options.lower_bound = bounds.lower_bound.or(options.lower_bound);
                options.upper_bound = bounds.upper_bound.or(options.upper_bound);
            }
            batch?.reading(&family, in_order(&family, &options)).cursor()
        });
        rocksdb_iterator_t::above(cursor, &self.db, &family)
    }

    /// Renews a tailing iterator if something was written since. It has no position then.
    fn catch_up(&mut self) -> bool {
        let now = self.db.latest_sequence_number();
        match &mut self.tailing {
            Some(seen) if *seen != now => *seen = now,
            _ => return false,
        }
        self.iter = Moves::new(&self.family, &self.options, self.as_of.as_ref());
        true
    }

    /// Moves to the next key, including keys that were written since.
    #[inline]
    fn next(&mut self) {
        if self.tailing.is_some() {
            self.next_of_tail();
        } else if let Ok(iter) = &mut self.iter {
            iter.next();
        }
    }

    #[cold]
    fn next_of_tail(&mut self) {
        let Ok(iter) = &mut self.iter else { return };
        if !iter.valid() {
            return;
        }
        let key = iter.key().to_vec();
        let anew = self.catch_up();
        let Ok(iter) = &mut self.iter else { return };
        if anew {
            iter.seek(&key);
        }
        if !anew || iter.valid() && *iter.key() == *key {
            iter.next();
        }
    }
}

/// Makes an iterator over the default column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_iterator(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    // SAFETY: the contract of the module.
    unsafe { rocksdb_create_iterator_cf(db, options, DEFAULT) }
}

/// Makes an iterator over a column family. The iterator itself reports an error of making it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_iterator_cf(
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    family: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_iterator_t {
    quiet(std::ptr::null_mut(), || {
        // SAFETY: the contract of the module.
        let (db, options) = unsafe { (db.as_ref(), options.as_ref()) };
        let Some(db) = db else { return std::ptr::null_mut() };
        let tailing = options.and_then(|options| bool::get(&options.1, "tailing"));
        // SAFETY: the contract of the module.
        let given = options.map_or(null(), std::ptr::from_ref);
        // SAFETY: the contract of the module.
        let checked = unsafe { read_options(given) };
        let options = checked.as_ref().cloned().unwrap_or_default();
        let tailing = tailing.unwrap_or(false) && options.snapshot.is_none();
        let tailing = tailing.then(|| db.db.latest_sequence_number());
        // SAFETY: the contract of the module.
        let found = unsafe { of(&db.db, family) };
        // An iterator without a column family only has an error.
        let family = found.clone().unwrap_or_else(|_| db.db.default_column_family());
        // SAFETY: the contract of the module.
        let as_of = checked.and(found).and_then(|family| unsafe { as_of(&family, given) });
        let iter = as_of.clone().and_then(|as_of| Moves::new(&family, &options, as_of.as_ref()));
        let (db, as_of, has_batch) = (db.db.clone(), as_of.ok().flatten(), false);
        give(rocksdb_iterator_t { iter, db, family, options, as_of, tailing, has_batch })
    })
}

/// Frees an iterator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_destroy(iter: *mut rocksdb_iterator_t) {
    // SAFETY: the contract of the module.
    unsafe { free(iter) };
}

/// Calls `act` with the iterator, if the handle is not null.
unsafe fn with<T>(
    iter: *mut rocksdb_iterator_t,
    default: T,
    act: impl FnOnce(&mut Moves) -> T,
) -> T {
    // SAFETY: the contract of the module.
    match unsafe { iter.as_mut() }.map(|iter| &mut iter.iter) {
        Some(Ok(iter)) => quiet(default, || act(iter)),
        _ => default,
    }
}

/// Does the same with an act that can fail. The iterator has the error then, and no position, until
/// it is made anew.
unsafe fn with_result(
    iter: *mut rocksdb_iterator_t,
    act: impl FnOnce(&mut Moves) -> sateen::Result<()>,
) {
    // SAFETY: the contract of the module.
    let done = unsafe { with(iter, Ok(()), act) };
    // SAFETY: the contract of the module.
    if let (Err(error), Some(iter)) = (done, unsafe { iter.as_mut() }) {
        iter.iter = Err(error);
    }
}

/// Returns 1 if the iterator is at a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_valid(iter: *const rocksdb_iterator_t) -> c_uchar {
    // SAFETY: the contract of the module.
    unsafe { with(iter.cast_mut(), 0, |iter| c_uchar::from(iter.valid())) }
}

macro_rules! moves {
    ($($(#[$doc:meta])* $function:ident($($key:ident)?) $method:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            iter: *mut rocksdb_iterator_t
            $(, $key: *const c_char, length: usize)?
        ) {
            // SAFETY: the contract of the module.
            unsafe {
                if let Some(iter) = iter.as_mut() {
                    quiet(false, || iter.catch_up());
                }
                with_result(iter, |iter| {
                    iter.$method($(bytes($key, length)?)?);
                    Ok(())
                });
            }
        }
    )* };
}

moves! {
    /// Moves to the first key.
    rocksdb_iter_seek_to_first() seek_to_first;
    /// Moves to the last key.
    rocksdb_iter_seek_to_last() seek_to_last;
    /// Moves to the first key at or after `key`.
    rocksdb_iter_seek(key) seek;
    /// Moves to the last key at or before `key`.
    rocksdb_iter_seek_for_prev(key) seek_for_prev;
}

/// Moves to the next key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_next(iter: *mut rocksdb_iterator_t) {
    // SAFETY: the contract of the module.
    if let Some(iter) = unsafe { iter.as_mut() } {
        quiet((), || iter.next());
    }
}

/// Moves to the previous key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_prev(iter: *mut rocksdb_iterator_t) {
    // SAFETY: the contract of the module.
    unsafe { with(iter, (), Moves::prev) };
}

/// Returns the bytes that `of` takes from the iterator, and their length.
unsafe fn shown(
    iter: *const rocksdb_iterator_t,
    length: *mut usize,
    of: impl FnOnce(&Moves) -> &[u8],
) -> *const c_char {
    // SAFETY: the contract of the module.
    unsafe {
        let none = || lend(None, length);
        with(iter.cast_mut(), None, |iter| Some(lend(Some(of(iter)), length))).unwrap_or_else(none)
    }
}

/// Returns the key, valid until the next move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_key(
    iter: *const rocksdb_iterator_t,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the module.
    unsafe { shown(iter, length, Moves::key) }
}

/// Returns the value, valid until the next move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_value(
    iter: *const rocksdb_iterator_t,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the module.
    unsafe { shown(iter, length, Moves::value) }
}

/// Reports the error that made the iterator invalid, if there is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_get_error(iter: *const rocksdb_iterator_t, errptr: ErrPtr) {
    // SAFETY: the contract of the module.
    let error = match unsafe { iter.as_ref() }.map(|iter| &iter.iter) {
        Some(Ok(iter)) => iter.status().err(),
        Some(Err(error)) => Some(error.clone()),
        None => None,
    };
    if let Some(error) = error {
        // SAFETY: the contract of the module.
        unsafe { set_error(errptr, &status(&error)) };
    }
}

/// Returns the key as a slice, valid until the next move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_key_slice(iter: *const rocksdb_iterator_t) -> Slice {
    let mut size = 0;
    // SAFETY: the contract of the module.
    let data = unsafe { rocksdb_iter_key(iter, &raw mut size) };
    Slice { data, size }
}

/// Returns the value as a slice, valid until the next move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_value_slice(iter: *const rocksdb_iterator_t) -> Slice {
    let mut size = 0;
    // SAFETY: the contract of the module.
    let data = unsafe { rocksdb_iter_value(iter, &raw mut size) };
    Slice { data, size }
}

/// Renews the iterator on the current state, even if it was made with a snapshot. It has no
/// position then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_refresh(iter: *const rocksdb_iterator_t, errptr: ErrPtr) {
    // SAFETY: the contract of the module; who calls this has the iterator for itself.
    unsafe {
        guard(errptr, (), || {
            let iter = iter.cast_mut().as_mut().ok_or_else(|| missing("the iterator"))?;
            if iter.has_batch {
                let text = "an iterator over the writes of a batch cannot be refreshed";
                return Err(Error::InvalidArgument(text.into()));
            }
            iter.options.snapshot = None;
            iter.iter = Ok(Moves::new(&iter.family, &iter.options, iter.as_of.as_ref())?);
            Ok(())
        });
    }
}

/// Returns the timestamp of the current key, which is empty if keys have none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_timestamp(
    iter: *const rocksdb_iterator_t,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        if rocksdb_iter_valid(iter) == 0 {
            return lend(None, length);
        }
        shown(iter, length, Moves::timestamp)
    }
}

/// Returns the timestamp as a slice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_timestamp_slice(iter: *const rocksdb_iterator_t) -> Slice {
    let mut size = 0;
    // SAFETY: the contract of the crate.
    let data = unsafe { rocksdb_iter_timestamp(iter, &raw mut size) };
    Slice { data, size }
}
