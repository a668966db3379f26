//! The benchmark as a separate program.

use std::process::ExitCode;

use clap::Parser;
use sateen_bench::{BenchArgs, Error, Reexec};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    let reexec = Reexec::default();
    match sateen_bench::run(&Command::parse().bench, &reexec) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}
