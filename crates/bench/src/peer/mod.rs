//! Other engines, in shared libraries that the user names, called through their C functions.
//!
//! 1. [`kind`] tells the engine of a library by the functions that it has.
//! 2. `rocksdb` and `leveldb` open a database with the settings of the benchmark, and do what the
//!    two do differently ([`Peer`]). Each refuses by name what its engine cannot do.
//! 3. [`PeerClient`] does the operations whose functions are the same in both.
//! 4. `interface` does the same for every library that is made for the benchmark.
//! 5. `hooks` redirect calls of a library: for the limited device and for counts that the engine
//!    does not give.
#![expect(unsafe_code, reason = "calls to C functions")]

mod client;
mod hooks;
pub(crate) mod interface;
pub(crate) mod leveldb;
pub(crate) mod rocksdb;

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};

use sateen_peers::{Handle, Inherited, Library};

use crate::store::StoreConfig;
use crate::{Error, Result};

use self::client::PeerClient;
pub(crate) use self::interface::About;

/// The engines that a library may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    RocksDb,
    LevelDb,
    Other(About),
}

/// Tells the engine of the library at `path` by its functions.
///
/// # Errors
/// If there is no library, if it has the functions of no engine, or if it is made for another
/// version of the benchmark.
pub(crate) fn kind(path: &Path) -> Result<Kind> {
    let library = load(path)?;
    let has = |name: &str| {
        // SAFETY: the function is only looked for.
        unsafe { library.find::<*const std::ffi::c_void>("", name) }.is_some()
    };
    // A library made for the benchmark may contain the functions of the engine that it calls.
    if let Some(about) = interface::about(&library, path)? {
        return Ok(Kind::Other(about));
    }
    match (has("rocksdb_open"), has("leveldb_open")) {
        (true, _) => Ok(Kind::RocksDb),
        (false, true) => Ok(Kind::LevelDb),
        (false, false) => Err(Error::Usage(format!(
            "--peer {}: neither RocksDB nor LevelDB with C functions, nor made for the benchmark: \
             it lacks rocksdb_open, leveldb_open and sateen_peer_abi",
            path.display()
        ))),
    }
}

fn load(path: &Path) -> Result<Library> {
    Library::open(path).map_err(of_peer)
}

/// Turns an error of a library into one of the benchmark.
fn of_peer(error: sateen_peers::Error) -> Error {
    match error {
        sateen_peers::Error::Usage(text) => Error::Usage(format!("--peer {text}")),
        sateen_peers::Error::Failed(text) => Error::Failed(text),
    }
}

/// What the two engines do differently with an open database.
trait Peer: Send + Sync {
    fn functions(&self) -> &Inherited;

    fn database(&self) -> Handle;

    /// Reads the value of one key into `value`; false if the key does not exist.
    fn get(&self, options: Handle, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Reads several keys; returns how many exist. `spare` is room for a value.
    fn multi_get(&self, options: Handle, keys: &[&[u8]], spare: &mut Vec<u8>) -> Result<u32>;

    /// Returns the text of a property, if there is one of this name.
    fn text_property(&self, name: &CStr) -> Option<String> {
        // SAFETY: the database is open, the name ends in NUL; the text is ours to free.
        unsafe {
            let text = (self.functions().property_value)(self.database(), name.as_ptr());
            if text.is_null() {
                return None;
            }
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.functions().free)(text.cast());
            Some(copy)
        }
    }
}

/// Returns the directory of a database as the library gets it.
fn absolute(directory: &Path) -> PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

/// Returns fresh options with the settings that both engines have.
///
/// # Safety
/// The functions are those of a loaded library.
unsafe fn new_options(functions: &Inherited, config: &StoreConfig) -> Handle {
    // SAFETY: the handle is fresh and of the type that its setters want.
    unsafe {
        let options = (functions.options_create)();
        (functions.options_set_create_if_missing)(options, 1);
        (functions.options_set_write_buffer_size)(options, size(config.shared().memtable_bytes));
        options
    }
}

/// Opens a database and frees the options. `what` names the engine in an error.
///
/// # Safety
/// The options are those of the library, and are not used again.
unsafe fn open_database(
    functions: &Inherited,
    options: Handle,
    directory: &Path,
    what: &str,
) -> Result<Handle> {
    let name = c_string(directory.as_os_str().as_encoded_bytes(), "the directory")?;
    // SAFETY: as the caller promises; the name ends in NUL.
    unsafe {
        let opened = call(functions, |error| (functions.open)(options, name.as_ptr(), error));
        (functions.options_destroy)(options);
        opened.map_err(|error| Error::Failed(format!("{what}, {}: {error}", directory.display())))
    }
}

/// Calls `f` with a place for an error and returns the error that `f` stored there.
///
/// # Safety
/// `f` is sound and leaves in the place null or a text to be freed with `free` of the library.
#[inline]
unsafe fn call<T>(functions: &Inherited, f: impl FnOnce(*mut *mut c_char) -> T) -> Result<T> {
    // SAFETY: as the caller promises.
    unsafe { sateen_peers::call(functions.free, f) }.map_err(Error::Failed)
}

fn c_string(text: &[u8], what: &str) -> Result<CString> {
    sateen_peers::c_string(text, what).map_err(|error| Error::Usage(error.to_string()))
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn int(number: u32) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_of_neither_engine_is_refused_with_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let built = |name: &str, source: &str| {
            let (file, library) = (folder.path().join("a.c"), folder.path().join(name));
            std::fs::write(&file, source).unwrap();
            let mut compiler = std::process::Command::new("cc");
            compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&file);
            assert!(compiler.status().unwrap().success());
            library
        };
        // The name of the file says nothing.
        let leveldb = built("librocksdb.so", "void leveldb_open(void) {}");
        assert_eq!(kind(&leveldb).unwrap(), Kind::LevelDb);
        let rocksdb = built("libleveldb.so", "void rocksdb_open(void) {}");
        assert_eq!(kind(&rocksdb).unwrap(), Kind::RocksDb);
        let error = kind(&built("other.so", "void other(void) {}")).unwrap_err().to_string();
        assert!(error.contains("other.so: neither") && error.contains("leveldb_open"), "{error}");
        let error = kind(Path::new("/no/lib.so")).unwrap_err().to_string();
        assert!(error.starts_with("--peer /no/lib.so: "), "{error}");
        let error = kind(&folder.path().join("a.c")).unwrap_err().to_string();
        assert!(error.contains("a.c: cannot be loaded"), "{error}");
        // What an engine needs beyond its first function is named, too.
        let error = leveldb::open(&leveldb, folder.path(), &StoreConfig::nothing()).err();
        let error = error.unwrap().to_string();
        assert!(
            error.contains("not a LevelDB library") && error.contains("leveldb_put"),
            "{error}"
        );
    }
}
