//! The functions of a library that is made for the benchmark (`peers/sateen_peer.h`). The structs
//! here have the layout of those in the header.
#![expect(unsafe_code, reason = "finding functions by their names, and calling one")]

use std::ffi::{c_char, c_int};

use crate::library::{Free, Handle, Library, functions};
use crate::{Error, Result};

const WHAT: &str = "sateen_peer";
const PREFIX: &str = "sateen_peer_";

/// The version of the header whose functions are declared here.
pub const ABI: u32 = 1;

/// The value of a figure that a store does not count.
pub const UNKNOWN: u64 = u64::MAX;

/// A key and its value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The key's first byte.
    pub key: *const c_char,
    /// The key's bytes.
    pub key_length: usize,
    /// The value's first byte.
    pub value: *const c_char,
    /// The value's bytes.
    pub value_length: usize,
}

impl Default for Entry {
    fn default() -> Entry {
        let none = std::ptr::null();
        Entry { key: none, key_length: 0, value: none, value_length: 0 }
    }
}

/// A change of one key.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The key, and the value of a put.
    pub entry: Entry,
    /// Not 0 if the key is deleted.
    pub is_delete: c_int,
}

/// What a store counts of itself since it was opened; [`UNKNOWN`] if it does not.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Bytes that flushes wrote.
    pub flush_written: u64,
    /// Bytes that compactions read.
    pub compaction_read: u64,
    /// Bytes that compactions wrote.
    pub compaction_written: u64,
    /// Delays and stops of writes.
    pub stalls: u64,
    /// Their length in nanoseconds.
    pub stall_ns: u64,
    /// Syncs of files and directories.
    pub barriers: u64,
    /// Bytes in memtables now.
    pub memtable_bytes: u64,
    /// Bytes in the block cache now.
    pub cache_bytes: u64,
    /// Compaction debt in bytes now.
    pub debt_bytes: u64,
    /// Flushes and compactions that run now.
    pub running_jobs: u64,
}

impl Figures {
    /// Returns figures that say nothing.
    #[must_use]
    pub fn unknown() -> Figures {
        Figures {
            flush_written: UNKNOWN,
            compaction_read: UNKNOWN,
            compaction_written: UNKNOWN,
            stalls: UNKNOWN,
            stall_ns: UNKNOWN,
            barriers: UNKNOWN,
            memtable_bytes: UNKNOWN,
            cache_bytes: UNKNOWN,
            debt_bytes: UNKNOWN,
            running_jobs: UNKNOWN,
        }
    }
}

type Text = unsafe extern "C" fn() -> *const c_char;
type OfDatabase = unsafe extern "C" fn(Handle) -> c_int;

functions! {
    /// The functions of the header.
    pub struct Api {
        required {
            name: Text,
            version: Text,
            settings: Text,
            error: Text,
            open: unsafe extern "C" fn(*const c_char, *const c_char) -> Handle,
            close: OfDatabase,
            put: unsafe extern "C" fn(
                Handle, *const c_char, usize, *const c_char, usize, c_int) -> c_int,
            delete: unsafe extern "C" fn(Handle, *const c_char, usize, c_int) -> c_int,
            get: unsafe extern "C" fn(
                Handle, *const c_char, usize, *mut c_char, usize, *mut usize) -> c_int,
            cursor_open: unsafe extern "C" fn(Handle) -> Handle,
            cursor_seek: unsafe extern "C" fn(
                Handle, *const c_char, usize, *mut Entry) -> c_int,
            cursor_next: unsafe extern "C" fn(Handle, *mut Entry) -> c_int,
            cursor_close: Free,
            flush: OfDatabase,
            wait_idle: OfDatabase,
        }
        optional {
            options: Text,
            notes: Text,
            write: unsafe extern "C" fn(Handle, *const Change, usize, c_int) -> c_int,
            counters: unsafe extern "C" fn(Handle, *mut Figures) -> c_int,
        }
    }
}

impl Api {
    /// Returns true if `library` is made for the benchmark, in whichever version.
    #[must_use]
    pub fn is_in(library: &Library) -> bool {
        version_of(library).is_some()
    }

    /// Finds the functions in `library`.
    ///
    /// # Errors
    /// `Failed` if the library has another version of the interface, or lacks functions, which are
    /// named.
    pub fn load(library: &Library) -> Result<Api> {
        let Some(version) = version_of(library) else {
            return Err(library.lacks(WHAT, PREFIX, &["abi"]));
        };
        // SAFETY: the function takes nothing in every version.
        let found = unsafe { version() };
        if found != ABI {
            return Err(Error::Failed(format!(
                "{}: version {found} of the functions sateen_peer_*; this program calls version \
                 {ABI}. Build the library with the peers/sateen_peer.h of this program",
                library.path().display()
            )));
        }
        Api::resolve(library, WHAT, PREFIX)
    }
}

type Version = unsafe extern "C" fn() -> u32;

fn version_of(library: &Library) -> Option<Version> {
    // SAFETY: the type is that of the function in the header.
    unsafe { library.find(PREFIX, "abi") }
}
