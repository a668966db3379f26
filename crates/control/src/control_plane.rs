//! The whole of control behind one door: events in, actions out.

use std::collections::VecDeque;

use crate::event::{Action, Event};
use crate::options::ControlOptions;
use crate::types::Instant;
use crate::write_controller::Admission;

/// Decides what background work runs and how clients are admitted. See the crate's documentation.
#[derive(Debug)]
pub struct ControlPlane {
    options: ControlOptions,
    actions: VecDeque<Action>,
    admission: Admission,
}

impl ControlPlane {
    /// A control plane that knows no column family yet; writers are admitted.
    #[must_use]
    pub fn new(options: ControlOptions) -> ControlPlane {
        ControlPlane { options, actions: VecDeque::new(), admission: Admission::default() }
    }

    /// Takes note of an event. Decides nothing yet: cheap. `now` never goes back.
    pub fn handle(&mut self, _now: Instant, _event: Event) {}

    /// The next thing to do; `None` when there is nothing until the next event or
    /// [`ControlPlane::poll_timeout`]. Cheap when nothing has changed.
    pub fn poll(&mut self, _now: Instant) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to poll again even if no event arrives; `None`: no need to.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// How clients are admitted, as last said by [`Action::Admit`].
    #[must_use]
    pub fn admission(&self) -> Admission {
        self.admission
    }

    /// Whether no job runs and none would start, whatever the time: what a test waits for.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.actions.is_empty()
    }

    /// The options in force.
    #[must_use]
    pub fn options(&self) -> &ControlOptions {
        &self.options
    }
}
