//! The model of a device in virtual time: the cost of a request, and how long it waits.
//!
//! The device serves requests of one direction in the order of submission, so that a client's read
//! waits for earlier requests of background work. The completion of a request is known when it is
//! submitted. Requests must be submitted in the order of time; client threads may differ by a few
//! microseconds, which is the error of their model.

use std::collections::VecDeque;

const SECOND_NS: u64 = 1_000_000_000;

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// Bandwidths in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// Reads.
    pub read: u64,
    /// Writes.
    pub write: u64,
}

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// The bandwidth at the start.
    pub bandwidth: Bandwidth,
    /// True if reads and writes share one queue and one bandwidth, that of reads.
    pub shared: bool,
    /// The time of every request in addition to its transfer.
    pub latency_ns: u64,
    /// The time of a barrier after all earlier writes are complete.
    pub barrier_ns: u64,
    /// Requests of one direction that are served at the same time.
    pub parallelism: usize,
    /// The period of a throttle, in nanoseconds: a fast device lets requests through at once until
    /// they have used the bandwidth of the period. 0 for a device whose every request takes its
    /// transfer time.
    pub burst_ns: u64,
    /// The interval of pauses in nanoseconds, as shared disks have them; 0 for none. During a pause
    /// the device serves no request.
    pub pause_every_ns: u64,
    /// The length of a pause, in nanoseconds.
    pub pause_ns: u64,
    /// Changes of the bandwidth, each with its moment in nanoseconds, in ascending order.
    pub changes: Vec<(u64, Bandwidth)>,
}

impl Default for DeviceConfig {
    /// The throttled device of the standard case: a fast device whose bandwidth the kernel limits
    /// in periods of 20 ms.
    fn default() -> DeviceConfig {
        let bandwidth = Bandwidth { read: 200_000_000, write: 200_000_000 };
        DeviceConfig {
            bandwidth,
            shared: false,
            latency_ns: 80_000,
            barrier_ns: 500_000,
            parallelism: 32,
            burst_ns: 20_000_000,
            pause_every_ns: 0,
            pause_ns: 0,
            changes: Vec::new(),
        }
    }
}

/// The requests of one direction.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The moment at which all submitted requests have been transferred.
    free_at: u64,
    /// The completion of the last `parallelism` requests.
    done: VecDeque<u64>,
    /// The number of bandwidth changes before `free_at`.
    change: usize,
}

/// A device in a running simulation.
#[derive(Clone, Debug)]
pub struct Device {
    config: DeviceConfig,
    read: Queue,
    write: Queue,
}

impl Device {
    /// An idle device.
    #[must_use]
    pub fn new(config: DeviceConfig) -> Device {
        Device { config, read: Queue::default(), write: Queue::default() }
    }

    /// Submits a request at `now`. Returns the moment of its completion.
    pub fn submit(&mut self, now: u64, direction: Direction, bytes: u64) -> u64 {
        let Device { config, read, write } = self;
        let queue = if direction == Direction::Read || config.shared { read } else { write };
        let mut start = now;
        // The pause is at the end of its interval. A request that arrives in it waits for the next
        // interval.
        if let Some(at) = now.checked_rem(config.pause_every_ns)
            && at + config.pause_ns >= config.pause_every_ns
        {
            start += config.pause_every_ns - at;
        }
        if queue.done.len() >= config.parallelism.max(1) {
            start = start.max(queue.done.pop_front().unwrap_or(0));
        }
        queue.free_at = transfer(config, queue, direction, start.max(queue.free_at), bytes);
        let done = start.max(queue.free_at.saturating_sub(config.burst_ns)) + config.latency_ns;
        queue.done.push_back(done);
        done
    }

    /// Submits a barrier at `now`. It completes when all earlier writes are durable. No write is
    /// served meanwhile.
    pub fn barrier(&mut self, now: u64) -> u64 {
        let queue = if self.config.shared { &mut self.read } else { &mut self.write };
        let written = queue.done.back().copied().unwrap_or(0);
        let done = written.max(now) + self.config.barrier_ns;
        queue.free_at = queue.free_at.max(done);
        done
    }
}

/// Returns the moment at which a transfer of `bytes` that starts at `start` ends.
fn transfer(
    config: &DeviceConfig,
    queue: &mut Queue,
    direction: Direction,
    mut start: u64,
    bytes: u64,
) -> u64 {
    let mut left = bytes;
    loop {
        while config.changes.get(queue.change).is_some_and(|(at, _)| *at <= start) {
            queue.change += 1;
        }
        let bandwidth = match queue.change.checked_sub(1).and_then(|at| config.changes.get(at)) {
            Some((_, bandwidth)) => *bandwidth,
            None => config.bandwidth,
        };
        let read = direction == Direction::Read || config.shared;
        let rate = if read { bandwidth.read } else { bandwidth.write }.max(1);
        let end = start.saturating_add(transfer_ns(left, rate));
        match config.changes.get(queue.change) {
            Some((at, _)) if *at < end => {
                left = left.saturating_sub(bytes_in(*at - start, rate));
                start = *at;
            }
            _ => return end,
        }
    }
}

