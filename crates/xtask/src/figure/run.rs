//! Runs the jobs of a figure with the command built for release, one after the other, and keeps the
//! report of each run.
//!
//! 1. [`Runner::job`] looks for the reports of all runs of a job. A report is kept below
//!    `target/figures/runs` by the source that the command was built from, the place, and the
//!    arguments of the run and of those before it on the same database.
//! 2. If one is missing, the job runs from its beginning, on a device of its own or in a fresh
//!    folder, because the database of an earlier run is gone.
//! 3. [`Runner::run`] starts the command, waits for it, and wraps its report with the build, the
//!    machine, the date, the time it took and the time that the host took.
//!
//! Ctrl-C ends the command and takes the device away.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::device::Device;
use super::machine::{self, Build, fnv};
use super::model::{Job, Output, Place, Run, Tool};
use super::peers::Libraries;
use crate::chore::cargo;

/// How runs are made.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// Runs again what has a report.
    pub(super) again: bool,
    /// Where the file of the limited device and the databases are.
    pub(super) disk: Option<PathBuf>,
    /// Lets the command limit itself, also where the kernel could do it.
    pub(super) no_kernel: bool,
    /// The command, instead of one that is built for release.
    pub(super) sateen: Option<PathBuf>,
}

/// A report, and how it came about.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) output: Output,
    /// The command line, build, date, seconds and stolen seconds of the run, and the machine.
    pub(super) about: Value,
}

