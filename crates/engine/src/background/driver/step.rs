//! The result of a job's step: the bytes it moved, and the edits if the job is done.

use sateen_control::version::VersionEdit;

/// The bytes of files that a step moved. A job says what it wrote; the rest is measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepBytes {
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// CPU time in nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Whether the step ended because it had read its grant's bytes, before it had processed them.
    pub(crate) has_read_its_grant: bool,
}

impl StepBytes {
    /// Returns the bytes of a step that wrote `written`.
    pub(crate) fn written(written: u64) -> StepBytes {
        StepBytes { written, ..StepBytes::default() }
    }
}

/// How a step ended. `E` is what is to be installed.
pub(crate) enum Step<E = Box<VersionEdit>> {
    /// The grant is used up.
    More(StepBytes),
    /// Another process does the work, and the job needs no grant until it has answered.
    Away,
    /// The job is done, and this is to be installed.
    Done(StepBytes, E),
}

/// The edits of a job, one for each of its column families.
pub(crate) type Edits = Vec<VersionEdit>;

impl Step {
    /// Returns the step as that of a job with several column families.
    pub(crate) fn of_one(self) -> Step<Edits> {
        match self {
            Step::More(moved) => Step::More(moved),
            Step::Away => Step::Away,
            Step::Done(moved, edit) => Step::Done(moved, vec![*edit]),
        }
    }
}
