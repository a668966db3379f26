//! Runs the measurements of a command, each in a process of its own, engines in turn.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::args::BenchArgs;
use crate::child::{self, ChildTask};
use crate::engine::Engine;
use crate::result::{Report, RunResult};
use crate::sampler::Told;
use crate::store::StoreConfig;
use crate::system::Machine;
use crate::{Error, Result, csv, html, sateen_store, terminal};

/// The interval at which a running measurement is checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How this program is started again for one measurement: the words before the options of
/// [`BenchArgs`] (for `sateen bench …`: `["bench"]`).
#[derive(Clone, Debug, Default)]
pub struct Reexec {
    /// The words.
    pub words: Vec<OsString>,
    /// When this becomes true, the measurement is stopped and its files are removed.
    pub interrupted: Arc<AtomicBool>,
}

impl Reexec {
    /// Starts the program with these words.
    #[must_use]
    pub fn new<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> Reexec {
        Reexec { words: words.into_iter().map(Into::into).collect(), ..Reexec::default() }
    }
}

/// Measures as the options say, prints the table and writes the requested files.
///
/// # Errors
/// If the options are invalid, an engine fails or a file cannot be written.
pub fn run(args: &BenchArgs, reexec: &Reexec) -> Result<ExitCode> {
    if let Some(task) = &args.run_child {
        child::run(task)?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = match args.from_json.as_slice() {
        [] => measure(args, reexec)?,
        files => merged(files)?,
    };
    write_outputs(args, &report)?;
    Ok(ExitCode::SUCCESS)
}

/// Merges the runs of earlier reports under the heading of the first one.
fn merged(files: &[PathBuf]) -> Result<Report> {
    let mut all: Option<Report> = None;
    for file in files {
        let text = std::fs::read(file).map_err(|error| Error::file(file, error))?;
        let report: Report =
            serde_json::from_slice(&text).map_err(|error| Error::file(file, error))?;
        match &mut all {
            None => all = Some(report),
            Some(all) => all.runs.extend(report.runs),
        }
    }
    all.ok_or_else(|| Error::Usage("--from-json needs a file".to_owned()))
}

/// Checks the options before anything runs, those of Sateen included.
///
/// # Errors
/// If an option has no meaning, contradicts another one, or does not exist.
pub fn check(args: &BenchArgs) -> Result<()> {
    args.check()?;
    let runs_sateen = args.peer.is_none() || args.compare;
    if runs_sateen { sateen_store::check(&args.store_config()?) } else { Ok(()) }
}

/// Measures without printing a table or writing files.
///
/// # Errors
/// As [`run`].
pub fn measure(args: &BenchArgs, reexec: &Reexec) -> Result<Report> {
    check(args)?;
    check_outputs(args)?;
    let engines = engines(args)?;
    let temporary;
    let mut made = Vec::new();
    let base: &Path = match &args.db {
        Some(directory) => {
            made = missing(directory);
            std::fs::create_dir_all(directory).map_err(|error| Error::file(directory, error))?;
            directory
        }
        None => {
            temporary = tempfile::Builder::new().prefix("sateen-bench-").tempdir()?;
            temporary.path()
        }
    };
    let runs = run_children(args, &engines, base, reexec);
    if !args.keep && !args.use_existing && args.db.is_some() {
        for engine in &engines {
            let _ = std::fs::remove_dir_all(base.join(engine.name()));
            let _ = std::fs::remove_file(child::mark_path(&base.join(engine.name())));
        }
    }
    if runs.is_err() {
        engines.iter().for_each(|engine| child::remove_empty(&base.join(engine.name())));
    }
    // A directory in which something is stays.
    let _kept = made.iter().try_for_each(std::fs::remove_dir);
    Ok(report_of(args, runs?))
}

/// Returns `directory` and those above it that do not exist, the deepest first.
fn missing(directory: &Path) -> Vec<PathBuf> {
    let is_missing = |path: &&Path| {
        !path.as_os_str().is_empty() && path.try_exists().is_ok_and(|exists| !exists)
    };
    directory.ancestors().take_while(is_missing).map(Path::to_owned).collect()
}

/// Returns the report of these runs.
pub(crate) fn report_of(args: &BenchArgs, runs: Vec<RunResult>) -> Report {
    let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_owned();
    let words = std::iter::once(program).chain(std::env::args_os().skip(1));
    let command: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    Report {
        schema: 1,
        command: command.join(" "),
        headline: None,
        wait_ns: None,
        setting: setting(args, runs.first().map(|run| run.config.clone())),
        machine: Machine::this(),
        runs,
    }
}

/// Runs every round of every workload at every rate, with the engines in turn.
fn run_children(
    args: &BenchArgs,
    engines: &[Engine],
    base: &Path,
    reexec: &Reexec,
) -> Result<Vec<RunResult>> {
    let rounds = args.rounds.unwrap_or(if args.compare { 3 } else { 1 });
    let at_rates: Vec<BenchArgs> = match args.rate.as_slice() {
        [] => vec![args.clone()],
        rates => rates.iter().map(|r| BenchArgs { rate: vec![*r], ..args.clone() }).collect(),
    };
    let several = args.workload.len() > 1 || at_rates.len() > 1 || rounds > 1;
    let mut runs = Vec::new();
    for workload in &args.workload {
        for args in &at_rates {
            let name = match args.rate.first() {
                Some(rate) if at_rates.len() > 1 => format!("{workload}-{rate}"),
                _ => workload.clone(),
            };
            for round in 1..=rounds {
                for engine in engines {
                    let task = ChildTask {
                        trace: trace_path(args, engine, &name, several.then_some(round)),
                        engine: engine.clone(),
                        workload: workload.clone(),
                        round,
                        directory: base.join(engine.name()),
                        args: args.clone(),
                        watched: false,
                    };
                    runs.push(run_child(&task, reexec, &mut |_| {})?);
                }
            }
        }
    }
    Ok(runs)
}

/// Returns the file for a run's trace: the file that the options name, or, if there are several
/// runs, a file beside it with the workload and the round in its name.
fn trace_path(
    args: &BenchArgs,
    engine: &Engine,
    workload: &str,
    round: Option<u32>,
) -> Option<PathBuf> {
    let file = args.timeline.as_ref().filter(|_| *engine == Engine::Sateen)?;
    let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
    let Some(round) = round else { return Some(file) };
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_=.".contains(c) { c } else { '_' };
    let workload: String = workload.chars().map(plain).collect();
    let named = file.with_file_name(format!("{stem}-{workload}-{round}"));
    match file.extension() {
        Some(extension) => {
            let mut name = named.into_os_string();
            name.push(".");
            name.push(extension);
            Some(name.into())
        }
        None => Some(named),
    }
}

/// Returns the engines to run, in their order.
fn engines(args: &BenchArgs) -> Result<Vec<Engine>> {
    let Some(library) = &args.peer else { return Ok(vec![Engine::Sateen]) };
    let peer = Engine::of_library(library)?;
    peer.check(&args.given_config()?)?;
    Ok(if args.compare { vec![Engine::Sateen, peer] } else { vec![peer] })
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+%@".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

/// Returns the keys, the threads and the settings of the first engine in a line.
fn setting(args: &BenchArgs, of_first: Option<StoreConfig>) -> String {
    let value = args.value_size.clone().unwrap_or_else(|| "1000".to_owned());
    let keys = format!(
        "{} keys of {} B, values of {value} B, {} client threads",
        crate::units::count(args.num as f64),
        args.key_size,
        args.threads,
    );
    let Some(config) = of_first.or_else(|| args.store_config().ok()) else { return keys };
    let of_profile = config.profile.as_ref().map(|name| format!("else as profile {name}"));
    let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
    let compression = config.compression.map(|compression| format!("{compression:?}"));
    let wal = config.wal.map(|wal| format!("{wal:?}"));
    let parts = [
        config.memtables.map(|count| format!("memtables {count}")),
        config.memtable_bytes.map(|bytes| format!("of {}", mebibytes(bytes))),
        config.block_cache_bytes.map(|bytes| format!("block cache {}", mebibytes(bytes))),
        config.bloom_bits.map(|bits| format!("bloom {bits} bits")),
        compression.map(|name| format!("compression {}", name.to_lowercase())),
        wal.map(|name| format!("WAL {}", name.to_lowercase())),
        config.direct.map(|direct| format!("{} I/O", if direct { "direct" } else { "buffered" })),
        config.jobs.map(|jobs| format!("{jobs} jobs")),
        config.device_limit.map(|limit| {
            let each = crate::units::bytes(limit);
            format!("a device limited to {each}/s of reads and {each}/s of writes below the engine")
        }),
        (args.regions > 1).then(|| format!("{} regions", args.regions)),
        of_profile,
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{keys}; {}", parts.join(", "))
}

/// Starts this program again for one measurement. A watched measurement sends its messages to
/// `told`.
pub(crate) fn run_child(
    task: &ChildTask,
    reexec: &Reexec,
    told: &mut dyn FnMut(Told),
) -> Result<RunResult> {
    let mut file = tempfile::Builder::new().prefix("sateen-bench-").suffix(".json").tempfile()?;
    serde_json::to_writer(&mut file, task)?;
    file.flush()?;
    let program = std::env::current_exe()?;
    let mut child = Command::new(&program)
        .args(&reexec.words)
        .arg("--run-child")
        .arg(file.path())
        .stdout(if task.watched { Stdio::piped() } else { Stdio::inherit() })
        .spawn()
        .map_err(|error| Error::file(&program, error))?;
    let lines = child.stdout.take().map(lines_of);
    let mut tell = || {
        let lines = lines.iter().flat_map(Receiver::try_iter);
        lines.filter_map(|line| serde_json::from_str(&line).ok()).for_each(&mut *told);
    };
    let status = wait(&mut child, &reexec.interrupted, &mut tell)?;
    if !status.success() {
        return Err(Error::Failed(format!(
            "{} with {} did not finish ({status})",
            task.workload,
            task.engine.name()
        )));
    }
    let text = std::fs::read(file.path())?;
    Ok(serde_json::from_slice(&text)?)
}

/// Returns the lines of a pipe as they arrive.
fn lines_of(pipe: ChildStdout) -> Receiver<String> {
    let (sender, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(std::result::Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// Waits for the end of `child`, or stops it after an interrupt. Calls `look` at intervals.
fn wait(child: &mut Child, interrupted: &AtomicBool, look: &mut dyn FnMut()) -> Result<ExitStatus> {
    loop {
        look();
        let ended = child.try_wait()?;
        if interrupted.load(Ordering::Relaxed) {
            if ended.is_none() {
                child.kill()?;
                child.wait()?;
            }
            return Err(Error::Interrupted);
        }
        if let Some(status) = ended {
            return Ok(status);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Checks before the measurement that the reports can be written.
fn check_outputs(args: &BenchArgs) -> Result<()> {
    for path in [&args.json, &args.csv, &args.html].into_iter().flatten() {
        let new = !path.exists();
        let opened = OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|error| Error::file(path, error))?;
        if new {
            std::fs::remove_file(path).map_err(|error| Error::file(path, error))?;
        }
    }
    Ok(())
}

/// Prints the table and writes the files that the options name.
///
/// # Errors
/// If a file cannot be written.
pub fn write_outputs(args: &BenchArgs, report: &Report) -> Result<()> {
    print!("{}", terminal::table(report));
    let write = |path: &Option<PathBuf>, what: &str, text: String| -> Result<()> {
        let Some(path) = path else {
            return Ok(());
        };
        std::fs::write(path, text).map_err(|error| Error::file(path, error))?;
        println!("{what}: {}", path.display());
        Ok(())
    };
    write(&args.json, "JSON", serde_json::to_string_pretty(report)?)?;
    write(&args.csv, "CSV", csv::render(report))?;
    write(&args.html, "report", html::render(report)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::tests::parse;

    #[test]
    fn each_run_has_a_trace_of_its_own() {
        let args = parse("-w fillseq,replay=a/b.csv --timeline /tmp/out.d/trace.json");
        let path = |workload, round| trace_path(&args, &Engine::Sateen, workload, round);
        assert_eq!(path("fillseq", None), Some("/tmp/out.d/trace.json".into()));
        assert_eq!(path("fillseq", Some(2)), Some("/tmp/out.d/trace-fillseq-2.json".into()));
        let replay = Some("/tmp/out.d/trace-replay=a_b.csv-1.json".into());
        assert_eq!(path("replay=a/b.csv", Some(1)), replay);
        let peer = Engine::RocksDb { library: "lib.so".into() };
        assert_eq!(trace_path(&args, &peer, "fillseq", None), None);
        assert_eq!(trace_path(&parse(""), &Engine::Sateen, "fillseq", None), None);
    }
}
