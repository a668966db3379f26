//! Hostile bytes for `sateen::fuzz::texts`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::texts(bytes));
