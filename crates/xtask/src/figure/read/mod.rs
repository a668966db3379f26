//! Takes values out of the JSON of `sateen bench` and `sateen sim`, in the units of the figures.
//! The fields are those of `crates/bench/src/result.rs` and `crates/sim/src/report.rs`.

pub(crate) mod jobs;

use serde_json::Value;

use super::model::{HERE, Output, Panel, Reading, Series, Tool, X};

/// Returns the series of a panel, in the order in which the runs name them.
pub(crate) fn series(panel: &Panel, outputs: &[Output]) -> Vec<Series> {
    let shown = outputs.iter().filter(|output| !output.run.series.is_empty());
    match panel.reading {
        Reading::Whole(read) => read(outputs),
        Reading::Curve(read) => shown
            .map(|output| Series {
                name: output.run.series.to_owned(),
                points: read(output).into_iter().map(|(x, y)| (X::At(x), y)).collect(),
            })
            .filter(|series| !series.points.is_empty())
            .collect(),
        Reading::System(read) => {
            let point = |output: &Output| Some((X::Is(output.run.series), read(output)?));
            vec![Series { name: HERE.to_owned(), points: shown.filter_map(point).collect() }]
        }
        Reading::Point(read) => {
            let mut found: Vec<Series> = Vec::new();
            for output in shown {
                let (Some(x), Some(y)) = (output.run.x, read(output)) else { continue };
                let name = output.run.series;
                match found.iter_mut().find(|series| series.name == name) {
                    Some(series) => series.points.push((x, y)),
                    None => found.push(Series { name: name.to_owned(), points: vec![(x, y)] }),
                }
            }
            found
        }
    }
}

/// Reads a value from the runs of a group only.
pub(crate) fn only(output: &Output, group: &str, read: fn(&Output) -> Option<f64>) -> Option<f64> {
    (output.run.group == group).then(|| read(output)).flatten()
}

/// Keeps what lies between two numbers of x.
pub(crate) fn part(mut series: Vec<Series>, (from, to): (f64, f64)) -> Vec<Series> {
    for one in &mut series {
        one.points.retain(|(x, _)| matches!(x, X::At(x) if (from..to).contains(x)));
    }
    series
}

/// Seconds with fewer operations say nothing about a p99.
const RARE: f64 = 100.0;

fn at(value: &Value, path: &str) -> Option<f64> {
    value.pointer(path)?.as_f64()
}

fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The whole seconds of a run: the last one of a benchmark may be a part.
fn seconds(output: &Output) -> &[Value] {
    match output.run.tool {
        Tool::Sim => list(&output.json, "/series"),
        Tool::Bench => {
            let all = list(&output.json, "/measured/timeline");
            let whole = at(&output.json, "/measured/seconds").unwrap_or(0.0) as usize;
            &all[..all.len().min(whole)]
        }
    }
}

/// Returns a value of every second, beside the second's number.
fn by_second(output: &Output, read: impl Fn(&Value) -> Option<f64>) -> Vec<(f64, f64)> {
    let numbered = seconds(output).iter().enumerate();
    numbered.filter_map(|(nth, second)| Some((nth as f64, read(second)?))).collect()
}

/// The sum of an array of numbers, or of the elements of an array of arrays.
fn total(value: &Value) -> f64 {
    match value {
        Value::Array(parts) => parts.iter().map(total).sum(),
        other => other.as_f64().unwrap_or(0.0),
    }
}

/// The p99 of each second in milliseconds, of all operations together.
pub(crate) fn p99_by_second(output: &Output) -> Vec<(f64, f64)> {
    let p99 = |second: &Value| match output.run.tool {
        Tool::Sim => at(second, "/p99_ns"),
        Tool::Bench => {
            let all = second.pointer("/all")?;
            at(all, "/count").filter(|count| *count >= RARE)?;
            at(all, "/p99")
        }
    };
    by_second(output, |second| Some((p99(second)? / 1e6).max(0.01)))
}

/// Thousand operations that ended in each second.
pub(crate) fn kops_by_second(output: &Output) -> Vec<(f64, f64)> {
    by_second(output, |second| Some(total(second.pointer("/done")?) / 1e3))
}

