//! Hostile bytes for `sateen::fuzz::manifest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::manifest(bytes));
