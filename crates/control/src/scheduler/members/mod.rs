//! The databases that share the scheduler of one device.
//!
//! 1. [`IoScheduler::begins`] lifts a database that had nothing to do to what the others have
//!    moved, so that rest earns nothing. If none of them had anything to do, all begin anew.
//!    [`IoScheduler::has_moved`] charges moved bytes by weight. Within a lane the database with the
//!    least is served first.
//! 2. [`Members::may_move`] holds a database that is over its ceiling, or paused.
//! 3. [`slots`] gives a free slot to the database with the best [`Claim`].
//! 4. [`Members::look_for_greedy`] looks for a database in overload. [`Members::beside_greedy`] is
//!    then the demand of the others, to whose clients its work leaves some room.
//! 5. Only the database that asks gets an answer ([`IoScheduler::is_served_now`]). Another one
//!    whose turn it is becomes restless, and its driver polls it.
//!
//! What must stay true: a database that is alone is scheduled as if there were no others.

mod slots;

use std::collections::{BTreeMap, BTreeSet};

use super::{Demand, IoScheduler, Lane, Running, RunningState};
use crate::arithmetic::{NS_PER_SECOND, scale, to_i64};
use crate::event::Note;
use crate::types::{DatabaseId, Instant, JobId};
pub(crate) use slots::Claim;

/// The weight of a database that has none.
const WEIGHT: u64 = 100;
/// The time over which the unused bytes of a ceiling collect, and the time between two refills.
const CEILING_NS: u64 = 100_000_000;
const REFILL_NS: u64 = 1_000_000;
/// A database that begins has moved this much less than the one that has moved most, at most.
const CREDIT_BYTES: u64 = 64 << 20;

/// A database is greedy if it is late and writes more than this many times what all others write
/// together. It stays so while it writes more than all others.
const GREEDY_TIMES: u64 = 2;
/// A database that is no longer late is greedy for this time.
const GREEDY_NS: u64 = 5 * NS_PER_SECOND;
/// A database has clients if they read or wrote within this time.
const SERVED_NS: u64 = 10 * NS_PER_SECOND;
/// What a database wrote is known for this time. One at rest has no samples.
const FILL_NS: u64 = NS_PER_SECOND;

/// A database.
#[derive(Clone, Debug)]
struct Member {
    weight: u64,
    /// Bytes a second; `None`: no limit of its own.
    ceiling: Option<u64>,
    /// What may be moved below the ceiling.
    tokens: i64,
    /// Bytes moved, by weight.
    moved: u64,
    paused: bool,
    /// The most compactions that it may run at a time.
    slots: usize,
    claim: Option<Claim>,
    demand: Demand,
    /// Bytes a second that its clients write, and number of column families that are written to.
    fill: (u64, u64),
    /// Its last sample, and the last one in which its clients read or wrote.
    sampled_at: Instant,
    served_at: Option<Instant>,
    notes: Vec<Note>,
    /// The number of the last change of the bandwidth that it was told of.
    bandwidth_seen: u64,
}

impl Default for Member {
    fn default() -> Member {
        Member {
            weight: WEIGHT,
            ceiling: None,
            tokens: 0,
            moved: 0,
            paused: false,
            slots: 1,
            claim: None,
            demand: Demand::default(),
            fill: (0, 0),
            sampled_at: Instant::default(),
            served_at: None,
            notes: Vec::new(),
            bandwidth_seen: 0,
        }
    }
}

impl Member {
    /// Returns its demand. While it is paused, nothing of it is urgent.
    fn demand(&self) -> Demand {
        if self.paused {
            let none = Demand { level0_due: 0, writers_wait: false, ..self.demand };
            return Demand { debt: 0, debt_tolerated: 0, ..none };
        }
        self.demand
    }

    /// Returns true if its writers are held back, or will be if level 0 does not get smaller.
    fn is_late(&self) -> bool {
        let demand = self.demand();
        demand.writers_wait || demand.level0_is_late()
    }

