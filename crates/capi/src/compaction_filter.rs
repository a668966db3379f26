//! Compaction filters in C: one filter for all compactions, or a factory that makes one for each.
//! They are freed with the last options and database that have them.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::sync::Arc;

use sateen::{
    CompactionFilter, CompactionFilterContext, CompactionFilterFactory, Decision, Filtering,
};

use crate::abi::{bytes_or_none, free, give, quiet, take};
use crate::callbacks::{State, name_of};
use crate::options::{change, rocksdb_options_t};

type Filter = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut c_uchar,
) -> c_uchar;

type Create = unsafe extern "C" fn(
    *mut c_void,
    *mut rocksdb_compactionfiltercontext_t,
) -> *mut rocksdb_compactionfilter_t;

struct FilterCallbacks {
    state: State,
    filter: Option<Filter>,
    name: String,
}

impl FilterCallbacks {
    fn ask(&self, level: u8, key: &[u8], value: &[u8]) -> Decision {
        let Some(filter) = self.filter else { return Decision::Keep };
        let (mut new, mut length, mut changed) = (std::ptr::null_mut(), 0, 0);
        // SAFETY: RocksDB calls it with byte strings that live as long as the call, and
        // places for three answers.
        let removed = unsafe {
            filter(
                self.state.state,
                c_int::from(level),
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &raw mut new,
                &raw mut length,
                &raw mut changed,
            )
        };
        match (removed, changed) {
            (0, 0) => Decision::Keep,
            // SAFETY: the bytes belong to the function and stay until it is called again.
            (0, _) => Decision::Change(unsafe { bytes_or_none(new, length) }.to_vec()),
            _ => Decision::Remove,
        }
    }
}

/// A compaction's reference to a filter.
struct Shared(Arc<FilterCallbacks>);

impl CompactionFilter for Shared {
    fn filter(&mut self, level: u8, key: &[u8], value: &[u8]) -> Decision {
        self.0.ask(level, key, value)
    }
}

/// A compaction filter.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_compactionfilter_t(Arc<FilterCallbacks>);

/// A factory of compaction filters. Options that get it own it.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_compactionfilterfactory_t(Filtering);

/// The description of a compaction that a factory gets.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_compactionfiltercontext_t(CompactionFilterContext);

/// Makes a compaction filter of functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilter_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    filter: Option<Filter>,
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
) -> *mut rocksdb_compactionfilter_t {
    // SAFETY: the contract of the module.
    let name = unsafe { name_of(name, state) };
    let callbacks = FilterCallbacks { state: State { state, destructor }, filter, name };
    give(rocksdb_compactionfilter_t(Arc::new(callbacks)))
}

/// Frees a compaction filter. Options and databases that have it keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilter_destroy(filter: *mut rocksdb_compactionfilter_t) {
    // SAFETY: the contract of the module.
    unsafe { free(filter) };
}

/// Accepted without effect: entries that a snapshot can see are never filtered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilter_set_ignore_snapshots(
    _filter: *mut rocksdb_compactionfilter_t,
    _ignored: c_uchar,
) {
}

struct SharedByAll(Arc<FilterCallbacks>);

impl CompactionFilterFactory for SharedByAll {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn create(&self, _context: &CompactionFilterContext) -> Option<Box<dyn CompactionFilter>> {
        Some(Box::new(Shared(self.0.clone())))
    }
}

/// Sets the filter of all compactions, which may call it at the same time. The caller keeps its
/// ownership.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_compaction_filter(
    options: *mut rocksdb_options_t,
    filter: *mut rocksdb_compactionfilter_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        let filtering = filter.as_ref().map(|filter| Filtering::new(SharedByAll(filter.0.clone())));
        change(options, |options| options.0.column_family.compaction_filter = filtering);
    }
}

struct FactoryCallbacks {
    state: State,
    create: Option<Create>,
    name: String,
}

impl CompactionFilterFactory for FactoryCallbacks {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self, context: &CompactionFilterContext) -> Option<Box<dyn CompactionFilter>> {
        let mut context = rocksdb_compactionfiltercontext_t(*context);
        // SAFETY: RocksDB calls it with a context that lives as long as the call.
        let made = unsafe { self.create?(self.state.state, &raw mut context) };
        // SAFETY: it is from `rocksdb_compactionfilter_create`, and the compaction's from now on.
        let made = unsafe { take(made) }?;
        Some(Box::new(Shared(made.0.clone())))
    }
}

/// Makes a factory of functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilterfactory_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    create: Option<Create>,
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
) -> *mut rocksdb_compactionfilterfactory_t {
    // SAFETY: the contract of the module.
    let name = unsafe { name_of(name, state) };
    let callbacks = FactoryCallbacks { state: State { state, destructor }, create, name };
    quiet(std::ptr::null_mut(), || {
        give(rocksdb_compactionfilterfactory_t(Filtering::new(callbacks)))
    })
}

/// Frees a factory that no options own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilterfactory_destroy(
    factory: *mut rocksdb_compactionfilterfactory_t,
) {
    // SAFETY: the contract of the module.
    unsafe { free(factory) };
}

/// Sets the factory that makes a filter for each compaction. The options own it from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_compaction_filter_factory(
    options: *mut rocksdb_options_t,
    factory: *mut rocksdb_compactionfilterfactory_t,
) {
    // SAFETY: the contract of the module.
    unsafe {
        let filtering = factory.as_ref().map(|factory| factory.0.clone());
        change(options, |options| options.0.column_family.compaction_filter = filtering);
        free(factory);
    }
}

/// Returns 1 if all tables are part of the compaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfiltercontext_is_full_compaction(
    context: *mut rocksdb_compactionfiltercontext_t,
) -> c_uchar {
    // SAFETY: the contract of the module.
    unsafe { context.as_ref() }.map_or(0, |context| c_uchar::from(context.0.is_full_compaction))
}

/// Returns 1 for a manual compaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfiltercontext_is_manual_compaction(
    context: *mut rocksdb_compactionfiltercontext_t,
) -> c_uchar {
    // SAFETY: the contract of the module.
    unsafe { context.as_ref() }.map_or(0, |context| c_uchar::from(context.0.is_manual_compaction))
}
