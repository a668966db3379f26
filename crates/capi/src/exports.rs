//! Exported column families, and lists of files that the caller makes.

use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null_mut;

use sateen::{Comparator, LiveTable, SstFileInfo, text_of_bytes};

use crate::abi::{
    ErrPtr, bytes_or_none, free, give, guard, malloc_copy, missing, path, quiet, take, text,
};
use crate::comparator::shown_name;
use crate::database::{of, rocksdb_column_family_handle_t, rocksdb_t, smallest_values, the};
use crate::live_files::{Table, rocksdb_livefiles_t};
use crate::options::rocksdb_options_t;
use crate::promises::promised;
use crate::settings::{Setting, Settings, keeps, made};
use crate::upkeep::rocksdb_checkpoint_t;

type Family = rocksdb_column_family_handle_t;

/// Level of exported files, the last one of RocksDB's default shape.
const LAST_LEVEL: u8 = 6;

/// The files of an exported column family, and the name of its comparator.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
#[derive(Default)]
pub struct rocksdb_export_import_files_metadata_t {
    comparator: Vec<u8>,
    files: Vec<LiveTable>,
}

/// A file for a list.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
#[derive(Default)]
pub struct rocksdb_livefile_t {
    table: LiveTable,
    directory: Vec<u8>,
    name: Vec<u8>,
}

/// Options of an import.
#[derive(Default)]
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_import_column_family_options_t(Settings);

keeps!(rocksdb_import_column_family_options_t: 0);
made!(rocksdb_import_column_family_options_t:
    rocksdb_import_column_family_options_create, rocksdb_import_column_family_options_destroy);

/// Writes the entries of a column family to files in `directory`, which must not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_checkpoint_export_column_family(
    checkpoint: *mut rocksdb_checkpoint_t,
    family: *mut Family,
    directory: *const c_char,
    errptr: ErrPtr,
) -> *mut rocksdb_export_import_files_metadata_t {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            let db = checkpoint.as_ref().ok_or_else(|| missing("the checkpoint"))?.db();
            let family = of(db, family)?;
            let seqno = db.latest_sequence_number();
            let files = family.export(path(directory))?.into_iter();
            let tables = files.map(|file| described(file, seqno, LiveTable::default()));
            let comparator = shown_name(family.comparator()).as_bytes().to_vec();
            Ok(give(rocksdb_export_import_files_metadata_t { comparator, files: tables.collect() }))
        })
    }
}

/// Describes a file in `table`. `seqno` is the newest sequence number before the export.
fn described(file: SstFileInfo, seqno: u64, mut table: LiveTable) -> LiveTable {
    table.level = LAST_LEVEL;
    table.file = std::path::absolute(&file.path).unwrap_or(file.path);
    table.size_bytes = file.file_bytes;
    (table.smallest, table.largest) = (file.smallest, file.largest);
    (table.smallest_seqno, table.largest_seqno) = (seqno, seqno);
    table
}

/// Creates a column family with the entries of exported files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_family_with_import(
    db: *mut rocksdb_t,
    family_options: *mut rocksdb_options_t,
    name: *const c_char,
    options: *mut rocksdb_import_column_family_options_t,
    metadata: *mut rocksdb_export_import_files_metadata_t,
    errptr: ErrPtr,
) -> *mut Family {
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, null_mut(), || {
            let metadata = metadata.as_ref().ok_or_else(|| missing("the metadata"))?;
            let of_family = promised(family_options)?.column_family;
            let comparator: &Comparator = &of_family.comparator;
            if shown_name(comparator).as_bytes() != metadata.comparator {
                return Err(sateen::Error::InvalidArgument(format!(
                    "the files were exported with the comparator {}, the column family has {}",
                    text_of_bytes(&metadata.comparator),
                    shown_name(comparator)
                )));
            }
            let moves = options.as_ref().and_then(|options| bool::get(&options.0, "move_files"));
            let files: Vec<&PathBuf> = metadata.files.iter().map(|table| &table.file).collect();
            let moves = moves.unwrap_or(false);
            let made = the(db)?.import_column_family(&text(name), of_family, &files, moves)?;
            smallest_values(db).note(made.name(), family_options);
            Ok(give(rocksdb_column_family_handle_t(made)))
        })
    }
}

/// Makes metadata without files.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_export_import_files_metadata_create()
-> *mut rocksdb_export_import_files_metadata_t {
    give(rocksdb_export_import_files_metadata_t::default())
}

/// Frees metadata. The files stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_export_import_files_metadata_destroy(
    metadata: *mut rocksdb_export_import_files_metadata_t,
) {
    // SAFETY: the contract of the crate.
    unsafe { free(metadata) };
}

