//! The state of a driver together with its control plane, to which the scheduler of the device is
//! lent. The control planes of all databases on the device borrow it in turn.
//!
//! What must stay true: a control plane is called only while it has the scheduler. The lock of the
//! scheduler is taken before that of the state.

use std::ops::{Deref, DerefMut};

use sateen_control::SharedScheduler;
use sateen_store::base::sync::{MutexGuard, lock};

use super::{Driver, DriverState};
use crate::runtime::device::Device;

/// The locked state. When it is dropped, databases whose turn has come are called.
pub(crate) struct Lent<'a> {
    // Dropped in this order.
    state: MutexGuard<'a, DriverState>,
    scheduler: MutexGuard<'a, SharedScheduler>,
    device: &'a Device,
}

impl Driver {
    /// Locks the state and lends the scheduler to its control plane.
    pub(crate) fn lend(&self) -> Lent<'_> {
        let mut scheduler = lock(&self.place.device.scheduler);
        let mut state = lock(&self.shared);
        scheduler.exchange(&mut state.plane);
        Lent { state, scheduler, device: &self.place.device }
    }
}

impl Deref for Lent<'_> {
    type Target = DriverState;
    fn deref(&self) -> &DriverState {
        &self.state
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut DriverState {
        &mut self.state
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.scheduler.exchange(&mut self.state.plane);
        self.device.call_all(self.scheduler.take_restless());
    }
}
