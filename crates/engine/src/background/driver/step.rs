//! What a step of a job tells: what it moved, and whether the job is done.

use sateen_control::version::VersionEdit;

/// What a step moved, in bytes of files. A job says what it wrote; the rest is measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepBytes {
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// What the step took a processor; 0 where that says nothing of the bytes that it was granted.
    pub(crate) cpu_ns: u64,
    /// It ended because it had read what it was granted, not because it had gone through that.
    pub(crate) has_read_its_grant: bool,
}

impl StepBytes {
    pub(crate) fn written(written: u64) -> StepBytes {
        StepBytes { written, ..StepBytes::default() }
    }
}

/// How a step ended; `E` is what it leaves to be installed.
pub(crate) enum Step<E = Box<VersionEdit>> {
    /// The grant is used up.
    More(StepBytes),
    /// Nothing is left to do but to install this.
    Done(StepBytes, E),
}

/// The edits of a job, one for each of its column families.
pub(crate) type Edits = Vec<VersionEdit>;

impl Step {
    /// The step of a job that works on one column family.
    pub(crate) fn of_one(self) -> Step<Edits> {
        match self {
            Step::More(moved) => Step::More(moved),
            Step::Done(moved, edit) => Step::Done(moved, vec![*edit]),
        }
    }
}
