//! The work of the device by class of I/O.

use sateen_control::{ClassSample, IO_CLASSES};

/// The requests of each class, their bytes and their times.
pub(crate) type Classes = [ClassSample; IO_CLASSES];

/// Adds one class's figures to another's.
pub(crate) fn add(to: &mut ClassSample, from: &ClassSample) {
    to.read_bytes += from.read_bytes;
    to.reads += from.reads;
    to.read_ns += from.read_ns;
    to.write_bytes += from.write_bytes;
    to.writes += from.writes;
    to.write_ns += from.write_ns;
    to.syncs += from.syncs;
    to.sync_ns += from.sync_ns;
}
