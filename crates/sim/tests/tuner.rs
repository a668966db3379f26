//! The tuner: it changes nothing while nothing overflows, does not oscillate under constant
//! overflow, and does not interfere with the scheduler.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use sateen_sim::{Bandwidth, Report, Second, SimConfig, Simulation};
use sateen_workload::ArrivalSpec;

const SECOND_NS: u64 = 1_000_000_000;
const MINUTE: usize = 60;
const ADJUSTED: [&str; 3] = ["adoc", "adoc-threads", "adoc-batch"];

/// A policy with the tuner on.
fn config(policy: &str, seconds: u64) -> SimConfig {
    let mut config = SimConfig::standard(policy, 1.0).unwrap();
    if !ADJUSTED.contains(&policy) {
        config.policy.set("tuner", "adoc").unwrap();
        config.policy.set("tuner_debt_time", "30s").unwrap();
    }
    config.duration_ns = seconds * SECOND_NS;
    config
}

/// A constant load of `rate` operations a second, of which `reads` percent are reads.
fn steady(policy: &str, rate: f64, reads: u32, seconds: u64) -> SimConfig {
    let mut config = config(policy, seconds);
    config.load.spec.arrivals = ArrivalSpec::Steady { rate };
    (config.load.spec.mix.read, config.load.spec.mix.update) = (reads, 100 - reads);
    config
}

/// More writes than the device can take with any adjustment.
fn overload(policy: &str, seconds: u64) -> SimConfig {
    let mut config = steady(policy, 12_000.0, 0, seconds);
    config.db_bytes = 2_000_000_000;
    config.device.bandwidth = Bandwidth { read: 40_000_000, write: 40_000_000 };
    config
}

