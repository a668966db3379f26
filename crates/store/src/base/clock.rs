//! The engine's clock, and the virtual clock of simulations. No other module reads the system's
//! clock.
//!
//! 1. [`now`] reads the monotonic clock. If the thread has [`VirtualTime`], it returns the virtual
//!    time instead.
//! 2. [`advance`] moves virtual time forward when the simulation says that something took time.
//! 3. [`wait`] waits on a condition variable. In virtual time it calls the simulation's [`Pass`]
//!    function, which runs background work or advances the clock.
//! 4. [`sleep`] only lets time pass. It panics if nothing else happens for ten virtual minutes.
//! 5. [`computed`] tells the simulation what a step of the background computed. Its [`Compute`]
//!    function says how long that took, and for how much of it there was no processor.
//! 6. [`virtual_processors`] says how other programs use the processors of a simulated machine.
//!
//! What must stay true: without virtual time, [`now`] costs one inlined call of the system's clock
//! and one load of a flag that is never written.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sateen_control::Processors;

use crate::base::sync::{self, Condvar, Mutex, MutexGuard};

/// True once any thread of the process has had virtual time. It never becomes false again.
static ANY_VIRTUAL: AtomicBool = AtomicBool::new(false);

thread_local! {
    static VIRTUAL: RefCell<Option<Virtual>> = const { RefCell::new(None) };
}

/// Longest virtual time in which a thread may wait without anything else happening. The engine's
/// own timeouts are seconds, so a longer wait is a lost wake-up.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// Lets time pass while a thread waits, at most for the given duration.
pub type Pass = Rc<dyn Fn(Duration)>;

/// How long computing takes in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Computed {
    /// CPU time.
    pub cpu: Duration,
    /// Time in which other programs had the processors.
    pub waited: Duration,
}

/// Returns how long the computing for that many bytes takes.
pub type Compute = Rc<dyn Fn(u64) -> Computed>;

/// Returns how the processors of the simulated machine are used.
pub type Host = Rc<dyn Fn() -> Processors>;

struct Virtual {
    begin: Instant,
    passed: Duration,
    /// The part of `passed` in which the thread computed.
    cpu: Duration,
    pass: Option<Pass>,
    compute: Option<Compute>,
    host: Option<Host>,
    /// Whether `pass` was set. `pass` itself is `None` while it runs.
    has_pass: bool,
    /// The part of `passed` since something last happened: only waits.
    idle: Duration,
    /// State of the generator behind [`next_random`].
    seed: u64,
}

/// Makes time virtual on its thread, for every database that the thread drives, until it is
/// dropped. Those databases must have no threads of their own.
pub struct VirtualTime(PhantomData<Rc<()>>);

impl VirtualTime {
    /// Begins at 0. The engine's random numbers follow from `seed`.
    ///
    /// # Panics
    /// If the thread has virtual time already.
    #[must_use]
    pub fn begin(seed: u64) -> VirtualTime {
        let begun = Virtual {
            begin: Instant::now(),
            passed: Duration::ZERO,
            cpu: Duration::ZERO,
            pass: None,
            compute: None,
            host: None,
            has_pass: false,
            idle: Duration::ZERO,
            seed,
        };
        let before = VIRTUAL.with(|time| time.borrow_mut().replace(begun));
        assert!(before.is_none(), "the thread has virtual time already");
        ANY_VIRTUAL.store(true, Ordering::Relaxed);
        VirtualTime(PhantomData)
    }

    /// Sets the function that runs while this thread waits for background work. It is called again
    /// and again, and either does some of that work or lets time pass. With `None`, time just
    /// passes.
    pub fn on_wait(&self, pass: Option<Pass>) {
        VIRTUAL.with(|time| {
            if let Some(time) = &mut *time.borrow_mut() {
                time.has_pass = pass.is_some();
                time.pass = pass;
            }
        });
    }

