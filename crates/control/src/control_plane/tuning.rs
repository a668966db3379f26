//! The tuner's view of the column families, and how its adjustments take effect.
//!
//! 1. [`ControlPlane::tune`] collects the overflows of each window ([`ControlPlane::take_signals`])
//!    and asks the tuner.
//! 2. [`ControlPlane::adjust`] applies each adjustment, and tells the driver.
//! 3. A change of the options restores the configured limits (`restart_tuner`,
//!    `set_family_options`).

use std::sync::Arc;

use super::ControlPlane;
use crate::arithmetic::{nanoseconds, part_of};
use crate::column_family::ColumnFamily;
use crate::event::Action;
use crate::options::{self, CfOptions, ControlOptions, TunerOptions};
use crate::tuner::{Adjustment, Adoc, FamilySignals, Limit, Overflows, Signals, Tuner};
use crate::types::{ColumnFamilyId, Instant};

/// Returns the tuner that `options` ask for.
pub(super) fn tuner(options: &ControlOptions) -> Option<Box<dyn Tuner>> {
    (options.tuner.kind != options::Tuner::Off)
        .then(|| Box::new(Adoc::new(options)) as Box<dyn Tuner>)
}

impl ControlPlane {
    /// Lets the tuner look at what has overflowed, if its interval has passed.
    pub(super) fn tune(&mut self, now: Instant) {
        if self.tuner.is_none() || now.since(self.tuned_at) < self.options.tuner.interval {
            return;
        }
        self.tuned_at = now;
        let signals = self.take_signals();
        // Overflows while background work is paused are not caused by the limits.
        let Some(tuner) = self.tuner.as_mut().filter(|_| !self.paused) else { return };
        for adjustment in tuner.observe(now, &signals) {
            self.adjust(adjustment);
        }
    }

    /// Collects the overflows of all column families since the last call.
    fn take_signals(&mut self) -> Signals {
        let overdue_ns = self.scheduler.overdue_ns();
        let TunerOptions { threshold, debt_time, debt_bytes, .. } = self.options.tuner;
        let late_ns = part_of(nanoseconds(debt_time), threshold).max(1);
        let families = self.families.iter_mut().filter_map(|(cf, family)| {
            let debt = family.pending_bytes();
            let is_too_much = match debt_bytes {
                Some(limit) => debt >= part_of(limit, threshold).max(1),
                // The debt of all families together takes that long. Those beyond their tolerated
                // debt have a part in it.
                None => overdue_ns >= late_ns && debt > family.debt_tolerated(),
            };
            let overflows = family.take_overflows(is_too_much, threshold);
            let memtable_bytes = family.configured_memtable_bytes();
            let any = overflows != Overflows::default();
            any.then_some(FamilySignals { cf: *cf, memtable_bytes, overflows })
        });
        Signals { families: families.collect() }
    }

    /// Applies an adjustment. Public for tests only; otherwise only the tuner's adjustments are
    /// applied.
    #[doc(hidden)]
    pub fn adjust(&mut self, adjustment: Adjustment) {
        match adjustment.limit {
            Limit::Slots(slots) => {
                self.slots = slots;
                self.slots_changed = true;
            }
            Limit::Memtable { cf, bytes } => {
                if let Some(family) = self.families.get_mut(&cf) {
                    family.adjust_memtables(bytes, self.options.tuner.batch);
                }
            }
        }
        self.dirty = true;
        self.actions.push_back(Action::SetLimit(adjustment));
    }

    /// Restores the configured limits and starts the tuner again, if the options of the database
    /// that concern it have changed from `before`.
    pub(super) fn restart_tuner(&mut self, now: Instant, before: &ControlOptions) {
        if before.tuner == self.options.tuner && before.slots() == self.options.slots() {
            return;
        }
        self.tuner = tuner(&self.options);
        self.tuned_at = now;
        let slots = self.options.slots();
        if self.slots != before.slots() {
            self.actions.push_back(as_configured(Limit::Slots(slots)));
        }
        self.slots_changed |= self.slots != slots;
        self.slots = slots;
        for (cf, family) in &mut self.families {
            family.forget_overflows();
            if family.reset_memtables() {
                self.actions.push_back(memtables_as_configured(*cf, family));
            }
        }
    }

    /// Sets the options of a column family. A new memtable size replaces an adjusted one, and so
    /// does a new size of tables or of the base level that has been adjusted with it.
    pub(super) fn set_family_options(&mut self, cf: ColumnFamilyId, options: Arc<CfOptions>) {
        let Some(family) = self.families.get_mut(&cf) else { return };
        if !family.set_options(options) {
            return;
        }
        if let Some(tuner) = &mut self.tuner {
            tuner.forget(cf);
        }
        // An earlier adjustment that the driver has not polled yet comes before this.
        let said = |action: &Action| match action {
            Action::SetLimit(Adjustment { limit: Limit::Memtable { cf: of, .. }, .. }) => *of == cf,
            _ => false,
        };
        if family.reset_memtables() || self.actions.iter().any(said) {
            self.actions.push_back(memtables_as_configured(cf, family));
        }
    }
}

fn as_configured(limit: Limit) -> Action {
    Action::SetLimit(Adjustment { limit, overflow: None })
}

fn memtables_as_configured(cf: ColumnFamilyId, family: &ColumnFamily) -> Action {
    as_configured(Limit::Memtable { cf, bytes: family.configured_memtable_bytes() })
}
