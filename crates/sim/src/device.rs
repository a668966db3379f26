//! The device as it is, in virtual time: what a request costs, and how long it waits.
//!
//! Requests of one direction are served in the order in which they were submitted, so that a
//! client's read waits behind what background work has asked for before it. Since the order is
//! fixed when a request is submitted, so is the moment at which it is done. Requests must be
//! submitted in the order of time (a few microseconds of error between client threads is all that
//! the clients' model allows itself).

use std::collections::VecDeque;

const SECOND_NS: u64 = 1_000_000_000;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// How many bytes a second the device moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// Reads.
    pub read: u64,
    /// Writes.
    pub write: u64,
}

/// What the device is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// The bandwidth at the start.
    pub bandwidth: Bandwidth,
    /// Reads and writes share one bandwidth (that of reads) and one queue.
    pub shared: bool,
    /// What every request takes besides its transfer.
    pub latency_ns: u64,
    /// What a barrier takes once everything written before is done.
    pub barrier_ns: u64,
    /// Requests of one direction that are served at a time.
    pub parallelism: usize,
    /// The bandwidth holds over this time: what a faster device behind a throttle lets through at
    /// once. 0: every request takes its transfer.
    pub burst_ns: u64,
    /// So often, and for so long, it serves nobody, whatever was asked of it: shared disks do.
    /// Nanoseconds; 0: never.
    pub pause_every_ns: u64,
    /// See `pause_every_ns`.
    pub pause_ns: u64,
    /// From these moments on (nanoseconds, ascending) the bandwidth is another.
    pub changes: Vec<(u64, Bandwidth)>,
}

impl Default for DeviceConfig {
    /// The throttled device of the standard case: a fast one whose bandwidth the kernel limits in
    /// slices of 20 ms.
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
    /// When everything submitted so far has been transferred.
    free_at: u64,
    /// When the last `parallelism` requests are done.
    done: VecDeque<u64>,
    /// How many changes of bandwidth lie before `free_at`.
    change: usize,
}

/// A device under way.
#[derive(Clone, Debug)]
pub struct Device {
    config: DeviceConfig,
    read: Queue,
    write: Queue,
}

impl Device {
    /// A device with nothing to do.
    #[must_use]
    pub fn new(config: DeviceConfig) -> Device {
        Device { config, read: Queue::default(), write: Queue::default() }
    }

    /// Submits a request at `now`: the moment at which it is done.
    pub fn submit(&mut self, now: u64, direction: Direction, bytes: u64) -> u64 {
        let Device { config, read, write } = self;
        let queue = if direction == Direction::Read || config.shared { read } else { write };
        let mut start = now;
        // The pause ends a period: what comes in it waits for the next one.
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

    /// Submits a barrier at `now`: it is done when everything written before it is durable.
    /// Nothing is written meanwhile.
    pub fn barrier(&mut self, now: u64) -> u64 {
        let queue = if self.config.shared { &mut self.read } else { &mut self.write };
        let written = queue.done.back().copied().unwrap_or(0);
        let done = written.max(now) + self.config.barrier_ns;
        queue.free_at = queue.free_at.max(done);
        done
    }
}

/// When `bytes` are over that begin to move at `start`.
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

/// How long `bytes` take at `rate`. Wide arithmetic costs as much as all else together: only where
/// it must be.
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

/// How many bytes `rate` moves in `ns`.
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
        // Idle again: no memory of what was.
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
        // 1 MB until 5 ms, half of one until 15 ms, the rest at 1 GB/s.
        assert_eq!(device.submit(0, Direction::Read, 2 * MB), 15 * MS + MS / 2);
        assert_eq!(device.submit(20 * MS, Direction::Write, MB), 21 * MS);
    }
}
