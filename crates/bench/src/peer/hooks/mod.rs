//! Redirects calls that a loaded library makes to libc, to limit, to slow down and to count them.
//!
//! 1. [`install`] gathers the hooks: those of the limited device (`limited`) if there is one, those
//!    that count barriers and may slow them down in any case, and those of the engine.
//! 2. `elf` puts them into the library's own slots. The rest of the process sees no difference.

mod elf;
mod limited;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;

pub(super) use elf::Hook;
pub(super) use limited::barriers;

use crate::device::Device;
use crate::store::StoreConfig;
use crate::{Error, Result};

/// Redirects calls of the library that has the address `inside`: counts its barriers, slows them
/// down and limits the device below `directory` as the settings say, and installs the hooks `more`.
/// Returns how many slots of each name were changed.
///
/// # Errors
/// If the library does not read, write or sync with the functions that are limited, or the process
/// already has a limited library.
///
/// # Safety
/// Each hook of `more` has the signature of the function that it replaces. No other thread runs in
/// the library.
#[expect(unsafe_code, reason = "the caller's promise")]
pub(super) unsafe fn install(
    inside: *const c_void,
    directory: &Path,
    config: &StoreConfig,
    more: &[Hook],
) -> Result<BTreeMap<&'static str, usize>> {
    let follow = |limit| Arc::new(Device::following(limit, config.device_limit_file.clone()));
    let device = config.device_limit.map(follow);
    // SAFETY: as the caller promises.
    let redirected = unsafe { install_on(inside, directory, device, more)? };
    limited::slow_down(config.barrier_cost_ns, &redirected)?;
    Ok(redirected)
}

/// Redirects calls of a library to a device that exists, if there is one.
///
/// # Safety
/// As for [`install`].
#[expect(unsafe_code, reason = "the caller's promise")]
unsafe fn install_on(
    inside: *const c_void,
    directory: &Path,
    device: Option<Arc<Device>>,
    more: &[Hook],
) -> Result<BTreeMap<&'static str, usize>> {
    let is_limited = device.is_some();
    let mut hooks = limited::SYNCS.to_vec();
    if let Some(device) = device {
        limited::begin(directory, device)?;
        hooks.extend(limited::hooks());
    }
    hooks.extend(more);
    // SAFETY: the hooks have the signatures of libc's functions; the caller promises the rest.
    let redirected = unsafe { elf::redirect(inside, &hooks) }.map_err(|error| {
        Error::Failed(format!("the library's calls cannot be redirected: {error}"))
    })?;
    if is_limited {
        limited::check(&redirected)?;
    }
    Ok(redirected)
}
