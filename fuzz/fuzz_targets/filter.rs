//! Hostile bytes for `sateen::fuzz::filter`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::filter(bytes));
