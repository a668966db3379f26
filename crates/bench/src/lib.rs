//! Benchmarks of Sateen and its peers: loads in closed and open loop, measurements, reports.

mod error;
mod recorder;
mod result;
mod rocksdb;
mod runner;
mod sampler;
mod sateen_store;
mod store;
mod system;
pub mod units;

pub use error::{Error, Result};
pub use result::*;
pub use store::*;
pub use system::{DiskBytes, Machine};
