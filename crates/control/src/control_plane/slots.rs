//! How many compactions may run at a time: as many as are configured or tuned, and no more than the
//! device has bandwidth for. If many run, each gets so little that urgent ones take long, and their
//! inputs stay claimed for as long (SILK §5.2.2: four threads for 200 MB/s, flushes included).

use super::ControlPlane;
use crate::options::JobSlots;

impl ControlPlane {
    /// Returns the current job slots.
    #[must_use]
    pub fn job_slots(&self) -> JobSlots {
        JobSlots { compactions: self.slots.compactions.min(self.slots_of_device), ..self.slots }
    }

    /// Fits the slots to what is believed of the device. A belief between two numbers of slots
    /// changes nothing.
    pub(super) fn fit_slots(&mut self) {
        let scheduler = &self.options.scheduler;
        let each = scheduler.slot_bandwidth;
        let fits = if scheduler.bandwidth && each > 0 {
            let bandwidth = self.scheduler.device().slowest();
            let slots = |quarters: u64| {
                let all = bandwidth.saturating_add(each / 4 * quarters) / each;
                let all = usize::try_from(all).unwrap_or(usize::MAX);
                all.saturating_sub(self.slots.flushes).max(1)
            };
            self.slots_of_device.clamp(slots(1), slots(3))
        } else {
            usize::MAX
        };
        if fits != self.slots_of_device {
            self.slots_of_device = fits;
            (self.slots_changed, self.dirty) = (true, true);
        }
    }
}
