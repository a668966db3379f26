//! Sateen: an embedded, ordered, persistent key-value store with a flat latency tail.
#![deny(missing_docs)]

mod background;
mod error;
mod files;
mod key;
mod manifest;
mod memtable;
mod options;
mod read;
mod sync;
mod table;
pub mod vfs;
mod wal;
mod write;

pub use error::{CorruptionKind, Error, Result};
pub use table::Compression;
#[doc(hidden)]
pub mod fuzz {
    //! Decoders as fuzzers drive them. Not part of the interface.
    pub use crate::table::fuzz::*;
}

