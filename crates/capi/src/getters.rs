//! Macros for getters of handles, one line for each getter.

/// Numbers; 0 for a null handle.
macro_rules! numbers {
    ($($function:ident($handle:ty) -> $type:ty: |$it:ident| $get:expr;)*) => { $(
        #[doc = concat!("As in RocksDB: `", stringify!($function), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(handle: *const $handle) -> $type {
            let get: fn(&$handle) -> $type = |$it| $get;
            // SAFETY: the contract of the crate.
            crate::abi::quiet(0, || unsafe { handle.as_ref() }.map_or(0, get))
        }
    )* };
}

/// Numbers that Sateen does not have: always 0.
macro_rules! nothing {
    ($handle:ident -> $type:ty: $($function:ident)*;) => { $(
        #[doc = concat!("Returns 0, because Sateen does not count `", stringify!($function), "`.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $function(_handle: *const $handle) -> $type {
            0
        }
    )* };
}

/// Texts, with their lengths.
macro_rules! texts {
    ($($function:ident($handle:ty): |$it:ident| $get:expr;)*) => { $(
        #[doc = concat!("As in RocksDB: `", stringify!($function), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            handle: *const $handle,
            length: *mut usize,
        ) -> *const std::ffi::c_char {
            let get: fn(&$handle) -> &[u8] = |$it| $get;
            // SAFETY: the contract of the crate.
            unsafe { crate::abi::lend(Some(handle.as_ref().map_or(&[][..], get)), length) }
        }
    )* };
}

/// Texts that Sateen does not have: always empty.
macro_rules! no_texts {
    ($handle:ty: $($function:ident)*;) => { $(
        #[doc = concat!("Returns an empty text: Sateen has no `", stringify!($function), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            _handle: *const $handle,
            length: *mut usize,
        ) -> *const std::ffi::c_char {
            // SAFETY: the contract of the crate.
            unsafe { crate::abi::lend(Some(&[]), length) }
        }
    )* };
}

/// Entries of lists that are always empty.
macro_rules! no_entries {
    ($handle:ty: $($function:ident)*;) => { $(
        #[doc = concat!("Returns null: the list of `", stringify!($function), "` is empty.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            _handle: *const $handle,
            _index: usize,
            length: *mut usize,
        ) -> *const std::ffi::c_char {
            // SAFETY: the contract of the crate.
            unsafe {
                crate::abi::lend(Some(&[]), length);
            }
            std::ptr::null()
        }
    )* };
}

pub(crate) use {no_entries, no_texts, nothing, numbers, texts};
