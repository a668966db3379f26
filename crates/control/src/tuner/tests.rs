//! What must hold of a tuner for any input.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::options::{self, ControlOptions, TunerOptions};

const MIB: u64 = 1 << 20;

fn options(slots: usize, slots_max: usize) -> ControlOptions {
    let kind = options::Tuner::Adoc;
    let tuner = TunerOptions { kind, slots_max, ..TunerOptions::default() };
    ControlOptions { tuner, ..ControlOptions::default() }.with_max_background_jobs(slots)
}

fn at(second: u64) -> Instant {
    Instant(second * 1_000_000_000)
}

fn signals(
    cf: u32,
    memtable_bytes: u64,
    (level0, redundancy, memory): (bool, bool, bool),
) -> Signals {
    let overflows = Overflows { level0, redundancy, memory };
    let cf = ColumnFamilyId(cf);
    Signals { families: vec![FamilySignals { cf, memtable_bytes, overflows }] }
}

#[test]
fn a_step_of_slots_is_what_is_configured_but_small_for_the_machine() {
    for (configured, slots_max, step) in [(2, 4, 1), (2, 16, 2), (2, 80, 2), (4, 16, 4), (8, 16, 4)]
    {
        let mut tuner = Adoc::new(&options(configured, slots_max));
        let found = tuner.observe(at(1), &signals(0, 64 * MIB, (true, false, false)));
        let slots = JobSlots::divided(configured + step);
        let overflow = Some(Overflow::Level0);
        assert_eq!(found, [Adjustment { limit: Limit::Slots(slots), overflow }], "{configured}");
    }
    // There are already as many slots as allowed, or more.
    for (configured, slots_max) in [(4, 4), (8, 4)] {
        let mut tuner = Adoc::new(&options(configured, slots_max));
        assert_eq!(tuner.observe(at(1), &signals(0, MIB, (true, false, false))), []);
    }
}

#[test]
fn a_column_family_that_was_forgotten_begins_with_what_is_configured() {
    let mut tuner = Adoc::new(&options(2, 2));
    let bytes = |tuner: &mut Adoc, second, configured| {
        let found = tuner.observe(at(second), &signals(7, configured, (false, false, true)));
        found.iter().find_map(|adjustment| match adjustment.limit {
            Limit::Memtable { bytes, .. } => Some(bytes / MIB),
            Limit::Slots(_) => None,
        })
    };
    assert_eq!(bytes(&mut tuner, 1, 64 * MIB), Some(128));
    assert_eq!(bytes(&mut tuner, 2, 64 * MIB), Some(192));
    tuner.forget(ColumnFamilyId(7));
    assert_eq!(bytes(&mut tuner, 3, 16 * MIB), Some(32));
}

/// Returns the adjustments of each second, by limit.
fn run(
    tuner: &mut Adoc,
    seconds: &[Vec<(bool, bool, bool)>],
) -> BTreeMap<Option<ColumnFamilyId>, Vec<(u64, u64)>> {
    let mut found: BTreeMap<_, Vec<(u64, u64)>> = BTreeMap::new();
    for (second, families) in (0..).zip(seconds) {
        let each = (0..).zip(families).flat_map(|(cf, overflows)| {
            signals(cf, (u64::from(cf) + 1) * 16 * MIB, *overflows).families
        });
        let any = each.filter(|family| family.overflows != Overflows::default());
        let signals = Signals { families: any.collect() };
        for Adjustment { limit, overflow } in tuner.observe(at(second), &signals) {
            assert!(overflow.is_some());
            let (what, value) = match limit {
                Limit::Slots(slots) => (None, slots.total() as u64),
                Limit::Memtable { cf, bytes } => (Some(cf), bytes),
            };
            found.entry(what).or_default().push((second, value));
        }
    }
    found
}

/// Generates ten minutes of two column families: the overflows of each second.
fn ten_minutes() -> impl Strategy<Value = Vec<Vec<(bool, bool, bool)>>> {
    let often = prop::bool::weighted;
    prop::collection::vec(prop::collection::vec((often(0.2), often(0.1), often(0.3)), 2), 600)
}

proptest! {
    #[test]
    fn nothing_turns_twice_in_a_minute_nor_leaves_its_bounds(
        seconds in ten_minutes(),
        slots in 2_usize..6,
        slots_max in 1_usize..20,
        hold in 0_u64..100,
    ) {
        let mut options = options(slots, slots_max);
        options.tuner.hold_time = Duration::from_secs(hold);
        let mut tuner = Adoc::new(&options);
        for (what, moves) in run(&mut tuner, &seconds) {
            let (from, least, most) = match what {
                None => (slots as u64, 2, slots_max.max(slots) as u64),
                Some(ColumnFamilyId(cf)) => {
                    let configured = (u64::from(cf) + 1) * 16 * MIB;
                    (configured, configured, 8 * configured)
                }
            };
            let (mut before, mut way, mut turned) = (from, None, None);
            for (second, value) in moves {
                prop_assert!((least..=most).contains(&value), "{what:?}: {value}");
                prop_assert_ne!(value, before);
                let goes = value > before;
                if way.is_some_and(|way| way != goes) {
                    prop_assert!(turned.is_none_or(|at| second - at >= hold), "{what:?}");
                    turned = Some(second);
                }
                (before, way) = (value, Some(goes));
            }
        }
    }
}