/// Thousand operations that were due in each second.
pub(crate) fn offered_by_second(output: &Output) -> Vec<(f64, f64)> {
    by_second(output, |second| Some(at(second, "/offered")? / 1e3))
}

/// Gigabytes that wait for compaction at the end of each second.
pub(crate) fn debt_by_second(output: &Output) -> Vec<(f64, f64)> {
    let name = match output.run.tool {
        Tool::Sim => "/debt_bytes",
        Tool::Bench => "/debt",
    };
    by_second(output, |second| Some(at(second, name)? / 1e9))
}

/// Thousand operations a second over the whole run.
pub(crate) fn kops(output: &Output) -> Option<f64> {
    match output.run.tool {
        Tool::Sim => Some(at(&output.json, "/done")? / at(&output.json, "/seconds")? / 1e3),
        Tool::Bench => Some(at(&output.json, "/measured/ops_per_second")? / 1e3),
    }
}

/// The p99 of the whole run in milliseconds.
pub(crate) fn p99(output: &Output) -> Option<f64> {
    quantile(output, "p99")
}

/// The median of the whole run in milliseconds.
pub(crate) fn p50(output: &Output) -> Option<f64> {
    quantile(output, "p50")
}

/// The 99.9th percentile of a benchmark in milliseconds.
pub(crate) fn p999(output: &Output) -> Option<f64> {
    Some(at(&output.json, "/measured/all/p999")? / 1e6)
}

fn quantile(output: &Output, name: &str) -> Option<f64> {
    let ns = match output.run.tool {
        Tool::Sim => at(&output.json, &format!("/{name}_ns")),
        Tool::Bench => at(&output.json, &format!("/measured/all/{name}")),
    };
    Some(ns? / 1e6)
}

/// The latency of a kind of operation at the percentiles that a benchmark reports, in milliseconds:
/// 50, 99, 99.9, 99.99 and 100 as 1, 2, 3, 4 and 5 nines (the median and the longest included).
pub(crate) fn tail_of_writes(output: &Output) -> Vec<(f64, f64)> {
    tail(output, "/measured/kinds/write/latency")
}

/// The same of reads.
pub(crate) fn tail_of_reads(output: &Output) -> Vec<(f64, f64)> {
    tail(output, "/measured/kinds/read/latency")
}

/// The percentiles of a benchmark's latencies, each with the share of slower operations in percent.
const TAIL: [(f64, &str); 4] = [(50.0, "p50"), (1.0, "p99"), (0.1, "p999"), (0.01, "p9999")];

fn tail(output: &Output, path: &str) -> Vec<(f64, f64)> {
    // A simulation has one distribution, of all operations.
    let (latency, unit) = match output.run.tool {
        Tool::Sim => (Some(&output.json), "_ns"),
        Tool::Bench => (output.json.pointer(path), ""),
    };
    let Some(latency) = latency else { return Vec::new() };
    let part = |(slower, name): (f64, &str)| {
        Some((slower, (at(latency, &format!("/{name}{unit}"))? / 1e6).max(0.001)))
    };
    TAIL.into_iter().filter_map(part).collect()
}

/// The number of barriers (fsync calls) for each gigabyte that clients wrote.
pub(crate) fn barriers_per_gb(output: &Output) -> Option<f64> {
    let count = match output.run.tool {
        Tool::Sim => {
            let classes = list(&output.json, "/classes");
            classes.iter().filter_map(|class| at(class, "/syncs")).sum()
        }
        Tool::Bench => at(&output.json, "/measured/barriers")?,
    };
    Some(count / input_gb(output)?)
}

/// Bytes read and written, settling included, for each byte that clients wrote.
pub(crate) fn io_amplification(output: &Output) -> Option<f64> {
    let json = &output.json;
    let (moved, user) = match output.run.tool {
        Tool::Sim => {
            let of = |name| {
                let classes = list(json, "/classes").iter();
                let background = classes.filter(|class| is_background(class));
                background.filter_map(|class| at(class, name)).sum::<f64>()
            };
            (of("/read_bytes") + of("/write_bytes"), at(json, "/user_bytes")?)
        }
        Tool::Bench => {
            let of = |phase: &str| {
                let part = |name| at(json, &format!("/measured/{phase}/{name}"));
                Some(part("read")? + part("written")?)
            };
            (of("disk")? + of("disk_settling")?, at(json, "/measured/user_bytes_written")?)
        }
    };
    (user > 0.0).then(|| moved / user)
}

