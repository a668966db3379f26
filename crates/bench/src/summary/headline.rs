//! The outcome of a workload in one or two sentences.

use super::rows::{Row, Section};
use crate::result::Report;
use crate::units;

/// The outcome of a workload in one or two sentences.
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

/// Returns each engine's median, formatted by `write`, with commas between them.
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
    let figures = each(section, row, |engine, ns| format!("{} with {engine}", row.unit.write(ns)));
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
        ns => format!("for {} with {engine}", row.unit.write(ns)),
    });
    format!("Writes were slowed or stopped {figures}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::sections;
    use crate::summary::tests::{report, run};

    #[test]
    fn each_row_says_what_it_means_and_each_workload_has_a_headline() {
        let runs = vec![run("sateen", "bursts", 1, 7.0), run("rocksdb", "bursts", 1, 5.0)];
        let report = report(runs);
        let sections = sections(&report);
        for row in &sections[0].rows {
            assert!(!row.about.is_empty(), "{}", row.label);
        }
        let says = headline(&sections[0], &report);
        assert_eq!(says, "Operations a second: 7 with sateen, 5 with rocksdb: 1.4 × faster.");
    }
}
