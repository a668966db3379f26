//! The command `sateen`: arguments in, text out, and an exit code. The logic is the engine's.
//!
//! It is a library so that `examples/man.rs` can generate man pages and completions from
//! [`command`] without making the program larger.

mod args;
mod backup;
mod copied;
mod db;
mod device;
mod diff;
mod dump;
mod export;
mod failure;
mod families;
mod help;
mod import;
mod interrupt;
mod key;
mod live;
mod load;
mod log;
mod options;
mod place;
mod progress;
mod records;
mod rocksdb;
mod scan;
mod sim;
mod sim_page;
mod store;
mod text;
mod top;
mod upkeep;
mod why;
mod workplace;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use sateen_bench::Reexec;

use crate::args::{Cli, Noun, Verbs};
use crate::dump::{DumpOptions, DumpVerb, FileKind, Written};
use crate::failure::Result;

/// The whole command line, with grouped help.
pub fn command() -> clap::Command {
    help::command()
}

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    sateen_inspect::install();
    let cli = help::parse();
    let mut output = io::stdout().lock();
    let done = run(&cli, &mut output).and_then(|()| Ok(output.flush()?));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.quiet {
                failure.report(cli.json());
            }
            ExitCode::from(failure.code)
        }
    }
}

/// Checks a command line of `bench` or `sim`, the program's name first, and runs nothing. Its words
/// must be options, agree with each other, and name profiles and options of Sateen that exist.
///
/// # Errors
/// What the command would print instead of running.
pub fn check(words: &[String]) -> std::result::Result<(), String> {
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    match &cli.noun {
        Noun::Sim(arguments) => sim::check(arguments).map_err(|failure| failure.to_string()),
        Noun::Bench(arguments) => sateen_bench::check(arguments).map_err(|error| error.to_string()),
        _ => Err("neither bench nor sim".to_owned()),
    }
}

fn run(cli: &Cli, output: &mut dyn Write) -> Result<()> {
    match &cli.noun {
        Noun::Db(verbs) => db::run(&verbs.verb, verbs.json, output),
        Noun::Table(verbs) => look_into(FileKind::Table, verbs, output),
        Noun::Wal(verbs) => look_into(FileKind::Wal, verbs, output),
        Noun::Manifest(verbs) => look_into(FileKind::Manifest, verbs, output),
        Noun::Sim(arguments) => sim::run(arguments, output),
        Noun::Top(arguments) => top::run(arguments, output),
        Noun::Why(arguments) => why::run(arguments, output),
        Noun::RocksDb(verbs) => rocksdb::run(&verbs.verb, verbs.json, output),
        Noun::Log(arguments) => log::run(arguments, output),
        Noun::ServeMetrics(arguments) => live::serve_metrics(arguments, output),
        // These commands print their output themselves.
        Noun::Bench(arguments) => Ok(sateen_bench::run(arguments, &reexec()?).map(drop)?),
        Noun::Demo(arguments) => Ok(sateen_bench::demo(arguments, &reexec()?, output).map(drop)?),
    }
}

/// Returns how the benchmark starts this program again, in a process for each measurement.
fn reexec() -> Result<Reexec> {
    let interrupted = interrupt::watch()?;
    Ok(Reexec { interrupted, ..Reexec::new(["bench"]) })
}

fn look_into(kind: FileKind, verbs: &Verbs<DumpVerb>, output: &mut dyn Write) -> Result<()> {
    let DumpVerb::Dump { file, values, hex, limit } = &verbs.verb;
    let written = if *hex { Written::Hex } else { Written::Text };
    let options = DumpOptions { values: *values, limit: *limit, json: verbs.json, written };
    dump::run(kind, file, options, output)
}
