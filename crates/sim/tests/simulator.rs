//! Checks of the simulator itself: nothing is lost or held for ever, the same configuration gives
//! the same report, and the known results of the standard case come out.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

use sateen_control::DeviceProfile;
use sateen_sim::{Bandwidth, POLICY_NAMES, Report, SimConfig, Simulation, Wal, table};
use sateen_workload::{ArrivalSpec, Spec};

const SECOND_NS: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn standard(policy: &str, rate: f64, seconds: u64) -> SimConfig {
    let mut config = SimConfig::standard(policy, rate).unwrap();
    config.duration_ns = seconds * SECOND_NS;
    config
}

/// More writes than the device can take.
fn overload(policy: &str) -> SimConfig {
    let mut config = standard(policy, 1.0, 40);
    config.load.spec.arrivals = ArrivalSpec::Steady { rate: 100_000.0 };
    config.load.spec.mix.read = 0;
    config.db_bytes = 1_000_000_000;
    config.device.bandwidth = Bandwidth { read: 60_000_000, write: 60_000_000 };
    config
}

fn written(report: &Report, class: &str) -> u64 {
    report.classes.iter().find(|found| found.class == class).unwrap().write_bytes
}

#[test]
fn nothing_is_lost_and_nothing_is_held() {
    for policy in POLICY_NAMES {
        for config in [standard(policy, 20_000.0, 40), overload(policy)] {
            let db_bytes = config.db_bytes as f64;
            let mut simulation = Simulation::new(config).unwrap();
            for second in (1..=40).step_by(3) {
                simulation.run_until(second * SECOND_NS).unwrap();
                simulation.check().unwrap_or_else(|error| panic!("{policy}: {error}"));
            }
            simulation.quiesce().unwrap_or_else(|error| panic!("{policy}: {error}"));
            simulation.check().unwrap();
            let report = simulation.report();
            // The device receives the bytes that were flushed and compacted. Every client write is
            // flushed once, except those overwritten in memory: a memtable of a given share of the
            // database loses about half of that share.
            let flushed = written(&report, "flush") as f64 / report.user_bytes as f64;
            let memtable = report.series.iter().map(|second| second.memtable_bytes).max().unwrap();
            let overwritten = memtable as f64 / db_bytes / 2.0;
            assert!((0.98 - overwritten..1.03).contains(&flushed), "{policy}: {flushed}");
            assert!(report.counts.flushes > 0 && report.counts.compactions > 0, "{policy}");
            // The last level has each key at most once.
            assert!(*report.level_bytes.last().unwrap() <= 8_000_000_000, "{policy}");
            assert!(report.debt_bytes == 0, "{policy}: {}", report.debt_bytes);
        }
    }
}

/// Regions have trees, memtables and gates of their own, and share the device and the job slots.
#[test]
fn regions_share_what_one_tree_has() {
    for policy in ["vlsm", "rocksdb", "sateen"] {
        let run = |regions: &str| {
            let mut config = standard(policy, 4_000.0, 60);
            config.policy.set("regions", regions).unwrap();
            let mut simulation = Simulation::new(config).unwrap();
            simulation.run_until(60 * SECOND_NS).unwrap();
            simulation.check().unwrap_or_else(|error| panic!("{policy}: {error}"));
            simulation.quiesce().unwrap_or_else(|error| panic!("{policy}: {error}"));
            simulation.check().unwrap();
            simulation.report()
        };
        let (one, four) = (run("1"), run("4"));
        assert_eq!(one.offered, four.offered, "{policy}");
        let loaded = |report: &Report| report.level_bytes.iter().sum::<u64>();
        assert!(loaded(&one).abs_diff(loaded(&four)) < loaded(&one) / 4, "{policy}");
        // The same bytes are flushed, and a chain is that of one region.
        let flushed = |report: &Report| written(report, "flush") as f64;
        assert!((0.95..1.05).contains(&(flushed(&four) / flushed(&one))), "{policy}");
        assert!(four.chains.count > 0 && four.chains.bytes_max > 0, "{policy}");
        assert!(four.chains.bytes_mean() <= four.chains.bytes_max, "{policy}");
    }
}

