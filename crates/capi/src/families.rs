//! Column families.

use std::ffi::{c_char, c_int, c_uchar};

use sateen::{Db, Error};

use crate::abi::{ErrPtr, count_of, free, give, guard, malloc_name, missing, text};
use crate::database::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::environment::Place;
use crate::options::checked;
use crate::options::rocksdb_options_t;
use crate::promises::{check_log, promised};

/// What a function that opens column families is told of them.
pub(crate) struct Wanted {
    names: Vec<String>,
    pub(crate) options: Vec<sateen::Options>,
}

/// `check` makes the options of each of them ready.
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
    let names = (0..count).map(|nth| unsafe { text(*names.add(nth)) }).collect();
    // SAFETY: the contract of the module.
    let options = (0..count).map(|nth| check(unsafe { *options.add(nth) }));
    Ok(Wanted { names, options: options.collect::<sateen::Result<_>>()? })
}

impl Wanted {
    /// The default column family and no other.
    pub(crate) fn default_only(options: &sateen::Options) -> Wanted {
        let name = sateen::DEFAULT_COLUMN_FAMILY.to_owned();
        Wanted { names: vec![name], options: vec![options.clone()] }
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
        let (vfs, path) = (place.vfs.clone(), &place.path);
        Db::open_secondary_with(vfs, path, options.clone(), &families)
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

/// The names of all column families in the order in which they were made.
fn in_order(db: &Db) -> Vec<String> {
    let families = db.column_families().into_iter();
    let mut families: Vec<_> = families.filter_map(|name| db.column_family(&name)).collect();
    families.sort_by_key(sateen::ColumnFamily::id);
    families.iter().map(|family| family.name().to_owned()).collect()
}

/// The names of the column families of the database at `place`, which may be open.
fn names(place: &Place) -> sateen::Result<Vec<String>> {
    Db::list_column_families_with(place.vfs.as_ref(), &place.path)
}

/// Opens column families; `read_only`, if for reading: whether a log that is needed is an error.
pub(crate) unsafe fn open(
    options: *const rocksdb_options_t,
    path: *const c_char,
    wanted: Wanted,
    handles: *mut *mut rocksdb_column_family_handle_t,
    read_only: Option<c_uchar>,
) -> sateen::Result<*mut rocksdb_t> {
    let families = wanted.names.clone();
    // SAFETY: the contract of the module.
    let place = unsafe { Place::new(options, path) };
    // A database that is opened for reading needs no promise about what is written.
    // SAFETY: as above.
    let own = unsafe {
        match read_only {
            Some(_) => checked(options)?,
            None => promised(options, Some(&place.path))?,
        }
    };
    let db = wanted.open(&place, &own, read_only.is_some())?;
    check_log(&db, read_only.unwrap_or(0))?;
    // SAFETY: as above.
    unsafe { give_handles(&db, &families, handles)? };
    // SAFETY: the contract of the module.
    Ok(unsafe { rocksdb_t::opened(db, options) })
}

/// Leaves a handle of each of the column families at `handles`.
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

/// Opens a database and handles of its column families, all of which must be named.
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
            let place = Place::new(options, path);
            let check = |options| promised(options, Some(&place.path));
            let wanted = wanted(count, names, family_options, check)?;
            open(options, path, wanted, handles, None)
        })
    }
}

/// The same for reading; column families that are not named stay closed.
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

/// The names of a database's column families, for `rocksdb_list_column_families_destroy`.
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
                return Err(Error::InvalidArgument("there is no memory".into()));
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

/// Makes a column family.
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
            let options = promised(options, None)?.column_family;
            let family = db.db.create_column_family(&text(name), options)?;
            Ok(give(rocksdb_column_family_handle_t(family)))
        })
    }
}

/// Makes column families with the same options, one after the other. What it returns has as many
/// handles as `made` says, which is fewer than names if one could not be made; the list is freed by
/// `rocksdb_create_column_families_destroy`, each handle as others are.
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
            let options = promised(options, None)?.column_family;
            for nth in 0..count_of(count) {
                let family = db.db.create_column_family(&text(*names.add(nth)), options.clone())?;
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

/// Frees the list, not what is in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_families_destroy(
    list: *mut *mut rocksdb_column_family_handle_t,
) {
    // SAFETY: made by the function above.
    unsafe { libc::free(list.cast()) };
}

/// A copy of `pointers` in memory from `malloc`; null if there is none.
pub(crate) fn list_of<T>(pointers: &[*mut T]) -> *mut *mut T {
    // SAFETY: any size may be asked for.
    let list = unsafe { libc::malloc(size_of_val(pointers).max(1)) }.cast::<*mut T>();
    if !list.is_null() {
        // SAFETY: it is new and has room for them.
        unsafe { list.copy_from_nonoverlapping(pointers.as_ptr(), pointers.len()) };
    }
    list
}

/// Drops a column family; the handle is still to be freed.
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

/// A handle of the default column family.
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

/// A column family's number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_column_family_handle_get_id(
    family: *mut rocksdb_column_family_handle_t,
) -> u32 {
    // SAFETY: the contract of the module.
    unsafe { family.as_ref() }.map_or(0, |family| family.0.id())
}

/// A column family's name, to be freed.
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
