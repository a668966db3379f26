//! Other stores' C libraries, which the user names and the program loads: the functions of
//! RocksDB's that the benchmark measures ([`rocksdb`]), and databases of RocksDB and LevelDB to be
//! read from end to end ([`Source`]).
//!
//! What must stay true: a [`Source`] never writes into the directory it reads, and its public
//! functions are safe.

mod error;
mod leveldb;
mod library;
mod reader;
pub mod rocksdb;
mod source;

pub use error::{Error, Result};
pub use leveldb::LevelDb;
pub use library::{Free, Handle, Library, Slice, bytes, c_string, call, chars, take_error};
pub use reader::RocksDb;
pub use source::{Cursor, DEFAULT_FAMILY, Source};
