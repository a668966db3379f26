//! The native module of the Python package `sateen`: the engine's handles as Python classes.
//!
//! What must stay true:
//! - Whatever can wait (a lock, a disk, a thread of the database) runs without the interpreter lock
//!   (`handle::Shared::run`). Threads of the database call Python for merge operators and
//!   comparators; a caller that kept the lock would wait for them for ever.
//! - Nothing that Python code does aborts the process: an exception of a callback becomes an error
//!   of the operation, and a panic becomes an exception.

use pyo3::prelude::*;

mod backup;
mod batch;
mod callbacks;
mod codec;
mod columns;
mod database;
mod entity;
mod errors;
mod handle;
mod input;
mod iter;
mod load;
mod options;
mod place;
mod raw_iter;
mod snapshot;
mod sst;
mod store;
mod tools;
mod transaction;
mod typed;
mod typed_batch;
mod typed_iter;

#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::backup::Backups;
    #[pymodule_export]
    use super::batch::WriteBatch;
    #[pymodule_export]
    use super::codec::encoded;
    #[pymodule_export]
    use super::columns::column_chunk;
    #[pymodule_export]
    use super::database::Database;
    #[pymodule_export]
    use super::handle::close_all;
    #[pymodule_export]
    use super::iter::Entries;
    #[pymodule_export]
    use super::load::load_columns;
    #[pymodule_export]
    use super::options::{option_infos, profiles};
    #[pymodule_export]
    use super::raw_iter::RawIterator;
    #[pymodule_export]
    use super::snapshot::Snapshot;
    #[pymodule_export]
    use super::sst::SstFileWriter;
    #[pymodule_export]
    use super::store::Store;
    #[pymodule_export]
    use super::tools::{check, destroy, list_column_families, repair, stored_options};
    #[pymodule_export]
    use super::transaction::Transaction;
    #[pymodule_export]
    use super::typed::Typed;
    #[pymodule_export]
    use super::typed_batch::TypedBatch;
    #[pymodule_export]
    use super::typed_iter::TypedIterator;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        // The option `inspect` and the variable SATEEN_INSPECT work from the first open on.
        sateen_inspect::install();
        Ok(())
    }
}
