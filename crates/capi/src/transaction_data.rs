//! Reads and writes of a transaction. Reads see its own writes, and below them what the options of
//! the read say; the snapshot of the transaction counts only if these have it.

use std::ffi::{c_char, c_uchar};
use std::ptr::null_mut;

use sateen::{PinnedSlice, TimestampedFamily};

use crate::abi::{ErrPtr, byte_strings, bytes, give, malloc_copy, missing, quiet};
use crate::calls::rocksdb_readoptions_t;
use crate::database::{DEFAULT, of, rocksdb_column_family_handle_t};
use crate::db::rocksdb_pinnableslice_t;
use crate::iter::rocksdb_iterator_t;
use crate::moves::in_order;
use crate::promises::{many_options, read_options};
use crate::reads::leave;
use crate::timestamps::{Found, timestamp_of};
use crate::transactions::{rocksdb_transaction_t, with};

type Family = rocksdb_column_family_handle_t;
type Transaction = rocksdb_transaction_t;
type ReadOptions = rocksdb_readoptions_t;

/// Writes to a column family without timestamps.
macro_rules! plain {
    ($transaction:ident, $family:ident, $act:ident($($argument:expr),*)) => {{
        let family = $transaction.family($family)?;
        $transaction.inner.to(&family).$act($($argument),*)
    }};
}

/// Writes to a column family with timestamps or without.
macro_rules! versioned {
    ($transaction:ident, $family:ident, $act:ident($($argument:expr),*)) => {
        match $transaction.timestamped($family)? {
            Some(timed) => timed.within(&mut $transaction.inner)?.$act($($argument),*),
            None => plain!($transaction, $family, $act($($argument),*)),
        }
    };
}

macro_rules! writes {
    ($(
        $function:ident $of_family:ident ($($argument:ident $length:ident)*) $does:ident $act:ident;
    )*) => { $(
        /// Writes to the default column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            transaction: *mut Transaction,
            $($argument: *const c_char, $length: usize,)*
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the crate.
            unsafe { $of_family(transaction, DEFAULT, $($argument, $length,)* errptr) };
        }

        /// Writes to a column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $of_family(
            transaction: *mut Transaction,
            family: *mut Family,
            $($argument: *const c_char, $length: usize,)*
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the crate.
            unsafe {
                with(transaction, errptr, (), |transaction| {
                    transaction.check()?;
                    $does!(transaction, family, $act($(bytes($argument, $length)?),*))
                });
            }
        }
    )* };
}

writes! {
    rocksdb_transaction_put rocksdb_transaction_put_cf (key key_length value value_length)
        versioned put;
    rocksdb_transaction_merge rocksdb_transaction_merge_cf
        (key key_length operand operand_length) plain merge;
    rocksdb_transaction_delete rocksdb_transaction_delete_cf (key key_length) versioned delete;
}

/// Adds log data: bytes that go to the WAL with the commit and change nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_put_log_data(
    transaction: *mut Transaction,
    blob: *const c_char,
    length: usize,
) {
    // SAFETY: the contract of the crate.
    quiet((), || unsafe {
        let Some(transaction) = transaction.as_mut() else { return };
        let added = bytes(blob, length).and_then(|blob| transaction.inner.put_log_data(blob));
        if let Err(error) = added {
            transaction.spoil(error);
        }
    });
}

/// How a read guards its key.
#[derive(Clone, Copy)]
enum Guards {
    Not,
    Alone,
    Shared,
}

fn guards(exclusive: c_uchar) -> Guards {
    if exclusive == 0 { Guards::Shared } else { Guards::Alone }
}

/// Reads a key, after it was guarded.
unsafe fn get(
    transaction: &mut Transaction,
    family: *mut Family,
    key: &[u8],
    given: *const ReadOptions,
    options: &sateen::ReadOptions,
    guards: Guards,
) -> sateen::Result<Option<Vec<u8>>> {
    transaction.check()?;
    // SAFETY: the contract of the crate.
    let (timed, at) = unsafe { (transaction.timestamped(family)?, timestamp_of(given)) };
    if let Some(timed) = timed {
        return version(transaction, &timed, key, at, options, guards);
    }
    // SAFETY: the contract of the crate.
    let family = unsafe { transaction.family(family)? };
    match guards {
        Guards::Not => {}
        Guards::Alone => transaction.inner.to(&family).guard(key)?,
        Guards::Shared => transaction.inner.to(&family).guard_shared(key)?,
    }
    transaction.inner.reading(&family, options).get(key)
}

