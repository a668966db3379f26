//! What the JSON of a benchmark says of its background jobs, and that of a simulation of its
//! classes of I/O.

use serde_json::Value;

use super::{at, by_second, list, p99_by_second, total};
use crate::figure::model::{Output, Series, Tool, X};

/// The kinds of background jobs in figures.
const KINDS: [&str; 3] = ["flushes", "compactions of L0", "deeper compactions"];

fn kind(job: &Value) -> &'static str {
    match job.pointer("/what").and_then(Value::as_str) {
        Some("flush") => KINDS[0],
        // Where levels are dynamic, the level below level 0 is any.
        Some(name) if name.starts_with("L0→") => KINDS[1],
        _ => KINDS[2],
    }
}

fn jobs<'a>(output: &'a Output, name: &str) -> impl Iterator<Item = &'a Value> {
    list(&output.json, "/measured/jobs").iter().filter(move |job| kind(job) == name)
}

/// The bytes that a job read and wrote; `None` if it had not ended.
fn moved(job: &Value) -> Option<f64> {
    let bytes = at(job, "/read")? + at(job, "/written")?;
    (bytes > 0.0).then_some(bytes)
}

fn seconds_of(job: &Value) -> Option<f64> {
    Some(at(job, "/end")? - at(job, "/start")?)
}

/// Returns a value for each kind of job: a series for each kind, with a point for each run.
fn by_kind(outputs: &[Output], value: fn(&Output, &str) -> Option<f64>) -> Vec<Series> {
    let of_kind = |name: &'static str| {
        let point = |output: &Output| Some((output.run.x?, value(output, name)?));
        Series { name: name.to_owned(), points: outputs.iter().filter_map(point).collect() }
    };
    KINDS.map(of_kind).into_iter().collect()
}

/// What the jobs of a kind did in all: their number, the bytes that they moved, and their seconds.
/// A benchmark's bytes and seconds are of jobs that had ended.
fn totals(output: &Output, name: &str) -> (f64, f64, f64) {
    if output.run.tool == Tool::Bench {
        let ended = || jobs(output, name).filter(|job| moved(job).is_some());
        let bytes = ended().filter_map(moved).sum();
        return (jobs(output, name).count() as f64, bytes, ended().filter_map(seconds_of).sum());
    }
    let compactions = list(&output.json, "/compactions");
    let own: Vec<&Value> = match name {
        "flushes" => output.json.pointer("/flushes").into_iter().collect(),
        "compactions of L0" => compactions.iter().take(1).collect(),
        _ => compactions.iter().skip(1).collect(),
    };
    let sum = |field| own.iter().filter_map(|jobs| at(jobs, field)).sum::<f64>();
    (sum("/count"), sum("/bytes"), sum("/ns") / 1e9)
}

/// How many jobs of each kind ended.
pub(crate) fn counts(outputs: &[Output]) -> Vec<Series> {
    by_kind(outputs, |output, name| Some(totals(output, name).0))
}

/// The MB/s that a job of each kind moves, in the mean.
pub(crate) fn rates(outputs: &[Output]) -> Vec<Series> {
    by_kind(outputs, |output, name| {
        let (_, bytes, seconds) = totals(output, name);
        (seconds > 0.0).then(|| bytes / 1e6 / seconds)
    })
}

/// The share of each kind in the time of all jobs, in percent.
pub(crate) fn shares(outputs: &[Output]) -> Vec<Series> {
    by_kind(outputs, |output, name| {
        let all: f64 = KINDS.iter().map(|name| totals(output, name).2).sum();
        (all > 0.0).then(|| totals(output, name).2 / all * 100.0)
    })
}

