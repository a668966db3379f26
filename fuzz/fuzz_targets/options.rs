//! Hostile bytes for `sateen::fuzz::options`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::options(bytes));