/// Reads a key with timestamps, after it was guarded.
fn version(
    transaction: &mut Transaction,
    family: &TimestampedFamily,
    key: &[u8],
    at: Option<Vec<u8>>,
    options: &sateen::ReadOptions,
    guards: Guards,
) -> sateen::Result<Option<Vec<u8>>> {
    let at = match (guards, at) {
        (Guards::Not, Some(at)) => at,
        (Guards::Not, None) => {
            let text = "the options of the read have no timestamp";
            return Err(sateen::Error::InvalidArgument(text.into()));
        }
        (_, at) => transaction.validated_at(at)?,
    };
    let mut within = family.within(&mut transaction.inner)?;
    match guards {
        Guards::Not => {}
        Guards::Alone => within.guard(key, &at, true)?,
        Guards::Shared => within.guard(key, &at, false)?,
    }
    Ok(within.get(key, &at, options)?.map(|found| found.value))
}

macro_rules! gets {
    ($($function:ident $of_family:ident $pinned:ident $pinned_of_family:ident
        ($($exclusive:ident)?) $guards:expr;)*) => { $(
        /// Returns the value of a key, to be freed; null if the key does not exist.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            transaction: *mut Transaction,
            options: *const ReadOptions,
            key: *const c_char,
            key_length: usize,
            value_length: *mut usize,
            $($exclusive: c_uchar,)?
            errptr: ErrPtr,
        ) -> *mut c_char {
            let family = DEFAULT;
            // SAFETY: the contract of the crate.
            unsafe {
                $of_family(transaction, options, family, key, key_length, value_length,
                    $($exclusive,)? errptr)
            }
        }

        /// Does the same in a column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $of_family(
            transaction: *mut Transaction,
            options: *const ReadOptions,
            family: *mut Family,
            key: *const c_char,
            key_length: usize,
            value_length: *mut usize,
            $($exclusive: c_uchar,)?
            errptr: ErrPtr,
        ) -> *mut c_char {
            // SAFETY: the contract of the crate.
            unsafe {
                let found = with(transaction, errptr, None, |transaction| {
                    let plain = read_options(options)?;
                    let key = bytes(key, key_length)?;
                    get(transaction, family, key, options, &plain, $guards)
                });
                if let Some(length) = value_length.as_mut() {
                    *length = found.as_ref().map_or(0, Vec::len);
                }
                found.map_or(null_mut(), |value| malloc_copy(&value))
            }
        }

        /// Returns the value of a key in a handle; null if the key does not exist.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pinned(
            transaction: *mut Transaction,
            options: *const ReadOptions,
            key: *const c_char,
            key_length: usize,
            $($exclusive: c_uchar,)?
            errptr: ErrPtr,
        ) -> *mut rocksdb_pinnableslice_t {
            let family = DEFAULT;
            // SAFETY: the contract of the crate.
            unsafe {
                $pinned_of_family(transaction, options, family, key, key_length,
                    $($exclusive,)? errptr)
            }
        }

        /// Does the same in a column family.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pinned_of_family(
            transaction: *mut Transaction,
            options: *const ReadOptions,
            family: *mut Family,
            key: *const c_char,
            key_length: usize,
            $($exclusive: c_uchar,)?
            errptr: ErrPtr,
        ) -> *mut rocksdb_pinnableslice_t {
            // SAFETY: the contract of the crate.
            unsafe {
                let found = with(transaction, errptr, None, |transaction| {
                    let plain = read_options(options)?;
                    let key = bytes(key, key_length)?;
                    get(transaction, family, key, options, &plain, $guards)
                });
                found.map_or(null_mut(), |value| give(rocksdb_pinnableslice_t(value.into())))
            }
        }
    )* };
}

gets! {
    rocksdb_transaction_get rocksdb_transaction_get_cf
        rocksdb_transaction_get_pinned rocksdb_transaction_get_pinned_cf () Guards::Not;
    rocksdb_transaction_get_for_update rocksdb_transaction_get_for_update_cf
        rocksdb_transaction_get_pinned_for_update rocksdb_transaction_get_pinned_for_update_cf
        (exclusive) guards(exclusive);
}

/// The keys of a read of many, and where their values go.
struct Many {
    count: usize,
    keys: *const *const c_char,
    key_lengths: *const usize,
    values: *mut *mut c_char,
    value_lengths: *mut usize,
    errors: *mut *mut c_char,
}

