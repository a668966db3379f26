//! What the threads of a device do next: the databases that want a step, those whose chores are
//! due, and those at rest. Nothing here waits or runs.
//!
//! What must stay true: a database at rest is in no list with a time, so it costs nothing until
//! something calls it. While something is due later, either a thread watches for that moment or a
//! thread works and will look at the list again; the watch of a thread ends with the thread.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use sateen_control::{DatabaseId, Instant};
use sateen_store::base::sync::thread::{self, ThreadId};

use super::Tenant;

/// Databases at rest are all looked at once in so many rounds of the sampler.
pub(super) const LOOKS: usize = 10;
/// Of databases with a small part in what all do, so many are sampled in a round, or more if each
/// would not have its turn in `TURNS_MAX` rounds.
const SAMPLED_AT_ONCE: usize = 16;
const TURNS_MAX: usize = 10;
/// Their chores have at most so many times the usual pause.
const SLOWER_MAX: usize = 4;

/// The lists of a device.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) members: BTreeMap<DatabaseId, Arc<dyn Tenant>>,
    /// Databases that want a step, in the order of their calls.
    ready: VecDeque<DatabaseId>,
    /// When databases want a step although nothing calls them.
    timers: BTreeMap<DatabaseId, Instant>,
    /// When the chores of a database are due.
    chores: BTreeMap<DatabaseId, Instant>,
    /// Databases whose chores run, and since when they have been called for again.
    at_chores: BTreeMap<DatabaseId, Option<Instant>>,
    /// The threads that wait for the next timer, and for the next chores.
    steps_watch: Watch,
    chores_watch: Watch,
    /// Databases at rest.
    resting: BTreeSet<DatabaseId>,
    /// Databases with a small part in what all do. None of them is at rest.
    small: BTreeSet<DatabaseId>,
    /// The small database that was sampled last.
    sampled: DatabaseId,
    /// The database at rest that was looked at last.
    looked_at: DatabaseId,
    /// The threads that are at work for a database.
    inside: Vec<Inside>,
    /// Databases that were removed, and whose last work is still waited for.
    pub(super) leaving: usize,
}

/// The thread that waits until the next moment of a list, so that others need not wake then.
#[derive(Default)]
struct Watch(Option<(ThreadId, Instant)>);

impl Watch {
    /// Returns until when the calling thread waits if the list's next moment is `at`: as long as
    /// nothing calls it if another thread watches.
    fn begin(&mut self, at: Option<Instant>) -> Option<Instant> {
        let at = at?;
        if self.0.is_some_and(|(_, until)| until <= at) {
            return None;
        }
        self.0 = Some((thread::current().id(), at));
        Some(at)
    }

    /// Notes that the calling thread no longer waits.
    fn end(&mut self) {
        let own = thread::current().id();
        self.0 = self.0.filter(|(watcher, _)| *watcher != own);
    }
}

/// What a thread does for a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Step,
    Chores,
    Sample,
}

/// What the sampler does in a round.
pub(super) struct Samples {
    /// The databases that are sampled.
    pub(super) now: Vec<DatabaseId>,
    /// Databases at rest that are looked at.
    pub(super) looked: Vec<DatabaseId>,
    /// In how many rounds each database that is awake has had its turn.
    pub(super) turns: usize,
}

/// A thread that is at work for a database.
struct Inside {
    database: DatabaseId,
    thread: ThreadId,
    work: Work,
    since: Instant,
}

impl Queue {
    /// Adds a database. Its chores are due at once.
    pub(super) fn add(&mut self, database: DatabaseId, member: Arc<dyn Tenant>) {
        self.members.insert(database, member);
        self.call(database);
        self.chores.insert(database, Instant::default());
    }

    /// Removes a database. Threads may still be at work for it.
    pub(super) fn remove(&mut self, database: DatabaseId) {
        self.members.remove(&database);
        self.ready.retain(|ready| *ready != database);
        self.timers.remove(&database);
        self.chores.remove(&database);
        self.at_chores.remove(&database);
        self.resting.remove(&database);
        self.small.remove(&database);
    }

