//! The tuner of ADOC (§5): it adjusts job slots and memtable sizes to the overflow that it sees.
//!
//! | overflow | job slots | memtables |
//! | --- | --- | --- |
//! | level 0 | more | unchanged |
//! | redundancy | more | smaller |
//! | memory | fewer | larger |
//!
//! If several overflows occur at once, the first of the table that affects a limit decides about
//! it.

use std::collections::BTreeMap;

use super::knob::{Knob, Travel, Way};
use super::{Adjustment, FamilySignals, Limit, Overflow, Signals, Tuner};
use crate::options::{ControlOptions, JobSlots, TunerOptions};
use crate::types::{ColumnFamilyId, Instant};

/// A step up adds the configured number of slots, but at most this part of the maximum.
const SLOTS_STEP_PART: u64 = 4;
/// The largest memtable, as a multiple of the configured size (in the paper: from 64 to 512 MB).
const MEMTABLE_TIMES_MAX: u64 = 8;

/// The tuner of ADOC.
#[derive(Debug)]
pub(crate) struct Adoc {
    options: TunerOptions,
    slots: Knob,
    slots_travel: Travel,
    /// The knobs of memtables that were ever adjusted.
    memtables: BTreeMap<ColumnFamilyId, Knob>,
}

impl Adoc {
    /// Returns a tuner for a database with the configured limits.
    pub(crate) fn new(options: &ControlOptions) -> Adoc {
        let configured = to_u64(options.slots().total());
        let max = to_u64(options.tuner.slots_max).max(configured);
        let slots_travel = Travel {
            step: configured.min((max / SLOTS_STEP_PART).max(1)),
            min: 1,
            max,
            hold: options.tuner.hold_time,
        };
        Adoc {
            slots: Knob::new(configured, Way::Up),
            slots_travel,
            memtables: BTreeMap::new(),
            options: options.tuner.clone(),
        }
    }

    /// Adjusts the slots, which all column families share.
    fn adjust_slots(&mut self, now: Instant, signals: &Signals) -> Option<Adjustment> {
        let overflows = signals.families.iter().flat_map(|family| family.overflows.iter());
        let overflow = overflows.min()?;
        let before = divided(&self.slots);
        if !self.slots.turn(now, slots_way(overflow), &self.slots_travel) {
            return None;
        }
        let slots = divided(&self.slots);
        let adjustment = Adjustment { limit: Limit::Slots(slots), overflow: Some(overflow) };
        // One slot is the same as two, because a flush and a compaction may always run.
        (slots != before).then_some(adjustment)
    }

    /// Adjusts the memtables of one column family.
    fn adjust_memtables(&mut self, now: Instant, family: &FamilySignals) -> Option<Adjustment> {
        let wish = |overflow| Some((memtables_way(overflow)?, overflow));
        let (way, overflow) = family.overflows.iter().find_map(wish)?;
        let configured = family.memtable_bytes.max(1);
        let fresh = || Knob::new(configured, Way::Down);
        let knob = self.memtables.entry(family.cf).or_insert_with(fresh);
        if !knob.turn(now, way, &memtable_travel(configured, &self.options)) {
            return None;
        }
        let limit = Limit::Memtable { cf: family.cf, bytes: knob.value() };
        Some(Adjustment { limit, overflow: Some(overflow) })
    }
}

impl Tuner for Adoc {
    fn observe(&mut self, now: Instant, signals: &Signals) -> Vec<Adjustment> {
        let mut adjustments = Vec::new();
        if self.options.kind.adjusts_slots() {
            adjustments.extend(self.adjust_slots(now, signals));
        }
        if self.options.kind.adjusts_memtables() {
            for family in &signals.families {
                adjustments.extend(self.adjust_memtables(now, family));
            }
        }
        adjustments
    }

    fn forget(&mut self, cf: ColumnFamilyId) {
        self.memtables.remove(&cf);
    }
}

/// Returns the way of the slots. More jobs compact faster; fewer leave the device to flushes.
fn slots_way(overflow: Overflow) -> Way {
    match overflow {
        Overflow::Level0 | Overflow::Redundancy => Way::Up,
        Overflow::Memory => Way::Down,
    }
}

/// Returns the way of the memtables; `None` for no change. Larger ones make larger runs and smaller
/// ones more runs, so neither helps level 0.
fn memtables_way(overflow: Overflow) -> Option<Way> {
    match overflow {
        Overflow::Level0 => None,
        Overflow::Redundancy => Some(Way::Down),
        Overflow::Memory => Some(Way::Up),
    }
}

/// Returns the range and the step of a memtable size.
fn memtable_travel(configured: u64, options: &TunerOptions) -> Travel {
    let max = configured.saturating_mul(MEMTABLE_TIMES_MAX).min(options.memtable_bytes_max);
    Travel {
        step: configured,
        // Memtables below the configured size would not make compactions finer, because tables keep
        // their size. They would only make more runs of level 0 for the same bytes.
        min: configured,
        max: max.max(configured),
        hold: options.hold_time,
    }
}

/// Divides the slots: a quarter is for flushes, as by default.
fn divided(slots: &Knob) -> JobSlots {
    JobSlots::divided(usize::try_from(slots.value()).unwrap_or(usize::MAX))
}

fn to_u64(slots: usize) -> u64 {
    u64::try_from(slots).unwrap_or(u64::MAX)
}
