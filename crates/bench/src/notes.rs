//! What a reader must know beside the figures: the setting in a line, whether the machine was busy,
//! and what an engine left for later.

use crate::result::{Measured, Report, RunResult};
use crate::store::{StoreConfig, Wal};
use crate::units;

/// The machine counts as busy if other programs used more than this share of its processors.
const BUSY_SHARE: f64 = 0.15;

/// Returns the processors that other programs, or other guests of the host, used while a run was
/// measured.
pub(crate) fn others_cpus(measured: &Measured) -> f64 {
    let seconds = measured.seconds.max(1e-3);
    let ms: u64 = measured.timeline.iter().map(|one| one.others_ms + one.stolen_ms).sum();
    ms as f64 / 1e3 / seconds
}

/// True if others used so much of `cpus` processors that they may have changed the figures.
pub(crate) fn is_busy(others_cpus: f64, cpus: usize) -> bool {
    others_cpus > BUSY_SHARE * cpus as f64
}

/// Says that the machine was busy. `what` is what to run again.
pub(crate) fn busy(others_cpus: f64, cpus: usize, what: &str) -> String {
    format!(
        "the machine was busy: other programs used {} of its {cpus} processors. Run {what} again \
         when it is idle.",
        units::three_digits(others_cpus),
    )
}

/// Returns the compaction debt at the end of the measured time, if the engine tells it.
pub(crate) fn debt_bytes(run: &RunResult) -> Option<u64> {
    run.measured.timeline.iter().rev().find_map(|second| second.debt)
}

/// Says that Sateen left more compaction work than the other engine; `None` if it did not.
pub(crate) fn debt(sateen: &RunResult, other: &RunResult, name: &str) -> Option<String> {
    let (ours, theirs) = (debt_bytes(sateen)?, debt_bytes(other)?);
    (ours > theirs).then(|| {
        format!(
            "Sateen left more work for later: its compaction debt at the end was {}, that of \
             {name} was {}; the cost of working it off is not in the latencies.",
            units::bytes(ours),
            units::bytes(theirs),
        )
    })
}