    /// Has a thread step the database. Returns false if it is no member or waits for that already.
    pub(super) fn call(&mut self, database: DatabaseId) -> bool {
        if !self.members.contains_key(&database) {
            return false;
        }
        let calls = !self.ready.contains(&database);
        if calls {
            self.ready.push_back(database);
        }
        calls
    }

    /// Has a thread do the chores of the database now, and wakes it from its rest. Returns false if
    /// it is no member.
    pub(super) fn call_for_chores(&mut self, database: DatabaseId, now: Instant) -> bool {
        if !self.members.contains_key(&database) {
            return false;
        }
        self.resting.remove(&database);
        // Something has happened. How much it is, the next sample tells.
        self.small.remove(&database);
        if let Some(again) = self.at_chores.get_mut(&database) {
            again.get_or_insert(now);
        } else {
            let at = self.chores.entry(database).or_insert(now);
            *at = now.min(*at);
        }
        true
    }

    /// Returns a database that wants a step, and the calling thread as at work for it.
    pub(super) fn next_step(&mut self, now: Instant) -> Option<(DatabaseId, Arc<dyn Tenant>)> {
        self.steps_watch.end();
        let due = || self.timers.iter().find(|(_, at)| **at <= now).map(|(id, _)| *id);
        let database = match self.ready.pop_front() {
            Some(database) => database,
            None => due()?,
        };
        self.timers.remove(&database);
        self.enter(database, Work::Step, now)
    }

    /// Returns a database whose chores are due, and the calling thread as at work for it.
    pub(super) fn next_chores(&mut self, now: Instant) -> Option<(DatabaseId, Arc<dyn Tenant>)> {
        self.chores_watch.end();
        // The one that waits longest goes first.
        let due = self.chores.iter().filter(|(_, at)| **at <= now);
        let database = due.min_by_key(|(_, at)| **at).map(|(id, _)| *id)?;
        self.chores.remove(&database);
        self.at_chores.insert(database, None);
        self.enter(database, Work::Chores, now)
    }

    /// Notes the calling thread as at work for a database.
    pub(super) fn enter(
        &mut self,
        database: DatabaseId,
        work: Work,
        since: Instant,
    ) -> Option<(DatabaseId, Arc<dyn Tenant>)> {
        let member = self.members.get(&database)?.clone();
        self.inside.push(Inside { database, thread: thread::current().id(), work, since });
        Some((database, member))
    }

    /// Notes that the calling thread is done with a database. Returns true if a thread waits for
    /// the end of such work.
    pub(super) fn exit(&mut self, database: DatabaseId) -> bool {
        let thread = thread::current().id();
        let own = |inside: &Inside| inside.database == database && inside.thread == thread;
        if let Some(at) = self.inside.iter().position(own) {
            self.inside.swap_remove(at);
        }
        self.leaving > 0
    }

    /// Returns true if a thread other than the calling one is at work for the database.
    pub(super) fn is_used(&self, database: DatabaseId) -> bool {
        let own = thread::current().id();
        self.inside.iter().any(|inside| inside.database == database && inside.thread != own)
    }

    /// Returns the number of threads that have been at `work` for one database since `before`, if
    /// another one waits for such a thread at `now`, and otherwise 0.
    pub(super) fn held(&self, work: Work, before: Instant, now: Instant) -> usize {
        let waits = match work {
            Work::Step => !self.ready.is_empty() || self.steps_at().is_some_and(|at| at <= now),
            Work::Chores => self.chores_at().is_some_and(|at| at <= now),
            Work::Sample => false,
        };
        let held = |inside: &&Inside| inside.work == work && inside.since <= before;
        if waits && self.members.len() > 1 { self.inside.iter().filter(held).count() } else { 0 }
    }

    /// Has a thread step the database at `at`, if nothing calls it before.
    pub(super) fn step_at(&mut self, database: DatabaseId, at: Instant) {
        if self.members.contains_key(&database) {
            // Another thread may have learned of an earlier time. A step too many does no harm.
            let timer = self.timers.entry(database).or_insert(at);
            *timer = at.min(*timer);
        }
    }

