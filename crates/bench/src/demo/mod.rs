//! `sateen demo`: the same bursts on RocksDB and on Sateen, one after the other, on a device of
//! 200 MB/s, and a verdict.
//!
//! 1. `place` finds a directory with enough space, `opponent` the library of RocksDB.
//! 2. Each engine runs in a process of its own. `live` prints a line a second.
//! 3. `verdict` counts the seconds in which clients waited, `chart` and `table` show them, `json`
//!    has the figures.

mod chart;
mod json;
mod live;
mod opponent;
mod place;
mod table;
mod verdict;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, ValueEnum};
use serde::Serialize;

use self::live::Live;
use self::opponent::Opponent;
use self::place::Place;
use self::verdict::Verdict;
use crate::args::BenchArgs;
use crate::child::ChildTask;
use crate::compare::{self, Reexec};
use crate::engine::Engine;
use crate::result::{Report, RunResult};
use crate::terminal::wrapped;
use crate::{Error, Result, html, notes};

/// The bandwidth of the limited device for reads and for writes, as in docs/benchmarks.md.
const DEVICE_BYTES_PER_SECOND: u64 = 200_000_000;

/// The device that the demo runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// The disk, limited to 200 MB/s of reads and 200 MB/s of writes
    Limited,
    /// The disk as it is
    Real,
}

/// The options of `sateen demo`.
#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    /// Run on this device
    #[arg(long, value_enum, default_value_t = DeviceKind::Limited, value_name = "DEVICE")]
    pub device: DeviceKind,

    /// Measure each of the two for this many seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,

    /// Offer this many operations a second in a burst
    #[arg(long, default_value = "30k")]
    pub rate: String,

    /// Load this many keys of 1 KB first, and overwrite a third of them
    #[arg(long, default_value = "400k", value_parser = crate::units::parse_count)]
    pub keys: u64,

    /// Put the databases into a new directory below this one, and remove it at the end [default:
    /// the temporary directory]
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,

    /// Compare with RocksDB from this shared library [default: $SATEEN_ROCKSDB_LIB, the library
    /// that `cargo xtask fetch-rocksdb` fetched, or the system's]
    #[arg(long, value_name = "LIB.so")]
    pub peer: Option<PathBuf>,

    /// Write the report to this file [default: a new directory in the temporary directory]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Print the verdict and the figures as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Parser)]
struct Parsed {
    #[command(flatten)]
    bench: BenchArgs,
}

/// The options of both engines: those of docs/benchmarks.md for bursts, with fewer keys.
const SHARED: &str = "demo -w bursts --value-size 1000 --read-percent 50 \
     --distribution uniform --memtable-size 16M --memtables 2 \
     --block-cache 32M --bloom-bits 10 --compression none --wal buffered --direct --jobs 4 -t 8 \
     --rounds 1 --report-interval 0";

/// The options of RocksDB: Sateen's sizes of tables and levels, and its auto-tuned rate limiter.
const ROCKSDB: &str = "--peer-rate-limit 200M \
     --peer-options max_bytes_for_level_base=67108864;target_file_size_base=16777216";

/// Returns the benchmark of Sateen, or that of the `opponent`.
fn bench_args(args: &DemoArgs, opponent: Option<&Opponent>) -> Result<BenchArgs> {
    let split = |words: &'static str| words.split_ascii_whitespace().map(std::ffi::OsString::from);
    let mut words: Vec<_> = split(SHARED).collect();
    let seconds = args.seconds.to_string();
    let (keys, overwrites) = (args.keys.to_string(), (args.keys / 3).to_string());
    words.extend(["-n", &keys, "--load-overwrites", &overwrites].map(Into::into));
    words.extend(["--rate", &args.rate, "-d", &seconds].map(Into::into));
    if args.device == DeviceKind::Limited {
        let limit = DEVICE_BYTES_PER_SECOND.to_string();
        words.extend(["--device-limit".into(), limit.into()]);
    }
    match opponent {
        None => {}
        Some(Opponent::Profile) => words.extend(split("--profile rocksdb --label profile-rocksdb")),
        Some(Opponent::RocksDb { library, .. }) => {
            words.extend(["--peer".into(), library.into()]);
            words.extend(split(ROCKSDB));
        }
    }
    let parsed = Parsed::try_parse_from(words).map_err(|error| Error::Usage(error.to_string()))?;
    parsed.bench.check()?;
    Ok(parsed.bench)
}

