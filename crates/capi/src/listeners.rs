//! Listeners: functions of the caller that are told of flushes, compactions and other events.

use std::ffi::c_void;
use std::sync::Arc;

use sateen::{
    CompactionInfo, Db, Error, ErrorReason, EventListener, FlushInfo, IngestInfo, SealInfo,
    StallInfo,
};

use crate::abi::{ErrPtr, free, give, quiet, set_error, status, take};
use crate::callbacks::State;
use crate::database::rocksdb_t;
use crate::job_info::{
    rocksdb_compactionjobinfo_t, rocksdb_externalfileingestioninfo_t, rocksdb_flushjobinfo_t,
    rocksdb_memtableinfo_t, rocksdb_subcompactionjobinfo_t, rocksdb_writestallinfo_t,
};
use crate::options::{change, rocksdb_options_t};

type Flush = unsafe extern "C" fn(*mut c_void, *mut rocksdb_t, *const rocksdb_flushjobinfo_t);
type Compaction =
    unsafe extern "C" fn(*mut c_void, *mut rocksdb_t, *const rocksdb_compactionjobinfo_t);
type Subcompaction = unsafe extern "C" fn(*mut c_void, *const rocksdb_subcompactionjobinfo_t);
type Ingested =
    unsafe extern "C" fn(*mut c_void, *mut rocksdb_t, *const rocksdb_externalfileingestioninfo_t);
type Failed = unsafe extern "C" fn(*mut c_void, u32, *mut rocksdb_status_ptr_t);
type Stalled = unsafe extern "C" fn(*mut c_void, *const rocksdb_writestallinfo_t);
type Sealed = unsafe extern "C" fn(*mut c_void, *const rocksdb_memtableinfo_t);

/// The functions of a listener and their state.
struct Callbacks {
    state: State,
    flush_begins: Option<Flush>,
    flush_ended: Option<Flush>,
    compaction_begins: Option<Compaction>,
    compaction_ended: Option<Compaction>,
    subcompaction_begins: Option<Subcompaction>,
    subcompaction_ended: Option<Subcompaction>,
    ingested: Option<Ingested>,
    failed: Option<Failed>,
    stalled: Option<Stalled>,
    sealed: Option<Sealed>,
}

/// A listener. Options that get it own it.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_eventlistener_t(Arc<Callbacks>);

/// The error of background work.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_status_ptr_t(Error);

impl Callbacks {
    /// Calls `act` with the state and a handle of the database that is valid during the call.
    fn with(&self, db: &Db, act: impl FnOnce(*mut c_void, *mut rocksdb_t)) {
        let mut handle = rocksdb_t::borrowed(db.clone());
        act(self.state.state, &raw mut handle);
    }

    fn compaction(&self, db: &Db, info: &CompactionInfo, act: Option<Compaction>) {
        if let Some(act) = act {
            let info = rocksdb_compactionjobinfo_t::new(info.clone());
            // SAFETY: given with this state; the pointers are valid during the call.
            self.with(db, |state, db| unsafe { act(state, db, &raw const info) });
        }
    }

    /// Reports the subcompaction of a compaction, which is the whole of it.
    fn subcompaction(&self, info: &CompactionInfo, act: Option<Subcompaction>) {
        if let Some(act) = act {
            let whole = rocksdb_compactionjobinfo_t::new(info.clone());
            let info = rocksdb_subcompactionjobinfo_t(whole);
            // SAFETY: as above.
            unsafe { act(self.state.state, &raw const info) };
        }
    }

    fn flush(&self, db: &Db, info: &FlushInfo, act: Option<Flush>) {
        if let Some(act) = act {
            let info = rocksdb_flushjobinfo_t::new(info.clone());
            // SAFETY: given with this state; the pointers are valid during the call.
            self.with(db, |state, db| unsafe { act(state, db, &raw const info) });
        }
    }
}

