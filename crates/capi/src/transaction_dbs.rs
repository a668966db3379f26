//! Databases with transactions: pessimistic ones (`rocksdb_transactiondb_…`), whose writes outside
//! of transactions take locks, too, and optimistic ones. All that a database without transactions
//! has as well is done by its functions.

use std::ffi::{c_char, c_int, c_uchar};
use std::ptr::null_mut;

use sateen::WriteBatch;

use crate::abi::{ErrPtr, bytes, free, give, guard, missing};
use crate::batch::rocksdb_writebatch_t;
use crate::calls::{
    rocksdb_create_snapshot, rocksdb_flushoptions_t, rocksdb_readoptions_t,
    rocksdb_release_snapshot, rocksdb_snapshot_t, rocksdb_writeoptions_t,
};
use crate::database::{DEFAULT, check_untimed, of, rocksdb_column_family_handle_t, rocksdb_t};
use crate::db::{
    close_handle, open_default, rocksdb_get, rocksdb_get_cf, rocksdb_get_pinned,
    rocksdb_get_pinned_cf, rocksdb_multi_get, rocksdb_pinnableslice_t, rocksdb_write,
    write_options,
};
use crate::families::{open_all, rocksdb_create_column_family, wanted};
use crate::handles::Graveyard;
use crate::iter::{rocksdb_create_iterator, rocksdb_create_iterator_cf, rocksdb_iterator_t};
use crate::odd_options::rocksdb_flushwaloptions_t;
use crate::options::rocksdb_options_t;
use crate::promises::promised;
use crate::reads::rocksdb_multi_get_cf;
use crate::transaction_options::{LockTimeouts, rocksdb_transactiondb_options_t};
use crate::upkeep::{
    rocksdb_checkpoint_object_create, rocksdb_checkpoint_t, rocksdb_flush, rocksdb_flush_cf,
    rocksdb_flush_cfs, rocksdb_flush_wal, rocksdb_flush_wal_with_options, rocksdb_property_int,
    rocksdb_property_value,
};

type Family = rocksdb_column_family_handle_t;

/// A database with pessimistic transactions.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_transactiondb_t {
    pub(crate) base: rocksdb_t,
    pub(crate) timeouts: LockTimeouts,
}

/// A database with optimistic transactions.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_optimistictransactiondb_t {
    pub(crate) base: rocksdb_t,
}

/// Options of a database with optimistic transactions. None has an effect: the keys are always
/// validated together, outside of the commit queue.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_optimistictransactiondb_options_t(crate::settings::Settings);

crate::settings::keeps!(rocksdb_optimistictransactiondb_options_t: 0);
crate::settings::made!(rocksdb_optimistictransactiondb_options_t:
    rocksdb_optimistictransactiondb_options_create,
    rocksdb_optimistictransactiondb_options_destroy);

/// Opens a database that has the default column family alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transactiondb_open(
    options: *const rocksdb_options_t,
    transaction_options: *const rocksdb_transactiondb_options_t,
    path: *const c_char,
    errptr: ErrPtr,
) -> *mut rocksdb_transactiondb_t {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            let timeouts = LockTimeouts::of(transaction_options)?;
            let base = rocksdb_t::of_opened(open_default(options, path)?, options);
            Ok(give(rocksdb_transactiondb_t { base, timeouts }))
        })
    }
}

/// Opens a database and returns handles of its column families, all of which must be named.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transactiondb_open_column_families(
    options: *const rocksdb_options_t,
    transaction_options: *const rocksdb_transactiondb_options_t,
    path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const rocksdb_options_t,
    handles: *mut *mut Family,
    errptr: ErrPtr,
) -> *mut rocksdb_transactiondb_t {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            let timeouts = LockTimeouts::of(transaction_options)?;
            let base = open_families(options, path, count, names, family_options, handles)?;
            Ok(give(rocksdb_transactiondb_t { base, timeouts }))
        })
    }
}

