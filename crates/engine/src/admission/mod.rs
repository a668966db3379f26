//! The two places where writers wait for the background: the gates, whose rates control sets, and
//! the limit on memtables that databases share. Nothing else holds writers back.

pub(crate) mod gate;
pub(crate) mod write_buffers;
