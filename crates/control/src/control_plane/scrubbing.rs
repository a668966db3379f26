//! The scrub, which runs between the jobs.

use super::ControlPlane;
use crate::scheduler::ScrubStep;
use crate::types::Instant;

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
        self.scheduler.read_beside(bytes);
        self.scrub.stepped(now, bytes);
    }

    /// Ends the scrub.
    pub fn scrub_finished(&mut self, now: Instant) {
        self.scrub.finished(now);
    }
}
