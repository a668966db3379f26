//! Options of single calls that need more than a setter and a getter.

use std::ffi::{CStr, c_char, c_int, c_uchar};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sateen::Error;

use crate::abi::{
    ErrPtr, bytes_or_none, free, give, guard, lend, missing, optional_bytes, quiet, text,
};
use crate::calls::rocksdb_readoptions_t;
use crate::options::{change, rocksdb_options_t};
use crate::settings::{Keeps, Setting, Settings, keeps, made};
use crate::table_options::rocksdb_block_based_table_options_t;

/// Handles that hold the values of their setters alone. The functions that use a handle read them.
macro_rules! kept_options {
    ($($(#[$doc:meta])* $handle:ident: $create:ident, $destroy:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Default)]
        #[expect(non_camel_case_types, reason = "RocksDB's name")]
        pub struct $handle(pub(crate) Settings);

        keeps!($handle: 0);
        made!($handle: $create, $destroy);
    )* };
}

kept_options! {
    /// Which data the size of a range includes.
    rocksdb_size_approximation_options_t:
        rocksdb_size_approximation_options_create, rocksdb_size_approximation_options_destroy;
    /// How the WAL is flushed.
    rocksdb_flushwaloptions_t: rocksdb_flushwaloptions_create, rocksdb_flushwaloptions_destroy;
    /// What a trace records.
    rocksdb_trace_options_t: rocksdb_trace_options_create, rocksdb_trace_options_destroy;
    /// What a trace of blocks records.
    rocksdb_block_cache_trace_options_t:
        rocksdb_block_cache_trace_options_create, rocksdb_block_cache_trace_options_destroy;
    /// How a trace of blocks is written.
    rocksdb_block_cache_trace_writer_options_t:
        rocksdb_block_cache_trace_writer_options_create,
        rocksdb_block_cache_trace_writer_options_destroy;
    /// How a trace is replayed.
    rocksdb_replay_options_t: rocksdb_replay_options_create, rocksdb_replay_options_destroy;
    /// How the files of a database are listed.
    rocksdb_livefiles_storage_info_options_t:
        rocksdb_livefiles_storage_info_options_create,
        rocksdb_livefiles_storage_info_options_destroy;
}

/// Returns the settings of `handle`, if it is not null.
///
/// # Safety
/// `handle` is null or a handle of that type, which no other thread uses.
unsafe fn kept<'a, H: Keeps + 'a>(handle: *const H) -> Option<&'a mut Settings> {
    // SAFETY: the caller's promise.
    unsafe { handle.cast_mut().as_mut() }.map(Keeps::settings)
}

/// Returns the text that was set under `key`, and its length; null and 0 if none was.
///
/// # Safety
/// As [`kept`]; `length` is null or a place for a length.
unsafe fn kept_text<H: Keeps>(handle: *const H, key: &str, length: *mut usize) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe {
        let found = kept(handle).and_then(|settings| settings.text(key));
        lend(found.map(CStr::to_bytes), length)
    }
}

/// Keeps `length` bytes at `value` under `key`; null clears it.
///
/// # Safety
/// As [`kept`]; `value` is null or has `length` bytes.
unsafe fn keep_text<H: Keeps>(
    handle: *mut H,
    key: &'static str,
    value: *const c_char,
    length: usize,
) {
    // SAFETY: the caller's promise.
    quiet((), || unsafe {
        match kept(handle) {
            Some(settings) if value.is_null() => settings.clear(key),
            Some(settings) => settings.put_bytes(key, bytes_or_none(value, length)),
            None => {}
        }
    });
}

macro_rules! presence {
    ($($handle:ty: $key:literal $(has $has:ident)? $(clear $clear:ident)?;)*) => { $(
        $(
            #[doc = concat!("Returns 1 if `", $key, "` is set.")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $has(options: *mut $handle) -> c_uchar {
                // SAFETY: the contract of the crate.
                unsafe { kept(options) }.is_some_and(|settings| settings.has($key)).into()
            }
        )?
        $(
            #[doc = concat!("Clears `", $key, "`.")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $clear(options: *mut $handle) {
                // SAFETY: the contract of the crate.
                if let Some(settings) = unsafe { kept(options) } {
                    settings.clear($key);
                }
            }
        )?
    )* };
}

