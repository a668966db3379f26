//! One measurement in a process of its own: load, settle, measure, settle.
//!
//! Each engine and round has its own process, because the kernel counts memory and processor time
//! by process, and because two engines in one process would share an allocator.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sateen_workload::{
    ArrivalSpec, KeyChoice, Mix, Process, ReplayEvent, Spec, ValueSize, ValueSource,
};
use serde::{Deserialize, Serialize};

use crate::args::{BenchArgs, LoadOrder, Plan};
use crate::engine::Engine;
use crate::recording::{self, Recording};
use crate::result::{Loaded, Measured, RunResult};
use crate::runner::{self, Phase};
use crate::sampler::{Live, Told};
use crate::store::{NoStore, Store};
use crate::system::{self, DiskBytes};
use crate::{Error, Result, units};

/// The pause between loading and measuring. In it the engine releases memory that it kept for the
/// next writes, and the device discards deleted blocks.
const REST: Duration = Duration::from_secs(3);

/// The task of a measuring process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildTask {
    pub(crate) engine: Engine,
    pub(crate) workload: String,
    pub(crate) round: u32,
    pub(crate) directory: PathBuf,
    pub(crate) args: BenchArgs,
    /// The file for the trace of the measured phase.
    pub(crate) trace: Option<PathBuf>,
    /// True if the process that started this one reads its messages ([`Told`]). It needs no figures
    /// after the measured phase.
    pub(crate) watched: bool,
}

/// A note beside a loaded directory that describes its contents.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct LoadMark {
    num: u64,
    key_size: usize,
    sizes: String,
    compression: String,
    ratio: f64,
    /// The number of databases, if there are several, and whether the first one has no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    databases: Option<(u32, bool)>,
}

/// Runs the task that the file describes and replaces the file by the result as JSON.
pub(crate) fn run(task_file: &Path) -> Result<()> {
    // A measurement must not outlive the process that wants its figures.
    let _best_effort =
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let text = std::fs::read(task_file).map_err(|error| Error::file(task_file, error))?;
    let task: ChildTask = serde_json::from_slice(&text)?;
    let result = measure(&task)?;
    std::fs::write(task_file, serde_json::to_vec(&result)?)
        .map_err(|error| Error::file(task_file, error))
}

fn measure(task: &ChildTask) -> Result<RunResult> {
    let args = &task.args;
    let plan = args.plan(&task.workload)?;
    let config = task.engine.adapt(args.store_config()?);
    let read = |path| recording::read(path, args.replay_speed, args.scan_length);
    let recording = plan.replay.as_deref().map(read).transpose()?;
    let replay = recording.as_ref().map(|recording| recording.events.as_slice());
    let engine = args.label.as_deref().unwrap_or(task.engine.name());
    let rate = args.rate.first().copied();
    let workload = crate::summary::workload_at(plan.spec.name, rate);
    let label = format!("{engine:<8} {workload:<11} #{}", task.round);
    let size_max = plan.sizes.max().max(recording.as_ref().map_or(0, Recording::size_max));
    let values = ValueSource::new(args.seed, args.compression_ratio, size_max);
    let directory = &task.directory;
    let mark = LoadMark {
        num: args.num,
        key_size: args.key_size,
        sizes: format!("{:?}", plan.sizes),
        compression: match &config.compression {
            Some(compression) => format!("{compression:?}"),
            None => format!("as {}", config.profile.as_deref().unwrap_or_default()),
        },
        ratio: args.compression_ratio,
        databases: config.databases.map(|count| (count, config.overload)),
    };
    let existing =
        args.use_existing && !plan.spec.fills && read_mark(directory)? == Some(mark_text(&mark)?);
    if !existing {
        clear(directory)?;
    }
    std::fs::create_dir_all(directory).map_err(|error| Error::file(directory, error))?;
    let store = task.engine.open(directory, &config)?;
    let mut load: Option<Loaded> = None;
    if !plan.spec.fills {
        load = Some(if existing {
            Loaded::default()
        } else {
            load_keys(store.as_ref(), args, &plan, &values, &label)?
        });
    }
    if let Some(load) = load.as_ref().filter(|_| task.watched) {
        Told::Loaded { seconds: load.seconds + load.settle_seconds }.tell();
    }
    // These fills write every key, as loading does. A later workload can read their database with
    // `--use-existing`.
    let filled = matches!(plan.spec.name, "fillseq" | "ycsb-load")
        && plan.operations == Some(args.num)
        && plan.seconds.is_none();
    if load.is_some() && !existing {
        std::fs::write(mark_path(directory), mark_text(&mark)?)
            .map_err(|error| Error::file(directory, error))?;
    }
    let measured = measured_phase(store.as_ref(), task, &plan, &values, replay, &label)?;
    if filled {
        std::fs::write(mark_path(directory), mark_text(&mark)?)
            .map_err(|error| Error::file(directory, error))?;
    }
    let (version, mut notes) = (store.version(), store.notes());
    notes.extend(recording.into_iter().flat_map(|recording| recording.notes));
    drop(store);
    Ok(RunResult {
        engine: engine.to_owned(),
        version,
        workload: plan.spec.name.to_owned(),
        rate,
        round: task.round,
        config,
        notes,
        load,
        measured,
    })
}

