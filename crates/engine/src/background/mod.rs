//! Work in the background. (placeholder)

pub(crate) mod compaction_iter;
