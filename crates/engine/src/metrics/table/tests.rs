//! The text has the format that Prometheus demands, it has every metric, and docs/metrics.md agrees
//! with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sateen_store::vfs::ClassSnapshot;

use super::super::snapshot::{ColumnFamilyMetrics, LevelShape};
use super::text::push;
use super::*;
use crate::metrics::StallCause;
use crate::metrics::engine::{CompactionDone, EngineMetrics, FlushDone, LatencySampling};
use crate::metrics::snapshot::{MemoryUse, Operation};

/// A line with a sample, split into its parts.
#[derive(Debug, PartialEq)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Returns true for a metric or label name that the format allows.
fn is_name(name: &str) -> bool {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Parses a line with a sample by the grammar of the format. Panics if it is malformed.
fn parse(line: &str) -> Sample {
    let end = line.find(['{', ' ']).expect("a name ends");
    let mut labels = BTreeMap::new();
    let mut rest = &line[end..];
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").expect("a label has a quoted value");
            assert!(is_name(label), "{line}");
            let mut text = String::new();
            let mut characters = after.char_indices();
            let closing = loop {
                match characters.next().expect("a label value ends") {
                    (_, '\\') => match characters.next().expect("an escape is complete").1 {
                        'n' => text.push('\n'),
                        escaped @ ('\\' | '"') => text.push(escaped),
                        other => panic!("no such escape: {other}"),
                    },
                    (at, '"') => break at,
                    (_, other) => text.push(other),
                }
            };
            assert_eq!(labels.insert(label.to_owned(), text), None, "{line}");
            rest = &after[closing + 1..];
            match rest.split_at(1) {
                (",", more) => rest = more,
                ("}", more) => {
                    rest = more;
                    break;
                }
                _ => panic!("{line}"),
            }
        }
    }
    let value = rest.strip_prefix(' ').expect("a value follows").parse().expect("a number");
    let name = line[..end].to_owned();
    assert!(is_name(&name), "{line}");
    Sample { name, labels, value }
}

/// Returns the samples by metric, after checks of what the format demands of the whole text.
fn parse_all(text: &str) -> BTreeMap<String, Vec<Sample>> {
    let mut families: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    let (mut current, mut kind) = (String::new(), "");
    let mut seen = BTreeSet::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, _) = help.split_once(' ').expect("a help text");
            let typed = lines.next().and_then(|line| line.strip_prefix("# TYPE "));
            let (typed_name, typed_kind) = typed.and_then(|t| t.split_once(' ')).expect("a type");
            assert_eq!(typed_name, name);
            assert!(["counter", "gauge", "histogram"].contains(&typed_kind));
            assert!(families.insert(name.to_owned(), Vec::new()).is_none(), "{name} twice");
            (current, kind) = (name.to_owned(), typed_kind);
            continue;
        }
        let sample = parse(line);
        let suffix = sample.name.strip_prefix(&current).expect("samples follow their type");
        let allowed: &[&str] =
            if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(allowed.contains(&suffix), "{line}");
        assert!(seen.insert((sample.name.clone(), sample.labels.clone())), "{line} twice");
        families.get_mut(&current).expect("a family").push(sample);
    }
    families
}

/// Checks that the buckets of every histogram ascend and end with its count.
fn check_histograms(families: &BTreeMap<String, Vec<Sample>>) {
    for (name, samples) in families {
        let mut series: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for sample in samples {
            let mut labels = sample.labels.clone();
            if sample.name == format!("{name}_bucket") {
                let le = labels.remove("le").expect("a bucket has a bound");
                let le = if le == "+Inf" { f64::INFINITY } else { le.parse().unwrap() };
                series.entry(labels).or_default().push((le, sample.value));
            } else if sample.name == format!("{name}_count") {
                counts.insert(labels, sample.value);
            }
        }
        for (labels, buckets) in series {
            assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name} {buckets:?}");
            let last = buckets[buckets.len() - 1];
            assert_eq!(last, (f64::INFINITY, counts[&labels]), "{name} {labels:?}");
        }
    }
}

fn sample_of<'a>(
    families: &'a BTreeMap<String, Vec<Sample>>,
    name: &str,
    labels: &[(&str, &str)],
) -> &'a Sample {
    let wanted: BTreeMap<_, _> =
        labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let found = families.values().flatten().find(|s| s.name == name && s.labels == wanted);
    found.unwrap_or_else(|| panic!("no sample {name} {labels:?}"))
}