fn is_background(class: &Value) -> bool {
    let name = class.pointer("/class").and_then(Value::as_str).unwrap_or_default();
    !matches!(name, "client" | "wal")
}

/// Gigabytes written to the device, settling included.
pub(crate) fn written_gb(output: &Output) -> Option<f64> {
    let json = &output.json;
    match output.run.tool {
        Tool::Sim => {
            let classes = list(json, "/classes");
            Some(classes.iter().filter_map(|class| at(class, "/write_bytes")).sum::<f64>() / 1e9)
        }
        Tool::Bench => {
            let now = at(json, "/measured/disk/written")?;
            Some((now + at(json, "/measured/disk_settling/written")?) / 1e9)
        }
    }
}

/// Seconds for which writes were slowed down or stopped.
pub(crate) fn stalled_seconds(output: &Output) -> Option<f64> {
    match output.run.tool {
        Tool::Sim => {
            let series = list(&output.json, "/series");
            Some(series.iter().filter_map(|second| at(second, "/stalled_ns")).sum::<f64>() / 1e9)
        }
        Tool::Bench => Some(at(&output.json, "/measured/stall_ns")? / 1e9),
    }
}

/// The same as a percentage of the run.
pub(crate) fn stalled_percent(output: &Output) -> Option<f64> {
    let seconds = match output.run.tool {
        Tool::Sim => at(&output.json, "/seconds")?,
        Tool::Bench => at(&output.json, "/measured/seconds")?,
    };
    Some(stalled_seconds(output)? / seconds * 100.0)
}

/// How often writes were slowed down or stopped.
pub(crate) fn stall_count(output: &Output) -> Option<f64> {
    match output.run.tool {
        Tool::Sim => {
            let stalls = output.json.pointer("/stalls")?.as_object()?;
            let of = |name| stalls.values().filter_map(|cause| at(cause, name)).sum::<f64>();
            Some(of("/delays") + of("/stops"))
        }
        Tool::Bench => at(&output.json, "/measured/stall_count"),
    }
}

/// A client that waits longer than this for an operation waits long, in milliseconds.
const LONG_WAIT_MS: f64 = 100.0;

/// Seconds of a benchmark in which a client waited for more than 100 ms, and those in which no
/// operation ended. Clients measure it, so that it means the same for all engines.
pub(crate) fn seconds_with_waits(output: &Output) -> Option<f64> {
    at(&output.json, "/measured/seconds")?;
    let waited = |second: &&Value| match second.pointer("/all").filter(|all| !all.is_null()) {
        Some(all) => at(all, "/max").is_some_and(|ns| ns / 1e6 > LONG_WAIT_MS),
        None => true,
    };
    Some(seconds(output).iter().filter(waited).count() as f64)
}

/// The longest operation of a benchmark in milliseconds.
pub(crate) fn longest_wait(output: &Output) -> Option<f64> {
    Some(at(&output.json, "/measured/all/max")? / 1e6)
}

/// Bytes written to the device for each byte that clients wrote, settling included.
pub(crate) fn write_amplification(output: &Output) -> Option<f64> {
    at(&output.json, "/measured/write_amplification")
}

/// Processor time of an operation in microseconds, settling included.
pub(crate) fn cpu_us_per_op(output: &Output) -> Option<f64> {
    match output.run.tool {
        Tool::Sim => Some(cpu_seconds(output)? * 1e6 / at(&output.json, "/done")?),
        Tool::Bench => at(&output.json, "/measured/cpu_us_per_op_settled"),
    }
}