    /// Returns the bytes a second that its clients write.
    fn fill_at(&self, now: Instant) -> u64 {
        let known = now.0.saturating_sub(self.sampled_at.0) < FILL_NS;
        if known { self.fill.0 } else { 0 }
    }

    fn has_clients(&self, now: Instant) -> bool {
        self.served_at.is_some_and(|at| now.0.saturating_sub(at.0) < SERVED_NS)
    }
}

/// All databases of the device.
#[derive(Clone, Debug)]
pub(super) struct Members {
    /// The one that asks.
    pub(super) current: DatabaseId,
    all: BTreeMap<DatabaseId, Member>,
    /// What a database that has left says of itself.
    gone: Member,
    /// Those that must be polled.
    restless: BTreeSet<DatabaseId>,
    /// Those for which there is a slot now.
    called: BTreeSet<DatabaseId>,
    refilled: Instant,
    /// The greedy one, and when it was last seen to be.
    greedy: Option<(DatabaseId, Instant)>,
    /// The last change of the bandwidth, and its number.
    bandwidth: (u64, Option<Note>),
}

impl Default for Members {
    fn default() -> Members {
        let current = DatabaseId::default();
        Members {
            current,
            all: BTreeMap::from([(current, Member::default())]),
            gone: Member::default(),
            restless: BTreeSet::new(),
            called: BTreeSet::new(),
            refilled: Instant::default(),
            greedy: None,
            bandwidth: (0, None),
        }
    }
}

impl Members {
    fn of(&self, database: DatabaseId) -> Option<&Member> {
        self.all.get(&database)
    }

    fn own(&mut self) -> &mut Member {
        self.all.get_mut(&self.current).unwrap_or(&mut self.gone)
    }

    fn all_but(&self, database: DatabaseId) -> impl Iterator<Item = &Member> {
        self.all.iter().filter(move |(id, _)| **id != database).map(|(_, member)| member)
    }

    fn is_shared(&self) -> bool {
        self.all.len() > 1
    }

    /// Returns what a database has moved, by weight; 0 if it is alone.
    pub(super) fn moved(&self, database: DatabaseId) -> u64 {
        if self.is_shared() { self.of(database).map_or(0, |member| member.moved) } else { 0 }
    }

    /// Lifts a database to what the others that work have moved. If there are none, nobody has been
    /// kept waiting, and what was moved before does not count any more. Otherwise the flush of a
    /// busy database would wait until those of all others have ended, for what it moved minutes
    /// ago.
    fn lift(&mut self, database: DatabaseId, working: &BTreeSet<DatabaseId>) {
        let others = working.iter().filter(|of| **of != database).filter_map(|of| self.of(*of));
        let moved = || others.clone().map(|member| member.moved);
        let (Some(least), Some(most)) = (moved().min(), moved().max()) else {
            return self.all.values_mut().for_each(|member| member.moved = 0);
        };
        // Another one may have little because it wanted little.
        let least = least.max(most.saturating_sub(CREDIT_BYTES));
        if let Some(member) = self.all.get_mut(&database) {
            member.moved = member.moved.max(least);
        }
    }

    /// Returns true if the work of a database is not paused.
    pub(super) fn works(&self, database: DatabaseId) -> bool {
        self.of(database).is_some_and(|member| !member.paused)
    }

    /// Returns true if the jobs of a database may move bytes.
    pub(super) fn may_move(&self, database: DatabaseId) -> bool {
        let holds =
            |member: &Member| member.paused || member.ceiling.is_some() && member.tokens <= 0;
        !self.of(database).is_some_and(holds)
    }

    /// Returns how long the ceiling holds the jobs of a database. `None` if they are another's than
    /// the one that asks, or paused.
    pub(super) fn wait_ns(&self, database: DatabaseId) -> Option<u64> {
        let member = self.of(database).filter(|_| database == self.current)?;
        if member.paused {
            return None;
        }
        let missing = u64::try_from(1 - member.tokens.min(1)).unwrap_or(0);
        Some(member.ceiling.map_or(0, |rate| scale(missing, NS_PER_SECOND, rate.max(1))))
    }

