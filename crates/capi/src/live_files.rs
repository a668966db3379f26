//! The live tables of a database.

use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use sateen::{LiveTable, bytes_of_text};

use crate::abi::{free, give, lend, malloc_copy, malloc_name, quiet};
use crate::database::{DEFAULT, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::odd_options::rocksdb_column_family_metadata_options_t;

/// A table, with its texts in the form that C reads.
#[derive(Debug)]
pub(crate) struct Table {
    table: LiveTable,
    family: CString,
    name: CString,
    directory: CString,
}

impl Table {
    pub(crate) fn new(table: LiveTable) -> Table {
        let c_text = |text: &[u8]| CString::new(text.replace_zeros()).unwrap_or_default();
        let name = table.file.file_name().unwrap_or_default();
        let directory = table.file.parent().map(|path| path.as_os_str());
        Table {
            family: c_text(&bytes_of_text(&table.column_family)),
            name: c_text(&[b"/", name.as_bytes()].concat()),
            directory: c_text(directory.unwrap_or_default().as_bytes()),
            table,
        }
    }

    /// Returns the table without its texts.
    pub(crate) fn into_table(self) -> LiveTable {
        self.table
    }
}

trait ReplaceZeros {
    fn replace_zeros(&self) -> Vec<u8>;
}

impl ReplaceZeros for [u8] {
    /// Replaces zeros, which would end a text.
    fn replace_zeros(&self) -> Vec<u8> {
        self.iter().map(|byte| if *byte == 0 { b'?' } else { *byte }).collect()
    }
}

/// The tables of all column families.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_livefiles_t(pub(crate) Vec<Table>);

/// Returns the current tables. Several may be in one file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles(db: *mut rocksdb_t) -> *const rocksdb_livefiles_t {
    quiet(null(), || {
        // SAFETY: the contract of the crate.
        let Ok(db) = (unsafe { the(db) }) else { return null() };
        let tables = db.live_tables().into_iter().map(Table::new);
        give(rocksdb_livefiles_t(tables.collect())).cast_const()
    })
}

/// Returns their number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_count(files: *const rocksdb_livefiles_t) -> c_int {
    // SAFETY: the contract of the crate.
    let count = unsafe { files.as_ref() }.map_or(0, |files| files.0.len());
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// Frees the list and everything that its getters returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_livefiles_destroy(files: *const rocksdb_livefiles_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(files.cast_mut()) };
}

unsafe fn nth<'a>(files: *const rocksdb_livefiles_t, index: c_int) -> Option<&'a Table> {
    // SAFETY: the contract of the crate.
    unsafe { files.as_ref() }?.0.get(usize::try_from(index).ok()?)
}

macro_rules! of_a_file {
    ($($(#[$doc:meta])* $function:ident $number:ty: $get:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            files: *const rocksdb_livefiles_t,
            index: c_int,
        ) -> $number {
            let get: fn(&Table) -> $number = $get;
            // SAFETY: the contract of the crate.
            unsafe { nth(files, index) }.map_or(NONE as $number, get)
        }
    )* };
}

/// The answer for a table that is not in the list.
const NONE: u8 = 0;

of_a_file! {
    /// Returns its level.
    rocksdb_livefiles_level c_int: |table| table.table.level.into();
    /// Returns its bytes.
    rocksdb_livefiles_size usize:
        |table| usize::try_from(table.table.size_bytes).unwrap_or(usize::MAX);
    /// Returns its entries, tombstones included.
    rocksdb_livefiles_entries u64: |table| table.table.entries;
    /// Returns its tombstones.
    rocksdb_livefiles_deletions u64: |table| table.table.deletions;
    /// Returns its oldest sequence number.
    rocksdb_livefiles_smallest_seqno u64: |table| table.table.smallest_seqno;
    /// Returns its newest sequence number.
    rocksdb_livefiles_largest_seqno u64: |table| table.table.largest_seqno;
}

macro_rules! texts_of_a_file {
    ($($(#[$doc:meta])* $function:ident $field:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            files: *const rocksdb_livefiles_t,
            index: c_int,
        ) -> *const c_char {
            // SAFETY: the contract of the crate.
            unsafe { nth(files, index) }.map_or(null(), |table| table.$field.as_ptr())
        }
    )* };
}

texts_of_a_file! {
    /// Returns the name of its column family.
    rocksdb_livefiles_column_family_name family;
    /// Returns the name of its file, after a slash.
    rocksdb_livefiles_name name;
    /// Returns the directory of its file.
    rocksdb_livefiles_directory directory;
}