/// Returns the name of the comparator, to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_export_import_files_metadata_get_db_comparator_name(
    metadata: *mut rocksdb_export_import_files_metadata_t,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    malloc_copy(unsafe { metadata.as_ref() }.map_or(&[][..], |metadata| &metadata.comparator))
}

/// Sets the name of the comparator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_export_import_files_metadata_set_db_comparator_name(
    metadata: *mut rocksdb_export_import_files_metadata_t,
    name: *const c_char,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let Some(metadata) = metadata.as_mut() {
            metadata.comparator = c_bytes(name);
        }
    }
}

/// Returns a list of the files, to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_export_import_files_metadata_get_files(
    metadata: *mut rocksdb_export_import_files_metadata_t,
) -> *mut rocksdb_livefiles_t {
    // SAFETY: the contract of the crate.
    quiet(null_mut(), || match unsafe { metadata.as_ref() } {
        Some(metadata) => {
            give(rocksdb_livefiles_t(metadata.files.iter().cloned().map(Table::new).collect()))
        }
        None => null_mut(),
    })
}

/// Replaces the files by those of a list, which is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_export_import_files_metadata_set_files(
    metadata: *mut rocksdb_export_import_files_metadata_t,
    files: *mut rocksdb_livefiles_t,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let (Some(metadata), Some(files)) = (metadata.as_mut(), take(files)) {
            metadata.files = files.0.into_iter().map(Table::into_table).collect();
        }
    }
}

/// Makes a list without files.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_create() -> *mut rocksdb_livefiles_t {
    give(rocksdb_livefiles_t(Vec::new()))
}

/// Adds a file to a list, and frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_add(
    files: *mut rocksdb_livefiles_t,
    file: *mut rocksdb_livefile_t,
) {
    // SAFETY: the contract of the crate.
    unsafe {
        if let (Some(files), Some(file)) = (files.as_mut(), take(file)) {
            let name = file.name.strip_prefix(b"/").unwrap_or(&file.name);
            let os = std::ffi::OsStr::from_bytes;
            let mut table = file.table.clone();
            table.file = PathBuf::from(os(&file.directory)).join(os(name));
            files.0.push(Table::new(table));
        }
    }
}

/// Makes a file for a list.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_create() -> *mut rocksdb_livefile_t {
    give(rocksdb_livefile_t::default())
}

/// Frees a file that is in no list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefile_destroy(file: *mut rocksdb_livefile_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(file) };
}

/// Returns the bytes of a text.
unsafe fn c_bytes(text: *const c_char) -> Vec<u8> {
    if text.is_null() {
        return Vec::new();
    }
    // SAFETY: a text ends with a zero.
    let text: CString = unsafe { std::ffi::CStr::from_ptr(text) }.into();
    text.into_bytes()
}

macro_rules! sets {
    ($($function:ident($value:ident: $type:ty $(, $length:ident)?)
        |$file:ident| $set:expr;)*) => { $(
        #[doc = concat!("As in RocksDB: `", stringify!($function), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            file: *mut rocksdb_livefile_t,
            $value: $type
            $(, $length: usize)?
        ) {
            // SAFETY: the contract of the crate.
            unsafe {
                if let Some($file) = file.as_mut() {
                    $set;
                }
            }
        }
    )* };
}

sets! {
    rocksdb_livefile_set_column_family_name(name: *const c_char)
        |file| file.table.column_family = text(name);
    rocksdb_livefile_set_level(level: c_int)
        |file| file.table.level = u8::try_from(level).unwrap_or(u8::MAX);
    rocksdb_livefile_set_name(name: *const c_char) |file| file.name = c_bytes(name);
    rocksdb_livefile_set_directory(name: *const c_char) |file| file.directory = c_bytes(name);
    rocksdb_livefile_set_size(size: usize) |file| file.table.size_bytes = size as u64;
    rocksdb_livefile_set_smallest_key(key: *const c_char, length)
        |file| file.table.smallest = bytes_or_none(key, length).to_vec();
    rocksdb_livefile_set_largest_key(key: *const c_char, length)
        |file| file.table.largest = bytes_or_none(key, length).to_vec();
    rocksdb_livefile_set_smallest_seqno(seqno: u64) |file| file.table.smallest_seqno = seqno;
    rocksdb_livefile_set_largest_seqno(seqno: u64) |file| file.table.largest_seqno = seqno;
    rocksdb_livefile_set_num_entries(count: u64) |file| file.table.entries = count;
    rocksdb_livefile_set_num_deletions(count: u64) |file| file.table.deletions = count;
}
