//! How the pages say a comparison: "2.1 × faster", a headline for each workload, and what each row
//! means.

use serde::Serialize;

use crate::result::Report;
use crate::summary::{Row, Section, Spread, Unit};
use crate::units;

/// Ratios this near to 1 are called equal.
const EQUAL_WITHIN: f64 = 0.02;

/// The first engine's figure against the second's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// "2.1 × faster".
    pub text: String,
    /// The same factor round by round, "1.9 – 2.4"; `None` if there was one round.
    pub range: Option<String>,
    /// True if the first engine is better, `None` if they are equal.
    pub better: Option<bool>,
}

impl Comparison {
    /// Of a ratio of the first engine's figure to the second's.
    pub(crate) fn of(ratio: Spread, label: &str, unit: Unit, higher_is_better: bool) -> Comparison {
        let (more, less) = words(label, unit);
        let better = (ratio.median > 1.0) == higher_is_better;
        if (ratio.median - 1.0).abs() <= EQUAL_WITHIN {
            return Comparison {
                text: "equal".to_owned(),
                range: range(ratio, false),
                better: None,
            };
        }
        let text = match ratio.median {
            0.0 => "none".to_owned(),
            above if above > 1.0 => format!("{} × {more}", factor(above)),
            below => format!("{} × {less}", factor(1.0 / below)),
        };
        Comparison { text, range: range(ratio, ratio.median < 1.0), better: Some(better) }
    }
}

fn range(ratio: Spread, inverted: bool) -> Option<String> {
    let (low, high) =
        if inverted { (1.0 / ratio.max, 1.0 / ratio.min) } else { (ratio.min, ratio.max) };
    let shown = ratio.min < ratio.max && low.is_finite() && high.is_finite();
    shown.then(|| format!("{} – {}", factor(low), factor(high)))
}

