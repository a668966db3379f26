//! A scenario of compactions in other processes.

use super::run::Run;
use super::scenarios::life;
use crate::features::remote::elsewhere;

/// A life whose compactions another process does, on the same disk.
pub(super) fn life_elsewhere(run: &mut Run) -> Option<()> {
    (run.options, _) = elsewhere(&run.options, run.vfs());
    life(run)
}
