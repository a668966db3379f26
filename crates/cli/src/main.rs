//! The command `sateen`.

mod text;

fn main() {}
