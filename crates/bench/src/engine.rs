//! The engines that the benchmark can measure, and how each is opened.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::databases::Databases;
use crate::peer::{self, About, Kind};
use crate::store::{Store, StoreConfig};
use crate::{Error, Result, sateen_store};

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
    /// LevelDB, loaded at run time.
    LevelDb {
        /// The shared library.
        library: PathBuf,
    },
    /// A store whose library is made for the benchmark (`peers/sateen_peer.h`), loaded at run time.
    Other {
        /// The shared library.
        library: PathBuf,
        /// What the library says of the store.
        about: About,
    },
}

impl Engine {
    /// Returns the engine of a shared library, which its functions tell.
    ///
    /// # Errors
    /// If there is no library, or if it is of no engine that the benchmark knows.
    pub fn of_library(library: &Path) -> Result<Engine> {
        let kind = peer::kind(library)?;
        let library = library.to_owned();
        Ok(match kind {
            Kind::RocksDb => Engine::RocksDb { library },
            Kind::LevelDb => Engine::LevelDb { library },
            Kind::Other(about) => Engine::Other { library, about },
        })
    }

    /// Refuses settings that the engine does not have. `given` has no defaults.
    pub(crate) fn check(&self, given: &StoreConfig) -> Result<()> {
        let many = given.databases.is_some();
        match self {
            Engine::Sateen | Engine::RocksDb { .. } => Ok(()),
            Engine::LevelDb { .. } | Engine::Other { .. } if many => Err(self.shares_nothing()),
            Engine::LevelDb { .. } => peer::leveldb::check(given),
            Engine::Other { about, .. } => about.check(given),
        }
    }

    fn shares_nothing(&self) -> Error {
        Error::Usage(format!("--databases: those of {} share nothing", self.name()))
    }

    /// Returns the settings that the engine runs with.
    pub(crate) fn adapt(&self, config: StoreConfig) -> StoreConfig {
        match self {
            Engine::Sateen | Engine::RocksDb { .. } => config,
            Engine::LevelDb { .. } => peer::leveldb::adapt(config),
            Engine::Other { about, .. } => about.adapt(config),
        }
    }

    /// Returns the engine's name for tables and directories.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Engine::Sateen => "sateen",
            Engine::RocksDb { .. } => "rocksdb",
            Engine::LevelDb { .. } => "leveldb",
            Engine::Other { about, .. } => about.name(),
        }
    }

    /// Opens (or creates) the database in `directory`, or several in folders of it.
    ///
    /// # Errors
    /// The error of the engine.
    pub fn open(&self, directory: &Path, config: &StoreConfig) -> Result<Box<dyn Store>> {
        let Some(count) = config.databases else { return self.open_one(directory, config) };
        let folders: Vec<_> = (0..count).map(|nth| directory.join(format!("db{nth}"))).collect();
        for folder in &folders {
            std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, error))?;
        }
        let all = match self {
            Engine::Sateen => sateen_store::open_all(&folders, config)?,
            Engine::RocksDb { library } => {
                peer::rocksdb::open_all(library, directory, &folders, config)?
            }
            Engine::LevelDb { .. } | Engine::Other { .. } => return Err(self.shares_nothing()),
        };
        Ok(Box::new(Databases::new(all, config.overload)))
    }

    fn open_one(&self, directory: &Path, config: &StoreConfig) -> Result<Box<dyn Store>> {
        match self {
            Engine::Sateen => sateen_store::open(directory, config),
            Engine::RocksDb { library } => peer::rocksdb::open(library, directory, config),
            Engine::LevelDb { library } => peer::leveldb::open(library, directory, config),
            Engine::Other { library, about } => {
                peer::interface::open(library, about, directory, config)
            }
        }
    }
}