/// Returns the notes of a whole report: a busy machine, unless the headline says it, debt, and what
/// must be known of the engines.
pub(crate) fn of_report(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    let others = report.runs.iter().map(|run| others_cpus(&run.measured)).fold(0.0, f64::max);
    if report.headline.is_none() && is_busy(others, report.machine.cpus.max(1)) {
        let text = busy(others, report.machine.cpus, "the benchmark");
        notes.push(text.replacen('t', "T", 1));
    }
    for run in report.runs.iter().filter(|run| run.engine == "sateen") {
        let beside = |other: &&RunResult| {
            other.engine != run.engine
                && (&other.workload, other.rate, other.round)
                    == (&run.workload, run.rate, run.round)
        };
        let Some(other) = report.runs.iter().find(beside) else { continue };
        // Of several rounds the first that says it.
        let told = notes.iter().any(|note| note.starts_with("Sateen left"));
        notes.extend(debt(run, other, &other.version).filter(|_| !told));
    }
    notes.extend(report.runs.iter().filter_map(databases));
    for note in report.runs.iter().flat_map(|run| &run.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

/// Says what the databases of a run had each, if there were several.
fn databases(run: &RunResult) -> Option<String> {
    let all = &run.measured.databases;
    let overloaded = usize::from(run.config.overload);
    let mut p99: Vec<u64> = all.iter().skip(overloaded).flatten().map(|own| own.p99).collect();
    p99.sort_unstable();
    let time = units::time;
    let (least, most) = (*p99.first()?, *p99.last()?);
    let of = format!("{} {} #{}", run.engine, run.workload, run.round);
    let mut text = format!(
        "{of}: of {} databases the best has a p99 of {}, the median {}, the worst {}.",
        p99.len(),
        time(least),
        time(p99[p99.len() / 2]),
        time(most),
    );
    if let Some(own) = all.first().copied().flatten().filter(|_| run.config.overload) {
        let rate = units::count(own.count as f64 / run.measured.seconds.max(1e-3));
        text +=
            &format!(" The one in overload took {rate} writes a second, p99 {}.", time(own.p99));
    }
    Some(text)
}

/// Returns the setting in a line: keys and threads, then what the engines were given.
pub(crate) fn setting(report: &Report) -> String {
    let keys = report.setting.split(';').next().unwrap_or_default().to_owned();
    let Some(first) = report.runs.first() else { return keys };
    let config = &first.config;
    let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
    let memtables = config.memtables.zip(config.memtable_bytes);
    let parts = [
        memtables.map(|(count, bytes)| format!("{count} memtables of {}", mebibytes(bytes))),
        config.block_cache_bytes.map(|bytes| format!("block cache {}", mebibytes(bytes))),
        config.wal.map(wal),
        config.direct.map(|direct| if direct { "direct I/O" } else { "buffered I/O" }.to_owned()),
        config.databases.map(|count| format!("{count} databases")),
        Some(device(config)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{keys}; {}. {}.", parts.join(", "), engines(report))
}

/// Returns the names and versions of the engines, and what limits each of them.
pub(crate) fn engines(report: &Report) -> String {
    let mut engines: Vec<String> = Vec::new();
    for run in &report.runs {
        let engine = engine(run);
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    engines.join("; ")
}

/// Returns the device of each engine.
pub(crate) fn devices(report: &Report) -> String {
    let device = |run: &RunResult| format!("{}: {}", run.version, device(&run.config));
    let mut devices: Vec<String> = report.runs.iter().map(device).collect();
    devices.dedup();
    devices.truncate(2);
    devices.join("; ")
}

fn wal(wal: Wal) -> String {
    match wal {
        Wal::Off => "WAL off (a kill loses the writes in memory)",
        Wal::Buffered => "WAL buffered",
        Wal::Sync => "WAL synced for each write",
    }
    .to_owned()
}

fn device(config: &StoreConfig) -> String {
    match config.device_limit {
        None => "the disk as it is".to_owned(),
        Some(limit) => {
            let each = units::bytes(limit);
            format!("the disk limited to {each}/s of reads and {each}/s of writes")
        }
    }
}

/// Returns the name of an engine, and RocksDB's limiter.
fn engine(run: &RunResult) -> String {
    if run.engine != "rocksdb" {
        return run.version.clone();
    }
    match run.config.peer_rate_limit {
        None => format!("{} without a rate limiter", run.version),
        Some(limit) => format!(
            "{} with its auto-tuned rate limiter up to {}/s ({} MiB/s)",
            run.version,
            units::bytes(limit),
            limit >> 20
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Second;
    use crate::summary::tests::{report, run};

    #[test]
    fn a_busy_machine_and_debt_are_told_once() {
        let mut runs = vec![run("sateen", "bursts", 1, 7.0), run("rocksdb", "bursts", 1, 5.0)];
        let second = |debt| Second { others_ms: 300, stolen_ms: 100, debt, ..Second::default() };
        for (run, debt) in runs.iter_mut().zip([2_000_000, 1_000_000]) {
            run.measured.timeline = vec![second(None), second(Some(debt)), second(None)];
            run.measured.seconds = 3.0;
        }
        assert!((others_cpus(&runs[0].measured) - 0.4).abs() < 1e-9);
        let mut report = report(runs);
        report.machine.cpus = 2;
        let notes = of_report(&report);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].starts_with("The machine was busy: other programs used 0.40 of its 2"));
        assert!(notes[1].contains("was 2.00 MB") && notes[1].contains("was 1.00 MB"), "{notes:?}");
        report.machine.cpus = 64;
        report.runs.swap(0, 1);
        report.runs[0].engine = "sateen".to_owned();
        report.runs[1].engine = "rocksdb".to_owned();
        assert_eq!(of_report(&report), Vec::<String>::new());
    }

    #[test]
    fn the_setting_names_both_engines_and_explains_its_units() {
        let mut runs = vec![run("sateen", "bursts", 1, 7.0), run("rocksdb", "bursts", 1, 5.0)];
        runs[1].config.peer_rate_limit = Some(200 << 20);
        runs[0].config.device_limit = Some(200_000_000);
        let says = setting(&report(runs.clone()));
        assert!(says.starts_with("1M keys; 2 memtables of 64 MiB, "), "{says}");
        assert!(says.contains("WAL off (") && says.contains("200 MB/s of reads"), "{says}");
        assert!(devices(&report(runs)).matches("the disk").count() == 2);
        assert!(says.contains("rocksdb 1.0") && says.contains("210 MB/s (200 MiB/s)"), "{says}");
    }
}
