//! The options that a database was last opened with.

use std::ffi::c_char;
use std::mem::size_of;

use sateen::{Error, Options};

use crate::abi::{ErrPtr, free, give, guard, malloc_name, path as path_of};
use crate::cache::rocksdb_cache_t;
use crate::environment::{rocksdb_env_t, rocksdb_options_set_env};
use crate::options::{Surroundings, rocksdb_options_t};
use crate::settings::Settings;

type Handle = rocksdb_options_t;

unsafe fn handle(options: Options, env: *const rocksdb_env_t) -> *mut Handle {
    let surroundings = Surroundings::default();
    let handle = give(rocksdb_options_t(options, None, Settings::default(), None, surroundings));
    // SAFETY: the contract of the module.
    unsafe { rocksdb_options_set_env(handle, env.cast_mut()) };
    handle
}

/// Returns an array from `malloc`.
fn array<T>(items: &[*mut T]) -> sateen::Result<*mut *mut T> {
    // SAFETY: `malloc` takes any size.
    let array = unsafe { libc::malloc(size_of::<*mut T>() * items.len().max(1)) };
    if array.is_null() {
        return Err(Error::InvalidArgument("out of memory".into()));
    }
    let array = array.cast::<*mut T>();
    // SAFETY: the array is new and has room for all.
    unsafe { array.copy_from_nonoverlapping(items.as_ptr(), items.len()) };
    Ok(array)
}

/// Loads the options of the database and the names and options of its column families. Options that
/// are not text (merge operators, filters, comparators, caches) have their defaults. Block caches
/// are `cache`, if it is not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_load_latest_options(
    path: *const c_char,
    env: *mut rocksdb_env_t,
    ignore_unknown_options: bool,
    cache: *mut rocksdb_cache_t,
    db_options: *mut *mut rocksdb_options_t,
    family_count: *mut usize,
    family_names: *mut *mut *mut c_char,
    family_options: *mut *mut *mut rocksdb_options_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let vfs = crate::environment::vfs_of(env);
            let stored = Options::load_with(&*vfs, path_of(path), ignore_unknown_options)?;
            let cache = cache.as_ref().map(|cache| cache.0.clone());
            let mut base = Options { shared_block_cache: cache, ..stored.options };
            let all = handle(base.clone(), env);
            let (mut names, mut options) = (Vec::new(), Vec::new());
            for (name, family) in stored.families {
                names.push(malloc_name(&name));
                base.column_family = family;
                options.push(handle(base.clone(), env));
            }
            *db_options = all;
            *family_count = names.len();
            *family_names = array(&names)?;
            *family_options = array(&options)?;
            Ok(())
        });
    }
}

/// Frees loaded options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_load_latest_options_destroy(
    db_options: *mut rocksdb_options_t,
    family_names: *mut *mut c_char,
    family_options: *mut *mut rocksdb_options_t,
    count: usize,
) {
    // SAFETY: the contract of the module.
    unsafe {
        free(db_options);
        for at in 0..count {
            if !family_names.is_null() {
                libc::free((*family_names.add(at)).cast());
            }
            if !family_options.is_null() {
                free(*family_options.add(at));
            }
        }
        libc::free(family_names.cast());
        libc::free(family_options.cast());
    }
}
