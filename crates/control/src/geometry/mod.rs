//! Shapes of key ranges and tables that compaction policies share. Nothing here depends on a
//! policy, an option or a plan.
//!
//! 1. `span`: neighbouring tables of one run, their key range, and the tables that share keys.
//! 2. `groups`: the tables of one level that share keys with each other and with no other.
//! 3. `overlap`: how many tables lie on top of each other, and how many keys they share.
//! 4. `stripes`: the key ranges at whose ends flushes cut their runs.
//! 5. `cutter`: where output tables end, by one of the rules of [`OutputSplit`]; `gap` and
//!    `guard` hold two of its criteria.

mod cutter;
mod gap;
mod groups;
mod guard;
mod overlap;
mod span;
mod split;
mod stripes;

pub use cutter::OutputCutter;
pub(crate) use groups::groups;
pub(crate) use guard::is_guard;
pub(crate) use overlap::{depth, overlap_below, repeated_part};
pub(crate) use span::union;
pub use span::{Bounds, KeysOf, Span, closure, hull};
pub use split::{OutputSplit, OverlapLimit};
pub(crate) use stripes::ranks;
pub use stripes::{Stripes, stripes};
