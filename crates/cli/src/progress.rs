//! Progress on the terminal. It is drawn on standard error, only if that is a terminal, and removed
//! when the work ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{BinaryBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

const REDRAWS_PER_SECOND: u8 = 8;
/// The interval at which [`Progress::of_jobs`] looks at the jobs.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How much of its input a job has read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobBytes {
    /// Number of the job.
    pub(crate) job: u64,
    /// Bytes that it has read.
    pub(crate) read: u64,
    /// Bytes of its input.
    pub(crate) input: u64,
}

/// The jobs of a piece of work, which run one after the other or beside each other.
#[derive(Debug, Default)]
struct Jobs(BTreeMap<u64, JobBytes>);

impl Jobs {
    /// Takes the jobs that run now. Returns the bytes that all have read and those of their input;
    /// a job that no longer runs has read everything.
    fn take(&mut self, running: Vec<JobBytes>) -> (u64, u64) {
        for ended in self.0.values_mut() {
            ended.read = ended.input;
        }
        for job in running {
            self.0.insert(job.job, JobBytes { read: job.read.min(job.input), ..job });
        }
        let sum = |bytes: fn(&JobBytes) -> u64| self.0.values().map(bytes).sum();
        (sum(|job| job.read), sum(|job| job.input))
    }
}

/// Returns what the jobs of `what` have read, as text.
fn jobs_text(what: &str, read: u64, input: u64) -> String {
    match read.saturating_mul(100).checked_div(input) {
        None => what.to_owned(),
        Some(percent) => {
            format!("{what}: {} of {} read, {percent} %", BinaryBytes(read), BinaryBytes(input))
        }
    }
}

/// A bar for work of a known number of bytes, a spinner for other work.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Shows bytes of `total`, or bytes alone if there is no total.
    pub(crate) fn bytes(what: &str, total: Option<u64>) -> Progress {
        let template = match total {
            Some(_) => {
                "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}"
            }
            None => "{spinner} {msg} {binary_bytes} {binary_bytes_per_sec} {elapsed}",
        };
        Progress::new(what, total, template)
    }

    /// Shows keys of an estimated `total`.
    pub(crate) fn keys(what: &'static str, total: Option<u64>) -> Progress {
        let template = match total {
            Some(_) => "{msg} {wide_bar} {human_pos}/{human_len} keys {prefix} {eta}",
            None => "{spinner} {msg} {human_pos} keys {prefix} {elapsed}",
        };
        Progress::new(what, total, template)
    }

    /// Shows the number of keys and bytes that are done. The total was an estimate; it grows with
    /// the keys.
    pub(crate) fn at_keys(&self, keys: u64, bytes: u64) {
        if self.0.is_hidden() {
            return;
        }
        if self.0.length().is_some_and(|total| total < keys) {
            self.0.set_length(keys);
        }
        let rate = bytes as f64 / self.0.elapsed().as_secs_f64().max(1e-3);
        let (bytes, rate) = (BinaryBytes(bytes), BinaryBytes(rate as u64));
        self.0.set_prefix(format!("{bytes} {rate}/s"));
        self.0.set_position(keys);
    }

    /// Shows work of unknown length.
    pub(crate) fn spinner(what: &str) -> Progress {
        let progress = Progress::new(what, None, "{spinner} {msg} {elapsed}");
        // Without a terminal a ticker would only wake the process.
        if !progress.0.is_hidden() {
            progress.0.enable_steady_tick(Duration::from_millis(120));
        }
        progress
    }

    /// Does `work`, and meanwhile shows how much of their input the jobs have read that `running`
    /// returns. `what` is the text of the spinner.
    pub(crate) fn of_jobs<T>(
        &self,
        what: &str,
        mut running: impl FnMut() -> Vec<JobBytes> + Send,
        work: impl FnOnce() -> T,
    ) -> T {
        if self.0.is_hidden() {
            return work();
        }
        let (done, bar) = (&AtomicBool::new(false), &self.0);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(move || {
                let mut jobs = Jobs::default();
                while !done.load(Ordering::Acquire) {
                    let (read, input) = jobs.take(running());
                    bar.set_message(jobs_text(what, read, input));
                    std::thread::park_timeout(LOOK_EVERY);
                }
            });
            let worked = work();
            done.store(true, Ordering::Release);
            watcher.thread().unpark();
            worked
        })
    }

    fn new(what: &str, total: Option<u64>, template: &str) -> Progress {
        // The bar hides itself if standard error is not a terminal.
        let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND);
        let bar = ProgressBar::with_draw_target(total, target).with_message(what.to_owned());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// Shows `done` of a total, which may change on the way.
    pub(crate) fn of(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    /// Removes it from the terminal.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }

    /// Shows `done`.
    pub(crate) fn at(&self, done: u64) {
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_have_ended_count_as_read() {
        let mut jobs = Jobs::default();
        let job = |job, read, input| JobBytes { job, read, input };
        assert_eq!(jobs.take(Vec::new()), (0, 0));
        assert_eq!(jobs.take(vec![job(5, 10, 100)]), (10, 100));
        // A job also reads values that are no part of its input.
        assert_eq!(jobs.take(vec![job(5, 110, 100), job(6, 1, 50)]), (101, 150));
        assert_eq!(jobs.take(vec![job(6, 20, 50)]), (120, 150));
        assert_eq!(jobs.take(Vec::new()), (150, 150));
    }

    #[test]
    fn the_text_tells_the_bytes_that_are_read_and_to_read() {
        assert_eq!(jobs_text("compacting", 0, 0), "compacting");
        let half = jobs_text("compacting", 1 << 20, 2 << 20);
        assert_eq!(half, "compacting: 1.00 MiB of 2.00 MiB read, 50 %");
    }
}