macro_rules! keys_of_a_file {
    ($($(#[$doc:meta])* $function:ident $field:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            files: *const rocksdb_livefiles_t,
            index: c_int,
            length: *mut usize,
        ) -> *const c_char {
            // SAFETY: the contract of the crate.
            unsafe {
                lend(nth(files, index).map(|table| table.table.$field.as_slice()), length)
            }
        }
    )* };
}

keys_of_a_file! {
    /// Returns its smallest key.
    rocksdb_livefiles_smallestkey smallest;
    /// Returns its largest key.
    rocksdb_livefiles_largestkey largest;
}

/// The metadata of a column family, by level.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_column_family_metadata_t {
    name: String,
    levels: Vec<Arc<Vec<LiveTable>>>,
}

/// The metadata of a level.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_level_metadata_t {
    level: usize,
    tables: Arc<Vec<LiveTable>>,
}

/// The metadata of a table.
#[expect(non_camel_case_types, reason = "RocksDB's name")]
pub struct rocksdb_sst_file_metadata_t(LiveTable);

/// Returns the metadata of the default column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_column_family_metadata(
    db: *mut rocksdb_t,
) -> *mut rocksdb_column_family_metadata_t {
    // SAFETY: the contract of the crate.
    unsafe { rocksdb_get_column_family_metadata_cf(db, DEFAULT) }
}

/// Returns the metadata of a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_column_family_metadata_cf(
    db: *mut rocksdb_t,
    family: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_column_family_metadata_t {
    // SAFETY: the contract of the crate.
    unsafe { rocksdb_get_column_family_metadata_cf_with_options(db, family, null()) }
}

/// Returns the tables of the default column family that `options` select.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_column_family_metadata_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_column_family_metadata_options_t,
) -> *mut rocksdb_column_family_metadata_t {
    // SAFETY: the contract of the crate.
    unsafe { rocksdb_get_column_family_metadata_cf_with_options(db, DEFAULT, options) }
}

/// Returns the tables of a column family that `options` select; all of them if it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_column_family_metadata_cf_with_options(
    db: *mut rocksdb_t,
    family: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_column_family_metadata_options_t,
) -> *mut rocksdb_column_family_metadata_t {
    quiet(null_mut(), || {
        // SAFETY: the contract of the crate.
        let Ok(db) = (unsafe { the(db) }) else { return null_mut() };
        // SAFETY: the contract of the crate.
        let (family, options) = unsafe { (of(db, family), options.as_ref()) };
        let Ok(family) = family else { return null_mut() };
        let comparator = family.comparator();
        let listed = |table: &LiveTable| {
            let bounds = (table.smallest.as_slice(), table.largest.as_slice());
            options.is_none_or(|it| it.lists(table.level, |a, b| comparator.compare(a, b), bounds))
        };
        let mut levels = vec![Vec::new(); levels_of(&family)];
        for table in family.live_tables().into_iter().filter(listed) {
            if let Some(level) = levels.get_mut(usize::from(table.level)) {
                level.push(table);
            }
        }
        let levels = levels.into_iter().map(Arc::new).collect();
        give(rocksdb_column_family_metadata_t { name: family.name().to_owned(), levels })
    })
}

fn levels_of(family: &sateen::ColumnFamily) -> usize {
    usize::try_from(family.options().levels).unwrap_or(0)
}

/// Frees the metadata. Levels and tables that its getters returned stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_metadata_destroy(
    metadata: *mut rocksdb_column_family_metadata_t,
) {
    // SAFETY: the contract of the crate.
    unsafe { free(metadata) };
}

/// Returns the bytes of all tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_metadata_get_size(
    metadata: *mut rocksdb_column_family_metadata_t,
) -> u64 {
    // SAFETY: the contract of the crate.
    let levels = unsafe { metadata.as_ref() }.map_or(&[][..], |metadata| &metadata.levels);
    levels.iter().flat_map(|level| level.iter()).map(|table| table.size_bytes).sum()
}

/// Returns the number of tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_metadata_get_file_count(
    metadata: *mut rocksdb_column_family_metadata_t,
) -> usize {
    // SAFETY: the contract of the crate.
    let levels = unsafe { metadata.as_ref() }.map_or(&[][..], |metadata| &metadata.levels);
    levels.iter().map(|level| level.len()).sum()
}

/// Returns its name, to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_metadata_get_name(
    metadata: *mut rocksdb_column_family_metadata_t,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    let metadata = unsafe { metadata.as_ref() };
    metadata.map_or(null_mut(), |metadata| malloc_name(&metadata.name))
}

