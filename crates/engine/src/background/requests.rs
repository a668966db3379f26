//! Requests of clients to compact, or to give up, a range: asking control, and waiting for it.

use std::sync::Arc;

use sateen_control::{Event, Instant, RequestId};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::{lock, wait_timeout};

use crate::background::Background;
use crate::background::driver::{Driver, IDLE_WAIT_MAX};

impl Driver {
    /// Starts a manual compaction; if somebody will wait for it, [`Background::wait_request`] ends
    /// it.
    pub(crate) fn request(
        &self,
        now: Instant,
        wait: bool,
        event: impl FnOnce(RequestId) -> Event,
    ) -> RequestId {
        let mut shared = lock(&self.shared);
        let request = RequestId(shared.next_request);
        shared.next_request += 1;
        if wait {
            shared.requests.insert(request, None);
        }
        shared.plane.handle(now, event(request));
        drop(shared);
        self.wake.notify_one();
        request
    }

    /// Gives up all requests that somebody waits for.
    pub(crate) fn cancel_requests(&self, now: Instant) {
        let mut shared = lock(&self.shared);
        let waiting = shared.requests.iter().filter(|(_, state)| state.is_none());
        let waiting: Vec<_> = waiting.map(|(request, _)| *request).collect();
        for request in waiting {
            shared.plane.handle(now, Event::CompactRangeCancelled { request });
        }
        drop(shared);
        self.wake.notify_all();
    }
}

impl Background {
    /// Returns when the request is over: whether everything was compacted.
    pub(crate) fn wait_request(self: &Arc<Self>, request: RequestId) -> Result<bool> {
        self.wait_request_unless(request, &|| false)
    }

    /// The same; the request is given up once `cancelled` says so.
    pub(crate) fn wait_request_unless(
        self: &Arc<Self>,
        request: RequestId,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<bool> {
        let mut is_given_up = false;
        loop {
            if !is_given_up && cancelled() {
                is_given_up = true;
                self.driver.report(self.env.now(), Event::CompactRangeCancelled { request });
            }
            let shared = lock(&self.driver.shared);
            match shared.requests.get(&request) {
                Some(Some(complete)) => {
                    let complete = *complete;
                    let mut shared = shared;
                    shared.requests.remove(&request);
                    return Ok(complete);
                }
                Some(None) => {}
                None => return Ok(false),
            }
            if shared.stop {
                return Err(Error::Closed);
            }
            if let Err(refusal) = self.env.health.check() {
                // It may never end: a failed compaction is tried again only once all is well.
                let mut shared = shared;
                shared.requests.remove(&request);
                shared.plane.handle(self.env.now(), Event::CompactRangeCancelled { request });
                return Err(refusal);
            }
            if self.env.has_threads() {
                let (wake, mutex) = (&self.driver.wake, &self.driver.shared);
                drop(wait_timeout(wake, mutex, shared, IDLE_WAIT_MAX));
            } else {
                drop(shared);
                self.step_or_wait()?;
            }
        }
    }
}
