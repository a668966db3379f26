//! The scrub and the copies of backups, which run between the jobs.

use super::ControlPlane;
use crate::scheduler::{Pace, PaceStep, ScrubStep};
use crate::types::Instant;

/// The longest time for which a slice of a backup waits for room. A backup of a database that is
/// always busy then still copies 4 MiB a second.
const COPY_HELD_NS_MAX: u64 = 64_000_000;
/// Slices of a backup in a second for which there is room, unless they would be smaller than
/// `COPY_SLICE_BYTES_MIN`.
const COPY_SLICES_A_SECOND: u64 = 256;
const COPY_SLICE_BYTES_MIN: u64 = 64 << 10;

impl ControlPlane {
    /// Requests a scrub, at `rate` bytes per second if given.
    pub fn request_scrub(&mut self, now: Instant, rate: Option<u64>) {
        self.scrub.request(now, rate);
    }

    /// Returns what the scrub may do now.
    pub fn scrub_step(&mut self, now: Instant) -> ScrubStep {
        let room = !self.paused && self.scheduler.has_room(now, false);
        self.scrub.next(now, room)
    }

    /// Takes in that `bytes` bytes were verified.
    pub fn scrub_stepped(&mut self, now: Instant, bytes: u64) {
        self.scheduler.moved_beside(bytes, 0);
        self.scrub.stepped(now, bytes);
    }

    /// Ends the scrub.
    pub fn scrub_finished(&mut self, now: Instant) {
        self.scrub.finished(now);
    }

    /// Returns what a backup with this pace may do now, at most at `rate` bytes per second (0: as
    /// fast as clients allow).
    pub fn copy_step(&mut self, now: Instant, pace: &mut Pace, rate: u64) -> PaceStep {
        let room = !self.paused && self.scheduler.has_room(now, true);
        let rate = if rate > 0 { rate } else { self.scheduler.copy_rate() };
        match pace.next(now, room, rate, COPY_HELD_NS_MAX) {
            // Many small slices: a client's read meets one seldom, and waits for it briefly.
            PaceStep::Move(bytes) if room && rate > 0 => {
                PaceStep::Move(bytes.min((rate / COPY_SLICES_A_SECOND).max(COPY_SLICE_BYTES_MIN)))
            }
            step => step,
        }
    }

    /// Takes in that a backup has read and written.
    pub fn copied(&mut self, now: Instant, pace: &mut Pace, (read, written): (u64, u64)) {
        self.scheduler.moved_beside(read, written);
        pace.stepped(now, read.max(written));
    }
}
