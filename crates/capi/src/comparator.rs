//! Comparators in C: the order of keys.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};

use sateen::{Comparator, Options};

use crate::abi::{BYTEWISE, REVERSE_BYTEWISE, comparator_name, free, give, quiet};
use crate::callbacks::{State, name_of};
use crate::ingest::rocksdb_sstfilewriter_t;
use crate::options::{change, rocksdb_options_t};

pub(crate) type Compare =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;

/// The functions of a comparator and their state.
struct Callbacks {
    state: State,
    compare: Compare,
}

impl Callbacks {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (data_a, data_b) = (a.as_ptr().cast(), b.as_ptr().cast());
        // SAFETY: RocksDB calls it with keys that live as long as the call.
        let order = unsafe { (self.compare)(self.state.state, data_a, a.len(), data_b, b.len()) };
        order.cmp(&0)
    }
}

/// A comparator. Databases and options that have it keep its state alive.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_comparator_t {
    comparator: Comparator,
    /// The callbacks of an order that the engine implements itself. They are kept alive although
    /// nothing calls them.
    _unused: Option<Callbacks>,
}

/// Returns the name of a comparator, RocksDB's for an order that the engine implements itself.
pub(crate) fn shown_name(comparator: &Comparator) -> &str {
    comparator_name(comparator.name())
}

/// Returns the order that a function with this state says.
pub(crate) fn ordered_by(
    state: State,
    compare: Compare,
) -> impl Fn(&[u8], &[u8]) -> Ordering + Send + Sync + 'static {
    let callbacks = Callbacks { state, compare };
    move |a: &[u8], b: &[u8]| callbacks.compare(a, b)
}

impl rocksdb_comparator_t {
    /// Makes a comparator of this order.
    pub(crate) fn of(comparator: Comparator) -> rocksdb_comparator_t {
        rocksdb_comparator_t { comparator, _unused: None }
    }

    /// Returns the order of keys.
    pub(crate) fn order(&self) -> &Comparator {
        &self.comparator
    }
}

/// Makes a comparator of functions; null without a comparing function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_comparator_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    compare: Option<Compare>,
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
) -> *mut rocksdb_comparator_t {
    let Some(compare) = compare else { return std::ptr::null_mut() };
    // SAFETY: RocksDB's contract.
    let name = unsafe { name_of(name, state) };
    let callbacks = Callbacks { state: State { state, destructor }, compare };
    quiet(std::ptr::null_mut(), || {
        let known = match name.as_str() {
            BYTEWISE => Some(Comparator::BYTEWISE),
            REVERSE_BYTEWISE => Some(Comparator::reverse_bytewise()),
            _ => None,
        };
        give(match known {
            Some(comparator) => rocksdb_comparator_t { comparator, _unused: Some(callbacks) },
            None => {
                let compare = move |a: &[u8], b: &[u8]| callbacks.compare(a, b);
                let comparator = Comparator::custom(name, compare);
                rocksdb_comparator_t { comparator, _unused: None }
            }
        })
    })
}

/// Frees a comparator. Databases and options that have it keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_comparator_destroy(comparator: *mut rocksdb_comparator_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(comparator) };
}

/// Sets the comparator of keys. The caller frees its comparator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_comparator(
    options: *mut rocksdb_options_t,
    comparator: *mut rocksdb_comparator_t,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(comparator) = comparator.as_ref() {
            let comparator = comparator.comparator.clone();
            change(options, |options| options.0.column_family.comparator = comparator);
        }
    }
}

/// Makes a writer of files for column families with this comparator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sstfilewriter_create_with_comparator(
    _env: *const c_void,
    options: *const rocksdb_options_t,
    comparator: *const rocksdb_comparator_t,
) -> *mut rocksdb_sstfilewriter_t {
    // SAFETY: the contract of the crate.
    let (options, comparator) = unsafe { (options.as_ref(), comparator.as_ref()) };
    let handle = options.cloned();
    let options = options.map_or_else(|| Ok(Options::default()), rocksdb_options_t::checked);
    let options = options.map(|mut options| {
        if let Some(comparator) = comparator {
            options.column_family.comparator = comparator.comparator.clone();
        }
        options
    });
    quiet(std::ptr::null_mut(), || give(rocksdb_sstfilewriter_t::with(options, handle)))
}
