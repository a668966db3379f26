//! `sateen rocksdb check` names which functions of RocksDB's C interface a program calls, and which
//! of them `libsateen_rocksdb` lacks.
//!
//! [`export`] is the way back to RocksDB. `functions.txt` has every function of the interface and
//! what becomes of a call. A test of the crate `sateen-capi` keeps it as the library is.

mod elf;
mod export;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;

use crate::failure::{FAILED, Failure, Result};

const FUNCTIONS: &str = include_str!("functions.txt");

#[derive(Debug, Subcommand)]
pub(crate) enum RocksDbVerb {
    /// List functions of RocksDB that a program would miss here
    #[command(after_help = "\
The program, or the library that calls RocksDB's C interface, is read and not run. The exit code is
1 if it calls a function that would end it. One that fails with an error ends nothing by itself.

Examples:
  sateen rocksdb check ./my-service
  sateen rocksdb check librocksdbjni.so --json")]
    Check {
        /// Read this program or shared library
        program: PathBuf,
    },
    /// Export a database into a new one of RocksDB
    #[command(after_help = "\
Export loads RocksDB's own library, which writes all column families. Records are what a reader
sees: merged, without expired ones. The new database appears under its name when it is complete and
durable. An export that fails or is interrupted leaves nothing there.

Another process may have the source open. If it replaces files that the export still reads, the
export fails: make a checkpoint and export that.

Examples:
  sateen rocksdb export library old --library /usr/lib/x86_64-linux-gnu/librocksdb.so
  sateen rocksdb export library old --library librocksdb.so --verify
  sateen rocksdb export library old --library librocksdb.so --target-options compression=kZSTD")]
    Export(export::Export),
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// The library has the function.
    There,
    /// The call reports "Not implemented".
    Refused,
    /// The call ends the program, because it cannot report an error.
    Ends,
    /// The library does not have the name: the program does not start.
    Unknown,
}

pub(crate) fn run(verb: &RocksDbVerb, json: bool, output: &mut dyn Write) -> Result<()> {
    match verb {
        RocksDbVerb::Check { program } => check(program, json, output),
        RocksDbVerb::Export(arguments) => export::run(arguments, json, output),
    }
}

fn check(program: &Path, json: bool, output: &mut dyn Write) -> Result<()> {
    let failed = |error| Failure::file(program, &error);
    // A device or a pipe may have no end.
    if !std::fs::metadata(program).map_err(failed)?.is_file() {
        let text = "not a file: name a program or a shared library";
        return Err(Failure::failed(format!("{}: {text}", sateen::shown_path(program))));
    }
    let bytes = std::fs::read(program).map_err(failed)?;
    let symbols = elf::symbols(&bytes)
        .map_err(|what| Failure::failed(format!("{}: {what}", sateen::shown_path(program))))?;
    let is_cpp = |name: &str| name.starts_with("_ZN7rocksdb") || name.starts_with("_ZNK7rocksdb");
    let cpp = symbols.iter().filter(|(name, defined)| !**defined && is_cpp(name)).count();
    let called = symbols.iter().filter(|(name, _)| name.starts_with("rocksdb_"));
    let (undefined, own): (Vec<_>, Vec<_>) = called.partition(|(_, defined)| !**defined);
    let fates = fates();
    let mut by_fate: BTreeMap<Fate, Vec<&str>> = BTreeMap::new();
    for (name, _) in &undefined {
        let fate = fates.get(name.as_str()).copied().unwrap_or(Fate::Unknown);
        by_fate.entry(fate).or_default().push(name);
    }
    let of = |fate: Fate| by_fate.get(&fate).map(Vec::as_slice).unwrap_or_default();
    let bad = of(Fate::Ends).len() + of(Fate::Unknown).len() + cpp;
    if json {
        let line = json!({
            "calls": undefined.len(), "defines": own.len(), "cpp": cpp,
            "there": of(Fate::There).len(),
            "refused": of(Fate::Refused), "ends": of(Fate::Ends), "unknown": of(Fate::Unknown),
        });
        writeln!(output, "{line}")?;
    } else {
        text(program, undefined.len(), own.len(), of, output)?;
        if cpp > 0 {
            writeln!(output, "\n{cpp} functions of the C++ interface, which Sateen does not have")?;
        }
    }
    // What was found is on standard output already.
    if bad > 0 { Err(Failure { quiet: true, code: FAILED, ..Failure::failed("") }) } else { Ok(()) }
}

fn text<'a>(
    program: &Path,
    calls: usize,
    own: usize,
    of: impl Fn(Fate) -> &'a [&'a str],
    output: &mut dyn Write,
) -> Result<()> {
    let name = sateen::shown_path(program);
    if calls == 0 {
        let why = match own {
            0 => {
                "it calls no function of RocksDB's C interface by name; a program that uses the \
                  C++ interface, or loads a library at run time, has none"
            }
            _ => "it has RocksDB within itself: link it with the shared library instead",
        };
        return Ok(writeln!(output, "{name}: {why}")?);
    }
    let there = of(Fate::There).len();
    writeln!(
        output,
        "{name}: calls {calls} functions of RocksDB's C interface; {there} are there"
    )?;
    for (fate, what) in [
        (Fate::Ends, "would end the program (\"Not implemented\" on standard error, abort)"),
        (Fate::Unknown, "are unknown: the program would not start"),
        (Fate::Refused, "would fail with the error \"Not implemented\""),
    ] {
        let names = of(fate);
        if !names.is_empty() {
            writeln!(output, "\n{} {what}:", names.len())?;
            names.iter().try_for_each(|name| writeln!(output, "  {name}"))?;
        }
    }
    Ok(())
}

/// Returns what becomes of a call of each function.
fn fates() -> BTreeMap<&'static str, Fate> {
    let lines = FUNCTIONS.lines().filter_map(|line| line.split_once(' '));
    let fates = lines.map(|(fate, name)| {
        let fate = match fate {
            "ends" => Fate::Ends,
            "refuses" => Fate::Refused,
            _ => Fate::There,
        };
        (name, fate)
    });
    fates.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_functions_of_each_kind() {
        let fates = fates();
        assert!(fates.len() > 1000, "{}", fates.len());
        assert_eq!(fates.get("rocksdb_put"), Some(&Fate::There));
        let count = |wanted| fates.values().filter(|fate| **fate == wanted).count();
        assert!(count(Fate::Ends) > 0 && count(Fate::Refused) > 0);
        assert!(fates.keys().all(|name| name.starts_with("rocksdb_")));
    }
}
