//! Callbacks: the state that the caller's functions get, and its destructor.

use std::ffi::{c_char, c_void};

use crate::abi::text;

/// The state that the caller's functions get, and its destructor.
pub(crate) struct State {
    pub(crate) state: *mut c_void,
    pub(crate) destructor: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: RocksDB's contract: the functions may be called from any thread.
unsafe impl Send for State {}
// SAFETY: RocksDB's contract: several threads may call them at once.
unsafe impl Sync for State {}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: given with this state, and called once.
            unsafe { destructor(self.state) };
        }
    }
}

/// Returns the text of `name`.
///
/// # Safety
/// The function was given with `state`, and returns null or a text that ends with a zero.
pub(crate) unsafe fn name_of(
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
    state: *mut c_void,
) -> String {
    // SAFETY: the caller's promise.
    name.map_or_else(String::new, |name| unsafe { text(name(state)) })
}
