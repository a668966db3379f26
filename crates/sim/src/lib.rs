//! Virtual time on a modelled [`Device`]. Two things run in it.
//!
//! The real engine: [`SimVfs`] is a file system whose calls take the time that the device needs,
//! and can lose its power at any of them. `tests/sim` runs it against faults, crashes and a model.
//!
//! The control plane alone, which is the rest of this crate: the same [`ControlPlane`] that runs in
//! the engine, driven by a tree without bytes and clients that arrive on schedule.
//!
//! A day of load on half a terabyte takes minutes, and the same configuration gives the same
//! report, bit for bit. What the model leaves out is in `docs/simulator.md`.
//!
//! ```
//! use sateen_sim::{SimConfig, Simulation};
//!
//! let mut config = SimConfig::standard("rocksdb", 2_000.0)?;
//! config.duration_ns = 2_000_000_000;
//! let report = Simulation::run(config)?;
//! assert_eq!(report.offered, report.done);
//! # Ok::<(), sateen_sim::Error>(())
//! ```
//!
//! [`ControlPlane`]: sateen_control::ControlPlane
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod admission;
mod classes;
mod clients;
mod config;
mod data_plane;
mod device;
mod error;
mod job;
mod merge;
mod recorder;
mod report;
mod settings;
mod sim_vfs;
mod simulation;
mod tree;

pub use admission::Stalls;
pub use config::{Costs, Load, POLICY_NAMES, Policy, SimConfig, Wal};
pub use device::{Bandwidth, Device, DeviceConfig, Direction};
pub use error::{Error, Result};
pub use recorder::Second;
pub use report::{ClassBytes, Counts, Report, table};
pub use settings::SETTING_NAMES;
pub use sim_vfs::{SimCounts, SimVfs};
pub use simulation::Simulation;