/// Runs the demo and prints its outcome to `output`. `reexec` is as for [`crate::run`]: it names
/// the `bench` command.
///
/// # Errors
/// As [`crate::run`], and if there is no directory with enough space.
pub fn demo(args: &DemoArgs, reexec: &Reexec, output: &mut dyn Write) -> Result<ExitCode> {
    let sateen_args = bench_args(args, None)?;
    let mut opponent = Opponent::find(args)?;
    let place = Place::find(args)?;
    let mut live = Live::new(args);
    live.begin(&opponent, &place);
    let first = match run(args, &mut opponent, &place, reexec, &mut live) {
        Err(Error::Failed(why)) if opponent.may_be_replaced() => {
            opponent = Opponent::Profile;
            live.replaced(&why);
            run(args, &mut opponent, &place, reexec, &mut live)?
        }
        done => done?,
    };
    let second = run_one(&sateen_args, Engine::Sateen, &place, reexec, &mut live)?;

    // Sateen comes first, because ratios compare the first engine with the second.
    let mut report = compare::report_of(&sateen_args, vec![second, first]);
    let verdict = Verdict::of(&report.runs[0], &report.runs[1], args.seconds, &opponent);
    report.headline = Some(verdict.sentence());
    report.setting = format!("{}. {}", report.setting, how(args, &opponent));
    report.wait_ns = Some(verdict::WAIT_NS);
    std::fs::write(place.report(), html::render(&report)?)
        .map_err(|error| Error::file(place.report(), error))?;
    let kept = place.keep_report();
    print(args, &report, &verdict, &opponent, &kept, output)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the opponent.
fn run(
    args: &DemoArgs,
    opponent: &mut Opponent,
    place: &Place,
    reexec: &Reexec,
    live: &mut Live,
) -> Result<RunResult> {
    let bench = bench_args(args, Some(opponent))?;
    let mut run = run_one(&bench, opponent.engine(), place, reexec, live)?;
    opponent.is_called(&run.version);
    if matches!(opponent, Opponent::Profile) {
        run.version = opponent.name();
    }
    Ok(run)
}

/// Runs one engine on a fresh database, which is removed afterwards.
fn run_one(
    bench: &BenchArgs,
    engine: Engine,
    place: &Place,
    reexec: &Reexec,
    live: &mut Live,
) -> Result<RunResult> {
    let directory = place.database(if bench.profile.is_some() { "profile" } else { engine.name() });
    live.engine(bench, &engine);
    let task = ChildTask {
        engine,
        workload: "bursts".to_owned(),
        round: 1,
        directory: directory.clone(),
        args: bench.clone(),
        trace: None,
        watched: true,
    };
    let run = compare::run_child(&task, reexec, &mut |told| live.told(told));
    // The next engine needs the space. The rest is removed with the place.
    let _ = std::fs::remove_dir_all(&directory);
    if let Ok(run) = &run {
        live.done(&run.measured);
    }
    run
}

/// Describes the limited device and the opponent for the report page.
fn how(args: &DemoArgs, opponent: &Opponent) -> String {
    let limited = "The device is limited in real time, without root: a file system below each \
         engine lets 200 MB/s of reads and 200 MB/s of writes through. RocksDB has no such file \
         system in its C interface, so its library's calls of open, read, write and sync are \
         redirected to the same limit. Tables go by direct I/O; a write to the log costs its \
         bytes when it is made, and a sync waits until they are through. Loading is behind the \
         same limit.";
    let real = "The device is the disk as it is, by direct I/O where its file system has that.";
    let limit = if args.device == DeviceKind::Limited { limited } else { real };
    format!("{} {limit}", opponent.about())
}

fn print(
    args: &DemoArgs,
    report: &Report,
    verdict: &Verdict,
    opponent: &Opponent,
    kept: &std::path::Path,
    output: &mut dyn Write,
) -> Result<()> {
    if args.json {
        let figures = json::figures(args, report, verdict, opponent, kept);
        writeln!(output, "{}", serde_json::to_string_pretty(&figures)?)?;
        return Ok(());
    }
    let screen = chart::Screen::of_output();
    let text = [
        wrapped(&verdict.sentence(), screen.columns),
        chart::draw(verdict, &screen),
        wrapped(&notes::setting(report), screen.columns),
        table::draw(report, verdict),
        table::below(report, verdict, screen.columns),
        wrapped(&opponent.hint().unwrap_or_default(), screen.columns),
        format!("Report: {}\n", kept.display()),
    ];
    let text: Vec<String> = text.into_iter().filter(|part| !part.is_empty()).collect();
    write!(output, "\n{}", text.join("\n"))?;
    output.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn demo_args() -> DemoArgs {
        DemoArgs {
            device: DeviceKind::Limited,
            seconds: 30,
            rate: "8k".to_owned(),
            keys: 9_000,
            db: None,
            peer: None,
            html: None,
            json: false,
        }
    }

    #[test]
    fn both_halves_differ_in_nothing_but_the_engine() {
        let args = demo_args();
        let sateen = bench_args(&args, None).unwrap();
        assert_eq!((sateen.duration, sateen.rate.as_slice()), (Some(30.0), &[8_000][..]));
        let config = sateen.store_config().unwrap();
        assert_eq!((config.device_limit, config.direct), (Some(200_000_000), Some(true)));
        let library = PathBuf::from("lib.so");
        let rocksdb = Opponent::RocksDb { library, named: true, version: String::new() };
        for opponent in [rocksdb, Opponent::Profile] {
            let theirs = bench_args(&args, Some(&opponent)).unwrap();
            let config_of_theirs = crate::store::StoreConfig {
                profile: None,
                peer_options: None,
                peer_rate_limit: None,
                ..theirs.store_config().unwrap()
            };
            assert_eq!(config_of_theirs, config);
            assert_eq!((theirs.num, theirs.threads, &theirs.rate), (sateen.num, 8, &sateen.rate));
            assert_eq!(theirs.load_overwrites, sateen.load_overwrites);
        }
        let real = DemoArgs { device: DeviceKind::Real, ..args };
        let config = bench_args(&real, None).unwrap().store_config().unwrap();
        assert_eq!((config.device_limit, config.direct), (None, Some(true)));
    }

    #[test]
    fn a_rate_that_is_none_is_refused() {
        for rate in ["nosuch", "0", "-1"] {
            let args = DemoArgs { rate: rate.to_owned(), ..demo_args() };
            assert!(matches!(bench_args(&args, None), Err(Error::Usage(_))), "{rate}");
        }
    }
}
