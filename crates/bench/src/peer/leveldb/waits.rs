//! How long LevelDB lets writers wait, and whether its background thread has work. Its C interface
//! says neither, so its library's calls are redirected here.
//!
//! A write that finds no room either sleeps for 1 ms (8 tables in level 0) or waits for the
//! condition of its database (a memtable that is being flushed, or 12 tables in level 0). It waits
//! for one more condition, its turn in the queue of writers. That one lies on the stack of the
//! writer, and the wait is part of another writer's. The background thread waits for work only.
//!
//! Invariant: a hook calls the function that it replaces with the same arguments, once.
#![expect(unsafe_code, reason = "functions in place of others")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use sateen_peers::Library;

use crate::peer::hooks::Hook;

/// `std::condition_variable::wait`, as a C++ compiler names it.
const CONDITION: &str = "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE";

/// Names of the functions that wait for a condition. A library calls one of them.
pub(super) const CONDITIONS: [&str; 2] = [CONDITION, "pthread_cond_wait"];

/// The part of a stack in which the condition of a writer lies, above the place of the call.
const OWN_STACK_BYTES: usize = 64 << 10;

type Wait = unsafe extern "C" fn(*mut c_void, *mut c_void);

static WAIT: OnceLock<Wait> = OnceLock::new();
static COUNT: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);
/// False while the background thread waits for work. It begins to exist with its first work.
static IS_BUSY: AtomicBool = AtomicBool::new(true);

/// What a thread does in the library.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The engine started it.
    Background,
    /// It writes and reads. Its waits are stalls.
    Client,
    /// It waits for a flush or a compaction that it asked for.
    Upkeep,
}

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::Background) };
}

/// Says that this thread is a client from now on.
pub(super) fn is_client() {
    ROLE.set(Role::Client);
}

/// Says that this thread waits for background work from now on.
pub(super) fn is_upkeep() {
    ROLE.set(Role::Upkeep);
}

/// Returns the number of waits of writers that have ended, and their nanoseconds.
pub(super) fn stalls() -> (u64, u64) {
    (COUNT.load(Ordering::Relaxed), NANOSECONDS.load(Ordering::Relaxed))
}

/// True while the background thread works, and before it has had any work.
pub(super) fn is_busy() -> bool {
    IS_BUSY.load(Ordering::Relaxed)
}

/// Returns the hooks for `library`.
pub(super) fn hooks(library: &Library) -> Vec<Hook> {
    let mut hooks: Vec<Hook> = vec![
        ("nanosleep", nanosleep as *const ()),
        ("pthread_cond_wait", pthread_cond_wait as *const ()),
    ];
    // SAFETY: the type is that of the function; a reference is a pointer.
    if let Some(wait) = unsafe { library.find::<Wait>("", CONDITION) } {
        hooks.push((CONDITION, condition_wait as *const ()));
        let _the_same = WAIT.set(wait);
    }
    hooks
}

/// Makes a call that waits for the condition at `condition`.
fn waiting<T>(condition: *mut c_void, call: impl FnOnce() -> T) -> T {
    let here = 0u8;
    let above = condition.addr().wrapping_sub((&raw const here).addr());
    match ROLE.get() {
        Role::Client if above > OWN_STACK_BYTES => stalling(call),
        Role::Client | Role::Upkeep => call(),
        Role::Background => {
            IS_BUSY.store(false, Ordering::Relaxed);
            let result = call();
            IS_BUSY.store(true, Ordering::Relaxed);
            result
        }
    }
}

/// Makes a call of a writer that waits for room.
fn stalling<T>(call: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = call();
    let waited_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    COUNT.fetch_add(1, Ordering::Relaxed);
    NANOSECONDS.fetch_add(waited_ns, Ordering::Relaxed);
    result
}

unsafe extern "C" fn condition_wait(condition: *mut c_void, lock: *mut c_void) {
    let Some(wait) = WAIT.get() else { return };
    // SAFETY: the library's arguments.
    waiting(condition, || unsafe { wait(condition, lock) });
}

unsafe extern "C" fn pthread_cond_wait(
    condition: *mut libc::pthread_cond_t,
    mutex: *mut libc::pthread_mutex_t,
) -> c_int {
    // SAFETY: the library's arguments.
    waiting(condition.cast(), || unsafe { libc::pthread_cond_wait(condition, mutex) })
}

unsafe extern "C" fn nanosleep(asked: *const libc::timespec, left: *mut libc::timespec) -> c_int {
    // SAFETY: the library's arguments.
    let sleep = || unsafe { libc::nanosleep(asked, left) };
    if ROLE.get() == Role::Client { stalling(sleep) } else { sleep() }
}
