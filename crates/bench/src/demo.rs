//! `sateen demo`: the same bursts against the engine as it is and with RocksDB's options, in under
//! two minutes, with a report that shows them one above the other.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser};
use tempfile::TempDir;

use crate::args::BenchArgs;
use crate::compare::{self, Reexec};
use crate::{Error, Result};

/// The options of `sateen demo`.
#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    /// Where to write the report [default: a new directory among the temporary files]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Seconds of bursts, for each of the two
    #[arg(long, default_value_t = 40)]
    pub seconds: u32,

    /// Operations a second in a burst
    #[arg(long, default_value = "20k")]
    pub rate: String,

    /// Directory for the database [default: a temporary one, removed at the end]
    #[arg(long)]
    pub db: Option<PathBuf>,

    /// A RocksDB library to run beside, for comparison
    #[arg(long, value_name = "LIB.so")]
    pub peer: Option<PathBuf>,
}

#[derive(Parser)]
struct Parsed {
    #[command(flatten)]
    bench: BenchArgs,
}

/// The benchmark that one half of the demonstration is: with Sateen's own options, or a profile's.
fn bench_args(args: &DemoArgs, html: &Path, profile: Option<&str>) -> Result<BenchArgs> {
    let seconds = args.seconds.to_string();
    let mut words: Vec<std::ffi::OsString> = [
        "demo",
        "-w",
        "bursts",
        "-n",
        "500k",
        "--wal",
        "buffered",
        "--memtable-size",
        "16M",
        "--memtables",
        "2",
        "--block-cache",
        "64M",
        "--bloom-bits",
        "10",
        "--compression",
        "none",
        "--jobs",
        "4",
        "--load-overwrites",
        "200k",
        "--rate",
        &args.rate,
        "-d",
        &seconds,
        "--rounds",
        "1",
    ]
    .map(Into::into)
    .into();
    if let Some(db) = &args.db {
        words.extend(["--db".into(), db.into()]);
    }
    if let Some(profile) = profile {
        let label = format!("{profile} profile");
        words.extend(["--profile".into(), profile.into(), "--label".into(), label.into()]);
    } else if let Some(peer) = &args.peer {
        words.extend(["--compare".into(), "--peer".into(), peer.into()]);
    }
    words.extend(["--html".into(), html.into()]);
    Parsed::try_parse_from(words)
        .map(|parsed| parsed.bench)
        .map_err(|error| Error::Usage(error.to_string()))
}

/// Where the report goes: by default into a new directory, which goes unless it is kept.
fn report_place(args: &DemoArgs) -> Result<(Option<TempDir>, PathBuf)> {
    if let Some(html) = &args.html {
        return Ok((None, html.clone()));
    }
    let folder = tempfile::Builder::new().prefix("sateen-demo-").tempdir()?;
    let html = folder.path().join("report.html");
    Ok((Some(folder), html))
}

/// Runs the demonstration. `reexec` is as for [`crate::run`]: it names the `bench` command.
///
/// # Errors
/// As [`crate::run`].
pub fn demo(args: &DemoArgs, reexec: &Reexec) -> Result<ExitCode> {
    println!(
        "Twice, with Sateen's own options and with RocksDB's (profile \"rocksdb\"):\n\
         loading 500 000 keys of 1 KB, then {} s of bursts: 10 s at {} operations a second,\n\
         10 s at a quarter of it, half reads and half writes.\n",
        args.seconds, args.rate
    );
    let (folder, html) = report_place(args)?;
    let bench = bench_args(args, &html, None)?;
    let mut report = compare::measure(&bench, reexec)?;
    let other = compare::measure(&bench_args(args, &html, Some("rocksdb"))?, reexec)?;
    // Sateen first: ratios are of the first to the second.
    report.runs.splice(1..1, other.runs);
    report.stacked = true;
    compare::write_outputs(&bench, &report)?;
    if let Some(folder) = folder {
        let _kept = folder.keep();
    }
    println!("Open {} in a browser to see the latency over time.", html.display());
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demonstration_is_a_benchmark_that_makes_sense() {
        let args = DemoArgs {
            html: None,
            seconds: 30,
            rate: "8k".to_owned(),
            db: Some("/tmp/demo".into()),
            peer: Some("lib.so".into()),
        };
        let html = Path::new("out.html");
        let like_rocksdb = bench_args(&args, html, Some("rocksdb")).unwrap();
        like_rocksdb.check().unwrap();
        assert!(!like_rocksdb.compare && like_rocksdb.profile.as_deref() == Some("rocksdb"));
        let bench = bench_args(&args, html, None).unwrap();
        bench.check().unwrap();
        assert!(bench.compare && bench.duration == Some(30.0) && bench.rate == [8_000]);
        let (folder, html) = report_place(&args).unwrap();
        assert!(html.starts_with(std::env::temp_dir()) && html.parent().unwrap().is_dir());
        drop(folder);
        assert!(!html.parent().unwrap().exists(), "without a report nothing is left");
    }
}
