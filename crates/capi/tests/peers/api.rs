//! A library with RocksDB's C functions, opened by its path.

use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;

/// An object of the library.
pub(crate) type H = *mut c_void;
/// Bytes that the library gets.
pub(crate) type P = *const c_char;
/// The place for the text of an error.
pub(crate) type E = *mut *mut c_char;

/// `full_merge` of a merge operator: state, key, value before, operands, success, length.
pub(crate) type FullMerge = extern "C" fn(
    H,
    P,
    usize,
    P,
    usize,
    *const P,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;
/// `partial_merge`: state, key, operands, success, length.
pub(crate) type PartialMerge = extern "C" fn(
    H,
    P,
    usize,
    *const P,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;
/// Compares: state, one, the other.
pub(crate) type Compare = extern "C" fn(H, P, usize, P, usize) -> c_int;
/// The prefix of a key: state, key, length of the prefix.
pub(crate) type Transform = extern "C" fn(H, P, usize, *mut usize) -> *mut c_char;
/// True if a key has a prefix: state, key.
pub(crate) type InDomain = extern "C" fn(H, P, usize) -> c_uchar;
/// Filters: state, level, key, value, new value, its length, whether there is one.
pub(crate) type Filter = extern "C" fn(
    H,
    c_int,
    P,
    usize,
    P,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut c_uchar,
) -> c_uchar;
/// The name of a callback's object.
pub(crate) type Name = extern "C" fn(H) -> P;
/// Called for an entry with a value: state, column family, key, value.
pub(crate) type Entry = extern "C" fn(H, u32, P, usize, P, usize);
/// Called for a deletion: state, column family, key.
pub(crate) type Deletion = extern "C" fn(H, u32, P, usize);
/// Called for an entry with a value in the default column family.
pub(crate) type Entry0 = extern "C" fn(H, P, usize, P, usize);
/// Called for a deletion in the default column family.
pub(crate) type Deletion0 = extern "C" fn(H, P, usize);

macro_rules! functions {
    ($api:ident, $names:ident: $(fn $name:ident($($type:ty),*) $(-> $answer:ty)?;)*) => {
        /// The functions. A field has the name of the C function without `rocksdb_`.
        #[allow(non_snake_case, reason = "as RocksDB names it")]
        pub(crate) struct $api {
            $(pub(crate) $name: unsafe extern "C" fn($($type),*) $(-> $answer)?,)*
        }

        /// The names of all functions that are used.
        pub(crate) const $names: &[&str] = &[$(stringify!($name)),*];

        impl $api {
            /// Opens the library at `path`, which stays open.
            pub(crate) fn load(path: &std::path::Path) -> Result<$api, String> {
                let library = crate::api::open(path)?;
                Ok($api { $(
                    // SAFETY: the type is that of the function of this name.
                    $name: unsafe {
                        std::mem::transmute::<
                            *mut std::ffi::c_void,
                            unsafe extern "C" fn($($type),*) $(-> $answer)?,
                        >(crate::api::find(library, concat!("rocksdb_", stringify!($name)))?)
                    },
                )* })
            }
        }
    };
}

pub(crate) use functions;

functions! {
    Api, NAMES:
    fn options_create() -> H;
    fn options_destroy(H);
    fn options_set_create_if_missing(H, c_uchar);
    fn options_set_write_buffer_size(H, usize);
    fn options_set_compression(H, c_int);
    fn options_set_disable_auto_compactions(H, c_int);
    fn options_set_merge_operator(H, H);
    fn options_set_comparator(H, H);
    fn options_set_compaction_filter(H, H);
    fn options_set_prefix_extractor(H, H);
    fn options_set_WAL_ttl_seconds(H, u64);
    fn options_set_create_missing_column_families(H, c_uchar);
    fn options_set_atomic_flush(H, c_uchar);
    fn writeoptions_disable_WAL(H, c_int);
    fn wait_for_compact_options_create() -> H;
    fn wait_for_compact(H, H, E);
    fn slicetransform_create(H, extern "C" fn(H), Transform, InDomain, Name) -> H;
    fn mergeoperator_create(
        H, extern "C" fn(H), FullMerge, PartialMerge, Option<extern "C" fn(H, P, usize)>, Name
    ) -> H;
    fn comparator_create(H, extern "C" fn(H), Compare, Name) -> H;
    fn compactionfilter_create(H, extern "C" fn(H), Filter, Name) -> H;
    fn get_options_from_string(H, P, H, E);
    fn readoptions_create() -> H;
    fn readoptions_destroy(H);
    fn readoptions_set_snapshot(H, H);
    fn readoptions_set_iterate_lower_bound(H, P, usize);
    fn readoptions_set_iterate_upper_bound(H, P, usize);
    fn readoptions_set_prefix_same_as_start(H, c_uchar);
    fn readoptions_set_total_order_seek(H, c_uchar);
    fn writeoptions_create() -> H;
    fn flushoptions_create() -> H;
    fn open(H, P, E) -> H;
    fn open_column_families(H, P, c_int, *const P, *const H, *mut H, E) -> H;
    fn open_column_families_with_ttl(
        H, P, c_int, *const P, *const H, *mut H, *const c_int, E) -> H;
    fn create_column_family_with_ttl(H, H, P, c_int, E) -> H;
    fn open_for_read_only_column_families(
        H, P, c_int, *const P, *const H, *mut H, c_uchar, E) -> H;
    fn list_column_families(H, P, *mut usize, E) -> *mut *mut c_char;
    fn list_column_families_destroy(*mut *mut c_char, usize);
    fn close(H);
    fn free(H);
    fn create_column_family(H, H, P, E) -> H;
    fn drop_column_family(H, H, E);
    fn column_family_handle_destroy(H);
    fn column_family_handle_get_id(H) -> u32;
    fn column_family_handle_get_name(H, *mut usize) -> *mut c_char;
    fn put_cf(H, H, H, P, usize, P, usize, E);
    fn merge_cf(H, H, H, P, usize, P, usize, E);
    fn delete_cf(H, H, H, P, usize, E);
    fn singledelete_cf(H, H, H, P, usize, E);
    fn delete_range_cf(H, H, H, P, usize, P, usize, E);
    fn get_cf(H, H, H, P, usize, *mut usize, E) -> *mut c_char;
    fn get_pinned_cf(H, H, H, P, usize, E) -> H;
    fn pinnableslice_value(H, *mut usize) -> P;
    fn pinnableslice_destroy(H);
    fn get_into_buffer_cf(
        H, H, H, P, usize, *mut c_char, usize, *mut usize, *mut c_uchar, E) -> c_uchar;
    fn key_may_exist_cf(
        H, H, H, P, usize, *mut *mut c_char, *mut usize, P, usize, *mut c_uchar) -> c_uchar;
    fn multi_get_cf(
        H, H, *const H, usize, *const P, *const usize, *mut *mut c_char, *mut usize,
        *mut *mut c_char);
    fn batched_multi_get_cf(
        H, H, H, usize, *const P, *const usize, *mut H, *mut *mut c_char, bool);
    fn write(H, H, H, E);
    fn writebatch_create() -> H;
    fn writebatch_destroy(H);
    fn writebatch_clear(H);
    fn writebatch_count(H) -> c_int;
    fn writebatch_put_cf(H, H, P, usize, P, usize);
    fn writebatch_merge_cf(H, H, P, usize, P, usize);
    fn writebatch_delete_cf(H, H, P, usize);
    fn writebatch_singledelete_cf(H, H, P, usize);
    fn writebatch_delete_range_cf(H, H, P, usize, P, usize);
    fn writebatch_set_save_point(H);
    fn writebatch_rollback_to_save_point(H, E);
    fn writebatch_pop_save_point(H, E);
    fn writebatch_iterate(H, H, Entry0, Deletion0);
    fn writebatch_iterate_cf(H, H, Entry, Deletion, Entry);
    fn writebatch_put_log_data(H, P, usize);
    fn writebatch_iterate_ld(H, H, Entry0, Deletion0, Deletion0);
    fn writebatch_iterate_cf_ld(H, H, Entry, Deletion, Entry, Deletion0);
    fn writebatch_data(H, *mut usize) -> P;
    fn writebatch_create_from(P, usize) -> H;
    fn create_snapshot(H) -> H;
    fn release_snapshot(H, H);
    fn create_iterator_cf(H, H, H) -> H;
    fn iter_destroy(H);
    fn iter_valid(H) -> c_uchar;
    fn iter_seek_to_first(H);
    fn iter_seek_to_last(H);
    fn iter_seek(H, P, usize);
    fn iter_seek_for_prev(H, P, usize);
    fn iter_next(H);
    fn iter_prev(H);
    fn iter_key(H, *mut usize) -> P;
    fn iter_value(H, *mut usize) -> P;
    fn iter_get_error(H, E);
    fn iter_refresh(H, E);
    fn flush_cf(H, H, H, E);
    fn compact_range_cf(H, H, P, usize, P, usize);
    fn set_options_cf(H, H, c_int, *const P, *const P, E);
    fn get_latest_sequence_number(H) -> u64;
    fn get_updates_since(H, u64, H, E) -> H;
    fn wal_iter_valid(H) -> c_uchar;
    fn wal_iter_next(H);
    fn wal_iter_status(H, E);
    fn wal_iter_get_batch(H, *mut u64) -> H;
    fn wal_iter_destroy(H);
    fn property_int_cf(H, H, P, *mut u64) -> c_int;
    fn property_value_cf(H, H, P) -> *mut c_char;
    fn checkpoint_object_create(H, E) -> H;
    fn checkpoint_create(H, P, u64, E);
    fn checkpoint_object_destroy(H);
    fn envoptions_create() -> H;
    fn envoptions_destroy(H);
    fn sstfilewriter_create(H, H) -> H;
    fn sstfilewriter_create_with_comparator(H, H, H) -> H;
    fn sstfilewriter_open(H, P, E);
    fn sstfilewriter_put(H, P, usize, P, usize, E);
    fn sstfilewriter_merge(H, P, usize, P, usize, E);
    fn sstfilewriter_delete(H, P, usize, E);
    fn sstfilewriter_delete_range(H, P, usize, P, usize, E);
    fn sstfilewriter_finish(H, E);
    fn sstfilewriter_destroy(H);
    fn ingestexternalfileoptions_create() -> H;
    fn ingestexternalfileoptions_destroy(H);
    fn ingestexternalfileoptions_set_move_files(H, c_uchar);
    fn ingest_external_file_cf(H, H, *const P, usize, H, E);
    fn transactiondb_options_create() -> H;
    fn transactiondb_options_set_transaction_lock_timeout(H, i64);
    fn transactiondb_options_set_default_lock_timeout(H, i64);
    fn transactiondb_open_column_families(
        H, H, P, c_int, *const P, *const H, *mut H, E) -> H;
    fn transactiondb_close(H);
    fn transactiondb_put_cf(H, H, H, P, usize, P, usize, E);
    fn transactiondb_delete_cf(H, H, H, P, usize, E);
    fn transactiondb_write(H, H, H, E);
    fn transactiondb_get_base_db(H) -> H;
    fn transactiondb_close_base_db(H);
    fn transactiondb_get_prepared_transactions(H, *mut usize) -> *mut H;
    fn optimistictransactiondb_open_column_families(
        H, P, c_int, *const P, *const H, *mut H, E) -> H;
    fn optimistictransactiondb_close(H);
    fn optimistictransactiondb_get_base_db(H) -> H;
    fn optimistictransactiondb_close_base_db(H);
    fn transaction_options_create() -> H;
    fn transaction_options_set_set_snapshot(H, c_uchar);
    fn optimistictransaction_options_create() -> H;
    fn optimistictransaction_options_set_set_snapshot(H, c_uchar);
    fn transaction_begin(H, H, H, H) -> H;
    fn optimistictransaction_begin(H, H, H, H) -> H;
    fn transaction_destroy(H);
    fn transaction_commit(H, E);
    fn transaction_rollback(H, E);
    fn transaction_prepare(H, E);
    fn transaction_set_name(H, P, usize, E);
    fn transaction_get_name(H, *mut usize) -> *mut c_char;
    fn transaction_set_savepoint(H);
    fn transaction_rollback_to_savepoint(H, E);
    fn transaction_put_cf(H, H, P, usize, P, usize, E);
    fn transaction_merge_cf(H, H, P, usize, P, usize, E);
    fn transaction_delete_cf(H, H, P, usize, E);
    fn transaction_get_cf(H, H, H, P, usize, *mut usize, E) -> *mut c_char;
    fn transaction_get_pinned_cf(H, H, H, P, usize, E) -> H;
    fn transaction_get_for_update_cf(
        H, H, H, P, usize, *mut usize, c_uchar, E) -> *mut c_char;
    fn transaction_get_snapshot(H) -> H;
    fn transaction_create_iterator_cf(H, H, H) -> H;
    fn transaction_get_writebatch_wi(H) -> H;
    fn transaction_rebuild_from_writebatch(H, H, E);
    fn writebatch_wi_create(usize, c_uchar) -> H;
    fn writebatch_wi_destroy(H);
    fn writebatch_wi_clear(H);
    fn writebatch_wi_count(H) -> c_int;
    fn writebatch_wi_data(H, *mut usize) -> P;
    fn writebatch_wi_put_cf(H, H, P, usize, P, usize);
    fn writebatch_wi_merge_cf(H, H, P, usize, P, usize);
    fn writebatch_wi_delete_cf(H, H, P, usize);
    fn writebatch_wi_set_save_point(H);
    fn writebatch_wi_rollback_to_save_point(H, E);
    fn writebatch_wi_get_from_batch_cf(H, H, H, P, usize, *mut usize, E) -> *mut c_char;
    fn writebatch_wi_get_from_batch_and_db_cf(
        H, H, H, H, P, usize, *mut usize, E) -> *mut c_char;
    fn writebatch_wi_create_iterator_with_base_cf(H, H, H) -> H;
    fn write_writebatch_wi(H, H, H, E);
}

pub(crate) fn open(path: &Path) -> Result<H, String> {
    let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| "a name with a 0")?;
    // SAFETY: the name ends with a zero; the library's initializers run.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        Err(format!("{}: cannot be opened", path.display()))
    } else {
        Ok(library)
    }
}

pub(crate) fn find(library: H, name: &str) -> Result<H, String> {
    let text = CString::new(name).map_err(|_| "a name with a 0")?;
    // SAFETY: the library is open, and the name ends with a zero.
    let function = unsafe { libc::dlsym(library, text.as_ptr()) };
    if function.is_null() { Err(format!("{name} is missing")) } else { Ok(function) }
}
