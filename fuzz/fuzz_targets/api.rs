//! Hostile bytes for `sateen::fuzz::api`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::api(bytes));