    /// Sets how long the steps of the background compute. Without it they compute in no time.
    pub fn on_compute(&self, compute: Option<Compute>) {
        VIRTUAL.with(|time| {
            if let Some(time) = &mut *time.borrow_mut() {
                time.compute = compute;
            }
        });
    }

    /// Sets how the processors are used. Without it nobody else uses them.
    pub fn on_host(&self, host: Option<Host>) {
        VIRTUAL.with(|time| {
            if let Some(time) = &mut *time.borrow_mut() {
                time.host = host;
            }
        });
    }
}

impl Drop for VirtualTime {
    fn drop(&mut self) {
        // While the thread ends, its thread-local may be gone already.
        let _gone = VIRTUAL.try_with(RefCell::take);
    }
}

/// Returns the virtual time of this thread, which begins at 0.
#[must_use]
pub fn virtual_time() -> Option<Duration> {
    VIRTUAL.with(|time| time.borrow().as_ref().map(|time| time.passed))
}

/// Advances this thread's virtual time, if it has any, for something that was done or decided.
pub fn advance(by: Duration) {
    VIRTUAL.with(|time| {
        if let Some(time) = &mut *time.borrow_mut() {
            time.passed += by;
            time.idle = Duration::ZERO;
        }
    });
}

/// Lets the time pass in which this thread computed something for `bytes` bytes. Only virtual time
/// has to be told.
pub fn computed(bytes: u64) {
    if !is_virtual() {
        return;
    }
    let compute = VIRTUAL.with(|time| time.borrow().as_ref().and_then(|time| time.compute.clone()));
    let Some(compute) = compute else { return };
    let Computed { cpu, waited } = compute(bytes);
    advance(cpu + waited);
    VIRTUAL.with(|time| {
        if let Some(time) = &mut *time.borrow_mut() {
            time.cpu += cpu;
        }
    });
}

/// Returns the virtual time that this thread has computed.
#[must_use]
pub fn virtual_cpu_time() -> Option<Duration> {
    VIRTUAL.with(|time| time.borrow().as_ref().map(|time| time.cpu))
}

/// Returns how the processors of the simulated machine are used.
#[must_use]
pub fn virtual_processors() -> Processors {
    let host = VIRTUAL.with(|time| time.borrow().as_ref().and_then(|time| time.host.clone()));
    host.map_or_else(Processors::default, |host| host())
}

/// Returns the current time: virtual if the thread has virtual time.
#[inline]
pub fn now() -> Instant {
    if ANY_VIRTUAL.load(Ordering::Relaxed) {
        return virtual_now();
    }
    Instant::now()
}

#[cold]
#[inline(never)]
fn virtual_now() -> Instant {
    let now = |time: &RefCell<Option<Virtual>>| {
        time.borrow().as_ref().map(|time| time.begin + time.passed)
    };
    VIRTUAL.try_with(now).ok().flatten().unwrap_or_else(Instant::now)
}

/// Returns the time that has passed since `then`.
#[inline]
pub fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}

/// Returns true if this thread has virtual time.
pub fn is_virtual() -> bool {
    ANY_VIRTUAL.load(Ordering::Relaxed) && virtual_time().is_some()
}

/// Returns true if a [`Pass`] function does the background work while this thread waits.
pub fn is_passed() -> bool {
    let has_pass =
        |time: &RefCell<Option<Virtual>>| time.borrow().as_ref().is_some_and(|time| time.has_pass);
    ANY_VIRTUAL.load(Ordering::Relaxed) && VIRTUAL.try_with(has_pass).unwrap_or(false)
}

/// Returns the next number of the virtual time's sequence; `None` without virtual time.
pub fn next_random() -> Option<u64> {
    VIRTUAL.with(|time| {
        let mut time = time.borrow_mut();
        let time = time.as_mut()?;
        time.seed = time.seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        Some(time.seed ^ (time.seed >> 32))
    })
}

