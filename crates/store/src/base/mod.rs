//! What every other module of the store uses: clock, errors, keys, locks, encodings.
//!
//! What must stay true: nothing here opens a file or knows a file format.

pub mod clock;
pub mod coding;
pub mod decoder;
pub mod error;
pub mod histogram;
pub mod iterator;
pub mod key;
pub mod locks;
pub mod names;
pub mod observed;
pub mod perf;
pub mod prefix;
pub mod random;
pub mod retry;
pub mod reused;
pub mod sync;
pub mod system;
pub mod waited;
pub mod xxh3;
