//! Hostile bytes for `sateen_inspect::fuzz::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen_inspect::fuzz::fuzz(bytes));
