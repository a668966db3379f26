//! Who may move bytes next. Every running job waits here for its grants, in the lane of its class;
//! the limiter says how many bytes there are to give.

mod rate_limiter;

use std::collections::{BTreeMap, BTreeSet};

use crate::options::ControlOptions;
use crate::types::{Instant, IoClass, JobId};
use rate_limiter::RateLimiter;

/// The lanes: flushes, compactions out of level 0, all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Flush,
    Level0,
    Deep,
}

impl Lane {
    pub(crate) fn of(class: IoClass) -> Lane {
        match class {
            IoClass::Flush => Lane::Flush,
            IoClass::L0 => Lane::Level0,
            _ => Lane::Deep,
        }
    }
}

/// A job between its start and its end.
#[derive(Clone, Copy, Debug)]
struct Running {
    lane: Lane,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// In the queue, at this place.
    Waiting(u64),
    /// It has this many bytes to use.
    Granted(u64),
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub(crate) struct IoScheduler {
    limiter: RateLimiter,
    slice_bytes_max: u64,
    level0_first: bool,
    jobs: BTreeMap<JobId, Running>,
    /// Who waits: by rank, then first come, first served.
    queue: BTreeSet<(u8, u64, JobId)>,
    /// The next place in the queue.
    place: u64,
}

impl IoScheduler {
    pub(crate) fn new(options: &ControlOptions) -> IoScheduler {
        IoScheduler {
            limiter: RateLimiter::new(options.rate_limiter.clone()),
            slice_bytes_max: options.slice_bytes_max.max(1),
            level0_first: options.level0_first,
            jobs: BTreeMap::new(),
            queue: BTreeSet::new(),
            place: 0,
        }
    }

    pub(crate) fn set_options(&mut self, options: &ControlOptions) {
        self.limiter.set_options(options.rate_limiter.clone());
        self.slice_bytes_max = options.slice_bytes_max.max(1);
        self.level0_first = options.level0_first;
        self.queue = self
            .jobs
            .iter()
            .filter_map(|(job, running)| match running.state {
                State::Waiting(place) => Some((self.rank(running.lane), place, *job)),
                State::Granted(_) => None,
            })
            .collect();
    }

    /// A job begins to wait for its first grant.
    pub(crate) fn add(&mut self, job: JobId, class: IoClass) {
        self.wait(job, Lane::of(class));
    }

    /// A job has used its grant and waits for the next. Unknown jobs are ignored.
    pub(crate) fn stepped(&mut self, job: JobId, read: u64, written: u64) {
        let Some(running) = self.jobs.get(&job).copied() else { return };
        let granted = match running.state {
            State::Granted(bytes) => bytes,
            State::Waiting(_) => 0,
        };
        self.limiter.settle(granted, read, written);
        if matches!(running.state, State::Granted(_)) {
            self.wait(job, running.lane);
        }
    }

    /// A job is over: what it was granted and did not use is given back.
    pub(crate) fn remove(&mut self, job: JobId) {
        let Some(running) = self.jobs.remove(&job) else { return };
        match running.state {
            State::Waiting(place) => {
                self.queue.remove(&(self.rank(running.lane), place, job));
            }
            State::Granted(bytes) => self.limiter.settle(bytes, 0, 0),
        }
    }

    /// The next grant, if somebody waits and there is something to give.
    pub(crate) fn grant(&mut self, now: Instant) -> Option<(JobId, u64)> {
        let first = *self.queue.first()?;
        self.limiter.refill(now);
        let next = if self.limiter.is_reversed() {
            // The lowest rank first, but still first come, first served within it.
            let rank = self.queue.last()?.0;
            *self.queue.range((rank, 0, JobId(0))..).next()?
        } else {
            first
        };
        let bytes = self.limiter.take(self.slice_bytes_max)?;
        self.queue.remove(&next);
        if let Some(running) = self.jobs.get_mut(&next.2) {
            running.state = State::Granted(bytes);
        }
        Some((next.2, bytes))
    }

    /// When to ask for a grant again although nothing happens.
    pub(crate) fn next_grant_at(&self) -> Option<Instant> {
        self.queue.first()?;
        self.limiter.next_refill()
    }

    /// How many jobs run in `lane`.
    pub(crate) fn running(&self, lane: Lane) -> usize {
        self.jobs.values().filter(|running| running.lane == lane).count()
    }

    /// The limit in force; `None`: unlimited.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        self.limiter.bytes_per_second()
    }

    fn wait(&mut self, job: JobId, lane: Lane) {
        self.place += 1;
        self.queue.insert((self.rank(lane), self.place, job));
        self.jobs.insert(job, Running { lane, state: State::Waiting(self.place) });
    }

    fn rank(&self, lane: Lane) -> u8 {
        match lane {
            Lane::Flush => 0,
            Lane::Level0 => 1,
            Lane::Deep => 1 + u8::from(self.level0_first),
        }
    }
}
