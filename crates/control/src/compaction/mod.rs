//! Compactions for all policies: those that clients ask for, and those that only tidy up.
//!
//! 1. [`manual`](ManualCompaction): a client's request to compact a range, or to drop its tables.
//! 2. [`ChosenFiles`]: a client's request to compact files that it names.
//! 3. `CoveredTables`: tables that range tombstones hide are dropped unread.
//! 4. `ChargedTables`: tables into which reads look in vain too often are compacted.
//! 5. `SparseTables`: files that hold too little for the space they take are rewritten, and values
//!    are copied out of value files with much garbage.
//!
//! Users of this crate find everything about compactions here: the plan and its claims, the shapes
//! and the policies are exported from here, too.

mod charged;
mod chosen_files;
mod covered;
mod manual;
mod sparse;
mod step;

pub(crate) use charged::ChargedTables;
pub use chosen_files::ChosenFiles;
pub(crate) use covered::CoveredTables;
pub use manual::ManualCompaction;
pub(crate) use sparse::SparseTables;
pub use sparse::{FileSpace, sparse_files};
pub use step::ManualStep;

pub use crate::geometry::{KeysOf, OutputCutter, OutputSplit, OverlapLimit, Stripes};
pub use crate::plan::{
    Below, ClaimError, CompactionPlan, CompactionReason, EarlyEnd, InFlight, Input, KeysBelow,
};
pub use crate::policy::leveled::{charges_max, good_bytes, good_tables};
pub use crate::policy::{
    CompactionChain, CompactionPolicy, LevelScore, LevelTargets, PickContext, TreeView,
    levels_to_lift,
};
