//! The admission of writers, from the state of the column families, and the demand that the
//! scheduler sees.
//!
//! 1. [`ControlPlane::admit`] runs after events. It updates the write controller and the
//!    scheduler's demand, and publishes the admission of all writers (RocksDB's triggers).
//! 2. [`ControlPlane::admit_smoothly`] also runs after samples. It computes a rate for the writers
//!    of each column family (`judge`), from its resources and its share of the drains.

use super::ControlPlane;
use crate::arithmetic::scale;
use crate::column_family::ColumnFamily;
use crate::event::Action;
use crate::options::WriteController;
use crate::plan::Input;
use crate::scheduler::{Demand, Lane};
use crate::types::{ColumnFamilyId, IoClass};
use crate::write_controller::{
    Admission, AdmissionState, Outlook, Pressure, is_at_ease, judge_smoothly,
};

/// The whole of the drains, in millionths.
const WHOLE: u64 = 1_000_000;
/// A column family with a lower fill, in bytes per second, is not being written to.
const FILL_MIN: u64 = 1 << 10;

/// Divides the drains among the column families that are written to. Each gets as much as its share
/// of what clients write, but at least an equal share, so that a family that was slowed down can
/// write more again.
#[derive(Clone, Copy)]
struct Shares {
    /// Bytes per second that clients write into all families.
    fill: u64,
    /// Number of families that are written to.
    written: u64,
}

impl Shares {
    fn of<'a>(families: impl Iterator<Item = &'a ColumnFamily>) -> Shares {
        let fills = families.map(ColumnFamily::fill).filter(|fill| *fill >= FILL_MIN);
        fills.fold(Shares { fill: 0, written: 0 }, |all, fill| Shares {
            fill: all.fill.saturating_add(fill),
            written: all.written + 1,
        })
    }

    /// Returns the share of a column family, in millionths.
    fn share(self, family: &ColumnFamily) -> u64 {
        let fill = family.fill();
        if fill < FILL_MIN {
            return WHOLE / (self.written + 1);
        }
        scale(fill, WHOLE, self.fill).max(WHOLE / self.written.max(1)).min(WHOLE)
    }
}

impl ControlPlane {
    /// Returns a forecast for the writers of column families that are one to clients. It is known
    /// only with smooth admission.
    #[must_use]
    pub fn outlook(&self, cfs: impl IntoIterator<Item = ColumnFamilyId>) -> Option<Outlook> {
        if self.options.write_controller != WriteController::Smooth {
            return None;
        }
        let shares = Shares::of(self.families.values());
        let of = |cf| {
            let family = self.families.get(&cf)?;
            Some((shares.share(family), self.judge(cf, family, shares, self.pressure(family)).1))
        };
        let each = cfs.into_iter().filter_map(of);
        let (share, mut all) = each.reduce(|(share, all), (more, one)| {
            let stalls = [all.time_to_stall_ns, one.time_to_stall_ns];
            let rate = all.sustainable_write_rate.saturating_add(one.sustainable_write_rate);
            let time_to_stall_ns = stalls.into_iter().flatten().min();
            (share + more, Outlook { time_to_stall_ns, sustainable_write_rate: rate })
        })?;
        // Families that are not written to got shares beyond the whole.
        let rate = all.sustainable_write_rate;
        all.sustainable_write_rate = if share > WHOLE { scale(rate, WHOLE, share) } else { rate };
        Some(all)
    }

    /// Takes in what has changed, and publishes the admission of all writers if it has changed.
    pub(super) fn admit(&mut self) {
        for (cf, family) in &mut self.families {
            if let Some(load) = family.take_load() {
                self.triggers.update(*cf, load, family.options());
            }
        }
        let families = || self.families.values();
        self.scheduler.set_demand(Demand {
            debt: families().map(ColumnFamily::pending_bytes).sum(),
            debt_tolerated: families().map(ColumnFamily::debt_tolerated).sum(),
            level0_amplification: families()
                .map(ColumnFamily::level0_amplification)
                .max()
                .unwrap_or(1),
            level0_due: families().map(ColumnFamily::level0_due).max().unwrap_or(0),
            memtable_bytes: families().map(|f| f.options().memtable_bytes).max().unwrap_or(0),
            ..Demand::default()
        });
        let admission = match self.options.write_controller {
            WriteController::Triggers | WriteController::Off => self.triggers.admission(),
            WriteController::Smooth => Admission::default(),
        };
        if admission != self.admission {
            self.admission = admission;
            self.actions.push_back(Action::Admit(admission));
        }
        self.note_waits();
    }

    /// Tells the scheduler whether writers are held back, here or for memory.
    pub(super) fn note_waits(&mut self) {
        let all = self.admission.state != AdmissionState::Open || self.memory_is_awaited;
        self.scheduler.set_writers_wait(all || !self.families_admitted.is_empty());
    }

