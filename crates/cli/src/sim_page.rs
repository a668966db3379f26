//! `sateen sim --html` writes the simulations as a page with charts.

use sateen_bench::html::{self, Row, Unit};
use sateen_control::IoClass;
use sateen_sim::Report;
use serde::Serialize;

use crate::failure::{Failure, Result};

const SCRIPT: &str = include_str!("sim_page.js");

/// The policies that ran one workload on one device.
#[derive(Serialize)]
struct Section<'a> {
    title: String,
    headline: String,
    engines: Vec<&'a str>,
    rows: Vec<Row>,
    reports: Vec<&'a Report>,
}

#[derive(Serialize)]
struct Data<'a> {
    command: String,
    /// The policies, by their own names.
    title: String,
    classes: [&'static str; IoClass::NAMES.len()],
    sections: Vec<Section<'a>>,
}

/// Renders the page.
pub(crate) fn render(reports: &[Report]) -> Result<String> {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let data = Data {
        title: title(reports),
        command: format!("sateen {}", words.join(" ")),
        classes: IoClass::NAMES,
        sections: sections(reports),
    };
    html::page(&format!("{}, simulated", data.title), SCRIPT, &data)
        .map_err(|error| Failure::failed(error.to_string()))
}

/// Returns the names of the policies: "silk against rocksdb".
fn title(reports: &[Report]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for report in reports {
        if !names.contains(&report.policy.as_str()) {
            names.push(&report.policy);
        }
    }
    // A title is plain text in the page.
    names.join(if names.len() == 2 { " against " } else { ", " }).replace(['<', '&'], "")
}

/// Returns a section for each workload on each device, in the order in which they ran.
fn sections(reports: &[Report]) -> Vec<Section<'_>> {
    let place = |report: &Report| (report.workload.clone(), report.device.clone());
    let mut places = Vec::new();
    for report in reports {
        if !places.contains(&place(report)) {
            places.push(place(report));
        }
    }
    let of = |at: &(String, String)| reports.iter().filter(|report| place(report) == *at).collect();
    places.iter().map(|at| section(of(at))).collect()
}

fn section(reports: Vec<&Report>) -> Section<'_> {
    let title = reports.first().map_or_else(String::new, |report| {
        format!("{} on a device of {}", report.workload, report.device)
    });
    let engines = reports.iter().map(|report| report.policy.as_str()).collect();
    Section { title, headline: headline(&reports), engines, rows: rows(&reports), reports }
}

fn headline(reports: &[&Report]) -> String {
    let bad = |report: &&Report| match report.bad_seconds {
        0 => format!("none with {}", report.policy),
        seconds => format!("{seconds} with {}", report.policy),
    };
    let seconds = reports.first().map_or(0, |report| report.series.len());
    let bad: Vec<String> = reports.iter().map(bad).collect();
    format!("Seconds with a p99 above 10 ms, of {seconds}: {}.", bad.join(", "))
}

fn rows(reports: &[&Report]) -> Vec<Row> {
    type Get = fn(&Report) -> f64;
    let rows: [(&str, Unit, Get, &str); 16] = [
        ("done", Unit::Rate, |r| r.done as f64 / r.seconds, "Operations that ended, a second."),
        ("not done", Unit::Count, |r| (r.offered - r.done) as f64, "Operations due and not ended."),
        ("p50", Unit::Time, |r| r.p50_ns as f64, "Half of the operations took no longer."),
        ("p99", Unit::Time, |r| r.p99_ns as f64, "99 of 100 operations took no longer."),
        ("p99.9", Unit::Time, |r| r.p999_ns as f64, "999 of 1000 operations took no longer."),
        ("longest", Unit::Time, |r| r.max_ns as f64, "The longest of all operations."),
        (
            "worst second's p99",
            Unit::Time,
            |r| r.worst_second_p99_ns as f64,
            "The p99 of each second, and of these the largest.",
        ),
        (
            "seconds with a p99 above 10 ms",
            Unit::Count,
            |r| r.bad_seconds as f64,
            "Seconds in which more than one operation in a hundred took longer than 10 ms.",
        ),
        (
            "stalls",
            Unit::Count,
            |r| r.stalled().0 as f64,
            "How often the policy slowed down or stopped writes, whether or not a writer came and \
             had to wait.",
        ),
        (
            "time stalled",
            Unit::Time,
            |r| r.stalled().1 as f64,
            "For how long writes were slowed down or stopped, whether or not a writer came and had \
             to wait; of all causes together. The charts mark the seconds.",
        ),
        (
            "time writers waited",
            Unit::Time,
            |r| r.waited_ns() as f64,
            "How long writers waited for stalls, all threads together.",
        ),
        (
            "write amplification",
            Unit::Factor,
            |r| r.write_amplification,
            "Bytes that flushes and compactions wrote for each byte that clients wrote.",
        ),
        ("flushes", Unit::Count, |r| r.counts.flushes as f64, "Flushes that ended."),
        ("compactions", Unit::Count, |r| r.counts.compactions as f64, "Compactions that ended."),
        ("pauses", Unit::Count, |r| r.counts.paused as f64, "Pauses of background jobs."),
        (
            "compaction debt at the end",
            Unit::Bytes,
            |r| r.debt_bytes as f64,
            "Bytes that wait for compaction at the end.",
        ),
    ];
    let row = |(label, unit, get, about): (&str, Unit, Get, &str)| {
        let figures: Vec<f64> = reports.iter().map(|report| get(report)).collect();
        Row::of_figures(label, about, unit, &figures)
    };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sateen_sim::{SimConfig, Simulation};

    #[test]
    fn the_page_compares_the_policies_of_each_device() {
        let run =
            |policy: &str| Simulation::run(SimConfig::standard(policy, 2.0).unwrap()).unwrap();
        let mut reports = vec![run("silk"), run("rocksdb"), run("silk")];
        reports[2].device = "slow </script>".to_owned();
        let sections = sections(&reports);
        assert_eq!(sections.len(), 2);
        assert_eq!(sections[0].engines, ["silk", "rocksdb"]);
        assert_eq!(sections[1].engines, ["silk"]);
        assert_eq!(
            sections[0].headline,
            "Seconds with a p99 above 10 ms, of 150: none with silk, none with rocksdb."
        );
        let p99 = sections[0].rows.iter().find(|row| row.label == "p99").unwrap();
        assert!(p99.compared.is_some() && sections[1].rows[3].compared.is_none());
        for row in &sections[0].rows {
            assert!(row.compared.is_some(), "{}: no empty cell", row.label);
        }
        let page = render(&reports).unwrap();
        assert!(page.contains("<title>silk against rocksdb, simulated</title>"));
        assert!(!page.contains("slow </script>") && page.contains("slow \\u003c/script>"));
    }
}
