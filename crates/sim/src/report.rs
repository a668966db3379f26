//! The report of a simulation, as a table of text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sateen_control::compaction::CompactionChain;
use sateen_control::{IO_CLASSES, IoClass};
use sateen_workload::Histogram;
use serde::Serialize;

use crate::admission::Stalls;
use crate::classes::Classes;
use crate::config::SimConfig;
use crate::recorder::{Recorder, Second};

/// A second counts as bad if its p99 is above this.
const BAD_P99_NS: u64 = 10_000_000;

/// Counts of background work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Flushes installed.
    pub flushes: u64,
    /// Compactions installed.
    pub compactions: u64,
    /// Trivial moves: tables that changed their level unread.
    pub moves: u64,
    /// Compactions that ended early and installed a part of their result.
    pub partial: u64,
    /// Discarded jobs.
    pub discarded: u64,
    /// Pauses of jobs.
    pub paused: u64,
    /// Resumptions of paused jobs.
    pub resumed: u64,
    /// Changes of the background bandwidth.
    pub bandwidth_changes: u64,
    /// Adjustments of job slots or of the memtable size.
    pub adjustments: u64,
}

/// The chains of compactions that a flush could have to wait for (vLSM §2.3), looked at after each
/// flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Chains {
    /// Chains that were looked at.
    pub count: u64,
    /// The sum of their bytes.
    pub bytes: u64,
    /// The bytes of the widest.
    pub bytes_max: u64,
    /// The compactions in the longest.
    pub length_max: u32,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        let Counts { flushes, compactions, moves, partial, discarded, .. } = other;
        self.flushes += flushes;
        self.compactions += compactions;
        self.moves += moves;
        self.partial += partial;
        self.discarded += discarded;
        self.paused += other.paused;
        self.resumed += other.resumed;
        self.bandwidth_changes += other.bandwidth_changes;
        self.adjustments += other.adjustments;
    }
}

impl Chains {
    fn add_all(&mut self, other: &Chains) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.bytes_max = self.bytes_max.max(other.bytes_max);
        self.length_max = self.length_max.max(other.length_max);
    }

    pub(crate) fn add(&mut self, chain: CompactionChain) {
        self.count += 1;
        self.bytes += chain.bytes;
        self.bytes_max = self.bytes_max.max(chain.bytes);
        self.length_max = self.length_max.max(chain.length);
    }

    /// Returns the mean bytes of a chain.
    #[must_use]
    pub fn bytes_mean(&self) -> u64 {
        self.bytes / self.count.max(1)
    }
}

/// The jobs of one kind that were installed, without trivial moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Jobs {
    /// Their number.
    pub count: u64,
    /// Bytes that they read and wrote.
    pub bytes: u64,
    /// Nanoseconds from their beginnings to their ends, pauses included.
    pub ns: u64,
}

impl Jobs {
    fn add_all(&mut self, other: &Jobs) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.ns += other.ns;
    }

    pub(crate) fn add(&mut self, bytes: u64, ns: u64) {
        self.count += 1;
        self.bytes += bytes;
        self.ns += ns;
    }
}

/// The tables of the base level that overlap little of the level below (vLSM §4.2), looked at after
/// each flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BaseLevel {
    /// The sum of the tables of the level.
    pub tables: u64,
    /// The sum of its good tables.
    pub good_tables: u64,
}

/// The work of the device for one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassBytes {
    /// The name of the class.
    pub class: &'static str,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Barriers.
    pub syncs: u64,
}

/// The report of one simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The policy's name.
    pub policy: String,
    /// The workload's name.
    pub workload: String,
    /// The device, in words.
    pub device: String,
    /// Seconds of virtual time.
    pub seconds: f64,
    /// Operations that were due.
    pub offered: u64,
    /// Operations that ended.
    pub done: u64,
    /// The median latency of all operations that ended, in nanoseconds.
    pub p50_ns: u64,
    /// The p99 of the same, in nanoseconds.
    pub p99_ns: u64,
    /// The p99.9 of the same, in nanoseconds.
    pub p999_ns: u64,
    /// The longest latency, in nanoseconds.
    pub max_ns: u64,
    /// The p99 of reads and scans, in nanoseconds.
    pub read_p99_ns: u64,
    /// The p99 of writes, in nanoseconds. A read that a write follows counts as a write.
    pub write_p99_ns: u64,
    /// The worst second's p99, in nanoseconds.
    pub worst_second_p99_ns: u64,
    /// Seconds whose p99 was above 10 ms.
    pub bad_seconds: u64,
    /// Write stalls by cause.
    pub stalls: BTreeMap<&'static str, Stalls>,
    /// Bytes of keys and values that clients wrote.
    pub user_bytes: u64,
    /// The work of the device by class.
    pub classes: Vec<ClassBytes>,
    /// Bytes that flushes and compactions wrote for each byte that clients wrote.
    pub write_amplification: f64,
    /// Bytes that wait for compaction at the end.
    pub debt_bytes: u64,
    /// The chains of compactions that flushes could have to wait for.
    pub chains: Chains,
    /// Flushes.
    pub flushes: Jobs,
    /// Compactions by the level from which they took tables down.
    pub compactions: Vec<Jobs>,
    /// The good tables of the base level.
    pub base_level: BaseLevel,
    /// Processor time of clients, in nanoseconds.
    pub client_cpu_ns: u64,
    /// Processor time of flushes and compactions, in nanoseconds.
    pub background_cpu_ns: u64,
    /// Bytes of each level at the end.
    pub level_bytes: Vec<u64>,
    /// Counts of background work.
    pub counts: Counts,
    /// The seconds of the run.
    pub series: Vec<Second>,
}

