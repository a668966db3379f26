//! What Sateen decides, and nothing that it does.
//!
//! Everything here is a deterministic function of its arguments: no file is opened, no thread
//! started, no clock read, no random number drawn, no hash iterated. The engine and the simulator
//! are two drivers of the same [`ControlPlane`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]

// This crate is compiled before the engine and has no dependencies. So an unsupported system sees
// this error and none about system calls that it lacks.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("Sateen supports Linux on 64-bit machines (x86-64 and aarch64); see README.md");

mod arithmetic;
mod column_family;
pub mod compaction;
pub mod control_plane;
pub mod event;
pub mod geometry;
mod named;
pub mod options;
mod plan;
pub mod policy;
mod reads;
mod scheduler;
mod tuner;
pub mod types;
mod user_key;
pub mod version;
pub mod write_controller;

pub use compaction::CompactionPlan;
pub use control_plane::{ControlPlane, SharedScheduler, standing};
pub use event::{
    Action, ClassSample, Event, FlushMember, JobResult, Note, PauseReason, Processors, ReadSample,
    SAMPLE_PERIOD, Sample,
};
pub use options::{CfOptions, ControlOptions, DeviceProfile, JobSlots};
pub use scheduler::{Pace, PaceStep, ReclaimHaste, ReclaimPace, ScrubStep};
pub use tuner::{Adjustment, Limit, Overflow};
pub use types::*;
pub use version::{TableMeta, Version, VersionEdit};
pub use write_controller::{Admission, AdmissionState, Gate, Outlook, StallCause};
