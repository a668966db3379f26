//! The command `sateen`: arguments in, text out, and an exit code that says how it went. The logic
//! is the engine's.

mod args;
mod db;
mod failure;
mod load;
mod progress;
mod scan;
mod store;
mod text;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;

use crate::args::{Cli, DumpVerb, Noun, Rest};
use crate::failure::{Failure, Result};
use crate::store::{DumpOptions, FileKind};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut output = io::stdout().lock();
    let done = run(&cli, &mut output).and_then(|()| Ok(output.flush()?));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.quiet {
                report(&failure, cli.json);
            }
            ExitCode::from(failure.code)
        }
    }
}

fn run(cli: &Cli, output: &mut dyn Write) -> Result<()> {
    match &cli.noun {
        Noun::Db(verb) => db::run(verb, cli.json, output),
        Noun::Table(verb) => dump(FileKind::Table, verb, cli.json, output),
        Noun::Wal(verb) => dump(FileKind::Wal, verb, cli.json, output),
        Noun::Manifest(verb) => dump(FileKind::Manifest, verb, cli.json, output),
        Noun::Bench(rest) => bench(rest),
        Noun::Demo(rest) => bench(rest),
    }
}

fn dump(kind: FileKind, verb: &DumpVerb, json: bool, output: &mut dyn Write) -> Result<()> {
    let DumpVerb::Dump { file, values, limit } = verb;
    store::dump(kind, file, DumpOptions { values: *values, limit: *limit, json }, output)
}

fn bench(_rest: &Rest) -> Result<()> {
    Err(Failure::failed("bench: not part of this build yet"))
}

/// Tells the user, on standard error. If that is gone, too, there is nobody to tell.
fn report(failure: &Failure, json: bool) {
    let mut errors = io::stderr().lock();
    let _nobody = if json {
        writeln!(errors, "{}", json!({ "error": failure.message, "code": failure.code }))
    } else {
        writeln!(errors, "sateen: {failure}")
    };
}
