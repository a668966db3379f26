//! Compactions of files that the caller names.

use std::ffi::{c_char, c_int, c_uchar};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sateen::{CompactFilesOptions, Error};

use crate::abi::{ErrPtr, guard, malloc_copy, missing, path, quiet};
use crate::database::{DEFAULT, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::families::{list_of, rocksdb_list_column_families_destroy};
use crate::job_info::rocksdb_compactionjobinfo_t;
use crate::odd_options::CancelFlag;
use crate::settings::{Setting, Settings, keeps, made};

/// Options of a compaction of files.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_compaction_options_t {
    kept: Settings,
    cancelled: Option<Arc<AtomicBool>>,
}

keeps!(rocksdb_compaction_options_t: kept);
made!(rocksdb_compaction_options_t:
    rocksdb_compaction_options_create, rocksdb_compaction_options_destroy);

/// Sets a flag. When another thread raises the flag, the compaction ends. Null means no flag. The
/// options keep the flag alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_set_canceled(
    options: *mut rocksdb_compaction_options_t,
    flag: *mut c_uchar,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(options) = options.as_mut() {
            let flag = flag.cast::<CancelFlag>().as_ref();
            quiet((), || options.cancelled = flag.map(|flag| flag.0.clone()));
        }
    }
}

/// Compacts files of the default column family into a level.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_files(
    db: *mut rocksdb_t,
    options: *const rocksdb_compaction_options_t,
    names: *const *const c_char,
    count: usize,
    output_level: c_int,
    output_path: c_int,
    outputs: *mut *mut *mut c_char,
    outputs_count: *mut usize,
    info: *mut rocksdb_compactionjobinfo_t,
    errptr: ErrPtr,
) {
    let family = DEFAULT;
    // SAFETY: the contract of the crate.
    unsafe {
        rocksdb_compact_files_cf(
            db,
            family,
            options,
            names,
            count,
            output_level,
            output_path,
            outputs,
            outputs_count,
            info,
            errptr,
        );
    }
}

/// Compacts files of a column family into a level. Stores the names of the new files at `outputs`
/// and a description in `info`, if these are not null. The only valid output paths are 0 and -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_files_cf(
    db: *mut rocksdb_t,
    family: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_compaction_options_t,
    names: *const *const c_char,
    count: usize,
    output_level: c_int,
    output_path: c_int,
    outputs: *mut *mut *mut c_char,
    outputs_count: *mut usize,
    info: *mut rocksdb_compactionjobinfo_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            let db = the(db)?;
            if count > 0 && names.is_null() {
                return Err(missing("the list of files"));
            }
            let name = |nth| {
                let name: *const c_char = *names.add(nth);
                if name.is_null() {
                    return Err(missing("the name of a file"));
                }
                Ok(path(name))
            };
            let names = (0..count).map(name).collect::<sateen::Result<Vec<_>>>()?;
            if output_path > 0 {
                let text = format!("there is no path {output_path} for outputs");
                return Err(Error::InvalidArgument(text));
            }
            let level = u8::try_from(output_level).map_err(|_| {
                Error::InvalidArgument(format!("there is no output level {output_level}"))
            })?;
            let options = options.as_ref();
            let limit = options.and_then(|it| u64::get(&it.kept, "output_file_size_limit"));
            let compact = CompactFilesOptions {
                table_bytes: limit.filter(|bytes| *bytes < u64::MAX),
                cancelled: options.and_then(|options| options.cancelled.clone()),
            };
            let made = of(db, family)?.compact_files(&names, level, &compact)?;
            let mut files: Vec<_> = made.outputs.iter().map(|table| table.file.clone()).collect();
            files.sort();
            files.dedup();
            let list: Vec<_> =
                files.iter().map(|file| malloc_copy(file.as_os_str().as_bytes())).collect();
            if let Some(outputs) = outputs.as_mut() {
                *outputs = list_of(&list);
            } else {
                list.iter().for_each(|name| libc::free(name.cast()));
            }
            if let Some(outputs_count) = outputs_count.as_mut() {
                *outputs_count = list.len();
            }
            if let Some(info) = info.as_mut() {
                *info = rocksdb_compactionjobinfo_t::new(made);
            }
            Ok(())
        });
    }
}

/// Frees the file names that `rocksdb_compact_files` stored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_files_output_file_names_destroy(
    names: *mut *mut c_char,
    count: usize,
) {
    // SAFETY: the contract of the crate.
    unsafe { rocksdb_list_column_families_destroy(names, count) };
}
