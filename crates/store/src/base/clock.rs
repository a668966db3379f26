//! What time it is: the one place where the engine asks. That is the monotonic clock, unless the
//! thread has virtual time, which a simulation gives it: then time passes where the simulation says
//! so and nowhere else, and who would wait lets it pass.
//!
//! What must stay true: without virtual time a look at the clock is the system's, inlined, and one
//! load of a flag that nobody writes.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::base::sync::{self, Condvar, Mutex, MutexGuard};

/// Some thread of the process has virtual time, or had it.
static ANY_VIRTUAL: AtomicBool = AtomicBool::new(false);

thread_local! {
    static VIRTUAL: RefCell<Option<Virtual>> = const { RefCell::new(None) };
}

/// Who has waited so long in virtual time, and nothing was read or written meanwhile, is forgotten:
/// what the engine waits for at most before it does something again are seconds.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// What lets time pass while somebody waits: so long at most.
pub type Pass = Rc<dyn Fn(Duration)>;

struct Virtual {
    begin: Instant,
    passed: Duration,
    pass: Option<Pass>,
    /// There is one, which may be at work now.
    has_pass: bool,
    /// Of it, the last part in which there was nothing but waiting.
    idle: Duration,
    /// Where numbers come from that are random otherwise.
    seed: u64,
}

/// While it is there, time on its thread is virtual, for every database that the thread drives.
/// Those must have no threads of their own.
pub struct VirtualTime(PhantomData<Rc<()>>);

impl VirtualTime {
    /// Begins at 0; what else is random in the engine follows from `seed`.
    ///
    /// # Panics
    /// If the thread has virtual time already.
    #[must_use]
    pub fn begin(seed: u64) -> VirtualTime {
        let begun = Virtual {
            begin: Instant::now(),
            passed: Duration::ZERO,
            pass: None,
            has_pass: false,
            idle: Duration::ZERO,
            seed,
        };
        let before = VIRTUAL.with(|time| time.borrow_mut().replace(begun));
        assert!(before.is_none(), "the thread has virtual time already");
        ANY_VIRTUAL.store(true, Ordering::Relaxed);
        VirtualTime(PhantomData)
    }

    /// Who waits for background work has `pass` called again and again: it does some of that work,
    /// or lets time pass. Without one, time just passes.
    pub fn on_wait(&self, pass: Option<Pass>) {
        VIRTUAL.with(|time| {
            if let Some(time) = &mut *time.borrow_mut() {
                time.has_pass = pass.is_some();
                time.pass = pass;
            }
        });
    }
}

impl Drop for VirtualTime {
    fn drop(&mut self) {
        // A thread that ends has none either.
        let _gone = VIRTUAL.try_with(RefCell::take);
    }
}

/// The virtual time of this thread, from 0.
#[must_use]
pub fn virtual_time() -> Option<Duration> {
    VIRTUAL.with(|time| time.borrow().as_ref().map(|time| time.passed))
}

/// Lets virtual time pass on this thread, if it has any: something was done, or decided.
pub fn advance(by: Duration) {
    VIRTUAL.with(|time| {
        if let Some(time) = &mut *time.borrow_mut() {
            time.passed += by;
            time.idle = Duration::ZERO;
        }
    });
}

/// What time it is.
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

/// How long ago `then` was.
#[inline]
pub fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}

/// Whether this thread has virtual time.
pub fn is_virtual() -> bool {
    ANY_VIRTUAL.load(Ordering::Relaxed) && virtual_time().is_some()
}

/// Whether background work is done by what passes the time of this thread while somebody waits.
pub fn is_passed() -> bool {
    let has_pass =
        |time: &RefCell<Option<Virtual>>| time.borrow().as_ref().is_some_and(|time| time.has_pass);
    ANY_VIRTUAL.load(Ordering::Relaxed) && VIRTUAL.try_with(has_pass).unwrap_or(false)
}

/// A number that is the next of a sequence on a thread with virtual time.
pub fn next_random() -> Option<u64> {
    VIRTUAL.with(|time| {
        let mut time = time.borrow_mut();
        let time = time.as_mut()?;
        time.seed = time.seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        Some(time.seed ^ (time.seed >> 32))
    })
}

/// Does nothing for so long, whatever else there is to do.
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
    // In virtual time nobody else will ever do anything.
    let idle = idle.unwrap_or_default();
    assert!(idle < FORGOTTEN_AFTER, "somebody waits for what nobody does, for {idle:?}");
}

/// Waits until `changed` is told of, for `most` at most. On a thread with virtual time, background
/// work is done meanwhile, and the caller must hold no lock but that of `guard`.
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
    // What passes the time may have to wait, too: then time just passes.
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
    #[should_panic(expected = "somebody waits for what nobody does")]
    fn who_waits_for_ever_in_virtual_time_is_told() {
        let _time = VirtualTime::begin(1);
        for _ in 0..1000 {
            sleep(Duration::from_secs(1));
        }
    }

    #[test]
    fn who_waits_has_work_done_and_the_work_does_not() {
        let time = VirtualTime::begin(1);
        let (mutex, changed) = (Arc::new(Mutex::new(())), Arc::new(Condvar::new()));
        let calls = Rc::new(Cell::new(0));
        let pass: Pass = {
            let (mutex, changed, calls) = (mutex.clone(), changed.clone(), calls.clone());
            Rc::new(move |most| {
                calls.set(calls.get() + 1);
                // Does not come here again.
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
