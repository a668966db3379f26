//! The C functions of LevelDB that the benchmark calls ([`Api`]), and a reader of its databases
//! ([`LevelDb`]).
//!
//! LevelDB cannot open a database for reading only: an open replays the log into a table and begins
//! a manifest. The library therefore gets a directory of its own. Tables, which never change, are
//! linked into it; the other files are small and are copied.
#![expect(unsafe_code, reason = "calls to C functions")]

use std::ffi::{c_char, c_int};
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::error::explain;
use crate::library::{
    ErrorSlot, Free, Handle, New, SetFlag, SetHandle, SetInt, SetSize, c_string, call, functions,
};
use crate::source::{Cursor, DEFAULT_FAMILY, Iterating, Source};
use crate::{Error, Inherited, Library, Result};

const WHAT: &str = "LevelDB";
const PREFIX: &str = "leveldb_";

functions! {
    /// The functions that the benchmark calls in addition to [`Inherited`].
    pub struct Calls {
        required {
            options_set_block_restart_interval: SetInt,
            options_set_block_size: SetSize,
            options_set_cache: SetHandle,
            options_set_filter_policy: SetHandle,
            options_set_max_open_files: SetInt,
            options_set_paranoid_checks: SetFlag,
            filterpolicy_create_bloom: unsafe extern "C" fn(c_int) -> Handle,
            filterpolicy_destroy: Free,
            get: unsafe extern "C" fn(
                Handle, Handle, *const c_char, usize, *mut usize, ErrorSlot) -> *mut c_char,
            compact_range: unsafe extern "C" fn(
                Handle, *const c_char, usize, *const c_char, usize),
            major_version: unsafe extern "C" fn() -> c_int,
            minor_version: unsafe extern "C" fn() -> c_int,
        }
        optional {
            options_set_max_file_size: SetSize,
        }
    }
}

/// The functions that the benchmark calls.
pub struct Api {
    /// The functions that RocksDB has, too.
    pub inherited: Inherited,
    calls: Calls,
}

impl Api {
    /// Finds the functions in `library`.
    ///
    /// # Errors
    /// `Failed` with the names of functions that the library lacks.
    pub fn load(library: &Library) -> Result<Api> {
        let inherited = Inherited::load(library, WHAT, PREFIX)?;
        Ok(Api { inherited, calls: Calls::resolve(library, WHAT, PREFIX)? })
    }
}

impl Deref for Api {
    type Target = Calls;

    fn deref(&self) -> &Calls {
        &self.calls
    }
}

functions! {
    struct Reading {
        required {
            options_create: New,
            options_destroy: Free,
            options_set_paranoid_checks: SetFlag,
            open: unsafe extern "C" fn(Handle, *const c_char, ErrorSlot) -> Handle,
            close: Free,
            create_iterator: unsafe extern "C" fn(Handle, Handle) -> Handle,
            readoptions_create: New,
            readoptions_destroy: Free,
            readoptions_set_fill_cache: SetFlag,
            readoptions_set_verify_checksums: SetFlag,
        }
        optional {}
    }
}

/// An open LevelDB database. Its directory is not written to.
pub struct LevelDb {
    api: Reading,
    iterating: Iterating,
    db: Handle,
    families: [Vec<u8>; 1],
}

impl LevelDb {
    /// Opens the database in `directory` with the LevelDB of `library`. The library writes into the
    /// directory `scratch`, which must be empty and must exist while the database is open.
    ///
    /// # Errors
    /// `Usage` if the library does not exist; `Failed` with the message of LevelDB or the file
    /// system.
    pub fn open(library: &Path, directory: &Path, scratch: &Path) -> Result<LevelDb> {
        let library = Library::open(library)?;
        let api = Reading::resolve(&library, WHAT, PREFIX)?;
        let iterating = Iterating::resolve(&library, WHAT, PREFIX)?;
        mirror(directory, scratch)?;
        let path = c_string(scratch.as_os_str().as_encoded_bytes(), "the directory's name")?;
        // SAFETY: the options are fresh and freed once, the path ends in a zero.
        let opened = unsafe {
            let options = (api.options_create)();
            // Without this option LevelDB silently skips damaged records of the log.
            (api.options_set_paranoid_checks)(options, 1);
            let opened = call(iterating.free, |error| (api.open)(options, path.as_ptr(), error));
            (api.options_destroy)(options);
            opened
        };
        let db = opened.map_err(|error| {
            Error::Failed(format!("LevelDB, {}: {error}{}", directory.display(), explain(&error)))
        })?;
        Ok(LevelDb { api, iterating, db, families: [DEFAULT_FAMILY.into()] })
    }
}

impl Source for LevelDb {
    fn families(&self) -> &[Vec<u8>] {
        &self.families
    }

    fn keys_estimated(&self, _: usize) -> Option<u64> {
        None
    }

    fn cursor(&self, _: usize) -> Result<Cursor<'_>> {
        // SAFETY: the database is open for as long as `self` is borrowed.
        unsafe {
            let options = (self.api.readoptions_create)();
            (self.api.readoptions_set_fill_cache)(options, 0);
            (self.api.readoptions_set_verify_checksums)(options, 1);
            let iterator = (self.api.create_iterator)(self.db, options);
            let freed = (options, self.api.readoptions_destroy);
            Ok(Cursor::new(&self.iterating, iterator, freed))
        }
    }
}

impl Drop for LevelDb {
    fn drop(&mut self) {
        // SAFETY: all cursors borrow the database and are gone; it is closed once.
        unsafe { (self.api.close)(self.db) };
    }
}

/// Fills `copy` with the files of `directory` that LevelDB needs.
fn mirror(directory: &Path, copy: &Path) -> Result<()> {
    let failed = |path: &Path, error| Error::Failed(format!("copying {}: {error}", path.display()));
    let whole = directory.canonicalize().map_err(|error| failed(directory, error))?;
    let entries = fs::read_dir(&whole).map_err(|error| failed(&whole, error))?;
    for entry in entries {
        let path = entry.map_err(|error| failed(&whole, error))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let to = copy.join(name);
        let done = if name.ends_with(".ldb") || name.ends_with(".sst") {
            symlink(&path, &to)
        } else if name == "CURRENT" || name.starts_with("MANIFEST-") || name.ends_with(".log") {
            fs::copy(&path, &to).map(drop)
        } else {
            Ok(())
        };
        done.map_err(|error| failed(&path, error))?;
    }
    Ok(())
}
