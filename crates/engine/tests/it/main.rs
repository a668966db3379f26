//! Tests of the whole engine, in one binary.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

mod crash;
mod faults;
mod features;
mod model;
mod resources;
mod support;