impl Report {
    pub(crate) fn new(
        config: &SimConfig,
        recorder: &Recorder,
        undone: u64,
        counts: Counts,
    ) -> Report {
        let total: &Histogram = &recorder.total;
        let mut series = recorder.seconds.clone();
        for (nth, second) in series.iter_mut().enumerate() {
            second.offered = recorder.offered(nth);
        }
        Report {
            policy: config.policy.name.clone(),
            workload: config.load.spec.name.to_owned(),
            device: device(config),
            seconds: config.duration_ns as f64 / 1e9,
            offered: total.count() + undone,
            done: total.count(),
            p50_ns: total.quantile(0.5),
            p99_ns: total.quantile(0.99),
            p999_ns: total.quantile(0.999),
            max_ns: total.max(),
            read_p99_ns: recorder.reads.quantile(0.99),
            write_p99_ns: recorder.writes.quantile(0.99),
            worst_second_p99_ns: series.iter().map(|second| second.p99_ns).max().unwrap_or(0),
            bad_seconds: series.iter().filter(|s| s.p99_ns > BAD_P99_NS).count() as u64,
            stalls: BTreeMap::new(),
            user_bytes: 0,
            classes: Vec::new(),
            write_amplification: 0.0,
            debt_bytes: 0,
            chains: Chains::default(),
            flushes: Jobs::default(),
            compactions: Vec::new(),
            base_level: BaseLevel::default(),
            client_cpu_ns: 0,
            background_cpu_ns: 0,
            level_bytes: Vec::new(),
            counts,
            series,
        }
    }

    /// Returns the report of several databases together. `recorder` and `total` are those of all.
    pub(crate) fn of_all(
        config: &SimConfig,
        recorder: &Recorder,
        total: &Classes,
        reports: &[Report],
    ) -> Report {
        let sum = |get: fn(&Report) -> u64| reports.iter().map(get).sum::<u64>();
        let undone = sum(|report| report.offered - report.done);
        let mut all = Report::new(config, recorder, undone, Counts::default());
        all.account(sum(|report| report.user_bytes), total);
        all.debt_bytes = sum(|report| report.debt_bytes);
        all.client_cpu_ns = sum(|report| report.client_cpu_ns);
        all.background_cpu_ns = sum(|report| report.background_cpu_ns);
        let levels = reports.iter().map(|report| report.level_bytes.len()).max().unwrap_or(0);
        all.level_bytes.resize(levels, 0);
        all.compactions.resize(levels, Jobs::default());
        for report in reports {
            all.counts.add(&report.counts);
            all.chains.add_all(&report.chains);
            all.flushes.add_all(&report.flushes);
            let own = all.compactions.iter_mut().zip(&report.compactions);
            own.for_each(|(sum, jobs)| sum.add_all(jobs));
            let own = all.level_bytes.iter_mut().zip(&report.level_bytes);
            own.for_each(|(sum, bytes)| *sum += bytes);
            all.base_level.tables += report.base_level.tables;
            all.base_level.good_tables += report.base_level.good_tables;
            for (cause, stalls) in &report.stalls {
                all.stalls.entry(*cause).or_default().add(stalls);
            }
            for (sum, second) in all.series.iter_mut().zip(&report.series) {
                sum.debt_bytes += second.debt_bytes;
                sum.level0_runs = sum.level0_runs.max(second.level0_runs);
                sum.sealed += second.sealed;
                sum.stalled_ns += second.stalled_ns;
                sum.believed_read = second.believed_read;
                sum.believed_write = second.believed_write;
                sum.slots = second.slots;
                sum.memtable_bytes = sum.memtable_bytes.max(second.memtable_bytes);
            }
        }
        all
    }