#[test]
fn the_same_configuration_gives_the_same_report() {
    for policy in POLICY_NAMES {
        let config = standard(policy, 15_000.0, 30);
        let one = Simulation::run(config.clone()).unwrap();
        let other = Simulation::run(config.clone()).unwrap();
        let json = |report: &Report| serde_json::to_string(report).unwrap();
        assert_eq!(json(&one), json(&other), "{policy}");
        let mut seeded = config;
        seeded.load.seed = 2;
        assert_ne!(json(&one), json(&Simulation::run(seeded).unwrap()), "{policy}");
        assert!(table(&[one]).contains(policy));
    }
}

#[test]
fn operations_are_those_that_were_due() {
    let report = Simulation::run(standard("silk", 10_000.0, 40)).unwrap();
    // Two peaks of 10 s at 10 000 and two valleys at 2 500 are about 250 000.
    assert!(report.offered.abs_diff(250_000) < 2_500, "{}", report.offered);
    assert!(report.offered - report.done < 10, "{}", report.done);
    assert_eq!(report.series.len(), 40);
    assert_eq!(report.series.iter().map(|second| second.done).sum::<u64>(), report.done);
    let (peak, valley) = (&report.series[5], &report.series[15]);
    assert!(peak.offered > 9_500 && valley.offered < 2_800);
}

/// A client that writes takes 4 µs an operation, and begins the next one then.
#[test]
fn in_a_closed_loop_an_operation_is_due_when_the_last_has_ended() {
    let mut config = standard("rocksdb", 1.0, 2);
    config.load.spec = Spec::named("ycsb-load").unwrap();
    config.device.bandwidth = Bandwidth { read: 10_000_000_000, write: 10_000_000_000 };
    let report = Simulation::run(config.clone()).unwrap();
    assert!(report.done.abs_diff(1_000_000) < 50_000, "{}", report.done);
    assert!(report.offered - report.done <= 2, "{}", report.offered);
    assert!(report.p50_ns.abs_diff(4_000) < 200, "{}", report.p50_ns);
    assert!(report.client_cpu_ns.abs_diff(report.done * 4_000) < 10_000);

    config.device.bandwidth = Bandwidth { read: 50_000_000, write: 50_000_000 };
    let slow = Simulation::run(config).unwrap();
    assert!(slow.done < report.done / 3, "{}", slow.done);
    assert!(slow.max_ns > MS * 10, "{}", slow.max_ns);
}

#[test]
fn jobs_and_good_tables_are_counted() {
    let report = Simulation::run(standard("vlsm", 20_000.0, 40)).unwrap();
    assert_eq!(report.flushes.count, report.counts.flushes);
    let compactions: u64 = report.compactions.iter().map(|jobs| jobs.count).sum();
    assert_eq!(compactions, report.counts.compactions);
    assert_eq!(report.flushes.bytes, written(&report, "flush"));
    assert!(report.flushes.ns > 0 && report.background_cpu_ns > 0);
    let base = report.base_level;
    assert!(base.good_tables > 0 && base.good_tables <= base.tables, "{base:?}");
}

#[test]
fn each_file_of_a_job_has_a_barrier() {
    let syncs = |together: &str| {
        let mut config = overload("rocksdb");
        config.policy.set("compaction_files", together).unwrap();
        config.policy.set("table_bytes", "4M").unwrap();
        let report = Simulation::run(config).unwrap();
        let jobs = report.counts.flushes + report.counts.compactions;
        let files = report.classes.iter().filter(|class| class.class != "manifest");
        (files.map(|class| class.syncs).sum::<u64>(), jobs)
    };
    let (one, jobs) = syncs("true");
    assert!(one.abs_diff(jobs) < 10, "{one} barriers of {jobs} jobs");
    let (each, jobs) = syncs("false");
    assert!(each > 3 * jobs, "{each} barriers of {jobs} jobs");
}

#[test]
fn rocksdb_stalls_in_the_standard_case_and_not_when_idle() {
    let report = Simulation::run(standard("rocksdb", 20_000.0, 150)).unwrap();
    assert!(report.bad_seconds > 30, "{}", report.bad_seconds);
    assert!(report.worst_second_p99_ns > 200 * MS, "{}", report.worst_second_p99_ns);

    let mut idle = standard("rocksdb", 1.0, 60);
    idle.load.spec.arrivals = ArrivalSpec::Steady { rate: 200.0 };
    let report = Simulation::run(idle).unwrap();
    assert_eq!((report.bad_seconds, report.stall_count()), (0, 0));
    assert!(report.p99_ns < MS, "{}", report.p99_ns);
}

