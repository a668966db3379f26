//! The end of a run: with a healthy disk and no writer, the database comes to rest within a bounded
//! time and has released everything.

use std::sync::Arc;
use std::time::Duration;

use sateen::metrics::Metrics;
use sateen::test_support::clock;
use sateen::vfs::{Vfs, VfsOperation};

use crate::support::common::{ZERO_AT_REST, assert_no_orphans};
use crate::world::{PATH, World};

/// The virtual time within which the database must come to rest.
const REST_WITHIN: Duration = Duration::from_secs(1800);
const STEPS_MAX: u64 = 500_000;

impl World {
    /// Lets the database come to rest, and checks that it holds nothing more.
    pub(crate) fn quiesce(&mut self) {
        // Cancel a planned failure.
        self.sim.switch_power(true);
        // The next open removes files that could not be removed. Until then no other file may be
        // left over.
        let stuck = self
            .faults
            .sites()
            .iter()
            .any(|(site, counts)| site.operation == VfsOperation::Remove && counts.faults > 0);
        self.mend(stuck);
        self.compare_all();
        self.forget_readers();
        for family in &self.live {
            let on = [("disable_auto_compactions", "false")];
            family.set_options(&on).expect("it may change");
        }
        self.db().flush_all().expect("the disk is well");
        self.rest();
        self.assert_at_rest();
        self.assert_sound();
        self.compare_all();
        self.assert_no_orphans();
        self.restart();
        self.rest();
        self.assert_at_rest();
        self.assert_sound();
        self.compare_all();
        self.db().close().expect("the disk is well");
        self.finish();
    }

    /// Returns in words what the database still has to do or holds.
    fn unrest(&self, metrics: &Metrics) -> Vec<String> {
        let mut unrest = Vec::new();
        for family in &self.live {
            for name in ZERO_AT_REST {
                let value = family.property(&format!("sateen.{name}"));
                if value.as_deref() != Some("0") {
                    unrest.push(format!("{name} of {}: {value:?}", family.name()));
                }
            }
        }
        if metrics.obsolete_bytes != 0 {
            unrest.push(format!("{} bytes that nobody reads", metrics.obsolete_bytes));
        }
        if metrics.stalls.iter().any(|stall| stall.waiting != 0) {
            unrest.push("a writer waits".to_owned());
        }
        let delay = self.db().write_delay();
        if delay.is_none_or(|delay| !delay.is_zero()) {
            unrest.push(format!("writes are delayed by {delay:?}"));
        }
        if metrics.memory.pinned_blocks != 0 {
            unrest.push(format!("{} bytes of pinned blocks", metrics.memory.pinned_blocks));
        }
        if metrics.memory.job_buffers != 0 {
            unrest.push(format!("{} bytes of buffers of jobs", metrics.memory.job_buffers));
        }
        unrest
    }

    /// Runs background work until none is left.
    fn rest(&self) {
        let (mut steps, start) = (0, Self::now());
        loop {
            while self.must("a step", self.db().step()) == Some(true) {
                steps += 1;
                assert!(steps < STEPS_MAX, "background work does not end");
            }
            let unrest = self.unrest(&self.db().metrics());
            if unrest.is_empty() {
                return;
            }
            let passed = Self::now().saturating_sub(start);
            assert!(
                passed < REST_WITHIN,
                "no rest after {passed:?}: {unrest:#?}, health {:?}\n{}",
                self.db().health(),
                self.db().property("sateen.stats").unwrap_or_default()
            );
            // Look less often as time passes, because a look costs more than a step.
            clock::advance((passed / 20).max(Duration::from_millis(20)));
        }
    }

    fn assert_at_rest(&self) {
        let metrics = self.db().metrics();
        assert_eq!(metrics.health, "ok");
        for family in &self.live {
            let options = family.options();
            if !options.compaction_style.policy().rests_without_debt() {
                continue;
            }
            // Where policies treat level 0 in stripes, only overlapping runs count.
            let tables = family.live_tables();
            let level0 = || tables.iter().filter(|table| table.level == 0);
            let over = |key: &[u8]| {
                level0().filter(|table| *table.smallest <= *key && *key <= *table.largest).count()
            };
            let deepest = level0().map(|table| over(&table.smallest)).max().unwrap_or(0);
            let mut waits_for = options.level0_trigger;
            if options.level0_overlap_min > 0.0 {
                // Small runs wait until writers would feel them.
                let most = 2 * waits_for.max(options.level0_overlap_runs_max);
                let felt = options.level0_slowdown.min(options.level0_stop - 1);
                waits_for = waits_for.max(most.min(felt));
            }
            assert!(
                deepest < waits_for as usize,
                "{}: {deepest} runs of level 0 lie over one another at rest, of {waits_for}",
                family.name(),
            );
            let debt = family.property("sateen.estimate-pending-compaction-bytes");
            assert_eq!(debt.as_deref(), Some("0"), "debt of {} at rest", family.name());
        }
    }

    fn assert_no_orphans(&self) {
        let vfs: Arc<dyn Vfs> = Arc::new(self.mem.clone());
        let (mut logs, mut manifests) = (Vec::new(), Vec::new());
        for name in vfs.list(PATH.as_ref()).expect("it is there") {
            let text = name.to_string_lossy().into_owned();
            match text.rsplit_once('.').map(|parts| parts.1) {
                Some("wal") => logs.push(text),
                Some("sat") => {}
                _ if text.starts_with("MANIFEST") => manifests.push(text),
                _ => assert!(
                    ["CURRENT", "LOCK", "OPTIONS", "DEVICE"].contains(&&*text),
                    "what is {text}?"
                ),
            }
        }
        assert_eq!(manifests.len(), 1, "one manifest: {manifests:?}");
        // The active WAL, a preallocated one, and one that the newest flush has just released.
        assert!(logs.len() <= 3, "logs that nothing needs: {logs:?}");
        assert_no_orphans(vfs, PATH, &self.options);
    }
}
