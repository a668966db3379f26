//! Where writers wait for the background: at gates, whose rates control sets, and for memory, where
//! databases share a limit on their memtables. No other place holds writers back.

pub(crate) mod gate;
pub(crate) mod write_buffers;
