//! The rule for the default profile: it is nowhere worse than the best of its parts. Each part is a
//! profile of its own, under the same load on the same device.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use sateen_sim::{Report, SimConfig, Simulation};
use sateen_workload::{ArrivalSpec, Spec};

const SECOND_NS: u64 = 1_000_000_000;
const GB: u64 = 1_000_000_000;
/// What the default profile is made of, and what it replaces.
const PARTS: [&str; 4] = ["silk", "bolt", "vlsm", "rocksdb"];
/// A p99 that is longer by less than a twentieth is not worse: the buckets of the histogram are
/// about as wide.
const NOT_WORSE: f64 = 1.05;

/// A load on a database of `gigabytes`: its name, and the rate at the peak.
fn config(
    policy: &str,
    (load, rate): (&str, Option<f64>),
    gigabytes: u64,
    seconds: u64,
) -> SimConfig {
    let mut config = SimConfig::standard(policy, rate.unwrap_or(1.0)).unwrap();
    let mut spec = Spec::named(load).unwrap();
    if let Some(rate) = rate {
        spec.arrivals = match spec.arrivals {
            ArrivalSpec::Bursts { .. } => spec.arrivals.scaled_to(rate),
            _ => ArrivalSpec::Steady { rate },
        };
    }
    config.load.sizes = spec.sizes.unwrap_or(config.load.sizes);
    config.load.scan = spec.scan.unwrap_or(config.load.scan);
    config.load.spec = spec;
    config.db_bytes = gigabytes * GB;
    config.duration_ns = seconds * SECOND_NS;
    config
}

fn run(policy: &str, load: (&str, Option<f64>), gigabytes: u64, seconds: u64) -> Report {
    Simulation::run(config(policy, load, gigabytes, seconds)).unwrap()
}

/// Compares the default profile with each of its parts. Returns what is worse.
fn worse(load: (&str, Option<f64>), gigabytes: u64, seconds: u64) -> Vec<String> {
    let whole = run("sateen", load, gigabytes, seconds);
    let mut found = Vec::new();
    for part in PARTS {
        let of_part = run(part, load, gigabytes, seconds);
        let mut compare = |what: &str, own: f64, other: f64| {
            if own > other * NOT_WORSE {
                found.push(format!(
                    "{load:?}, {gigabytes} GB: {what} {own} beside {other} ({part})"
                ));
            }
        };
        compare("p99", whole.p99_ns as f64, of_part.p99_ns as f64);
        compare("seconds above 10 ms", whole.bad_seconds as f64, of_part.bad_seconds as f64 + 1.0);
        compare(
            "not done",
            (whole.offered - whole.done) as f64,
            10.0 + (of_part.offered - of_part.done) as f64,
        );
    }
    found
}

#[test]
fn the_default_is_no_worse_than_any_part_of_it() {
    for load in [("bursts", Some(20_000.0)), ("nutanix", None)] {
        assert_eq!(worse(load, 8, 60), Vec::<String>::new());
    }
}

#[test]
#[ignore = "five hours of virtual time: cargo test --release -p sateen-sim --test composition -- \
            --ignored"]
fn nor_at_any_size_or_rate() {
    let bursts = [12_000.0, 20_000.0, 34_000.0].map(|rate| ("bursts", Some(rate)));
    let writes = [20_000.0, 60_000.0].map(|rate| ("overwrite", Some(rate)));
    let loads = bursts.into_iter().chain(writes).chain([("nutanix", None)]);
    let found: Vec<_> = loads
        .flat_map(|load| [8, 50, 200, 1000].map(|gigabytes| worse(load, gigabytes, 150)))
        .flatten()
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
