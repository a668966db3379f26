//! A RocksDB database that is opened for reading only. Its directory is not written to.
//!
//! The library opens it with the options that it was written with, as far as the database's OPTIONS
//! file tells them: the directory of its logs, the format of its tables, and the merge operators
//! that are part of RocksDB.
#![expect(unsafe_code, reason = "calls to C functions")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr::null_mut;

use crate::error::explain;
use crate::library::{Handle, c_string, call};
use crate::rocksdb::{Common, Reading};
use crate::source::{Cursor, DEFAULT_FAMILY, Iterating, Source};
use crate::{Error, Library, Result};

/// Bytes of one read. The reader reads everything in order.
const READAHEAD_BYTES: usize = 4 << 20;
/// Bytes of the block cache. Each block is read once, so that the cache only holds the current
/// ones.
const CACHE_BYTES: usize = 8 << 20;
/// The largest number of open tables, so that a large database does not use up the file
/// descriptors.
const OPEN_FILES: c_int = 256;

struct Api {
    common: Common,
    reading: Reading,
    iterating: Iterating,
}

/// A RocksDB database, opened for reading only. Its directory is not written to.
pub struct RocksDb {
    api: Api,
    db: Handle,
    names: Vec<Vec<u8>>,
    handles: Vec<Handle>,
}

impl RocksDb {
    /// Opens the database in `directory` with the RocksDB of `library`. `options` (in RocksDB's
    /// syntax) override those it was written with. The library writes its messages into the
    /// directory `scratch`.
    ///
    /// # Errors
    /// `Usage` if the library does not exist or RocksDB does not understand the options. `Failed`
    /// with RocksDB's message, and with what is missing if the database needs code of its owner.
    pub fn open(
        library: &Path,
        directory: &Path,
        scratch: &Path,
        options: &str,
    ) -> Result<RocksDb> {
        let library = Library::open(library)?;
        let api = Api {
            common: Common::load(&library)?,
            reading: Reading::load(&library)?,
            iterating: Iterating::resolve(&library, "RocksDB", "rocksdb_")?,
        };
        let path = c_string(directory.as_os_str().as_encoded_bytes(), "the directory's name")?;
        let scratch = c_string(scratch.as_os_str().as_encoded_bytes(), "the directory's name")?;
        let text = c_string(options.as_bytes(), "the options")?;
        let place = Place { api: &api, directory, path: &path, scratch: &scratch, text: &text };
        // SAFETY: all handles are of this library, and the place's texts end in zeros.
        let (db, names, handles) = unsafe { place.open() }?;
        Ok(RocksDb { api, db, names, handles })
    }
}

impl Source for RocksDb {
    fn families(&self) -> &[Vec<u8>] {
        &self.names
    }

    fn keys_estimated(&self, family: usize) -> Option<u64> {
        let (ask, handle) = (self.api.reading.property_int_cf?, *self.handles.get(family)?);
        let mut keys = 0;
        // SAFETY: handle and database are open, the name ends in a zero, the result has a place.
        let status =
            unsafe { ask(self.db, handle, c"rocksdb.estimate-num-keys".as_ptr(), &mut keys) };
        (status == 0).then_some(keys)
    }

    fn cursor(&self, family: usize) -> Result<Cursor<'_>> {
        let Some(&handle) = self.handles.get(family) else {
            return Err(Error::Usage(format!("there is no column family number {family}")));
        };
        let (common, reading) = (&self.api.common, &self.api.reading);
        // SAFETY: handle and database are open for as long as `self` is borrowed.
        unsafe {
            let options = (common.readoptions_create)();
            (reading.readoptions_set_fill_cache)(options, 0);
            (reading.readoptions_set_readahead_size)(options, READAHEAD_BYTES);
            // Without total order a prefix extractor could hide keys with other prefixes.
            (reading.readoptions_set_total_order_seek)(options, 1);
            let iterator = (reading.create_iterator_cf)(self.db, options, handle);
            let freed = (options, common.readoptions_destroy);
            Ok(Cursor::new(&self.api.iterating, iterator, freed))
        }
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: all cursors borrow the database and are gone; each handle is freed once.
        unsafe {
            for handle in &self.handles {
                (self.api.common.column_family_handle_destroy)(*handle);
            }
            (self.api.common.close)(self.db);
        }
    }
}

/// A database and what it takes to open it.
struct Place<'a> {
    api: &'a Api,
    directory: &'a Path,
    path: &'a CStr,
    scratch: &'a CStr,
    text: &'a CStr,
}

/// Options of the library, freed on drop.
struct Owned<'a> {
    api: &'a Api,
    handle: Handle,
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `options_create`, freed once.
        unsafe { (self.api.common.options_destroy)(self.handle) };
    }
}

/// The contents of a database's OPTIONS file.
struct Written<'a> {
    database: Owned<'a>,
    families: Vec<(Vec<u8>, Owned<'a>)>,
}