/// The gigabytes that a compaction of each level moves, in the mean: a series for each run's name.
pub(crate) fn width_by_level(outputs: &[Output]) -> Vec<Series> {
    const STEPS: [&str; 4] = ["L0→L1", "L1→L2", "L2→L3", "L3→L4"];
    let of_run = |output: &Output| {
        let point = |step: &'static str| {
            if output.run.tool == Tool::Sim {
                let from = STEPS.iter().position(|it| *it == step)?;
                let level = output.json.pointer(&format!("/compactions/{from}"))?;
                let count = at(level, "/count").filter(|count| *count > 0.0)?;
                return Some((X::Is(step), at(level, "/bytes")? / count / 1e9));
            }
            let all = list(&output.json, "/measured/jobs").iter();
            let named = all.filter(|job| job.pointer("/what").is_some_and(|it| it == step));
            let bytes: Vec<f64> = named.filter_map(moved).collect();
            let mean = bytes.iter().sum::<f64>() / bytes.len() as f64;
            (!bytes.is_empty()).then_some((X::Is(step), mean / 1e9))
        };
        Series {
            name: output.run.series.to_owned(),
            points: STEPS.into_iter().filter_map(point).collect(),
        }
    };
    outputs.iter().filter(|output| !output.run.series.is_empty()).map(of_run).collect()
}

/// Seconds around the worst one that [`around_spike`] shows.
const AROUND: f64 = 10.0;

/// The background jobs of a benchmark around its worst second: how many of each kind ran, and the
/// files in level 0, at each quarter of a second. The seconds count from ten before it.
pub(crate) fn around_spike(outputs: &[Output]) -> Vec<Series> {
    let Some(output) = outputs.iter().find(|output| !output.run.series.is_empty()) else {
        return Vec::new();
    };
    let worst = spike(output);
    let moments: Vec<f64> = (0..=(8.0 * AROUND) as u32).map(|nth| f64::from(nth) / 4.0).collect();
    let running = |name: &str, moment: f64| {
        let at_moment = worst - AROUND + moment;
        let is_running = |job: &&Value| {
            let (start, end) = (at(job, "/start"), at(job, "/end"));
            start.is_some_and(|it| it <= at_moment) && end.is_some_and(|it| it > at_moment)
        };
        jobs(output, name).filter(is_running).count() as f64
    };
    let series = KINDS.map(|name| Series {
        name: name.to_owned(),
        points: moments.iter().map(|at| (X::At(*at), running(name, *at))).collect(),
    });
    let files = by_second(output, |second| at(second.pointer("/levels/0")?, "/files"));
    let near = files.into_iter().map(|(x, y)| (x + 1.0 - worst + AROUND, y));
    let points = near.filter(|(x, _)| (0.0..=2.0 * AROUND).contains(x));
    let level0 = Series {
        name: "files in L0".to_owned(),
        points: points.map(|(x, y)| (X::At(x), y)).collect(),
    };
    series.into_iter().chain([level0]).collect()
}

/// The second of a run that has the worst p99.
fn spike(output: &Output) -> f64 {
    let seconds = p99_by_second(output);
    let worst = seconds.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    worst.map_or(0.0, |(second, _)| *second)
}

/// The p99 around the worst second, in milliseconds.
pub(crate) fn p99_around_spike(output: &Output) -> Vec<(f64, f64)> {
    let worst = spike(output);
    let near = p99_by_second(output).into_iter().map(|(x, y)| (x - worst + AROUND, y));
    near.filter(|(x, _)| (0.0..=2.0 * AROUND).contains(x)).collect()
}

/// The bandwidth of clients and of internal work in MB/s, in a run of virtual time.
pub(crate) fn bandwidth(outputs: &[Output]) -> Vec<Series> {
    let Some(output) = outputs.iter().find(|output| !output.run.series.is_empty()) else {
        return Vec::new();
    };
    let of = |second: &Value, classes: std::ops::Range<usize>| {
        let sum = |name| list(second, name)[classes.clone()].iter().map(total).sum::<f64>();
        Some((sum("/read_bytes") + sum("/write_bytes")) / 1e6)
    };
    // The classes are client, WAL, manifest, flush, level 0, deep and reclaim.
    let parts = [("clients", 0..2), ("internal work", 2..7)];
    let series = parts.map(|(name, classes)| Series {
        name: name.to_owned(),
        points: by_second(output, |second| of(second, classes.clone()))
            .into_iter()
            .map(|(x, y)| (X::At(x), y))
            .collect(),
    });
    series.into_iter().collect()
}
