//! The only place that starts threads (ARCHITECTURE.md, invariant 2): workers that step jobs, and
//! one that does the chores, at a lower CPU priority than clients, and one that takes samples.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::{Mutex, lock, thread};
use sateen_store::base::waited;

use crate::background::Background;
use crate::background::driver::Stepped;

/// The threads of a database.
#[derive(Default)]
pub(crate) struct Pool {
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Pool {
    /// Starts `workers` workers, the chores' thread and the one that samples.
    pub(crate) fn start(
        &self,
        background: &Arc<Background>,
        workers: u32,
        nice: u32,
    ) -> Result<()> {
        let mut threads = lock(&self.threads);
        for number in 0..workers + 2 {
            let background = background.clone();
            // Who samples decides how fast clients may write: it must not wait behind the work.
            let (name, nice, work): (String, u32, fn(&Arc<Background>)) = match number {
                0 => {
                    ("sateen-sample".to_owned(), 0, |background| background.driver.sampling_loop())
                }
                1 => {
                    ("sateen-chores".to_owned(), nice, |background| background.chores.chores_loop())
                }
                worker => (format!("sateen-work-{}", worker - 2), nice, work),
            };
            let run = move || {
                if nice > 0 {
                    lower_priority(nice);
                }
                waited::set_worker(worker_number(number));
                // Its job would never end, and who waits for that would wait for ever.
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(&background))) {
                    background.driver.job_failed(&panicked(panic.as_ref()));
                }
            };
            let spawned = thread::Builder::new().name(name).spawn(run);
            threads
                .push(spawned.map_err(|error| Error::io("start thread for", &core_path(), error))?);
        }
        Ok(())
    }

    /// Waits for every thread to end; they have been told to.
    pub(crate) fn join(&self) {
        let own = thread::current().id();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // The last handle of a database may be dropped by one of its own threads.
            if thread.thread().id() != own {
                let _panicked = thread.join();
            }
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let texts = [panic.downcast_ref::<&str>().copied(), panic.downcast_ref().map(String::as_str)];
    let message = texts.into_iter().flatten().next().unwrap_or("no text").to_owned();
    let thread = thread::current().name().unwrap_or_default().to_owned();
    Error::Panicked { thread, message }
}

fn core_path() -> std::path::PathBuf {
    std::path::PathBuf::from("the pool")
}

fn work(background: &Arc<Background>) {
    while !background.driver.is_stopping() {
        if let Stepped::Idle(until) = background.driver.step_once() {
            background.driver.wait_for_work(until);
        }
    }
}

/// The number of a worker in the timeline: those before the first worker count as the chores.
fn worker_number(thread: u32) -> u8 {
    let number = thread.checked_sub(2).map(|worker| u8::try_from(worker).unwrap_or(u8::MAX));
    number.map_or(waited::CHORES, |worker| worker.min(waited::CHORES - 1))
}

/// Best effort: a process may lack the right, and then all threads are equal.
fn lower_priority(nice: u32) {
    let own = rustix::thread::gettid();
    let nice = i32::try_from(nice).unwrap_or(0);
    let _refused = rustix::process::setpriority_process(Some(own), nice);
}
