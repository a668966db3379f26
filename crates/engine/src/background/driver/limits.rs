//! Carries out the limits that the tuner adjusts while the database runs.

use sateen_control::{Adjustment, Instant, Limit};

use crate::background::driver::Driver;
use crate::background::driver::DriverState;
use crate::timeline::EventKind;

impl Driver {
    /// Applies a limit without waiting. Control itself applies the number of slots; memtables have
    /// the new size from the next one on.
    pub(crate) fn set_limit(&self, shared: &mut DriverState, now: Instant, adjustment: Adjustment) {
        let Adjustment { limit, overflow } = adjustment;
        if let Limit::Memtable { cf, bytes } = limit
            && let Some(family) = self.tree.family_by_id(cf)
        {
            family.adjust_memtables(bytes);
        }
        if let Some(overflow) = overflow {
            shared.scheduled.adjustments[overflow.index()] += 1;
        }
        self.env.metrics.timeline.told(now, EventKind::Adjusted(adjustment));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use sateen_control::Overflow;

    use crate::timeline::{EventKind, Limit};
    use crate::{Db, Options, Tuner, WriteOptions};
    use sateen_store::vfs::MemVfs;

    const MEMTABLE: u64 = 64 << 10;
    const VALUE: usize = 1000;

    /// Opens a database in which nothing runs unless the test steps it, and in which every step
    /// looks for an overflow.
    fn open(tuner: Tuner) -> Db {
        let mut options = Options { background_threads: 0, tuner, ..Options::default() };
        options.tuner_interval = Duration::from_nanos(1);
        options.tuner_slots_max = 8;
        let family = &mut options.column_family;
        family.memtable_bytes = MEMTABLE;
        family.memtables_max = 6;
        family.level0_trigger = 2;
        family.level0_slowdown = 2;
        Db::open_with(Arc::new(MemVfs::new()), "/db", options, &[]).unwrap()
    }

    /// Writes until `sealed` memtables are sealed. No write may have to wait.
    fn fill(db: &Db, sealed: usize) {
        let family = db.default_column_family();
        let unwaiting = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
        for n in 0_u32.. {
            if family.data.sealed_usage().0 == sealed {
                return;
            }
            assert!(n < 10_000, "nothing is sealed");
            family.writing(&unwaiting).put(n.to_be_bytes(), [7; VALUE]).unwrap();
        }
    }

    /// Returns the sizes at which memtables were sealed, in multiples of the configured size.
    fn sealed_at(db: &Db) -> Vec<u64> {
        let events = db.timeline().events;
        let sizes = events.iter().filter_map(|event| match event.kind {
            EventKind::Sealed { bytes, .. } => Some(bytes),
            _ => None,
        });
        // A memtable may exceed its size by a few entries, because the next writer seals it.
        let rounded = |bytes: u64| {
            assert!(bytes % MEMTABLE < 4 * VALUE as u64, "{bytes}");
            bytes / MEMTABLE
        };
        sizes.map(rounded).collect()
    }

    fn number(db: &Db, property: &str) -> u64 {
        db.property(property).unwrap().parse().unwrap()
    }

    #[test]
    fn memtables_change_their_size_at_the_next_switch_and_nobody_waits() {
        let db = open(Tuner::AdocBatch);
        fill(&db, 2);
        db.wait_idle().unwrap();
        assert_eq!(number(&db, "sateen.memtable-limit-bytes"), 2 * MEMTABLE);
        fill(&db, 1);
        fill(&db, 2);
        assert_eq!(sealed_at(&db), [1, 1, 1, 2]);
        db.wait_idle().unwrap();
        fill(&db, 2);
        assert_eq!(sealed_at(&db), [1, 1, 1, 2, 2, 3], "the second adjustment");
        let metrics = db.metrics();
        assert!(metrics.stalls.iter().all(|stall| stall.waits_ns.count() == 0));
        assert_eq!(metrics.scheduler.adjustments[Overflow::Memory.index()], 2);
        assert_eq!(metrics.column_families[0].memtable_limit, 3 * MEMTABLE);
        let adjusted: Vec<_> = db
            .timeline()
            .events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Adjusted(adjustment) => Some(adjustment),
                _ => None,
            })
            .collect();
        assert_eq!(adjusted.len(), 2);
        assert!(
            matches!(adjusted[0].limit, Limit::Memtable { bytes, .. } if bytes == 2 * MEMTABLE)
        );
        assert_eq!(adjusted[0].overflow, Some(Overflow::Memory));
    }

    #[test]
    fn a_memtable_that_is_larger_than_the_next_one_will_be_is_not_sealed_for_it() {
        let db = open(Tuner::Off);
        let data = db.default_column_family().data.clone();
        let write = |entries: u32| {
            (0..entries).for_each(|n| db.put(n.to_be_bytes(), [7; VALUE]).unwrap());
        };
        write(50);
        data.adjust_memtables(MEMTABLE / 4);
        write(4);
        assert_eq!(data.sealed_usage().0, 0);
        assert_eq!(data.memtable_bytes_ahead(), MEMTABLE);
        fill(&db, 1);
        assert_eq!(sealed_at(&db), [1]);
        assert_eq!(data.memtable_bytes_max() as u64, MEMTABLE / 4);
        assert_eq!(data.memtable_bytes_ahead(), MEMTABLE / 4);
    }

    #[test]
    fn the_memory_budget_counts_whatever_is_adjusted() {
        let db = open(Tuner::Off);
        let data = db.default_column_family().data.clone();
        data.adjust_memtables(4 * MEMTABLE);
        data.limit_memtable(2 * MEMTABLE);
        assert_eq!(data.memtable_bytes_max() as u64, MEMTABLE, "the active one");
        assert_eq!(data.memtable_bytes_ahead(), 2 * MEMTABLE);
        fill(&db, 3);
        assert_eq!(sealed_at(&db), [1, 2, 2]);
        assert_eq!(data.next_memtable_bytes(), 2 * MEMTABLE);
        data.limit_memtable(MEMTABLE / 2);
        assert_eq!(data.memtable_bytes_max() as u64, MEMTABLE / 2, "at once: memory is short");
    }

    #[test]
    fn options_that_are_set_count_whatever_was_adjusted() {
        let db = open(Tuner::AdocBatch);
        let limit = || number(&db, "sateen.memtable-limit-bytes");
        fill(&db, 2);
        db.wait_idle().unwrap();
        assert_eq!(limit(), 2 * MEMTABLE);
        // A change of another option keeps the adjustment.
        db.set_options(&[("level0_stop", "50")]).unwrap();
        db.step().unwrap();
        assert_eq!(limit(), 2 * MEMTABLE);
        db.set_options(&[("memtable_bytes", "32KiB")]).unwrap();
        db.step().unwrap();
        assert_eq!(limit(), 32 << 10);
        // Further adjustments start from the new size.
        fill(&db, 2);
        db.wait_idle().unwrap();
        assert_eq!(limit(), 64 << 10);
        db.set_options(&[("tuner", "off"), ("memtable_bytes", "16KiB")]).unwrap();
        db.step().unwrap();
        assert_eq!(limit(), 16 << 10);
    }

    #[test]
    fn level0_gets_slots_and_they_are_given_back_with_the_tuner() {
        let db = open(Tuner::AdocThreads);
        let slots = || (number(&db, "sateen.flush-slots"), number(&db, "sateen.compaction-slots"));
        let configured = slots();
        assert_eq!(configured, (1, 2));
        for _ in 0..6 {
            fill(&db, 1);
            db.wait_idle().unwrap();
        }
        assert_eq!(slots(), (2, 6), "eight, a quarter of them for flushes");
        assert_eq!(number(&db, "sateen.memtable-limit-bytes"), MEMTABLE);
        assert!(db.metrics().scheduler.adjustments[Overflow::Level0.index()] > 1);
        db.set_options(&[("tuner", "off")]).unwrap();
        db.step().unwrap();
        assert_eq!(slots(), configured);
    }
}