/// Returns metrics in which no field is empty.
fn busy() -> Metrics {
    let engine = EngineMetrics::new(LatencySampling::EXACT, 100);
    for size in [10, 20] {
        engine.record_get(engine.start(Operation::Get), Some(size));
    }
    engine.record_get(engine.start(Operation::Get), None);
    engine.record_multi_get(engine.start(Operation::MultiGet), 5, 4, 100);
    engine.record_write(engine.start(Operation::Write), 1000, 9);
    engine.record_seek(engine.start(Operation::Seek));
    drop(engine.stall_begin(StallCause::Level0Runs));
    engine.flush_done(&FlushDone { bytes_in: 1000, bytes_out: 500, ..FlushDone::default() });
    engine.compaction_done(&CompactionDone {
        output_level: 2,
        bytes_in_above: 500,
        bytes_out: 1500,
        ..CompactionDone::default()
    });
    engine.rotate(101);
    let mut metrics = engine.snapshot();
    metrics.io = vec![ClassSnapshot::default(); IoClass::NAMES.len()];
    metrics.io[IoClass::Wal.index()].totals.write_bytes = 77;
    metrics.column_families = vec![
        ColumnFamilyMetrics {
            name: "default".into(),
            levels: vec![
                LevelShape { runs: 3, tables: 4, bytes: 5, good_bytes: 2, target_bytes: 6 };
                2
            ],
            obsolete_bytes: 5,
            ..ColumnFamilyMetrics::default()
        },
        ColumnFamilyMetrics {
            name: "a \"quoted\\\nname".into(),
            levels: vec![LevelShape::default()],
            compaction_debt_bytes: 9,
            chain_length: 2,
            write_rate_limit: Some(0),
            ..ColumnFamilyMetrics::default()
        },
    ];
    metrics.memory = MemoryUse { block_cache: 4096, budget: 1 << 20, ..MemoryUse::default() };
    metrics.scheduler.device_write_bandwidth = 200;
    metrics.scheduler.preemptions = 4;
    metrics.scheduler.processors_others = 750;
    metrics.scheduler.short_of_processor = true;
    metrics.scheduler.compaction_slots = 3;
    metrics.scheduler.adjustments = [0, 5, 0];
    metrics.health = "degraded";
    metrics
}

#[test]
fn the_text_is_valid_and_holds_the_numbers() {
    let families = parse_all(&busy().to_prometheus_text());
    check_histograms(&families);
    let value = |name, labels: &[(&str, &str)]| sample_of(&families, name, labels).value;
    assert_eq!(value("sateen_gets_total", &[]), 8.0);
    assert_eq!(value("sateen_get_hits_total", &[]), 6.0);
    assert_eq!(value("sateen_get_bytes_total", &[]), 130.0);
    assert_eq!(value("sateen_written_entries_total", &[]), 9.0);
    assert_eq!(value("sateen_operation_seconds_count", &[("operation", "get")]), 3.0);
    assert_eq!(value("sateen_stall_seconds_count", &[("cause", "level0-runs")]), 1.0);
    assert_eq!(value("sateen_stalled_writers", &[("cause", "level0-runs")]), 0.0);
    assert_eq!(value("sateen_compaction_output_bytes_total", &[("level", "2")]), 1500.0);
    assert_eq!(value("sateen_write_amplification", &[]), 2.0);
    let wal_write = [("class", "wal"), ("operation", "write")];
    assert_eq!(value("sateen_io_bytes_total", &wal_write), 77.0);
    assert_eq!(value("sateen_level_tables", &[("cf", "default"), ("level", "1")]), 4.0);
    assert_eq!(value("sateen_compaction_debt_bytes", &[("cf", "a \"quoted\\\nname")]), 9.0);
    assert_eq!(value("sateen_compaction_chain_levels", &[("cf", "a \"quoted\\\nname")]), 2.0);
    assert_eq!(value("sateen_space_amplification", &[("cf", "default")]), 3.0);
    assert_eq!(value("sateen_processors_others", &[]), 0.75);
    assert_eq!(value("sateen_short_of_processor", &[]), 1.0);
    let device_write = [("operation", "write")];
    assert_eq!(value("sateen_device_bandwidth_bytes_per_second", &device_write), 200.0);
    assert_eq!(value("sateen_pauses_total", &[("reason", "preempted")]), 4.0);
    assert_eq!(value("sateen_job_slots", &[("kind", "compaction")]), 3.0);
    assert_eq!(value("sateen_adjustments_total", &[("overflow", "redundancy")]), 5.0);
    assert_eq!(value("sateen_writes_stopped", &[("cf", "default")]), 0.0);
    assert_eq!(value("sateen_writes_stopped", &[("cf", "a \"quoted\\\nname")]), 1.0);
    assert_eq!(value("sateen_memory_bytes", &[("owner", "block_cache")]), 4096.0);
    assert_eq!(value("sateen_health", &[("state", "degraded")]), 1.0);
    assert_eq!(value("sateen_health", &[("state", "ok")]), 0.0);
}