unsafe fn open_families(
    options: *const rocksdb_options_t,
    path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const rocksdb_options_t,
    handles: *mut *mut Family,
) -> sateen::Result<rocksdb_t> {
    // SAFETY: the contract of the crate.
    unsafe {
        let check = |options| promised(options);
        let wanted = wanted(count, names, family_options, check)?;
        open_all(options, path, wanted, handles, None)
    }
}

/// Opens a database for optimistic transactions that has the default column family alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_open(
    options: *const rocksdb_options_t,
    path: *const c_char,
    errptr: ErrPtr,
) -> *mut rocksdb_optimistictransactiondb_t {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            let base = rocksdb_t::of_opened(open_default(options, path)?, options);
            Ok(give(rocksdb_optimistictransactiondb_t { base }))
        })
    }
}

/// Does the same. The options of transactions have no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_open_with_otxn_db_options(
    options: *const rocksdb_options_t,
    _transaction_options: *const rocksdb_optimistictransactiondb_options_t,
    path: *const c_char,
    errptr: ErrPtr,
) -> *mut rocksdb_optimistictransactiondb_t {
    // SAFETY: the contract of the crate.
    unsafe { rocksdb_optimistictransactiondb_open(options, path, errptr) }
}

/// Opens a database for optimistic transactions and returns handles of its column families, all of
/// which must be named.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_open_column_families(
    options: *const rocksdb_options_t,
    path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const rocksdb_options_t,
    handles: *mut *mut Family,
    errptr: ErrPtr,
) -> *mut rocksdb_optimistictransactiondb_t {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            let base = open_families(options, path, count, names, family_options, handles)?;
            Ok(give(rocksdb_optimistictransactiondb_t { base }))
        })
    }
}

/// Does the same. The options of transactions have no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
    options: *const rocksdb_options_t,
    _transaction_options: *const rocksdb_optimistictransactiondb_options_t,
    path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const rocksdb_options_t,
    handles: *mut *mut Family,
    errptr: ErrPtr,
) -> *mut rocksdb_optimistictransactiondb_t {
    // SAFETY: the contract of the crate.
    unsafe {
        rocksdb_optimistictransactiondb_open_column_families(
            options,
            path,
            count,
            names,
            family_options,
            handles,
            errptr,
        )
    }
}

/// Closes a database. Later calls with this handle fail, and so do those of its transactions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transactiondb_close(db: *mut rocksdb_transactiondb_t) {
    static CLOSED: Graveyard<rocksdb_transactiondb_t> = Graveyard::new();
    // SAFETY: the contract of the crate.
    unsafe { close_handle(db, |db| &mut db.base, &CLOSED) };
}

/// Closes a database. Later calls with this handle fail, and so do those of its transactions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_close(
    db: *mut rocksdb_optimistictransactiondb_t,
) {
    static CLOSED: Graveyard<rocksdb_optimistictransactiondb_t> = Graveyard::new();
    // SAFETY: the contract of the crate.
    unsafe { close_handle(db, |db| &mut db.base, &CLOSED) };
}

/// Returns the database of a handle; null for null.
unsafe fn base_of<T>(db: *mut T, base: fn(&mut T) -> &mut rocksdb_t) -> *mut rocksdb_t {
    // SAFETY: the contract of the crate.
    unsafe { db.as_mut() }.map_or(null_mut(), |db| std::ptr::from_mut(base(db)))
}

macro_rules! base_handles {
    ($($db:ty: $get:ident, $close:ident;)*) => { $(
        /// Returns a handle for functions of databases without transactions. What they write takes
        /// no locks. It must be freed, and does not keep the database open.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(db: *mut $db) -> *mut rocksdb_t {
            // SAFETY: the contract of the crate.
            unsafe { db.as_ref() }.map_or(null_mut(), |db| give(db.base.another()))
        }

        /// Frees such a handle. The database stays open.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $close(base: *mut rocksdb_t) {
            // SAFETY: the contract of the crate.
            unsafe { free(base) };
        }
    )* };
}

