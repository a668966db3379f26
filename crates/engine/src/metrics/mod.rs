//! What is counted while the engine works. What must stay true: recording takes no lock and
//! allocates nothing, so that it can stay on in every build and on every operation.

mod histogram;

pub use histogram::{Histogram, HistogramSnapshot, WindowedHistogram};
