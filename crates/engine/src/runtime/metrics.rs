//! What the databases of a runtime have and do together.

use std::time::Duration;

use sateen_store::base::sync::lock;

use super::Runtime;
use super::device::Device;

/// The databases of a runtime together: [`Runtime::metrics`],
/// [`Db::runtime_metrics`](crate::Db::runtime_metrics). Counters are sums over the databases that
/// are open; a database that is closed takes its own along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeMetrics {
    /// Databases that are open.
    pub databases: usize,
    /// Those of them that are at rest.
    pub resting: usize,
    /// Background threads.
    pub threads: usize,
    /// The devices that the databases are on.
    pub devices: Vec<DeviceMetrics>,
    /// Totals of the databases.
    pub totals: DatabaseTotals,
}

/// A device of a [`RuntimeMetrics`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceMetrics {
    /// Databases on it.
    pub databases: usize,
    /// Bandwidth in bytes per second, learned or set by `device_bandwidth`.
    pub read_bytes_per_second: u64,
    /// The same for writes.
    pub write_bytes_per_second: u64,
    /// Average time of a barrier (fsync).
    pub barrier: Duration,
    /// Time that deep compactions of all databases need to catch up at their current bandwidth.
    pub debt: Duration,
}

/// What databases do, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatabaseTotals {
    /// Bytes of keys and values that clients wrote.
    pub user_bytes: u64,
    /// Bytes read from files, by clients and in the background.
    pub read_bytes: u64,
    /// Bytes written to files, WALs included.
    pub written_bytes: u64,
    /// Flushes that run now.
    pub running_flushes: u64,
    /// Compactions that run now.
    pub running_compactions: u64,
}

impl DatabaseTotals {
    fn add(&mut self, other: &DatabaseTotals) {
        self.user_bytes += other.user_bytes;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.running_flushes += other.running_flushes;
        self.running_compactions += other.running_compactions;
    }
}

impl Runtime {
    /// Returns what its databases have and do together.
    #[must_use]
    pub fn metrics(&self) -> RuntimeMetrics {
        let mut all = RuntimeMetrics::default();
        self.devices().iter().for_each(|device| all.add(device));
        all
    }
}

impl RuntimeMetrics {
    /// Adds a device and its databases.
    pub(crate) fn add(&mut self, device: &Device) {
        let (members, resting) = {
            let queue = lock(&device.queue);
            (queue.members.values().cloned().collect::<Vec<_>>(), queue.resting())
        };
        let (profile, debt_ns) = {
            let scheduler = lock(&device.scheduler);
            (scheduler.device(), scheduler.debt_ns())
        };
        self.databases += members.len();
        self.resting += resting;
        self.threads += device.threads();
        self.devices.push(DeviceMetrics {
            databases: members.len(),
            read_bytes_per_second: profile.read_bytes_per_second,
            write_bytes_per_second: profile.write_bytes_per_second,
            barrier: Duration::from_nanos(profile.barrier_ns),
            debt: Duration::from_nanos(debt_ns),
        });
        members.iter().for_each(|member| self.totals.add(&member.totals()));
    }
}