/// The longest period in which writers waited, in seconds. A simulation tells how much of each
/// second was stalled: seconds that are stalled from beginning to end join those beside them.
pub(crate) fn longest_stall(output: &Output) -> Option<f64> {
    match output.run.tool {
        Tool::Sim => {
            let (mut longest, mut current) = (0.0_f64, 0.0);
            for (_, percent) in stalled_by_second(output) {
                current += percent / 100.0;
                longest = longest.max(current);
                if percent < 99.9 {
                    current = percent / 100.0;
                }
            }
            Some(longest)
        }
        Tool::Bench => {
            let stalls = list(&output.json, "/measured/stalls").iter();
            let lengths =
                stalls.filter_map(|stall| Some(at(stall, "/end")? - at(stall, "/start")?));
            Some(lengths.fold(0.0, f64::max))
        }
    }
}

/// The widest chain of compactions, in gigabytes.
pub(crate) fn widest_chain_gb(output: &Output) -> Option<f64> {
    let bytes = match output.run.tool {
        Tool::Sim => at(&output.json, "/chains/bytes_max"),
        Tool::Bench => {
            let widths = seconds(output).iter().filter_map(|second| at(second, "/chain/1"));
            widths.reduce(f64::max)
        }
    };
    Some(bytes? / 1e9)
}

/// The longest chain of compactions, in levels.
pub(crate) fn longest_chain(output: &Output) -> Option<f64> {
    match output.run.tool {
        Tool::Sim => at(&output.json, "/chains/length_max"),
        Tool::Bench => {
            seconds(output).iter().filter_map(|second| at(second, "/chain/0")).reduce(f64::max)
        }
    }
}

/// The percentage of the base level's tables that overlap little of the level below, in virtual
/// time.
pub(crate) fn good_percent(output: &Output) -> Option<f64> {
    let tables = at(&output.json, "/base_level/tables").filter(|tables| *tables > 0.0)?;
    Some(at(&output.json, "/base_level/good_tables")? / tables * 100.0)
}

/// Processor time in virtual time as a percentage of one processor for each job slot.
pub(crate) fn cpu_percent_per_slot(output: &Output) -> Option<f64> {
    let slots = at(&output.json, "/series/0/slots")?;
    Some(cpu_seconds(output)? / at(&output.json, "/seconds")? / slots * 100.0)
}

/// Processor time of all threads in seconds.
pub(crate) fn cpu_seconds(output: &Output) -> Option<f64> {
    let (background, client) = match output.run.tool {
        Tool::Sim => ("/background_cpu_ns", "/client_cpu_ns"),
        Tool::Bench => ("/measured/cpu/background", "/measured/cpu/client"),
    };
    Some((at(&output.json, background)? + at(&output.json, client)?) / 1e9)
}

/// Megabytes of memtables that are active or wait for their flush, in virtual time: the mean of all
/// seconds.
pub(crate) fn memory_mb(output: &Output) -> Option<f64> {
    let all = by_second(output, |second| {
        Some(at(second, "/memtable_bytes")? * (1.0 + at(second, "/sealed")?) / 1e6)
    });
    let sum: f64 = all.iter().map(|(_, mb)| mb).sum();
    (!all.is_empty()).then(|| sum / all.len() as f64)
}

/// Gigabytes of the database's files at the end.
pub(crate) fn database_gb(output: &Output) -> Option<f64> {
    let bytes = match output.run.tool {
        Tool::Sim => total(output.json.pointer("/level_bytes")?),
        Tool::Bench => at(&output.json, "/measured/database_bytes")?,
    };
    Some(bytes / 1e9)
}

/// Gigabytes of keys and values that clients wrote.
pub(crate) fn input_gb(output: &Output) -> Option<f64> {
    let bytes = match output.run.tool {
        Tool::Sim => at(&output.json, "/user_bytes"),
        Tool::Bench => at(&output.json, "/measured/user_bytes_written"),
    };
    Some(bytes? / 1e9)
}

/// The percentage of reads that found their key.
pub(crate) fn found_percent(output: &Output) -> Option<f64> {
    let reads = at(&output.json, "/measured/kinds/read/latency/count")?;
    let missing = at(&output.json, "/measured/not_found")?;
    (reads > 0.0).then(|| 100.0 - missing / reads * 100.0)
}

