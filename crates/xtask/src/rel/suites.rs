//! The suites, and the figures that each must reach, on every change and in a long run.

use super::{Amount, Bench, count_unsafe, fuzz, planted, sched};
use crate::chore::Outcome;

/// A figure that a suite must reach without a failure.
pub(super) struct Bar {
    pub(super) figure: &'static str,
    /// The figure for every change.
    pub(super) short: u64,
    /// The figure for all results of a long run.
    pub(super) long: u64,
}

const fn bar(figure: &'static str, short: u64, long: u64) -> Bar {
    Bar { figure, short, long }
}

/// A suite. Its first bar decides how long its short form runs.
pub(crate) struct Suite {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// The module of the engine's tests that has the suite, or "package/test/module" for another
    /// test binary.
    pub(super) module: &'static str,
    pub(super) bars: &'static [Bar],
    /// Its share of the time of `rel all`.
    pub(super) share: f64,
    /// True if it waits for a slow device nearly all of the time.
    pub(super) waits: bool,
    pub(super) run: fn(&Bench, &Suite, Amount, Option<u64>) -> Outcome,
}

impl Suite {
    /// Returns the package, the test binary and the module of the suite.
    pub(super) fn place(&self) -> (&'static str, &'static str, &'static str) {
        match self.module.split_once('/') {
            Some((package, rest)) => {
                let (test, module) = rest.split_once('/').unwrap_or((rest, rest));
                (package, test, module)
            }
            None => ("sateen", "it", self.module),
        }
    }
}

pub(super) const SUITES: &[Suite] = &[
    Suite {
        name: "crash",
        what: "power failures at every operation of the file system, and again while recovering",
        module: "crash::power",
        bars: &[bar("images", 100_000, 10_000_000), bar("double-crash images", 10_000, 1_000_000)],
        share: 4.0,
        waits: false,
        run: Bench::run_test,
    },
    Suite {
        name: "meta",
        what: "random operations under extreme options, every answer compared with a model",
        module: "model::meta",
        bars: &[bar("operations", 2_000_000, 1_000_000_000)],
        share: 4.0,
        waits: false,
        run: Bench::run_test,
    },
    Suite {
        name: "sim",
        what: "the engine in virtual time on a modelled device, from one seed to its rest",
        module: "sateen-sim/sim/seeds",
        bars: &[bar("seeds", 2_000, 1_000_000)],
        share: 4.0,
        waits: false,
        run: Bench::run_test,
    },
    Suite {
        name: "errors",
        what: "every call of the file system fails in every way, once and for good",
        module: "faults::errors",
        bars: &[
            bar("rounds", 1, 10),
            bar("calls", 130, 130),
            bar("failed calls", 1_200, 12_000),
            bar("failed syncs", 150, 1_500),
        ],
        share: 1.0,
        waits: false,
        run: Bench::run_test,
    },
    Suite {
        name: "corrupt",
        what: "damage of every byte, part and file of small databases",
        module: "faults::corrupt",
        bars: &[bar("mutations", 250_000, 20_000_000)],
        share: 4.0,
        waits: false,
        run: Bench::run_test,
    },
    Suite {
        name: "punch",
        what: "nothing reachable is punched, cut or removed",
        module: "resources::punch",
        bars: &[bar("punches", 100_000, 50_000_000)],
        share: 2.0,
        waits: false,
        run: Bench::run_test,
    },
    Suite {
        name: "events",
        what: "jobs paused, preempted and given up at every place: all is given back",
        module: "model::events",
        bars: &[bar("preempt, pause and discard events", 50_000, 10_000_000)],
        share: 1.0,
        waits: false,
        run: Bench::run_test,
    },
    Suite {
        name: "kill",
        what: "processes killed at any moment and at every change of their files",
        module: "crash::kill::children",
        bars: &[bar("kills", 60, 5_000)],
        share: 1.0,
        waits: false,
        run: Bench::run_test,
    },
    Suite {
        name: "image",
        what: "power failures of ext4 and XFS: clones of their images under load",
        module: "crash::image",
        bars: &[bar("ext4 images", 100, 10_000), bar("xfs images", 100, 10_000)],
        share: 2.0,
        waits: false,
        run: Bench::run_test,
    },
    Suite {
        name: "cut",
        what: "ext4 and XFS shut down under load",
        module: "crash::cut",
        bars: &[bar("cuts", 20, 1_000)],
        share: 1.0,
        waits: false,
        run: Bench::run_test,
    },
    Suite {
        name: "enospc",
        what: "small file systems filled up, and emptied, under load",
        module: "faults::full_disk::real",
        bars: &[bar("ext4 full-disk cycles", 3, 200), bar("xfs full-disk cycles", 3, 200)],
        share: 1.0,
        waits: false,
        run: Bench::run_test,
    },
    Suite {
        name: "overload",
        what: "twice the load that is sustained, long iterators, and a device that stalls",
        module: "resources::overload",
        bars: &[bar("overload seconds", 60, 1_800)],
        share: 1.0,
        waits: true,
        run: Bench::run_test,
    },
    Suite {
        name: "sched",
        what: "the engine under a scheduler that tries who goes on when; Miri on the memtable",
        module: "",
        bars: &[bar("schedules", 5_000, 1_000_000)],
        share: 1.0,
        waits: false,
        run: sched::run,
    },
    Suite {
        name: "fuzz",
        what: "hostile bytes for every decoder, and as calls of the API; needs nightly",
        module: "",
        bars: &[bar("executions", 100_000, 100_000_000)],
        share: 2.0,
        waits: false,
        run: fuzz::run,
    },
    Suite {
        name: "planted",
        what: "known bugs of such engines, in a copy of the sources: the tests must find them",
        module: "",
        bars: &[bar("planted bugs caught", 6, 25)],
        share: 1.0,
        waits: false,
        run: planted::run,
    },
    Suite {
        name: "unsafe",
        what: "unsafe code says why it is sound, and stands in the named modules",
        module: "",
        bars: &[bar("unsafe blocks", 1, 1)],
        share: 0.0,
        waits: false,
        run: count_unsafe,
    },
];
