//! ADOC (§5): which overflow calls for how many job slots and how large memtables.
//!
//! Level 0 wants more slots, redundancy more of them and memtables that are smaller again, memory
//! fewer slots and larger memtables. Of several at once the one that is handled first decides about
//! what it adjusts.

use std::collections::BTreeMap;

use super::knob::{Knob, Travel, Way};
use super::{Adjustment, FamilySignals, Limit, Overflow, Signals, Tuner};
use crate::options::{ControlOptions, JobSlots, TunerOptions};
use crate::types::{ColumnFamilyId, Instant};

/// A step up is what was configured, but no more than this part of the most there may be.
const SLOTS_STEP_PART: u64 = 4;
/// Memtables grow to no more than so many times what was configured (the paper: from 64 to 512 MB).
const MEMTABLE_TIMES_MAX: u64 = 8;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Adoc {
    options: TunerOptions,
    slots: Knob,
    slots_travel: Travel,
    /// Those that were ever adjusted.
    memtables: BTreeMap<ColumnFamilyId, Knob>,
}

impl Adoc {
    /// A tuner of a database that is as it is configured.
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

    /// Slots belong to all column families together.
    fn adjust_slots(&mut self, now: Instant, signals: &Signals) -> Option<Adjustment> {
        let overflows = signals.families.iter().flat_map(|family| family.overflows.iter());
        let overflow = overflows.min()?;
        let before = divided(&self.slots);
        if !self.slots.turn(now, slots_way(overflow), &self.slots_travel) {
            return None;
        }
        let slots = divided(&self.slots);
        let adjustment = Adjustment { limit: Limit::Slots(slots), overflow: Some(overflow) };
        // One slot is as good as two: a flush and a compaction may always run.
        (slots != before).then_some(adjustment)
    }

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
        if self.options.slots {
            adjustments.extend(self.adjust_slots(now, signals));
        }
        if self.options.memtables {
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

/// More jobs move what waits; fewer leave the device to flushes.
fn slots_way(overflow: Overflow) -> Way {
    match overflow {
        Overflow::Level0 | Overflow::Redundancy => Way::Up,
        Overflow::Memory => Way::Down,
    }
}

/// Larger memtables make larger runs, smaller ones more of them: with level 0 neither helps.
fn memtables_way(overflow: Overflow) -> Option<Way> {
    match overflow {
        Overflow::Level0 => None,
        Overflow::Redundancy => Some(Way::Down),
        Overflow::Memory => Some(Way::Up),
    }
}

fn memtable_travel(configured: u64, options: &TunerOptions) -> Travel {
    let max = configured.saturating_mul(MEMTABLE_TIMES_MAX).min(options.memtable_bytes_max);
    Travel {
        step: configured,
        // Where tables stay as they are, smaller memtables make no finer compactions, only more
        // runs of level 0 for the same bytes.
        min: configured,
        max: max.max(configured),
        hold: options.hold_time,
    }
}

/// A quarter is for flushes, as by default.
fn divided(slots: &Knob) -> JobSlots {
    JobSlots::divided(usize::try_from(slots.value()).unwrap_or(usize::MAX))
}

fn to_u64(slots: usize) -> u64 {
    u64::try_from(slots).unwrap_or(u64::MAX)
}
