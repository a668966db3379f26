//! The C libraries of other stores, which the user names and the program loads at run time: the
//! functions that the benchmark calls ([`rocksdb`], [`leveldb`], and [`interface`] of libraries
//! made for it), readers of whole RocksDB and LevelDB databases ([`Source`]), and a writer of
//! RocksDB databases ([`RocksDbWriter`]).
//!
//! Invariants: a [`Source`] never writes into the directory it reads, and its public functions are
//! safe.

mod error;
mod inherited;
pub mod interface;
pub mod leveldb;
mod library;
mod reader;
pub mod rocksdb;
mod source;
mod writer;

pub use error::{Error, Result};
pub use inherited::Inherited;
pub use leveldb::LevelDb;
pub use library::{Free, Handle, Library, Slice, bytes, c_string, call, chars, take_error};
pub use reader::RocksDb;
pub use source::{Cursor, DEFAULT_FAMILY, Source};
pub use writer::RocksDbWriter;
