//! Options of value files, which RocksDB calls blob files. RocksDB has a switch and a smallest size
//! where Sateen has one option, `value_separation_bytes`.

use std::ffi::c_uchar;

use sateen::Options;

use crate::options::{SMALLEST_VALUE as SMALLEST, change, rocksdb_options_t};
use crate::settings::number;

const SWITCH: &str = "enable_blob_files";
/// The largest value that there can be.
const VALUE_BYTES_MAX: u64 = 1 << 30;

/// Returns `value_separation_bytes` for RocksDB's two options.
fn separation(enabled: bool, smallest: u64) -> u64 {
    if enabled { smallest.clamp(1, VALUE_BYTES_MAX) } else { 0 }
}

/// Returns true if `name` is one of the two options that make one of ours.
pub(crate) fn is_half(name: &str) -> bool {
    matches!(name, SWITCH | SMALLEST)
}

/// Returns `value_separation_bytes` after the changes of the two options in `changes`; `None` if
/// there are none. `smallest` is the size that was set before, and is the new one afterwards.
pub(crate) fn changed<'a>(
    options: &Options,
    smallest: &mut Option<u64>,
    changes: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<u64> {
    let now = options.column_family.value_separation_bytes;
    let (mut enabled, mut found) = (now > 0, false);
    if now > 0 && smallest.is_none() {
        *smallest = Some(now);
    }
    for (name, value) in changes.filter(|(name, _)| is_half(name)) {
        let Some(value) = number(value) else { continue };
        found = true;
        match name {
            SWITCH => enabled = value != 0,
            _ => *smallest = Some(u64::try_from(value).unwrap_or(0)),
        }
    }
    found.then(|| separation(enabled, smallest.unwrap_or(0)))
}

impl rocksdb_options_t {
    /// Sets `value_separation_bytes` by what was set of the two options.
    pub(crate) fn separate_values(&mut self) {
        let enabled = self.kept::<c_uchar>(SWITCH).is_some_and(|on| on != 0);
        let smallest = self.kept::<u64>(SMALLEST).unwrap_or(0);
        self.0.column_family.value_separation_bytes = separation(enabled, smallest);
    }
}

/// Turns value files on or off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_enable_blob_files(
    options: *mut rocksdb_options_t,
    on: c_uchar,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            options.keep(SWITCH, on);
            options.separate_values();
        });
    }
}

/// Returns true if there are value files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_enable_blob_files(
    options: *mut rocksdb_options_t,
) -> c_uchar {
    // SAFETY: the contract of the module.
    let options = unsafe { options.as_ref() };
    options.is_some_and(|options| options.0.column_family.value_separation_bytes > 0).into()
}

/// Sets the length from which on values are in value files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_min_blob_size(
    options: *mut rocksdb_options_t,
    bytes: u64,
) {
    // SAFETY: the contract of the module.
    unsafe {
        change(options, |options| {
            options.keep(SMALLEST, bytes);
            options.separate_values();
        });
    }
}

/// Returns the length from which on values are in value files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_get_min_blob_size(options: *mut rocksdb_options_t) -> u64 {
    // SAFETY: the contract of the module.
    let options = unsafe { options.as_ref() };
    options.map_or(0, |options| {
        let ours = options.0.column_family.value_separation_bytes;
        options.kept(SMALLEST).unwrap_or(ours)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_and_a_size_make_one_option() {
        let mut options = Options::default();
        let mut smallest = None;
        let mut after = |options: &Options, list: &[(&str, &str)]| {
            changed(options, &mut smallest, list.iter().copied())
        };
        assert_eq!(after(&options, &[("write_buffer_size", "1M")]), None);
        assert_eq!(after(&options, &[(SWITCH, "true")]), Some(1));
        assert_eq!(after(&options, &[(SMALLEST, "4K"), (SWITCH, "true")]), Some(4096));
        assert_eq!(after(&options, &[(SMALLEST, "8K")]), Some(0));
        assert_eq!(after(&options, &[(SWITCH, "true")]), Some(8192));
        options.column_family.value_separation_bytes = 100;
        assert_eq!(after(&options, &[(SMALLEST, "4K")]), Some(4096));
        assert_eq!(after(&options, &[(SWITCH, "0")]), Some(0));
        options.column_family.value_separation_bytes = 0;
        assert_eq!(after(&options, &[(SWITCH, "1")]), Some(4096));
        // It was set under our name.
        smallest = None;
        options.column_family.value_separation_bytes = 100;
        assert_eq!(changed(&options, &mut smallest, [(SWITCH, "0")].into_iter()), Some(0));
        assert_eq!(smallest, Some(100));
        assert_eq!(separation(true, u64::MAX), VALUE_BYTES_MAX);
    }
}
