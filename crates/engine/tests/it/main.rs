//! Tests of the whole engine, in one binary.

mod basics;
mod common;
mod concurrency;
mod crash;
mod meta;
