//! Filters of the WAL in C: the caller's functions decide at an open what becomes of each record.

use std::ffi::{CString, c_char, c_int, c_uchar, c_ulonglong, c_void};
use std::os::unix::ffi::OsStrExt;

use sateen::{
    WalDecision, WalFamily, WalFilter, WalFiltering, WalRecord, WriteBatch, bytes_of_text,
};

use crate::abi::{free, give};
use crate::batch::rocksdb_writebatch_t;
use crate::callbacks::{State, name_of};
use crate::options::{change, rocksdb_options_t};

/// Is told of the column families: their numbers and the oldest WAL that each needs, and their
/// names, the lengths of these, and again their numbers.
type Families = unsafe extern "C" fn(
    *mut c_void,
    *const u32,
    *const u64,
    usize,
    *const *const c_char,
    *const usize,
    *const u32,
    usize,
);

/// Decides about a record, and may fill a batch that takes its place.
type Found = unsafe extern "C" fn(
    *mut c_void,
    c_ulonglong,
    *const c_char,
    usize,
    *const rocksdb_writebatch_t,
    *mut rocksdb_writebatch_t,
    *mut c_uchar,
) -> c_int;

/// What RocksDB's filters return.
const CONTINUE: c_int = 0;
const IGNORE: c_int = 1;
const STOP: c_int = 2;

struct Callbacks {
    state: State,
    families: Option<Families>,
    found: Option<Found>,
    name: String,
}

impl WalFilter for Callbacks {
    fn name(&self) -> &str {
        &self.name
    }

    fn begin(&self, families: &[WalFamily]) {
        let Some(call) = self.families else { return };
        let ids: Vec<u32> = families.iter().map(|family| family.id).collect();
        let logs: Vec<u64> = families.iter().map(|family| family.oldest_log).collect();
        let names = families.iter().map(|family| bytes_of_text(&family.name).into_owned());
        let names: Vec<CString> =
            names.map(|name| CString::new(name).unwrap_or_default()).collect();
        let texts: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let lengths: Vec<usize> = names.iter().map(|name| name.as_bytes().len()).collect();
        // SAFETY: RocksDB calls it with arrays that live as long as the call.
        unsafe {
            call(
                self.state.state,
                ids.as_ptr(),
                logs.as_ptr(),
                ids.len(),
                texts.as_ptr(),
                lengths.as_ptr(),
                ids.as_ptr(),
                ids.len(),
            );
        }
    }

    fn decide(&self, record: &WalRecord<'_>) -> WalDecision {
        let Some(call) = self.found else { return WalDecision::Apply };
        let name = record.path.file_name().unwrap_or_default().as_bytes();
        let text = CString::new(name).unwrap_or_default();
        let batch = rocksdb_writebatch_t::of(record.batch.clone(), record.first_seqno);
        let mut new = rocksdb_writebatch_t::of(WriteBatch::new(), record.first_seqno);
        let mut changed = 0;
        // SAFETY: RocksDB calls it with objects that live as long as the call.
        let answer = unsafe {
            call(
                self.state.state,
                record.log,
                text.as_ptr(),
                name.len(),
                &raw const batch,
                &raw mut new,
                &raw mut changed,
            )
        };
        match answer {
            CONTINUE if changed != 0 => match new.checked() {
                Ok(new) => WalDecision::Replace(new.clone()),
                // What cannot be in a batch cannot be recovered.
                Err(_) => WalDecision::Corrupt,
            },
            CONTINUE => WalDecision::Apply,
            IGNORE => WalDecision::Skip,
            STOP => WalDecision::Stop,
            // RocksDB's answer for a damaged record, and answers that it does not know.
            _ => WalDecision::Corrupt,
        }
    }
}

/// A filter of the WAL.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_walfilter_t(WalFiltering);

/// Makes a filter of functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_walfilter_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    column_family_log_number_map: Option<Families>,
    log_record_found: Option<Found>,
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
) -> *mut rocksdb_walfilter_t {
    // SAFETY: the contract of the crate.
    let name = unsafe { name_of(name, state) };
    give(rocksdb_walfilter_t(WalFiltering::new(Callbacks {
        state: State { state, destructor },
        families: column_family_log_number_map,
        found: log_record_found,
        name,
    })))
}

/// Frees a filter. Options and open databases that have it keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_walfilter_destroy(filter: *mut rocksdb_walfilter_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(filter) };
}

/// Sets the filter of the WAL. The caller frees its own reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_wal_filter(
    options: *mut rocksdb_options_t,
    filter: *mut rocksdb_walfilter_t,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        let filter = filter.as_ref().map(|filter| filter.0.clone());
        change(options, |options| options.0.wal_filter = filter);
    }
}

/// Removes the filter of the WAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_clear_wal_filter(options: *mut rocksdb_options_t) {
    // SAFETY: the contract of the crate.
    unsafe { change(options, |options| options.0.wal_filter = None) };
}
