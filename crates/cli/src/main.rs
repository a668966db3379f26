//! The program `sateen`. The library of this crate has the code.

fn main() -> std::process::ExitCode {
    sateen_cli::main()
}
