//! Which tables are compacted next. A picker is a function of what it is shown and has no memory.

mod cutter;
mod plan;

pub use cutter::OutputCutter;
pub use plan::{Below, CompactionPlan, CompactionReason, Input, KeysBelow, OutputSplit};