presence! {
    rocksdb_readoptions_t: "merge_operand_count_threshold"
        has rocksdb_readoptions_has_merge_operand_count_threshold
        clear rocksdb_readoptions_clear_merge_operand_count_threshold;
    rocksdb_readoptions_t: "request_id" clear rocksdb_readoptions_clear_request_id;
    rocksdb_readoptions_t: "table_index_factory"
        clear rocksdb_readoptions_clear_table_index_factory;
    rocksdb_block_based_table_options_t: "user_defined_index_factory"
        clear rocksdb_block_based_options_clear_user_defined_index_factory;
}

/// Sets a name for the requests of these options, which has no effect. It is copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_set_request_id(
    options: *mut rocksdb_readoptions_t,
    name: *const c_char,
    length: usize,
) {
    // SAFETY: the contract of the crate.
    unsafe { keep_text(options, "request_id", name, length) };
}

/// Returns the name that was set; null if none was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_get_request_id(
    options: *mut rocksdb_readoptions_t,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the crate.
    unsafe { kept_text(options, "request_id", length) }
}

/// The only index that RocksDB registers by name. Another name is an error, as in RocksDB.
const TRIE_INDEX: &[u8] = b"trie_index";

macro_rules! index_factories {
    ($($handle:ty: $key:literal $set:ident $get:ident;)*) => { $(
        /// Accepted without effect: Sateen's tables have their own index.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(
            options: *mut $handle,
            name: *const c_char,
            length: usize,
            errptr: ErrPtr,
        ) {
            // SAFETY: the contract of the crate.
            unsafe {
                guard(errptr, (), || {
                    let given = bytes_or_none(name, length);
                    if given != TRIE_INDEX {
                        let text = format!("there is no index {}", given.escape_ascii());
                        return Err(Error::InvalidArgument(text));
                    }
                    keep_text(options, $key, name, length);
                    Ok(())
                });
            }
        }

        /// Returns the name that was set; null if none was.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(
            options: *const $handle,
            length: *mut usize,
        ) -> *const c_char {
            // SAFETY: the contract of the crate.
            unsafe { kept_text(options, $key, length) }
        }
    )* };
}

index_factories! {
    rocksdb_readoptions_t: "table_index_factory"
        rocksdb_readoptions_set_table_index_factory_from_string
        rocksdb_readoptions_get_table_index_factory_name;
    rocksdb_block_based_table_options_t: "user_defined_index_factory"
        rocksdb_block_based_options_set_user_defined_index_factory_from_string
        rocksdb_block_based_options_get_user_defined_index_factory_name;
}

/// Which tables the metadata of a column family lists.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_column_family_metadata_options_t {
    kept: Settings,
    begin: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
}

keeps!(rocksdb_column_family_metadata_options_t: kept);
made!(rocksdb_column_family_metadata_options_t:
    rocksdb_column_family_metadata_options_create, rocksdb_column_family_metadata_options_destroy);

impl rocksdb_column_family_metadata_options_t {
    /// Returns true if a table of `level` with keys from `smallest` to `largest` is selected.
    pub(crate) fn lists(
        &self,
        level: u8,
        compare: impl Fn(&[u8], &[u8]) -> std::cmp::Ordering,
        (smallest, largest): (&[u8], &[u8]),
    ) -> bool {
        let wanted = i32::get(&self.kept, "level").filter(|wanted| *wanted >= 0);
        wanted.is_none_or(|wanted| wanted == i32::from(level))
            && self.begin.as_ref().is_none_or(|begin| compare(largest, begin).is_ge())
            && self.end.as_ref().is_none_or(|end| compare(smallest, end).is_le())
    }
}