#[test]
fn writers_are_stopped_when_they_write_more_than_the_device_takes() {
    let report = Simulation::run(overload("rocksdb")).unwrap();
    assert!(report.stall_count() > 0, "{:?}", report.stalls);
    assert!(report.waited_ns() > 10 * SECOND_NS, "{:?}", report.stalls);
    assert!(report.offered > 2 * report.done);
    let user_bytes_second = report.user_bytes / 40;
    assert!(user_bytes_second < 60_000_000, "{user_bytes_second}");
}

/// The device serves slightly fewer reads than arrive, so the backlog grows by the difference.
#[test]
fn a_saturated_device_queues() {
    let mut config = standard("rocksdb", 1.0, 20);
    config.load.spec = Spec::named("readrandom").unwrap();
    config.load.spec.arrivals = ArrivalSpec::Steady { rate: 6_000.0 };
    config.load.threads = 64;
    config.cache_bytes = 0;
    config.device.bandwidth = Bandwidth { read: 5_000 * 4096, write: 100_000_000 };
    config.device.burst_ns = 0;
    let report = Simulation::run(config).unwrap();
    // A read is one block, plus a few for false positives of filters: a little less than 5 000 of 6
    // 000 a second.
    assert!((95_000..100_000).contains(&report.done), "{}", report.done);
    let late = |second: usize| report.series[second].p50_ns as f64 / 1e9;
    let growth = late(18) - late(8);
    assert!((1.6..2.2).contains(&growth), "10 s later it is {growth} s later");
}

#[test]
fn a_log_is_written_and_a_slower_device_is_felt() {
    let mut config = standard("silk", 8_000.0, 40);
    config.wal = Wal::Buffered;
    let slow = Bandwidth { read: 15_000_000, write: 15_000_000 };
    config.device.changes = vec![(20 * SECOND_NS, slow)];
    let report = Simulation::run(config).unwrap();
    let logged = written(&report, "wal") as f64 / report.user_bytes as f64;
    assert!((0.98..1.05).contains(&logged), "{logged}");
    let worst = |seconds: &[sateen_sim::Second]| seconds.iter().map(|s| s.p99_ns).max().unwrap();
    assert!(worst(&report.series[20..]) > worst(&report.series[..20]));
}

#[test]
fn what_is_believed_at_first_may_be_wrong() {
    for percent in [50, 150] {
        let mut config = standard("silk", 8_000.0, 60);
        let bytes = 200_000_000 * percent / 100;
        config.policy = config.policy.believing(DeviceProfile {
            read_bytes_per_second: bytes,
            write_bytes_per_second: bytes,
            barrier_ns: MS,
        });
        let mut simulation = Simulation::new(config).unwrap();
        simulation.run_until(60 * SECOND_NS).unwrap();
        simulation.quiesce().unwrap();
        simulation.check().unwrap();
        let report = simulation.report();
        assert!(report.offered - report.done < 10);
    }
}

/// Clients are served even in a peak that leaves no bandwidth for deep compactions.
#[test]
fn level0_costs_no_more_than_a_long_peak_leaves() {
    let mut config = standard("sateen", 1.0, 200);
    config.load.spec.arrivals = ArrivalSpec::Steady { rate: 27_000.0 };
    config.device.bandwidth = Bandwidth { read: 209_000_000, write: 209_000_000 };
    // With direct I/O a block of 4 KiB takes two pages.
    config.read_bytes = 8192;
    let report = Simulation::run(config).unwrap();
    let level0 = written(&report, "l0") as f64 / report.user_bytes as f64;
    assert!(level0 < 3.0, "{level0}");
    assert!(report.worst_second_p99_ns < 50 * MS, "{report:?}");
}

#[test]
fn nonsense_is_refused_with_the_setting_named() {
    let refused = |change: fn(&mut SimConfig), part: &str| {
        let mut config = standard("rocksdb", 1_000.0, 1);
        change(&mut config);
        let error = Simulation::new(config).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(|config| config.load.threads = 0, "threads");
    refused(|config| config.device.bandwidth.read = 0, "bandwidth");
    refused(|config| config.db_bytes = 5, "database");
    refused(|config| config.duration_ns = 0, "duration");
    refused(|config| config.workers = Some(0), "workers");
    assert!(SimConfig::standard("rocksbd", 1.0).unwrap_err().to_string().contains("rocksdb"));
}
