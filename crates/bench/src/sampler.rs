//! Samples the engine and the process once a second during a phase.

use serde::{Deserialize, Serialize};

use crate::recorder::Windows;
use crate::result::{KINDS, Latencies, Measured, Second};
use crate::store::{Counters, StalledBy, Store};
use crate::system::{self, DiskBytes};
use crate::trace::Watch;
use crate::units;

/// How a phase reports its progress.
#[derive(Clone, Copy)]
pub(crate) enum Live<'a> {
    Nothing,
    /// Lines for people on standard error, with this name, at this interval in seconds.
    Lines(&'a str, u64),
    /// A [`Told::Second`] each second.
    Figures,
}

/// A message of a measuring process to the process that started it: a line of JSON on standard
/// output.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// The database is loaded and has settled.
    Loaded { seconds: f64 },
    /// The operations that ended in a second of the measured phase, and their p99.
    Second { second: u64, done: u64, p99_ns: Option<u64> },
}

impl Told {
    pub(crate) fn tell(&self) {
        if let Ok(line) = serde_json::to_string(self) {
            println!("{line}");
        }
    }
}

/// Collects the seconds of a phase.
pub(crate) struct Sampler<'a> {
    store: &'a dyn Store,
    live: Live<'a>,
    windows: &'a Windows,
    first: Counters,
    last: Counters,
    disk_first: DiskBytes,
    disk_last: DiskBytes,
    seconds: Vec<Second>,
    watch: Watch,
    stolen_ms: u64,
    /// Processor time of all processes and of this one, in milliseconds.
    cpu_ms: [u64; 2],
}

