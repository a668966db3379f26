//! Hostile bytes for `sateen::fuzz::edit`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::edit(bytes));
