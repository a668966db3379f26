//! What Sateen decides, and nothing that it does.
//!
//! Everything here is a deterministic function of its arguments: no file is opened, no thread
//! started, no clock read, no random number drawn, no hash iterated. The engine and the simulator
//! are two drivers of the same [`ControlPlane`](control_plane::ControlPlane).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod types;
pub mod version;

pub use types::*;