    /// Notes that the chores of a database are done, and when they are due again. With `rests` the
    /// database is at rest from now on, unless it was called meanwhile.
    pub(super) fn chores_done(
        &mut self,
        database: DatabaseId,
        again: Option<Instant>,
        rests: bool,
    ) {
        let called = self.at_chores.remove(&database).flatten();
        if !self.members.contains_key(&database) {
            return;
        }
        if let Some(at) = called {
            self.chores.insert(database, at);
        } else {
            self.chores.extend(again.map(|at| (database, at)));
            if rests {
                self.resting.insert(database);
                self.small.remove(&database);
            }
        }
    }

    /// Notes that the chores of a database ended with a panic, and when they are tried again,
    /// whatever has called for them meanwhile.
    pub(super) fn chores_panicked(&mut self, database: DatabaseId, again: Instant) {
        self.at_chores.remove(&database);
        self.chores_done(database, Some(again), false);
    }

    /// Forgets which threads watch, because they end.
    pub(super) fn end_watches(&mut self) {
        (self.steps_watch, self.chores_watch) = Default::default();
    }

    /// Returns when the next step is due that nothing calls for.
    fn steps_at(&self) -> Option<Instant> {
        self.timers.values().min().copied()
    }

    /// Returns when the next chores are due.
    fn chores_at(&self) -> Option<Instant> {
        self.chores.values().min().copied()
    }

    /// Returns until when the calling thread waits for a step.
    pub(super) fn watch_steps(&mut self) -> Option<Instant> {
        self.steps_watch.begin(self.steps_at())
    }

    /// Returns until when the calling thread waits for chores.
    pub(super) fn watch_chores(&mut self) -> Option<Instant> {
        self.chores_watch.begin(self.chores_at())
    }

    /// Returns true if another thread is to look after the steps that are left, while one works.
    pub(super) fn has_more_steps(&self) -> bool {
        !self.ready.is_empty() || (!self.timers.is_empty() && self.steps_watch.0.is_none())
    }

    /// Returns true if another thread is to look after the chores that are left.
    pub(super) fn has_more_chores(&self) -> bool {
        !self.chores.is_empty() && self.chores_watch.0.is_none()
    }

    /// Returns the number of databases at rest.
    pub(super) fn resting(&self) -> usize {
        self.resting.len()
    }

    /// Notes whether a database has a small part in what all do. Many such databases are sampled in
    /// turn, and their chores are further apart.
    pub(super) fn set_small(&mut self, database: DatabaseId, small: bool) {
        let is_awake = self.members.contains_key(&database) && !self.resting.contains(&database);
        if small && is_awake {
            self.small.insert(database);
        } else {
            self.small.remove(&database);
        }
    }

    /// Returns in how many rounds of the sampler those with a small part have their turn.
    fn turns(&self) -> usize {
        self.small.len().div_ceil(SAMPLED_AT_ONCE).clamp(1, TURNS_MAX)
    }

    /// Returns how many times as long as usual the pause between the chores of a database may be.
    pub(super) fn slower(&self, database: DatabaseId) -> u32 {
        let turns = if self.small.contains(&database) { self.turns().min(SLOWER_MAX) } else { 1 };
        u32::try_from(turns).unwrap_or(1)
    }

    /// Returns what the sampler does in its next round.
    pub(super) fn next_samples(&mut self) -> Samples {
        let turns = self.turns();
        let next = next_in_turn(&self.small, &mut self.sampled, turns);
        let is_awake = |id: &&DatabaseId| !self.resting.contains(id) && !self.small.contains(id);
        // None is in both sets.
        let awake = self.members.len() - self.resting.len() - self.small.len();
        let now = self.members.keys().filter(is_awake).take(awake).copied().chain(next).collect();
        let looked = next_in_turn(&self.resting, &mut self.looked_at, LOOKS);
        Samples { now, looked, turns }
    }
}

