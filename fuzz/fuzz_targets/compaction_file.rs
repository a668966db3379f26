//! Hostile bytes for `sateen::fuzz::compaction_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::fuzz::compaction_file(bytes));