base_handles! {
    rocksdb_transactiondb_t:
        rocksdb_transactiondb_get_base_db, rocksdb_transactiondb_close_base_db;
    rocksdb_optimistictransactiondb_t:
        rocksdb_optimistictransactiondb_get_base_db,
        rocksdb_optimistictransactiondb_close_base_db;
}

macro_rules! as_without_transactions {
    ($db:ident: $($function:ident is $same:ident(
        $($argument:ident: $type:ty),*) $(-> $returns:ty)?;)*) => { $(
        #[doc = concat!("Does the same as `", stringify!($same), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            db: *mut $db,
            $($argument: $type),*
        ) $(-> $returns)? {
            // SAFETY: the contract of the crate.
            unsafe { $same(base_of(db, |db| &mut db.base), $($argument),*) }
        }
    )* };
}

as_without_transactions! {
    rocksdb_transactiondb_t:
    rocksdb_transactiondb_create_column_family is rocksdb_create_column_family(
        options: *const rocksdb_options_t, name: *const c_char, errptr: ErrPtr) -> *mut Family;
    rocksdb_transactiondb_get is rocksdb_get(options: *const rocksdb_readoptions_t,
        key: *const c_char, key_length: usize, value_length: *mut usize, errptr: ErrPtr)
        -> *mut c_char;
    rocksdb_transactiondb_get_cf is rocksdb_get_cf(options: *const rocksdb_readoptions_t,
        family: *mut Family, key: *const c_char, key_length: usize, value_length: *mut usize,
        errptr: ErrPtr) -> *mut c_char;
    rocksdb_transactiondb_get_pinned is rocksdb_get_pinned(options: *const rocksdb_readoptions_t,
        key: *const c_char, key_length: usize, errptr: ErrPtr) -> *mut rocksdb_pinnableslice_t;
    rocksdb_transactiondb_get_pinned_cf is rocksdb_get_pinned_cf(
        options: *const rocksdb_readoptions_t, family: *mut Family, key: *const c_char,
        key_length: usize, errptr: ErrPtr) -> *mut rocksdb_pinnableslice_t;
    rocksdb_transactiondb_multi_get is rocksdb_multi_get(options: *const rocksdb_readoptions_t,
        count: usize, keys: *const *const c_char, key_lengths: *const usize,
        values: *mut *mut c_char, value_lengths: *mut usize, errors: *mut *mut c_char);
    rocksdb_transactiondb_multi_get_cf is rocksdb_multi_get_cf(
        options: *const rocksdb_readoptions_t, families: *const *const Family, count: usize,
        keys: *const *const c_char, key_lengths: *const usize, values: *mut *mut c_char,
        value_lengths: *mut usize, errors: *mut *mut c_char);
    rocksdb_transactiondb_create_iterator is rocksdb_create_iterator(
        options: *const rocksdb_readoptions_t) -> *mut rocksdb_iterator_t;
    rocksdb_transactiondb_create_iterator_cf is rocksdb_create_iterator_cf(
        options: *const rocksdb_readoptions_t, family: *mut Family) -> *mut rocksdb_iterator_t;
    rocksdb_transactiondb_create_snapshot is rocksdb_create_snapshot()
        -> *const rocksdb_snapshot_t;
    rocksdb_transactiondb_release_snapshot is rocksdb_release_snapshot(
        snapshot: *const rocksdb_snapshot_t);
    rocksdb_transactiondb_flush is rocksdb_flush(options: *const rocksdb_flushoptions_t,
        errptr: ErrPtr);
    rocksdb_transactiondb_flush_cf is rocksdb_flush_cf(options: *const rocksdb_flushoptions_t,
        family: *mut Family, errptr: ErrPtr);
    rocksdb_transactiondb_flush_cfs is rocksdb_flush_cfs(options: *const rocksdb_flushoptions_t,
        families: *mut *mut Family, count: c_int, errptr: ErrPtr);
    rocksdb_transactiondb_flush_wal is rocksdb_flush_wal(sync: c_uchar, errptr: ErrPtr);
    rocksdb_transactiondb_flush_wal_with_options is rocksdb_flush_wal_with_options(
        options: *const rocksdb_flushwaloptions_t, errptr: ErrPtr);
    rocksdb_transactiondb_property_value is rocksdb_property_value(name: *const c_char)
        -> *mut c_char;
    rocksdb_transactiondb_property_int is rocksdb_property_int(name: *const c_char,
        value: *mut u64) -> c_int;
    rocksdb_transactiondb_checkpoint_object_create is rocksdb_checkpoint_object_create(
        errptr: ErrPtr) -> *mut rocksdb_checkpoint_t;
}

