//! Tests of the whole engine, in one binary.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

mod bad_input;
mod basics;
mod common;
mod comparator;
mod concurrency;
mod corrupt;
mod crash;
mod filter;
mod full_disk;
mod fuzz_corpus;
mod ingest;
mod kill;
mod log_data;
mod measure;
mod memory;
mod merge;
mod meta;
mod perf;
mod planted;
mod prefix;
mod ranges;
mod regions;
mod rel;
mod repair;
mod replay;
mod resume;
mod scrub;
mod secondary;
mod space;
mod stored;
mod tables;
mod ttl;
mod updates;
mod write_buffers;
