//! The places where writers wait. They wait for the background in two: the gates, whose rates
//! control sets, and the limit on memtables that databases share. Pessimistic transactions wait for
//! each other at the locks of keys. Nothing else holds writers back. A limit on space refuses them.

pub(crate) mod gate;
pub(crate) mod key_locks;
pub(crate) mod space;
pub(crate) mod write_buffers;
