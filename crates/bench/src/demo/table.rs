//! The demo's table: what clients noticed, and what it cost.

use super::verdict::{Verdict, Waits};
use crate::result::{Measured, Report};
use crate::units;

/// Returns the figures of an engine, in the order of [`LABELS`].
fn column(waits: &Waits, measured: &Measured) -> Vec<String> {
    let all = measured.all.unwrap_or_default();
    let disk = measured.disk;
    vec![
        waits.name.clone(),
        waits.bad().to_string(),
        units::time(waits.worst_ns()),
        units::time(all.p99),
        units::time(all.p999),
        units::time(all.max),
        units::count(measured.done as f64),
        units::count(measured.unserved as f64),
        measured.stall_ns.map_or_else(|| "-".to_owned(), units::time),
        units::bytes(disk.written),
        units::bytes(disk.read),
        format!("{} us", units::three_digits(measured.cpu_us_per_op)),
    ]
}

const LABELS: [&str; 12] = [
    "",
    "seconds with p99 > 100 ms",
    "worst second's p99",
    "p99",
    "p99.9",
    "longest wait",
    "operations done",
    "not done in time",
    "writes stalled (its count)",
    "disk written",
    "disk read",
    "CPU per operation",
];

/// Draws the table, at most 60 columns wide.
pub(super) fn draw(report: &Report, verdict: &Verdict) -> String {
    let [sateen, opponent] = [(0, &verdict.sateen), (1, &verdict.opponent)]
        .map(|(at, waits)| column(waits, &report.runs[at].measured));
    let mut out = String::new();
    for (at, label) in LABELS.iter().enumerate() {
        out.push_str(&format!("{label:<27}{:>12}{:>19}\n", sateen[at], opponent[at]));
        if at == 0 {
            out.push_str(&format!("{}\n", "─".repeat(58)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::verdict::tests::verdict;
    use crate::summary::tests::{report, run};

    #[test]
    fn the_table_fits_sixty_columns() {
        let runs = vec![run("sateen", "bursts", 1, 7.0), run("rocksdb", "bursts", 1, 5.0)];
        let text = draw(&report(runs), &verdict(&[1, 2], &[200, 300]));
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        let row = text.lines().find(|line| line.contains("> 100 ms")).unwrap();
        assert_eq!(row.split_whitespace().rev().take(2).collect::<Vec<_>>(), ["2", "0"]);
        assert!(text.starts_with(' ') && text.contains("RocksDB 11.8.1"), "{text}");
    }
}
