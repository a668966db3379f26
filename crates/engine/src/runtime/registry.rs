//! Which databases are on one device and scheduled alike.
//!
//! What must stay true: the lists keep no device alive; one ends with its last database.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use sateen_control::ControlOptions;
use sateen_store::vfs::forks;

use super::device::{Device, Scheduling};

/// Where a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Where {
    /// On a disk of this number.
    Disk(u64),
    /// In a file system of the caller's, at this address.
    Other(usize),
}

/// The devices of a runtime. A forked process has none of its parent's.
#[derive(Default)]
pub(super) struct Devices(BTreeMap<(u64, Where), Vec<Weak<Device>>>);

impl Devices {
    /// Returns all devices.
    pub(super) fn all(&self) -> Vec<Arc<Device>> {
        let own = self.0.iter().filter(|((of, _), _)| *of == forks());
        own.flat_map(|(_, devices)| devices).filter_map(Weak::upgrade).collect()
    }

    /// Returns the device at `place` whose databases are scheduled by these options.
    pub(super) fn find_or_make(
        &mut self,
        place: Where,
        scheduling: &Scheduling,
        options: &ControlOptions,
    ) -> Arc<Device> {
        self.0.retain(|_, devices| {
            devices.retain(|device| device.strong_count() > 0);
            !devices.is_empty()
        });
        let devices = self.0.entry((forks(), place)).or_default();
        let alike = |device: &Arc<Device>| device.scheduling() == *scheduling;
        if let Some(found) = devices.iter().filter_map(Weak::upgrade).find(alike) {
            return found;
        }
        let device = Arc::new(Device::new(options, scheduling.clone()));
        devices.push(Arc::downgrade(&device));
        device
    }
}