/// Returns the number of levels, empty ones included.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_metadata_get_level_count(
    metadata: *mut rocksdb_column_family_metadata_t,
) -> usize {
    // SAFETY: the contract of the crate.
    unsafe { metadata.as_ref() }.map_or(0, |metadata| metadata.levels.len())
}

/// Returns a level; null if there are fewer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_metadata_get_level_metadata(
    metadata: *mut rocksdb_column_family_metadata_t,
    level: usize,
) -> *mut rocksdb_level_metadata_t {
    // SAFETY: the contract of the crate.
    let tables = unsafe { metadata.as_ref() }.and_then(|metadata| metadata.levels.get(level));
    tables.map_or(null_mut(), |tables| {
        give(rocksdb_level_metadata_t { level, tables: tables.clone() })
    })
}

/// Frees the metadata. Levels and tables that its getters returned stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_level_metadata_destroy(metadata: *mut rocksdb_level_metadata_t) {
    // SAFETY: the contract of the crate.
    unsafe { free(metadata) };
}

/// Returns the number of the level.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_level_metadata_get_level(
    metadata: *mut rocksdb_level_metadata_t,
) -> c_int {
    // SAFETY: the contract of the crate.
    let level = unsafe { metadata.as_ref() }.map_or(0, |metadata| metadata.level);
    c_int::try_from(level).unwrap_or(c_int::MAX)
}

/// Returns the bytes of its tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_level_metadata_get_size(
    metadata: *mut rocksdb_level_metadata_t,
) -> u64 {
    // SAFETY: the contract of the crate.
    let metadata = unsafe { metadata.as_ref() };
    metadata.map_or(0, |level| level.tables.iter().map(|table| table.size_bytes).sum())
}

/// Returns the number of its tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_level_metadata_get_file_count(
    metadata: *mut rocksdb_level_metadata_t,
) -> usize {
    // SAFETY: the contract of the crate.
    unsafe { metadata.as_ref() }.map_or(0, |metadata| metadata.tables.len())
}

/// Returns a table; null if there are fewer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_level_metadata_get_sst_file_metadata(
    metadata: *mut rocksdb_level_metadata_t,
    index: usize,
) -> *mut rocksdb_sst_file_metadata_t {
    // SAFETY: the contract of the crate.
    let table = unsafe { metadata.as_ref() }.and_then(|metadata| metadata.tables.get(index));
    table.map_or(null_mut(), |table| give(rocksdb_sst_file_metadata_t(table.clone())))
}

/// Frees the metadata.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sst_file_metadata_destroy(
    metadata: *mut rocksdb_sst_file_metadata_t,
) {
    // SAFETY: the contract of the crate.
    unsafe { free(metadata) };
}

/// Returns its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sst_file_metadata_get_size(
    metadata: *mut rocksdb_sst_file_metadata_t,
) -> u64 {
    // SAFETY: the contract of the crate.
    unsafe { metadata.as_ref() }.map_or(0, |table| table.0.size_bytes)
}

/// Returns the name of its file, to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sst_file_metadata_get_relative_filename(
    metadata: *mut rocksdb_sst_file_metadata_t,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    let name = unsafe { metadata.as_ref() }.and_then(|table| table.0.file.file_name());
    name.map_or(null_mut(), |name| malloc_copy(name.as_encoded_bytes()))
}

/// Returns the directory of its file, to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_sst_file_metadata_get_directory(
    metadata: *mut rocksdb_sst_file_metadata_t,
) -> *mut c_char {
    // SAFETY: the contract of the crate.
    let directory = unsafe { metadata.as_ref() }.and_then(|table| table.0.file.parent());
    directory.map_or(null_mut(), |path| malloc_copy(path.as_os_str().as_encoded_bytes()))
}

macro_rules! keys_of_a_table {
    ($($(#[$doc:meta])* $function:ident $field:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            metadata: *mut rocksdb_sst_file_metadata_t,
            length: *mut usize,
        ) -> *mut c_char {
            // SAFETY: the contract of the crate.
            unsafe {
                let key = metadata.as_ref().map(|table| table.0.$field.as_slice());
                if let Some(length) = length.as_mut() {
                    *length = key.map_or(0, <[u8]>::len);
                }
                key.map_or(null_mut(), malloc_copy)
            }
        }
    )* };
}

keys_of_a_table! {
    /// Returns its smallest key, to be freed.
    rocksdb_sst_file_metadata_get_smallestkey smallest;
    /// Returns its largest key, to be freed.
    rocksdb_sst_file_metadata_get_largestkey largest;
}
