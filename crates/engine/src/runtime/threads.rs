//! The only place that starts threads (ARCHITECTURE.md, invariant 2): for each device one that
//! takes samples, some that do chores, and workers that step jobs, one for each backup that is made
//! and each trace that is recorded, and those that replay a trace. All but the first and the last
//! run at a lower CPU priority than clients.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sateen_control::{Instant, SAMPLE_PERIOD, Sample};
use sateen_store::base::clock;
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::atomic::{AtomicBool, Ordering};
use sateen_store::base::sync::{Mutex, lock, thread, wait_timeout};
use sateen_store::base::waited;
use sateen_store::vfs::HostMeter;

use super::device::Device;
use super::queue::{LOOKS, Samples, Work};
use super::{Sampled, Stepped};

/// The longest sleep of a thread that nothing calls.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The period of samples while no database does anything.
const IDLE_SAMPLE_PERIOD: Duration = Duration::from_millis(50);
/// The pause of the chores of a database after one that panicked.
const PANIC_PAUSE: Duration = Duration::from_secs(1);
/// The period of samples while all databases are at rest. Each is looked at once a second.
const REST_SAMPLE_PERIOD: Duration = Duration::from_millis(1000 / LOOKS as u64);

/// The least that lowers the priority of work that a client asked for and that competes with
/// clients for a processor.
const LOW_NICE: u32 = 10;

/// The lowest priority, as a nice value.
const NICE_MAX: i32 = 19;

/// A sample that is this late is recorded: the thread waited for a processor.
const LATE_MIN: Duration = Duration::from_millis(5);

/// Starts a thread. `nice` lowers its CPU priority, and `worker` is its number in the timeline.
pub(super) fn start(
    name: &str,
    nice: u32,
    worker: Option<u32>,
    work: impl FnOnce() + Send + 'static,
) -> Result<thread::JoinHandle<()>> {
    let run = move || {
        if nice > 0 {
            lower_priority(nice);
        }
        let number = worker.map(|worker| u8::try_from(worker).unwrap_or(u8::MAX));
        waited::set_worker(number.map_or(waited::CHORES, |worker| worker.min(waited::CHORES - 1)));
        work();
    };
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|error| Error::io("start thread for", Path::new("the pool"), error))
}

