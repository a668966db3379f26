//! The scrub and the copies of backups, which run between the jobs.

use super::ControlPlane;
use crate::scheduler::{Pace, PaceStep, ScrubStep};
use crate::types::Instant;

/// The longest time for which a slice of a backup waits for room, and the size of the slice that it
/// gets then. A backup of a database whose work is always urgent still copies 3 MiB a second.
const COPY_HELD_NS_MAX: u64 = 20_000_000;
const COPY_HELD_BYTES: u64 = 64 << 10;
/// Slices of a backup in a second beside clients, unless they would be smaller than
/// `COPY_SLICE_BYTES_MIN`.
const COPY_SLICES_A_SECOND: u64 = 1024;
const COPY_SLICE_BYTES_MIN: u64 = 16 << 10;
const PAGE_BYTES: u64 = 4 << 10;

impl ControlPlane {
    /// Requests a scrub, at `rate` bytes per second if given.
    pub fn request_scrub(&mut self, now: Instant, rate: Option<u64>) {
        self.scrub.request(now, rate);
    }

    /// Returns what the scrub may do now.
    pub fn scrub_step(&mut self, now: Instant) -> ScrubStep {
        let room = !self.paused && self.scheduler.has_room(now);
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
        let room = !self.paused && self.scheduler.may_copy(now);
        let beside_clients = self.scheduler.copy_rate();
        let rate = if rate > 0 { rate } else { beside_clients };
        match pace.next(now, room, rate, COPY_HELD_NS_MAX) {
            PaceStep::Move(bytes) if !room => PaceStep::Move(bytes.min(COPY_HELD_BYTES)),
            // Small slices: a client's read that meets one waits for it briefly.
            PaceStep::Move(bytes) if beside_clients > 0 => {
                let slice = (rate / COPY_SLICES_A_SECOND).next_multiple_of(PAGE_BYTES);
                PaceStep::Move(bytes.min(slice.max(COPY_SLICE_BYTES_MIN)))
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
