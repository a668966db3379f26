//! Several databases on one device: nothing is lost or held, one alone is simulated as ever, and
//! one in overload takes little from the others.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use sateen_sim::{Databases, Report, SimConfig, Simulation};
use sateen_workload::{ArrivalSpec, Mix};

const SECOND_NS: u64 = 1_000_000_000;

/// One of `count` databases that have 8 GB and 12,000 operations a second in peaks together.
fn part(policy: &str, count: u64, nth: u64, seconds: u64) -> SimConfig {
    let mut config = SimConfig::standard(policy, 12_000.0 / count as f64).unwrap();
    config.duration_ns = seconds * SECOND_NS;
    config.db_bytes /= count;
    config.cache_bytes /= count;
    config.load.seed += nth;
    config
}

fn parts(policy: &str, count: u64, seconds: u64) -> Vec<SimConfig> {
    (0..count).map(|nth| part(policy, count, nth, seconds)).collect()
}

/// Makes a client write without a pause.
fn overload(config: &mut SimConfig) {
    config.load.threads = 1;
    config.load.spec.arrivals = ArrivalSpec::Closed;
    config.load.spec.mix = Mix { update: 1, ..Mix::default() };
}

#[test]
fn nothing_is_lost_and_nothing_is_held() {
    for policy in ["sateen", "silk", "rocksdb", "vlsm", "rocksdb-limited"] {
        for shared in [true, false] {
            let mut configs = parts(policy, 5, 30);
            overload(&mut configs[0]);
            let mut databases = Databases::new(configs, shared).unwrap();
            for second in (1..=30).step_by(3) {
                databases.run_until(second * SECOND_NS).unwrap();
                databases.check().unwrap_or_else(|error| panic!("{policy}: {error}"));
            }
            databases.quiesce().unwrap_or_else(|error| panic!("{policy}: {error}"));
            databases.check().unwrap();
            let reports = databases.reports();
            assert_eq!(reports.len(), 6);
            let sum = |get: fn(&Report) -> u64| reports[1..].iter().map(get).sum::<u64>();
            assert_eq!(reports[0].user_bytes, sum(|report| report.user_bytes), "{policy}");
            assert_eq!(reports[0].offered, sum(|report| report.offered), "{policy}");
            assert_eq!(reports[0].debt_bytes, 0, "{policy}");
            assert!(reports[1..].iter().all(|report| report.counts.flushes > 0), "{policy}");
        }
    }
}

#[test]
fn one_database_is_simulated_as_ever() {
    for policy in ["sateen", "rocksdb"] {
        let alone = Simulation::run(part(policy, 1, 0, 40)).unwrap();
        let reports = Databases::run(parts(policy, 1, 40), true).unwrap();
        let ratio = reports[0].p99_ns as f64 / alone.p99_ns as f64;
        assert!((0.9..1.1).contains(&ratio), "{policy}: {ratio}");
        assert_eq!(reports[0].offered, alone.offered);
        assert_eq!(reports[1].counts.flushes, alone.counts.flushes, "{policy}");
    }
}

#[test]
fn the_same_configuration_gives_the_same_report() {
    let run = || Databases::run(parts("sateen", 3, 15), true).unwrap();
    assert!(run() == run());
}

/// The p99 of the databases that are not in overload.
fn p99_of_others(shared: bool, overloaded: bool) -> u64 {
    let mut configs = parts("sateen", 8, 40);
    for config in &mut configs {
        config.load.spec.arrivals = ArrivalSpec::Steady { rate: 500.0 };
    }
    if overloaded {
        overload(&mut configs[0]);
    }
    let reports = Databases::run(configs, shared).unwrap();
    reports[2..].iter().map(|report| report.p99_ns).max().unwrap()
}

#[test]
fn a_database_in_overload_takes_little_from_others() {
    let (alone, beside) = (p99_of_others(true, false), p99_of_others(true, true));
    assert!(beside <= 2 * alone, "{beside} ns, alone {alone} ns");
}

/// The time that writers waited, in all of 16 databases whose load is divided by Zipf's law and is
/// far from what the device can do.
fn waits_of_unequals(shared: bool) -> u64 {
    let weights: Vec<f64> = (1..=16).map(|nth| 1.0 / f64::from(nth)).collect();
    let all: f64 = weights.iter().sum();
    let mut configs = parts("sateen", 16, 120);
    for (config, weight) in configs.iter_mut().zip(&weights) {
        config.load.spec.arrivals = ArrivalSpec::Steady { rate: 7_500.0 * weight / all };
        config.load.spec.mix = Mix { read: 1, update: 1, ..Mix::default() };
    }
    Databases::run(configs, shared).unwrap()[0].waited_ns()
}

/// The flush of the busiest one must not wait for those of others because of what it moved before.
#[test]
fn of_unequal_databases_none_waits_that_would_not_wait_apart() {
    assert_eq!([true, false].map(waits_of_unequals), [0, 0]);
}
