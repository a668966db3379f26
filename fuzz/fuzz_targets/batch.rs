//! Hostile bytes for `sateen::fuzz::batch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::batch(bytes));