/// Runs a simulation to its end and to rest; nothing may be held then.
fn run(config: SimConfig) -> Report {
    let name = config.policy.name.clone();
    let seconds = config.duration_ns / SECOND_NS;
    let mut simulation = Simulation::new(config).unwrap();
    for second in 1..=seconds {
        simulation.run_until(second * SECOND_NS).unwrap();
        simulation.check().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let report = simulation.report();
    simulation.quiesce().unwrap_or_else(|error| panic!("{name}: {error}"));
    report
}

type Knob = fn(&Second) -> u64;

/// Returns the seconds in which a knob changed its direction.
fn turns(series: &[Second], knob: Knob) -> Vec<usize> {
    let mut before = None;
    let mut turns = Vec::new();
    for (second, pair) in series.windows(2).enumerate() {
        let (from, to) = (knob(&pair[0]), knob(&pair[1]));
        if from == to {
            continue;
        }
        let way = to > from;
        if before.is_some_and(|before| before != way) {
            turns.push(second + 1);
        }
        before = Some(way);
    }
    turns
}

fn assert_no_oscillation(report: &Report) {
    let knobs: [(&str, Knob); 2] =
        [("slots", |second| second.slots), ("memtables", |second| second.memtable_bytes)];
    for (name, knob) in knobs {
        let turns = turns(&report.series, knob);
        assert!(
            turns.windows(2).all(|pair| pair[1] - pair[0] >= MINUTE),
            "{}: {name} turn in the seconds {turns:?}",
            report.policy
        );
    }
}

#[test]
fn a_steady_load_that_overflows_nothing_changes_nothing() {
    for policy in ADJUSTED.into_iter().chain(["silk", "sateen"]) {
        let report = run(steady(policy, 4_000.0, 50, 300));
        let first = &report.series[0];
        let same = |second: &Second| {
            second.slots == first.slots && second.memtable_bytes == first.memtable_bytes
        };
        assert!(report.series.iter().all(same), "{policy}");
        assert_eq!(report.counts.adjustments, 0, "{policy}");
        assert_eq!(first.memtable_bytes, 16 << 20);
        assert_eq!(first.slots, 4);
    }
}

#[test]
fn in_a_steady_load_no_knob_turns_more_than_once_in_a_minute() {
    for policy in ADJUSTED.into_iter().chain(["silk", "sateen"]) {
        let mut adjustments = 0;
        let loads = [steady(policy, 20_000.0, 50, 600), steady(policy, 12_000.0, 0, 600)];
        for config in loads.into_iter().chain([overload(policy, 900)]) {
            let report = run(config);
            assert_no_oscillation(&report);
            adjustments += report.counts.adjustments;
        }
        assert!(adjustments > 0, "{policy}: these loads say nothing");
    }
}

#[test]
fn only_what_is_to_be_adjusted_is_and_within_its_bounds() {
    for policy in ADJUSTED {
        let report = run(overload(policy, 120));
        let bytes = (16 << 20)..=(128 << 20);
        let within = |second: &Second| {
            (2..=16).contains(&second.slots) && bytes.contains(&second.memtable_bytes)
        };
        assert!(report.series.iter().all(within), "{policy}");
        let moves = |knob: Knob, first| report.series.iter().any(|s| knob(s) != first);
        let slots = moves(|second| second.slots, 4);
        let memtables = moves(|second| second.memtable_bytes, 16 << 20);
        assert_eq!((slots, memtables), (policy != "adoc-batch", policy != "adoc-threads"));
    }
}

/// Returns the bytes that flushes and compactions read and write for each byte that clients write.
fn io_amplification(report: &Report) -> f64 {
    let background = ["flush", "l0", "deep"];
    let classes = report.classes.iter().filter(|class| background.contains(&class.class));
    let bytes: u64 = classes.map(|class| class.read_bytes + class.write_bytes).sum();
    bytes as f64 / report.user_bytes as f64
}

/// The paper's case at a quarter of its size: the tree is far larger than the base level, and the
/// debt reaches the limit at which writers are slowed down.
fn large_tree(policy: &str, batch: &str) -> SimConfig {
    let mut config = steady(policy, 50_000.0, 0, 300);
    config.db_bytes = 25_000_000_000;
    config.device.bandwidth = Bandwidth { read: 50_000_000, write: 50_000_000 };
    for (name, value) in [
        ("soft_pending_compaction_bytes", "16G"),
        ("hard_pending_compaction_bytes", "64G"),
        ("tuner_debt_bytes", "16G"),
        ("tuner_batch", batch),
    ] {
        config.policy.set(name, value).unwrap();
    }
    config
}

/// If memtables alone grow, level 0 becomes larger than the base level, and each of its merges is
/// written once more on its way down.
#[test]
fn in_overload_tables_and_the_base_level_that_grow_too_save_io() {
    for policy in ["adoc", "adoc-batch"] {
        let [alone, together] =
            ["memtable", "paper"].map(|batch| Simulation::run(large_tree(policy, batch)).unwrap());
        let grown = |report: &Report| report.series.iter().any(|s| s.memtable_bytes > 64 << 20);
        assert!(grown(&alone) && grown(&together), "{policy}: nothing was adjusted");
        let [alone, together] = [alone, together].map(|report| io_amplification(&report));
        assert!(together < 0.8 * alone, "{policy}: {together} beside {alone}");
    }
}

/// The tuner removes and adds slots while the scheduler pauses jobs itself. Each pause belongs to
/// one of them, and all paused jobs resume.
#[test]
fn adjusting_is_in_no_way_of_the_scheduler() {
    // With small memtables and few allowed runs, level 0 overflows in a burst.
    for (policy, memtable_bytes, slowdown) in [("silk", "1M", "20"), ("sateen", "2M", "12")] {
        let mut bursts = SimConfig::standard(policy, 25_000.0).unwrap();
        bursts.duration_ns = 300 * SECOND_NS;
        bursts.policy.set("memtable_bytes", memtable_bytes).unwrap();
        bursts.policy.set("memtables_max", "6").unwrap();
        bursts.policy.set("level0_slowdown", slowdown).unwrap();
        let without = run(bursts.clone());
        bursts.policy.set("tuner", "adoc").unwrap();
        let with = run(bursts);
        assert!(with.counts.adjustments > 0, "{policy}: nothing was adjusted");
        assert_no_oscillation(&with);
        // Under `silk` most seconds are bad with and without: how many varies a little.
        let most = without.bad_seconds * 11 / 10;
        assert!(with.bad_seconds <= most, "{policy}: {} of {most}", with.bad_seconds);
        assert!(with.done + 100 > without.done, "{policy}: {} {}", with.done, without.done);
    }
}
