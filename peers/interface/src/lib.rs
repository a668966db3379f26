//! The functions of `peers/sateen_peer.h` for a store in Rust: a store implements [`Store`], and
//! [`export!`] makes the C functions. No panic leaves them.

mod boundary;
mod settings;

#[doc(hidden)]
pub use boundary::{calls, error};
pub use settings::Settings;

use std::path::Path;

/// The version of the header whose functions [`export!`] makes.
pub const ABI: u32 = 1;

/// The value of a figure that a store does not count.
pub const UNKNOWN: u64 = u64::MAX;

/// The result of an operation. An error is the text that the benchmark prints.
pub type Result<T> = std::result::Result<T, String>;

/// Turns an error of a store into its text.
pub fn failed<T, E: std::fmt::Display>(what: &str, result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// Returns the version of a dependency, as the Cargo.lock of the peer has it.
#[must_use]
pub fn locked_version<'a>(lock: &'a str, name: &str) -> &'a str {
    let package = format!("name = \"{name}\"\nversion = \"");
    let after = lock.split_once(&package).map_or("", |(_, after)| after);
    after.split_once('"').map_or("", |(version, _)| version)
}

/// A change of one key: its value, or `None` if it is deleted.
pub type Change<'a> = (&'a [u8], Option<&'a [u8]>);

/// A key and its value.
pub trait Pair {
    /// Returns the key.
    fn key(&self) -> &[u8];

    /// Returns the value.
    fn value(&self) -> &[u8];
}

/// What the store counts of itself since it was opened; [`UNKNOWN`] for what it does not. The
/// header says more of each.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the header documents the fields")]
pub struct Figures {
    pub flush_written: u64,
    pub compaction_read: u64,
    pub compaction_written: u64,
    pub stalls: u64,
    pub stall_ns: u64,
    pub barriers: u64,
    pub memtable_bytes: u64,
    pub cache_bytes: u64,
    pub debt_bytes: u64,
    pub running_jobs: u64,
}

/// An open database. The comments of the header say what each operation must do.
pub trait Store: Sized + Send + Sync + 'static {
    /// Entries in the order of their keys.
    type Entries: Iterator<Item = Result<Self::Pair>>;
    /// An entry.
    type Pair: Pair;

    /// Opens the database in an existing directory.
    fn open(directory: &Path, settings: &mut Settings<'_>) -> Result<Self>;

    /// Closes the database.
    fn close(self) -> Result<()>;

    /// Writes one key.
    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<()>;

    /// Deletes one key.
    fn delete(&self, key: &[u8], sync: bool) -> Result<()>;

    /// Makes all changes or none.
    fn write(&self, changes: &mut dyn Iterator<Item = Change<'_>>, sync: bool) -> Result<()>;

    /// Calls `found` with the value of one key, if it exists.
    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// Returns the entries from the first key that is not below `key`.
    fn entries(&self, key: &[u8]) -> Result<Self::Entries>;

    /// Moves what was written out of memory into the store's files.
    fn flush(&self) -> Result<()>;

    /// Waits until no background work is running or due.
    fn wait_idle(&self) -> Result<()>;

    /// Sets the figures that the store counts.
    fn count(&self, figures: &mut Figures);
}

/// Makes the C functions of a [`Store`]: `export!(Type, name, version, settings, options, notes)`.
/// The version is an expression of the type `CString`, the others but the first of `&'static CStr`.
#[macro_export]
macro_rules! export {
    ($store:ty, $name:expr, $version:expr, $settings:expr, $options:expr, $notes:expr) => {
        #[unsafe(no_mangle)]
        extern "C" fn sateen_peer_abi() -> u32 {
            $crate::ABI
        }

        #[unsafe(no_mangle)]
        extern "C" fn sateen_peer_name() -> *const std::ffi::c_char {
            let name: &'static std::ffi::CStr = $name;
            name.as_ptr()
        }

        #[unsafe(no_mangle)]
        extern "C" fn sateen_peer_version() -> *const std::ffi::c_char {
            static VERSION: std::sync::LazyLock<std::ffi::CString> =
                std::sync::LazyLock::new(|| $version);
            VERSION.as_ptr()
        }

        #[unsafe(no_mangle)]
        extern "C" fn sateen_peer_settings() -> *const std::ffi::c_char {
            let settings: &'static std::ffi::CStr = $settings;
            settings.as_ptr()
        }

        #[unsafe(no_mangle)]
        extern "C" fn sateen_peer_options() -> *const std::ffi::c_char {
            let options: &'static std::ffi::CStr = $options;
            options.as_ptr()
        }

        #[unsafe(no_mangle)]
        extern "C" fn sateen_peer_notes() -> *const std::ffi::c_char {
            let notes: &'static std::ffi::CStr = $notes;
            notes.as_ptr()
        }

        #[unsafe(no_mangle)]
        extern "C" fn sateen_peer_error() -> *const std::ffi::c_char {
            $crate::error()
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_open(
            directory: *const std::ffi::c_char,
            settings: *const std::ffi::c_char,
        ) -> *mut std::ffi::c_void {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::open::<$store>(directory, settings) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_close(db: *mut std::ffi::c_void) -> std::ffi::c_int {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::close::<$store>(db) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_put(
            db: *mut std::ffi::c_void,
            key: *const u8,
            key_length: usize,
            value: *const u8,
            value_length: usize,
            sync: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::put::<$store>(db, key, key_length, value, value_length, sync) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_delete(
            db: *mut std::ffi::c_void,
            key: *const u8,
            key_length: usize,
            sync: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::delete::<$store>(db, key, key_length, sync) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_write(
            db: *mut std::ffi::c_void,
            changes: *const $crate::calls::ChangeInC,
            count: usize,
            sync: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::write::<$store>(db, changes, count, sync) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_get(
            db: *mut std::ffi::c_void,
            key: *const u8,
            key_length: usize,
            buffer: *mut u8,
            capacity: usize,
            length: *mut usize,
        ) -> std::ffi::c_int {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::get::<$store>(db, key, key_length, buffer, capacity, length) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_cursor_open(
            db: *mut std::ffi::c_void,
        ) -> *mut std::ffi::c_void {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::cursor_open::<$store>(db) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_cursor_seek(
            cursor: *mut std::ffi::c_void,
            key: *const u8,
            key_length: usize,
            entry: *mut $crate::calls::EntryInC,
        ) -> std::ffi::c_int {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::cursor_seek::<$store>(cursor, key, key_length, entry) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_cursor_next(
            cursor: *mut std::ffi::c_void,
            entry: *mut $crate::calls::EntryInC,
        ) -> std::ffi::c_int {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::cursor_next::<$store>(cursor, entry) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_cursor_close(cursor: *mut std::ffi::c_void) {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::cursor_close::<$store>(cursor) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_flush(db: *mut std::ffi::c_void) -> std::ffi::c_int {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::flush::<$store>(db) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_wait_idle(db: *mut std::ffi::c_void) -> std::ffi::c_int {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::wait_idle::<$store>(db) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn sateen_peer_counters(
            db: *mut std::ffi::c_void,
            figures: *mut $crate::Figures,
        ) -> std::ffi::c_int {
            // SAFETY: the caller follows the header.
            unsafe { $crate::calls::counters::<$store>(db, figures) }
        }
    };
}