#[test]
fn no_family_of_a_busy_database_is_empty() {
    for (name, samples) in parse_all(&busy().to_prometheus_text()) {
        assert!(!samples.is_empty(), "{name}");
    }
}

#[test]
fn the_text_of_an_unused_database_is_valid() {
    let families = parse_all(&Metrics::default().to_prometheus_text());
    assert_eq!(families.len(), FAMILIES.iter().map(|group| group.len()).sum::<usize>());
}

#[test]
fn names_follow_the_conventions() {
    for Family { name, kind, unit, help, .. } in FAMILIES.iter().copied().flatten() {
        assert!(is_name(name) && name.starts_with("sateen_"), "{name}");
        assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
        let bare = name.trim_end_matches("_total");
        assert_eq!(bare.ends_with("_bytes"), *unit == "bytes", "{name} in {unit}");
        assert_eq!(bare.ends_with("_seconds"), *unit == "seconds", "{name} in {unit}");
        assert!(help.ends_with('.') && !help.contains(['\n', '\\', '|']), "{name}");
    }
}

/// The headings of docs/metrics.md, one for each list in [`FAMILIES`].
const HEADINGS: [&str; 6] = [
    "Operations of clients",
    "Latency and stalls",
    "Caches, filters and tables",
    "Flushes, compactions and I/O",
    "Scheduling",
    "State",
];

/// Returns the contents that docs/metrics.md must have.
fn documentation() -> String {
    assert_eq!(HEADINGS.len(), FAMILIES.len());
    let mut out = String::from(
        "# Metrics\n\n\
         Sateen counts operations, waits, I/O, background work and memory. This page lists every\n\
         metric with its type and unit. `Db::metrics().to_prometheus_text()` returns them in the\n\
         text format of Prometheus, and `sateen db stats PATH --prometheus` prints that text:\n\n\
         ```text\n\
         # HELP sateen_gets_total Point reads, each key of a multi_get included.\n\
         # TYPE sateen_gets_total counter\n\
         sateen_gets_total 0\n\
         ```\n\n\
         - Counters begin at 0 when the database is opened. The command opens the database\n\
         \x20 itself, so its counters are those of the command.\n\
         - Histograms have buckets from 256 ns to 17 s in powers of two.\n\
         - I/O classes are client, wal, manifest, flush, l0 (compaction out of level 0), deep\n\
         \x20 (other compaction) and reclaim (freeing the space of dead tables).\n\
         - [The timeline](timeline.md) says when things happened and why an operation was slow.\n\n\
         The tables are generated from the engine's list of metrics. After a change there run\n\
         `SATEEN_BLESS=1 cargo test -p sateen --lib metrics`.\n",
    );
    for (heading, families) in HEADINGS.into_iter().zip(FAMILIES) {
        push(&mut out, format_args!("\n## {heading}\n\n"));
        out.push_str("| metric | type | unit | meaning |\n| --- | --- | --- | --- |\n");
        for Family { name, kind, unit, help, .. } in *families {
            push(&mut out, format_args!("| `{name}` | {} | {unit} | {help} |\n", kind.name()));
        }
    }
    out
}

#[test]
fn the_documentation_lists_every_metric() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    if std::env::var_os("SATEEN_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, documentation()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == documentation(),
        "docs/metrics.md is out of date: run SATEEN_BLESS=1 cargo test -p sateen --lib metrics"
    );
}
