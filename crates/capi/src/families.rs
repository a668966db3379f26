//! Column families.

use std::ffi::{c_char, c_int, c_uchar};

use sateen::{Db, Error};

use crate::abi::{ErrPtr, bytes, count_of, free, give, guard, malloc_name, missing, text};
use crate::database::{SmallestValues, rocksdb_column_family_handle_t, rocksdb_t};
use crate::environment::Place;
use crate::options::checked;
use crate::options::rocksdb_options_t;
use crate::promises::{check_log, promised};

/// The column families that a function shall open.
pub(crate) struct Wanted {
    names: Vec<String>,
    pub(crate) options: Vec<sateen::Options>,
    pub(crate) smallest_values: SmallestValues,
}

/// Reads the arguments of such a function. `check` prepares the options of each family.
pub(crate) unsafe fn wanted(
    count: c_int,
    names: *const *const c_char,
    options: *const *const rocksdb_options_t,
    check: impl Fn(*const rocksdb_options_t) -> sateen::Result<sateen::Options>,
) -> sateen::Result<Wanted> {
    let count = count_of(count);
    if count > 0 && (names.is_null() || options.is_null()) {
        return Err(missing("the list of column families"));
    }
    // SAFETY: the contract of the module.
    let names: Vec<_> = (0..count).map(|nth| unsafe { text(*names.add(nth)) }).collect();
    let smallest_values = SmallestValues::default();
    for (nth, name) in names.iter().enumerate() {
        // SAFETY: the contract of the module.
        unsafe { smallest_values.note(name, *options.add(nth)) };
    }
    // SAFETY: the contract of the module.
    let options = (0..count).map(|nth| check(unsafe { *options.add(nth) }));
    Ok(Wanted { names, options: options.collect::<sateen::Result<_>>()?, smallest_values })
}

impl Wanted {
    /// Returns the default column family alone.
    pub(crate) fn default_only(options: &sateen::Options) -> Wanted {
        let name = sateen::DEFAULT_COLUMN_FAMILY.to_owned();
        let smallest_values = SmallestValues::default();
        Wanted { names: vec![name], options: vec![options.clone()], smallest_values }
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Opens the database as a secondary with `options` and each column family with its own.
    pub(crate) fn open_secondary(
        &self,
        place: &Place,
        options: &sateen::Options,
    ) -> sateen::Result<Db> {
        let own = self.names.iter().zip(&self.options);
        let families: Vec<_> =
            own.map(|(name, options)| (name.as_str(), options.column_family.clone())).collect();
        place.open_secondary(options.clone(), &families)
    }

    /// Opens the database with `options` and each column family with its own.
    pub(crate) fn open(
        self,
        place: &Place,
        options: &sateen::Options,
        read_only: bool,
    ) -> sateen::Result<Db> {
        let mut options = options.clone();
        let own = self.names.iter().zip(&self.options);
        for (name, of_family) in own.clone() {
            if name == sateen::DEFAULT_COLUMN_FAMILY {
                options.column_family = of_family.column_family.clone();
            }
        }
        let families: Vec<_> = own
            .filter(|(name, _)| *name != sateen::DEFAULT_COLUMN_FAMILY)
            .map(|(name, options)| (name.as_str(), options.column_family.clone()))
            .collect();
        if read_only {
            return place.open_read_only(options, &families);
        }
        sateen_inspect::install();
        let db = Db::open_with(place.vfs.clone(), &place.path, options, &families)?;
        let left = in_order(&db).into_iter().filter(|name| !self.names.contains(name));
        let left: Vec<String> = left.collect();
        if left.is_empty() {
            return Ok(db);
        }
        db.close()?;
        let text = format!("Column families not opened: {}", left.join(", "));
        Err(Error::InvalidArgument(text))
    }
}

/// Returns the names of all column families in the order of their creation.
fn in_order(db: &Db) -> Vec<String> {
    let families = db.column_families().into_iter();
    let mut families: Vec<_> = families.filter_map(|name| db.column_family(&name)).collect();
    families.sort_by_key(sateen::ColumnFamily::id);
    families.iter().map(|family| family.name().to_owned()).collect()
}

/// Returns the names of the column families of the database at `place`, which may be open.
fn names(place: &Place) -> sateen::Result<Vec<String>> {
    Db::list_column_families_with(place.vfs.as_ref(), &place.path)
}

/// Opens a database with column families. `read_only` is present for a read-only open; it tells
/// whether a WAL with unflushed writes is an error.
pub(crate) unsafe fn open(
    options: *const rocksdb_options_t,
    path: *const c_char,
    wanted: Wanted,
    handles: *mut *mut rocksdb_column_family_handle_t,
    read_only: Option<c_uchar>,
) -> sateen::Result<*mut rocksdb_t> {
    // SAFETY: the contract of the module.
    unsafe { Ok(give(open_all(options, path, wanted, handles, read_only)?)) }
}

/// Trims the history of the column families that have timestamps, and of no other one.
fn trim(db: &Db, families: &[String], latest: &[u8]) -> sateen::Result<()> {
    let families = families.iter().filter_map(|name| db.column_family(name));
    let timestamped: Vec<_> = families.filter_map(|family| family.timestamped()).collect();
    // Before anything is deleted.
    timestamped.iter().try_for_each(|family| family.check_timestamp(latest))?;
    timestamped.iter().try_for_each(|family| family.trim_history(latest).map(drop))
}

/// Does the same for a handle that is part of another one.
pub(crate) unsafe fn open_all(
    options: *const rocksdb_options_t,
    path: *const c_char,
    wanted: Wanted,
    handles: *mut *mut rocksdb_column_family_handle_t,
    read_only: Option<c_uchar>,
) -> sateen::Result<rocksdb_t> {
    let (families, smallest) = (wanted.names.clone(), wanted.smallest_values.clone());
    // SAFETY: the contract of the module.
    unsafe {
        let db = open_alone(options, path, wanted, read_only)?;
        give_handles(&db, &families, handles)?;
        let handle = rocksdb_t::of_opened(db, options);
        handle.smallest_values.add(&smallest);
        Ok(handle)
    }
}

/// Does the same, without any handle.
unsafe fn open_alone(
    options: *const rocksdb_options_t,
    path: *const c_char,
    wanted: Wanted,
    read_only: Option<c_uchar>,
) -> sateen::Result<Db> {
    // SAFETY: the contract of the module.
    let place = unsafe { Place::new(options, path) };
    // A database that is opened for reading needs no promise about what is written.
    // SAFETY: as above.
    let own = unsafe {
        match read_only {
            Some(_) => checked(options)?,
            None => promised(options)?,
        }
    };
    let db = wanted.open(&place, &own, read_only.is_some())?;
    check_log(&db, read_only.unwrap_or(0))?;
    Ok(db)
}

/// Stores a handle of each of the column families at `handles`.
pub(crate) unsafe fn give_handles(
    db: &Db,
    families: &[String],
    handles: *mut *mut rocksdb_column_family_handle_t,
) -> sateen::Result<()> {
    let find = |name: &String| {
        db.column_family(name).ok_or_else(|| Error::NoSuchColumnFamily(name.clone()))
    };
    let found = families.iter().map(find).collect::<sateen::Result<Vec<_>>>()?;
    if !handles.is_null() {
        for (nth, family) in found.into_iter().enumerate() {
            // SAFETY: the caller has room for as many handles as names.
            unsafe { *handles.add(nth) = give(rocksdb_column_family_handle_t(family)) };
        }
    }
    Ok(())
}

/// Opens a database and returns handles of its column families, all of which must be named.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_column_families(
    options: *const rocksdb_options_t,
    path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: ErrPtr,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, std::ptr::null_mut(), || {
            let check = |options| promised(options);
            let wanted = wanted(count, names, family_options, check)?;
            open(options, path, wanted, handles, None)
        })
    }
}