as_without_transactions! {
    rocksdb_optimistictransactiondb_t:
    rocksdb_optimistictransactiondb_write is rocksdb_write(
        options: *const rocksdb_writeoptions_t, batch: *mut rocksdb_writebatch_t, errptr: ErrPtr);
    rocksdb_optimistictransactiondb_property_value is rocksdb_property_value(
        name: *const c_char) -> *mut c_char;
    rocksdb_optimistictransactiondb_property_int is rocksdb_property_int(name: *const c_char,
        value: *mut u64) -> c_int;
    rocksdb_optimistictransactiondb_checkpoint_object_create is rocksdb_checkpoint_object_create(
        errptr: ErrPtr) -> *mut rocksdb_checkpoint_t;
}

/// Writes `batch` with the locks of its keys.
unsafe fn write(
    db: &rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    batch: &WriteBatch,
) -> sateen::Result<()> {
    // SAFETY: the contract of the crate.
    let options = unsafe { write_options(options)? };
    db.base.db.write_locked(batch, &db.timeouts.of_write(options))
}

/// Applies a batch atomically. It waits for transactions that have locked one of its keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transactiondb_write(
    db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    batch: *mut rocksdb_writebatch_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let db = db.as_ref().ok_or_else(|| missing("the database"))?;
            let batch = batch.as_ref().ok_or_else(|| missing("the batch"))?;
            write(db, options, batch.complete_for(&db.base.db)?)
        });
    }
}

macro_rules! writes {
    ($($function:ident $of_family:ident ($($argument:ident $length:ident)*) $act:ident;)*) => { $(
        /// Writes to the default column family. It waits for a transaction that has locked the key.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            db: *mut rocksdb_transactiondb_t,
            options: *const rocksdb_writeoptions_t,
            $($argument: *const c_char, $length: usize,)*
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the crate.
            unsafe { $of_family(db, options, DEFAULT, $($argument, $length,)* errptr) };
        }

        /// Writes to a column family. It waits for a transaction that has locked the key.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $of_family(
            db: *mut rocksdb_transactiondb_t,
            options: *const rocksdb_writeoptions_t,
            family: *mut Family,
            $($argument: *const c_char, $length: usize,)*
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the crate.
            unsafe {
                guard(errptr, (), || {
                    let db = db.as_ref().ok_or_else(|| missing("the database"))?;
                    // The database has the limit of a value.
                    let mut batch = WriteBatch::with_value_bytes_max(usize::MAX);
                    let family = of(&db.base.db, family)?;
                    check_untimed(&family)?;
                    batch.to(&family).$act($(bytes($argument, $length)?),*)?;
                    write(db, options, &batch)
                });
            }
        }
    )* };
}

writes! {
    rocksdb_transactiondb_put rocksdb_transactiondb_put_cf
        (key key_length value value_length) put;
    rocksdb_transactiondb_merge rocksdb_transactiondb_merge_cf
        (key key_length operand operand_length) merge;
    rocksdb_transactiondb_delete rocksdb_transactiondb_delete_cf (key key_length) delete;
}
