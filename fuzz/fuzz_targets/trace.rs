//! Hostile bytes for `sateen::test_support::fuzz::trace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::test_support::fuzz::trace(bytes));