/// Runs jobs. It builds the command when the first run is needed.
pub(super) struct Runner<'a> {
    root: &'a Path,
    settings: Settings,
    build: Build,
    command: Option<PathBuf>,
    libraries: Libraries,
    interrupted: Arc<AtomicBool>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(root: &'a Path, settings: Settings) -> Result<Runner<'a>, String> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))
                .map_err(|error| error.to_string())?;
        }
        let build = Build::of(root);
        let libraries = Libraries::default();
        Ok(Runner { root, settings, build, command: None, libraries, interrupted })
    }

    /// Returns the reports of a job's runs, from what is kept or by running them.
    pub(super) fn job(&mut self, job: &Job) -> Result<Vec<Kept>, String> {
        let folder = target(self.root).join("figures/runs");
        let files: Vec<PathBuf> =
            (0..job.runs.len()).map(|nth| folder.join(self.file(job, nth))).collect();
        if !self.settings.again {
            let runs = job.runs.iter().zip(&files);
            let kept: Option<Vec<Kept>> = runs.map(|(run, file)| kept(run, file)).collect();
            if let Some(kept) = kept {
                return Ok(kept);
            }
        }
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        self.prepare(job)?;
        let ground = Ground::of(job, &self.settings)?;
        for (run, file) in job.runs.iter().zip(&files) {
            self.run(run, &ground, file)?;
        }
        let runs = job.runs.iter().zip(&files);
        runs.map(|(run, file)| kept(run, file).ok_or_else(|| unreadable(file))).collect()
    }

    /// The name of the file that keeps the report of a run.
    fn file(&self, job: &Job, nth: usize) -> String {
        let mut key = format!("{:?} {:?}", self.build.source, job.place);
        for run in &job.runs[..=nth] {
            let words = run.words.join(" ");
            key.push_str(&format!("\n{} {words} {:?}", run.tool.name(), run.mb_per_second));
        }
        format!("{:016x}.json", fnv(key.as_bytes()))
    }

    /// Builds the command and finds the peers that the job needs.
    fn prepare(&mut self, job: &Job) -> Result<(), String> {
        if self.command.is_none() && self.settings.sateen.is_some() {
            self.command = self.settings.sateen.clone();
        } else if self.command.is_none() {
            let words = ["build", "--release", "--quiet", "--package", "sateen-cli"];
            cargo(self.root, &words, &[]).map_err(|problems| problems.join("; "))?;
            self.command = Some(target(self.root).join("release/sateen"));
        }
        self.libraries.find(self.root, job.runs.iter().flat_map(|run| &run.words))
    }

    fn run(&self, run: &Run, ground: &Ground, file: &Path) -> Result<(), String> {
        ground.limit(run)?;
        let report = file.with_extension("report");
        let words = self.words(run, ground, &report);
        let shown = format!("sateen {}", words.join(" "));
        eprintln!("== {shown}");
        let log = fs::File::create(file.with_extension("txt"));
        let log = log.map_err(|error| format!("{}: {error}", file.display()))?;
        let errors = log.try_clone().map_err(|error| format!("{}: {error}", file.display()))?;
        let mut command = ground.command(self.command.as_deref().unwrap_or(Path::new("sateen")));
        command.args(&words).stdin(Stdio::null()).stdout(log).stderr(errors);
        // Ctrl-C reaches this process only, which then ends the command.
        command.process_group(0);
        let (began, stolen) = (Instant::now(), machine::stolen_seconds());
        let child = command.spawn().map_err(|error| format!("{shown}: {error}"))?;
        let status = self.wait(child)?;
        if !status.success() {
            let said = fs::read_to_string(file.with_extension("txt")).unwrap_or_default();
            let last = said.lines().last().unwrap_or("it said nothing");
            return Err(format!("{shown}: {status}: {last}"));
        }
        let about = json!({
            "command": shown,
            "device_mb_per_second": run.mb_per_second,
            "commit": self.build.commit,
            "given_command": self.settings.sateen,
            "date": machine::today(),
            "machine": machine::this(),
            "seconds": began.elapsed().as_secs_f64().round(),
            "stolen_seconds": round_to_hundredth(machine::stolen_seconds() - stolen),
        });
        let text = fs::read_to_string(&report).map_err(|_| unreadable(&report))?;
        let report_json: Value =
            serde_json::from_str(&text).map_err(|error| format!("{shown}: {error}"))?;
        let all = json!({ "about": about, "report": report_json });
        fs::write(file, all.to_string()).map_err(|error| format!("{}: {error}", file.display()))?;
        fs::remove_file(&report).map_err(|error| format!("{}: {error}", report.display()))
    }

    /// Returns the arguments of the command.
    fn words(&self, run: &Run, ground: &Ground, report: &Path) -> Vec<String> {
        let mut words = vec![run.tool.name().to_owned()];
        words.extend(run.words.iter().map(|word| match self.libraries.path(word) {
            Some(library) => library.display().to_string(),
            None => word.clone(),
        }));
        if run.tool == Tool::Bench {
            let database = ground.database().display().to_string();
            words.extend(["--report-interval", "0", "--db", &database].map(str::to_owned));
            if let (Some(limit), false) = (run.mb_per_second, ground.is_limited()) {
                words.extend(["--device-limit".to_owned(), format!("{limit}M")]);
            }
        }
        words.extend(["--json".to_owned(), report.display().to_string()]);
        words
    }

    /// Waits for the command, and ends it when the user wants to stop.
    fn wait(&self, mut child: Child) -> Result<ExitStatus, String> {
        loop {
            match child.try_wait() {
                Ok(Some(status)) if !self.interrupted.load(Ordering::Relaxed) => return Ok(status),
                Ok(Some(_)) => return Err(INTERRUPTED.to_owned()),
                Ok(None) if self.interrupted.load(Ordering::Relaxed) => {
                    // The benchmark ends its own processes on SIGTERM, which SIGKILL would not let
                    // it.
                    let id = child.id().to_string();
                    let _told = Command::new("kill").args(["-TERM", &id]).status();
                    let _status = child.wait();
                    return Err(INTERRUPTED.to_owned());
                }
                Ok(None) => std::thread::sleep(LOOK_EVERY),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// The problem of a run that the user ended.
pub(super) const INTERRUPTED: &str = "interrupted";

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Where the runs of a job put their database. The database goes with it.
enum Ground {
    Limited(Device),
    Folder(PathBuf),
}

impl Ground {
    fn of(job: &Job, settings: &Settings) -> Result<Ground, String> {
        if job.runs.iter().all(|run| run.tool == Tool::Sim) {
            return Ok(Ground::Folder(PathBuf::new()));
        }
        match job.place {
            Place::Limited { disk_gb, memory_gb }
                if !settings.no_kernel && Device::is_allowed() =>
            {
                let disk = settings.disk.clone().unwrap_or_else(|| PathBuf::from("/dev/shm"));
                Device::up(&disk, disk_gb, memory_gb).map(Ground::Limited)
            }
            _ => {
                let disk = settings.disk.clone().unwrap_or_else(std::env::temp_dir);
                let folder = disk.join(format!("sateen-figure-{}", std::process::id()));
                let made = fs::create_dir_all(&folder);
                made.map_err(|error| format!("{}: {error}", folder.display()))?;
                Ok(Ground::Folder(folder))
            }
        }
    }

    fn is_limited(&self) -> bool {
        matches!(self, Ground::Limited(_))
    }

    fn database(&self) -> PathBuf {
        match self {
            Ground::Limited(device) => device.mount(),
            Ground::Folder(folder) => folder.clone(),
        }
    }

    fn limit(&self, run: &Run) -> Result<(), String> {
        match self {
            Ground::Limited(device) => device.limit(run.mb_per_second),
            Ground::Folder(_) => Ok(()),
        }
    }

    /// Returns the command without its arguments. On a limited device a shell enters the group and
    /// becomes the command.
    fn command(&self, sateen: &Path) -> Command {
        match self {
            Ground::Folder(_) => Command::new(sateen),
            Ground::Limited(device) => {
                let mut command = Command::new("sh");
                command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
                command.arg(device.group()).arg(sateen);
                command
            }
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        match self {
            Ground::Folder(folder) if !folder.as_os_str().is_empty() => {
                let _gone = fs::remove_dir_all(folder);
            }
            _ => {}
        }
    }
}

/// Reads a report that was kept, if it was.
fn kept(run: &Run, file: &Path) -> Option<Kept> {
    let text = fs::read_to_string(file).ok()?;
    let mut all: Value = serde_json::from_str(&text).ok()?;
    let about = all.get_mut("about")?.take();
    let report = all.get_mut("report")?;
    let json = match run.tool {
        Tool::Sim => report.get_mut(0)?.take(),
        Tool::Bench => report.pointer_mut("/runs/0")?.take(),
    };
    Some(Kept { output: Output { run: run.clone(), json }, about })
}

fn unreadable(file: &Path) -> String {
    format!("{}: the report of the run is not there or cannot be read", file.display())
}

/// Where cargo builds.
pub(super) fn target(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from))
}

fn round_to_hundredth(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
