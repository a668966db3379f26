//! Tests of the whole engine, in one binary.

mod basics;