fn phase<'a>(args: &BenchArgs, plan: &'a Plan, values: &'a ValueSource) -> Phase<'a> {
    Phase {
        spec: &plan.spec,
        threads: args.threads,
        items: args.num,
        operations: plan.operations,
        seconds: plan.seconds,
        process: plan.process,
        seed: args.seed,
        format: plan.format,
        sizes: plan.sizes,
        scan: plan.scan,
        values,
        write_rate: args.write_rate.map(|rate| rate as f64),
        overload: args.overload,
        replay: None,
        live: Live::Nothing,
        trace: None,
    }
}

fn load_keys(
    store: &dyn Store,
    args: &BenchArgs,
    plan: &Plan,
    values: &ValueSource,
    label: &str,
) -> Result<Loaded> {
    let begun = Instant::now();
    let fill = |keys| Spec {
        name: "load",
        mix: Mix { update: 1, ..Mix::default() },
        keys,
        arrivals: ArrivalSpec::Closed,
        missing: false,
        extra_writer: false,
        ..plan.spec.clone()
    };
    let run = |spec: Spec, operations, threads| {
        let base = phase(args, plan, values);
        runner::run(
            store,
            &Phase {
                spec: &spec,
                threads,
                operations: Some(operations),
                seconds: None,
                process: Process::Even,
                ..base
            },
        )
    };
    match args.load {
        // With several threads the keys would not arrive in order.
        LoadOrder::Sequential => run(fill(KeyChoice::Sequential), args.num, 1)?,
        LoadOrder::Random => run(fill(KeyChoice::Shuffled), args.num, args.threads)?,
    };
    if args.load_overwrites > 0 {
        run(fill(KeyChoice::Uniform), args.load_overwrites, args.threads)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let settled = Instant::now();
    if !args.no_settle {
        store.flush()?;
        store.wait_idle()?;
    }
    let settle_seconds = settled.elapsed().as_secs_f64();
    if !args.no_settle {
        std::thread::sleep(REST);
    }
    let operations = args.num + args.load_overwrites;
    if args.report_interval > 0 {
        eprintln!(
            "{label}  loaded {} keys in {seconds:.1} s, settled after {settle_seconds:.1} s more",
            units::count(operations as f64),
        );
    }
    Ok(Loaded { operations, seconds, settle_seconds })
}

fn measured_phase(
    store: &dyn Store,
    task: &ChildTask,
    plan: &Plan,
    values: &ValueSource,
    replay: Option<&[ReplayEvent]>,
    label: &str,
) -> Result<Measured> {
    let args = &task.args;
    let generator_ns = generator_ns(args, plan, values)?;
    if args.warm_up > 0 && !plan.spec.fills {
        warm_up(store, args, plan, values)?;
    }
    let peak_memory_is_of_phase = system::reset_peak_memory();
    let live = match args.report_interval {
        _ if task.watched => Live::Figures,
        0 => Live::Nothing,
        interval => Live::Lines(label, interval),
    };
    let barriers = store.counters().barriers;
    let base = phase(args, plan, values);
    let mut measured =
        runner::run(store, &Phase { replay, live, trace: task.trace.as_deref(), ..base })?;
    let (_, peak) = system::memory();
    measured.generator_ns = generator_ns;
    measured.peak_memory = peak;
    measured.peak_memory_is_of_phase = peak_memory_is_of_phase;
    let disk = DiskBytes::now();
    let cpu = system::process_cpu_ns();
    let begun = Instant::now();
    let writes = plan.spec.mix.writes() || plan.spec.extra_writer || replay.is_some();
    if writes && !task.watched {
        store.flush()?;
        store.wait_idle()?;
        measured.settle_seconds = Some(begun.elapsed().as_secs_f64());
        measured.cpu.settling = system::process_cpu_ns() - cpu;
        measured.disk_settling = DiskBytes::now().since(disk);
    }
    let settled = store.counters().barriers;
    measured.barriers = settled.zip(barriers).map(|(now, before)| now - before);
    let operations = measured.done.max(1) as f64;
    let spent = (measured.cpu.client + measured.cpu.background) as f64;
    measured.cpu_us_per_op = spent / operations / 1e3;
    measured.cpu_us_per_op_settled = (spent + measured.cpu.settling as f64) / operations / 1e3;
    measured.write_amplification = (measured.user_bytes_written > 0).then(|| {
        (measured.disk.written + measured.disk_settling.written) as f64
            / measured.user_bytes_written as f64
    });
    measured.database_bytes = system::directory_bytes(&task.directory);
    measured.live_bytes = live_bytes(args, plan);
    Ok(measured)
}

/// Returns the bytes of the keys and values of a loaded database, if nothing is added to it.
fn live_bytes(args: &BenchArgs, plan: &Plan) -> Option<u64> {
    let ValueSize::Fixed(value) = plan.sizes else { return None };
    let (mix, entry) = (&plan.spec.mix, args.key_size as u64 + u64::from(value));
    // What is written into the database in overload is not known.
    let same = !args.overload
        && !plan.spec.fills
        && plan.replay.is_none()
        && mix.insert == 0
        && mix.delete == 0;
    same.then_some(args.num * entry)
}

/// Runs operations of the workload unmeasured, as fast as they go and with other random numbers.
fn warm_up(store: &dyn Store, args: &BenchArgs, plan: &Plan, values: &ValueSource) -> Result<()> {
    let spec = Spec { arrivals: ArrivalSpec::Closed, extra_writer: false, ..plan.spec.clone() };
    let base = phase(args, plan, values);
    let (operations, seed) = (Some(args.warm_up), !args.seed);
    let warm = Phase { spec: &spec, operations, seconds: None, seed, ..base };
    runner::run(store, &warm).map(|_| ())
}

/// Returns the benchmark's own cost of an operation of this plan, from a short run against a store
/// that does nothing.
fn generator_ns(args: &BenchArgs, plan: &Plan, values: &ValueSource) -> Result<f64> {
    const OPERATIONS: u64 = 200_000;
    let spec = Spec { arrivals: ArrivalSpec::Closed, extra_writer: false, ..plan.spec.clone() };
    let base = phase(args, plan, values);
    let operations = Some(OPERATIONS);
    let measured = runner::run(
        &NoStore,
        &Phase { spec: &spec, threads: 1, operations, seconds: None, ..base },
    )?;
    Ok(measured.cpu.client as f64 / OPERATIONS as f64)
}

/// Empties a directory of the benchmark and marks it as such.
fn clear(directory: &Path) -> Result<()> {
    guard(directory)?;
    std::fs::write(mark_path(directory), "{}").map_err(|error| Error::file(directory, error))?;
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::file(directory, error))
        }
        _ => Ok(()),
    }
}