macro_rules! bounds {
    ($($(#[$doc:meta])* $key:ident $set:ident $get:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(
            options: *mut rocksdb_column_family_metadata_options_t,
            key: *const c_char,
            length: usize,
        ) {
            // SAFETY: the contract of the crate.
            if let Some(options) = unsafe { options.as_mut() } {
                // SAFETY: as above.
                options.$key = unsafe { optional_bytes(key, length) }.map(<[u8]>::to_vec);
            }
        }

        /// Returns the key that was set; null if none was.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(
            options: *const rocksdb_column_family_metadata_options_t,
            length: *mut usize,
        ) -> *const c_char {
            // SAFETY: the contract of the crate.
            unsafe {
                let key = options.as_ref().and_then(|options| options.$key.as_deref());
                lend(key, length)
            }
        }
    )* };
}

bounds! {
    /// Sets a key below which tables are not listed; null for no bound. It is copied.
    begin rocksdb_column_family_metadata_options_set_start_key
        rocksdb_column_family_metadata_options_get_start_key;
    /// Sets a key above which tables are not listed; null for no bound. It is copied.
    end rocksdb_column_family_metadata_options_set_end_key
        rocksdb_column_family_metadata_options_get_end_key;
}

/// A flag that ends a long call. Options that have it keep it alive.
pub(crate) struct CancelFlag(pub(crate) Arc<AtomicBool>);

macro_rules! cancel_flags {
    ($($create:ident $destroy:ident $set:ident;)*) => { $(
        /// Makes a flag that is not set.
        #[unsafe(no_mangle)]
        pub extern "C" fn $create() -> *mut c_uchar {
            quiet(null_mut(), || give(CancelFlag(Arc::default())).cast())
        }

        /// Frees a flag.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $destroy(flag: *mut c_uchar) {
            // SAFETY: the contract of the crate.
            unsafe { free(flag.cast::<CancelFlag>()) };
        }

        /// Sets or clears a flag, from any thread.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(flag: *mut c_uchar, value: c_uchar) {
            // SAFETY: the contract of the crate.
            if let Some(flag) = unsafe { flag.cast::<CancelFlag>().as_ref() } {
                flag.0.store(value != 0, Ordering::Release);
            }
        }
    )* };
}

cancel_flags! {
    rocksdb_compaction_options_canceled_create rocksdb_compaction_options_canceled_destroy
        rocksdb_compaction_options_canceled_set;
    rocksdb_open_and_compact_canceled_create rocksdb_open_and_compact_canceled_destroy
        rocksdb_open_and_compact_canceled_set;
}

/// The answer of a remote compaction service to a job.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_compactionservice_scheduleresponse_t {
    pub(crate) job: String,
    pub(crate) status: i32,
}

/// The largest status. RocksDB's are 0 to 3: success, failure, aborted, run locally.
const SCHEDULE_STATUS_MAX: i32 = 3;

/// Makes an answer that names the job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionservice_scheduleresponse_create(
    job: *const c_char,
    status: i32,
    errptr: ErrPtr,
) -> *mut rocksdb_compactionservice_scheduleresponse_t {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            if job.is_null() {
                return Err(missing("the job"));
            }
            let response = rocksdb_compactionservice_scheduleresponse_t { job: text(job), status };
            if !(0..=SCHEDULE_STATUS_MAX).contains(&status) {
                return Err(Error::InvalidArgument(format!("there is no status {status}")));
            }
            Ok(give(response))
        })
    }
}

/// Makes an answer without a job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionservice_scheduleresponse_create_with_status(
    status: i32,
    errptr: ErrPtr,
) -> *mut rocksdb_compactionservice_scheduleresponse_t {
    // SAFETY: the contract of the crate.
    unsafe { rocksdb_compactionservice_scheduleresponse_create(c"".as_ptr(), status, errptr) }
}

