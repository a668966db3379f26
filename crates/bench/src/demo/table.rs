//! The demo's table: what clients noticed, what it cost, and what is left for later.

use super::verdict::{Verdict, Waits};
use crate::result::{Report, RunResult};
use crate::terminal::wrapped;
use crate::{notes, units};

/// Returns the figures of an engine, in the order of [`LABELS`].
fn column(waits: &Waits, run: &RunResult) -> Vec<String> {
    let measured = &run.measured;
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
        format!("{} µs", units::three_digits(measured.cpu_us_per_op)),
        notes::debt_bytes(run).map_or_else(|| "-".to_owned(), units::bytes),
        units::bytes(measured.database_bytes),
    ]
}

const LABELS: [&str; 14] = [
    "",
    "seconds with p99 > 100 ms",
    "worst second's p99",
    "p99",
    "p99.9",
    "longest wait",
    "operations done",
    "not done in time",
    "writes stalled (own count)",
    "disk written",
    "disk read",
    "CPU per operation",
    "compaction debt at the end",
    "database size at the end",
];

/// Says below the table what its rows do not, in lines of at most `columns` columns.
pub(super) fn below(report: &Report, verdict: &Verdict, columns: usize) -> String {
    let stalls = "Own count: each engine counts when it slows down or stops writes itself. Waits \
         for the device and in RocksDB's write queue are not in it.";
    let debt = notes::debt(&report.runs[0], &report.runs[1], &verdict.opponent.name);
    let texts = [Some(stalls.to_owned()), debt];
    texts.into_iter().flatten().map(|text| wrapped(&text, columns)).collect()
}

/// Draws the table, at most 60 columns wide.
pub(super) fn draw(report: &Report, verdict: &Verdict) -> String {
    let [sateen, opponent] = [(0, &verdict.sateen), (1, &verdict.opponent)]
        .map(|(at, waits)| column(waits, &report.runs[at]));
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
        let mut report = report(runs);
        let verdict = verdict(&[1, 2], &[200, 300]);
        assert!(!below(&report, &verdict, 80).contains("for later"));
        for (run, debt) in report.runs.iter_mut().zip([9_000_000, 7_000_000]) {
            run.measured.timeline[3].debt = Some(debt);
        }
        let says = below(&report, &verdict, 300);
        assert!(says.contains("was 9.00 MB, that of RocksDB 11.8.1 was"), "{says}");
        let text = draw(&report, &verdict);
        let debts = text.lines().find(|line| line.starts_with("compaction debt")).unwrap();
        assert!(debts.contains("9.00 MB") && debts.contains("7.00 MB"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        let row = text.lines().find(|line| line.contains("> 100 ms")).unwrap();
        assert_eq!(row.split_whitespace().rev().take(2).collect::<Vec<_>>(), ["2", "0"]);
        assert!(text.starts_with(' ') && text.contains("RocksDB 11.8.1"), "{text}");
    }
}
