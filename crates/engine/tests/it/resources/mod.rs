//! What the engine takes and gives back: memory, space on the disk, tables of level 0.

pub(crate) mod measure;
pub(crate) mod memory;
pub(crate) mod overload;
pub(crate) mod punch;
pub(crate) mod room;
pub(crate) mod space;
pub(crate) mod space_limit;
pub(crate) mod tiny_runs;
pub(crate) mod write_buffers;