    /// Returns when the ceiling of the database that asks lets its jobs move again.
    pub(super) fn free_at(&self, database: DatabaseId) -> Option<Instant> {
        let wait_ns = self.wait_ns(database).filter(|wait| *wait > 0)?;
        Some(Instant(self.refilled.0.saturating_add(wait_ns.max(REFILL_NS))))
    }

    /// Adds what has collected below the ceilings. At most one of `slice` bytes may pass at once.
    pub(super) fn refill(&mut self, now: Instant, slice: u64) {
        let over_ns = now.0.saturating_sub(self.refilled.0);
        if over_ns < REFILL_NS {
            return;
        }
        self.refilled = now;
        for member in self.all.values_mut() {
            let Some(rate) = member.ceiling else { continue };
            let most = scale(rate, CEILING_NS, NS_PER_SECOND).max(slice);
            let collected = to_i64(scale(rate, over_ns, NS_PER_SECOND));
            member.tokens = member.tokens.saturating_add(collected).min(to_i64(most));
        }
    }

    /// Sets the demand of the database that asks, and returns that of all.
    pub(super) fn demand_of_all(&mut self, own: Demand) -> Demand {
        let writers_wait = self.own().demand.writers_wait;
        self.own().demand = Demand { writers_wait, ..own };
        self.demand()
    }

    /// Returns the demand of all.
    fn demand(&self) -> Demand {
        self.all.values().map(Member::demand).reduce(Demand::and).unwrap_or_default()
    }

    /// Sets whether the writers of the database that asks are held back. Returns the demand of all
    /// if that has changed.
    pub(super) fn set_writers_wait(&mut self, wait: bool) -> Option<Demand> {
        let own = &mut self.own().demand;
        let changed = std::mem::replace(&mut own.writers_wait, wait) != wait;
        changed.then(|| self.demand())
    }

    /// Looks whether a database is greedy: what is urgent is urgent to it alone, and others have
    /// clients.
    pub(super) fn look_for_greedy(&mut self, now: Instant) {
        let before = self.greedy.take();
        if !self.is_shared() {
            return;
        }
        let fills = self.all.iter().map(|(id, member)| (*id, member.fill_at(now)));
        let Some((most, fill)) = fills.max_by_key(|(_, fill)| *fill) else { return };
        let is_late = self.of(most).is_some_and(Member::is_late);
        let was = before.filter(|(greedy, _)| *greedy == most);
        if !is_late && was.is_none() {
            return;
        }
        let others = || self.all_but(most);
        if others().any(Member::is_late) || !others().any(|member| member.has_clients(now)) {
            return;
        }
        let times = if was.is_some() { 1 } else { GREEDY_TIMES };
        let written: u64 = others().map(|member| member.fill_at(now)).sum();
        self.greedy = if is_late && fill > written.saturating_mul(times) {
            Some((most, now))
        } else {
            was.filter(|(_, seen_at)| now.0.saturating_sub(seen_at.0) < GREEDY_NS)
        };
    }

    /// Returns true if a database is greedy.
    pub(super) fn one_is_greedy(&self) -> bool {
        self.greedy.is_some()
    }

    /// Returns true if this database is greedy.
    pub(super) fn is_greedy(&self, database: DatabaseId) -> bool {
        self.greedy.is_some_and(|(greedy, _)| greedy == database)
    }

    /// Returns the bytes a second that the clients of all but the greedy database write, if there
    /// is one.
    pub(super) fn written_beside_greedy(&self, now: Instant) -> Option<u64> {
        let (greedy, _) = self.greedy?;
        Some(self.all_but(greedy).map(|member| member.fill_at(now)).sum())
    }

    /// Returns the demand of all but the greedy database, if there is one.
    pub(super) fn beside_greedy(&self) -> Option<Demand> {
        let (greedy, _) = self.greedy?;
        self.all_but(greedy).map(Member::demand).reduce(Demand::and)
    }

