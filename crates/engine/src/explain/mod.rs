//! Names the cause of slow seconds: a pure function of what the flight recorder has.
//!
//! 1. [`History::take`] folds a timeline into one [`Second`] for each second. A program that calls
//!    it every few seconds keeps far more than the recorder does, in bounded memory.
//! 2. `cause::of` looks at one slow second and at those before it, in which its cause often lies:
//!    writers wait because of what the background could not do until then.
//! 3. [`History::explain`] joins slow seconds of one cause into an [`Episode`] and keeps the worst.
//! 4. `text` says each episode in sentences, with the figures that it rests on.
//!
//! What must stay true: nothing here reads a clock, a file or an engine.

mod cause;
mod history;
#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

pub use cause::{Cause, Figures};
pub use history::{History, Second};

use crate::timeline::{SlowOperation, StallCause};

/// An operation that took less is not slow.
const SLOW_NS: u64 = 10_000_000;
/// Time for which writers were held back in a second, summed over all writers, above which the
/// second is slow. Each of them may have waited for less than [`SLOW_NS`].
const HELD_BACK_NS: u64 = 200_000_000;
/// Slow seconds of one cause that are at most this far apart are one episode.
const GAP_SECONDS: u64 = 3;
/// Number of episodes that are explained.
const EPISODES_MAX: usize = 4;

/// Why the slowest seconds of a period were slow. Its `Display` is one screen of sentences.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = sateen::Db::open(directory.path(), sateen::Options::default())?;
/// db.put("fig", "1")?;
/// println!("{}", db.explain());
/// # Ok::<(), sateen::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Explanation {
    /// The end of the period, in nanoseconds since open.
    pub until_ns: u64,
    /// The length of the period that is known, in seconds.
    pub known_seconds: u64,
    /// The slowest operation of the period.
    pub slowest: Option<SlowOperation>,
    /// The slow periods, worst first.
    pub episodes: Vec<Episode>,
}

/// Slow seconds with the same cause.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Episode {
    /// The first slow second, counted from open.
    pub first_second: u64,
    /// The last one.
    pub last_second: u64,
    /// Number of slow seconds from the first to the last.
    pub slow_seconds: u64,
    /// Why they were slow.
    pub cause: Cause,
    /// The figures of the second with the slowest operation, on which `cause` rests.
    pub figures: Figures,
    /// The slowest operation.
    pub slowest: SlowOperation,
    /// What orders the episodes: the slowest operation's time, or the time for which writers were
    /// held back in one second, summed over them, if that is longer.
    worst_ns: u64,
    /// Where the time of the slowest operations went: name of the part, and nanoseconds. Largest
    /// first.
    pub waited_for: Vec<(&'static str, u64)>,
    /// Waits of writers by cause: nanoseconds, summed over all writers. Largest first.
    pub stalled: Vec<(StallCause, u64)>,
    /// Background work that went on: its name, and nanoseconds of its steps. Largest first.
    pub work: Vec<(String, u64)>,
}

impl History {
    /// Explains the slow seconds of the last `since`.
    #[must_use]
    pub fn explain(&self, since: Duration) -> Explanation {
        let until = self.until_ns() / history::SECOND_NS;
        let first = until.saturating_sub(since.as_secs());
        let mut episodes: Vec<Episode> = Vec::new();
        let mut slowest: Option<SlowOperation> = None;
        let in_period = self.seconds().filter(|second| second.second >= first);
        for second in in_period {
            let Some(worst) = second.slowest.first() else { continue };
            if slowest.is_none_or(|slowest| slowest.total_ns < worst.total_ns) {
                slowest = Some(*worst);
            }
            if !second.has_slow_operation() && second.held_back_ns() < HELD_BACK_NS {
                continue;
            }
            let (cause, figures) = cause::of(self, second);
            // An operation that began before the second makes the seconds since then slow, too.
            let begins = match second.has_slow_operation() {
                true => (worst.start_ns / history::SECOND_NS).max(first).min(second.second),
                false => second.second,
            };
            let open = episodes
                .last_mut()
                .filter(|last| last.cause.name() == cause.name())
                .filter(|last| begins <= last.last_second + GAP_SECONDS);
            match open {
                Some(episode) => episode.join(second, begins, cause, figures),
                None => episodes.push(Episode::new(second, begins, cause, figures, *worst)),
            }
        }
        let known_seconds =
            self.seconds().next().map_or(0, |oldest| until - oldest.second.min(until));
        episodes.sort_by_key(|episode| std::cmp::Reverse(episode.worst_ns));
        episodes.truncate(EPISODES_MAX);
        let known_seconds = known_seconds.min(since.as_secs());
        Explanation { until_ns: self.until_ns(), known_seconds, slowest, episodes }
    }
}

impl Episode {
    fn new(
        second: &Second,
        begins: u64,
        cause: Cause,
        figures: Figures,
        slowest: SlowOperation,
    ) -> Episode {
        let mut episode = Episode {
            first_second: begins,
            last_second: second.second,
            slow_seconds: second.second - begins + 1,
            cause,
            figures,
            slowest,
            worst_ns: 0,
            waited_for: Vec::new(),
            stalled: Vec::new(),
            work: Vec::new(),
        };
        episode.add(second);
        episode
    }

    /// Adds a slow second after the last one, whose slowest operation began in second `begins`.
    fn join(&mut self, second: &Second, begins: u64, cause: Cause, figures: Figures) {
        self.slow_seconds +=
            second.second - begins.max(self.last_second + 1).min(second.second) + 1;
        self.last_second = second.second;
        if let Some(worst) = second.slowest.first()
            && worst.total_ns > self.slowest.total_ns
        {
            (self.slowest, self.cause, self.figures) = (*worst, cause, figures);
        }
        self.add(second);
    }

    fn add(&mut self, second: &Second) {
        self.worst_ns = self.worst_ns.max(self.slowest.total_ns);
        if self.cause.holds_back() {
            self.worst_ns = self.worst_ns.max(second.held_back_ns());
        }
        for (part, ns) in second.slowest.iter().flat_map(SlowOperation::parts) {
            add(&mut self.waited_for, part, ns);
        }
        for (cause, ns) in StallCause::ALL.into_iter().zip(second.stalled_ns) {
            add(&mut self.stalled, cause, ns);
        }
        for (work, ns) in &second.work {
            add(&mut self.work, work.clone(), *ns);
        }
    }
}

/// Adds `ns` to the entry `name`, and keeps the entries in descending order.
fn add<N: PartialEq>(to: &mut Vec<(N, u64)>, name: N, ns: u64) {
    if ns == 0 {
        return;
    }
    match to.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => *sum += ns,
        None => to.push((name, ns)),
    }
    to.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
}