/// Opens a database as `rocksdb_open_column_families` does, and deletes all versions of keys after
/// the timestamp, in the column families that have timestamps. After an error the database is
/// closed, and some of these versions may be deleted; another call deletes the rest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_and_trim_history(
    options: *const rocksdb_options_t,
    path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    timestamp: *mut c_char,
    length: usize,
    errptr: ErrPtr,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, std::ptr::null_mut(), || {
            let wanted = wanted(count, names, family_options, |options| promised(options))?;
            let (families, smallest) = (wanted.names.clone(), wanted.smallest_values.clone());
            let db = open_alone(options, path, wanted, None)?;
            let at = bytes(timestamp, length);
            let trimmed = at.and_then(|at| trim(&db, &families, at));
            if trimmed.is_err() {
                // The first error counts.
                let _closed = db.close();
            }
            trimmed?;
            give_handles(&db, &families, handles)?;
            let handle = rocksdb_t::of_opened(db, options);
            handle.smallest_values.add(&smallest);
            Ok(give(handle))
        })
    }
}

/// Opens a database with column families for reading only. Column families that are not named stay
/// closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_for_read_only_column_families(
    options: *const rocksdb_options_t,
    path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    error_if_wal_file_exists: c_uchar,
    errptr: ErrPtr,
) -> *mut rocksdb_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, std::ptr::null_mut(), || {
            let wanted = wanted(count, names, family_options, |options| checked(options))?;
            open(options, path, wanted, handles, Some(error_if_wal_file_exists))
        })
    }
}

