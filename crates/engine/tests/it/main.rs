//! Tests of the whole engine, in one binary.

mod bad_input;
mod basics;
mod common;
mod corrupt;
mod crash;
mod full_disk;
mod fuzz_corpus;
mod kill;