    /// Adds a note for the database of a job.
    pub(super) fn note(&mut self, database: DatabaseId, note: Note) {
        if let Some(member) = self.all.get_mut(&database) {
            member.notes.push(note);
        }
        if database != self.current {
            self.restless.insert(database);
        }
    }

    /// Adds a note for all databases. Each takes it when it is polled.
    pub(super) fn note_bandwidth(&mut self, note: Note) {
        self.bandwidth = (self.bandwidth.0 + 1, Some(note));
    }
}

impl Demand {
    /// Returns the demand of two databases together.
    fn and(self, other: Demand) -> Demand {
        Demand {
            debt: self.debt.saturating_add(other.debt),
            debt_tolerated: self.debt_tolerated.saturating_add(other.debt_tolerated),
            level0_amplification: self.level0_amplification.max(other.level0_amplification),
            level0_due: self.level0_due.max(other.level0_due),
            writers_wait: self.writers_wait || other.writers_wait,
            memtable_bytes: self.memtable_bytes.max(other.memtable_bytes),
            ..self
        }
    }
}

impl IoScheduler {
    /// Adds a database.
    pub(crate) fn join(&mut self, database: DatabaseId) {
        let moved = self.members.all.values().map(|member| member.moved).min().unwrap_or(0);
        self.members.all.insert(database, Member { moved, ..Member::default() });
        self.queue_again();
    }

