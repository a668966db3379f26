//! Functions of the caller's: what they are called with, and what they call themselves.

use std::ffi::{c_char, c_void};

use crate::abi::text;

/// What functions are called with, and how it is given back.
pub(crate) struct State {
    pub(crate) state: *mut c_void,
    pub(crate) destructor: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: RocksDB's contract, which who wrote the functions knows: they are called from any thread.
unsafe impl Send for State {}
// SAFETY: and from several at once.
unsafe impl Sync for State {}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: given with this state, and called once.
            unsafe { destructor(self.state) };
        }
    }
}

/// What `name` says.
///
/// # Safety
/// It was given with `state`, and what it returns is null or ends with a zero.
pub(crate) unsafe fn name_of(
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
    state: *mut c_void,
) -> String {
    // SAFETY: the caller's promise.
    name.map_or_else(String::new, |name| unsafe { text(name(state)) })
}