/// Sleeps for `most`, whatever other work there is.
pub fn sleep(most: Duration) {
    if !is_virtual() {
        return sync::sleep(most);
    }
    let idle = VIRTUAL.with(|time| {
        let mut time = time.borrow_mut();
        let time = time.as_mut()?;
        time.passed += most;
        time.idle += most;
        Some(time.idle)
    });
    // In virtual time no other thread can end this wait.
    let idle = idle.unwrap_or_default();
    assert!(
        idle < FORGOTTEN_AFTER,
        "a thread waits in virtual time for an event that cannot come, for {idle:?}"
    );
}

/// Waits until `changed` is notified, at most for `most`. On a thread with virtual time, background
/// work runs meanwhile, so the caller must hold no lock other than `guard`.
pub fn wait<'a, T>(
    changed: &Condvar,
    mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    most: Duration,
) {
    if is_virtual() {
        drop(guard);
        pass(most);
    } else {
        drop(sync::wait_timeout(changed, mutex, guard, most));
    }
}

fn pass(most: Duration) {
    // The function may wait itself. It is taken out meanwhile, so that in a nested wait time just
    // passes.
    let pass = VIRTUAL.with(|time| time.borrow_mut().as_mut().and_then(|time| time.pass.take()));
    let Some(pass) = pass else { return advance(most) };
    pass(most);
    VIRTUAL.with(|time| {
        if let Some(time) = &mut *time.borrow_mut() {
            time.pass.get_or_insert(pass);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use super::*;
    use crate::base::sync::lock;

    #[test]
    fn virtual_time_passes_where_it_is_told_to_and_on_its_thread_alone() {
        let time = VirtualTime::begin(1);
        let start = now();
        assert_eq!(since(start), Duration::ZERO);
        advance(Duration::from_secs(3600));
        sleep(Duration::from_secs(1));
        assert_eq!(since(start), Duration::from_secs(3601));
        assert_eq!(virtual_time(), Some(Duration::from_secs(3601)));
        let elsewhere = std::thread::spawn(|| (virtual_time(), is_virtual())).join().unwrap();
        assert_eq!(elsewhere, (None, false));
        drop(time);
        assert!(!is_virtual() && now() < start + Duration::from_secs(3600));
    }

    #[test]
    fn computing_takes_what_the_simulation_says() {
        let time = VirtualTime::begin(1);
        computed(1000);
        assert_eq!([virtual_time(), virtual_cpu_time()], [Some(Duration::ZERO); 2]);
        time.on_compute(Some(Rc::new(|bytes| Computed {
            cpu: Duration::from_nanos(bytes),
            waited: Duration::from_nanos(3 * bytes),
        })));
        computed(1000);
        assert_eq!(virtual_time(), Some(Duration::from_micros(4)));
        assert_eq!(virtual_cpu_time(), Some(Duration::from_micros(1)));
    }

    #[test]
    #[should_panic(expected = "a thread waits in virtual time for an event that cannot come")]
    fn an_endless_wait_in_virtual_time_panics() {
        let _time = VirtualTime::begin(1);
        for _ in 0..1000 {
            sleep(Duration::from_secs(1));
        }
    }

    #[test]
    fn a_wait_runs_background_work_and_a_nested_wait_does_not() {
        let time = VirtualTime::begin(1);
        let (mutex, changed) = (Arc::new(Mutex::new(())), Arc::new(Condvar::new()));
        let calls = Rc::new(Cell::new(0));
        let pass: Pass = {
            let (mutex, changed, calls) = (mutex.clone(), changed.clone(), calls.clone());
            Rc::new(move |most| {
                calls.set(calls.get() + 1);
                // A nested wait does not call this function again.
                wait(&changed, &mutex, lock(&mutex), most / 2);
            })
        };
        time.on_wait(Some(pass));
        for turn in 1..=3 {
            wait(&changed, &mutex, lock(&mutex), Duration::from_millis(10));
            assert_eq!(calls.get(), turn);
            assert_eq!(virtual_time(), Some(Duration::from_millis(5 * turn)));
        }
    }
}
