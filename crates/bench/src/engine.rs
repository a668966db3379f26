//! The engines that the benchmark can measure, and how each is opened.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store::{Store, StoreConfig};
use crate::{Result, rocksdb, sateen_store};

/// An engine, and where to find it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "engine")]
pub enum Engine {
    /// This project's engine, linked in.
    Sateen,
    /// RocksDB (or a library with its C functions), loaded at run time.
    RocksDb {
        /// The shared library.
        library: PathBuf,
    },
}

impl Engine {
    /// Returns the engine's name for tables and directories.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Engine::Sateen => "sateen",
            Engine::RocksDb { .. } => "rocksdb",
        }
    }

    /// Opens (or creates) the database in `directory`.
    ///
    /// # Errors
    /// The error of the engine.
    pub fn open(&self, directory: &Path, config: &StoreConfig) -> Result<Box<dyn Store>> {
        match self {
            Engine::Sateen => sateen_store::open(directory, config),
            Engine::RocksDb { library } => rocksdb::open(library, directory, config),
        }
    }
}
