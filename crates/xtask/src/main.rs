//! (filled below)
fn main() {}