/// The mean over all seconds of the p99 of writes, in milliseconds. In virtual time of all
/// operations.
pub(crate) fn mean_p99_of_writes(output: &Output) -> Option<f64> {
    let all = by_second(output, |second| match output.run.tool {
        Tool::Sim => {
            at(second, "/done").filter(|count| *count >= RARE)?;
            Some(at(second, "/p99_ns")? / 1e6)
        }
        Tool::Bench => {
            let writes = second.pointer("/latency/1")?;
            at(writes, "/count").filter(|count| *count >= RARE)?;
            Some(at(writes, "/p99")? / 1e6)
        }
    });
    let sum: f64 = all.iter().map(|(_, p99)| p99).sum();
    (!all.is_empty()).then(|| sum / all.len() as f64)
}

/// Job slots at the end of each second.
pub(crate) fn slots_by_second(output: &Output) -> Vec<(f64, f64)> {
    by_second(output, |second| at(second, "/slots").or_else(|| at(second, "/knobs/0")))
}

/// The size of memtables at the end of each second, in megabytes.
pub(crate) fn memtable_by_second(output: &Output) -> Vec<(f64, f64)> {
    let bytes = |second: &Value| at(second, "/memtable_bytes").or_else(|| at(second, "/knobs/1"));
    by_second(output, |second| Some(bytes(second)? / 1e6))
}

/// Runs in level 0 at the end of each second, in virtual time.
pub(crate) fn level0_by_second(output: &Output) -> Vec<(f64, f64)> {
    by_second(output, |second| at(second, "/level0_runs"))
}

/// The share of each second for which writers were slowed down or stopped, in percent.
pub(crate) fn stalled_by_second(output: &Output) -> Vec<(f64, f64)> {
    by_second(output, |second| {
        Some((at(second, "/stalled_ns").or_else(|| at(second, "/stall_ns"))? / 1e7).min(100.0))
    })
}

/// How often writes were slowed down or stopped for a cause, in virtual time.
pub(crate) fn stalls_for(output: &Output, cause: &str) -> Option<f64> {
    let stalls = output.json.pointer("/stalls")?;
    let of = |name| at(stalls, &format!("/{cause}/{name}")).unwrap_or(0.0);
    Some(of("delays") + of("stops"))
}

/// The mean of the bandwidth of all classes in MB/s, in virtual time.
pub(crate) fn mean_bandwidth(output: &Output) -> Option<f64> {
    let all = all_bandwidth(output);
    let sum: f64 = all.iter().map(|(_, mb)| mb).sum();
    (!all.is_empty()).then(|| sum / all.len() as f64)
}

/// The bandwidth of the second that used most, in MB/s, in virtual time.
pub(crate) fn peak_bandwidth(output: &Output) -> Option<f64> {
    all_bandwidth(output).into_iter().map(|(_, mb)| mb).reduce(f64::max)
}

/// The bandwidth of all classes in each second, in MB/s, in virtual time.
pub(crate) fn all_bandwidth(output: &Output) -> Vec<(f64, f64)> {
    let of = |second: &Value, name| second.pointer(name).map(total);
    by_second(output, |second| {
        Some((of(second, "/read_bytes")? + of(second, "/write_bytes")?) / 1e6)
    })
}

/// Megabytes that compactions of level 0 moved in each second, in virtual time.
pub(crate) fn level0_bandwidth(output: &Output) -> Vec<(f64, f64)> {
    // The classes are client, WAL, manifest, flush, level 0, deep and reclaim.
    let of = |second: &Value, name: &str| second.pointer(&format!("/{name}/4"))?.as_f64();
    by_second(output, |second| Some((of(second, "read_bytes")? + of(second, "write_bytes")?) / 1e6))
}

/// How often the tuner turned a knob.
pub(crate) fn adjustments(output: &Output) -> Option<f64> {
    match output.run.tool {
        Tool::Sim => at(&output.json, "/counts/adjustments"),
        Tool::Bench => Some(list(&output.json, "/measured/adjustments").len() as f64),
    }
}

/// The worst second's p99 in milliseconds.
pub(crate) fn worst_p99(output: &Output) -> Option<f64> {
    p99_by_second(output).into_iter().map(|(_, p99)| p99).reduce(f64::max)
}
