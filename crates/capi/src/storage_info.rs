//! The files that a copy of a database needs.

use std::ffi::{CString, c_char, c_int, c_uchar};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};

use sateen::{LiveFile, LiveFileKind, LiveFilesOptions};

use crate::abi::{ErrPtr, free, give, guard, lend};
use crate::database::{rocksdb_t, the};
use crate::odd_options::rocksdb_livefiles_storage_info_options_t;
use crate::settings::Setting;

struct File {
    file: LiveFile,
    directory: CString,
    name: CString,
    checksum_function: CString,
}

/// The files of a database.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_livefiles_storage_info_t(Vec<File>);

/// Lists the files whose copy is the database. The caller disables file deletions before, and
/// enables them again after copying.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_livefiles_storage_info(
    db: *mut rocksdb_t,
    options: *const rocksdb_livefiles_storage_info_options_t,
    errptr: ErrPtr,
) -> *mut rocksdb_livefiles_storage_info_t {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            let settings = options.as_ref().map(|options| &options.0);
            let least = settings.and_then(|it| u64::get(it, "wal_size_for_flush")).unwrap_or(0);
            let with_checksums =
                settings.and_then(|it| u8::get(it, "include_checksum_info")).unwrap_or(0) != 0;
            let flush_from_wal_bytes = (least != u64::MAX).then_some(least);
            let files = the(db)?.live_files(&LiveFilesOptions { flush_from_wal_bytes })?;
            let list = files.into_iter().map(|file| File {
                directory: CString::new(file.directory.as_os_str().as_bytes()).unwrap_or_default(),
                name: CString::new(file.name.as_bytes()).unwrap_or_default(),
                checksum_function: if with_checksums { c"Unknown".into() } else { c"".into() },
                file,
            });
            Ok(give(rocksdb_livefiles_storage_info_t(list.collect())))
        })
    }
}

/// Frees the list and everything that its getters returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_storage_info_destroy(
    files: *mut rocksdb_livefiles_storage_info_t,
) {
    // SAFETY: the contract of the crate.
    unsafe { free(files) };
}

/// Returns the number of files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_storage_info_count(
    files: *const rocksdb_livefiles_storage_info_t,
) -> usize {
    // SAFETY: the contract of the crate.
    unsafe { files.as_ref() }.map_or(0, |files| files.0.len())
}

unsafe fn nth<'a>(
    files: *const rocksdb_livefiles_storage_info_t,
    index: usize,
) -> Option<&'a File> {
    // SAFETY: the contract of the crate.
    unsafe { files.as_ref() }?.0.get(index)
}

macro_rules! of_a_file {
    ($($(#[$doc:meta])* $function:ident -> $type:ty, $none:expr, $get:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            files: *const rocksdb_livefiles_storage_info_t,
            index: usize,
        ) -> $type {
            let get: fn(&File) -> $type = $get;
            // SAFETY: the contract of the crate.
            unsafe { nth(files, index) }.map_or($none, get)
        }
    )* };
}

of_a_file! {
    /// Returns its name.
    rocksdb_livefiles_storage_info_relative_filename -> *const c_char, null(),
        |file| file.name.as_ptr();
    /// Returns its directory.
    rocksdb_livefiles_storage_info_directory -> *const c_char, null(),
        |file| file.directory.as_ptr();
    /// Returns the number in its name; 0 if it has none.
    rocksdb_livefiles_storage_info_file_number -> u64, 0, |file| file.file.number;
    /// Returns RocksDB's number of its type.
    rocksdb_livefiles_storage_info_file_type -> c_int, -1, |file| match file.file.kind {
        LiveFileKind::Wal => 0,
        LiveFileKind::Table => 2,
        LiveFileKind::Manifest => 3,
        LiveFileKind::Current => 4,
        LiveFileKind::Options => 9,
    };
    /// Returns the number of its bytes that belong into the copy.
    rocksdb_livefiles_storage_info_size -> u64, 0, |file| file.file.size_bytes;
    /// Returns 0, because there are no temperatures.
    rocksdb_livefiles_storage_info_temperature -> c_int, 0, |_| 0;
    /// Returns an empty text, because blocks and records have checksums instead of whole files.
    rocksdb_livefiles_storage_info_file_checksum -> *const c_char, null(), |_| c"".as_ptr();
    /// Returns `Unknown` if the caller asked for checksums, otherwise an empty text.
    rocksdb_livefiles_storage_info_file_checksum_func_name -> *const c_char, null(),
        |file| file.checksum_function.as_ptr();
    /// Returns 1 if the file may be longer than its part of the copy.
    rocksdb_livefiles_storage_info_trim_to_size -> c_uchar, 0,
        |file| file.file.is_trimmed.into();
}

/// Returns the contents that replace the file in the copy; 0 bytes if the file is copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_storage_info_replacement_contents(
    files: *const rocksdb_livefiles_storage_info_t,
    index: usize,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the contract of the crate.
    unsafe {
        let contents = nth(files, index).map(|file| file.file.contents.as_deref().unwrap_or(&[]));
        lend(contents, length)
    }
}