/// Removes the directory of a run that failed before it wrote anything, and its mark.
pub(crate) fn remove_empty(directory: &Path) {
    let is_gone = match std::fs::remove_dir(directory) {
        Ok(()) => true,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if is_gone {
        let _none = std::fs::remove_file(mark_path(directory));
    }
}

/// Refuses a directory that is not empty and was not made by a benchmark.
fn guard(directory: &Path) -> Result<()> {
    let full = std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
    if full && !mark_path(directory).exists() {
        let text = "not empty and not made by this benchmark: it will not be overwritten";
        return Err(Error::file(directory, text));
    }
    Ok(())
}

/// Returns the file that notes what a benchmark left in a directory.
pub(crate) fn mark_path(directory: &Path) -> PathBuf {
    directory.with_extension("bench.json")
}

fn mark_text(mark: &LoadMark) -> Result<String> {
    Ok(serde_json::to_string(mark)?)
}

fn read_mark(directory: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(mark_path(directory)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file(&mark_path(directory), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_benchmark_made_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("rocksdb");
        std::fs::create_dir(&directory).unwrap();
        clear(&directory).unwrap();
        assert!(!directory.exists());
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("CURRENT"), "made by a benchmark").unwrap();
        clear(&directory).unwrap();
        assert!(!directory.exists());

        let foreign = place.path().join("precious");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join("CURRENT"), "not ours").unwrap();
        let error = clear(&foreign).unwrap_err().to_string();
        assert!(error.contains("precious") && foreign.join("CURRENT").exists(), "{error}");
    }
}
