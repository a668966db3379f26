//! What the databases on one device share: the scheduler of control, and the threads.
//!
//! 1. [`Device::join`] makes the control plane of a database, [`Device::leave`] ends it.
//! 2. [`Device::enlist`] adds a database to those that the threads work for, and starts threads
//!    that are missing. [`Device::retire`] removes it, and stops the threads after the last one.
//! 3. [`Device::call`] and [`Device::call_for_chores`] say that a database wants something.
//! 4. [`Device::relieve`] adds a thread if all are held, for instance by callbacks of the user.
//!
//! What must stay true: no thread holds a lock of the device while it works for a database. A
//! database that is retired waits only for threads that are at work for it. The one whose last work
//! ends last ends the threads, which have nothing to do then.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sateen_control::{ControlOptions, ControlPlane, DatabaseId, Instant, SharedScheduler};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::locks::lock_timed;
use sateen_store::base::sync::atomic::{AtomicBool, Ordering};
use sateen_store::base::sync::{Condvar, Mutex, lock, thread, wait_timeout};

use super::queue::{Queue, Work};
use super::{Tenant, threads};

/// Options of scheduling by name, as text.
pub(crate) type Scheduling = Vec<(&'static str, String)>;

/// The most threads that do chores, unless they are held.
const CHORES_THREADS_MAX: usize = 4;
/// A thread that has worked for one database for as long as this is held, in nanoseconds.
const HELD_NS: u64 = 1_000_000_000;
/// The most threads of a kind that are added because others are held.
const RELIEF_MAX: usize = 16;
/// The longest wait for a thread that leaves a database; then its end is looked for again.
const LEAVE_WAIT: Duration = Duration::from_millis(100);

/// The threads of a device.
#[derive(Default)]
struct Crew {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
    sampler: bool,
    workers: usize,
    chores: usize,
    /// Threads that were added because others are held: workers, and those of chores.
    relief: [usize; 2],
    nice: u32,
}

impl Crew {
    /// Starts a thread that does chores.
    fn add_chores(&mut self, device: &Arc<Device>) -> Result<()> {
        let (device, stop) = (device.clone(), self.stop.clone());
        let run = move || threads::do_chores(&device, &stop);
        self.threads.push(threads::start("sateen-chores", self.nice, None, run)?);
        self.chores += 1;
        Ok(())
    }

    /// Starts a thread that steps jobs.
    fn add_worker(&mut self, device: &Arc<Device>) -> Result<()> {
        let (device, stop) = (device.clone(), self.stop.clone());
        let run = move || threads::work(&device, &stop);
        let number = u32::try_from(self.workers).unwrap_or(u32::MAX);
        let name = format!("sateen-work-{number}");
        self.threads.push(threads::start(&name, self.nice, Some(number), run)?);
        self.workers += 1;
        Ok(())
    }
}

/// A device, with all databases of a runtime on it.
pub(crate) struct Device {
    /// The moment at which control's clock was zero.
    pub(crate) start: std::time::Instant,
    /// The scheduler. Drivers lend it to their control planes under this lock.
    pub(crate) scheduler: Mutex<SharedScheduler>,
    pub(super) queue: Mutex<Queue>,
    /// Signalled if a database wants a step, or its chores, or if a thread has left one.
    pub(super) steps: Condvar,
    pub(super) chores: Condvar,
    left: Condvar,
    crew: Mutex<Crew>,
    /// The options of scheduling in force.
    scheduling: Mutex<Scheduling>,
}

impl Device {
    /// Returns a device without databases. `hint` is what is believed of it.
    pub(crate) fn new(options: &ControlOptions, scheduling: Scheduling) -> Device {
        Device {
            start: clock::now(),
            scheduler: Mutex::new(SharedScheduler::new(options)),
            queue: Mutex::default(),
            steps: Condvar::new(),
            chores: Condvar::new(),
            left: Condvar::new(),
            crew: Mutex::default(),
            scheduling: Mutex::new(scheduling),
        }
    }

    /// Returns the current time on control's clock.
    pub(crate) fn now(&self) -> Instant {
        Instant(u64::try_from(clock::since(self.start).as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns the options of scheduling in force.
    pub(crate) fn scheduling(&self) -> Scheduling {
        lock(&self.scheduling).clone()
    }

    /// Notes that a database has changed the options of scheduling, which all share.
    pub(crate) fn set_scheduling(&self, scheduling: Scheduling) {
        *lock(&self.scheduling) = scheduling;
    }

    /// Returns the control plane of a further database.
    pub(crate) fn join(&self, options: ControlOptions) -> ControlPlane {
        lock(&self.scheduler).join(options)
    }

    /// Removes a database from the scheduler.
    pub(crate) fn leave(&self, database: DatabaseId) {
        let mut scheduler = lock(&self.scheduler);
        scheduler.leave(database);
        self.call_all(scheduler.take_restless());
    }

    /// Returns the number of databases that the threads work for.
    pub(crate) fn databases(&self) -> usize {
        lock(&self.queue).members.len()
    }

    /// Returns the number of threads.
    pub(crate) fn threads(&self) -> usize {
        lock(&self.crew).threads.len()
    }

    /// Has the threads work for a database, `workers` of them at the same time. They are started if
    /// there are fewer, and all but the sampler get the CPU priority `nice`.
    pub(crate) fn enlist(
        self: &Arc<Self>,
        database: DatabaseId,
        member: Arc<dyn Tenant>,
        workers: u32,
        nice: u32,
    ) -> Result<()> {
        let mut crew = lock(&self.crew);
        let databases = {
            let mut queue = lock(&self.queue);
            queue.add(database, member);
            queue.members.len()
        };
        crew.nice = nice;
        // The sampler keeps its priority. It sets the write rate of clients, so it must not wait
        // behind background work.
        if !crew.sampler {
            let (device, stop) = (self.clone(), crew.stop.clone());
            let run = move || threads::sample(&device, &stop);
            crew.threads.push(threads::start("sateen-sample", 0, None, run)?);
            crew.sampler = true;
        }
        while crew.chores < databases.min(CHORES_THREADS_MAX) {
            crew.add_chores(self)?;
        }
        while crew.workers < workers as usize {
            crew.add_worker(self)?;
        }
        drop(crew);
        self.steps.notify_one();
        self.chores.notify_one();
        Ok(())
    }

    /// Adds a thread for each kind of work for which all threads are held, so that a callback of
    /// one database that waits for another one ends. `stop` is the caller's.
    pub(super) fn relieve(self: &Arc<Self>, stop: &Arc<AtomicBool>) {
        let now = self.now();
        let before = Instant(now.0.saturating_sub(HELD_NS));
        let held = {
            let queue = lock(&self.queue);
            [Work::Step, Work::Chores].map(|work| queue.held(work, before, now))
        };
        if held == [0, 0] {
            return;
        }
        let mut crew = lock(&self.crew);
        // After the end of its crew the caller may meet the next one.
        if !Arc::ptr_eq(&crew.stop, stop) {
            return;
        }
        // A failure to start a thread is no worse than not to try.
        if held[0] >= crew.workers && crew.relief[0] < RELIEF_MAX {
            crew.relief[0] += usize::from(crew.add_worker(self).is_ok());
        }
        if held[1] >= crew.chores && crew.relief[1] < RELIEF_MAX {
            crew.relief[1] += usize::from(crew.add_chores(self).is_ok());
        }
    }

    /// Ends the work for a database. Returns once no other thread is at work for it. If no other
    /// database is left, the threads end.
    pub(crate) fn retire(&self, database: DatabaseId) {
        let mut queue = lock(&self.queue);
        if !queue.members.contains_key(&database) {
            return;
        }
        queue.remove(database);
        queue.leaving += 1;
        while queue.is_used(database) {
            queue = wait_timeout(&self.left, &self.queue, queue, LEAVE_WAIT);
        }
        queue.leaving -= 1;
        drop(queue);
        let ended = {
            let mut crew = lock(&self.crew);
            let mut queue = lock(&self.queue);
            // A thread that still works for another database would be waited for below.
            let last = queue.members.is_empty() && queue.leaving == 0;
            if last {
                // The threads of the next crew would rely on those of this one.
                queue.end_watches();
            }
            let ended = if last { std::mem::take(&mut *crew) } else { Crew::default() };
            // Under the lock of the queue, or a thread could look before and sleep after.
            ended.stop.store(true, Ordering::Release);
            ended
        };
        self.steps.notify_all();
        self.chores.notify_all();
        let own = thread::current().id();
        for thread in ended.threads {
            // A thread of the device may drop the last handle, and must not join itself.
            if thread.thread().id() != own {
                let _panicked = thread.join();
            }
        }
    }

    /// Says that a database may have work. It is called on the client path, and work is never done
    /// under the lock that it takes.
    pub(crate) fn call(&self, database: DatabaseId) {
        if lock_timed(&self.queue).call(database) {
            self.steps.notify_one();
        }
    }

    /// Says that several databases may have work.
    pub(crate) fn call_all(&self, databases: BTreeSet<DatabaseId>) {
        databases.into_iter().for_each(|database| self.call(database));
    }

    /// Says that a database may have chores.
    pub(crate) fn call_for_chores(&self, database: DatabaseId) {
        let now = self.now();
        if lock_timed(&self.queue).call_for_chores(database, now) {
            self.chores.notify_one();
        }
    }

    /// Does something for a database outside the locks. A panic ends only that, and the database
    /// hears of it.
    pub(super) fn work_for<R>(
        &self,
        (database, member): (DatabaseId, Arc<dyn Tenant>),
        work: impl FnOnce(&dyn Tenant) -> R,
    ) -> Option<R> {
        let run = std::panic::AssertUnwindSafe(|| work(member.as_ref()));
        // Without this the job would stay unfinished, and a client that waits for it would wait for
        // ever. A listener that hears of a panic may panic, too.
        let done = std::panic::catch_unwind(run);
        let told = |panic: Box<dyn std::any::Any + Send>| {
            let tell = std::panic::AssertUnwindSafe(|| member.panicked(&panicked(panic.as_ref())));
            let _panicked = std::panic::catch_unwind(tell);
        };
        let done = done.map_err(told).ok();
        // The last reference may be this one, and dropping a database takes its time.
        drop(member);
        if lock(&self.queue).exit(database) {
            self.left.notify_all();
        }
        done
    }
}

/// Returns the error that says which thread panicked, and with which message.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Error {
    let texts = [panic.downcast_ref::<&str>().copied(), panic.downcast_ref().map(String::as_str)];
    let message = texts.into_iter().flatten().next().unwrap_or("no text").to_owned();
    let thread = thread::current().name().unwrap_or_default().to_owned();
    Error::Panicked { thread, message }
}