/// Returns how long `bytes` take at `rate`. Wide arithmetic costs as much as all other work
/// together, so it is used only where it is needed.
#[inline]
fn transfer_ns(bytes: u64, rate: u64) -> u64 {
    match bytes.checked_mul(SECOND_NS) {
        Some(product) => product.div_ceil(rate),
        None => {
            let ns = (u128::from(bytes) * u128::from(SECOND_NS)).div_ceil(u128::from(rate));
            u64::try_from(ns).unwrap_or(u64::MAX)
        }
    }
}

/// Returns how many bytes `rate` moves in `ns`.
fn bytes_in(ns: u64, rate: u64) -> u64 {
    let bytes = u128::from(ns) * u128::from(rate) / u128::from(SECOND_NS);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;
    const MS: u64 = 1_000_000;

    fn device(change: impl FnOnce(&mut DeviceConfig)) -> Device {
        let mut config = DeviceConfig {
            bandwidth: Bandwidth { read: 200 * MB, write: 100 * MB },
            latency_ns: 0,
            burst_ns: 0,
            barrier_ns: 2 * MS,
            ..DeviceConfig::default()
        };
        change(&mut config);
        Device::new(config)
    }

    #[test]
    fn a_request_takes_its_transfer_and_the_latency() {
        let mut device = device(|config| config.latency_ns = 100_000);
        assert_eq!(device.submit(0, Direction::Read, MB), 5 * MS + 100_000);
        assert_eq!(device.submit(0, Direction::Write, MB), 10 * MS + 100_000);
        // An idle device keeps no memory of earlier requests.
        assert_eq!(device.submit(1000 * MS, Direction::Read, 0), 1000 * MS + 100_000);
    }

    #[test]
    fn requests_wait_for_those_of_their_direction_submitted_before() {
        let mut device = device(|_| {});
        for nth in 1..=10 {
            assert_eq!(device.submit(0, Direction::Read, MB), nth * 5 * MS);
        }
        assert_eq!(device.submit(MS, Direction::Read, MB), 55 * MS, "behind ten others");
        assert_eq!(device.submit(MS, Direction::Write, MB), 11 * MS, "separately limited");
    }

    #[test]
    fn one_bandwidth_may_be_shared() {
        let mut device = device(|config| config.shared = true);
        assert_eq!(device.submit(0, Direction::Read, MB), 5 * MS);
        assert_eq!(device.submit(0, Direction::Write, MB), 10 * MS);
    }

    #[test]
    fn no_more_requests_at_a_time_than_the_device_has_places() {
        let mut device = device(|config| {
            config.latency_ns = MS;
            config.parallelism = 2;
        });
        let done: Vec<_> = (0..6).map(|_| device.submit(0, Direction::Read, 0) / MS).collect();
        assert_eq!(done, [1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_barrier_waits_for_what_is_written_and_nothing_passes_it() {
        let mut device = device(|_| {});
        device.submit(0, Direction::Write, MB);
        assert_eq!(device.barrier(MS), 12 * MS);
        assert_eq!(device.submit(MS, Direction::Write, MB), 22 * MS);
        assert_eq!(device.submit(MS, Direction::Read, MB), 6 * MS);
    }

    #[test]
    fn a_throttle_lets_through_at_once_what_its_period_allows() {
        let mut device = device(|config| config.burst_ns = 20 * MS);
        let done: Vec<_> = (0..6).map(|_| device.submit(0, Direction::Read, MB) / MS).collect();
        assert_eq!(done, [0, 0, 0, 0, 5, 10]);
        assert_eq!(device.submit(30 * MS, Direction::Read, MB) / MS, 30);
    }

    #[test]
    fn a_device_may_stand_still_now_and_then() {
        let mut device =
            device(|config| (config.pause_every_ns, config.pause_ns) = (100 * MS, 10 * MS));
        assert_eq!(device.submit(50 * MS, Direction::Read, MB), 55 * MS);
        assert_eq!(device.submit(90 * MS, Direction::Read, MB), 105 * MS);
        assert_eq!(device.submit(99 * MS, Direction::Write, MB), 110 * MS);
        assert_eq!(device.submit(120 * MS, Direction::Read, MB), 125 * MS);
    }

    #[test]
    fn the_bandwidth_may_change_within_a_request() {
        let slow = Bandwidth { read: 50 * MB, write: 50 * MB };
        let fast = Bandwidth { read: 1000 * MB, write: 1000 * MB };
        let mut device = device(|config| config.changes = vec![(5 * MS, slow), (15 * MS, fast)]);
        // 1 MB by 5 ms, half a MB by 15 ms, the rest at 1 GB/s.
        assert_eq!(device.submit(0, Direction::Read, 2 * MB), 15 * MS + MS / 2);
        assert_eq!(device.submit(20 * MS, Direction::Write, MB), 21 * MS);
    }
}