/// Returns the next of `databases` after `last`, so many that all have their turn in `turns` calls.
fn next_in_turn(
    databases: &BTreeSet<DatabaseId>,
    last: &mut DatabaseId,
    turns: usize,
) -> Vec<DatabaseId> {
    let count = databases.len().div_ceil(turns);
    let after = databases.range(DatabaseId(last.0 + 1)..);
    let next: Vec<_> = after.chain(databases.iter()).take(count).copied().collect();
    *last = next.last().copied().unwrap_or_default();
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{DatabaseTotals, Rest, Sampled, Stepped};
    use sateen_control::Sample;
    use sateen_store::base::error::Error;

    struct Nothing;

    impl Tenant for Nothing {
        fn step(&self) -> Stepped {
            Stepped::Idle(None)
        }
        fn take_sample(&self) -> Box<Sample> {
            Box::default()
        }
        fn sampled(&self, _: Box<Sample>, _: u64) -> Sampled {
            Sampled::Quiet
        }
        fn has_news(&self) -> bool {
            false
        }
        fn chores(&self, _: u32) -> Rest {
            Rest { again: None, rests: true }
        }
        fn totals(&self) -> DatabaseTotals {
            DatabaseTotals::default()
        }
        fn panicked(&self, _: &Error) {}
    }

    fn of(count: u32) -> Queue {
        let mut queue = Queue::default();
        (0..count).for_each(|id| queue.add(DatabaseId(id), Arc::new(Nothing)));
        queue
    }

    fn take(queue: &mut Queue) -> Option<DatabaseId> {
        let (id, _) = queue.next_step(Instant(0))?;
        queue.exit(id);
        Some(id)
    }

    #[test]
    fn databases_are_stepped_in_turn_and_none_twice_for_two_calls() {
        let mut queue = of(3);
        assert!(!queue.call(DatabaseId(1)), "it was called when it was added");
        let order: Vec<_> = std::iter::from_fn(|| take(&mut queue)).collect();
        assert_eq!(order, [DatabaseId(0), DatabaseId(1), DatabaseId(2)]);
        queue.step_at(DatabaseId(2), Instant(5));
        assert_eq!((take(&mut queue), queue.steps_at()), (None, Some(Instant(5))));
        assert_eq!(queue.next_step(Instant(5)).map(|next| next.0), Some(DatabaseId(2)));
        assert_eq!(queue.steps_at(), None);
    }

    #[test]
    fn chores_that_panicked_wait_although_something_calls_for_them() {
        let mut queue = of(1);
        let (id, _) = queue.next_chores(Instant(0)).unwrap();
        queue.exit(id);
        queue.call_for_chores(id, Instant(1));
        queue.chores_panicked(id, Instant(9));
        assert_eq!(queue.chores_at(), Some(Instant(9)));
        assert!(queue.next_chores(Instant(8)).is_none());
        assert!(queue.next_chores(Instant(9)).is_some());
    }

    #[test]
    fn a_database_at_rest_has_no_time_until_it_is_called() {
        let mut queue = of(20);
        while take(&mut queue).is_some() {}
        while let Some((id, _)) = queue.next_chores(Instant(0)) {
            queue.exit(id);
            queue.chores_done(id, None, true);
        }
        assert_eq!((queue.steps_at(), queue.chores_at()), (None, None));
        let mut seen = BTreeSet::new();
        for _ in 0..LOOKS {
            let samples = queue.next_samples();
            assert!(samples.now.is_empty());
            seen.extend(samples.looked);
        }
        assert_eq!(seen.len(), 20, "each was looked at once");
        queue.call_for_chores(DatabaseId(7), Instant(0));
        assert_eq!(queue.next_samples().now, [DatabaseId(7)]);
        assert!(queue.chores_at().is_some());
    }

    #[test]
    fn a_call_during_the_chores_is_not_lost() {
        let mut queue = of(1);
        let (id, _) = queue.next_chores(Instant(0)).unwrap();
        assert!(queue.next_chores(Instant(0)).is_none(), "one thread at a time");
        queue.call_for_chores(id, Instant(0));
        queue.chores_done(id, None, true);
        assert!(queue.next_chores(Instant(0)).is_some());
        assert_eq!(queue.next_samples().now, [id]);
    }

    #[test]
    fn many_small_databases_are_sampled_in_turn_and_a_large_one_always() {
        let mut queue = of(41);
        assert_eq!(queue.next_samples().now.len(), 41, "nothing is known of them");
        (1..41).for_each(|id| queue.set_small(DatabaseId(id), true));
        assert_eq!([0, 1].map(|id| queue.slower(DatabaseId(id))), [1, 3]);
        let rounds: Vec<_> = (0..3).map(|_| queue.next_samples()).collect();
        assert!(rounds.iter().all(|round| round.turns == 3 && round.now.contains(&DatabaseId(0))));
        assert!(rounds.iter().all(|round| (14..=15).contains(&round.now.len())));
        let seen: BTreeSet<_> = rounds.into_iter().flat_map(|round| round.now).collect();
        assert_eq!(seen.len(), 41, "each of them");
        // One that something has happened to is sampled at once, and one at rest never.
        queue.call_for_chores(DatabaseId(5), Instant(0));
        assert_eq!(queue.slower(DatabaseId(5)), 1);
        for _ in 0..3 {
            assert!(queue.next_samples().now.contains(&DatabaseId(5)));
        }
        queue.chores_done(DatabaseId(6), None, true);
        queue.set_small(DatabaseId(6), true);
        assert_eq!(queue.slower(DatabaseId(6)), 1);
        (17..41).for_each(|id| queue.set_small(DatabaseId(id), false));
        let all = queue.next_samples();
        assert_eq!((all.now.len(), all.turns), (40, 1));
    }

    #[test]
    fn one_thread_watches_for_the_next_chores() {
        let mut queue = of(2);
        while let Some((id, _)) = queue.next_chores(Instant(0)) {
            queue.chores_done(id, Some(Instant(10)), false);
        }
        assert!(queue.has_more_chores());
        assert_eq!(queue.watch_chores(), Some(Instant(10)));
        assert!(!queue.has_more_chores(), "a thread watches");
        // Another thread looks for chores, and begins to wait.
        let elsewhere = |queue: &mut Queue| {
            let look = || {
                assert!(queue.next_chores(Instant(0)).is_none());
                queue.watch_chores()
            };
            std::thread::scope(|scope| scope.spawn(look).join().unwrap())
        };
        assert_eq!(elsewhere(&mut queue), None, "this thread watches");
        queue.call_for_chores(DatabaseId(1), Instant(5));
        assert_eq!(elsewhere(&mut queue), Some(Instant(5)), "that is earlier");
        assert!(queue.next_chores(Instant(7)).is_some());
        assert!(!queue.has_more_chores(), "the other one still watches");
    }

    #[test]
    fn chores_that_are_due_go_before_those_called_for_later() {
        let mut queue = of(2);
        for at in 0..2 {
            let (id, _) = queue.next_chores(Instant(0)).unwrap();
            queue.exit(id);
            queue.chores_done(id, (at == 1).then_some(Instant(5)), false);
        }
        let (called, timed) = (DatabaseId(0), DatabaseId(1));
        queue.call_for_chores(called, Instant(4));
        assert_eq!(queue.next_chores(Instant(9)).unwrap().0, called, "it waits longer");
        queue.call_for_chores(called, Instant(7));
        queue.chores_done(called, None, false);
        assert_eq!(queue.next_chores(Instant(9)).unwrap().0, timed);
        assert_eq!(queue.next_chores(Instant(9)).unwrap().0, called);
    }

    #[test]
    fn threads_are_held_if_another_database_waits_for_them() {
        let mut queue = of(2);
        let (first, _) = queue.next_step(Instant(10)).unwrap();
        let held = |queue: &Queue, before| queue.held(Work::Step, Instant(before), Instant(30));
        assert_eq!((held(&queue, 9), held(&queue, 10)), (0, 1));
        let (second, _) = queue.next_step(Instant(20)).unwrap();
        assert_eq!(held(&queue, 20), 0, "nothing waits");
        queue.step_at(second, Instant(30));
        assert_eq!((held(&queue, 10), held(&queue, 20)), (1, 2));
        assert_eq!(queue.held(Work::Chores, Instant(20), Instant(30)), 0);
        queue.remove(first);
        assert_eq!(held(&queue, 20), 0, "it is alone");
    }

    #[test]
    fn what_was_removed_is_called_no_more() {
        let mut queue = of(2);
        let (id, _) = queue.next_step(Instant(0)).unwrap();
        queue.remove(id);
        assert!(!queue.call(id) && !queue.call_for_chores(id, Instant(0)));
        queue.step_at(id, Instant(0));
        queue.chores_done(id, Some(Instant(0)), false);
        assert_eq!(take(&mut queue), Some(DatabaseId(1)));
        assert_eq!(take(&mut queue), None);
        assert!(!queue.is_used(id), "only by the thread that asks");
    }
}