    pub(crate) fn account(&mut self, user_bytes: u64, total: &Classes) {
        self.user_bytes = user_bytes;
        let background = [IoClass::Flush, IoClass::L0, IoClass::Deep(1)];
        let written: u64 = background.iter().map(|class| total[class.index()].write_bytes).sum();
        self.write_amplification = written as f64 / user_bytes.max(1) as f64;
        self.classes = (0..IO_CLASSES)
            .map(|at| ClassBytes {
                class: IoClass::NAMES[at],
                read_bytes: total[at].read_bytes,
                write_bytes: total[at].write_bytes,
                syncs: total[at].syncs,
            })
            .collect();
    }

    /// Returns how many delays and stops made a writer wait, for all causes together.
    #[must_use]
    pub fn stall_count(&self) -> u64 {
        self.stalls.values().map(|stalls| stalls.felt).sum()
    }

    /// Returns how often and for how many nanoseconds writes were slowed down or stopped, for all
    /// causes together, whether or not a writer came and had to wait.
    #[must_use]
    pub fn stalled(&self) -> (u64, u64) {
        let sum = |get: fn(&Stalls) -> u64| self.stalls.values().map(get).sum();
        (
            sum(|stalls| stalls.delays + stalls.stops),
            sum(|stalls| stalls.delayed_ns + stalls.stopped_ns),
        )
    }

    /// Returns how long writers waited, in nanoseconds, for all threads and causes together.
    #[must_use]
    pub fn waited_ns(&self) -> u64 {
        self.stalls.values().map(|stalls| stalls.waited_ns).sum()
    }
}

fn device(config: &SimConfig) -> String {
    let bandwidth = config.device.bandwidth;
    let mb = |bytes: u64| bytes / 1_000_000;
    if bandwidth.read == bandwidth.write {
        format!("{} MB/s", mb(bandwidth.read))
    } else {
        format!("{}/{} MB/s", mb(bandwidth.read), mb(bandwidth.write))
    }
}

const HEADS: [&str; 20] = [
    "policy", "workload", "device", "offered", "done", "p50", "p99", "p99 rd", "p99 wr", "p99.9",
    "max", "worst s", "s>10ms", "stalls", "stalled", "waited", "wr.amp", "chain", "debt", "L0",
];

/// Writes the reports as a text table: a line for each, and below it the stalls by cause.
#[must_use]
pub fn table(reports: &[Report]) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(reports.iter().map(row));
    let widths: Vec<usize> = (0..HEADS.len())
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (at, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            // Names are aligned left, figures right.
            let _infallible = match at {
                0..3 => write!(line, "{cell:<width$}  "),
                _ => write!(line, "{cell:>width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for report in reports {
        for (cause, stalls) in &report.stalls {
            let _infallible = writeln!(
                text,
                "{} on {}: {cause}: delayed {} times for {}, stopped {} times for {}; {} of \
                 these made writers wait, for {} in all",
                report.policy,
                report.device,
                stalls.delays,
                time(stalls.delayed_ns),
                stalls.stops,
                time(stalls.stopped_ns),
                stalls.felt,
                time(stalls.waited_ns),
            );
        }
    }
    text
}

fn row(report: &Report) -> [String; HEADS.len()] {
    let level0_runs = report.series.last().map_or(0, |second| second.level0_runs);
    [
        report.policy.clone(),
        report.workload.clone(),
        report.device.clone(),
        grouped(report.offered),
        grouped(report.done),
        time(report.p50_ns),
        time(report.p99_ns),
        time(report.read_p99_ns),
        time(report.write_p99_ns),
        time(report.p999_ns),
        time(report.max_ns),
        time(report.worst_second_p99_ns),
        report.bad_seconds.to_string(),
        report.stalled().0.to_string(),
        time(report.stalled().1),
        time(report.waited_ns()),
        format!("{:.1}", report.write_amplification),
        format!("{:.2} GB", report.chains.bytes_max as f64 / 1e9),
        format!("{:.2} GB", report.debt_bytes as f64 / 1e9),
        level0_runs.to_string(),
    ]
}

/// Formats a count with a comma between thousands.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

fn time(ns: u64) -> String {
    if ns == 0 {
        return "0 s".to_owned();
    }
    let ns = ns as f64;
    let (value, unit) = match ns {
        _ if ns < 1e6 => (ns / 1e3, "µs"),
        _ if ns < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    match value {
        _ if value < 10.0 => format!("{value:.2} {unit}"),
        _ if value < 100.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}
