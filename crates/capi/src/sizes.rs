//! The sizes of key ranges in tables and in memory.

use std::ffi::{c_char, c_int};

use sateen::Error;

use crate::abi::{ErrPtr, byte_strings, count_of, guard};
use crate::database::{DEFAULT, of, rocksdb_column_family_handle_t, rocksdb_t, the};
use crate::odd_options::rocksdb_size_approximation_options_t;
use crate::settings::Setting;

type Family = rocksdb_column_family_handle_t;

/// The data that a size includes.
#[derive(Clone, Copy)]
struct Included {
    memtables: bool,
    tables: bool,
}

/// The default: tables alone.
const IN_TABLES: Included = Included { memtables: false, tables: true };

/// Bits of RocksDB's flags. The third stands for files of values, which do not exist, so it adds
/// nothing.
const MEMTABLES: u8 = 1;
const TABLES: u8 = 2;
const BLOBS: u8 = 4;

impl Included {
    /// Refuses a size that includes nothing, as RocksDB does.
    fn checked(self, blobs: bool) -> sateen::Result<Included> {
        if self.memtables || self.tables || blobs {
            return Ok(self);
        }
        let text = "a size must include memtables or files, and both are left out";
        Err(Error::InvalidArgument(text.to_owned()))
    }

    unsafe fn of(options: *const rocksdb_size_approximation_options_t) -> sateen::Result<Included> {
        // SAFETY: the contract of the crate.
        let settings = unsafe { options.as_ref() }.map(|options| &options.0);
        let set =
            |name, default: u8| settings.and_then(|it| u8::get(it, name)).unwrap_or(default) != 0;
        let included =
            Included { memtables: set("include_memtables", 0), tables: set("include_files", 1) };
        included.checked(set("include_blob_files", 0))
    }
}

/// Ranges in the form of C.
struct Ranges {
    count: c_int,
    begins: *const *const c_char,
    begin_lengths: *const usize,
    ends: *const *const c_char,
    end_lengths: *const usize,
}

impl Ranges {
    /// Returns the bounds of each range.
    unsafe fn bounds<'a>(&self) -> sateen::Result<Vec<(&'a [u8], &'a [u8])>> {
        let count = count_of(self.count);
        // SAFETY: the contract of the crate.
        let (begins, ends) = unsafe {
            (
                byte_strings(count, self.begins, self.begin_lengths)?,
                byte_strings(count, self.ends, self.end_lengths)?,
            )
        };
        Ok(begins.into_iter().zip(ends).collect())
    }
}

unsafe fn sizes_of(
    db: *mut rocksdb_t,
    family: *mut Family,
    ranges: &Ranges,
    included: Included,
    sizes: *mut u64,
) -> sateen::Result<()> {
    // SAFETY: the contract of the crate.
    unsafe {
        let db = the(db)?;
        let family = of(db, family)?;
        for (nth, (begin, end)) in ranges.bounds()?.into_iter().enumerate() {
            let mut size = 0;
            if included.tables {
                size += family.approximate_size(begin, end);
            }
            if included.memtables {
                size += family.memtable_size(begin, end);
            }
            *sizes.add(nth) = size;
        }
    }
    Ok(())
}

/// Estimates the bytes of tables for each key range of the default column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_sizes(
    db: *mut rocksdb_t,
    count: c_int,
    begins: *const *const c_char,
    begin_lengths: *const usize,
    ends: *const *const c_char,
    end_lengths: *const usize,
    sizes: *mut u64,
    errptr: ErrPtr,
) {
    let ranges = Ranges { count, begins, begin_lengths, ends, end_lengths };
    // SAFETY: the contract of the crate.
    unsafe { guard(errptr, (), || sizes_of(db, DEFAULT, &ranges, IN_TABLES, sizes)) };
}

/// Does the same for a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_sizes_cf(
    db: *mut rocksdb_t,
    family: *mut Family,
    count: c_int,
    begins: *const *const c_char,
    begin_lengths: *const usize,
    ends: *const *const c_char,
    end_lengths: *const usize,
    sizes: *mut u64,
    errptr: ErrPtr,
) {
    let ranges = Ranges { count, begins, begin_lengths, ends, end_lengths };
    // SAFETY: the contract of the crate.
    unsafe { guard(errptr, (), || sizes_of(db, family, &ranges, IN_TABLES, sizes)) };
}

/// Estimates the bytes of each key range of the default column family. `options` select the data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_sizes_with_options(
    db: *mut rocksdb_t,
    options: *const rocksdb_size_approximation_options_t,
    count: c_int,
    begins: *const *const c_char,
    begin_lengths: *const usize,
    ends: *const *const c_char,
    end_lengths: *const usize,
    sizes: *mut u64,
    errptr: ErrPtr,
) {
    let ranges = Ranges { count, begins, begin_lengths, ends, end_lengths };
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || sizes_of(db, DEFAULT, &ranges, Included::of(options)?, sizes));
    }
}

/// Does the same for a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_sizes_cf_with_options(
    db: *mut rocksdb_t,
    family: *mut Family,
    options: *const rocksdb_size_approximation_options_t,
    count: c_int,
    begins: *const *const c_char,
    begin_lengths: *const usize,
    ends: *const *const c_char,
    end_lengths: *const usize,
    sizes: *mut u64,
    errptr: ErrPtr,
) {
    let ranges = Ranges { count, begins, begin_lengths, ends, end_lengths };
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || sizes_of(db, family, &ranges, Included::of(options)?, sizes));
    }
}

/// Does the same with flags: 1 for memtables, 2 for tables, 4 for files of values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_approximate_sizes_cf_with_flags(
    db: *mut rocksdb_t,
    family: *mut Family,
    count: c_int,
    begins: *const *const c_char,
    begin_lengths: *const usize,
    ends: *const *const c_char,
    end_lengths: *const usize,
    flags: u8,
    sizes: *mut u64,
    errptr: ErrPtr,
) {
    let ranges = Ranges { count, begins, begin_lengths, ends, end_lengths };
    let included = Included { memtables: flags & MEMTABLES != 0, tables: flags & TABLES != 0 };
    // SAFETY: the contract of the crate.
    unsafe {
        guard(errptr, (), || {
            sizes_of(db, family, &ranges, included.checked(flags & BLOBS != 0)?, sizes)
        });
    }
}
