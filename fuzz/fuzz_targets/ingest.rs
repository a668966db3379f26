//! Hostile bytes for `sateen::fuzz::ingest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::ingest(bytes));