/// Returns the status of an answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionservice_scheduleresponse_getstatus(
    response: *const rocksdb_compactionservice_scheduleresponse_t,
) -> i32 {
    // SAFETY: the contract of the crate.
    unsafe { response.as_ref() }.map_or(0, |response| response.status)
}

/// Returns the job of an answer, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionservice_scheduleresponse_get_scheduled_job_id(
    response: *const rocksdb_compactionservice_scheduleresponse_t,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the crate.
    unsafe { lend(response.as_ref().map(|response| response.job.as_bytes()), length) }
}

/// Frees an answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionservice_scheduleresponse_t_destroy(
    response: *mut rocksdb_compactionservice_scheduleresponse_t,
) {
    // SAFETY: the contract of the crate.
    unsafe { free(response) };
}

/// Defines the calls of sets that are kept and have no effect, a bit for each member.
macro_rules! sets {
    ($($(#[$doc:meta])* $name:literal = $default:literal:
        $add:ident $remove:ident $clear:ident $contains:ident $count:ident;)*) => { $(
        $(#[$doc])*
        /// This adds a member.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $add(options: *mut rocksdb_options_t, member: c_int) {
            // SAFETY: the contract of the crate.
            unsafe { keep_set(options, $name, kept_set(options, $name, $default) | bit(member)) };
        }

        /// Removes a member.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $remove(options: *mut rocksdb_options_t, member: c_int) {
            // SAFETY: the contract of the crate.
            unsafe { keep_set(options, $name, kept_set(options, $name, $default) & !bit(member)) };
        }

        /// Removes all members.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $clear(options: *mut rocksdb_options_t) {
            // SAFETY: the contract of the crate.
            unsafe { keep_set(options, $name, 0) };
        }

        /// Returns 1 for a member.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $contains(
            options: *mut rocksdb_options_t,
            member: c_int,
        ) -> c_uchar {
            // SAFETY: the contract of the crate.
            unsafe { (kept_set(options, $name, $default) & bit(member) != 0).into() }
        }

        /// Returns the number of members.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $count(options: *mut rocksdb_options_t) -> usize {
            // SAFETY: the contract of the crate.
            unsafe { kept_set(options, $name, $default) }.count_ones() as usize
        }
    )* };
}

unsafe fn kept_set(options: *mut rocksdb_options_t, name: &'static str, default: u64) -> u64 {
    // SAFETY: the contract of the crate.
    unsafe { options.as_ref() }.and_then(|options| options.kept(name)).unwrap_or(default)
}

unsafe fn keep_set(options: *mut rocksdb_options_t, name: &'static str, members: u64) {
    // SAFETY: the contract of the crate.
    unsafe { change(options, |options| options.keep(name, members)) };
}

fn bit(member: c_int) -> u64 {
    u32::try_from(member).ok().and_then(|bit| 1_u64.checked_shl(bit)).unwrap_or(0)
}

sets! {
    /// The types of files whose checksums are handed to the file system. RocksDB's own file system
    /// does nothing with them, either.
    "checksum_handoff_file_types" = 0:
        rocksdb_options_checksum_handoff_file_types_add
        rocksdb_options_checksum_handoff_file_types_remove
        rocksdb_options_checksum_handoff_file_types_clear
        rocksdb_options_checksum_handoff_file_types_contains
        rocksdb_options_checksum_handoff_file_types_count;
    /// The compaction styles whose tables the device is told the expected lifetime of. By default,
    /// leveled compaction. Sateen tells devices nothing.
    "calculate_sst_write_lifetime_hint_set" = 1:
        rocksdb_options_calculate_sst_write_lifetime_hint_set_add
        rocksdb_options_calculate_sst_write_lifetime_hint_set_remove
        rocksdb_options_calculate_sst_write_lifetime_hint_set_clear
        rocksdb_options_calculate_sst_write_lifetime_hint_set_contains
        rocksdb_options_calculate_sst_write_lifetime_hint_set_count;
}
