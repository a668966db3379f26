//! Benchmarks of Sateen and its peers: loads in closed and open loop, measurements, reports.
//!
//! [`BenchArgs`] are the options of `sateen bench`, which [`run`] runs; [`DemoArgs`] are those of
//! `sateen demo`, which [`demo`] runs. Every measurement has a process of its own. The program that
//! embeds this library starts itself again, as [`Reexec`] says.

mod args;
mod child;
mod compare;
mod csv;
mod databases;
mod demo;
mod device;
mod engine;
mod error;
pub mod html;
mod notes;
mod peer;
mod recorder;
mod recording;
mod result;
mod runner;
mod sampler;
mod sateen_store;
mod seconds;
mod store;
mod summary;
mod system;
mod terminal;
mod trace;
pub mod units;

pub use args::{Arrivals, BenchArgs, Distribution, LoadOrder, Mode};
pub use compare::{Reexec, check, measure, run, write_outputs};
pub use demo::{DemoArgs, DeviceKind, demo};
pub use engine::Engine;
pub use error::{Error, Result};
pub use result::*;
pub use store::*;
pub use system::{DiskBytes, Machine};
