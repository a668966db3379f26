//! Hostile bytes for `sateen::fuzz::block`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::block(bytes));