    /// Removes a database and its jobs.
    pub(crate) fn leave(&mut self, database: DatabaseId) {
        let own = self.jobs.iter().filter(|(_, job)| job.database == database);
        for job in own.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.remove(job);
        }
        self.members.all.remove(&database);
        self.members.restless.remove(&database);
        self.members.called.remove(&database);
        self.demand = self.members.demand();
        self.queue_again();
        self.call_next();
    }

    /// Says which database asks from now on.
    pub(crate) fn asks(&mut self, database: DatabaseId) {
        self.members.current = database;
    }

    /// Returns true if other databases share the device.
    pub(crate) fn is_shared(&self) -> bool {
        self.members.is_shared()
    }

    /// Removes and returns the databases that must be polled.
    pub(crate) fn take_restless(&mut self) -> BTreeSet<DatabaseId> {
        std::mem::take(&mut self.members.restless)
    }

    /// Sets the weight and the ceiling of the database that asks.
    pub(crate) fn set_share(&mut self, weight: u32, ceiling: Option<u64>) {
        let current = self.members.current;
        let own = self.members.own();
        own.weight = u64::from(weight).max(1);
        if own.ceiling != ceiling {
            (own.ceiling, own.tokens) = (ceiling, 0);
            let working = self.working();
            self.lift(current, &working);
        }
    }

    /// Gives a database that had nothing to do, or could not do it, no credit for that time.
    pub(super) fn begins(&mut self, database: DatabaseId) {
        let working = self.working();
        if !working.contains(&database) {
            self.lift(database, &working);
        }
    }

    /// Returns the databases that have jobs which may move bytes.
    fn working(&self) -> BTreeSet<DatabaseId> {
        let working = self.jobs.values().filter(|job| job.is_worked_on()).map(|job| job.database);
        working.filter(|id| self.members.may_move(*id)).collect()
    }

    fn lift(&mut self, database: DatabaseId, working: &BTreeSet<DatabaseId>) {
        if self.members.is_shared() {
            self.members.lift(database, working);
            self.queue_again();
        }
    }

    /// Sets whether the writers of the database that asks are held back.
    pub(crate) fn set_writers_wait(&mut self, wait: bool) {
        if let Some(all) = self.members.set_writers_wait(wait) {
            self.demand = all;
        }
    }

    /// Pauses or continues the jobs of the database that asks.
    pub(crate) fn set_paused(&mut self, paused: bool) {
        let current = self.members.current;
        self.begins(current);
        let own = self.members.own();
        own.paused = paused;
        if paused {
            own.claim = None;
        }
        self.demand = self.members.demand();
        self.call_next();
    }

    /// Removes and returns the notes for the observers of the database that asks.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        let (number, bandwidth) = self.members.bandwidth.clone();
        let own = self.members.own();
        let news = bandwidth.filter(|_| own.bandwidth_seen < number);
        own.bandwidth_seen = number;
        news.into_iter().chain(std::mem::take(&mut own.notes)).collect()
    }

    /// Records what the clients of the database that asks write, and into how many column families.
    pub(crate) fn set_fill(&mut self, fill: u64, written: u64) {
        self.members.own().fill = (fill, written);
    }

    /// Notes a sample of the database that asks, in which its clients were `served` or not.
    pub(crate) fn set_served(&mut self, now: Instant, served: bool) {
        let own = self.members.own();
        own.sampled_at = now;
        if served {
            own.served_at = Some(now);
        }
    }

    /// Returns the demand of all. A greedy database is left out of what is urgent, but not during a
    /// probe: that must be able to deliver what it asks for.
    pub(super) fn without_greedy(&self) -> Demand {
        let Some(others) = self.members.beside_greedy().filter(|_| !self.device.probes()) else {
            return Demand { overdue_ns: self.overdue_ns(), ..self.demand };
        };
        let overdue_ns = self.drain_ns(others.debt.saturating_sub(others.debt_tolerated));
        let Demand { writers_wait, level0_due, .. } = others;
        Demand { writers_wait, level0_due, overdue_ns, greedy: true, ..self.demand }
    }

    /// Returns whether the pace limits reads, and writes, so that background work could not use a
    /// higher estimate. A greedy database could, but a probe for it would harm others unless the
    /// device has little to do.
    pub(super) fn paced(&self) -> (bool, bool) {
        if self.members.one_is_greedy() && self.device.is_idle() {
            return (false, false);
        }
        self.allocation.paced
    }

    /// Returns the bytes a second that the clients of all databases write, and the number of
    /// databases that are written to.
    pub(crate) fn written_databases(&self) -> (u64, u64) {
        let members = self.members.all.values().filter(|member| member.fill.1 > 0);
        let fills = members.map(|member| member.fill_at(self.last_sample)).filter(|fill| *fill > 0);
        fills.fold((0, 0), |all, fill| (all.0.saturating_add(fill), all.1 + 1))
    }

    /// Charges bytes to a database, and gives its jobs their new places.
    pub(super) fn has_moved(&mut self, database: DatabaseId, bytes: u64) {
        let shared = self.members.is_shared();
        let Some(member) = self.members.all.get_mut(&database) else { return };
        if member.ceiling.is_some() {
            member.tokens = member.tokens.saturating_sub(to_i64(bytes));
        }
        if !shared || bytes == 0 {
            return;
        }
        member.moved = member.moved.saturating_add(scale(bytes, WEIGHT, member.weight));
        self.queue_again();
    }

    /// Sorts the queue anew, as the places of jobs depend on options and on what databases have
    /// moved.
    pub(super) fn queue_again(&mut self) {
        let place = |(job, running): (&JobId, &Running)| match running.state {
            RunningState::Waiting(arrival) => Some(self.key(*job, running, arrival)),
            RunningState::Granted(..) | RunningState::Away => None,
        };
        self.queue = self.jobs.iter().filter_map(place).collect();
    }

    /// Returns true if a job may get its grant now: it belongs to the database that asks. Another
    /// one must be polled.
    pub(super) fn is_served_now(&mut self, job: JobId) -> bool {
        let Some(database) = self.jobs.get(&job).map(|job| job.database) else { return false };
        let own = database == self.members.current;
        if !own {
            self.members.restless.insert(database);
        }
        own
    }

    /// Returns the jobs of the databases that are not paused.
    pub(super) fn unpaused_jobs(&self) -> impl Iterator<Item = &Running> {
        self.jobs.values().filter(move |job| self.members.works(job.database))
    }
}

#[cfg(test)]
mod tests;