impl Many {
    /// Reads all keys, each in its column family, at one moment.
    unsafe fn get(
        &self,
        transaction: *mut Transaction,
        options: *const ReadOptions,
        families: *const *const Family,
        guards: Guards,
    ) {
        // SAFETY: the contract of the crate.
        quiet((), || unsafe {
            let found = match self.found(transaction, options, families, guards) {
                Ok(found) => found,
                Err(error) => (0..self.count).map(|_| Err(error.clone())).collect(),
            };
            leave(found, self.errors, |nth, value| {
                *self.value_lengths.add(nth) = value.as_ref().map_or(0, |value| value.len());
                *self.values.add(nth) = value.map_or(null_mut(), |value| malloc_copy(&value));
            });
        });
    }

    unsafe fn found(
        &self,
        transaction: *mut Transaction,
        given: *const ReadOptions,
        families: *const *const Family,
        guards: Guards,
    ) -> sateen::Result<Vec<Found>> {
        // SAFETY: the contract of the crate.
        unsafe {
            let transaction = transaction.as_mut().ok_or_else(|| missing("the transaction"))?;
            let mut options = many_options(given)?;
            if matches!(guards, Guards::Not) {
                options.snapshot.get_or_insert_with(|| transaction.db().snapshot());
            }
            let keys = byte_strings(self.count, self.keys, self.key_lengths)?;
            let found = keys.iter().enumerate().map(|(nth, key)| {
                let family =
                    if families.is_null() { DEFAULT } else { (*families.add(nth)).cast_mut() };
                let value = get(transaction, family, key, given, &options, guards)?;
                Ok(value.map(PinnedSlice::from))
            });
            Ok(found.collect())
        }
    }
}

macro_rules! many {
    ($($function:ident $of_family:ident $guards:expr;)*) => { $(
        /// Returns the values of keys, each to be freed, and the error of each.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            transaction: *mut Transaction,
            options: *const ReadOptions,
            count: usize,
            keys: *const *const c_char,
            key_lengths: *const usize,
            values: *mut *mut c_char,
            value_lengths: *mut usize,
            errors: *mut *mut c_char,
        ) {
            let many = Many { count, keys, key_lengths, values, value_lengths, errors };
            // SAFETY: the contract of the crate.
            unsafe { many.get(transaction, options, std::ptr::null(), $guards) };
        }

        /// Does the same for keys of the column families at their index.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $of_family(
            transaction: *mut Transaction,
            options: *const ReadOptions,
            families: *const *const Family,
            count: usize,
            keys: *const *const c_char,
            key_lengths: *const usize,
            values: *mut *mut c_char,
            value_lengths: *mut usize,
            errors: *mut *mut c_char,
        ) {
            let many = Many { count, keys, key_lengths, values, value_lengths, errors };
            // SAFETY: the contract of the crate.
            unsafe { many.get(transaction, options, families, $guards) };
        }
    )* };
}

many! {
    rocksdb_transaction_multi_get rocksdb_transaction_multi_get_cf Guards::Not;
    rocksdb_transaction_multi_get_for_update rocksdb_transaction_multi_get_for_update_cf
        Guards::Alone;
}

/// Makes an iterator over the default column family and the writes of the transaction so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_create_iterator(
    transaction: *mut Transaction,
    options: *const ReadOptions,
) -> *mut rocksdb_iterator_t {
    // SAFETY: the contract of the crate.
    unsafe { rocksdb_transaction_create_iterator_cf(transaction, options, DEFAULT) }
}

/// Makes an iterator over a column family and the writes of the transaction so far. The iterator
/// itself reports an error of making it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_create_iterator_cf(
    transaction: *mut Transaction,
    options: *const ReadOptions,
    family: *mut Family,
) -> *mut rocksdb_iterator_t {
    // SAFETY: the contract of the crate.
    quiet(null_mut(), || unsafe {
        let Some(transaction) = transaction.as_ref() else { return null_mut() };
        // An iterator without a column family only has an error.
        let plain = of(transaction.db(), family);
        let plain = plain.unwrap_or_else(|_| transaction.db().default_column_family());
        let cursor = transaction.check().and_then(|()| read_options(options)).and_then(|options| {
            let family = transaction.family(family)?;
            transaction.inner.reading(&family, in_order(&family, &options)).cursor()
        });
        give(rocksdb_iterator_t::above(cursor, transaction.db(), &plain))
    })
}