impl EventListener for Callbacks {
    fn flush_begins(&self, db: &Db, flush: &FlushInfo) {
        self.flush(db, flush, self.flush_begins);
    }

    fn flush_ended(&self, db: &Db, flush: &FlushInfo) {
        self.flush(db, flush, self.flush_ended);
    }

    fn compaction_begins(&self, db: &Db, info: &CompactionInfo) {
        self.compaction(db, info, self.compaction_begins);
        self.subcompaction(info, self.subcompaction_begins);
    }

    fn compaction_ended(&self, db: &Db, info: &CompactionInfo) {
        self.subcompaction(info, self.subcompaction_ended);
        self.compaction(db, info, self.compaction_ended);
    }

    fn file_ingested(&self, db: &Db, file: &IngestInfo) {
        if let Some(act) = self.ingested {
            let info = rocksdb_externalfileingestioninfo_t::new(file.clone());
            // SAFETY: given with this state; the pointers are valid during the call.
            self.with(db, |state, db| unsafe { act(state, db, &raw const info) });
        }
    }

    fn memtable_sealed(&self, memtable: &SealInfo) {
        if let Some(act) = self.sealed {
            let info = rocksdb_memtableinfo_t(memtable.clone());
            // SAFETY: as above.
            unsafe { act(self.state.state, &raw const info) };
        }
    }

    fn stall_changed(&self, stall: &StallInfo) {
        if let Some(act) = self.stalled {
            let info = rocksdb_writestallinfo_t {
                family: stall.column_family.clone(),
                from: stall.from.into(),
                to: stall.to.into(),
            };
            // SAFETY: as above.
            unsafe { act(self.state.state, &raw const info) };
        }
    }

    fn background_error(&self, reason: ErrorReason, error: &Error) {
        if let Some(act) = self.failed {
            let mut told = rocksdb_status_ptr_t(error.clone());
            let reason = match reason {
                ErrorReason::Flush => 0,
                ErrorReason::Compaction => 1,
                ErrorReason::Write => 2,
                ErrorReason::Manifest => 4,
            };
            // SAFETY: as above.
            unsafe { act(self.state.state, reason, &raw mut told) };
        }
    }
}

/// Makes a listener of functions, each of which may be null.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_eventlistener_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    flush_begins: Option<Flush>,
    flush_ended: Option<Flush>,
    compaction_begins: Option<Compaction>,
    compaction_ended: Option<Compaction>,
    subcompaction_begins: Option<Subcompaction>,
    subcompaction_ended: Option<Subcompaction>,
    ingested: Option<Ingested>,
    failed: Option<Failed>,
    stalled: Option<Stalled>,
    sealed: Option<Sealed>,
) -> *mut rocksdb_eventlistener_t {
    let callbacks = Callbacks {
        state: State { state, destructor },
        flush_begins,
        flush_ended,
        compaction_begins,
        compaction_ended,
        subcompaction_begins,
        subcompaction_ended,
        ingested,
        failed,
        stalled,
        sealed,
    };
    quiet(std::ptr::null_mut(), || give(rocksdb_eventlistener_t(Arc::new(callbacks))))
}

/// Frees a listener that no options own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_eventlistener_destroy(listener: *mut rocksdb_eventlistener_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(listener) };
}

/// Adds a listener for databases that are opened with the options. The options own it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_add_eventlistener(
    options: *mut rocksdb_options_t,
    listener: *mut rocksdb_eventlistener_t,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(listener) = take(listener) {
            change(options, |options| options.0.listeners.add(listener.0));
        }
    }
}

/// Stores the error of background work at `errptr`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_status_ptr_get_error(
    told: *mut rocksdb_status_ptr_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(told) = told.as_ref() {
            set_error(errptr, &status(&told.0));
        }
    }
}

/// Does nothing. The database recovers by itself; a listener cannot reset its error.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_reset_status(_told: *mut rocksdb_status_ptr_t) {}
