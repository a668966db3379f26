//! The write path. (placeholder: only the batch stands here yet)

pub(crate) mod batch;