/// Returns the names of a database's column families, for `rocksdb_list_column_families_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_list_column_families(
    options: *const rocksdb_options_t,
    path: *const c_char,
    count: *mut usize,
    errptr: ErrPtr,
) -> *mut *mut c_char {
    // SAFETY: the contract of the module.
    unsafe {
        if let Some(count) = count.as_mut() {
            *count = 0;
        }
        guard(errptr, std::ptr::null_mut(), || {
            let list: Vec<_> =
                names(&Place::new(options, path))?.iter().map(|name| malloc_name(name)).collect();
            let pointers = list_of(&list);
            if pointers.is_null() {
                return Err(Error::InvalidArgument("out of memory".into()));
            }
            if let Some(count) = count.as_mut() {
                *count = list.len();
            }
            Ok(pointers)
        })
    }
}

/// Frees a list of names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_list_column_families_destroy(
    list: *mut *mut c_char,
    count: usize,
) {
    if list.is_null() {
        return;
    }
    for nth in 0..count {
        // SAFETY: made by the function above.
        unsafe { libc::free((*list.add(nth)).cast()) };
    }
    // SAFETY: as above.
    unsafe { libc::free(list.cast()) };
}

/// Creates a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_family(
    db: *mut rocksdb_t,
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: ErrPtr,
) -> *mut rocksdb_column_family_handle_t {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, std::ptr::null_mut(), || {
            let db = db.as_ref().ok_or_else(|| missing("the database"))?;
            let family =
                db.db.create_column_family(&text(name), promised(options)?.column_family)?;
            db.smallest_values.note(family.name(), options);
            Ok(give(rocksdb_column_family_handle_t(family)))
        })
    }
}

/// Creates column families with the same options, one after the other. The result has `made`
/// handles, which is fewer than names if one failed. `rocksdb_create_column_families_destroy` frees
/// the list; each handle is freed like others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_families(
    db: *mut rocksdb_t,
    options: *const rocksdb_options_t,
    count: c_int,
    names: *const *const c_char,
    made: *mut usize,
    errptr: ErrPtr,
) -> *mut *mut rocksdb_column_family_handle_t {
    // SAFETY: the contract of the module.
    unsafe {
        let mut handles = Vec::new();
        guard(errptr, (), || {
            let db = db.as_ref().ok_or_else(|| missing("the database"))?;
            let own = promised(options)?.column_family;
            for nth in 0..count_of(count) {
                let family = db.db.create_column_family(&text(*names.add(nth)), own.clone())?;
                db.smallest_values.note(family.name(), options);
                handles.push(give(rocksdb_column_family_handle_t(family)));
            }
            Ok(())
        });
        let list = list_of(&handles);
        if let Some(made) = made.as_mut() {
            *made = if list.is_null() { 0 } else { handles.len() };
        }
        list
    }
}

/// Frees the list without its handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_families_destroy(
    list: *mut *mut rocksdb_column_family_handle_t,
) {
    // SAFETY: made by the function above.
    unsafe { libc::free(list.cast()) };
}

/// Returns a copy of `pointers` in memory from `malloc`; null if there is no memory.
pub(crate) fn list_of<T>(pointers: &[*mut T]) -> *mut *mut T {
    // SAFETY: `malloc` takes any size.
    let list = unsafe { libc::malloc(size_of_val(pointers).max(1)) }.cast::<*mut T>();
    if !list.is_null() {
        // SAFETY: it is new and has room for them.
        unsafe { list.copy_from_nonoverlapping(pointers.as_ptr(), pointers.len()) };
    }
    list
}

/// Drops a column family. The handle must still be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_drop_column_family(
    db: *mut rocksdb_t,
    family: *mut rocksdb_column_family_handle_t,
    errptr: ErrPtr,
) {
    // SAFETY: the contract of the module.
    unsafe {
        guard(errptr, (), || {
            let db = db.as_ref().ok_or_else(|| missing("the database"))?;
            let family = family.as_ref().ok_or_else(|| missing("the column family"))?;
            db.db.drop_column_family(&family.0)
        });
    }
}

/// Returns a handle of the default column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_default_column_family_handle(
    db: *mut rocksdb_t,
) -> *mut rocksdb_column_family_handle_t {
    // SAFETY: the contract of the module.
    match unsafe { db.as_ref() } {
        Some(db) => give(rocksdb_column_family_handle_t(db.db.default_column_family())),
        None => std::ptr::null_mut(),
    }
}

/// Frees a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_handle_destroy(
    family: *mut rocksdb_column_family_handle_t,
) {
    // SAFETY: the contract of the module.
    unsafe { free(family) };
}

/// Returns the number of a column family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_handle_get_id(
    family: *mut rocksdb_column_family_handle_t,
) -> u32 {
    // SAFETY: the contract of the module.
    unsafe { family.as_ref() }.map_or(0, |family| family.0.id())
}

/// Returns the name of a column family, to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_handle_get_name(
    family: *mut rocksdb_column_family_handle_t,
    length: *mut usize,
) -> *mut c_char {
    // SAFETY: the contract of the module.
    unsafe {
        let name = family.as_ref().map_or("", |family| family.0.name());
        if let Some(length) = length.as_mut() {
            *length = sateen::bytes_of_text(name).len();
        }
        malloc_name(name)
    }
}
