//! What the tuner sees of the column families, and how what it adjusts comes into force.

use std::sync::Arc;

use super::ControlPlane;
use crate::arithmetic::nanoseconds;
use crate::column_family::ColumnFamily;
use crate::event::Action;
use crate::options::{CfOptions, ControlOptions, DebtLimit};
use crate::tuner::{Adjustment, Adoc, FamilySignals, Limit, Overflows, Signals, Tuner};
use crate::types::{ColumnFamilyId, Instant};

/// Who adjusts what `options` say may be.
pub(super) fn tuner(options: &ControlOptions) -> Option<Box<dyn Tuner>> {
    options.tuner.is_on().then(|| Box::new(Adoc::new(options)) as Box<dyn Tuner>)
}

impl ControlPlane {
    /// Lets the tuner look at what has overflowed, if it is time.
    pub(super) fn tune(&mut self, now: Instant) {
        if self.tuner.is_none() || now.since(self.tuned_at) < self.options.tuner.interval {
            return;
        }
        self.tuned_at = now;
        let signals = self.take_signals();
        // What overflows while nothing may run is not the limits' fault.
        let Some(tuner) = self.tuner.as_mut().filter(|_| !self.paused) else { return };
        for adjustment in tuner.observe(now, &signals) {
            self.adjust(adjustment);
        }
    }

    fn take_signals(&mut self) -> Signals {
        let overdue_ns = self.scheduler.overdue_ns();
        let limit = self.options.tuner.debt;
        let families = self.families.iter_mut().filter_map(|(cf, family)| {
            let debt = family.pending_bytes();
            let is_too_much = match limit {
                DebtLimit::Bytes(limit) => debt >= limit.max(1),
                // All families' together takes so long; those have a part in it that are behind.
                DebtLimit::Time(limit) => {
                    overdue_ns >= nanoseconds(limit).max(1) && debt > family.debt_tolerated()
                }
            };
            let overflows = family.take_overflows(is_too_much);
            let memtable_bytes = family.configured_memtable_bytes();
            let any = overflows != Overflows::default();
            any.then_some(FamilySignals { cf: *cf, memtable_bytes, overflows })
        });
        Signals { families: families.collect() }
    }

    /// Brings an adjustment into force. For others than the tuner in tests alone.
    #[doc(hidden)]
    pub fn adjust(&mut self, adjustment: Adjustment) {
        match adjustment.limit {
            Limit::Slots(slots) => {
                self.slots = slots;
                self.slots_changed = true;
            }
            Limit::Memtable { cf, bytes } => {
                if let Some(family) = self.families.get_mut(&cf) {
                    family.adjust_memtables(bytes);
                }
            }
        }
        self.dirty = true;
        self.actions.push_back(Action::SetLimit(adjustment));
    }

    /// Options of the whole database changed from what they were `before`: where they concern the
    /// tuner all is as configured again, and it starts over.
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
            family.take_overflows(false);
            if family.reset_memtables() {
                self.actions.push_back(memtables_as_configured(*cf, family));
            }
        }
    }

    /// Another size of memtables that is configured counts, whatever they were adjusted to.
    pub(super) fn set_family_options(&mut self, cf: ColumnFamilyId, options: Arc<CfOptions>) {
        let Some(family) = self.families.get_mut(&cf) else { return };
        if !family.set_options(options) {
            return;
        }
        if let Some(tuner) = &mut self.tuner {
            tuner.forget(cf);
        }
        // What has been said of them and not been heard yet comes before this.
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