    /// Publishes the admission of the writers of each column family that has changed.
    pub(super) fn admit_smoothly(&mut self) {
        let shares = Shares::of(self.families.values());
        self.scheduler.set_fill(shares.fill, shares.written);
        if self.options.write_controller != WriteController::Smooth {
            // After a change of the policy, writers that were slowed down are released.
            for (cf, _) in std::mem::take(&mut self.families_admitted) {
                let admission = Admission::default();
                self.actions.push_back(Action::AdmitFamily { cf, admission });
            }
            return;
        }
        let mut news = Vec::new();
        for (cf, family) in &self.families {
            let now = self.pressure(family);
            let before = self.families_admitted.get(cf).copied();
            // Of a thousand column families nearly all skip the rest, which runs a hundred times a
            // second.
            if before.is_none() && is_at_ease(family.options(), &now) {
                continue;
            }
            let (admission, _) = self.judge(*cf, family, shares, now);
            if is_news(&before.unwrap_or_default(), &admission) {
                news.push((*cf, admission));
            }
        }
        for (cf, admission) in news {
            // The next admission is compared with the last one that was published.
            if admission.cause.is_some() {
                self.families_admitted.insert(cf, admission);
            } else {
                self.families_admitted.remove(&cf);
            }
            self.actions.push_back(Action::AdmitFamily { cf, admission });
        }
    }

    /// Returns the admission and the forecast for one column family.
    fn judge(
        &self,
        cf: ColumnFamilyId,
        family: &ColumnFamily,
        shares: Shares,
        mut now: Pressure,
    ) -> (Admission, Outlook) {
        self.add_progress(cf, family, &mut now);
        let (device, fill) = (self.scheduler.device(), self.scheduler.fill());
        let barriers_ns = self.scheduler.barriers_ns();
        let mut drains = self.drains.of(device, barriers_ns, family.level0_amplification(), fill);
        let part = self.part_of_device();
        for deep in [&mut drains.deep, &mut drains.deep_bandwidth] {
            *deep = scale(*deep, part, WHOLE);
        }
        drains.deep_shown = drains.deep_shown.min(drains.deep);
        judge_smoothly(cf, family.options(), &now, &drains.part(shares.share(family), WHOLE))
    }

    /// Returns the device's bandwidth if deep compactions of this database are running, and their
    /// debt is urgent.
    pub(super) fn urgent_deep_work(&self) -> Option<u64> {
        let mut families = self.families.values();
        let due = families.any(|family| family.pending_bytes() > family.debt_tolerated());
        let urgent = due && self.scheduler.debt_is_urgent();
        (urgent && self.scheduler.works(Lane::Deep))
            .then(|| self.scheduler.device().write_bytes_per_second)
    }

    /// Returns the part of what deep compactions get that this database has among others: as much
    /// as its part of what clients write, but at least an equal part. In millionths.
    fn part_of_device(&self) -> u64 {
        if !self.scheduler.is_shared() {
            return WHOLE;
        }
        let own = Shares::of(self.families.values());
        let (fill, written) = self.scheduler.written_databases();
        scale(own.fill, WHOLE, fill.max(1)).max(WHOLE / written.max(1)).min(WHOLE)
    }

    /// Adds the progress of the jobs that make room in a column family.
    fn add_progress(&self, cf: ColumnFamilyId, family: &ColumnFamily, now: &mut Pressure) {
        if let Some(moved) = self.flush_moved(family) {
            now.flushed_bytes = self.drains.uncompressed(moved);
        }
        // The jobs that make room in level 0, and the bytes that are left until the first of them
        // ends.
        let (mut level0_jobs, mut least_left) = (0_u64, [None; 2]);
        for (id, job) in &self.jobs {
            let Some(plan) = &job.plan else { continue };
            if job.cf != cf || plan.class != IoClass::L0 {
                continue;
            }
            let moved = self.scheduler.moved(*id);
            let level0 = plan.rewrite.iter().filter(|input| input.level == 0);
            let runs = match family.level0_run_bytes() {
                Some(run_bytes) => level0.map(Input::bytes).sum::<u64>() * 1000 / run_bytes,
                None => level0.count() as u64 * 1000,
            };
            let bytes = plan.rewrite.iter().map(Input::bytes).sum::<u64>().max(1);
            let merges = plan.output_level == 0;
            let freed = runs.saturating_sub(u64::from(merges) * 1000);
            now.level0_done += freed.min(scale(moved, freed, bytes));
            now.level0_merging += if merges { freed } else { 0 };
            let left = bytes.saturating_sub(moved);
            let least = &mut least_left[usize::from(merges)];
            *least = Some(least.map_or(left, |least: u64| least.min(left)));
            level0_jobs += 1;
        }
        // These jobs share the bandwidth.
        [now.level0_left, now.level0_merge_left] =
            least_left.map(|left: Option<u64>| Some(left?.saturating_mul(level0_jobs)));
    }
}

/// Returns true if writers must hear of the difference. Rates within a twentieth count as equal.
fn is_news(before: &Admission, now: &Admission) -> bool {
    match (before.state, now.state) {
        (
            AdmissionState::Delayed { bytes_per_second: before },
            AdmissionState::Delayed { bytes_per_second: now },
        ) => before.abs_diff(now) > before / 20,
        (before, now) => before != now,
    }
}
