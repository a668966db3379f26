//! The scrub, between the jobs.

use super::ControlPlane;
use crate::scheduler::ScrubStep;
use crate::types::Instant;

impl ControlPlane {
    /// A client wants all that is stored verified, at so many bytes a second if it says.
    pub fn request_scrub(&mut self, now: Instant, rate: Option<u64>) {
        self.scrub.request(now, rate);
    }

    /// What is to be done about it now.
    pub fn scrub_step(&mut self, now: Instant) -> ScrubStep {
        let room = !self.paused && self.scheduler.has_room(now);
        self.scrub.next(now, room)
    }

    /// So many bytes were verified.
    pub fn scrub_stepped(&mut self, now: Instant, bytes: u64) {
        self.scheduler.read_beside(bytes);
        self.scrub.stepped(now, bytes);
    }

    /// All is verified, or given up.
    pub fn scrub_finished(&mut self, now: Instant) {
        self.scrub.finished(now);
    }
}