impl<'a> Place<'a> {
    /// # Safety
    /// All handles are of the library of `api`.
    unsafe fn open(&self) -> Result<(Handle, Vec<Vec<u8>>, Vec<Handle>)> {
        // SAFETY: handles are fresh or were made by the functions that their users want.
        unsafe {
            let Written { database, families } = self.written()?;
            let names = self.names(database.handle)?;
            let plain = self.with_text((self.api.common.options_create)())?;
            let options: Vec<Handle> = names
                .iter()
                .map(|name| {
                    let known = families.iter().find(|(known, _)| known == name);
                    known.map_or(plain.handle, |(_, options)| options.handle)
                })
                .collect();
            let texts: Result<Vec<CString>> =
                names.iter().map(|name| c_string(name, "a column family")).collect();
            let texts = texts?;
            let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
            let mut handles = vec![null_mut(); names.len()];
            let count = c_int::try_from(names.len()).unwrap_or(c_int::MAX);
            let open = self.api.reading.open_for_read_only_column_families;
            let opened = call(self.api.common.free, |error| {
                let (pointers, options) = (pointers.as_ptr(), options.as_ptr());
                let (path, handles) = (self.path.as_ptr(), handles.as_mut_ptr());
                open(database.handle, path, count, pointers, options, handles, 0, error)
            });
            let db = opened.map_err(|error| self.failed(&error))?;
            Ok((db, names, handles))
        }
    }

    /// Returns the options that the database was written with, or default ones if it has no OPTIONS
    /// file.
    ///
    /// # Safety
    /// As [`Place::open`].
    unsafe fn written(&self) -> Result<Written<'a>> {
        let reading = &self.api.reading;
        let functions = reading
            .load_latest_options
            .zip(reading.load_latest_options_destroy)
            .zip(reading.create_default_env.zip(reading.env_destroy));
        // SAFETY: handles are fresh or were made by the functions that their users want; what
        // `load` made is ended by its counterpart.
        unsafe {
            let Some(((load, destroy), (new_env, free_env))) =
                functions.filter(|_| has_options(self.directory))
            else {
                let database = self.with_text((self.api.common.options_create)())?;
                self.for_reading(&database);
                return Ok(Written { database, families: Vec::new() });
            };
            let env = new_env();
            let cache = (self.api.common.cache_create_lru)(CACHE_BYTES);
            let (mut database, mut count) = (null_mut(), 0);
            let (mut names, mut families) = (null_mut(), null_mut());
            let loaded = call(self.api.common.free, |error| {
                let path = self.path.as_ptr();
                let (database, count) = (&mut database, &mut count);
                load(path, env, true, cache, database, count, &mut names, &mut families, error);
            });
            (self.api.common.cache_destroy)(cache);
            free_env(env);
            loaded.map_err(|error| self.failed(&format!("its OPTIONS file: {error}")))?;
            let mut written = Vec::new();
            let copied = (0..count).try_for_each(|i| {
                let name = CStr::from_ptr(*names.add(i)).to_bytes().to_owned();
                written.push((name, self.copy_with_text(*families.add(i))?));
                Ok(())
            });
            let copy = self.copy_with_text(database);
            destroy(database, names, families, count);
            copied?;
            let database = copy?;
            self.for_reading(&database);
            Ok(Written { database, families: written })
        }
    }

    /// # Safety
    /// `base` are options of the library. This function frees them.
    unsafe fn with_text(&self, base: Handle) -> Result<Owned<'a>> {
        let base = Owned { api: self.api, handle: base };
        // SAFETY: as the caller promises.
        unsafe { self.copy_with_text(base.handle) }
    }

    /// Returns a copy of `base` with the changes that the user asked for.
    ///
    /// # Safety
    /// `base` are options of the library.
    unsafe fn copy_with_text(&self, base: Handle) -> Result<Owned<'a>> {
        let common = &self.api.common;
        // SAFETY: both are options, the text ends in a zero.
        unsafe {
            let copy = Owned { api: self.api, handle: (common.options_create)() };
            let text = self.text.as_ptr();
            call(common.free, |error| {
                (common.get_options_from_string)(base, text, copy.handle, error);
            })
            .map_err(|error| {
                let text = self.text.to_string_lossy();
                Error::Usage(format!("the options {text:?} of the source: {error}"))
            })?;
            Ok(copy)
        }
    }

    /// # Safety
    /// `options` are options of the library.
    unsafe fn for_reading(&self, options: &Owned<'_>) {
        let reading = &self.api.reading;
        // SAFETY: as the caller promises; the text ends in a zero.
        unsafe {
            // Some versions write messages even when they only read. They must not go into the
            // database's directory.
            (reading.options_set_db_log_dir)(options.handle, self.scratch.as_ptr());
            (reading.options_set_max_open_files)(options.handle, OPEN_FILES);
        }
    }

    /// The names of the column families.
    ///
    /// # Safety
    /// `options` are options of the library.
    unsafe fn names(&self, options: Handle) -> Result<Vec<Vec<u8>>> {
        let reading = &self.api.reading;
        let mut count = 0;
        // SAFETY: as the caller promises; the list has `count` texts and is freed once.
        unsafe {
            let list = call(self.api.common.free, |error| {
                (reading.list_column_families)(options, self.path.as_ptr(), &mut count, error)
            });
            let list = list.map_err(|error| self.failed(&error))?;
            let mut names: Vec<Vec<u8>> =
                (0..count).map(|i| CStr::from_ptr(*list.add(i)).to_bytes().to_owned()).collect();
            (reading.list_column_families_destroy)(list, count);
            if !names.iter().any(|name| name == DEFAULT_FAMILY.as_bytes()) {
                names.push(DEFAULT_FAMILY.into());
            }
            Ok(names)
        }
    }

    fn failed(&self, error: &str) -> Error {
        Error::Failed(format!("RocksDB, {}: {error}{}", self.directory.display(), explain(error)))
    }
}

/// True if a file in `directory` has the options that the database was written with.
fn has_options(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().starts_with("OPTIONS-"))
}
