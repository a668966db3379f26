//! Simulations in virtual time on a modelled [`Device`]. There are two.
//!
//! 1. The real engine, with the feature `engine`. `SimVfs` is a file system whose calls take the
//!    time that the device needs. Its power can fail at any call. `tests/sim` runs the engine on it
//!    with faults, crashes and a model.
//!
//! 2. The control plane alone. The rest of this crate drives the same [`ControlPlane`] that runs in
//!    the engine with a tree without bytes and clients that arrive on schedule.
//!
//! A day of load on half a terabyte takes minutes. The same configuration gives the same report,
//! bit for bit. `docs/simulator.md` says what the model leaves out.
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
mod databases;
mod device;
mod error;
mod job;
mod merge;
mod recorder;
mod report;
mod settings;
#[cfg(feature = "engine")]
mod sim_vfs;
mod simulation;
mod tree;

pub use admission::Stalls;
pub use config::{Costs, Load, POLICY_NAMES, Policy, SimConfig, Wal};
pub use databases::Databases;
pub use device::{Bandwidth, Device, DeviceConfig, Direction};
pub use error::{Error, Result};
pub use recorder::Second;
pub use report::{BaseLevel, Chains, ClassBytes, Counts, Jobs, Report, table};
pub use settings::SETTINGS;
#[cfg(feature = "engine")]
pub use sim_vfs::{SimCounts, SimVfs};
pub use simulation::Simulation;
