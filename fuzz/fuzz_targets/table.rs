//! Hostile bytes for `sateen::fuzz::table`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::table(bytes));
