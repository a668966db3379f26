//! The shape of a tree: which tables are where. A version never changes; an edit makes the next one.

mod edit;
mod table_meta;

pub use edit::{AddedTable, RemovedTable, VersionEdit};
pub use table_meta::{Placement, TableMeta};
