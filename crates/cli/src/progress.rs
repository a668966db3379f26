//! Progress on the terminal. It is drawn on standard error, only if that is a terminal, and removed
//! when the work ends.

use std::time::Duration;

use indicatif::{BinaryBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

const REDRAWS_PER_SECOND: u8 = 8;

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
