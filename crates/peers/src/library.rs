//! C functions that are found at run time in a shared library, and the conventions of their calls.
//!
//! A library is opened with RTLD_NOW | RTLD_LOCAL and never closed, because its threads may still
//! run when the process ends.
#![expect(unsafe_code, reason = "dlopen and the C functions behind it")]

use std::error::Error as _;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};

use libloading::os::unix::{self, RTLD_LOCAL, RTLD_NOW};

use crate::{Error, Result};

/// An opaque object of a library.
pub type Handle = *mut c_void;
/// The place where a function stores the text of its error.
pub(crate) type ErrorSlot = *mut *mut c_char;

/// The type of functions that create an object without arguments.
pub(crate) type New = unsafe extern "C" fn() -> Handle;
/// The type of functions that free an object, or change it without arguments.
pub type Free = unsafe extern "C" fn(Handle);
pub(crate) type SetFlag = unsafe extern "C" fn(Handle, std::ffi::c_uchar);
pub(crate) type SetInt = unsafe extern "C" fn(Handle, std::ffi::c_int);
pub(crate) type SetSize = unsafe extern "C" fn(Handle, usize);
pub(crate) type SetHandle = unsafe extern "C" fn(Handle, Handle);

/// A slice as RocksDB returns it by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Where it begins.
    pub data: *const c_char,
    /// Its bytes.
    pub size: usize,
}

/// A shared library.
#[derive(Debug)]
pub struct Library {
    library: std::mem::ManuallyDrop<unix::Library>,
    path: PathBuf,
}

impl Library {
    /// Opens the library at `path`. It stays open until the process ends.
    ///
    /// # Errors
    /// `Usage` if the file does not exist. `Failed` if it is not a library or needs another one
    /// that is missing.
    pub fn open(path: &Path) -> Result<Library> {
        if !path.is_file() {
            return Err(Error::Usage(format!("{}: there is no such file", path.display())));
        }
        // The loader would look for a name without a slash among the system's libraries.
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        // SAFETY: the library's initializers run; the caller named it to be run.
        let library = unsafe { unix::Library::open(Some(whole), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| {
            // The loader's message, for instance with the name of a missing library, is in the
            // source.
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Error::Failed(format!("{}: cannot be loaded: {why}", path.display()))
        })?;
        Ok(Library { library: std::mem::ManuallyDrop::new(library), path: path.to_owned() })
    }

    /// Finds the function `prefix` + `name`.
    ///
    /// # Safety
    /// `T` is the type of a pointer to the function of this name.
    #[must_use]
    pub unsafe fn find<T: Copy>(&self, prefix: &str, name: &str) -> Option<T> {
        // SAFETY: as the caller promises.
        unsafe { self.library.get::<T>(format!("{prefix}{name}\0").as_bytes()) }
            .ok()
            .map(|symbol| *symbol)
    }

    /// Returns where the library is, as the user named it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the error for missing functions.
    pub(crate) fn lacks(&self, what: &str, prefix: &str, missing: &[&str]) -> Error {
        let missing: Vec<String> = missing.iter().map(|name| format!("{prefix}{name}")).collect();
        Error::Failed(format!(
            "{}: not a {what} library with C functions: it lacks {}",
            self.path.display(),
            missing.join(", ")
        ))
    }
}

/// Declares a struct of functions. The name of a field is the C name without its prefix. `resolve`
/// finds the functions, and fails with the names of required ones that are missing.
macro_rules! functions {
    (
        $(#[$meta:meta])*
        $visible:vis struct $api:ident {
            required { $($name:ident: $type:ty,)* }
            optional { $($maybe:ident: $maybe_type:ty,)* }
        }
    ) => {
        $(#[$meta])*
        $visible struct $api {
            $(#[doc = concat!("The function `", stringify!($name), "`.")] pub $name: $type,)*
            $(
                #[doc = concat!("The function `", stringify!($maybe), "`, if it is there.")]
                pub $maybe: Option<$maybe_type>,
            )*
        }

        impl $api {
            pub(crate) fn resolve(
                library: &$crate::Library,
                what: &str,
                prefix: &str,
            ) -> $crate::Result<$api> {
                let mut missing: Vec<&'static str> = Vec::new();
                $(
                    // SAFETY: the type is that of the function in the C header of the library.
                    let $name: Option<$type> = unsafe { library.find(prefix, stringify!($name)) };
                    if $name.is_none() {
                        missing.push(stringify!($name));
                    }
                )*
                $(
                    // SAFETY: as above.
                    let $maybe = unsafe { library.find(prefix, stringify!($maybe)) };
                )*
                if let ($(Some($name),)*) = ($($name,)*) {
                    return Ok($api { $($name,)* $($maybe,)* });
                }
                Err(library.lacks(what, prefix, &missing))
            }
        }
    };
}
pub(crate) use functions;

/// Calls `f` with a place for an error and returns the text that `f` stored there.
///
/// # Errors
/// The text.
///
/// # Safety
/// `f` is sound and leaves in the place null or a text to be freed with `free`.
#[inline]
pub unsafe fn call<T>(
    free: Free,
    f: impl FnOnce(*mut *mut c_char) -> T,
) -> std::result::Result<T, String> {
    let mut error: *mut c_char = std::ptr::null_mut();
    let value = f(&mut error);
    if error.is_null() {
        return Ok(value);
    }
    // SAFETY: as the caller promises.
    unsafe { take_error(free, error) }.map(|()| value)
}

/// Returns a C text as an error and frees the text.
///
/// # Errors
/// The text.
///
/// # Safety
/// `error` is null or a NUL-terminated text to be freed with `free`, which is not used again.
#[cold]
pub unsafe fn take_error(free: Free, error: *mut c_char) -> std::result::Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: as the caller promises.
    unsafe { free(error.cast()) };
    Err(text)
}

/// The pointer to the bytes that C functions take.
#[inline]
#[must_use]
pub fn chars(slice: &[u8]) -> *const c_char {
    slice.as_ptr().cast()
}

/// The bytes at a pointer and with a length.
///
/// # Safety
/// The pointer is null or points to `length` readable bytes that do not change during `'a`.
#[inline]
#[must_use]
pub unsafe fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

/// Returns `text` with a zero byte at its end. `what` names the text in the error.
///
/// # Errors
/// `Usage` if the text contains a zero byte.
pub fn c_string(text: &[u8], what: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::Usage(format!("{what} must not contain a zero byte")))
}