/// Does `work` on a thread whose CPU priority is lower than that of all others, and waits for it.
/// The calling thread does it if `nice` is 0, in virtual time, and if no thread can be started.
pub(crate) fn with_low_priority<T: Send>(
    name: &str,
    nice: u32,
    work: impl FnOnce() -> T + Send,
) -> T {
    if nice == 0 || clock::is_virtual() {
        return work();
    }
    // Whoever does it takes it out, so that it is there if there is no thread.
    let work = Mutex::new(Some(work));
    let done = std::thread::scope(|scope| {
        let run = || {
            lower_priority(nice.max(LOW_NICE));
            lock(&work).take().map(|work| work())
        };
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, run);
        spawned.ok().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    match done.flatten() {
        Some(done) => done,
        None => {
            let work = lock(&work).take().expect("no thread was started, so nobody took it");
            work()
        }
    }
}

/// Starts the thread that writes the file of a trace.
pub(crate) fn start_trace(work: impl FnOnce() + Send + 'static) -> Result<thread::JoinHandle<()>> {
    start("sateen-trace", LOW_NICE, None, work)
}

/// Runs `work` on `count` threads while `act` runs on the calling one, and returns when all have
/// ended. `act` is told how many threads there are: fewer if no more could be started.
pub(crate) fn beside<T>(
    name: &str,
    count: u32,
    work: impl Fn() + Sync,
    act: impl FnOnce(u32) -> T,
) -> T {
    let work = &work;
    std::thread::scope(|scope| {
        let spawn = || {
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn_scoped(scope, work).ok()
        };
        let started = (0..count).map_while(|_| spawn()).count();
        act(u32::try_from(started).unwrap_or(count))
    })
}

fn wait_until(device: &Device, at: Option<Instant>) -> Duration {
    at.map_or(WAIT_MAX, |at| at.since(device.now()).min(WAIT_MAX))
}

/// Steps jobs of the databases in turn.
pub(super) fn work(device: &Device, stop: &AtomicBool) {
    loop {
        let mut queue = lock(&device.queue);
        let next = loop {
            if stop.load(Ordering::Acquire) {
                return;
            }
            match queue.next_step(device.now()) {
                Some(next) => break next,
                None => {
                    let wait = wait_until(device, queue.watch_steps());
                    queue = wait_timeout(&device.steps, &device.queue, queue, wait);
                }
            }
        };
        // This thread has watched for the next timer so far.
        if queue.has_more_steps() {
            device.steps.notify_one();
        }
        drop(queue);
        let database = next.0;
        match device.work_for(next, |member| member.step()) {
            Some(Stepped::Worked) => device.call(database),
            Some(Stepped::Idle(Some(at))) => lock(&device.queue).step_at(database, at),
            Some(Stepped::Idle(None)) | None => {}
        }
    }
}

/// Does the chores of the databases in turn.
pub(super) fn do_chores(device: &Device, stop: &AtomicBool) {
    loop {
        let mut queue = lock(&device.queue);
        let next = loop {
            if stop.load(Ordering::Acquire) {
                return;
            }
            match queue.next_chores(device.now()) {
                Some(next) => break next,
                None => {
                    let wait = wait_until(device, queue.watch_chores());
                    queue = wait_timeout(&device.chores, &device.queue, queue, wait);
                }
            }
        };
        if queue.has_more_chores() {
            device.chores.notify_one();
        }
        let slower = queue.slower(next.0);
        drop(queue);
        let database = next.0;
        let done = device.work_for(next, |member| member.chores(slower));
        let mut queue = lock(&device.queue);
        match done {
            Some(done) => queue.chores_done(database, done.again, done.rests),
            None => queue.chores_panicked(database, device.now() + PANIC_PAUSE),
        }
    }
}

/// Takes samples of the databases that are not at rest, of many small ones in turn, looks whether
/// the others are at rest, and whether threads are held.
pub(super) fn sample(device: &Arc<Device>, stop: &Arc<AtomicBool>) {
    let enter = |database| lock(&device.queue).enter(database, Work::Sample, Instant::default());
    let mut late_ns = 0;
    let mut rounds_quiet = 0;
    let mut host = HostMeter::default();
    while !stop.load(Ordering::Acquire) {
        let Samples { now: mut awake, looked, turns } = lock(&device.queue).next_samples();
        let mut woken = Vec::new();
        for database in looked {
            let news =
                enter(database).and_then(|next| device.work_for(next, |member| member.has_news()));
            if news == Some(true) {
                device.call_for_chores(database);
                woken.push(database);
            }
        }
        awake.extend(&woken);
        let mut total = Sample { processors: host.look(), ..Sample::default() };
        let mut samples = Vec::new();
        for database in awake {
            let taken = enter(database)
                .and_then(|next| device.work_for(next, |member| member.take_sample()));
            if let Some(sample) = taken {
                total.add(&sample);
                samples.push((database, sample));
            }
        }
        let any = !samples.is_empty();
        rounds_quiet += 1;
        {
            let mut scheduler = lock(&device.scheduler);
            scheduler.sample(device.now(), &total);
            device.call_all(scheduler.take_restless());
        }
        for (database, sample) in samples {
            // Of what it does since it woke, the sample shows next to nothing.
            let is_small = !woken.contains(&database) && sample.is_small_part_of(&total);
            let sampled = enter(database)
                .and_then(|next| device.work_for(next, |member| member.sampled(sample, late_ns)));
            lock(&device.queue).set_small(database, is_small && sampled != Some(Sampled::Busy));
            if sampled != Some(Sampled::Quiet) {
                rounds_quiet = 0;
            }
        }
        let period = match any {
            _ if rounds_quiet < turns => SAMPLE_PERIOD,
            true => IDLE_SAMPLE_PERIOD,
            false => REST_SAMPLE_PERIOD,
        };
        device.relieve(stop);
        let asleep = clock::now();
        clock::sleep(period);
        let late = clock::since(asleep).saturating_sub(period);
        let is_late = late >= LATE_MIN && !clock::is_virtual();
        late_ns = if is_late { u64::try_from(late.as_nanos()).unwrap_or(u64::MAX) } else { 0 };
    }
}

/// Lowers the calling thread's CPU priority below what it inherited. If the process lacks the
/// right, it stays as it is.
fn lower_priority(nice: u32) {
    let own = rustix::thread::gettid();
    let before = rustix::process::getpriority_process(Some(own)).unwrap_or(0);
    let nice = i32::try_from(nice).map_or(NICE_MAX, |nice| before.saturating_add(nice));
    let _refused = rustix::process::setpriority_process(Some(own), nice.min(NICE_MAX));
}
