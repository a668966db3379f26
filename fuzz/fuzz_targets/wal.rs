//! Hostile bytes for `sateen::fuzz::wal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::wal(bytes));
