//! The engine that the demo compares Sateen with: RocksDB if its library is found, otherwise Sateen
//! with RocksDB's options.

use std::path::{Path, PathBuf};

use super::DemoArgs;
use crate::engine::Engine;
use crate::{Error, Result};

/// The environment variable that names RocksDB's library.
const VARIABLE: &str = "SATEEN_ROCKSDB_LIB";

/// The folder for the library of `cargo xtask fetch-rocksdb`, below the top of the repository.
const FETCHED: &str = "target/peers";

/// The directories of system libraries.
const SYSTEM: [&str; 6] = [
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

/// The opponent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Opponent {
    /// RocksDB itself.
    RocksDb {
        library: PathBuf,
        /// True if the user named the library, so that no other opponent may replace it.
        named: bool,
        /// The version that the library reports once it has run.
        version: String,
    },
    /// Sateen's profile `rocksdb`.
    Profile,
}

impl Opponent {
    /// Finds the opponent: the library that the user named, the fetched one, the system's, or else
    /// the profile.
    ///
    /// # Errors
    /// If the file that the user named does not exist.
    pub(super) fn find(args: &DemoArgs) -> Result<Opponent> {
        let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let named = match (&args.peer, variable) {
            (Some(library), _) => Some(("--peer", library.clone())),
            (None, Some(library)) => Some((VARIABLE, library.into())),
            (None, None) => None,
        };
        if let Some((by, library)) = named {
            if !library.is_file() {
                let library = library.display();
                return Err(Error::Usage(format!("{by} {library}: there is no such file")));
            }
            return Ok(Opponent::RocksDb { library, named: true, version: String::new() });
        }
        let found = fetched().or_else(|| SYSTEM.iter().find_map(|at| system(Path::new(at))));
        Ok(found.map_or(Opponent::Profile, |library| Opponent::RocksDb {
            library,
            named: false,
            version: String::new(),
        }))
    }

    /// The engine to run.
    pub(super) fn engine(&self) -> Engine {
        match self {
            Opponent::RocksDb { library, .. } => Engine::RocksDb { library: library.clone() },
            Opponent::Profile => Engine::Sateen,
        }
    }

    /// Sets the version from the engine that has run.
    pub(super) fn is_called(&mut self, engine: &str) {
        if let Opponent::RocksDb { version, .. } = self {
            engine.clone_into(version);
        }
    }

    /// True for a library that the user did not name. If it does not run, the profile replaces it.
    pub(super) fn may_be_replaced(&self) -> bool {
        matches!(self, Opponent::RocksDb { named: false, .. })
    }

    /// The name in the verdict and the table.
    pub(super) fn name(&self) -> String {
        match self {
            Opponent::RocksDb { version, .. } if version.is_empty() => "RocksDB".to_owned(),
            Opponent::RocksDb { version, .. } => version.clone(),
            Opponent::Profile => "RocksDB's profile".to_owned(),
        }
    }

    /// The kind of opponent, as JSON names it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Opponent::RocksDb { .. } => "rocksdb",
            Opponent::Profile => "profile",
        }
    }

    /// RocksDB's library.
    pub(super) fn library(&self) -> Option<&Path> {
        match self {
            Opponent::RocksDb { library, .. } => Some(library),
            Opponent::Profile => None,
        }
    }

    /// Describes the opponent in a sentence.
    pub(super) fn about(&self) -> String {
        match self {
            Opponent::RocksDb { library, .. } => format!(
                "The opponent is {} from {}, with the same sizes, max_bytes_for_level_base=64 MiB, \
                 target_file_size_base=16 MiB and its auto-tuned rate limiter at 210 MB/s (200 \
                 MiB/s).",
                self.name(),
                library.display()
            ),
            Opponent::Profile => {
                "The opponent is Sateen itself with RocksDB's options (profile rocksdb), because \
                 no library of RocksDB ran."
                    .to_owned()
            }
        }
    }

    /// Says how to get the real RocksDB.
    pub(super) fn hint(&self) -> Option<String> {
        let text = "The opponent was Sateen's own profile rocksdb, because no library of RocksDB \
             ran. To compare with RocksDB itself: cargo xtask fetch-rocksdb, or set \
             SATEEN_ROCKSDB_LIB to its library.";
        matches!(self, Opponent::Profile).then(|| text.to_owned())
    }
}

/// Finds the fetched library in the repository of the build or of the working directory.
fn fetched() -> Option<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    let tops = program.ancestors().chain(here.ancestors());
    tops.filter(|top| top.join("Cargo.lock").is_file())
        .find_map(|top| newest(&top.join(FETCHED), |name| name.starts_with("rocksdb-")))
}

/// Finds RocksDB in a directory of the system. Sateen's own C library may be installed under
/// RocksDB's name; it does not count.
fn system(directory: &Path) -> Option<PathBuf> {
    newest(directory, |name| name.starts_with("librocksdb.so"))
        .filter(|library| !is_sateen(&std::fs::read(library).unwrap_or_default()))
}

/// Returns the wanted library whose name sorts last.
fn newest(directory: &Path, wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    entries
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|name| wanted(name) && name.contains(".so"))
        })
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .max()
}

/// True if these bytes are Sateen's C library.
fn is_sateen(bytes: &[u8]) -> bool {
    const MARK: &[u8] = b"sateen";
    bytes.windows(MARK.len()).any(|window| window == MARK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tests::demo_args;

    #[test]
    fn a_library_that_was_named_and_is_not_there_is_an_error() {
        let args = DemoArgs { peer: Some("/no/such/lib.so".into()), ..demo_args() };
        let error = Opponent::find(&args).unwrap_err().to_string();
        assert!(error.contains("--peer /no/such/lib.so"), "{error}");
    }

    #[test]
    fn the_systems_library_is_the_newest_and_not_our_own() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(system(folder.path()), None);
        for (name, text) in [("librocksdb.so.8", "a"), ("librocksdb.so.9", "b"), ("x.so", "c")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(system(folder.path()), Some(folder.path().join("librocksdb.so.9")));
        std::fs::write(folder.path().join("librocksdb.so.9"), "\0sateen_version\0").unwrap();
        assert_eq!(system(folder.path()), None);
        assert_eq!(system(&folder.path().join("none")), None);
    }

    #[test]
    fn each_opponent_says_who_it_is() {
        let library = PathBuf::from("/lib/x.so");
        let mut opponent = Opponent::RocksDb { library, named: false, version: String::new() };
        assert!(opponent.may_be_replaced() && opponent.hint().is_none());
        opponent.is_called("RocksDB 11.8.1");
        assert_eq!(opponent.name(), "RocksDB 11.8.1");
        assert!(opponent.about().contains("/lib/x.so"));
        let profile = Opponent::Profile;
        assert!(!profile.may_be_replaced() && profile.engine() == Engine::Sateen);
        assert!(profile.about().contains("profile rocksdb") && profile.hint().is_some());
    }
}