impl<'a> Sampler<'a> {
    pub(crate) fn new(
        store: &'a dyn Store,
        live: Live<'a>,
        windows: &'a Windows,
        trace: bool,
    ) -> Sampler<'a> {
        let first = store.counters();
        let disk = DiskBytes::now();
        Sampler {
            store,
            live,
            windows,
            last: first.clone(),
            first,
            disk_first: disk,
            disk_last: disk,
            stolen_ms: system::stolen_ms(),
            cpu_ms: cpu_ms(),
            seconds: Vec::new(),
            watch: Watch::begin(store, trace),
        }
    }

    /// Samples the second that ends now.
    pub(crate) fn sample(&mut self) {
        let counters = self.store.counters();
        let disk = DiskBytes::now();
        let io = counters.io.iter().map(|now| {
            let before = self.last.io.iter().find(|before| before.class == now.class);
            let (read, written) = before.map_or((0, 0), |before| (before.read, before.written));
            [now.read.saturating_sub(read), now.written.saturating_sub(written)]
        });
        let stall_ns =
            counters.stall_ns.unwrap_or(0).saturating_sub(self.last.stall_ns.unwrap_or(0));
        let (resident, _) = system::memory();
        let (stolen_ms, cpu_ms) = (system::stolen_ms(), cpu_ms());
        let [all_ms, own_ms] = [0, 1].map(|at| cpu_ms[at].saturating_sub(self.cpu_ms[at]));
        self.seconds.push(Second {
            disk: disk.since(self.disk_last),
            io: io.collect(),
            levels: counters.levels.clone(),
            stall_ns,
            stopped: counters.stopped,
            delayed_rate: counters.delayed_rate,
            resident,
            debt: counters.debt_bytes,
            believed: counters.believed,
            chain: counters.chain,
            knobs: counters.knobs,
            stolen_ms: stolen_ms.saturating_sub(self.stolen_ms),
            others_ms: all_ms.saturating_sub(own_ms),
            ..Second::default()
        });
        self.watch.extend(self.store);
        self.windows.gather();
        self.last = counters;
        self.disk_last = disk;
        self.stolen_ms = stolen_ms;
        self.cpu_ms = cpu_ms;
        self.print_live();
    }

    fn print_live(&self) {
        let second = self.seconds.len() as u64;
        // All threads have passed on the second before the one that just ended.
        let Some(shown) = second.checked_sub(2) else {
            return;
        };
        let Latencies { done, latency, all } = self.windows.latencies(shown);
        let done: u64 = done.iter().sum();
        let (label, interval) = match self.live {
            Live::Nothing => return,
            Live::Figures => {
                let p99_ns = all.map(|all| all.p99);
                return Told::Second { second: shown, done, p99_ns }.tell();
            }
            Live::Lines(label, interval) => (label, interval),
        };
        if interval == 0 || !second.is_multiple_of(interval) {
            return;
        }
        let number = shown + 1;
        let mut line = format!("{label}  {number:>4} s  {:>8}/s", units::count(done as f64));
        for (kind, latency) in KINDS.iter().zip(latency) {
            if let Some(latency) = latency {
                line.push_str(&format!("  {kind} p99 {:>8}", units::time(latency.p99)));
            }
        }
        if let Some(last) = self.seconds.last() {
            let level_0 = last.levels.first().map_or(0, |level| level.files);
            line.push_str(&format!("  L0 {level_0}"));
            let (read, written) = (last.disk.read, last.disk.written);
            line.push_str(&format!(
                "  disk r {:>7} w {:>7}",
                units::bytes(read),
                units::bytes(written)
            ));
            if last.stopped || last.stall_ns > 0 {
                line.push_str(&format!("  STALLED {}", units::time(last.stall_ns)));
            }
        }
        eprintln!("{line}");
    }

    /// Writes the engine's flight recorder of the phase.
    pub(crate) fn write_trace(&self, path: &std::path::Path) -> crate::Result<()> {
        self.watch.write(path)
    }

    /// Returns the timeline and the engine's own figures of the whole phase.
    pub(crate) fn finish(mut self, offered: Vec<u64>, open_loop: bool) -> Measured {
        let count = self.seconds.len().max(offered.len());
        self.seconds.resize(count, Second::default());
        for (number, second) in (0u64..).zip(&mut self.seconds) {
            let Latencies { done, latency, all } = self.windows.latencies(number);
            (second.done, second.latency, second.all) = (done, latency, all);
            second.offered = if open_loop {
                offered.get(number as usize).copied().unwrap_or(0)
            } else {
                second.done.iter().sum()
            };
        }
        let since = |f: fn(&Counters) -> Option<u64>| {
            Some(f(&self.last)?.saturating_sub(f(&self.first).unwrap_or(0)))
        };
        Measured {
            disk: self.disk_last.since(self.disk_first),
            stall_count: since(|counters| counters.stall_count),
            stall_ns: since(|counters| counters.stall_ns),
            stalled_by: stalled_since(&self.last.stalled_by, &self.first.stalled_by),
            io_classes: self.last.io.iter().map(|class| class.class.clone()).collect(),
            timeline: self.seconds,
            jobs: self.watch.jobs(),
            stalls: self.watch.stalls(),
            adjustments: self.watch.adjustments(),
            why: self.watch.why(),
            ..Measured::default()
        }
    }
}

/// Returns the processor time of all processes and of this one, in milliseconds.
fn cpu_ms() -> [u64; 2] {
    [system::busy_ms(), system::process_cpu_ns() / 1_000_000]
}

/// Returns the stalls since `before`.
fn stalled_since(now: &[StalledBy], before: &[StalledBy]) -> Vec<StalledBy> {
    let since = |now: &StalledBy| {
        let before = before.iter().find(|before| before.cause == now.cause);
        let (count, ns) = before.map_or((0, None), |before| (before.count, before.ns));
        StalledBy {
            cause: now.cause.clone(),
            count: now.count.saturating_sub(count),
            ns: now.ns.map(|now| now.saturating_sub(ns.unwrap_or(0))),
        }
    };
    now.iter().map(since).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_of_a_phase_are_told_by_cause() {
        let by = |cause: &str, count, ns| StalledBy { cause: cause.to_owned(), count, ns };
        let before = [by("a", 2, Some(5)), by("b", 3, None), by("c", 1, Some(7))];
        let now = [by("a", 4, Some(9)), by("b", 3, None), by("c", 2, Some(7)), by("d", 1, None)];
        let since = [by("a", 2, Some(4)), by("b", 0, None), by("c", 1, Some(0)), by("d", 1, None)];
        assert_eq!(stalled_since(&now, &before), since);
    }
}
