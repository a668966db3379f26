//! The only place that starts threads (ARCHITECTURE.md, invariant 2): one thread that takes
//! samples, one that does the chores, and workers that step jobs. The last two run at a lower CPU
//! priority than clients.

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
    /// Starts the sampling thread, the chores' thread and `workers` workers. `nice` lowers the CPU
    /// priority of all but the sampling thread.
    pub(crate) fn start(
        &self,
        background: &Arc<Background>,
        workers: u32,
        nice: u32,
    ) -> Result<()> {
        let mut threads = lock(&self.threads);
        for number in 0..workers + 2 {
            let background = background.clone();
            // The sampling thread keeps its priority. It sets the write rate of clients, so it must
            // not wait behind background work.
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
                // Without this the job would stay unfinished, and a client that waits for it would
                // wait for ever.
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

    /// Joins every thread. The caller has told them to stop.
    pub(crate) fn join(&self) {
        let own = thread::current().id();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // A thread of the database may drop its last handle, and must not join itself.
            if thread.thread().id() != own {
                let _panicked = thread.join();
            }
        }
    }
}

/// Returns the error that says which thread panicked, and with which message.
fn panicked(panic: &(dyn Any + Send)) -> Error {
    let texts = [panic.downcast_ref::<&str>().copied(), panic.downcast_ref().map(String::as_str)];
    let message = texts.into_iter().flatten().next().unwrap_or("no text").to_owned();
    let thread = thread::current().name().unwrap_or_default().to_owned();
    Error::Panicked { thread, message }
}

fn core_path() -> std::path::PathBuf {
    std::path::PathBuf::from("the pool")
}

/// Steps jobs until the driver stops.
fn work(background: &Arc<Background>) {
    while !background.driver.is_stopping() {
        if let Stepped::Idle(until) = background.driver.step_once() {
            background.driver.wait_for_work(until);
        }
    }
}

/// Returns the number of a worker in the timeline. Threads below the first worker count as chores.
fn worker_number(thread: u32) -> u8 {
    let number = thread.checked_sub(2).map(|worker| u8::try_from(worker).unwrap_or(u8::MAX));
    number.map_or(waited::CHORES, |worker| worker.min(waited::CHORES - 1))
}

/// Lowers the calling thread's CPU priority. If the process lacks the right, it stays as it is.
fn lower_priority(nice: u32) {
    let own = rustix::thread::gettid();
    let nice = i32::try_from(nice).unwrap_or(0);
    let _refused = rustix::process::setpriority_process(Some(own), nice);
}