/// A factor with two digits, near 1 with three.
fn factor(value: f64) -> String {
    match value {
        _ if value < 1.095 => format!("{value:.2}"),
        _ if value < 9.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// What a larger and a smaller figure are called.
fn words(label: &str, unit: Unit) -> (&'static str, &'static str) {
    match unit {
        Unit::Rate => ("faster", "slower"),
        Unit::Time if label.starts_with("time stalled") || label.starts_with("longest job") => {
            ("longer", "shorter")
        }
        Unit::Time => ("slower", "faster"),
        Unit::Micros | Unit::Bytes | Unit::Factor | Unit::Count => ("more", "less"),
    }
}

/// The outcome of a workload in a sentence or two.
pub(crate) fn headline(section: &Section, report: &Report) -> String {
    let row = |label: &str| section.rows.iter().find(|row| row.label == label);
    let parts = [
        row("throughput").filter(|_| !is_open(section, report)).map(|row| throughput(section, row)),
        row("all p99").map(|row| tail(section, row)),
        row("seconds with a p99 above 10 ms").map(|row| bad_seconds(section, row)),
        row("time stalled").filter(|_| !is_open(section, report)).map(|row| stalled(section, row)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

fn is_open(section: &Section, report: &Report) -> bool {
    let of = report.runs.iter().filter(|run| run.workload == section.workload);
    of.into_iter().any(|run| run.rate == section.rate && run.measured.open_loop)
}

/// Each engine's median, written, with commas between them.
fn each(section: &Section, row: &Row, write: impl Fn(&str, f64) -> String) -> String {
    let pairs = section.engines.iter().zip(&row.cells);
    let parts = pairs.filter_map(|(engine, cell)| Some(write(engine, cell.as_ref()?.median)));
    parts.collect::<Vec<_>>().join(", ")
}

fn compared(row: &Row) -> String {
    row.compared.as_ref().map_or_else(String::new, |compared| format!(": {}", compared.text))
}

fn throughput(section: &Section, row: &Row) -> String {
    let figures =
        each(section, row, |engine, rate| format!("{} with {engine}", units::count(rate)));
    format!("Operations a second: {figures}{}.", compared(row))
}

fn tail(section: &Section, row: &Row) -> String {
    let time = |ns| row.unit.write(ns).replace(" us", " µs");
    let figures = each(section, row, |engine, ns| format!("{} with {engine}", time(ns)));
    format!("99 of 100 operations ended within {figures}{}.", compared(row))
}

fn bad_seconds(section: &Section, row: &Row) -> String {
    let figures = each(section, row, |engine, seconds| match seconds {
        0.0 => format!("none with {engine}"),
        seconds => format!("{seconds:.0} with {engine}"),
    });
    format!("Seconds with a p99 above 10 ms: {figures}.")
}

fn stalled(section: &Section, row: &Row) -> String {
    if row.cells.iter().flatten().all(|cell| cell.max == 0.0) {
        return String::new();
    }
    let figures = each(section, row, |engine, ns| match ns {
        0.0 => format!("never with {engine}"),
        ns => format!("for {} with {engine}", row.unit.write(ns).replace(" us", " µs")),
    });
    format!("Writes were slowed or stopped {figures}.")
}

/// What a row of the tables means, in a sentence or two; empty for an unknown label.
pub(crate) fn about(label: &str) -> &'static str {
    match label {
        "throughput" => "Operations that ended, divided by the seconds measured.",
        "worst second's write p99" | "worst second's read p99" | "worst second's p99" => {
            "The p99 of each second, and of these the largest. Seconds with fewer than 100 \
             operations do not count."
        }
        "seconds with a p99 above 10 ms" => {
            "Seconds in which more than one operation in a hundred took longer than 10 ms. Seconds \
             with fewer than 100 operations do not count."
        }
        "not served in time" => "Operations that were due and not begun when time was up.",
        "reads that found nothing" => "Reads of keys that are not in the database.",
        "CPU per operation" => {
            "Processor time of all threads, clients and background, divided by the operations."
        }
        "CPU with settling" => {
            "The same with the work that was left at the end of the measured time: what the \
             operations cost in the end."
        }
        "of it the benchmark's own" => {
            "The processor time that the benchmark itself needs to draw and record an operation."
        }
        "peak memory" => "The largest resident memory of the process.",
        "disk read" => "Bytes that the process read from storage, settling included.",
        "disk written" => "Bytes that the process wrote to storage, settling included.",
        "write amplification" => {
            "Bytes written to storage for each byte of keys and values that clients wrote, \
             settling included."
        }
        "I/O amplification" => {
            "Bytes read from and written to storage for each byte of keys and values that clients \
             wrote, settling included."
        }
        "barriers" => "Syncs of files and directories (fsync), settling included.",
        "database size" => "Bytes of the database's files after it settled.",
        "space amplification" => "The size of the files divided by the keys and values in them.",
        "longest job out of level 0" => "The longest compaction whose input was in level 0.",
        "longest compaction chain" => {
            "The most compactions that had to follow each other before a full level 0 had room."
        }
        "widest compaction chain" => "The most bytes that such a chain of compactions had to read.",
        "time to settle" => "From the end of the measured time until no background work was left.",
        _ if label.starts_with("stalls") => {
            "How often writes were slowed down or stopped, by the engine's own count."
        }
        _ if label.starts_with("time stalled") => {
            "For how long writes were slowed down or stopped, by the engine's own count."
        }
        _ if label.ends_with(" p50") => "Half of the operations took no longer than this.",
        _ if label.ends_with(" p99") => "99 of 100 operations took no longer than this.",
        _ if label.ends_with(" p99.9") => "999 of 1000 operations took no longer than this.",
        _ if label.ends_with(" p99.99") => "9999 of 10000 operations took no longer than this.",
        _ if label.ends_with(" max") => "The longest of all operations.",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::sections;
    use crate::summary::tests::{report, run};

    fn said(median: f64, label: &str, unit: Unit) -> (String, Option<bool>) {
        let ratio = Spread { median, min: median, max: median };
        let compared = Comparison::of(ratio, label, unit, unit == Unit::Rate);
        assert_eq!(compared.range, None);
        (compared.text, compared.better)
    }

    #[test]
    fn a_ratio_is_said_as_a_factor_above_one() {
        let better = |text: &str| (text.to_owned(), Some(true));
        let worse = |text: &str| (text.to_owned(), Some(false));
        assert_eq!(said(0.47, "read p99", Unit::Time), better("2.1 × faster"));
        assert_eq!(said(2.0, "read p99", Unit::Time), worse("2.0 × slower"));
        assert_eq!(said(1.3, "throughput", Unit::Rate), better("1.3 × faster"));
        assert_eq!(said(0.5, "throughput", Unit::Rate), worse("2.0 × slower"));
        assert_eq!(said(0.05, "peak memory", Unit::Bytes), better("20 × less"));
        assert_eq!(said(1.05, "barriers", Unit::Count), worse("1.05 × more"));
        assert_eq!(said(0.25, "time stalled", Unit::Time), better("4.0 × shorter"));
        assert_eq!(said(0.0, "stalls", Unit::Count), better("none"));
        assert_eq!(said(1.019, "throughput", Unit::Rate), ("equal".to_owned(), None));
    }

    #[test]
    fn the_range_is_in_the_direction_of_the_median() {
        let range = |median, min, max| {
            Comparison::of(Spread { median, min, max }, "read p99", Unit::Time, false).range
        };
        assert_eq!(range(0.5, 0.4, 0.8).as_deref(), Some("1.2 – 2.5"));
        assert_eq!(range(2.0, 1.0, 4.0).as_deref(), Some("1.00 – 4.0"));
        assert_eq!(range(0.5, 0.0, 0.8), None, "no factor says nothing of something");
    }

    #[test]
    fn each_row_says_what_it_means_and_each_workload_has_a_headline() {
        let runs = vec![run("sateen", "bursts", 1, 7.0), run("rocksdb", "bursts", 1, 5.0)];
        let report = report(runs);
        let sections = sections(&report);
        for row in &sections[0].rows {
            assert!(!row.about.is_empty(), "{}", row.label);
        }
        let says = headline(&sections[0], &report);
        assert_eq!(says, "Operations a second: 7.00 with sateen, 5.00 with rocksdb: 1.4 × faster.");
    }
}
