//! Manual compactions and drops of key ranges: asking control for them, and waiting for the result.
//!
//! 1. [`Driver::request`] registers the request and hands its event to control.
//! 2. Control answers with `ManualDone`, and the driver notes the result (`Driver::poll_control`).
//! 3. [`Background::wait_request`] waits for that result and removes the request.

use std::sync::Arc;

use sateen_control::{Event, Instant, RequestId};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::sync::{lock, wait_timeout};

use crate::background::Background;
use crate::background::driver::{Driver, IDLE_WAIT_MAX};
use crate::tree::families::ColumnFamilyData;

impl Driver {
    /// Hands a request about `tree` to control and returns its id. With `wait`, the caller must
    /// call [`Background::wait_request`], which removes the result.
    ///
    /// Control hears of the current version before the request. A flush may have ended without
    /// having reported its tables: control would take them for younger than the request, or not
    /// know them at all.
    pub(crate) fn request(
        &self,
        tree: &ColumnFamilyData,
        wait: bool,
        event: impl FnOnce(RequestId) -> Event,
    ) -> RequestId {
        let now = self.env.now();
        let version = tree.super_version().version.clone();
        let mut shared = self.lend();
        shared.plane.handle(now, Event::VersionInstalled { version });
        let request = RequestId(shared.next_request);
        shared.next_request += 1;
        if wait {
            shared.requests.insert(request, None);
        }
        shared.plane.handle(now, event(request));
        drop(shared);
        self.place.call();
        request
    }

    /// Cancels all requests that a client waits for.
    pub(crate) fn cancel_requests(&self, now: Instant) {
        let mut shared = self.lend();
        let waiting = shared.requests.iter().filter(|(_, state)| state.is_none());
        let waiting: Vec<_> = waiting.map(|(request, _)| *request).collect();
        for request in waiting {
            shared.plane.handle(now, Event::CompactRangeCancelled { request });
        }
        drop(shared);
        self.place.call();
    }
}

impl Background {
    /// Waits until the request is done. Returns true if everything was compacted, false if the
    /// request was cancelled.
    pub(crate) fn wait_request(self: &Arc<Self>, request: RequestId) -> Result<bool> {
        self.wait_request_unless(request, &|| false)
    }

    /// Like [`Background::wait_request`]. Cancels the request once `cancelled` returns true.
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
                // The request may never end, because failed compactions are retried only after the
                // database has recovered.
                drop(shared);
                let mut shared = self.driver.lend();
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
