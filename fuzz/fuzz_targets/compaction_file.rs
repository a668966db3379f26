//! Hostile bytes for `sateen::test_support::fuzz::compaction_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sateen::test_support::fuzz::compaction_file(bytes));
