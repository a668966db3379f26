//! The loads that the benchmark and the simulator share: keys, values, arrivals, mixes, histograms.
//!
//! Everything is a deterministic function of a seed: the same specification, seed, thread number
//! and thread count give the same operations at the same times. Nothing here reads a clock.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arrivals;
mod histogram;
mod keys;
mod replay;
mod rng;
mod spec;
mod stream;
mod values;

pub use arrivals::{ArrivalSpec, Process, Schedule};
pub use histogram::{CompactHistogram, Histogram};
pub use keys::{KeyChoice, KeyChooser, KeyFormat, KeyStyle, Permutation, Zipfian};
pub use replay::{ReplayError, ReplayEvent, ReplayPart, parse_replay, parse_replay_line};
pub use rng::{Rng, mix64};
pub use spec::{Mix, ScanLength, Spec, UnknownWorkload, WORKLOAD_NAMES};
pub use stream::{Op, OpKind, OpStream, Share};
pub use values::{ValueSize, ValueSource};
